"""Join strategies: broadcast, hash table, or sort-merge.

A hash table of one side is fast, but has to fit into the memory of a task, because it
cannot spill. If it does not fit, both sides are sorted, which can spill.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from evermat.engines.spark.session import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from evermat.engines.spark.blocks import Cluster

BROADCAST = 300_000
"""Rows up to which the smaller side of a join is broadcast."""
FEW = 200_000
"""Rows up to which shuffling is as good: a broadcast is a job of its own."""

_ROW = 150
"""Bytes of a row in a hash table: keys, values, and pointers to both."""
_TERM = 2
"""Rows that take as much memory as one with the text of a constant."""
_RESERVED = 300 << 20
"""Bytes of a Java process that Spark reserves for itself."""
_UNITS = {"": 20, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


def hint_for(cluster: Cluster, rows: int) -> str:
    """Return the hint for a join with a side of at most `rows` rows."""
    return "BROADCAST" if rows <= BROADCAST else shuffled(cluster, rows)


def shuffled(cluster: Cluster, rows: int) -> str:
    """Return the hint for a join with a side of `rows` rows without a broadcast."""
    return "SHUFFLE_HASH" if rows <= cluster.hashed else "MERGE"


def hint_for_terms(cluster: Cluster) -> str:
    """Return the hint for a join with the dictionary, whose rows have texts."""
    size = len(cluster.dictionary)
    return "BROADCAST" if size <= BROADCAST else shuffled(cluster, _TERM * size)


def join_hint(cluster: Cluster, left: int, right: int) -> str:
    """Return the hint for sides of some sizes; the right one is sent or hashed."""
    is_worth_a_job = max(left, right) > FEW
    return hint_for(cluster, right) if is_worth_a_job else shuffled(cluster, right)


def room_for_tables(session: SparkSession) -> int:
    """Of how many rows the tasks of a stage can have tables by hash, all together."""
    executors = 1
    context = session.sparkContext
    inside, settings = cast("Any", context), context.getConf()
    if is_local(session):
        heap = int(inside._jvm.java.lang.Runtime.getRuntime().maxMemory())  # noqa: SLF001
    else:
        # The list includes the driver.
        known = inside._jsc.sc().getExecutorMemoryStatus().size()  # noqa: SLF001
        executors = max(1, known - 1)
        heap = bytes_of(settings.get("spark.executor.memory", "1g"))
    share = float(settings.get("spark.memory.fraction", "0.6"))
    return executors * rows_in_tables(heap, share)


def rows_in_tables(heap: int, share: float) -> int:
    """Return how many rows fit in the hash tables of one executor's tasks.

    Args:
        heap: the heap of its Java process, in bytes.
        share: the share that Spark gives to tasks and caches.
    """
    # Cached data may take half of it.
    return int(max(0, heap - _RESERVED) * share / 2 / _ROW)


def bytes_of(size: str) -> int:
    """Parse a size of Spark's settings: a number, in megabytes by default."""
    found = re.fullmatch(r"\s*(\d+)([kmgtp]?)b?\s*", size.lower())
    return 1 << 30 if found is None else int(found[1]) << _UNITS[found[2]]
