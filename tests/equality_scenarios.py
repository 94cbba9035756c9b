"""Random programs and updates with equality, and what must hold after them.

The oracle adds the axioms of equality as plain rules, and shares nothing with the way
in which equality is kept by rewriting.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import TYPE_CHECKING

import oracle
from engine_facts import facts_in, facts_of, rows_of, tables
from evermat.algebra.equality import UnequalValuesError
from evermat.kb.equality import EqualityMaterialisation
from evermat.lang.equality import OWL_SAME_AS, axioms
from evermat.lang.parser import parse_program
from evermat.lang.syntax import SAME_AS, TRIPLE, Rule, is_auxiliary
from evermat.maintenance.equality.program import explicit_among
from evermat.results.change import expanded_outcome
from evermat.values import IRI, Constant, constant
from strategies import Update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from evermat.algebra.engine import Engine
    from evermat.maintenance.update import Outcome
    from oracle import Fact

NAMES = [constant(IRI(f"http://e.org/{name}")) for name in "abcdefg"]
PROPERTIES = [constant(IRI(f"http://e.org/{name}")) for name in ("p", "q")]

NUMBERS = [constant(number) for number in (1, 2, 3)]

ARITIES = {
    "n": 2,
    "p": 1,
    "q": 1,
    "r": 2,
    "s": 2,
    "t": 2,
    "u": 1,
    "v": 2,
    SAME_AS: 2,
    TRIPLE: 3,
}
UPPER = frozenset({"u", "v"})
"""Predicates whose rules may negate; nothing depends on them but each other."""

_RULES = parse_program("""
@prefix : <http://e.org/> .
same_as(?a, ?b) :- r(?a, ?x), r(?b, ?x) .
same_as(?a, ?b) :- r(?x, ?a), r(?x, ?b) .
same_as(?a, ?b) :- s(?x, ?a), s(?x, ?b), p(?x) .
same_as(?a, :a) :- q(?a), p(?a) .
same_as(:b, :c) :- q(:a) .
same_as(?a, ?b) :- s(?a, ?b), s(?b, ?a) .
[?a, owl:sameAs, ?b] :- [?a, :p, ?x], [?b, :p, ?x] .
[?a, owl:sameAs, ?b] :- [?a, :q, ?b], p(?a) .
:p ≈ :q :- q(:d) .
p(?x) :- s(?x, ?y), p(?y) .
p(:a) :- q(:b) .
q(?x) :- r(?x, ?x) .
q(?y) :- r(:a, ?y) .
s(?x, ?z) :- s(?x, ?y), s(?y, ?z) .
s(?x, ?y) :- r(?x, ?y) .
r(?x, ?y) :- s(?x, ?y), q(?y) .
q(?x) :- p(?x), same_as(?x, :c) .
p(?y) :- q(?x), ?x ≈ ?y .
s(?x, ?y) :- same_as(?x, ?y), p(?x) .
[?x, :q, ?y] :- [?x, :p, ?y] .
[?x, ?p, ?y] :- [?y, ?p, ?x], q(?p) .
r(?x, ?y) :- [?x, :q, ?y] .
[?x, :p, :a] :- p(?x) .
same_as(?a, ?b) :- n(?a, ?x), n(?b, ?x), ?x > 1 .
same_as(?a, ?b) :- n(?x, ?a), n(?x, ?b) .
p(?x) :- n(?x, ?y), ?y < 3 .
n(?x, ?y) :- n(?x, ?z), s(?z, ?y) .
t(?x, ?y) :- s(?x, ?y) .
t(?x, ?z) :- t(?x, ?y), t(?y, ?z) .
t(?y, ?x) :- t(?x, ?y) .
t(?x, ?z) :- t(?x, ?y), r(?y, ?z) .
[?x, :q, ?z] :- [?x, :q, ?y], [?y, :q, ?z] .
[?x, ?p, ?y] :- [?x, ?q, ?y], [?q, :p, ?p] .
""")
_UPPER = parse_program("""
@prefix : <http://e.org/> .
u(?x) :- p(?x), not q(?x) .
v(?x, ?y) :- s(?x, ?y), not r(?x, ?y) .
u(?x) :- r(?x, ?y), not v(?x, ?y) .
u(:a) :- p(:b), not q(:c) .
v(?x, ?y) :- v(?x, ?z), s(?z, ?y) .
v(?x, ?y) :- p(?x), p(?y), not same_as(?x, ?y) .
u(?x) :- t(?x, ?y), n(?y, ?z), ?z >= 2, not q(?y) .
v(?x, ?p) :- [?x, ?p, ?y], not [?y, ?p, ?x] .
u(?x) :- s(?x, ?y), q(?p), not [?x, ?p, ?y] .
""")


@dataclass(frozen=True)
class Scenario:
    """A program with its facts, and what happens to it."""

    rules: tuple[Rule, ...]
    facts: frozenset[Fact]
    updates: tuple[Update, ...]


def scenario_of(number: int) -> Scenario:
    """The scenario of a number."""
    return scenario(Random(number))  # noqa: S311  tests are to be repeatable


def scenario(random: Random) -> Scenario:
    """Programs with merges, splits, equal predicates and equal constants in rules."""
    pool = list(_RULES.rules)
    rules = random.sample(pool, random.randint(1, 7))
    upper = random.sample(list(_UPPER.rules), random.choice([0, 0, 1, 2, 3]))
    useful = sorted({a.predicate for r in rules for a in r.positive_atoms()})
    present = {_fact(random, useful) for _ in range(random.choice([4, 8, 14]))}
    current = rules + _stratified(upper)
    first, facts = tuple(current), frozenset(present)
    updates = []
    for _ in range(random.randint(1, 4)):
        there = sorted(present, key=repr)
        delete = set(random.sample(there, min(len(there), random.choice([0, 1, 1, 3]))))
        insert = {_fact(random, useful) for _ in range(random.choice([0, 0, 1, 2]))}
        removed: tuple[Rule, ...] = ()
        added: tuple[Rule, ...] = ()
        if random.random() < 0.25:
            lower = [rule for rule in current if rule.head.predicate not in UPPER]
            removed = tuple(random.sample(lower, min(len(lower), 1)))
            others = [rule for rule in pool if rule not in current]
            added = tuple(random.sample(others, random.choice([0, 1])))
        current = [rule for rule in current if rule not in removed] + list(added)
        present = (present - delete) | insert
        updates.append(Update(frozenset(delete), frozenset(insert), removed, added))
    return Scenario(first, facts, tuple(updates))


def _stratified(rules: list[Rule]) -> list[Rule]:
    """`v` negates through `u` in one pair of the rules only."""
    return [
        rule
        for rule in rules
        if not (
            rule.head.predicate == "v"
            and any(a.predicate == "u" for a in rule.negated_atoms())
        )
    ]


def _fact(random: Random, useful: list[str]) -> Fact:
    name = random.choice([*useful, *useful, SAME_AS, "p", "r", "s"])
    if name == "n":
        return name, (random.choice(NAMES), random.choice(NUMBERS + NAMES[:2]))
    if name == SAME_AS and random.random() < 0.1:
        return name, (random.choice(NAMES), random.choice(NUMBERS))
    if name == TRIPLE:
        if random.random() < 0.1:
            return name, (PROPERTIES[0], OWL_SAME_AS, PROPERTIES[1])
        middle = random.choice([*PROPERTIES, *PROPERTIES, OWL_SAME_AS])
        return name, (random.choice(NAMES), middle, random.choice(NAMES))
    return name, tuple(random.choice(NAMES) for _ in range(ARITIES[name]))


# ------------------------------------------------------------------------ oracle


def expected(rules: Iterable[Rule], facts: Iterable[Fact]) -> set[Fact]:
    """All facts that hold when equality is axiomatised."""
    arities = dict(ARITIES)
    below = {name: n for name, n in arities.items() if name not in UPPER}
    congruence = [
        rule
        for rule in axioms(arities)
        if not (rule.head.predicate == SAME_AS and len(rule.body) == 1)
    ]
    reflexive = [
        rule
        for rule in axioms(below)
        if rule.head.predicate == SAME_AS and len(rule.body) == 1
    ]
    everything = [*rules, *congruence, *reflexive]
    return oracle.materialise(everything, facts, limit=10_000_000).facts


class TrackedEquality:
    """Applies updates and compares with what they must lead to."""

    def __init__(self, engine: Engine) -> None:
        self.materialisation = EqualityMaterialisation(engine)
        self.rules: tuple[Rule, ...] = ()
        self.explicit: frozenset[Fact] = frozenset()
        self.model: set[Fact] = set()

    @property
    def engine(self) -> Engine:
        return self.materialisation.engine

    def apply(self, update: Update, algorithm: str) -> Outcome:
        """Apply an update, and check where it led.

        Raises:
            UnequalValuesError: rightly so; nothing has changed.
        """
        removed = [rule for rule in update.remove_rules if rule in self.rules]
        kept = tuple(rule for rule in self.rules if rule not in removed)
        rules = kept + tuple(r for r in update.add_rules if r not in kept)
        explicit = (self.explicit - update.delete) | update.insert
        known = self.engine.relations()
        delete = {fact for fact in update.delete if fact[0] in known}
        try:
            outcome = self.materialisation.update(
                delete=dict(tables(delete)),
                insert=dict(tables(update.insert)),
                remove_rules=removed,
                add_rules=update.add_rules,
                algorithm=algorithm,
            )
        except UnequalValuesError:
            assert is_contradictory(expected(rules, explicit))
            self.check()
            raise
        before = self.model
        self.rules = rules
        assert not is_contradictory(expected(rules, explicit))
        assert facts_in(outcome.explicit_removed) == self.explicit - explicit
        assert facts_in(outcome.explicit_added) == explicit - self.explicit
        self.explicit = explicit
        self.check()
        self.check_change(outcome, before)
        return outcome

    def check_change(self, outcome: Outcome, before: set[Fact]) -> None:
        """The reported change is exactly the difference, self-equalities left out."""
        arities = {
            name: arity
            for name, arity in self.engine.relations().items()
            if not is_auxiliary(name)
        }
        whole = expanded_outcome(outcome, arities)
        for snapshot, gone in (
            (whole.removed, before - self.model),
            (whole.added, self.model - before),
        ):
            known = {fact for fact in gone if fact[0] in arities}
            assert facts_in(snapshot) == {f for f in known if not _is_trivial(f)}

    def check(self) -> None:
        """Oracle 4: the expansion is what the axioms derive; nothing is missing."""
        model = self.model = expected(self.rules, self.explicit)
        equal = {row for name, row in model if name == SAME_AS and row[0] != row[1]}
        assert self.pairs() == equal
        held = {fact for fact in self.expanded() if not _is_equality(fact)}
        assert held == {fact for fact in model if not _is_equality(fact)}
        assert self.given() == self.explicit

    def cliques(self) -> dict[Constant, list[Constant]]:
        members: dict[Constant, list[Constant]] = {}
        for member, one in rows_of(self.materialisation.representatives.cliques()):
            members.setdefault(one, []).append(member)
        return members

    def pairs(self) -> set[tuple[Constant, ...]]:
        return {
            (left, right)
            for clique in self.cliques().values()
            for left, right in product(clique, clique)
            if left != right
        }

    def expanded(self) -> set[Fact]:
        cliques = self.cliques()
        normal = facts_of(self.engine, self.engine.materialised)
        representatives = {m: one for one, all_ in cliques.items() for m in all_}
        for _, row in normal:
            assert all(representatives.get(value, value) == value for value in row)
        return {
            (name, each)
            for name, row in normal
            if not is_auxiliary(name)
            for each in product(*(cliques.get(value, [value]) for value in row))
        }

    def given(self) -> set[Fact]:
        engine = self.engine
        engine.begin()
        try:
            found = {
                fact
                for name, table in tables(facts_of(engine, engine.explicit))
                for fact in facts_of(
                    engine, explicit_among(engine, engine.find(name, table))
                )
            }
        finally:
            engine.rollback()
        return found


def _is_equality(fact: Fact) -> bool:
    name, row = fact
    return name == SAME_AS or (name == TRIPLE and row[1] == OWL_SAME_AS)


def is_contradictory(model: Iterable[Fact]) -> bool:
    """Whether two different numbers are equal."""
    return any(
        name == SAME_AS and row[0] != row[1] and {row[0], row[1]} <= set(NUMBERS)
        for name, row in model
    )


def _is_trivial(fact: Fact) -> bool:
    return _is_equality(fact) and fact[1][0] == fact[1][-1]


def play(
    scenario: Scenario,
    algorithms: Iterable[str],
    new_engine: Callable[[], Engine],
) -> None:
    """Run through a scenario once for each algorithm."""
    for algorithm in algorithms:
        tracked = TrackedEquality(new_engine())
        try:
            tracked.apply(
                Update(insert=scenario.facts, add_rules=scenario.rules), "remat"
            )
            for update in scenario.updates:
                with suppress(UnequalValuesError):
                    tracked.apply(update, algorithm)
        except UnequalValuesError:
            continue
        except Exception as error:
            error.add_note(f"algorithm: {algorithm}")
            raise
