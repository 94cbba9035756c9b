"""The versions of a state: their history, vacuuming, and restoring earlier ones."""

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
"""The number of files removed in parallel, as object stores are slow."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a state.

    Attributes:
        time: the time of its commit.
        added, removed: the numbers of facts of each relation added and removed.
        batch: the application and the number of the batch recorded with it.
        changes: the files with its changes.
        is_update: whether an update created it; false for maintenance of the table.
        restored: the version that it repeats, if one was restored.
        files: the same as `changes`, with digests.
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
    """Describe the version of an entry of the log."""
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
        place: the path or URI of the state.
        keep: the number of latest versions that remain readable.
        hours: files that were written or abandoned within this time are kept as well.
            With concurrent updates it must be at least the hours that these take: their
            files are not known yet.
        storage_options: options for remote storage, in the form of `deltalake`.

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
            # Readers that miss the files must know why, even if this is interrupted.
            table.tidy(oldest)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(storage.delete_file, unneeded))
    return unneeded


def _oldest_to_keep(table: StateTable, keep: int, since: datetime) -> int:
    """Return the oldest version that remains readable."""
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
        StateError: the files are not known, so nothing must be removed.
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
    """Return the table of a state that must exist."""
    table = StateTable.open(place, version=version, options=options)
    if table is None:
        raise no_state(place)
    return table


# --------------------------------------------------------------------------- restoring

# Restoring a version of a state, even if later versions are damaged.
#
# A version is restored by a new commit that repeats it. Delta has to read the log for
# this. A damaged entry is replaced by one from which Delta reads what the entries
# around it say, and checkpoints, which only repeat entries, are written again.

_UNDISTURBED = PostCommitHookProperties(
    create_checkpoint=False, cleanup_expired_logs=False
)


def restore(
    place: str | Path, *, to: int, storage_options: Mapping[str, str] | None = None
) -> int:
    """Make a version the latest one again, by a commit that repeats it.

    Nothing is removed: versions in between are kept until they are vacuumed. Damage in
    the log is repaired as far as intact versions need it; a damaged entry is kept next
    to its replacement, with `.damaged` appended to its name.

    Args:
        place: the path or URI of the state.
        to: the version, which must be intact.
        storage_options: options for remote storage, in the form of `deltalake`.

    Returns:
        The number of the latest version.

    Raises:
        RestoringError: the version does not exist, or is damaged itself.
        StateConflictError: another process has committed meanwhile.
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
    """Return the contents of a version, all of which must exist."""
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
    """Commit a version again."""
    # Writers with the state open must not continue, whatever they have committed.
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
    """Remove checkpoints, which only repeat entries."""
    for _, path in log.checkpoints():
        log.storage.delete_file(path)
    if LAST_CHECKPOINT.rpartition("/")[2] in log.names():
        log.storage.delete_file(LAST_CHECKPOINT)


def _mend_entries(log: Log, damaged: set[str]) -> None:
    """Replace all damaged entries."""
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
            # If only Delta's actions are damaged, the contents are known.
            contents = contents or _replacement(entries, version, before)
            about = _description(table, created, contents.width)
            update = None if entry is None else entry.update
            log.write(path, _as_entry(before, contents, about, update))
        before = contents or before


def _identity(entries: Mapping[int, LogEntry | None]) -> tuple[str, int]:
    """Return the id and creation time of the table, from any entry that has them."""
    for entry in entries.values():
        for kind, fields in () if entry is None else entry.actions:
            if kind == "metaData":
                return fields["id"], fields["createdTime"]
    ids = [each.contents.table for each in entries.values() if each and each.contents]
    return max(ids, default="") or str(uuid4()), int(time.time() * 1000)


def _replacement(
    entries: Mapping[int, LogEntry | None], version: int, before: Contents
) -> Contents:
    """Return the contents that Delta must read for the following entries to be valid.

    The next entry has the contents of its version, and its changes.
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
    """Return Delta's description of a table as a whole."""
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
    logged = [*delta_actions(add, remove), Transaction(WRITER, after.number)]
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
        *map(as_logged, logged),
    ]
    lines = [json.dumps({kind: fields}) for kind, fields in actions]
    return "\n".join(lines).encode()
