"""Integrity: whether a state is unchanged since it was written, and if not, where."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError

from evermat.errors.redaction import without_secrets
from evermat.io.digested_parquet import DamagedParquetError, DigestedFile
from evermat.lake.errors import (
    DamagedStateError,
    ForeignCommitError,
    StateError,
    no_state,
    require_folder,
    step,
)
from evermat.lake.layout import PART, PROGRAM, schema
from evermat.lake.log import (
    FOLDER,
    LAST_CHECKPOINT,
    LATEST,
    WRITER,
    Log,
    Origin,
    as_delta_sees,
    entry_path,
    without_digests,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from evermat.lake.layout import DataFile
    from evermat.lake.log import Contents, LogEntry


# ------------------------------------------------------------------------------ damage

SETTINGS = {
    # Versions are kept until they are vacuumed, not until another writer's clock
    # decides.
    "delta.enableExpiredLogCleanup": "false",
    "delta.dataSkippingNumIndexedCols": "2",
}
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
"""The capabilities required of readers and writers of the table."""
CHECKPOINT_EVERY = 100
"""The versions between checkpoints, before which Delta need not read entries."""


# ----------------------------------------------------------------------- data files


@contextmanager
def open_file(log: Log, file: DataFile) -> Iterator[DigestedFile]:
    """Open a data file; its rows are verified as they are read.

    Raises:
        DamagedStateError: the file differs from what was written, or is missing.
    """
    try:
        with log.storage.open_input_file(file.path) as stream:
            yield DigestedFile(stream, file.digest, file.size)
    except FileNotFoundError as error:
        if file.digest is None:
            raise  # it may have been vacuumed, which older states do not record
        raise DamagedStateError(
            file.path, log.place, "it is missing"
        ) from without_secrets(error)
    except (DamagedParquetError, pa.ArrowException) as error:
        raise DamagedStateError(file.path, log.place, str(error)) from without_secrets(
            error
        )


def verify_file(log: Log, file: DataFile) -> None:
    """Read a data file, and raise an error if it differs from what was written."""
    with open_file(log, file) as found:
        found.verify()


# ------------------------------------------------------------------------- versions


@contextmanager
def with_advice(log: Log) -> Iterator[None]:
    """Name an intact version in the error if another one is damaged."""
    try:
        yield
    except (DamagedStateError, ForeignCommitError) as error:
        error.help = error.help or _advice(log)
        raise


def _advice(log: Log) -> str:
    version = newest_whole(log)
    if version is None:
        return "no version of the state is whole; take it from a backup"
    return (
        f"version {version} is the newest that is whole: "
        f"`KnowledgeBase.open({log.place!r}, version={version})` reads it, and "
        f"`evermat store restore {log.place} --to {version}` goes on from it"
    )


def newest_whole(log: Log) -> int | None:
    """Return the latest version that is intact, if there is one."""
    known: dict[str, bool] = {}
    given_up = log.given_up()
    for version in range(log.latest(), log.oldest() - 1, -1):
        if version in given_up:
            continue
        try:
            contents = log.contents(version)
        except (StateError, OSError):
            continue
        files = contents.files.values()
        # A state without a program has no contents yet.
        is_empty = all(file.part != PROGRAM for file in files)
        if not is_empty and all(_is_whole(log, file, known) for file in files):
            return version
    return None


def _is_whole(log: Log, file: DataFile, known: dict[str, bool]) -> bool:
    """Return whether a file is intact; results are cached across versions."""
    if file.path not in known:
        try:
            verify_file(log, file)
        except (StateError, OSError):
            known[file.path] = False
        else:
            known[file.path] = True
    return known[file.path]


# ---------------------------------------------------------------------- Delta's log


def opened_by_delta(log: Log) -> tuple[DeltaTable, Contents]:
    """Return the table as `deltalake` reads it, which must agree with the last entry.

    Raises:
        TableNotFoundError: there is no table.
        DamagedStateError: a file of the log is damaged.
        ForeignCommitError: another program has changed the table.
    """
    try:
        delta = DeltaTable(log.place, storage_options=dict(log.options))
    except TableNotFoundError:
        if log.latest() < 0:
            raise
        _raise_damage(log)
        raise DamagedStateError(FOLDER, log.place, "Delta finds no table") from None
    except Exception:
        _raise_damage(log)
        raise
    latest = delta.version()
    if latest < log.noted():
        raise DamagedStateError(entry_path(latest + 1), log.place, "it is missing")
    contents = log.contents(latest)
    if not _agrees(delta, contents):
        _raise_damage(log)
        raise DamagedStateError(FOLDER, log.place, "Delta reads another state from it")
    return delta, contents


def _agrees(delta: DeltaTable, contents: Contents) -> bool:
    """Return whether the version that Delta reads agrees with its entry."""
    expected = without_digests(replace(contents, version=delta.version()))
    found = as_delta_sees(delta)
    if not expected.table:  # before the table was created, its id was not known
        found = replace(found, table="")
    about = delta.metadata()
    protocol = delta.protocol()
    return (
        found == expected
        and [protocol.min_reader_version, protocol.min_writer_version]
        == [*PROTOCOL.values()]
        and about.partition_columns == [PART]
        and about.configuration == SETTINGS
        and _columns(delta.schema()) == _columns(_schema(contents.width))
    )


def _schema(width: int) -> Schema:
    return Schema.from_arrow(schema(width))


def _columns(found: Schema) -> dict[str, str]:
    return {field.name: str(field.type) for field in found.fields}


def _raise_damage(log: Log) -> None:
    """Raise an error that names the file that makes Delta fail, if there is one."""
    try:
        problem = next(problems_of_log(log), None)
    except OSError:  # the storage itself does not respond
        return
    if problem is not None:
        raise problem


def problems_of_log(log: Log) -> Iterator[DamagedStateError | ForeignCommitError]:
    """Yield all problems of the files of a log."""
    replay = _Replay()
    given_up = log.given_up()
    checkpoints: dict[str, str] = {}
    for version in range(log.latest() + 1):
        try:
            entry = log.entry(version)
        except DamagedStateError as error:
            replay.lose()
            yield error
            continue
        if entry.origin is Origin.OTHERS and version not in given_up:
            yield log.foreign(entry)
        if not _follows(replay, entry):
            reason = "what it tells Delta is not what it says of its version"
            yield DamagedStateError(entry_path(version), log.place, reason)
        if entry.contents is not None and entry.contents.checkpoint is not None:
            checkpoints.update([entry.contents.checkpoint])
    yield from _problems_of_checkpoints(log, checkpoints)
    if LATEST.removeprefix(f"{FOLDER}/") in log.names() and log.noted() < 0:
        yield DamagedStateError(
            LATEST, log.place, "it is damaged; nothing relies on it"
        )


def _follows(replay: _Replay, entry: LogEntry) -> bool:
    try:
        return replay.follow(entry)
    except Exception:  # noqa: BLE001  any inconsistency in the actions
        return False


class _Replay:
    """Replays the entries of a log like Delta."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[int, int]] | None = {}
        self._about: Mapping[str, Any] | None = None
        self._number: int | None = 0

    def lose(self) -> None:
        """Forget the state before an entry that cannot be read."""
        self._files = self._about = self._number = None

    def follow(self, entry: LogEntry) -> bool:
        """Replay an entry; return whether its contents agree with what Delta reads."""
        for kind, fields in entry.actions:
            if kind == "metaData":
                self._about = fields
            elif kind == "add" and self._files is not None:
                rows = json.loads(fields["stats"])["numRecords"]
                self._files[fields["path"]] = (rows, fields["size"])
            elif kind == "remove" and self._files is not None:
                self._files.pop(fields["path"], None)
            elif kind == "txn" and fields["appId"] == WRITER:
                self._number = fields["version"]
        contents = entry.contents
        if contents is None:
            return True
        if any(kind == "protocol" and it != PROTOCOL for kind, it in entry.actions):
            return False
        files = {file.path: (file.rows, file.size) for file in contents.files.values()}
        fits = (
            self._files in (None, files)
            and self._number in (None, contents.number)
            and self._describes(contents)
        )
        self._files, self._number = files, contents.number
        return fits

    def _describes(self, contents: Contents) -> bool:
        about = self._about
        if about is None:
            return True
        columns = _columns(Schema.from_json(about["schemaString"]))
        return (
            contents.table in ("", about["id"])
            and about["partitionColumns"] == [PART]
            and about["configuration"] == SETTINGS
            and columns == _columns(_schema(contents.width))
        )


