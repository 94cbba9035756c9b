"""Compiled loops over rows of relations: their numbers, status bits and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.keys import kernel

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids, Keys, Rows, Status


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
