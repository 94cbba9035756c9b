"""Collects many rows on the driver in parts: Java never has all of them in memory.

They are first written to files with a limited number of rows, and read file by file.
Spark's own method for this keeps in Java everything that it has collected.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from evermat.engines.spark.session import shared_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame

ROWS_AT_ONCE = 1 << 21
"""Rows of ids that are collected at once.

Java has them in memory four times: as a result, packed, sent, and unpacked.
"""
TERMS_AT_ONCE = 1 << 17
"""The same for rows with the texts of constants."""


@contextmanager
def in_files(frame: DataFrame, at_once: int) -> Iterator[DataFrame]:
    """Yield the same rows, read from temporary files with a limited number of rows."""
    session = frame.sparkSession
    folder = f"{shared_folder(session)}/{uuid4()}"
    try:
        frame.write.option("maxRecordsPerFile", at_once).parquet(folder)
        yield session.read.schema(frame.schema).parquet(folder)
    finally:
        _remove(frame, folder)


def parts_of(written: DataFrame) -> Iterator[pa.Table]:
    """Yield the rows of such files, one file after the other."""
    read = written.sparkSession.read.schema(written.schema)
    for file in sorted(written.inputFiles()):
        yield read.parquet(file).toArrow()


def _remove(frame: DataFrame, folder: str) -> None:
    """Remove a folder on any file system."""
    inside = cast("Any", frame.sparkSession)
    path = inside._jvm.org.apache.hadoop.fs.Path(folder)  # noqa: SLF001
    settings = inside._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    path.getFileSystem(settings).delete(path, True)  # noqa: FBT003
