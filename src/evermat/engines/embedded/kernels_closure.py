"""The compiled loops of closures: components, reachability on bit sets, pairs.

Vocabulary: a *node* is a constant by its place among the constants of the graphs at
work, which are in order. A graph is given by *starts* and *targets*: the targets of
node `i` are `targets[starts[i]:starts[i + 1]]`. A *place* is the bit that a node has in
a row of bits, -1 for nodes that nobody asks about.

The pairs of a closure are `(s, t)` where a seed leads from `s` to some `y`, and edges
lead from `y` to `t` in any number of steps, none included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels import kernel, uint64

if TYPE_CHECKING:
    import numpy.typing as npt

    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Places, Rows

    Bits = npt.NDArray[np.uint64]

_HALF = np.uint64(32)
_ONE = np.uint64(1)
_ODD_BITS = np.uint64(0x5555555555555555)
_PAIRS = np.uint64(0x3333333333333333)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x0101010101010101)


@kernel("int64(uint64)")
def _count_bits(word: np.uint64) -> int:
    word = word - ((word >> _ONE) & _ODD_BITS)
    word = (word & _PAIRS) + ((word >> np.uint64(2)) & _PAIRS)
    word = (word + (word >> np.uint64(4))) & _NIBBLES
    return np.int64((word * _BYTES) >> np.uint64(56))  # type: ignore[return-value]


@kernel("int32[::1](int32[::1], int32, int32[::1])")
def group(sources: Rows, count: int, order: Rows) -> Rows:
    """Where the edges of each node start, and in `order` the edges by their source."""
    starts = np.zeros(count + 1, np.int32)
    for source in sources:
        starts[source + 1] += 1
    for node in range(count):
        starts[node + 1] += starts[node]
    free = starts[:count].copy()
    for at in range(sources.size):
        order[free[sources[at]]] = at
        free[sources[at]] += 1
    return starts


@kernel("int32(int32[::1], int32[::1], int32[::1])")
def components(starts: Rows, targets: Rows, component: Rows) -> int:
    """Number the strongly connected components (Tarjan's algorithm, without recursion).

    A component gets its number after all that it leads to. Returns how many there are.
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
        # `low` is first the time at which a node was met; a node that no node met
        # earlier can be reached from closes a component.
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


@kernel("void(uint64[::1], uint64[::1], uint64[::1], uint64[::1])")
def _unite(row: Bits, index: Bits, other: Bits, other_index: Bits) -> None:
    """Add the bits of another row; an index marks the words that are not zero."""
    for block in range(index.size):
        words = other_index[block]
        if words == 0:
            continue
        index[block] |= words
        base = 64 * block
        if words == ~uint64(0):
            for word in range(base, base + 64):
                row[word] |= other[word]
            continue
        while words != 0:
            lowest = words & (~words + _ONE)
            word = base + _count_bits(lowest - _ONE)
            row[word] |= other[word]
            words ^= lowest


@kernel(
    "void(int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int64,"
    "uint64[:, ::1], uint64[:, ::1])"
)
def spread(
    starts: Rows,
    targets: Rows,
    component: Rows,
    by_component: Rows,
    places: Rows,
    first: int,
    rows: Bits,
    index: Bits,
) -> None:
    """Fill the row of each component with what its nodes lead to, themselves included.

    `by_component` has the nodes in the order of their components, so that a row is
    complete when it is first read. Only places from `first` on that fit are marked.
    Rows are zero before; `index` marks for each row the words that are not zero then.
    """
    width = rows.shape[1]
    for node in by_component:
        mine = component[node]
        place = places[node] - first
        if place >= 0 and place < 64 * width:
            word = place >> 6
            rows[mine, word] |= _ONE << np.uint64(place & 63)
            index[mine, word >> 6] |= _ONE << np.uint64(word & 63)
        last = mine
        for at in range(starts[node], starts[node + 1]):
            other = component[targets[at]]
            if other not in (mine, last):
                last = other
                _unite(rows[mine], index[mine], rows[other], index[other])


@kernel("void(int32[::1], int32[::1], int32[::1], int32[::1], uint8[::1])")
def mark_backwards(
    starts: Rows, targets: Rows, component: Rows, by_component: Rows, marks: Flags
) -> None:
    """Mark every component that leads to a marked one."""
    for node in by_component:
        mine = component[node]
        if marks[mine]:
            continue
        for at in range(starts[node], starts[node + 1]):
            if marks[component[targets[at]]]:
                marks[mine] = 1
                break


@kernel("void(int32[::1], int32[::1], int32[::1], int32[::1], uint8[::1])")
def mark_forwards(
    starts: Rows, targets: Rows, component: Rows, by_component: Rows, marks: Flags
) -> None:
    """Mark every component that a marked one leads to."""
    for at in range(by_component.size - 1, -1, -1):
        node = by_component[at]
        if marks[component[node]]:
            for edge in range(starts[node], starts[node + 1]):
                marks[component[targets[edge]]] = 1


@kernel(
    "void(int32, int32[::1], int32[::1], int32[::1], uint64[:, ::1], uint64[:, ::1],"
    "uint64[::1], uint64[::1])"
)
def _gather(
    source: int,
    starts: Rows,
    targets: Rows,
    component: Rows,
    rows: Bits,
    index: Bits,
    row: Bits,
    marks: Bits,
) -> None:
    """What the seeds of a node lead to; `marks` names the words written before."""
    for block in range(marks.size):
        words = marks[block]
        while words != 0:
            lowest = words & (~words + _ONE)
            row[64 * block + _count_bits(lowest - _ONE)] = 0
            words ^= lowest
        marks[block] = 0
    last = np.int32(-1)
    for at in range(starts[source], starts[source + 1]):
        other = component[targets[at]]
        if other != last:
            last = other
            _unite(row, marks, rows[other], index[other])


@kernel(
    "int64(int32[::1], int32[::1], int32[::1], int32[::1], uint64[:, ::1],"
    "uint64[:, ::1], int32[::1], int32[::1], int32[::1], uint64[:, ::1],"
    "uint64[:, ::1], int64[::1])"
)
def count_pairs(
    sources: Rows,
    starts: Rows,
    targets: Rows,
    component: Rows,
    rows: Bits,
    index: Bits,
    less_starts: Rows,
    less_targets: Rows,
    less_component: Rows,
    less_rows: Bits,
    less_index: Bits,
    counts: Places,
) -> int:
    """For each source, how many pairs one closure has and the other has not."""
    width = rows.shape[1]
    row, marks = np.zeros(width, np.uint64), np.zeros(index.shape[1], np.uint64)
    less, less_marks = np.zeros_like(row), np.zeros_like(marks)
    total = 0
    for at in range(sources.size):
        source = sources[at]
        _gather(source, starts, targets, component, rows, index, row, marks)
        _gather(
            source,
            less_starts,
            less_targets,
            less_component,
            less_rows,
            less_index,
            less,
            less_marks,
        )
        count = 0
        for block in range(marks.size):
            words = marks[block]
            while words != 0:
                lowest = words & (~words + _ONE)
                word = 64 * block + _count_bits(lowest - _ONE)
                count += _count_bits(row[word] & ~less[word])
                words ^= lowest
        counts[at] = count
        total += count
    return total


@kernel(
    "void(int32[::1], int32[::1], int32[::1], int32[::1], uint64[:, ::1],"
    "uint64[:, ::1], int32[::1], int32[::1], int32[::1], uint64[:, ::1],"
    "uint64[:, ::1], uint32[::1], uint32[::1], int64, uint64[::1])"
)
def write_pairs(
    sources: Rows,
    starts: Rows,
    targets: Rows,
    component: Rows,
    rows: Bits,
    index: Bits,
    less_starts: Rows,
    less_targets: Rows,
    less_component: Rows,
    less_rows: Bits,
    less_index: Bits,
    ids: Ids,
    ids_of_places: Ids,
    first: int,
    keys: Keys,
) -> None:
    """The pairs that `count_pairs` counts, as keys in order."""
    width = rows.shape[1]
    row, marks = np.zeros(width, np.uint64), np.zeros(index.shape[1], np.uint64)
    less, less_marks = np.zeros_like(row), np.zeros_like(marks)
    n = 0
    for source in sources:
        _gather(source, starts, targets, component, rows, index, row, marks)
        _gather(
            source,
            less_starts,
            less_targets,
            less_component,
            less_rows,
            less_index,
            less,
            less_marks,
        )
        half = uint64(ids[source]) << _HALF
        for block in range(marks.size):
            words = marks[block]
            while words != 0:
                next_word = words & (~words + _ONE)
                words ^= next_word
                word = 64 * block + _count_bits(next_word - _ONE)
                bits = row[word] & ~less[word]
                base = first + 64 * word
                while bits != 0:
                    lowest = bits & (~bits + _ONE)
                    place = base + _count_bits(lowest - _ONE)
                    keys[n] = half | uint64(ids_of_places[place])
                    n += 1
                    bits ^= lowest


@kernel(
    "void(int32[::1], int32[::1], int32[::1], int32[::1], int32[::1],"
    "uint64[:, ::1], int32[::1], int64, uint8[::1])"
)
def test_pairs(
    firsts: Rows,
    seconds: Rows,
    starts: Rows,
    targets: Rows,
    component: Rows,
    rows: Bits,
    places: Rows,
    first: int,
    marks: Flags,
) -> None:
    """Mark the pairs that the closure has; those whose place does not fit are left."""
    width = rows.shape[1]
    for at in range(firsts.size):
        place = places[seconds[at]] - first
        if place < 0 or place >= 64 * width:
            continue
        source = firsts[at]
        bit = _ONE << np.uint64(place & 63)
        for seed in range(starts[source], starts[source + 1]):
            if rows[component[targets[seed]], place >> 6] & bit:
                marks[at] = 1
                break


@kernel("void(uint64[::1], uint32[::1], uint32[::1])")
def split_keys(keys: Keys, firsts: Ids, seconds: Ids) -> None:
    """Both halves of keys."""
    for at in range(keys.size):
        firsts[at] = keys[at] >> _HALF
        seconds[at] = keys[at] & np.uint64(0xFFFFFFFF)


@kernel("int64(uint32[::1], int32[::1], int32[::1])")
def text_offsets(numbers: Ids, ends: Rows, offsets: Rows) -> int:
    """Where the text of each number begins if they are laid end to end; their length.

    `ends` has one entry more than there are texts, as Arrow has it.
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
    """The texts of numbers, laid end to end."""
    place = 0
    for number in numbers:
        for at in range(ends[number], ends[number + 1]):
            out[place] = texts[at]
            place += 1
