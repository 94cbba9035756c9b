"""Blocks: immutable sets of rows, small ones on the driver and large ones distributed.

All relations share one layout, so that facts of several relations are in one frame:
`tag` is the number of a row's relation, `c0`, `c1`, … are the ids of its arguments, and
unused columns are 0. Relations without arguments have one column that is always 0. Some
blocks also have a count for each row, in a column `n`.

A small block is an Arrow table on the driver; it is sent to Spark as a view when a plan
needs it. A large one is a reliable checkpoint, so its plan is a scan of files and
losing an executor loses nothing. Either way its size by relation is known once it is
computed.
"""

from __future__ import annotations

import re
import weakref
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import for_spark
from evermat.engines.spark.checkpoint_place import STATE
from evermat.engines.spark.dictionary import Dictionary
from evermat.engines.spark.failures import plain_failures, with_room
from evermat.engines.spark.row_tables import chosen, key_columns, table_width
from evermat.engines.spark.session import (
    ROWS_AT_ONCE,
    ForFewRows,
    SessionToCome,
    called_here,
    in_files,
    let_go,
    own_session,
    parts_of,
    read_from_cache,
    without_constraints,
    written_down,
)
from evermat.engines.spark.summaries import MOST_TAGS, TRIPLE, Summary, observed
from evermat.engines.spark.terms import SpreadTerms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from evermat.engines.spark.limits import Limits
    from evermat.engines.spark.stored_facts import StoredFacts
    from evermat.engines.spark.summaries import Observed

FEW_ROWS = 5_000
"""Number of input rows up to which compiling a plan is not worthwhile."""

IN_ONE_TASK = "/*+ COALESCE(1) */"
"""A hint for few rows: a single partition needs no shuffle."""

_names = count()
_VIEW = re.compile(r"\bevermat_\w+")
_MANY = 1 << 60


def _order(width: int) -> list[str]:
    """Return the sort order of rows: triples by property, then by object.

    Spark compares the first expression as a number, and the rows only where it is
    equal. So the first expression combines the columns, using the bits of ids below the
    highest one, which is the same in all digests.
    """
    if width >= TRIPLE:
        high = (1 << 62) - (1 << 34)
        first = f"shiftleft(tag, 56) | ((c1 & {high}L) >> 6) | ((c2 & {high}L) >> 34)"
        return [first, "tag", "c1", "c2"]
    high = (1 << 62) - (1 << 14)
    return [f"shiftleft(tag, 48) | ((c0 & {high}L) >> 14)", "tag", "c0"]


def united(plans: Iterable[str], read: int) -> str:
    """Return the union of several plans, which read `read` rows together."""
    sql = " UNION ALL ".join(plans)
    return f"SELECT {IN_ONE_TASK} * FROM ({sql})" if read <= FEW_ROWS else sql  # noqa: S608


def width_of(arity: int) -> int:
    """Return the number of columns of a relation."""
    return max(arity, 1)


