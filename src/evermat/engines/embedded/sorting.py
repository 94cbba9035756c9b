"""Sorting and merging keys with their rows, in place where capacity allows.

An index merges new runs into its largest run again and again. The system would have to
clear the memory of another run of that size page by page, which takes as long as
merging. So large runs have spare capacity at their end, which costs nothing until it is
written to, and the next run is merged into it from the end.

Large arrays are allocated by NumPy and passed to the kernels, because NumPy requests
huge pages and compiled code does not. Scattering keys over small pages takes twice as
long, and for memory that is written once, the system's work per page is most of the
cost.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evermat.engines.embedded import cores
from evermat.engines.embedded.arrays import NO_ROWS, empty
from evermat.engines.embedded.cores import core_count, slices_of, together
from evermat.engines.embedded.kernels import keys as kernels
from evermat.engines.embedded.memory import make_room

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Keys, Rows


LARGE = 1 << 22
"""Runs of this many keys have spare capacity; such arrays are never on the heap."""

GROWTH = 4
"""Factor by which a large run may grow in place."""


class SortedPairs:
    """Sorted keys, and their rows.

    Args:
        keys: sorted, possibly followed by spare capacity.
        rows: the row of each key.
        size: the number of keys; all of the array by default.
    """

    __slots__ = ("keys", "keys_with_room", "rows", "rows_with_room")

    def __init__(self, keys: Keys, rows: Rows, size: int | None = None) -> None:
        self.keys_with_room = keys
        self.rows_with_room = rows
        self.keys = keys[:size]
        self.rows = rows[:size]

    def give_rows_away(self) -> None:
        """Release the rows, so that their memory is reused."""
        self.rows = self.rows_with_room = NO_ROWS


class _Share(NamedTuple):
    """The share of one core: slices of the left, the right, and the result."""

    mine: slice
    theirs: slice
    both: slice


def merge_pairs(left: SortedPairs, right: SortedPairs) -> tuple[Keys, Rows, int]:
    """Merge sorted keys and their rows; cores share slices of the left side.

    Both sides release their arrays. (Only allocation may fail, and it precedes any
    release.)

    Returns:
        Keys and rows, possibly followed by spare capacity, and their number.
    """
    fits = left.keys.size + right.keys.size <= left.keys_with_room.size
    if left.keys.size <= cores.ALONE and not fits:
        return _merge_few(left, right)
    shares = [_share(left.keys, right.keys, s) for s in slices_of(left.keys.size)]
    merge = _merge_in_place if fits else _merge_apart
    return merge(left, right, shares)


def _merge_few(left: SortedPairs, right: SortedPairs) -> tuple[Keys, Rows, int]:
    """Merge sides that are too small to share among cores."""
    size = left.keys.size + right.keys.size
    keys, rows = empty_pairs(size)
    kernels.merge_rows(left.keys, left.rows, right.keys, right.rows, rows[:size])
    kernels.merge_keys(left.keys, right.keys, keys[:size])
    return keys, rows, size


def _share(left: Keys, right: Keys, mine: slice) -> _Share:
    first, last = 0, right.size
    if mine.start > 0:
        first = int(np.searchsorted(right, left[mine.start]))
    if mine.stop < left.size:
        last = int(np.searchsorted(right, left[mine.stop]))
    both = slice(mine.start + first, mine.stop + last)
    return _Share(mine, slice(first, last), both)


def empty_pairs(size: int) -> tuple[Keys, Rows]:
    """Allocate keys and rows, with spare capacity if they are large."""
    room = GROWTH if size >= LARGE else 1
    return empty(room * size, np.uint64, room), empty(room * size, np.int32, room)


def _merge_apart(
    left: SortedPairs, right: SortedPairs, shares: list[_Share]
) -> tuple[Keys, Rows, int]:
    """Merge into new memory: rows first, so that the keys can reuse theirs."""
    size = left.keys.size + right.keys.size
    make_room(left.keys.nbytes + right.keys.nbytes)
    keys, rows = empty_pairs(size)

    def merge_rows(share: _Share) -> None:
        kernels.merge_rows(
            *(left.keys[share.mine], left.rows[share.mine]),
            *(right.keys[share.theirs], right.rows[share.theirs]),
            rows[share.both],
        )

    def merge_keys(share: _Share) -> None:
        kernels.merge_keys(
            left.keys[share.mine], right.keys[share.theirs], keys[share.both]
        )

    together([partial(merge_rows, share) for share in shares])
    left.give_rows_away()
    right.give_rows_away()
    together([partial(merge_keys, share) for share in shares])
    return keys, rows, size


def _merge_in_place(
    left: SortedPairs, right: SortedPairs, shares: list[_Share]
) -> tuple[Keys, Rows, int]:
    """Merge from the end into the spare capacity of the left side.

    A core overwrites the next core's part of the left side, at most as far as the right
    side has keys before it. So that much is copied aside first.
    """
    keys, rows = left.keys_with_room, left.rows_with_room
    ends = [min(s.mine.start + s.theirs.start, s.mine.stop) for s in shares]
    aside = [
        (keys[share.mine.start : end].copy(), rows[share.mine.start : end].copy())
        for share, end in zip(shares, ends, strict=True)
    ]

    def merge_rows(number: int) -> None:
        mine, theirs, both = shares[number]
        end, (first_keys, first_rows) = ends[number], aside[number]
        rest = kernels.merge_rows_back(
            *(keys[end : mine.stop], rows[end : mine.stop]),
            *(right.keys[theirs], right.rows[theirs]),
            rows[: both.stop],
        )
        others = slice(theirs.start, theirs.start + rest)
        rest = kernels.merge_rows_back(
            *(first_keys, first_rows),
            *(right.keys[others], right.rows[others]),
            rows[: end + others.stop],
        )
        rows[both.start : both.start + rest] = right.rows[others][:rest]

    def merge_keys(number: int) -> None:
        mine, theirs, both = shares[number]
        end, (first_keys, _) = ends[number], aside[number]
        rest = kernels.merge_keys_back(
            keys[end : mine.stop], right.keys[theirs], keys[: both.stop]
        )
        others = slice(theirs.start, theirs.start + rest)
        rest = kernels.merge_keys_back(
            first_keys, right.keys[others], keys[: end + others.stop]
        )
        keys[both.start : both.start + rest] = right.keys[others][:rest]

    together([partial(merge_rows, number) for number in range(len(shares))])
    together([partial(merge_keys, number) for number in range(len(shares))])
    return keys, rows, left.keys.size + right.keys.size


SHARED = 1 << 18
"""From this many keys on, each core sorts a part."""


def sort_pairs(keys: Keys, rows: Rows) -> tuple[Keys, Rows]:
    """Sort keys and permute rows alike; the results may be the same arrays."""
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
