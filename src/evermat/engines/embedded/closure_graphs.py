"""Closures as graphs of ids, and the difference of two closures.

The strongly connected components of the edges are computed first; each component then
gets a bit row with one bit for each requested node, filled in reverse topological
order, so that every component comes after those it leads to. Rows are sparse: they
store only nonzero words. If there are more than `MOST_WORDS` of them, the targets are
processed in several turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evermat.algebra import ClosureKind
from evermat.engines.embedded.arrays import NO_KEYS
from evermat.engines.embedded.cores import in_shares, in_slices
from evermat.engines.embedded.index import make_keys
from evermat.engines.embedded.kernels import closures as kernels_closures
from evermat.engines.embedded.kernels import keys as kernels
from evermat.engines.embedded.kernels import rows as kernels_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from evermat.algebra import Closure
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Rows
    from evermat.engines.embedded.kernels.closures import Reach, Side

# -------------------------------------------------------------------------------- pairs


class Pairs(NamedTuple):
    """Pairs of ids, by column."""

    sources: Ids
    targets: Ids

    @property
    def size(self) -> int:
        """The number of pairs."""
        return self.sources.size

    def flipped(self) -> Pairs:
        """Return the inverse pairs."""
        return Pairs(self.targets, self.sources)

    def keys(self) -> Keys:
        """Return the pairs as sorted keys."""
        keys = make_keys(np.stack(self)) if self.size else np.empty(0, np.uint64)
        return kernels.sort_keys(keys, np.empty_like(keys))


NO_PAIRS = Pairs(np.empty(0, np.uint32), np.empty(0, np.uint32))


class Paths(NamedTuple):
    """The paths of a closure: each pair is a seed followed by any number of edges."""

    seeds: Pairs
    edges: Pairs


NO_PATHS = Paths(NO_PAIRS, NO_PAIRS)


def joined(*parts: Pairs) -> Pairs:
    """Concatenate several lists of pairs."""
    return Pairs(
        np.concatenate([part.sources for part in parts]),
        np.concatenate([part.targets for part in parts]),
    )


def paths_of(closure: Closure, external: Pairs, edges: Pairs) -> Paths:
    """Return the paths of a closure; for right-linear ones, all pairs are flipped."""
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
    """Return keys as pairs."""
    pairs = Pairs(np.empty(keys.size, np.uint32), np.empty(keys.size, np.uint32))
    kernels_rows.split_keys(keys, *pairs)
    return pairs


def only_in(left: Pairs, right: Pairs) -> Pairs:
    """Return the pairs of the left side that the right side lacks."""
    if left is right:
        return NO_PAIRS
    keys, others = left.keys(), right.keys()
    found = np.full(keys.size, -1, np.int32)
    kernels.find_sorted(keys, others, np.arange(others.size, dtype=np.int32), found)
    return pairs_of(keys[found < 0])


# ------------------------------------------------------------------------------- graphs

MOST_WORDS = 1 << 24
"""Number of words per turn: 128 MB, and half as much for their positions."""

DENSE = 8
"""Ids are numbered by a table of their range if it has at most this many entries per
id.
"""


class Numbers:
    """The sorted ids of some graphs; the position of an id is its node."""

    def __init__(self, *graphs: Paths) -> None:
        columns = []
        for paths in graphs:
            for pairs in {id(part): part for part in paths}.values():
                columns += [pairs.sources, pairs.targets]
        columns = [_own(column) for column in columns if column.size]
        self._table: Rows | None = None
        self._least = min((int(column.min()) for column in columns), default=0)
        most = max((int(column.max()) for column in columns), default=-1)
        span = most - self._least + 1
        if span <= DENSE * sum(column.size for column in columns):
            seen = np.zeros(span, np.uint8)
            for column in columns:
                kernels_closures.mark_ids(column, self._least, seen)
            self._table = np.cumsum(seen, dtype=np.int32)
            self._table -= 1
            self._table[seen == 0] = -1
            self.ids = np.flatnonzero(seen).astype(np.uint32)
            self.ids += np.uint32(self._least)
            return
        ids = np.concatenate(columns)
        ids.sort()
        keep = np.ones(ids.size, np.bool_)
        keep[1:] = ids[1:] != ids[:-1]
        self.ids = ids[keep]

    @property
    def size(self) -> int:
        """The number of nodes."""
        return self.ids.size

    def of(self, ids: Ids) -> Rows:
        """Return the nodes of ids, -1 for those that the graphs do not have."""
        if self._table is not None:
            nodes: Rows = np.empty(ids.size, np.int32)
            kernels_closures.look_up(_own(ids), self._least, self._table, nodes)
            return nodes
        nodes = np.searchsorted(self.ids, ids).astype(np.int32)
        nodes[nodes == self.ids.size] = 0
        nodes[self.ids[nodes] != ids] = -1
        return nodes


def _own(ids: Ids) -> Ids:
    """Return ids as contiguous, writable arrays, as the kernels require."""
    return np.require(ids, requirements=["C", "W"])


class _Links(NamedTuple):
    """An adjacency list of rows, with the successors of each in descending order."""

    starts: Rows
    targets: Rows

    @classmethod
    def of(cls, sources: Rows, targets: Rows, count: int) -> _Links:
        keys = sources.astype(np.uint64) << np.uint64(32)
        keys |= (~targets).view(np.uint32)
        return cls.of_keys(keys, count)

    @classmethod
    def of_keys(cls, keys: Keys, count: int) -> _Links:
        keys = kernels.sort_keys(keys, np.empty_like(keys))
        found = np.empty(keys.size, np.int32)
        starts = kernels_closures.adjacency(keys, count, found)
        return cls(starts, found[: starts[-1]])

    def and_then(self, others: _Links) -> _Links:
        """Append the successors of further rows."""
        starts = self.starts[-1] + others.starts[1:]
        return _Links(
            np.append(self.starts, starts), np.append(self.targets, others.targets)
        )


class Turn(NamedTuple):
    """The first place, the width of a full row in words, and the rows of each graph."""

    first: int
    width: int
    rows: list[Reach]


class Graph:
    """One closure: its nodes, and bit rows for the nodes that they reach.

    The rows of the components of the edges come first, each after those that it leads
    to; then rows of nodes with several seeds.

    Attributes:
        count: the number of rows.
        row: the row of each node, -1 if no seed begins with it.
    """

    def __init__(self, paths: Paths, numbers: Numbers) -> None:
        self.count = 0
        self.row: Rows = np.full(numbers.size, -1, np.int32)
        self._links = _Links(np.zeros(1, np.int32), np.empty(0, np.int32))
        self._heads: Rows = np.zeros(1, np.int32)
        self._members: Rows = np.empty(0, np.int32)
        self._is_alone = np.zeros(numbers.size, np.bool_)
        if paths.seeds.size:
            self._find_components(paths, numbers)
            if paths.seeds is not paths.edges:
                self._add_seeds(*(numbers.of(ids) for ids in paths.seeds))

    def _find_components(self, paths: Paths, numbers: Numbers) -> None:
        count = numbers.size
        sources, targets = (numbers.of(ids) for ids in paths.edges)
        grouped = np.empty(sources.size, np.int32)
        starts = kernels_closures.group(sources, targets, count, grouped)
        component = self._component = self.row
        self.count = kernels_closures.components(starts, grouped, component)
        self._members = np.empty(count, np.int32)
        nodes = np.arange(count, dtype=np.int32)
        self._heads = kernels_closures.group(
            component, nodes, self.count, self._members
        )
        keys = np.empty(sources.size, np.uint64)
        returns = np.zeros(self.count, np.uint8)
        used = kernels_closures.links(sources, targets, component, keys, returns)
        self._links = _Links.of_keys(keys[:used], self.count)
        if paths.seeds is paths.edges:
            # Every node reaches what its component reaches, but not itself unless it is
            # on a cycle.
            self._is_alone = (returns == 0)[component]

    def _add_seeds(self, begins: Rows, ends: Rows) -> None:
        """Make nodes reach what their seeds reach."""
        count = self.row.size
        seeds = _Links.of(begins, self._component[ends], count)
        sizes = np.diff(seeds.starts)
        self.row = np.full(count, -1, np.int32)
        self.row[sizes == 1] = seeds.targets[seeds.starts[:-1][sizes == 1]]
        several = sizes > 1
        more = int(np.count_nonzero(several))
        self.row[several] = np.arange(self.count, self.count + more, dtype=np.int32)
        self._links = self._links.and_then(
            _Links(
                np.append(np.int32(0), np.cumsum(sizes[several], dtype=np.int32)),
                seeds.targets[np.repeat(several, sizes)],
            )
        )
        self._heads = np.append(self._heads, np.full(more, self._heads[-1], np.int32))
        self.count += more

    def side(self, places: Rows) -> Side:
        """Return the node data for the loops over pairs."""
        return self.row, np.where(self._is_alone, places, np.int32(-1))

    def needed(self, sources: Rows) -> Flags:
        """Return the rows that some sources need."""
        marks = np.zeros(self.count, np.uint8)
        rows = self.row[sources]
        marks[rows[rows >= 0]] = 1
        kernels_closures.mark_forwards(*self._links, marks)
        return marks

    def reach(
        self, needed: Flags, places: Rows, first: int, width: int
    ) -> Reach | None:
        """Return the bit rows, restricted to nodes with a place; None if too large."""
        room = min(max(MOST_WORDS, self.count), self.count * width)
        # Untouched pages cost nothing.
        reach = (
            np.empty(self.count + 1, np.int64),
            np.empty(room, np.int32),
            np.empty(room, np.uint64),
            np.empty(self.count, np.int32),
        )
        nodes = (self._heads, self._members, places)
        used = kernels_closures.fill_rows(
            *self._links, needed, *nodes, first, width, reach
        )
        return reach if used >= 0 else None

    def leading_to(self, nodes: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return the nodes with a seed that leads to one of some nodes."""
        marks = np.zeros(self.count, np.uint8)
        marks[self._component[nodes]] = 1
        kernels_closures.mark_backwards(*self._links, marks)
        found: npt.NDArray[np.bool_] = marks[self.row] != 0
        found[self.row < 0] = False
        return found

    def reached_from(self, nodes: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return the nodes reachable along edges from some nodes, with these."""
        marks = np.zeros(self.count, np.uint8)
        marks[self._component[nodes]] = 1
        kernels_closures.mark_forwards(*self._links, marks)
        found: npt.NDArray[np.bool_] = marks[self._component] != 0
        return found


class Places:
    """The requested target nodes, and their bits."""

    def __init__(self, columns: npt.NDArray[np.int64], count: int) -> None:
        self.columns = columns
        self.of: Rows = np.full(count, -1, np.int32)
        self.of[columns] = np.arange(columns.size, dtype=np.int32)

    def turns(self, *parts: tuple[Graph, Flags]) -> Iterator[Turn]:
        """Yield the rows of graphs, for one range of places after the other."""
        first, size = 0, self.columns.size
        width = (size + 63) // 64
        while first < size:
            width = min(width, (size - first + 63) // 64)
            found = [g.reach(needed, self.of, first, width) for g, needed in parts]
            rows = [reach for reach in found if reach is not None]
            if len(rows) == len(found):
                yield Turn(first, width, rows)
                first += 64 * width
            else:
                # At a width of one, the rows always fit.
                width = (width + 1) // 2


# --------------------------------------------------------------------------- comparison

PIECE = 1 << 20
"""Number of pairs per list, so that lists stay in the cache."""


class Comparison:
    """The pairs of one closure that another one lacks.

    Args:
        paths: the closure.
        less: the closure whose pairs are excluded.
        through: if not None, only pairs with a path through one of these are needed;
            some others may be among the results.
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
        """Return nodes with a changed seed, or that lead to a changed edge."""
        near = self._graph.leading_to(self._nodes(through.edges.sources))
        return near | self._nodes(through.seeds.sources)

    def _nodes(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Return a mask of the nodes of ids; ids without a node are ignored."""
        found = np.zeros(self._numbers.size, np.bool_)
        nodes = self._numbers.of(ids)
        found[nodes[nodes >= 0]] = True
        return found

    def keep_ends(self, first: int | None, last: int | None) -> None:
        """Keep only pairs that begin with an id, or end with one."""
        ids = self._numbers.ids
        if first is not None:
            self._sources = self._sources[ids[self._sources] == first]
        if last is not None:
            columns = self._places.columns
            columns = columns[ids[columns] == last]
            self._places = Places(columns, self._numbers.size)

    def _turns(self) -> Iterator[Turn]:
        """Yield the rows of both closures, for one range of places after the other."""
        if not self._sources.size:
            return iter(())
        return self._places.turns(
            *((g, g.needed(self._sources)) for g in (self._graph, self._less))
        )

    def size(self) -> int:
        """Return the number of pairs."""
        return sum(int(self._counted(turn).sum()) for turn in self._turns())

    def _counted(self, turn: Turn) -> npt.NDArray[np.int64]:
        """Return the number of pairs for each source."""
        counts = np.empty(self._sources.size, np.int64)
        sides, ids = self._sides(turn), self._numbers.ids

        def count(part: slice) -> int:
            return kernels_closures.list_pairs(
                self._sources[part], turn.first, *sides, ids, ids, counts[part], NO_KEYS
            )

        in_slices(counts.size, count)
        return counts

    def _sides(self, turn: Turn) -> tuple[Side, Reach, Side, Reach]:
        """Return the data for the loops over pairs."""
        places, (reach, less_reach) = self._places.of, turn.rows
        return self._graph.side(places), reach, self._less.side(places), less_reach

    @property
    def nodes(self) -> Ids:
        """The ids of all nodes, in order."""
        return self._numbers.ids

    def keys(self, tell: Callable[[int], None] | None = None) -> Keys:
        """Return the pairs as sorted keys.

        Args:
            tell: receives the number of pairs so far, before they are written.
        """
        ids = self._numbers.ids
        parts = list(self._written(ids, ids[self._places.columns], tell))
        if len(parts) == 1:
            return parts[0]
        every = np.concatenate([np.empty(0, np.uint64), *parts])
        return kernels.sort_keys(every, np.empty_like(every))

    def numbered(self) -> Iterator[Pairs]:
        """Yield the pairs in several lists, as numbers of nodes."""
        numbers = np.arange(self._numbers.size, dtype=np.uint32)
        for keys in self._written(numbers, self._places.columns.astype(np.uint32)):
            for start in range(0, keys.size, PIECE):
                yield pairs_of(keys[start : start + PIECE])

    def _written(
        self, ids: Ids, ids_of_places: Ids, tell: Callable[[int], None] | None = None
    ) -> Iterator[Keys]:
        """Yield the pairs as keys, one list for each turn."""
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
    """Return which of some pairs a closure has."""
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
