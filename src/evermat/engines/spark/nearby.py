"""Rows near a small change: rows of large blocks, fetched to the driver by keys.

A rule that is applied to few facts reads few others: those with the constants of the
rule and the values that are bound so far. They are looked up instead of joined, for all
rules of a call together, one job for each step from pattern to pattern. Fetched rows of
a block are cached as long as the block lives, because blocks never change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import (
    Column,
    Difference,
    Intersection,
    Union,
    Within,
)
from evermat.engines.spark.blocks import width_of
from evermat.engines.spark.dictionary import constant_id
from evermat.engines.spark.reading import Reader, Source
from evermat.engines.spark.row_keys import Shape, fetch, listed_values
from evermat.engines.spark.row_tables import (
    appended,
    chosen,
    common,
    distinct,
    key_columns,
    key_names,
    padded_keys,
    widened,
    without,
)
from evermat.engines.spark.rows import block_rows, local_rows, within
from evermat.engines.spark.sets import Growing, Settled, Stored, foreign
from evermat.engines.spark.stored_facts import StoredFacts, Wanted
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evermat.algebra import Facts, Pattern, Query, Views
    from evermat.engines.spark.blocks import Block, Cluster
    from evermat.engines.spark.row_keys import Ids, Keys
    from evermat.engines.spark.sets import Contents

MOST_CHANGES = 20_000
"""Facts of a change up to which rows near it are looked up."""
MOST_ROWS = 200_000
"""Limit of the rows looked up in one call: with more, the cluster is faster."""
MOST_KEPT = 1_000_000
"""Cached rows of a block, beyond which they are dropped."""


class NotNearError(Exception):
    """Too many rows to look up; a signal between parts of the engine."""


@dataclass(eq=False)
class _Found:
    """The rows that were looked up in a block."""

    rows: pa.Table
    asked: dict[Shape, Keys] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class _Want:
    """Rows of a block to be looked up."""

    block: Block
    shape: Shape
    keys: Keys
    columns: Mapping[int, Ids]

    def told(self, names: Sequence[str]) -> Wanted:
        """The same for the files of a state."""
        columns = {at: np.unique(each) for at, each in self.columns.items()}
        return Wanted(names[self.shape.tag], self.shape, self.keys, columns)

    def condition(self) -> str:
        """Return a condition for scans without keys, which may match more rows."""
        values = listed_values((f"c{at}", each) for at, each in self.columns.items())
        return f"({' AND '.join([f'tag = {self.shape.tag}L', *values])})"


def _scan(block: Block, number: int, wants: list[_Want], width: int) -> str:
    """Return the rows of a block that may be needed, with the number of the block."""
    names = ", ".join(padded_keys(block.width, width))
    conditions = (want.condition() for want in wants if want.block is block)
    return (
        f"SELECT '{number}' AS source, {names} FROM {block.view} "  # noqa: S608
        f"WHERE {' OR '.join(dict.fromkeys(conditions))}"
    )


def _keys_of(shapes: Iterable[Shape]) -> str:
    """Return all keys of a row, in SQL."""
    by_tag: dict[int, list[str]] = {}
    for shape in shapes:
        by_tag.setdefault(shape.tag, []).append(shape.sql())
    cases = [
        f"WHEN {tag}L THEN array({', '.join(keys)})" for tag, keys in by_tag.items()
    ]
    return f"CASE tag {' '.join(cases)} END"


class Nearby:
    """Looks rows up, and caches them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._found: WeakKeyDictionary[Block, _Found] = WeakKeyDictionary()

    def rows(self, block: Block) -> pa.Table:
        """Return the rows that were looked up in a block so far."""
        found = self._found.get(block)
        return _nothing(block.width) if found is None else found.rows

    def begin(self) -> None:
        """Drop blocks with too many cached rows."""
        for block, found in list(self._found.items()):
            if found.rows.num_rows > MOST_KEPT:
                del self._found[block]

    def look_up(
        self, asked: Iterable[tuple[Block, Shape, Mapping[int, Ids], int]]
    ) -> None:
        """Look up rows of blocks by the values of some columns.

        Args:
            asked: blocks, shapes, the values for each position, and their number.

        Raises:
            NotNearError: there are too many.
        """
        try:
            wants = [want for each in asked if (want := self._want(*each)) is not None]
            if wants:
                self._fetch(wants)
        except BaseException:
            # The requested rows may not have been fetched.
            self._found.clear()
            raise

    def _want(
        self, block: Block, shape: Shape, columns: Mapping[int, Ids], size: int
    ) -> _Want | None:
        """Return the rows to look up; None if all are known, or on the driver."""
        found = self._found.get(block)
        if found is None:
            found = self._found[block] = _Found(_nothing(block.width))
        keys, known = np.unique(shape.keys(columns, size)), found.asked.get(shape)
        if known is not None:
            keys = keys[~np.isin(keys, known, assume_unique=True)]
        if not keys.size:
            return None
        found.asked[shape] = keys if known is None else np.concatenate([known, keys])
        if shape.tag not in block.sizes:
            return None
        if block.table is None:
            return _Want(block, shape, keys, columns)
        self._keep(block, _chosen(block.table, shape, keys))
        return None

    def _fetch(self, wants: list[_Want]) -> None:
        in_files = [want for want in wants if want.block.stored is not None]
        by_plan = [want for want in wants if want.block.stored is None]
        if in_files:
            self._find(in_files)
        if by_plan:
            self._scan(by_plan)

    def _find(self, wants: list[_Want]) -> None:
        """Look up what is in the files of a state."""
        by_facts: dict[StoredFacts, list[_Want]] = {}
        for want in wants:
            if want.block.stored is not None:
                by_facts.setdefault(want.block.stored[0], []).append(want)
        for facts, mine in by_facts.items():
            rows = facts.find([want.told(self.cluster.names) for want in mine])
            if rows.num_rows > MOST_ROWS:
                raise NotNearError
            for block in dict.fromkeys(want.block for want in mine):
                if block.stored is not None:
                    number = rows[block.stored[1]]
                    self._keep(block, rows.filter(pc.not_equal(number, 0)))

    def _scan(self, wants: list[_Want]) -> None:
        cluster = self.cluster
        blocks = list(dict.fromkeys(want.block for want in wants))
        keys = np.unique(np.concatenate([want.keys for want in wants]))
        width = max(block.width for block in blocks)
        scans = " UNION ALL ".join(
            _scan(block, number, wants, width) for number, block in enumerate(blocks)
        )
        shapes = dict.fromkeys(want.shape for want in wants)
        # In one query: a row is sent once for each of its keys, which are few.
        keyed = f"SELECT *, explode({_keys_of(shapes)}) AS key FROM ({scans})"  # noqa: S608
        names = ["source", *key_columns(width)]
        fetched = fetch(cluster, keyed, names, keys, MOST_ROWS + 1)
        if fetched.num_rows > MOST_ROWS:
            raise NotNearError
        for number, block in enumerate(blocks):
            mine = fetched.filter(pc.equal(fetched["source"], str(number)))
            self._keep(block, mine.drop_columns(["source"]))

    def _keep(self, block: Block, rows: pa.Table) -> None:
        found, rows = self._found[block], rows.select(key_names(rows))
        if rows.num_rows:
            found.rows = distinct(appended([found.rows, rows]))


