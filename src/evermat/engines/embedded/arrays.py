"""Names for the arrays of the embedded engine, and what is asked of them."""

from __future__ import annotations

from math import prod

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.uint32]
"""Constants, as ids of the dictionary."""

Keys = npt.NDArray[np.uint64]
"""Two ids each, or hashes of more."""

Rows = npt.NDArray[np.int32]
"""Facts, as positions in their relation; also counts of facts."""

Status = npt.NDArray[np.uint16]
"""Which sets each row of a relation is in, a bit for each set."""

Places = npt.NDArray[np.int64]
"""Offsets into a text buffer, and other numbers."""

Flags = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

NO_FACTS: Ids = np.empty((0, 0), np.uint32)
NO_FLAGS: Flags = np.empty(0, np.uint8)
NO_KEYS: Keys = np.empty(0, np.uint64)
NO_ROWS: Rows = np.empty(0, np.int32)


def in_sorted(values: Rows | Keys, sorted_values: Rows | Keys) -> Mask:
    """Which values occur in a sorted array."""
    if not sorted_values.size:
        return np.zeros(values.size, np.bool_)
    places = np.searchsorted(sorted_values, values)
    places[places == sorted_values.size] = 0
    mask: Mask = sorted_values[places] == values
    return mask


def sum_of_products(factors: Places) -> int:
    """Multiply the elements of each column, and add it all up: of any size."""
    greatest = prod(int(row.max(initial=0)) for row in factors)
    if greatest * factors.shape[1] >= 1 << 63:
        factors = factors.astype(object)
    return int(factors.prod(axis=0).sum())
