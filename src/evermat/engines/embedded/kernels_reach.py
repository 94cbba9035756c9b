"""Compiled loops over what is reachable, as rows of bits.

A *place* is the bit that a node has in a row, -1 for nodes that nobody asks about. Each
component has a row with the places of its own nodes and of all that it leads to. Of a
row only words that are not zero are kept: those of component `c` are numbered
`words[starts[c]:starts[c + 1]]`, in order, and have the `bits` at the same positions.

A row is put together in a *pad*: all its words side by side, with marks at those that
are not zero, and marks at the marks, so that it costs as much as it has words.

The pairs of a closure are `(s, t)` where some component listed for `s` leads to `t`.
Every source may have one place that does not count, its own.
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
_SIX = np.uint64(6)
_TWELVE = np.uint64(12)
_SIXTY_THREE = np.uint64(63)
_ODD_BITS = np.uint64(0x5555555555555555)
_PAIRS = np.uint64(0x3333333333333333)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x0101010101010101)

_ROWS = "int64[::1], int32[::1], uint64[::1], int32[::1]"
_LISTS = "int32[::1], int32[::1], int32[::1]"


@kernel("int64(uint64)")
def _count_bits(word: np.uint64) -> int:
    word = word - ((word >> _ONE) & _ODD_BITS)
    word = (word & _PAIRS) + ((word >> np.uint64(2)) & _PAIRS)
    word = (word + (word >> np.uint64(4))) & _NIBBLES
    return np.int64((word * _BYTES) >> np.uint64(56))  # type: ignore[return-value]


@kernel(f"void(int32, {_ROWS}, uint64[::1], uint64[::1], uint64[::1])")
def _unite(
    component: int,
    starts: Places,
    words: Rows,
    bits: Bits,
    own: Rows,
    pad: Bits,
    marks: Bits,
    tops: Bits,
) -> None:
    """Add the row of a component, unless the component is there: then its row is."""
    place = own[component]
    if place >= 0 and pad[place >> 6] & (_ONE << uint64(place & 63)):
        return
    for at in range(starts[component], starts[component + 1]):
        word = uint64(words[at])
        if pad[word] == 0:
            marks[word >> _SIX] |= _ONE << (word & _SIXTY_THREE)
            tops[word >> _TWELVE] |= _ONE << ((word >> _SIX) & _SIXTY_THREE)
        pad[word] |= bits[at]


@kernel(
    "int64(int32[::1], int32[::1], uint8[::1], int32[::1], int32[::1], int32[::1],"
    f"int64, int64, {_ROWS})"
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
    starts: Places,
    words: Rows,
    bits: Bits,
    own: Rows,
) -> int:
    """Fill the rows of the components that are needed, for places from `first` on.

    `own` gets a place of each component's own nodes, as far as one fits. Returns how
    many words there are, -1 if there is no room for them.
    """
    pad = np.zeros(width, np.uint64)
    marks = np.zeros((width >> 6) + 1, np.uint64)
    tops = np.zeros((width >> 12) + 1, np.uint64)
    n = np.int64(0)
    for mine in range(heads.size - 1):
        starts[mine] = n
        own[mine] = -1
        if not needed[mine]:
            continue
        for at in range(heads[mine], heads[mine + 1]):
            _unite(targets[at], starts, words, bits, own, pad, marks, tops)
        for at in range(member_heads[mine], member_heads[mine + 1]):
            place = places[members[at]] - first
            if 0 <= place < 64 * width:
                own[mine] = place
                pad[place >> 6] |= _ONE << uint64(place & 63)
                marks[place >> 12] |= _ONE << uint64((place >> 6) & 63)
                tops[place >> 18] |= _ONE << uint64((place >> 12) & 63)
        for top in range(tops.size):
            blocks = tops[top]
            tops[top] = 0
            while blocks != 0:
                block = 64 * top + _count_bits((blocks & (~blocks + _ONE)) - _ONE)
                blocks &= blocks - _ONE
                some = marks[block]
                marks[block] = 0
                if n + 64 > words.size and n + _count_bits(some) > words.size:
                    return np.int64(-1)  # type: ignore[return-value]
                while some != 0:
                    word = 64 * block + _count_bits((some & (~some + _ONE)) - _ONE)
                    some &= some - _ONE
                    words[n] = word
                    bits[n] = pad[word]
                    pad[word] = 0
                    n += 1
    starts[heads.size - 1] = n
    return n  # type: ignore[return-value]


@kernel(f"void(int32, int64, {_LISTS}, {_ROWS}, uint64[::1], uint64[::1], uint64[::1])")
def _gather(
    source: int,
    first: int,
    heads: Rows,
    components: Rows,
    dropped: Rows,
    starts: Places,
    words: Rows,
    bits: Bits,
    own: Rows,
    pad: Bits,
    marks: Bits,
    tops: Bits,
) -> None:
    """What the components listed for a source lead to."""
    for at in range(heads[source], heads[source + 1]):
        _unite(components[at], starts, words, bits, own, pad, marks, tops)
    place = dropped[source] - first
    if 0 <= place < 64 * pad.size:
        pad[place >> 6] &= ~(_ONE << uint64(place & 63))


@kernel("void(uint64[::1], uint64[::1], uint64[::1])")
def _clear(pad: Bits, marks: Bits, tops: Bits) -> None:
    for top in range(tops.size):
        blocks = tops[top]
        tops[top] = 0
        while blocks != 0:
            block = 64 * top + _count_bits((blocks & (~blocks + _ONE)) - _ONE)
            blocks &= blocks - _ONE
            some = marks[block]
            marks[block] = 0
            while some != 0:
                pad[64 * block + _count_bits((some & (~some + _ONE)) - _ONE)] = 0
                some &= some - _ONE


@kernel(
    f"void(int32[::1], int64, int64, {_LISTS}, {_ROWS}, {_LISTS}, {_ROWS}, int64[::1])"
)
def count_pairs(
    sources: Rows,
    first: int,
    width: int,
    heads: Rows,
    components: Rows,
    dropped: Rows,
    starts: Places,
    words: Rows,
    bits: Bits,
    own: Rows,
    less_heads: Rows,
    less_components: Rows,
    less_dropped: Rows,
    less_starts: Places,
    less_words: Rows,
    less_bits: Bits,
    less_own: Rows,
    counts: Places,
) -> None:
    """For each source, how many pairs one closure has and the other has not."""
    pad = np.zeros(width, np.uint64)
    marks = np.zeros((width >> 6) + 1, np.uint64)
    tops = np.zeros((width >> 12) + 1, np.uint64)
    less = np.zeros_like(pad)
    less_marks, less_tops = np.zeros_like(marks), np.zeros_like(tops)
    for at in range(sources.size):
        source = sources[at]
        _gather(
            source,
            first,
            heads,
            components,
            dropped,
            starts,
            words,
            bits,
            own,
            pad,
            marks,
            tops,
        )
        _gather(
            source,
            first,
            less_heads,
            less_components,
            less_dropped,
            less_starts,
            less_words,
            less_bits,
            less_own,
            less,
            less_marks,
            less_tops,
        )
        count = np.int64(0)
        for top in range(tops.size):
            blocks = tops[top]
            while blocks != 0:
                block = 64 * top + _count_bits((blocks & (~blocks + _ONE)) - _ONE)
                blocks &= blocks - _ONE
                some = marks[block]
                while some != 0:
                    word = 64 * block + _count_bits((some & (~some + _ONE)) - _ONE)
                    some &= some - _ONE
                    count += _count_bits(pad[word] & ~less[word])
        counts[at] = count
        _clear(pad, marks, tops)
        _clear(less, less_marks, less_tops)


@kernel(
    f"void(int32[::1], int64, int64, {_LISTS}, {_ROWS}, {_LISTS}, {_ROWS},"
    "uint32[::1], uint32[::1], uint64[::1])"
)
def write_pairs(
    sources: Rows,
    first: int,
    width: int,
    heads: Rows,
    components: Rows,
    dropped: Rows,
    starts: Places,
    words: Rows,
    bits: Bits,
    own: Rows,
    less_heads: Rows,
    less_components: Rows,
    less_dropped: Rows,
    less_starts: Places,
    less_words: Rows,
    less_bits: Bits,
    less_own: Rows,
    ids: Ids,
    ids_of_places: Ids,
    keys: Keys,
) -> None:
    """The pairs that `count_pairs` counts, as keys in order."""
    pad = np.zeros(width, np.uint64)
    marks = np.zeros((width >> 6) + 1, np.uint64)
    tops = np.zeros((width >> 12) + 1, np.uint64)
    less = np.zeros_like(pad)
    less_marks, less_tops = np.zeros_like(marks), np.zeros_like(tops)
    n = 0
    for source in sources:
        _gather(
            source,
            first,
            heads,
            components,
            dropped,
            starts,
            words,
            bits,
            own,
            pad,
            marks,
            tops,
        )
        _gather(
            source,
            first,
            less_heads,
            less_components,
            less_dropped,
            less_starts,
            less_words,
            less_bits,
            less_own,
            less,
            less_marks,
            less_tops,
        )
        half = uint64(ids[source]) << _HALF
        for top in range(tops.size):
            blocks = tops[top]
            while blocks != 0:
                block = 64 * top + _count_bits((blocks & (~blocks + _ONE)) - _ONE)
                blocks &= blocks - _ONE
                some = marks[block]
                while some != 0:
                    word = 64 * block + _count_bits((some & (~some + _ONE)) - _ONE)
                    some &= some - _ONE
                    rest = pad[word] & ~less[word]
                    base = first + 64 * word
                    while rest != 0:
                        place = base + _count_bits((rest & (~rest + _ONE)) - _ONE)
                        rest &= rest - _ONE
                        keys[n] = half | uint64(ids_of_places[place])
                        n += 1
        _clear(pad, marks, tops)
        _clear(less, less_marks, less_tops)


@kernel(
    f"void(int32[::1], int32[::1], int64, int64, int32[::1], {_LISTS},"
    "int64[::1], int32[::1], uint64[::1], uint8[::1])"
)
def test_pairs(
    firsts: Rows,
    seconds: Rows,
    first: int,
    width: int,
    places: Rows,
    heads: Rows,
    components: Rows,
    dropped: Rows,
    starts: Places,
    words: Rows,
    bits: Bits,
    marks: Flags,
) -> None:
    """Mark the pairs that the closure has; those whose place does not fit are left."""
    for at in range(firsts.size):
        source = firsts[at]
        place = places[seconds[at]] - first
        if place < 0 or place >= 64 * width or dropped[source] - first == place:
            continue
        wanted = place >> 6
        bit = _ONE << uint64(place & 63)
        for listed in range(heads[source], heads[source + 1]):
            component = components[listed]
            low, high = starts[component], starts[component + 1]
            while low < high:
                middle = (low + high) >> 1
                if words[middle] < wanted:
                    low = middle + 1
                else:
                    high = middle
            if low < starts[component + 1] and words[low] == wanted and bits[low] & bit:
                marks[at] = 1
                break