def _chosen(table: pa.Table, shape: Shape, keys: Keys) -> pa.Table:
    """Return rows on the driver that have one of some keys."""
    table = chosen(table, frozenset({shape.tag}))
    table = table.select(key_names(table))
    columns = {at: table[f"c{at}"].to_numpy() for at in shape.positions}
    mine = np.isin(shape.keys(columns, table.num_rows), keys)
    return table.filter(pa.array(mine))


def _nothing(width: int) -> pa.Table:
    names = key_columns(width)
    return pa.table({name: pa.array([], pa.int64()) for name in names})


# -------------------------------------------------------------------------- views


def _blocks(facts: Facts) -> Iterator[Block]:
    """Yield all blocks of a view."""
    match facts:
        case Settled():
            yield facts.block
        case Growing() | Stored():
            yield from facts.heap.blocks()
        case (
            Union(left=left, right=right)
            | Difference(left=left, right=right)
            | Intersection(left=left, right=right)
        ):
            yield from _blocks(left)
            yield from _blocks(right)
        case Within(facts=inner):
            yield from _blocks(inner)


class NearReader:
    """Finds rows for patterns among those that were looked up."""

    def __init__(self, nearby: Nearby, views: Views) -> None:
        self._nearby = nearby
        self._views = views
        self._cluster = nearby.cluster
        self._sources: dict[tuple[object, ...], Source] = {}

    def source(self, pattern: Pattern) -> Source:
        """Return the rows near the change that may match a pattern."""
        local = pattern.local and self._views.local is not None
        key = (pattern.role, local, pattern.relation)
        if key not in self._sources:
            self._sources[key] = self._find(pattern)
        return self._sources[key]

    def refresh(self) -> None:
        """Forget sources after more rows were looked up."""
        self._sources.clear()

    def _find(self, pattern: Pattern) -> Source:
        facts = self._views.read_by(pattern)
        tags = frozenset({self._cluster.tag(pattern.relation)})
        table = _nothing(width_of(len(pattern.operands)))
        if isinstance(facts, Settled) and facts.block.table is not None:
            rows = block_rows(facts.block, tags)
            return Source(rows, rows.bound)
        if facts is not None:
            table = appended([table, chosen(self._rows(facts), tags)])
        rows = local_rows(self._cluster, table)
        return Source(rows, rows.bound)

    def _rows(self, facts: Facts) -> pa.Table:
        match facts:
            case Settled():
                return self._of(facts.block)
            case Growing() | Stored():
                return self._stored(facts.heap.contents)
            case Union(left=left, right=right):
                return distinct(appended([self._rows(left), self._rows(right)]))
            case Difference(left=left, right=right):
                return without(self._rows(left), self._rows(right))
            case Intersection(left=left, right=right):
                return common(self._rows(left), self._rows(right))
            case Within(facts=inner, region=region):
                rows = local_rows(self._cluster, self._rows(inner))
                return within(rows, region).table
        raise foreign(facts)

    def _stored(self, contents: Contents) -> pa.Table:
        parts = [_nothing(1)]
        for level in contents.levels:
            if level.holes.bound and level.holes.table is None:
                raise NotNearError
            rows = self._of(level.block)
            parts.append(without(rows, level.holes.table) if rows.num_rows else rows)
        if contents.local is not None:
            parts.append(self._of(contents.local))
        return appended(parts)

    def _of(self, block: Block) -> pa.Table:
        return self._nearby.rows(block)


