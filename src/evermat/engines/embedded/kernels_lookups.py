"""Compiled look-ups in indexes of which only the address is known.

What the numbers of an index mean is told in `layout`, and what keys are in `kernels`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels import (
    HASH_OF_NOTHING,
    inner_kernel,
    int64,
    mixed,
    uint8,
    uint64,
)
from evermat.engines.embedded.layout import (
    ARITY_OF_RUN,
    BASE,
    BUCKETS,
    DIRECTORY,
    FIRST_RUN,
    KEYS,
    ROOM,
    ROWS,
    RUNS,
    SHIFT,
    SIZE,
    TABLE,
)
from evermat.engines.embedded.raw import (
    prefetch,
    read_id,
    read_key,
    read_number,
    read_row,
)

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids

_HALF = np.uint64(32)
_WORD = 8
_ROW = 4


@inner_kernel("UniTuple(int64, 2)(int64, uint64, uint8)")
def part_of_run(run: int, goal: np.uint64, by_half: int) -> tuple[int, int]:
    """Where keys equal to a goal begin in a run, and an end that is not before theirs.

    Keys need only have the upper half of the goal if it is looked up `by_half`, where
    its lower half is zero.
    """
    low = int64(0)
    high = read_number(run, SIZE)
    buckets = read_number(run, BUCKETS)
    if buckets > 0:
        shift = read_number(run, SHIFT)
        bucket = (int64(goal >> _HALF) - read_number(run, BASE)) >> shift
        if bucket < 0 or bucket >= buckets:
            return int64(0), int64(0)
        directory = read_number(run, DIRECTORY)
        low = int64(read_row(directory, bucket))
        high = int64(read_row(directory, bucket + 1))
        if by_half and shift == 0:
            return low, high
    keys = read_number(run, KEYS)
    end = high
    while low < end:
        middle = (low + end) >> 1
        if read_key(keys, middle) < goal:
            low = middle + 1
        else:
            end = middle
    return low, high


@inner_kernel("uint64(uint32[::1], int64, int64)")
def key_of(ids: Ids, start: int, size: int) -> np.uint64:
    """The key of a fact, or of some of its columns; see `index.make_keys`."""
    if size == 0:
        return uint64(0)
    first = uint64(ids[start])
    if size == 1:
        return first << _HALF
    if size == 2:  # noqa: PLR2004  two ids fit into a key
        return (first << _HALF) | uint64(ids[start + 1])
    h = HASH_OF_NOTHING
    for at in range(start, start + size):
        h = mixed(h, ids[at])
    return h


@inner_kernel("int64(int64, int64, int64, uint64, uint32[::1], int64)")
def find_row(
    relation: int, index: int, arity: int, goal: np.uint64, ids: Ids, start: int
) -> int:
    """The row of a fact, or -1; `goal` is its key, and it begins at a place of ids."""
    run = index + _WORD * FIRST_RUN
    for _ in range(read_number(index, RUNS)):
        place, end = part_of_run(run, goal, uint8(0))
        keys = read_number(run, KEYS)
        while place < end and read_key(keys, place) == goal:
            row = int64(read_row(read_number(run, ROWS), place))
            same = True
            if arity > 2:  # noqa: PLR2004  the key is a hash
                table = read_number(relation, TABLE)
                room = read_number(relation, ROOM)
                for at in range(arity):
                    if read_id(table, at * room + row) != ids[start + at]:
                        same = False
                        break
            if same:
                return row
            place += 1
        run += _WORD * ARITY_OF_RUN
    return int64(-1)


@inner_kernel("int64(int64, uint64)")
def directory_entry(index: int, goal: np.uint64) -> int:
    """Where the directory of the longest run tells of keys like the goal, or 0."""
    run = index + _WORD * FIRST_RUN
    buckets = read_number(run, BUCKETS)
    if read_number(index, RUNS) == 0 or buckets == 0:
        return int64(0)
    bucket = (int64(goal >> _HALF) - read_number(run, BASE)) >> read_number(run, SHIFT)
    if bucket < 0 or bucket >= buckets:
        return int64(0)
    return read_number(run, DIRECTORY) + _ROW * bucket


@inner_kernel("void(int64, int64)")
def fetch_keys(index: int, entry: int) -> None:
    """Fetch what a look-up is likely to read, by an entry of the directory."""
    run = index + _WORD * FIRST_RUN
    place = int64(read_row(entry, 0))
    prefetch(read_number(run, KEYS) + _WORD * place)
    prefetch(read_number(run, ROWS) + _ROW * place)
