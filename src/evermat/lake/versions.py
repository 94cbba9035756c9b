"""The versions of a state: what made them, and letting go of old ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow.fs

from evermat.lake.data_files import DataFile
from evermat.lake.errors import StateError, StateSettingsError, no_state, step
from evermat.lake.integrity import with_advice
from evermat.lake.layout import part_of
from evermat.lake.table import StateTable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evermat.lake.entries import LogEntry

_AT_ONCE = 16
"""Files that are removed side by side: stores take their time for each."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a state.

    Attributes:
        time: when it was committed.
        added, removed: how many facts of each relation came and left.
        batch: the application and the number of the batch that was recorded with it.
        changes: the files that say what changed.
        is_update: whether an update made it; false for what only tidies up.
        restored: the version that it repeats, if the state went back to one.
        files: the same as `changes`, with what they are verified by.
    """

    number: int
    time: datetime
    added: Mapping[str, int] = field(default_factory=dict)
    removed: Mapping[str, int] = field(default_factory=dict)
    batch: tuple[str, int] | None = None
    changes: tuple[str, ...] = ()
    is_update: bool = True
    restored: int | None = None
    files: tuple[DataFile, ...] = ()


def history(
    place: str | Path, *, storage_options: Mapping[str, str] | None = None
) -> list[Version]:
    """The versions of a state, the oldest first."""
    table = existing(place, storage_options)
    with step(f"read the log of the state at `{place}`"), with_advice(table.log):
        return [version_of(each) for each in table.log.entries(0, table.version)]


def version_of(entry: LogEntry) -> Version:
    """What an entry of the log says about its version."""
    update, contents = entry.update or {}, entry.contents
    batch, paths = update.get("batch"), update.get("changes", ())
    if contents is None:
        time = entry.info.get("timestamp", 0)
        known: Mapping[str, DataFile] = {
            path: DataFile(path, part_of(path), 0, fields.get("size", 0))
            for kind, fields in entry.actions
            if kind == "add" and (path := fields.get("path"))
        }
    else:
        time, known = contents.time, contents.files
    return Version(
        number=entry.version,
        time=datetime.fromtimestamp(time / 1000, UTC),
        added=update.get("added", {}),
        removed=update.get("removed", {}),
        batch=None if batch is None else (batch[0], batch[1]),
        changes=tuple(paths),
        is_update=entry.update is not None,
        restored=None if contents is None else contents.restored,
        files=tuple(known[path] for path in paths if path in known),
    )


def vacuum(
    place: str | Path,
    *,
    keep: int = 10,
    hours: int = 0,
    storage_options: Mapping[str, str] | None = None,
) -> list[str]:
    """Remove the files that only old versions need, and those of failed updates.

    Args:
        place: where the state is.
        keep: how many versions, the latest ones, stay readable.
        hours: files that were written or left later than this stay as well. Updates
            that are under way while this runs need at least as many hours as they
            take: nothing is known about their files yet.
        storage_options: for the storage, as `deltalake` takes them.

    Returns:
        The files that were removed, relative to the state.
    """
    if keep < 1:
        raise StateSettingsError(
            f"cannot keep {keep} versions", help="keep at least the latest one"
        )
    table = existing(place, storage_options)
    since = datetime.now(UTC) - timedelta(hours=hours)
    with step(f"vacuum the state at `{place}`"), with_advice(table.log):
        oldest = _oldest_to_keep(table, keep, since)
        needed = _needed(table, oldest)
        storage = table.log.storage
        selector = pyarrow.fs.FileSelector("", recursive=True)
        unneeded = sorted(
            info.path
            for info in storage.get_file_info(selector)
            if info.is_file
            and info.path not in needed
            and not _is_hidden(info.path)
            and (not hours or info.mtime < since)
        )
        if oldest > table.contents.oldest:
            # Whoever misses the files is to know why, even if this ends half-way.
            table.tidy(oldest)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(storage.delete_file, unneeded))
    return unneeded


def _oldest_to_keep(table: StateTable, keep: int, since: datetime) -> int:
    """The oldest version that stays readable."""
    oldest = max(table.version - keep + 1, table.contents.oldest)
    while oldest > table.contents.oldest:
        # A version is the latest one until the next is committed.
        if version_of(table.log.entry(oldest)).time < since:
            break
        oldest -= 1
    return oldest


def _needed(table: StateTable, oldest: int) -> set[str]:
    """The files of some versions.

    Raises:
        StateError: nobody can say, and so nothing must be removed.
    """
    found: set[str] = set()
    for version in range(oldest, table.version + 1):
        try:
            found.update(table.log.contents(version).files)
        except StateError:
            if version not in table.log.given_up():
                raise
    return found


def _is_hidden(path: str) -> bool:
    return path.startswith(("_", ".")) or "/." in path or "/_" in path


def existing(
    place: str | Path,
    options: Mapping[str, str] | None = None,
    version: int | None = None,
) -> StateTable:
    """The table of a state that must be there."""
    table = StateTable.open(place, version=version, options=options)
    if table is None:
        raise no_state(place)
    return table
