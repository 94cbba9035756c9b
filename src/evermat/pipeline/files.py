"""Files of a source, local or remote, and the pieces in which they are read.

Paths are local, or URIs that Arrow can open (`file:`, `s3:`, `gs:`, `hdfs:`). A file of
lines is divided into splits of bytes; a line belongs to the split it begins in.
"""

from __future__ import annotations

import json
import re
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as arrow_fs
from pyarrow.fs import FileSelector, FileType

from evermat.errors import gist
from evermat.errors.redaction import without_secrets
from evermat.io.files import COMPRESSIONS, data_file
from evermat.io.ntriples import TripleLines
from evermat.io.unpacking import UnpackingStream
from evermat.io.writing import write_table
from evermat.pipeline.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyarrow.fs import FileSystem

    from evermat.columns import Shape


# ------------------------------------------------------------------------------- files

SPLIT_BYTES = 32 << 20
BYTES_AT_ONCE = 4 << 20
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class File:
    """A file that was found.

    Attributes:
        uri: the address, on every machine that sees the same files.
        name: the name in messages: its path, relative to the folder of the
            configuration.
        modified: the time when it was written, in nanoseconds; 0 if it is not known.
    """

    uri: str
    name: str
    size: int
    modified: int = 0

    @property
    def compression(self) -> str | None:
        """The compression according to its name."""
        return COMPRESSIONS.get(PurePosixPath(self.uri).suffix.lower())


@dataclass(frozen=True, slots=True)
class Split:
    """A piece of a file: the lines or row groups that begin between two offsets."""

    file: File
    start: int
    end: int | None

    @property
    def size(self) -> int:
        """The size in bytes."""
        return (self.file.size if self.end is None else self.end) - self.start


def file_system(place: str) -> tuple[arrow_fs.FileSystem, str]:
    """Return the file system of a path or URI, and the path in it."""
    if "://" not in place:
        return arrow_fs.LocalFileSystem(), place
    try:
        return arrow_fs.FileSystem.from_uri(place)  # type: ignore[no-any-return]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreachable(place, error) from without_secrets(error)


def _unreachable(place: str, error: Exception) -> SourceError:
    reason = gist(str(error))
    advice = "check the address, the network and the credentials"
    if "libhdfs" in str(error) or "libjvm" in str(error):
        advice = (
            "Arrow needs the libraries of Hadoop for hdfs://, here and on workers: set "
            "JAVA_HOME, HADOOP_HOME, and CLASSPATH to what `hadoop classpath --glob` "
            "says"
        )
    elif "Unrecognized filesystem" in str(error):
        advice = "places are paths, or begin with s3://, gs://, abfss:// or hdfs://"
    return SourceError(
        f"cannot reach `{place}`: {reason[:1].lower()}{reason[1:]}", help=advice
    )


def find_files(places: Iterable[str], folder: str = "") -> list[File]:
    """Return the files at paths, in folders, and matching patterns.

    Args:
        places: absolute paths or URIs.
        folder: names are relative to it where possible.

    Raises:
        SourceError: no file exists, or it cannot be reached.
    """
    found: dict[str, File] = {}
    for place in places:
        here = list(_files_at(place, folder))
        if not here:
            raise SourceError(
                f"there is no file `{place}`",
                help="check the address: the store, and the path in it"
                if "://" in place
                else "check `path`; it is relative to the configuration file",
            )
        found.update({file.uri: file for file in here})
    return [found[uri] for uri in sorted(found)]


def is_empty_folder(place: str) -> bool:
    """Return whether a folder exists that has nothing to read."""
    system, path = file_system(place)
    try:
        (info,) = system.get_file_info([path])
        is_folder = info.type == arrow_fs.FileType.Directory
        return is_folder and not _below(system, path)
    except OSError as error:
        raise _unreachable(place, error) from without_secrets(error)