# ------------------------------------------------------------------------- walking


class Walk:
    """The path of one query from the change to everything that it reads."""

    def __init__(
        self, query: Query, change: pa.Table, cluster: Cluster, sizes: Reader
    ) -> None:
        self._cluster = cluster
        self._sizes = sizes
        self._query = query
        self._waiting = [
            each
            for each in (*query.positive, *query.negative)
            if each is not query.changed
        ]
        self._next: Pattern | None = None
        changed = query.changed
        assert changed is not None  # noqa: S101  the caller has looked
        self._bindings = _matching(changed, change, cluster)
        self._inline = query.inline is not None
        self._join_inline()

    def ask(
        self, views: Views
    ) -> Iterator[tuple[Block, Shape, Mapping[int, Ids], int]]:
        """Yield what has to be looked up before the next step."""
        self._next = None
        if not self._bindings.num_rows or not self._waiting:
            return
        self._next = pattern = min(self._waiting, key=self._cost)
        known = {
            at: operand
            for at, operand in enumerate(pattern.operands)
            if isinstance(operand, Constant) or self._is_bound(operand)
        }
        if not any(isinstance(operand, Column) for operand in known.values()) and any(
            isinstance(operand, Column) for operand in pattern.operands
        ):
            raise NotNearError
        size = self._bindings.num_rows
        columns = {
            at: np.full(size, constant_id(operand), np.int64)
            if isinstance(operand, Constant)
            else self._bindings[f"v{operand.index}"].to_numpy()
            for at, operand in known.items()
        }
        shape = Shape(self._cluster.tag(pattern.relation), tuple(sorted(known)))
        facts = views.read_by(pattern)
        if facts is not None:
            for block in dict.fromkeys(_blocks(facts)):
                yield block, shape, columns, size

    def _is_bound(self, column: Column) -> bool:
        return f"v{column.index}" in self._bindings.column_names

    def _cost(self, pattern: Pattern) -> float:
        """Estimate how many rows have to be looked up for a pattern."""
        columns = {each for each in pattern.operands if isinstance(each, Column)}
        bound = [f"v{each.index}" for each in columns if self._is_bound(each)]
        if len(bound) == len(columns):
            return 0.0
        if not bound:
            return float("inf")
        return self._sizes.most(pattern, {}) * _share(self._bindings.select(bound))

    def step(self, reader: NearReader) -> None:
        """Join the next pattern with the rows that were looked up."""
        pattern = self._next
        if pattern is None:
            return
        self._waiting.remove(pattern)
        if pattern in self._query.negative:
            return
        rows = _matching(pattern, reader.source(pattern).rows.table, self._cluster)
        self._join(rows)
        self._join_inline()

    def _join_inline(self) -> None:
        inline = self._query.inline
        if inline is None or not self._inline:
            return
        names = [f"v{column.index}" for column in inline.columns]
        if not set(names) & set(self._bindings.column_names):
            return
        dictionary = self._cluster.dictionary
        columns = [
            pa.array([dictionary.id_of(each) for each in column], pa.int64())
            for column in zip(*inline.rows, strict=True)
        ]
        self._inline = False
        self._join(pa.table(columns, names=names))

    def _join(self, rows: pa.Table) -> None:
        bindings = self._bindings
        shared = [name for name in rows.column_names if name in bindings.column_names]
        bindings = bindings.join(rows, shared, join_type="inner", use_threads=False)
        if bindings.num_rows > MOST_ROWS:
            raise NotNearError
        self._bindings = bindings

    @property
    def is_done(self) -> bool:
        """Return whether nothing more has to be looked up."""
        return not self._waiting or not self._bindings.num_rows


