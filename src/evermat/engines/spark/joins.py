"""How the sides of a join meet: sent to all executors, as a table by hash, or sorted.

A table by hash of one side is fast, but has to fit into the memory of a task: it cannot
spill. Where it does not fit, both sides are sorted, which does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from evermat.engines.spark.session import IS_LOCAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from evermat.engines.spark.blocks import Cluster

BROADCAST = 300_000
"""Rows up to which the smaller side of a join is sent to all executors."""
FEW = 200_000
"""Rows that are as well shuffled: sending them to all executors is a job of its own."""

_ROW = 150
"""Bytes that a row takes in a table by hash: keys, values, and places of both."""
_TERM = 2
"""Rows that take as much room as one with the text of a constant."""
_RESERVED = 300 << 20
"""Bytes of a Java process that Spark keeps for itself."""
_UNITS = {"": 20, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


def hint_for(cluster: Cluster, rows: int) -> str:
    """How to join with a side of so many rows, at most."""
    return "BROADCAST" if rows <= BROADCAST else shuffled(cluster, rows)


def shuffled(cluster: Cluster, rows: int) -> str:
    """How to join with a side of so many rows that are not sent around."""
    return "SHUFFLE_HASH" if rows <= cluster.hashed else "MERGE"


def hint_for_terms(cluster: Cluster) -> str:
    """How to join with the dictionary, whose rows have texts."""
    size = len(cluster.dictionary)
    return "BROADCAST" if size <= BROADCAST else shuffled(cluster, _TERM * size)


def join_hint(cluster: Cluster, left: int, right: int) -> str:
    """How to join sides of these sizes: the right one is sent around, or hashed."""
    is_worth_a_job = max(left, right) > FEW
    return hint_for(cluster, right) if is_worth_a_job else shuffled(cluster, right)


def room_for_tables(session: SparkSession) -> int:
    """Of how many rows the tasks of a stage can have tables by hash, all together."""
    context = session.sparkContext
    inside, settings = cast("Any", context), context.getConf()
    if IS_LOCAL.fullmatch(str(context.master)):
        executors = 1
        heap = int(inside._jvm.java.lang.Runtime.getRuntime().maxMemory())  # noqa: SLF001
    else:
        # The driver is in the list as well.
        known = inside._jsc.sc().getExecutorMemoryStatus().size()  # noqa: SLF001
        executors = max(1, known - 1)
        heap = bytes_of(settings.get("spark.executor.memory", "1g"))
    share = float(settings.get("spark.memory.fraction", "0.6"))
    return executors * rows_in_tables(heap, share)


def rows_in_tables(heap: int, share: float) -> int:
    """Of how many rows the tasks of one executor can have tables by hash.

    Args:
        heap: bytes of its Java process.
        share: how much of them Spark gives to tasks and caches.
    """
    # What is cached may take half of it.
    return int(max(0, heap - _RESERVED) * share / 2 / _ROW)


def bytes_of(size: str) -> int:
    """A size as Spark's settings have it: a number, of megabytes unless it says."""
    found = re.fullmatch(r"\s*(\d+)([kmgtp]?)b?\s*", size.lower())
    return 1 << 30 if found is None else int(found[1]) << _UNITS[found[2]]
