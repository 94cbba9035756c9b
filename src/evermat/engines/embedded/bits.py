"""Sets of facts that are bits in the status of rows.

Some bits stay for good, as that of all facts that hold. Others are given to sets that
grow, which also remember their rows, so that they can be walked through and wiped out
at a cost that follows their size; or to settled sets while rules are evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.algebra import GrowingFacts, StoredFacts
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.settled import Settled

if TYPE_CHECKING:
    from typing import Self

    from evermat.algebra import Facts
    from evermat.engines.embedded.arrays import Rows
    from evermat.engines.embedded.sets import Sets


class Stored(StoredFacts):
    """A set that is a status bit and nothing else."""

    __slots__ = ("bit",)

    def __init__(self, bit: int) -> None:
        self.bit = bit


class Growing(GrowingFacts):
    """A set that is a status bit, and remembers which rows have it.

    There are few bits, so a set gives its bit back as soon as nobody holds it.
    """

    __slots__ = ("__weakref__", "_new", "_rows", "_sets", "_settled", "bit", "compared")

    def __init__(self, sets: Sets, bit: int) -> None:
        self.bit = bit
        self._sets = sets
        self._rows: dict[str, list[Rows]] = {}
        self._new: list[Settled] = []
        """Facts that are not among the rows yet."""
        self._settled: Settled | None = None
        """What is in the set, unless it has changed since somebody asked."""
        self.compared: tuple[Settled, Settled, Settled] | None = None
        """What was in this set and in another one, and in this one only, when somebody
        last asked."""

    @property
    def rows(self) -> dict[str, list[Rows]]:
        """Pieces of the rows of each relation."""
        for facts in self._new:
            for name, rows in facts.rows.items():
                self._rows.setdefault(name, []).append(rows)
        self._new.clear()
        return self._rows

    def is_empty(self) -> bool:
        """Whether there are no facts in the set, nor were any that were taken out."""
        return not self._new and not self._rows

    def add(self, facts: Facts) -> None:
        """Add facts; what is already there is no error."""
        new = self._sets.settled(facts if self.is_empty() else facts - self)
        if new.is_empty():
            return
        self._sets.mark(new, self.bit, present=True)
        self.take_over(new)

    def take_over(self, facts: Settled) -> None:
        """Have more facts, which have the bit already."""
        if facts.is_empty():
            return
        known = self._settled
        if self.is_empty():
            self._settled = facts
        elif known is not None and not set(known.names()) & set(facts.names()):
            self._settled = known.beside(facts)
        else:
            self._settled = None
        self._new.append(facts)

    def discard(self, facts: Facts) -> None:
        """Take facts out; what is not there is no error."""
        for name, rows in self._sets.rows_of(facts).items():
            if name in self.rows:
                status = self._sets.relations[name].status
                status[rows] &= ~np.uint16(self.bit)
                kept = self.current(name)
                self.rows[name] = [kept[(status[kept] & self.bit) != 0]]
                self._settled = None

    def settled(self) -> Settled:
        """What is in the set now."""
        if self._settled is None:
            self._settled = Settled({name: self.current(name) for name in self.rows})
        return self._settled

    def current(self, name: str) -> Rows:
        """The rows of a relation."""
        parts = self.rows.get(name)
        if not parts:
            return NO_ROWS
        if len(parts) > 1:
            parts[:] = [np.concatenate(parts)]
        return parts[0]

    def note_cleared(self) -> None:
        """Take note that no row has the bit any more: the set is empty."""
        self._rows.clear()
        self._new.clear()
        self._settled = self.compared = None

    def release(self) -> None:
        """Clear the bit everywhere and give it back; the set is empty for good."""
        if not self.bit:
            return  # the garbage collector was here before
        self._sets.mark(self.settled(), self.bit, present=False)
        self.note_cleared()
        self._sets.give_back(self.bit)
        self.bit = 0

    def __del__(self) -> None:
        self.release()


class Marker:
    """Gives settled sets a status bit for the time of one rule evaluation."""

    def __init__(self, sets: Sets) -> None:
        self._sets = sets
        self._bits: dict[Settled, int] = {}
        self._marked: set[tuple[Settled, str]] = set()
        self._whole: list[Settled] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def bit(self, settled: Settled, name: str) -> int:
        """The bit of a set, which its rows in a relation then have."""
        bit = self._bit_of(settled)
        if (settled, name) not in self._marked:
            self._marked.add((settled, name))
            self._sets.relations[name].flip(settled.rows[name], bit, present=True)
        return bit

    def bit_everywhere(self, settled: Settled) -> int:
        """The bit of a set, which its rows in all relations then have."""
        bit = self._bit_of(settled)
        if settled not in self._whole:
            self._whole.append(settled)
            self._sets.mark(settled, bit, present=True)
        return bit

    def _bit_of(self, settled: Settled) -> int:
        bit = self._bits.get(settled)
        if bit is None:
            bit = self._bits[settled] = self._sets.take_bit()
        return bit

    def clear(self) -> None:
        """Give the bits back."""
        for settled, name in self._marked:
            bit = self._bits[settled]
            self._sets.relations[name].flip(settled.rows[name], bit, present=False)
        for settled in self._whole:
            self._sets.mark(settled, self._bits[settled], present=False)
        if self._bits:
            self._sets.give_back(*self._bits.values())
