"""The operator Π⟦Iᵖ, Iⁿ : P, N⟧ against its definition, for random programs and sets.

The definition is brute force: take every rule instance over Iᵖ and Iⁿ, and keep those
that have a positive atom in P or a negated atom in N.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hypothesis import assume, given
from hypothesis import strategies as st

import oracle
import strategies
from engine_facts import interned, make_facts, numbers_of, tables
from evermat.algebra import QuerySet, Views
from evermat.algebra.compile import compile_rules
from evermat.engines import make_engine
from evermat.lang.normalise import normalise
from evermat.lang.parser import parse_rules
from evermat.values import constant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evermat.algebra import Engine, Facts, GrowingFacts
    from evermat.algebra.compile import RuleSet
    from evermat.lang.syntax import Rule
    from oracle import Fact

# Expressions over the stored, deleted and added facts. Python's sets have the same
# operators, so one function serves the engine and the definition.
SHAPES: list[Callable[[Any, Any, Any], Any]] = [
    lambda stored, _deleted, _added: stored,
    lambda stored, deleted, _added: stored - deleted,
    lambda stored, deleted, added: (stored - deleted) | added,
    lambda stored, deleted, added: stored - (deleted - added),
    lambda stored, _deleted, added: stored | added,
    lambda stored, deleted, added: (stored & deleted) | added,
    lambda _stored, _deleted, added: added,
]


@dataclass
class Case:
    """A program, sets of facts, and views of them by number."""

    rules: tuple[Rule, ...]
    stored: frozenset[Fact]
    deleted: frozenset[Fact]
    added: frozenset[Fact]
    positive_shape: int
    negative_shape: int
    delta_positive: frozenset[Fact]
    delta_negative: frozenset[Fact]
    local: frozenset[Fact] | None

    def view(self, shape: int) -> set[Fact]:
        result: set[Fact] = set(SHAPES[shape](self.stored, self.deleted, self.added))
        return result

    @property
    def positive(self) -> set[Fact]:
        return self.view(self.positive_shape)

    @property
    def negative(self) -> set[Fact]:
        return self.view(self.negative_shape)

    def instances(self) -> Iterator[tuple[Rule, oracle.Instance]]:
        """Every instance over the two views, local atoms in the local facts."""
        program = oracle.Program(self.rules)
        for rule in self.rules:
            atoms = list(rule.positive_atoms())
            for found in oracle.instances(rule, self.positive, self.negative):
                if self.local is None or all(
                    fact in self.local
                    for atom, fact in zip(atoms, found.positive, strict=True)
                    if program.is_local(rule, atom)
                ):
                    yield rule, found


@st.composite
def cases(draw: st.DrawFn) -> Case:
    scenario = draw(strategies.scenarios(max_updates=1, aggregates=False))
    rules = normalise(scenario.rules)
    given_facts = sorted(scenario.facts, key=repr)
    some = st.sampled_from(given_facts)
    update = scenario.updates[0]
    deleted = draw(st.frozensets(some, max_size=6)) | update.delete
    added = draw(st.frozensets(some, max_size=3)) | update.insert
    shapes = st.integers(0, len(SHAPES) - 1)
    case = Case(
        rules,
        scenario.facts,
        deleted,
        added,
        draw(shapes),
        draw(shapes),
        frozenset(),
        frozenset(),
        None,
    )
    case.delta_positive = _subset(draw, case.positive)
    if draw(st.booleans()):
        case.local = _subset(draw, case.positive) | case.delta_positive
    universe = case.stored | case.deleted | case.added | _instantiated(draw, case)
    case.delta_negative = _subset(draw, universe - case.negative)
    return case


def _subset(
    draw: Callable[..., Any], facts: set[Fact] | frozenset[Fact]
) -> frozenset[Fact]:
    if not facts:
        return frozenset()
    ordered = sorted(facts, key=repr)
    picks = draw(st.lists(st.booleans(), min_size=len(ordered), max_size=len(ordered)))
    return frozenset(f for f, pick in zip(ordered, picks, strict=True) if pick)


def _instantiated(draw: st.DrawFn, case: Case) -> set[Fact]:
    """Facts that negated atoms speak of: by chance they would rarely be met."""
    met = sorted(
        {
            fact
            for rule in case.rules
            for found in oracle.instances(rule, case.positive, frozenset())
            for fact in found.negative
        },
        key=repr,
    )
    return (
        set(draw(st.lists(st.sampled_from(met), min_size=2, max_size=8)))
        if met
        else set()
    )


class Run:
    """A case on an engine."""

    def __init__(self, engine_name: str, case: Case) -> None:
        self.engine: Engine = make_engine(engine_name)
        self.case = case
        for predicate, arity in strategies.ARITIES.items():
            self.engine.declare(predicate, arity)
        for rule in case.rules:
            for atom in (rule.head, *rule.positive_atoms(), *rule.negated_atoms()):
                self.engine.declare(atom.predicate, atom.arity)
        self.engine.load(tables(case.stored))
        self.engine.begin()
        self.deleted = self._growing(case.deleted)
        self.added = self._growing(case.added)
        self.rules: RuleSet = compile_rules(
            case.rules, oracle.Program(case.rules).is_local
        )

    def _growing(self, facts: frozenset[Fact]) -> GrowingFacts:
        growing = self.engine.growing()
        growing.add(interned(self.engine, facts))
        return growing

    def view(self, shape: int) -> Facts:
        facts: Facts = SHAPES[shape](self.engine.materialised, self.deleted, self.added)
        return facts

    def views(self, delta: frozenset[Fact], absent: frozenset[Fact]) -> Views:
        case = self.case
        local = None if case.local is None else interned(self.engine, case.local)
        return Views(
            self.view(case.positive_shape),
            self.view(case.negative_shape),
            interned(self.engine, delta),
            interned(self.engine, absent),
            local,
        )

    def check(
        self,
        queries: QuerySet,
        expected: Counter[Fact],
        delta: frozenset[Fact] = frozenset(),
        absent: frozenset[Fact] = frozenset(),
    ) -> None:
        """Both forms of the operator yield what they should."""
        views = self.views(delta, absent)
        counts = self.engine.derive_counts(queries, views)
        facts = self.engine.derive(queries, views)
        settled = self.engine.settle(facts - counts.facts)
        assert settled.is_empty()
        assert facts.size() == counts.facts.size() == len(expected)
        assert numbers_of(self.engine, counts) == expected


@given(cases())
def test_oracle_delta_yields_each_affected_instance_once(
    engine_name: str, case: Case
) -> None:
    expected = Counter(
        found.head
        for _, found in case.instances()
        if case.delta_positive.intersection(found.positive)
        or case.delta_negative.intersection(found.negative)
    )
    run = Run(engine_name, case)
    run.check(run.rules.delta, expected, case.delta_positive, case.delta_negative)


@given(cases())
def test_oracle_full_yields_each_instance_once(engine_name: str, case: Case) -> None:
    expected = Counter(found.head for _, found in case.instances())
    run = Run(engine_name, case)
    run.check(run.rules.full, expected)


@given(cases(), st.data())
def test_oracle_rederive_yields_instances_of_given_heads(
    engine_name: str, case: Case, data: st.DataObject
) -> None:
    found = [each for _, each in case.instances()]
    heads = _subset(data.draw, {each.head for each in found} | case.stored)
    expected = Counter(each.head for each in found if each.head in heads)
    run = Run(engine_name, case)
    run.check(run.rules.rederive, expected, delta=heads)


@given(cases(), st.data())
def test_oracle_backward_yields_local_body_facts_of_given_heads(
    engine_name: str, case: Case, data: st.DataObject
) -> None:
    found = list(case.instances())
    heads = _subset(data.draw, {each.head for _, each in found} | case.stored)
    program = oracle.Program(case.rules)
    expected = Counter(
        fact
        for rule, each in found
        if each.head in heads
        for atom, fact in zip(rule.positive_atoms(), each.positive, strict=True)
        if program.is_local(rule, atom)
    )
    assume(found)
    run = Run(engine_name, case)
    run.check(run.rules.backward, expected, delta=heads)


def _case(text: str, stored: set[Fact], **sets: frozenset[Fact] | None) -> Case:
    """A case by hand, over the stored facts."""
    nothing: frozenset[Fact] = frozenset()
    defaults: dict[str, Any] = {"delta_positive": nothing, "delta_negative": nothing}
    given_sets = defaults | {"local": None} | sets
    rules = normalise(parse_rules(text))
    return Case(rules, frozenset(stored), nothing, nothing, 0, 0, **given_sets)


def _check_delta(engine_name: str, case: Case, **expected: dict[int, int]) -> None:
    """The numbers of facts with one argument, by predicate."""
    run = Run(engine_name, case)
    numbers = {
        (name, (constant(value),)): number
        for name, found in expected.items()
        for value, number in found.items()
    }
    delta = case.delta_positive, case.delta_negative
    run.check(run.rules.delta, Counter(numbers), *delta)


def test_an_instance_with_several_changed_atoms_is_found_once(
    engine_name: str,
) -> None:
    text = "a(?x) :- e(?x, ?y), e(?y, ?x), n(?y), not b(?x), not b(?y), not f(?x, ?y) ."
    edges = make_facts(e=[(1, 1), (1, 2), (2, 1), (3, 3)], n=[(1,), (2,), (3,)])
    absent = make_facts(b=[(1,), (2,)], f=[(1, 2), (1, 1)])
    case = _case(text, edges, delta_negative=frozenset(absent))
    _check_delta(engine_name, case, a={1: 2, 2: 1})
    both = _case(
        text, edges, delta_positive=frozenset(edges), delta_negative=frozenset(absent)
    )
    _check_delta(engine_name, both, a={1: 2, 2: 1, 3: 1})


def test_local_atoms_read_the_local_facts_whatever_their_role(
    engine_name: str,
) -> None:
    text = "a(?z) :- a(?x), a(?y), e(?x, ?y), e(?y, ?z) ."
    facts = make_facts(a=[(1,), (2,), (3,)], e=[(1, 2), (2, 3), (3, 1)])
    delta = frozenset(make_facts(a=[(2,)]))
    everywhere = _case(text, facts, delta_positive=delta)
    _check_delta(engine_name, everywhere, a={3: 1, 1: 1})
    local = delta | make_facts(a=[(3,)])
    some = _case(text, facts, delta_positive=delta, local=local)
    _check_delta(engine_name, some, a={1: 1})
    other = _case(text, facts, delta_positive=delta, local=delta | make_facts(a=[(1,)]))
    _check_delta(engine_name, other, a={3: 1})


def _reversed(queries: QuerySet) -> QuerySet:
    return QuerySet(
        tuple(
            replace(query, positive=query.positive[::-1], negative=query.negative[::-1])
            for query in reversed(queries.queries)
        )
    )


@given(cases())
def test_law_the_order_of_queries_and_patterns_does_not_matter(
    engine_name: str, case: Case
) -> None:
    found = []
    for order in (lambda queries: queries, _reversed):
        run = Run(engine_name, case)
        views = run.views(case.delta_positive, case.delta_negative)
        counts = run.engine.derive_counts(order(run.rules.delta), views)
        found.append(numbers_of(run.engine, counts))
    assert found[0] == found[1]
