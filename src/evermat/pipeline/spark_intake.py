"""Sources into facts on Spark: read, mapped and encoded in tasks, not on the driver.

A source becomes one frame that holds its facts as ids, the constants behind them, its
rejected rows and how many rows were read, told apart by a tag. The frame is kept on the
disks of the executors, so that a source is read once.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.engines.spark.encoding import FACT, Encoder, arrow_schema, spark_schema
from evermat.engines.spark.staging import EncodedFrame
from evermat.pipeline.config import DATABASE_FORMATS, RDF_FORMATS
from evermat.pipeline.intake import (
    SAMPLE,
    Plan,
    Taken,
    check_columns,
    mapped,
    plan_files,
)
from evermat.pipeline.mapping import REJECTED, Mapped, Mapper, Rows
from evermat.pipeline.problems import SourceError
from evermat.pipeline.spark_session import plain_spark_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from evermat.pipeline.config import Database, Source

_REJECTED, _TALLY = -1, -2
_ROWS_AT_ONCE = 1 << 15
_FILE, _POSITION = "~file", "~position"
_TRIPLE = 3
_FAMILIES = {
    "byte": "integer", "short": "integer", "integer": "integer", "long": "integer",
    "float": "double", "double": "double", "timestamp": "datetime",
    "timestamp_ntz": "datetime", "varchar": "string", "char": "string",
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
            return self._counted(staged, source, _arities(source, names), rejected)

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
            if source.format == "parquet":
                staged, names = self._from_frame(source, self._parquet(plan))
            else:
                staged, names = self._from_splits(plan), plan.names
        staged = staged.persist(StorageLevel.DISK_ONLY)
        self._kept.append(staged)
        return staged, names

    # ------------------------------------------------------------------- reading

    def _from_splits(self, plan: Plan) -> DataFrame:
        count = len(plan.splits)
        numbers = self._spark.range(0, count, 1, count)
        width = max(_arities(plan.source, plan.names))
        return numbers.mapInArrow(partial(_read_splits, plan, width), _schema(width))

    def _parquet(self, plan: Plan) -> DataFrame:
        from pyspark.sql import functions as f  # noqa: PLC0415  optional

        uris = [_spark_uri(split.file.uri) for split in plan.splits]
        frame = self._spark.read.parquet(*uris)
        return frame.select(
            *(f.col(f"`{name}`") for name in plan.names if name in frame.columns),
            f.col("_metadata.file_path").alias(_FILE),
            f.col("_metadata.row_index").alias(_POSITION),
        )

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
        from pyspark.sql import functions as f  # noqa: PLC0415  optional

        names = [name for name in frame.columns if name not in {_FILE, _POSITION}]
        types = {
            field.name: _family(field.dataType.typeName()) for field in frame.schema
        }
        check_columns(source, types)
        if source.columns:
            names = [column.name for column in source.columns]
        if _FILE not in frame.columns:
            nothing = f.lit(None)
            frame = frame.withColumn(_FILE, nothing.cast("string"))
            frame = frame.withColumn(_POSITION, nothing.cast("long"))
        chosen = frame.select(*(f.col(f"`{n}`") for n in (*names, _FILE, _POSITION)))
        width = max(_arities(source, names))
        read = partial(_map_batches, source, tuple(names), width)
        return chosen.mapInArrow(read, _schema(width)), names

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
            place = f"{_spark_uri(rejected)}/{source.name}.parquet"
            aside.write.mode("overwrite").parquet(place)
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


def _spark_uri(place: str) -> str:
    return place if "://" in place else f"file://{place}"


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
        for rows in _by_file(source, names, batch):
            yield from stager.stage(mapper.map(rows))


def _by_file(
    source: Source, names: tuple[str, ...], batch: pa.RecordBatch
) -> Iterator[Rows]:
    files = batch.column(batch.num_columns - 2)
    table = pa.Table.from_batches([batch])
    for uri in files.unique().to_pylist():
        part = table if uri is None else table.filter(pc.equal(files, uri))
        columns = [part.column(at).combine_chunks() for at in range(len(names))]
        yield Rows(
            dict(zip(names, columns, strict=True)),
            part.num_rows,
            None if uri is None else _file_name(source, uri),
            None if uri is None else part.column(part.num_columns - 1).combine_chunks(),
        )


def _file_name(source: Source, uri: str) -> str:
    path = uri
    for scheme in ("file://", "file:"):
        path = path.removeprefix(scheme)
    return path.removeprefix(f"{source.folder}/") if source.folder else path


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
