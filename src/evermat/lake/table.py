"""The Delta table: its files, and commits that happen as a whole or not at all.

Everything that touches storage goes through here. Files are written first; nobody sees
them before a commit names them, and a commit is one file that is there or is not.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction, RemoveAction

from evermat.lake.errors import (
    MissingVersionError,
    StateConflictError,
    StateError,
    step,
)
from evermat.lake.layout import NARROWEST, PART, RELATION, schema, width_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

WRITER = "evermat"
"""The application id under which every update is numbered: of two writers that began
with the same number, Delta lets one commit."""

_SETTINGS = {
    # Versions stay until they are vacuumed, not until somebody else's clock says so.
    "delta.enableExpiredLogCleanup": "false",
    "delta.dataSkippingNumIndexedCols": "2",
}


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of the table.

    Attributes:
        path: relative to the table.
        stats: what Delta knows about its contents, as JSON.
        is_change: whether it says something new; merged files do not.
    """

    path: str
    part: str
    rows: int
    size: int
    stats: str = "{}"
    is_change: bool = True


def require_version(version: object, latest: int, place: str | Path) -> None:
    """Refuse a version that a state has not reached.

    Raises:
        MissingVersionError: says which versions there are.
    """
    if not isinstance(version, int) or not 0 <= version <= latest:
        raise MissingVersionError(
            f"the state at `{place}` has no version {version!r}",
            help=f"versions go from 0 to {latest}",
        )


class StateTable:
    """One version of a table, and the way to the next.

    Attributes:
        place: where the table is, as it was given.
    """

    def __init__(
        self, table: DeltaTable, place: str, options: Mapping[str, str]
    ) -> None:
        self._table = table
        self.place = place
        self._options = options
        self._number = self._committed = table.transaction_version(WRITER) or 0
        self._storage = self.storage()
        self._files = {file.path: file for file in _listed(table)}
        self.version = table.version()
        self.is_ahead = False
        """Whether a commit may have been made that the engine has not followed."""

    @classmethod
    def open(
        cls,
        place: str | Path,
        *,
        version: int | None = None,
        options: Mapping[str, str] | None = None,
    ) -> StateTable | None:
        """The table at a place, or None where there is none.

        Raises:
            MissingVersionError: the table has no such version.
            StateError: the place cannot be read.
        """
        options = dict(options or {})
        name = str(place)
        if Path(name).is_file():
            raise StateError(
                f"open the state at `{name}`",
                "it is a file, and a state is a folder",
                help="name another place",
            )
        with step(f"open the state at `{name}`"):
            try:
                table = DeltaTable(place, storage_options=options)
            except TableNotFoundError:
                return None
            if version is None:
                return cls(table, name, options)
            latest = table.version()
            require_version(version, latest, name)
            old = DeltaTable(place, version, storage_options=options)
            return cls(old, name, options)

    @classmethod
    def create(
        cls, place: str | Path, options: Mapping[str, str] | None = None
    ) -> StateTable:
        """An empty table at a place where there is none.

        Raises:
            StateError: it cannot be made, or there is something else.
        """
        options = dict(options or {})
        name = str(place)
        with step(f"create a state at `{name}`"):
            _require_nothing_else(name, options)
            try:
                table = DeltaTable.create(
                    place,
                    Schema.from_arrow(schema(NARROWEST)),
                    partition_by=[PART],
                    configuration=_SETTINGS,
                    storage_options=options,
                )
            except DeltaError as error:
                if StateTable.open(place, options=options) is not None:
                    raise StateConflictError(name) from error
                raise
            return cls(table, name, options)

    @property
    def delta(self) -> DeltaTable:
        """The table as `deltalake` knows it."""
        return self._table

    @property
    def storage(self) -> Callable[[], pyarrow.fs.FileSystem]:
        """What opens the folder of the table, in other processes too."""
        return partial(_opened, self._table.table_uri, self._options)

    @property
    def width(self) -> int:
        """For how many arguments there are columns."""
        return width_of([field.name for field in self._table.schema().fields])

    def files(self, part: str) -> list[DataFile]:
        """The files of a part in this version."""
        return [file for file in self._files.values() if file.part == part]

    def last_batch(self, application: str) -> int | None:
        """The last batch that an application has committed."""
        number: int | None = self._table.transaction_version(application)
        return number

    # ----------------------------------------------------------------------- files

    def read(self, path: str) -> pa.Table:
        """The rows of a file."""
        with step(f"read `{path}` of the state at `{self.place}`"):
            return pq.read_table(path, filesystem=self._storage, partitioning=None)

    def write(self, part: str, table: pa.Table, *, is_change: bool = True) -> DataFile:
        """Write rows to a new file, which nobody sees before it is committed."""
        path = self.new_path(part) + ".parquet"
        with step(f"write `{path}` of the state at `{self.place}`"):
            self._storage.create_dir(f"{PART}={part}")
            pq.write_table(table, path, filesystem=self._storage, compression="zstd")
            size = self._storage.get_file_info(path).size
        return DataFile(path, part, table.num_rows, size, _stats(table), is_change)

    def new_path(self, part: str) -> str:
        """A path in a part that nobody has used."""
        return f"{PART}={part}/{uuid4().hex}"

    # --------------------------------------------------------------------- commits

    def widen(self, width: int) -> None:
        """Make room for relations with so many arguments."""
        if width <= self.width:
            return
        known = {field.name for field in self._table.schema().fields}
        wide = Schema.from_arrow(schema(width)).fields
        new = [field for field in wide if field.name not in known]
        with step(f"widen the state at `{self.place}`"):
            self._require_unchanged()
            self._table.alter.add_columns(new)
            self._refresh()

    def commit(
        self,
        add: Sequence[DataFile],
        remove: Sequence[DataFile],
        *,
        info: Mapping[str, Any],
        batch: tuple[str, int] | None = None,
    ) -> None:
        """Make a new version, with some files more and others gone.

        Args:
            add: files that were written.
            remove: files of this version.
            info: is kept with the version, for people to read.
            batch: an application and the number of its batch.

        Raises:
            StateConflictError: somebody else has committed since.
            StateError: the storage refused.
        """
        numbers = [Transaction(WRITER, self._number + 1)]
        if batch is not None:
            numbers.append(Transaction(*batch))
        with step(f"commit to the state at `{self.place}`"):
            self._require_unchanged()
            self.is_ahead = True
            try:
                self._table.create_write_transaction(
                    _actions(add, remove),
                    "append",
                    self._table.schema(),
                    [PART],
                    commit_properties=CommitProperties(
                        custom_metadata={"evermat": json.dumps(dict(info))},
                        max_commit_retries=0,
                        app_transactions=numbers,
                    ),
                )
            except CommitFailedError as error:
                self.is_ahead = False
                raise StateConflictError(self.place) from error
            except BaseException:
                self._refresh()
                found = self._table.transaction_version(WRITER) or 0
                self.is_ahead = found != self._number
                raise
        # From here on the new version is there, whatever happens to this process.
        self._committed = self._number + 1
        for file in remove:
            del self._files[file.path]
        self._files.update({file.path: file for file in add})
        self.version += 1
        self._refresh()

    def finish(self) -> None:
        """Take note that the engine has done what was committed.

        As long as it has not, the next commit would not fit what is there.
        """
        self._number = self._committed
        self.is_ahead = False

    def _require_unchanged(self) -> None:
        """Refuse if another writer has come in between; other commits are fine."""
        self._refresh()
        found = self._table.transaction_version(WRITER) or 0
        if found == self._number:
            return
        if found == self._number + 1 == self._committed:
            raise StateError(
                f"go on with the state at `{self.place}`",
                "an update was interrupted right after its commit",
                help="open the state again",
            )
        raise StateConflictError(self.place)

    def _refresh(self) -> None:
        with step(f"read the log of the state at `{self.place}`"):
            self._table.update_incremental()
            if (self._table.transaction_version(WRITER) or 0) == self._committed:
                self.version = self._table.version()