# ---------------------------------------------------------------------- checkpoints


def record_checkpoint(log: Log, delta: DeltaTable) -> tuple[str, str] | None:
    """Write a checkpoint if one is due; return its path and digest.

    Entries contain all the information of checkpoints, so a failure is harmless.
    """
    version = delta.version()
    if version % CHECKPOINT_EVERY:
        return None
    try:
        delta.create_checkpoint()
        path = next(path for at, path in log.checkpoints() if at == version)
        return path, sha256(log.read(path)).hexdigest()
    except Exception:  # noqa: BLE001  only the commit matters, and it is complete
        return None


def _problems_of_checkpoints(
    log: Log, digests: Mapping[str, str]
) -> Iterator[DamagedStateError]:
    found = dict(log.checkpoints())
    for version, path in found.items():
        if path in digests:
            is_whole = sha256(log.read(path)).hexdigest() == digests[path]
        else:
            is_whole = _reads_well(log, version)
        if not is_whole:
            yield DamagedStateError(path, log.place, "the checkpoint is damaged")
    if LAST_CHECKPOINT.removeprefix(f"{FOLDER}/") in log.names():
        try:
            named = json.loads(log.read(LAST_CHECKPOINT))["version"]
        except (ValueError, KeyError, TypeError):
            named = None
        if named not in found:
            reason = "it is damaged, or names a checkpoint that is missing"
            yield DamagedStateError(LAST_CHECKPOINT, log.place, reason)


