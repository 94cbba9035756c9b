"""Change events, maintained batch by batch, exactly once across restarts.

The number of a batch is committed with the state, in the same commit as what the batch
changed. After a crash, batches that the state has seen are skipped; the feed is brought
up to date from the state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError
from evermat.pipeline.problems import OutputError
from evermat.pipeline.stream_events import (
    Parser,
    changes_of,
    from_columns,
    from_csv,
    from_json,
    read_events,
)
from evermat.pipeline.stream_isolation import CAUSED_BY_EVENTS, isolate
from evermat.pipeline.stream_outputs import Feed, NumberedTable, dead_letters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from threading import Event

    from pyspark.sql import SparkSession

    from evermat.api import KnowledgeBase
    from evermat.pipeline.stream_events import BadEvent, Events, GoodEvent
    from evermat.results.change import Change

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
        from evermat.pipeline.stream_files import follow_files  # noqa: PLC0415  or the other

        follow_files(worker, str(checkpoint), seconds, stop)
    else:
        from evermat.pipeline.stream_spark import follow_spark  # noqa: PLC0415  slow to load

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
                law="dead letters belong to one state",
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