def _files_at(place: str, folder: str) -> Iterator[File]:
    system, path = file_system(place)
    prefix = place[: len(place) - len(path)] if place.endswith(path) else ""
    try:
        if _WILD.search(path):
            base = _folder_of(path)
            fits = re.compile(_expression(path)).fullmatch
            infos = _below(system, base)
            chosen = [info for info in infos if fits(info.path)]
        else:
            (info,) = system.get_file_info([path])
            is_folder = info.type == arrow_fs.FileType.Directory
            chosen = _below(system, path) if is_folder else [info]
    except OSError as error:
        raise _unreachable(place, error) from without_secrets(error)
    for info in chosen:
        if info.type == arrow_fs.FileType.File:
            name = info.path.removeprefix(f"{folder}/") if folder else info.path
            modified = info.mtime_ns or 0
            yield File(prefix + info.path, prefix + name, info.size or 0, modified)


def _below(system: arrow_fs.FileSystem, folder: str) -> list[arrow_fs.FileInfo]:
    selector = arrow_fs.FileSelector(folder, allow_not_found=True, recursive=True)
    # Files such as _temporary or .crc of Spark and others are not data.
    return [
        info
        for info in system.get_file_info(selector)
        if not any(
            part.startswith(("_", "."))
            for part in PurePosixPath(info.path).relative_to(folder).parts
        )
    ]


def _folder_of(pattern: str) -> str:
    before = _WILD.split(pattern)[0]
    return before.rpartition("/")[0] or "/"


def _expression(pattern: str) -> str:
    """Return a regular expression for a pattern: only `**` crosses folders."""
    pieces = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]*\])", pattern)
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(
        known.get(piece) or (piece if piece.startswith("[") else re.escape(piece))
        for piece in pieces
    )


def splits_of(files: Iterable[File], *, whole: bool = False) -> list[Split]:
    """Return the pieces in which files are read; compressed files are not divided."""
    pieces = []
    for file in files:
        if whole or file.compression or file.size <= SPLIT_BYTES:
            pieces.append(Split(file, 0, None))
            continue
        starts = range(0, file.size, SPLIT_BYTES)
        pieces += [Split(file, at, min(at + SPLIT_BYTES, file.size)) for at in starts]
    return pieces


def contents(file: File) -> bytes:
    """Return all bytes of a file, unpacked."""
    with _reading(file), opened(file) as stream:
        data: bytes = stream.read()
    return data


def raw_bytes(file: File) -> Iterator[bytes]:
    """Yield the bytes of a file as they are stored, block by block."""
    system, path = file_system(file.uri)
    with _reading(file), system.open_input_stream(path) as stream:
        while block := stream.read(BYTES_AT_ONCE):
            yield block


def line_number(name: str, folder: str, position: int) -> int | None:
    """Return the number of the line, from 1, that begins at an offset in a file.

    Pieces of files are read independently, so lines were not counted before. None if
    the offset is too large to count lines now.
    """
    if position > _FAR:
        return None
    place = name if "://" in name or name.startswith("/") else f"{folder}/{name}"
    count, left = 1, position
    try:
        with opened(File(place, name, 0)) as stream:
            while left and (block := stream.read(min(left, 1 << 20))):
                count += block.count(b"\n")
                left -= len(block)
    except (SourceError, OSError):
        return None
    return count


_FAR = 1 << 30
"""Largest offset in a file for which the number of the line is counted."""


def opened(file: File) -> pa.NativeFile | UnpackingStream:
    """Open a file's bytes, unpacked; the stream is seekable if it is not compressed."""
    system, path = file_system(file.uri)
    try:
        if file.compression is None:
            return system.open_input_file(path)
        stream = system.open_input_file(path)
        return UnpackingStream(stream, file.compression, file.name)
    except OSError as error:
        raise _unreachable(file.name, error) from without_secrets(error)


