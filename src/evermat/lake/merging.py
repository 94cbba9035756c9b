"""Which files are merged, and what merging means.

Small files pile up: one or two with every update. Once there are several of about the
same size they become one, so there are never many, and a row is rewritten only as often
as the number of files grows by a factor: the work of updates follows what they change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import STORED_NUMBERS
from evermat.lake.layout import NARROWEST, RELATION, arguments, width_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evermat.lake.data_files import DataFile

SEVERAL = 8
"""So many files of about the same size are merged; also the factor between sizes."""


def files_to_merge(files: Sequence[DataFile]) -> list[DataFile]:
    """The files that should become one; none if all is well.

    Files are on levels, each for files up to `SEVERAL` times as large as the one below.
    If a level has several files, they are merged, with all that is smaller.
    """
    levels: dict[int, list[DataFile]] = {}
    for file in files:
        levels.setdefault(_level(file.rows), []).append(file)
    for level in sorted(levels):
        if len(levels[level]) >= SEVERAL:
            return [file for at in levels if at <= level for file in levels[at]]
    return []


def _level(rows: int) -> int:
    level = 0
    while rows >= SEVERAL:
        rows //= SEVERAL
        level += 1
    return level


def stacked_facts(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of all tables, as wide as the widest."""
    width = max((width_of(table.column_names) for table in tables), default=1)
    keys = [RELATION, *arguments(width)]
    if not tables:
        return _NOTHING.empty_table()
    return pa.concat_tables([_filled(table, keys) for table in tables])


def summed_facts(tables: Sequence[pa.Table]) -> pa.Table:
    """Each fact once, with the sums of its numbers; what sums to nothing is left out.

    A single table is taken to be summed already.
    """
    together = stacked_facts(tables)
    if len(tables) <= 1:
        return together
    keys = [RELATION, *arguments(width_of(together.column_names))]
    totals = together.group_by(keys).aggregate(
        [(name, "sum") for name in STORED_NUMBERS]
    )
    totals = totals.rename_columns([*keys, *STORED_NUMBERS])
    changed = pc.not_equal(totals[STORED_NUMBERS[0]], 0)
    for name in STORED_NUMBERS[1:]:
        changed = pc.or_(changed, pc.not_equal(totals[name], 0))
    return totals.filter(changed).sort_by(RELATION)


_NOTHING = pa.schema(
    [
        (RELATION, pa.string()),
        *((name, pa.int64()) for name in (*arguments(NARROWEST), *STORED_NUMBERS)),
    ]
)


def _filled(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The facts with all columns for arguments; those that are not used are 0."""
    zeros = pa.array([0], pa.int64()).take(pa.array([0] * table.num_rows, pa.int8()))
    columns = [
        table[name].fill_null(0) if name in table.column_names else zeros
        for name in keys[1:]
    ]
    relation = table[RELATION].cast(pa.string())
    numbers = [table[name] for name in STORED_NUMBERS]
    return pa.table([relation, *columns, *numbers], names=[*keys, *STORED_NUMBERS])
