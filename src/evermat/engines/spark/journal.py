"""The stored numbers of facts: their changes in a transaction, and loading them.

A change consists of parts: sets of facts that are added or removed, and counts that
were added or subtracted. They are summed on the driver if all of them are there, and by
one plan otherwise.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import STORED_NUMBERS
from evermat.engines.spark.blocks import local_block
from evermat.engines.spark.row_tables import (
    appended,
    chosen,
    key_columns,
    key_names,
    padded_keys,
)
from evermat.engines.spark.rows import brought_home
from evermat.engines.spark.snapshot import decoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from evermat.engines.spark.blocks import Block, Cluster
    from evermat.engines.spark.counters import Numbers
    from evermat.engines.spark.engine import SparkEngine
    from evermat.engines.spark.rows import Rows

HOLDS, GIVEN, C_NR, C_R = range(4)

NUMBERS = ("holds", "given", "n_nr", "n_r")
"""The names of the numbers in this module, where columns of facts begin with a `c`."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Facts, and by how much one of their numbers changes.

    Attributes:
        which: the changed number.
        sign: the factor for the numbers of the facts, or for one.
        table: the facts, if they are on the driver, optionally with a column `n`.
        query: for others, returns a query for the facts and for `n`, by the width.
        keeps: blocks whose views the query names.
    """

    which: int
    sign: int
    width: int
    bound: int
    table: pa.Table | None = None
    query: Callable[[int], str] | None = None
    keeps: tuple[Block, ...] = ()


def rows_part(which: int, sign: int, rows: Rows) -> Part:
    """Return the part of facts that are added or removed."""
    if rows.table is not None:
        return Part(which, sign, rows.width, rows.bound, rows.table)

    def query(width: int) -> str:
        return f"SELECT *, 1L AS n FROM ({rows.query(width)})"  # noqa: S608

    return Part(which, sign, rows.width, rows.bound, None, query, rows.blocks)


def number_parts(which: int, new: Numbers, old: Numbers) -> Iterator[Part]:
    """Yield the counts that are only in the new or only in the old numbers.

    Common ones are skipped; levels are compared by identity.
    """
    for numbers, other, sign in ((new, old, 1), (old, new, -1)):
        for level in numbers.levels:
            if not any(level is each for each in other.levels):
                blocks = (level.block, *level.holes.blocks)
                yield Part(
                    *(which, sign, level.width, level.block.size),
                    query=level.query,
                    keeps=blocks,
                )
        if numbers.local is not None and numbers.local is not other.local:
            local = numbers.local
            yield Part(which, sign, local.width, local.size, local.table)


class Difference:
    """The changes of the stored numbers of facts."""

    def __init__(
        self, cluster: Cluster, arities: Mapping[str, int], parts: list[Part]
    ) -> None:
        self.cluster = cluster
        self._arities = dict(arities)
        self._parts = [part for part in parts if part.bound]
        self._table: pa.Table | None = None
        if all(part.table is not None for part in self._parts):
            self._table = _summed([_spread(part) for part in self._parts])

    @property
    def table(self) -> pa.Table | None:
        """Return `relation`, `c0`, … and the numbers, if all is on the driver."""
        if self._table is None:
            return None
        names = pa.array(self.cluster.names, pa.string())
        relations = names.take(self._table["tag"].combine_chunks())
        return self._table.rename_columns(
            [*key_names(self._table), *STORED_NUMBERS]
        ).set_column(0, "relation", relations)

    def frame(self) -> DataFrame:
        """Return the same as a frame of Spark."""
        cluster = self.cluster
        if self._table is not None:
            sql = f"SELECT * FROM {self._view(self._table)}"  # noqa: S608
        else:
            sql = self._query()
        names = self._view(
            pa.table({"tag": range(len(cluster.names)), "relation": cluster.names})
        )
        columns = ", ".join(f"l.c{at}" for at in range(self._width))
        numbers = ", ".join(
            f"CAST({old} AS BIGINT) AS {new}"
            for old, new in zip(NUMBERS, STORED_NUMBERS, strict=True)
        )
        return cluster.session.sql(
            f"SELECT /*+ BROADCAST(r) */ relation, {columns}, {numbers} "  # noqa: S608
            f"FROM ({sql}) l JOIN {names} r ON l.tag = r.tag"
        )

    def _view(self, table: pa.Table) -> str:
        """Register a table for the lifetime of this object.

        Frames keep the contents of their views, even after the views are dropped.
        """
        view = self.cluster.register_table(table)
        weakref.finalize(self, self.cluster.waste.append, (view, None))
        return view

    @property
    def _width(self) -> int:
        return max((part.width for part in self._parts), default=1)

    def _query(self) -> str:
        parts = []
        for part in self._parts:
            query = part.query
            if query is None:
                query = _scan(self._view(_counted(part.table)), part.width)
            chosen_numbers = ", ".join(
                f"{part.sign if at == part.which else 0} * n AS {name}"
                for at, name in enumerate(NUMBERS)
            )
            keys = ", ".join(key_columns(self._width))
            parts.append(f"SELECT {keys}, {chosen_numbers} FROM ({query(self._width)})")  # noqa: S608
        sums = ", ".join(f"sum({name}) AS {name}" for name in NUMBERS)
        changed = " OR ".join(f"sum({name}) <> 0" for name in NUMBERS)
        keys = ", ".join(key_columns(self._width))
        return (
            f"SELECT {keys}, {sums} FROM ({' UNION ALL '.join(parts)}) "  # noqa: S608
            f"GROUP BY {keys} HAVING {changed}"
        )

    def _collected(self) -> pa.Table:
        if self._table is None:
            self._table = self.cluster.collect(self._query())
        return self._table

    def relations(self) -> Mapping[str, int]:
        """Return the number of rows of each relation that has any."""
        table = self._collected()
        if not table.num_rows:
            return {}
        counts = pc.value_counts(table["tag"])
        names = self.cluster.names
        return {names[c["values"].as_py()]: c["counts"].as_py() for c in counts}

    def read(self, relation: str) -> pa.Table:
        """Return the facts as columns of terms, and a column for each number."""
        rows = chosen(self._collected(), frozenset({self.cluster.tags[relation]}))
        table = decoded(self.cluster, rows, self._arities[relation])
        for old, new in zip(NUMBERS, STORED_NUMBERS, strict=True):
            table = table.append_column(new, rows[old].cast(pa.int64()))
        return table


def _scan(view: str, known: int) -> Callable[[int], str]:
    def query(width: int) -> str:
        keys = ", ".join(padded_keys(known, width))
        return f"SELECT {keys}, n FROM {view}"  # noqa: S608

    return query


def _counted(table: pa.Table) -> pa.Table:
    """Return facts with a count each."""
    if "n" in table.column_names:
        return table
    return table.append_column("n", pa.array([1] * table.num_rows, pa.int64()))


def _spread(part: Part) -> pa.Table:
    """Return the facts of a part on the driver, with all four numbers."""
    table = _counted(part.table)
    numbers = pc.multiply(table["n"], part.sign)
    nothing = pc.multiply(table["n"], 0)
    table = table.select(key_names(table))
    for at, name in enumerate(NUMBERS):
        table = table.append_column(name, numbers if at == part.which else nothing)
    return table


def _summed(tables: list[pa.Table]) -> pa.Table:
    if not tables:
        names = ["tag", "c0", *NUMBERS]
        return pa.table({name: pa.array([], pa.int64()) for name in names})
    table = appended(tables)
    keys = key_names(table)
    total = table.group_by(keys, use_threads=False).aggregate(
        [(name, "sum") for name in NUMBERS]
    )
    total = total.rename_columns([*keys, *NUMBERS])
    changed = [pc.not_equal(total[name], 0) for name in NUMBERS]
    either = changed[0]
    for each in changed[1:]:
        either = pc.or_(either, each)
    return total.filter(either)


# --------------------------------------------------------------------- taking up


def take_up_table(engine: SparkEngine, table: pa.Table) -> None:
    """Load facts on the driver: `tag`, `c0`, …, and the numbers."""
    cluster, keys = engine.cluster, key_names(table)
    for name, stored in (("holds", engine.materialised), ("given", engine.explicit)):
        rows = table.filter(pc.greater(table[name], 0)).select(keys)
        stored.heap.add(local_block(cluster, rows))
    for name, counters in (
        ("n_nr", engine.nonrecursive_counts),
        ("n_r", engine.recursive_counts),
    ):
        rows = table.filter(pc.not_equal(table[name], 0)).select([*keys, name])
        counters.append(local_block(cluster, rows.rename_columns([*keys, "n"])))


def take_up_frame(engine: SparkEngine, frame: DataFrame) -> None:
    """Load facts on the cluster, each of them once.

    Args:
        engine: an engine without facts that knows all relations.
        frame: `relation`, `c0`, …, and the numbers.
    """
    cluster = engine.cluster
    frame = frame.cache()
    view = cluster.register(frame)
    names = cluster.register_table(
        pa.table({"tag": range(len(cluster.names)), "relation": cluster.names})
    )
    width = sum(name[0] == "c" and name[1:].isdigit() for name in frame.columns)
    keys = key_columns(width)
    # The partitioning of a block is used by later rounds.
    source = (
        f"SELECT /*+ BROADCAST(r) */ CAST(r.tag AS BIGINT) AS tag, "  # noqa: S608
        f"{', '.join(keys[1:])}, holds, given, c_nr AS n_nr, c_r AS n_r "
        f"FROM {view} l JOIN {names} r ON l.relation = r.relation "
        f"DISTRIBUTE BY tag, {', '.join(keys[1:])}"
    )
    facts, tags = ", ".join(keys), range(len(cluster.names))
    for name, stored in (("holds", engine.materialised), ("given", engine.explicit)):
        sql = f"SELECT {facts} FROM ({source}) WHERE {name} > 0"  # noqa: S608
        stored.heap.add(brought_home(cluster.checkpoint(sql, width, tags)))
    for name, counters in (
        ("n_nr", engine.nonrecursive_counts),
        ("n_r", engine.recursive_counts),
    ):
        sql = f"SELECT {facts}, {name} AS n FROM ({source}) WHERE {name} <> 0"  # noqa: S608
        counters.append(brought_home(cluster.checkpoint(sql, width, tags)))
    cluster.waste += [(view, frame), (names, None)]
