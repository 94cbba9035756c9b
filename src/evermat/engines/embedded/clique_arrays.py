"""The arrays that cliques are kept in, and copies of them that cost little.

See `kernels.cliques` for what they mean. An update that splits or merges cliques needs
them as they were and as they will be, and B/F^≈ needs arrays in which nothing is equal.
Making these anew takes as long as the rest of the work on few cliques, so arrays that
nobody needs any more are kept as *spares*. It is known in which places a spare differs
from what is wanted, because all arrays know what they are a copy of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from evermat.engines.embedded.kernels import cliques as kernels_cliques
from evermat.engines.embedded.kernels.layout import address

if TYPE_CHECKING:
    import numpy.typing as npt

    from evermat.engines.embedded.arrays import Flags, Ids, Rows

_T = TypeVar("_T", bound=np.generic)

NO_IDS: Ids = np.empty(0, np.uint32)

BLOCK = 4096
"""Arrays are copied in blocks of so many ids. Those without a name that is equal to
another are not: they are zeros."""

MOST_SPARES = 2
"""One for what was, and one in which nothing is equal."""

FEW = 8
"""A spare is used if it differs in one place of so many, at most."""

_BLANK = object()
"""The version of arrays in which nothing is equal."""


class CliqueArrays:
    """Arrays by id, with room at the end; in new ones, nothing is equal.

    Attributes:
        links: how each id differs from what stands for it, as `id ^ other`.
        ring: how it differs from the next member of its clique.
        others: how many other names its clique has.
        version: tells them from all others; they are not written to any more as soon
            as there is a copy.
    """

    def __init__(self) -> None:
        self.links: Ids = NO_IDS
        self.ring: Ids = NO_IDS
        self.others: Rows = np.empty(0, np.int32)
        self.version = _BLANK
        self._blocks: Flags = np.empty(0, np.uint8)
        """Which blocks have names of cliques; all others are zeros."""
        self._origin = _BLANK
        """The version of the arrays that these are a copy of, …"""
        self._touched: list[Ids] = []
        """… and all ids whose places may have changed since."""
        self._layout: tuple[int, ...] = ()

    @property
    def layout(self) -> tuple[int, ...]:
        """Where the arrays are, for compiled code, and how long they are."""
        if not self._layout:
            arrays = self.links, self.ring, self.others
            self._layout = (*map(address, arrays), self.links.size)
        return self._layout

    def note(self, names: Ids) -> None:
        """Take note of names whose places have changed."""
        self._touched.append(names)
        self._blocks[names // BLOCK] = 1

    def is_copy_of(self, other: CliqueArrays) -> bool:
        """Whether these were the same as others once, and all changes are known."""
        return self._origin is other.version

    @property
    def touched(self) -> Ids:
        """All ids whose places may have changed since these were a copy."""
        return np.concatenate([NO_IDS, *self._touched])

    def grow(self, size: int) -> None:
        """Have room for so many ids."""
        if size > self.links.size:
            self._copy(self, self._blocks_for(size))

    def twin(self, size: int, spares: list[CliqueArrays]) -> CliqueArrays:
        """A copy with room for so many ids, made of a spare if there is an apt one."""
        blocks = self._blocks_for(size)
        twin = self._from_spare(blocks, spares)
        if twin is None:
            twin = CliqueArrays()
            twin._copy(self, blocks)
        twin.version = object()
        twin._origin, twin._touched = self.version, []
        return twin

    def _blocks_for(self, size: int) -> int:
        room = self.links.size
        if size <= room:
            return room // BLOCK
        return max(size, room + room // 2) // BLOCK + 1

    def _copy(self, other: CliqueArrays, blocks: int) -> None:
        """Be a copy with room for so many blocks."""
        known = other._blocks
        used = np.flatnonzero(known)
        self.links = _roomy(other.links, blocks, used)
        self.ring = _roomy(other.ring, blocks, used)
        self.others = _roomy(other.others, blocks, used)
        self._blocks = np.zeros(blocks, np.uint8)
        self._blocks[: known.size] = known
        self._layout = ()

    def _from_spare(
        self, blocks: int, spares: list[CliqueArrays]
    ) -> CliqueArrays | None:
        """A copy with so many blocks that was a spare."""
        size = blocks * BLOCK
        for spare in spares:
            if spare.links.size != size or self.links.size not in (0, size):
                continue
            if spare.is_copy_of(self):
                places = spare.touched
            elif self.is_copy_of(spare):
                places = self.touched
            else:
                continue
            if places.size * FEW <= size:
                spares.remove(spare)
                spare.correct(self, places)
                return spare
        return None

    def correct(self, other: CliqueArrays, places: Ids) -> None:
        """Be a copy of others, which differ in some places at most."""
        mine = self.links, self.ring, self.others
        kernels_cliques.copy_places(
            places, *mine, other.links, other.ring, other.others
        )
        if other.links.size:
            self._blocks |= other._blocks


class Held:
    """Arrays that some cliques have in common, until none of them is left.

    Attributes:
        arrays: what is held.
        spares: is given the arrays then.
        is_whole: whether all changes of the arrays have been noted.
    """

    __slots__ = ("arrays", "is_whole", "spares")

    def __init__(self, arrays: CliqueArrays, spares: list[CliqueArrays]) -> None:
        self.arrays = arrays
        self.spares = spares
        self.is_whole = True

    def twin(self, size: int) -> Held:
        """A copy with room for so many ids."""
        return Held(self.arrays.twin(size, self.spares), self.spares)

    def __del__(self) -> None:
        """Leave the arrays to those who need others."""
        if self.is_whole and self.arrays.links.size:
            self.spares.append(self.arrays)
            del self.spares[:-MOST_SPARES]


def _roomy(
    array: npt.NDArray[_T], blocks: int, used: npt.NDArray[np.intp]
) -> npt.NDArray[_T]:
    """A copy with room for so many blocks, of which only some are not all zeros."""
    known = array.reshape(-1, BLOCK)
    if used.size * 2 > len(known):
        larger = np.empty((blocks, BLOCK), array.dtype)
        larger[: len(known)] = known
        larger[len(known) :] = 0
    else:
        larger = np.zeros((blocks, BLOCK), array.dtype)
        larger[used] = known[used]
    return larger.ravel()