@dataclass
class Cluster:
    """The resources that engines on one cluster share.

    Attributes:
        source: the session of who has made the engine, or what gives it.
        small: rows up to which a block stays on the driver.
        state: where the state is, in which there may be checkpoints.
        dictionary: the constants behind ids, and `terms` those that the driver has
            not room for.
        tags: the number of each relation that was ever named.
        jobs: the number of Spark jobs so far.
        doing: their purpose, in words.
        waste: names of views that are no longer used, and their cached frames. The
            garbage collector adds them, perhaps in the middle of a call to Spark, so
            they are dropped later.
    """

    source: SparkSession | SessionToCome
    limits: Limits
    small: int = field(init=False)
    terms: SpreadTerms = field(init=False)
    dictionary: Dictionary = field(init=False)
    state: str | None = None
    tags: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    jobs: int = 0
    doing: str = ""
    waste: list[tuple[str, DataFrame | None]] = field(default_factory=list)
    _view_sizes: dict[str, int] = field(default_factory=dict)
    _unmade: dict[str, Callable[[str], None]] = field(default_factory=dict)
    _terms: tuple[int, str] | None = None

    def __post_init__(self) -> None:
        self.small = self.limits.small
        self.terms = SpreadTerms(self)
        self.dictionary = Dictionary(self.terms, self.limits.constants)

    @cached_property
    def session(self) -> SparkSession:
        """A session of our own, on the same cluster."""
        source = self.source
        session = source.start() if isinstance(source, SessionToCome) else source
        own = own_session(session)
        if self.state is not None:
            own.conf.set(STATE, self.state)
        return own

    @property
    def is_started(self) -> bool:
        """Whether a plan has needed the session."""
        return "session" in self.__dict__

    def offer_place(self, state: str) -> None:
        """Have checkpoints beside a state, unless there is a better place."""
        self.state = state
        if self.is_started:
            self.session.conf.set(STATE, state)

    @cached_property
    def for_few_rows(self) -> ForFewRows:
        """Switches the session to settings for few rows."""
        return ForFewRows(self.session)

    @cached_property
    def hashed(self) -> int:
        """Of how many rows of a side a join can have a table by hash."""
        return self.limits.hashed(self.session)

    def tag(self, relation: str) -> int:
        """Return the number of a relation."""
        if relation not in self.tags:
            self.tags[relation] = len(self.names)
            self.names.append(relation)
        return self.tags[relation]

    def sql(self, text: str) -> DataFrame:
        """A plan as a frame; views that are made when they are named are made."""
        for view in _VIEW.findall(text):
            make = self._unmade.pop(view, None)
            if make is not None:
                make(view)
        return self.session.sql(text)

    def arrow(self, frame: DataFrame) -> pa.Table:
        """The rows of a frame on the driver."""
        self.clean()
        self.jobs += 1
        with plain_failures(), called_here(self.session, self.doing):
            return frame.toArrow()

    def collect(
        self, sql: str, most: int | None = None, at_once: int | None = None
    ) -> pa.Table:
        """Return the result of a plan on the driver.

        Args:
            sql: the plan.
            most: an upper bound of the number of rows, if there may be very many.
            at_once: about how many of these may be in Java at a time.
        """
        self.clean()
        at_once = ROWS_AT_ONCE if at_once is None else at_once
        with plain_failures():
            if most is None or most <= at_once:
                return with_room(sql, self._collected)
            return with_room(sql, partial(self._collected_in_parts, at_once))

    def _collected(self, sql: str) -> pa.Table:
        self.jobs += 1
        with self._suited(sql):
            table = self.sql(sql).toArrow()
        # Spark says of some columns that they are never null, which is nothing to us.
        return pa.Table.from_arrays(table.columns, names=table.column_names)

    def _collected_in_parts(self, at_once: int, sql: str) -> pa.Table:
        self.jobs += 1
        with called_here(self.session, self.doing):
            frame = self.sql(sql)
            with in_files(frame, at_once) as written:
                return pa.concat_tables(parts_of(written))

    def checkpoint(
        self, sql: str, width: int, tags: Iterable[int] | None = None
    ) -> Block:
        """Compute a plan into a block on the cluster.

        Args:
            sql: the plan.
            width: the number of columns of its rows.
            tags: all relations that may have rows, if known.
        """
        frame, origin, summary = self._written(sql, width, tags)
        block = Block(self, width, None, origin.view)
        block.know(summary)
        block.kept_in = KeptIn(origin)
        weakref.finalize(block, self.waste.append, (origin.view, frame))
        return block

    def checkpoint_marked(
        self, plan: str | DataFrame, width: int, tags: Iterable[int] | None = None
    ) -> tuple[Block, Block]:
        """Like `checkpoint`, and also return the rows for which `old` is false.

        Args:
            plan: the plan; a frame is one that reads few rows, in one task.
            width: the number of columns of its rows.
            tags: all relations that may have rows, if known.
        """
        frame, origin, summary = self._written(plan, width, tags)
        every = Block(self, width, None, origin.view)
        every.know(summary)
        names = ", ".join(key_columns(width))
        fresh = f"(SELECT {names} FROM {origin.view} WHERE NOT old)"  # noqa: S608
        new = Block(self, width, None, fresh)
        new.know(replace(summary, sizes=summary.new, numbers=summary.new))
        every.kept_in = KeptIn(origin)
        new.kept_in = replace(every.kept_in, only_new=True)
        shared = _Shared()
        every.shared = new.shared = shared
        weakref.finalize(shared, self.waste.append, (origin.view, frame))
        return every, new

    def _written(
        self, plan: str | DataFrame, width: int, tags: Iterable[int] | None
    ) -> tuple[DataFrame, Origin, Summary]:
        """Return the written result of a plan, its place, and its summary."""
        self.clean()
        tags = None if tags is None else frozenset(tags)
        if not isinstance(plan, str):
            with called_here(self.session, self.doing), self.for_few_rows():
                return self._written_now(plan, width, tags, few=True)

        def write(plan: str) -> tuple[DataFrame, Origin, Summary]:
            with self._suited(plan) as hint:
                sql = f"SELECT {hint} * FROM ({plan})"  # noqa: S608
                if not hint:
                    # Scans of the cache skip rows far from the constants they look for.
                    # Spark must not know the order, as it would then mix up columns.
                    sql = f"{sql} SORT BY {', '.join(_order(width))}"
                    sql = f"SELECT * FROM ({sql}) TABLESAMPLE (100 PERCENT)"  # noqa: S608
                frame = self.sql(sql)
                return self._written_now(frame, width, tags, few=bool(hint))

        with plain_failures():
            return with_room(plan, write)

    def _written_now(
        self, frame: DataFrame, width: int, tags: frozenset[int] | None, *, few: bool
    ) -> tuple[DataFrame, Origin, Summary]:
        self.jobs += 1
        names = frozenset(frame.columns)
        counted: Observed | None = None
        if tags is not None and len(tags) <= MOST_TAGS:
            frame, counted = observed(frame, names, tags, width)
        # Plans for few rows have no constraints at all.
        with nullcontext() if few else without_constraints(frame):
            frame = written_down(frame, few=few)
        summary = None if counted is None else counted.summary()
        size = None if summary is None else sum(summary.sizes.values())
        if few and size is not None and size <= FEW_ROWS:
            view = self.register(frame)
        else:
            # The written files are reliable; reads use the cache, which the first
            # reader fills, because its scans are several times as fast.
            view = self.register(read_from_cache(frame.cache(), size))
        if summary is None:
            summary = self._summed_up(view, names)
        self._view_sizes[view] = sum(summary.sizes.values())
        return frame, Origin(view, width, names), summary

    @contextmanager
    def _suited(self, sql: str) -> Iterator[str]:
        """Yield a hint for a plan, with settings that suit its number of rows."""
        views = set(_VIEW.findall(sql))
        with called_here(self.session, self.doing):
            if sum(self._view_sizes.get(view, _MANY) for view in views) > FEW_ROWS:
                yield ""
                return
            with self.for_few_rows():
                yield IN_ONE_TASK

    def _summed_up(self, view: str, columns: frozenset[str]) -> Summary:
        """Compute the summary of rows by a separate job."""
        self.jobs += 1
        numbers = "sum(n)" if "n" in columns else "count(1)"
        new = "count_if(NOT old)" if "old" in columns else "0L"
        found = self.sql(
            f"SELECT tag, count(1) AS size, {numbers} AS n, {new} AS new "  # noqa: S608
            f"FROM {view} GROUP BY tag"
        ).collect()
        return Summary(
            {row["tag"]: row["size"] for row in found},
            {row["tag"]: row["n"] for row in found},
            {row["tag"]: row["new"] for row in found if row["new"]},
        )

    def clean(self) -> None:
        """Drop the views and caches of unreachable blocks."""
        while self.waste:
            view, frame = self.waste.pop()
            self._view_sizes.pop(view, None)
            if self._unmade.pop(view, None) is None and self.is_started:
                self.session.catalog.dropTempView(view)
            if frame is not None:
                frame.unpersist()

    def register(self, frame: DataFrame, size: int | None = None) -> str:
        """Register a frame as a view for plans, and return its name.

        Args:
            frame: the frame.
            size: its number of rows, if known.
        """
        view = f"evermat_{next(_names)}"
        frame.createOrReplaceTempView(view)
        if size is not None:
            self._view_sizes[view] = size
        return view

    def promise(self, make: Callable[[], DataFrame], size: int) -> str:
        """A name for a frame that is made when a plan has the name.

        Args:
            make: makes the frame.
            size: how many rows it has.
        """

        def named(view: str) -> None:
            make().createOrReplaceTempView(view)

        return self._named_later(named, size)

    def register_table(self, table: pa.Table) -> str:
        """A name for an Arrow table, which is sent when a plan has the name."""

        def send(view: str) -> None:
            # Each chunk is a task of its own.
            rows = for_spark(table.combine_chunks())
            frame = self.session.createDataFrame(rows)
            frame.createOrReplaceTempView(view)
            let_go(frame)

        return self._named_later(send, table.num_rows)

    def _named_later(self, make: Callable[[str], None], size: int) -> str:
        view = f"evermat_{next(_names)}"
        self._unmade[view], self._view_sizes[view] = make, size
        return view

    def terms_view(self) -> str:
        """Return the dictionary as a view: `id`, `kind`, `text`."""
        # Afterwards no constant is both on the driver and on the cluster.
        self.dictionary.reconcile()
        version = self.dictionary.version
        if self._terms is None or self._terms[0] != version:
            if self._terms is not None:
                self.waste.append((self._terms[1], None))
            view = self.register_table(self.dictionary.terms())
            stored = self.terms.query()
            if stored is not None:
                both = self.sql(f"TABLE {view} UNION ALL {stored}")
                self.waste.append((view, None))
                view = self.register(both)
            self._terms = version, view
        return self._terms[1]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Origin:
    """Rows as they were written, which several blocks may be parts of.

    Attributes:
        view: where plans find them, unless they are facts of a state.
        stored: these facts.
    """

    view: str
    width: int
    columns: frozenset[str]
    stored: StoredFacts | None = None


