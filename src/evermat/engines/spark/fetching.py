"""Fetches few rows of large plans to the driver, by a numeric key.

The cost of such a job is mostly fixed: planning, compiling, starting tasks. So few keys
are listed in the text of the plan, which saves the job that would send them to all
executors, and small parts of a union share the tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from evermat.engines.spark.blocks import Cluster
    from evermat.engines.spark.row_keys import Keys

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
        tasks = cluster.session.sparkContext.defaultParallelism
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
