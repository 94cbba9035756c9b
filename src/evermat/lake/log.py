"""The log of a state: its entries, and the other files that Delta keeps with them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum, auto
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction, RemoveAction

from evermat.errors import gist
from evermat.errors.redaction import (
    SecretsInUse,
    keep_secret_options,
    without_secrets,
)
from evermat.lake.errors import DamagedStateError, ForeignCommitError, StateError
from evermat.lake.layout import NARROWEST, DataFile, listed, part_of, width_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from deltalake import Transaction
    from typing_extensions import Buffer

    Action = tuple[str, Mapping[str, Any]]
    """A line of an entry: the kind of the action, and its fields."""


# ----------------------------------------------------------------------------- storage


def uri_of(place: str) -> str:
    """Return the URI of a place, which may be a path."""
    return place if "://" in place else Path(place).absolute().as_uri()


def open_folder(uri: str, options: Mapping[str, str]) -> pyarrow.fs.FileSystem:
    """Open the folder of a table, with the credentials of the options."""
    address = urlsplit(uri)
    if address.scheme == "file":
        # On a disk, `deltalake` writes to temporary files that `vacuum` does not list,
        # and that remain if the writer is killed.
        folder = unquote(address.path)
        return pyarrow.fs.SubTreeFileSystem(folder, pyarrow.fs.LocalFileSystem())
    return pyarrow.fs.PyFileSystem(_Store(uri, dict(options)))


class _Store(DeltaStorageHandler):
    def open_output_stream(
        self, path: str, metadata: dict[str, str] | None = None
    ) -> pa.PythonFile:
        return pa.PythonFile(_Upload(self._handler.open_output_stream(path, metadata)))


class _Upload:
    """A stream of `deltalake`, which accepts bytes, while Arrow writes buffers."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401  it has no public type
        self._stream = stream

    def write(self, data: Buffer) -> int:
        written: int = self._stream.write(bytes(data))
        return written

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  any of its
        return getattr(self._stream, name)


# ----------------------------------------------------------------------------- entries

# Entries of the log: the contents of a version and their digests.
#
# Delta writes the entry of a commit; Evermat adds strings of its own. They list all
# files of the version with their digests, so a version is read from its own entry, and
# damage to an entry does not affect other versions. A digest covers these strings, and
# within them another one covers the actions passed to Delta.

WRITER = "evermat"
"""The application id by which updates are numbered: if two writers use the same number,
Delta lets only one of them commit."""
_UPDATE, _CONTENTS, _DIGEST = "evermat", "evermatContents", "evermatDigest"
_COVERED = {
    "add": (
        "path",
        "size",
        "partitionValues",
        "modificationTime",
        "dataChange",
        "stats",
    ),
    "remove": ("path", "size", "partitionValues", "dataChange", "deletionTimestamp"),
    "txn": ("appId", "version"),
}
"""Fields of actions that Evermat passes to Delta; Delta may add others."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a version.

    Attributes:
        time: the time of its commit, in milliseconds.
        table: Delta's id of the table; empty before that is known.
        width: the number of argument columns.
        number: the number of updates so far.
        batches: the last batch of each application.
        oldest: the oldest version whose files were not vacuumed.
        restored: the version that this one repeats; None if it follows the previous
            one.
        is_lost: whether the contents are unknown, because the entry replaces a damaged
            one. Delta reads from it what the following entries need.
        checkpoint: the name and the digest of the last checkpoint of the log.
        actions: a digest of the actions; None if Delta chooses them.
    """

    version: int = 0
    time: int = 0
    table: str = ""
    width: int = NARROWEST
    number: int = 0
    batches: Mapping[str, int] = field(default_factory=dict)
    oldest: int = 0
    restored: int | None = None
    is_lost: bool = False
    checkpoint: tuple[str, str] | None = None
    actions: str | None = None
    files: Mapping[str, DataFile] = field(default_factory=dict)

    def as_metadata(self, update: Mapping[str, Any] | None = None) -> dict[str, str]:
        """Return the metadata of the entry.

        Args:
            update: a description of the update, for people and for the change feed.
        """
        fields = {name: getattr(self, name) for name in _PLAIN}
        files = {
            file.path: [file.rows, file.size, file.digest]
            for file in self.files.values()
        }
        contents = json.dumps({**fields, "files": files})
        texts = {} if update is None else {_UPDATE: json.dumps(dict(update))}
        texts[_CONTENTS] = contents
        return {**texts, _DIGEST: _digest(texts)}


