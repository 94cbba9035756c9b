"""The Parquet files of a version, and how a commit tells Delta about them."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.transaction import AddAction, RemoveAction

from evermat.lake.layout import PART, RELATION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import DeltaTable


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
    """The files of a version as Delta knows them."""
    actions = pa.table(table.get_add_actions(flatten=True))
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
