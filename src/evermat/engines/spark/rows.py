"""Expressions over sets of rows: evaluated at once if small, otherwise plans.

Set operators over rows on the driver are evaluated on the driver, with Arrow. If one
side is on the cluster, they become SQL text, in which the small side is broadcast. The
text of a plan never contains the plan of another round: blocks are scanned.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.engines.spark.blocks import Block, local_block, united
from evermat.engines.spark.dictionary import constant_id
from evermat.engines.spark.joins import join_hint
from evermat.engines.spark.row_tables import (
    appended,
    chosen,
    common,
    distinct,
    key_columns,
    key_names,
    padded_keys,
    without,
)
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evermat.algebra import Region
    from evermat.engines.spark.blocks import Cluster


MOST_READ = 2_000_000
"""Rows of a state up to which the driver reads them by itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Distinct rows: a block on the driver, or a plan.

    Attributes:
        bound: there are at most so many rows.
        plan: a query for `tag`, `c0`, …, or what gives it; None for rows on the driver.
        keeps: blocks whose views the plan names, so that they stay.
        whole: the block on the cluster that the rows are, if they are all of one.
        sizes: how many rows each relation has, where that is known exactly.
        read: gives the rows of a plan without Spark, where that can be done.
    """

    cluster: Cluster
    width: int
    bound: int
    block: Block | None = None
    plan: str | Callable[[], str] | None = None
    keeps: tuple[Block, ...] = ()
    whole: Block | None = None
    sizes: Mapping[int, int] | None = None
    read: Callable[[], pa.Table] | None = None

    @property
    def table(self) -> pa.Table | None:
        """The rows, if they are on the driver."""
        return None if self.block is None else self.block.table

    @property
    def sql(self) -> str | None:
        """A query for `tag`, `c0`, …; None for rows on the driver."""
        return self.plan() if callable(self.plan) else self.plan

    def reader(self) -> Callable[[], pa.Table] | None:
        """What gives the rows without Spark, if there is something."""
        return self.read if self.block is None else lambda: self.table

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks that a plan over these rows needs."""
        return self.keeps if self.block is None else (self.block,)

    @property
    def tags(self) -> frozenset[int]:
        """The relations that may have rows."""
        return frozenset(tag for block in self.blocks for tag in block.sizes)

    def query(self, width: int | None = None) -> str:
        """Return a query for the rows, with at least `width` columns."""
        width = self.width if width is None else max(width, self.width)
        sql = self.sql
        if sql is not None and width == self.width:
            return sql
        names = ", ".join(padded_keys(self.width, width))
        source = self.block.view if self.block is not None else f"({sql})"
        return f"SELECT {names} FROM {source}"  # noqa: S608


def local_rows(cluster: Cluster, table: pa.Table) -> Rows:
    """Return rows on the driver."""
    return block_rows(local_block(cluster, table))


def block_rows(block: Block, tags: frozenset[int] | None = None) -> Rows:
    """Return the rows of a block, or those of some relations."""
    cluster = block.cluster
    if tags is not None and tags >= block.sizes.keys():
        tags = None
    if block.table is not None:
        if tags is not None:
            block = local_block(cluster, chosen(block.table, tags))
        return Rows(cluster, block.width, block.size, block, sizes=block.sizes)
    sizes = {tag: n for tag, n in block.sizes.items() if tags is None or tag in tags}
    names = ", ".join(key_columns(block.width))

    def sql() -> str:
        every = f"SELECT {names} FROM {block.view_of(tags)}"  # noqa: S608
        return every if tags is None else f"{every} WHERE tag IN ({_list(tags)})"

    whole, read = block if tags is None else None, block.reader(tags)
    bound = sum(sizes.values())
    return Rows(cluster, block.width, bound, None, sql, (block,), whole, sizes, read)


def no_rows(cluster: Cluster) -> Rows:
    """Return the empty set of rows."""
    empty = pa.table({"tag": pa.array([], pa.int64()), "c0": pa.array([], pa.int64())})
    return local_rows(cluster, empty)


def _list(numbers: frozenset[int]) -> str:
    return ", ".join(f"{number}L" for number in sorted(numbers) or [-1])


# ---------------------------------------------------------------------- operators