_PLAIN = (
    "version",
    "time",
    "table",
    "width",
    "number",
    "batches",
    "oldest",
    "restored",
    "is_lost",
    "checkpoint",
    "actions",
)


class Origin(Enum):
    """The author of a commit."""

    EVERMAT = auto()
    OLDER_EVERMAT = auto()
    """A version of Evermat without digests."""
    TIDYING = auto()
    """Another program, which changed no contents."""
    OTHERS = auto()


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An intact entry of the log.

    Attributes:
        info: Delta's information about the commit.
        update: Evermat's description of an update.
        contents: the contents of the version; None if they are not recorded.
    """

    version: int
    actions: tuple[Action, ...]
    info: Mapping[str, Any]
    update: Mapping[str, Any] | None
    contents: Contents | None

    @property
    def origin(self) -> Origin:
        """The author of the commit."""
        if self.contents is not None:
            return Origin.EVERMAT
        if self.update is not None or self.info.get("operation") in _BY_OLDER:
            return Origin.OLDER_EVERMAT
        changes = any(
            kind not in {"commitInfo", "txn"} or fields.get("appId") == WRITER
            for kind, fields in self.actions
        )
        return Origin.OTHERS if changes else Origin.TIDYING


_BY_OLDER = ("CREATE TABLE", "ADD COLUMN")


def read_entry(version: int, data: bytes) -> LogEntry:
    """Read and verify an entry.

    Raises:
        ValueError: it is damaged; also KeyError, TypeError and AttributeError.
    """
    actions = []
    # Not `splitlines`, which also splits at other characters within strings.
    for line in data.decode("utf-8").strip("\n").split("\n"):
        ((kind, fields),) = json.loads(line).items()
        _require(isinstance(fields, dict), f"`{kind}` has no fields")
        actions.append((kind, fields))
    info: Mapping[str, Any] = next(
        (fields for kind, fields in actions if kind == "commitInfo"), {}
    )
    texts = {name: info[name] for name in (_UPDATE, _CONTENTS) if name in info}
    contents = None
    if _CONTENTS in info or _DIGEST in info:
        _require(info.get(_DIGEST) == _digest(texts), "its digest does not fit")
        contents = _contents(json.loads(info[_CONTENTS]))
        _require(contents.version == version, f"it belongs to {contents.version}")
        expected = contents.actions
        fits = expected is None or expected == digest_of_actions(actions)
        _require(fits, "what it tells Delta changed")
    update = json.loads(texts[_UPDATE]) if _UPDATE in texts else None
    return LogEntry(version, tuple(actions), info, update, contents)


def digest_of_actions(actions: Iterable[Action]) -> str:
    """Return a digest of the actions that an entry passes to Delta."""
    covered = [
        json.dumps([kind, [fields.get(name) for name in _COVERED.get(kind, fields)]])
        for kind, fields in actions
        if kind != "commitInfo"
    ]
    return sha256("\n".join(sorted(covered)).encode()).hexdigest()


def as_logged(action: AddAction | RemoveAction | Transaction) -> Action:
    """Return an action in the form of the log."""
    match action:
        case AddAction():
            return "add", {
                "path": action.path,
                "size": action.size,
                "partitionValues": dict(action.partition_values),
                "modificationTime": action.modification_time,
                "dataChange": action.data_change,
                "stats": action.stats,
            }
        case RemoveAction():
            return "remove", {
                "path": action.path,
                "size": action.size,
                "partitionValues": action.partition_values,
                "dataChange": action.data_change,
                "deletionTimestamp": action.deletion_timestamp,
            }
        case _:
            return "txn", {"appId": action.app_id, "version": action.version}


def _contents(data: dict[str, Any]) -> Contents:
    files = {
        path: DataFile(path, part_of(path), rows, size, digest)
        for path, (rows, size, digest) in data.pop("files").items()
    }
    checkpoint = data.pop("checkpoint")
    return Contents(
        **data,
        checkpoint=None if checkpoint is None else (checkpoint[0], checkpoint[1]),
        files=files,
    )


def _digest(texts: Mapping[str, str]) -> str:
    return sha256("\n".join(texts.values()).encode()).hexdigest()


def _require(fits: bool, reason: str) -> None:  # noqa: FBT001  used like an assertion
    if not fits:
        raise ValueError(reason)


# ----------------------------------------------------------------------------- the log

FOLDER = "_delta_log"
LATEST = f"{FOLDER}/_evermat_latest.json"
"""Records the latest version. It is written after a commit. Nothing depends on it,
except that the entry it names is known to be missing if it is."""
LAST_CHECKPOINT = f"{FOLDER}/_last_checkpoint"
_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\b.*\.parquet")


class Log:
    """The entries of the log of a state.

    Attributes:
        place: the path or URI of the state, as the user wrote it.
        options: options for remote storage, in the form of `deltalake`.
    """

    def __init__(self, place: str, options: Mapping[str, str]) -> None:
        self.place = place
        self.options = options
        self._secrets = SecretsInUse()
        keep_secret_options(options, self._secrets)

    @cached_property
    def storage(self) -> pyarrow.fs.FileSystem:
        """The folder of the state."""
        return open_folder(uri_of(self.place), self.options)

    # ------------------------------------------------------------------------ files

    def names(self) -> list[str]:
        """Return the names of all files of the log."""
        selector = pyarrow.fs.FileSelector(FOLDER, allow_not_found=True)
        return [info.base_name for info in self.storage.get_file_info(selector)]

    def versions(self) -> list[int]:
        """Return the versions with an entry, the oldest first."""
        found = (_ENTRY.fullmatch(name) for name in self.names())
        return sorted(int(match[1]) for match in found if match)

    def latest(self) -> int:
        """Return the number of the latest version; -1 if there is none."""
        return max([self.noted(), *self.versions()])

    def checkpoints(self) -> list[tuple[int, str]]:
        """Return the checkpoints of the log: their versions and paths."""
        found = (_CHECKPOINT.fullmatch(name) for name in self.names())
        return sorted((int(at[1]), f"{FOLDER}/{at[0]}") for at in found if at)

    def write(self, path: str, data: bytes) -> None:
        """Write a file of the state."""
        with self.storage.open_output_stream(path) as stream:
            stream.write(data)

    def read(self, path: str) -> bytes:
        """Return the bytes of a file of the state."""
        with self.storage.open_input_file(path) as stream:
            data: bytes = stream.read()
            return data

    # ---------------------------------------------------------------------- entries

    def entry(self, version: int) -> LogEntry:
        """Return the entry of a version.

        Raises:
            DamagedStateError: it differs from what was written, or is missing.
        """
        path = entry_path(version)
        try:
            return read_entry(version, self.read(path))
        except FileNotFoundError as error:
            raise DamagedStateError(
                path, self.place, "it is missing"
            ) from without_secrets(error)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"the entry of the log is damaged: {error}"
            raise DamagedStateError(path, self.place, reason) from without_secrets(
                error
            )

    def contents(self, version: int) -> Contents:
        """Return the contents of a version.

        Raises:
            DamagedStateError: they are unknown, because an entry is damaged.
            ForeignCommitError: another program has changed the table.
        """
        for each in range(version, -1, -1):
            entry = self.entry(each)
            if entry.contents is not None:
                if entry.contents.is_lost:
                    raise self._lost(each)
                return entry.contents
            if entry.origin is Origin.OTHERS:
                raise self.foreign(entry)
            if entry.origin is Origin.OLDER_EVERMAT:
                return self._older_contents(version, entry)
        raise DamagedStateError(FOLDER, self.place, "no entry says what the state is")

    def _older_contents(self, version: int, newest: LogEntry) -> Contents:
        """Return the contents of a version that was written without digests."""
        batches: dict[str, int] = {}
        for each in range(newest.version, -1, -1):
            entry = self.entry(each)
            if entry.update is not None and entry.update.get("batch"):
                batches.setdefault(*entry.update["batch"])
            if entry.origin is Origin.OTHERS:
                raise self.foreign(entry)
            if entry.contents is not None:
                # Once a state has digests, all later versions have them.
                if newest.update is None:
                    raise self.foreign(newest)
                path = entry_path(newest.version)
                raise DamagedStateError(path, self.place, "it lost its digest")
        try:
            table = DeltaTable(self.place, version, storage_options=dict(self.options))
            return replace(as_delta_sees(table), batches=batches)
        except Exception as error:  # noqa: BLE001  converted to an error of Evermat
            # The entries are intact as far as can be checked, so a checkpoint is
            # damaged.
            reason = f"Delta cannot read version {version}: {gist(str(error))}"
            raise DamagedStateError(FOLDER, self.place, reason) from without_secrets(
                error
            )

    def _lost(self, version: int) -> StateError:
        return StateError(
            f"read version {version} of the state at `{self.place}`",
            "its entry of the log was damaged, and replaced when the state was mended",
            help="other versions are there: `evermat store verify` lists them",
        )

    def foreign(self, entry: LogEntry) -> ForeignCommitError:
        """Return the error for another program's commit."""
        info = entry.info
        engine = info.get("engineInfo") or "an unknown engine"
        commit = f"{info.get('operation', 'a commit')} by {engine}"
        if isinstance(info.get("timestamp"), int):
            moment = datetime.fromtimestamp(info["timestamp"] / 1000, UTC)
            commit += f" at {moment.isoformat(' ', 'seconds')}"
        path = entry_path(entry.version)
        return ForeignCommitError(entry.version, path, self.place, commit)

    def given_up(self) -> set[int]:
        """Return the versions that were abandoned when earlier ones were restored."""
        found: set[int] = set()
        for version in self.versions():
            try:
                contents = self.entry(version).contents
            except DamagedStateError:
                continue
            if contents is not None and contents.restored is not None:
                found.update(range(contents.restored + 1, version))
            if contents is not None and contents.is_lost:
                found.add(version)
        return found

    def oldest(self) -> int:
        """Return the oldest version whose files were not vacuumed, as far as known."""
        for version in reversed(self.versions()):
            try:
                contents = self.entry(version).contents
            except DamagedStateError:
                continue
            if contents is not None:
                return contents.oldest
        return 0

    def entries(self, first: int, last: int) -> Iterator[LogEntry]:
        """Yield the entries of some versions."""
        for version in range(first, last + 1):
            yield self.entry(version)

    # ------------------------------------------------------------ the latest version

    def noted(self) -> int:
        """Return the recorded latest version; -1 if it is not known."""
        try:
            data = json.loads(self.read(LATEST))
            version = data["version"]
            is_whole = data["digest"] == _digest_of_version(version)
        except (OSError, ValueError, KeyError, TypeError):
            return -1
        return version if is_whole and isinstance(version, int) else -1

    def note(self, version: int) -> None:
        """Record the latest version, if the storage permits."""
        text = json.dumps({"version": version, "digest": _digest_of_version(version)})
        try:
            self.write(LATEST, text.encode())
        except OSError:
            # Only the commit matters, and it is complete.
            return


def entry_path(version: int) -> str:
    """Return the path of the entry of a version."""
    return f"{FOLDER}/{version:020}.json"


def as_delta_sees(table: DeltaTable) -> Contents:
    """Return the contents of a version from the log alone, without digests."""
    return Contents(
        version=table.version(),
        table=str(table.metadata().id),
        width=width_of([field.name for field in table.schema().fields]),
        number=table.transaction_version(WRITER) or 0,
        files={file.path: file for file in listed(table)},
    )


def without_digests(contents: Contents) -> Contents:
    """Return the contents without digests, for a comparison with those of Delta."""
    return replace(
        contents,
        time=0,
        batches={},
        oldest=0,
        restored=None,
        is_lost=False,
        checkpoint=None,
        actions=None,
        files={
            path: replace(file, digest=None, stats="{}", is_change=True)
            for path, file in contents.files.items()
        },
    )


def _digest_of_version(version: object) -> str:
    return sha256(f"evermat {version}".encode()).hexdigest()
