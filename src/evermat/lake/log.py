"""The log of a state: its entries, and what else Delta keeps beside them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

import pyarrow.fs
from deltalake import DeltaTable

from evermat.errors import gist
from evermat.lake.data_files import listed
from evermat.lake.entries import WRITER, Contents, LogEntry, Origin, read_entry
from evermat.lake.errors import DamagedStateError, ForeignCommitError, StateError
from evermat.lake.layout import width_of
from evermat.lake.storage import open_folder, uri_of
from evermat.redaction import (
    SecretsInUse,
    keep_secret_options,
    without_secrets,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = "_delta_log"
LATEST = f"{FOLDER}/_evermat_latest.json"
"""Says which version is the latest. It is written after a commit and nothing relies on
it, but an entry that it knows of and that is gone is missed."""
LAST_CHECKPOINT = f"{FOLDER}/_last_checkpoint"
_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\b.*\.parquet")


class Log:
    """The entries of the log of a state.

    Attributes:
        place: where the state is, as it was given.
        options: for the storage, as `deltalake` takes them.
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
        """The names of all files of the log."""
        selector = pyarrow.fs.FileSelector(FOLDER, allow_not_found=True)
        return [info.base_name for info in self.storage.get_file_info(selector)]

    def versions(self) -> list[int]:
        """The versions of which there is an entry, the oldest first."""
        found = (_ENTRY.fullmatch(name) for name in self.names())
        return sorted(int(match[1]) for match in found if match)

    def latest(self) -> int:
        """The number of the latest version; -1 if there is none."""
        return max([self.noted(), *self.versions()])

    def checkpoints(self) -> list[tuple[int, str]]:
        """The checkpoints of the log: their versions and paths."""
        found = (_CHECKPOINT.fullmatch(name) for name in self.names())
        return sorted((int(at[1]), f"{FOLDER}/{at[0]}") for at in found if at)

    def write(self, path: str, data: bytes) -> None:
        """Write a file of the state."""
        with self.storage.open_output_stream(path) as stream:
            stream.write(data)

    def read(self, path: str) -> bytes:
        """The bytes of a file of the state."""
        with self.storage.open_input_file(path) as stream:
            data: bytes = stream.read()
            return data

    # ---------------------------------------------------------------------- entries

    def entry(self, version: int) -> LogEntry:
        """The entry of a version.

        Raises:
            DamagedStateError: it is not what was written, or is gone.
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
        """What a version consists of.

        Raises:
            DamagedStateError: nobody can say, because an entry is damaged.
            ForeignCommitError: others have changed the table.
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
        """What a version consists of that was written without digests."""
        batches: dict[str, int] = {}
        for each in range(newest.version, -1, -1):
            entry = self.entry(each)
            if entry.update is not None and entry.update.get("batch"):
                batches.setdefault(*entry.update["batch"])
            if entry.origin is Origin.OTHERS:
                raise self.foreign(entry)
            if entry.contents is not None:
                # States keep their digests once they have them.
                if newest.update is None:
                    raise self.foreign(newest)
                path = entry_path(newest.version)
                raise DamagedStateError(path, self.place, "it lost its digest")
        try:
            table = DeltaTable(self.place, version, storage_options=dict(self.options))
            return replace(as_delta_sees(table), batches=batches)
        except Exception as error:  # noqa: BLE001  raised as one of ours
            # The entries are whole as far as anybody can say: it is a checkpoint.
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
        """The error for a commit of others."""
        info = entry.info
        engine = info.get("engineInfo") or "an unknown engine"
        commit = f"{info.get('operation', 'a commit')} by {engine}"
        if isinstance(info.get("timestamp"), int):
            moment = datetime.fromtimestamp(info["timestamp"] / 1000, UTC)
            commit += f" at {moment.isoformat(' ', 'seconds')}"
        path = entry_path(entry.version)
        return ForeignCommitError(entry.version, path, self.place, commit)

    def given_up(self) -> set[int]:
        """The versions that were left behind when the state went back to older ones."""
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
        """The oldest version whose files were not vacuumed, as far as is known."""
        for version in reversed(self.versions()):
            try:
                contents = self.entry(version).contents
            except DamagedStateError:
                continue
            if contents is not None:
                return contents.oldest
        return 0

    def entries(self, first: int, last: int) -> Iterator[LogEntry]:
        """The entries of some versions."""
        for version in range(first, last + 1):
            yield self.entry(version)

    # ------------------------------------------------------------ the latest version

    def noted(self) -> int:
        """The latest version that somebody took note of; -1 if that is not known."""
        try:
            data = json.loads(self.read(LATEST))
            version = data["version"]
            is_whole = data["digest"] == _digest(version)
        except (OSError, ValueError, KeyError, TypeError):
            return -1
        return version if is_whole and isinstance(version, int) else -1

    def note(self, version: int) -> None:
        """Take note of the latest version, as well as that can be done."""
        text = json.dumps({"version": version, "digest": _digest(version)})
        try:
            self.write(LATEST, text.encode())
        except OSError:
            # The commit is there, and that is what counts.
            return


def entry_path(version: int) -> str:
    """Where the entry of a version is."""
    return f"{FOLDER}/{version:020}.json"


def as_delta_sees(table: DeltaTable) -> Contents:
    """What a version consists of, by the log alone: there are no digests."""
    return Contents(
        version=table.version(),
        table=str(table.metadata().id),
        width=width_of([field.name for field in table.schema().fields]),
        number=table.transaction_version(WRITER) or 0,
        files={file.path: file for file in listed(table)},
    )


def without_digests(contents: Contents) -> Contents:
    """What Delta knows as well: for a comparison with what Delta says."""
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


def _digest(version: object) -> str:
    return sha256(f"evermat {version}".encode()).hexdigest()
