"""Closures as graphs: pairs that paths lead to, counted, written out or tested.

The strongly connected components of the edges are found first; each component then gets
a row of bits, one for each node that somebody asks about, filled in an order in which
every component comes after those it leads to. Where two closures are compared, only the
sources that can reach a changed edge and the targets that one leads to are looked at.
Rows are as wide as `MOST_BITS` allows; the targets are dealt with in several turns if
there are more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evermat.algebra import ClosureKind
from evermat.engines.embedded import kernels, kernels_closure
from evermat.engines.embedded.index import make_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from evermat.algebra import Closure
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Rows

    Bits = npt.NDArray[np.uint64]

MOST_BITS = 1 << 29
"""Bits in the rows of one turn: 64 MB, which was quickest on sparse graphs."""


PIECE = 1 << 20
"""Pairs that are handed out at a time where they come in lists: they stay in cache."""


class Pairs(NamedTuple):
    """Pairs of ids, by column."""

    sources: Ids
    targets: Ids

    @property
    def size(self) -> int:
        """How many there are."""
        return self.sources.size

    def flipped(self) -> Pairs:
        """The pairs the other way round."""
        return Pairs(self.targets, self.sources)

    def keys(self) -> Keys:
        """The pairs as sorted keys."""
        keys = make_keys(np.stack(self)) if self.size else np.empty(0, np.uint64)
        return kernels.sort_keys(keys, np.empty_like(keys))


NO_PAIRS = Pairs(np.empty(0, np.uint32), np.empty(0, np.uint32))


class Paths(NamedTuple):
    """What a closure is made of: its pairs are a seed and any number of edges."""

    seeds: Pairs
    edges: Pairs


NO_PATHS = Paths(NO_PAIRS, NO_PAIRS)


def joined(*parts: Pairs) -> Pairs:
    """All pairs of several lists."""
    return Pairs(
        np.concatenate([part.sources for part in parts]),
        np.concatenate([part.targets for part in parts]),
    )


def paths_of(closure: Closure, external: Pairs, edges: Pairs) -> Paths:
    """What a closure is made of; if it walks backwards, all pairs are flipped."""
    match closure.kind:
        case ClosureKind.PLAIN:
            return Paths(external, NO_PAIRS)
        case ClosureKind.TRANSITIVE:
            loops = [Pairs(external[at], external[at]) for at in closure.loops]
            seeds = joined(external, *loops) if loops else external
            return Paths(seeds, seeds)
        case ClosureKind.SYMMETRIC:
            both = joined(external, external.flipped())
            return Paths(both, both)
        case ClosureKind.LEFT_LINEAR:
            return Paths(external, edges)
        case ClosureKind.RIGHT_LINEAR:
            return Paths(external.flipped(), edges.flipped())


def pairs_of(keys: Keys) -> Pairs:
    """Keys as pairs."""
    pairs = Pairs(np.empty(keys.size, np.uint32), np.empty(keys.size, np.uint32))
    kernels_closure.split_keys(keys, *pairs)
    return pairs


def only_in(left: Pairs, right: Pairs) -> Pairs:
    """The pairs of the left side that the right side does not have."""
    if left is right:
        return NO_PAIRS
    keys, others = left.keys(), right.keys()
    found = np.full(keys.size, -1, np.int32)
    kernels.find_sorted(keys, others, np.arange(others.size, dtype=np.int32), found)
    return pairs_of(keys[found < 0])


@dataclass(frozen=True, slots=True, eq=False)
class _Adjacency:
    """The targets of each node."""

    starts: Rows
    targets: Rows

    @classmethod
    def of(cls, pairs: Pairs, nodes: Ids) -> _Adjacency:
        sources = np.searchsorted(nodes, pairs.sources).astype(np.int32)
        order = np.empty(sources.size, np.int32)
        starts = kernels_closure.group(sources, nodes.size, order)
        targets = np.searchsorted(nodes, pairs.targets[order]).astype(np.int32)
        return cls(starts, targets)


class _Reach(NamedTuple):
    """Rows of bits, and for each row which of its words are not zero."""

    rows: Bits
    filled: Bits


class _Graph:
    """One closure: seeds, edges and the components of the edges."""

    def __init__(self, paths: Paths, nodes: Ids) -> None:
        self.edges = _Adjacency.of(paths.edges, nodes)
        self.seeds = (
            self.edges
            if paths.seeds is paths.edges
            else _Adjacency.of(paths.seeds, nodes)
        )
        self.component: Rows = np.empty(nodes.size, np.int32)
        self.count = kernels_closure.components(
            self.edges.starts, self.edges.targets, self.component
        )
        order = np.empty(nodes.size, np.int32)
        kernels_closure.group(self.component, self.count, order)
        self.by_component = order

    def reach(self, places: Rows, first: int, width: int) -> _Reach:
        """What each component leads to, as far as it has a place."""
        # Memory that is never written is never really taken.
        rows = np.zeros((self.count, width), np.uint64)
        index = np.zeros((self.count, (width + 63) // 64), np.uint64)
        kernels_closure.spread(
            self.edges.starts,
            self.edges.targets,
            self.component,
            self.by_component,
            places,
            first,
            rows,
            index,
        )
        return _Reach(rows, index)

    def seeded(self, reach: _Reach) -> tuple[Rows, Rows, Rows, Bits, Bits]:
        """What the loops over pairs need to know."""
        seeds = self.seeds
        return seeds.starts, seeds.targets, self.component, reach.rows, reach.filled

    def leading_to(self, nodes: Rows) -> Flags:
        """Which nodes can reach one of some nodes, these included."""
        return self._marked(nodes, kernels_closure.mark_backwards)

    def reached_from(self, nodes: Rows) -> Flags:
        """Which nodes one of some nodes can reach, these included."""
        return self._marked(nodes, kernels_closure.mark_forwards)

    def _marked(
        self, nodes: Rows, spread: Callable[[Rows, Rows, Rows, Rows, Flags], None]
    ) -> Flags:
        marks = np.zeros(self.count, np.uint8)
        marks[self.component[nodes]] = 1
        edges = self.edges
        spread(edges.starts, edges.targets, self.component, self.by_component, marks)
        return marks[self.component]


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
        self._nodes = _nodes(paths, less)
        self._graph = _Graph(paths, self._nodes)
        self._less = _Graph(less, self._nodes)
        if through is None and less is not NO_PATHS:
            seeds = only_in(paths.seeds, less.seeds)
            edges = seeds
            if paths.edges is not paths.seeds or less.edges is not less.seeds:
                edges = only_in(paths.edges, less.edges)
            through = Paths(seeds, edges)
        self._restrict(through)

    def _restrict(self, through: Paths | None) -> None:
        """Choose the sources and targets that can matter."""
        starts = self._graph.seeds.starts
        wanted = starts[1:] > starts[:-1]
        if through is None:
            self._sources = np.flatnonzero(wanted).astype(np.int32)
            columns = np.arange(self._nodes.size)
        else:
            wanted &= self._sources_through(through)
            self._sources = np.flatnonzero(wanted).astype(np.int32)
            heads = np.concatenate([through.seeds.targets, through.edges.targets])
            reached = self._graph.reached_from(self._numbers(heads))
            columns = np.flatnonzero(reached)
        self._set_columns(columns)

    def keep_ends(self, first: int | None, last: int | None) -> None:
        """Look only at pairs that begin with an id, or end with one."""
        if first is not None:
            self._sources = self._sources[self._nodes[self._sources] == first]
        if last is not None:
            columns = np.flatnonzero((self._places >= 0) & (self._nodes == last))
            self._set_columns(columns)

    def _set_columns(self, columns: npt.NDArray[np.int64]) -> None:
        self._places = np.full(self._nodes.size, -1, np.int32)
        self._places[columns] = np.arange(columns.size, dtype=np.int32)
        self._ids_of_places = self._nodes[columns]

    def _sources_through(self, through: Paths) -> npt.NDArray[np.bool_]:
        """Nodes with a seed that is changed, or leads to a changed edge."""
        graph = self._graph
        near = graph.leading_to(self._numbers(through.edges.sources))
        seeds = graph.seeds
        wanted = np.zeros(self._nodes.size, np.bool_)
        sources = np.repeat(
            np.arange(self._nodes.size, dtype=np.int32), np.diff(seeds.starts)
        )
        wanted[sources[near[seeds.targets] != 0]] = True
        wanted[self._numbers(through.seeds.sources)] = True
        return wanted

    def _numbers(self, ids: Ids) -> Rows:
        """The nodes of ids; those that no path has are left out."""
        if not self._nodes.size:
            return np.empty(0, np.int32)
        numbers: Rows = np.searchsorted(self._nodes, ids).astype(np.int32)
        numbers[numbers == self._nodes.size] = 0
        known: Rows = numbers[self._nodes[numbers] == ids]
        return known

    def _turns(self) -> Iterator[tuple[int, _Reach, _Reach]]:
        """The rows of both closures, for one range of places after the other."""
        places = self._ids_of_places.size
        if not self._sources.size or not places:
            return
        components = max(self._graph.count, self._less.count)
        width = max(1, min((places + 63) // 64, MOST_BITS // (64 * components)))
        for first in range(0, places, 64 * width):
            yield (
                first,
                self._graph.reach(self._places, first, width),
                self._less.reach(self._places, first, width),
            )

    def size(self) -> int:
        """How many pairs there are."""
        counts = np.empty(self._sources.size, np.int64)
        return sum(self._count(reach, less, counts) for _, reach, less in self._turns())

    def _count(self, reach: _Reach, less: _Reach, counts: npt.NDArray[np.int64]) -> int:
        return kernels_closure.count_pairs(
            self._sources,
            *self._graph.seeded(reach),
            *self._less.seeded(less),
            counts,
        )

    @property
    def nodes(self) -> Ids:
        """The ids of all nodes, in order."""
        return self._nodes

    def keys(self) -> Keys:
        """The pairs as sorted keys."""
        parts = list(self._written(self._nodes, self._ids_of_places))
        if len(parts) == 1:
            return parts[0]
        every = np.concatenate([np.empty(0, np.uint64), *parts])
        return kernels.sort_keys(every, np.empty_like(every))

    def numbered(self) -> Iterator[Pairs]:
        """The pairs in several lists, as numbers of nodes."""
        numbers = np.arange(self._nodes.size, dtype=np.uint32)
        columns = numbers[np.argsort(self._places, kind="stable")]
        places = columns[self._nodes.size - self._ids_of_places.size :]
        for keys in self._written(numbers, places):
            for start in range(0, keys.size, PIECE):
                yield pairs_of(keys[start : start + PIECE])

    def _written(self, ids: Ids, ids_of_places: Ids) -> Iterator[Keys]:
        """The pairs as keys, one list for each turn."""
        counts = np.empty(self._sources.size, np.int64)
        for first, reach, less in self._turns():
            keys = np.empty(self._count(reach, less, counts), np.uint64)
            kernels_closure.write_pairs(
                self._sources[counts > 0],
                *self._graph.seeded(reach),
                *self._less.seeded(less),
                *(ids, ids_of_places, first, keys),
            )
            yield keys


def has_pairs(paths: Paths, pairs: Pairs) -> npt.NDArray[np.bool_]:
    """Which of some pairs a closure has."""
    nodes = _nodes(paths, Paths(pairs, NO_PAIRS))
    graph = _Graph(paths, nodes)
    firsts = np.searchsorted(nodes, pairs.sources).astype(np.int32)
    seconds = np.searchsorted(nodes, pairs.targets).astype(np.int32)
    wanted = np.zeros(nodes.size, np.bool_)
    wanted[seconds] = True
    columns = np.flatnonzero(wanted)
    places = np.full(nodes.size, -1, np.int32)
    places[columns] = np.arange(columns.size, dtype=np.int32)
    marks = np.zeros(pairs.size, np.uint8)
    if not pairs.size:
        return marks.astype(np.bool_)
    width = max(1, min((columns.size + 63) // 64, MOST_BITS // (64 * graph.count)))
    for first in range(0, columns.size, 64 * width):
        seeds, reach = graph.seeds, graph.reach(places, first, width)
        kernels_closure.test_pairs(
            firsts,
            seconds,
            seeds.starts,
            seeds.targets,
            graph.component,
            reach.rows,
            places,
            first,
            marks,
        )
    return marks.astype(np.bool_)


def _nodes(*graphs: Paths) -> Ids:
    """All ids of some graphs, in order."""
    columns = []
    for paths in graphs:
        for pairs in {id(part): part for part in paths}.values():
            columns += [pairs.sources, pairs.targets]
    ids = np.sort(np.concatenate(columns))
    keep = np.ones(ids.size, np.bool_)
    keep[1:] = ids[1:] != ids[:-1]
    return ids[keep]
