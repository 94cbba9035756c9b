"""Closures of graphs: Tarjan's components, and reachability as sparse bit sets.

A *node* is the position of a constant in the sorted list of the constants of the
graphs. Graphs are adjacency arrays (CSR): the targets of node `i` are
`targets[starts[i]:starts[i + 1]]`. A *place* is the bit that represents a node in a bit
set, or -1 for nodes that no query needs.

The pairs of a closure are `(s, t)` where a seed leads from `s` to some `y`, and edges
lead from `y` to `t` in zero or more steps.

Each component has a bit set, its *row*, with the places of its own nodes and of all
nodes that it reaches. Only words that are not zero are stored: the row of component `c`
has the words `words[starts[c]:starts[c + 1]]`, in ascending order, with the `bits` at
the same positions. A row is assembled in a *pad*, which has all words side by side and
a two-level bitmap of those that are not zero, so that the cost follows the number of
nonzero words. `(s, t)` is a pair if the row of `s` has the place of `t`. The row of `s`
is that of a component or, where several seeds begin with `s`, one of its own, filled
after those of all components. A source may drop one place, its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.keys import kernel, uint64

if TYPE_CHECKING:
    import numpy.typing as npt

    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Places, Rows

    Bits = npt.NDArray[np.uint64]
    Reach = tuple[Places, Rows, Bits, Rows]
    """The starts, words and bits of all rows, and `own`; see `fill_rows`."""
    Side = tuple[Rows, Rows]
    """For each node its row, or -1 if it reaches nothing, and its place if that is
    dropped, or else -1."""
    Pad = tuple[Bits, Bits, Bits]
    """The words of a row, a bitmap of those that are not zero, and a bitmap of that."""
    Row = tuple[Rows, Bits]
    """Buffers for the numbers of words, and for their bits."""

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@kernel("void(uint32[::1], uint32, uint8[::1])")
def mark_ids(ids: Ids, least: int, seen: Flags) -> None:
    """Mark ids in an array that begins at the least id."""
    for one in ids:
        seen[one - least] = 1


@kernel("void(uint32[::1], uint32, int32[::1], int32[::1])")
def look_up(ids: Ids, least: int, table: Rows, nodes: Rows) -> None:
    """Look up the nodes of ids, or -1, in a table that begins at the least id."""
    for at in range(ids.size):
        place = np.int64(ids[at]) - np.int64(least)
        nodes[at] = table[place] if 0 <= place < table.size else -1


@kernel("int32[::1](int32[::1], int32[::1], int32, int32[::1])")
def group(sources: Rows, targets: Rows, count: int, grouped: Rows) -> Rows:
    """Group edges by source (counting sort); return where the targets of each start."""
    starts = np.zeros(count + 1, np.int32)
    for source in sources:
        starts[source + 1] += 1
    for node in range(count):
        starts[node + 1] += starts[node]
    free = starts[:count].copy()
    for at in range(sources.size):
        grouped[free[sources[at]]] = targets[at]
        free[sources[at]] += 1
    return starts


@kernel("int32(int32[::1], int32[::1], int32[::1])")
def components(starts: Rows, targets: Rows, component: Rows) -> int:
    """Number the strongly connected components (Tarjan's algorithm, without recursion).

    A component is numbered after all components that it reaches. Returns their number.
    """
    nodes = starts.size - 1
    low = np.zeros(nodes, np.int32)
    following = starts[:nodes].copy()
    open_nodes = np.empty(nodes, np.int32)
    path = np.empty(nodes, np.int32)
    component[:] = -1
    opened = 0
    number = 0
    found = 0
    for root in range(nodes):
        if low[root] != 0:
            continue
        depth = 0
        path[0] = root
        found += 1
        low[root] = found
        open_nodes[opened] = root
        opened += 1
        # `low` begins as the time of discovery. A node that reaches no node discovered
        # before it is the root of a component.
        while depth >= 0:
            node = path[depth]
            if following[node] < starts[node + 1]:
                target = targets[following[node]]
                following[node] += 1
                if low[target] == 0:
                    depth += 1
                    path[depth] = target
                    found += 1
                    low[target] = found
                    open_nodes[opened] = target
                    opened += 1
                continue
            own = low[node]
            least = own
            for at in range(starts[node], starts[node + 1]):
                target = targets[at]
                if component[target] < 0 and low[target] < least:
                    least = low[target]
            depth -= 1
            if least < own:
                low[node] = least
                continue
            while True:
                opened -= 1
                member = open_nodes[opened]
                component[member] = number
                if member == node:
                    break
            number += 1
    return number


@kernel("int64(int32[::1], int32[::1], int32[::1], uint64[::1], uint8[::1])")
def links(
    sources: Rows, targets: Rows, component: Rows, keys: Keys, returns: Flags
) -> int:
    """List the edges between components as keys; return their number.

    For the form of keys see `adjacency`. Components with an edge inside are marked in
    `returns`.
    """
    n = 0
    for at in range(sources.size):
        first, second = component[sources[at]], component[targets[at]]
        if first == second:
            returns[first] = 1
        else:
            keys[n] = (np.uint64(first) << _HALF) | (_LOW - np.uint64(second))
            n += 1
    return n


@kernel("int32[::1](uint64[::1], int32, int32[::1])")
def adjacency(keys: Keys, count: int, targets: Rows) -> Rows:
    """Turn sorted edges into adjacency arrays without duplicates; return the starts.

    A key is a source and the complement of a target. As keys are sorted, the targets of
    a source are in descending order.
    """
    starts = np.empty(count + 1, np.int32)
    source = 0
    n = 0
    for at in range(keys.size):
        if at > 0 and keys[at] == keys[at - 1]:
            continue
        mine = np.int64(keys[at] >> _HALF)
        while source <= mine:
            starts[source] = n
            source += 1
        targets[n] = np.int32(_LOW - (keys[at] & _LOW))
        n += 1
    while source <= count:
        starts[source] = n
        source += 1
    return starts


@kernel("void(int32[::1], int32[::1], uint8[::1])")
def mark_backwards(starts: Rows, targets: Rows, marks: Flags) -> None:
    """Mark every component that reaches a marked one."""
    for mine in range(starts.size - 1):
        if not marks[mine]:
            for at in range(starts[mine], starts[mine + 1]):
                if marks[targets[at]]:
                    marks[mine] = 1
                    break


@kernel("void(int32[::1], int32[::1], uint8[::1])")
def mark_forwards(starts: Rows, targets: Rows, marks: Flags) -> None:
    """Mark every component that a marked one reaches."""
    for mine in range(starts.size - 2, -1, -1):
        if marks[mine]:
            for at in range(starts[mine], starts[mine + 1]):
                marks[targets[at]] = 1


@kernel("int64(uint32[::1], int32[::1], int32[::1])")
def text_offsets(numbers: Ids, ends: Rows, offsets: Rows) -> int:
    """Compute the offsets of strings in their concatenation; return its length.

    As in Arrow, `ends` has one entry more than there are strings.
    """
    total = 0
    for at in range(numbers.size):
        offsets[at] = total
        number = numbers[at]
        total += ends[number + 1] - ends[number]
    offsets[numbers.size] = total
    return total


@kernel("void(uint32[::1], int32[::1], uint8[::1], uint8[::1])")
def copy_texts(numbers: Ids, ends: Rows, texts: Flags, out: Flags) -> None:
    """Concatenate the strings with some numbers."""
    place = 0
    for number in numbers:
        for at in range(ends[number], ends[number + 1]):
            out[place] = texts[at]
            place += 1


# ------------------------------------------------------------------------- reachability

_ONE = np.uint64(1)
_SIX = np.uint64(6)
_TWELVE = np.uint64(12)
_SIXTY_THREE = np.uint64(63)
_ODD_BITS = np.uint64(0x5555555555555555)
_PAIRS = np.uint64(0x3333333333333333)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x0101010101010101)

_REACH = "Tuple((int64[::1], int32[::1], uint64[::1], int32[::1]))"
_SIDE = "UniTuple(int32[::1], 2)"
_PAD = "UniTuple(uint64[::1], 3)"
_ROW = "Tuple((int32[::1], uint64[::1]))"


@kernel("int64(uint64)")
def _count_bits(word: np.uint64) -> int:
    word = word - ((word >> _ONE) & _ODD_BITS)
    word = (word & _PAIRS) + ((word >> np.uint64(2)) & _PAIRS)
    word = (word + (word >> np.uint64(4))) & _NIBBLES
    return np.int64((word * _BYTES) >> np.uint64(56))  # type: ignore[return-value]


@kernel("int64(uint64)")
def _lowest_bit(word: np.uint64) -> int:
    """Return the position of the lowest set bit."""
    return _count_bits((word & (~word + _ONE)) - _ONE)


# ------------------------------------------------------------------------ one row


@kernel(f"{_PAD}(int64)")
def _empty_pad(width: int) -> Pad:
    return (
        np.zeros(width, np.uint64),
        np.zeros((width >> 6) + 1, np.uint64),
        np.zeros((width >> 12) + 1, np.uint64),
    )


@kernel(f"void(int32, {_REACH}, {_PAD})")
def _unite(component: int, reach: Reach, pad: Pad) -> None:
    """Add the row of a component to the pad, unless the component is in it already."""
    starts, words, bits, own = reach
    row, marks, tops = pad
    place = own[component]
    if place >= 0 and row[place >> 6] & (_ONE << uint64(place & 63)):
        return
    for at in range(starts[component], starts[component + 1]):
        word = uint64(words[at])
        if row[word] == 0:
            marks[word >> _SIX] |= _ONE << (word & _SIXTY_THREE)
            tops[word >> _TWELVE] |= _ONE << ((word >> _SIX) & _SIXTY_THREE)
        row[word] |= bits[at]


@kernel(f"int64({_PAD}, {_ROW}, int64)")
def _take(pad: Pad, room: Row, n: int) -> int:
    """Move a row from its pad to position `n` of the buffers; return its end.

    Returns -1 if it does not fit.
    """
    row, marks, tops = pad
    words, bits = room
    for top in range(tops.size):
        blocks = tops[top]
        tops[top] = 0
        while blocks != 0:
            block = 64 * top + _lowest_bit(blocks)
            blocks &= blocks - _ONE
            some = marks[block]
            marks[block] = 0
            if n + 64 > words.size and n + _count_bits(some) > words.size:
                return np.int64(-1)  # type: ignore[return-value]
            while some != 0:
                word = 64 * block + _lowest_bit(some)
                some &= some - _ONE
                words[n] = word
                bits[n] = row[word]
                row[word] = 0
                n += 1
    return n


# ----------------------------------------------------------------------- all rows


@kernel(
    "int64(int32[::1], int32[::1], uint8[::1], int32[::1], int32[::1], int32[::1],"
    f"int64, int64, {_REACH})"
)
def fill_rows(
    heads: Rows,
    targets: Rows,
    needed: Flags,
    member_heads: Rows,
    members: Rows,
    places: Rows,
    first: int,
    width: int,
    reach: Reach,
) -> int:
    """Fill the rows that are needed, for `64 * width` places from `first` on.

    The targets of a row are rows before it, and its members are nodes. `own` receives
    the place of one member in this range, or -1. Returns the number of words, or -1 if
    they do not fit.
    """
    starts, words, bits, own = reach
    pad = _empty_pad(width)
    row, marks, tops = pad
    n = 0
    for mine in range(heads.size - 1):
        starts[mine] = n
        own[mine] = -1
        if not needed[mine]:
            continue
        for at in range(heads[mine], heads[mine + 1]):
            _unite(targets[at], reach, pad)
        for at in range(member_heads[mine], member_heads[mine + 1]):
            place = places[members[at]] - first
            if 0 <= place < 64 * width:
                own[mine] = place
                row[place >> 6] |= _ONE << uint64(place & 63)
                marks[place >> 12] |= _ONE << uint64((place >> 6) & 63)
                tops[place >> 18] |= _ONE << uint64((place >> 12) & 63)
        n = _take(pad, (words, bits), n)
        if n < 0:
            return n
    starts[heads.size - 1] = n
    return n


# -------------------------------------------------------------------------- pairs


@kernel(
    f"int64(int32[::1], int64, {_SIDE}, {_REACH}, {_SIDE}, {_REACH},"
    "uint32[::1], uint32[::1], int64[::1], uint64[::1])"
)
def list_pairs(
    sources: Rows,
    first: int,
    side: Side,
    reach: Reach,
    less_side: Side,
    less_reach: Reach,
    ids: Ids,
    ids_of_places: Ids,
    counts: Places,
    keys: Keys,
) -> int:
    """Count, for each source, the pairs in one closure that the other does not have.

    Unless `keys` is empty, the pairs are also written to it, as sorted keys.
    """
    rows, dropped = side
    starts, words, bits, _ = reach
    less_rows, less_dropped = less_side
    less_starts, less_words, less_bits, _ = less_reach
    total = np.int64(0)
    for at in range(sources.size):
        source = sources[at]
        if rows[source] < 0:
            counts[at] = 0
            continue
        mine, end = starts[rows[source]], starts[rows[source] + 1]
        theirs, less_end = np.int64(0), np.int64(0)
        if less_rows[source] >= 0:
            theirs = less_starts[less_rows[source]]
            less_end = less_starts[less_rows[source] + 1]
        # A place outside the range of these rows is in none of their words.
        own, less_own = dropped[source] - first, less_dropped[source] - first
        half = uint64(ids[source]) << _HALF
        before = total
        while mine < end:
            word = words[mine]
            rest = bits[mine]
            mine += 1
            if word == own >> 6:
                rest &= ~(_ONE << uint64(own & 63))
            while theirs < less_end and less_words[theirs] < word:
                theirs += 1
            if theirs < less_end and less_words[theirs] == word:
                known = less_bits[theirs]
                if word == less_own >> 6:
                    known &= ~(_ONE << uint64(less_own & 63))
                rest &= ~known
            if keys.size == 0:
                total += _count_bits(rest)
                continue
            base = first + 64 * np.int64(word)
            while rest != 0:
                keys[total] = half | uint64(ids_of_places[base + _lowest_bit(rest)])
                rest &= rest - _ONE
                total += 1
        counts[at] = total - before
    return total  # type: ignore[return-value]


@kernel(
    f"void(int32[::1], int32[::1], int64, int64, int32[::1], {_SIDE}, {_REACH},"
    "uint8[::1])"
)
def test_pairs(
    firsts: Rows,
    seconds: Rows,
    first: int,
    width: int,
    places: Rows,
    side: Side,
    reach: Reach,
    marks: Flags,
) -> None:
    """Mark the pairs that the closure has; skip targets outside the range of places."""
    rows, dropped = side
    starts, words, bits, _ = reach
    for at in range(firsts.size):
        source = firsts[at]
        place = places[seconds[at]] - first
        if place < 0 or place >= 64 * width or dropped[source] - first == place:
            continue
        row = rows[source]
        if row < 0:
            continue
        wanted = place >> 6
        low, high = starts[row], starts[row + 1]
        while low < high:
            middle = (low + high) >> 1
            if words[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        if low < starts[row + 1] and words[low] == wanted:
            marks[at] = (bits[low] >> uint64(place & 63)) & _ONE
