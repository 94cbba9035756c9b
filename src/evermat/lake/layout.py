"""Layout of a state: one Delta table in five parts.

| part      | a row is                                                                 |
| --------- | ------------------------------------------------------------------------ |
| `facts`   | a change of a fact: its relation, the ids of its arguments, four numbers |
| `cliques` | the same for a constant and its representative, if they differ           |
| `terms`   | a constant: its id, its kind and its text                                |
| `program` | the rules, the predicates and the settings, as JSON                      |
| `ledger`  | an applied input, such as a file: a name, and a text about it            |

The numbers of a fact are *summed*: the sum of all its rows tells whether it holds and
is explicit (1 or 0), and its derivation counts. An update appends its changes, and
merging files changes no sum. Ids are those of `evermat.engines.spark.dictionary`:
integers are their own ids, other constants are looked up among the terms.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.transaction import AddAction, RemoveAction

from evermat.algebra import STORED_NUMBERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deltalake import DeltaTable


# ------------------------------------------------------------------------- the columns

PART = "part"
FACTS, CLIQUES, TERMS, PROGRAM = "facts", "cliques", "terms", "program"
LEDGER = "ledger"

RELATION = "relation"
STANDS_FOR = "≈"
"""The relation of the cliques: a constant and its representative."""
NARROWEST = 4
"""The number of argument columns that every table has."""


def arguments(width: int) -> list[str]:
    """Return the names of the argument columns."""
    return [f"c{at}" for at in range(width)]


def width_of(names: list[str]) -> int:
    """Return the number of argument columns."""
    return sum(name[0] == "c" and name[1:].isdigit() for name in names)


def part_of(path: str) -> str:
    """Return the part of a file, which is the name of its folder."""
    return path.partition("/")[0].removeprefix(f"{PART}=")


def schema(width: int) -> pa.Schema:
    """Return the columns of the table."""
    return pa.schema(
        [
            (PART, pa.string()),
            (RELATION, pa.string()),
            *((name, pa.int64()) for name in arguments(width)),
            *((name, pa.int64()) for name in STORED_NUMBERS),
            ("id", pa.int64()),
            ("kind", pa.int32()),
            ("text", pa.string()),
        ]
    )


# -------------------------------------------------------------------------- data files


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of the table.

    Attributes:
        path: relative to the table.
        digest: for verification; None if an earlier version of Evermat wrote it.
        stats: Delta's statistics of its contents, as JSON.
        is_change: whether its contents are new; those of merged files are not.
    """

    path: str
    part: str
    rows: int
    size: int
    digest: str | None = None
    stats: str = "{}"
    is_change: bool = True

    @property
    def written_with(self) -> str:
        """The same for files that were written together, in tasks."""
        folder, _, name = self.path.rpartition("/")
        return folder if "/" in folder else f"{folder}/{name}"


def listed(table: DeltaTable) -> list[DataFile]:
    """Return the files of a version according to Delta."""
    # Not `pa.table`, which imports pandas to test whether this is a data frame.
    stream = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True))
    actions = stream.read_all()
    names = ("path", f"partition.{PART}", "num_records", "size_bytes")
    columns = [actions[name].to_pylist() for name in names]
    return [DataFile(*row) for row in zip(*columns, strict=True)]


def runs(files: Iterable[DataFile]) -> list[list[DataFile]]:
    """Files by what was written together: a fact is in one file of a run, once."""
    found: dict[str, list[DataFile]] = {}
    for file in files:
        found.setdefault(file.written_with, []).append(file)
    return list(found.values())


def row_sum(files: Iterable[DataFile]) -> int:
    """How many rows files have."""
    return sum(file.rows for file in files)


def delta_actions(
    add: Sequence[DataFile], remove: Sequence[DataFile]
) -> list[AddAction | RemoveAction]:
    """Return the actions of a commit for added and removed files."""
    now = int(time.time() * 1000)
    actions: list[AddAction | RemoveAction] = [
        AddAction(
            path=file.path,
            size=file.size,
            partition_values={PART: file.part},
            modification_time=now,
            data_change=file.is_change,
            stats=file.stats,
        )
        for file in add
    ]
    # The rows of a removed file are still valid: they were merged, or written again.
    actions += [
        RemoveAction(
            path=file.path,
            data_change=False,
            deletion_timestamp=now,
            size=file.size,
            partition_values={PART: file.part},
        )
        for file in remove
    ]
    return actions


def row_count(rows: int) -> str:
    """Return Delta statistics with the number of rows only."""
    return json.dumps({"numRecords": rows})


def statistics(table: pa.Table) -> str:
    """Return Delta statistics: rows and relations, by which readers skip files."""
    stats: dict[str, Any] = {"numRecords": table.num_rows}
    if RELATION in table.column_names and table.num_rows:
        ends = pc.min_max(table[RELATION])
        stats["minValues"] = {RELATION: ends["min"].as_py()}
        stats["maxValues"] = {RELATION: ends["max"].as_py()}
        stats["nullCount"] = {RELATION: 0}
    return json.dumps(stats)
