"""Compiled loops over cliques of equal constants: union–find on an array of ids.

Ids from FIRST_INTEGER on are integers, which always stand for themselves and have no
place in the array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels import _flags, _ids, int64, kernel

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids

FIRST_INTEGER = np.uint32(0x8000_0000)


@kernel(int64(_ids, _flags, _ids, _ids))
def unite(parents: Ids, ranks: Flags, left: Ids, right: Ids) -> int:
    """Unite pairs of constants; returns the first pair of two values, or -1.

    The smaller rank stands for the clique, then the smaller id. Rank 0 is a value.
    """
    for at in range(left.size):
        a, b = left[at], right[at]
        while a < FIRST_INTEGER and parents[a] != a:
            parents[a] = (
                parents[parents[a]] if parents[a] < FIRST_INTEGER else parents[a]
            )
            a = parents[a]
        while b < FIRST_INTEGER and parents[b] != b:
            parents[b] = (
                parents[parents[b]] if parents[b] < FIRST_INTEGER else parents[b]
            )
            b = parents[b]
        if a == b:
            continue
        rank_a = 0 if a >= FIRST_INTEGER else ranks[a]
        rank_b = 0 if b >= FIRST_INTEGER else ranks[b]
        if rank_a == 0 and rank_b == 0:
            return at
        if rank_a < rank_b or (rank_a == rank_b and a < b):
            parents[b] = a
        else:
            parents[a] = b
    return -1


@kernel(int64(_ids))
def flatten(parents: Ids) -> int:
    """Let every constant point at its representative.

    Returns how many constants do not stand for themselves.
    """
    moved = 0
    for at in range(parents.size):
        one = parents[at]
        if one == at:
            continue
        moved += 1
        while one < FIRST_INTEGER and parents[one] != one:
            one = parents[one]
        parents[at] = one
    return moved
