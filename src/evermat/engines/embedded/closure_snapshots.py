"""Closures before and after a change: compared, and read long after it.

To compare two of them, only the sources that can reach a changed edge and the targets
that one leads to are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evermat.algebra import ClosureKind, Column
from evermat.columns import TERM
from evermat.engines.embedded.arrays import NO_KEYS
from evermat.engines.embedded.closure_graphs import (
    NO_PAIRS,
    NO_PATHS,
    Graph,
    Numbers,
    Pairs,
    Paths,
    Places,
    Turn,
    only_in,
    pairs_of,
    paths_of,
)
from evermat.engines.embedded.cores import in_shares, in_slices
from evermat.engines.embedded.kernels import closures as kernels_closures
from evermat.engines.embedded.kernels import keys as kernels
from evermat.engines.embedded.store import Copy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy.typing as npt

    from evermat.algebra import Closure, ClosureSnapshot, Snapshot
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Rows
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.kernels.closures import Reach, Side

# --------------------------------------------------------------------------- comparison

PIECE = 1 << 20
"""Pairs that are handed out at a time where they come in lists: they stay in cache."""


class Comparison:
    """The pairs of one closure that another one does not have.

    Args:
        paths: the closure.
        less: the closure whose pairs are not wanted.
        through: if given, only pairs with a path through one of these are needed; some
            others may be among the results.
    """

    def __init__(
        self, paths: Paths, less: Paths = NO_PATHS, through: Paths | None = None
    ) -> None:
        self._numbers = Numbers(paths, less)
        self._graph = Graph(paths, self._numbers)
        self._less = Graph(less, self._numbers)
        if through is None and less is not NO_PATHS:
            seeds = only_in(paths.seeds, less.seeds)
            edges = seeds
            if paths.edges is not paths.seeds or less.edges is not less.seeds:
                edges = only_in(paths.edges, less.edges)
            through = Paths(seeds, edges)
        wanted = self._nodes(paths.seeds.sources)
        columns = np.arange(self._numbers.size)
        if through is not None and paths.seeds.size:
            wanted &= self._sources_through(through)
            heads = np.concatenate([through.seeds.targets, through.edges.targets])
            columns = np.flatnonzero(self._graph.reached_from(self._nodes(heads)))
        self._sources = np.flatnonzero(wanted).astype(np.int32)
        self._places = Places(columns, self._numbers.size)

    def _sources_through(self, through: Paths) -> npt.NDArray[np.bool_]:
        """Nodes with a seed that is changed, or leads to a changed edge."""
        near = self._graph.leading_to(self._nodes(through.edges.sources))
        return near | self._nodes(through.seeds.sources)

    def _nodes(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """For each node whether it is among some ids; others are left out."""
        found = np.zeros(self._numbers.size, np.bool_)
        nodes = self._numbers.of(ids)
        found[nodes[nodes >= 0]] = True
        return found

    def keep_ends(self, first: int | None, last: int | None) -> None:
        """Look only at pairs that begin with an id, or end with one."""
        ids = self._numbers.ids
        if first is not None:
            self._sources = self._sources[ids[self._sources] == first]
        if last is not None:
            columns = self._places.columns
            columns = columns[ids[columns] == last]
            self._places = Places(columns, self._numbers.size)

    def _turns(self) -> Iterator[Turn]:
        """The rows of both closures, for one range of places after the other."""
        if not self._sources.size:
            return iter(())
        return self._places.turns(
            *((g, g.needed(self._sources)) for g in (self._graph, self._less))
        )

    def size(self) -> int:
        """How many pairs there are."""
        return sum(int(self._counted(turn).sum()) for turn in self._turns())

    def _counted(self, turn: Turn) -> npt.NDArray[np.int64]:
        """For each source how many pairs there are."""
        counts = np.empty(self._sources.size, np.int64)
        sides, ids = self._sides(turn), self._numbers.ids

        def count(part: slice) -> int:
            return kernels_closures.list_pairs(
                self._sources[part], turn.first, *sides, ids, ids, counts[part], NO_KEYS
            )

        in_slices(counts.size, count)
        return counts

    def _sides(self, turn: Turn) -> tuple[Side, Reach, Side, Reach]:
        """What the loops over pairs need to know."""
        places, (reach, less_reach) = self._places.of, turn.rows
        return self._graph.side(places), reach, self._less.side(places), less_reach

    @property
    def nodes(self) -> Ids:
        """The ids of all nodes, in order."""
        return self._numbers.ids

    def keys(self, tell: Callable[[int], None] | None = None) -> Keys:
        """The pairs as sorted keys.

        Args:
            tell: is told before they are written how many there are so far.
        """
        ids = self._numbers.ids
        parts = list(self._written(ids, ids[self._places.columns], tell))
        if len(parts) == 1:
            return parts[0]
        every = np.concatenate([np.empty(0, np.uint64), *parts])
        return kernels.sort_keys(every, np.empty_like(every))

    def numbered(self) -> Iterator[Pairs]:
        """The pairs in several lists, as numbers of nodes."""
        numbers = np.arange(self._numbers.size, dtype=np.uint32)
        for keys in self._written(numbers, self._places.columns.astype(np.uint32)):
            for start in range(0, keys.size, PIECE):
                yield pairs_of(keys[start : start + PIECE])

    def _written(
        self, ids: Ids, ids_of_places: Ids, tell: Callable[[int], None] | None = None
    ) -> Iterator[Keys]:
        """The pairs as keys, one list for each turn."""
        total = 0
        for turn in self._turns():
            counts = self._counted(turn)
            size = int(counts.sum())
            total += size
            if tell is not None:
                tell(total)
            keys = np.empty(size, np.uint64)
            self._write(turn, counts, (ids, ids_of_places), keys)
            yield keys

    def _write(
        self,
        turn: Turn,
        counts: npt.NDArray[np.int64],
        ids: tuple[Ids, Ids],
        keys: Keys,
    ) -> None:
        sides, ends = self._sides(turn), np.cumsum(counts)

        def write(part: slice) -> None:
            mine = keys[ends[part.start - 1] if part.start else 0 :]
            if mine.size:
                kernels_closures.list_pairs(
                    self._sources[part], turn.first, *sides, *ids, counts[part], mine
                )

        in_shares(ends, write)


def has_pairs(paths: Paths, pairs: Pairs) -> npt.NDArray[np.bool_]:
    """Which of some pairs a closure has."""
    marks = np.zeros(pairs.size, np.uint8)
    if not pairs.size or not paths.seeds.size:
        return marks.astype(np.bool_)
    numbers = Numbers(paths, Paths(pairs, NO_PAIRS))
    graph = Graph(paths, numbers)
    firsts, seconds = (numbers.of(ids) for ids in pairs)
    wanted = np.zeros(numbers.size, np.bool_)
    wanted[seconds] = True
    places = Places(np.flatnonzero(wanted), numbers.size)
    side = graph.side(places.of)
    for first, width, (reach,) in places.turns((graph, graph.needed(firsts))):
        kernels_closures.test_pairs(
            firsts, seconds, first, width, places.of, side, reach, marks
        )
    return marks.astype(np.bool_)


# ---------------------------------------------------------------------------- snapshots


@dataclass(frozen=True, eq=False)
class PathsSnapshot:
    """A closure, held by what tells which rows it starts from."""

    dictionary: Dictionary
    closure: Closure
    constants: Mapping[int, int]
    external: Callable[[], Pairs]
    edges: Callable[[], Pairs]

    @cached_property
    def paths(self) -> Paths:
        """What the closure is made of."""
        return paths_of(self.closure, self.external(), self.edges())

    def paths_beside(self, other: PathsSnapshot) -> Paths:
        """The same, walking as another closure does."""
        mine = self.closure.kind is ClosureKind.RIGHT_LINEAR
        theirs = other.closure.kind is ClosureKind.RIGHT_LINEAR
        if mine == theirs:
            return self.paths
        # One of the two walks backwards: the pairs are turned, one by one.
        pairs = pairs_of(Comparison(self.paths).keys()).flipped()
        return Paths(pairs, NO_PAIRS)

    def minus(self, other: ClosureSnapshot | None) -> Snapshot:
        """What the closure has and another one has not."""
        return LazyCopy(self, other if isinstance(other, PathsSnapshot) else None)


class _Terms:
    """A column of terms, to be taken from again and again."""

    def __init__(self, terms: pa.StructArray) -> None:
        self._kinds: Flags = terms.field(0).to_numpy(zero_copy_only=False)
        texts = terms.field(1)
        _, ends, data = texts.buffers()
        first = texts.offset
        self._ends: Rows = np.frombuffer(ends, np.int32)[first : first + len(texts) + 1]
        self._texts: Flags = np.frombuffer(data or b"", np.uint8)

    def take(self, numbers: Ids) -> pa.StructArray:
        """The terms with some numbers."""
        offsets = np.empty(numbers.size + 1, np.int32)
        size = kernels_closures.text_offsets(numbers, self._ends, offsets)
        texts = np.empty(size, np.uint8)
        kernels_closures.copy_texts(numbers, self._ends, self._texts, texts)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(texts)]
        column = pa.StringArray.from_buffers(numbers.size, *buffers[1:])
        kinds = pa.array(self._kinds[numbers])
        return pa.StructArray.from_arrays([kinds, column], fields=list(TERM))


class LazyCopy:
    """A copy of facts that is written out only when it is read."""

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
        """The number of facts of each relation that has any."""
        name = self._captured.closure.pattern.relation
        return {name: self._size} if self._size else {}

    def read(self, relation: str) -> pa.Table:
        """The rows of a relation."""
        captured = self._captured
        comparison = self._compare()
        # Few constants make many facts: each is looked up once.
        terms = _Terms(captured.dictionary.decode(comparison.nodes))
        pieces = [self._columns(terms, pairs) for pairs in comparison.numbered()]
        if not pieces:
            table = np.empty((len(captured.closure.pattern.operands), 0), np.uint32)
            return Copy(captured.dictionary, {relation: table}).read(relation)
        columns = [pa.chunked_array(list(parts)) for parts in zip(*pieces, strict=True)]
        return pa.table(columns, names=[str(at) for at in range(len(columns))])

    def _columns(self, terms: _Terms, pairs: Pairs) -> list[pa.StructArray]:
        """The columns of some rows, from the terms of all nodes."""
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
