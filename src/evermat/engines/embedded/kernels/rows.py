"""Compiled loops over rows of relations: their numbers, status bits and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.keys import int64, kernel

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Rows, Status


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


@kernel("int64(uint16[::1], int32[::1], uint16)")
def set_bit(status: Status, rows: Rows, bit: int) -> int:
    """Set a bit of some rows; returns for how many that is a change."""
    changed = 0
    for row in rows:
        changed += (status[row] & bit) == 0
        status[row] |= bit
    return changed


@kernel("int64(uint16[::1], int32[::1], uint16)")
def clear_bit(status: Status, rows: Rows, bit: int) -> int:
    """Clear a bit of some rows; returns for how many that is a change."""
    changed = 0
    for row in rows:
        changed += (status[row] & bit) != 0
        status[row] &= ~bit
    return changed


@kernel("int64(uint16[::1], int32[::1], uint16, int32[::1])")
def without_bit(status: Status, rows: Rows, bit: int, found: Rows) -> int:
    """The rows whose status lacks a bit; returns how many there are."""
    n = 0
    for row in rows:
        found[n] = row
        n += (status[row] & bit) == 0
    return n


@kernel("int64(uint16[::1], int32[::1], uint8[::1], boolean, int32[::1])")
def choose(
    status: Status,
    rows: Rows,
    visible: Flags,
    present: bool,  # noqa: FBT001  kernels have no keywords
    found: Rows,
) -> int:
    """The rows whose status is visible, or is not; returns how many there are."""
    n = 0
    for row in rows:
        found[n] = row
        n += (visible[status[row]] != 0) == present
    return n


@kernel("int64(uint16[::1], int32[::1], int32[::1], uint16, uint8, int32[::1])")
def compare(
    status: Status, members: Rows, rows: Rows, bit: int, wanted: int, found: Rows
) -> int:
    """The rows that are members (`wanted` is 1), or that are none (it is 0).

    Returns how many there are. No row may have the bit.
    """
    for row in members:
        status[row] |= bit
    n = 0
    for row in rows:
        found[n] = row
        n += ((status[row] & bit) != 0) == (wanted != 0)
    for row in members:
        status[row] &= ~bit
    return n


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


@kernel("int64(int32[::1], int32[::1], int32[::1], int64, int32[::1])")
def change_counts(counter: Rows, rows: Rows, counts: Rows, sign: int, old: Rows) -> int:
    """Add or subtract the counts of rows; how many results are below zero.

    Args:
        counter: the count of each row.
        rows: the rows to change, none of them twice.
        counts: what to add to each of them or, if `sign` is -1, to subtract.
        sign: 1 or -1.
        old: is given the counts as they were, if it has room for any.
    """
    wrong = int64(0)
    for at in range(rows.size):
        before = int64(counter[rows[at]])
        if old.size > 0:
            old[at] = before
        after = before + sign * int64(counts[at])
        counter[rows[at]] = after
        wrong += after < 0
    return int(wrong)
