"""Decomposable recursive rules, which can be run to their fixpoint inside tasks.

A set of rules is *decomposable* if every relation that it derives has a key column that
each rule propagates unchanged from its one local pattern to its head. Facts with
different keys are then independent: a task that has all facts of some keys derives all
their consequences, and no other task derives the same. The other patterns read facts
that do not change. Those are sent to every task if they are few, and otherwise
partitioned by the key if it is one of their columns.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evermat.algebra import Apply, Column, Pattern, Query, Require, Role
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evermat.algebra import Operand


@dataclass(frozen=True, slots=True)
class Side:
    """Facts that the rules read and do not change.

    Attributes:
        pattern: their relation and constants; its columns are all different.
        is_negative: whether a negated pattern reads them.
        key: the position of the key, if every rule that reads them has it there.
    """

    pattern: Pattern
    is_negative: bool
    key: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Decomposition:
    """Rules to run inside tasks.

    Attributes:
        keys: the position of the key in each relation that is derived or local.
        local: the facts of these relations that are read or derived.
        sides: the other facts that are read, by their name in `queries`.
        queries: the rules, split by the change of their local pattern.
    """

    keys: Mapping[str, int]
    local: tuple[Pattern, ...]
    sides: Mapping[str, Side]
    queries: tuple[Query, ...]


def decompose(queries: Sequence[Query]) -> Decomposition | None:
    """Return the rules as work for tasks, or None if they are not decomposable."""
    if not queries or not all(_is_simple(query) for query in queries):
        return None
    keys = _find_keys(queries)
    if keys is None:
        return None
    sides: dict[str, Side] = {}
    renamed = tuple(_with_named_sides(query, keys, sides) for query in queries)
    local = {
        _shape(pattern): None
        for query in queries
        for pattern in (query.head, _local(query))
    }
    return Decomposition(keys, tuple(local), sides, renamed)


def _is_simple(query: Query) -> bool:
    """Return whether a query has one local pattern, and is supported in tasks."""
    local = [pattern for pattern in query.positive if pattern.local]
    return len(local) == 1 and is_plain(query)


def is_plain(query: Query) -> bool:
    """Return whether all facts have arguments, and constants are not computed."""
    patterns = (query.head, *query.positive, *query.negative)
    if not all(pattern.operands for pattern in patterns):
        return False
    return all(
        isinstance(step, Require)
        and step.expression.function in {"=", "!="}
        and not any(isinstance(each, Apply) for each in step.expression.arguments)
        for step in query.computations
    )


def _local(query: Query) -> Pattern:
    return next(pattern for pattern in query.positive if pattern.local)


# -------------------------------------------------------------------------- keys


def _find_keys(queries: Sequence[Query]) -> dict[str, int] | None:
    """Return the position of the key of each relation that every rule propagates."""
    rules: dict[str, list[tuple[Pattern, Pattern]]] = {}
    for query in queries:
        head, body = query.head, _local(query)
        for name in {head.relation, body.relation}:
            rules.setdefault(name, []).append((head, body))
    keys: dict[str, int] = {}
    for head, _ in (pair for pairs in rules.values() for pair in pairs):
        if head.relation in keys:
            continue
        tries = (
            _spread(head.relation, position, rules)
            for position in range(len(head.operands))
        )
        found = next((each for each in tries if each is not None), None)
        if found is None:
            return None
        keys |= found
    return keys


def _spread(
    relation: str, position: int, rules: Mapping[str, list[tuple[Pattern, Pattern]]]
) -> dict[str, int] | None:
    """Return the keys implied by the key of one relation; None for a contradiction."""
    keys = {relation: position}
    waiting = deque([relation])
    while waiting:
        name = waiting.popleft()
        for head, body in rules[name]:
            for this, other in ((head, body), (body, head)):
                if this.relation != name:
                    continue
                key = this.operands[keys[name]]
                known = keys.get(other.relation)
                if known is None and isinstance(key, Column) and key in other.operands:
                    keys[other.relation] = other.operands.index(key)
                    waiting.append(other.relation)
                elif (
                    known is None
                    or not isinstance(key, Column)
                    or other.operands[known] != key
                ):
                    return None
    return keys


# ------------------------------------------------------------------------- sides


def _with_named_sides(
    query: Query, keys: Mapping[str, int], sides: dict[str, Side]
) -> Query:
    """Return the query by its change, with new names for facts that do not change.

    Facts of the same relation can be local in one rule and not in another. Different
    names keep them separate, so that each rule reads the intended ones.
    """
    body = _local(query)
    key = body.operands[keys[body.relation]]

    def named(pattern: Pattern, *, is_negative: bool) -> Pattern:
        shape = _shape(pattern)
        name = f"{'not ' if is_negative else ''}{shape.relation}{shape.operands}"
        at = pattern.operands.index(key) if key in pattern.operands else None
        side = sides.get(name, Side(shape, is_negative, at))
        sides[name] = side if side.key == at else replace(side, key=None)
        return replace(pattern, relation=name)

    positive = tuple(
        replace(pattern, role=Role.CHANGED)
        if pattern.local
        else named(pattern, is_negative=False)
        for pattern in query.positive
    )
    negative = tuple(named(each, is_negative=True) for each in query.negative)
    return replace(query, positive=positive, negative=negative)


def _shape(pattern: Pattern) -> Pattern:
    """Return the relation and the constants of a pattern only."""
    operands = tuple(
        operand if isinstance(operand, Constant) else Column(at)
        for at, operand in enumerate(pattern.operands)
    )
    return Pattern(pattern.relation, operands)


# --------------------------------------------------------------------- constants


def constants_of(queries: Sequence[Query]) -> Iterator[Constant]:
    """Yield all constants in queries."""
    for query in queries:
        for pattern in (query.head, *query.positive, *query.negative):
            yield from (each for each in pattern.operands if isinstance(each, Constant))
        for step in query.computations:
            if isinstance(step, Require):
                arguments = step.expression.arguments
                yield from (each for each in arguments if isinstance(each, Constant))
        if query.inline is not None:
            yield from (constant for row in query.inline.rows for constant in row)


def with_constants(query: Query, known: Mapping[Constant, Constant]) -> Query:
    """Return a query with its constants replaced."""

    def operand(each: Operand) -> Operand:
        return known[each] if isinstance(each, Constant) else each

    def pattern(each: Pattern) -> Pattern:
        return replace(each, operands=tuple(map(operand, each.operands)))

    def step(each: Require) -> Require:
        arguments = tuple(
            known[argument] if isinstance(argument, Constant) else argument
            for argument in each.expression.arguments
        )
        return Require(replace(each.expression, arguments=arguments))

    inline = query.inline
    if inline is not None:
        rows = tuple(tuple(known[each] for each in row) for row in inline.rows)
        inline = replace(inline, rows=rows)
    return replace(
        query,
        head=pattern(query.head),
        positive=tuple(map(pattern, query.positive)),
        negative=tuple(map(pattern, query.negative)),
        computations=tuple(
            step(each) for each in query.computations if isinstance(each, Require)
        ),
        inline=inline,
    )
