"""Random programs and queries whose built-ins read names, where names are equal.

The oracle is the plain program with the axioms of equality: built-ins see each name on
its own, and a fact about one name holds for all that are equal to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import evermat
import oracle
from equality_scenarios import is_contradictory
from evermat.algebra.equality import UnequalValuesError
from evermat.lang.equality import EqualityError, axioms
from evermat.lang.parser import parse_program, parse_query
from evermat.lang.syntax import (
    ANONYMOUS,
    SAME_AS,
    Atom,
    Condition,
    Rule,
    Variable,
    atom_variables,
    body_atoms,
    expression_variables,
)
from evermat.values import constant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evermat.values import Constant, Value
    from oracle import Fact

    Row = tuple[Value, ...]
    Facts = frozenset[tuple[str, Row]]

NAMES = ("a", "ann", "anna", "annb", "ANN", "bo", "bob", "Bob", "bobb", "b")
TEXTS = ("t1", "T1", "t2", "T2")
"""Beside names; rarely equal to anything."""
FIGURES = ("one", "two")
"""Names of numbers, which occur beside numbers only: text functions refuse these."""
NUMBERS = (1, 2, 3)
ARITIES = {
    "e": 2,
    "p": 1,
    "q": 1,
    "r": 2,
    "s": 2,
    "n": 2,
    SAME_AS: 2,
    "m": 2,
    "u": 1,
    "v": 2,
    "w": 1,
    "y": 1,
}
UPPER = frozenset({"m", "u", "v", "w", "y"})

LOWER_RULES = (
    "same_as(?a, ?b) :- r(?a, ?x), r(?b, ?x) .",
    "same_as(?a, ?b) :- s(?a, ?b), s(?b, ?a) .",
    "same_as(?a, ann) :- q(?a), p(?a) .",
    "same_as(bo, bob) :- q(a) .",
    "same_as(?a, ?b) :- n(?a, ?x), n(?b, ?x), ?x > 2 .",
    "p(?x) :- s(?x, ?y), p(?y) .",
    "q(?x) :- r(?x, ?x) .",
    "s(?x, ?y) :- r(?x, ?y), p(?y) .",
    "same_as(?a, ?b) :- e(?a, ?x), e(?b, ?y), lower(?x) = lower(?y), ?a != ?b .",
    'same_as(?a, ?b) :- r(?a, ?b), e(?a, ?x), starts_with(?x, "t1") .',
    "p(?z) :- e(?x, ?y), ?z = lower(?y) .",
)
"""Those of the last three that lead to equality must not read names that are equal."""
UPPER_RULES = (
    'u(?x) :- p(?x), starts_with(?x, "ann") .',
    "u(?x) :- p(?x), ?x != ann .",
    'u(?z) :- p(?x), ?z = concat(?x, "b") .',
    "u(?z) :- p(?x), ?z = lower(?x), not q(?z) .",
    "u(?x) :- p(?x), length(?x) > 2, not same_as(?x, bob) .",
    'u(?y) :- p(?x), same_as(?x, ?y), ends_with(?y, "b") .',
    "u(?x) :- u(?y), ?x = substr(?y, 1, 3) .",
    'u(?x) :- v(?x, ?y), regex(?y, "^b.*b$") .',
    "u(?x) :- q(?x), p(?y), max(?x, ?y) = ?x .",
    'u(bo) :- p(?x), same_as(?x, bob), contains(?x, "o") .',
    "v(?x, ?y) :- s(?x, ?y), ?x != ?y .",
    "v(?x, ?y) :- p(?x), p(?y), lower(?x) = lower(?y) .",
    "v(?x, ?z) :- s(?x, ?y), ?z = min(?x, ?y) .",
    'v(?x, ?y) :- s(?x, ?y), ?x < ?y, contains(?y, "b") .',
    "m(?x, ?y) :- n(?x, ?k), n(?y, ?m), ?k < ?m .",
    "m(?x, ?k) :- n(?x, ?k), ?k != 2 .",
    "v(?z, ?x) :- p(?x), ?z = upper(?x), not s(?z, ?x) .",
    "m(?z, ?k) :- n(?x, ?k), ?z = upper(?x), not n(?z, ?k) .",
    "w(?k) :- p(?x), ?k = length(?x) .",
    "w(?m) :- n(?x, ?k), ?k >= 2, ?m = ?k + 1 .",
    "w(?z) :- n(?x, ?k), ?z = str(?k) .",
    "y(?x) :- p(?x), not u(?x) .",
    'y(?z) :- p(?x), ?z = concat(?x, "b"), not same_as(?z, ?x), not u(?z) .',
)
QUERIES = (
    'p(?x), starts_with(?x, "ann")',
    's(?x, ?y), starts_with(?y, "ann")',
    "p(?x), p(?y), ?x != ?y",
    "p(?x), p(?y), ?x = ?y",
    "p(?x), q(?y), same_as(?x, ?y), ?x < ?y",
    "p(?x), ?x = ann",
    "p(?x), ?x != ann, ?x >= b",
    's(?x, ?y), same_as(?y, ?z), ends_with(?z, "b")',
    "s(?x, ?y), lower(?x) = lower(?y)",
    "p(?x), length(?x) = 3",
    'p(?x), ?z = concat(?x, "b")',
    'p(?x), ?z = concat(?x, "b"), not u(?z)',
    "p(?x), ?z = upper(?x), not same_as(?z, ?x)",
    "p(?x), ?z = lower(?x), q(?z)",
    's(?x, _), not s(_, ?x), regex(?x, "b$")',
    "s(?x, ?x), contains(?x, o)",
    "s(?x, ?y), q(?z), min(?x, ?z) = ?x",
    "n(?x, ?k), ?k > 1",
    "n(?x, ?k), ?k != 2",
    "n(?x, ?k), n(?y, ?m), ?k < ?m, ?x != ?y",
    "n(?x, ?k), ?k > 1, ?m = ?k * 2, not n(_, ?m)",
    "n(?x, ?k), ?z = str(?k)",
    "same_as(?x, ?y), ?x < ?y",
    'same_as(?x, bob), starts_with(?x, "b")',
    "p(ann), u(?x), length(?x) > 2",
    "s(?x, ?y), substr(?x, 1, 1) = substr(?y, 1, 1), ?x != ?y, u(?z)",
    "p(?x), p(?y), ?z = concat(?x, ?y), length(?z) > 5",
    "v(?x, ?y), max(?x, ?y) = ?y, ?x != ?y",
)


@dataclass(frozen=True)
class Story:
    """A program, its facts and what happens to them."""

    rules: tuple[str, ...]
    facts: Facts
    updates: tuple[tuple[Facts, Facts], ...]
    """What goes and what comes."""


TURNED = Story(
    ("u(?x) :- p(?x), ?x != ann .",),
    frozenset({(SAME_AS, ("ann", "bob")), ("p", ("ann",))}),
    (
        (frozenset(), frozenset({(SAME_AS, ("bob", "ann"))})),
        (frozenset({(SAME_AS, ("ann", "bob"))}), frozenset()),
    ),
)
"""An equality takes the place of another that is written the other way round.

