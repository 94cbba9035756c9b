"""Counting equal facts of more than two columns.

Facts are divided by the upper bits of their hashes into pieces that fit into the cache,
and each piece is sorted and counted there. Cores share the facts when they are divided
and the pieces when they are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.cores import equal_shares, for_each
from evermat.engines.embedded.kernels import wide as kernels_wide

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids, Keys, Places, Rows

MOST_IN_CACHE = 1 << 15
"""Up to this many facts are sorted where they are."""

PIECE_BITS = 8
"""Facts are divided by so many bits: one can write to that many pieces at once."""


@dataclass(slots=True)
class Counted:
    """Facts and how often each was derived.

    Attributes:
        keys: what tells facts apart. Exact keys say everything; they are sorted and
            distinct. Hashes are neither before they are counted.
        counts: for each fact; empty where hashes stand for one time each.
        facts: what hashes stand for, one fact after the other, in either order of
            memory; without columns where keys are exact.
    """

    keys: Keys
    counts: Rows
    facts: Ids

    @property
    def is_wide(self) -> bool:
        """Whether the keys are hashes."""
        return bool(self.facts.shape[1])


def count_wide(parts: list[Counted], cores: int) -> Counted:
    """The distinct facts of all parts, in the order of their hashes."""
    sizes = np.array([part.keys.size for part in parts])
    size = int(sizes.sum())
    bits = PIECE_BITS if size > MOST_IN_CACHE else 0
    # NumPy makes the arrays, not compiled code: it asks the system for huge pages, and
    # to scatter facts over small ones takes twice as long.
    keys = np.empty(size, np.uint64)
    facts = np.empty((size, parts[0].facts.shape[1]), np.uint32)
    counted = any(part.counts.size for part in parts)
    times = np.empty(size, np.int32) if counted else NO_ROWS
    moved = Counted(keys, times, facts)
    if not bits:
        starts = np.zeros(1, np.int64)
        _move(parts, bits, starts, moved)
        counts = np.empty(size, np.int32)
        bounds = np.array((0, size))
        found = kernels_wide.count_pieces(bounds, bits, keys, facts, times, counts)
        return Counted(keys[:found], counts[:found], facts[:found])
    bounds = _divide(parts, sizes.cumsum(), bits, cores, moved)
    return _count(bounds, bits, cores, moved)


def _divide(
    parts: list[Counted], ends: Places, bits: int, cores: int, moved: Counted
) -> Places:
    """Move facts into pieces; where each begins, and all of them end."""
    shares = equal_shares(ends, cores)
    tallies = np.zeros((len(shares), 1 << bits), np.int64)

    def tally(share: int) -> None:
        for part in parts[shares[share]]:
            kernels_wide.tally_pieces(part.keys, bits, tallies[share])

    for_each(range(len(shares)), tally)
    # In each piece the facts of one share follow those of another.
    ends_of_shares = tallies.T.cumsum().reshape(tallies.T.shape)
    starts = np.ascontiguousarray((ends_of_shares - tallies.T).T)
    bounds = np.append(starts[0], moved.keys.size)

    def move(share: int) -> None:
        _move(parts[shares[share]], bits, starts[share], moved)

    for_each(range(len(shares)), move)
    return bounds


def _move(parts: list[Counted], bits: int, starts: Places, moved: Counted) -> None:
    for part in parts:
        kernels_wide.move_facts(
            *(part.keys, part.facts, part.counts, bits, starts),
            *(moved.keys, moved.facts, moved.counts),
        )


def _count(bounds: Places, bits: int, cores: int, moved: Counted) -> Counted:
    """Count equal facts of all pieces."""
    shares = equal_shares(bounds[1:], cores)
    counts = np.empty(moved.keys.size, np.int32)
    found = [0] * len(shares)

    def count(share: int) -> None:
        pieces = shares[share]
        found[share] = kernels_wide.count_pieces(
            bounds[pieces.start : pieces.stop + 1],
            bits,
            *(moved.keys, moved.facts, moved.counts, counts),
        )

    for_each(range(len(shares)), count)
    end = found[0]
    for pieces, size in zip(shares[1:], found[1:], strict=True):
        low = int(bounds[pieces.start])
        kernels_wide.close_gap(low, size, end, moved.keys, moved.facts, counts)
        end += size
    whole = Counted(moved.keys[:end], counts[:end], moved.facts[:end])
    if end < counts.size // 2:
        # A copy: most of the memory would be held for nothing.
        whole = Counted(whole.keys.copy(), whole.counts.copy(), whole.facts.copy())
    return whole
