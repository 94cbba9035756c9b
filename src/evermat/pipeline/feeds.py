"""Change feeds: for each version the facts that came and left, with a sign.

A version is one file, or, where many facts came, several: those besides the first are
called `version-…-part-…`. The first is put there last, so that a version whose first
file is there is there as a whole.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as arrow_fs

from evermat.io.ntriples import warn_of_left_out
from evermat.pipeline.files import file_system
from evermat.pipeline.written_files import remove, write_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evermat.results.result import Result

ADDED, REMOVED = "+", "-"
_WORDS = ((ADDED, "added"), (REMOVED, "removed"))
_OURS = ("version", "sign")
# Of the two files of a version in N-Triples, the second one makes it complete.
_VERSION = re.compile(r"version-(\d+)(?:-removed)?\.")


def feed_names(columns: Sequence[str]) -> list[str]:
    """The columns of a feed; arguments may be called version or sign themselves."""
    return [*_OURS, *(f"{name}_" if name in _OURS else name for name in columns)]


def last_version(place: str) -> int | None:
    """The newest version in a feed."""
    names = [info.base_name for info in _listed(place)]
    versions = [int(found[1]) for name in names if (found := _VERSION.match(name))]
    return max(versions, default=None)


def _listed(place: str) -> list[arrow_fs.FileInfo]:
    system, path = file_system(place)
    selector = arrow_fs.FileSelector(path, allow_not_found=True)
    found: list[arrow_fs.FileInfo] = system.get_file_info(selector)
    return found


def signed(version: int, came: pa.Table, left: pa.Table) -> pa.Table:
    """What came and left, with version and sign before the arguments."""
    parts = []
    for sign, table in ((ADDED, came), (REMOVED, left)):
        count = table.num_rows
        columns = [
            pa.repeat(pa.scalar(version, pa.int64()), count),
            pa.repeat(pa.scalar(sign), count),
            *table.columns,
        ]
        parts.append(pa.table(columns, names=feed_names(came.column_names)))
    return pa.concat_tables(parts)


def add_version(
    place: str, suffix: str, version: int, table: pa.Table, what: str
) -> None:
    """Add what `signed` gave to a feed, or put it there again."""
    system, path = file_system(place)
    system.create_dir(path, recursive=True)
    name = f"{path}/{_version_name(version)}"
    if suffix != "nt":
        write_file(suffix, system, f"{name}.{suffix}", table, what)
        return
    # N-Triples have no room for a sign.
    signs = table.column("sign")
    facts = table.drop_columns(["version", "sign"])
    for sign, word in _WORDS:
        rows = facts.filter(pc.equal(signs, sign))
        left_out = write_file("nt", system, f"{name}-{word}.nt", rows, what)
        warn_of_left_out(f"{name}-{word}.nt", rows.num_rows, left_out)


def add_large_version(
    place: str, suffix: str, version: int, changes: tuple[Result, Result], what: str
) -> None:
    """The same for changes on the cluster, which tasks write."""
    from evermat.pipeline.spark_outputs import (  # noqa: PLC0415  needs Spark
        signed_frame,
        terms_frame,
        write_parts,
    )

    came, left = changes
    name = _version_name(version)
    if suffix != "nt":
        frame = signed_frame(version, came, left)
        with _Folder(place, name, suffix) as folder:
            write_parts(frame, folder, suffix, feed_names(came.columns), what)
        return
    like = terms_frame(came if came.distant is not None else left)
    for (_, word), result in zip(_WORDS, changes, strict=True):
        frame = terms_frame(result, like)
        with _Folder(place, f"{name}-{word}", suffix) as folder:
            left_out = write_parts(frame, folder, suffix, result.columns, what)
            warn_of_left_out(folder, len(result), left_out)


def _version_name(version: int) -> str:
    return f"version-{version:012}"


class _Folder:
    """A folder for parts of a version, which then become files of the feed."""

    def __init__(self, place: str, name: str, suffix: str) -> None:
        self._place, self._name, self._suffix = place.rstrip("/"), name, suffix
        self._system, self._path = file_system(self._place)
        self._path = self._path.rstrip("/")

    def __enter__(self) -> str:
        # Hidden from readers as long as it is not complete.
        remove(self._system, f"{self._path}/.{self._name}")
        self._system.create_dir(f"{self._path}/.{self._name}", recursive=True)
        return f"{self._place}/.{self._name}"

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        system, hidden = self._system, f"{self._path}/.{self._name}"
        if kind is None:
            for info in _listed(self._place):
                if info.base_name.startswith(f"{self._name}-part-"):
                    system.delete_file(info.path)
            selector = arrow_fs.FileSelector(hidden)
            parts = sorted(info.path for info in system.get_file_info(selector))
            if not parts:
                # No task had a row: only N-Triples have a file for nothing.
                new = f"{self._path}/{self._name}.{self._suffix}"
                system.open_output_stream(new).close()
            for number in range(len(parts) - 1, -1, -1):
                more = f"-part-{number:05}" if number else ""
                new = f"{self._path}/{self._name}{more}.{self._suffix}"
                system.move(parts[number], new)
        remove(system, hidden)
