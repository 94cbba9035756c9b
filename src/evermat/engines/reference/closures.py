"""Closures of facts under paths, by a traversal from each constant."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.algebra import ClosureKind, Column
from evermat.engines.reference.store import Copy, rows_of
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evermat.algebra import Closure, ClosureSnapshot, Facts, Pattern, Snapshot
    from evermat.engines.reference.store import Row

Pair = tuple[Constant, Constant]


def fits(pattern: Pattern, row: Row) -> bool:
    """Return whether a row has the constants of a pattern."""
    return all(
        operand == value
        for operand, value in zip(pattern.operands, row, strict=True)
        if isinstance(operand, Constant)
    )


def closed_rows(closure: Closure, facts: Facts) -> set[Row]:
    """Return the rows of the closure of facts."""
    external = _pairs(closure.pattern, facts)
    edges = external if closure.edges is None else _pairs(closure.edges, facts)
    match closure.kind:
        case ClosureKind.PLAIN:
            pairs = external
        case ClosureKind.TRANSITIVE:
            loops = {(pair[at],) * 2 for pair in external for at in closure.loops}
            pairs = _followed(external, edges) | {(a, b) for a, b in loops}
        case ClosureKind.SYMMETRIC:
            both = external | _flipped(external)
            pairs = _followed(both, both)
        case ClosureKind.LEFT_LINEAR:
            pairs = _followed(external, edges)
        case ClosureKind.RIGHT_LINEAR:
            pairs = _flipped(_followed(_flipped(external), _flipped(edges)))
    return {_row(closure.pattern, pair) for pair in pairs}


def _pairs(pattern: Pattern, facts: Facts) -> set[Pair]:
    first = pattern.operands.index(Column(0))
    second = pattern.operands.index(Column(1))
    rows = rows_of(facts, pattern.relation)
    return {(row[first], row[second]) for row in rows if fits(pattern, row)}


def _row(pattern: Pattern, pair: Pair) -> Row:
    return tuple(
        pair[operand.index] if isinstance(operand, Column) else operand
        for operand in pattern.operands
    )


def _flipped(pairs: Iterable[Pair]) -> set[Pair]:
    return {(second, first) for first, second in pairs}


def _followed(seeds: set[Pair], edges: set[Pair]) -> set[Pair]:
    """Return the pairs reachable from seeds by any number of edges."""
    following: defaultdict[Constant, list[Constant]] = defaultdict(list)
    for first, second in edges:
        following[first].append(second)
    found = set(seeds)
    todo = list(seeds)
    while todo:
        first, second = todo.pop()
        for third in following[second]:
            if (first, third) not in found:
                found.add((first, third))
                todo.append((first, third))
    return found


@dataclass(frozen=True)
class RowsSnapshot:
    """A closure, computed immediately."""

    relation: str
    arity: int
    rows: frozenset[Row]

    def minus(self, other: ClosureSnapshot | None) -> Snapshot:
        """Return the facts of this closure that another one lacks."""
        rows = self.rows
        if isinstance(other, RowsSnapshot):
            rows -= other.rows
        return Copy({self.relation: rows}, {self.relation: self.arity})
