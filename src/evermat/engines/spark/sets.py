"""Sets of facts: settled, growing and stored, and the evaluation of views."""

from __future__ import annotations

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
from evermat.engines.spark.blocks import FEW_ROWS, Block, local_block
from evermat.engines.spark.joins import shuffled
from evermat.engines.spark.row_tables import key_columns, key_names
from evermat.engines.spark.rows import (
    Rows,
    block_rows,
    brought_home,
    concatenated,
    difference,
    intersection,
    local_rows,
    no_rows,
    settled_block,
    union,
    within,
    work_out,
)

if TYPE_CHECKING:
    from evermat.algebra import Facts, Region
    from evermat.engines.spark.blocks import Cluster, Pending
    from evermat.engines.spark.heaps import Heap, Tags


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
