"""Heads that come in the order of their first ids, counted as they come.

Rules that scan facts in order derive heads in that order. These are written to memory
that is used again and again, and are counted while they are still in the cache. What
was counted early then lies before what was counted late and need not be merged with it.
Where cores have shared the scan, a few parts overlap at their ends, and only there
anything is merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded import kernels, kernels_heads
from evermat.engines.embedded.arrays import NO_FACTS, NO_KEYS, NO_ROWS
from evermat.engines.embedded.cores import in_shares
from evermat.engines.embedded.wide import Counted

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Keys, Rows

EARLY = 1 << 17
"""Derivations gathered before they are counted."""

MOST_TALLIED = 1 << 20
"""The widest range of ids in which heads are tallied: it should stay in the cache."""

_HALF = np.uint64(32)


class HeadsInOrder:
    """Gathers heads of two columns as long as they are in the order of their first ids.

    Attributes:
        counted: what is counted so far. Parts of it may overlap, but not by much.
    """

    def __init__(self) -> None:
        self.counted: list[Counted] = []
        self._room = NO_KEYS
        self._pending = 0
        self._early = EARLY
        self._tally = NO_ROWS

    def room(self, most: int) -> Keys:
        """Where to write the next heads, of which there are at most so many."""
        end = self._pending + most
        if end > self._room.size:
            longer = np.empty(max(end, 2 * self._room.size), np.uint64)
            longer[: self._pending] = self._room[: self._pending]
            self._room = longer
        return self._room[self._pending : end]

    def take(self, size: int) -> bool:
        """Take so many heads that were written; false if they are not in order."""
        self._pending += size
        return self._pending <= self._early or self._count()

    def end_block(self) -> bool:
        """Count all, as others may have heads before those to come; see `take`."""
        return not self._pending or self._count(is_end=True)

    def pending(self) -> Keys:
        """What is not counted yet."""
        return self._room[: self._pending].copy()

    def _count(self, *, is_end: bool = False) -> bool:
        """Count the heads of which no more are to come."""
        keys = self._room[: self._pending]
        least = self.counted[-1].keys[-1] >> _HALF if self.counted else np.uint64(0)
        complete = kernels_heads.complete_groups(keys, least)
        if complete < 0:
            return False
        if is_end:
            complete = keys.size
        self._early = EARLY if complete else 2 * keys.size
        if complete:
            counts = np.empty(complete, np.int32)
            spare = np.empty(complete, np.uint64)
            if not self._tally.size:
                self._tally = np.zeros(MOST_TALLIED, np.int32)
            size = kernels.count_groups(keys[:complete], spare, self._tally, counts)
            self.counted.append(_counted(keys[:size].copy(), counts[:size].copy()))
            self._pending -= complete
            keys[: self._pending] = keys[complete:]
        return True


def joined(parts: list[Counted], *, alone: bool = False) -> Counted:
    """All parts as one; each has exact keys and is not empty.

    Args:
        parts: at any place, few of them should overlap.
        alone: whether to leave other cores out of it.
    """
    pieces: list[Counted] = []
    for part in sorted(parts, key=_first):
        _add(pieces, part)
    return _concatenated(pieces, alone=alone)


def merged_pair(left: Counted, right: Counted) -> Counted:
    """Two parts as one, wherever they overlap."""
    keys = np.empty(left.keys.size + right.keys.size, np.uint64)
    counts = np.empty(keys.size, np.int32)
    size = kernels.merge_counts(
        left.keys, left.counts, right.keys, right.counts, keys, counts
    )
    if size < keys.size // 2:
        # A copy: most of the memory would be held for nothing.
        keys, counts = keys[:size].copy(), counts[:size].copy()
    return _counted(keys[:size], counts[:size])


def _add(pieces: list[Counted], part: Counted) -> None:
    """Add a part that begins behind where the others begin; pieces never overlap."""
    behind: list[Counted] = []
    while pieces and pieces[-1].keys[-1] >= part.keys[0]:
        last = pieces.pop()
        place = int(np.searchsorted(last.keys, part.keys[0]))
        if place:
            pieces.append(_slice(last, 0, place))
        behind.append(_slice(last, place, last.keys.size))
    if not behind:
        pieces.append(part)
        return
    end = int(np.searchsorted(part.keys, behind[0].keys[-1], side="right"))
    tail = _concatenated(behind[::-1], alone=True)
    pieces.append(merged_pair(tail, _slice(part, 0, end)))
    if end < part.keys.size:
        pieces.append(_slice(part, end, part.keys.size))


def _concatenated(pieces: list[Counted], *, alone: bool) -> Counted:
    if len(pieces) == 1:
        return pieces[0]
    ends = np.cumsum([piece.keys.size for piece in pieces])
    keys = np.empty(int(ends[-1]), np.uint64)
    counts = np.empty(keys.size, np.int32)

    def copy(share: slice) -> None:
        for piece, end in zip(pieces[share], ends[share], strict=True):
            keys[end - piece.keys.size : end] = piece.keys
            counts[end - piece.keys.size : end] = piece.counts

    if alone:
        copy(slice(0, len(pieces)))
    else:
        in_shares(ends, copy)
    return _counted(keys, counts)


def _first(part: Counted) -> int:
    return int(part.keys[0])


def _slice(part: Counted, low: int, high: int) -> Counted:
    return _counted(part.keys[low:high], part.counts[low:high])


def _counted(keys: Keys, counts: Rows) -> Counted:
    return Counted(keys, counts, NO_FACTS)
