"""Sorting keys and rows: the kernels of it, and the memory they work in.

Large arrays are made by NumPy and handed to the kernels. NumPy asks the system for huge
pages, compiled code does not, and scattering keys over small pages takes twice as long.
(Merging writes them in order, so it does without, and does not wait for such pages.)
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded import kernels
from evermat.engines.embedded.cores import core_count, in_slices, workers

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Keys, Rows

SHARED = 1 << 18
"""From this many keys on, cores sort a part each."""


def sort_pairs(keys: Keys, rows: Rows) -> tuple[Keys, Rows]:
    """Sort keys and carry rows along; the results may be the same arrays."""
    cores = core_count()
    if keys.size <= SHARED or cores == 1:
        return _sort_alone(keys, rows)
    cuts = [keys.size * core // cores for core in range(cores + 1)]
    shares = [slice(*pair) for pair in pairwise(cuts)]
    parts = list(
        workers().map(lambda share: _sort_alone(keys[share], rows[share]), shares)
    )
    while len(parts) > 1:
        parts = [
            merge_pairs(*parts[at], *parts[at + 1])
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


def merge_pairs(
    left: Keys, left_rows: Rows, right: Keys, right_rows: Rows
) -> tuple[Keys, Rows]:
    """Merge sorted keys and their rows; cores share the work by places on the left."""
    keys, rows = kernels.empty_pairs(left.size + right.size)

    def place(at: int) -> int:
        """Where on the right the keys begin that belong to places from here on."""
        if at in (0, left.size):
            return right.size if at else 0
        return int(np.searchsorted(right, left[at]))

    def merge(mine: slice) -> int:
        theirs = slice(place(mine.start), place(mine.stop))
        both = slice(mine.start + theirs.start, mine.stop + theirs.stop)
        kernels.merge_pairs(
            *(left[mine], left_rows[mine]),
            *(right[theirs], right_rows[theirs]),
            *(keys[both], rows[both]),
        )
        return 0

    in_slices(left.size, merge)
    return keys, rows
