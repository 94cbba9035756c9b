"""Compiled loops over the graphs of closures: growth, and searches with a cost limit.

A graph has *nodes*, numbered as they come, and one or two sets of *entries*, which are
rows of a relation: `seeds`, with which paths begin, and `edges`, along which they go
on; they are the same set where a closure is transitive. The entries of a node are a
linked list, one for each *way*: 0 leads from a source to targets, 1 back. `heads[way,
node]` is the first entry, `nexts[way, entry]` the one after it, -1 ends a list, and
`ends[1 - way, entry]` is where an entry leads.

An entry is only a row that may belong to the graph. Whether it does is decided when a
search meets it, from the status and the counters of its row: see `_views_of`. A search
looks at two graphs at once, *all* (bit 1) and *less* (bit 2).

A *side* is the ways that a search takes: 0, 1, or 2 for both. Nodes are marked with the
number of the search, so that no marks have to be cleared. Each entry that a search
looks at lowers `cost[0]`; below zero the search ends with -1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.keys import inner_kernel, kernel, uint64

if TYPE_CHECKING:
    import numpy.typing as npt

    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Places, Rows, Status

    Lists = npt.NDArray[np.int32]
    """An array for each of the two ways."""
    Entries = tuple[Lists, Lists, Lists, Rows]
    """The heads, nexts and ends of entries, and their rows."""
    Views = tuple[Status, Rows, Rows, Flags]
    """The status and both counters of a relation, and for each status how its rows
    belong to the two graphs, see `_views_of`."""
    Part = tuple[Entries, Views]
    """One of the two sets of entries."""
    Marks = tuple[Rows, Rows]
    """For each node the last search that met it, and room for the nodes in turn."""

ANY_COUNT, NONRECURSIVE_COUNT, NO_COUNT = 1, 2, 4
"""A row with some status belongs to a graph if it has a count, a nonrecursive count, or
in any case: bits of the first graph, and three places higher those of the second."""

BOTH_WAYS = 2
"""The side of searches that go along entries and back."""

_HALF = np.uint64(32)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

_ENTRIES = "Tuple((int32[:, ::1], int32[:, ::1], int32[:, ::1], int32[::1]))"
_VIEWS = "Tuple((uint16[::1], int32[::1], int32[::1], uint8[::1]))"
_PART = f"Tuple(({_ENTRIES}, {_VIEWS}))"
_MARKS = "UniTuple(int32[::1], 2)"


# ------------------------------------------------------------------------- growth


@inner_kernel("int64(uint32, int64)")
def _first_slot(one: int, mask: int) -> int:
    hashed = np.int64((uint64(one) * _MULTIPLIER) >> _HALF)
    return hashed & mask  # type: ignore[return-value]


@inner_kernel("int32(uint32, uint32[::1], int32[::1])")
def _node_of(one: int, ids: Ids, slots: Rows) -> int:
    """The node of an id, -1 if there is none."""
    mask = slots.size - 1
    slot = _first_slot(one, mask)
    while slots[slot] >= 0 and ids[slots[slot]] != one:
        slot = (slot + 1) & mask
    return slots[slot]


@kernel("void(uint32[::1], uint32[::1], int32[::1], int32[::1])")
def find_nodes(wanted: Ids, ids: Ids, slots: Rows, nodes: Rows) -> None:
    """The nodes of ids, -1 for those that are in no graph."""
    for at in range(wanted.size):
        nodes[at] = _node_of(wanted[at], ids, slots)


@kernel("void(uint32[::1], int64, int32[::1])")
def fill_slots(ids: Ids, count: int, slots: Rows) -> None:
    """Put all nodes into a larger table."""
    mask = slots.size - 1
    for node in range(count):
        slot = _first_slot(ids[node], mask)
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = node


@inner_kernel("int32(uint32, uint32[::1], int32[::1], int64[::1])")
def _require_node(one: int, ids: Ids, slots: Rows, sizes: Places) -> int:
    mask = slots.size - 1
    slot = _first_slot(one, mask)
    while slots[slot] >= 0:
        if ids[slots[slot]] == one:
            return slots[slot]
        slot = (slot + 1) & mask
    node = np.int32(sizes[0])
    slots[slot] = node
    ids[node] = one
    sizes[0] += 1
    return node  # type: ignore[return-value]


@kernel(
    "int64(int32[::1], uint32[::1], uint32[::1], uint8[::1], uint32[::1], int32[::1],"
    f"int64[::1], {_ENTRIES}, int64)"
)
def add_entries(
    rows: Rows,
    sources: Ids,
    targets: Ids,
    seen: Flags,
    ids: Ids,
    slots: Rows,
    sizes: Places,
    entries: Entries,
    count: int,
) -> int:
    """Add rows that are not there yet; returns how many entries there are.

    There must be room for all of them. `seen` has a bit for each row, and `sizes[0]` is
    the number of nodes.
    """
    heads, nexts, ends, numbers = entries
    for at in range(rows.size):
        row = rows[at]
        bit = np.uint8(1 << (row & 7))
        if seen[row >> 3] & bit:
            continue
        seen[row >> 3] |= bit
        source = _require_node(sources[at], ids, slots, sizes)
        target = _require_node(targets[at], ids, slots, sizes)
        numbers[count] = row
        ends[0, count], ends[1, count] = source, target
        nexts[0, count], nexts[1, count] = heads[0, source], heads[1, target]
        heads[0, source] = heads[1, target] = count
        count += 1
    return count


# ----------------------------------------------------------------------- searches


@inner_kernel(f"uint8(int32, {_VIEWS})")
def _views_of(row: int, views: Views) -> int:
    """Which of the two graphs a row belongs to."""
    status, nonrecursive, recursive, table = views
    word = table[status[row]]
    found = np.uint8(0)
    if word & 4:
        found |= np.uint8(1)
    if word & 32:
        found |= np.uint8(2)
    if word & 27:
        if nonrecursive[row] > 0:
            if word & 3:
                found |= np.uint8(1)
            if word & 24:
                found |= np.uint8(2)
        elif word & 9 and recursive[row] > 0:
            if word & 1:
                found |= np.uint8(1)
            if word & 8:
                found |= np.uint8(2)
    return found  # type: ignore[return-value]


@kernel(
    f"int64({_PART}, int64, int64, int32[::1], int64, {_MARKS}, int32, int64,"
    "int64[::1])"
)
def hop(
    part: Part,
    side: int,
    graphs: int,
    nodes: Rows,
    size: int,
    marks: Marks,
    search: int,
    found: int,
    cost: Places,
) -> int:
    """Mark where one entry leads to from some nodes; how many nodes are marked now."""
    (heads, nexts, ends, rows), views = part
    met, reached = marks
    for way in range(2):
        if side not in (way, BOTH_WAYS):
            continue
        for at in range(size):
            entry = heads[way, nodes[at]]
            while entry >= 0:
                cost[0] -= 1
                if cost[0] < 0:
                    return np.int64(-1)  # type: ignore[return-value]
                other = ends[1 - way, entry]
                if met[other] != search and _views_of(rows[entry], views) & graphs:
                    met[other] = search
                    reached[found] = other
                    found += 1
                entry = nexts[way, entry]
    return found


@kernel(f"int64({_PART}, int64, int64, {_MARKS}, int32, int64, int64[::1])")
def spread(
    part: Part,
    side: int,
    graphs: int,
    marks: Marks,
    search: int,
    found: int,
    cost: Places,
) -> int:
    """Mark all that marked nodes lead to; how many nodes are marked then."""
    (heads, nexts, ends, rows), views = part
    met, reached = marks
    at = 0
    while at < found:
        node = reached[at]
        at += 1
        for way in range(2):
            if side not in (way, BOTH_WAYS):
                continue
            entry = heads[way, node]
            while entry >= 0:
                cost[0] -= 1
                if cost[0] < 0:
                    return np.int64(-1)  # type: ignore[return-value]
                other = ends[1 - way, entry]
                if met[other] != search and _views_of(rows[entry], views) & graphs:
                    met[other] = search
                    reached[found] = other
                    found += 1
                entry = nexts[way, entry]
    return found


@inner_kernel(f"int64({_PART}, int64, int64, int32, int64[::1])")
def _has_entry(part: Part, side: int, graphs: int, node: int, cost: Places) -> int:
    """Whether a node has an entry."""
    (heads, nexts, _, rows), views = part
    for way in range(2):
        if side not in (way, BOTH_WAYS):
            continue
        entry = heads[way, node]
        while entry >= 0:
            cost[0] -= 1
            if cost[0] < 0:
                return np.int64(0)  # type: ignore[return-value]
            if _views_of(rows[entry], views) & graphs:
                return np.int64(1)  # type: ignore[return-value]
            entry = nexts[way, entry]
    return np.int64(0)  # type: ignore[return-value]


@inner_kernel(f"int64({_PART}, int64, int64, int32, int64[::1])")
def _has_loop(part: Part, loops: int, graphs: int, node: int, cost: Places) -> int:
    """Whether a node has a pair with itself because it has a pair: 1 out, 2 in."""
    if loops & 1 and _has_entry(part, 0, graphs, node, cost):
        return np.int64(1)  # type: ignore[return-value]
    if loops & 2 and _has_entry(part, 1, graphs, node, cost):
        return np.int64(1)  # type: ignore[return-value]
    return np.int64(0)  # type: ignore[return-value]


_AT, _WAY, _ENTRY, _SIZE, _SPENT = range(5)


@inner_kernel("int64(int64[::1], int32[:, ::1], int32[::1], int64)")
def _next_list(place: Places, heads: Lists, nodes: Rows, side: int) -> int:
    """Go to the next list of entries that is not empty; 0 if there is none."""
    while place[_ENTRY] < 0:
        if side == BOTH_WAYS and place[_WAY] == 0:
            place[_WAY] = 1
        else:
            place[_AT] += 1
            place[_WAY] = 0 if side == BOTH_WAYS else side
        if place[_AT] >= place[_SIZE]:
            return np.int64(0)  # type: ignore[return-value]
        place[_ENTRY] = heads[place[_WAY], nodes[place[_AT]]]
    return np.int64(1)  # type: ignore[return-value]


@kernel(
    f"int64({_PART}, {_PART}, boolean, int64, int64, int64, int32, int32, {_MARKS},"
    f"{_MARKS}, int32, int64[::1])"
)
def leads_to(
    seeds: Part,
    edges: Part,
    is_one_set: bool,  # noqa: FBT001
    side: int,
    loops: int,
    graphs: int,
    first: int,
    second: int,
    forwards: Marks,
    backwards: Marks,
    search: int,
    cost: Places,
) -> int:
    """Whether there is a path from one node to another: 1, 0, or -1 if too costly.

    Both ends are searched from, an entry here and an entry there, so that the cost is
    at most twice that of the smaller search.
    """
    if first == second and _has_loop(seeds, loops, graphs, first, cost):
        return np.int64(1)  # type: ignore[return-value]
    met, reached = forwards
    back_met, back_reached = backwards
    (seed_heads, seed_nexts, seed_ends, seed_rows), seed_views = seeds
    (heads, nexts, ends, rows), views = edges
    back_side = side if side == BOTH_WAYS else 1 - side
    # Where the first node's seeds lead is looked at before all that edges lead to.
    start = np.empty(1, np.int32)
    start[0] = first
    seed_place = np.zeros(5, np.int64)
    seed_place[_AT], seed_place[_ENTRY], seed_place[_SIZE] = -1, -1, 1
    seed_place[_WAY] = 1
    place = np.zeros(5, np.int64)
    place[_AT], place[_ENTRY], place[_WAY] = -1, -1, 1
    back = np.zeros(5, np.int64)
    back[_AT], back[_ENTRY], back[_SIZE], back[_WAY] = -1, -1, 1, 1
    back_met[second] = search
    back_reached[0] = second
    is_beginning = True
    is_back_done = False
    while True:
        cost[0] -= 1
        if cost[0] < 0:
            return np.int64(-1)  # type: ignore[return-value]
        # Forwards.
        entry = np.int64(-1)
        other = np.int32(-1)
        if is_beginning:
            if _next_list(seed_place, seed_heads, start, side):
                entry = seed_place[_ENTRY]
                way = seed_place[_WAY]
                seed_place[_ENTRY] = seed_nexts[way, entry]
                other = seed_ends[1 - way, entry]
                if not _views_of(seed_rows[entry], seed_views) & graphs:
                    other = np.int32(-1)
            else:
                is_beginning = False
        if not is_beginning and entry < 0:
            if is_back_done or not _next_list(place, heads, reached, side):
                return np.int64(0)  # type: ignore[return-value]
            entry = place[_ENTRY]
            way = place[_WAY]
            place[_ENTRY] = nexts[way, entry]
            other = ends[1 - way, entry]
            if met[other] == search or not _views_of(rows[entry], views) & graphs:
                other = np.int32(-1)
        if other >= 0:
            if back_met[other] == search:
                return np.int64(1)  # type: ignore[return-value]
            if met[other] != search:
                met[other] = search
                reached[place[_SIZE]] = other
                place[_SIZE] += 1
        # Backwards.
        if is_back_done:
            continue
        if not _next_list(back, heads, back_reached, back_side):
            if is_one_set:
                return np.int64(0)  # type: ignore[return-value]
            is_back_done = True
            continue
        entry = back[_ENTRY]
        way = back[_WAY]
        back[_ENTRY] = nexts[way, entry]
        other = ends[1 - way, entry]
        if back_met[other] == search and not (is_one_set and other == first):
            continue
        if _views_of(rows[entry], views) & graphs:
            if met[other] == search or (is_one_set and other == first):
                return np.int64(1)  # type: ignore[return-value]
            back_met[other] = search
            back_reached[back[_SIZE]] = other
            back[_SIZE] += 1


# ---------------------------------------------------------------------- comparisons


@kernel(
    f"int64({_PART}, {_PART}, int64, int64, boolean, int32[::1], int64, int32[::1],"
    f"int32, {_MARKS}, {_MARKS}, {_MARKS}, {_MARKS}, int32, uint32[::1], uint64[::1],"
    "int64[::1])"
)
def compare(
    seeds: Part,
    edges: Part,
    side: int,
    loops: int,
    is_backwards: bool,  # noqa: FBT001
    starts: Rows,
    size: int,
    wanted: Rows,
    wanted_search: int,
    forwards: Marks,
    backwards: Marks,
    others: Marks,
    more: Marks,
    search: int,
    ids: Ids,
    keys: Keys,
    cost: Places,
) -> int:
    """The pairs that the first graph has and the second has not.

    For each of the starts in turn both graphs are walked through. Starts are sources,
    and ends are wanted that have a mark; or backwards, where they are targets.
    Returns how many pairs there are, -1 if too costly or if there is no room.
    """
    found = 0
    for at in range(size):
        start = starts[at : at + 1]
        node = start[0]
        for graphs, marks, hopped in ((1, forwards, others), (2, backwards, more)):
            met, reached = marks
            n = 0
            if is_backwards:
                # `hopped` are the sources, from which seeds lead on.
                back_side = BOTH_WAYS if side == BOTH_WAYS else 1
                last_met, last = hopped
                last_met[node] = search
                last[0] = node
                n = spread(edges, back_side, graphs, hopped, search, 1, cost)
                if n < 0:
                    return np.int64(-1)  # type: ignore[return-value]
                n = hop(seeds, back_side, graphs, last, n, marks, search, 0, cost)
            else:
                n = hop(seeds, side, graphs, start, 1, marks, search, 0, cost)
                if n < 0:
                    return np.int64(-1)  # type: ignore[return-value]
                n = spread(edges, side, graphs, marks, search, n, cost)
            if n < 0:
                return np.int64(-1)  # type: ignore[return-value]
            if (
                loops
                and met[node] != search
                and _has_loop(seeds, loops, graphs, node, cost)
            ):
                met[node] = search
                reached[n] = node
                n += 1
            if graphs == 1:
                size_of_first = n
        met, reached = forwards
        less_met, _ = backwards
        for place in range(size_of_first):
            other = reached[place]
            if wanted[other] != wanted_search or less_met[other] == search:
                continue
            if found == keys.size:
                return np.int64(-1)  # type: ignore[return-value]
            if is_backwards:
                keys[found] = (uint64(ids[other]) << _HALF) | uint64(ids[node])
            else:
                keys[found] = (uint64(ids[node]) << _HALF) | uint64(ids[other])
            found += 1
        cost[0] -= 1
        if cost[0] < 0:
            return np.int64(-1)  # type: ignore[return-value]
        search += 1
    return found


@kernel(f"int64({_PART}, int64, int32[::1], int64, int32[::1], uint8[::1], int64[::1])")
def gather(
    part: Part,
    way: int,
    nodes: Rows,
    size: int,
    chosen: Rows,
    graphs: Flags,
    cost: Places,
) -> int:
    """The entries of some nodes and the graphs they belong to; how many there are.

    The result is -1 if there is no room for them.
    """
    (heads, nexts, _, rows), views = part
    found = 0
    for at in range(size):
        entry = heads[way, nodes[at]]
        while entry >= 0:
            cost[0] -= 1
            some = _views_of(rows[entry], views)
            if some:
                if found == chosen.size or cost[0] < 0:
                    return np.int64(-1)  # type: ignore[return-value]
                chosen[found] = entry
                graphs[found] = some
                found += 1
            entry = nexts[way, entry]
    return found
