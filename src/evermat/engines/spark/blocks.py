"""Blocks: fixed sets of rows, small ones on the driver and large ones on the cluster.

All relations share one layout, so that facts of several relations travel in one frame:
`tag` says which relation a row belongs to, `c0`, `c1`, … are the ids of its arguments,
and unused columns are 0. Relations without arguments have one column that is always 0.
Some blocks have a number for each row as well, in a column `n`.

A small block is an Arrow table on the driver; it is sent to Spark as a view when a plan
needs it. A large one is a reliable checkpoint, so its plan is a scan of files and
losing an executor loses nothing. Either way its size by relation is known once it is
made.
"""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.engines.spark.dictionary import Dictionary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

SMALL = int(os.environ.get("EVERMAT_SPARK_SMALL", "50000"))
"""Rows up to which a block stays on the driver.

Tests set it to almost nothing, so that even a few facts are on the cluster.
"""

_names = count()


def key_columns(width: int) -> list[str]:
    """The names of the columns that identify a row."""
    return ["tag", *(f"c{at}" for at in range(width))]


def width_of(arity: int) -> int:
    """How many columns a relation takes."""
    return max(arity, 1)


@dataclass
class Cluster:
    """What engines that exchange facts have in common.

    Attributes:
        tags: the number of each relation that was ever named.
        jobs: how many times Spark was asked to compute something.
    """

    session: SparkSession
    dictionary: Dictionary = field(default_factory=Dictionary)
    tags: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    small: int = SMALL
    jobs: int = 0
    _terms: tuple[int, str] | None = None

    def tag(self, relation: str) -> int:
        """The number of a relation."""
        if relation not in self.tags:
            self.tags[relation] = len(self.names)
            self.names.append(relation)
        return self.tags[relation]

    def collect(self, sql: str) -> pa.Table:
        """The result of a plan on the driver."""
        self.jobs += 1
        table = self.session.sql(sql).toArrow()
        # Spark says of some columns that they are never null, which is nothing to us.
        return pa.Table.from_arrays(table.columns, names=table.column_names)

    def checkpoint(self, sql: str, width: int) -> Block:
        """The result of a plan, which stays on the cluster."""
        self.jobs += 2
        # The checkpoint is what survives; the cache, filled by the summary, is what is
        # read: scans of it are several times as fast.
        frame = self.session.sql(sql).checkpoint(eager=True).cache()
        view = self.register(frame)
        numbers = "sum(n)" if "n" in frame.columns else "count(1)"
        summary = self.session.sql(
            f"SELECT tag, count(1) AS size, {numbers} AS n FROM {view} GROUP BY tag"  # noqa: S608
        ).collect()
        block = Block(self, width, None, view)
        block.sizes = {row["tag"]: row["size"] for row in summary}
        block.numbers = {row["tag"]: row["n"] for row in summary}
        weakref.finalize(block, _drop, self.session, view, frame)
        return block

    def register(self, frame: DataFrame) -> str:
        """A name for a frame, to be used in plans."""
        view = f"evermat_{next(_names)}"
        frame.createOrReplaceTempView(view)
        return view

    def register_table(self, table: pa.Table) -> str:
        """A name for an Arrow table, to be used in plans."""
        return self.register(self.session.createDataFrame(table))

    def terms_view(self) -> str:
        """The dictionary as a view: `id`, `kind`, `text`."""
        version = self.dictionary.version
        if self._terms is None or self._terms[0] != version:
            if self._terms is not None:
                _drop(self.session, self._terms[1])
            self._terms = version, self.register_table(self.dictionary.terms())
        return self._terms[1]


