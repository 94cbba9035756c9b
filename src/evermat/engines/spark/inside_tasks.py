"""A whole fixpoint inside one task, on the embedded engine.

A task has all facts of some keys (see `decomposition`) and the facts that rules read.
Ids arrive as 64-bit integers; they are numbered densely, so that the embedded engine
takes the numbers for small integers and needs no dictionary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evermat.algebra import Query, QuerySet, Views
from evermat.engines.embedded.dictionary import INTEGER_ZERO
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.engines.embedded.relation import RECURSIVE
from evermat.engines.embedded.settled import Settled
from evermat.engines.spark.decomposition import constants_of, with_constants
from evermat.engines.spark.ids import constant_id
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt
    from pyspark import Broadcast

    Ids = npt.NDArray[np.int64]
    Tables = dict[str, Ids]


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What all tasks are told.

    Attributes:
        queries: rules by the change of their local pattern.
        names: the relations of rows, by their tag.
        arities: how many columns each relation has.
        heads: the tag of each relation that is derived.
        sides: facts that every task needs, by relation, by column.
        width: how many columns rows have.
    """

    queries: tuple[Query, ...]
    names: Mapping[int, str]
    arities: Mapping[str, int]
    heads: Mapping[str, int]
    sides: Mapping[str, Ids]
    width: int


def run_tasks(
    work: Broadcast[Work], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows of facts to the facts derived from them; called by Spark in its workers."""
    received = list(batches)
    if not received:
        return iter(())
    return derive_all(work.value, pa.Table.from_batches(received))


def derive_all(work: Work, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """The facts that rules derive: `tag`, `c0`, …, how often, and if it was known."""
    fixpoint = _Fixpoint(work, _by_relation(work, rows))
    fixpoint.run()
    for name, tag in work.heads.items():
        batch = fixpoint.derived(name, tag)
        if batch.num_rows:
            yield batch


def derive_few(work: Work, rows: pa.Table, limit: int) -> pa.Table | None:
    """Like `derive_all`, here and now; None if there are more facts than `limit`."""
    fixpoint = _Fixpoint(work, _by_relation(work, rows))
    if not fixpoint.run(limit):
        return None
    return pa.Table.from_batches(
        [fixpoint.derived(name, tag) for name, tag in work.heads.items()]
    )


def _by_relation(work: Work, rows: pa.Table) -> Tables:
    columns = {name: rows[name].to_numpy() for name in rows.column_names}
    tags = columns["tag"]
    facts = {}
    for tag, name in work.names.items():
        chosen = tags == tag
        if chosen.any():
            places = range(work.arities[name])
            facts[name] = np.stack([columns[f"c{at}"][chosen] for at in places])
    return facts


class _Fixpoint:
    def __init__(self, work: Work, facts: Tables) -> None:
        self._work = work
        self._engine = EmbeddedEngine()
        tables = {**work.sides, **facts}
        constants = set(constants_of(work.queries))
        given = np.array([constant_id(each) for each in constants], np.int64)
        parts = [table.ravel() for table in tables.values()]
        self._ids = np.unique(np.concatenate([given, *parts]))
        numbers = {each: self._number(each) for each in constants}
        self._queries = QuerySet(
            tuple(with_constants(query, numbers) for query in work.queries)
        )
        for name, arity in work.arities.items():
            self._engine.declare(name, arity)
        added = {name: self._add(name, table) for name, table in tables.items()}
        self._seeds = Settled({name: added[name].rows[name] for name in facts})
        self._known = {
            name: self._engine.store.relations[name].count for name in work.heads
        }

    def _number(self, constant: Constant) -> Constant:
        at = int(np.searchsorted(self._ids, constant_id(constant)))
        return Constant(Kind.INTEGER, str(at))

    def _add(self, name: str, table: Ids) -> Settled:
        numbers = [pa.array(np.searchsorted(self._ids, column)) for column in table]
        names = [str(at) for at in range(len(numbers))]
        settled = self._engine.intern(name, pa.table(numbers, names=names))
        self._engine.extend(settled)
        return settled

    def run(self, limit: int | None = None) -> bool:
        """Apply the rules until nothing new comes, and count how often each did.

        Returns whether it came to an end: it stops when more facts than `limit` came.
        """
        engine, facts = self._engine, self._engine.materialised
        delta, new = self._seeds, 0
        while not delta.is_empty():
            views = Views(facts, facts, delta)
            counts = engine.derive_counts(self._queries, views)
            engine.recursive_counts.add(counts)
            delta = engine.settle(counts.facts - facts)
            engine.extend(delta)
            new += delta.size()
            if limit is not None and new > limit:
                return False
        return True

    def derived(self, name: str, tag: int) -> pa.RecordBatch:
        """The facts of a relation that rules derive."""
        relation = self._engine.store.relations[name]
        rows = np.arange(relation.count, dtype=np.int32)
        counts = relation.counted(RECURSIVE, rows)
        rows = rows[counts > 0]
        table = relation.table[:, rows].astype(np.int64) - INTEGER_ZERO
        zeros = np.zeros(rows.size, np.int64)
        columns = [self._ids[column] for column in table]
        columns += [zeros] * (self._work.width - len(columns))
        return pa.record_batch(
            [
                pa.array(zeros + tag),
                *map(pa.array, columns),
                pa.array(counts[counts > 0].astype(np.int64)),
                pa.array(rows < self._known[name]),
            ],
            names=[
                "tag",
                *(f"c{at}" for at in range(self._work.width)),
                "n",
                "old",
            ],
        )
