"""Rules inside tasks, each on a piece of the one large set that it reads.

As plans of Spark, the queries of a round are a scan of each level for each pattern and
a join for each pair of them, and Spark plans, generates, compiles and warms up code for
each of these. Most queries join at most one large set with small ones. Those share one
scan: the small sets are sent to all tasks, the large one stays partitioned as it is,
and the embedded engine joins each piece of it. Spark sums the counts of derived facts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evermat.algebra import QuerySet, Role, Views
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.engines.embedded.fact_sets import Settled
from evermat.engines.spark.blocks import width_of
from evermat.engines.spark.decomposition import constants_of, is_plain
from evermat.engines.spark.inside_tasks import Numbering, Work, by_relation
from evermat.engines.spark.joins import BROADCAST
from evermat.engines.spark.queries import condition_on, listed_ids
from evermat.engines.spark.row_tables import key_columns, padded_keys
from evermat.engines.spark.tasks import map_in_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark import Broadcast
    from pyspark.sql import DataFrame

    from evermat.algebra import Pattern, Query
    from evermat.engines.spark.blocks import Block, Cluster
    from evermat.engines.spark.reading import FactSet, Reader
    from evermat.engines.spark.rows import Rows

MOST_SENT = BROADCAST
"""Limit of the rows that are sent to all tasks, for all queries together."""
AT_ONCE = 500_000
"""Rows that a task joins at a time, however large its piece is."""


@dataclass(eq=False)
class _Rows:
    """Rows of a set that queries read in the same way.

    Attributes:
        name: their name in tasks.
        relation: their relation.
        wanted: the rows that are read, as alternative conditions.
    """

    name: str
    relation: str
    arity: int
    rows: Rows
    wanted: dict[str, None] = field(default_factory=dict)

    @property
    def is_large(self) -> bool:
        """Whether there may be more rows than the driver keeps."""
        return self.rows.bound > self.rows.cluster.small

    def query(self, tag: int, width: int) -> str:
        """Return a query for the rows that are read, with a tag."""
        columns = ", ".join(padded_keys(self.arity, width)[1:])
        any_of = " OR ".join(f"({condition})" for condition in self.wanted)
        return (
            f"SELECT {tag}L AS tag, {columns} "  # noqa: S608
            f"FROM ({self.rows.query(width)}) WHERE {any_of}"
        )


class Pieces:
    """Those queries of a call that tasks run.

    Args:
        cluster: the cluster of the facts.
        reader: finds the sources of patterns.
        queries: all queries of the call.

    Attributes:
        rest: those that tasks do not run.
        matches: their estimated matches: rows of the large set that match a row of each
            small one.
    """

    def __init__(
        self, cluster: Cluster, reader: Reader, queries: Sequence[Query]
    ) -> None:
        self._cluster = cluster
        self._reader = reader
        self._divided: dict[FactSet, _Rows] = {}
        self._sent: dict[FactSet, _Rows] = {}
        self._room = MOST_SENT
        self.matches = 0
        self._queries: list[Query] = []
        self._shared: Broadcast[Work] | None = None
        self.rest: list[Query] = []
        for query in queries:
            taken = self._take(query)
            if taken is None:
                self.rest.append(query)
            else:
                self._queries.append(taken)

    @property
    def width(self) -> int:
        """The number of columns of derived rows."""
        arities = (len(query.head.operands) for query in self._queries)
        return max(map(width_of, arities), default=0)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks that the queries read."""
        parts = (*self._divided.values(), *self._sent.values())
        return tuple(block for part in parts for block in part.rows.blocks)

    def told(self) -> list[str]:
        """Describe which large sets are divided among tasks."""
        large = (part for part in self._divided.values() if part.is_large)
        sent = sorted({part.relation for part in self._sent.values()})
        rest = f", with rows of {', '.join(sent)} sent to all of them" if sent else ""
        return [f"inside tasks, over pieces of {each.relation}{rest}" for each in large]

    # --------------------------------------------------------------------- queries

    def _take(self, query: Query) -> Query | None:
        """Return the query for tasks; None if it reads two large sets."""
        if not is_plain(query) or not query.positive:
            return None
        listed = listed_ids(query, self._cluster)
        sizes = {
            at: self._reader.most(pattern, listed)
            for at, pattern in enumerate(query.positive)
        }
        largest = max(sizes, key=sizes.__getitem__)
        sent = sum(size for at, size in sizes.items() if at != largest)
        sent += sum(self._reader.source(each).bound for each in query.negative)
        if sent > self._room:
            return None
        self._room -= sent
        self.matches += sizes[largest]
        positive = tuple(
            self._read(
                self._divided if at == largest else self._sent,
                pattern,
                condition_on(pattern, self._cluster, listed),
                Role.ALL,
            )
            for at, pattern in enumerate(query.positive)
        )
        negative = tuple(
            self._read(
                self._sent, pattern, condition_on(pattern, self._cluster), Role.ABSENT
            )
            for pattern in query.negative
        )
        return replace(query, positive=positive, negative=negative)

    def _read(
        self, sets: dict[FactSet, _Rows], pattern: Pattern, condition: str, role: Role
    ) -> Pattern:
        """Return the pattern for the rows as named in a task."""
        key = self._reader.set_of(pattern)
        if key not in sets:
            way = "divided" if sets is self._divided else "sent"
            name = f"{way} {key}"
            rows = self._reader.source(pattern).rows
            arity = len(pattern.operands)
            sets[key] = _Rows(name, pattern.relation, arity, rows)
        sets[key].wanted[condition] = None
        return replace(pattern, relation=sets[key].name, role=role, local=False)

    # ----------------------------------------------------------------------- frame

    def frame(self) -> DataFrame:
        """Return the facts derived by tasks, with duplicates: `tag`, `c0`, …, `n`."""
        cluster = self._cluster
        # Tasks derive facts with constants that may occur only in rules.
        constants = list(dict.fromkeys(constants_of(self._queries)))
        cluster.dictionary.encode_constants(constants)
        divided = list(self._divided.values())
        parts = [*divided, *self._sent.values()]
        arities = {part.name: part.arity for part in parts}
        heads = {each.head.relation: len(each.head.operands) for each in self._queries}
        work = Work(
            queries=tuple(self._queries),
            names=dict(enumerate(part.name for part in divided)),
            arities=arities | heads,
            heads={name: cluster.tag(name) for name in heads},
            sides=self._tables_sent(),
            width=self.width,
        )
        self._shared = cluster.session.sparkContext.broadcast(work)
        columns = [f"{name} bigint" for name in [*key_columns(self.width), "n"]]
        pieces = cluster.sql(_union(divided))
        task = partial(run_pieces, self._shared)
        return map_in_tasks(pieces, task, ", ".join(columns))

    def clear(self) -> None:
        """Release the data sent to tasks, once the frame has been run."""
        if self._shared is not None:
            self._shared.destroy()

    def _tables_sent(self) -> dict[str, np.ndarray]:
        """Return the rows that every task reads, by relation, by column."""
        sent = list(self._sent.values())
        if not sent:
            return {}
        rows = self._cluster.collect(_union(sent))
        names = dict(enumerate(part.name for part in sent))
        return by_relation(names, {part.name: part.arity for part in sent}, rows)


