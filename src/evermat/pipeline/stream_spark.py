"""Events read by Structured Streaming, each micro-batch maintained as one update.

The engine takes tables from the driver, so the events of a micro-batch are collected
there; options such as `maxFilesPerTrigger` bound how many that are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from evermat.engines.spark.session import find_session
from evermat.errors import gist
from evermat.pipeline.spark_session import GIVE_CLIENT, lacks_client
from evermat.pipeline.stream import StreamError
from evermat.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from evermat.pipeline.stream import Batches, StreamSource

LINES = {"json": "json", "csv": "csv", "text": "json"}
"""Formats that are folders of lines, and what is on a line by default."""

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
    """What to do; Structured Streaming opens places through Hadoop, and only so."""
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
    """Takes micro-batches, and keeps the error that ends the stream."""

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
        """A stream goes on with the last batch that the state knows, or the next."""
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
    """The columns that hold the event, and those that say when it happened."""
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
    """The events of a micro-batch in order, and how they are written."""
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
