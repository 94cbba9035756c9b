"""Sets and multisets of facts: arrays of row ids, or a bit in the status of rows.

A settled set has one array: its rows of one relation, then those of the next one. A
table of *segments* tells kernels which part belongs to which relation, so an operation
on a set is one call for all relations (`kernels.fact_sets`).

Stored and growing sets are status bits of rows. A growing set also stores its rows, so
the cost of iterating over it or clearing it depends only on its size.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from evermat.algebra import Counts, GrowingFacts, SettledFacts, StoredFacts
from evermat.engines.embedded.arrays import NO_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

    from evermat.algebra import Facts
    from evermat.engines.embedded.arrays import Rows
    from evermat.engines.embedded.kernels.layout import Numbers
    from evermat.engines.embedded.relation import Relation
    from evermat.engines.embedded.views import Sets

Derived = dict[str, tuple["Rows", "Rows"]]
"""For each relation, rows and how often each was derived."""


class Settled(SettledFacts):
    """A fixed set: distinct rows, in any order, of each relation that has any.

    Attributes:
        every: all rows, grouped by relation.
        names: the relations that have rows, in order.
    """

    __slots__ = ("_by_name", "_ends", "_ordered", "_segments", "every", "names")

    def __init__(self, rows: Mapping[str, Rows]) -> None:
        parts = {name: some for name, some in rows.items() if some.size}
        self.names = list(parts)
        self._segments: Numbers | None = None
        self._by_name: dict[str, Rows] | None = None
        self._ordered: dict[str, Rows] | None = None
        self._ends: list[int] | None
        if len(parts) == 1:
            (only,) = parts.values()
            self.every = np.ascontiguousarray(only)
            self._ends = [only.size]
        else:
            self.every = np.concatenate([*parts.values()]) if parts else NO_ROWS
            self._ends = []
            end = 0
            for some in parts.values():
                end += some.size
                self._ends.append(end)

    @classmethod
    def of_segments(cls, names: list[str], rows: Rows, segments: Numbers) -> Settled:
        """Return the set found by a kernel, with a segment for each relation."""
        facts = cls({})
        facts.every = rows
        facts.names = names
        facts._segments, facts._ends = segments, None
        return facts

    @classmethod
    def together(cls, parts: Sequence[Settled]) -> Settled:
        """Return the union of disjoint sets."""
        if len(parts) == 1:
            return parts[0]
        names: list[str] = []
        ends: list[int] = []
        size = 0
        for part in parts:
            names += part.names
            ends += [size + end for end in part.ends]
            size += part.size()
        if len(set(names)) == len(names):
            facts = cls({})
            facts.every = np.concatenate([part.every for part in parts])
            facts.names, facts._ends = names, ends
            return facts
        found: dict[str, list[Rows]] = {}
        for part in parts:
            for name, rows in part.parts():
                found.setdefault(name, []).append(rows)
        return cls(
            {
                name: rows[0] if len(rows) == 1 else np.concatenate(rows)
                for name, rows in found.items()
            }
        )

    @property
    def ends(self) -> list[int]:
        """The end of each relation's rows."""
        if self._ends is None:
            segments = self._segments
            self._ends = [] if segments is None else segments[:, 2].tolist()
        return self._ends

    def segments(self, relations: Mapping[str, Relation]) -> Numbers:
        """Return the address and the part of each relation; see `kernels.fact_sets`.

        The layouts must be up to date when the table is used.
        """
        if self._segments is None:
            ends = self._ends or []
            table: Numbers = np.empty((len(ends), 3), np.int64)
            table[:, 0] = [relations[name].address for name in self.names]
            table[:, 1] = [0, *ends[:-1]][: len(ends)]
            table[:, 2] = ends
            self._segments = table
        return self._segments

    def parts(self) -> Iterable[tuple[str, Rows]]:
        """Return each relation and its rows."""
        rows = self.every
        if len(self.names) == 1:
            return ((self.names[0], rows),)
        bounds = pairwise((0, *self.ends))
        return [
            (name, rows[low:high])
            for name, (low, high) in zip(self.names, bounds, strict=True)
        ]

    @property
    def rows(self) -> Mapping[str, Rows]:
        """The rows by relation, as parts of one array."""
        if self._by_name is None:
            self._by_name = dict(self.parts())
        return self._by_name

    def is_empty(self) -> bool:
        """Return whether the set has no facts."""
        return not self.names

    def size(self) -> int:
        """Return the number of facts."""
        return self.every.size

    def sizes(self) -> dict[str, int]:
        """Return the number of facts of each relation that has any."""
        bounds = pairwise((0, *self.ends))
        return {
            name: high - low
            for name, (low, high) in zip(self.names, bounds, strict=True)
        }

    def relations(self) -> frozenset[str]:
        """The relations that have facts in the set."""
        return frozenset(self.names)

    def ordered(self, name: str) -> Rows:
        """Return the sorted rows of a relation; they are sorted on first use."""
        if self._ordered is None:
            self._ordered = {}
        rows = self._ordered.get(name)
        if rows is None:
            rows = self.rows.get(name, NO_ROWS)
            if (rows[1:] < rows[:-1]).any():
                rows = np.sort(rows)
            self._ordered[name] = rows
        return rows