class Block:
    """Rows that never change; `table` is None where they are on the cluster.

    Attributes:
        sizes: how many rows each relation has, by tag.
        numbers: the sum of the column `n`, or how many rows, by tag.
    """

    __slots__ = (
        "__weakref__",
        "_view",
        "cluster",
        "numbers",
        "sizes",
        "table",
        "width",
    )

    def __init__(
        self, cluster: Cluster, width: int, table: pa.Table | None, view: str | None
    ) -> None:
        self.cluster = cluster
        self.width = width
        self.table = table
        self._view = view
        self.sizes: Mapping[int, int] = {}
        self.numbers: Mapping[int, int] = {}
        if table is not None:
            self.sizes = _sizes(table)
            self.numbers = self.sizes

    @property
    def size(self) -> int:
        """How many rows there are."""
        return sum(self.sizes.values())

    @property
    def view(self) -> str:
        """The name under which plans find the rows."""
        if self._view is None:
            self._view = self.cluster.register_table(self.table)
            weakref.finalize(self, _drop, self.cluster.session, self._view)
        return self._view


def _drop(session: SparkSession, view: str, frame: DataFrame | None = None) -> None:
    # The session may have been stopped before the last block goes.
    try:
        if session.sparkContext._jsc is not None:  # noqa: SLF001  no public question
            session.catalog.dropTempView(view)
            if frame is not None:
                frame.unpersist()
    except Exception:  # noqa: BLE001, S110  nothing is left to be cleaned up then
        pass


def _sizes(table: pa.Table) -> dict[int, int]:
    if table.num_rows == 0:
        return {}
    counts = pc.value_counts(table.column("tag"))
    return {each["values"].as_py(): each["counts"].as_py() for each in counts}


# ----------------------------------------------------- sets of rows on the driver


def local_block(cluster: Cluster, table: pa.Table) -> Block:
    """A block of rows on the driver."""
    width = sum(name.startswith("c") for name in table.column_names)
    return Block(cluster, width, table, None)


def widened(table: pa.Table, width: int) -> pa.Table:
    """The same rows with more columns, which are 0."""
    known = sum(name.startswith("c") for name in table.column_names)
    zeros = pa.array([0] * table.num_rows, pa.int64()) if known < width else None
    for at in range(known, width):
        table = table.add_column(at + 1, f"c{at}", zeros)
    return table


def both_widened(left: pa.Table, right: pa.Table) -> tuple[pa.Table, pa.Table, int]:
    """Two tables with as many columns as the wider one has."""
    width = max(
        sum(name.startswith("c") for name in table.column_names)
        for table in (left, right)
    )
    return widened(left, width), widened(right, width), width


def joined(left: pa.Table, right: pa.Table, how: str) -> pa.Table:
    """Rows of the left side that the right side has (semi) or has not (anti)."""
    if left.num_rows == 0:
        return left
    if right.num_rows == 0:
        return left if how == "left anti" else left.slice(0, 0)
    left, right, width = both_widened(left, right)
    keys = key_columns(width)
    return left.join(right.select(keys), keys, join_type=how, use_threads=False)


def without(left: pa.Table, right: pa.Table) -> pa.Table:
    """Rows of the left side that the right side does not have."""
    return joined(left, right, "left anti")


def common(left: pa.Table, right: pa.Table) -> pa.Table:
    """Rows of the left side that the right side has as well."""
    return joined(left, right, "left semi")


def distinct(table: pa.Table) -> pa.Table:
    """Each row once."""
    return table.group_by(key_names(table), use_threads=False).aggregate([])


def summed(table: pa.Table) -> pa.Table:
    """Each row once, with the sum of its numbers."""
    keys = key_names(table)
    total = table.group_by(keys, use_threads=False).aggregate([("n", "sum")])
    return total.rename_columns([*keys, "n"])


def key_names(table: pa.Table) -> list[str]:
    """The names of the columns that identify a row of a table."""
    return [name for name in table.column_names if name == "tag" or name[0] == "c"]


def chosen(table: pa.Table, tags: frozenset[int] | None) -> pa.Table:
    """The rows of some relations."""
    if tags is None or table.num_rows == 0:
        return table
    wanted = pa.array(sorted(tags), pa.int64())
    return table.filter(pc.is_in(table.column("tag"), value_set=wanted))


def appended(tables: list[pa.Table]) -> pa.Table:
    """Tables below each other."""
    width = max(sum(n.startswith("c") for n in t.column_names) for t in tables)
    wide = [widened(table, width) for table in tables]
    return pa.concat_tables([table.select(wide[0].column_names) for table in wide])
