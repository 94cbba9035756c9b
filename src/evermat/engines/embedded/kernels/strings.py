"""The hash table of the dictionary: strings are hashed, compared and interned.

The dictionary finds ids by open addressing with linear probing in a table of 64-bit
*slots*. The lower half of a slot is an id; the upper half is its *mark*: the kind of
the string and a part of its hash. Most look-ups therefore touch no more than three
places in memory: a slot, the offset of the string with that id, and the string itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.keys import (
    inner_kernel,
    int64,
    kernel,
    uint8,
    uint32,
    uint64,
)
from evermat.engines.embedded.kernels.layout import (
    prefetch,
    read_byte,
    read_word,
    write_byte,
    write_word,
)

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Places

_BLOCK = 64
"""The number of strings that are looked up together."""

_AHEAD = 16
"""Prefetch distance of `copy_texts`, in strings."""

EMPTY = 0xFFFF_FFFF_FFFF_FFFF
"""An unused slot; its lower half is not the id of a constant."""

_HALF = np.uint64(32)
_ID = np.uint64(0xFFFF_FFFF)
_KIND_BITS = 5
_HASH_IN_MARK = np.uint64((0xFFFF_FFFF << 32 + _KIND_BITS) & EMPTY)
_WORD = 8


@inner_kernel(uint64(int64, int64, uint8))
def hash_text(address: int, length: int, kind: int) -> np.uint64:
    """Hash a string and its kind, eight bytes at a time."""
    h = uint64(0xCBF29CE484222325) ^ (uint64(kind) << _HALF) ^ uint64(length)
    if length < _WORD:
        for i in range(length):
            h = (h ^ uint64(read_byte(address + i))) * uint64(0x100000001B3)
    else:
        last = address + length - _WORD
        while address < last:
            h = (h ^ read_word(address)) * uint64(0x9FB21C651E98DF25)
            h ^= h >> _HALF
            address += _WORD
        # The last word may overlap the one before it.
        h = (h ^ read_word(last)) * uint64(0x9FB21C651E98DF25)
    h ^= h >> uint64(29)
    h *= uint64(0xBF58476D1CE4E5B9)
    return h ^ (h >> _HALF)


@inner_kernel(uint8(int64, int64, int64))
def _are_same(one: int, other: int, length: int) -> int:
    """Return whether two strings of the same length are equal."""
    if length < _WORD:
        for i in range(length):
            if read_byte(one + i) != read_byte(other + i):
                return uint8(0)
        return uint8(1)
    last = length - _WORD
    at = 0
    while at < last:
        if read_word(one + at) != read_word(other + at):
            return uint8(0)
        at += _WORD
    return uint8(read_word(one + last) == read_word(other + last))


@inner_kernel("void(int64, int64, int64)")
def _copy(source: int, target: int, length: int) -> None:
    """Copy a string from one address to another."""
    if length < _WORD:
        for i in range(length):
            write_byte(target + i, read_byte(source + i))
        return
    last = length - _WORD
    at = 0
    while at < last:
        write_word(target + at, read_word(source + at))
        at += _WORD
    write_word(target + last, read_word(source + last))


@inner_kernel(uint64(uint64, uint8))
def _mark(h: np.uint64, kind: int) -> np.uint64:
    """Return the upper half of the slot of a string."""
    return (h & _HASH_IN_MARK) | (uint64(kind) << _HALF)


@kernel(
    "int64(Array(uint8, 1, 'C', readonly=True), Array(int64, 1, 'C', readonly=True), "
    "Array(uint8, 1, 'C', readonly=True), uint8[::1], int64[::1], uint8[::1], "
    "uint64[::1], int64, uint8, uint32[::1])"
)
def intern_texts(
    data: Flags,
    ends: Places,
    kinds: Flags,
    texts: Flags,
    text_ends: Places,
    text_kinds: Flags,
    slots: Keys,
    count: int,
    add: int,
    ids: Ids,
) -> int:
    """Look up strings in the dictionary, or add them; return its new size.

    `data`, `ends` and `kinds` are the strings to look up: string i is
    `data[ends[i]:ends[i + 1]]`. The dictionary consists of `texts`, `text_ends` and
    `text_kinds`, by id, and `slots`. Unknown strings are added if `add` is set, and get
    the id 2**32 - 1 otherwise.
    """
    mask = uint64(slots.size - 1)
    wanted = int64(data.ctypes.data)
    stored = int64(texts.ctypes.data)
    starts = int64(text_ends.ctypes.data)
    table = int64(slots.ctypes.data)
    hashes = np.empty(_BLOCK, np.uint64)
    marks = np.empty(_BLOCK, np.uint64)
    likely = np.empty(_BLOCK, np.int64)
    begins = np.empty(_BLOCK, np.int64)
    for block in range(0, ids.size, _BLOCK):
        size = min(_BLOCK, ids.size - block)
        # The dictionary is larger than the cache. Prefetching what a block of strings
        # is likely to need, before comparing any of them, makes the waits overlap.
        for k in range(size):
            i = block + k
            kind = kinds[i] if kinds.size > 1 else kinds[0]
            h = hash_text(wanted + ends[i], ends[i + 1] - ends[i], kind)
            hashes[k] = h
            marks[k] = _mark(h, kind)
            prefetch(table + _WORD * int64(h & mask))
        for k in range(size):
            # A third of all strings are not in the first slot that is probed,
            # but the next slots are usually in the same cache line.
            slot = hashes[k] & mask
            while slots[slot] != uint64(EMPTY) and (slots[slot] ^ marks[k]) >> _HALF:
                slot = (slot + uint64(1)) & mask
            is_likely = slots[slot] != uint64(EMPTY)
            likely[k] = int64(slots[slot] & _ID) if is_likely else int64(-1)
            if is_likely:
                prefetch(starts + _WORD * likely[k])
        for k in range(size):
            if likely[k] >= 0:
                begins[k] = text_ends[likely[k]]
                length = ends[block + k + 1] - ends[block + k]
                if text_ends[likely[k] + 1] - begins[k] != length:
                    likely[k] = -1
                else:
                    prefetch(stored + begins[k])
                    prefetch(stored + begins[k] + length - 1)
        for k in range(size):
            i = block + k
            start = wanted + ends[i]
            length = ends[i + 1] - ends[i]
            if likely[k] >= 0 and _are_same(stored + begins[k], start, length):
                ids[i] = likely[k]
                continue
            mark = marks[k]
            slot = hashes[k] & mask
            while slots[slot] != uint64(EMPTY):
                if (slots[slot] ^ mark) >> _HALF == 0:
                    id_ = int64(slots[slot] & _ID)
                    begin = text_ends[id_]
                    if text_ends[id_ + 1] - begin == length and _are_same(
                        stored + begin, start, length
                    ):
                        break
                slot = (slot + uint64(1)) & mask
            if slots[slot] != uint64(EMPTY):
                ids[i] = uint32(slots[slot] & _ID)
            elif add:
                slots[slot] = mark | uint64(count)
                text_kinds[count] = kinds[i] if kinds.size > 1 else kinds[0]
                begin = text_ends[count]
                _copy(start, stored + begin, length)
                text_ends[count + 1] = begin + length
                ids[i] = count
                count += 1
            else:
                ids[i] = uint32(0xFFFFFFFF)
    return int64(count)


@kernel("int64(uint8[::1], int64[::1], uint8[::1], int64, uint64[::1])")
def rebuild_slots(
    texts: Flags, text_ends: Places, text_kinds: Flags, count: int, slots: Keys
) -> int:
    """Rebuild the hash table from the first `count` ids."""
    mask = uint64(slots.size - 1)
    stored = int64(texts.ctypes.data)
    slots[:] = uint64(EMPTY)
    for i in range(count):
        begin = text_ends[i]
        h = hash_text(stored + begin, text_ends[i + 1] - begin, text_kinds[i])
        slot = h & mask
        while slots[slot] != uint64(EMPTY):
            slot = (slot + uint64(1)) & mask
        slots[slot] = _mark(h, text_kinds[i]) | uint64(i)
    return count


@kernel(
    "int64(Array(uint32, 1, 'C', readonly=True), "
    "Array(int64, 1, 'C', readonly=True), int64[::1])"
)
def measure_texts(ids: Ids, ends: Places, places: Places) -> int:
    """Compute the offsets of the strings of ids, laid end to end; return the length."""
    length = int64(0)
    for i in range(ids.size):
        places[i] = length
        length += ends[int64(ids[i]) + 1] - ends[ids[i]]
    places[ids.size] = length
    return length


@kernel(
    "int64(Array(uint32, 1, 'C', readonly=True), "
    "Array(uint8, 1, 'C', readonly=True), "
    "Array(int64, 1, 'C', readonly=True), int64[::1], uint8[::1])"
)
def copy_texts(
    ids: Ids, texts: Flags, ends: Places, places: Places, copies: Flags
) -> int:
    """Copy the strings of ids to their offsets; return their number."""
    source, target = int64(texts.ctypes.data), int64(copies.ctypes.data)
    for i in range(ids.size):
        if i + _AHEAD < ids.size:
            prefetch(source + ends[ids[i + _AHEAD]])
        _copy(source + ends[ids[i]], target + places[i], places[i + 1] - places[i])
    return ids.size


@kernel("uint64(int64, int64)")
def checksum(address: int, size: int) -> np.uint64:
    """Compute a checksum of words, in four independent lanes that run in parallel.

    Every step is invertible, so that a change of a single word is always detected.
    """
    factor = uint64(0x9FB21C651E98DF25)
    a, b = uint64(0xCBF29CE484222325), uint64(0x84222325CBF29CE4)
    c, d = uint64(0x9E3779B97F4A7C15), uint64(0xC2B2AE3D27D4EB4F)
    last = address + _WORD * size
    while address + 4 * _WORD <= last:
        a = (a ^ read_word(address)) * factor
        b = (b ^ read_word(address + _WORD)) * factor
        c = (c ^ read_word(address + 2 * _WORD)) * factor
        d = (d ^ read_word(address + 3 * _WORD)) * factor
        a ^= a >> _HALF
        b ^= b >> _HALF
        c ^= c >> _HALF
        d ^= d >> _HALF
        address += 4 * _WORD
    while address < last:
        a = (a ^ read_word(address)) * factor
        a ^= a >> _HALF
        address += _WORD
    a = (a ^ b) * factor
    a ^= a >> _HALF
    a = (a ^ c) * factor
    a ^= a >> _HALF
    a = (a ^ d) * factor
    return a ^ (a >> _HALF)
