"""The counters of facts, and how a transaction takes its changes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from evermat.algebra import EngineUseError
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.settled import RowCounts, Settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.algebra import Counts, Facts
    from evermat.engines.embedded.arrays import Rows
    from evermat.engines.embedded.flat import Flat
    from evermat.engines.embedded.relation import Relation
    from evermat.engines.embedded.sets import Sets


Overwritten = tuple[str, "Rows", "Rows"]
"""A relation, rows and their counts before they were changed."""


class CounterColumn:
    """One of the two counters, over all relations."""

    def __init__(self, which: int, relations: dict[str, Relation], sets: Sets) -> None:
        self.which = which
        self._relations = relations
        self._sets = sets
        self._changes: list[Overwritten | Callable[[], list[Overwritten]]] | None = None
        """What was overwritten, or where to ask for it."""

    def add(self, counts: Counts) -> None:
        """Raise the numbers by the counts."""
        self._change(cast("RowCounts", counts), 1)

    def subtract(self, counts: Counts) -> None:
        """Lower the numbers by the counts; never below zero."""
        self._change(cast("RowCounts", counts), -1)

    def _change(self, counts: RowCounts, sign: int) -> None:
        if counts.flat is not None:
            self._change_flat(*counts.flat, sign)
            return
        for name, (rows, numbers) in counts.by_name.items():
            relation = self._relations[name]
            old = NO_ROWS
            if self._changes is not None:
                old = relation.counted(self.which, rows)
                self._changes.append((name, rows, old))
            if not relation.add_counts(self.which, rows, numbers, sign, old):
                relation.add_counts(self.which, rows, numbers, -sign)
                raise below_zero(name)

    def _change_flat(self, flat: Flat, counts: Rows, sign: int) -> None:
        relations = [self._relations[name] for name in flat.names]
        for relation in relations:
            relation.counter(self.which)
        self._sets.describe()
        old, last, is_fine = flat.change_counts(self.which, counts, sign)
        if not is_fine:
            flat.change_counts(self.which, counts, -sign)
            raise below_zero(", ".join(flat.names))
        for relation, greatest, (name, low, high) in zip(
            relations, last, flat.parts(), strict=True
        ):
            rows = flat.rows[low:high]
            relation.note_counted(self.which, rows, greatest)
            if self._changes is not None:
                self._changes.append((name, rows, old[low:high]))

    def positive(self, facts: Facts) -> Settled:
        """Those of the facts whose number is above zero."""
        return self._chosen(self._sets.settled(facts), positive=True)

    def zero(self, facts: Facts) -> Settled:
        """Those of the facts whose number is zero."""
        return self._chosen(self._sets.settled(facts), positive=False)

    def _chosen(self, facts: Settled, *, positive: bool) -> Settled:
        if self._sets.is_flat(facts):
            flat = facts.flat(self._relations)
            self._sets.describe()
            return Settled(flat.counted(self.which, positive=positive))
        return Settled(
            {
                name: rows[
                    (self._relations[name].counted(self.which, rows) > 0) == positive
                ]
                for name, rows in facts.rows.items()
            }
        )

    def remember(self) -> None:
        """From now on, keep what is overwritten."""
        self._changes = []

    def note(self, overwritten: Callable[[], list[Overwritten]]) -> None:
        """Take note of changes that were made elsewhere."""
        if self._changes is not None:
            self._changes.append(overwritten)

    def restore(self) -> None:
        """Write back what was overwritten, the last change first."""
        for name, rows, old in reversed(self.overwritten()):
            self._relations[name].restore_counts(self.which, rows, old)

    def overwritten(self) -> list[Overwritten]:
        """What was overwritten so far, the first change first."""
        found: list[Overwritten] = []
        for change in self._changes or ():
            found += change() if callable(change) else [change]
        return found

    def forget(self) -> None:
        """Stop keeping what is overwritten."""
        self._changes = None


def below_zero(names: str) -> EngineUseError:
    """What counting refuses."""
    return EngineUseError(
        f"a count of `{names}` would fall below zero",
        law="what is taken away was counted before",
    )