Nothing in it depends on the order in which facts are met: whoever lets that order
choose the representative has another one here than if they had started again.
"""


def story_of(number: int) -> Story:
    """The story of a number."""
    random = Random(number)  # noqa: S311  tests are to be repeatable
    rules = [
        *random.sample(LOWER_RULES, random.randint(1, 5)),
        *random.sample(UPPER_RULES, random.randint(2, 6)),
    ]
    present = {_fact(random) for _ in range(random.choice([5, 8, 12]))}
    first = frozenset(present)
    updates = []
    for _ in range(3):
        there = sorted(present, key=repr)
        gone = frozenset(
            random.sample(there, min(len(there), random.choice([0, 1, 2])))
        )
        come = frozenset(_fact(random) for _ in range(random.choice([0, 1, 2])))
        present = (present - gone) | come
        updates.append((gone - come, come))
    return Story(tuple(rules), first, tuple(updates))


def _fact(random: Random) -> tuple[str, Row]:
    name = random.choice([*"eeppqrssn", SAME_AS, SAME_AS])
    if name == "e":
        return name, (random.choice(NAMES), random.choice(TEXTS))
    if name == "n":
        return name, (random.choice(NAMES), random.choice(NUMBERS + FIGURES))
    if name == SAME_AS and random.random() < 0.05:
        return name, (random.choice(TEXTS), random.choice(NAMES + TEXTS))
    if name == SAME_AS and random.random() < 0.2:
        return name, (random.choice(FIGURES), random.choice((1, 2, *FIGURES)))
    return name, tuple(random.choice(NAMES) for _ in range(ARITIES[name]))


def model_of(rules: Iterable[str], facts: Facts) -> set[Fact]:
    """All facts that hold when equality is axiomatised."""
    written = parse_program("\n".join(rules)).rules
    congruence = [
        rule
        for rule in axioms(ARITIES)
        if not (rule.head.predicate == SAME_AS and len(rule.body) == 1)
        or next(rule.positive_atoms()).predicate not in UPPER
    ]
    given = [(name, tuple(map(constant, row))) for name, row in facts]
    everything = [*written, *congruence]
    facts_found = oracle.materialise(everything, given, limit=10_000_000).facts
    # Reflexivity would depend on predicates that depend on it, if rules derived it.
    itself = {(SAME_AS, (each, each)) for _, row in facts_found for each in row}
    return facts_found | itself


def answers_of(query: str, model: set[Fact]) -> set[tuple[Constant, ...]]:
    """The answers to a query among all facts."""
    body = parse_query(query)
    names: dict[str, None] = {}
    for element in body:
        if isinstance(element, Atom):
            found = atom_variables(element)
        elif isinstance(element, Condition):
            found = expression_variables(element.expression)
        else:
            continue
        names.update(dict.fromkeys(v.name for v in found if v.name != ANONYMOUS))
    rule = Rule((Atom("answer", tuple(map(Variable, names))),), body)
    (plain,) = oracle.distinct([rule])
    answers = oracle.instances(plain, model, model, limit=10_000_000)
    return {each.head[1] for each in answers}


def has_equal_texts(model: set[Fact]) -> bool:
    """Whether a name that rules may not read has other names."""
    texts = set(map(constant, TEXTS))
    return any(
        name == SAME_AS and row[0] != row[1] and not texts.isdisjoint(row)
        for name, row in model
    )


def rows_of(result: evermat.Result) -> set[tuple[Constant, ...]]:
    """The rows of a result, each of them once."""
    rows = list(result.constants())
    assert len(rows) == len(set(rows)) == len(result)
    return set(rows)


class Tracked:
    """A knowledge base that is compared with the oracle after every update."""

    def __init__(self, story: Story, engine: str) -> None:
        self.rules = story.rules
        self.engine = engine
        self.facts: Facts = frozenset()
        self.model: set[Fact] = set()
        self.base = self._new()

    def _new(self) -> evermat.KnowledgeBase:
        return evermat.KnowledgeBase(
            "\n".join(self.rules), engine=self.engine, equality="rewrite"
        )

    def apply(self, gone: Facts, come: Facts, algorithm: str) -> None:
        """Change facts, and check what holds then and what is reported.

        Raises:
            UnequalValuesError: rightly so; nothing has changed.
        """
        facts = (self.facts - gone) | come
        model = model_of(self.rules, facts)
        try:
            change = self.base.update(
                delete=_tables(gone & self.facts),
                insert=_tables(come),
                algorithm=algorithm,
            )
        except UnequalValuesError:
            assert is_contradictory(model)
            raise
        except EqualityError as error:
            if "is written" in str(error):
                assert has_equal_texts(model)
            raise
        assert not is_contradictory(model)
        before, self.model, self.facts = self.model, model, facts
        self.check()
        for name in change.predicates:
            if name != SAME_AS:
                assert set(change.added(name).constants()) == _of(name, model - before)
                assert set(change.removed(name).constants()) == _of(
                    name, before - model
                )

    def check(self) -> None:
        """All facts are those of the oracle."""
        for name in self.base.predicates:
            if name != SAME_AS:
                assert rows_of(self.base.facts(name)) == _of(name, self.model), name

    def check_queries(self, queries: Iterable[str]) -> None:
        """So are all answers."""
        for query in queries:
            if _predicates(query) <= self.base.predicates.keys():
                found = rows_of(self.base.query(query))
                assert found == answers_of(query, self.model), query

    def check_history(self) -> None:
        """A fresh knowledge base has the same representatives, and the same facts."""
        fresh = self._new()
        fresh.load(_tables(self.facts))
        mine, theirs = self.base, fresh
        assert set(mine.representatives()) == set(theirs.representatives())
        for name in mine.predicates.keys() & theirs.predicates.keys():
            if name != SAME_AS:
                query = f"{name}({', '.join(f'?x{at}' for at in range(ARITIES[name]))})"
                kept = rows_of(mine.query(query, raw=True))
                assert kept == rows_of(theirs.query(query, raw=True)), name


def _of(name: str, facts: Iterable[Fact]) -> set[tuple[Constant, ...]]:
    return {row for other, row in facts if other == name}


def _predicates(query: str) -> set[str]:
    return {atom.predicate for atom in body_atoms(parse_query(query))}


def _tables(facts: Facts) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for name, row in sorted(facts, key=repr):
        found.setdefault(name, []).append(row)
    return found
