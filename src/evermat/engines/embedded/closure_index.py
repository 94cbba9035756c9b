"""The graph of a closure, stored between updates.

Its entries are rows: of the external facts of the closure, and of its edges. A row gets
an entry when it may first belong to the graph, and keeps it. Whether it does belong is
decided when a search visits it, from the row's status and counters, which a rollback
restores. So nothing here has to be undone when an update fails, is only planned, or is
interrupted: the *invariant* is that each row that belongs to the graph has an entry, or
is among the rows that are known to lack one.

If rows are renumbered, or the store is replaced, the graph is rebuilt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evermat.algebra import (
    ClosureKind,
    Column,
    Difference,
    Facts,
    Intersection,
    SettledFacts,
    Union,
    Within,
)
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.fact_sets import Growing, Stored
from evermat.engines.embedded.kernels import closure_search as kernels

if TYPE_CHECKING:
    from evermat.algebra import Closure, Pattern, Region
    from evermat.engines.embedded.arrays import Flags, Ids, Places, Rows
    from evermat.engines.embedded.kernels.closure_search import Entries, Lists, Marks
    from evermat.engines.embedded.relation import Fitting, Relation

# ----------------------------------------------------------------------- external facts


@dataclass(frozen=True, slots=True, eq=False)
class External(Facts):
    """A view: the facts of a pattern in another view that have a count.

    Attributes:
        is_certain: whether only nonrecursive counts are considered.
    """

    pattern: Pattern
    facts: Facts
    is_certain: bool


Term = tuple[Facts, bool | None]
"""A view, and which of its facts are meant: those with a nonrecursive count (True),
those with any count (False), or all of them (None).
"""


def terms_of(facts: Facts, pattern: Pattern) -> list[Term] | None:
    """Return a view of a pattern's facts as a union; None if it is too complicated."""
    match facts:
        case Union(left=left, right=right):
            first, second = terms_of(left, pattern), terms_of(right, pattern)
            return None if first is None or second is None else first + second
        case External():
            if facts.pattern.relation != pattern.relation:
                return []
            is_same = facts.pattern == pattern
            return [(facts.facts, facts.is_certain)] if is_same else None
        case Within(facts=inner, region=region):
            lies_within = _lies_within(pattern, region)
            if lies_within is None or not lies_within:
                return None if lies_within is None else []
            return terms_of(inner, pattern)
        case SettledFacts():
            is_there = pattern.relation in facts.relations()
            return [(facts, None)] if is_there else []
        case _:
            return [(facts, None)] if _is_simple(facts) else None


def _is_simple(facts: Facts) -> bool:
    """Return whether status bits decide which facts are in a view."""
    match facts:
        case Growing() | Stored() | SettledFacts():
            return True
        case Union() | Intersection() | Difference():
            return _is_simple(facts.left) and _is_simple(facts.right)
        case _:
            return False


def _lies_within(pattern: Pattern, region: Region) -> bool | None:
    """Return whether all facts of a pattern lie in a region; None if only some may."""
    if pattern.relation in region.relations:
        return True
    shapes = [shape for shape in region.shapes if shape.relation == pattern.relation]
    if any(
        _constants(shape).items() <= _constants(pattern).items() for shape in shapes
    ):
        return True
    own = _constants(pattern)
    is_outside = all(
        any(own.get(at, value) != value for at, value in _constants(shape).items())
        for shape in shapes
    )
    return False if is_outside else None


def _constants(pattern: Pattern) -> dict[int, object]:
    return {
        at: operand
        for at, operand in enumerate(pattern.operands)
        if not isinstance(operand, Column)
    }


# ---------------------------------------------------------------------------- the graph

STALE = 1 << 16
"""A graph is rebuilt when it has more than twice as many entries as when it was built,
plus this many.
"""

_LAST_SEARCH = 1 << 30

SOURCES, TARGETS, FORWARDS, BACKWARDS, HOPPED, MORE = range(6)
"""The kinds of marks that nodes can have at the same time."""


