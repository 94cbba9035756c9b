"""Mutable sets of rows.

A growing or stored set is a *heap*: a table on the driver, and levels on the cluster.
Facts that are deleted from a level are stored beside it as *holes*, so that a small
change writes little; a level with many holes is rewritten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from evermat.engines.spark.blocks import FEW_ROWS, local_block, parted
from evermat.engines.spark.row_tables import appended, common
from evermat.engines.spark.rows import (
    Rows,
    block_rows,
    concatenated,
    difference,
    intersection,
    local_rows,
    no_rows,
    partitioned,
    repartitioned,
    settled_block,
    union,
    work_out,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.engines.spark.blocks import Block, Cluster
    from evermat.engines.spark.lookups import Lookups

FEW_LEVELS = 4
"""Number of levels that need no merging, since merging takes a job, too."""
FEW_TINY_LEVELS = 12
"""The same for few rows, whose scan costs a plan a few milliseconds."""
STEP = 3
"""With more levels, a level is merged with the later ones unless it is more than this
many times as large as all of them.
"""
MANY_HOLES = 5
"""A level is rewritten if at least one in this many of its facts is a hole."""

Tags = frozenset[int] | None
"""Relations by their numbers; None for all of them."""

_serials = count()


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """Facts on the cluster, and those deleted from them."""

    block: Block
    holes: Rows

    def rows(self, tags: Tags) -> Rows:
        """Return the facts without holes."""
        return difference(block_rows(self.block, tags), self.holes)


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """The contents of a heap at one moment."""

    levels: tuple[Level, ...] = ()
    local: Block | None = None


class Heap:
    """A mutable set of rows."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.contents = Contents()
        self.serial = next(_serials)
        self.version = 0
        self.lookups: Lookups | None = None
        self._last: tuple[Block, Contents] | None = None
        """The block added last, and the contents before it."""

    @property
    def moment(self) -> tuple[int, int]:
        """The identity of the current contents, for comparisons."""
        return self.serial, self.version

    def set(self, contents: Contents) -> None:
        """Replace the contents."""
        self.contents = contents
        self.version += 1
        self._last = None

    def parts(self, tags: Tags = None, contents: Contents | None = None) -> list[Rows]:
        """Return the rows, or those of some relations, in disjoint parts."""
        contents = self.contents if contents is None else contents
        parts = [
            level.rows(tags)
            for level in contents.levels
            if tags is None or not tags.isdisjoint(level.block.sizes)
        ]
        if contents.local is not None:
            parts.append(block_rows(contents.local, tags))
        return [part for part in parts if part.bound]

    def rows(self, tags: Tags = None) -> Rows:
        """Return the rows, or those of some relations."""
        parts = self.parts(tags)
        return concatenated(parts) if parts else no_rows(self.cluster)

    def rows_before(self, block: Block, tags: Tags = None) -> Rows | None:
        """Return the rows without those of a block, if it was added last."""
        if self._last is None or self._last[0] is not block:
            return None
        parts = self.parts(tags, self._last[1])
        return concatenated(parts) if parts else no_rows(self.cluster)

    def find(self, rows: Rows) -> Rows:
        """Return those of some rows on the driver that are in the heap."""
        wanted, local = rows.table, self.contents.local
        parts = [] if local is None else [common(wanted, local.table)]
        if self.contents.levels and self.lookups is not None:
            tables = self.lookups.find(self.stored_blocks(), wanted)
            for level, table in zip(self.contents.levels, tables, strict=True):
                found = local_rows(self.cluster, common(wanted, table))
                parts.append(difference(found, level.holes).table)
        elif self.contents.levels:
            tags = rows.tags
            levels = [level.rows(tags) for level in self.contents.levels]
            levels = [level for level in levels if level.bound]
            if levels:
                parts.append(work_out(intersection(rows, concatenated(levels))))
        if not parts:
            return no_rows(self.cluster)
        return local_rows(self.cluster, appended(parts))

    def stored_blocks(self) -> list[Block]:
        """Return the blocks on the cluster."""
        return [level.block for level in self.contents.levels]

    def has_holes(self) -> bool:
        """Return whether sizes of levels are only upper bounds."""
        return any(level.holes.bound for level in self.contents.levels)

    def blocks(self) -> list[Block]:
        """Return all blocks, some of whose rows may be holes."""
        blocks = [level.block for level in self.contents.levels]
        if self.contents.local is not None:
            blocks.append(self.contents.local)
        return blocks

    def size(self, tag: int) -> int:
        """Return the number of rows of a relation, at most if there are holes."""
        return sum(block.sizes.get(tag, 0) for block in self.blocks())

    def tags(self) -> frozenset[int]:
        """Return the relations that may have rows."""
        return frozenset(tag for block in self.blocks() for tag in block.sizes)

    def add(self, block: Block) -> None:
        """Add rows that are not in the heap."""
        if not block.size:
            return
        before = self.contents
        levels, local = before.levels, before.local
        if block.table is None:
            levels = (*levels, Level(block, no_rows(self.cluster)))
        else:
            tables = [block.table] if local is None else [local.table, block.table]
            local = block if local is None else self._appended(tables)
            if local.size > self.cluster.small:
                local, large = parted(local)
                level = Level(partitioned(block_rows(large)), no_rows(self.cluster))
                levels = (*levels, level)
        self.set(self._merged(Contents(levels, local)))
        self._last = block, before

    def _appended(self, tables: list[pa.Table]) -> Block:
        return local_block(self.cluster, appended(tables))

    def remove(self, rows: Rows) -> None:
        """Remove rows, which need not be in the heap."""
        if not rows.bound:
            return
        levels = tuple(self._with_holes(level, rows) for level in self.contents.levels)
        local = self.contents.local
        if local is not None:
            local = settled_block(difference(block_rows(local), rows))
        self.set(Contents(levels, local))

    def _with_holes(self, level: Level, rows: Rows) -> Level:
        holes = union(level.holes, block_rows(settled_block(rows)))
        if holes.bound * MANY_HOLES <= level.block.size:
            return Level(level.block, holes)
        left = repartitioned(Level(level.block, holes).rows(None))
        return Level(left, no_rows(self.cluster))

    def _merged(self, contents: Contents) -> Contents:
        """Merge levels, so that there are few: plans scan all of them."""
        levels = contents.levels
        rows = sum(level.block.size for level in levels)
        if len(levels) <= (FEW_TINY_LEVELS if rows <= FEW_ROWS else FEW_LEVELS):
            return contents
        start, size = len(levels) - 1, levels[-1].block.size
        while start and levels[start - 1].block.size <= STEP * size:
            start -= 1
            size += levels[start].block.size
        start = min(start, len(levels) - 2)
        merged = concatenated([level.rows(None) for level in levels[start:]])
        level = Level(repartitioned(merged), no_rows(self.cluster))
        return replace(contents, levels=(*levels[:start], level))