def difference(left: Rows, right: Rows) -> Rows:
    """Return rows of the left side that the right side lacks."""
    if not left.bound or not right.bound:
        return left
    if left.table is not None:
        if right.table is None:
            # The small side is looked up in the large one, not the other way round.
            right = local_rows(right.cluster, work_out(intersection(left, right)))
        return _local(left, without(left.table, right.table))
    rows = _compared(left, right, "ANTI", left.bound)
    read, less = left.read, right.table
    if read is None or less is None:
        return rows
    return replace(rows, read=lambda: without(read(), less))


def intersection(left: Rows, right: Rows) -> Rows:
    """Return rows of both sides."""
    if not left.bound or not right.bound:
        return no_rows(left.cluster)
    if left.table is not None and right.table is not None:
        return _local(left, common(left.table, right.table))
    if right.bound > left.bound:
        left, right = right, left
    return _compared(left, right, "SEMI", right.bound)


def union(left: Rows, right: Rows) -> Rows:
    """Return rows of either side."""
    if not left.bound:
        return right
    if not right.bound:
        return left
    if left.table is not None and right.table is not None:
        tables = [left.table, right.table]
        narrow = [table.select(key_names(table)) for table in tables]
        return _local(left, distinct(appended(narrow)))
    if right.bound > left.bound:
        left, right = right, left
    return concatenated([difference(left, right), right])


def concatenated(parts: list[Rows]) -> Rows:
    """Return the union of disjoint sets."""
    parts = [part for part in parts if part.bound]
    if len(parts) == 1:
        return parts[0]
    width = max(part.width for part in parts)
    bound = sum(part.bound for part in parts)
    return Rows(
        cluster=parts[0].cluster,
        width=width,
        bound=bound,
        plan=lambda: united((part.query(width) for part in parts), bound),
        keeps=tuple(block for part in parts for block in part.blocks),
        sizes=_sizes_together(parts),
        read=_read_together(parts),
    )


def _read_together(parts: list[Rows]) -> Callable[[], pa.Table] | None:
    readers = [part.reader() for part in parts]
    if any(reader is None for reader in readers):
        return None
    return lambda: appended([reader() for reader in readers if reader is not None])


def _sizes_together(parts: list[Rows]) -> Mapping[int, int] | None:
    total = Counter[int]()
    for part in parts:
        if part.sizes is None:
            return None
        total.update(part.sizes)
    return total


def within(rows: Rows, region: Region) -> Rows:
    """Return rows that lie in a region."""
    cluster = rows.cluster
    tags = frozenset(
        cluster.tags[name] for name in region.relations if name in cluster.tags
    )
    shapes = _shapes(cluster, region, rows.width)
    if rows.table is not None:
        table = rows.table
        parts = [chosen(table, tags)]
        rest = table.filter(
            pc.invert(pc.is_in(table["tag"], pa.array(sorted(tags), pa.int64())))
        )
        parts += [_fitting(rest, names, keys) for names, keys in shapes.items()]
        return _local(rows, distinct(appended(parts)))
    conditions = [f"tag IN ({_list(tags)})"]
    for names, keys in shapes.items():
        values = ", ".join(f"({', '.join(f'{k}L' for k in key)})" for key in keys)
        conditions.append(f"({', '.join(names)}) IN ({values})")

    def sql() -> str:
        return f"SELECT * FROM ({rows.sql}) WHERE {' OR '.join(conditions)}"  # noqa: S608

    return Rows(cluster, rows.width, rows.bound, None, sql, rows.keeps)


def _shapes(
    cluster: Cluster, region: Region, width: int
) -> dict[tuple[str, ...], list[tuple[int, ...]]]:
    """Return shapes by the columns that they fix, if rows of a width can have them."""
    groups: dict[tuple[str, ...], list[tuple[int, ...]]] = {}
    for shape in region.shapes:
        if shape.relation in cluster.tags:
            fixed = [
                (f"c{at}", constant_id(operand))
                for at, operand in enumerate(shape.operands)
                if isinstance(operand, Constant)
            ]
            names = ("tag", *(name for name, _ in fixed))
            key = (cluster.tags[shape.relation], *(value for _, value in fixed))
            groups.setdefault(names, []).append(key)
    known = set(key_columns(width))
    return {names: keys for names, keys in groups.items() if known.issuperset(names)}


