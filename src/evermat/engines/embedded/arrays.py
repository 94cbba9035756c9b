"""Names for the arrays that the embedded engine is made of."""

from __future__ import annotations

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
"""Offsets into a text buffer."""

Flags = npt.NDArray[np.uint8]

NO_FACTS: Ids = np.empty((0, 0), np.uint32)
NO_FLAGS: Flags = np.empty(0, np.uint8)
NO_KEYS: Keys = np.empty(0, np.uint64)
NO_ROWS: Rows = np.empty(0, np.int32)