@dataclass(frozen=True, slots=True, eq=False)
class KeptIn:
    """The place of a block's rows on the cluster.

    Attributes:
        only_new: those that are marked as old do not belong to the block.
        ones: the number of each row is one, whatever was written.
        number: of the facts of a state, those that have this number.
    """

    origin: Origin
    only_new: bool = False
    ones: bool = False
    number: str = ""


class _Shared:
    """A resource of several blocks, released with the last of them."""


@dataclass(eq=False)
class Pending:
    """A plan for the rows of a block that has not been run.

    Attributes:
        sql: returns the text of the plan.
        guess: the estimated number of rows.
        shape: a condition that all rows satisfy.
        done: receives the number of matches by relation when the plan has been run.
        marked: a plan that marks as `old` the contents of a heap at some moment, if
            any.
    """

    sql: Callable[[], str]
    tags: frozenset[int]
    guess: int
    shape: str
    done: Callable[[Mapping[int, int]], None]
    marked: tuple[tuple[int, int], DataFrame] | None = None


class Block:
    """Immutable rows.

    Attributes:
        pending: the plan, until the rows are needed.
        kept_in: the place of the rows on the cluster, once the plan was run.
        shared: resources that must live as long as the block.
    """

    __slots__ = (
        "__weakref__",
        "_summary",
        "_table",
        "_view",
        "cluster",
        "kept_in",
        "pending",
        "shared",
        "width",
    )

    def __init__(
        self, cluster: Cluster, width: int, table: pa.Table | None, view: str | None
    ) -> None:
        self.cluster = cluster
        self.width = width
        self.pending: Pending | None = None
        self.kept_in: KeptIn | None = None
        self.shared: object = None
        self._table = table
        self._view = view
        sizes = {} if table is None else _sizes(table)
        self._summary = Summary(sizes, sizes)

    def know(self, summary: Summary) -> None:
        """Set the known sizes."""
        self._summary = summary

    def become(self, other: Block) -> None:
        """Take the rows of another block, the result of the plan."""
        pending, self.pending = self.pending, None
        self.know(other.summary)
        # The view of the other block must live as long as this block.
        self.shared, self._view, self.kept_in = other, other.view, other.kept_in
        if pending is not None:
            pending.done(other.numbers)

    def run(self) -> None:
        """Run the plan, if there is one."""
        if self.pending is not None:
            sql, tags = self.pending.sql(), self.pending.tags
            self.become(self.cluster.checkpoint(sql, self.width, tags))

    @property
    def table(self) -> pa.Table | None:
        """The rows, if they are on the driver."""
        return self._table

    @property
    def summary(self) -> Summary:
        """The known sizes of the rows."""
        self.run()
        return self._summary

    @property
    def sizes(self) -> Mapping[int, int]:
        """The number of rows of each relation, by tag."""
        return self.summary.sizes

    @property
    def numbers(self) -> Mapping[int, int]:
        """The sum of the column `n`, or the number of rows, by tag."""
        return self.summary.numbers

    @property
    def size(self) -> int:
        """The number of rows."""
        return sum(self.sizes.values())

    def most(self, tag: int, second: int | None, third: int | None) -> int:
        """Return an upper bound of the rows of a relation with two columns fixed."""
        if self._table is None or self.width < TRIPLE:
            return self.summary.most(tag, second, third)
        mine = pc.equal(self._table["tag"], tag)
        for name, value in (("c1", second), ("c2", third)):
            if value is not None:
                mine = pc.and_(mine, pc.equal(self._table[name], value))
        return int(pc.sum(mine).as_py() or 0)

    @property
    def view(self) -> str:
        """The name of a view of the rows, or a query in parentheses."""
        self.run()
        if self.stored is not None:
            facts, number = self.stored
            return facts.query(number)
        if self._view is None:
            self._view = self.cluster.register_table(self._table)
            weakref.finalize(self, self.cluster.waste.append, (self._view, None))
        return self._view

    @property
    def stored(self) -> tuple[StoredFacts, str] | None:
        """The facts of a state that the rows are, in its files, and their number."""
        kept = self.kept_in
        if kept is None or kept.origin.stored is None or self._view is not None:
            return None
        return kept.origin.stored, kept.number

    def view_of(self, tags: frozenset[int] | None) -> str:
        """Where plans find the rows of some relations, perhaps among others."""
        if tags is None or self.stored is None:
            return self.view
        facts, number = self.stored
        return facts.query(number, tags)

    def reader(self, tags: frozenset[int] | None) -> Callable[[], pa.Table] | None:
        """What gives the rows of some relations without Spark, where that is done."""
        if self.stored is None:
            return None
        facts, number = self.stored
        return partial(
            facts.read, number, frozenset(self.sizes) if tags is None else tags
        )


