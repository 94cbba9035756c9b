"""Sources and outputs of a pipeline on Spark, read and written by tasks."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow.fs import FileSelector

from evermat.columns import Shape, term_table
from evermat.engines.spark.decoding import natural_frame, shapes_of
from evermat.engines.spark.encoding import FACT, Encoder, arrow_schema, spark_schema
from evermat.engines.spark.session import moved, parallelism, written_down
from evermat.engines.spark.staging import EncodedFrame, spark_terms
from evermat.engines.spark.task_files import write_parquet
from evermat.engines.spark.tasks import map_in_tasks
from evermat.errors.redaction import keep_secret
from evermat.pipeline.config import RDF_FORMATS, SPARK_FORMATS
from evermat.pipeline.errors import SourceError, plain_output_errors
from evermat.pipeline.files import SPLIT_BYTES, file_system, write_file
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
from evermat.pipeline.spark_session import plain_spark_errors
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyarrow.fs import FileSystem
    from pyspark.sql import DataFrame, SparkSession

    from evermat.pipeline.config import Database, Source
    from evermat.results.result import Result


# ----------------------------------------------------------------------------- sources

# Sources are read, mapped and encoded in tasks, not on the driver.
#
# A source becomes one frame with its facts as ids, their constants, its rejected rows
# and the number of rows read, distinguished by a tag. The frame is persisted on the
# disks of the executors, so that a source is read once.

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
        """Unpersist the rows on the executors."""
        for frame in self._kept:
            frame.unpersist()
        self._kept.clear()

    def _staged(
        self, source: Source, paths: Sequence[str]
    ) -> tuple[DataFrame, Sequence[str]]:
        """Return the frame of a source, and the columns that were read."""
        from pyspark.storagelevel import StorageLevel  # noqa: PLC0415  optional

        if source.format in SPARK_FORMATS:
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
        # A task reads several small files.
        needed = sum(split.size for split in plan.splits) // SPLIT_BYTES
        usual = 4 * parallelism(self._spark)
        numbers = self._spark.range(0, count, 1, min(count, max(needed, usual)))
        width = max(_arities(plan.source, plan.names))
        return map_in_tasks(numbers, partial(_read_splits, plan, width), _schema(width))

    def _database(self, source: Source) -> DataFrame:
        database = source.database
        assert database is not None  # noqa: S101  the configuration was checked
        if source.format == "table":
            return self._spark.table(database.table or "")
        if database.reader is not None:
            made = self._spark.read.format(database.reader)
            made = made.options(**dict(database.options))
            return made.load(list(database.paths) or None)
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
                _write_rejected(aside, rejected)
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
    """Write rejected rows in tasks, and remove all other files of their folder."""
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
    """Return the number of arguments of each fact of a source."""
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
    """Converts what a task has read to the layout of the staged frame."""

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
        """Yield a piece as batches of the staged frame."""
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


# ----------------------------------------------------------------------------- outputs

# Large results are written to files by the tasks that have the rows.
#
# Every task writes files of its own, with the same code as for small results; the
# driver makes them visible. The form of values depends on the whole column, so the
# shapes of columns are determined first.

ROWS_IN_A_FILE = 1_000_000


@dataclass(frozen=True, slots=True)
class Parts:
    """The parameters of tasks that write files.

    Attributes:
        folder: the folder of the files.
        format: the suffix.
        names: the names of the columns.
        shapes: the shapes of the columns, if the format depends on them.
        what: the predicate.
    """

    folder: str
    format: str
    names: tuple[str, ...]
    shapes: tuple[Shape, ...]
    what: str


def terms_frame(result: Result, like: DataFrame | None = None) -> DataFrame:
    """Return the rows of a result as a frame with a struct for each value.

    Args:
        result: the result.
        like: another frame, for results that are on the driver.
    """
    if result.distant is not None:
        terms: DataFrame = result.distant.terms()
        return terms
    assert like is not None  # noqa: S101  one of two results is on the cluster
    return like.sparkSession.createDataFrame(spark_terms(result.to_terms()))


def signed_frame(version: int, added: Result, removed: Result) -> DataFrame:
    """Return added and removed facts, with version and sign before the values."""
    some = next(each for each in (added, removed) if each.distant is not None)
    like = terms_frame(some)
    parts = []
    for sign, result in (("+", added), ("-", removed)):
        frame = like if result is some else terms_frame(result, like)
        number = f"named_struct('kind', {int(Kind.INTEGER)}, 'text', '{version}')"
        text = f"named_struct('kind', {int(Kind.STRING)}, 'text', '{sign}')"
        columns = [f"`{name}`" for name in frame.columns]
        parts.append(
            frame.selectExpr(f"{number} AS version", f"{text} AS sign", *columns)
        )
    return parts[0].unionAll(parts[1])


def natural_feed(
    version: int,
    added: Result,
    removed: Result,
    names: Sequence[str],
    session: SparkSession,
) -> DataFrame:
    """Return added and removed facts, with plain types."""
    terms = signed_frame(version, added, removed)
    return moved(natural_frame(terms, shapes_of(terms), names), session)


def write_parts(
    terms: DataFrame, folder: str, suffix: str, names: Sequence[str], what: str
) -> Mapping[str, int]:
    """Write a frame of terms into files of a folder, in tasks.

    Returns:
        The number of skipped rows, by reason.
    """
    shapes: tuple[Shape, ...] = ()
    # Lines of N-Triples do not depend on other lines.
    if suffix != "nt":
        terms = written_down(terms)  # read twice
        shapes = tuple(shapes_of(terms))
    parts = Parts(folder, suffix, tuple(names), shapes, what)
    found = map_in_tasks(terms, partial(_write, parts), "what string, rows bigint")
    left_out: Counter[str] = Counter()
    for row in found.collect():
        left_out[row["what"]] += row["rows"]
    return left_out


# ------------------------------------------------------------- what runs in the tasks


def _write(parts: Parts, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext  # noqa: PLC0415  only tasks need it

    context = TaskContext.get()
    assert context is not None  # noqa: S101  this is a task
    system, folder = file_system(parts.folder)
    for number, table in enumerate(_files(batches)):
        name = f"part-{context.partitionId():05}-{number:03}.{parts.format}"
        rows = term_table(table.rename_columns(list(parts.names)))
        # A task that is retried writes the same files again.
        path = f"{folder}/{name}"
        left_out = write_file(
            parts.format, system, path, rows, parts.what, parts.shapes or None
        )
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(list(left_out), pa.string()),
                pa.array(list(left_out.values()), pa.int64()),
            ],
            names=["what", "rows"],
        )


def _files(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows of a task in tables for one file each."""
    some: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if batch.num_rows:
            some.append(batch)
            count += batch.num_rows
        if count >= ROWS_IN_A_FILE:
            yield pa.Table.from_batches(some)
            some, count = [], 0
    if some:
        yield pa.Table.from_batches(some)
