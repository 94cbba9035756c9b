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
    from evermat.engines.embedded.arrays import Keys, Rows


def sort_pairs(keys: Keys, rows: Rows) -> tuple[Keys, Rows]:
    """Sort keys and carry rows along; the results may be the same arrays."""
    spare_keys, spare_rows = np.empty_like(keys), np.empty_like(rows)
    if kernels.sort_pairs(keys, rows, spare_keys, spare_rows):
        return spare_keys, spare_rows
    return keys, rows
