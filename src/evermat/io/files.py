"""Data files: the meaning of their names, and how to open them."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from evermat.errors import EvermatError, Label
from evermat.io.unpacking import UnpackingStream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.errors import Span

TABLE_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".facts": "facts",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
"""Suffixes of tables, and the names of their formats."""

RDF_SUFFIXES = {
    ".nt": "nt",
    ".nq": "nq",
    ".ttl": "ttl",
    ".trig": "trig",
    ".rdf": "rdf",
    ".owl": "rdf",
    ".jsonld": "jsonld",
    ".n3": "n3",
}
"""Suffixes of RDF files, and the names of their formats."""

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
"""Suffixes that may follow another suffix, and their names in Arrow."""


class FileMissingError(EvermatError, FileNotFoundError):
    """A file that does not exist."""

    code = "EM711"

    def __init__(self, path: Path, asked: Span | None = None) -> None:
        """Describe a missing file.

        Args:
            path: the file.
            asked: the place in a program that names it.
        """
        self.path = path
        super().__init__(
            f"there is no file `{path}`",
            labels=() if asked is None else (Label(asked),),
            help=_nearest(path, path.parent),
        )


class UnknownFormatError(EvermatError, ValueError):
    """A file name or a format name that does not determine a format."""

    code = "EM712"

    def __init__(
        self, what: str, *, rdf: bool = False, is_written: bool = False
    ) -> None:
        known = RDF_SUFFIXES if rdf else TABLE_SUFFIXES | RDF_SUFFIXES
        message = f"cannot tell the format of `{what}`"
        if is_written:
            known = {each: name for each, name in known.items() if name != "jsonl"}
            message = f"`{what}` would be in a format that is only read"
        super().__init__(
            message,
            reason=f"known suffixes are {' '.join(known)}, "
            f"and {' '.join(COMPRESSIONS)} after them",
            help="rename the file, or say `format=…`",
        )


class DamagedFileError(EvermatError, OSError):
    """A file that cannot be read in the format of its name."""

    code = "EM713"

    def __init__(self, path: Path, what: str, cause: object) -> None:
        self.path = path
        super().__init__(
            f"`{path.name}` is not a readable {what} file: {cause}",
            help="it may have been cut short, or have the wrong suffix",
        )


class UnwritablePlaceError(EvermatError, OSError):
    """A place where no file can be written."""

    code = "EM725"


class FileOptionError(EvermatError, ValueError):
    """An option of a data file that is not supported."""

    code = "EM732"


def _nearest(path: Path, folder: Path) -> str | None:
    if not folder.is_dir():
        return f"there is no folder `{folder}` either"
    near = get_close_matches(path.name, [each.name for each in folder.iterdir()], n=3)
    names = " or ".join(f"`{name}`" for name in near)
    return f"did you mean {names}?" if near else None


@dataclass(frozen=True, slots=True)
class DataFile:
    """The parts of a data file's name.

    Attributes:
        path: the path.
        predicate: the name without suffixes.
        format: a value of `TABLE_SUFFIXES` or `RDF_SUFFIXES`.
        compression: a value of `COMPRESSIONS`, or None.
    """

    path: Path
    predicate: str
    format: str
    compression: str | None

    @property
    def is_rdf(self) -> bool:
        """Whether the file contains triples rather than the rows of one predicate."""
        return self.format in RDF_SUFFIXES.values()

    @contextlib.contextmanager
    def open(self) -> Iterator[pa.NativeFile | UnpackingStream]:
        """Open the uncompressed contents as a stream."""
        if not self.path.is_file():
            raise FileMissingError(self.path)
        with contextlib.ExitStack() as stack:
            stream = stack.enter_context(pa.OSFile(str(self.path), "rb"))
            if self.compression is None:
                yield stream
                return
            name, compression = self.path.name, self.compression
            yield stack.enter_context(UnpackingStream(stream, compression, name))

    def read(self) -> pa.Buffer:
        """Return the whole uncompressed contents."""
        try:
            with self.open() as stream:
                return stream.read_buffer()
        except OSError as error:
            raise self.reading_error(error) from error

    @contextlib.contextmanager
    def replace(self) -> Iterator[pa.NativeFile]:
        """Write the file atomically: it appears or changes when all is written.

        Raises:
            UnwritablePlaceError: it cannot be written there.
        """
        require_place(self.path)
        partial = self.path.with_name(f".{self.path.name}.partial")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with contextlib.ExitStack() as stack:
                sink = stack.enter_context(pa.OSFile(str(partial), "wb"))
                if self.compression is not None:
                    compressed = pa.CompressedOutputStream(sink, self.compression)
                    sink = stack.enter_context(compressed)
                yield sink
            partial.replace(self.path)
        finally:
            partial.unlink(missing_ok=True)

    def reading_error(self, error: OSError) -> EvermatError:
        """Return the error for a file that cannot be read."""
        return error if isinstance(error, EvermatError) else self.damaged(error)

    def damaged(self, cause: Exception) -> DamagedFileError:
        """Return the error for contents that do not fit the name."""
        return DamagedFileError(self.path, self.compression or self.format, cause)


def data_file(
    path: str | Path | DataFile,
    *,
    format: str | None = None,  # noqa: A002  as users say it
) -> DataFile:
    """Parse the name of a data file.

    Args:
        path: the path, which need not exist, or a data file.
        format: overrides the suffix.

    Raises:
        UnknownFormatError: neither suffix nor format is known.

    >>> data_file("facts/edge.csv.gz").predicate
    'edge'
    """
    if isinstance(path, DataFile):
        return path if format is None else data_file(path.path, format=format)
    path = Path(path)
    name = path.name
    compression = COMPRESSIONS.get(path.suffix.lower())
    if compression is not None:
        name = name[: -len(path.suffix)]
    stem, suffix = Path(name).stem, Path(name).suffix.lower()
    known = TABLE_SUFFIXES | RDF_SUFFIXES
    if format is None:
        if suffix not in known:
            raise UnknownFormatError(path.name)
        format = known[suffix]  # noqa: A001
    elif format not in known.values():
        raise UnknownFormatError(format)
    predicate = stem if suffix in known else name
    return DataFile(path, predicate, format, compression)


def require_place(path: Path) -> None:
    """Reject a path at which a file cannot be written.

    Raises:
        UnwritablePlaceError: it is a folder, or its folder is not writable.
    """
    if path.is_dir():
        raise UnwritablePlaceError(
            f"`{path}` is a folder, and a file is to be written there",
            help="name a file in it",
        )
    require_folder(path.parent)


def require_folder(folder: Path) -> None:
    """Reject a folder that cannot be created, or is not writable.

    Raises:
        UnwritablePlaceError: it is a file, lies in one, or belongs to another user.
    """
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not there.is_dir():
        where = "" if there == folder else f", so that `{folder}` cannot be made"
        raise UnwritablePlaceError(
            f"`{there}` is a file, not a folder{where}", help="name another folder"
        )
    if not os.access(there, os.W_OK | os.X_OK):
        raise UnwritablePlaceError(
            f"nothing may be written in the folder `{there}`",
            help="name another folder, or ask for the right to write there",
        )


def predicate_of(path: str | Path) -> str:
    """Return the predicate of a file name: `edge` for `facts/edge.csv.gz`."""
    return data_file(path, format="csv").predicate