NOTHING = Settled({})


class RowCounts(Counts):
    """A multiset: facts and how often each was derived.

    Attributes:
        numbers: the counts, in the order of `facts.every`.
    """

    __slots__ = ("_facts", "numbers")

    def __init__(self, facts: Settled, numbers: Rows) -> None:
        self._facts = facts
        self.numbers = numbers

    @classmethod
    def of(cls, counted: Derived) -> RowCounts:
        """Return the multiset of rows and counts by relation."""
        numbers = [counts for _, counts in counted.values()]
        facts = Settled({name: rows for name, (rows, _) in counted.items()})
        if len(numbers) == 1:
            return cls(facts, numbers[0])
        return cls(facts, np.concatenate(numbers) if numbers else NO_ROWS)

    def parts(self) -> Iterable[tuple[str, Rows, Rows]]:
        """Return each relation, its rows and their counts."""
        bounds = pairwise((0, *self._facts.ends))
        return [
            (name, rows, self.numbers[low:high])
            for (name, rows), (low, high) in zip(
                self._facts.parts(), bounds, strict=True
            )
        ]

    @property
    def facts(self) -> Settled:
        """The facts, each once."""
        return self._facts


class Stored(StoredFacts):
    """A set represented by a status bit alone."""

    __slots__ = ("bit",)

    def __init__(self, bit: int) -> None:
        self.bit = bit


class Growing(GrowingFacts):
    """A set represented by a status bit, and a list of the rows that have it.

    There are few bits, so a set frees its bit when nothing refers to it any more.
    """

    __slots__ = ("__weakref__", "_parts", "_sets", "bit", "compared")

    def __init__(self, sets: Sets, bit: int) -> None:
        self._sets = sets
        self._parts: list[Settled] = []
        """The added facts, in disjoint parts."""
        self.compared: tuple[Settled, Settled, Settled] | None = None
        """The contents of this set and of another one, and the facts only in this one,
        when the difference was last computed.
        """
        self.bit = bit  # last: without it, there is nothing to release

    def is_empty(self) -> bool:
        """Return whether the set has no facts."""
        return not self._parts

    def has(self, name: str) -> bool:
        """Return whether the set may have facts of a relation."""
        return any(name in part.names for part in self._parts)

    def add(self, facts: Facts) -> None:
        """Add facts, which may be in the set already."""
        new = self._sets.settled(facts if self.is_empty() else facts - self)
        if new.is_empty():
            return
        self._sets.mark(new, self.bit, present=True)
        self.take_over(new)

    def take_over(self, facts: Settled) -> None:
        """Add facts that have the bit already."""
        if not facts.is_empty():
            self._parts.append(facts)

    def discard(self, facts: Facts) -> None:
        """Remove facts, which need not be in the set."""
        self._sets.mark(self._sets.settled(facts), self.bit, present=False)
        left = self._sets.having(self.settled(), self.bit)
        self._parts = [] if left.is_empty() else [left]

    def settled(self) -> Settled:
        """Return the current contents."""
        if not self._parts:
            return NOTHING
        if len(self._parts) > 1:
            self._parts = [Settled.together(self._parts)]
        return self._parts[0]

    def note_cleared(self) -> None:
        """Record that no row has the bit any more: the set is empty."""
        self._parts = []
        self.compared = None

    def release(self) -> None:
        """Clear the bit in all rows and free it; the set stays empty."""
        if not self.bit:
            return  # it was released before
        self._sets.mark(self.settled(), self.bit, present=False)
        self.note_cleared()
        self._sets.give_back(self.bit)
        self.bit = 0

    def __del__(self) -> None:
        bit: int = getattr(self, "bit", 0)
        if not bit:
            return
        try:
            self.release()
        except MemoryError:  # an error raised here would be ignored
            self._sets.clear_later(bit)


class Marker:
    """Assigns status bits to settled sets for one rule evaluation."""

    def __init__(self, sets: Sets) -> None:
        self._sets = sets
        self._bits: dict[Settled, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for settled, bit in self._bits.items():
            self._sets.mark(settled, bit, present=False)
            self._sets.give_back(bit)

    def bit(self, settled: Settled) -> int:
        """Return the bit of a set, after setting it in all of its rows."""
        bit = self._bits.get(settled)
        if bit is None:
            bit = self._bits[settled] = self._sets.take_bit()
            self._sets.mark(settled, bit, present=True)
        return bit
