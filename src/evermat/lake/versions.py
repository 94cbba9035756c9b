"""The versions of a state: what made them, and letting go of old ones."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow.fs
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import PostCommitHookProperties

from evermat.lake.errors import (
    DamagedStateError,
    RestoringError,
    StateConflictError,
    StateError,
    StateSettingsError,
    no_state,
    require_folder,
    step,
)
from evermat.lake.integrity import (
    PROTOCOL,
    SETTINGS,
    newest_whole,
    problems_of_log,
    verify_file,
    with_advice,
)
from evermat.lake.layout import (
    PART,
    DataFile,
    delta_actions,
    part_of,
    row_count,
    schema,
)
from evermat.lake.log import (
    LAST_CHECKPOINT,
    LATEST,
    WRITER,
    Contents,
    Log,
    as_logged,
    entry_path,
)
from evermat.lake.table import StateTable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evermat.lake.log import LogEntry


# ---------------------------------------------------------------------------- versions

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
    """Return the versions of a state, the oldest first."""
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
    """Return the oldest version that stays readable."""
    oldest = max(table.version - keep + 1, table.contents.oldest)
    while oldest > table.contents.oldest:
        # A version is the latest one until the next is committed.
        if version_of(table.log.entry(oldest)).time < since:
            break
        oldest -= 1
    return oldest


def _needed(table: StateTable, oldest: int) -> set[str]:
    """Return the files of some versions.

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
    """Return the table of a state that must be there."""
    table = StateTable.open(place, version=version, options=options)
    if table is None:
        raise no_state(place)
    return table


# -------------------------------------------------------------------------- going back

# Going back to a version of a state, whatever became of the versions after it.
#
# A version is restored by a new commit that repeats it. Delta has to read the log for
# that. An entry that is damaged is replaced by one from which Delta reads what the
# entries around it say, and checkpoints, which only repeat entries, are made anew.

_UNDISTURBED = PostCommitHookProperties(
    create_checkpoint=False, cleanup_expired_logs=False
)


def restore(
    place: str | Path, *, to: int, storage_options: Mapping[str, str] | None = None
) -> int:
    """Make a version the newest one again, by a commit that repeats it.

    Nothing is removed: versions in between stay until they are vacuumed. What is
    damaged in the log is mended as far as the versions that are whole need it; a
    damaged entry is kept beside its replacement, with `.damaged` after its name.

    Args:
        place: where the state is.
        to: the version, which must be whole.
        storage_options: for the storage, as `deltalake` takes them.

    Returns:
        The number of the newest version.

    Raises:
        RestoringError: the version is not there, or is damaged itself.
        StateConflictError: somebody else has committed meanwhile.
        StateError: there is no state, or the place cannot be written.
    """
    require_folder(place)
    log = Log(str(place), dict(storage_options or {}))
    with step(f"restore the state at `{place}`"):
        if log.latest() < 0:
            raise no_state(place)
        contents = _whole(log, to)
        damaged = {
            problem.file
            for problem in problems_of_log(log)
            if isinstance(problem, DamagedStateError)
        }
        if damaged - {LATEST}:
            _mend_entries(log, damaged)
            _remove_checkpoints(log)
            contents = replace(contents, checkpoint=None)
        delta = DeltaTable(log.place, storage_options=dict(log.options))
        if delta.version() > to:
            _repeat(log, delta, to, replace(contents, restored=to))
        log.note(delta.version())
        return int(delta.version())


def _whole(log: Log, version: int) -> Contents:
    """What a version consists of, all of which is there."""
    try:
        if not log.oldest() <= version <= log.latest():
            reason = f"versions go from {log.oldest()} to {log.latest()}"
            raise StateError(f"read version {version}", reason)  # noqa: TRY301
        contents = log.contents(version)
        for file in contents.files.values():
            verify_file(log, file)
    except (StateError, FileNotFoundError) as error:
        newest = newest_whole(log)
        raise RestoringError(
            f"version {version} of the state at `{log.place}` cannot be restored: "
            f"{error.message if isinstance(error, StateError) else error}",
            help="no version is whole; take the state from a backup"
            if newest is None
            else f"the newest version that is whole is {newest}",
        ) from error
    return contents


