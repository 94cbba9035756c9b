"""The compiled loops of the embedded engine.

Few, flat and free of Python objects: each is compiled for the types that its decorator
names, ahead of its use (see `runtime`). They release the interpreter's lock, so two of
them run on two cores at once.

Vocabulary: an *id* is a constant (32 bits); a *key* is two ids packed into 64 bits, the
first one in the upper half, or a hash of more than two; a *row* is the position of a
fact in its relation. A *directory* divides sorted keys by their upper half, so that a
look-up starts at most a few keys away from its goal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.runtime import (
    inner_kernel,
    int32,
    int64,
    kernel,
    uint8,
    uint16,
    uint32,
    uint64,
    void,
)

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Rows, Status

# Modules with kernels import from here what all of them need.
__all__ = (
    "inner_kernel",
    "int32",
    "int64",
    "kernel",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
)

_keys = uint64[::1]
_ids = uint32[::1]
_rows = int32[::1]
_table = uint32[:, ::1]
_status = uint16[::1]
_flags = uint8[::1]
_void = void

KEY_BITS = 64
DIGIT_BITS = 11
DIGIT_SIZE = 1 << DIGIT_BITS
SMALL = 48
"""Up to this many keys, insertion sort beats the passes of a radix sort."""

SPARSE = 16
"""With no more keys for each goal, they are walked through one by one."""

HASH_OF_NOTHING = np.uint64(0x9E3779B97F4A7C15)

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


# ----------------------------------------------------------------------- sorting


@kernel(_keys(_keys, _keys, uint64))
def sort_from_bit(keys: Keys, spare: Keys, lowest: np.uint64) -> Keys:
    """Sort keys by their bits from `lowest` on; the result is one of the two arrays.

    Only bits in which keys differ are sorted by: ids are dense, so that is usually
    half of them. Keys that are in order already are left alone.
    """
    n = keys.size
    in_order = True
    ones = uint64(0)
    common = ~uint64(0)
    for i in range(n):
        ones |= keys[i]
        common &= keys[i]
        if i > 0 and keys[i] >> lowest < keys[i - 1] >> lowest:
            in_order = False
    if in_order:
        return keys
    varying = ones ^ common
    starts = np.empty(DIGIT_SIZE, np.int64)
    source, target = keys, spare
    shift = lowest
    while shift < KEY_BITS and (varying >> shift) != 0:
        while (varying >> shift) & uint64(1) == 0:
            shift += uint64(1)
        starts[:] = 0
        for i in range(n):
            starts[(source[i] >> shift) & uint64(DIGIT_SIZE - 1)] += 1
        total = 0
        for digit in range(DIGIT_SIZE):
            count = starts[digit]
            starts[digit] = total
            total += count
        for i in range(n):
            key = source[i]
            digit = (key >> shift) & uint64(DIGIT_SIZE - 1)
            target[starts[digit]] = key
            starts[digit] += 1
        source, target = target, source
        shift += uint64(DIGIT_BITS)
    return source


@kernel(_keys(_keys, _keys))
def sort_keys(keys: Keys, spare: Keys) -> Keys:
    """Sort keys with the help of a spare array; the result is one of the two."""
    n = keys.size
    if n > SMALL:
        return sort_from_bit(keys, spare, uint64(0))
    for i in range(1, n):
        key = keys[i]
        j = i - 1
        while j >= 0 and keys[j] > key:
            keys[j + 1] = keys[j]
            j -= 1
        keys[j + 1] = key
    return keys


@kernel(int64(_keys, _rows, _keys, _rows))
def sort_pairs(keys: Keys, rows: Rows, spare: Keys, spare_rows: Rows) -> int:
    """Sort keys and carry rows along; return 1 if the result is in the spare arrays."""
    n = keys.size
    if n <= SMALL:
        for i in range(1, n):
            key = keys[i]
            row = rows[i]
            j = i - 1
            while j >= 0 and keys[j] > key:
                keys[j + 1] = keys[j]
                rows[j + 1] = rows[j]
                j -= 1
            keys[j + 1] = key
            rows[j + 1] = row
        return 0
    ones = uint64(0)
    common = ~uint64(0)
    for i in range(n):
        ones |= keys[i]
        common &= keys[i]
    varying = ones ^ common
    source, carried, target, target_rows = keys, rows, spare, spare_rows
    starts = np.empty(DIGIT_SIZE, np.int64)
    shift = uint64(0)
    passes = 0
    while shift < KEY_BITS and (varying >> shift) != 0:
        while (varying >> shift) & uint64(1) == 0:
            shift += uint64(1)
        starts[:] = 0
        for i in range(n):
            starts[(source[i] >> shift) & uint64(DIGIT_SIZE - 1)] += 1
        total = 0
        for digit in range(DIGIT_SIZE):
            count = starts[digit]
            starts[digit] = total
            total += count
        for i in range(n):
            key = source[i]
            place = (key >> shift) & uint64(DIGIT_SIZE - 1)
            target[starts[place]] = key
            target_rows[starts[place]] = carried[i]
            starts[place] += 1
        source, target = target, source
        carried, target_rows = target_rows, carried
        shift += uint64(DIGIT_BITS)
        passes += 1
    return passes & 1


@kernel(int64(_keys, _keys, _rows, _rows))
def count_groups(keys: Keys, spare: Keys, tally: Rows, counts: Rows) -> int:
    """Count equal keys among keys that are in the order of their upper halves.

    The distinct keys are written to the front of `keys`, in order. Where the lower
    halves of a group are dense they are tallied, which costs far less than sorting
    them; `tally` is zero before and after.
    """
    n = keys.size
    m = 0
    start = 0
    while start < n:
        half = keys[start] >> _HALF
        low = keys[start] & _LOW
        high = low
        end = start + 1
        while end < n and keys[end] >> _HALF == half:
            value = keys[end] & _LOW
            low = min(low, value)
            high = max(high, value)
            end += 1
        size = end - start
        span = int64(high - low) + 1
        if span <= tally.size and span <= 8 * size:
            for i in range(start, end):
                tally[(keys[i] & _LOW) - low] += 1
            base = (half << _HALF) | low
            offset = 0
            # Without a branch for gaps, as no processor guesses where they are. When
            # there are as many as keys in the group, it ends: others follow it.
            while offset < span and m < end:
                times = tally[offset]
                keys[m] = base + uint64(offset)
                counts[m] = times
                tally[offset] = 0
                m += times != 0
                offset += 1
        else:
            group = sort_keys(keys[start:end], spare[:size])
            last = group[0]
            equal = 1
            for i in range(1, size):
                if group[i] == last:
                    equal += 1
                else:
                    keys[m] = last
                    counts[m] = equal
                    m += 1
                    last = group[i]
                    equal = 1
            keys[m] = last
            counts[m] = equal
            m += 1
        start = end
    return m


@kernel(int64(_keys, _rows, _keys, _rows, _keys, _rows))
def merge_counts(
    left: Keys,
    left_counts: Rows,
    right: Keys,
    right_counts: Rows,
    keys: Keys,
    counts: Rows,
) -> int:
    """Merge two sorted lists of distinct keys, adding their counts."""
    i = j = m = 0
    while i < left.size and j < right.size:
        if left[i] < right[j]:
            keys[m], counts[m] = left[i], left_counts[i]
            i += 1
        elif right[j] < left[i]:
            keys[m], counts[m] = right[j], right_counts[j]
            j += 1
        else:
            keys[m], counts[m] = left[i], left_counts[i] + right_counts[j]
            i += 1
            j += 1
        m += 1
    while i < left.size:
        keys[m], counts[m] = left[i], left_counts[i]
        i += 1
        m += 1
    while j < right.size:
        keys[m], counts[m] = right[j], right_counts[j]
        j += 1
        m += 1
    return m


# --------------------------------------------------------------------- look-ups


@kernel(int64(_keys, int64, int64, uint64))
def first_from(keys: Keys, low: int, high: int, goal: np.uint64) -> int:
    """The first place in [low, high) whose key is not below the goal, or else high."""
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < goal:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(_void(_keys, int64, int64, _rows))
def make_directory(keys: Keys, base: int, shift: int, places: Rows) -> None:
    """The first place of each bucket of upper halves, and the number of keys."""
    buckets = places.size - 1
    bucket = 0
    for i in range(keys.size):
        here = (int64(keys[i] >> _HALF) - base) >> shift
        while bucket <= here:
            places[bucket] = i
            bucket += 1
    while bucket <= buckets:
        places[bucket] = keys.size
        bucket += 1


@kernel(_void(_keys, _keys))
def make_filter(keys: Keys, words: Keys) -> None:
    """Set a bit for the upper half of each key, one of a power of two."""
    mask = int64(64 * words.size - 1)
    for key in keys:
        bit = int64(key >> _HALF) & mask
        words[bit >> 6] |= uint64(1) << uint64(bit & 63)


@kernel(int64(_ids, _keys, _rows, int64, int64, _rows, _rows))
def find_halves(
    ids: Ids,
    keys: Keys,
    directory: Rows,
    base: int,
    shift: int,
    first: Rows,
    last: Rows,
) -> int:
    """For each id the places of the keys that begin with it; return their number."""
    total = 0
    buckets = directory.size - 1
    for i in range(ids.size):
        bucket = (int64(ids[i]) - base) >> shift
        if bucket < 0 or bucket >= buckets:
            first[i] = 0
            last[i] = 0
            continue
        low = directory[bucket]
        high = directory[bucket + 1]
        if shift > 0:
            low = first_from(keys, low, high, uint64(ids[i]) << _HALF)
            end = low
            while end < high and keys[end] >> _HALF == uint64(ids[i]):
                end += 1
            high = end
        first[i] = low
        last[i] = high
        total += high - low
    return total


@kernel(int64(_keys, _keys, _rows, int64, int64, _rows, _rows))
def find_keys(
    goals: Keys,
    keys: Keys,
    directory: Rows,
    base: int,
    shift: int,
    first: Rows,
    last: Rows,
) -> int:
    """For each goal the places of the keys equal to it; return their number."""
    total = 0
    buckets = directory.size - 1
    for i in range(goals.size):
        goal = goals[i]
        bucket = (int64(goal >> _HALF) - base) >> shift
        if bucket < 0 or bucket >= buckets:
            first[i] = 0
            last[i] = 0
            continue
        low = first_from(keys, directory[bucket], directory[bucket + 1], goal)
        first[i] = low
        while low < keys.size and keys[low] == goal:
            low += 1
        last[i] = low
        total += low - first[i]
    return total


@kernel(int64(_keys, _keys, _rows, _rows, int64, int64, _rows))
def find_rows(
    goals: Keys,
    keys: Keys,
    rows: Rows,
    directory: Rows,
    base: int,
    shift: int,
    found: Rows,
) -> int:
    """For each goal its row in sorted distinct keys, where it has one.

    Rows that `found` already names are left alone. Returns how many were found.
    """
    hits = 0
    buckets = directory.size - 1
    for i in range(goals.size):
        goal = goals[i]
        bucket = (int64(goal >> _HALF) - base) >> shift
        if found[i] >= 0 or bucket < 0 or bucket >= buckets:
            continue
        low = first_from(keys, directory[bucket], directory[bucket + 1], goal)
        if low < keys.size and keys[low] == goal:
            found[i] = rows[low]
            hits += 1
    return hits


@kernel(int64(_keys, _keys, _rows, _rows))
def find_sorted(goals: Keys, keys: Keys, rows: Rows, found: Rows) -> int:
    """For each of sorted goals its row in sorted distinct keys, where it has one.

    Rows that `found` already names are left alone. Where there are far more keys than
    goals, steps grow while nothing is found, so the work follows the goals.
    """
    if goals.size == 0:
        return 0
    # The goals may be a part of a list: start and end where they do.
    place = first_from(keys, 0, keys.size, goals[0])
    n = first_from(keys, place, keys.size, goals[-1])
    n = min(n + 1, keys.size)
    few = n - place > SPARSE * goals.size
    hits = 0
    for i in range(goals.size):
        goal = goals[i]
        if few and place < n and keys[place] < goal:
            step = 1
            while place + step < n and keys[place + step] < goal:
                place += step
                step <<= 1
            place = first_from(keys, place + 1, min(place + step, n), goal)
        while place < n and keys[place] < goal:
            place += 1
        if place < n and keys[place] == goal and found[i] < 0:
            found[i] = rows[place]
            hits += 1
    return hits


@kernel(int64(_table, _table, _rows, _rows, _rows, _rows))
def confirm_wide(
    goals: Ids, table: Ids, rows: Rows, first: Rows, last: Rows, found: Rows
) -> int:
    """Among rows with an equal hash, the one whose columns are equal as well."""
    hits = 0
    for i in range(first.size):
        if found[i] >= 0:
            continue
        for place in range(first[i], last[i]):
            row = rows[place]
            same = True
            for column in range(goals.shape[0]):
                if goals[column, i] != table[column, row]:
                    same = False
                    break
            if same:
                found[i] = row
                hits += 1
                break
    return hits


# ------------------------------------------------------------------------- joins


@kernel(
    int64(_rows, _rows, _keys, _rows, _status, _flags, int64, int64, _rows, _rows, _ids)
)
def expand(
    first: Rows,
    last: Rows,
    keys: Keys,
    rows: Rows,
    status: Status,
    visible: Flags,
    low: int,
    high: int,
    parents: Rows,
    matches: Rows,
    seconds: Ids,
) -> int:
    """All pairs of a probe and a row in its range that may be seen.

    A row may be seen if it lies in [low, high) and, unless `visible` is empty, its
    status is marked there. `seconds` are the lower halves of the keys.
    """
    m = 0
    masked = visible.size > 0
    for i in range(first.size):
        for place in range(first[i], last[i]):
            row = rows[place]
            if row < low or row >= high or (masked and visible[status[row]] == 0):
                continue
            parents[m] = i
            matches[m] = row
            seconds[m] = keys[place] & _LOW
            m += 1
    return m


@kernel(
    int64(_rows, _rows, _keys, _rows, _status, _flags, int64, int64, _ids, uint8, _keys)
)
def expand_into_keys(
    first: Rows,
    last: Rows,
    keys: Keys,
    rows: Rows,
    status: Status,
    visible: Flags,
    low: int,
    high: int,
    ids: Ids,
    flipped: int,
    out: Keys,
) -> int:
    """Like `expand`, for binary heads: pack the probe's id and the match at once."""
    m = 0
    masked = visible.size > 0
    for i in range(first.size):
        mine = uint64(ids[i])
        for place in range(first[i], last[i]):
            row = rows[place]
            if row < low or row >= high or (masked and visible[status[row]] == 0):
                continue
            other = keys[place] & _LOW
            if flipped:
                out[m] = (other << _HALF) | mine
            else:
                out[m] = (mine << _HALF) | other
            m += 1
    return m


