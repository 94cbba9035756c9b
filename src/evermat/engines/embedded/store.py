"""The store of the embedded engine: relations, stored sets and counters.

It also has snapshots of facts that outlive a transaction, and the durable numbers of
facts (`STORED_NUMBERS`): their changes in a transaction, and loading them from a state.
Counters log the values that they overwrite, for rollback.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evermat.algebra import STORED_NUMBERS, EngineUseError
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.closure_search import ClosureIndexes
from evermat.engines.embedded.cores import chosen_rows, together
from evermat.engines.embedded.dedup import distinct, intern_rows
from evermat.engines.embedded.equality import Rewriting
from evermat.engines.embedded.fact_sets import RowCounts, Settled, Stored
from evermat.engines.embedded.index import WIDEST_EXACT_KEY
from evermat.engines.embedded.kernels import fact_sets as kernels_fact_sets
from evermat.engines.embedded.kernels import rows as kernels_rows
from evermat.engines.embedded.relation import (
    EXPLICIT,
    MATERIALISED,
    NONRECURSIVE,
    RECURSIVE,
    Clock,
    Relation,
)
from evermat.engines.embedded.views import Sets, is_shared, shares_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evermat.algebra import Counts, Facts
    from evermat.engines.embedded.arrays import Ids, Rows
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.kernels.layout import Numbers
    from evermat.engines.embedded.relation import Relation
    from evermat.engines.embedded.union_find import CliqueArrays

    RowSets = Mapping[str, Rows]


Overwritten = tuple[str, "Rows", "Rows"]
"""A relation, rows and their counts before they were changed."""


class CounterColumn:
    """One of the two counters of facts, over all relations."""

    def __init__(self, which: int, relations: dict[str, Relation], sets: Sets) -> None:
        self.which = which
        self._relations = relations
        self._sets = sets
        self._changes: list[Overwritten | Callable[[], list[Overwritten]]] | None = None
        """The values that were overwritten, or a function that returns them."""

    def add(self, counts: Counts) -> None:
        """Add the counts."""
        self._change(cast("RowCounts", counts), 1)

    def subtract(self, counts: Counts) -> None:
        """Subtract the counts; the result may not be negative."""
        self._change(cast("RowCounts", counts), -1)

    def _change(self, counts: RowCounts, sign: int) -> None:
        facts = counts.facts
        if facts.is_empty():
            return
        if self._changes is not None:
            # Before anything changes: afterwards there may be no memory to log it.
            for name, rows in facts.parts():
                old = self._relations[name].counter(self.which)[rows]
                self._changes.append((name, rows, old))
        least, greatest = self._changed(facts, counts.numbers, sign)
        if least < 0:
            self._changed(facts, counts.numbers, -sign)
            raise below_zero(", ".join(facts.names))
        for (name, rows), last in zip(facts.parts(), greatest, strict=True):
            self._relations[name].note_counted(self.which, rows, last)

    def _changed(
        self, facts: Settled, numbers: Rows, sign: int
    ) -> tuple[int, list[int]]:
        """Change counts; return the smallest result and each relation's last row."""
        for name in facts.names:
            self._relations[name].counter(self.which)
        segments = facts.segments(self._relations)
        self._sets.describe()
        old: Rows = np.empty(facts.size(), np.int32)
        greatest: Numbers = np.zeros(len(segments), np.int64)
        kernel = kernels_fact_sets.change_counts
        how = self.which, sign, old
        if not is_shared(facts.size()):
            least = kernel(segments, facts.every, numbers, *how, greatest)
            return least, greatest.tolist()

        def change(share: Numbers) -> int:
            last: Numbers = np.empty(len(share), np.int64)
            least = kernel(share, facts.every, numbers, *how, last)
            np.maximum.at(greatest, share[:, 3], last)
            return least

        shares = shares_of(segments, facts.size())
        least = min(together([partial(change, share) for share in shares]))
        return least, greatest.tolist()

    def positive(self, facts: Facts) -> Settled:
        """Return those of the facts whose count is above zero."""
        return self._chosen(self._sets.settled(facts), positive=True)

    def zero(self, facts: Facts) -> Settled:
        """Return those of the facts whose count is zero."""
        return self._chosen(self._sets.settled(facts), positive=False)

    def _chosen(self, facts: Settled, *, positive: bool) -> Settled:
        kernel = kernels_fact_sets.choose_counted
        return self._sets.chosen(facts, kernel, self.which, positive)

    def remember(self) -> None:
        """Start logging overwritten values."""
        self._changes = []

    def note(self, overwritten: Callable[[], list[Overwritten]]) -> None:
        """Record changes that were made by compiled code."""
        if self._changes is not None:
            self._changes.append(overwritten)

    def restore(self) -> None:
        """Write back the logged values, the last change first."""
        for name, rows, old in reversed(self.overwritten()):
            self._relations[name].restore_counts(self.which, rows, old)

    def overwritten(self) -> list[Overwritten]:
        """Return the logged values, the first change first."""
        found: list[Overwritten] = []
        for change in self._changes or ():
            found += change() if callable(change) else [change]
        return found

    def forget(self) -> None:
        """Stop logging overwritten values."""
        self._changes = None


