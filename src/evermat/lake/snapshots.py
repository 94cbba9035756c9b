"""Snapshots: what the embedded engine has in memory, in a file beside the Delta log.

Opening a state would read all facts, find their constants and sort them again. Instead
the newest snapshot is mapped into memory, and what later versions changed is applied to
it. The Delta table alone is the state: a snapshot that is missing, damaged, of another
state or of another version of Evermat is passed over, and a new one is written when
enough has changed. There are none on stores of objects, which cannot be mapped.
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
"""States with fewer facts are opened about as fast without."""
WORTH = 8
"""A snapshot is written when one row in so many has changed since the last one, and
by pipelines after so many versions."""
SWITCH = "EVERMAT_SNAPSHOTS"
"""The variable of the environment that is set to `0` to have none."""
_MOST_TEXT = 1 << 31


class MappingEngine(Engine, Protocol):
    """An engine that writes all it has to a file, and maps that into memory."""

    def write_arrays(self, file: ArrayWriter) -> None:
        """Write facts, constants and indexes: not in a transaction."""

    def map_arrays(self, file: MappedArrays) -> int:
        """Have what was written: for engines without facts.

        Returns:
            How many rule instances the counts stand for.
        """

    def apply_numbers(self, relation: str, table: pa.Table) -> None:
        """Change what is stored about facts, as `StoredChange` has it."""


def can_map(engine: object) -> TypeGuard[MappingEngine]:
    """Return whether an engine has its facts in arrays of this process."""
    return hasattr(engine, "map_arrays")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot that is whole, and what came after it.

    Attributes:
        version: the version that it is of.
        facts, terms: the changes of later versions, and their new constants.
    """

    arrays: MappedArrays
    version: int
    facts: list[pa.Table]
    terms: list[pa.Table]

    @property
    def rows(self) -> int:
        """How many rows changed since."""
        return sum(table.num_rows for table in self.facts)


def folder_of(place: str) -> Path | None:
    """Return the folder for snapshots of a state; None where there are none."""
    address = urlsplit(uri_of(place))
    if address.scheme != "file" or os.environ.get(SWITCH) == "0":
        return None
    return Path(unquote(address.path)) / FOLDER


# ------------------------------------------------------------------------------ writing


def save(table: StateTable, engine: MappingEngine, dictionary: Dictionary) -> bool:
    """Write a snapshot of the version that is in memory; whether that was possible."""
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
        # Whoever has it mapped keeps it.
        with suppress(OSError):
            each.unlink()
    return True


def _identity(contents: Contents) -> dict[str, Any]:
    """What a snapshot fits: the version of a state, and the layout of its arrays."""
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
    """Return the newest snapshot of a version, or of one before it, that is whole."""
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
    """Return a snapshot with what later versions changed.

    Raises:
        StateError: it is not of this state, or nobody knows any more what changed.
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
    """The constants with the ids of the state, in their order; nothing is copied."""
    ids = arrays.used("state ids")
    buffers = [pa.py_buffer(arrays.used(f"state {name}")) for name in ("ends", "texts")]
    texts = pa.StringArray.from_buffers(ids.size, *buffers)
    kinds = pa.array(arrays.used("state kinds"))
    return ids, pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))