class EntrySet:
    """The rows of a relation that may be seeds, or edges, of a graph.

    Args:
        relation: the relation.
        columns: the columns of sources and of targets.
        fitting: selects rows of the relation.
        is_counted: whether only rows that have had a count get entries.
    """

    def __init__(
        self,
        relation: Relation,
        columns: tuple[int, int],
        fitting: Fitting,
        *,
        is_counted: bool,
    ) -> None:
        self.relation = relation
        self.columns = columns
        self.is_counted = is_counted
        self.fitting = fitting
        self._covered = 0
        self._seen: Flags = np.zeros(0, np.uint8)
        self._numbering = relation.numbering
        self.count = 0
        self.heads: Lists = np.empty((2, 0), np.int32)
        self.nexts: Lists = np.empty((2, 0), np.int32)
        self.ends: Lists = np.empty((2, 0), np.int32)
        self.rows: Rows = NO_ROWS

    @property
    def arrays(self) -> Entries:
        """The arrays that the compiled loops read."""
        return self.heads, self.nexts, self.ends, self.rows

    @property
    def is_current(self) -> bool:
        """Whether rows keep their numbers, and all raised counts were received."""
        if self.relation.numbering != self._numbering:
            return False
        is_heard = not self.is_counted or self in self.relation.raised_for
        return is_heard or not self._covered

    def missing(self) -> Rows:
        """Return the rows that may lack an entry, and record that they get one."""
        relation = self.relation
        if not self.is_counted:
            first, self._covered = self._covered, relation.count
            return self.fitting(np.arange(first, relation.count, dtype=np.int32))
        if self._covered:
            parts = relation.raised_for[self]
            if not parts:
                return NO_ROWS
            rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
            parts.clear()
        else:
            self._covered = 1
            relation.raised_for[self] = []
            rows = relation.counted_rows()
        return self.fitting(rows)

    def leave(self) -> None:
        """Stop receiving rows."""
        self.relation.raised_for.pop(self, None)

    def reserve(self, nodes: int, more: int) -> None:
        """Reserve capacity for `nodes` nodes, and `more` additional entries."""
        if nodes > self.heads.shape[1]:
            heads = np.full((2, nodes), -1, np.int32)
            heads[:, : self.heads.shape[1]] = self.heads
            self.heads = heads
        bits = self.relation.count // 8 + 1
        if bits > self._seen.size:
            self._seen = _longer(self._seen, 2 * bits)
        size = self.count + more
        if size > self.rows.size:
            size += size // 2
            self.rows = _longer(self.rows, size)
            self.nexts = _wider(self.nexts, size)
            self.ends = _wider(self.ends, size)

    def add(self, rows: Rows, ids: Ids, slots: Rows, sizes: Places) -> None:
        """Add entries for rows; there is capacity for them."""
        table = self.relation.table
        sources, targets = (table[at, rows] for at in self.columns)
        self.count = kernels.add_entries(
            rows,
            sources,
            targets,
            self._seen,
            ids,
            slots,
            sizes,
            self.arrays,
            self.count,
        )

    def pairs(self, chosen: Rows) -> tuple[Ids, Ids]:
        """Return the sources and targets of entries."""
        table, rows = self.relation.table, self.rows[chosen]
        first, second = self.columns
        return table[first, rows], table[second, rows]


