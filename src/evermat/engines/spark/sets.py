"""Sets of facts: settled, growing and stored, and the evaluation of views."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, cast

import pyarrow.compute as pc

from evermat.algebra import (
    Counts,
    Difference,
    EngineUseError,
    GrowingFacts,
    Intersection,
    SettledFacts,
    StoredFacts,
    Union,
    Within,
    require_bounded,
)
from evermat.engines.spark.blocks import FEW_ROWS, Block, local_block, parted
from evermat.engines.spark.joins import shuffled
from evermat.engines.spark.row_tables import (
    appended,
    chosen,
    common,
    key_columns,
    key_names,
)
from evermat.engines.spark.rows import (
    Rows,
    block_rows,
    brought_home,
    concatenated,
    difference,
    intersection,
    local_rows,
    no_rows,
    partitioned,
    repartitioned,
    settled_block,
    union,
    within,
    work_out,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.algebra import Facts, Region
    from evermat.engines.spark.blocks import Block, Cluster, Pending
    from evermat.engines.spark.lookups import Lookups

# -------------------------------------------------------------------------------- heaps

# Sets of rows that change in place.
#
# A growing or stored set is a *heap*: a table on the driver, and levels on the cluster.
# Facts that leave a level are kept beside it as *holes*, so that a small change writes
# little; a level with many holes is written anew.

FEW_LEVELS = 4
"""Levels that are left alone: merging them is a job, too."""
FEW_TINY_LEVELS = 12
"""The same for few rows, of which a scan costs a plan a few milliseconds."""
MANY_LEVELS = 32
"""Levels beyond which they are merged, whatever relations they have."""
STEP = 3
"""Of more levels, one is merged with those after it that are not so much smaller."""
MANY_HOLES = 5
"""A level is written anew if one in so many of its facts is a hole."""

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
        """The blocks on the cluster."""
        return [level.block for level in self.contents.levels]

    def blocks(self) -> list[Block]:
        """All blocks, of which some rows may be holes."""
        blocks = [level.block for level in self.contents.levels]
        if self.contents.local is not None:
            blocks.append(self.contents.local)
        return blocks

    def size(self, tag: int) -> int | None:
        """How many rows a relation has; None if that has to be counted."""
        size = sum(block.sizes.get(tag, 0) for block in self.blocks())
        for level in self.contents.levels:
            holes = level.holes.table
            if holes is None or (level.block.stored is None and holes.num_rows):
                return None
            if holes.num_rows and self.lookups is not None:
                # A hole may be in another level; few were not looked up before.
                mine = chosen(holes, frozenset({tag}))
                (found,) = self.lookups.find([level.block], mine)
                size -= found.num_rows
        return size

    def tags(self) -> frozenset[int]:
        """The relations that may have rows."""
        return frozenset(tag for block in self.blocks() for tag in block.sizes)

    def add(self, block: Block) -> None:
        """Add rows that are not there."""
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
        """Few levels, most much smaller than the one before: plans scan all of them.

        Plans skip levels without the relations that they read.
        """
        levels = contents.levels
        rows = sum(level.block.size for level in levels)
        few = FEW_TINY_LEVELS if rows <= FEW_ROWS else FEW_LEVELS
        times = Counter(tag for level in levels for tag in level.block.sizes)
        if len(levels) <= MANY_LEVELS and max(times.values(), default=0) <= few:
            return contents
        start, size = len(levels) - 1, levels[-1].block.size
        while start and levels[start - 1].block.size <= STEP * size:
            start -= 1
            size += levels[start].block.size
        start = min(start, len(levels) - 2)
        merged = concatenated([level.rows(None) for level in levels[start:]])
        level = Level(repartitioned(merged), no_rows(self.cluster))
        return replace(contents, levels=(*levels[:start], level))


class Stored(StoredFacts):
    """A set that an engine keeps between updates."""

    __slots__ = ("heap",)

    def __init__(self, heap: Heap) -> None:
        self.heap = heap


class Growing(GrowingFacts):
    """A set of an update, changed in place."""

    __slots__ = ("heap",)

    def __init__(self, heap: Heap) -> None:
        self.heap = heap

    def add(self, facts: Facts) -> None:
        """Add facts, which may be in the set already."""
        require_bounded(facts)
        settled = settle(facts, self.heap.cluster)
        if self.heap.moment not in settled.apart:
            settled = settle(settled - self, self.heap.cluster)
        self.heap.add(settled.block)

    def discard(self, facts: Facts) -> None:
        """Remove facts, which need not be in the set."""
        present = intersection(self.heap.rows(), rows_of(facts, self.heap.cluster))
        self.heap.remove(block_rows(settled_block(present)))


class Settled(SettledFacts):
    """A fixed set.

    Attributes:
        apart: heaps, with the moments at which they had none of the facts.
    """

    __slots__ = ("apart", "block")

    def __init__(
        self, block: Block, apart: frozenset[tuple[int, int]] = frozenset()
    ) -> None:
        self.block = block
        self.apart = apart

    def is_empty(self) -> bool:
        """Return whether the set has no facts."""
        return not self.block.size

    def size(self) -> int:
        """Return the number of facts."""
        return self.block.size

    def relations(self) -> frozenset[str]:
        """Return the relations that have facts in the set."""
        names = self.block.cluster.names
        return frozenset(names[tag] for tag in self.block.sizes)

    def without_numbers(self) -> Settled:
        """Return the same facts without counts."""
        block, table = self.block, self.block.table
        if table is None or "n" not in table.column_names:
            return self
        return Settled(local_block(block.cluster, table.select(key_names(table))))


class Counted(Counts):
    """A multiset of facts: a block with a column `n`."""

    __slots__ = ("_facts", "block")

    def __init__(self, block: Block, facts: Settled | None = None) -> None:
        self.block = block
        self._facts = facts

    @property
    def facts(self) -> Settled:
        """The facts, each once."""
        if self._facts is None:
            self._facts = Settled(self.block).without_numbers()
        return self._facts

    def total(self) -> int:
        """Return the number of matches."""
        if self.block.table is None:
            return sum(self.block.numbers.values())
        return int(pc.sum(self.block.table["n"]).as_py() or 0)


# -------------------------------------------------------------------------- views


def rows_of(facts: Facts, cluster: Cluster, tags: Tags = None) -> Rows:
    """Return the current rows of a view, or those of some relations."""
    match facts:
        case Settled():
            return block_rows(facts.block, tags)
        case Growing() | Stored():
            return facts.heap.rows(tags)
        case Union(left=left, right=right):
            return union(rows_of(left, cluster, tags), rows_of(right, cluster, tags))
        case Difference(left=left, right=right):
            before = _before(left, right, tags)
            if before is not None:
                return before
            rows = rows_of(left, cluster, tags)
            return difference(rows, _rows_beside(rows, right, tags))
        case Intersection(left=left, right=right):
            rows = rows_of(left, cluster, tags)
            return intersection(rows, _rows_beside(rows, right, tags))
        case Within(facts=inner, region=region):
            return _rows_within(inner, region, cluster, tags)
    raise foreign(facts)


def _before(facts: Facts, less: Facts, tags: Tags) -> Rows | None:
    """Return a set without its last addition, which needs no look-up."""
    if isinstance(facts, Growing | Stored) and isinstance(less, Settled):
        return facts.heap.rows_before(less.block, tags)
    return None


def _found_in(rows: Rows, facts: Facts) -> Rows:
    """Return those of some rows on the driver that are in a view, on the driver.

    The few rows are looked up in large sets, which are not evaluated as a whole.
    """
    if not rows.bound:
        return rows
    match facts:
        case Growing() | Stored():
            return facts.heap.find(rows)
        case Union(left=left, right=right):
            found = _found_in(rows, left)
            return union(found, _found_in(difference(rows, found), right))
        case Difference(left=left, right=right):
            found = _found_in(rows, left)
            return difference(found, _found_in(found, right))
        case Intersection(left=left, right=right):
            return _found_in(_found_in(rows, left), right)
        case Within(facts=inner, region=region):
            return _found_in(within(rows, region), inner)
    found = intersection(rows, rows_of(facts, rows.cluster, rows.tags))
    return local_rows(rows.cluster, work_out(found))


def _rows_beside(rows: Rows, facts: Facts, tags: Tags) -> Rows:
    """Return the rows of a view that can be among some rows."""
    if rows.table is not None:
        return _found_in(rows, facts)
    if not rows.bound:
        return rows
    return rows_of(facts, rows.cluster, rows.tags if tags is None else rows.tags & tags)


def _rows_within(facts: Facts, region: Region, cluster: Cluster, tags: Tags) -> Rows:
    touched = frozenset(
        tag for tag, name in enumerate(cluster.names) if region.touches(name)
    )
    rows = rows_of(facts, cluster, touched if tags is None else touched & tags)
    return within(rows, region) if rows.bound and region.shapes else rows


def settle(facts: Facts, cluster: Cluster) -> Settled:
    """Evaluate a view."""
    if isinstance(facts, Settled):
        return facts
    apart = _apart(facts)
    match facts:
        case Difference(left=Settled() as left, right=right) if left.block.pending:
            new = _split(left.block, left.block.pending, right)
            if new is not None:
                return Settled(new, apart)
    return Settled(settled_block(rows_of(facts, cluster)), apart)


def _split(block: Block, pending: Pending, known: Facts) -> Block | None:
    """Run a pending plan, and mark known rows in the same job.

    Return the new rows; None if two separate steps are better.
    """
    cluster = block.cluster
    if pending.marked is not None and isinstance(known, Growing | Stored):
        moment, frame = pending.marked
        if known.heap.moment == moment:
            both = cluster.checkpoint_marked(frame, block.width, pending.tags)
            return _new_among(block, *both, known)
    parts = _parts_of(known, cluster, pending.tags)
    bound = sum(part.bound for part in parts)
    if not bound:
        return None
    if bound <= FEW_ROWS:
        parts = [concatenated(parts)]
    width = max(block.width, *(part.width for part in parts))
    # Spark treats a column that is given its own name as a new one, and loses the
    # partitioning by the old one.
    added = "".join(f", 0L AS c{at}" for at in range(block.width, width))
    sql = f"SELECT *{added}, false AS old FROM ({pending.sql()})"  # noqa: S608
    # One join for each large level: levels have the same partitioning as the result,
    # and a union of them would not. Unlike broadcasts, hash joins need no job of their
    # own. The hash table is built of the smaller side: often there are far more known
    # facts than results. A task builds all tables at once.
    hashed = 0
    for part in parts:
        side, size = min(("l", pending.guess), ("r", part.bound), key=itemgetter(1))
        hashed += size
        hint = f"{shuffled(cluster, hashed)}({side})"
        alike = f"SELECT * FROM ({part.query(width)}) WHERE {pending.shape}"  # noqa: S608
        sql = _marked(sql, alike, key_columns(width), hint)
    every, new = cluster.checkpoint_marked(sql, width, pending.tags)
    block.width = width
    return _new_among(block, every, new, known)


def _marked(found: str, known: str, keys: list[str], hint: str) -> str:
    """Return found rows, with `old` true if they are among known ones.

    Args:
        found: a plan for rows with `n` and `old`.
        known: a plan for rows.
        keys: the columns of rows.
        hint: the join hint, for `l` and `r`.
    """
    names = ", ".join(f"l.{key}" for key in keys)
    on = " AND ".join(f"l.{key} = r.{key}" for key in keys)
    return (
        f"SELECT /*+ {hint} */ {names}, l.n, "  # noqa: S608
        "l.old OR r.tag IS NOT NULL AS old "
        f"FROM ({found}) l LEFT JOIN ({known}) r ON {on}"
    )


def _new_among(block: Block, every: Block, new: Block, known: Facts) -> Block:
    """Return the new rows of a plan after it was run."""
    block.become(every)
    if not new.size:
        return empty(block.cluster).block
    return brought_home(new, _room_in(known, block.cluster))


def _room_in(facts: Facts, cluster: Cluster) -> int:
    """Return how many more facts a set may have on the driver."""
    room = cluster.small
    if isinstance(facts, Growing | Stored) and facts.heap.contents.local is not None:
        room -= facts.heap.contents.local.size
    return room


def _parts_of(facts: Facts, cluster: Cluster, tags: Tags) -> list[Rows]:
    """Return the rows of a view in disjoint parts."""
    if isinstance(facts, Growing | Stored):
        return facts.heap.parts(tags)
    rows = rows_of(facts, cluster, tags)
    return [rows] if rows.bound else []


def _apart(facts: Facts) -> frozenset[tuple[int, int]]:
    """Return heaps that certainly have none of the facts of a view."""
    match facts:
        case Settled():
            return facts.apart
        case Difference(left=left, right=right):
            return _apart(left) | _parts(right)
        case Intersection(left=left, right=right):
            return _apart(left) | _apart(right)
        case Union(left=left, right=right):
            return _apart(left) & _apart(right)
        case Within(facts=inner):
            return _apart(inner)
    return frozenset()


def _parts(facts: Facts) -> frozenset[tuple[int, int]]:
    """Return heaps all of whose facts are in a view."""
    match facts:
        case Growing() | Stored():
            return frozenset({facts.heap.moment})
        case Union(left=left, right=right):
            return _parts(left) | _parts(right)
    return frozenset()


def as_settled(facts: Facts) -> Settled:
    """Return a set that this engine settled."""
    if not isinstance(facts, Settled):
        raise foreign(facts)
    return facts


def foreign(facts: Facts) -> EngineUseError:
    """Return the error for a set of another engine."""
    return EngineUseError(f"`{type(facts).__name__}` is no set of this engine")


def empty(cluster: Cluster) -> Settled:
    """Return the empty set."""
    return Settled(cast("Block", no_rows(cluster).block))