def below_zero(names: str) -> EngineUseError:
    """Return the error for counts that become negative."""
    return EngineUseError(
        f"a count of `{names}` would fall below zero",
        reason="what is taken away was counted before",
    )


class Copy:
    """A snapshot of facts as rows of ids, decoded when it is read.

    Args:
        dictionary: the constants.
        tables: ids by relation, which never change.
        facts: the chosen rows of some of the relations; other relations are complete.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        tables: Mapping[str, Ids],
        facts: Settled | None = None,
    ) -> None:
        self._dictionary = dictionary
        self._tables = tables
        self._facts = facts

    def relations(self) -> Mapping[str, int]:
        """Return the number of facts of each relation that has any."""
        chosen = {} if self._facts is None else self._facts.sizes()
        if len(chosen) == len(self._tables):
            return chosen
        return {name: ids.shape[1] for name, ids in self._tables.items()} | chosen

    def read(self, relation: str) -> pa.Table:
        """Return the rows of a relation."""
        ids = self._tables.get(relation)
        if ids is None:
            return pa.table({})
        if self._facts is not None and relation in self._facts.rows:
            ids = ids[:, self._facts.rows[relation]]
        if ids.shape[0] == 0:
            # A table without columns still has a number of rows.
            return pa.table({"": pa.nulls(ids.shape[1])}).select([])
        columns = [self._dictionary.decode(column) for column in ids]
        return pa.table(columns, names=[str(at) for at in range(len(columns))])


StoredNumbers = npt.NDArray[np.int64]
"""A row for each of `STORED_NUMBERS`, a column for each fact."""

HOLDS, GIVEN, COUNTS = 0, 1, slice(2, 4)


class Difference:
    """Changes of stored numbers: facts by column, and the difference of each number."""

    def __init__(
        self, dictionary: Dictionary, facts: dict[str, tuple[Ids, StoredNumbers]]
    ) -> None:
        self._facts = {
            name: (ids[:, changed], numbers[:, changed])
            for name, (ids, numbers) in facts.items()
            if (changed := numbers.any(axis=0)).any()
        }
        tables = {name: ids for name, (ids, _) in self._facts.items()}
        self._copy = Copy(dictionary, tables)

    def relations(self) -> Mapping[str, int]:
        """Return the number of rows of each relation that has any."""
        return self._copy.relations()

    def read(self, relation: str) -> pa.Table:
        """Return the facts as columns of terms, and a column for each number."""
        table = self._copy.read(relation)
        _, numbers = self._facts[relation]
        for name, column in zip(STORED_NUMBERS, numbers, strict=True):
            table = table.append_column(name, pa.array(column))
        return table


def committed(
    store: Store,
    dictionary: Dictionary,
    sets: tuple[RowSets, RowSets, RowSets, RowSets],
) -> Difference:
    """Return the changes that committing a transaction will make.

    Args:
        store: the facts before the commit; their counts have changed already.
        dictionary: the constants.
        sets: facts deleted and added, and facts no longer explicit and newly explicit.
    """
    removed, inserted, no_longer_explicit, newly_explicit = sets
    overwritten: dict[str, list[tuple[int, Rows, Rows]]] = {}
    for at, counter in enumerate(store.counters):
        for name, rows, old in counter.overwritten():
            overwritten.setdefault(name, []).append((at, rows, old))
    changed = {}
    for name in {
        **removed,
        **inserted,
        **no_longer_explicit,
        **newly_explicit,
        **overwritten,
    }:
        relation = store.relations[name]
        parts = [each[name] for each in sets if name in each]
        parts += [rows for _, rows, _ in overwritten.get(name, [])]
        touched = distinct(np.concatenate(parts))
        before = stored_numbers(relation, touched)
        after = before.copy()
        # The value that was overwritten first is the one before the transaction.
        for at, rows, old in reversed(overwritten.get(name, [])):
            before[2 + at, np.searchsorted(touched, rows)] = old
        for which, each, value in (
            (HOLDS, removed, 0),
            (COUNTS, removed, 0),
            (HOLDS, inserted, 1),
            (GIVEN, no_longer_explicit, 0),
            (GIVEN, newly_explicit, 1),
        ):
            if name in each:
                after[which, np.searchsorted(touched, each[name])] = value
        changed[name] = (relation.table[:, touched], after - before)
    return Difference(dictionary, changed)


def replaced(old: Store, new: Store, dictionary: Dictionary) -> Difference:
    """Return the changes made by replacing one store by another."""
    changed = {}
    for name in {**old.relations, **new.relations}:
        parts = [
            (relation.whole_table(), sign * stored_numbers(relation))
            for relation, sign in (
                (old.relations.get(name), -1),
                (new.relations.get(name), 1),
            )
            if relation is not None and relation.count
        ]
        if parts:
            changed[name] = parts[0] if len(parts) == 1 else _summed(parts)
    return Difference(dictionary, changed)


def apply_numbers(store: Store, name: str, ids: Ids, change: pa.Table) -> None:
    """Add changes to the stored numbers of facts, each of which occurs once."""
    relation = store.relations[name]
    intern_rows(relation, ids)
    rows = relation.find(ids)
    columns = [change[each].to_numpy() for each in STORED_NUMBERS]
    for counter, counts in zip(store.counters, columns[COUNTS], strict=True):
        changed = np.flatnonzero(counts)
        facts = Settled({name: rows[changed]})
        counter.add(RowCounts(facts, counts[changed].astype(np.int32)))
    store.add_explicit(Settled({name: rows[columns[GIVEN] > 0]}))
    store.remove_explicit(Settled({name: rows[columns[GIVEN] < 0]}))
    store.add(Settled({name: rows[columns[HOLDS] > 0]}))
    store.remove(Settled({name: rows[columns[HOLDS] < 0]}))


def stored_numbers(relation: Relation, rows: Rows | None = None) -> StoredNumbers:
    """Return the stored numbers of some rows of a relation, or of all rows."""
    if rows is None:
        rows = np.arange(relation.count, dtype=np.int32)
    status = relation.status[rows]
    numbers: StoredNumbers = np.empty((len(STORED_NUMBERS), rows.size), np.int64)
    numbers[HOLDS] = (status & MATERIALISED) != 0
    numbers[GIVEN] = (status & EXPLICIT) != 0
    for at, which in enumerate((NONRECURSIVE, RECURSIVE)):
        numbers[2 + at] = relation.counted(which, rows)
    return numbers


def _summed(parts: list[tuple[Ids, StoredNumbers]]) -> tuple[Ids, StoredNumbers]:
    """Return each fact once, with the sum of its numbers."""
    ids = np.concatenate([part for part, _ in parts], axis=1)
    numbers = np.concatenate([part for _, part in parts], axis=1)
    if not ids.shape[0]:
        return ids[:, :1], numbers.sum(axis=1, keepdims=True)
    order = np.lexsort(tuple(ids))
    ids, numbers = ids[:, order], numbers[:, order]
    new = np.ones(order.size, np.bool_)
    new[1:] = (ids[:, 1:] != ids[:, :-1]).any(axis=0)
    starts = np.flatnonzero(new)
    return ids[:, starts], np.add.reduceat(numbers, starts, axis=1)


class Store:
    """The facts of an engine; replaced as a whole when everything is rematerialised."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.relations: dict[str, Relation] = {}
        self.clock = Clock()
        """The time of the last change of rows, per relation and overall."""
        self.sets = Sets(self.relations, dictionary, self.clock)
        self.rewriting = Rewriting(self.sets)
        self.spare_arrays: list[CliqueArrays] = []
        self.materialised = Stored(MATERIALISED)
        self.explicit = Stored(EXPLICIT)
        self.closure_indexes = ClosureIndexes(self.relations, self.sets)
        self.counters = (
            CounterColumn(NONRECURSIVE, self.relations, self.sets),
            CounterColumn(RECURSIVE, self.relations, self.sets),
        )

    def add(self, facts: Settled, *, zeros: int = 0) -> None:
        """Make facts materialised, and clear the status bits `zeros`."""
        for relation, count in self._flipped(facts, MATERIALISED, zeros=zeros):
            relation.alive += count

    def remove(self, facts: Settled, *, zeros: int = 0) -> None:
        """Make facts no longer materialised, and set their counts to zero.

        The status bits `zeros` are cleared, too.
        """
        for relation, count in self._flipped(
            facts, MATERIALISED, present=False, zeros=zeros
        ):
            relation.alive -= count
        if not facts.is_empty():
            segments = facts.segments(self.relations)
            kernels_fact_sets.forget_counts(segments, facts.every)

    def add_explicit(self, facts: Settled) -> None:
        """Make facts explicit."""
        for relation, count in self._flipped(facts, EXPLICIT):
            relation.explicit_count += count

    def remove_explicit(self, facts: Settled) -> None:
        """Make facts no longer explicit."""
        for relation, count in self._flipped(facts, EXPLICIT, present=False):
            relation.explicit_count -= count

    def _flipped(
        self, facts: Settled, bit: int, *, present: bool = True, zeros: int = 0
    ) -> list[tuple[Relation, int]]:
        """Set or clear a bit; return how many rows of each relation changed.

        The bits `zeros` are cleared, too.
        """
        changed = self.sets.mark(facts, bit, present=present, zeros=zeros)
        relations = [self.relations[name] for name in facts.names]
        return list(zip(relations, changed, strict=True))

    def recovered(self, dictionary: Dictionary) -> Store:
        """Return a store that takes over the facts and rebuilds everything else."""
        store = Store(dictionary)
        for name, relation in self.relations.items():
            store.relations[name] = relation.recovered(store.clock)
        return store

    def missing_from(self, other: Store) -> dict[str, Rows | None]:
        """Return the materialised rows that another store lacks; None for all rows."""
        return {
            name: missing_rows(relation, other.relations.get(name))
            for name, relation in self.relations.items()
        }