@kernel(int64(_rows, _status, _flags, int64, int64, _flags))
def mark_visible(
    rows: Rows, status: Status, visible: Flags, low: int, high: int, marks: Flags
) -> int:
    """Mark which rows may be seen; a negative row never is. Return how many are."""
    masked = visible.size > 0
    seen = 0
    for i in range(rows.size):
        row = rows[i]
        mark = row >= low and row < high and row >= 0
        if mark and masked and visible[status[row]] == 0:
            mark = False
        marks[i] = mark
        seen += mark
    return seen


# ---------------------------------------------------------------- keys and hashes


@kernel(uint64(uint64, uint32))
def mixed(h: np.uint64, value: np.uint32) -> np.uint64:
    """A hash of one more id; the first one is mixed with `HASH_OF_NOTHING`."""
    h ^= uint64(value)
    h *= uint64(0xBF58476D1CE4E5B9)
    h ^= h >> uint64(29)
    h *= uint64(0x94D049BB133111EB)
    return h ^ (h >> uint64(32))


@kernel(_void(_table, _keys))
def hash_columns(columns: Ids, keys: Keys) -> None:
    """A 64-bit hash of each row of a table that is stored by column."""
    for i in range(keys.size):
        h = HASH_OF_NOTHING
        for column in range(columns.shape[0]):
            h = mixed(h, columns[column, i])
        keys[i] = h