def _repeat(log: Log, delta: DeltaTable, version: int, contents: Contents) -> None:
    """Commit a version anew."""
    # Writers that have the state open must not go on, whatever they have committed.
    number = (delta.transaction_version(WRITER) or 0) + _lost(log) + 1
    contents = replace(
        contents,
        version=delta.version() + 1,
        time=int(time.time() * 1000),
        table=str(delta.metadata().id),
        number=number,
        oldest=log.oldest(),
        actions=None,
    )
    numbers = {WRITER: number, **contents.batches}
    try:
        delta.restore(
            version,
            protocol_downgrade_allowed=True,
            commit_properties=CommitProperties(
                custom_metadata=dict(contents.as_metadata()),
                max_commit_retries=0,
                app_transactions=[Transaction(*each) for each in numbers.items()],
            ),
            post_commithook_properties=_UNDISTURBED,
        )
    except CommitFailedError as error:
        raise StateConflictError(log.place) from error
    delta.update_incremental()


def _lost(log: Log) -> int:
    return sum(
        entry.contents is not None and entry.contents.is_lost
        for entry in log.entries(0, log.latest())
    )


# ------------------------------------------------------------------ mending the log


def _remove_checkpoints(log: Log) -> None:
    """Remove what repeats entries."""
    for _, path in log.checkpoints():
        log.storage.delete_file(path)
    if LAST_CHECKPOINT.rpartition("/")[2] in log.names():
        log.storage.delete_file(LAST_CHECKPOINT)


def _mend_entries(log: Log, damaged: set[str]) -> None:
    """Replace all entries that are damaged."""
    entries: dict[int, LogEntry | None] = {}
    for version in range(log.latest() + 1):
        try:
            entries[version] = log.entry(version)
        except DamagedStateError:
            entries[version] = None
    before = Contents()
    table, created = _identity(entries)
    for version, entry in entries.items():
        contents = None if entry is None else entry.contents
        path = entry_path(version)
        if path in damaged:
            if path.rpartition("/")[2] in log.names():
                log.write(f"{path}.damaged", log.read(path))
            # Where it is Delta that was told something else, the version is known.
            contents = contents or _replacement(entries, version, before)
            about = _description(table, created, contents.width)
            update = None if entry is None else entry.update
            log.write(path, _as_entry(before, contents, about, update))
        before = contents or before


def _identity(entries: Mapping[int, LogEntry | None]) -> tuple[str, int]:
    """The id of the table, and when it was made, as far as some entry says so."""
    for entry in entries.values():
        for kind, fields in () if entry is None else entry.actions:
            if kind == "metaData":
                return fields["id"], fields["createdTime"]
    ids = [each.contents.table for each in entries.values() if each and each.contents]
    return max(ids, default="") or str(uuid4()), int(time.time() * 1000)


def _replacement(
    entries: Mapping[int, LogEntry | None], version: int, before: Contents
) -> Contents:
    """What Delta must read from an entry so that those after it read well.

    The next entry says what its version consists of, and what it changed.
    """
    lost = replace(before, version=version, is_lost=True, restored=None)
    after = entries.get(version + 1)
    if after is None or after.contents is None:
        return lost
    changed = {kind: set[str]() for kind in ("add", "remove", "metaData")}
    for kind, fields in after.actions:
        if kind in changed:
            changed[kind].add(fields.get("path", ""))
    files = {
        path: file
        for path, file in {**before.files, **after.contents.files}.items()
        if path in changed["remove"]
        or (path in after.contents.files and path not in changed["add"])
    }
    width = before.width if changed["metaData"] else after.contents.width
    return replace(lost, files=files, width=width)


def _description(table: str, created: int, width: int) -> dict[str, Any]:
    """What Delta knows about a table as a whole."""
    return {
        "id": table,
        "name": None,
        "description": None,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": Schema.from_arrow(schema(width)).to_json(),
        "partitionColumns": [PART],
        "createdTime": created,
        "configuration": SETTINGS,
    }


def _as_entry(
    before: Contents,
    after: Contents,
    about: Mapping[str, Any],
    update: Mapping[str, Any] | None,
) -> bytes:
    """Return an entry that leads from one version to another."""
    add = [
        replace(file, stats=row_count(file.rows))
        for path, file in after.files.items()
        if path not in before.files
    ]
    remove = [file for path, file in before.files.items() if path not in after.files]
    told = [*delta_actions(add, remove), Transaction(WRITER, after.number)]
    now = int(time.time() * 1000)
    info = {
        "timestamp": now,
        "operation": "WRITE",
        "operationParameters": {},
        "engineInfo": "evermat",
        **replace(after, actions=None).as_metadata(update),
    }
    actions: list[tuple[str, Mapping[str, Any]]] = [
        ("commitInfo", info),
        ("protocol", PROTOCOL),
        ("metaData", about),
        *map(as_logged, told),
    ]
    lines = [json.dumps({kind: fields}) for kind, fields in actions]
    return "\n".join(lines).encode()
