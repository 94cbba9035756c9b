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

from evermat.engines.embedded.cores import core_count, together
from evermat.engines.embedded.kernels import keys as kernels
from evermat.engines.embedded.merging import SortedPairs, merge_pairs

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
    sorted_parts = together([partial(_sort_alone, keys[s], rows[s]) for s in shares])
    parts = [SortedPairs(*part) for part in sorted_parts]
    while len(parts) > 1:
        parts = [
            SortedPairs(*merge_pairs(parts[at], parts[at + 1]))
            if at + 1 < len(parts)
            else parts[at]
            for at in range(0, len(parts), 2)
        ]
    return parts[0].keys, parts[0].rows


def _sort_alone(keys: Keys, rows: Rows) -> tuple[Keys, Rows]:
    spare_keys, spare_rows = np.empty_like(keys), np.empty_like(rows)
    if kernels.sort_pairs(keys, rows, spare_keys, spare_rows):
        return spare_keys, spare_rows
    return keys, rows
