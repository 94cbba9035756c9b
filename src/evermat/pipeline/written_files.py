"""Files of outputs: written here, brought to where they belong, folders replaced."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pyarrow.fs import FileSelector, FileType

from evermat.io.files import data_file
from evermat.io.ntriples import TripleLines
from evermat.io.writing import write_table
from evermat.pipeline.files import file_system

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa
    from pyarrow.fs import FileSystem

    from evermat.columns import Shape

_TEXT_FORMATS = {"csv", "tsv"}
# Parts of outputs, and what Spark and file systems leave beside such.
_WRITTEN = re.compile(r"part-[\w.\-]+|_\w+|\.[\w.\-]+")


def write_file(
    suffix: str,
    system: FileSystem,
    path: str,
    table: pa.Table,
    what: str,
    shapes: Sequence[Shape] | None = None,
) -> Mapping[str, int]:
    """Write a file here, and bring it to where it belongs.

    Args:
        suffix: the format.
        system: where it belongs.
        path: its name there.
        table: columns of terms.
        what: the predicate.
        shapes: of the whole columns, where the table is only a part of the rows.

    Returns:
        How many rows were left out, by what is wrong with them.
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
    """Copy a local file to a place where it is not seen before it is complete."""
    # Stores of objects show nothing before the end, and have to copy what is moved.
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
    """Replace a folder as a whole, once all that it is to hold is there.

    Stores of objects have no folders that could be moved: there, files are replaced
    one after the other, and then those are removed that are no longer among them.

    Args:
        place: the folder.
        fill: writes the files into another folder, of which it is told the file
            system, the path and the place.

    Raises:
        OSError: the folder holds what no output has written, which is not lost.
    """
    system, path = file_system(place)
    path = path.rstrip("/")
    require_outputs_only(system, path)
    parent, _, name = path.rpartition("/")
    # Hidden, and under names that nobody else would use.
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
    """Refuse a folder with files of others, which replacing it would remove."""
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
    """Whether moving a folder or a file is one step, as it is where there are any."""
    return system.type_name in {"local", "hdfs"}


def _file_names(system: FileSystem, folder: str) -> set[str]:
    """The files in a folder, and in folders in it."""
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
    """Remove a file or a folder, if there is one."""
    kind = _kind(system, path)
    if kind is FileType.Directory:
        system.delete_dir(path)
    elif kind is FileType.File:
        system.delete_file(path)
