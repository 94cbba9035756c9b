"""Proofs and contradictions when equality is rewritten.

Facts about representatives do not show why constants are equal, nor which name was used
in an explicit fact. So a fact is proved from facts as they were inserted: those from
which it may follow are searched for backwards, in terms of representatives, and the
proof is then found among them by the rules together with the usual axioms of equality,
whose steps can be followed:

- equality is symmetric and transitive, and `[?x, owl:sameAs, ?y]` means the same;
- a constant in a fact can be replaced by one that is equal to it, one at a time;
- a constant that occurs in a fact is equal to itself.

A step by a rule goes one level backwards, a step by an axiom none: so a proof of height
h is found as soon as h levels, or all, have been searched.

A contradiction, that two values would be equal, is explained by the facts of one step
and all explicit facts that lead to them. The search begins where merging failed: the
facts derived until then are still there, and determine from which facts the wrong
equality can follow.
"""

from __future__ import annotations

from collections import deque
from itertools import product
from typing import TYPE_CHECKING

from evermat.algebra import Pattern, Query, QuerySet, Region, Role, Views
from evermat.algebra.compile import compile_rules, derive
from evermat.algebra.equality import UnequalValuesError
from evermat.columns import constants, table_of_rows
from evermat.lang.equality import (
    OWL_SAME_AS,
    SAME,
    replace_constants,
    rule_constants,
    without_equality,
)
from evermat.lang.syntax import (
    SAME_AS,
    TRIPLE,
    Atom,
    Rule,
    Term,
    Variable,
    is_auxiliary,
)
from evermat.maintenance.equality.program import LOST, explicit_among, values_among
from evermat.maintenance.proof import Exchange, Fact, constant_order, rows_in
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from evermat.algebra import Engine, Facts, SettledFacts, Snapshot
    from evermat.algebra.equality import Representatives
    from evermat.maintenance.equality.update import Insertion


def plain_axioms(arities: Mapping[str, int]) -> tuple[Rule, ...]:
    """Return the usual axioms of equality, for some predicates."""
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
    """Return the predicates visible to users, equality always among them."""
    arities = engine.relations().items()
    found = {name: arity for name, arity in arities if not is_auxiliary(name)}
    return {SAME_AS: 2, **found}


class Sources:
    """The explicit facts from which a fact can follow; inside of a transaction.

    Args:
        engine: stores facts about representatives.
        representatives: the cliques.
        rules: rules with equality in heads only.
        start: the rewritten fact, or the facts from which it follows in one step.
        facts: the facts that hold.
        given: returns the preimages of rewritten facts among the explicit facts.

    Attributes:
        is_whole: whether all of them have been found.
        depth: the number of levels that have been searched.
    """

    def __init__(
        self,
        engine: Engine,
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
        engine: Engine,
        representatives: Representatives,
        rules: Iterable[Rule],
        fact: Fact,
    ) -> Sources:
        """Return the sources of a fact that holds, by the normal rules of a program."""
        return cls(
            engine,
            representatives,
            without_equality(
                rules, visible_arities(engine), values_among(engine.relations())
            ),
            _start(engine, representatives, fact),
            facts=engine.materialised,
            given=lambda found: explicit_among(
                engine, engine.preimages(found, representatives)
            ),
        )

    def _with_cliques(self, facts: SettledFacts) -> SettledFacts:
        """Return the facts, and the equalities of the constants in them."""
        engine = self._engine
        nodes = engine.nodes_of(facts, self._representatives, SAME)
        return engine.settle((facts | nodes) - self._facts)

    def widen(self, depth: int) -> None:
        """Search more levels, up to a total number."""
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
        """Yield the explicit facts, by predicate."""
        engine = self._engine
        found = engine.settle(self._facts | self._last)
        given = engine.snapshot(self._given(found))
        for name in given.relations():
            yield name, given.read(name)

    def size(self) -> int:
        """Return the number of rewritten facts found."""
        return self._facts.size() + self._last.size()


def _start(
    engine: Engine, representatives: Representatives, fact: Fact
) -> SettledFacts:
    """Return the rewritten fact, and the facts that imply it without any rule."""
    exchange = Exchange(engine)
    start = engine.rewrite(exchange.settled([fact]), representatives)
    first, last = fact.row[:1], fact.row[-1:]
    if not is_equality_fact(fact) or first != last:
        return start
    # A constant that occurs in any fact is equal to itself.
    marks = exchange.settled([Fact(LOST, first)])
    name = engine.rewrite(marks, representatives)
    mentioning = engine.mentioning(name, engine.materialised)
    if mentioning.is_empty():  # `owl:sameAs` occurs wherever constants are equal
        mentioning = _any_fact(engine, representatives)
    return engine.settle(start | mentioning)


def _any_fact(engine: Engine, representatives: Representatives) -> SettledFacts:
    """Return the rewritten form of the first explicit fact."""
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
    """Return whether a fact says that two constants are equal."""
    if fact.relation == SAME_AS:
        return len(fact.row) == 2  # noqa: PLR2004  the two that are equal
    return fact.relation == TRIPLE and fact.row[1:2] == (OWL_SAME_AS,)


