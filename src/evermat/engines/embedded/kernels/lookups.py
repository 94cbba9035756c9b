"""Compiled look-ups in indexes of which only the address is known.

What the numbers of an index mean is told in `layout`, and what keys are in `kernels`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.keys import (
    HASH_OF_NOTHING,
    inner_kernel,
    int64,
    kernel,
    mixed,
    uint8,
    uint64,
)
from evermat.engines.embedded.kernels.layout import (
    ARITY_OF_RUN,
    BASE,
    BUCKETS,
    DIRECTORY,
    FILTER,
    FIRST_RUN,
    KEYS,
    MASK,
    ROOM,
    ROWS,
    RUNS,
    SHIFT,
    SIZE,
    TABLE,
    prefetch,
    read_id,
    read_key,
    read_number,
    read_row,
)

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids, Keys, Places

_HALF = np.uint64(32)
_WORD = 8
_ROW = 4
_SIGN = 63

ALONE = 2
"""How keys of one id are looked for."""

_NARROW = 8
"""So many keys are compared without further decisions: as many as are fetched at once,
or nearly so."""


@inner_kernel("int64(int64, uint64)")
def _may_have(run: int, goal: np.uint64) -> int:
    """Whether the filter of a run lets a goal pass: 1, or 0 if no key is equal."""
    bit = int64(goal >> _HALF) & read_number(run, MASK)
    word = read_key(read_number(run, FILTER), bit >> 6)
    return int64((word >> uint64(bit & 63)) & uint64(1))


@inner_kernel("boolean(int64)")
def has_all_halves(run: int) -> bool:
    """Whether a run has a directory with a bucket for each upper half of keys."""
    return bool(read_number(run, BUCKETS) > 0 and read_number(run, SHIFT) == 0)


@inner_kernel("UniTuple(int64, 2)(int64, uint64, uint8)")
def part_of_run(run: int, goal: np.uint64, by_half: int) -> tuple[int, int]:
    """Where keys equal to a goal begin in a run, and an end that is not before theirs.

    Keys need only have the upper half of the goal if it is looked up `by_half`, where
    its lower half is zero.
    """
    if read_number(run, FILTER) != 0 and not _may_have(run, goal):
        return int64(0), int64(0)
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
        if by_half and has_all_halves(run):
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


@inner_kernel("int64(int64, int64, uint64, int64, int64, int64, uint32[::1], int64)")
def row_in_run(
    relation: int,
    run: int,
    goal: np.uint64,
    place: int,
    end: int,
    arity: int,
    ids: Ids,
    start: int,
) -> int:
    """The row of a fact in a part of a run, or -1; see `find_row`."""
    if arity == 1 and has_all_halves(run):
        # Whatever is in the part is the fact, and no key need be read.
        return int64(read_row(read_number(run, ROWS), place)) if place < end else -1
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
    return int64(-1)


@inner_kernel("int64(int64, int64, int64, uint64, uint32[::1], int64)")
def find_row(
    relation: int, index: int, arity: int, goal: np.uint64, ids: Ids, start: int
) -> int:
    """The row of a fact, or -1; `goal` is its key, and it begins at a place of ids."""
    run = index + _WORD * FIRST_RUN
    for _ in range(read_number(index, RUNS)):
        place, end = part_of_run(run, goal, uint8(arity == 1))
        row = row_in_run(relation, run, goal, place, end, arity, ids, start)
        if row >= 0:
            return row
        run += _WORD * ARITY_OF_RUN
    return int64(-1)


# ----------------------------------------------------------------------- many at once


@inner_kernel("int64(uint64, uint64)")
def _all_ones_if_less(one: np.uint64, other: np.uint64) -> int:
    """-1 if a key is less than another, else 0.

    A comparison would become a branch, however it is written.
    """
    borrow = (~one & other) | ((~one | other) & (one - other))
    return int64(borrow) >> _SIGN


@kernel(
    "void(int64, uint8, uint64[::1], uint32[::1], int64, int64[::1], int64[::1], "
    "int64[::1])"
)
def find_places(
    run: int,
    by_half: int,
    goals: Keys,
    which: Ids,
    size: int,
    firsts: Places,
    lasts: Places,
    room: Places,
) -> None:
    """Do for many goals what `part_of_run` does for one.

    Runs are larger than the cache, and each read decides where the next one is. So all
    goals take a step, and what their next ones read is fetched meanwhile. So are the
    rows of what is found.

    Args:
        run: where to look.
        by_half: see `part_of_run`; `ALONE`, if keys have no other half to be read.
        goals: keys.
        which: which of them to look for.
        size: how many.
        firsts: is given where the keys begin, in the place of each goal.
        lasts: is given an end, likewise.
        room: as much room again.
    """
    if read_number(run, FILTER) != 0:
        passing = np.empty(size, np.uint32)
        kept = int64(0)
        for i in range(size):
            at = which[i]
            firsts[at] = 0
            lasts[at] = 0
            passing[kept] = at
            kept += _may_have(run, goals[at])
        if kept == 0:
            return
        which, size = passing, kept
    buckets = read_number(run, BUCKETS)
    shift = read_number(run, SHIFT)
    base = read_number(run, BASE)
    directory = read_number(run, DIRECTORY)
    keys = read_number(run, KEYS)
    rows = read_number(run, ROWS)
    is_exact = by_half and has_all_halves(run)
    for i in range(size if buckets > 0 else 0):
        bucket = (int64(goals[which[i]] >> _HALF) - base) >> shift
        prefetch(directory + _ROW * bucket)
    widest = int64(0)
    for i in range(size):
        at = which[i]
        low = int64(0)
        high = read_number(run, SIZE)
        if buckets > 0:
            bucket = (int64(goals[at] >> _HALF) - base) >> shift
            if bucket < 0 or bucket >= buckets:
                high = int64(0)
            else:
                low = int64(read_row(directory, bucket))
                high = int64(read_row(directory, bucket + 1))
        firsts[at] = low
        lasts[at] = high
        room[at] = high - low
        widest = max(widest, high - low)
        if not is_exact:
            prefetch(keys + _WORD * ((low + high) >> 1))
        elif by_half != ALONE:
            prefetch(keys + _WORD * low)
        prefetch(rows + _ROW * low)
    if is_exact:
        return
    # No branch depends on what is read, because half of all guesses would be wrong.
    total = read_number(run, SIZE)
    last = total - 1
    while widest > _NARROW:
        for i in range(size):
            at = which[i]
            low, width = firsts[at], room[at]
            half = width >> 1
            key = read_key(keys, min(low + half, last))
            after = _all_ones_if_less(key, goals[at]) & (-width >> _SIGN)
            low += (half + 1) & after
            width = half + ((width - 2 * half - 1) & after)
            firsts[at] = low
            room[at] = width
            prefetch(keys + _WORD * (low + (width >> 1)))
        widest >>= 1
    # All keys before a part are less than its goal, and none after it is: so it does
    # not matter if some of them are counted.
    for i in range(size):
        at = which[i]
        low = min(firsts[at], max(total - _NARROW, 0))
        before = int64(0)
        if total >= _NARROW:
            for step in range(_NARROW):
                before += int64(read_key(keys, low + step) < goals[at])
        else:
            for step in range(total):
                before += int64(read_key(keys, step) < goals[at])
        firsts[at] = low + before
        prefetch(rows + _ROW * (low + before))


@inner_kernel("uint8(int64)")
def half_of_fact(arity: int) -> int:
    """What `find_places` is told by which facts of so many columns are looked up."""
    return uint8(ALONE if arity == 1 else 0)


@kernel(
    "void(int64, int64, int64, uint32[::1], int64, uint64[::1], uint32[::1], "
    "int64[:, ::1])"
)
def find_rows(
    relation: int,
    index: int,
    arity: int,
    ids: Ids,
    size: int,
    goals: Keys,
    missing: Ids,
    room: Places,
) -> None:
    """Do for many facts what `find_row` does for one.

    Args:
        relation: of the facts.
        index: its primary one.
        arity: how many columns it has.
        ids: of one fact after the other.
        size: how many they are.
        goals: is given their keys.
        missing: is given those that have no row.
        room: four lines to work with; the first is given the row of each fact, or -1.
    """
    rows, firsts, lasts = room[0], room[1], room[2]
    for i in range(size):
        goals[i] = key_of(ids, arity * i, arity)
        rows[i] = -1
        missing[i] = i
    run = index + _WORD * FIRST_RUN
    for _ in range(read_number(index, RUNS)):
        half = half_of_fact(arity)
        find_places(run, half, goals, missing, size, firsts, lasts, room[3])
        left = int64(0)
        for i in range(size):
            at = missing[i]
            rows[at] = row_in_run(
                relation, run, goals[at], firsts[at], lasts[at], arity, ids, arity * at
            )
            if rows[at] < 0:
                missing[left] = at
                left += 1
        size = left
        run += _WORD * ARITY_OF_RUN
