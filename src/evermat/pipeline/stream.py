"""Maintains change events batch by batch, exactly once across restarts.

The number of a batch is committed with the state, in the same commit as the changes of
the batch. After a crash, batches that the state has recorded are skipped; the feed is
brought up to date from the state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from evermat import lake
from evermat.algebra.equality import UnequalValuesError
from evermat.algebra.queries import EvaluationError
from evermat.engines.spark.dictionary import DigestCollisionError
from evermat.errors import EvermatError
from evermat.functions import FunctionError
from evermat.kb.inputs import FactTypeError
from evermat.lake.errors import deltalake, step
from evermat.lang.catalogue import ArityClashError, PredicateNameError
from evermat.pipeline.errors import OutputError, require_feed_of
from evermat.pipeline.stream_events import (
    BadEvent,
    Parser,
    changes_of,
    from_columns,
    from_csv,
    from_json,
    read_events,
)
from evermat.values import ValueConversionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from threading import Event

    from pyspark.sql import SparkSession

    from evermat.api import KnowledgeBase
    from evermat.pipeline.stream_events import Events, GoodEvent
    from evermat.results.change import Change


# ---------------------------------------------------------------- isolating bad events

# Isolation of the events of a batch that make its update fail, so that the others can
# be applied.
#
# The batch is halved until the events are found. Halves are tried in the order of
# events, each together with the good events before it, so that of two incompatible
# events the later one is rejected. Trying changes nothing.

CAUSED_BY_EVENTS: tuple[type[EvermatError], ...] = (
    EvaluationError,
    FunctionError,
    UnequalValuesError,
    FactTypeError,
    ArityClashError,
    PredicateNameError,
    ValueConversionError,
    DigestCollisionError,
)
"""Errors that single events can cause; others concern the whole batch."""


def isolate(
    kb: KnowledgeBase, events: Sequence[GoodEvent]
) -> tuple[list[GoodEvent], list[BadEvent]]:
    """Return the events of a batch that can be applied together, and the rest.

    Args:
        kb: a knowledge base for which an update with all of them fails.
        events: the events, in order; only the last event about a fact matters.
    """
    search = _Search(kb)
    last = {(event.predicate, event.row): event for event in events}
    search.add(sorted(last.values(), key=lambda event: event.position))
    return search.good, search.bad


class _Search:
    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self.good: list[GoodEvent] = []
        self.bad: list[BadEvent] = []

    def add(self, events: Sequence[GoodEvent]) -> None:
        """Find the good ones among events that follow those found so far."""
        insert, delete = changes_of([*self.good, *events])
        try:
            self._kb.plan(insert=insert, delete=delete)
        except CAUSED_BY_EVENTS as error:
            if len(events) > 1:
                half = len(events) // 2
                self.add(events[:half])
                self.add(events[half:])
                return
            if not events:
                raise
            (event,) = events
            self.bad.append(BadEvent(event.position, event.text, error.message))
        else:
            self.good += events


# ----------------------------------------------------------------------------- outputs

# Outputs of a stream: a feed of changes and a table of dead letters, each row once.
#
# Both are Delta tables. Every append is numbered, in the same commit, with the version
# or the batch it belongs to, so that data written before a crash are not written again.

DEAD_LETTERS = pa.schema(
    [
        ("batch", pa.int64()),
        ("position", pa.int64()),
        ("event", pa.string()),
        ("reason", pa.string()),
    ]
)


class NumberedTable:
    """A table to which numbered pieces are appended, each of them once.

    Args:
        place: the place of the table.
        application: the name under which the pieces are numbered.
        options: storage options, as in `deltalake`.
    """

    def __init__(
        self, place: str, application: str, options: Mapping[str, str] | None = None
    ) -> None:
        self.place = place
        self._application = application
        self._options = dict(options or {})

    def last(self) -> int | None:
        """Return the number of the last piece."""
        with step(f"open the table at `{self.place}`"):
            try:
                table = deltalake.DeltaTable(self.place, storage_options=self._options)
            except deltalake.exceptions.TableNotFoundError:
                return None
            number: int | None = table.transaction_version(self._application)
            return number

    def append(self, number: int, rows: pa.Table) -> None:
        """Append a piece, unless it or a later one exists."""
        last = self.last()
        if last is not None and last >= number:
            return
        with step(f"append to the table at `{self.place}`"):
            deltalake.write_deltalake(
                self.place,
                rows,
                mode="append",
                storage_options=self._options,
                commit_properties=deltalake.CommitProperties(
                    app_transactions=[deltalake.Transaction(self._application, number)]
                ),
            )


class Feed:
    """The changes of a state, version by version, since the stream began.

    Missing versions are read from the state, which compensates for a crash between the
    commit of an update and that of its changes.
    """

    def __init__(
        self,
        table: NumberedTable,
        state: str,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._table = table
        self._state = state
        self._options = options

    def begin(self, version: int) -> None:
        """Create the feed, if there is none: it begins after a version.

        Raises:
            OutputError: the feed belongs to another state.
        """
        last = self._table.last()
        if last is None:
            self._table.append(version, self._changes(version, version))
        else:
            require_feed_of(version, last, self._table.place)

    def publish(self, version: int) -> None:
        """Write all missing changes up to a version."""
        last = self._table.last()
        since = version - 1 if last is None else last
        if since < version:
            self._table.append(version, self._changes(since, version))

    def _changes(self, since: int, until: int) -> pa.Table:
        return lake.change_table(
            self._state, since=since, until=until, storage_options=self._options
        )


def dead_letters(batch: int, events: Sequence[BadEvent]) -> pa.Table:
    """Return bad events as rows."""
    return pa.table(
        [
            [batch] * len(events),
            [each.position for each in events],
            [each.event for each in events],
            [each.reason for each in events],
        ],
        schema=DEAD_LETTERS,
    )


# ----------------------------------------------------------------------------- streams

PARSERS: Mapping[str, Parser] = {
    "json": from_json,
    "csv": from_csv,
    "columns": from_columns,
}


class StreamError(EvermatError, RuntimeError):
    """A stream that cannot begin, or cannot continue."""

    code: ClassVar[str] = "EM811"


@dataclass(frozen=True, slots=True)
class StreamSource:
    """The source of events.

    Attributes:
        format: `json` or `csv` for folders of files with an event on each line, or any
            format of Structured Streaming with a column `value` (such as `kafka`) or
            with columns `sign`, `predicate` and `values` (such as `parquet`).
        path: the folder, for formats that have one.
        options: of the format; `maxFilesPerTrigger` and similar ones bound a batch.
        events: the format of a column `value`: `json` or `csv`.
        schema: of the columns, if the format requires it.
    """

    format: str = "json"
    path: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    events: str = "json"
    schema: str | None = None


@dataclass(slots=True)
class StreamReport:
    """The work of a stream.

    Attributes:
        batches: batches that were maintained; `skipped` were maintained before.
        events: the number of events; `bad` of them are dead letters.
        added, removed: the numbers of added and removed facts.
        changes: the same by predicate.
        version: the version of the state at the end.
    """

    batches: int = 0
    skipped: int = 0
    events: int = 0
    bad: int = 0
    added: int = 0
    removed: int = 0
    changes: dict[str, dict[str, int]] = field(default_factory=dict)
    version: int | None = None
    seconds: float = 0.0

    def add(self, events: Events, change: Change) -> None:
        """Count a batch."""
        self.batches += 1
        self.events += events.count
        self.bad += len(events.bad)
        for name, (added, removed) in change.sizes.items():
            sums = self.changes.setdefault(name, {"added": 0, "removed": 0})
            sums["added"] += added
            sums["removed"] += removed
            self.added += added
            self.removed += removed


def stream(  # noqa: PLR0913  all but the first two by name
    kb: KnowledgeBase,
    source: StreamSource,
    *,
    app_id: str,
    checkpoint: str | Path,
    feed: str | Path | None = None,
    dead_letters: str | Path | None = None,
    trigger: str | float = "once",
    spark: SparkSession | None = None,
    stop: Event | None = None,
    on_batch: Callable[[StreamReport], None] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> StreamReport:
    """Follow a stream of change events.

    Args:
        kb: a knowledge base with a state. On Spark, or if `spark` is given, events
            are read by Structured Streaming; otherwise by a plain loop over files.
        source: the source of events.
        app_id: the name under which batches are numbered; one for each stream.
        checkpoint: the place where the progress of reading is recorded.
        feed: a table of changes (`version`, `sign`, `predicate`, `values`).
        dead_letters: a table of bad events (`batch`, `position`, `event`, `reason`):
            those that cannot be read, and those that make the update fail. Without
            it, an update that fails ends the stream.
        trigger: `"once"` for the events available now, or seconds between batches.
        spark: the session to read events with.
        stop: ends a stream with a trigger in seconds when it is set.
        on_batch: receives the sums so far after every batch.
        storage_options: of state and tables, as in `deltalake`.

    Raises:
        StreamError: the stream cannot begin, or events cannot be read.
        EvermatError: an update failed; the state is as before its batch.
    """
    start = perf_counter()
    state = kb.state
    if state is None or kb.version is None:
        raise StreamError(
            "a stream needs a state to remember its batches in",
            help="make the knowledge base with `state=PATH`",
        )
    worker = Batches(kb, source, app_id)
    if feed is not None:
        table = NumberedTable(str(feed), app_id, storage_options)
        worker.feed = Feed(table, state, storage_options)
        worker.feed.begin(kb.version)
        worker.feed.publish(kb.version)
    if dead_letters is not None:
        worker.dead_letters = NumberedTable(str(dead_letters), app_id, storage_options)
        worker.require_own_dead_letters()
    worker.on_batch = on_batch
    seconds = _seconds(trigger)
    if spark is None and kb.engine != "spark":
        from evermat.pipeline.stream_sources import follow_files  # noqa: PLC0415  or the other

        follow_files(worker, str(checkpoint), seconds, stop)
    else:
        from evermat.pipeline.stream_sources import follow_spark  # noqa: PLC0415  slow to load

        follow_spark(worker, str(checkpoint), seconds, stop, spark)
    worker.report.version = kb.version
    worker.report.seconds = perf_counter() - start
    return worker.report


def _seconds(trigger: str | float) -> float | None:
    """Return the seconds between batches; None for the events available now."""
    if trigger == "once":
        return None
    try:
        seconds = float(trigger)
    except ValueError:
        seconds = -1.0
    if seconds < 0:
        raise StreamError(
            f"{trigger!r} is no trigger", help='use "once", or a number of seconds'
        )
    return seconds


class Batches:
    """Maintains one batch after another.

    Attributes:
        kb: the knowledge base.
        source: the source of events.
        app_id: the name under which batches are numbered.
        report: the sums so far.
    """

    def __init__(self, kb: KnowledgeBase, source: StreamSource, app_id: str) -> None:
        self.kb = kb
        self.source = source
        self.app_id = app_id
        self.report = StreamReport()
        self.feed: Feed | None = None
        self.dead_letters: NumberedTable | None = None
        self.on_batch: Callable[[StreamReport], None] | None = None

    def is_done(self, number: int) -> bool:
        """Return whether the state has recorded a batch."""
        last = self.kb.last_batch(self.app_id)
        return last is not None and number <= last

    def require_own_dead_letters(self) -> None:
        """Reject dead letters of future batches, as new ones would not be written.

        Raises:
            OutputError: there are some.
        """
        last = None if self.dead_letters is None else self.dead_letters.last()
        known = self.kb.last_batch(self.app_id)
        # Those of the batch that was in progress when a stream ended belong to it.
        next_one = 0 if known is None else known + 1
        if self.dead_letters is not None and last is not None and last // 2 > next_one:
            raise OutputError(
                f"the dead letters at `{self.dead_letters.place}` are of batch "
                f"{last // 2}, which the state has not seen",
                reason="dead letters belong to one state",
                help="remove them if the state was made anew, or give them another "
                "place",
            )

    def skip(self) -> None:
        """Record a batch that was maintained before."""
        self.report.skipped += 1

    def maintain(self, number: int, raw: Iterable[object], form: str) -> None:
        """Maintain a batch.

        Args:
            number: of the batch.
            raw: its events, in order.
            form: their form, one of `PARSERS`.
        """
        events = read_events(raw, PARSERS[form], self.kb.predicates)
        # Dead letters first: if the process ends here, the batch is read again, finds
        # the same ones, and does not write them twice.
        self._bury(2 * number, events.bad)
        try:
            change = self.update(number, events.good)
        except CAUSED_BY_EVENTS:
            if self.dead_letters is None:
                raise
            good, failing = isolate(self.kb, events.good)
            self._bury(2 * number + 1, failing)
            events.bad += failing
            change = self.update(number, good)
        if self.feed is not None and self.kb.version is not None:
            self.feed.publish(self.kb.version)
        report = self.report
        report.add(events, change)
        report.version = self.kb.version
        if self.on_batch is not None:
            self.on_batch(report)

    def update(self, number: int, events: Sequence[GoodEvent]) -> Change:
        """Change the knowledge base, and record the batch with it."""
        insert, delete = changes_of(events)
        batch = (self.app_id, number)
        return self.kb.update(insert=insert, delete=delete, batch=batch)

    def _bury(self, piece: int, events: Sequence[BadEvent]) -> None:
        """Write dead letters; a batch has two pieces, of which the first is even."""
        if events and self.dead_letters is not None:
            self.dead_letters.append(piece, dead_letters(piece // 2, events))
