"""Bounded searches in the graph of a closure: what a few changed facts lead to.

`ClosureIndexes` has the graphs and finds the one to search in.

The pairs that one graph has and a smaller one has not are all on paths through changed
entries (*u*, *v*). Their sources lead to some *u*, and their targets are reached from
some *v*: two searches, one back from all *u*, one on from all *v*. Then

1. a changed entry is left out if the smaller graph has a path from *u* to *v* anyway:
   no pair needs it (both ends are searched from, so this costs what the smaller does);
2. where there are few sources, or few targets, both graphs are walked through from
   each of the fewer, and what is found is compared;
3. else all entries are gathered that the sources lead to, or all that lead to the
   targets, whichever are found at less cost. No path between a source and a target has
   any other entry, so comparing the small graphs is comparing the large ones.

Each search has a cost limit, in entries looked at: a share of all entries. A search
that reaches it says so, and the graphs are compared as a whole.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from evermat.algebra import ClosureKind
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.closure_graphs import (
    NO_PAIRS,
    Comparison,
    Pairs,
    joined,
    paths_of,
)
from evermat.engines.embedded.closure_index import (
    BACKWARDS,
    FORWARDS,
    HOPPED,
    MORE,
    SOURCES,
    TARGETS,
    ClosureIndex,
    EntrySet,
    Term,
    entry_columns,
    terms_of,
)
from evermat.engines.embedded.fact_sets import Marker, Settled
from evermat.engines.embedded.kernels import closure_search as kernels
from evermat.engines.embedded.kernels import keys as kernels_keys
from evermat.engines.embedded.kernels.closure_search import (
    ANY_COUNT,
    NO_COUNT,
    NONRECURSIVE_COUNT,
)
from evermat.engines.embedded.relation import NONRECURSIVE, RECURSIVE, Fitting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import numpy.typing as npt

    from evermat.algebra import Closure, Facts, Pattern
    from evermat.engines.embedded.arrays import Keys, Places, Rows
    from evermat.engines.embedded.kernels.closure_search import Part
    from evermat.engines.embedded.relation import Relation
    from evermat.engines.embedded.views import Code, Sets

    Terms = tuple[list[Term], list[Term]]
    """The views whose facts belong to the first graph, and to the second."""
    Constants = Callable[[Pattern], Mapping[int, int]]

SHARE = 4
"""A search may look at one entry in so many."""

LEAST = 1 << 12
"""It may always look at so many."""

FEW_CHANGES = 16
"""Up to this many changed entries are tried one by one whether they are needed; more
are only where they are one in `SHARE_OF_CHANGES` entries."""

SHARE_OF_CHANGES = 64

TRIED = 1 << 10
"""Entries that are looked at to find out whether a changed one is needed."""

WALKED = 1 << 16
"""Entries that are looked at where graphs are walked through from each source."""

REMEMBERED = 1 << 14
"""Entries that are looked at to find those by which two graphs can differ."""

MOST_PAIRS = 1 << 15
"""Pairs that walking through graphs may find."""

BOTH_WAYS = kernels.BOTH_WAYS

ALL, LESS, EITHER = 1, 2, 3
"""Graphs to walk through, as bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """The entries that two graphs differ in, or some of them, by ids.

    Where paths begin with what they go on with, both are the same.
    """

    seeds: Pairs
    edges: Pairs

    @property
    def size(self) -> int:
        """How many there are."""
        return self.seeds.size + (0 if self.edges is self.seeds else self.edges.size)


