"""Two closures compared: the pairs that one has and the other has not.

Only the sources that can reach a changed edge and the targets that one leads to are
looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.arrays import NO_KEYS
from evermat.engines.embedded.closure_graphs import Graph, Numbers, Places, Turn
from evermat.engines.embedded.closure_pairs import (
    NO_PAIRS,
    NO_PATHS,
    Pairs,
    Paths,
    only_in,
    pairs_of,
)
from evermat.engines.embedded.cores import in_shares, in_slices
from evermat.engines.embedded.kernels import keys as kernels
from evermat.engines.embedded.kernels import reachability as kernels_reachability

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from evermat.engines.embedded.arrays import Ids, Keys
    from evermat.engines.embedded.kernels.reachability import Reach, Side

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
            return kernels_reachability.list_pairs(
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
                kernels_reachability.list_pairs(
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
        kernels_reachability.test_pairs(
            firsts, seconds, first, width, places.of, side, reach, marks
        )
    return marks.astype(np.bool_)
