"""Look-ups in indexes given by address: filter, directory, then binary search.

`layout` explains the numbers of an index, and `keys` the form of keys. A *goal* is a
key that is sought.
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
"""A value of `by_half`: keys of one id, whose lower halves are all zero."""

_NARROW = 8
"""The binary search ends at this many keys, about a cache line, and all of these are
compared without branches."""


@inner_kernel("int64(int64, uint64)")
def _may_have(run: int, goal: np.uint64) -> int:
    """Return 1 if the filter of a run lets a goal pass, 0 if no key can match."""
    bit = int64(goal >> _HALF) & read_number(run, MASK)
    word = read_key(read_number(run, FILTER), bit >> 6)
    return int64((word >> uint64(bit & 63)) & uint64(1))


@inner_kernel("boolean(int64)")
def has_all_halves(run: int) -> bool:
    """Return whether a run has a directory with a bucket for each upper half."""
    return bool(read_number(run, BUCKETS) > 0 and read_number(run, SHIFT) == 0)


@inner_kernel("UniTuple(int64, 2)(int64, uint64, uint8)")
def part_of_run(run: int, goal: np.uint64, by_half: int) -> tuple[int, int]:
    """Return where keys equal to a goal begin in a run, and a bound on their end.

    If `by_half`, only the upper halves have to be equal, and the goal has a lower half
    of zero.
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
    """Return the key of a fact, or of some of its columns; see `index.make_keys`."""
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
    """Return the row of a fact in a part of a run, or -1; see `find_row`."""
    if arity == 1 and has_all_halves(run):
        # The part has no key but that of the fact, so keys need not be read.
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
    """Return the row of a fact, or -1.

    `goal` is the key of the fact, and its ids begin at `start`.
    """
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
    """Return -1 if a key is less than another, else 0, without a branch.

    The compiler turns a comparison into a branch, however it is written.
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
    """Search a run for many goals in lockstep, as `part_of_run` does for one.

    Runs are larger than the cache, and each read of a binary search depends on the one
    before it. Therefore all goals take each step together, and prefetch what the next
    one reads. The rows of the keys that are found are prefetched as well.

    Args:
        run: the address of the run.
        by_half: see `part_of_run`; `ALONE` if keys have no lower half to be read.
        goals: keys.
        which: the positions of the goals to look up.
        size: their number.
        firsts: receives where the keys begin, at the position of each goal.
        lasts: receives a bound on their end, likewise.
        room: a buffer of the same size.
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
    # No branch depends on keys, as half of all predictions would be wrong.
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
    # Counting may include keys outside a part: those before it are all less than the
    # goal, and those after it are not.
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
    """Return the argument `by_half` of `find_places` for facts of some arity."""
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
    """Look up the rows of many facts, as `find_row` does for one.

    Args:
        relation: the address of the relation.
        index: the address of its primary index.
        arity: its number of columns.
        ids: the ids of one fact after the other.
        size: the number of facts.
        goals: receives their keys.
        missing: receives the positions of facts that have no row.
        room: four lines of buffers; the first receives the row of each fact, or -1.
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
