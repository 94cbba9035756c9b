"""The external facts and edges of a closure, as of one moment.

They are only a plan until they are read. If they are few enough, they are collected on
the driver as pairs of ids, and closed there by the loops of the embedded engine.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evermat.algebra import ClosureKind, Column, Region
from evermat.engines.embedded.closure_graphs import NO_PAIRS, Pairs, paths_of
from evermat.engines.spark.blocks import local_block
from evermat.engines.spark.dictionary import constant_id
from evermat.engines.spark.rows import no_rows, settled_block, within, work_out
from evermat.engines.spark.sets import Settled, rows_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from evermat.algebra import Closure, Facts, Pattern
    from evermat.engines.embedded.closure_graphs import Paths
    from evermat.engines.spark.blocks import Cluster
    from evermat.engines.spark.dictionary import Ids
    from evermat.engines.spark.rows import Rows

    Numbers = npt.NDArray[np.uint32]

ON_DRIVER = 20
"""The driver closes this many times more facts than it keeps rows of a block."""


def matching(pattern: Pattern, facts: Facts, cluster: Cluster) -> Rows:
    """Return the rows of a view that match a pattern."""
    tag = cluster.tag(pattern.relation)
    rows = rows_of(facts, cluster, frozenset({tag}))
    return within(rows, Region.of(pattern)) if rows.bound else rows


class Start:
    """The external facts of a closure, and its edges."""

    def __init__(self, cluster: Cluster, closure: Closure, facts: Facts) -> None:
        self.cluster = cluster
        self.closure = closure
        self._external = matching(closure.pattern, facts, cluster)
        self._edges = no_rows(cluster)
        if closure.edges is not None:
            self._edges = matching(closure.edges, facts, cluster)

    @cached_property
    def external(self) -> Settled:
        """The external facts, evaluated."""
        return self._settled(self._external)

    @cached_property
    def edges(self) -> Settled:
        """The edges, evaluated."""
        return self._settled(self._edges)

    def _settled(self, rows: Rows) -> Settled:
        if rows.block is None and rows.bound <= self._limit:
            return Settled(local_block(self.cluster, work_out(rows)))
        return Settled(settled_block(rows))

    @property
    def _limit(self) -> int:
        return ON_DRIVER * self.cluster.small

    def is_small(self) -> bool:
        """Return whether the facts are few enough for the driver."""
        return self.external.size() + self.edges.size() <= self._limit

    @cached_property
    def pairs(self) -> tuple[Ids, Ids, Ids, Ids]:
        """The sources and targets of facts, and those of edges."""
        closure = self.closure
        edges = closure.pattern if closure.edges is None else closure.edges
        return (
            *ends(closure.pattern, work_out(self._rows(self.external))),
            *ends(edges, work_out(self._rows(self.edges))),
        )

    @staticmethod
    def _rows(facts: Settled) -> Rows:
        return rows_of(facts, facts.block.cluster)

    def paths(self, nodes: Nodes) -> Paths:
        """Return the paths for the loops of the embedded engine."""
        first, last, edge_first, edge_last = (nodes.numbers(ids) for ids in self.pairs)
        edges = Pairs(edge_first, edge_last) if edge_first.size else NO_PAIRS
        return paths_of(self.closure, Pairs(first, last), edges)

    @property
    def is_backwards(self) -> bool:
        """Whether the embedded engine's loops get all pairs flipped."""
        return self.closure.kind is ClosureKind.RIGHT_LINEAR


def ends(pattern: Pattern, table: pa.Table) -> tuple[Ids, Ids]:
    """Return the sources and targets of the facts of a pattern."""
    if not table.num_rows:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    first, last = (pattern.operands.index(Column(at)) for at in (0, 1))
    return table[f"c{first}"].to_numpy(), table[f"c{last}"].to_numpy()


def table_of(cluster: Cluster, pattern: Pattern, first: Ids, last: Ids) -> pa.Table:
    """Return the rows of a pattern with given sources and targets."""
    columns = [np.full(first.size, cluster.tag(pattern.relation), np.int64)]
    for operand in pattern.operands:
        if isinstance(operand, Column):
            columns.append((first, last)[operand.index])
        else:
            columns.append(np.full(first.size, constant_id(operand), np.int64))
    names = ["tag", *(f"c{at}" for at in range(len(pattern.operands)))]
    return pa.table(columns, names=names)


class Nodes:
    """Dense numbers for the ids of some closures, as the loops need them."""

    def __init__(self, *columns: Ids) -> None:
        self.ids = np.unique(np.concatenate(columns))

    @classmethod
    def of(cls, *starts: Start) -> Nodes:
        """Return the numbers for the ids of some closures' facts."""
        return cls(*(column for start in starts for column in start.pairs))

    def numbers(self, ids: Ids) -> Numbers:
        """Return the numbers of known ids, and `NOBODY` for others."""
        places = np.searchsorted(self.ids, ids)
        inside = places < self.ids.size
        inside[inside] = self.ids[places[inside]] == ids[inside]
        return np.where(inside, places, NOBODY).astype(np.uint32)


NOBODY = 0xFFFF_FFFF
"""The number of unknown ids."""
