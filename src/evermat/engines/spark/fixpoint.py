"""Fixpoints of decomposable rules: one pass over the facts, without a final shuffle.

The facts are partitioned by their keys, and every task runs the rules to their fixpoint
(see `decomposition` and `inside_tasks`). If everything is on the driver, the driver
tries it first: as long as few facts are derived, no job is needed at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.engines.spark.blocks import local_block, width_of
from evermat.engines.spark.decomposition import constants_of, decompose
from evermat.engines.spark.dictionary import constant_id
from evermat.engines.spark.inside_tasks import Work, derive_few, run_tasks
from evermat.engines.spark.joins import BROADCAST
from evermat.engines.spark.row_tables import appended, key_columns, padded_keys, widened
from evermat.engines.spark.rows import brought_home
from evermat.engines.spark.session import parallelism
from evermat.engines.spark.sets import Counted, Settled, Stored, rows_of
from evermat.engines.spark.tasks import map_in_tasks
from evermat.values import Constant

if TYPE_CHECKING:
    from evermat.algebra import Facts, Pattern, QuerySet
    from evermat.engines.spark.blocks import Block, Cluster
    from evermat.engines.spark.decomposition import Decomposition, Side
    from evermat.engines.spark.rows import Rows

TASKS_PER_CORE = 2
"""Tasks per core, so that one with many facts does not delay all others."""
FACTS_PER_TASK = 500_000
"""Largest number of facts that a task starts from, if keys divide them evenly."""
EVERYTHING = "true"
"""The condition that all rows satisfy."""


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Rows of one relation that tasks start from or read.

    Attributes:
        tag: the tag of the rows in a task.
        where: the condition of the selected rows.
        key: the position of the key; None for facts that every task reads.
    """

    name: str
    tag: int
    arity: int
    rows: Rows
    where: str
    key: int | None

    def query(self, width: int) -> str:
        """Return a query for the rows, with their tag in a task."""
        columns = ", ".join(padded_keys(self.arity, width)[1:])
        return (
            f"SELECT {self.tag}L AS tag, {columns}, "  # noqa: S608
            f"{'0L' if self.key is None else f'c{self.key}'} AS key "
            f"FROM ({self.rows.query(width)}) WHERE {self.where}"
        )


