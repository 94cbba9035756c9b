"""Counters: a log of counts of facts, summed when they are read.

The log consists of blocks with a count for each fact; the counter of a fact is the sum
over all blocks. Small blocks are kept summed on the driver.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import EngineUseError, require_bounded
from evermat.engines.spark.blocks import Block, local_block, parted
from evermat.engines.spark.joins import hint_for
from evermat.engines.spark.lookups import Lookups
from evermat.engines.spark.row_tables import (
    appended,
    chosen,
    common,
    key_columns,
    padded_keys,
    summed,
    without,
)
from evermat.engines.spark.rows import (
    Rows,
    block_rows,
    difference,
    intersection,
    local_rows,
    no_rows,
    settled_block,
    union,
)
from evermat.engines.spark.sets import Settled, rows_of

if TYPE_CHECKING:
    from evermat.algebra import Counts, Facts
    from evermat.engines.spark.blocks import Cluster
    from evermat.engines.spark.sets import Counted

MANY_LEVELS = 16
"""Number of levels from which all of them are summed into one."""


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """Counts on the cluster, without those of some facts."""

    block: Block
    sign: int
    holes: Rows

    @property
    def width(self) -> int:
        """The smallest number of columns of the query for the counts."""
        return max(self.block.width, self.holes.width)

    def query(self, width: int, tags: frozenset[int] | None = None) -> str:
        """Return a query for the keys and the counts, which may be negative."""
        keys = ", ".join(padded_keys(self.block.width, width))
        sql = f"SELECT {keys}, {self.sign} * n AS n FROM {self.block.view_of(tags)}"  # noqa: S608
        if tags is not None:
            sql += f" WHERE tag IN ({', '.join(f'{tag}L' for tag in sorted(tags))})"
        if not self.holes.bound:
            return sql
        return _join(sql, self.holes, width, "ANTI")


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """The contents of a counter at one moment."""

    levels: tuple[Level, ...] = ()
    local: Block | None = None


class CounterLog:
    """A count for each fact, zero by default."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.numbers = Numbers()
        self.lookups: Lookups | None = None

    def add(self, counts: Counts) -> None:
        """Add the counts."""
        self.append(cast("Counted", counts).block, 1)

    def subtract(self, counts: Counts) -> None:
        """Subtract the counts; the result may not be negative."""
        block = cast("Counted", counts).block
        if not block.size:
            return
        name = self._first_below_zero(block)
        if name is not None:
            raise EngineUseError(
                f"a count of `{name}` would fall below zero",
                reason="what is taken away was counted before",
            )
        self.append(block, -1)

    def positive(self, facts: Facts) -> Settled:
        """Return those of the facts whose count is above zero."""
        require_bounded(facts)
        return Settled(settled_block(self._above_zero(rows_of(facts, self.cluster))))

    def zero(self, facts: Facts) -> Settled:
        """Return those of the facts whose count is zero."""
        require_bounded(facts)
        rows = rows_of(facts, self.cluster)
        return Settled(settled_block(difference(rows, self._above_zero(rows))))

    def forget(self, rows: Rows) -> None:
        """Set the counts of deleted facts to zero."""
        if not rows.bound:
            return
        local = self.numbers.local
        if local is not None and rows.table is not None:
            local = local_block(self.cluster, without(local.table, rows.table))
        elif local is not None:
            kept = difference(_keys(local), rows).table
            local = local_block(self.cluster, common(local.table, kept))
        levels = tuple(
            Level(each.block, each.sign, union(each.holes, rows))
            for each in self.numbers.levels
        )
        self.numbers = Numbers(levels, local)

    def numbers_in(self, tags: frozenset[int]) -> pa.Table:
        """Return the counts of all facts of some relations, on the driver."""
        parts = [self._stored(tags)]
        if self.numbers.local is not None:
            parts.append(chosen(self.numbers.local.table, tags))
        return summed(appended(parts))

    def numbers_of(self, facts: pa.Table) -> pa.Table:
        """Return the counts of some facts, on the driver."""
        parts = [self._look_up(facts) if self.numbers.levels else _no_numbers()]
        if self.numbers.local is not None:
            parts.append(common(self.numbers.local.table, facts))
        return summed(appended(parts))

    def _stored(self, tags: frozenset[int]) -> pa.Table:
        """Return the counts on the cluster."""
        width = self._stored_width()
        levels = [
            level.query(width, tags)
            for level in self.numbers.levels
            if not tags.isdisjoint(level.block.sizes)
        ]
        if not levels:
            return _no_numbers()
        return self.cluster.collect(" UNION ALL ".join(levels))

    def _look_up(self, facts: pa.Table) -> pa.Table:
        """Return the counts of some facts on the cluster."""
        if self.lookups is None:
            self.lookups = Lookups(self.cluster, (self,))
        parts = [_no_numbers()]
        found = self.lookups.find(self.stored_blocks(), facts)
        for level, table in zip(self.numbers.levels, found, strict=True):
            numbers = table if level.sign > 0 else _negated(table)
            if level.holes.bound:
                facts_here = local_rows(self.cluster, table.drop_columns(["n"]))
                numbers = common(numbers, difference(facts_here, level.holes).table)
            parts.append(numbers)
        return appended(parts)

    def stored_blocks(self) -> list[Block]:
        """Return the blocks on the cluster."""
        return [level.block for level in self.numbers.levels]

    def _stored_width(self) -> int:
        """Return the number of columns of the facts on the cluster."""
        return max((level.width for level in self.numbers.levels), default=1)

    def of(self, rows: Rows) -> Numbers:
        """Return the counts of some facts only."""
        if rows.table is not None:
            table = self.numbers_of(rows.table)
            return Numbers(local=local_block(self.cluster, table))
        return Numbers(
            tuple(
                replace(each, holes=union(each.holes, _others(each.block, rows)))
                for each in self._levels()
            )
        )

    def counted(self, tag: int | None = None) -> Rows:
        """Return the facts, or those of a relation, whose count is above zero."""
        tags = None if tag is None else frozenset({tag})
        local = self.numbers.local
        if not self.numbers.levels:
            table = chosen(_no_numbers() if local is None else local.table, tags)
            found = table.filter(pc.greater(table["n"], 0)).drop_columns(["n"])
            return local_rows(self.cluster, found)
        found = self._all_above_zero()
        if tag is None:
            return found
        sql = f"SELECT * FROM ({found.sql}) WHERE tag = {tag}L"  # noqa: S608
        return replace(found, plan=sql)

    def append(self, block: Block, sign: int = 1) -> None:
        """Add the counts of a block, or subtract them."""
        if not block.pending and not block.size:
            return
        levels, local = self.numbers.levels, self.numbers.local
        if block.table is None:
            levels = (*levels, Level(block, sign, no_rows(self.cluster)))
        else:
            table = block.table if sign > 0 else _negated(block.table)
            tables = [table] if local is None else [local.table, table]
            local = local_block(self.cluster, summed(appended(tables)))
        if local is not None and local.size > self.cluster.small:
            local, large = parted(local)
            level = Level(large, 1, no_rows(self.cluster))
            levels = (*levels, self._added_up((level,)))
        if len(levels) > MANY_LEVELS:
            levels = (self._added_up(levels),)
        self.numbers = Numbers(levels, local)

    # ------------------------------------------------------------------------------

    def _added_up(self, levels: tuple[Level, ...]) -> Level:
        width = max(level.width for level in levels)
        sql = _sum_by_fact([level.query(width) for level in levels], width, "<> 0")
        tags = frozenset(tag for level in levels for tag in level.block.sizes)
        block = self.cluster.checkpoint(sql, width, tags)
        return Level(block, 1, no_rows(self.cluster))

    def _above_zero(self, rows: Rows) -> Rows:
        if not rows.bound:
            return rows
        if rows.table is not None:
            table = self.numbers_of(rows.table)
            found = table.filter(pc.greater(table["n"], 0)).drop_columns(["n"])
            return intersection(rows, local_rows(self.cluster, found))
        return intersection(rows, self._all_above_zero())

    def _levels(self) -> list[Level]:
        """Return all counts as levels, including those on the driver."""
        levels = list(self.numbers.levels)
        if self.numbers.local is not None:
            levels.append(Level(self.numbers.local, 1, no_rows(self.cluster)))
        return levels

    def _all_above_zero(self) -> Rows:
        levels = self._levels()
        if not levels:
            return no_rows(self.cluster)
        width = max(level.width for level in levels)
        parts = [level.query(width) for level in levels]
        keys = ", ".join(key_columns(width))
        sql = f"SELECT {keys} FROM ({_sum_by_fact(parts, width, '> 0')})"  # noqa: S608
        bound = sum(level.block.size for level in levels)
        blocks = tuple(
            block for level in levels for block in (level.block, *level.holes.blocks)
        )
        return Rows(self.cluster, width, bound, None, sql, blocks)

    def _first_below_zero(self, block: Block) -> str | None:
        """Return a relation in which a count is less than the one in a block."""
        if block.table is not None:
            known = self.numbers_of(block.table)
            total = summed(appended([known, _negated(block.table)]))
            below = total.filter(pc.less(total["n"], 0))["tag"].to_pylist()
        else:
            levels = [*self._levels(), Level(block, -1, no_rows(self.cluster))]
            width = max(level.width for level in levels)
            parts = [level.query(width) for level in levels]
            sql = _sum_by_fact(parts, width, "< 0")
            found = self.cluster.collect(f"SELECT tag FROM ({sql}) LIMIT 1")  # noqa: S608
            below = found["tag"].to_pylist()
        return self.cluster.names[below[0]] if below else None


