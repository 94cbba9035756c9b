"""Sources into facts on Spark: read, mapped and encoded in tasks, not on the driver.

A source becomes one frame that holds its facts as ids, the constants behind them, its
rejected rows and how many rows were read, told apart by a tag. The frame is kept on the
disks of the executors, so that a source is read once.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow.fs import FileSelector

from evermat.engines.spark.encoding import FACT, Encoder, arrow_schema, spark_schema
from evermat.engines.spark.staging import EncodedFrame
from evermat.engines.spark.task_files import write_parquet
from evermat.engines.spark.tasks import map_in_tasks
from evermat.pipeline.config import DATABASE_FORMATS, RDF_FORMATS
from evermat.pipeline.files import SPLIT_BYTES, file_system
from evermat.pipeline.intake import (
    SAMPLE,
    Plan,
    Taken,
    by_name,
    check_columns,
    mapped,
    plan_files,
)
from evermat.pipeline.mapping import REJECTED, Mapped, Mapper, Rows
from evermat.pipeline.problems import SourceError, plain_output_errors
from evermat.pipeline.spark_session import plain_spark_errors
from evermat.redaction import keep_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyarrow.fs import FileSystem
    from pyspark.sql import DataFrame, SparkSession

    from evermat.pipeline.config import Database, Source

_REJECTED, _TALLY = -1, -2
_ROWS_AT_ONCE = 1 << 15
_TRIPLE = 3
_FAMILIES = {
    "byte": "integer", "short": "integer", "integer": "integer", "long": "integer",
    "float": "double", "double": "double", "timestamp": "datetime",
    "timestamp_ntz": "datetime", "varchar": "string", "char": "string",
    "void": "null",
}  # fmt: skip


class SparkIntake:
    """Reads sources on Spark, into encoded frames."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._kept: list[DataFrame] = []

    def take(self, source: Source, paths: Sequence[str], rejected: str) -> Taken:
        """Read a source; see `Intake`."""
        with plain_spark_errors():
            staged, names = self._staged(source, paths)
            arities = _arities(source, names)
            taken = self._counted(staged, source, arities, rejected)
            return replace(taken, columns=tuple(names))

    def release(self) -> None:
        """Let the executors forget the rows they keep."""
        for frame in self._kept:
            frame.unpersist()
        self._kept.clear()

    def _staged(
        self, source: Source, paths: Sequence[str]
    ) -> tuple[DataFrame, Sequence[str]]:
        """The frame of a source, and the columns that were read."""
        from pyspark.storagelevel import StorageLevel  # noqa: PLC0415  optional

        if source.format in DATABASE_FORMATS:
            staged, names = self._from_frame(source, self._database(source))
        else:
            plan = plan_files(source, paths)
            staged, names = self._from_splits(plan), plan.names
        staged = staged.persist(StorageLevel.DISK_ONLY)
        self._kept.append(staged)
        return staged, names

    # ------------------------------------------------------------------- reading

    def _from_splits(self, plan: Plan) -> DataFrame:
        count = len(plan.splits)
        # Of small files, a task reads several.
        needed = sum(split.size for split in plan.splits) // SPLIT_BYTES
        usual = 4 * self._spark.sparkContext.defaultParallelism
        numbers = self._spark.range(0, count, 1, min(count, max(needed, usual)))
        width = max(_arities(plan.source, plan.names))
        return map_in_tasks(numbers, partial(_read_splits, plan, width), _schema(width))

    def _database(self, source: Source) -> DataFrame:
        database = source.database
        assert database is not None  # noqa: S101  the configuration was checked
        if source.format == "table":
            return self._spark.table(database.table or "")
        reader = self._spark.read.format("jdbc").options(**_jdbc_options(database))
        return reader.load()

    def _from_frame(
        self, source: Source, frame: DataFrame
    ) -> tuple[DataFrame, Sequence[str]]:
        types = {
            field.name: _family(field.dataType.typeName()) for field in frame.schema
        }
        check_columns(source, types)
        names = [column.name for column in source.columns] or frame.columns
        source = by_name(source, names)
        width = max(_arities(source, names))
        read = partial(_map_batches, source, tuple(names), width)
        chosen = frame.select(*(f"`{name}`" for name in names))
        return map_in_tasks(chosen, read, _schema(width)), names

    # ------------------------------------------------------------------ counting

    def _counted(
        self, staged: DataFrame, source: Source, arities: Sequence[int], rejected: str
    ) -> Taken:
        from pyspark.sql import functions as f  # noqa: PLC0415  optional

        is_row = f.coalesce(f.col("sort") == FACT, f.lit(True))  # noqa: FBT003  SQL
        tallies = staged.groupBy("tag").agg(
            f.count_if(is_row).alias("n"), f.sum("position").alias("rows")
        )
        found = {row["tag"]: (row["n"], row["rows"]) for row in tallies.collect()}
        wrong, _ = found.get(_REJECTED, (0, 0))
        sample = REJECTED.empty_table()
        if wrong:
            aside = staged.where(f.col("tag") == _REJECTED).select(
                f.lit(source.name).alias("source"), *REJECTED.names[1:]
            )
            with plain_output_errors(rejected, "[rejected]"):
                _write_rejected(aside, f"{rejected}/{source.name}.parquet")
            sample = aside.limit(SAMPLE).toArrow().cast(REJECTED)
        facts: dict[str, EncodedFrame] = {}
        counts: dict[str, int] = {}
        for tag, (each, arity) in enumerate(zip(source.facts, arities, strict=True)):
            columns = [f"c{at}" for at in range(arity)]
            frame = staged.where(f.col("tag") == tag).select(
                "sort", *columns, "id", "kind", "text"
            )
            encoded, known = EncodedFrame(frame, columns), facts.get(each.predicate)
            facts[each.predicate] = encoded if known is None else known.union(encoded)
            number, _ = found.get(tag, (0, 0))
            counts[each.predicate] = counts.get(each.predicate, 0) + number
        return Taken(
            source=source,
            rows=found.get(_TALLY, (0, 0))[1] or 0,
            facts=facts,
            counts=counts,
            rejected=wrong,
            sample=sample,
        )


