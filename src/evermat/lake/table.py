"""The Delta table: its files, and atomic commits.

All access to storage goes through this module. Files are written first; they are not
visible before a commit names them, and a commit is a single file that exists or does
not. Data is verified on reading by the digests of the entry of its version.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow.fs
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import PostCommitHookProperties

from evermat.engines.spark.stored_facts import FactLayout
from evermat.engines.spark.task_files import Layout
from evermat.io.digested_parquet import DigestedWriter, digest_of_file
from evermat.lake.errors import (
    DamagedStateError,
    MissingVersionError,
    StateConflictError,
    StateError,
    require_folder,
    step,
)
from evermat.lake.integrity import (
    SETTINGS,
    open_file,
    opened_by_delta,
    record_checkpoint,
    verify_file,
    with_advice,
)
from evermat.lake.layout import (
    FACTS,
    NARROWEST,
    PART,
    DataFile,
    delta_actions,
    schema,
    statistics,
)
from evermat.lake.log import (
    FOLDER,
    WRITER,
    Contents,
    Log,
    Origin,
    as_logged,
    digest_of_actions,
    open_folder,
    uri_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from deltalake.transaction import AddAction, RemoveAction

NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""Delta's own checkpoints are part of a commit, which would fail with them."""


def require_version(version: object, latest: int, place: str | Path) -> None:
    """Refuse a version that a state has not reached.

    Raises:
        MissingVersionError: with the existing versions.
    """
    if not isinstance(version, int) or not 0 <= version <= latest:
        raise MissingVersionError(
            f"the state at `{place}` has no version {version!r}",
            help=f"versions go from 0 to {latest}",
        )


