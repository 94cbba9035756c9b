"""A whole fixpoint inside one task, on the embedded engine.

A task has all facts of some keys (see `decomposition`) and the facts that rules read.
Ids arrive as 64-bit integers; they are numbered densely, so that the embedded engine
treats the numbers as small integers and needs no dictionary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evermat.algebra import Query, QuerySet, Views
from evermat.engines.embedded.dictionary import INTEGER_ZERO
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.engines.embedded.fact_sets import Settled
from evermat.engines.embedded.relation import RECURSIVE
from evermat.engines.spark.decomposition import constants_of, with_constants
from evermat.engines.spark.dictionary import constant_id
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt
    from pyspark import Broadcast

    Codes = npt.NDArray[np.uint32]
    Ids = npt.NDArray[np.int64]
    Tables = dict[str, Ids]


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """The parameters of all tasks.

    Attributes:
        queries: rules by the change of their local pattern.
        names: the relations of rows, by their tag.
        arities: the number of columns of each relation.
        heads: the tag of each derived relation.
        sides: facts that every task needs, by relation, by column.
        width: the number of columns of rows.
    """

    queries: tuple[Query, ...]
    names: Mapping[int, str]
    arities: Mapping[str, int]
    heads: Mapping[str, int]
    sides: Mapping[str, Ids]
    width: int


def run_tasks(
    work: Broadcast[Work], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Convert rows to the facts derived from them; called by Spark's workers."""
    received = list(batches)
    if not received:
        return iter(())
    return derive_all(work.value, pa.Table.from_batches(received))


def derive_all(work: Work, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield derived facts: `tag`, `c0`, …, counts, and whether they are known."""
    fixpoint = _Fixpoint(work, by_relation(work.names, work.arities, rows))
    fixpoint.run()
    for name, tag in work.heads.items():
        batch = fixpoint.derived(name, tag)
        if batch.num_rows:
            yield batch


def derive_few(work: Work, rows: pa.Table, limit: int) -> pa.Table | None:
    """Like `derive_all`, on the driver; None if there are more facts than `limit`."""
    fixpoint = _Fixpoint(work, by_relation(work.names, work.arities, rows))
    if not fixpoint.run(limit):
        return None
    return pa.Table.from_batches(
        [fixpoint.derived(name, tag) for name, tag in work.heads.items()]
    )


def by_relation(
    names: Mapping[int, str], arities: Mapping[str, int], rows: pa.Table
) -> Tables:
    """Return the rows of each relation, by column.

    Args:
        names: the relations, by their tag.
        arities: the number of columns of each.
        rows: `tag`, `c0`, …
    """
    columns = {name: rows[name].to_numpy() for name in rows.column_names}
    tags = columns["tag"]
    facts = {}
    for tag, name in names.items():
        chosen = tags == tag
        if chosen.any():
            places = range(arities[name])
            facts[name] = np.stack([columns[f"c{at}"][chosen] for at in places])
    return facts


class Numbering:
    """Dense numbers for ids, which the embedded engine treats as small integers.

    Attributes:
        queries: some queries, with their constants replaced by numbers.
    """

    def __init__(self, queries: Sequence[Query], tables: Iterable[Ids]) -> None:
        constants = set(constants_of(queries))
        given = np.array([constant_id(each) for each in constants], np.int64)
        self._ids = np.unique(
            np.concatenate([given, *(table.ravel() for table in tables)])
        )
        numbers = {each: self._number(each) for each in constants}
        self.queries = tuple(with_constants(query, numbers) for query in queries)

    def _number(self, constant: Constant) -> Constant:
        at = int(np.searchsorted(self._ids, constant_id(constant)))
        return Constant(Kind.INTEGER, str(at))

    def add(self, engine: EmbeddedEngine, name: str, table: Ids) -> Settled:
        """Add facts to an engine, whether they hold or not."""
        numbers = [pa.array(np.searchsorted(self._ids, column)) for column in table]
        names = [str(at) for at in range(len(numbers))]
        return engine.intern(name, pa.table(numbers, names=names))

    def ids_of(self, table: Codes) -> list[Ids]:
        """Return the ids of an engine's facts, by column."""
        return [self._ids[column.astype(np.int64) - INTEGER_ZERO] for column in table]


class _Fixpoint:
    def __init__(self, work: Work, facts: Tables) -> None:
        self._work = work
        self._engine = EmbeddedEngine()
        tables = {**work.sides, **facts}
        self._numbering = Numbering(work.queries, tables.values())
        self._queries = QuerySet(self._numbering.queries)
        for name, arity in work.arities.items():
            self._engine.declare(name, arity)
        added = {name: self._add(name, table) for name, table in tables.items()}
        self._seeds = Settled({name: added[name].rows[name] for name in facts})
        self._known = {
            name: self._engine.store.relations[name].count for name in work.heads
        }

    def _add(self, name: str, table: Ids) -> Settled:
        settled = self._numbering.add(self._engine, name, table)
        self._engine.extend(settled)
        return settled

    def run(self, limit: int | None = None) -> bool:
        """Apply the rules to the fixpoint, counting derivations.

        Return whether it was reached: the loop stops when there are more new facts than
        `limit`.
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
        """Return the facts of a relation that rules derive."""
        relation = self._engine.store.relations[name]
        rows = np.arange(relation.count, dtype=np.int32)
        counts = relation.counted(RECURSIVE, rows)
        rows = rows[counts > 0]
        columns = self._numbering.ids_of(relation.table[:, rows])
        zeros = np.zeros(rows.size, np.int64)
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
