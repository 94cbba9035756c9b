"""Large results to files, written by the tasks that have the rows.

Every task writes files of its own, with the code that writes small results too; the
driver makes them appear. How values are written depends on the whole column, so that
the shapes of columns are found out first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from evermat.columns import Shape, term_table
from evermat.engines.spark.decoding import natural_frame, shapes_of
from evermat.engines.spark.session import moved, written_down
from evermat.engines.spark.staging import spark_terms
from evermat.engines.spark.tasks import map_in_tasks
from evermat.pipeline.files import file_system
from evermat.pipeline.written_files import write_file
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from evermat.results.result import Result

ROWS_IN_A_FILE = 1_000_000


@dataclass(frozen=True, slots=True)
class Parts:
    """What tasks have to know to write their files.

    Attributes:
        folder: where they write to.
        format: the suffix.
        names: of the columns.
        shapes: of the columns, where anything depends on them.
        what: the predicate.
    """

    folder: str
    format: str
    names: tuple[str, ...]
    shapes: tuple[Shape, ...]
    what: str


def terms_frame(result: Result, like: DataFrame | None = None) -> DataFrame:
    """The rows of a result as a frame with a struct for each value.

    Args:
        result: what to write.
        like: another frame, for results that are on the driver.
    """
    if result.distant is not None:
        return result.distant.terms()
    assert like is not None  # noqa: S101  one of two results is on the cluster
    return like.sparkSession.createDataFrame(spark_terms(result.to_terms()))


def signed_frame(version: int, came: Result, left: Result) -> DataFrame:
    """What came and left, with version and sign before the values."""
    some = next(each for each in (came, left) if each.distant is not None)
    like = terms_frame(some)
    parts = []
    for sign, result in (("+", came), ("-", left)):
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
    came: Result,
    left: Result,
    names: Sequence[str],
    session: SparkSession,
) -> DataFrame:
    """What came and left, with plain types."""
    terms = signed_frame(version, came, left)
    return moved(natural_frame(terms, shapes_of(terms), names), session)


def write_parts(
    terms: DataFrame, folder: str, suffix: str, names: Sequence[str], what: str
) -> Mapping[str, int]:
    """Have tasks write a frame of terms into files of a folder.

    Returns:
        How many rows were left out, by what is wrong with them.
    """
    shapes: tuple[Shape, ...] = ()
    # Lines of N-Triples do not depend on other lines.
    if suffix != "nt":
        terms = written_down(terms)  # it is read twice
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
        # A task that is tried again writes the same files again.
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
    """The rows of a task, as many at once as go into a file."""
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
