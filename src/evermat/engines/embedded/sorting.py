"""Merging sorted keys and their rows, in place where there is room.

What an index merges again and again is its largest run. Memory for another one of that
size has to be cleared by the system page by page, which takes as long as merging. So
large runs have room behind their end, which costs nothing until it is written to, and
the next run is merged into it from the end.

Sorting keys and rows: the kernels of it, and the memory they work in.

Large arrays are made by NumPy and handed to the kernels. NumPy asks the system for huge
pages, compiled code does not. Scattering keys over small pages takes twice as long, and
for memory that is written once, what the system does for each page is most of the work.
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
"""Runs of so many keys have room for more: as many as are never on the heap."""

GROWTH = 4
"""How many times as long a large run may become in its place."""


class SortedPairs:
    """Keys in order, and their rows.

    Args:
        keys: in order, perhaps with room for more at the end.
        rows: the row of each key.
        size: how many keys there are; all if it is not said.
    """

    __slots__ = ("keys", "keys_with_room", "rows", "rows_with_room")

    def __init__(self, keys: Keys, rows: Rows, size: int | None = None) -> None:
        self.keys_with_room = keys
        self.rows_with_room = rows
        self.keys = keys[:size]
        self.rows = rows[:size]

    def give_rows_away(self) -> None:
        """Forget the rows, as their memory is wanted."""
        self.rows = self.rows_with_room = NO_ROWS


class _Share(NamedTuple):
    """What one core merges: places on the left, on the right and of both."""

    mine: slice
    theirs: slice
    both: slice


def merge_pairs(left: SortedPairs, right: SortedPairs) -> tuple[Keys, Rows, int]:
    """Merge sorted keys and their rows; cores share the work by places on the left.

    Both give their arrays away. (Asking for memory is what may fail, and is done before
    anything is given away.)

    Returns:
        Keys and rows, perhaps with room for more at the end, and how many there are.
    """
    fits = left.keys.size + right.keys.size <= left.keys_with_room.size
    if left.keys.size <= cores.ALONE and not fits:
        return _merge_few(left, right)
    shares = [_share(left.keys, right.keys, s) for s in slices_of(left.keys.size)]
    merge = _merge_in_place if fits else _merge_apart
    return merge(left, right, shares)


def _merge_few(left: SortedPairs, right: SortedPairs) -> tuple[Keys, Rows, int]:
    """Merge what is no work for several cores."""
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
    """Memory for keys and their rows, and for more of them if there are many."""
    room = GROWTH if size >= LARGE else 1
    return empty(room * size, np.uint64, room), empty(room * size, np.int32, room)


def _merge_apart(
    left: SortedPairs, right: SortedPairs, shares: list[_Share]
) -> tuple[Keys, Rows, int]:
    """Merge into other memory: rows first, as theirs is free again before keys."""
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
    """Merge from the end into the room behind the left side.

    A core writes over what the next one has on the left, at most as far as the right
    side has keys before that. So much of it is put aside first.
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
"""From this many keys on, cores sort a part each."""


def sort_pairs(keys: Keys, rows: Rows) -> tuple[Keys, Rows]:
    """Sort keys and carry rows along; the results may be the same arrays."""
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