def _sum_by_fact(parts: list[str], width: int, condition: str) -> str:
    keys = ", ".join(key_columns(width))
    return (
        f"SELECT {keys}, sum(n) AS n FROM ({' UNION ALL '.join(parts)}) "  # noqa: S608
        f"GROUP BY {keys} HAVING sum(n) {condition}"
    )


def _join(sql: str, rows: Rows, width: int, how: str) -> str:
    names = key_columns(width)
    on = " AND ".join(f"l.{name} = r.{name}" for name in names)
    hint = hint_for(rows.cluster, rows.bound)
    return (
        f"SELECT /*+ {hint}(r) */ l.* FROM ({sql}) l "  # noqa: S608
        f"LEFT {how} JOIN ({rows.query(width)}) r ON {on}"
    )


def _others(block: Block, rows: Rows) -> Rows:
    """Return the facts of a block that are not among some rows."""
    return difference(_keys(block), rows)


def _keys(block: Block) -> Rows:
    if block.table is None:
        return block_rows(block)
    return local_rows(block.cluster, block.table.drop_columns(["n"]))


def _negated(table: pa.Table) -> pa.Table:
    at = table.column_names.index("n")
    return table.set_column(at, "n", pc.negate(table["n"]))


def _no_numbers() -> pa.Table:
    names = ["tag", "c0", "n"]
    return pa.table({name: pa.array([], pa.int64()) for name in names})
