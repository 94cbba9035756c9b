"""What is stored about facts as numbers: how they change, and taking them up again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evermat.algebra import STORED_NUMBERS
from evermat.engines.embedded.heads import distinct, intern_rows
from evermat.engines.embedded.relation import (
    EXPLICIT,
    MATERIALISED,
    NONRECURSIVE,
    RECURSIVE,
)
from evermat.engines.embedded.snapshot import Copy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.engines.embedded.arrays import Ids, Rows
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.relation import Relation
    from evermat.engines.embedded.store import Store

    Sets = Mapping[str, Rows]

Numbers = npt.NDArray[np.int64]
"""A row for each of `STORED_NUMBERS`, a column for each fact."""

HOLDS, GIVEN, COUNTS = 0, 1, slice(2, 4)


class Difference:
    """Facts by column, and by how much their numbers change."""

    def __init__(
        self, dictionary: Dictionary, facts: dict[str, tuple[Ids, Numbers]]
    ) -> None:
        self._facts = {
            name: (ids[:, changed], numbers[:, changed])
            for name, (ids, numbers) in facts.items()
            if (changed := numbers.any(axis=0)).any()
        }
        tables = {name: ids for name, (ids, _) in self._facts.items()}
        self._copy = Copy(dictionary, tables)

    def relations(self) -> Mapping[str, int]:
        """The number of rows of each relation that has any."""
        return self._copy.relations()

    def read(self, relation: str) -> pa.Table:
        """The facts as columns of terms, then a column for each of the numbers."""
        table = self._copy.read(relation)
        _, numbers = self._facts[relation]
        for name, column in zip(STORED_NUMBERS, numbers, strict=True):
            table = table.append_column(name, pa.array(column))
        return table


def committed(
    store: Store, dictionary: Dictionary, sets: tuple[Sets, Sets, Sets, Sets]
) -> Difference:
    """What a transaction will have changed when it is committed.

    Args:
        store: the facts as they are, with the counts as they will be.
        dictionary: the constants.
        sets: the facts that leave and come, and those that are withdrawn and given.
    """
    gone, come, lost, new = sets
    overwritten: dict[str, list[tuple[int, Rows, Rows]]] = {}
    for at, counter in enumerate(store.counters):
        for name, rows, old in counter.overwritten():
            overwritten.setdefault(name, []).append((at, rows, old))
    changed = {}
    for name in {**gone, **come, **lost, **new, **overwritten}:
        relation = store.relations[name]
        parts = [each[name] for each in sets if name in each]
        parts += [rows for _, rows, _ in overwritten.get(name, [])]
        touched = distinct(np.concatenate(parts))
        before = stored_numbers(relation, touched)
        after = before.copy()
        # The first value that was overwritten is the one from before.
        for at, rows, old in reversed(overwritten.get(name, [])):
            before[2 + at, np.searchsorted(touched, rows)] = old
        for which, each, value in (
            (HOLDS, gone, 0),
            (COUNTS, gone, 0),
            (HOLDS, come, 1),
            (GIVEN, lost, 0),
            (GIVEN, new, 1),
        ):
            if name in each:
                after[which, np.searchsorted(touched, each[name])] = value
        changed[name] = (relation.table[:, touched], after - before)
    return Difference(dictionary, changed)


def replaced(old: Store, new: Store, dictionary: Dictionary) -> Difference:
    """What changes when one store takes the place of another."""
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


def reinstate(relation: Relation, ids: Ids, numbers: pa.Table) -> None:
    """Take up facts with their numbers, in a relation that has none of them."""
    intern_rows(relation, ids)
    rows = relation.find(ids)
    columns = [numbers[name].to_numpy() for name in STORED_NUMBERS]
    relation.show(rows[columns[HOLDS] > 0])
    relation.give(rows[columns[GIVEN] > 0])
    for which, counts in zip((NONRECURSIVE, RECURSIVE), columns[COUNTS], strict=True):
        counted = np.flatnonzero(counts)
        if counted.size:
            few = counts[counted].astype(np.int32)
            relation.add_counts(which, rows[counted], few, 1)


def stored_numbers(relation: Relation, rows: Rows | None = None) -> Numbers:
    """What is stored about some rows of a relation, or about all of them."""
    if rows is None:
        rows = np.arange(relation.count, dtype=np.int32)
    status = relation.status[rows]
    numbers: Numbers = np.empty((len(STORED_NUMBERS), rows.size), np.int64)
    numbers[HOLDS] = (status & MATERIALISED) != 0
    numbers[GIVEN] = (status & EXPLICIT) != 0
    for at, which in enumerate((NONRECURSIVE, RECURSIVE)):
        numbers[2 + at] = relation.counted(which, rows)
    return numbers


def _summed(parts: list[tuple[Ids, Numbers]]) -> tuple[Ids, Numbers]:
    """Each fact once, with the sum of its numbers."""
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