def _reads_well(log: Log, version: int) -> bool:
    """Return whether Delta can read a version that has a checkpoint."""
    try:
        delta = DeltaTable(log.place, version, storage_options=dict(log.options))
        return _agrees(delta, log.contents(version))
    except Exception:  # noqa: BLE001  any error of Delta means damage
        return False


# ------------------------------------------------------------------------ verification


@dataclass(frozen=True, slots=True)
class Problem:
    """A file of a state that is damaged, missing, or was written by another program.

    Attributes:
        versions: the versions that cannot be read because of it; empty for files that
            no version needs.
    """

    file: str
    reason: str
    versions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of verifying a state.

    Attributes:
        versions: the versions that can be read.
        oldest: the oldest version that was not vacuumed.
        latest: the latest version.
        files: the number of data files that were read.
        size: their size in bytes.
        without_digest: how many of them were written by earlier versions of Evermat,
            without digests, so that little could be verified.
        problems: the problems found.
        left_behind: problems of files that only abandoned versions need, after the
            state was restored to an earlier one; they stay until they are vacuumed.
    """

    place: str
    versions: tuple[int, ...]
    oldest: int
    latest: int
    files: int
    size: int
    without_digest: int
    problems: tuple[Problem, ...]
    left_behind: tuple[Problem, ...]

    @property
    def is_whole(self) -> bool:
        """Whether there are no problems."""
        return not self.problems


def verify(
    place: str | Path, *, storage_options: Mapping[str, str] | None = None
) -> Verification:
    """Check everything: all versions that were not vacuumed, their files, and the log.

    Args:
        place: the path or URI of the state.
        storage_options: options for remote storage, in the form of `deltalake`.

    Raises:
        StateError: there is no state, or the place cannot be read.
    """
    require_folder(place)
    log = Log(str(place), dict(storage_options or {}))
    with step(f"verify the state at `{place}`"):
        if log.latest() < 0:
            raise no_state(place)
        return _Verifier(log).run()


class _Verifier:
    """Checks one version after the other, and each file once."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._latest = log.latest()
        self._files: dict[str, DataFile] = {}
        self._damage: dict[str, StateError | None] = {}
        self._reasons: dict[str, str] = {}
        self._spoiled: dict[str, list[int]] = {}

    def run(self) -> Verification:
        log, latest = self._log, self._latest
        for problem in problems_of_log(log):
            self._add(problem, problem.file)
        oldest, given_up = log.oldest(), log.given_up()
        readable = [
            version
            for version in range(oldest, latest + 1)
            if self._is_readable(version, is_given_up=version in given_up)
        ]
        problems: list[Problem] = []
        left_behind: list[Problem] = []
        for file, reason in self._reasons.items():
            spoiled = tuple(self._spoiled[file])
            matters = not spoiled or not given_up.issuperset(spoiled)
            (problems if matters else left_behind).append(
                Problem(file, reason, spoiled)
            )
        return Verification(
            place=log.place,
            versions=tuple(readable),
            oldest=oldest,
            latest=latest,
            files=len(self._files),
            size=sum(file.size for file in self._files.values()),
            without_digest=sum(each.digest is None for each in self._files.values()),
            problems=tuple(problems),
            left_behind=tuple(left_behind),
        )

    def _is_readable(self, version: int, *, is_given_up: bool) -> bool:
        try:
            contents = self._log.contents(version)
        except StateError as error:
            # Foreign commits in an abandoned version are no longer a problem.
            if not is_given_up:
                self._add(error, getattr(error, "file", FOLDER), version)
            return False
        is_readable = True
        for file in contents.files.values():
            problem = self._problem(file)
            if problem is None:
                continue
            is_readable = False
            # Older states do not record what was vacuumed.
            is_vacuumed = isinstance(problem.__cause__, FileNotFoundError)
            if file.digest or not is_vacuumed or version == self._latest:
                self._add(problem, file.path, version)
        return is_readable

    def _problem(self, file: DataFile) -> StateError | None:
        """Return the problem of a file, if any, cached because versions share files."""
        if file.path not in self._files:
            self._files[file.path] = file
            self._damage[file.path] = None
            try:
                with step(f"read `{file.path}` of the state at `{self._log.place}`"):
                    verify_file(self._log, file)
            except StateError as error:
                self._damage[file.path] = error
        return self._damage[file.path]

    def _add(self, error: StateError, file: str, version: int | None = None) -> None:
        self._reasons.setdefault(file, error.cause)
        spoiled = self._spoiled.setdefault(file, [])
        if version is not None:
            spoiled.append(version)