def _union(parts: Sequence[_Rows]) -> str:
    width = max(width_of(part.arity) for part in parts)
    width = max(width, *(part.rows.width for part in parts))
    return " UNION ALL ".join(part.query(at, width) for at, part in enumerate(parts))


# ------------------------------------------------------------------------- in tasks


def run_pieces(
    work: Broadcast[Work], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Convert rows to the facts derived from them; called by Spark in workers."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.num_rows
        if size >= AT_ONCE:
            yield from derive_piece(work.value, pa.Table.from_batches(waiting))
            waiting, size = [], 0
    if size:
        yield from derive_piece(work.value, pa.Table.from_batches(waiting))


def derive_piece(work: Work, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the facts that rules derive from some rows, with counts."""
    tables = {**work.sides, **by_relation(work.names, work.arities, rows)}
    numbering = Numbering(work.queries, tables.values())
    engine = EmbeddedEngine()
    for name, arity in work.arities.items():
        engine.declare(name, arity)
    read = Settled(
        {
            name: numbering.add(engine, name, table).every
            for name, table in tables.items()
        }
    )
    counts = engine.derive_counts(QuerySet(numbering.queries), Views(read, read))
    for name, found, derived in counts.parts():
        columns = numbering.ids_of(engine.store.relations[name].table[:, found])
        zeros = np.zeros(found.size, np.int64)
        columns += [zeros] * (work.width - len(columns))
        numbers = derived.astype(np.int64)
        yield pa.record_batch(
            [pa.array(each) for each in (zeros + work.heads[name], *columns, numbers)],
            names=[*key_columns(work.width), "n"],
        )
