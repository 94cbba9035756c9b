"""Files of rows to insert and to delete: detecting new ones, and their net changes.

A file that an update has applied is recorded in a *ledger*, in the same commit as its
changes, and is not applied again while it stays in its folder. Otherwise Monday's
insertions would undo Tuesday's deletions at the next update.

New files are applied in the order of their time, so the last change of a row counts. Of
files of the same second, deletions come first.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import as_terms, joined_tables
from evermat.pipeline.files import File, find_files, is_empty_folder, raw_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evermat.pipeline.config import Source

    Kind = Literal["insert", "delete"]

_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ChangeFile:
    """A file of rows to insert or delete.

    Attributes:
        kind: the kind of change.
        digest: a digest of its contents.
    """

    file: File
    kind: Kind
    digest: str

    def entry(self) -> str:
        """Return the entry of the ledger."""
        file = self.file
        return json.dumps(
            [self.kind, file.name, file.size, file.modified, self.digest],
            ensure_ascii=False,
        )


class Ledger:
    """The change files of a source that were applied.

    A file with the same name, size and time is assumed to be the same without reading
    it; otherwise the contents are compared.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        self._by_time: dict[tuple[str, str, int, int], str] = {}
        self._by_digest: set[tuple[str, str, str]] = set()
        for entry in entries:
            kind, name, size, modified, digest = json.loads(entry)
            if modified:
                self._by_time[kind, name, size, modified] = digest
            self._by_digest.add((kind, name, digest))

    def has_seen(self, file: File, kind: Kind) -> bool:
        """Return whether a file is known to be applied, without reading it."""
        return (kind, file.name, file.size, file.modified) in self._by_time

    def has(self, change: ChangeFile) -> bool:
        """Return whether the same contents were applied under the same name."""
        return (change.kind, change.file.name, change.digest) in self._by_digest


@dataclass(slots=True)
class ChangeFiles:
    """The change files of a source.

    Attributes:
        new: those to be applied, in order.
        applied: the number of those applied before.
    """

    new: list[ChangeFile] = field(default_factory=list)
    applied: int = 0

    def steps(self) -> list[tuple[Kind, list[str]]]:
        """Return the files to read in order, grouped by kind."""
        return [
            (kind, [change.file.uri for change in changes])
            for kind, changes in groupby(self.new, attrgetter("kind"))
        ]

    @property
    def deletes_first(self) -> bool:
        """Whether no row is deleted by a later file than one that may insert it."""
        kinds = [kind for kind, _ in self.steps()]
        return kinds in ([], ["insert"], ["delete"], ["delete", "insert"])


def change_files(source: Source, ledger: Ledger) -> ChangeFiles:
    """Find the change files of a source, and determine which are new.

    Raises:
        SourceError: an expected file is missing, or one cannot be read.
    """
    found = ChangeFiles()
    for kind, file in _files(source):
        if ledger.has_seen(file, kind):
            found.applied += 1
            continue
        change = ChangeFile(file, kind, _digest(file))
        if ledger.has(change):
            found.applied += 1
        else:
            found.new.append(change)
    # The sort is stable: deletions stay before insertions.
    found.new.sort(key=lambda change: change.file.modified // _SECOND)
    return found


def unseen_files(source: Source, ledger: Ledger) -> list[File]:
    """Return the change files that may be new, without reading them."""
    return [file for kind, file in _files(source) if not ledger.has_seen(file, kind)]


def _files(source: Source) -> Iterator[tuple[Kind, File]]:
    """Yield all change files of a source, deletions first."""
    places: tuple[tuple[Kind, tuple[str, ...]], ...] = (
        ("delete", source.delete),
        ("insert", source.insert),
    )
    for kind, several in places:
        # An empty folder means that nothing has changed.
        some = [place for place in several if not is_empty_folder(place)]
        for file in find_files(some, source.folder):
            yield kind, file


def _digest(file: File) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for block in raw_bytes(file):
        digest.update(block)
    return digest.hexdigest()


# ------------------------------------------------------------------------- net changes


def net_changes(
    steps: Sequence[tuple[Kind, Mapping[str, pa.Table]]],
) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """Combine steps to one update, which deletes first and then inserts.

    Returns:
        Rows to insert and rows to delete, by predicate.
    """
    insert: dict[str, list[pa.Table]] = {}
    delete: dict[str, list[pa.Table]] = {}
    for kind, facts in steps:
        for name, table in facts.items():
            if kind == "insert":
                insert.setdefault(name, []).append(table)
                continue
            insert[name] = [_without(known, table) for known in insert.get(name, [])]
            delete.setdefault(name, []).append(table)
    return _joined(insert), _joined(delete)


def _joined(parts: Mapping[str, list[pa.Table]]) -> dict[str, pa.Table]:
    terms = {name: [_terms(table) for table in some] for name, some in parts.items()}
    return {name: joined_tables(tables) for name, tables in terms.items() if tables}


def _terms(table: pa.Table) -> pa.Table:
    """Return columns of terms, whatever types the files had."""
    columns = [as_terms(column) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _without(table: pa.Table, unwanted: pa.Table) -> pa.Table:
    """Return the rows of a table that another one lacks."""
    return table.filter(pc.invert(pc.is_in(_keys(table), value_set=_keys(unwanted))))


def _keys(table: pa.Table) -> pa.Array:
    """Return a string for each row; strings of different rows are different."""
    parts = []
    for column in _terms(table).columns:
        terms = column.combine_chunks()
        kinds, texts = terms.field("kind"), terms.field("text")
        parts += [kinds.cast(pa.string()), pc.binary_length(texts).cast(pa.string())]
        parts.append(texts)
    return pc.binary_join_element_wise(*parts, ":")
