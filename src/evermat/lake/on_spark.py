"""States with many facts on Spark: tasks read, write and merge files.

The driver commits. Tasks access the storage with the same client as the driver, so
Spark needs no Hadoop libraries for it. Spark is not imported before a Spark engine is
used.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeGuard

import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import STORED_NUMBERS
from evermat.engines.spark.row_tables import NUMBERS
from evermat.engines.spark.stored_facts import FactLayout
from evermat.engines.spark.task_files import Layout, read_parquet, write_parquet
from evermat.lake.errors import StateError, step
from evermat.lake.layout import (
    FACTS,
    RELATION,
    TERMS,
    DataFile,
    arguments,
    row_count,
    row_sum,
    runs,
    schema,
    width_of,
)
from evermat.lake.log import uri_of
from evermat.lake.rows import summed_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from evermat.algebra import Engine, StoredChange
    from evermat.engines.spark.blocks import Cluster
    from evermat.engines.spark.dictionary import Dictionary
    from evermat.engines.spark.engine import SparkEngine
    from evermat.engines.spark.journal import Difference
    from evermat.engines.spark.stored_facts import StoredFacts
    from evermat.engines.spark.task_files import WrittenFile
    from evermat.lake.table import StateTable

MANY = 1_000_000
"""The number of rows from which Spark merges files instead of the driver."""


def is_spark(engine: Engine) -> TypeGuard[SparkEngine]:
    """Return whether the engine is a Spark engine."""
    return hasattr(engine, "cluster")


def is_spark_change(change: StoredChange) -> TypeGuard[Difference]:
    """Return whether the change comes from a Spark engine."""
    return hasattr(change, "frame")


def is_large(change: StoredChange) -> TypeGuard[Difference]:
    """Return whether a change is on the cluster, not on the driver."""
    return is_spark_change(change) and change.table is None


def dictionary_of(engine: Engine) -> Dictionary | None:
    """Return the dictionary of an engine whose ids are those of the lake."""
    return engine.cluster.dictionary if is_spark(engine) else None


def offer_place(engine: Engine, place: str) -> None:
    """Place checkpoints next to the state, unless there is a better place."""
    if is_spark(engine):
        engine.cluster.offer_place(uri_of(place))


def local_table(change: StoredChange) -> pa.Table | None:
    """Return the rows of a change of a Spark engine, if they are on the driver."""
    return change.table if is_spark_change(change) else None


def write(
    change: Difference, table: StateTable, count_by: Sequence[str]
) -> tuple[list[DataFile], Counter[tuple[object, ...]]]:
    """Write a change by Spark; the files are not part of the table before the commit.

    Returns:
        The files, and the numbers of rows by the values of some columns.
    """
    frame = change.frame()
    table.widen(width_of(frame.columns))
    written = _written(frame, table, FACTS, count_by)
    counts = Counter[tuple[object, ...]]()
    for file in written:
        for *values, number in json.loads(file.counts):
            counts[tuple(values)] += number
    return _as_data(written, FACTS, is_change=True), counts


def write_terms(dictionary: Dictionary, table: StateTable) -> list[DataFile]:
    """Write by Spark the constants that are new and not on the driver."""
    elsewhere = dictionary.elsewhere
    return [
        file
        for frame in ([] if elsewhere is None else elsewhere.unsaved)
        for file in _as_data(_written(frame, table, TERMS), TERMS, is_change=True)
    ]


def terms_are_saved(dictionary: Dictionary) -> None:
    """Record that the constants that were written are committed."""
    if dictionary.elsewhere is not None:
        dictionary.elsewhere.unsaved = []


def _written(
    frame: DataFrame, table: StateTable, part: str, count_by: Sequence[str] = ()
) -> list[WrittenFile]:
    folder = table.new_path(part)
    with step(f"write `{folder}` of the state at `{table.place}` with Spark"):
        layout = FactLayout if part == FACTS else Layout
        return write_parquet(
            frame, table.storage, folder, count_by=count_by, layout=layout
        )


def _as_data(
    written: list[WrittenFile], part: str, *, is_change: bool
) -> list[DataFile]:
    return [
        DataFile(
            each.path,
            part,
            each.rows,
            each.size,
            each.digest,
            row_count(each.rows),
            is_change,
        )
        for each in written
    ]


def should_read_terms(engine: Engine, files: Sequence[DataFile]) -> bool:
    """Return whether there are too many constants for the driver."""
    if not is_spark(engine):
        return False
    return sum(file.rows for file in files) > engine.cluster.dictionary.limit


def restore_terms(engine: Engine, table: StateTable, files: Sequence[DataFile]) -> None:
    """Read all constants by Spark."""
    if not is_spark(engine):
        message = "only a Spark engine is restored by Spark"
        raise TypeError(message)
    cluster = engine.cluster
    doing = f"read the constants of the state at `{table.place}` with Spark"
    with step(doing), _naming_damage(table, files):
        view = cluster.register(_terms(cluster.session, table, files))
        cluster.terms.add(f"TABLE {view}", is_saved=True)
        cluster.waste.append((view, None))


def _terms(
    session: SparkSession, table: StateTable, files: Sequence[DataFile]
) -> DataFrame:
    return _read(session, table, files, ["id", "kind", "text"])


def _read(
    session: SparkSession,
    table: StateTable,
    files: Sequence[DataFile],
    names: Sequence[str],
) -> DataFrame:
    columns = schema(table.width)
    wanted = pa.schema([columns.field(name) for name in names])
    return read_parquet(
        session,
        table.storage,
        [(file.path, file.rows, file.digest) for file in files],
        wanted,
    )


@contextmanager
def _naming_damage(table: StateTable, files: Sequence[DataFile]) -> Iterator[None]:
    """Name the damaged file, if there is one, when tasks that read files fail."""
    try:
        yield
    except Exception:
        for file in files:
            table.verify(file)
        raise


def make_room(engine: Engine, rows: int) -> None:
    """Distribute facts if this number of rows does not fit on the driver."""
    if is_spark(engine):
        engine.make_room(rows)


def should_read(engine: Engine, files: Sequence[DataFile]) -> bool:
    """Return whether there are too many rows to restore them through the driver."""
    if not is_spark(engine):
        return False
    rows = sum(file.rows for file in files)
    make_room(engine, rows)
    return not engine.is_on_driver and rows > engine.cluster.small


def restore(engine: Engine, table: StateTable, files: Sequence[DataFile]) -> int:
    """Have Spark use facts where they lie; return the number of rule instances.

    What is not used like that is summed up, as far as the driver has room for it, and
    changes what is stored.
    """
    # It loads Spark's half of the engine, which others do without.
    from evermat.engines.spark import journal  # noqa: PLC0415

    if not is_spark(engine):
        message = "only a Spark engine is restored by Spark"
        raise TypeError(message)
    doing = f"read the facts of the state at `{table.place}` with Spark"
    with step(doing), _naming_damage(table, files):
        cluster, instances = engine.cluster, 0
        facts, rest = _in_place(cluster, table, files)
        if facts is not None:
            require_known(facts.sums, engine, table)
            instances = facts.instances
            journal.use_in_place(engine, facts)
        if row_sum(rest) <= cluster.small:
            rows = summed_facts([table.read(file) for file in rest])
            require_known(pc.unique(rows[RELATION]).to_pylist(), engine, table)
            journal.take_up_table(engine, _tagged(cluster, rows))
        else:
            frame = _summed(cluster.session, table, rest).cache()
            sums = [f"sum({name}) AS {name}" for name in STORED_NUMBERS]
            rows = frame.selectExpr(*sums).toArrow()
            journal.take_up_frame(engine, frame)
            frame.unpersist()
        instances += instances_of(rows)
    return max(instances, 0)


def _in_place(
    cluster: Cluster, table: StateTable, files: Sequence[DataFile]
) -> tuple[StoredFacts | None, list[DataFile]]:
    """The largest run that takes no facts away, if there is a large one; the rest."""
    from evermat.engines.spark.stored_facts import StoredFacts  # noqa: PLC0415

    for run in sorted(runs(files), key=row_sum, reverse=True):
        if row_sum(run) <= cluster.small:
            break
        paths = [(file.path, file.digest) for file in run]
        reading = partial(_naming_damage, table, run)
        facts = StoredFacts(cluster, table.storage, paths, table.width, reading)
        if facts.only_adds:
            return facts, [file for file in files if file not in run]
    return None, list(files)


def require_known(relations: Iterable[str], engine: Engine, table: StateTable) -> None:
    """Refuse facts of relations of which nothing is known."""
    for name in relations:
        if name not in engine.relations():
            raise StateError(
                f"restore the state at `{table.place}`",
                f"nothing is known about the relation `{name}`",
            )


def instances_of(facts: pa.Table) -> int:
    """For how many rule instances the counts of facts stand."""
    total = {name: pc.sum(facts[name]).as_py() or 0 for name in STORED_NUMBERS}
    return int(total["c_nr"] + total["c_r"] - total["given"])


def _tagged(cluster: Cluster, rows: pa.Table) -> pa.Table:
    """Facts as the engine has them on the driver."""
    tags = [cluster.tag(name) for name in cluster.names]
    places = pc.index_in(rows[RELATION], pa.array(cluster.names, pa.string()))
    return rows.set_column(
        0, "tag", pa.array(tags, pa.int64()).take(places)
    ).rename_columns(["tag", *arguments(width_of(rows.column_names)), *NUMBERS])


def should_merge(change: StoredChange, files: Sequence[DataFile]) -> bool:
    """Return whether files are too large for the driver to merge."""
    return is_spark_change(change) and sum(file.rows for file in files) > MANY


def merge(
    change: StoredChange, table: StateTable, part: str, files: Sequence[DataFile]
) -> list[DataFile]:
    """Merge files by Spark."""
    if not is_spark_change(change):
        message = "only changes of a Spark engine are merged by Spark"
        raise TypeError(message)
    read = _terms if part == TERMS else _summed
    with _naming_damage(table, files):
        frame = read(change.cluster.session, table, files)
        return _as_data(_written(frame, table, part), part, is_change=False)


def _summed(
    session: SparkSession, table: StateTable, files: Sequence[DataFile]
) -> DataFrame:
    """Return the distinct facts of some files, with the sums of their numbers."""
    keys = [RELATION, *arguments(table.width)]
    rows = _read(session, table, files, [*keys, *STORED_NUMBERS]).fillna(0)
    sums = rows.groupBy(*keys).sum(*STORED_NUMBERS)
    renamed = sums.toDF(*keys, *STORED_NUMBERS)
    return renamed.where(" OR ".join(f"{name} <> 0" for name in STORED_NUMBERS))
