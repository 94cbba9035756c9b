"""How a state is laid out: one Delta table, five parts.

| part      | a row is                                                                 |
| --------- | ------------------------------------------------------------------------ |
| `facts`   | a change of a fact: its relation, the ids of its arguments, four numbers |
| `cliques` | the same for a constant and what stands for it, where some are equal   |
| `terms`   | a constant: its id, its kind and its text                                |
| `program` | the rules, the predicates and the settings, as JSON                      |
| `ledger`  | something that was applied, such as a file: a name, and a text about it  |

The numbers of a fact are *summed*: all its rows together say whether it holds and was
given (1 or 0), and how often it was derived. An update appends what it changes, and
merging files changes no sum. Ids are those of `evermat.engines.spark.ids`: integers
are ids by themselves, other constants are looked up among the terms.
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
    from collections.abc import Sequence

    from deltalake import DeltaTable


# ------------------------------------------------------------------------- the columns

PART = "part"
FACTS, CLIQUES, TERMS, PROGRAM = "facts", "cliques", "terms", "program"
LEDGER = "ledger"

RELATION = "relation"
STANDS_FOR = "≈"
"""The relation of the cliques: a constant, and the one that stands for it."""
NARROWEST = 4
"""Columns for arguments that a table has from the start."""


def arguments(width: int) -> list[str]:
    """Return the names of the columns that hold arguments."""
    return [f"c{at}" for at in range(width)]


def width_of(names: list[str]) -> int:
    """How many columns for arguments there are."""
    return sum(name[0] == "c" and name[1:].isdigit() for name in names)


def part_of(path: str) -> str:
    """Return the part to which a file belongs, which the name of its folder says."""
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
        digest: what it is verified by; None if an older Evermat wrote it.
        stats: what Delta knows about its contents, as JSON.
        is_change: whether it says something new; merged files do not.
    """

    path: str
    part: str
    rows: int
    size: int
    digest: str | None = None
    stats: str = "{}"
    is_change: bool = True


def listed(table: DeltaTable) -> list[DataFile]:
    """Return the files of a version as Delta knows them."""
    # Not `pa.table`, which loads pandas to see whether this is a frame of its.
    stream = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True))
    actions = stream.read_all()
    names = ("path", f"partition.{PART}", "num_records", "size_bytes")
    columns = [actions[name].to_pylist() for name in names]
    return [DataFile(*row) for row in zip(*columns, strict=True)]


def delta_actions(
    add: Sequence[DataFile], remove: Sequence[DataFile]
) -> list[AddAction | RemoveAction]:
    """What a commit tells Delta about files that are new and files that are gone."""
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
    # What a removed file said stays true: it is merged, or said anew.
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
    """What Delta is told about a file of which nothing else is known."""
    return json.dumps({"numRecords": rows})


def statistics(table: pa.Table) -> str:
    """How many rows there are, and which relations: readers skip files by them."""
    stats: dict[str, Any] = {"numRecords": table.num_rows}
    if RELATION in table.column_names and table.num_rows:
        ends = pc.min_max(table[RELATION])
        stats["minValues"] = {RELATION: ends["min"].as_py()}
        stats["maxValues"] = {RELATION: ends["max"].as_py()}
        stats["nullCount"] = {RELATION: 0}
    return json.dumps(stats)
