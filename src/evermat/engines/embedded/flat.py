"""Few rows of many relations, one relation after the other.

What is done to them is done by one call of compiled code for all relations, where a
call for each relation would take far longer than the work itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels import fact_sets as kernels_fact_sets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from evermat.engines.embedded.arrays import Flags, Rows
    from evermat.engines.embedded.kernels.layout import Numbers
    from evermat.engines.embedded.relation import Relation

MOST = 1 << 15
"""Up to this many rows are put one after the other."""

SEVERAL = 3
"""From this many relations on it pays."""


def is_worth_it(relations: int, rows: int) -> bool:
    """Whether so many rows of so many relations are best handled in this way."""
    return relations >= SEVERAL and rows <= MOST


@dataclass(slots=True)
class Flat:
    """Rows of relations.

    Attributes:
        names: the relations.
        rows: those of the first relation, then those of the next one.
        lines: for each relation its address and its part; see `kernels.fact_sets`. The
            layouts must be up to date when they are used.
    """

    names: list[str]
    rows: Rows
    lines: Numbers

    def by_name(self) -> dict[str, Rows]:
        """The rows of each relation."""
        rows = self.rows
        return {name: rows[low:high] for name, low, high in self.parts()}

    def parts(self) -> Iterable[tuple[str, int, int]]:
        """Each relation, and where its rows are."""
        _, lows, highs, *_ = self.lines.T.tolist()
        return zip(self.names, lows, highs, strict=True)

    def mark(self, bit: int, *, present: bool, zeros: int = 0) -> Numbers:
        """Set a status bit of all rows, or clear it; how many of each are changed.

        Other bits are cleared as well.
        """
        changed = np.empty(len(self.names), np.int64)
        kernels_fact_sets.mark(self.lines, self.rows, bit, present, zeros, changed)
        return changed

    def forget_counts(self) -> None:
        """Make both counts of all rows zero."""
        kernels_fact_sets.forget_counts(self.lines, self.rows)

    def change_counts(
        self, which: int, counts: Rows, sign: int
    ) -> tuple[Rows, list[int], bool]:
        """Add counts, or subtract them.

        Returns:
            The counts as they were, the greatest row of each relation, and whether no
            count has fallen below zero.
        """
        old = np.empty(self.rows.size, np.int32)
        last = np.empty(len(self.names), np.int64)
        least = kernels_fact_sets.change_counts(
            self.lines, self.rows, counts, which, sign, old, last
        )
        return old, last.tolist(), least >= 0

    def choose(self, visible: Flags, *, present: bool) -> Flat:
        """The rows whose status is visible, or is not."""
        return self.kept(kernels_fact_sets.choose, visible, present)

    def counted(self, which: int, *, positive: bool) -> Flat:
        """The rows whose count is above zero, or is not."""
        return self.kept(kernels_fact_sets.choose_counted, which, positive)

    def kept(self, kernel: Callable[..., int], *what: object) -> Flat:
        """The rows that a kernel chooses by something."""
        rows = np.empty(self.rows.size, np.int32)
        lines = np.empty((len(self.names), 4), np.int64)
        found = kernel(self.lines, self.rows, *what, rows, lines)
        return self.part(rows, lines[:found])

    def united(self, other: Flat, bit: int) -> Flat:
        """All rows of both; no row may have the bit."""
        places = dict.fromkeys([*self.names, *other.names], (-1, -1))
        for at, name in enumerate(self.names):
            places[name] = (at, -1)
        for at, name in enumerate(other.names):
            places[name] = (places[name][0], at)
        rows = np.empty(self.rows.size + other.rows.size, np.int32)
        lines = np.empty((len(places), 3), np.int64)
        size = kernels_fact_sets.unite(
            self.lines,
            self.rows,
            other.lines,
            other.rows,
            np.array(list(places.values()), np.int64),
            bit,
            rows,
            lines,
        )
        return Flat(list(places), rows[:size], lines)

    def followed_by(self, other: Flat) -> Flat:
        """All rows of both, which have no relation in common."""
        lines = np.concatenate([self.lines[:, :3], other.lines[:, :3]])
        lines[len(self.names) :, 1:] += self.rows.size
        rows = np.concatenate([self.rows, other.rows])
        return Flat(self.names + other.names, rows, lines)

    def without(self, names: frozenset[str]) -> Flat:
        """The rows of all but some relations."""
        wanted = np.array([name not in names for name in self.names], np.uint8)
        return self.kept(kernels_fact_sets.choose_lines, wanted)

    def part(self, rows: Rows, lines: Numbers) -> Flat:
        """Other rows of some of the relations, as kernels give them."""
        if not lines.size:
            return Flat([], rows[:0], lines)
        names = self.names
        return Flat(
            [names[origin] for origin in lines[:, 3].tolist()],
            rows[: lines[-1, 2]],
            lines,
        )


def flattened(rows: Mapping[str, Rows], relations: Mapping[str, Relation]) -> Flat:
    """Rows by relation, one relation after the other."""
    lines = []
    place = 0
    for name, some in rows.items():
        end = place + some.size
        lines.append((relations[name].address, place, end))
        place = end
    parts = list(rows.values())
    return Flat(
        list(rows),
        np.ascontiguousarray(parts[0]) if len(parts) == 1 else np.concatenate(parts),
        np.array(lines, np.int64),
    )
