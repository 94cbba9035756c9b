"""Sorting keys and rows: the kernels of it, and the memory they work in.

Large arrays are made by NumPy and handed to the kernels. NumPy asks the system for huge
pages, compiled code does not. Scattering keys over small pages takes twice as long, and
for memory that is written once, what the system does for each page is most of the work.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded import kernels
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.cores import core_count, in_slices, together
from evermat.engines.embedded.memory import make_room

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Keys, Rows

SHARED = 1 << 18
"""From this many keys on, cores sort a part each."""


class SortedPairs:
    """Keys in order, and their rows."""

    __slots__ = ("keys", "rows")

    def __init__(self, keys: Keys, rows: Rows) -> None:
        self.keys = keys
        self.rows = rows


def sort_pairs(keys: Keys, rows: Rows) -> tuple[Keys, Rows]:
    """Sort keys and carry rows along; the results may be the same arrays."""
    cores = core_count()
    if keys.size <= SHARED or cores == 1:
        return _sort_alone(keys, rows)
    cuts = [keys.size * core // cores for core in range(cores + 1)]
    shares = [slice(*pair) for pair in pairwise(cuts)]
    parts = together([partial(_sort_alone, keys[s], rows[s]) for s in shares])
    while len(parts) > 1:
        parts = [
            merge_pairs(SortedPairs(*parts[at]), SortedPairs(*parts[at + 1]))
            if at + 1 < len(parts)
            else parts[at]
            for at in range(0, len(parts), 2)
        ]
    return parts[0]


def _sort_alone(keys: Keys, rows: Rows) -> tuple[Keys, Rows]:
    spare_keys, spare_rows = np.empty_like(keys), np.empty_like(rows)
    if kernels.sort_pairs(keys, rows, spare_keys, spare_rows):
        return spare_keys, spare_rows
    return keys, rows


def empty_pairs(size: int) -> tuple[Keys, Rows]:
    """Memory for keys and their rows."""
    return np.empty(size, np.uint64), np.empty(size, np.int32)


def merge_pairs(left: SortedPairs, right: SortedPairs) -> tuple[Keys, Rows]:
    """Merge sorted keys and their rows; cores share the work by places on the left.

    Both give their rows away: these are merged first, and their memory is free again
    before keys are written. (Asking for memory is what may fail, and is done before
    anything is given away.)
    """
    make_room(left.keys.nbytes + right.keys.nbytes)
    keys, rows = empty_pairs(left.keys.size + right.keys.size)

    def places(mine: slice) -> tuple[slice, slice]:
        """The places on the right that go with some on the left, and those of both."""
        first, last = 0, right.keys.size
        if mine.start > 0:
            first = int(np.searchsorted(right.keys, left.keys[mine.start]))
        if mine.stop < left.keys.size:
            last = int(np.searchsorted(right.keys, left.keys[mine.stop]))
        return slice(first, last), slice(mine.start + first, mine.stop + last)

    def merge_rows(mine: slice) -> int:
        theirs, both = places(mine)
        kernels.merge_rows(
            *(left.keys[mine], left.rows[mine]),
            *(right.keys[theirs], right.rows[theirs]),
            rows[both],
        )
        return 0

    def merge_keys(mine: slice) -> int:
        theirs, both = places(mine)
        kernels.merge_keys(left.keys[mine], right.keys[theirs], keys[both])
        return 0

    in_slices(left.keys.size, merge_rows)
    left.rows = right.rows = NO_ROWS
    in_slices(left.keys.size, merge_keys)
    return keys, rows
