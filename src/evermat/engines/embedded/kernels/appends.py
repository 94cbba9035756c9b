"""Appending a few facts to a relation and its indexes in place.

The last run of an index may have spare capacity (`index.Run`). If the new keys fit,
they are merged into that run from its end, as in insertion sort, and nothing is
reallocated. This is the common case: most updates bring a few facts that the relation
has never stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.keys import (
    inner_kernel,
    int64,
    kernel,
    sort_keys,
    sort_pairs,
    uint16,
    uint32,
    uint64,
)
from evermat.engines.embedded.kernels.layout import (
    ARITY,
    ARITY_OF_RUN,
    BUCKETS,
    FILTER,
    FIRST_RUN,
    KEYS,
    MASK,
    PRIMARY,
    ROOM,
    ROOM_OF_LAST,
    ROWS,
    RUNS,
    SIZE,
    STATUS,
    TABLE,
    read_key,
    read_number,
    read_row,
    write_id,
    write_key,
    write_number,
    write_row,
    write_status,
)

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Keys, Rows

_HALF = np.uint64(32)
_WORD = 8

NO_ROOM = -1


@inner_kernel("int64(int64)")
def _last_run(index: int) -> int:
    """Return the address of the description of the last run of an index."""
    return index + _WORD * (FIRST_RUN + ARITY_OF_RUN * (read_number(index, RUNS) - 1))


@inner_kernel("boolean(int64, int64)")
def _has_room(index: int, size: int) -> bool:
    """Return whether the last run of an index has room for `size` more keys."""
    if read_number(index, RUNS) == 0:
        return False
    used = read_number(_last_run(index), SIZE)
    return bool(used + size <= read_number(index, ROOM_OF_LAST))


@inner_kernel("void(int64, uint64[::1], int32[::1], int64)")
def _put_in_last(index: int, keys: Keys, rows: Rows, size: int) -> None:
    """Merge sorted keys and their rows into the last run of an index, in place."""
    run = _last_run(index)
    old_keys = read_number(run, KEYS)
    old_rows = read_number(run, ROWS)
    left = read_number(run, SIZE) - 1
    right = size - 1
    write_number(run, SIZE, left + 1 + size)
    # The directory would have to be rebuilt, so drop it.
    write_number(run, BUCKETS, 0)
    filter_, mask = read_number(run, FILTER), read_number(run, MASK)
    for i in range(size):
        bit = int64(keys[i] >> _HALF) & mask
        word = read_key(filter_, bit >> 6) | (uint64(1) << uint64(bit & 63))
        write_key(filter_, bit >> 6, word)
    while right >= 0:
        place = left + right + 1
        if left >= 0 and read_key(old_keys, left) > keys[right]:
            write_key(old_keys, place, read_key(old_keys, left))
            write_row(old_rows, place, read_row(old_rows, left))
            left -= 1
        else:
            write_key(old_keys, place, keys[right])
            write_row(old_rows, place, rows[right])
            right -= 1


@inner_kernel("boolean(int64, int64, int64, int64)")
def can_append(relation: int, count: int, other: int, size: int) -> bool:
    """Return whether relation and indexes have room for `size` more facts."""
    if count + size > read_number(relation, ROOM):
        return False
    if other != 0 and not _has_room(other, size):
        return False
    return _has_room(read_number(relation, PRIMARY), size)


@kernel("int64(int64, int64, int64, uint64[::1], int32[::1])")
def append_few(relation: int, count: int, other: int, keys: Keys, counts: Rows) -> int:
    """Append facts that have no row yet, if relation and indexes have room for them.

    Args:
        relation: a relation of one or two columns, whose layout is up to date.
        count: its number of rows.
        other: the layout of its index by the second column, if that has to be kept up
            to date as well, or 0.
        keys: the keys of the facts, in any order; the array is overwritten.
        counts: receives the number of occurrences of each fact, in row order.

    Returns:
        The number of distinct facts, or `NO_ROOM`, in which case nothing has changed.
    """
    most = keys.size
    if not can_append(relation, count, other, most):
        return int64(NO_ROOM)
    primary = read_number(relation, PRIMARY)
    room = read_number(relation, ROOM)
    spare = np.empty(most, np.uint64)
    ordered = sort_keys(keys, spare)
    rows = np.empty(most, np.int32)
    table = read_number(relation, TABLE)
    status = read_number(relation, STATUS)
    is_pair = read_number(relation, ARITY) > 1
    size = int64(0)
    for i in range(most):
        key = ordered[i]
        if size > 0 and key == ordered[size - 1]:
            counts[size - 1] += 1
            continue
        row = count + size
        ordered[size] = key
        counts[size] = 1
        rows[size] = row
        write_id(table, row, uint32(key >> _HALF))
        if is_pair:
            write_id(table, room + row, uint32(key))
        write_status(status, row, uint16(0))
        size += 1
    _put_in_last(primary, ordered, rows, size)
    if other != 0:
        for i in range(size):
            ordered[i] = (ordered[i] << _HALF) | (ordered[i] >> _HALF)
        other_keys = np.empty(size, np.uint64)
        other_rows = np.empty(size, np.int32)
        if sort_pairs(ordered[:size], rows[:size], other_keys, other_rows):
            _put_in_last(other, other_keys, other_rows, size)
        else:
            _put_in_last(other, ordered, rows, size)
    return size