class StateTable:
    """One version of a table, and the next commit.

    Attributes:
        place: the path or URI of the table, as the user wrote it.
        log: the log of the table.
        version: the number of the version.
    """

    def __init__(
        self, log: Log, version: int, contents: Contents, delta: DeltaTable | None
    ) -> None:
        self.log = log
        self.place = log.place
        self.version = version
        self._delta = delta
        self._contents = contents
        self._number = self._committed = contents.number
        self._files = dict(contents.files)
        self.is_ahead = False
        """Whether a commit may have been made that the engine has not completed."""

    @classmethod
    def open(
        cls,
        place: str | Path,
        *,
        version: int | None = None,
        options: Mapping[str, str] | None = None,
    ) -> StateTable | None:
        """Open the table at a place; None if there is none.

        An explicit version is read from its own entry of the log, even if other entries
        are damaged.

        Raises:
            MissingVersionError: the table has no such version.
            DamagedStateError: a file differs from what was written.
            ForeignCommitError: another program has changed the table.
            StateError: the place cannot be read.
        """
        name = str(place)
        require_folder(name)
        log = Log(name, dict(options or {}))
        with step(f"open the state at `{name}`"), with_advice(log):
            if version is not None:
                return cls._old(log, version)
            try:
                delta, contents = opened_by_delta(log)
            except TableNotFoundError:
                return None
            return cls(log, delta.version(), contents, delta)

    @classmethod
    def _old(cls, log: Log, version: int) -> StateTable | None:
        latest = log.latest()
        if latest < 0:
            return None
        require_version(version, latest, log.place)
        oldest = log.oldest()
        if version < oldest:
            raise StateError(
                f"open version {version} of the state at `{log.place}`",
                "its files were vacuumed and are missing",
                help=f"versions from {oldest} on are there",
            )
        return cls(log, version, log.contents(version), None)

    @classmethod
    def create(
        cls, place: str | Path, options: Mapping[str, str] | None = None
    ) -> StateTable:
        """Create an empty table.

        Raises:
            StateError: it cannot be created, or the place is not empty.
        """
        options = dict(options or {})
        name = str(place)
        log = Log(name, options)
        contents = Contents(time=_now())
        with step(f"create a state at `{name}`"):
            try:
                _require_nothing_else(log)
                delta = DeltaTable.create(
                    place,
                    Schema.from_arrow(schema(NARROWEST)),
                    partition_by=[PART],
                    configuration=SETTINGS,
                    storage_options=options,
                    commit_properties=_properties(contents),
                )
            except (DeltaError, DamagedStateError) as error:
                if StateTable.open(place, options=options) is not None:
                    raise StateConflictError(name) from error
                raise
            return cls(log, 0, contents, delta)

    @property
    def delta(self) -> DeltaTable:
        """The table as a `deltalake` object."""
        if self._delta is None:
            with step(f"open the state at `{self.place}`"), with_advice(self.log):
                self._delta, _ = opened_by_delta(self.log)
        return self._delta

    @property
    def contents(self) -> Contents:
        """The contents of the version."""
        return self._contents

    @property
    def storage(self) -> Callable[[], pyarrow.fs.FileSystem]:
        """A function that opens the folder of the table, also in other processes."""
        return partial(open_folder, uri_of(self.place), self.log.options)

    @property
    def width(self) -> int:
        """The number of argument columns."""
        return self._contents.width

    def files(self, part: str) -> list[DataFile]:
        """Return the files of a part in this version."""
        return [file for file in self._files.values() if file.part == part]

    def last_batch(self, application: str) -> int | None:
        """Return the last batch that an application has committed."""
        return self._contents.batches.get(application)

    # ----------------------------------------------------------------------- files

    def read(self, file: DataFile) -> pa.Table:
        """Return the rows of a file."""
        doing = f"read `{file.path}` of the state at `{self.place}`"
        with step(doing), with_advice(self.log), open_file(self.log, file) as found:
            return found.read()

    def verify(self, file: DataFile) -> None:
        """Raise an error if a file differs from what was written."""
        doing = f"read `{file.path}` of the state at `{self.place}`"
        with step(doing), with_advice(self.log):
            verify_file(self.log, file)

    def write(self, part: str, table: pa.Table, *, is_change: bool = True) -> DataFile:
        """Write rows to a new file, which is not visible before it is committed."""
        path = self.new_path(part) + ".parquet"
        storage = self.log.storage
        with step(f"write `{path}` of the state at `{self.place}`"):
            storage.create_dir(f"{PART}={part}")
            with storage.open_output_stream(path) as sink:
                writer = DigestedWriter(sink, table.schema)
                layout = FactLayout() if part == FACTS else Layout()
                for rows in layout.arranged(table):
                    writer.write(rows)
                digest = writer.close(layout.notes())
        return DataFile(
            path,
            part,
            table.num_rows,
            writer.size,
            digest,
            statistics(table),
            is_change,
        )

    def new_path(self, part: str) -> str:
        """Return an unused path in a part."""
        return f"{PART}={part}/{uuid4().hex}"

    # --------------------------------------------------------------------- commits

    def widen(self, width: int) -> None:
        """Add columns for relations with this number of arguments."""
        if width <= self.width:
            return
        with step(f"widen the state at `{self.place}`"):
            self.require_unchanged()
            known = {field.name for field in self.delta.schema().fields}
            wide = Schema.from_arrow(schema(width)).fields
            new = [field for field in wide if field.name not in known]
            contents = self._next(replace(self._contents, width=width, actions=None))
            try:
                self.delta.alter.add_columns(
                    new,
                    commit_properties=_properties(contents),
                    post_commithook_properties=NO_HOOKS,
                )
            except CommitFailedError as error:
                raise StateConflictError(self.place) from error
        self._committed_as(contents)

    def commit(
        self,
        add: Sequence[DataFile],
        remove: Sequence[DataFile],
        *,
        info: Mapping[str, Any],
        batch: tuple[str, int] | None = None,
    ) -> None:
        """Create a new version, with some files added and others removed.

        Args:
            add: files that were written.
            remove: files of this version.
            info: information for people, stored with the version.
            batch: an application and the number of its batch.

        Raises:
            StateConflictError: another process has committed since.
            ForeignCommitError: another program has committed since.
            StateError: the storage failed.
        """
        numbers = [Transaction(WRITER, self._number + 1)]
        if batch is not None:
            numbers.append(Transaction(*batch))
        gone = {file.path for file in remove}
        files = {path: file for path, file in self._files.items() if path not in gone}
        files.update({file.path: file for file in add})
        with step(f"commit to the state at `{self.place}`"):
            self.require_unchanged()
            contents = replace(
                self._contents,
                number=self._number + 1,
                batches={**self._contents.batches, **dict([batch] if batch else [])},
                files={path: self._digested(file) for path, file in files.items()},
            )
            self.is_ahead = True
            try:
                self._append(contents, delta_actions(add, remove), numbers, info)
            except StateConflictError:
                self.is_ahead = False
                raise
            except BaseException:
                self._refresh()
                found = self.delta.transaction_version(WRITER) or 0
                self.is_ahead = found != self._number
                raise

    def tidy(self, oldest: int) -> None:
        """Create a new version that permits removing files, and is not an update.

        Args:
            oldest: the oldest version whose files are kept.
        """
        with step(f"commit to the state at `{self.place}`"):
            self.require_unchanged()
            files = {path: self._digested(file) for path, file in self._files.items()}
            self._append(replace(self._contents, oldest=oldest, files=files), [], [])

    def _append(
        self,
        contents: Contents,
        actions: list[AddAction | RemoveAction],
        numbers: list[Transaction],
        info: Mapping[str, Any] | None = None,
    ) -> None:
        digest = digest_of_actions(map(as_logged, [*actions, *numbers]))
        contents = self._next(replace(contents, actions=digest))
        try:
            self.delta.create_write_transaction(
                actions,
                "append",
                self.delta.schema(),
                [PART],
                commit_properties=_properties(contents, info, numbers),
                post_commithook_properties=NO_HOOKS,
            )
        except CommitFailedError as error:
            raise StateConflictError(self.place) from error
        self._committed_as(contents)

    def _next(self, contents: Contents) -> Contents:
        """Return the contents of the next version."""
        return replace(
            contents,
            version=self.delta.version() + 1,
            table=str(self.delta.metadata().id),
            time=_now(),
            restored=None,
        )

    def _committed_as(self, contents: Contents) -> None:
        # From here on the new version exists, even if this process stops.
        self._committed = contents.number
        self._contents = contents
        self._files = dict(contents.files)
        self.version = contents.version
        self._refresh()
        self.log.note(contents.version)
        checkpoint = record_checkpoint(self.log, self.delta)
        if checkpoint is not None:
            self._contents = replace(contents, checkpoint=checkpoint)

    def _digested(self, file: DataFile) -> DataFile:
        """Add a digest to a file that an earlier version of Evermat wrote."""
        if file.digest is not None:
            return file
        with self.log.storage.open_input_file(file.path) as stream:
            return replace(file, digest=digest_of_file(stream))

    def finish(self) -> None:
        """Record that the committed changes are complete in the engine.

        Until then, another commit would not fit the contents of the engine.
        """
        self._number = self._committed
        self.is_ahead = False

    def require_unchanged(self) -> None:
        """Raise an error if another writer has committed updates in between."""
        self._refresh()
        found = self.delta.transaction_version(WRITER) or 0
        if found == self._number + 1 == self._committed:
            raise StateError(
                f"go on with the state at `{self.place}`",
                "an update was interrupted right after its commit",
                help="open the state again",
            )
        if found != self._number:
            raise StateConflictError(self.place)
        latest = self.delta.version()
        with with_advice(self.log):
            for entry in self.log.entries(self.version + 1, latest):
                if entry.origin not in {Origin.EVERMAT, Origin.TIDYING}:
                    raise self.log.foreign(entry)
                contents = entry.contents
                if contents is None:
                    continue
                if contents.files.keys() != self._files.keys():
                    raise StateConflictError(self.place)
                self._contents = replace(self._contents, oldest=contents.oldest)
        self.version = latest

    def _refresh(self) -> None:
        with step(f"read the log of the state at `{self.place}`"):
            self.delta.update_incremental()


def _now() -> int:
    return int(time.time() * 1000)


def _properties(
    contents: Contents,
    info: Mapping[str, Any] | None = None,
    numbers: list[Transaction] | None = None,
) -> CommitProperties:
    return CommitProperties(
        custom_metadata=dict(contents.as_metadata(info)),
        max_commit_retries=0,
        app_transactions=numbers,
    )


def _require_nothing_else(log: Log) -> None:
    """Refuse a folder with other files, which vacuuming the state would remove."""
    selector = pyarrow.fs.FileSelector("", allow_not_found=True, recursive=True)
    # Hidden files are ignored.
    files = [
        info.path
        for info in log.storage.get_file_info(selector)
        if info.is_file and not info.path.startswith((".", "_"))
    ]
    others = [path for path in files if not path.startswith(f"{PART}=")]
    if others:
        raise StateError(
            f"create a state at `{log.place}`",
            f"the folder has other files, such as `{min(others)}`",
            help="a state needs a folder of its own",
        )
    if files:
        raise DamagedStateError(FOLDER, log.place, "data are there, and the log is not")