class ClosureIndex:
    """The graph of a closure; see the module's docstring.

    Attributes:
        seeds, edges: the entries; the same object for a transitive closure.
        is_one_set: whether seeds and edges are the same entries.
        sets: all sets of entries.
        relations: the relations of the entries.
        side: the direction of paths, see `kernels.closure_search`.
        loops: the ends of a pair that are linked to themselves, as bits 1 and 2.
        ids: the constants of the nodes.
    """

    def __init__(self, closure: Closure, seeds: EntrySet, edges: EntrySet) -> None:
        self.seeds = seeds
        self.edges = edges
        self.is_one_set = seeds is edges
        self.sets = (seeds,) if seeds is edges else (seeds, edges)
        self.relations = [each.relation for each in self.sets]
        is_symmetric = closure.kind is ClosureKind.SYMMETRIC
        self.side = kernels.BOTH_WAYS if is_symmetric else 0
        self.loops = 0
        if closure.kind is ClosureKind.TRANSITIVE:
            self.loops = sum(1 << at for at in closure.loops)
        self.ids: Ids = np.empty(0, np.uint32)
        self._slots: Rows = np.full(2, -1, np.int32)
        self._sizes: Places = np.zeros(1, np.int64)
        self._search = 0
        self._marks: list[Marks] = []
        self._built = -1
        self._is_whole = True

    @property
    def count(self) -> int:
        """The number of entries."""
        edges = 0 if self.is_one_set else self.edges.count
        return self.seeds.count + edges

    @property
    def is_current(self) -> bool:
        """Whether the graph need not be rebuilt."""
        if not self._is_whole or not all(each.is_current for each in self.sets):
            return False
        return self._built < 0 or self.count <= 2 * self._built + STALE

    def leave(self) -> None:
        """Stop receiving rows."""
        for each in self.sets:
            each.leave()

    def catch_up(self) -> None:
        """Add entries for all rows that lack one."""
        self._is_whole = False  # until this has succeeded
        for each in self.sets:
            self._add(each, each.missing())
        if self._built < 0:
            self._built = self.count
        self._is_whole = True

    def add(self, entries: EntrySet, rows: Rows) -> None:
        """Add entries for rows that may have had no count before."""
        self._is_whole = False
        self._add(entries, rows)
        self._is_whole = True

    def _add(self, entries: EntrySet, rows: Rows) -> None:
        if not rows.size:
            return
        self._reserve(2 * rows.size)
        for each in self.sets:
            each.reserve(self.ids.size, rows.size if each is entries else 0)
        entries.add(rows, self.ids, self._slots, self._sizes)

    def _reserve(self, more: int) -> None:
        nodes = int(self._sizes[0])
        if nodes + more <= self.ids.size:
            return
        size = nodes + more
        size += size // 2
        self.ids = _longer(self.ids, size)
        self._slots = np.full(1 << (2 * size).bit_length(), -1, np.int32)
        kernels.fill_slots(self.ids, nodes, self._slots)
        self._marks = []

    def nodes(self, ids: Ids) -> Rows:
        """Return the nodes of constants, -1 for those that have none."""
        nodes: Rows = np.empty(ids.size, np.int32)
        if self.ids.size:
            ids = np.require(ids, requirements=["C", "W"])
            kernels.find_nodes(ids, self.ids, self._slots, nodes)
        else:
            nodes[:] = -1
        return nodes

    def marks(self, which: int) -> Marks:
        """Return the marks of nodes, and a list to collect marked nodes."""
        if not self._marks:
            self._search = 0
            # Untouched pages cost nothing.
            self._marks = [
                (np.zeros(self.ids.size, np.int32), np.empty(self.ids.size, np.int32))
                for _ in range(MORE + 1)
            ]
        return self._marks[which]

    def searches(self, count: int) -> int:
        """Reserve `count` numbers of searches; return the first of them."""
        if self._search + count > _LAST_SEARCH:
            self._marks = []
        self.marks(SOURCES)
        first = self._search + 1
        self._search += count
        return first


def entry_columns(closure: Closure, pattern: Pattern) -> tuple[int, int]:
    """Return the columns of sources and targets, in the direction of the closure."""
    columns = pattern.operands.index(Column(0)), pattern.operands.index(Column(1))
    if closure.kind is ClosureKind.RIGHT_LINEAR:
        return columns[1], columns[0]
    return columns


def _longer(array: np.ndarray, size: int) -> np.ndarray:
    longer = np.zeros(size, array.dtype)
    longer[: array.size] = array
    return longer


def _wider(lists: Lists, size: int) -> Lists:
    wider: Lists = np.empty((2, size), np.int32)
    wider[:, : lists.shape[1]] = lists
    return wider