def missing_rows(relation: Relation, twin: Relation | None) -> Rows | None:
    """Do the same for two relations that share rows."""
    if twin is None or not twin.alive:
        if relation.alive == relation.count:
            return None
        held = (relation.status[: relation.count] & MATERIALISED) != 0
        return np.flatnonzero(held).astype(np.int32)
    if relation.origin is twin.origin:
        return _missing_beside(relation, twin)
    parts = [NO_ROWS]
    # In the order of the runs' keys, consecutive look-ups are close to each other.
    for run in relation.primary.runs:
        twins = (
            twin.find_sorted(run.keys)
            if relation.arity <= WIDEST_EXACT_KEY
            else twin.find_wide_sorted(relation.table[:, run.rows].T, run.keys)
        )
        parts.append(_lost(relation, run.rows, twin, twins))
    return np.concatenate(parts)


def _missing_beside(relation: Relation, twin: Relation) -> Rows:
    """Do the same for two relations that share rows."""
    shared = min(relation.shared, twin.shared)
    held = relation.status[:shared] & ~twin.status[:shared] & MATERIALISED
    others = np.arange(shared, relation.count, dtype=np.int32)
    twins = twin.find(relation.table[:, others]) if others.size else NO_ROWS
    return np.concatenate(
        [
            np.flatnonzero(held).astype(np.int32),
            _lost(relation, others, twin, twins),
        ]
    )


def _lost(relation: Relation, rows: Rows, twin: Relation, twins: Rows) -> Rows:
    """Return the materialised ones of rows whose counterparts are not."""

    def choose(part: slice, found: Rows) -> int:
        status, twin_status = relation.status, twin.status
        return kernels_rows.lost(
            status, rows[part], twin_status, twins[part], MATERIALISED, found
        )

    return chosen_rows(rows.size, choose)
