"""Proofs where one constant stands for all that are equal to it.

Facts about representatives do not tell why constants are equal, nor which name a given
fact was about. So a fact is proved among facts as they were given: those that it can
follow from are looked for backwards, over representatives, and the proof is then found
among them by the rules together with axioms of equality. These say what everybody knows
about equality, in steps that can be followed:

- equality is symmetric and transitive, and `[?x, owl:sameAs, ?y]` means the same;
- a constant in a fact can be exchanged for one that is equal to it, one at a time;
- what occurs in a fact is equal to itself.

A step by a rule goes one level backwards, and a step by an axiom none: so a proof of
height h has been found among enough facts once h levels, or all, have been looked at.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from evermat.algebra import Region
from evermat.algebra.compile import compile_rules, derive
from evermat.columns import constants, table_of_rows
from evermat.lang.equality import (
    OWL_SAME_AS,
    SAME,
    replace_constants,
    rule_constants,
    without_equality,
)
from evermat.lang.normalise import is_auxiliary
from evermat.lang.syntax import SAME_AS, TRIPLE, Atom, Rule, Term, Variable
from evermat.maintenance.equality.state import LOST, given_among, values_among
from evermat.maintenance.proof import Exchange, Fact, constant_order, rows_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from evermat.algebra import Engine, Facts, SettledFacts
    from evermat.algebra.abilities import EqualityEngine, Representatives
    from evermat.values import Constant


def plain_axioms(arities: Mapping[str, int]) -> tuple[Rule, ...]:
    """What everybody knows about equality, for some predicates."""
    x, y, z = Variable("x"), Variable("y"), Variable("z")
    rules = [
        Rule((Atom(SAME_AS, (y, x)),), (Atom(SAME_AS, (x, y)),)),
        Rule((Atom(SAME_AS, (x, z)),), (Atom(SAME_AS, (x, y)), Atom(SAME_AS, (y, z)))),
    ]
    if TRIPLE in arities:
        triple, same = Atom(TRIPLE, (x, Term(OWL_SAME_AS), y)), Atom(SAME_AS, (x, y))
        rules += [Rule((same,), (triple,)), Rule((triple,), (same,))]
    for predicate, arity in arities.items():
        names = tuple(Variable(f"x{at + 1}") for at in range(arity))
        atom = Atom(predicate, names)
        for at, name in enumerate(names):
            rules.append(Rule((Atom(SAME_AS, (name, name)),), (atom,)))
            if predicate != SAME_AS:
                other = (*names[:at], y, *names[at + 1 :])
                body = (atom, Atom(SAME_AS, (name, y)))
                rules.append(Rule((Atom(predicate, other),), body))
    return tuple(rules)


def visible_arities(engine: Engine) -> dict[str, int]:
    """The predicates that users know of, equality always among them."""
    arities = engine.relations().items()
    found = {name: arity for name, arity in arities if not is_auxiliary(name)}
    return {SAME_AS: 2, **found}


class Sources:
    """The given facts that a fact can follow from; inside of a transaction.

    Args:
        engine: holds facts about representatives.
        representatives: what stands for what.
        rules: rules with equality in heads only.
        start: representatives of the fact, or what it follows from in one step.
        facts: those that hold.
        given: tells those given facts that some representatives stand for.

    Attributes:
        is_whole: whether there are no more than those that were found.
        depth: how many levels have been looked at.
    """

    def __init__(
        self,
        engine: EqualityEngine,
        representatives: Representatives,
        rules: Sequence[Rule],
        start: SettledFacts,
        *,
        facts: Facts,
        given: Callable[[SettledFacts], SettledFacts],
    ) -> None:
        self._engine = engine
        self._representatives = representatives
        values = representatives.replaced(rule_constants(rules))
        normal = dict.fromkeys(replace_constants(rule, values) for rule in rules)
        self._rules = compile_rules(normal, lambda _rule, _atom: True)
        self._holding = facts
        self._given = given
        self._facts = engine.no_facts()
        self._last = self._with_cliques(start)
        self.is_whole = False
        self.depth = 0

    @classmethod
    def of(
        cls,
        engine: EqualityEngine,
        representatives: Representatives,
        rules: Iterable[Rule],
        fact: Fact,
    ) -> Sources:
        """What a fact can follow from that holds, by the normal rules of a program."""
        return cls(
            engine,
            representatives,
            without_equality(
                rules, visible_arities(engine), values_among(engine.relations())
            ),
            _start(engine, representatives, fact),
            facts=engine.materialised,
            given=lambda found: given_among(
                engine, engine.originals(found, representatives)
            ),
        )

    def _with_cliques(self, facts: SettledFacts) -> SettledFacts:
        """The facts, and why the constants in them are equal to others."""
        engine = self._engine
        nodes = engine.nodes_of(facts, self._representatives, SAME)
        return engine.settle((facts | nodes) - self._facts)

    def widen(self, depth: int) -> None:
        """Look at more levels, so many in all."""
        engine = self._engine
        while self.depth < depth and not self.is_whole:
            self.depth += 1
            heads = self._last
            self._facts = engine.settle(self._facts | heads)
            premises = derive(
                engine,
                self._rules.backward,
                positive=self._holding,
                negative=self._holding,
                delta_positive=heads,
            )
            self._last = self._with_cliques(premises)
            self.is_whole = self._last.is_empty()

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """The given facts, by predicate."""
        engine = self._engine
        found = engine.settle(self._facts | self._last)
        given = engine.snapshot(self._given(found))
        for name in given.relations():
            yield name, given.read(name)

    def size(self) -> int:
        """How many representatives of facts were found."""
        return self._facts.size() + self._last.size()


def _start(
    engine: EqualityEngine, representatives: Representatives, fact: Fact
) -> SettledFacts:
    """The representative of a fact, and what it follows from without any rule."""
    exchange = Exchange(engine)
    start = engine.rewrite(exchange.settled([fact]), representatives)
    first, last = fact.row[:1], fact.row[-1:]
    if not is_equality_fact(fact) or first != last:
        return start
    # What occurs in any fact is equal to itself.
    marks = exchange.settled([Fact(LOST, first)])
    name = engine.rewrite(marks, representatives)
    mentioning = engine.mentioning(name, engine.materialised)
    if mentioning.is_empty():  # `owl:sameAs` occurs wherever something is equal
        mentioning = _any_fact(engine, representatives)
    return engine.settle(start | mentioning)


def _any_fact(engine: EqualityEngine, representatives: Representatives) -> SettledFacts:
    """The representative of the first fact that was given."""
    exchange = Exchange(engine)
    given = engine.snapshot(engine.explicit)
    for relation in sorted(given.relations()):
        rows = rows_in(given.read(relation), 1)
        row = min(rows, key=lambda each: [*map(constant_order, each)])
        fact = exchange.settled([Fact(relation, row)])
        if row:
            return engine.rewrite(fact, representatives)
    return engine.no_facts()


def is_equality_fact(fact: Fact) -> bool:
    """Whether a fact says that two constants are equal."""
    if fact.relation == SAME_AS:
        return len(fact.row) == 2  # noqa: PLR2004  the two that are equal
    return fact.relation == TRIPLE and fact.row[1:2] == (OWL_SAME_AS,)


def absent_tables(
    engine: EqualityEngine,
    representatives: Representatives,
    rules: Sequence[Rule],
    sources: Iterable[pa.Table],
) -> Iterator[tuple[str, pa.Table]]:
    """All facts of predicates that some rule negates, multiplied out.

    Args:
        engine: holds facts about representatives.
        representatives: what stands for what.
        rules: normal rules.
        sources: given facts; every constant in them is equal to itself.
    """
    names = {atom.predicate for rule in rules for atom in rule.negated_atoms()}
    snapshot = engine.snapshot(engine.materialised.within(Region(frozenset(names))))
    for name in sorted(snapshot.relations()):
        yield name, representatives.expanded(snapshot.read(name))
    if names.isdisjoint({SAME_AS, TRIPLE}):
        return
    pairs = _equal_pairs(representatives, sources)
    if SAME_AS in names:
        yield SAME_AS, table_of_rows(pairs, 2)
    if TRIPLE in names:
        yield TRIPLE, table_of_rows([(x, OWL_SAME_AS, y) for x, y in pairs], 3)


def _equal_pairs(
    representatives: Representatives, sources: Iterable[pa.Table]
) -> list[tuple[Constant, Constant]]:
    columns = (column for table in sources for column in table.columns)
    names = dict.fromkeys(name for column in columns for name in constants(column))
    cliques: dict[Constant, list[Constant]] = {}
    for member, normal in rows_in(representatives.cliques(), 0):
        cliques.setdefault(normal, []).append(member)
    pairs = dict.fromkeys((name, name) for name in names)
    for members in cliques.values():
        pairs.update(dict.fromkeys(product(members, members)))
    return list(pairs)