# ------------------------------------------------------------------------------ merging


@kernel(_void(_keys, _rows, _keys, _rows, _rows))
def merge_rows(
    left: Keys, left_rows: Rows, right: Keys, right_rows: Rows, rows: Rows
) -> None:
    """Merge the rows of two sorted lists of keys."""
    i = j = 0
    while i < left.size and j < right.size:
        later = right[j] < left[i]
        row, other = left_rows[i], right_rows[j]
        rows[i + j] = other if later else row
        j += later
        i += not later
    rows[i + j : left.size + j] = left_rows[i:]
    rows[left.size + j :] = right_rows[j:]


@kernel(_void(_keys, _keys, _keys))
def merge_keys(left: Keys, right: Keys, keys: Keys) -> None:
    """Merge two sorted lists of keys."""
    i = j = 0
    while i < left.size and j < right.size:
        key, other = left[i], right[j]
        keys[i + j] = min(key, other)
        j += other < key
        i += not other < key
    keys[i + j : left.size + j] = left[i:]
    keys[left.size + j :] = right[j:]


@kernel(int64(_keys, _rows, _keys, _rows, _rows))
def merge_rows_back(
    left: Keys, left_rows: Rows, right: Keys, right_rows: Rows, rows: Rows
) -> int:
    """Merge rows from their ends, until all on the left are written.

    Returns how many are left on the right. The result may lie over the rows on the
    left: nothing is written where something is still to be read.
    """
    i, j, to = left.size, right.size, rows.size
    while i > 0 and j > 0:
        later = right[j - 1] < left[i - 1]
        row, other = left_rows[i - 1], right_rows[j - 1]
        to -= 1
        rows[to] = row if later else other
        i -= later
        j -= not later
    while i > 0:
        i -= 1
        to -= 1
        rows[to] = left_rows[i]
    return j


@kernel(int64(_keys, _keys, _keys))
def merge_keys_back(left: Keys, right: Keys, keys: Keys) -> int:
    """Merge keys from their ends; like `merge_rows_back`."""
    i, j, to = left.size, right.size, keys.size
    while i > 0 and j > 0:
        key, other = left[i - 1], right[j - 1]
        to -= 1
        keys[to] = max(key, other)
        i -= other < key
        j -= not other < key
    while i > 0:
        i -= 1
        to -= 1
        keys[to] = left[i]
    return j
