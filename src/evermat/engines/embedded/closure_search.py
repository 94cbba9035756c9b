"""Bounded searches in the graph of a closure, for the consequences of a few changes.

`ClosureIndexes` stores the graphs and finds the one to search in.

The pairs that one graph has and a smaller one lacks all have paths through changed
entries (*u*, *v*). Their sources reach some *u*, and their targets are reached from
some *v*: two searches, one backwards from all *u*, one forwards from all *v*. Then

1. a changed entry is skipped if the smaller graph has a path from *u* to *v* anyway: no
   pair needs it (the search is bidirectional, so its cost is that of the smaller side);
2. if there are few sources, or few targets, both graphs are traversed from each of the
   fewer, and the results are compared;
3. otherwise all entries reachable from the sources are gathered, or all that lead to
   the targets, whichever costs less. No path between a source and a target has any
   other entry, so comparing the gathered graphs compares the full ones.

Each search has a cost limit, in entries visited: a share of all entries. If a search
exceeds it, the caller compares the full graphs.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from evermat.algebra import ClosureKind
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.closure_graphs import (
    NO_PAIRS,
    Comparison,
    Pairs,
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
"""A search may visit one entry in this many."""

LEAST = 1 << 12
"""A search may always visit this many entries."""

FEW_CHANGES = 16
"""Up to this many changed entries are each tested for whether they are needed; more are
allowed only if they are one in `SHARE_OF_CHANGES` entries.
"""

SHARE_OF_CHANGES = 64

TRIED = 1 << 10
"""Cost limit for testing whether a changed entry is needed, in entries."""

WALKED = 1 << 16
"""Cost limit for traversing graphs from each source, in entries."""

REMEMBERED = 1 << 14
"""Cost limit for finding the entries by which two graphs can differ, in entries."""

MOST_PAIRS = 1 << 15
"""The largest number of pairs found by traversing graphs."""

BOTH_WAYS = kernels.BOTH_WAYS

ALL, LESS, EITHER = 1, 2, 3
"""Graphs to traverse, as bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """The entries in which two graphs differ, or some of them, by ids.

    If seeds and edges are the same facts, both attributes are the same object.
    """

    seeds: Pairs
    edges: Pairs

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.seeds.size + (0 if self.edges is self.seeds else self.edges.size)


class ChangedNodes(NamedTuple):
    """The nodes of changed entries, in two rows: those of seeds, and of other edges."""

    seeds: npt.NDArray[np.int32]
    edges: npt.NDArray[np.int32]


