"""The counters of facts, and how a transaction takes its changes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from evermat.algebra import EngineUseError
from evermat.engines.embedded.sets import RowCounts, Settled

if TYPE_CHECKING:
    from evermat.algebra import Counts, Facts
    from evermat.engines.embedded.arrays import Rows
    from evermat.engines.embedded.relation import Relation
    from evermat.engines.embedded.sets import Sets


class CounterColumn:
    """One of the two counters, over all relations."""

    def __init__(self, which: int, relations: dict[str, Relation], sets: Sets) -> None:
        self._which = which
        self._relations = relations
        self._sets = sets
        self._changes: list[tuple[str, Rows, Rows]] | None = None

    def add(self, counts: Counts) -> None:
        """Raise the numbers by the counts."""
        self._change(cast("RowCounts", counts), 1)

    def subtract(self, counts: Counts) -> None:
        """Lower the numbers by the counts; never below zero."""
        self._change(cast("RowCounts", counts), -1)

    def _change(self, counts: RowCounts, sign: int) -> None:
        for name, rows in counts.rows.items():
            relation = self._relations[name]
            if self._changes is not None:
                self._changes.append((name, rows, relation.counted(self._which, rows)))
            if not relation.add_counts(self._which, rows, counts.counts[name], sign):
                relation.add_counts(self._which, rows, counts.counts[name], -sign)
                raise EngineUseError(
                    f"a count of `{name}` would fall below zero",
                    law="what is taken away was counted before",
                )

    def positive(self, facts: Facts) -> Settled:
        """Those of the facts whose number is above zero."""
        return Settled(
            {
                name: rows[self._relations[name].counted(self._which, rows) > 0]
                for name, rows in self._sets.rows_of(facts).items()
            }
        )

    def zero(self, facts: Facts) -> Settled:
        """Those of the facts whose number is zero."""
        return Settled(
            {
                name: rows[self._relations[name].counted(self._which, rows) == 0]
                for name, rows in self._sets.rows_of(facts).items()
            }
        )

    def remember(self) -> None:
        """From now on, keep what is overwritten."""
        self._changes = []

    def restore(self) -> None:
        """Write back what was overwritten, the last change first."""
        for name, rows, old in reversed(self._changes or []):
            self._relations[name].restore_counts(self._which, rows, old)

    def overwritten(self) -> list[tuple[str, Rows, Rows]]:
        """What was overwritten so far: rows and their numbers, the first one first."""
        return self._changes or []

    def forget(self) -> None:
        """Stop keeping what is overwritten."""
        self._changes = None
