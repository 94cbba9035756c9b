"""What an embedded engine holds: relations, the stored sets and the counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.bits import Stored
from evermat.engines.embedded.closure_indexes import ClosureIndexes
from evermat.engines.embedded.cores import chosen_rows
from evermat.engines.embedded.counters import CounterColumn
from evermat.engines.embedded.index import WIDEST_EXACT_KEY
from evermat.engines.embedded.kernels import rows as kernels_rows
from evermat.engines.embedded.relation import (
    EXPLICIT,
    MATERIALISED,
    NONRECURSIVE,
    RECURSIVE,
    Clock,
    Relation,
)
from evermat.engines.embedded.sets import Sets
from evermat.engines.embedded.small_rewriting import Images

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Rows
    from evermat.engines.embedded.clique_arrays import CliqueArrays
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.settled import Settled


class Store:
    """Replaced as a whole when everything is materialised anew."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.relations: dict[str, Relation] = {}
        self.clock = Clock()
        """Goes on whenever a relation has other rows than before."""
        self.sets = Sets(self.relations, dictionary, self.clock)
        self.images = Images(self.sets)
        self.spare_arrays: list[CliqueArrays] = []
        self.materialised = Stored(MATERIALISED)
        self.explicit = Stored(EXPLICIT)
        self.closure_indexes = ClosureIndexes(self.relations, self.sets)
        self.counters = (
            CounterColumn(NONRECURSIVE, self.relations, self.sets),
            CounterColumn(RECURSIVE, self.relations, self.sets),
        )

    def show(self, facts: Settled, *, zeros: int = 0) -> None:
        """Make facts materialised; other status bits of theirs are cleared."""
        for relation, count in self._flipped(
            facts, MATERIALISED, present=True, zeros=zeros
        ):
            relation.alive += count

    def hide(self, facts: Settled, *, zeros: int = 0) -> None:
        """Make facts no longer materialised, and forget their counts.

        Other status bits of theirs are cleared, too.
        """
        for relation, count in self._flipped(
            facts, MATERIALISED, present=False, zeros=zeros
        ):
            relation.alive -= count
        if self.sets.is_flat(facts):
            facts.flat(self.relations).forget_counts()
            return
        for name, rows in facts.rows.items():
            self.relations[name].forget_counts(rows)

    def give(self, facts: Settled) -> None:
        """Make facts explicit."""
        for relation, count in self._flipped(facts, EXPLICIT, present=True):
            relation.given += count

    def withdraw(self, facts: Settled) -> None:
        """Make facts no longer explicit."""
        for relation, count in self._flipped(facts, EXPLICIT, present=False):
            relation.given -= count

    def _flipped(
        self, facts: Settled, bit: int, *, present: bool, zeros: int = 0
    ) -> list[tuple[Relation, int]]:
        """Set a bit or clear it; for how many rows of each relation is it a change.

        Other bits are cleared.
        """
        if facts.is_empty():
            return []
        relations = [self.relations[name] for name in facts.names()]
        if self.sets.is_flat(facts):
            self.sets.describe()
            together = facts.flat(self.relations)
            changed = together.mark(bit, present=present, zeros=zeros).tolist()
        else:
            if zeros:
                self.sets.mark(facts, zeros, present=False)
            changed = [
                relation.flip(facts.rows[relation.name], bit, present=present)
                for relation in relations
            ]
        return list(zip(relations, changed, strict=True))

    def recovered(self, dictionary: Dictionary) -> Store:
        """A store with the same facts, of which everything else is made anew."""
        store = Store(dictionary)
        for name, relation in self.relations.items():
            store.relations[name] = relation.recovered(store.clock)
        return store

    def missing_from(self, other: Store) -> dict[str, Rows | None]:
        """The materialised rows that another store does not have; None for all rows."""
        return {
            name: missing_rows(relation, other.relations.get(name))
            for name, relation in self.relations.items()
        }


def missing_rows(relation: Relation, twin: Relation | None) -> Rows | None:
    """The materialised rows of a relation that its twin does not have."""
    if twin is None or not twin.alive:
        if relation.alive == relation.count:
            return None
        held = (relation.status[: relation.count] & MATERIALISED) != 0
        return np.flatnonzero(held).astype(np.int32)
    parts = [NO_ROWS]
    # In the order of the runs' keys, neighbours are looked up next to each other.
    for run in relation.primary.runs:
        twins = (
            twin.find_sorted(run.keys)
            if relation.arity <= WIDEST_EXACT_KEY
            else twin.find_wide_sorted(relation.table[:, run.rows].T, run.keys)
        )
        parts.append(_lost(relation, run.rows, twin, twins))
    return np.concatenate(parts)


def _lost(relation: Relation, rows: Rows, twin: Relation, twins: Rows) -> Rows:
    """The materialised ones of some rows whose twins are not."""

    def choose(part: slice, found: Rows) -> int:
        status, twin_status = relation.status, twin.status
        return kernels_rows.lost(
            status, rows[part], twin_status, twins[part], MATERIALISED, found
        )

    return chosen_rows(rows.size, choose)