class Search:
    """A search in two graphs whose entries are in one index.

    Args:
        index: the entries.
        seeds, edges: the same, with the data that decides which graph they belong to.
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
        """Return which pairs the first graph has; None if that costs too much."""
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
        """Return the sorted pairs of the first graph that begin or end with a constant.

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
        """Return pairs that the first graph has and the second lacks, as sorted keys.

        They include all such pairs with a path through a change. None if the search
        costs too much.
        """
        ends = self._ends(self._changed_nodes(changes))
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
        """Return seeds and edges of both graphs that determine their difference.

        None if that costs too much; remembering both graphs is cheap.

        Args:
            removed: entries of the first graph that the second lacks.
            added: entries of the second graph that the first lacks.
        """
        self._limit = min(self._limit, REMEMBERED)
        lost, gained = self._changed_nodes(removed), self._changed_nodes(added)
        if not self._are_needed(lost, LESS) and not self._are_needed(gained, ALL):
            return [(NO_PAIRS, NO_PAIRS), (NO_PAIRS, NO_PAIRS)]
        seeds = np.concatenate((lost.seeds, gained.seeds), axis=1)
        edges = np.concatenate((lost.edges, gained.edges), axis=1)
        ends = self._ends(ChangedNodes(seeds, edges), graphs=EITHER)
        found = None if ends is None else self._gathered(*ends)
        if found is None:
            return None
        return [
            self._as_given(each.pairs(graph) for each in found) for graph in (ALL, LESS)
        ]

    def _are_needed(self, changed: ChangedNodes, graphs: int) -> bool:
        """Return whether a graph may lack a path that replaces a changed entry."""
        seeds, edges = changed
        if seeds.shape[1] + edges.shape[1] > FEW_CHANGES:
            return True
        needed = self._needed(seeds, graphs, is_edge=False).size
        return bool(needed or self._needed(edges, graphs, is_edge=True).size)

    def _ends(
        self, changed: ChangedNodes, graphs: int = ALL
    ) -> tuple[Rows, Rows] | None:
        """Return all nodes that lead to a change, and all nodes reached from one."""
        index, cost = self._index, self._cost(self._limit)
        seeds, edges = changed
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
        """Return where to search backwards from, and where to search forwards."""
        index = self._index
        begins, ends = [edges[0]], [edges[1], seeds[1]]
        if index.is_one_set:
            begins.append(seeds[0])
        for at in (0, 1):
            if index.loops & 1 << at:  # loops
                begins.append(seeds[at])
                ends.append(seeds[at])
        if index.side == BOTH_WAYS:
            begins = ends = [*begins, *ends]
        return np.concatenate(begins), np.concatenate(ends)

    @property
    def _most_changes(self) -> int:
        return max(FEW_CHANGES, self._index.count // SHARE_OF_CHANGES)

    def _changed_nodes(self, changes: Changes) -> ChangedNodes:
        seeds = self._nodes_of(changes.seeds)
        if self._index.is_one_set:
            return ChangedNodes(seeds, seeds[:, :0])
        return ChangedNodes(seeds, self._nodes_of(changes.edges))

    def _nodes_of(self, pairs: Pairs) -> npt.NDArray[np.int32]:
        """Return the nodes of changed entries, without those that no graph has."""
        nodes = self._index.nodes(np.concatenate(pairs)).reshape(2, -1)
        return nodes[:, (nodes >= 0).all(axis=0)]

    def _needed(
        self, nodes: npt.NDArray[np.int32], graphs: int, *, is_edge: bool
    ) -> npt.NDArray[np.int32]:
        """Return the changed entries without a known replacement path."""
        keep = [
            self._leads_to(first, second, graphs, self._cost(TRIED), edges=is_edge) <= 0
            for first, second in nodes.T.tolist()
        ]
        return nodes[:, keep]

    def _walked(self, sources: Rows, targets: Rows) -> Keys | None:
        """Return the pairs, by searching from each source, or back from each target."""
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
        """Return the entries reachable from sources, or those that lead to targets."""
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
        """Return seeds and edges in the closure's own direction."""
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
        """Return the nodes that one node has pairs with."""
        nodes = self._hop(start, which, 0, graphs, cost)
        if nodes is None:
            return None
        return self._spread(nodes, which, self._index.side, graphs, cost)

    def _leading(
        self, start: Rows, which: int, graphs: int, cost: Places
    ) -> Rows | None:
        """Return the nodes that have pairs with one node."""
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
        """Return the nodes, and all reached along edges, or backwards for side 1."""
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
        """Return the nodes at the other ends of the seeds of nodes, and `also`."""
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
        """Return the entries of a graph, as pairs of ids."""
        return Pairs(*self.entries.pairs(self.chosen[(self.graphs & graph) != 0]))


def _distinct(nodes: Rows) -> Rows:
    if nodes.size <= 1:
        return nodes
    nodes = np.sort(nodes)
    keep = np.ones(nodes.size, np.bool_)
    keep[1:] = nodes[1:] != nodes[:-1]
    return nodes[keep]


# ----------------------------------------------------------------- graphs that are kept

MOST_BITS = 4
"""Status bits that a search may need."""

MOST_ENTRIES = 1 << 23
"""Largest number of rows to build entries for; an entry takes 28 bytes, a node 60."""

_NEEDS = {None: NO_COUNT, False: ANY_COUNT, True: NONRECURSIVE_COUNT}


class ClosureIndexes:
    """The graphs of a store, built when a search needs them.

    A closure can have two: one of the facts with a count, and one of all facts.
    """

    def __init__(self, relations: Mapping[str, Relation], sets: Sets) -> None:
        self._relations = relations
        self._sets = sets
        self._indexes: dict[tuple[Closure, bool], ClosureIndex] = {}

    @property
    def has_any(self) -> bool:
        """Whether a graph is stored."""
        return bool(self._indexes)

    @contextmanager
    def search(
        self,
        closure: Closure,
        views: tuple[Facts, Facts | None],
        changes: int,
        constants: Constants,
    ) -> Iterator[Search | None]:
        """Yield a search in the graphs of two views, or None if it is not worthwhile.

        Settled facts have status bits while the block lasts.

        Args:
            closure: the closure of the graphs.
            views: the facts of both graphs.
            changes: the number of entries they differ in, as far as that matters.
            constants: the ids of a pattern's constants, by position.
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
        """Return the views of seeds, and of distinct edges, for both graphs."""
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
        """Return the index for some views; None if it is not worth building one."""
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
        # A closure can have many times more facts than external facts.
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
        """Return the entries and visibility data for the compiled loops."""
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
        # Counters are read only if some view depends on them.
        first = second = NO_ROWS
        if any(number & ~(NO_COUNT | NO_COUNT << 3) for number in codes):
            first, second = relation.counter(NONRECURSIVE), relation.counter(RECURSIVE)
        return entries.arrays, (relation.status, first, second, table)


def _patterns(closure: Closure) -> tuple[Pattern, ...]:
    """Return the pattern of seeds, and that of edges if it is a different one."""
    if closure.edges is None:
        return (closure.pattern,)
    return closure.pattern, closure.edges


def _add_settled(index: ClosureIndex, terms: list[Terms]) -> None:
    """Add entries for settled facts, whether they have a count or not."""
    for entries, (every, fewer) in zip(index.sets, terms, strict=True):
        for view, which in (*every, *fewer):
            if entries.is_counted and which is None:
                rows = cast("Settled", view).rows[entries.relation.name]
                index.add(entries, entries.fitting(rows))
