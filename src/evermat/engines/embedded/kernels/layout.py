"""Where the arrays of relations and indexes are, as numbers for compiled code.

A relation and an index each have a short array of numbers, made once, whose own address
never changes. What the numbers say is brought up to date when it is next needed.

The places of the numbers are compiled into kernels; whoever changes one has all of them
compiled again.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]

TABLE, ROOM, STATUS, COUNTERS = range(4)
PRIMARY, ARITY = COUNTERS + 2, COUNTERS + 3
"""A relation: addresses of its columns, its status and its two counters, which are 0
where there are none, and how many rows fit; the address of the index by which facts are
found, and how many columns there are."""

RUNS, ROOM_OF_LAST, FIRST_RUN = range(3)
"""An index: how many runs there are, how many keys fit into the last of them where it
is, and where the numbers of the first one begin."""

KEYS, ROWS, SIZE, DIRECTORY, BUCKETS, BASE, SHIFT, FILTER, MASK, ARITY_OF_RUN = range(
    10
)
"""A run: addresses, lengths, and what its directory and its filter are made for; see
`index.Run`."""

MOST_RUNS = 40
"""Each run is at most a third as long as the one before it, and their rows have 31
bits, so there are never so many."""


def relation_layout() -> Numbers:
    """Room to describe a relation."""
    return np.zeros(ARITY + 1, np.int64)


def index_layout() -> Numbers:
    """Room to describe an index."""
    return np.zeros(FIRST_RUN + ARITY_OF_RUN * MOST_RUNS, np.int64)


def address(array: npt.NDArray[np.generic]) -> int:
    """Where an array begins in memory."""
    return int(array.__array_interface__["data"][0])
