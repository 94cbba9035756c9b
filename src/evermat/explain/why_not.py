"""Why a fact does not hold: how far each rule gets that could derive it.

The body of a rule is matched with the head bound to the fact, one part after the other:
atoms in order, then computations, then negated atoms. The first part that leaves
nothing over is where the rule fails.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evermat.algebra import Column, Compute, Pattern, Views
from evermat.algebra.compile import compile_rules, variables_of
from evermat.lang.syntax import Assignment, Atom, Condition, Negation, Term, Variable
from evermat.maintenance.proof import constant_order, rows_in
from evermat.values import boolean_constant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evermat.algebra import Engine, Query
    from evermat.explain.proofs import Prover
    from evermat.lang.syntax import BodyElement, Rule
    from evermat.maintenance.lazy_closures import HeldFacts
    from evermat.maintenance.proof import Fact
    from evermat.values import Constant

_MATCH = "~match"


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """A rule that does not derive a fact.

    Attributes:
        rule: a normal rule.
        values: of the variables that the head and the parts before have given one, in
            the order of `variables_of`; those of the first match, if there are several.
        matches: how many matches the parts before have.
        failed: the part that leaves none of them over, by its place in `parts_of`.
    """

    rule: Rule
    values: tuple[Constant | None, ...]
    matches: int
    failed: int


def failures(
    prover: Prover, reading: HeldFacts, fact: Fact, rules: Sequence[Rule]
) -> list[Failure]:
    """How far each of some rules gets; inside of a transaction.

    Args:
        prover: has the engine.
        reading: reads facts, those of closures that are held among them.
        fact: does not hold.
        rules: normal rules whose heads can be the fact.
    """
    engine = prover.engine
    patterns = list(prover.look.finder.body_patterns(fact))
    views = Views(
        positive=reading.seen_by(patterns),
        negative=engine.materialised,
        delta_positive=prover.exchange.settled([fact]),
    )
    return [_failure(engine, rule, fact, views) for rule in rules]


def _failure(engine: Engine, rule: Rule, fact: Fact, views: Views) -> Failure:
    known, number = [_head_values(rule, fact)], 0
    while found := _matches(engine, rule, number + 1, views):
        known, number = found, number + 1
    first = min(known, key=lambda row: [v and constant_order(v) for v in row])
    return Failure(rule, first, len(known), number)


def _matches(
    engine: Engine, rule: Rule, count: int, views: Views
) -> list[tuple[Constant | None, ...]]:
    """The matches of the first parts of a body."""
    query, bound = _first_parts(rule, count)
    if not bound:
        yes = boolean_constant(value=True)
        query = replace(query, head=Pattern(_MATCH, (yes,)))
    table = engine.answer(query, views)
    places = range(len(variables_of(rule)))
    values = (dict(zip(bound, row, strict=False)) for row in rows_in(table, 1))
    return [tuple(map(each.get, places)) for each in values]


def can_derive(rule: Rule, fact: Fact) -> bool:
    """Whether the head of a rule can be a fact."""
    head = rule.head
    values: dict[str, Constant] = {}
    if head.predicate != fact.relation:
        return False
    return all(
        values.setdefault(argument.name, value) == value
        if isinstance(argument, Variable)
        else argument == Term(value)
        for argument, value in zip(head.arguments, fact.row, strict=True)
    )


def parts_of(rule: Rule) -> list[BodyElement]:
    """The body of a normal rule: atoms, then computations, then negated atoms."""
    sorts = (Atom, (Condition, Assignment), Negation)
    return [each for sort in sorts for each in rule.body if isinstance(each, sort)]


def _first_parts(rule: Rule, count: int) -> tuple[Query, list[int]]:
    """A query for the head and some parts of the body, and the columns it binds."""
    elements = parts_of(rule)[:count]
    (query,) = compile_rules((rule,), lambda _rule, _atom: False).rederive.queries
    atoms = sum(isinstance(each, Atom) for each in elements)
    negated = sum(isinstance(each, Negation) for each in elements)
    positive = query.positive[: 1 + atoms]
    computations = query.computations[: count - atoms - negated]
    bound = sorted(set(_columns(positive, computations)))
    head = Pattern(_MATCH, tuple(Column(at) for at in bound))
    return replace(
        query,
        head=head,
        positive=positive,
        computations=computations,
        negative=query.negative[:negated],
    ), bound


def _columns(
    positive: Sequence[Pattern], computations: Sequence[object]
) -> Iterator[int]:
    for pattern in positive:
        yield from (each.index for each in pattern.operands if isinstance(each, Column))
    yield from (each.target.index for each in computations if isinstance(each, Compute))


def _head_values(rule: Rule, fact: Fact) -> tuple[Constant | None, ...]:
    values = {
        argument.name: value
        for argument, value in zip(rule.head.arguments, fact.row, strict=True)
        if isinstance(argument, Variable)
    }
    return tuple(map(values.get, variables_of(rule)))
