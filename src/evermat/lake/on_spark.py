"""Large sets of facts: Spark reads, writes and merges their files, the driver commits.

Nothing here needs Spark before a Spark engine is at work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from evermat.algebra import STORED_NUMBERS
from evermat.lake.errors import step
from evermat.lake.layout import FACTS, RELATION, TERMS, arguments, width_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from evermat.algebra import Engine, StoredChange
    from evermat.engines.spark.dictionary import Dictionary
    from evermat.engines.spark.engine import SparkEngine
    from evermat.engines.spark.stored import Difference
    from evermat.lake.table import DataFile, StateTable

MANY = 1_000_000
"""Rows from which on Spark merges files, not the driver."""


def is_spark(engine: Engine) -> TypeGuard[SparkEngine]:
    """Whether an engine can keep its facts on Spark."""
    return hasattr(engine, "cluster")


def is_spark_change(change: StoredChange) -> TypeGuard[Difference]:
    """Whether a change may be on Spark."""
    return hasattr(change, "frame")


def is_large(change: StoredChange) -> TypeGuard[Difference]:
    """Whether a change is on the cluster, and not on the driver."""
    return is_spark_change(change) and change.table is None


def dictionary_of(engine: Engine) -> Dictionary | None:
    """The dictionary of an engine whose ids are those of the lake."""
    return engine.cluster.dictionary if is_spark(engine) else None


def local_table(change: StoredChange) -> pa.Table | None:
    """The rows of a change of a Spark engine, if they are on the driver."""
    return change.table if is_spark_change(change) else None


def write(change: Difference, table: StateTable) -> list[DataFile]:
    """Have Spark write a change; nobody sees the files before they are committed."""
    frame = change.frame()
    table.widen(width_of(frame.columns))
    return _written(frame, table, FACTS, is_change=True)


def write_terms(dictionary: Dictionary, table: StateTable) -> list[DataFile]:
    """Have Spark write the constants that are new and not on the driver."""
    elsewhere = dictionary.elsewhere
    return [
        file
        for frame in ([] if elsewhere is None else elsewhere.unsaved)
        for file in _written(frame, table, TERMS, is_change=True)
    ]


def terms_are_saved(dictionary: Dictionary) -> None:
    """Take note that what was written is committed."""
    if dictionary.elsewhere is not None:
        dictionary.elsewhere.unsaved = []


def _written(
    frame: DataFrame, table: StateTable, part: str, *, is_change: bool
) -> list[DataFile]:
    folder = table.new_path(part)
    with step(f"write `{folder}` of the state at `{table.place}` with Spark"):
        frame.write.option("compression", "zstd").parquet(table.uri + folder)
    return table.written(part, folder, is_change=is_change)


def should_read_terms(engine: Engine, files: Sequence[DataFile]) -> bool:
    """Whether there are too many constants for the driver."""
    if not is_spark(engine):
        return False
    return sum(file.rows for file in files) > engine.cluster.dictionary.limit


def restore_terms(engine: Engine, table: StateTable, files: Sequence[DataFile]) -> None:
    """Have Spark read all constants."""
    if not is_spark(engine):
        message = "only a Spark engine is restored by Spark"
        raise TypeError(message)
    cluster = engine.cluster
    with step(f"read the constants of the state at `{table.place}` with Spark"):
        view = cluster.register(_terms(cluster.session, table, files))
        cluster.terms.add(f"TABLE {view}", is_saved=True)
        cluster.waste.append((view, None))


def _terms(
    session: SparkSession, table: StateTable, files: Sequence[DataFile]
) -> DataFrame:
    paths = [table.uri + file.path for file in files]
    return session.read.schema("id bigint, kind int, text string").parquet(*paths)


def should_read(engine: Engine, files: Sequence[DataFile]) -> bool:
    """Whether there are too many rows to restore them through the driver."""
    if not is_spark(engine):
        return False
    rows = sum(file.rows for file in files)
    engine.make_room(rows)
    return not engine.is_gathered and rows > engine.cluster.small


def restore(engine: Engine, table: StateTable, files: Sequence[DataFile]) -> int:
    """Have Spark read all facts; return the number of rule instances."""
    from evermat.engines.spark.stored import take_up_frame  # noqa: PLC0415  not always

    if not is_spark(engine):
        message = "only a Spark engine is restored by Spark"
        raise TypeError(message)
    with step(f"read the facts of the state at `{table.place}` with Spark"):
        frame = _summed(engine.cluster.session, table, files).cache()
        totals = frame.selectExpr("sum(c_nr + c_r - given) AS n").collect()
        take_up_frame(engine, frame)
        frame.unpersist()
    return max(int(totals[0]["n"] or 0), 0)


def should_merge(change: StoredChange, files: Sequence[DataFile]) -> bool:
    """Whether files are too large to be merged by the driver."""
    return is_spark_change(change) and sum(file.rows for file in files) > MANY


def merge(
    change: StoredChange, table: StateTable, part: str, files: Sequence[DataFile]
) -> list[DataFile]:
    """Have Spark merge files."""
    if not is_spark_change(change):
        message = "only changes of a Spark engine are merged by Spark"
        raise TypeError(message)
    read = _terms if part == TERMS else _summed
    frame = read(change.cluster.session, table, files)
    return _written(frame, table, part, is_change=False)


def _summed(
    session: SparkSession, table: StateTable, files: Sequence[DataFile]
) -> DataFrame:
    """Each fact of some files once, with the sums of its numbers."""
    width = table.width
    types = [(RELATION, "string")]
    types += [(name, "bigint") for name in (*arguments(width), *STORED_NUMBERS)]
    schema = ", ".join(f"{name} {kind}" for name, kind in types)
    paths = [table.uri + file.path for file in files]
    rows = session.read.schema(schema).parquet(*paths).fillna(0)
    keys = [RELATION, *arguments(width)]
    sums = rows.groupBy(*keys).sum(*STORED_NUMBERS)
    renamed = sums.toDF(*keys, *STORED_NUMBERS)
    return renamed.where(" OR ".join(f"{name} <> 0" for name in STORED_NUMBERS))
