"""Closures as graphs: pairs that paths lead to, counted, written out or tested.

The strongly connected components of the edges are found first; each component then gets
a row of bits, one for each node that somebody asks about, filled in an order in which
every component comes after those it leads to. Where two closures are compared, only the
sources that can reach a changed edge and the targets that one leads to are looked at.
Rows take up as much as they have words that are not zero; where there are more than
`MOST_WORDS` of them, the targets are dealt with in several turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evermat.algebra import ClosureKind
from evermat.engines.embedded import (
    kernels,
    kernels_closure,
    kernels_reach,
    kernels_rows,
)
from evermat.engines.embedded.cores import in_shares, in_slices
from evermat.engines.embedded.index import make_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from evermat.algebra import Closure
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Rows

    Bits = npt.NDArray[np.uint64]

MOST_WORDS = 1 << 24
"""Words in the rows of one turn: 128 MB, and half as much for where they are."""

DENSE = 8
"""Ids are numbered by a table of all that are possible up to this many for each."""

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
    kernels_rows.split_keys(keys, *pairs)
    return pairs


def only_in(left: Pairs, right: Pairs) -> Pairs:
    """The pairs of the left side that the right side does not have."""
    if left is right:
        return NO_PAIRS
    keys, others = left.keys(), right.keys()
    found = np.full(keys.size, -1, np.int32)
    kernels.find_sorted(keys, others, np.arange(others.size, dtype=np.int32), found)
    return pairs_of(keys[found < 0])


class _Numbers:
    """The ids of some graphs, in order; the place of an id is its node."""

    def __init__(self, *graphs: Paths) -> None:
        columns = []
        for paths in graphs:
            for pairs in {id(part): part for part in paths}.values():
                columns += [pairs.sources, pairs.targets]
        ids = np.concatenate(columns)
        self._table: Rows | None = None
        self._least = int(ids.min()) if ids.size else 0
        span = int(ids.max()) - self._least + 1 if ids.size else 0
        if span <= DENSE * ids.size:
            seen = np.zeros(span, np.bool_)
            for column in columns:
                seen[column - np.uint32(self._least)] = True
            self._table = np.cumsum(seen, dtype=np.int32) - 1
            self._table[~seen] = -1
            self.ids = np.flatnonzero(seen).astype(np.uint32)
            self.ids += np.uint32(self._least)
            return
        ids.sort()
        keep = np.ones(ids.size, np.bool_)
        keep[1:] = ids[1:] != ids[:-1]
        self.ids = ids[keep]

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return self.ids.size

    def of(self, ids: Ids) -> Rows:
        """The nodes of ids, -1 for those that the graphs do not have."""
        if self._table is not None:
            # What is less than the least wraps round, and is too large then.
            places = ids - np.uint32(self._least)
            if not self._table.size:
                return np.full(ids.size, -1, np.int32)
            nodes: Rows = self._table[np.minimum(places, self._table.size - 1)]
            nodes[places >= self._table.size] = -1
            return nodes
        nodes = np.searchsorted(self.ids, ids).astype(np.int32)
        nodes[nodes == self.ids.size] = 0
        nodes[self.ids[nodes] != ids] = -1
        return nodes


class _Links(NamedTuple):
    """For each source the components that it leads to, the largest first."""

    starts: Rows
    targets: Rows

    @classmethod
    def of(cls, sources: Rows, targets: Rows, count: int) -> _Links:
        keys = sources.astype(np.uint64) << np.uint64(32)
        keys |= (~targets).view(np.uint32)
        keys = kernels.sort_keys(keys, np.empty_like(keys))
        found = np.empty(keys.size, np.int32)
        starts = kernels_closure.adjacency(keys, count, found)
        return cls(starts, found[: starts[-1]])


class _Reach(NamedTuple):
    """The rows of all components, for some places."""

    starts: npt.NDArray[np.int64]
    words: Rows
    bits: Bits
    own: Rows


class _Turn(NamedTuple):
    """The first place, how many words a full row has, and the rows of each graph."""

    first: int
    width: int
    rows: list[_Reach]


class _Lists(NamedTuple):
    """For each node the components that its seeds lead to.

    If the node does not lead back to itself, its own place is dropped from these.
    """

    starts: Rows
    components: Rows
    dropped: Rows


class _Graph:
    """One closure: seeds, edges and the components of the edges."""

    def __init__(self, paths: Paths, numbers: _Numbers) -> None:
        count = numbers.size
        sources, targets = (numbers.of(ids) for ids in paths.edges)
        order = np.empty(sources.size, np.int32)
        starts = kernels_closure.group(sources, count, order)
        component: Rows = np.empty(count, np.int32)
        self.count = kernels_closure.components(starts, targets[order], component)
        self.component = component
        self.members: Rows = np.empty(count, np.int32)
        self.heads = kernels_closure.group(component, self.count, self.members)
        firsts, seconds = component[sources], component[targets]
        differ = firsts != seconds
        self.links = _Links.of(firsts[differ], seconds[differ], self.count)
        if not paths.seeds.size:
            self.seeds = _Links(np.zeros(count + 1, np.int32), np.empty(0, np.int32))
            self.is_alone = np.zeros(count, np.bool_)
        elif paths.seeds is paths.edges:
            # Every node leads where its component does, but not to itself unless
            # there is a way back.
            self.seeds = _Links(np.arange(count + 1, dtype=np.int32), component)
            returns = np.diff(self.heads) > 1
            returns[firsts[~differ]] = True
            self.is_alone = ~returns[component]
        else:
            begins, ends = (numbers.of(ids) for ids in paths.seeds)
            self.seeds = _Links.of(begins, component[ends], count)
            self.is_alone = np.zeros(count, np.bool_)

    def has_seeds(self, paths: Paths, numbers: _Numbers) -> npt.NDArray[np.bool_]:
        """Which nodes a seed begins with."""
        found = np.zeros(numbers.size, np.bool_)
        found[numbers.of(paths.seeds.sources)] = True
        return found

    def lists(self, places: Rows) -> _Lists:
        """What the loops over pairs need to know of the sources."""
        return _Lists(*self.seeds, np.where(self.is_alone, places, np.int32(-1)))

    def needed(self, sources: Rows) -> Flags:
        """The components that some sources lead to."""
        marks = np.zeros(self.count, np.uint8)
        listed = np.zeros(self.component.size, np.bool_)
        listed[sources] = True
        marks[self.seeds.targets[np.repeat(listed, np.diff(self.seeds.starts))]] = 1
        kernels_closure.mark_forwards(*self.links, marks)
        return marks

    def reach(
        self, needed: Flags, places: Rows, first: int, width: int
    ) -> _Reach | None:
        """What each component leads to, as far as it has a place; None if too much."""
        room = min(max(MOST_WORDS, self.count), self.count * width)
        # Memory that is never written is never really taken.
        reach = _Reach(
            np.empty(self.count + 1, np.int64),
            np.empty(room, np.int32),
            np.empty(room, np.uint64),
            np.empty(self.count, np.int32),
        )
        nodes = (self.heads, self.members, places)
        given: list[Any] = [*self.links, needed, *nodes, first, width, *reach]
        used = kernels_reach.fill_rows(*given)
        return reach if used >= 0 else None

    def leading_to(self, nodes: Rows) -> Flags:
        """Which nodes can reach one of some nodes, these included."""
        return self._marked(nodes, kernels_closure.mark_backwards)

    def reached_from(self, nodes: Rows) -> Flags:
        """Which nodes one of some nodes can reach, these included."""
        return self._marked(nodes, kernels_closure.mark_forwards)

    def _marked(
        self, nodes: Rows, spread: Callable[[Rows, Rows, Flags], None]
    ) -> Flags:
        marks = np.zeros(self.count, np.uint8)
        marks[self.component[nodes]] = 1
        spread(*self.links, marks)
        return marks[self.component]


class _Places:
    """Which nodes somebody asks about, and their bits."""

    def __init__(self, columns: npt.NDArray[np.int64], count: int) -> None:
        self.columns = columns
        self.of: Rows = np.full(count, -1, np.int32)
        self.of[columns] = np.arange(columns.size, dtype=np.int32)

    def turns(self, *parts: tuple[_Graph, Flags]) -> Iterator[_Turn]:
        """The rows of graphs, for one range of places after the other."""
        first, size = 0, self.columns.size
        width = (size + 63) // 64
        while first < size:
            width = min(width, (size - first + 63) // 64)
            found = [g.reach(needed, self.of, first, width) for g, needed in parts]
            rows = [reach for reach in found if reach is not None]
            if len(rows) == len(found):
                yield _Turn(first, width, rows)
                first += 64 * width
            else:
                # At a width of one there is always room.
                width = (width + 1) // 2


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
        self._numbers = _Numbers(paths, less)
        self._graph = _Graph(paths, self._numbers)
        self._less = _Graph(less, self._numbers)
        self._seeded = self._graph.has_seeds(paths, self._numbers)
        if through is None and less is not NO_PATHS:
            seeds = only_in(paths.seeds, less.seeds)
            edges = seeds
            if paths.edges is not paths.seeds or less.edges is not less.seeds:
                edges = only_in(paths.edges, less.edges)
            through = Paths(seeds, edges)
        self._restrict(through)

    def _restrict(self, through: Paths | None) -> None:
        """Choose the sources and targets that can matter."""
        wanted = self._seeded
        columns = np.arange(self._numbers.size)
        if through is not None:
            wanted = wanted & self._sources_through(through)
            heads = np.concatenate([through.seeds.targets, through.edges.targets])
            columns = np.flatnonzero(self._graph.reached_from(self._known(heads)))
        self._sources = np.flatnonzero(wanted).astype(np.int32)
        self._places = _Places(columns, self._numbers.size)

    def keep_ends(self, first: int | None, last: int | None) -> None:
        """Look only at pairs that begin with an id, or end with one."""
        ids = self._numbers.ids
        if first is not None:
            self._sources = self._sources[ids[self._sources] == first]
        if last is not None:
            columns = self._places.columns
            columns = columns[ids[columns] == last]
            self._places = _Places(columns, self._numbers.size)

    def _sources_through(self, through: Paths) -> npt.NDArray[np.bool_]:
        """Nodes with a seed that is changed, or leads to a changed edge."""
        graph = self._graph
        near = graph.leading_to(self._known(through.edges.sources))
        is_near = np.zeros(graph.count, np.bool_)
        is_near[graph.component[near != 0]] = True
        seeds = graph.seeds
        sources = np.repeat(np.arange(self._numbers.size), np.diff(seeds.starts))
        wanted = np.zeros(self._numbers.size, np.bool_)
        wanted[sources[is_near[seeds.targets]]] = True
        wanted[self._known(through.seeds.sources)] = True
        return wanted

    def _known(self, ids: Ids) -> Rows:
        """The nodes of ids; those that no path has are left out."""
        nodes = self._numbers.of(ids)
        return nodes[nodes >= 0]

    def _turns(self) -> Iterator[_Turn]:
        """The rows of both closures, for one range of places after the other."""
        if not self._sources.size:
            return iter(())
        return self._places.turns(
            *((g, g.needed(self._sources)) for g in (self._graph, self._less))
        )

    def size(self) -> int:
        """How many pairs there are."""
        return sum(int(self._counted(turn).sum()) for turn in self._turns())

    def _counted(self, turn: _Turn) -> npt.NDArray[np.int64]:
        """For each source how many pairs there are."""
        counts = np.empty(self._sources.size, np.int64)
        arguments = self._arguments(turn)

        def count(part: slice) -> int:
            given = [self._sources[part], *arguments, counts[part]]
            kernels_reach.count_pairs(*given)
            return 0

        in_slices(counts.size, count)
        return counts

    def _arguments(self, turn: _Turn) -> list[Any]:
        """What the loops over pairs need to know."""
        places = self._places.of
        return [
            turn.first,
            turn.width,
            *self._graph.lists(places),
            *turn.rows[0],
            *self._less.lists(places),
            *turn.rows[1],
        ]

    @property
    def nodes(self) -> Ids:
        """The ids of all nodes, in order."""
        return self._numbers.ids

    def keys(self) -> Keys:
        """The pairs as sorted keys."""
        ids = self._numbers.ids
        parts = list(self._written(ids, ids[self._places.columns]))
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

    def _written(self, ids: Ids, ids_of_places: Ids) -> Iterator[Keys]:
        """The pairs as keys, one list for each turn."""
        for turn in self._turns():
            ends = np.cumsum(self._counted(turn))
            keys = np.empty(int(ends[-1]), np.uint64)
            self._write(turn, ends, ids, ids_of_places, keys)
            yield keys

    def _write(
        self,
        turn: _Turn,
        ends: npt.NDArray[np.int64],
        ids: Ids,
        ids_of_places: Ids,
        keys: Keys,
    ) -> None:
        arguments = self._arguments(turn)

        def write(part: slice) -> None:
            mine = keys[ends[part.start - 1] if part.start else 0 :]
            given = [self._sources[part], *arguments, ids, ids_of_places, mine]
            kernels_reach.write_pairs(*given)

        in_shares(ends, write)


def has_pairs(paths: Paths, pairs: Pairs) -> npt.NDArray[np.bool_]:
    """Which of some pairs a closure has."""
    marks = np.zeros(pairs.size, np.uint8)
    if not pairs.size or not paths.seeds.size:
        return marks.astype(np.bool_)
    numbers = _Numbers(paths, Paths(pairs, NO_PAIRS))
    graph = _Graph(paths, numbers)
    firsts, seconds = (numbers.of(ids) for ids in pairs)
    wanted = np.zeros(numbers.size, np.bool_)
    wanted[seconds] = True
    places = _Places(np.flatnonzero(wanted), numbers.size)
    for first, width, (reach,) in places.turns((graph, graph.needed(firsts))):
        kernels_reach.test_pairs(
            firsts,
            seconds,
            first,
            width,
            places.of,
            *graph.lists(places.of),
            *reach[:3],
            marks,
        )
    return marks.astype(np.bool_)
