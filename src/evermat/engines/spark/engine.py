"""Distributed facts: large relations on the cluster, small ones on the driver.

See `evermat.algebra.Engine` for the methods. Facts are rows of blocks (`blocks`), sets
are heaps of blocks (`heaps`, `sets`), views become SQL if they are large (`rows`), and
rules become one plan for each call (`rules`, `evaluation`, `queries`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, cast

import pyarrow as pa

from evermat.algebra import (
    STORED_NUMBERS,
    Engine,
    EngineUseError,
    Region,
    require_bounded,
)
from evermat.columns import ArityMismatchError
from evermat.engines.spark.aggregates import AggregateOperators
from evermat.engines.spark.blocks import (
    FEW_ROWS,
    Cluster,
    local_block,
    width_of,
    with_ones,
)
from evermat.engines.spark.closures import Closer, FrameSnapshot
from evermat.engines.spark.counters import CounterLog, Numbers
from evermat.engines.spark.decoding import Copy, decoded
from evermat.engines.spark.equality import EqualityOperators
from evermat.engines.spark.evaluation import Evaluation
from evermat.engines.spark.journal import (
    C_NR,
    C_R,
    GIVEN,
    HOLDS,
    Difference,
    number_parts,
    set_parts,
    take_up_table,
)
from evermat.engines.spark.limits import limits_of
from evermat.engines.spark.lookups import Lookups
from evermat.engines.spark.row_tables import (
    NUMBERS,
    appended,
    distinct,
    key_columns,
    widened,
)
from evermat.engines.spark.rows import (
    block_rows,
    partitioned,
    settled_block,
    union,
    work_out,
)
from evermat.engines.spark.session import find_session
from evermat.engines.spark.sets import (
    Contents,
    Counted,
    Growing,
    Heap,
    Settled,
    Stored,
    as_settled,
    empty,
    rows_of,
    settle,
)
from evermat.engines.spark.staging import StagedRows, stage
from evermat.runtime.interrupts import seal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from evermat.algebra import (
        Closure,
        Facts,
        Journal,
        Monitor,
        Pattern,
        SettledFacts,
    )
    from evermat.engines.spark.blocks import Block
    from evermat.engines.spark.journal import Part
    from evermat.engines.spark.session import SessionToCome


@dataclass(frozen=True, slots=True, eq=False)
class _Saved:
    """The state of an engine, for rollback."""

    arities: dict[str, int]
    materialised: Contents
    explicit: Contents
    counters: tuple[Numbers, Numbers]


class SparkEngine(AggregateOperators, EqualityOperators, Engine):
    """Relations as data frames of ids, distributed from the first fact on.

    Args:
        session: a Spark session, or one to come; by default the active one, or a new
            local one.
        small: facts up to which a set is on the driver.
    """

    name = "spark"
    is_on_driver = False
    place = "distributed over the cluster"
    takes_frames = True

    def __init__(
        self,
        session: SparkSession | SessionToCome | None = None,
        *,
        small: int | None = None,
    ) -> None:
        session = find_session() if session is None else session
        limits = limits_of(session, small=small)
        cluster = Cluster(session, limits)
        self._set_up(cluster, Evaluation(cluster))

    @classmethod
    def on(cls, cluster: Cluster) -> Self:
        """Return an engine that shares a cluster's resources with others."""
        engine = cls.__new__(cls)
        engine._set_up(cluster, Evaluation(cluster))  # noqa: SLF001  it is our own
        return engine

    def make_room(self, facts: int) -> None:
        """Do nothing: distributed facts always fit."""

    def _set_up(self, cluster: Cluster, evaluation: Evaluation) -> None:
        self.monitor: Monitor | None = None
        self.matches = 0
        self.journal: Journal | None = None
        self.is_torn = False
        self.cluster = cluster
        self._evaluation = evaluation
        self._arities: dict[str, int] = {}
        self._materialised = Stored(Heap(cluster))
        self._explicit = Stored(Heap(cluster))
        self._counters = (CounterLog(cluster), CounterLog(cluster))
        self._saved: _Saved | None = None
        self._steps = 0
        """The number of times rules were applied in this transaction."""
        heaps = (self._materialised.heap, self._explicit.heap)
        lookups = Lookups(cluster, (*heaps, *self._counters))
        for source in (*heaps, *self._counters):
            source.lookups = lookups

    # ------------------------------------------------------------------- relations

    def declare(self, relation: str, arity: int) -> None:
        """Declare a relation."""
        known = self._arities.setdefault(relation, arity)
        if known != arity:
            raise ArityMismatchError(known, arity, name=relation)
        self.cluster.tag(relation)

    def relations(self) -> Mapping[str, int]:
        """Return the arity of every declared relation."""
        return dict(self._arities)

    # ------------------------------------------------------------------------ sets

    @property
    def materialised(self) -> Stored:
        """The facts that held before the update."""
        return self._materialised

    @property
    def explicit(self) -> Stored:
        """The facts that were explicit before the update."""
        return self._explicit

    def growing(self) -> Growing:
        """Return a new, empty, growing set."""
        return Growing(Heap(self.cluster))

    def no_facts(self) -> Settled:
        """Return the empty set."""
        return empty(self.cluster)

    def settle(self, facts: Facts) -> Settled:
        """Evaluate a view."""
        require_bounded(facts)
        return settle(facts, self.cluster)

    def size(self, facts: Facts, relation: str) -> int:
        """Return the number of facts of a relation in a view."""
        tag = self.cluster.tags.get(relation)
        if tag is None:
            return 0
        if isinstance(facts, Settled):
            return facts.block.sizes.get(tag, 0)
        if isinstance(facts, Stored | Growing):
            size = facts.heap.size(tag)
            if size is not None:
                return size
        rows = rows_of(facts, self.cluster, frozenset({tag}))
        return Copy(self.cluster, rows, self._arities).relations().get(relation, 0)

    # -------------------------------------------------------------------- counters

    @property
    def nonrecursive_counts(self) -> CounterLog:
        """The counter c_nr: derivations by nonrecursive rules, plus one if explicit."""
        return self._counters[0]

    @property
    def recursive_counts(self) -> CounterLog:
        """The counter c_r: derivations by recursive rules."""
        return self._counters[1]

    def once(self, facts: SettledFacts) -> Counted:
        """Return the multiset that contains each of the facts once."""
        settled = as_settled(facts)
        block = settled.block
        if block.table is not None:
            ones = pa.array([1] * block.size, pa.int64())
            table = block.table.append_column("n", ones)
            return Counted(local_block(self.cluster, table), settled)
        return Counted(with_ones(block), settled)

    # -------------------------------------------------------------------- closures

    def counted(self, pattern: Pattern) -> Settled:
        """Return the facts of a pattern with at least one count above zero."""
        tag = self.cluster.tag(pattern.relation)
        first, second = (counters.counted(tag) for counters in self._counters)
        found = Settled(settled_block(union(first, second)))
        return settle(found.within(Region.of(pattern)), self.cluster)

    def external(
        self, pattern: Pattern, facts: Facts, *, certain: bool = False
    ) -> SettledFacts:
        """Return the facts of a pattern in a view that have a count above zero."""
        found = self.settle(self.counted(pattern) & facts)
        return self.nonrecursive_counts.positive(found) if certain else found

    def close(
        self,
        closure: Closure,
        facts: Facts,
        *,
        without: Facts | None = None,
        through: SettledFacts | None = None,
        only: Pattern | None = None,
    ) -> Settled:
        """Return the closure of facts, without the closure of other facts."""
        self._declare_closure(closure)
        closer = Closer(self._evaluation)
        if self.monitor is not None:
            self.monitor.writing(closure.label, 0)
        return closer.close(closure, facts, without=without, through=through, only=only)

    def close_among(self, closure: Closure, facts: Facts, candidates: Facts) -> Settled:
        """Return those of the candidates that are in the closure of facts."""
        self._declare_closure(closure)
        return Closer(self._evaluation).close_among(closure, facts, candidates)

    def snapshot_closure(self, closure: Closure, facts: Facts) -> FrameSnapshot:
        """Return a closure snapshot, which can be read after the facts have changed."""
        self._declare_closure(closure)
        return Closer(self._evaluation).snapshot_closure(closure, facts)

    def _declare_closure(self, closure: Closure) -> None:
        for pattern in (closure.pattern, closure.edges):
            if pattern is not None:
                self.declare(pattern.relation, len(pattern.operands))

    def snapshot_closures(
        self, closure: Closure, before: Facts, after: Facts, *changes: SettledFacts
    ) -> tuple[FrameSnapshot, FrameSnapshot]:
        """Return the closure snapshots of two views, to be compared with each other."""
        del changes
        return self.snapshot_closure(closure, before), self.snapshot_closure(
            closure, after
        )

    # ------------------------------------------------------------- data in and out

    def stage(self, parts: Sequence[object], name: str) -> StagedRows:
        """Encode frames and tables of one relation on the cluster."""
        return stage(self.cluster, parts, name)

    def intern(self, relation: str, table: pa.Table | StagedRows) -> Settled:
        """Return the rows as facts of a relation, whether they hold or not."""
        self.declare(relation, table.num_columns)
        if isinstance(table, StagedRows):
            return Settled(table.block(self.cluster.tag(relation)))
        return Settled(settled_block(block_rows(self._encoded(relation, table))))

    def _ids(self, relation: str, table: pa.Table) -> pa.Table:
        """Return the rows of a relation in the layout of blocks."""
        tag = self.cluster.tag(relation)
        columns = [self.cluster.dictionary.encode(column) for column in table.columns]
        rows = table.num_rows
        tags = pa.array([tag], pa.int64()).take(pa.array([0] * rows, pa.int8()))
        names = key_columns(len(columns))
        return widened(
            pa.table([tags, *columns], names=names), width_of(table.num_columns)
        )

    def _encoded(self, relation: str, table: pa.Table) -> Block:
        return self._block(distinct(self._ids(relation, table)))

    def _block(self, rows: pa.Table) -> Block:
        """Return rows as a block, on the driver if there are few."""
        block = local_block(self.cluster, rows)
        if block.size > self.cluster.small:
            return partitioned(block_rows(block))
        return block

    def find(self, relation: str, table: pa.Table | StagedRows) -> Settled:
        """Return those of the rows that are known facts of a relation."""
        if relation not in self._arities:
            return self.no_facts()
        known = self._materialised | self._explicit
        return self.settle(self.intern(relation, table) & known)

    def snapshot(self, facts: Facts) -> Copy:
        """Return a copy that outlives the transaction."""
        return Copy(self.cluster, rows_of(facts, self.cluster), self._arities)

    def read_counts(self, relation: str, also: Facts | None = None) -> pa.Table:
        """Return the rows of a relation with their `c_nr` and `c_r`."""
        arity = self._arities.get(relation, 0)
        tags = frozenset({self.cluster.tag(relation)})
        facts: Facts = self._materialised
        if also is not None:
            facts |= also
        table = work_out(rows_of(facts, self.cluster, tags))
        table = widened(table, width_of(arity)).select(key_columns(width_of(arity)))
        keys = table.column_names
        for name, counters in zip(("c_nr", "c_r"), self._counters, strict=True):
            numbers = widened(counters.numbers_in(tags), width_of(arity))
            numbers = numbers.select([*keys, "n"]).rename_columns([*keys, name])
            table = table.join(numbers, keys, join_type="left outer", use_threads=False)
        result = decoded(self.cluster, table, arity)
        for name in ("c_nr", "c_r"):
            column = table[name].combine_chunks().fill_null(0)
            result = result.append_column(name, column)
        return result

    # ---------------------------------------------------------------- transactions

    def begin(self) -> None:
        """Start a transaction."""
        if self._saved is not None:
            raise EngineUseError("a transaction is under way already")
        self.is_torn = False
        self._steps = 0
        self._saved = self._contents()

    def _contents(self) -> _Saved:
        """Return the stored contents, which are never changed in place."""
        return _Saved(
            arities=dict(self._arities),
            materialised=self._materialised.heap.contents,
            explicit=self._explicit.heap.contents,
            counters=(self._counters[0].numbers, self._counters[1].numbers),
        )

    def _put_back(self, saved: _Saved) -> None:
        self._arities = saved.arities
        self._materialised.heap.set(saved.materialised)
        self._explicit.heap.set(saved.explicit)
        for counters, numbers in zip(self._counters, saved.counters, strict=True):
            counters.numbers = numbers

    def commit(
        self,
        *,
        deleted: Facts,
        added: Facts,
        explicit_removed: Facts,
        explicit_added: Facts,
    ) -> None:
        """Commit the transaction."""
        if self._saved is None:
            raise EngineUseError("there is no transaction to commit")
        self.cluster.dictionary.reconcile()
        self.cluster.doing = "commit"
        # All jobs are done before the journal is written, because any of them may fail.
        before = self._contents()
        new = self._changed(deleted, added, explicit_removed, explicit_added)
        self._put_back(before)
        if self.journal is not None:
            self.journal(
                self._difference(
                    self._saved, deleted, added, explicit_removed, explicit_added
                )
            )
        self.is_torn = True
        seal()
        self._put_back(new)
        self._saved = None

    def _changed(
        self,
        deleted: Facts,
        added: Facts,
        explicit_removed: Facts,
        explicit_added: Facts,
    ) -> _Saved:
        """Apply the changes of a commit, and return the new contents."""
        removed = settle(deleted - added, self.cluster)
        inserted = settle(added - (self._materialised - deleted), self.cluster)
        no_longer_explicit = settle(explicit_removed - explicit_added, self.cluster)
        newly_explicit = settle(
            explicit_added - (self._explicit - explicit_removed), self.cluster
        )
        for stored, less, more in (
            (self._materialised, settle(deleted, self.cluster), inserted),
            (self._explicit, settle(explicit_removed, self.cluster), newly_explicit),
        ):
            stored.heap.remove(block_rows(less.block))
            stored.heap.add(more.block)
        held = self._materialised | self._explicit
        forgotten = settle((removed | no_longer_explicit) - held, self.cluster)
        for counters in self._counters:
            counters.forget(block_rows(forgotten.block))
        return self._contents()

    def _difference(
        self,
        saved: _Saved,
        deleted: Facts,
        added: Facts,
        explicit_removed: Facts,
        explicit_added: Facts,
    ) -> Difference:
        """Return the changes that `commit` is about to make."""
        parts: list[Part] = []
        ends = []
        for which, stored, less, more in (
            (HOLDS, self._materialised, deleted, added),
            (GIVEN, self._explicit, explicit_removed, explicit_added),
        ):
            outdated = settle(less & stored, self.cluster)
            inserted = settle(more - (stored - less), self.cluster)
            parts += set_parts(which, -1, [block_rows(outdated.block)])
            parts += set_parts(which, 1, [block_rows(inserted.block)])
            ends.append((outdated, inserted, stored - less))
        (
            (removed, inserted, stay),
            (no_longer_explicit, newly_explicit, stay_explicit),
        ) = ends
        kept = inserted | newly_explicit | stay | stay_explicit
        forgotten = block_rows(
            settle((removed | no_longer_explicit) - kept, self.cluster).block
        )
        for which, counters, old in zip(
            (C_NR, C_R), self._counters, saved.counters, strict=True
        ):
            parts += number_parts(which, counters.numbers, old)
            if forgotten.bound:
                parts += number_parts(which, Numbers(), counters.of(forgotten))
        return Difference(self.cluster, self._arities, parts)

    def rollback(self) -> None:
        """Undo the transaction."""
        saved = self._saved
        if saved is None:
            raise EngineUseError("there is no transaction to roll back")
        if self.is_torn:
            return  # a commit has started, which cannot be undone
        self.is_torn = True
        self._put_back(saved)
        self._saved = None
        self.is_torn = False

    def recover(self) -> None:
        """Do nothing: there are no data besides the facts to rebuild."""

    def fresh(self) -> Self:
        """Return an empty engine for the same constants, to materialise into."""
        engine = type(self).__new__(type(self))
        engine._set_up(self.cluster, self._evaluation)  # noqa: SLF001  it is our own
        engine.monitor = self.monitor
        engine._arities = dict(self._arities)  # noqa: SLF001
        return engine

    def load(self, facts: Iterable[tuple[str, pa.Table]]) -> None:
        """Make rows explicit and materialised, each with c_nr = 1."""
        # All tables are read before anything changes, because one of them may be
        # invalid.
        interned = self._interned(facts)
        here = [each.block.table for each in interned if each.block.table is not None]
        for settled in interned:
            if settled.block.table is None:
                self.give(settled)
        if here:
            self.give(Settled(local_block(self.cluster, distinct(appended(here)))))

    def _interned(
        self, facts: Iterable[tuple[str, pa.Table | StagedRows]]
    ) -> list[Settled]:
        """Return facts of several relations; small distributed ones are combined."""
        interned, few = [], []
        for relation, table in facts:
            if isinstance(table, StagedRows) or not (
                self.cluster.small < table.num_rows <= FEW_ROWS
            ):
                interned.append(self.intern(relation, table))
            else:
                self.declare(relation, table.num_columns)
                few.append(self._ids(relation, table))
        if few:
            interned.append(Settled(self._block(distinct(appended(few)))))
        return interned

    def give(self, facts: Facts) -> None:
        """Make facts explicit and materialised, and count new explicit ones."""
        new = settle(facts - self._explicit, self.cluster)
        if new.is_empty():
            return
        self.extend(new)
        self._explicit.heap.add(new.block)
        self.nonrecursive_counts.add(self.once(new))

    def extend(self, facts: SettledFacts) -> None:
        """Add facts directly to the materialised ones: for fresh engines."""
        settled, heap = as_settled(facts), self._materialised.heap
        if heap.moment not in settled.apart:
            settled = settle(settled - self._materialised, self.cluster)
        heap.add(settled.block)

    def copy_explicit(self, target: Engine, *, without: Facts, also: Facts) -> None:
        """Load explicit facts, without some and with others, into a fresh engine."""
        for relation, arity in self._arities.items():
            target.declare(relation, arity)
        facts = (self._explicit - without) | also
        cast("SparkEngine", target).give(settle(facts, self.cluster))

    def adopt(self, other: Engine) -> tuple[Copy, Copy]:
        """Take over the contents of a fresh engine; return removed and added facts."""
        source = cast("SparkEngine", other)
        self.cluster.dictionary.reconcile()
        for relation, arity in source.relations().items():
            self.declare(relation, arity)
        removed = self.snapshot(self._materialised - source.materialised)
        added = self.snapshot(source.materialised - self._materialised)
        if self.journal is not None:
            self.journal(self._replacement(source))
        self.is_torn = True
        seal()
        self._materialised.heap.set(source.materialised.heap.contents)
        self._explicit.heap.set(source.explicit.heap.contents)
        for mine, theirs in zip(
            self._counters,
            (source.nonrecursive_counts, source.recursive_counts),
            strict=True,
        ):
            mine.numbers = theirs.numbers
        self.matches += source.matches
        return removed, added

    def _replacement(self, source: SparkEngine) -> Difference:
        """Return the changes that `adopt` is about to make."""
        parts: list[Part] = []
        for which, old, new in (
            (HOLDS, self._materialised, source.materialised),
            (GIVEN, self._explicit, source.explicit),
        ):
            parts += set_parts(which, -1, old.heap.parts())
            parts += set_parts(which, 1, new.heap.parts())
        for which, mine, theirs in (
            (C_NR, self.nonrecursive_counts, source.nonrecursive_counts),
            (C_R, self.recursive_counts, source.recursive_counts),
        ):
            parts += number_parts(which, theirs.numbers, mine.numbers)
        return Difference(self.cluster, self._arities, parts)

    def reinstate(self, facts: Iterable[tuple[str, pa.Table]]) -> None:
        """Restore the contents of another engine: for engines without facts."""
        parts = []
        for relation, table in facts:
            arity = table.num_columns - len(STORED_NUMBERS)
            self.declare(relation, arity)
            rows = self._ids(relation, table.select(range(arity)))
            for name, column in zip(NUMBERS, table.columns[arity:], strict=True):
                rows = rows.append_column(name, column)
            parts.append(rows)
        if parts:
            take_up_table(self, appended(parts))

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Return for each relation: facts, explicit facts, bytes, indexes."""
        numbers = {}
        for relation, arity in self._arities.items():
            facts = self.size(self._materialised, relation)
            numbers[relation] = {
                "facts": facts,
                "explicit": self.size(self._explicit, relation),
                "bytes": facts * 8 * (width_of(arity) + 1),
                "indexes": 0,
            }
        return numbers