def _share(values: pa.Table) -> float:
    """Estimate the share of all distinct values that is in a sample.

    If few values occur twice, most were not seen yet (an estimator by A. Chao).
    """
    counted = values.group_by(values.column_names, use_threads=False).aggregate(
        [([], "count_all")]
    )
    times = counted["count_all"].to_numpy()
    once, twice = int((times == 1).sum()), int((times == 2).sum())  # noqa: PLR2004
    met = float(times.size)
    return met / (met + once * (once - 1) / (2 * (twice + 1)))


def _matching(pattern: Pattern, table: pa.Table, cluster: Cluster) -> pa.Table:
    """Return the distinct values of columns in rows that match a pattern."""
    table = widened(table, len(pattern.operands))
    mine = pc.equal(table["tag"], cluster.tag(pattern.relation))
    columns: dict[str, pa.ChunkedArray] = {}
    for at, operand in enumerate(pattern.operands):
        values = table[f"c{at}"]
        if isinstance(operand, Constant):
            mine = pc.and_(mine, pc.equal(values, constant_id(operand)))
        elif f"v{operand.index}" in columns:
            mine = pc.and_(mine, pc.equal(values, columns[f"v{operand.index}"]))
        else:
            columns[f"v{operand.index}"] = values
    # A table without columns would not know its number of rows.
    columns["unit"] = pa.array(np.zeros(table.num_rows, np.int8))
    found = pa.table(columns).filter(mine)
    return found.group_by(found.column_names, use_threads=False).aggregate([])


def walk(nearby: Nearby, queries: tuple[Query, ...], views: Views) -> NearReader:
    """Look up everything that some queries read, starting from a change on the driver.

    Raises:
        NotNearError: it is too much, or the change is.
    """
    nearby.begin()
    reader, sizes = NearReader(nearby, views), Reader(nearby.cluster, views)
    walks = []
    for query in queries:
        if query.changed is None:
            raise NotNearError
        change = views.read_by(query.changed)
        if not isinstance(change, Settled) or change.block.table is None:
            raise NotNearError
        walks.append(Walk(query, change.block.table, nearby.cluster, sizes))
    while True:
        walks = [each for each in walks if not each.is_done]
        if not walks:
            return reader
        nearby.look_up([asked for each in walks for asked in each.ask(views)])
        reader.refresh()
        for each in walks:
            each.step(reader)