def absent_tables(
    engine: Engine,
    representatives: Representatives,
    rules: Sequence[Rule],
    sources: Iterable[pa.Table],
) -> Iterator[tuple[str, pa.Table]]:
    """Yield all facts of negated predicates, expanded.

    Args:
        engine: stores facts about representatives.
        representatives: the cliques.
        rules: normal rules.
        sources: explicit facts; every constant in them is equal to itself.
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


# ----------------------------------------------------------------------- contradictions


_SHOWN = 6
"""The most facts shown by an error, and the most names of a clique."""

MOST_FACTS = 20_000
MOST_LEVELS = 64
"""The most levels of the search for explicit facts."""


def explained(
    error: UnequalValuesError,
    insertion: Insertion,
    before: Representatives,
    equalities: SettledFacts,
) -> UnequalValuesError:
    """Return the error with the facts that lead to it.

    Args:
        error: the error about two values.
        insertion: the insertion that failed to merge constants.
        before: the cliques before that.
        equalities: the equalities to be merged; facts of their representatives.
    """
    engine = insertion.setting.engine
    facts = insertion.facts | insertion.pending
    links = _links(engine.snapshot(equalities), error.left, error.right)
    wrong = engine.derive(links, Views(facts, facts, equalities))
    if wrong.is_empty():
        wrong = equalities
    bodies = derive(
        engine,
        insertion.rules.backward,
        positive=facts,
        negative=facts,
        delta_positive=wrong,
    )
    rows = dict(sorted(_rows(engine.snapshot(bodies)))[:_SHOWN])
    cliques = (name for row in rows.values() for name in _cliques(row, before))
    return UnequalValuesError(
        error.left,
        error.right,
        # Facts are shown as they are stored, so the members of their cliques are, too.
        derivation=(*rows, *dict.fromkeys(cliques)),
        given=_given(insertion, before, wrong, facts),
    )


def _given(
    insertion: Insertion, before: Representatives, wrong: SettledFacts, facts: Facts
) -> dict[str, pa.Table]:
    """Return explicit facts that may imply wrong equalities, if they are few."""
    setting = insertion.setting
    engine, given = setting.engine, setting.explicit

    def behind(found: SettledFacts) -> SettledFacts:
        kept = given.kept(engine.preimages(found, before))
        new = engine.rewritten_into(given.insertions, before, found)
        return engine.settle(kept | new)

    rules = tuple(
        rule
        for rule in setting.program.rules
        if rule in insertion.chosen and rule in setting.component
    )
    sources = Sources(engine, before, rules, wrong, facts=facts, given=behind)
    while not sources.is_whole and sources.size() <= MOST_FACTS:
        if sources.depth == MOST_LEVELS:
            break
        sources.widen(sources.depth + 1)
    return dict(sources.tables())


def _links(snapshot: Snapshot, left: Constant, right: Constant) -> QuerySet:
    """Build queries for the shortest chain of equalities between two values."""
    nearby: dict[Constant, list[tuple[Constant, Constant]]] = {}
    for row in snapshot.read(SAME).to_pylist() if SAME in snapshot.relations() else ():
        one, other = (Constant(Kind(e["kind"]), e["text"]) for e in row.values())
        nearby.setdefault(one, []).append((one, other))
        nearby.setdefault(other, []).append((one, other))
    reached: dict[Constant, tuple[Constant, Constant]] = {}
    waiting = deque([left])
    while waiting and right not in reached:
        here = waiting.popleft()
        for link in nearby.get(here, ()):
            there = _other_end(link, here)
            if there not in reached and there != left:
                reached[there] = link
                waiting.append(there)
    links: list[tuple[Constant, Constant]] = []
    here = right
    while here in reached:
        links.append(reached[here])
        here = _other_end(reached[here], here)
    return QuerySet(
        tuple(
            Query(
                head=Pattern(SAME, link),
                positive=(Pattern(SAME, link, Role.CHANGED),),
                column_count=0,
                label="equalities of values",
            )
            for link in links
        )
    )


def _other_end(link: tuple[Constant, Constant], end: Constant) -> Constant:
    return link[1] if link[0] == end else link[0]


def _rows(snapshot: Snapshot) -> Iterator[tuple[str, pa.Table]]:
    """Yield facts as strings, each with its row."""
    for name in snapshot.relations():
        table = snapshot.read(name)
        for at in range(table.num_rows):
            row = table.slice(at, 1)
            terms = [_term(column) for column in row.columns]
            yield f"{name}({', '.join(terms)})", row


def _cliques(row: pa.Table, representatives: Representatives) -> Iterator[str]:
    """Yield the constants of a row that are equal to others, with these."""
    for at in range(row.num_columns):
        normal = representatives.normalised(row.select([at]))
        (members,) = representatives.expanded(normal).columns
        if len(members) > 1:
            names = sorted(_term(members.slice(n, 1)) for n in range(len(members)))
            more = [] if len(names) <= _SHOWN else ["…"]
            yield " ≈ ".join([*names[:_SHOWN], *more])


def _term(column: pa.ChunkedArray) -> str:
    """Return the only constant of a column."""
    (term,) = column.to_pylist()
    return str(Constant(Kind(term["kind"]), term["text"]))
