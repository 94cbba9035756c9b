"""Arrays of 64-bit keys: radix sort, counting, merging, and bucketed binary search.

Kernels are flat loops without Python objects. Each is compiled ahead of its use for the
types that its decorator names (see `runtime`), and releases the interpreter lock, so
that two of them run on two cores at once.

Vocabulary: an *id* represents a constant (32 bits); a *key* is two ids packed into 64
bits, the first one in the upper half, or a hash of more than two; a *row* is the
position of a fact in its relation, its row id. A *directory* divides sorted keys into
buckets by their upper half, so that a look-up begins a few keys away from its goal.
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

# Other modules with kernels import these from here.
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
"""Up to this many keys, insertion sort is faster than the passes of a radix sort."""

SPARSE = 16
"""Up to this many keys for each goal, `find_sorted` steps through them one by one."""

HASH_OF_NOTHING = np.uint64(0x9E3779B97F4A7C15)

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


# ----------------------------------------------------------------------- sorting


@kernel(_keys(_keys, _keys, uint64))
def sort_from_bit(keys: Keys, spare: Keys, lowest: np.uint64) -> Keys:
    """Sort keys by the bits from `lowest` on (LSD radix sort).

    Passes over bits that are equal in all keys are skipped: ids are dense, so that is
    usually half of the bits. Keys that are sorted already are returned as they are. The
    result is one of the two arrays.
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
    """Sort keys with a spare array as a buffer; the result is one of the two."""
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
    """Sort keys together with rows; return 1 if the result is in the spare arrays."""
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
    """Count equal keys, given keys that are sorted by their upper halves.

    The distinct keys are written to the front of `keys`, in order; returns their
    number. If the lower halves in a group are dense, they are tallied, which costs far
    less than sorting them; `tally` is all zero before and after.
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
            # No branch for gaps, which would be unpredictable. Stop once all places of
            # the group are written: the keys of the next group follow them.
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
    """Merge two sorted lists of distinct keys, adding counts; return the length."""
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
    """Return the first place in [low, high) whose key is at least the goal, or high."""
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < goal:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(_void(_keys, int64, int64, _rows))
def make_directory(keys: Keys, base: int, shift: int, places: Rows) -> None:
    """Write the first place of each bucket of upper halves, then the number of keys."""
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
    """Build a one-hash Bloom filter of the upper halves; its size is a power of two."""
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
    """Find the range of keys that begin with each id; return their total number."""
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
    """Find the range of keys equal to each goal; return their total number."""
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
    """Find the row of each goal in sorted distinct keys, by the directory.

    Goals that have a row in `found` already are skipped. Returns how many were found.
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
    """Find the row of each sorted goal in sorted distinct keys, by galloping search.

    Goals that have a row in `found` already are skipped. If there are far more keys
    than goals, steps double until they pass the goal, so that the work follows the
    number of goals. Returns how many were found.
    """
    if goals.size == 0:
        return 0
    # The goals may be part of a list: restrict the keys to their range.
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
    """Find, among rows with the hash of a goal, the one with equal columns."""
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
    """List all pairs of a probe and a visible row in its range; return their number.

    A row is visible if it is in [low, high) and, unless `visible` is empty, its status
    is marked there. `seconds` receives the lower halves of the keys.
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
    """Like `expand`, for binary heads: pack the probe's id and the match into a key."""
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
    """Mark the visible rows, which are never negative; return their number."""
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
    """Mix an id into a hash, which begins as `HASH_OF_NOTHING`."""
    h ^= uint64(value)
    h *= uint64(0xBF58476D1CE4E5B9)
    h ^= h >> uint64(29)
    h *= uint64(0x94D049BB133111EB)
    return h ^ (h >> uint64(32))


@kernel(_void(_table, _keys))
def hash_columns(columns: Ids, keys: Keys) -> None:
    """Compute a 64-bit hash of each row of a table that is stored by column."""
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

    Returns the number of rows left on the right. The result may overlap the rows on the
    left: nothing is overwritten before it is read.
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
