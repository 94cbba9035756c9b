"""The compiled loops of the dictionary: texts are hashed, compared and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types

from evermat.engines.embedded.kernels import kernel

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Places, Rows

_types: Any = types  # Numba's own stubs do not list them
int32, int64, uint8 = _types.int32, _types.int64, _types.uint8
uint32, uint64 = _types.uint32, _types.uint64

_keys = uint64[::1]
_ids = uint32[::1]
_rows = int32[::1]
_flags = uint8[::1]
_places = int64[::1]
_given_bytes = _types.Array(uint8, 1, "C", readonly=True)
_given_places = _types.Array(int64, 1, "C", readonly=True)

_BLOCK = 64
"""So many texts are looked up together."""


@kernel(uint64(_given_bytes, int64, int64, uint8))
def hash_text(data: Flags, start: int, end: int, kind: int) -> np.uint64:
    """A hash of a text and its kind, eight bytes at a time."""
    h = uint64(0xCBF29CE484222325) ^ uint64(kind)
    i = start
    while i + 8 <= end:
        word = uint64(0)
        for j in range(8):
            word |= uint64(data[i + j]) << uint64(8 * j)
        h = (h ^ word) * uint64(0x9FB21C651E98DF25)
        h ^= h >> uint64(32)
        i += 8
    while i < end:
        h = (h ^ uint64(data[i])) * uint64(0x100000001B3)
        i += 1
    h ^= h >> uint64(29)
    h *= uint64(0xBF58476D1CE4E5B9)
    return h ^ (h >> uint64(32))


@kernel(
    _types.UniTuple(int64, 2)(
        _given_bytes,
        _given_places,
        _given_bytes,
        _flags,
        _places,
        _flags,
        _keys,
        _rows,
        int64,
        uint8,
        _ids,
    )
)
def intern_texts(
    data: Flags,
    ends: Places,
    kinds: Flags,
    texts: Flags,
    text_ends: Places,
    text_kinds: Flags,
    hashes: Keys,
    slots: Rows,
    count: int,
    add: int,
    ids: Ids,
) -> tuple[int, int]:
    """Find or add texts in the dictionary; return its new count and byte length.

    `data`, `ends` and `kinds` are the texts asked for: text i ends before `ends[i + 1]`
    and starts at `ends[i]`. The dictionary is `texts`, `text_ends`, `text_kinds` and
    `hashes` by id, and `slots`, an open hash table of ids. Unknown texts are added if
    `add` is set, and get the id 2**32 - 1 otherwise.
    """
    mask = uint64(slots.size - 1)
    length = text_ends[count]
    asked = np.empty(_BLOCK, np.uint64)
    near = np.empty(_BLOCK, np.int32)
    alike = np.empty(_BLOCK, np.uint8)
    for block in range(0, ids.size, _BLOCK):
        size = min(_BLOCK, ids.size - block)
        # The dictionary is larger than the cache. Reading what is likely to be needed
        # for many texts before any of them is compared lets the waits overlap.
        for k in range(size):
            i = block + k
            kind = kinds[i] if kinds.size > 1 else kinds[0]
            asked[k] = hash_text(data, ends[i], ends[i + 1], kind)
        for k in range(size):
            near[k] = slots[asked[k] & mask]
        for k in range(size):
            alike[k] = near[k] >= 0 and hashes[near[k]] == asked[k]
        for k in range(size):
            if alike[k]:
                i = block + k
                kind = kinds[i] if kinds.size > 1 else kinds[0]
                begin = text_ends[near[k]]
                alike[k] = text_kinds[near[k]] == kind
                asked_length = ends[i + 1] - ends[i]
                if text_ends[near[k] + 1] - begin != asked_length:
                    alike[k] = 0
                elif asked_length > 0:
                    # Long texts are in two lines of the cache.
                    last = asked_length - 1
                    alike[k] &= texts[begin] == data[ends[i]]
                    alike[k] &= texts[begin + last] == data[ends[i] + last]
        for k in range(size):
            i = block + k
            start = ends[i]
            end = ends[i + 1]
            kind = kinds[i] if kinds.size > 1 else kinds[0]
            h = asked[k]
            slot = h & mask
            if near[k] >= 0 and not alike[k]:
                slot = (slot + uint64(1)) & mask
            while True:
                known = slots[slot]
                if known < 0:
                    break
                if hashes[known] == h and text_kinds[known] == kind:
                    begin = text_ends[known]
                    if text_ends[known + 1] - begin == end - start:
                        same = True
                        for j in range(end - start):
                            if texts[begin + j] != data[start + j]:
                                same = False
                                break
                        if same:
                            break
                slot = (slot + uint64(1)) & mask
            if slots[slot] >= 0:
                ids[i] = slots[slot]
            elif add:
                slots[slot] = count
                hashes[count] = h
                text_kinds[count] = kind
                for j in range(end - start):
                    texts[length + j] = data[start + j]
                length += end - start
                text_ends[count + 1] = length
                ids[i] = count
                count += 1
            else:
                ids[i] = uint32(0xFFFFFFFF)
    return count, length


@kernel(int64(_keys, int64, _rows))
def rebuild_slots(hashes: Keys, count: int, slots: Rows) -> int:
    """Fill an empty hash table with the first `count` ids."""
    mask = uint64(slots.size - 1)
    slots[:] = -1
    for i in range(count):
        slot = hashes[i] & mask
        while slots[slot] >= 0:
            slot = (slot + uint64(1)) & mask
        slots[slot] = i
    return count
