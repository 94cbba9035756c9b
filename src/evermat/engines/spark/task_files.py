"""Parquet files that tasks write and read themselves, in any store.

Spark's own files need a Hadoop library for every kind of store. Tasks have Arrow, and
open the store like the driver. A file counts once its name is returned to the driver:
files of failed or superseded tasks are in no list.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar
from uuid import uuid4

import pyarrow as pa

from evermat.engines.spark.session import parallelism
from evermat.engines.spark.tasks import map_in_tasks
from evermat.io.digested_parquet import DigestedFile, DigestedWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow.parquet as pq
    from pyarrow.fs import FileSystem
    from pyspark.sql import DataFrame, SparkSession

    Open = Callable[[], FileSystem]


class HasRows(Protocol):
    """Something that a task may have to read."""

    @property
    def rows(self) -> int:
        """How many rows that are, about."""


Part = TypeVar("Part", bound=HasRows)

ROWS_IN_A_GROUP = 1 << 19
BYTES_IN_A_GROUP = 64 << 20
_ROWS_AT_ONCE = 1 << 16
_WRITTEN = "path string, rows bigint, size bigint, digest string, counts string"


class WrittenFile(NamedTuple):
    """A file that a task has finished.

    Attributes:
        digest: the digest for its readers.
        counts: the number of rows with equal values in some columns, as JSON: a list of
            the values and the number.
    """

    path: str
    rows: int
    size: int
    digest: str
    counts: str


class Layout:
    """Rows of a file as they come."""

    def arranged(self, rows: pa.Table) -> Iterable[pa.Table]:
        """The rows as row groups."""
        return (rows,)

    def notes(self) -> Mapping[bytes, str]:
        """What the footer says about the file, when all rows were arranged."""
        return {}


def write_parquet(
    frame: DataFrame,
    storage: Open,
    folder: str,
    *,
    count_by: Sequence[str] = (),
    layout: Callable[[], Layout] = Layout,
) -> list[WrittenFile]:
    """Write a frame in tasks, one file each.

    Args:
        frame: the frame; tasks without rows write nothing.
        storage: opens the storage, in a task.
        folder: where the files are to be, in that storage.
        count_by: columns by whose values rows are counted on the way.
        layout: makes the layout of a file.
    """
    task = partial(write_task, storage, folder, tuple(count_by), layout=layout)
    rows = map_in_tasks(frame, task, _WRITTEN).collect()
    return [WrittenFile(**row.asDict()) for row in rows]


def read_parquet(
    session: SparkSession,
    storage: Open,
    files: Sequence[tuple[str, int, str | None]],
    schema: pa.Schema,
) -> DataFrame:
    """Return a frame of the rows of files, which tasks read.

    Args:
        session: the session.
        storage: opens the storage, in a task.
        files: their paths, numbers of rows, and digests.
        schema: the columns to read; those that a file lacks are null.
    """
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415  optional

    shares = shared_out(pieces(files), parallelism(session))
    task = partial(read_task, storage, shares, schema)
    numbers = session.range(0, len(shares), 1, max(len(shares), 1))
    return map_in_tasks(numbers, task, from_arrow_schema(schema))


@dataclass(frozen=True, slots=True)
class Piece:
    """The row groups of a file whose numbers have some remainder.

    Attributes:
        of: the number of pieces of the file.
        rows: the approximate number of rows.
        digest: the digest of the file.
    """

    path: str
    number: int
    of: int
    rows: int
    digest: str | None = None


def pieces(files: Iterable[tuple[str, int, str | None]]) -> list[Piece]:
    """Return files, and pieces of large files, the largest first."""
    found = []
    for path, rows, digest in files:
        of = -(-rows // ROWS_IN_A_GROUP) or 1
        found += [Piece(path, number, of, rows // of, digest) for number in range(of)]
    return sorted(found, key=lambda piece: -piece.rows)


def shared_out(every: Sequence[Part], least: int) -> list[list[Part]]:
    """Pieces for tasks: as many tasks as the rows need, or as there are cores."""
    rows = sum(piece.rows for piece in every)
    count = max(min(least, len(every)), rows // ROWS_IN_A_GROUP)
    return [list(every[at::count]) for at in range(count)]


# ------------------------------------------------------------- what runs in the tasks


def write_task(
    storage: Open,
    folder: str,
    count_by: Sequence[str],
    batches: Iterable[pa.RecordBatch],
    *,
    layout: Callable[[], Layout] = Layout,
) -> Iterator[pa.RecordBatch]:
    """Write all rows to a file whose name is unique to this attempt."""
    path = f"{folder}/{uuid4().hex}.parquet"
    groups = _groups(batches)
    first = next(groups, None)
    if first is None:
        return
    rows, counts, how = 0, Counter[tuple[object, ...]](), layout()
    system = storage()
    system.create_dir(folder, recursive=True)
    with system.open_output_stream(path) as sink:
        writer = DigestedWriter(sink, first.schema)
        for table in chain([first], groups):
            for group in how.arranged(table):
                writer.write(group)
            rows += table.num_rows
            if count_by:
                counts.update(counted(table, count_by))
        digest = writer.close(how.notes())
    found = json.dumps([[*values, number] for values, number in counts.items()])
    columns = [[path], [rows], [writer.size], [digest], [found]]
    yield pa.RecordBatch.from_pydict(
        dict(zip(WrittenFile._fields, columns, strict=True))
    )


def counted(table: pa.Table, names: Sequence[str]) -> dict[tuple[object, ...], int]:
    """Return the number of rows with equal values in some columns."""
    groups = table.group_by(list(names), use_threads=False)
    found = groups.aggregate([([], "count_all")]).to_pydict()
    numbers = found.pop("count_all")
    values = zip(*(found[name] for name in names), strict=True)
    return dict(zip(values, numbers, strict=True))


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows in tables of one row group each."""
    some: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows:
            some.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
        if rows >= ROWS_IN_A_GROUP or size >= BYTES_IN_A_GROUP:
            yield pa.Table.from_batches(some)
            some, rows, size = [], 0, 0
    if some:
        yield pa.Table.from_batches(some)


def read_task(
    storage: Open,
    shares: Sequence[Sequence[Piece]],
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Read the pieces of the shares with the numbers in the batches."""
    for batch in batches:
        system = storage()
        for number in batch.column(0).to_pylist():
            for piece in shares[number]:
                with system.open_input_file(piece.path) as stream:
                    file = DigestedFile(stream, piece.digest).parquet
                    yield from _read(file, piece, schema)


def _read(
    file: pq.ParquetFile, piece: Piece, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    groups = list(range(piece.number, file.num_row_groups, piece.of))
    there = set(file.schema_arrow.names)
    for batch in file.iter_batches(
        batch_size=_ROWS_AT_ONCE,
        row_groups=groups,
        columns=[name for name in schema.names if name in there],
    ):
        yield pa.RecordBatch.from_arrays(
            [
                batch.column(field.name).cast(field.type)
                if field.name in there
                else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ],
            schema=schema,
        )