def _sizes(table: pa.Table) -> dict[int, int]:
    if table.num_rows == 0:
        return {}
    counts = pc.value_counts(table.column("tag"))
    return {each["values"].as_py(): each["counts"].as_py() for each in counts}


def local_block(cluster: Cluster, table: pa.Table) -> Block:
    """Return a block of rows on the driver."""
    return Block(cluster, table_width(table), table, None)


def spread(block: Block) -> Block:
    """Return the same rows on the cluster, partitioned by all columns."""
    keys = ", ".join(key_columns(block.width))
    sql = f"SELECT * FROM {block.view} DISTRIBUTE BY {keys}"  # noqa: S608
    return block.cluster.checkpoint(sql, block.width, block.sizes)


def with_ones(block: Block) -> Block:
    """Return the rows of a block on the cluster, each with the count one."""
    names = ", ".join(key_columns(block.width))
    ones = f"(SELECT {names}, 1L AS n FROM {block.view})"  # noqa: S608
    made = Block(block.cluster, block.width, None, ones)
    made.know(replace(block.summary, numbers=block.sizes))
    made.shared = block
    made.kept_in = None if block.kept_in is None else replace(block.kept_in, ones=True)
    return made


def parted(block: Block) -> tuple[Block | None, Block]:
    """Divide a block into relations for the driver, and those that are too large.

    The largest ones are moved first, so that rules over small relations still need no
    job.
    """
    left, limit = block.size, block.cluster.small // 2
    large: set[int] = set()
    for tag, size in sorted(block.sizes.items(), key=lambda each: -each[1]):
        if left <= limit:
            break
        large.add(tag)
        left -= size
    if not left:
        return None, block
    kept = chosen(block.table, frozenset(block.sizes) - large)
    moved = chosen(block.table, frozenset(large))
    return local_block(block.cluster, kept), local_block(block.cluster, moved)
