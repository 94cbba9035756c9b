"""Compiled loops over rows of relations, and over heads that become rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.keys import kernel

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids, Keys, Rows, Status
    from evermat.engines.embedded.kernels.layout import Numbers


@kernel("int64(uint64[::1], int32[::1], int64, uint64[::1])")
def number_new(keys: Keys, rows: Rows, first: int, new: Keys) -> int:
    """Number the keys whose row is negative, from `first` on.

    Their keys are copied to `new`, which has room for just as many; returns how many.
    """
    n = 0
    for at in range(keys.size):
        if n == new.size:
            break
        # Without a branch, as no processor guesses which keys are new.
        row = rows[at]
        is_new = row < 0
        new[n] = keys[at]
        rows[at] = first + n if is_new else row
        n += is_new
    return n


@kernel("void(uint64[::1], uint32[::1], uint32[::1])")
def split_keys(keys: Keys, firsts: Ids, seconds: Ids) -> None:
    """Both halves of keys."""
    for at in range(keys.size):
        firsts[at] = keys[at] >> np.uint64(32)
        seconds[at] = keys[at] & np.uint64(0xFFFFFFFF)


@kernel("int64(uint16[::1], int32[::1], uint16[::1], int32[::1], uint16, int32[::1])")
def lost(
    status: Status, rows: Rows, twin_status: Status, twins: Rows, bit: int, found: Rows
) -> int:
    """The rows that have a bit, and whose twin has it not; returns how many there are.

    Args:
        status: of rows.
        rows: the rows to look at.
        twin_status: of twins.
        twins: for each row one elsewhere that holds the same, or -1.
        bit: the bit.
        found: is given the rows.
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
    """Whether each key is greater than the one before it."""
    at = 1
    while at < keys.size and keys[at - 1] < keys[at]:
        at += 1
    return at >= keys.size


@kernel("int64(uint64[::1], uint64)")
def complete_groups(keys: Keys, least: np.uint64) -> int:
    """How many keys come before those with the last upper half.

    It is -1 where upper halves are not in order, or begin below the least.
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
    """Count each of the ids in the upper halves."""
    for key in keys:
        tally[np.int64(key >> _HALF) - least] += 1


@kernel("void(uint32[::1], int64[::1], int64[::1], uint64[::1])")
def group_records(stream: Ids, arities: Numbers, ends: Numbers, keys: Keys) -> None:
    """Put the facts of a stream one relation after the other.

    A record is the number of a relation and as many ids as the relation has columns.

    Args:
        stream: the records.
        arities: how many columns each relation has.
        ends: is given where the facts of each relation end; all zero, and one more.
        keys: is given the keys of facts; for those of no column, or of more than two,
            where their records begin.
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
        # Where its next fact goes is where a relation begins, and ends at last.
        keys[ends[number]] = key
        ends[number] += 1
        place += 1 + arity