# ---------------------------------------------------------------------------- lines


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines of a file.

    Attributes:
        texts: the lines without their ends.
        positions: the offset at which each begins.
        broken: lines that are not UTF-8, as offset and bytes.
    """

    file: str
    texts: pa.Array
    positions: pa.Array
    broken: tuple[tuple[int, bytes], ...] = ()

    def where(self, keep: pa.Array) -> Lines:
        """Return the lines that are true in a mask."""
        return Lines(
            self.file,
            self.texts.filter(keep),
            self.positions.filter(keep),
            self.broken,
        )


def lines_of(split: Split) -> Iterator[Lines]:
    """Yield the lines of a split in batches; empty lines are skipped.

    Raises:
        SourceError: the file cannot be read, or has another format than its suffix.
    """
    with _reading(split.file):
        for start, block in _blocks(split):
            yield _lines(split.file.name, start, block)


@contextmanager
def _reading(file: File) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(
            f"cannot read `{file.name}`: {error}",
            help="the file is damaged, or not packed as its suffix says",
        ) from without_secrets(error)


def _blocks(split: Split) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, each with its offset in the file."""
    with opened(split.file) as stream:
        position = split.start
        if position and isinstance(stream, pa.NativeFile):
            # A line that begins exactly here belongs to this split, so read the byte
            # before.
            position -= 1
            stream.seek(position)
            position += len(_rest_of_line(stream))
            stream.seek(position)
        rest = b""
        while split.end is None or position < split.end:
            room = BYTES_AT_ONCE
            if split.end is not None:
                room = min(room, split.end - position - len(rest))
            if room <= 0:
                # The last line begins here and ends in the next split.
                yield position, rest + _rest_of_line(stream)
                return
            block = stream.read(room)
            if not block:
                break
            whole, newline, tail = (rest + block).rpartition(b"\n")
            if newline:
                yield position, whole
                position += len(whole) + 1
            rest = tail
        if rest:
            yield position, rest


def _rest_of_line(stream: pa.NativeFile | UnpackingStream) -> bytes:
    pieces = []
    while block := stream.read(1 << 12):
        end = block.find(b"\n")
        if end >= 0:
            pieces.append(block[: end + 1])
            break
        pieces.append(block)
    return b"".join(pieces)


