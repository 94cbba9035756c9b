"""Sources of change events: a loop over files, or Structured Streaming."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from pyarrow.fs import FileSelector, FileType

from evermat.engines.spark.session import find_session, require_classic
from evermat.errors import gist
from evermat.errors.redaction import without_secrets
from evermat.pipeline.files import file_system
from evermat.pipeline.spark_session import GIVE_CLIENT, lacks_client
from evermat.pipeline.stream import StreamError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event

    from pyarrow.fs import FileInfo, FileSystem
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from evermat.pipeline.stream import Batches, StreamSource


# ------------------------------------------------------------------------------- files

# A plain loop over files of events, for engines that need no cluster.
#
# The files of a batch are recorded before the batch is read, as in Structured
# Streaming: after a crash the same batch has the same files.

MOST_FILES = "maxFilesPerTrigger"
_FORMATS = ("json", "csv")


def follow_files(
    worker: Batches, checkpoint: str, seconds: float | None, stop: Event | None
) -> None:
    """Maintain the events of a folder, batch by batch."""
    folder, log = _opened(worker, checkpoint)
    number = 0
    while stop is None or not stop.is_set():
        files = log.batch(number, folder)
        if files:
            if worker.is_done(number):
                worker.skip()
            else:
                worker.maintain(number, _lines(folder, files), worker.source.format)
            number += 1
        elif seconds is None:
            return
        elif stop is None:
            time.sleep(seconds)
        else:
            stop.wait(seconds)


def _opened(worker: Batches, checkpoint: str) -> tuple[str, _Log]:
    """Return the folder of events, and the log of its batches."""
    source = worker.source
    if source.format not in _FORMATS or source.path is None:
        raise StreamError(
            f"a stream of `{source.format}` needs Spark",
            help="use a folder of json or csv files, or the Spark engine",
        )
    folder = source.path.rstrip("/")
    system, path = file_system(folder)
    if system.get_file_info(path).type is not FileType.Directory:
        raise StreamError(
            f"there is no folder of events at `{folder}`",
            help="check `path` of the stream",
        )
    log = _Log(checkpoint, _most_files(source.options.get(MOST_FILES)))
    last = worker.kb.last_batch(worker.app_id)
    if last is not None and log.count() <= last:
        raise StreamError(
            f"the state knows batch {last} of `{worker.app_id}`, and the checkpoint at "
            f"`{checkpoint}` does not",
            help="use the checkpoint that belongs to the state, or another app_id",
        )
    return folder, log


def _most_files(option: str | None) -> int | None:
    if option is None:
        return None
    if not option.isdigit() or int(option) < 1:
        raise StreamError(f"`{MOST_FILES}` is {option!r}, not a number of files")
    return int(option)


class _Log:
    """A log of the files of each batch, one small file per batch in the checkpoint."""

    def __init__(self, checkpoint: str, most: int | None) -> None:
        self._is_local = "://" not in checkpoint
        self._system, path = file_system(checkpoint)
        self._folder = f"{path.rstrip('/')}/batches"
        self._system.create_dir(self._folder, recursive=True)
        self._most = most
        self._batches: list[list[str]] = []
        there = {info.base_name for info in _listed(self._system, self._folder)}
        while (name := f"{self.count()}.json") in there:
            with self._system.open_input_file(f"{self._folder}/{name}") as file:
                self._batches.append(json.loads(file.read()))
        self._seen = {name for batch in self._batches for name in batch}

    def count(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    def batch(self, number: int, folder: str) -> list[str]:
        """Return the files of a batch; a new batch has all new files."""
        if number < self.count():
            return self._batches[number]
        files = [
            (info.mtime_ns, info.base_name)
            for info in _listed(*file_system(folder))
            if info.base_name not in self._seen and _is_event_file(info)
        ]
        names = [name for _, name in sorted(files)][: self._most]
        if names:
            self._write(number, names)
            self._batches.append(names)
            self._seen.update(names)
        return names

    def _write(self, number: int, names: list[str]) -> None:
        target, text = f"{self._folder}/{number}.json", json.dumps(names)
        if not self._is_local:
            # Object stores show nothing before the end.
            with self._system.open_output_stream(target) as sink:
                sink.write(text.encode())
            return
        draft = Path(target).with_suffix(".draft")
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)


def _listed(system: FileSystem, folder: str) -> list[FileInfo]:
    found: list[FileInfo] = system.get_file_info(FileSelector(folder))
    return found


def _is_event_file(info: FileInfo) -> bool:
    # As in Spark: files with such names are incomplete.
    return info.type is FileType.File and info.base_name[0] not in "._"


def _lines(folder: str, names: list[str]) -> Iterator[bytes]:
    system, path = file_system(folder)
    for name in names:
        try:
            with system.open_input_stream(f"{path}/{name}") as stream:
                lines = stream.read().splitlines()
        except OSError as error:
            raise StreamError(
                f"cannot read the events in `{name}`: {error}"
            ) from without_secrets(error)
        yield from (line for line in lines if line.strip())


# ------------------------------------------------------------------------------- Spark

# Events read by Structured Streaming, with each micro-batch maintained as one update.
#
# The engine takes tables from the driver, so the events of a micro-batch are collected
# there; options such as `maxFilesPerTrigger` bound their number.

LINES = {"json": "json", "csv": "csv", "text": "json"}
"""Formats that are folders of lines, and the default format of a line."""

_FILE_ORDER = (
    "_metadata.file_modification_time",
    "_metadata.file_path",
    "_metadata.file_block_start",
)
_KAFKA_ORDER = ("timestamp", "partition", "offset")


def follow_spark(
    worker: Batches,
    checkpoint: str,
    seconds: float | None,
    stop: Event | None,
    spark: SparkSession | None,
) -> None:
    """Maintain the events of a source of Structured Streaming."""
    session = find_session() if spark is None else spark
    require_classic(session)
    events = _events(session, worker.source)
    run = _Run(worker)
    writer = (
        events.writeStream.queryName(worker.app_id)
        .option("checkpointLocation", checkpoint)
        .foreachBatch(run.batch)
    )
    if seconds is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{seconds} seconds")
    try:
        query = writer.start()
        _wait(query, stop)
    except Exception as error:  # noqa: BLE001  raised as one of ours
        if run.error is not None:
            raise run.error from None
        raise StreamError(
            f"cannot follow the stream `{worker.app_id}`: {gist(str(error))}",
            help=_advice(error, "check the source, its options and the checkpoint"),
        ) from without_secrets(error)


def _advice(error: Exception, usual: str) -> str:
    """Return advice; Structured Streaming opens places only through Hadoop."""
    if not lacks_client(str(error)):
        return usual
    return (
        "put events and checkpoint on a disk that all workers see or on HDFS; or use "
        '`engine = "embedded"`, which follows json and csv in stores of objects by '
        f"itself; or {GIVE_CLIENT}"
    )


def _wait(query: StreamingQuery, stop: Event | None) -> None:
    if stop is None:
        query.awaitTermination()
        return
    while not query.awaitTermination(1):
        if stop.is_set():
            query.stop()
            return


class _Run:
    """Maintains micro-batches, and keeps the error that ends the stream."""

    def __init__(self, worker: Batches) -> None:
        self._worker = worker
        self._last = worker.kb.last_batch(worker.app_id)
        self._is_first = True
        self.error: BaseException | None = None

    def batch(self, frame: DataFrame, number: int) -> None:
        """Maintain a micro-batch."""
        worker = self._worker
        try:
            self._check(number)
            if worker.is_done(number):
                worker.skip()
            else:
                rows, form = _collected(frame, worker.source)
                worker.maintain(number, rows, form)
        except BaseException as error:
            self.error = error
            raise

    def _check(self, number: int) -> None:
        """Check that a stream continues where the state ends."""
        last = -1 if self._last is None else self._last
        if self._is_first and number not in {last, last + 1}:
            raise StreamError(
                f"the state expects batch {last + 1} of `{self._worker.app_id}`, and "
                f"the checkpoint goes on with batch {number}",
                help="use the checkpoint that belongs to the state, or another app_id",
            )
        self._is_first = False


def _events(session: SparkSession, source: StreamSource) -> DataFrame:
    is_lines = source.format in LINES
    reader = session.readStream.format("text" if is_lines else source.format)
    if source.schema is not None and not is_lines:
        reader = reader.schema(source.schema)
    elif source.format in {"parquet", "orc"}:
        reader = reader.schema("sign STRING, predicate STRING, values ARRAY<STRING>")
    for name, value in source.options.items():
        reader = reader.option(name, value)
    try:
        frame = reader.load(source.path) if source.path is not None else reader.load()
    except Exception as error:  # noqa: BLE001  raised as one of ours
        raise StreamError(
            f"cannot read events as `{source.format}`: {gist(str(error))}",
            help=_advice(error, "check the format, its options and the path"),
        ) from without_secrets(error)
    return _ordered_columns(frame, source)


def _ordered_columns(frame: DataFrame, source: StreamSource) -> DataFrame:
    """Return the columns of the event, and those of its order."""
    names = frame.columns
    if source.path is not None:
        order = list(_FILE_ORDER)
    else:
        order = [name for name in _KAFKA_ORDER if name in names]
    if {"sign", "predicate", "values"} <= set(names):
        event = ["sign", "predicate", "values"]
    elif "value" in names:
        event = ["CAST(value AS BINARY) AS value"]
    else:
        raise StreamError(
            f"`{source.format}` has columns {', '.join(names)}",
            help="events are in `value`, or in `sign`, `predicate` and `values`",
        )
    keys = [f"{name} AS order_{at}" for at, name in enumerate(order)]
    return frame.selectExpr(*event, *keys)


def _collected(frame: DataFrame, source: StreamSource) -> tuple[Iterator[object], str]:
    """Return the events of a micro-batch in order, and their form."""
    table = frame.toArrow()
    order = sorted(name for name in table.column_names if name.startswith("order_"))
    if order:
        # Rows with equal keys, the lines of a file, stay in their order.
        keys = [(name, "ascending") for name in order]
        table = table.take(pc.sort_indices(table, sort_keys=keys))
    if "value" in table.column_names:
        form = LINES.get(source.format, source.events)
        if source.format == "text":
            form = source.events
        lines = table["value"].to_pylist()
        return (line for line in lines if line and line.strip()), form
    return iter(table.select(["sign", "predicate", "values"]).to_pylist()), "columns"