class Search:
    """Searches in two graphs that have their entries from one index.

    Args:
        index: the entries.
        seeds, edges: the same with what tells which graph they belong to.
    """

    def __init__(
        self, closure: Closure, index: ClosureIndex, seeds: Part, edges: Part
    ) -> None:
        self._closure = closure
        self._index = index
        self._seeds = seeds
        self._edges = edges
        self._limit = max(LEAST, index.count // SHARE)

    # ------------------------------------------------------------------ single pairs

    def has_pairs(self, pairs: Pairs) -> npt.NDArray[np.bool_] | None:
        """Which pairs the first graph has; None if that costs too much."""
        found = np.zeros(pairs.size, np.bool_)
        cost = self._cost(self._limit)
        nodes = [self._index.nodes(ids).tolist() for ids in pairs]
        for at, (first, second) in enumerate(zip(*nodes, strict=True)):
            if first >= 0 and second >= 0:
                answer = self._leads_to(first, second, ALL, cost)
                if answer < 0:
                    return None
                found[at] = answer > 0
        return found

    def _leads_to(
        self, first: int, second: int, graphs: int, cost: Places, *, edges: bool = False
    ) -> int:
        index = self._index
        search = index.searches(1)
        return kernels.leads_to(
            self._edges if edges else self._seeds,
            self._edges,
            edges or index.is_one_set,
            index.side,
            0 if edges else index.loops,
            graphs,
            first,
            second,
            index.marks(FORWARDS),
            index.marks(BACKWARDS),
            search,
            cost,
        )

    def pairs_at(self, *, first: int | None, last: int | None) -> Pairs | None:
        """The pairs of the first graph that begin or end with a constant, in order.

        None if that costs too much.
        """
        index, one = self._index, first if first is not None else last
        assert one is not None  # noqa: S101  for the type checker
        wanted = np.array([one], np.uint32)
        start = index.nodes(wanted)
        if start[0] < 0:
            return NO_PAIRS
        cost = self._cost(self._limit)
        nodes = (
            self._reached(start, FORWARDS, ALL, cost)
            if first is not None
            else self._leading(start, FORWARDS, ALL, cost)
        )
        if nodes is None:
            return None
        ids = index.ids[nodes]
        if index.loops:
            answer = self._leads_to(
                int(start[0]), int(start[0]), ALL, self._cost(self._limit)
            )
            if answer < 0:
                return None
            ids = ids[ids != one]
            if answer:
                ids = np.append(ids, wanted)
        ids = np.sort(ids)
        ends = np.full(ids.size, one, np.uint32)
        pairs = Pairs(ends, ids) if first is not None else Pairs(ids, ends)
        if first is not None and last is not None:
            keep = pairs.targets == last
            pairs = Pairs(pairs.sources[keep], pairs.targets[keep])
        return pairs

    # -------------------------------------------------------------------- comparison

    def compare(self, changes: Changes) -> Keys | None:
        """Pairs that the first graph has and the second has not, as sorted keys.

        All of those with a path through a change are among them. None if the search
        costs too much.
        """
        ends = self._ends(changes)
        if ends is None:
            return None
        sources, targets = ends
        if not sources.size or not targets.size:
            return np.empty(0, np.uint64)
        keys = self._walked(sources, targets)
        if keys is None:
            gathered = self._gathered(sources, targets)
            if gathered is None:
                return None
            return self._compared(changes, *gathered)
        return kernels_keys.sort_keys(keys, np.empty_like(keys))

    def differing(
        self, removed: Changes, added: Changes
    ) -> list[tuple[Pairs, Pairs]] | None:
        """Seeds and edges of both graphs that tell in which pairs they differ.

        None if that costs too much; to remember both graphs costs little.

        Args:
            removed: entries of the first graph that the second has not.
            added: entries of the second graph that the first has not.
        """
        self._limit = min(self._limit, REMEMBERED)
        if not self._are_needed(removed, LESS) and not self._are_needed(added, ALL):
            return [(NO_PAIRS, NO_PAIRS), (NO_PAIRS, NO_PAIRS)]
        both = Changes(
            joined(removed.seeds, added.seeds), joined(removed.edges, added.edges)
        )
        ends = self._ends(both, graphs=EITHER)
        found = None if ends is None else self._gathered(*ends)
        if found is None:
            return None
        return [
            self._as_given(each.pairs(graph) for each in found) for graph in (ALL, LESS)
        ]

    def _are_needed(self, changes: Changes, graphs: int) -> bool:
        """Whether a graph may lack a path for one of some changed entries."""
        seeds, edges = self._changed_nodes(changes)
        if seeds.shape[1] + edges.shape[1] > FEW_CHANGES:
            return True
        needed = self._needed(seeds, graphs, is_edge=False).size
        return bool(needed or self._needed(edges, graphs, is_edge=True).size)

    def _ends(self, changes: Changes, graphs: int = ALL) -> tuple[Rows, Rows] | None:
        """All nodes that lead to a change, and all that one leads to."""
        index, cost = self._index, self._cost(self._limit)
        seeds, edges = self._changed_nodes(changes)
        if seeds.shape[1] + edges.shape[1] > self._most_changes:
            return None
        if graphs == ALL and seeds.shape[1] + edges.shape[1] <= FEW_CHANGES:
            seeds = self._needed(seeds, LESS, is_edge=False)
            edges = self._needed(edges, LESS, is_edge=True)
        if not seeds.size and not edges.size:
            return NO_ROWS, NO_ROWS
        begins, ends = self._starts(seeds, edges)
        sources = self._spread(begins, SOURCES, 1, graphs, cost)
        if sources is not None and not index.is_one_set:
            sources = self._hop(sources, SOURCES, 1, graphs, cost, also=seeds[0])
        if sources is None:
            return None
        if index.side == BOTH_WAYS:
            return sources, sources
        targets = self._spread(ends, TARGETS, 0, graphs, cost)
        return None if targets is None else (sources, targets)

    def _starts(
        self, seeds: npt.NDArray[np.int32], edges: npt.NDArray[np.int32]
    ) -> tuple[Rows, Rows]:
        """Where to search back from along edges, and where to search on from."""
        index = self._index
        begins, ends = [edges[0]], [edges[1], seeds[1]]
        if index.is_one_set:
            begins.append(seeds[0])
        for at in (0, 1):
            if index.loops & 1 << at:  # pairs of a constant with itself
                begins.append(seeds[at])
                ends.append(seeds[at])
        if index.side == BOTH_WAYS:
            begins = ends = [*begins, *ends]
        return np.concatenate(begins), np.concatenate(ends)

    @property
    def _most_changes(self) -> int:
        return max(FEW_CHANGES, self._index.count // SHARE_OF_CHANGES)

    def _changed_nodes(
        self, changes: Changes
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """The nodes of changed seeds, and those of edges if they are others."""
        seeds = self._nodes_of(changes.seeds)
        if self._index.is_one_set:
            return seeds, seeds[:, :0]
        return seeds, self._nodes_of(changes.edges)

    def _nodes_of(self, pairs: Pairs) -> npt.NDArray[np.int32]:
        """The nodes of changed entries, those left out that no graph has."""
        nodes = np.stack([self._index.nodes(ids) for ids in pairs])
        return nodes[:, (nodes >= 0).all(axis=0)]

    def _needed(
        self, nodes: npt.NDArray[np.int32], graphs: int, *, is_edge: bool
    ) -> npt.NDArray[np.int32]:
        """The changed entries that a graph has no path instead of, as far as known."""
        keep = [
            self._leads_to(first, second, graphs, self._cost(TRIED), edges=is_edge) <= 0
            for first, second in nodes.T.tolist()
        ]
        return nodes[:, keep]

    def _walked(self, sources: Rows, targets: Rows) -> Keys | None:
        """The pairs, by walking from each source, or back from each target."""
        index = self._index
        is_backwards = targets.size < sources.size
        starts = targets if is_backwards else sources
        if starts.size > min(WALKED, self._limit):
            return None
        last = index.searches(starts.size + 1)
        self._marked(sources if is_backwards else targets, TARGETS, last)
        keys = np.empty(MOST_PAIRS, np.uint64)
        found = kernels.compare(
            self._seeds,
            self._edges,
            index.side,
            index.loops,
            is_backwards,
            starts,
            starts.size,
            index.marks(TARGETS)[0],
            last,
            index.marks(FORWARDS),
            index.marks(BACKWARDS),
            index.marks(HOPPED),
            index.marks(MORE),
            last + 1,
            index.ids,
            keys,
            self._cost(min(WALKED, self._limit)),
        )
        return None if found < 0 else keys[:found].copy()

    def _gathered(self, sources: Rows, targets: Rows) -> list[Gathered] | None:
        """The entries that sources lead to, or that lead to targets."""
        limit = LEAST
        while True:
            limit = min(limit, self._limit)
            found = self._onwards(sources, self._cost(limit))
            if found is None and not self._index.side:
                found = self._back(targets, self._cost(limit))
            if found is not None or limit == self._limit:
                return found
            limit *= 4

    def _onwards(self, sources: Rows, cost: Places) -> list[Gathered] | None:
        index = self._index
        if index.is_one_set:
            nodes = self._spread(sources, FORWARDS, index.side, EITHER, cost)
            parts = [(self._seeds, index.seeds, nodes)]
        else:
            nodes = self._hop(sources, FORWARDS, 0, EITHER, cost)
            if nodes is not None:
                nodes = self._spread(nodes, FORWARDS, 0, EITHER, cost)
            parts = [
                (self._seeds, index.seeds, sources),
                (self._edges, index.edges, nodes),
            ]
        return self._entries(parts, 0, cost)

    def _back(self, targets: Rows, cost: Places) -> list[Gathered] | None:
        index = self._index
        nodes = self._spread(targets, BACKWARDS, 1, EITHER, cost)
        parts = [(self._seeds, index.seeds, nodes)]
        if not index.is_one_set:
            parts.append((self._edges, index.edges, nodes))
        return self._entries(parts, 1, cost)

    def _entries(
        self, parts: list[tuple[Part, EntrySet, Rows | None]], way: int, cost: Places
    ) -> list[Gathered] | None:
        gathered = []
        for part, entries, nodes in parts:
            if nodes is None:
                return None
            room = min(int(cost[0]), entries.count) + 1
            chosen: Rows = np.empty(room, np.int32)
            graphs = np.empty(room, np.uint8)
            size = kernels.gather(part, way, nodes, nodes.size, chosen, graphs, cost)
            if size < 0:
                return None
            gathered.append(Gathered(entries, chosen[:size], graphs[:size]))
        return gathered

    def _compared(self, changes: Changes, *gathered: Gathered) -> Keys:
        every, less = (
            paths_of(
                self._closure,
                *self._as_given(each.pairs(graph) for each in gathered),
            )
            for graph in (ALL, LESS)
        )
        seeds, edges = self._as_given((changes.seeds, changes.edges))
        return Comparison(every, less, paths_of(self._closure, seeds, edges)).keys()

    def _as_given(self, parts: Iterable[Pairs]) -> tuple[Pairs, Pairs]:
        """Seeds and edges as the closure has them, which may walk backwards."""
        pairs = list(parts)
        if self._closure.kind is ClosureKind.RIGHT_LINEAR:
            pairs = [each.flipped() for each in pairs]
        return pairs[0], pairs[-1]

    # ---------------------------------------------------------------------- searches

    def _cost(self, limit: int) -> Places:
        return np.array([limit], np.int64)

    def _reached(
        self, start: Rows, which: int, graphs: int, cost: Places
    ) -> Rows | None:
        """The nodes that one node has pairs with."""
        nodes = self._hop(start, which, 0, graphs, cost)
        if nodes is None:
            return None
        return self._spread(nodes, which, self._index.side, graphs, cost)

    def _leading(
        self, start: Rows, which: int, graphs: int, cost: Places
    ) -> Rows | None:
        """The nodes that have pairs with one node."""
        nodes = self._spread(start, which, 1, graphs, cost)
        return None if nodes is None else self._hop(nodes, which, 1, graphs, cost)

    def _marked(self, nodes: Rows, which: int, search: int = 0) -> tuple[Rows, int]:
        """Mark nodes, and list each of them once."""
        nodes = _distinct(nodes)
        search = search or self._index.searches(1)
        met, reached = self._index.marks(which)
        met[nodes] = search
        reached[: nodes.size] = nodes
        return reached[: nodes.size].copy(), search

    def _spread(
        self, nodes: Rows, which: int, side: int, graphs: int, cost: Places
    ) -> Rows | None:
        """The nodes, and all that edges lead to, or back from for side 1."""
        marked, search = self._marked(nodes, which)
        side = BOTH_WAYS if self._index.side else side
        found = kernels.spread(
            self._edges,
            side,
            graphs,
            self._index.marks(which),
            search,
            marked.size,
            cost,
        )
        return None if found < 0 else self._index.marks(which)[1][:found].copy()

    def _hop(
        self,
        nodes: Rows,
        which: int,
        side: int,
        graphs: int,
        cost: Places,
        also: Rows | None = None,
    ) -> Rows | None:
        """Where the seeds of nodes lead to, or come from, and some others."""
        marked, search = self._marked(
            np.empty(0, np.int32) if also is None else also, which
        )
        side = BOTH_WAYS if self._index.side else side
        found = kernels.hop(
            self._seeds,
            side,
            graphs,
            nodes,
            nodes.size,
            self._index.marks(which),
            search,
            marked.size,
            cost,
        )
        return None if found < 0 else self._index.marks(which)[1][:found].copy()


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """Some entries, and the graphs that each belongs to."""

    entries: EntrySet
    chosen: Rows
    graphs: npt.NDArray[np.uint8]

    def pairs(self, graph: int) -> Pairs:
        """The entries of a graph, as pairs of ids."""
        return Pairs(*self.entries.pairs(self.chosen[(self.graphs & graph) != 0]))


def _distinct(nodes: Rows) -> Rows:
    nodes = np.sort(nodes)
    keep = np.ones(nodes.size, np.bool_)
    keep[1:] = nodes[1:] != nodes[:-1]
    return nodes[keep]


# ----------------------------------------------------------------- graphs that are kept

MOST_BITS = 4
"""Status bits that a search may need."""

MOST_ENTRIES = 1 << 23
"""Rows that entries are made for; an entry takes 28 bytes, and a node 60."""

_NEEDS = {None: NO_COUNT, False: ANY_COUNT, True: NONRECURSIVE_COUNT}


class ClosureIndexes:
    """The graphs of a store, as far as searches have asked for them.

    A closure can have two: one of the facts with a count, and one of all facts.
    """

    def __init__(self, relations: Mapping[str, Relation], sets: Sets) -> None:
        self._relations = relations
        self._sets = sets
        self._indexes: dict[tuple[Closure, bool], ClosureIndex] = {}

    @property
    def has_any(self) -> bool:
        """Whether a graph is kept."""
        return bool(self._indexes)

    @contextmanager
    def search(
        self,
        closure: Closure,
        views: tuple[Facts, Facts | None],
        changes: int,
        constants: Constants,
    ) -> Iterator[Search | None]:
        """A search in the graphs of two views, None if that is not worth it.

        Settled facts have status bits as long as the block lasts.

        Args:
            closure: what the graphs are for.
            views: the facts of both.
            changes: how many entries they differ in, as far as that matters.
            constants: the ids that a pattern has, by position.
        """
        terms = self._terms(closure, *views)
        index = None
        if terms is not None and self._sets.has_bits(MOST_BITS):
            index = self._index(closure, terms, changes, constants)
        if terms is None or index is None:
            yield None
            return
        index.catch_up()
        _add_settled(index, terms)
        with Marker(self._sets) as marker:
            parts = [
                self._part(entries, some, marker)
                for entries, some in zip(index.sets, terms, strict=True)
            ]
            yield Search(closure, index, parts[0], parts[-1])

    def _terms(
        self, closure: Closure, facts: Facts, less: Facts | None
    ) -> list[Terms] | None:
        """What seeds, and edges if they are others, belong to either graph."""
        if closure.kind is ClosureKind.PLAIN:
            return None
        found = []
        for pattern in _patterns(closure):
            if pattern.relation not in self._relations:
                return None
            every = terms_of(facts, pattern)
            fewer = [] if less is None else terms_of(less, pattern)
            if every is None or fewer is None:
                return None
            found.append((every, fewer))
        return found

    def _index(
        self,
        closure: Closure,
        terms: list[Terms],
        changes: int,
        constants: Constants,
    ) -> ClosureIndex | None:
        """The index for some views; None if it is not worth making one."""
        is_counted = not any(
            which is None and not isinstance(view, Settled)
            for some in terms[0]
            for view, which in some
        )
        key = closure, is_counted
        index = self._indexes.get(key)
        relations = [self._relations[each.relation] for each in _patterns(closure)]
        if index is not None:
            if index.is_current and index.relations == relations:
                return index
            index.leave()
            del self._indexes[key]
        # A closure can have many times more facts than it starts from.
        size = sum(
            min(relation.alive, relation.counted_until)
            if is_counted and pattern is closure.pattern
            else relation.alive
            for relation, pattern in zip(relations, _patterns(closure), strict=True)
        )
        if size > MOST_ENTRIES or changes > max(FEW_CHANGES, size // SHARE_OF_CHANGES):
            return None
        sets = [
            EntrySet(
                relation,
                entry_columns(closure, pattern),
                Fitting(relation, constants(pattern)),
                is_counted=is_counted and pattern is closure.pattern,
            )
            for relation, pattern in zip(relations, _patterns(closure), strict=True)
        ]
        index = self._indexes[key] = ClosureIndex(closure, sets[0], sets[-1])
        return index

    def _part(self, entries: EntrySet, terms: Terms, marker: Marker) -> Part:
        """What the compiled loops know of entries."""
        sets, relation = self._sets, entries.relation
        codes: dict[int, Code] = {}
        for some, place in zip(terms, (0, 3), strict=True):
            for view, which in some:
                if sets.sees_any(view, relation.name):
                    need = _NEEDS[which] << place
                    code = sets.code(view, relation.name, marker)
                    known = codes.get(need)
                    codes[need] = code if known is None else ("|", known, code)
        table = sets.classified(codes)
        # Where no count is asked for, none is looked at.
        first = second = NO_ROWS
        if any(number & ~(NO_COUNT | NO_COUNT << 3) for number in codes):
            first, second = relation.counter(NONRECURSIVE), relation.counter(RECURSIVE)
        return entries.arrays, (relation.status, first, second, table)


def _patterns(closure: Closure) -> tuple[Pattern, ...]:
    """What seeds are, and edges if they are something else."""
    if closure.edges is None:
        return (closure.pattern,)
    return closure.pattern, closure.edges


def _add_settled(index: ClosureIndex, terms: list[Terms]) -> None:
    """Have entries for settled facts, whether they have a count or not."""
    for entries, (every, fewer) in zip(index.sets, terms, strict=True):
        for view, which in (*every, *fewer):
            if entries.is_counted and which is None:
                rows = cast("Settled", view).rows[entries.relation.name]
                index.add(entries, entries.fitting(rows))