def _fitting(
    table: pa.Table, names: tuple[str, ...], keys: list[tuple[int, ...]]
) -> pa.Table:
    if not table.num_rows:
        return table
    columns = [pa.array(column, pa.int64()) for column in zip(*set(keys), strict=True)]
    wanted = pa.table(columns, names=list(names))
    return table.join(wanted, list(names), join_type="left semi", use_threads=False)


def _local(like: Rows, table: pa.Table) -> Rows:
    return local_rows(like.cluster, table)


def _compared(left: Rows, right: Rows, how: str, bound: int) -> Rows:
    """Return rows of the left side that the right one has (SEMI), or lacks (ANTI)."""
    width = max(left.width, right.width)

    def sql() -> str:
        ours, theirs = left.query(width), right.query(width)
        hint = join_hint(left.cluster, left.bound, right.bound)
        if hint == "MERGE":
            return _compared_by_counting(ours, theirs, how, width)
        on = " AND ".join(f"l.{name} = r.{name}" for name in key_columns(width))
        return (
            f"SELECT /*+ {hint}(r) */ l.* FROM ({ours}) l "  # noqa: S608
            f"LEFT {how} JOIN ({theirs}) r ON {on}"
        )

    keeps = left.blocks + right.blocks
    return Rows(left.cluster, width, bound, None, sql, keeps)


def _compared_by_counting(left: str, right: str, how: str, width: int) -> str:
    """Do the same by one aggregation, which spills as well and takes half as long.

    Spark would join each part of a union with the whole right side, and sort that for
    each of them.
    """
    keys = ", ".join(key_columns(width))
    both = (
        f"SELECT {keys}, 1 AS ours, 0 AS theirs FROM ({left}) UNION ALL "  # noqa: S608
        f"SELECT {keys}, 0 AS ours, 1 AS theirs FROM ({right})"
    )
    return (
        f"SELECT {keys} FROM (SELECT * FROM ({both}) DISTRIBUTE BY {keys}) "  # noqa: S608
        f"GROUP BY {keys} HAVING max(ours) = 1 AND max(theirs) = {int(how == 'SEMI')}"
    )


# -------------------------------------------------------------------- working out


def work_out(rows: Rows) -> pa.Table:
    """Return the rows on the driver, however many there are."""
    if rows.table is not None:
        return rows.table
    if rows.read is not None and rows.bound <= MOST_READ:
        return rows.read()
    return rows.cluster.collect(str(rows.sql), rows.bound)


def settled_block(rows: Rows) -> Block:
    """Return the rows as a block, on the driver if there are few."""
    if rows.block is not None:
        return rows.block
    if rows.whole is not None and rows.bound > rows.cluster.small:
        return rows.whole
    if rows.bound <= rows.cluster.small:
        return local_block(rows.cluster, work_out(rows))
    block = rows.cluster.checkpoint(str(rows.sql), rows.width, rows.tags)
    return brought_home(block)


def brought_home(block: Block, room: int | None = None) -> Block:
    """Return the same block, on the driver if it turned out to be small.

    Args:
        block: the block.
        room: the number of rows that fit there.
    """
    room = block.cluster.small if room is None else room
    if block.table is not None or block.size > room:
        return block
    rows = block.cluster.collect(f"SELECT * FROM {block.view}")  # noqa: S608
    return local_block(block.cluster, rows)


def partitioned(rows: Rows) -> Block:
    """Return the rows as a block on the cluster, partitioned by all columns."""
    keys = ", ".join(key_columns(rows.width))
    sql = f"SELECT * FROM ({rows.query()}) DISTRIBUTE BY {keys}"  # noqa: S608
    return rows.cluster.checkpoint(sql, rows.width, rows.tags)


def repartitioned(rows: Rows) -> Block:
    """Do the same for rows of blocks, most of which have that partitioning.

    Grouping distinct rows changes nothing, and Spark shuffles for it only if necessary.
    If told to distribute them, it would always shuffle.
    """
    keys = ", ".join(key_columns(rows.width))
    sql = f"SELECT {keys} FROM ({rows.query()}) GROUP BY {keys}"  # noqa: S608
    return rows.cluster.checkpoint(sql, rows.width, rows.tags)
