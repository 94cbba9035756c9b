"""Sets of rows on the driver: Arrow tables in the layout of `blocks`."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

NUMBERS = ("holds", "given", "n_nr", "n_r")
"""What is stored about facts, where names of their columns begin with a `c`."""


def key_columns(width: int) -> list[str]:
    """Return the names of the columns that identify a row."""
    return ["tag", *(f"c{at}" for at in range(width))]


def padded_keys(known: int, width: int) -> list[str]:
    """Return the same for a plan over rows with fewer arguments: the others are 0."""
    names = key_columns(width)
    return [*names[: known + 1], *(f"0L AS {name}" for name in names[known + 1 :])]


def key_names(table: pa.Table) -> list[str]:
    """Return the names of the columns that identify a row of a table."""
    return [name for name in table.column_names if name == "tag" or name[0] == "c"]


def table_width(table: pa.Table) -> int:
    """Return the number of columns for arguments."""
    return sum(name.startswith("c") for name in table.column_names)


def widened(table: pa.Table, width: int) -> pa.Table:
    """Return the same rows with more columns, which are 0."""
    known = table_width(table)
    zeros = pa.array([0] * table.num_rows, pa.int64()) if known < width else None
    for at in range(known, width):
        table = table.add_column(at + 1, f"c{at}", zeros)
    return table


def both_widened(left: pa.Table, right: pa.Table) -> tuple[pa.Table, pa.Table, int]:
    """Return two tables, both with the width of the wider one."""
    width = max(table_width(left), table_width(right))
    return widened(left, width), widened(right, width), width


def _joined(left: pa.Table, right: pa.Table, how: str) -> pa.Table:
    """Return rows of the left side that the right side has (semi) or lacks (anti)."""
    if left.num_rows == 0:
        return left
    if right.num_rows == 0:
        return left if how == "left anti" else left.slice(0, 0)
    left, right, width = both_widened(left, right)
    keys = key_columns(width)
    return left.join(right.select(keys), keys, join_type=how, use_threads=False)


def without(left: pa.Table, right: pa.Table) -> pa.Table:
    """Return rows of the left side that the right side lacks."""
    return _joined(left, right, "left anti")


def common(left: pa.Table, right: pa.Table) -> pa.Table:
    """Return rows of the left side that the right side has as well."""
    return _joined(left, right, "left semi")


def distinct(table: pa.Table) -> pa.Table:
    """Return each row once."""
    return table.group_by(key_names(table), use_threads=False).aggregate([])


def summed(table: pa.Table) -> pa.Table:
    """Return each row once, with the sum of its counts."""
    keys = key_names(table)
    total = table.group_by(keys, use_threads=False).aggregate([("n", "sum")])
    return total.rename_columns([*keys, "n"])


def chosen(table: pa.Table, tags: frozenset[int] | None) -> pa.Table:
    """Return the rows of some relations."""
    if tags is None or table.num_rows == 0:
        return table
    wanted = pa.array(sorted(tags), pa.int64())
    return table.filter(pc.is_in(table.column("tag"), value_set=wanted))


def appended(tables: list[pa.Table]) -> pa.Table:
    """Concatenate tables."""
    width = max(table_width(table) for table in tables)
    wide = [widened(table, width) for table in tables]
    return pa.concat_tables([table.select(wide[0].column_names) for table in wide])
