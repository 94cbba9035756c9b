"""Snapshots: memory-mapped files of the embedded engine's arrays, next to the log.

Without one, opening a state reads all facts, looks up their constants and sorts them
again. Instead, the latest snapshot is mapped into memory, and the changes of later
versions are applied to it. The Delta table alone is the state: a snapshot that is
missing, damaged, or of another state or version of Evermat is ignored, and a new one is
written when enough has changed. Object stores have no snapshots, as they cannot be
mapped.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version as version_of_package
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import numpy as np
import pyarrow as pa

from evermat.algebra import Engine
from evermat.columns import TERM
from evermat.engines.embedded.mapped_file import (
    ArrayWriter,
    DamagedFileError,
    MappedArrays,
)
from evermat.lake.errors import StateError
from evermat.lake.layout import FACTS, TERMS
from evermat.lake.log import uri_of

if TYPE_CHECKING:
    from evermat.engines.spark.dictionary import Dictionary
    from evermat.lake.log import Contents
    from evermat.lake.table import StateTable

FOLDER = "_snapshots"
FORMAT = 1
LEAST_ROWS = 200_000
"""The number of facts below which opening is about as fast without a snapshot."""
WORTH = 8
"""A snapshot is written when one row in this many has changed since the last, and by
pipelines after this many versions."""
SWITCH = "EVERMAT_SNAPSHOTS"
"""The environment variable that disables snapshots if it is `0`."""
_MOST_TEXT = 1 << 31


class MappingEngine(Engine, Protocol):
    """An engine that can write its contents to a file, and map that into memory."""

    def write_arrays(self, file: ArrayWriter) -> None:
        """Write facts, constants and indexes; not allowed in a transaction."""

    def map_arrays(self, file: MappedArrays) -> int:
        """Map the contents that were written: for engines without facts.

        Returns:
            The number of rule instances counted.
        """

    def apply_numbers(self, relation: str, table: pa.Table) -> None:
        """Change the stored numbers of facts, in the form of `StoredChange`."""


def can_map(engine: object) -> TypeGuard[MappingEngine]:
    """Return whether an engine has its facts in arrays of this process."""
    return hasattr(engine, "map_arrays")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An intact snapshot, and the later changes.

    Attributes:
        version: the version of the snapshot.
        facts, terms: the changes of later versions, and their new constants.
    """

    arrays: MappedArrays
    version: int
    facts: list[pa.Table]
    terms: list[pa.Table]

    @property
    def rows(self) -> int:
        """The number of rows changed since."""
        return sum(table.num_rows for table in self.facts)


def folder_of(place: str) -> Path | None:
    """Return the folder for the snapshots of a state; None if there are none."""
    address = urlsplit(uri_of(place))
    if address.scheme != "file" or os.environ.get(SWITCH) == "0":
        return None
    return Path(unquote(address.path)) / FOLDER


# ------------------------------------------------------------------------------ writing


def save(table: StateTable, engine: MappingEngine, dictionary: Dictionary) -> bool:
    """Write a snapshot of the version in memory; return whether that was possible."""
    folder = folder_of(table.place)
    if folder is None:
        return False
    path = folder / f"{table.version}-{uuid4().hex}"
    partial = path.with_suffix(".partial")
    try:
        folder.mkdir(exist_ok=True)
        older = list(folder.iterdir())
        with ArrayWriter(partial) as file:
            file.values["state"] = _identity(table.contents)
            engine.write_arrays(file)
            _write_terms(file, dictionary)
            file.finish()
        partial.rename(path)
    except (OSError, MemoryError):
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        return False
    for each in older:
        # Processes that have it mapped can still read it.
        with suppress(OSError):
            each.unlink()
    return True


def _identity(contents: Contents) -> dict[str, Any]:
    """Return the version and the array layout that a snapshot must match."""
    return {
        "format": FORMAT,
        "evermat": version_of_package("evermat"),
        "order": sys.byteorder,
        "table": contents.table,
        "version": contents.version,
        "number": contents.number,
        "time": contents.time,
    }


def _write_terms(file: ArrayWriter, dictionary: Dictionary) -> None:
    """Write the constants with the ids of the state."""
    ids, terms = dictionary.in_order()
    file.put("state ids", ids)
    file.put("state kinds", terms.field("kind").to_numpy())
    texts = terms.field("text")
    if isinstance(texts, pa.ChunkedArray) or texts.nbytes >= _MOST_TEXT:
        message = "too many texts"
        raise OSError(message)
    texts = pa.concat_arrays([texts])  # without an offset
    _, ends, data = texts.buffers()
    file.put("state ends", np.frombuffer(ends, np.int32, len(texts) + 1))
    length = int(np.frombuffer(ends, np.int32, len(texts) + 1)[-1])
    file.put("state texts", np.frombuffer(data or b"", np.uint8)[:length])


# ------------------------------------------------------------------------------ reading


def newest(table: StateTable) -> Snapshot | None:
    """Return the latest intact snapshot of this version or of an earlier one."""
    folder = folder_of(table.place)
    if folder is None or not folder.is_dir():
        return None
    paths = [path for path in folder.iterdir() if path.suffix != ".partial"]
    for path in sorted(paths, key=_version, reverse=True):
        if 0 <= _version(path) <= table.version:
            with suppress(DamagedFileError, StateError, OSError, KeyError):
                arrays = MappedArrays(path)
                arrays.verify()
                return _brought_up_to_date(table, arrays)
    return None


def _version(path: Path) -> int:
    number = path.name.partition("-")[0]
    return int(number) if number.isdecimal() else -1


def _brought_up_to_date(table: StateTable, arrays: MappedArrays) -> Snapshot:
    """Return a snapshot with the changes of later versions.

    Raises:
        StateError: it belongs to another state, or the changes are no longer known.
    """
    found = arrays.values["state"]
    version = found["version"]
    contents = table.log.entry(version).contents
    if contents is None or found != _identity(contents):
        raise StateError("use a snapshot", "it is of another state")
    facts, terms = [], []
    for entry in table.log.entries(version + 1, table.version):
        contents = entry.contents
        if contents is None or contents.restored is not None:
            raise StateError("use a snapshot", "the state went back since")
        changes = set((entry.update or {}).get("changes", ()))
        for kind, fields in entry.actions:
            path = fields.get("path", "")
            file = contents.files.get(path)
            if kind == "add" and file is not None:
                is_new = path in changes or fields["dataChange"]
                if is_new and file.part == FACTS:
                    facts.append(table.read(file))
                elif is_new and file.part == TERMS:
                    terms.append(table.read(file))
    return Snapshot(arrays, version, facts, terms)


def stored_terms(arrays: MappedArrays) -> tuple[np.ndarray[Any, Any], pa.StructArray]:
    """Return the constants with the ids of the state, in order, without copying."""
    ids = arrays.used("state ids")
    buffers = [pa.py_buffer(arrays.used(f"state {name}")) for name in ("ends", "texts")]
    texts = pa.StringArray.from_buffers(ids.size, *buffers)
    kinds = pa.array(arrays.used("state kinds"))
    return ids, pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))