def _jdbc_options(database: Database) -> dict[str, str]:
    password = None
    if database.password_variable is not None:
        password = os.environ.get(database.password_variable)
        keep_secret([password or ""])
        if password is None:
            raise SourceError(
                f"the variable `{database.password_variable}` is not set",
                help="it is to hold the password of the database",
            )
    options = {
        "url": database.url,
        "dbtable": database.table,
        "query": database.query,
        "user": database.user,
        "password": password,
        "driver": database.driver,
        "partitionColumn": database.partition_column,
        "lowerBound": database.lower,
        "upperBound": database.upper,
        "numPartitions": database.partitions,
    }
    return {key: str(value) for key, value in options.items() if value is not None}


def _family(type_name: str) -> str:
    return _FAMILIES.get(type_name, type_name)


def _write_rejected(frame: DataFrame, folder: str) -> None:
    """Have tasks write rejected rows, and nothing else stays in their folder."""
    system, path = file_system(folder)
    system.create_dir(path, recursive=True)
    written = write_parquet(frame, partial(_system, folder), path)
    names = {file.path for file in written}
    for info in system.get_file_info(FileSelector(path)):
        if info.path not in names:
            system.delete_file(info.path)


def _system(place: str) -> FileSystem:
    return file_system(place)[0]


def _arities(source: Source, names: Sequence[str]) -> list[int]:
    """How many arguments each sort of fact of a source has."""
    every = _TRIPLE if source.format in RDF_FORMATS else len(source.columns or names)
    return [len(each.arguments) or every for each in source.facts]


def _schema(width: int) -> str:
    return (
        f"tag int, {spark_schema(width)}, file string, position bigint, "
        "`column` string, reason string, row string"
    )


# ------------------------------------------------------------- what runs in the tasks


def _read_splits(
    plan: Plan, width: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    stager = _Stager(width)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for piece in mapped(plan, plan.splits[number]):
                yield from stager.stage(piece)


def _map_batches(
    source: Source,
    names: tuple[str, ...],
    width: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    mapper, stager = Mapper(source, names), _Stager(width)
    for batch in batches:
        columns = dict(zip(names, batch.columns, strict=True))
        yield from stager.stage(mapper.map(Rows(columns, batch.num_rows)))


class _Stager:
    """Puts what a task has read into the layout of the staged frame."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._schema = pa.schema(
            [
                ("tag", pa.int32()),
                *arrow_schema(width),
                *((field.name, field.type) for field in list(REJECTED)[1:]),
            ]
        )
        self._encoders: dict[int, Encoder] = {}

    def stage(self, piece: Mapped) -> Iterator[pa.RecordBatch]:
        """A piece as batches of the staged frame."""
        for tag, (_, table) in enumerate(piece.facts):
            encoder = self._encoders.setdefault(tag, Encoder(self._width))
            for batch in _batches(table):
                for encoded in encoder.encode(batch.columns):
                    yield self._filled(tag, encoded)
        for batch in _batches(piece.rejected):
            yield self._filled(_REJECTED, batch)
        position = pa.array([piece.rows], pa.int64())
        yield self._filled(
            _TALLY, pa.RecordBatch.from_arrays([position], names=["position"])
        )

    def _filled(self, tag: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        length, names = batch.num_rows, set(batch.schema.names)
        arrays = [
            batch.column(field.name)
            if field.name in names
            else pa.nulls(length, field.type)
            for field in self._schema
        ]
        arrays[0] = pa.repeat(pa.scalar(tag, pa.int32()), length)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    return list(table.combine_chunks().to_batches(max_chunksize=_ROWS_AT_ONCE))
