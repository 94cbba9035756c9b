"""`format("evermat")`: states as a data source of Spark.

    from evermat.pipeline.data_source import register
    register(spark)
    spark.read.format("evermat").option("predicate", "reach").load("data/state")

| call          | options               | rows                                         |
| ------------- | --------------------- | -------------------------------------------- |
| `read`        | `predicate`, `query`, | facts, or answers; of a `version`            |
|               | `version`             |                                              |
| `readStream`  | `since`, `only`       | changes: `version`, `sign`, `predicate`,     |
|               |                       | `values`; with `read`, too                   |
| `write`       | `predicate`, `action` | become facts, or are deleted; `overwrite`    |
|               |                       | has them replace all that is explicit        |
| `writeStream` | the same, `app_id`    | the same for each batch, exactly once        |

Rows with the columns of a change feed need no predicate when they are written. The
implementation uses Spark's interface for sources in Python: tasks write rows to files
beside the state, and one commit by the embedded engine applies all of them, or none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from evermat.api import KnowledgeBase
from evermat.errors import EvermatError
from evermat.lake import change_table
from evermat.lake.errors import no_state
from evermat.lake.log import open_folder, uri_of
from evermat.lake.table import StateTable
from evermat.pipeline.stream_events import from_columns, read_events

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from evermat.results.result import Result

FEED = "version bigint, sign string, predicate string, `values` array<string>"
_EVENT = {"sign", "predicate", "values"}
_INCOMING = "_incoming"
_STORAGE = "storage."


class DataSourceError(EvermatError, ValueError):
    """Incompatible options of the data source, or rows that do not fit."""

    code: ClassVar[str] = "EM812"


def register(spark: SparkSession) -> None:
    """Register `format("evermat")` in a session."""
    spark.dataSource.register(EvermatSource)


@dataclass(frozen=True)
class _Options:
    """Options of a source or a sink.

    Attributes:
        place: the place of the state.
        storage: storage options as in `deltalake`: options `storage.…`.
    """

    place: str
    storage: Mapping[str, str]
    predicate: str | None
    query: str | None
    version: int | None
    since: int | None
    only: str | None
    action: str
    app_id: str | None

    def opened(self) -> KnowledgeBase:
        """Open the state with the embedded engine."""
        return KnowledgeBase.open(
            self.place, version=self.version, storage_options=dict(self.storage) or None
        )

    def latest(self) -> int:
        """Return the latest version of the state."""
        table = StateTable.open(self.place, options=self.storage)
        if table is None:
            raise no_state(self.place)
        return table.version

    @property
    def is_feed(self) -> bool:
        """Whether changes are read, not facts."""
        return self.predicate is None and self.query is None


def _read_options(options: Mapping[str, str]) -> _Options:
    place, action = options.get("path"), options.get("action", "insert")
    if place is None:
        raise DataSourceError("no state is named", help="write load(PATH)")
    if action not in {"insert", "delete"}:
        raise DataSourceError(
            f"`action` is `{action}`", help="write `insert` or `delete`"
        )
    numbers = {name: options.get(name) for name in ("version", "since")}
    for name, text in numbers.items():
        if text is not None and not text.isdecimal():
            raise DataSourceError(f"`{name}` is `{text}`", help="it is a version")
    version, since = (None if text is None else int(text) for text in numbers.values())
    if options.get("predicate") and options.get("query"):
        raise DataSourceError(
            "both `predicate` and `query` say what to read",
            help="leave one of them out",
        )
    storage = {
        name.removeprefix(_STORAGE): value
        for name, value in options.items()
        if name.startswith(_STORAGE)
    }
    return _Options(
        place,
        storage,
        options.get("predicate"),
        options.get("query"),
        version,
        since,
        options.get("only"),
        action,
        options.get("app_id"),
    )


class EvermatSource(DataSource):
    """A state: its facts, its changes, and a sink for rows."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "evermat"

    @property
    def _options(self) -> _Options:
        return _read_options(cast("Mapping[str, str]", self.options))

    def schema(self) -> StructType | str:
        """Return the columns of the predicate or query, or of a change feed."""
        options = self._options
        if options.is_feed:
            return FEED
        return from_arrow_schema(_result(options).to_arrow().schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of facts, answers, or all changes up to now."""
        return _Reader(self._options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of changes as they are committed."""
        del schema
        options = self._options
        if not options.is_feed:
            raise DataSourceError(
                "a stream reads changes, not the facts of a predicate",
                help="write `only` instead of `predicate`",
            )
        return _StreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: FBT001
        """Return the writer of rows in one commit."""
        return _Writer(self._options, schema, overwrite=overwrite)

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001
    ) -> DataSourceStreamArrowWriter:
        """Return the writer of batches of rows, each exactly once."""
        options = self._options
        if options.app_id is None:
            raise DataSourceError(
                "a stream of rows has no `app_id`",
                reason="batches are numbered under it, so that none is committed twice",
                help='write .option("app_id", "orders"), another one for each stream',
            )
        return _StreamWriter(options, schema, overwrite=overwrite)


# ----------------------------------------------------------------------------- reading


def _result(options: _Options) -> Result:
    kb = options.opened()
    if options.query is not None:
        return kb.query(options.query)
    return kb.facts(options.predicate or "")


