"""Closures of facts under paths: on the driver if they have few external facts.

There, strongly connected components and bit rows are used, and the common part of two
closures is not written out (`evermat.engines.embedded.closure_graphs`). Closures of
many facts, or with very many results, are computed on the cluster (`spreading`).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evermat.algebra import Column, Region
from evermat.engines.embedded.closure_graphs import (
    NO_PAIRS,
    NO_PATHS,
    Comparison,
    Pairs,
    Paths,
    has_pairs,
    pairs_of,
)
from evermat.engines.spark.blocks import local_block
from evermat.engines.spark.closure_snapshots import (
    Nodes,
    Start,
    ends,
    matching,
    table_of,
)
from evermat.engines.spark.decoding import Copy, decoded
from evermat.engines.spark.dictionary import constant_id
from evermat.engines.spark.rows import block_rows, partitioned
from evermat.engines.spark.sets import Settled, empty, rows_of, settle
from evermat.engines.spark.spreading import spread
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.algebra import (
        Closure,
        ClosureSnapshot,
        Facts,
        Pattern,
        SettledFacts,
        Snapshot,
    )
    from evermat.engines.spark.evaluation import Evaluation

MOST_PAIRS = 20_000_000
"""Closures with more facts than this are not written out by the driver."""


class Closer:
    """Computes closures."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._cluster = evaluation.cluster

    def close(
        self,
        closure: Closure,
        facts: Facts,
        *,
        without: Facts | None = None,
        through: SettledFacts | None = None,
        only: Pattern | None = None,
    ) -> Settled:
        """Return the closure of facts, without the closure of other facts."""
        if through is not None and through.is_empty():
            return empty(self._cluster)
        start = Start(self._cluster, closure, facts)
        less = None if without is None else Start(self._cluster, closure, without)
        via = None if through is None else Start(self._cluster, closure, through)
        graphs = Graphs.of(start, less, via)
        if graphs is not None and only is not None:
            graphs.keep(only)
        if graphs is not None and graphs.is_writable():
            return self._settled(graphs.table())
        return self._spread(start, less, only)

    def _settled(self, table: pa.Table) -> Settled:
        block = local_block(self._cluster, table)
        if block.size > self._cluster.small:
            block = partitioned(block_rows(block))
        return Settled(block)

    def _spread(
        self, start: Start, less: Start | None, only: Pattern | None = None
    ) -> Settled:
        closed: Facts = spread(self._evaluation, start, only=only)
        if less is not None:
            closed -= spread(self._evaluation, less, only=only)
        if only is not None:
            closed = closed.within(Region.of(only))
        return settle(closed, self._cluster)

    def close_among(self, closure: Closure, facts: Facts, candidates: Facts) -> Settled:
        """Return those of the candidates that are in the closure of facts."""
        start = Start(self._cluster, closure, facts)
        rows = matching(closure.pattern, candidates, self._cluster)
        if not rows.bound:
            return empty(self._cluster)
        if not start.is_small() or rows.table is None:
            wanted = settle(
                candidates.within(Region.of(closure.pattern)), self._cluster
            )
            found = spread(self._evaluation, start, among=wanted)
            return settle(wanted & found, self._cluster)
        pairs = ends(closure.pattern, rows.table)
        nodes = Nodes(*start.pairs, *pairs)
        asked = Pairs(*(nodes.numbers(ids) for ids in pairs))
        if start.is_backwards:
            asked = asked.flipped()
        mask = has_pairs(start.paths(nodes), asked)
        return self._settled(rows.table.filter(pa.array(mask)))

    def snapshot_closure(self, closure: Closure, facts: Facts) -> FrameSnapshot:
        """Return a closure snapshot, which can be read after the facts have changed."""
        return FrameSnapshot(self, Start(self._cluster, closure, facts))

    def copy_of(self, start: Start, less: Start | None) -> Copy:
        """Compute the difference of two closures on the cluster."""
        closed = self._spread(start, less)
        pattern = start.closure.pattern
        arities = {pattern.relation: len(pattern.operands)}
        return Copy(self._cluster, rows_of(closed, self._cluster), arities)


