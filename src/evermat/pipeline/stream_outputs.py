"""What a stream writes: a feed of changes and a table of dead letters, each row once.

Both are Delta tables. Every append is numbered, in the same commit, with the version or
the batch that it is about, so what was written before a crash is not written again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from evermat import lake
from evermat.lake.errors import step
from evermat.lake.library import deltalake
from evermat.pipeline.problems import require_feed_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evermat.pipeline.stream_events import BadEvent

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
