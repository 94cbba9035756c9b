"""Closure snapshots, which can be read after the facts of a closure have changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evermat.algebra import ClosureKind, Column
from evermat.columns import TERM
from evermat.engines.embedded.closure_graphs import (
    NO_PAIRS,
    NO_PATHS,
    Comparison,
    Pairs,
    Paths,
    pairs_of,
    paths_of,
)
from evermat.engines.embedded.kernels import closures as kernels_closures
from evermat.engines.embedded.store import Copy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evermat.algebra import Closure, ClosureSnapshot, Snapshot
    from evermat.engines.embedded.arrays import Flags, Ids, Rows
    from evermat.engines.embedded.dictionary import Dictionary


@dataclass(frozen=True, eq=False)
class PathsSnapshot:
    """A snapshot of a closure: functions that find its external facts and edges."""

    dictionary: Dictionary
    closure: Closure
    constants: Mapping[int, int]
    external: Callable[[], Pairs]
    edges: Callable[[], Pairs]

    @cached_property
    def paths(self) -> Paths:
        """The seeds and edges of the closure's paths."""
        return paths_of(self.closure, self.external(), self.edges())

    def paths_beside(self, other: PathsSnapshot) -> Paths:
        """Return the paths in the direction of another closure."""
        mine = self.closure.kind is ClosureKind.RIGHT_LINEAR
        theirs = other.closure.kind is ClosureKind.RIGHT_LINEAR
        if mine == theirs:
            return self.paths
        # One of the two walks backwards: its pairs are flipped one by one.
        pairs = pairs_of(Comparison(self.paths).keys()).flipped()
        return Paths(pairs, NO_PAIRS)

    def minus(self, other: ClosureSnapshot | None) -> Snapshot:
        """Return the facts that this closure has and another one lacks."""
        return LazyCopy(self, other if isinstance(other, PathsSnapshot) else None)


class _Terms:
    """A column of terms from which many selections are taken."""

    def __init__(self, terms: pa.StructArray) -> None:
        self._kinds: Flags = terms.field(0).to_numpy(zero_copy_only=False)
        texts = terms.field(1)
        _, ends, data = texts.buffers()
        first = texts.offset
        self._ends: Rows = np.frombuffer(ends, np.int32)[first : first + len(texts) + 1]
        self._texts: Flags = np.frombuffer(data or b"", np.uint8)

    def take(self, numbers: Ids) -> pa.StructArray:
        """Return the terms with some numbers."""
        offsets = np.empty(numbers.size + 1, np.int32)
        size = kernels_closures.text_offsets(numbers, self._ends, offsets)
        texts = np.empty(size, np.uint8)
        kernels_closures.copy_texts(numbers, self._ends, self._texts, texts)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(texts)]
        column = pa.StringArray.from_buffers(numbers.size, *buffers[1:])
        kinds = pa.array(self._kinds[numbers])
        return pa.StructArray.from_arrays([kinds, column], fields=list(TERM))


class LazyCopy:
    """A snapshot of closure facts that is expanded when it is read."""

    def __init__(self, captured: PathsSnapshot, less: PathsSnapshot | None) -> None:
        self._captured = captured
        self._less = less

    @cached_property
    def _size(self) -> int:
        return self._compare().size()

    def _compare(self) -> Comparison:
        captured, less = self._captured, self._less
        without = NO_PATHS if less is None else less.paths_beside(captured)
        return Comparison(captured.paths, without)

    def relations(self) -> Mapping[str, int]:
        """Return the number of facts of each relation that has any."""
        name = self._captured.closure.pattern.relation
        return {name: self._size} if self._size else {}

    def read(self, relation: str) -> pa.Table:
        """Return the rows of a relation."""
        captured = self._captured
        comparison = self._compare()
        # Few constants occur in many facts: each is decoded once.
        terms = _Terms(captured.dictionary.decode(comparison.nodes))
        pieces = [self._columns(terms, pairs) for pairs in comparison.numbered()]
        if not pieces:
            table = np.empty((len(captured.closure.pattern.operands), 0), np.uint32)
            return Copy(captured.dictionary, {relation: table}).read(relation)
        columns = [pa.chunked_array(list(parts)) for parts in zip(*pieces, strict=True)]
        return pa.table(columns, names=[str(at) for at in range(len(columns))])

    def _columns(self, terms: _Terms, pairs: Pairs) -> list[pa.StructArray]:
        """Return the columns of some rows, given the terms of all nodes."""
        captured = self._captured
        if captured.closure.kind is ClosureKind.RIGHT_LINEAR:
            pairs = pairs.flipped()
        columns = []
        for at, operand in enumerate(captured.closure.pattern.operands):
            if isinstance(operand, Column):
                columns.append(terms.take(pairs[operand.index]))
            else:
                ids = np.full(pairs.size, captured.constants[at], np.uint32)
                columns.append(captured.dictionary.decode(ids))
        return columns
