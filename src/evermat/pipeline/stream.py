"""Change events, maintained batch by batch, exactly once across restarts.

The number of a batch is committed with the state, in the same commit as what the batch
changed. After a crash, batches that the state has seen are skipped; the feed is brought
up to date from the state.
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

# Which events of a batch make its update fail, so that the others can be followed.
#
# The batch is halved until the events are found. Halves are tried in the order in which
# events happened, each on top of what was found good before it, so that of two events
# that do not go together the later one is to blame. Nothing is changed by trying.

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
"""Errors for which some event can be to blame; others are about everything."""


def isolate(
    kb: KnowledgeBase, events: Sequence[GoodEvent]
) -> tuple[list[GoodEvent], list[BadEvent]]:
    """The events of a batch that can be followed together, and the rest.

    Args:
        kb: what an update with all of them fails on.
        events: what was read, in the order in which it happened; only the last event
            about a fact matters.
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

# What a stream writes: a feed of changes and a table of dead letters, each row once.
#
# Both are Delta tables. Every append is numbered, in the same commit, with the version
# or the batch that it is about, so what was written before a crash is not written
# again.

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
        place: where it is.
        application: under whose name the pieces are numbered.
        options: for the storage, as `deltalake` takes them.
    """

    def __init__(
        self, place: str, application: str, options: Mapping[str, str] | None = None
    ) -> None:
        self.place = place
        self._application = application
        self._options = dict(options or {})

    def last(self) -> int | None:
        """The number of the last piece."""
        with step(f"open the table at `{self.place}`"):
            try:
                table = deltalake.DeltaTable(self.place, storage_options=self._options)
            except deltalake.exceptions.TableNotFoundError:
                return None
            number: int | None = table.transaction_version(self._application)
            return number

    def append(self, number: int, rows: pa.Table) -> None:
        """Append a piece, unless it or a later one is there."""
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
    """The changes of a state, version by version, from when the stream began.

    What is missing is read from the state, so a crash between the commit of an update
    and that of its changes is made up for.
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
        """Make the feed, if there is none: it begins after a version.

        Raises:
            OutputError: the feed is that of another state.
        """
        last = self._table.last()
        if last is None:
            self._table.append(version, self._changes(version, version))
        else:
            require_feed_of(version, last, self._table.place)

    def publish(self, version: int) -> None:
        """Write all changes up to a version that are not there."""
        last = self._table.last()
        since = version - 1 if last is None else last
        if since < version:
            self._table.append(version, self._changes(since, version))

    def _changes(self, since: int, until: int) -> pa.Table:
        return lake.change_table(
            self._state, since=since, until=until, storage_options=self._options
        )


def dead_letters(batch: int, events: Sequence[BadEvent]) -> pa.Table:
    """Bad events as rows."""
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
    """A stream that cannot begin, or cannot go on."""

    code: ClassVar[str] = "EM811"


@dataclass(frozen=True, slots=True)
class StreamSource:
    """Where events come from.

    Attributes:
        format: `json` or `csv` for folders of files with an event on each line, or any
            format of Structured Streaming with a column `value` (such as `kafka`) or
            with columns `sign`, `predicate` and `values` (such as `parquet`).
        path: the folder, for formats that have one.
        options: of the format; `maxFilesPerTrigger` and the like bound a batch.
        events: for a column `value`, what is in it: `json` or `csv`.
        schema: of the columns, where the format needs to be told.
    """

    format: str = "json"
    path: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    events: str = "json"
    schema: str | None = None


@dataclass(slots=True)
class StreamReport:
    """What a stream did.

    Attributes:
        batches: batches that were maintained; `skipped` were maintained before.
        events: how many there were; `bad` of them are dead letters.
        added, removed: facts that came and left.
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
        for name, (came, left) in change.sizes.items():
            sums = self.changes.setdefault(name, {"added": 0, "removed": 0})
            sums["added"] += came
            sums["removed"] += left
            self.added += came
            self.removed += left


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
        source: where events come from.
        app_id: under which batches are numbered in the state; one for each stream.
        checkpoint: where it is kept what has been read.
        feed: a table of changes (`version`, `sign`, `predicate`, `values`).
        dead_letters: a table of bad events (`batch`, `position`, `event`, `reason`):
            those that cannot be read, and those that make the update fail. Without
            it, an update that fails ends the stream.
        trigger: `"once"` for what there is now, or seconds between batches.
        spark: the session to read events with.
        stop: ends a stream with a trigger in seconds when it is set.
        on_batch: is told the sums so far after every batch.
        storage_options: for state and tables, as `deltalake` takes them.

    Raises:
        StreamError: the stream cannot begin, or events cannot be read.
        EvermatError: an update failed; everything is as it was before its batch.
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
    """Seconds between batches; None for what there is now."""
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
        kb: what is maintained.
        source: where events come from.
        app_id: under which batches are numbered.
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
        """Whether the state has seen a batch."""
        last = self.kb.last_batch(self.app_id)
        return last is not None and number <= last

    def require_own_dead_letters(self) -> None:
        """Refuse dead letters of batches that are yet to come: new ones would be lost.

        Raises:
            OutputError: there are some.
        """
        last = None if self.dead_letters is None else self.dead_letters.last()
        known = self.kb.last_batch(self.app_id)
        # Those of the batch that was under way when a stream ended are its own.
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
        """Take note of a batch that was maintained before."""
        self.report.skipped += 1

    def maintain(self, number: int, raw: Iterable[object], form: str) -> None:
        """Maintain a batch.

        Args:
            number: of the batch.
            raw: its events, in the order in which they happened.
            form: how they are written, one of `PARSERS`.
        """
        events = read_events(raw, PARSERS[form], self.kb.predicates)
        # Dead letters first: if this is as far as we come, the batch is read again,
        # finds the same ones, and does not write them twice.
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