def _lines(file: str, start: int, block: bytes) -> Lines:
    block = block.removesuffix(b"\n")
    pieces = block.split(b"\n")
    lengths = pa.array([0, *map(len, pieces)], pa.int64())
    ends = pc.add(
        pc.cumulative_sum(lengths), pa.array(range(len(pieces) + 1), pa.int64())
    )
    positions = pc.add(ends[:-1], start)
    broken: tuple[tuple[int, bytes], ...] = ()
    try:
        texts = pa.array(pieces, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        decoded = [_decoded(piece) for piece in pieces]
        numbers = [at for at, text in enumerate(decoded) if text is None]
        broken = tuple((positions[at].as_py(), pieces[at]) for at in numbers)
        texts = pa.array(decoded, pa.string())
    if b"\r" in block:
        texts = pc.utf8_rtrim(texts, "\r")
    if start == 0 and block.startswith(b"\xef\xbb\xbf"):
        first = texts[:1]
        texts = pa.concat_arrays([pc.utf8_slice_codeunits(first, 1), texts[1:]])
    found = Lines(file, texts, positions, broken)
    return found.where(pc.fill_null(pc.not_equal(texts, ""), fill_value=False))


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def first_line(file: File) -> str:
    """Return the first line of a file, without its end."""
    with _reading(file), opened(file) as stream:
        line = _rest_of_line(stream)
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise SourceError(
            f"`{file.name}` does not begin with a line in UTF-8",
            help="convert it to UTF-8 first",
        ) from without_secrets(error)


# ----------------------------------------------------------------------- written files

_TEXT_FORMATS = {"csv", "tsv"}
# Parts of outputs, and files that Spark and file systems add.
_WRITTEN = re.compile(r"part-[\w.\-]+|_\w+|\.[\w.\-]+")


def write_file(
    suffix: str,
    system: FileSystem,
    path: str,
    table: pa.Table,
    what: str,
    shapes: Sequence[Shape] | None = None,
) -> Mapping[str, int]:
    """Write a file locally, and move it to its destination.

    Args:
        suffix: the format.
        system: the file system of the destination.
        path: the path there.
        table: columns of terms.
        what: the predicate.
        shapes: the shapes of whole columns, if the table is only a part of the rows.

    Returns:
        The number of skipped rows, by reason.
    """
    left_out: Mapping[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="evermat-output-") as folder:
        local = Path(folder) / Path(path).name
        if suffix == "nt":
            lines = TripleLines(table, what)
            with data_file(local).replace() as sink:
                for block in lines:
                    sink.write(block)
            left_out = lines.left_out
        else:
            write_table(table, local, header=suffix in _TEXT_FORMATS, shapes=shapes)
        bring(local, system, path)
    return left_out


def bring(local: Path, system: FileSystem, path: str) -> None:
    """Copy a local file to a place where it is not visible before it is complete."""
    # Object stores show nothing before the end, and would have to copy to move.
    hidden = path
    if can_move_folders(system):
        folder, _, name = path.rpartition("/")
        hidden = f"{folder}/.{name}"
    with system.open_output_stream(hidden) as sink, local.open("rb") as source:
        while block := source.read(1 << 22):
            sink.write(block)
    if hidden != path:
        system.move(hidden, path)


def replace_folder(place: str, fill: Callable[[FileSystem, str, str], None]) -> None:
    """Replace a folder as a whole, once its new contents are complete.

    Object stores cannot move folders: there, files are replaced one after the other,
    and then those are removed that are no longer among them.

    Args:
        place: the folder.
        fill: writes the files into another folder, given the file system, the path and
            the place.

    Raises:
        OSError: the folder has files that no output has written, which are kept.
    """
    system, path = file_system(place)
    path = path.rstrip("/")
    require_outputs_only(system, path)
    parent, _, name = path.rpartition("/")
    # Hidden, and with names that do not collide with others.
    new, old = f"{parent}/.{name}.new", f"{parent}/.{name}.old"
    for each in (new, old):
        remove(system, each)
    system.create_dir(new, recursive=True)
    fill(system, new, place.rstrip("/").removesuffix(path) + new)
    if can_move_folders(system):
        if _kind(system, path) is not FileType.NotFound:
            system.move(path, old)
        system.move(new, path)
        remove(system, old)
        return
    names = _file_names(system, new)
    superfluous = _file_names(system, path) - names
    for name in sorted(names):
        system.move(f"{new}/{name}", f"{path}/{name}")
    for name in superfluous:
        system.delete_file(f"{path}/{name}")
    remove(system, new)


def require_outputs_only(system: FileSystem, path: str) -> None:
    """Refuse to replace a folder with foreign files, which would be removed."""
    kind = _kind(system, path)
    if kind is FileType.NotFound:
        return
    if kind is FileType.File:
        message = "there is a file of that name"
        raise FileExistsError(message)
    foreign = sorted(
        name for name in _file_names(system, path) if not _WRITTEN.fullmatch(name)
    )
    if foreign:
        message = f"the folder has other files, such as `{foreign[0]}`, to be kept"
        raise FileExistsError(message)


def can_move_folders(system: FileSystem) -> bool:
    """Return whether moving a folder or a file is atomic."""
    return system.type_name in {"local", "hdfs"}


def _file_names(system: FileSystem, folder: str) -> set[str]:
    """Return the files in a folder and its subfolders."""
    selector = FileSelector(folder, recursive=True, allow_not_found=True)
    return {
        info.path.removeprefix(f"{folder}/")
        for info in system.get_file_info(selector)
        if info.type is FileType.File
    }


def _kind(system: FileSystem, path: str) -> FileType:
    (info,) = system.get_file_info([path])
    return info.type


def remove(system: FileSystem, path: str) -> None:
    """Remove a file or a folder, if it exists."""
    kind = _kind(system, path)
    if kind is FileType.Directory:
        system.delete_dir(path)
    elif kind is FileType.File:
        system.delete_file(path)


# -------------------------------------------------------------------------------- JSON


def read_json(line: str, number: Callable[[str], object] | None = None) -> Any:  # noqa: ANN401  whatever is there
    """Parse the JSON value of a line.

    Args:
        line: the line.
        number: converts numbers, instead of Python's conversion.

    Raises:
        ValueError: it is not JSON, is nested too deeply, or has an unpaired surrogate,
            which cannot be stored.
    """
    try:
        found = json.loads(line, parse_float=number, parse_int=number)
        if "\\u" in line:
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError as error:
        message = "it is nested too deeply"
        raise ValueError(message) from error
    except UnicodeEncodeError as error:
        message = "it has half of a pair of surrogates"
        raise ValueError(message) from error
    return found