class Fixpoints:
    """Runs decomposable rules over the facts of an engine."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: WeakKeyDictionary[QuerySet, Decomposition | None] = (
            WeakKeyDictionary()
        )

    def run(
        self, queries: QuerySet, facts: Facts, others: Facts
    ) -> tuple[Counted, Settled] | None:
        """Return the facts that rules derive, with counts, and the new ones among them.

        Args:
            queries: one for each rule, with role ALL.
            facts: the initial facts of local patterns.
            others: the facts of other patterns.
        """
        if queries not in self._known:
            self._known[queries] = decompose(queries.queries)
        found = self._known[queries]
        if found is None:
            return None
        # Tasks derive facts with constants that may occur only in rules.
        constants = list(dict.fromkeys(constants_of(found.queries)))
        self._cluster.dictionary.encode_constants(constants)
        return _Pass(self._cluster, found, facts, others).run()

    def forget(self, queries: QuerySet) -> None:
        """Discard cached data of rules that will not be run again."""
        self._known.pop(queries, None)


class _Pass:
    """One pass over the facts."""

    def __init__(
        self,
        cluster: Cluster,
        decomposition: Decomposition,
        facts: Facts,
        others: Facts,
    ) -> None:
        self._cluster = cluster
        self._rules = decomposition
        self._facts = facts
        self._others = others
        self._arities = {
            pattern.relation: len(pattern.operands) for pattern in decomposition.local
        }
        for name, side in decomposition.sides.items():
            self._arities[name] = len(side.pattern.operands)
        self._width = max(map(width_of, self._arities.values()))

    def run(self) -> tuple[Counted, Settled] | None:
        """Return the derived facts and the new ones among them, if possible."""
        parts = self._local_parts()
        sides = [
            self._part(name, -1 - number, side)
            for number, (name, side) in enumerate(self._rules.sides.items())
        ]
        large = self._large(sides)
        if any(part.key is None for part in large):
            return None
        work = self._work([part for part in sides if part not in large])
        parts += large
        if all(part.rows.table is not None for part in parts):
            derived = derive_few(work, self._here(parts), self._cluster.small)
            if derived is not None:
                return self._on_driver(derived)
        return self._on_cluster(work, parts)

    # ------------------------------------------------------------------------ parts

    def _local_parts(self) -> list[_Part]:
        conditions: dict[str, list[str]] = {}
        for pattern in self._rules.local:
            conditions.setdefault(pattern.relation, []).append(_condition(pattern))
        return [
            _Part(
                name,
                self._cluster.tag(name),
                self._arities[name],
                self._rows(self._facts, name),
                _any_of(any_of),
                self._rules.keys[name],
            )
            for name, any_of in conditions.items()
        ]

    def _part(self, name: str, tag: int, side: Side) -> _Part:
        relation = side.pattern.relation
        condition = _condition(side.pattern)
        arity = len(side.pattern.operands)
        rows = self._rows(self._others, relation)
        return _Part(name, tag, arity, rows, condition, side.key)

    def _rows(self, facts: Facts, relation: str) -> Rows:
        tags = frozenset({self._cluster.tag(relation)})
        return rows_of(facts, self._cluster, tags)

    def _large(self, sides: list[_Part]) -> list[_Part]:
        """Return those of the sides that are too large to be sent to every task."""
        doubtful = [part for part in sides if part.rows.bound > BROADCAST]
        if not doubtful:
            return []
        counts = " UNION ALL ".join(
            f"SELECT {part.tag}L AS tag, count(1) AS n FROM ({part.query(part.arity)})"  # noqa: S608
            for part in doubtful
        )
        table = self._cluster.collect(counts)
        sizes = dict(zip(table["tag"].to_pylist(), table["n"].to_pylist(), strict=True))
        return [part for part in doubtful if sizes[part.tag] > BROADCAST]

    def _here(self, parts: list[_Part]) -> pa.Table:
        """Return the rows of parts on the driver."""
        local = [part for part in parts if part.rows.table is not None]
        remote = [part for part in parts if part.rows.table is None]
        tables = [_tagged(part, self._width) for part in local]
        if remote:
            sql = " UNION ALL ".join(part.query(self._width) for part in remote)
            tables.append(self._cluster.collect(sql).drop_columns(["key"]))
        return appended(tables)

    def _work(self, sides: list[_Part]) -> Work:
        tables = {}
        if sides:
            rows = self._here(sides)
            tags = rows["tag"].to_numpy()
            columns = [rows[f"c{at}"].to_numpy() for at in range(self._width)]
            for part in sides:
                chosen = tags == part.tag
                places = range(part.arity)
                tables[part.name] = np.stack([columns[at][chosen] for at in places])
        names = {self._cluster.tag(name): name for name in self._rules.keys}
        for number, name in enumerate(self._rules.sides):
            names[-1 - number] = name
        heads = {query.head.relation for query in self._rules.queries}
        return Work(
            queries=self._rules.queries,
            names=names,
            arities=self._arities,
            heads={name: self._cluster.tag(name) for name in sorted(heads)},
            sides=tables,
            width=self._width,
        )

    # ---------------------------------------------------------------------- results

    def _on_driver(self, derived: pa.Table) -> tuple[Counted, Settled]:
        keys = key_columns(self._width)
        fresh = derived.filter(pc.invert(derived["old"])).select(keys)
        every = local_block(self._cluster, derived.select([*keys, "n"]))
        return Counted(every), self._new(local_block(self._cluster, fresh))

    def _on_cluster(self, work: Work, parts: list[_Part]) -> tuple[Counted, Settled]:
        session = self._cluster.session
        sql = " UNION ALL ".join(part.query(self._width) for part in parts)
        bound = sum(part.rows.bound for part in parts)
        tasks = max(
            TASKS_PER_CORE * parallelism(session),
            -(-bound // FACTS_PER_TASK),
        )
        keys = key_columns(self._width)
        facts = self._cluster.sql(sql).repartition(tasks, "key").select(*keys)
        shared = session.sparkContext.broadcast(work)
        columns = [f"{name} bigint" for name in [*keys, "n"]]
        schema = ", ".join([*columns, "old boolean"])
        derived = map_in_tasks(facts, partial(run_tasks, shared), schema)
        view = self._cluster.register(derived)
        names = ", ".join([*keys, "n", "old"])
        try:
            every, new = self._cluster.checkpoint_marked(
                f"SELECT {names} FROM {view}",  # noqa: S608
                self._width,
                work.heads.values(),
            )
        finally:
            session.catalog.dropTempView(view)
            shared.destroy()
        return Counted(every), self._new(brought_home(new))

    def _new(self, block: Block) -> Settled:
        apart: frozenset[tuple[int, int]] = frozenset()
        if isinstance(self._facts, Stored):
            apart = frozenset({self._facts.heap.moment})
        return Settled(block, apart)


def _tagged(part: _Part, width: int) -> pa.Table:
    """Return the rows of a part on the driver, with their tag in a task.

    There are few, so rows that do not match are not filtered out.
    """
    table = widened(part.rows.table, width).select(key_columns(width))
    tags = pa.array(np.full(table.num_rows, part.tag, np.int64))
    return table.set_column(0, "tag", tags)


def _condition(pattern: Pattern) -> str:
    """Return the condition for rows that have the constants of a pattern."""
    fixed = [
        f"c{at} = {constant_id(operand)}L"
        for at, operand in enumerate(pattern.operands)
        if isinstance(operand, Constant)
    ]
    return " AND ".join(fixed) or EVERYTHING


def _any_of(conditions: list[str]) -> str:
    # Without parentheses: Spark parses `FROM (…) WHERE (true)` as an alias.
    if EVERYTHING in conditions:
        return EVERYTHING
    return " OR ".join(f"({condition})" for condition in conditions)
