"""Growing graphs of closures as linked adjacency lists, and bounded searches in them.

A graph has *nodes*, numbered in order of arrival and found by a hash table, and one or
two sets of *entries*, which are rows of a relation: `seeds`, the first edges of paths,
and `edges`, along which paths continue; in a transitive closure both are one set. Each
node has two linked lists of entries, one for each *way*: 0 leads from a source to its
targets, 1 back. `heads[way, node]` is the first entry, `nexts[way, entry]` the one
after it, -1 ends a list, and `ends[1 - way, entry]` is the node that an entry leads to.

An entry is a row that may belong to the graph. Whether it does is decided when a search
visits it, by the status and the counters of its row; see `_views_of`. Rows can belong
to two graphs, *all* (bit 1) and *less* (bit 2).

The *side* of a search is the way it takes: 0, 1, or 2 for both. Visited nodes are
marked with the number of the search, so marks need not be cleared. Each visited entry
lowers `cost[0]`; when it falls below zero, the search ends with -1.
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
    belong to the two graphs; see `_views_of`."""
    Part = tuple[Entries, Views]
    """One of the two sets of entries."""
    Marks = tuple[Rows, Rows]
    """For each node the last search that visited it, and the queue of visited nodes."""

ANY_COUNT, NONRECURSIVE_COUNT, NO_COUNT = 1, 2, 4
"""When a row with a given status belongs to a graph: if either counter is positive, if
the nonrecursive counter is, or always. These are the bits of the first graph; those of
the second are three places higher."""

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
    """Return the node of an id, or -1 (open addressing, linear probing)."""
    mask = slots.size - 1
    slot = _first_slot(one, mask)
    while slots[slot] >= 0 and ids[slots[slot]] != one:
        slot = (slot + 1) & mask
    return slots[slot]


@kernel("void(uint32[::1], uint32[::1], int32[::1], int32[::1])")
def find_nodes(wanted: Ids, ids: Ids, slots: Rows, nodes: Rows) -> None:
    """Look up the nodes of ids, -1 for ids that are in no graph."""
    for at in range(wanted.size):
        nodes[at] = _node_of(wanted[at], ids, slots)


@kernel("void(uint32[::1], int64, int32[::1])")
def fill_slots(ids: Ids, count: int, slots: Rows) -> None:
    """Insert all nodes into a new hash table."""
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
    """Add entries for rows that have none; return the new number of entries.

    There must be room for all of them. `seen` is a bitmap of the rows that have an
    entry, and `sizes[0]` is the number of nodes.
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
    """Return the graphs that a row belongs to, a bit each."""
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
    """Mark the nodes one entry away from some nodes; return how many are marked now."""
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
    """Mark all nodes reachable from marked ones (breadth first); return how many."""
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
    """Return whether a node has an entry in some of the graphs."""
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
    """Return whether a node forms a pair with itself because it has an entry.

    In `loops`, 1 means an entry out of the node and 2 one into it.
    """
    if loops & 1 and _has_entry(part, 0, graphs, node, cost):
        return np.int64(1)  # type: ignore[return-value]
    if loops & 2 and _has_entry(part, 1, graphs, node, cost):
        return np.int64(1)  # type: ignore[return-value]
    return np.int64(0)  # type: ignore[return-value]


_AT, _WAY, _ENTRY, _SIZE, _SPENT = range(5)


@inner_kernel("int64(int64[::1], int32[:, ::1], int32[::1], int64)")
def _next_list(place: Places, heads: Lists, nodes: Rows, side: int) -> int:
    """Advance to the next list of entries that is not empty; return 0 at the end."""
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
    """Return whether a path connects two nodes: 1, 0, or -1 if it is too costly.

    The search is bidirectional and alternates after every entry, so that it costs at
    most twice as much as the cheaper of the two directions.
    """
    if first == second and _has_loop(seeds, loops, graphs, first, cost):
        return np.int64(1)  # type: ignore[return-value]
    met, reached = forwards
    back_met, back_reached = backwards
    (seed_heads, seed_nexts, seed_ends, seed_rows), seed_views = seeds
    (heads, nexts, ends, rows), views = edges
    back_side = side if side == BOTH_WAYS else 1 - side
    # The seeds of the first node are visited before any edges.
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
    """List the pairs in the first graph that the second does not have.

    Both graphs are searched from each start. Starts are sources or, if `is_backwards`,
    targets; other ends count only if `wanted` marks them. Returns the number of pairs,
    or -1 if the search is too costly or there is no room.
    """
    found = 0
    for at in range(size):
        start = starts[at : at + 1]
        node = start[0]
        for graphs, marks, hopped in ((1, forwards, others), (2, backwards, more)):
            met, reached = marks
            n = 0
            if is_backwards:
                # `hopped` receives the nodes from which edges lead to the target.
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
    """List the entries of some nodes with the graphs they belong to.

    Returns their number, or -1 if there is no room or the search is too costly.
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
