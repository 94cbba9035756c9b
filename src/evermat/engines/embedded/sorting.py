"""Sorting keys and rows: the kernels of it, and the memory they work in.

Large arrays are made by NumPy and handed to the kernels. NumPy asks the system for huge
pages, compiled code does not, and scattering keys over small pages takes twice as long.
(Merging writes them in order, so it does without, and does not wait for such pages.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded import kernels

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids, Keys, Rows

MOST_IN_CACHE = 1 << 15
"""Up to this many facts are sorted by hash where they are."""


def sort_pairs(keys: Keys, rows: Rows) -> tuple[Keys, Rows]:
    """Sort keys and carry rows along; the results may be the same arrays."""
    spare_keys, spare_rows = np.empty_like(keys), np.empty_like(rows)
    if kernels.sort_pairs(keys, rows, spare_keys, spare_rows):
        return spare_keys, spare_rows
    return keys, rows


def sort_hashes(hashes: Keys, table: Ids, counts: Rows) -> tuple[Keys, Rows, Ids, Rows]:
    """Sort facts by their hashes.

    Hashes are spread evenly, which other keys are not. Dividing them by their upper
    bits therefore gives pieces of about the same size: facts are moved into such pieces
    once, and what is left to do happens in the cache.

    Returns:
        the sorted hashes, the place of each fact in the table, and the table and the
        counts, in an order of their own.
    """
    n = hashes.size
    keys, order = np.empty(n, np.uint64), np.empty(n, np.int32)
    if n > MOST_IN_CACHE:
        moved, moved_counts = np.empty_like(hashes), np.empty_like(counts)
        moved_table = np.empty_like(table)
        kernels.divide_hashes(
            hashes, table, counts, moved, moved_table, moved_counts, order
        )
        hashes, table, counts = moved, moved_table, moved_counts
    bits = max(1, (n - 1).bit_length())
    kernels.sort_hashes(hashes, bits, np.zeros((1 << bits) + 1, np.int32), keys, order)
    return keys, order, table, counts
