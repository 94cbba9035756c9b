"""Heads that come in the order of their first ids, counted as they come.

Rules that scan facts in order derive heads in that order. These are written to memory
that is used again and again, and are counted while they are still in the cache. What
was counted early then lies before what was counted late and need not be merged with it.
Where cores have shared the scan, a few parts overlap at their ends, and only there
anything is merged. What comes of it are pieces, each behind the one before. They stay
where they are: as one array they would need as much memory again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from evermat.engines.embedded.arrays import NO_FACTS, NO_KEYS, NO_ROWS
from evermat.engines.embedded.cores import in_slices, within
from evermat.engines.embedded.kernels import heads as kernels_heads
from evermat.engines.embedded.kernels import keys as kernels
from evermat.engines.embedded.large_arrays import empty
from evermat.engines.embedded.wide import Counted

if TYPE_CHECKING:
    import numpy.typing as npt

    from evermat.engines.embedded.arrays import Keys, Rows

_T = TypeVar("_T", bound=np.generic)

EARLY = 1 << 17
"""Derivations gathered before they are counted."""

CHUNK = 1 << 22
"""Room for so many counted heads is made at a time; what is not used costs nothing."""

MOST_TALLIED = 1 << 20
"""The widest range of ids in which heads are tallied: it should stay in the cache."""

_HALF = np.uint64(32)


class HeadsInOrder:
    """Gathers heads of two columns as long as they are in the order of their first ids.

    Attributes:
        counted: what is counted so far, a part for each block or for more of them.
    """

    def __init__(self) -> None:
        self._chunks = _Chunks()
        self.counted = self._chunks.parts
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
        is_in_order = not self._pending or self._count(is_end=True)
        self._chunks.end_part()
        return is_in_order

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
            spare = np.empty(complete, np.uint64)
            if not self._tally.size:
                self._tally = np.zeros(MOST_TALLIED, np.int32)
            free = self._chunks.room(complete)
            size = kernels.count_groups(
                keys[:complete], spare, self._tally, free.counts
            )
            free.keys[:size] = keys[:size]
            self._chunks.add(size)
            self._pending -= complete
            keys[: self._pending] = keys[complete:]
        return True


class _Chunks:
    """Memory in which counted heads are written one behind the other.

    Attributes:
        parts: what was written. A part ends where a block or a chunk does.
    """

    def __init__(self) -> None:
        self.parts: list[Counted] = []
        self._chunk = _counted(NO_KEYS, NO_ROWS)
        self._start = self._end = 0

    def room(self, size: int) -> Counted:
        """Where to write so many heads, or fewer."""
        if self._end + size > self._chunk.keys.size:
            self._chunk = _empty(max(size, CHUNK))
            self._start = self._end = 0
        return _slice(self._chunk, self._end, self._end + size)

    def add(self, size: int) -> None:
        """Take as many as were written, and at least one."""
        if self._end > self._start:
            self.parts.pop()
        self._end += size
        self.parts.append(_slice(self._chunk, self._start, self._end))

    def end_part(self) -> None:
        """What follows is another part."""
        self._start = self._end


@dataclass(slots=True)
class CountedPieces:
    """Facts with exact keys and how often each was derived, in order, in pieces.

    Attributes:
        keys: of each piece.
        counts: of all facts.
    """

    keys: list[Keys]
    counts: Rows


def joined(parts: list[Counted]) -> list[Counted]:
    """The same in pieces that do not overlap, in order.

    Args:
        parts: with exact keys, and not empty. At any place, few of them should overlap.
    """
    pieces: list[Counted] = []
    for part in sorted(parts, key=_first):
        _add(pieces, part)
    return pieces


def in_pieces(pieces: list[Counted]) -> CountedPieces:
    """Pieces whose counts are in one place, as they are needed for longer."""
    parts = [piece.counts for piece in pieces]
    counts = empty(sum(part.size for part in parts), np.int32)

    def copy(share: slice) -> int:
        for part, places in within(parts, share):
            counts[places] = part
        return 0

    in_slices(counts.size, copy)
    return CountedPieces([piece.keys for piece in pieces], counts)


def as_one(pieces: list[Counted]) -> Counted:
    """All pieces as one."""
    return _counted(
        _concatenated([piece.keys for piece in pieces], np.uint64),
        _concatenated([piece.counts for piece in pieces], np.int32),
    )


def merged_pair(left: Counted, right: Counted) -> Counted:
    """Two parts as one, wherever they overlap."""
    both = _empty(left.keys.size + right.keys.size)
    keys, counts = both.keys, both.counts
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
    tail = as_one(behind[::-1])
    pieces.append(merged_pair(tail, _slice(part, 0, end)))
    if end < part.keys.size:
        pieces.append(_slice(part, end, part.keys.size))


def _concatenated(arrays: list[npt.NDArray[_T]], kind: type[_T]) -> npt.NDArray[_T]:
    if len(arrays) == 1:
        return arrays[0]
    whole = empty(sum(array.size for array in arrays), kind)
    return np.concatenate(arrays, out=whole)


def _empty(size: int) -> Counted:
    """Memory for so many heads, in one array, so that it is kept or returned as one."""
    halves = empty(3 * size, np.uint32)
    keys, counts = halves[: 2 * size], halves[2 * size :]
    return _counted(keys.view(np.uint64), counts.view(np.int32))


def _first(part: Counted) -> int:
    return int(part.keys[0])


def _slice(part: Counted, low: int, high: int) -> Counted:
    return _counted(part.keys[low:high], part.counts[low:high])


def _counted(keys: Keys, counts: Rows) -> Counted:
    return Counted(keys, counts, NO_FACTS)