class Graphs:
    """Two closures on the driver, to be compared."""

    def __init__(self, start: Start, less: Start | None, through: Start | None) -> None:
        self._start = start
        every = [each for each in (start, less, through) if each is not None]
        self._nodes = Nodes.of(*every)
        paths = [
            None if each is None else self._paths(each) for each in (less, through)
        ]
        self._comparison = Comparison(
            start.paths(self._nodes), paths[0] or NO_PATHS, paths[1]
        )

    @classmethod
    def of(
        cls, start: Start, less: Start | None, through: Start | None = None
    ) -> Graphs | None:
        """Return the graphs, if they are small enough for the driver."""
        every = [each for each in (start, less, through) if each is not None]
        patterns = {each.closure.pattern.operands for each in every}
        if len(patterns) > 1 or not all(each.is_small() for each in every):
            return None
        return cls(start, less, through)

    def _paths(self, other: Start) -> Paths:
        """Return the paths of another closure, in the direction of the first."""
        paths = other.paths(self._nodes)
        if other.is_backwards == self._start.is_backwards:
            return paths
        # One of the two is backwards: its pairs are flipped one by one.
        return Paths(pairs_of(Comparison(paths).keys()).flipped(), NO_PAIRS)

    def keep(self, only: Pattern) -> None:
        """Keep only facts that have the constants of a pattern."""
        wanted: list[int | None] = []
        for at in (0, 1):
            operand = only.operands[
                self._start.closure.pattern.operands.index(Column(at))
            ]
            number = None
            if isinstance(operand, Constant):
                id_ = constant_id(operand)
                number = int(self._nodes.numbers(np.array([id_], np.int64))[0])
            wanted.append(number)
        first, last = reversed(wanted) if self._start.is_backwards else wanted
        self._comparison.keep_ends(first, last)

    @cached_property
    def size(self) -> int:
        """The number of facts."""
        return self._comparison.size()

    def is_writable(self) -> bool:
        """Return whether the driver can write the facts out."""
        return self._nodes.ids.size**2 <= MOST_PAIRS or self.size <= MOST_PAIRS

    def table(self) -> pa.Table:
        """Return the facts, as rows of a block."""
        pairs = pairs_of(self._comparison.keys())
        if self._start.is_backwards:
            pairs = pairs.flipped()
        ids = self._nodes.ids
        return table_of(
            self._start.cluster,
            self._start.closure.pattern,
            ids[pairs.sources],
            ids[pairs.targets],
        )


class FrameSnapshot:
    """A snapshot of a closure, stored as its external facts and edges."""

    def __init__(self, closer: Closer, start: Start) -> None:
        self._closer = closer
        self.start = start

    def minus(self, other: ClosureSnapshot | None) -> Snapshot:
        """Return the facts that this closure has and another one lacks."""
        less = other.start if isinstance(other, FrameSnapshot) else None
        return LazyCopy(self._closer, self.start, less)


class LazyCopy:
    """A copy of facts that is written out only when it is read."""

    def __init__(self, closer: Closer, start: Start, less: Start | None) -> None:
        self._closer = closer
        self._start = start
        self._less = less

    @cached_property
    def _found(self) -> Graphs | Copy:
        graphs = Graphs.of(self._start, self._less)
        return (
            self._closer.copy_of(self._start, self._less) if graphs is None else graphs
        )

    def relations(self) -> Mapping[str, int]:
        """Return the number of facts of each relation that has any."""
        found = self._found
        if isinstance(found, Copy):
            return found.relations()
        return {self._start.closure.pattern.relation: found.size} if found.size else {}

    def read(self, relation: str) -> pa.Table:
        """Return the rows of a relation, as columns of terms."""
        found = self._found
        if isinstance(found, Copy):
            return found.read(relation)
        arity = len(self._start.closure.pattern.operands)
        return decoded(self._start.cluster, found.table(), arity)
