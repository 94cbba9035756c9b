"""Settled sets and multisets: rows of relations, in two forms.

They are kept by relation, or one relation after the other (`flat`), or both: each form
is made from the other when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.algebra import Counts, SettledFacts
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.flat import Flat, flattened

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from evermat.engines.embedded.arrays import Rows
    from evermat.engines.embedded.relation import Relation

Derived = dict[str, tuple["Rows", "Rows"]]
"""For each relation rows, and how often each was derived."""


class Settled(SettledFacts):
    """A fixed set: distinct rows, in any order, of each relation that has any."""

    __slots__ = ("_flat", "_rows", "_size")

    def __init__(self, rows: Mapping[str, Rows] | Flat) -> None:
        self._flat: Flat | None = None
        self._rows: dict[str, Rows] | None = None
        self._size = -1
        if isinstance(rows, Flat):
            self._flat = rows
            self._size = rows.rows.size
        else:
            self._rows = {name: some for name, some in rows.items() if some.size}

    @property
    def rows(self) -> dict[str, Rows]:
        """The rows by relation."""
        if self._rows is None:
            self._rows = {} if self._flat is None else self._flat.by_name()
        return self._rows

    def flat(self, relations: Mapping[str, Relation]) -> Flat:
        """The rows one relation after the other: for sets that are not empty."""
        if self._flat is None:
            self._flat = flattened(self.rows, relations)
        return self._flat

    def beside(self, other: Settled) -> Settled:
        """All facts of both, which have no relation in common."""
        if self._flat is None or other._flat is None:
            return Settled(self.rows | other.rows)
        return Settled(self._flat.followed_by(other._flat))

    def outside(self, names: frozenset[str]) -> Settled:
        """The facts of all but some relations."""
        if names.isdisjoint(self.names()):
            return self
        if self._flat is not None:
            return Settled(self._flat.without(names))
        rows = self.rows
        return Settled({name: rows[name] for name in rows if name not in names})

    def is_empty(self) -> bool:
        """Whether the set has no facts."""
        return not (self._rows if self._flat is None else self._flat.names)

    def size(self) -> int:
        """The number of facts."""
        if self._size < 0:
            self._size = sum(rows.size for rows in self.rows.values())
        return self._size

    def sizes(self) -> dict[str, int]:
        """The number of facts of each relation that has any."""
        if self._flat is None:
            return {name: rows.size for name, rows in self.rows.items()}
        return {name: high - low for name, low, high in self._flat.parts()}

    def names(self) -> Collection[str]:
        """The relations that have facts in the set, in order."""
        return self.rows.keys() if self._flat is None else self._flat.names

    def relations(self) -> frozenset[str]:
        """The relations that have facts in the set."""
        return frozenset(self.names())

    def ordered(self, name: str) -> Rows:
        """The rows of a relation in order; sorting waits until somebody needs it."""
        rows = self.rows.get(name, NO_ROWS)
        if (rows[1:] < rows[:-1]).any():
            rows = self.rows[name] = np.sort(rows)
        return rows


class RowCounts(Counts):
    """A multiset: rows of each relation and how often each was derived.

    Attributes:
        flat: the rows one relation after the other, and their counts, if they were
            made in this form.
    """

    __slots__ = ("_by_name", "_facts", "flat")

    def __init__(self, counted: Derived | tuple[Flat, Rows]) -> None:
        self.flat: tuple[Flat, Rows] | None = None
        self._by_name: Derived = {}
        # The set may put its rows in order, and must not take these along: they go
        # with the counts.
        if isinstance(counted, tuple):
            self.flat = counted
            self._facts = Settled(counted[0])
        else:
            self._by_name = counted
            self._facts = Settled({name: rows for name, (rows, _) in counted.items()})

    @property
    def by_name(self) -> Derived:
        """Rows and counts by relation."""
        if self.flat is not None and not self._by_name:
            flat, counts = self.flat
            self._by_name = {
                name: (flat.rows[low:high], counts[low:high])
                for name, low, high in flat.parts()
            }
        return self._by_name

    @property
    def rows(self) -> dict[str, Rows]:
        """The rows by relation."""
        return {name: rows for name, (rows, _) in self.by_name.items()}

    @property
    def counts(self) -> dict[str, Rows]:
        """The counts by relation, in the order of the rows."""
        return {name: counts for name, (_, counts) in self.by_name.items()}

    @property
    def facts(self) -> Settled:
        """The facts, each once."""
        return self._facts
