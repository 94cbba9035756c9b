"""Entries of the log: what a commit says about its version, and digests of it.

Delta writes the entry of a commit; what Evermat has to say goes with it, as texts of
its own. They list all files of the version with their digests, so that a version is
read from its own entry, and damage to an entry is damage to no other version. A digest
covers these texts, and within them another one covers what Delta was told.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum, auto
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from deltalake.transaction import AddAction, RemoveAction

from evermat.lake.data_files import DataFile
from evermat.lake.layout import NARROWEST, part_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from deltalake import Transaction

    Action = tuple[str, Mapping[str, Any]]
    """A line of an entry: the kind of the action, and its fields."""

WRITER = "evermat"
"""The application id under which every update is numbered: of two writers that began
with the same number, Delta lets one commit."""
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
"""Fields of actions that Delta takes from us; it adds others, by its own version."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What a version consists of.

    Attributes:
        time: when it was committed, in milliseconds.
        table: the id that Delta gave to the table; empty before that is known.
        width: for how many arguments there are columns.
        number: how many updates there were.
        batches: the last batch of each application.
        oldest: the oldest version whose files were not vacuumed.
        restored: the version that this one repeats; None if it goes on from the last.
        is_lost: whether nobody knows, because the entry takes the place of a damaged
            one. Delta reads from it what the entries after it need.
        checkpoint: the name and the digest of the last checkpoint of the log.
        actions: a digest of what Delta was told; None where Delta decides about it.
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
        """What goes into the entry.

        Args:
            update: what an update changed, for people and for the feed of changes.
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
    """Who made a commit."""

    EVERMAT = auto()
    OLDER_EVERMAT = auto()
    """A version of Evermat that wrote no digests."""
    TIDYING = auto()
    """Somebody else, who changed nothing."""
    OTHERS = auto()


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of the log that is whole.

    Attributes:
        info: what Delta says about the commit.
        update: what Evermat says about an update.
        contents: what the version consists of; None if it does not say so.
    """

    version: int
    actions: tuple[Action, ...]
    info: Mapping[str, Any]
    update: Mapping[str, Any] | None
    contents: Contents | None

    @property
    def origin(self) -> Origin:
        """Who made the commit."""
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
    # Not `splitlines`, for which some characters within strings end a line.
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
        told = contents.actions
        fits = told is None or told == digest_of_actions(actions)
        _require(fits, "what it tells Delta changed")
    update = json.loads(texts[_UPDATE]) if _UPDATE in texts else None
    return LogEntry(version, tuple(actions), info, update, contents)


def digest_of_actions(actions: Iterable[Action]) -> str:
    """A digest of what an entry tells Delta."""
    covered = [
        json.dumps([kind, [fields.get(name) for name in _COVERED.get(kind, fields)]])
        for kind, fields in actions
        if kind != "commitInfo"
    ]
    return sha256("\n".join(sorted(covered)).encode()).hexdigest()


def as_logged(action: AddAction | RemoveAction | Transaction) -> Action:
    """An action as the log has it."""
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


def _require(fits: bool, reason: str) -> None:  # noqa: FBT001  reads like an assertion
    if not fits:
        raise ValueError(reason)
