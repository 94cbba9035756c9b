"""Numeric keys for several columns of a row, equal on the driver and in plans.

A join by one number is faster than one by all columns, and plans for different columns
can share it. Rows with the same key can be different, so the caller has to compare
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evermat.engines.spark.session import parallelism

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from evermat.engines.spark.blocks import Cluster

    Ids = npt.NDArray[np.int64]
    Keys = npt.NDArray[np.int64]

FEW_VALUES = 10
"""Number of values of a column up to which they are listed for scans to skip rows.

Spark converts more values to a set, with which scans skip nothing.
"""
_BITS = 64
_TAG_TURN = 45


@dataclass(frozen=True, slots=True)
class Shape:
    """Rows of a relation, by the positions of given values."""

    tag: int
    positions: tuple[int, ...]

    @property
    def _start(self) -> int:
        places = sum(1 << at for at in self.positions)
        return (self.tag << 24) + (places << 8) + 1

    def keys(self, columns: Mapping[int, Ids], size: int) -> Keys:
        """Return the key of each row."""
        numbers = np.full(size, self._start, np.uint64)
        for at in self.positions:
            numbers ^= _turned(columns[at], _turn(at))
        return numbers.view(np.int64)

    def sql(self) -> str:
        """Return the same key in a plan."""
        parts = [_turned_sql(f"c{at}", _turn(at)) for at in self.positions]
        return " ^ ".join([f"{self._start}L", *parts])


def whole_keys(table: pa.Table, width: int) -> Keys:
    """Return a key for each whole row, including the relation."""
    numbers = _turned(table["tag"].to_numpy(), _TAG_TURN).copy()
    for at in range(width):
        numbers ^= _turned(table[f"c{at}"].to_numpy(), _turn(at))
    return numbers.view(np.int64)


def whole_key_sql(width: int) -> str:
    """Return the same key in a plan."""
    parts = [_turned_sql(f"c{at}", _turn(at)) for at in range(width)]
    return " ^ ".join([_turned_sql("tag", _TAG_TURN), *parts])


def listed_values(columns: Iterable[tuple[str, Ids]]) -> list[str]:
    """Return conditions for columns that have few values."""
    found = []
    for name, column in columns:
        values = np.unique(column)
        if values.size <= FEW_VALUES:
            listed = ", ".join(f"{value}L" for value in values)
            found.append(f"{name} IN ({listed})")
    return found


def _turn(at: int) -> int:
    return 1 + 17 * at % (_BITS - 1)


def _turned(column: Ids, by: int) -> npt.NDArray[np.uint64]:
    bits = np.ascontiguousarray(column).view(np.uint64)
    return (bits << np.uint64(by)) | (bits >> np.uint64(_BITS - by))


def _turned_sql(name: str, by: int) -> str:
    return f"(shiftleft({name}, {by}) | shiftrightunsigned({name}, {_BITS - by}))"


# ----------------------------------------------------------------------------- fetching

# Few rows of large plans, brought to the driver by one number for each.
#
# What such a job costs is mostly its fixed cost: making the plan, compiling it,
# starting tasks. So few numbers are part of the text, which spares the job that would
# send them to all executors, and small parts of a union share the tasks.

MOST_LISTED = 5_000
"""Number of keys up to which they are listed in the text of a plan."""


def fetch(
    cluster: Cluster, sql: str, names: list[str], keys: Keys, most: int | None = None
) -> pa.Table:
    """Return rows of a plan whose column `key` is one of some numbers.

    Args:
        cluster: the cluster of the rows.
        sql: the plan.
        names: the requested columns.
        keys: the numbers.
        most: the largest number of rows to fetch.
    """
    wanted = ", ".join(names)
    limit = "" if most is None else f" LIMIT {most}"
    if keys.size <= MOST_LISTED:
        tasks = parallelism(cluster.session)
        listed = ", ".join(f"{key}L" for key in keys.tolist())
        return cluster.collect(
            f"SELECT /*+ COALESCE({tasks}) */ {wanted} FROM ({sql}) "  # noqa: S608
            f"WHERE key IN ({listed}){limit}"
        )
    view = cluster.register_table(pa.table({"key": keys}))
    fetched = cluster.collect(
        f"SELECT /*+ BROADCAST(r) */ {wanted} FROM ({sql}) l "  # noqa: S608
        f"LEFT SEMI JOIN {view} r ON l.key = r.key{limit}"
    )
    cluster.waste.append((view, None))
    return fetched
