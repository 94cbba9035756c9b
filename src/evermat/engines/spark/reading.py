"""Sources of the patterns of queries: a view for each role, evaluated once per call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.algebra import Difference, Intersection, Role, Union, Within
from evermat.engines.spark.dictionary import constant_id
from evermat.engines.spark.rows import Rows, no_rows
from evermat.engines.spark.sets import Growing, Settled, Stored, foreign, rows_of
from evermat.engines.spark.summaries import TRIPLE
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evermat.algebra import Facts, Operand, Pattern, Query, Views
    from evermat.engines.spark.blocks import Cluster


FactSet = tuple[Role, bool, str]
"""The facts of a relation that a role reads, and whether only local patterns do."""

ANYTHING = (None,)
"""The ids of an operand without known values."""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Rows that include the matches of a pattern.

    Attributes:
        bound: an upper bound of the rows of the pattern's relation.
    """

    rows: Rows
    bound: int


class Reader:
    """Finds the rows for patterns, for one call of the engine."""

    def __init__(self, cluster: Cluster, views: Views) -> None:
        self._cluster = cluster
        self._views = views
        self._whole: dict[tuple[Role, bool], Rows | None] = {}
        self._parts: dict[FactSet, Source] = {}

    def source(self, pattern: Pattern) -> Source:
        """Return the rows that a pattern may match or, if negative, must not match."""
        key = self.set_of(pattern)
        if key not in self._parts:
            self._parts[key] = self._find(pattern, local=key[1])
        return self._parts[key]

    def set_of(self, pattern: Pattern) -> FactSet:
        """Return the set that a pattern reads, for comparison."""
        local = pattern.local and self._views.local is not None
        return pattern.role, local, pattern.relation

    def may_match(self, query: Query) -> bool:
        """Return whether each positive pattern has rows that may match."""
        if query.inline is not None and not query.inline.rows:
            return False
        return all(self.source(pattern).bound for pattern in query.positive)

    def _find(self, pattern: Pattern, *, local: bool) -> Source:
        tag = self._cluster.tag(pattern.relation)
        facts = self._views.read_by(pattern)
        if facts is None:
            return Source(no_rows(self._cluster), 0)
        # A view whose parts are all on the driver is sent to Spark once, with all its
        # relations, however many patterns read it.
        key = (pattern.role, local)
        if key not in self._whole:
            whole = _is_on_driver(facts)
            self._whole[key] = rows_of(facts, self._cluster) if whole else None
        rows = self._whole[key]
        if rows is not None and rows.block is not None:
            return Source(rows, rows.block.sizes.get(tag, 0))
        rows = rows_of(facts, self._cluster, frozenset({tag}))
        return Source(rows, rows.bound)

    def most(self, pattern: Pattern, known: Mapping[int, Sequence[int]]) -> int:
        """Return an upper bound of the rows that match a positive pattern.

        Args:
            pattern: the pattern.
            known: ids that columns of the query can have, if those are few.
        """
        facts, bound = self._views.read_by(pattern), self.source(pattern).bound
        if facts is None or len(pattern.operands) < TRIPLE:
            return bound
        seconds, thirds = (_ids(pattern.operands[at], known) for at in (1, 2))
        if seconds == ANYTHING:
            return bound
        tag = self._cluster.tag(pattern.relation)
        found = sum(
            _most(facts, tag, second, third) for second in seconds for third in thirds
        )
        return min(bound, found)


def _ids(
    operand: Operand, known: Mapping[int, Sequence[int]]
) -> tuple[int, ...] | tuple[None]:
    """Return the ids that an operand can have, `ANYTHING` if they are not known."""
    if isinstance(operand, Constant):
        return (constant_id(operand),)
    return tuple(known.get(operand.index, ())) or ANYTHING


def _most(facts: Facts, tag: int, second: int | None, third: int | None) -> int:
    """Return an upper bound of the facts of a view with two constants."""
    match facts:
        case Settled():
            return facts.block.most(tag, second, third)
        case Growing() | Stored():
            blocks = facts.heap.blocks()
            return sum(block.most(tag, second, third) for block in blocks)
        case Union(left=left, right=right):
            return _most(left, tag, second, third) + _most(right, tag, second, third)
        case Intersection(left=left, right=right):
            return min(_most(each, tag, second, third) for each in (left, right))
        case Difference(left=inner) | Within(facts=inner):
            return _most(inner, tag, second, third)
    raise foreign(facts)


def _is_on_driver(facts: Facts) -> bool:
    match facts:
        case Settled():
            return facts.block.table is not None
        case Growing() | Stored():
            return not facts.heap.contents.levels
        case (
            Union(left=left, right=right)
            | Difference(left=left, right=right)
            | Intersection(left=left, right=right)
        ):
            return _is_on_driver(left) and _is_on_driver(right)
        case Within(facts=inner):
            return _is_on_driver(inner)
        case _:
            return False
