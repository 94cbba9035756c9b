"""The compiled loops that merge sorted keys and their rows.

They have no branch on which side is next, as no processor guesses that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.engines.embedded.runtime import int32, int64, kernel, uint64, void

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Keys, Rows

_keys = uint64[::1]
_rows = int32[::1]
_void = void


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