class _Reader(DataSourceReader):
    def __init__(self, options: _Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield all rows: a state is opened by one task."""
        del partition
        options = self._options
        if options.is_feed:
            first = 0 if options.since is None else options.since
            last = options.latest() if options.version is None else options.version
            yield from _changes(options, first, last)
            return
        table = _result(options).to_arrow()
        wanted = to_arrow_schema(self._schema)
        yield from table.rename_columns(wanted.names).cast(wanted).to_batches()


def _changes(options: _Options, first: int, last: int) -> Iterator[pa.RecordBatch]:
    table = change_table(
        options.place,
        since=first,
        until=last,
        storage_options=dict(options.storage) or None,
    )
    if options.only is not None:
        table = table.filter(pc.equal(table["predicate"], options.only))
    yield from table.to_batches()


class _Versions(InputPartition):
    """A partition of the changes after one version, up to another one."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__((first, last))
        self.first, self.last = first, last


class _StreamReader(DataSourceStreamReader):
    def __init__(self, options: _Options) -> None:
        self._options = options

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Return the version after which changes are read: `since`, or the latest."""
        since = self._options.since
        return {"version": self._options.latest() if since is None else since}

    def latestOffset(self, *_: object) -> dict[str, int]:  # noqa: N802
        """Return the latest version."""
        return {"version": self._options.latest()}

    def partitions(
        self, start: dict[str, int], end: dict[str, int]
    ) -> Sequence[InputPartition]:
        """Return one partition, because updates are small."""
        return [_Versions(start["version"], end["version"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the changes of some versions."""
        versions = cast("_Versions", partition)
        if versions.first < versions.last:
            yield from _changes(self._options, versions.first, versions.last)

    def commit(self, end: dict[str, int]) -> None:
        """Do nothing: the reader has no state."""


# ----------------------------------------------------------------------------- writing


@dataclass
class _Written(WriterCommitMessage):
    """The file that a task has written."""

    path: str


class _Writer(DataSourceArrowWriter):
    def __init__(
        self, options: _Options, schema: StructType, *, overwrite: bool
    ) -> None:
        self._options = options
        self._overwrite = overwrite
        self._is_feed = set(schema.names) >= _EVENT
        if options.predicate is None and not self._is_feed:
            raise DataSourceError(
                "it is not said what facts rows become",
                help='write .option("predicate", "edge"), or have columns `sign`, '
                "`predicate` and `values`",
            )
        if overwrite and (self._is_feed or options.action == "delete"):
            raise DataSourceError(
                "only rows to insert can take the place of others",
                help='write .mode("append")',
            )
        self._folder = f"{_INCOMING}/{uuid4().hex}"

    @property
    def _storage(self) -> pa.fs.FileSystem:
        options = self._options
        return open_folder(uri_of(options.place), options.storage)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task to a file, invisible before the commit."""
        storage = self._storage
        storage.create_dir(self._folder, recursive=True)
        path = f"{self._folder}/{uuid4().hex}.arrow"
        batches = [batch for batch in iterator if batch.num_rows]
        if batches:
            with (
                storage.open_output_stream(path) as sink,
                pa.ipc.new_stream(sink, batches[0].schema) as stream,
            ):
                for batch in batches:
                    stream.write_batch(batch)
        return _Written(path if batches else "")

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Apply all rows to the state, in one commit."""
        self._take(messages, None)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the files of tasks."""
        del messages
        self._clear()

    def _take(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batch: tuple[str, int] | None,
    ) -> None:
        storage = self._storage
        paths = [each.path for each in messages if isinstance(each, _Written)]
        tables = []
        for path in filter(None, paths):
            with storage.open_input_stream(path) as stream:
                tables.append(pa.ipc.open_stream(stream).read_all())
        kb = self._options.opened()
        last = None if batch is None else kb.last_batch(batch[0])
        # A batch that was committed is repeated after a crash.
        if batch is None or last is None or last < batch[1]:
            self._update(kb, tables, batch)
        self._clear()

    def _update(
        self, kb: KnowledgeBase, tables: list[pa.Table], batch: tuple[str, int] | None
    ) -> None:
        predicate = self._options.predicate
        if self._is_feed:
            insert, delete = _events(kb, tables)
            kb.update(insert=insert, delete=delete, batch=batch)
        elif predicate is not None:
            facts = {predicate: pa.concat_tables(tables)} if tables else {}
            if self._overwrite:
                kb.update(replace=facts or {predicate: []}, batch=batch)
            elif self._options.action == "delete":
                kb.update(delete=facts, batch=batch)
            else:
                kb.update(insert=facts, batch=batch)

    def _clear(self) -> None:
        storage = self._storage
        if storage.get_file_info(self._folder).type != pa.fs.FileType.NotFound:
            storage.delete_dir(self._folder)


def _events(
    kb: KnowledgeBase, tables: list[pa.Table]
) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return rows of a change feed as facts to insert and to delete.

    Raises:
        DataSourceError: one of them cannot be applied.
    """
    rows = [row for table in tables for row in table.to_pylist()]
    # Tasks finish in any order; versions define the order of a feed.
    rows.sort(key=lambda row: row.get("version") or 0)
    events = read_events(rows, from_columns, kb.predicates)
    if events.bad:
        first = events.bad[0]
        raise DataSourceError(
            f"{len(events.bad):,} of {events.count:,} rows are no changes; one of "
            f"them: {first.event}: {first.reason}",
        )
    return events.insert, events.delete


class _StreamWriter(DataSourceStreamArrowWriter):
    """Writes like a batch; each batch is committed under its number."""

    def __init__(
        self, options: _Options, schema: StructType, *, overwrite: bool
    ) -> None:
        self._writer = _Writer(options, schema, overwrite=overwrite)
        self._app_id = options.app_id or ""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task."""
        return self._writer.write(iterator)

    def commit(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803  as Spark calls it
    ) -> None:
        """Apply a batch to the state, unless it was applied before."""
        self._writer._take(messages, (self._app_id, batchId))  # noqa: SLF001

    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803
    ) -> None:
        """Remove the files of tasks."""
        del batchId
        self._writer.abort(messages)
