"""Files of outputs: written here, brought to where they belong, folders replaced."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.fs as arrow_fs

from evermat.io.writing import write_table
from evermat.pipeline.files import file_system
from evermat.rdf import write_rdf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from evermat.columns import Shape

_TEXT_FORMATS = {"csv", "tsv"}


def write_file(
    suffix: str,
    system: arrow_fs.FileSystem,
    path: str,
    table: pa.Table,
    what: str,
    shapes: Sequence[Shape] | None = None,
) -> None:
    """Write a file here, and bring it to where it belongs.

    Args:
        suffix: the format.
        system: where it belongs.
        path: its name there.
        table: columns of terms.
        what: the predicate.
        shapes: of the whole columns, where the table is only a part of the rows.
    """
    with tempfile.TemporaryDirectory(prefix="evermat-output-") as folder:
        local = Path(folder) / Path(path).name
        if suffix == "nt":
            write_rdf(table, local, predicate=what)
        else:
            write_table(table, local, header=suffix in _TEXT_FORMATS, shapes=shapes)
        bring(local, system, path)


def bring(local: Path, system: arrow_fs.FileSystem, path: str) -> None:
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


def replace_folder(
    place: str, fill: Callable[[arrow_fs.FileSystem, str], None]
) -> None:
    """Replace a folder as a whole, once all that it is to hold is there.

    Stores of objects have no folders that could be moved: there, files are replaced
    one after the other, and then those are removed that are no longer among them.

    Args:
        place: the folder.
        fill: writes the files into another folder.
    """
    system, path = file_system(place)
    path = path.rstrip("/")
    new, old = f"{path}.new", f"{path}.old"
    for each in (new, old):
        remove(system, each)
    system.create_dir(new, recursive=True)
    fill(system, new)
    if can_move_folders(system):
        if _kind(system, path) is not arrow_fs.FileType.NotFound:
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


def can_move_folders(system: arrow_fs.FileSystem) -> bool:
    """Whether moving a folder or a file is one step, as it is where there are any."""
    return system.type_name in {"local", "hdfs"}


def _file_names(system: arrow_fs.FileSystem, folder: str) -> set[str]:
    """The files in a folder, and in folders in it."""
    selector = arrow_fs.FileSelector(folder, recursive=True, allow_not_found=True)
    return {
        info.path.removeprefix(f"{folder}/")
        for info in system.get_file_info(selector)
        if info.type is arrow_fs.FileType.File
    }


def _kind(system: arrow_fs.FileSystem, path: str) -> arrow_fs.FileType:
    (info,) = system.get_file_info([path])
    return info.type


def remove(system: arrow_fs.FileSystem, path: str) -> None:
    """Remove a file or a folder, if there is one."""
    kind = _kind(system, path)
    if kind is arrow_fs.FileType.Directory:
        system.delete_dir(path)
    elif kind is arrow_fs.FileType.File:
        system.delete_file(path)
