"""Row numbering, comparison of rows, and grouping of new heads by relation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.keys import kernel

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids, Keys, Rows, Status
    from evermat.engines.embedded.kernels.layout import Numbers


@kernel("int64(uint64[::1], int32[::1], int64, uint64[::1])")
def number_new(keys: Keys, rows: Rows, first: int, new: Keys) -> int:
    """Number the keys whose row is negative, from `first` on; return how many.

    These keys are copied to `new`, which has exactly the size they need.
    """
    n = 0
    for at in range(keys.size):
        if n == new.size:
            break
        # No branch: which keys are new is unpredictable.
        row = rows[at]
        is_new = row < 0
        new[n] = keys[at]
        rows[at] = first + n if is_new else row
        n += is_new
    return n


@kernel("void(uint64[::1], uint32[::1], uint32[::1])")
def split_keys(keys: Keys, firsts: Ids, seconds: Ids) -> None:
    """Split keys into their upper and lower halves."""
    for at in range(keys.size):
        firsts[at] = keys[at] >> np.uint64(32)
        seconds[at] = keys[at] & np.uint64(0xFFFFFFFF)


@kernel("int64(uint16[::1], int32[::1], uint16[::1], int32[::1], uint16, int32[::1])")
def lost(
    status: Status, rows: Rows, twin_status: Status, twins: Rows, bit: int, found: Rows
) -> int:
    """List the rows that have a status bit which their twins do not; return how many.

    Args:
        status: the status of all rows.
        rows: the rows to compare.
        twin_status: the status of all twins.
        twins: for each row, the row of the same fact in another relation, or -1.
        bit: the status bit.
        found: receives the rows.
    """
    n = 0
    for at in range(rows.size):
        found[n] = rows[at]
        if (status[rows[at]] & bit) != 0:
            twin = twins[at]
            n += twin < 0 or (twin_status[twin] & bit) == 0
    return n


# -------------------------------------------------------------------------------- heads

_HALF = np.uint64(32)
_PAIR = 2


@kernel("boolean(uint64[::1])")
def is_ascending(keys: Keys) -> bool:
    """Return whether each key is greater than the one before it."""
    at = 1
    while at < keys.size and keys[at - 1] < keys[at]:
        at += 1
    return at >= keys.size


@kernel("int64(uint64[::1], uint64)")
def complete_groups(keys: Keys, least: np.uint64) -> int:
    """Return the number of keys before those with the last upper half.

    Returns -1 if the upper halves are not sorted, or begin below `least`.
    """
    before = least
    start = 0
    for at in range(keys.size):
        half = keys[at] >> _HALF
        if half < before:
            return -1
        if half > before:
            before = half
            start = at
    return start


@kernel("void(uint64[::1], int64, int32[::1])")
def tally_ids(keys: Keys, least: int, tally: Rows) -> None:
    """Count the occurrences of each id among the upper halves."""
    for key in keys:
        tally[np.int64(key >> _HALF) - least] += 1


@kernel("void(uint32[::1], int64[::1], int64[::1], uint64[::1])")
def group_records(stream: Ids, arities: Numbers, ends: Numbers, keys: Keys) -> None:
    """Group the facts of a stream by relation (counting sort).

    A record in the stream is the number of a relation, and an id for each column.

    Args:
        stream: the records.
        arities: the number of columns of each relation.
        ends: all zero, one element more than relations; receives the end of each.
        keys: receives the keys of facts, or the positions of their records if they have
            no column or more than two.
    """
    place = 0
    while place < stream.size:
        ends[stream[place] + 1] += 1
        place += 1 + arities[stream[place]]
    for number in range(1, ends.size):
        ends[number] += ends[number - 1]
    place = 0
    while place < stream.size:
        number = stream[place]
        arity = arities[number]
        key = np.uint64(place)
        if arity == 1:
            key = np.uint64(stream[place + 1]) << _HALF
        elif arity == _PAIR:
            key = np.uint64(stream[place + 1]) << _HALF | np.uint64(stream[place + 2])
        # `ends` begins as the start of each relation and moves to its end.
        keys[ends[number]] = key
        ends[number] += 1
        place += 1 + arity
