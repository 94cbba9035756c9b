"""Facts on the command line: files, folders of files, `predicate=file`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError
from evermat.io.databases import is_database, read_database
from evermat.io.files import (
    FileMissingError,
    UnknownFormatError,
    data_file,
)
from evermat.kb.inputs import read_fact_file, together
from evermat.lang.catalogue import ColumnNames, near_names
from evermat.lang.syntax import TRIPLE

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

    import pyarrow as pa

    from evermat.io.files import DataFile
    from evermat.lang.catalogue import Catalogue
    from evermat.lang.syntax import Rule


class NoFactsError(EvermatError, ValueError):
    """A folder without any file of facts."""

    code: ClassVar[str] = "EM555"


class UnusedFactsWarning(EvermatError, UserWarning):  # noqa: N818  a warning
    """A file with facts of a predicate that is not used."""

    code: ClassVar[str] = "EM734"

    def __init__(self, predicate: str, path: Path, used: Iterable[str]) -> None:
        near = near_names(predicate, used)
        super().__init__(
            f"no rule speaks of `{predicate}`, whose facts `{path}` holds",
            help="to make them facts of another predicate, write "
            f"{near[0] if near else 'PREDICATE'}={path}",
        )


class FactReader:
    """Reads files of facts, with the program's declarations of their columns."""

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        header: bool | None = None,
        base: str | None = None,
        rules: Callable[[], Iterable[Rule]] = tuple,
    ) -> None:
        """Create a reader.

        Args:
            catalogue: the names and types of columns.
            header: whether CSV and TSV files begin with a row of names; by default they
                do if that row has the declared names.
            base: the base of relative IRIs in RDF files.
            rules: returns the rules, whose variables may be names of columns.
        """
        self._names = ColumnNames({}, rules)
        self._catalogue = catalogue
        self._header = header
        self._base = base
        self.single_files: dict[str, Path] = {}
        """Files that were named individually, by predicate."""

    def read(
        self, places: Iterable[str], *, without: Container[str] = ()
    ) -> dict[str, pa.Table]:
        """Return the tables of all files, by predicate.

        Args:
            places: files, folders, `predicate=file`, or `predicate=` and the address of
                a database.
            without: predicates whose files in folders are ignored.
        """
        tables: dict[str, list[pa.Table]] = {}
        for place in places:
            name, _, address = place.partition("=")
            if is_database(address):
                tables.setdefault(name, []).append(read_database(address, name))
                continue
            for predicate, path in self._files(place, without):
                table = self.read_file(path, predicate)
                tables.setdefault(predicate, []).append(table)
        for predicate, parts in tables.items():
            self._compare_names(predicate, parts)
        return {name: together(name, parts) for name, parts in tables.items()}

    def read_file(self, path: Path, predicate: str) -> pa.Table:
        """Return the rows of one file as facts of a predicate."""
        known = self._catalogue.get(predicate)
        return read_fact_file(
            path,
            known,
            header=self._header,
            base=self._base,
            name=predicate,
            names=self._names,
        )

    def _compare_names(self, predicate: str, parts: Iterable[pa.Table]) -> None:
        """Compare the names in files of one predicate, which become one table.

        They are compared with those in rules when the table is inserted or deleted.
        """
        known = self._catalogue.get(predicate)
        if known is None or not known.has_names:
            names = ColumnNames({}, tuple)
            for table in parts:
                names.note(predicate, table.column_names)

    def _files(self, place: str, without: Container[str]) -> Iterator[tuple[str, Path]]:
        path = Path(place)
        name, equals, rest = place.partition("=")
        if equals and not path.exists():
            path = Path(rest)
        else:
            name = ""
        if not path.is_dir():
            name = name or _predicate(data_file(_existing(path)))
            self.single_files[name] = path
            yield name, _existing(path)
            return
        found = False
        for each in sorted(path.iterdir()):
            try:
                file = data_file(each)
            except UnknownFormatError:
                continue
            found = True
            if _predicate(file) not in without:
                yield _predicate(file), each
        if not found:
            raise NoFactsError(
                f"the folder `{path}` holds no facts",
                reason="a file of facts is named after its predicate, as in `edge.csv`",
                help="known suffixes are .csv .tsv .facts .parquet .arrow .nt .ttl "
                "and others; .gz and .zst may follow",
            )


def _existing(path: Path) -> Path:
    if not path.exists():
        raise FileMissingError(path)
    return path


def _predicate(file: DataFile) -> str:
    return TRIPLE if file.is_rdf else file.predicate