def _opened(uri: str, options: Mapping[str, str]) -> pyarrow.fs.FileSystem:
    """The folder of a table, with the access that the options give."""
    address = urlsplit(uri)
    if address.scheme == "file":
        # On a disk, `deltalake` writes to files whose names `vacuum` does not list,
        # where they stay if the writer is killed.
        folder = unquote(address.path)
        return pyarrow.fs.SubTreeFileSystem(folder, pyarrow.fs.LocalFileSystem())
    return pyarrow.fs.PyFileSystem(DeltaStorageHandler(uri, dict(options)))


def _require_nothing_else(place: str, options: Mapping[str, str]) -> None:
    """Refuse a folder with files of others, which vacuuming the state would remove."""
    uri = place if "://" in place else Path(place).absolute().as_uri()
    selector = pyarrow.fs.FileSelector("", allow_not_found=True)
    # Hidden files are left alone, and a creation that failed leaves parts behind.
    others = [
        info.base_name
        for info in _opened(uri, options).get_file_info(selector)
        if not info.base_name.startswith((".", "_", f"{PART}="))
    ]
    if others:
        raise StateError(
            f"create a state at `{place}`",
            f"the folder has other files, such as `{min(others)}`",
            help="a state needs a folder of its own",
        )


def _listed(table: DeltaTable) -> list[DataFile]:
    actions = pa.table(table.get_add_actions(flatten=True))
    names = ("path", f"partition.{PART}", "num_records", "size_bytes")
    columns = [actions[name].to_pylist() for name in names]
    return [DataFile(*row) for row in zip(*columns, strict=True)]


def _actions(
    add: Sequence[DataFile], remove: Sequence[DataFile]
) -> list[AddAction | RemoveAction]:
    now = int(time.time() * 1000)
    actions: list[AddAction | RemoveAction] = [
        AddAction(
            path=file.path,
            size=file.size,
            partition_values={PART: file.part},
            modification_time=now,
            data_change=file.is_change,
            stats=file.stats,
        )
        for file in add
    ]
    # What a removed file said stays true: it is merged, or said anew.
    actions += [
        RemoveAction(
            path=file.path,
            data_change=False,
            deletion_timestamp=now,
            size=file.size,
            partition_values={PART: file.part},
        )
        for file in remove
    ]
    return actions


def row_count(rows: int) -> str:
    """What Delta is told about a file of which nothing else is known."""
    return json.dumps({"numRecords": rows})


def _stats(table: pa.Table) -> str:
    """How many rows there are, and which relations: readers skip files by them."""
    stats: dict[str, Any] = {"numRecords": table.num_rows}
    if RELATION in table.column_names and table.num_rows:
        ends = pc.min_max(table[RELATION])
        stats["minValues"] = {RELATION: ends["min"].as_py()}
        stats["maxValues"] = {RELATION: ends["max"].as_py()}
        stats["nullCount"] = {RELATION: 0}
    return json.dumps(stats)
