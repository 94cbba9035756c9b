"""The engine class: stored facts, counters, transactions, input and output."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Self, cast

import pyarrow as pa

from evermat.algebra import (
    STORED_NUMBERS,
    AggregatesByGroup,
    Engine,
    EngineUseError,
    require_bounded,
)
from evermat.columns import ArityMismatchError, as_terms, constants, table_of_rows
from evermat.engines.reference.closures import RowsSnapshot, closed_rows, fits
from evermat.engines.reference.equality import EqualityOperators
from evermat.engines.reference.evaluation import Matcher, Reader, instance
from evermat.engines.reference.store import (
    Copy,
    Counted,
    Growing,
    Settled,
    Store,
    contents_of,
    facts_of,
    rows_of,
)
from evermat.runtime.interrupts import check, seal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evermat.algebra import (
        Closure,
        ClosureSnapshot,
        Counters,
        Counts,
        Facts,
        GrowingFacts,
        Journal,
        Monitor,
        Pattern,
        Query,
        QuerySet,
        SettledFacts,
        Snapshot,
        StoredFacts,
        Views,
    )
    from evermat.engines.reference.store import Fact, Row


class ReferenceEngine(AggregatesByGroup, EqualityOperators, Engine):
    """Python sets and dictionaries; see `evermat.algebra.Engine` for the methods."""

    name = "reference"

    def __init__(self) -> None:
        self.monitor: Monitor | None = None
        self.matches = 0
        self.journal: Journal | None = None
        self.is_torn = False
        self.store = Store()
        self._saved: Store | None = None

    # -- relations

    def declare(self, relation: str, arity: int) -> None:
        """Declare a relation."""
        known = self.store.arities.setdefault(relation, arity)
        if known != arity:
            raise ArityMismatchError(known, arity, name=relation)

    def relations(self) -> Mapping[str, int]:
        """Return the arity of every declared relation."""
        return dict(self.store.arities)

    # -- sets

    @property
    def materialised(self) -> StoredFacts:
        """The facts that held when the update began."""
        return self.store.materialised

    @property
    def explicit(self) -> StoredFacts:
        """The facts that were explicit when the update began."""
        return self.store.explicit

    def growing(self) -> GrowingFacts:
        """Create an empty growing set."""
        return Growing()

    def no_facts(self) -> SettledFacts:
        """Return the empty set."""
        return Settled({})

    def settle(self, facts: Facts) -> SettledFacts:
        """Evaluate a view."""
        require_bounded(facts)
        return Settled(contents_of(facts))

    def part(self, facts: SettledFacts, parts: int) -> SettledFacts:
        """Return one of `parts` parts of the facts."""
        contents = contents_of(facts)
        return Settled(
            {name: {*islice(rows, 0, None, parts)} for name, rows in contents.items()}
        )

    def size(self, facts: Facts, relation: str) -> int:
        """Return the number of facts of a relation in a view."""
        return len(rows_of(facts, relation))

    # -- rules

    def derive(self, queries: QuerySet, views: Views) -> SettledFacts:
        """Return the facts that the queries yield, each once."""
        return self.derive_counts(queries, views).facts

    def derive_counts(self, queries: QuerySet, views: Views) -> Counts:
        """Return the facts that the queries yield, with their numbers of matches."""
        reader = Reader(views)
        numbers: Counter[Fact] = Counter()
        for query in queries.affected(views):
            found = Counter(
                (query.head.relation, instance(query.head.operands, binding))
                for binding in Matcher(query, reader).matches()
            )
            numbers.update(found)
            check()
            self.matches += found.total()
            if self.monitor is not None:
                self.monitor.working(query.label, found.total())
        return Counted(numbers)

    def answer(self, query: Query, views: Views) -> pa.Table:
        """Return the distinct rows a single query yields."""
        head = query.head.operands
        matches = Matcher(query, Reader(views)).matches()
        return table_of_rows(
            list({instance(head, each) for each in matches}), len(head)
        )

    def explain(self, query: Query, views: Views) -> list[str]:
        """Describe the plan of a query, one step per line."""
        return Matcher(query, Reader(views)).explain()

    # -- counters

    @property
    def nonrecursive_counts(self) -> Counters:
        """The number of insertions and nonrecursive derivations of each fact."""
        return self.store.nonrecursive

    @property
    def recursive_counts(self) -> Counters:
        """The number of derivations of each fact by recursive rules."""
        return self.store.recursive

    def once(self, facts: SettledFacts) -> Counts:
        """Return the multiset that contains each of the facts once."""
        return Counted(dict.fromkeys(facts_of(facts), 1))

    # -- closures

    def counted(self, pattern: Pattern) -> SettledFacts:
        """Return the facts of a pattern with at least one counter above zero."""
        rows = {
            row
            for counters in (self.store.nonrecursive, self.store.recursive)
            for (relation, row), number in counters.numbers.items()
            if number > 0 and relation == pattern.relation and fits(pattern, row)
        }
        return Settled({pattern.relation: rows})

    def external(
        self, pattern: Pattern, facts: Facts, *, certain: bool = False
    ) -> SettledFacts:
        """Return the facts of a pattern in a view that have a counter above zero."""
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
    ) -> SettledFacts:
        """Return the closure of facts, without the closure of other facts."""
        if through is not None and through.is_empty():
            return self.no_facts()
        rows = closed_rows(closure, facts)
        if only is not None:
            rows = {row for row in rows if fits(only, row)}
        if without is not None:
            rows -= closed_rows(closure, without)
        name = closure.pattern.relation
        if self.monitor is not None:
            known = contents_of(facts | self.materialised).get(name, set())
            self.monitor.writing(closure.label, len(rows - known))
        return Settled({name: rows})

    def close_among(
        self, closure: Closure, facts: Facts, candidates: Facts
    ) -> SettledFacts:
        """Return those of the candidates that belong to the closure of facts."""
        return self.settle(candidates & self.close(closure, facts))

    def snapshot_closure(self, closure: Closure, facts: Facts) -> ClosureSnapshot:
        """Capture the closure of facts, to be read after the facts have changed."""
        pattern = closure.pattern
        rows = frozenset(closed_rows(closure, facts))
        return RowsSnapshot(pattern.relation, len(pattern.operands), rows)

    def snapshot_closures(
        self, closure: Closure, before: Facts, after: Facts, *changes: SettledFacts
    ) -> tuple[ClosureSnapshot, ClosureSnapshot]:
        """Capture the closures of two views, to be compared with each other."""
        del changes
        return self.snapshot_closure(closure, before), self.snapshot_closure(
            closure, after
        )

    # -- data in and out

    def intern(self, relation: str, table: pa.Table) -> SettledFacts:
        """Return the rows as facts of a relation, whether they hold or not."""
        self.declare(relation, table.num_columns)
        return Settled({relation: set(_table_rows(table))})

    def find(self, relation: str, table: pa.Table) -> SettledFacts:
        """Return those of the rows that are known facts of a relation."""
        if relation not in self.store.arities:
            return self.no_facts()
        known = self.store.materialised | self.store.explicit
        return self.settle(self.intern(relation, table) & known)

    def snapshot(self, facts: Facts) -> Snapshot:
        """Copy facts so that they outlive the transaction."""
        return Copy(contents_of(facts), dict(self.store.arities))

    def read_counts(self, relation: str, also: Facts | None = None) -> pa.Table:
        """Return the materialised rows of a relation with their `c_nr` and `c_r`."""
        store = self.store
        wanted = store.materialised if also is None else store.materialised | also
        rows = list(rows_of(wanted, relation))
        table = table_of_rows(rows, store.arities.get(relation, 0))
        for name, counters in (("c_nr", store.nonrecursive), ("c_r", store.recursive)):
            numbers = [counters.numbers.get((relation, row), 0) for row in rows]
            table = table.append_column(name, pa.array(numbers, pa.int64()))
        return table

    # -- transactions

    def begin(self) -> None:
        """Start a transaction."""
        if self._saved is not None:
            raise EngineUseError("a transaction is under way already")
        self.is_torn = False
        self._saved = self.store.copy()

    def commit(
        self,
        *,
        deleted: Facts,
        added: Facts,
        explicit_removed: Facts,
        explicit_added: Facts,
    ) -> None:
        """End the transaction, and apply the changes."""
        if self._saved is None:
            raise EngineUseError("there is no transaction to commit")
        new = self.store.copy()
        new.materialised.contents = contents_of(
            (self.store.materialised - deleted) | added
        )
        new.explicit.contents = contents_of(
            (self.store.explicit - explicit_removed) | explicit_added
        )
        new.forget()
        if self.journal is not None:
            self.journal(new.difference(self._saved.numbers()))
        self.is_torn = True
        seal()
        self.store.take(new)
        self._saved = None

    def rollback(self) -> None:
        """Undo the transaction."""
        if self._saved is None:
            raise EngineUseError("there is no transaction to roll back")
        if self.is_torn:
            return  # a commit has begun, which cannot be undone
        self.is_torn = True
        self.store.take(self._saved)
        self._saved = None
        self.is_torn = False

    def recover(self) -> None:
        """Do nothing: only facts and their numbers are stored."""

    def fresh(self) -> Self:
        """Create an empty engine with the same relations, to materialise into."""
        engine = type(self)()
        engine.monitor = self.monitor
        engine.store.arities = dict(self.store.arities)
        return engine

    def load(self, facts: Iterable[tuple[str, pa.Table]]) -> None:
        """Make rows explicit and materialised, with a nonrecursive count of one."""
        # All tables are read before anything changes, as any of them may be invalid.
        interned = [self.intern(relation, table) for relation, table in facts]
        for settled in interned:
            self.insert(settled)

    def extend(self, facts: SettledFacts) -> None:
        """Add facts directly to the materialised ones: for fresh engines."""
        for relation, row in facts_of(facts):
            self.store.materialised.contents.setdefault(relation, set()).add(row)

    def reinstate(self, facts: Iterable[tuple[str, pa.Table]]) -> None:
        """Restore contents that another engine stored: for engines without facts."""
        store = self.store
        for relation, table in facts:
            arity = table.num_columns - len(STORED_NUMBERS)
            self.declare(relation, arity)
            numbers = [table[name].to_pylist() for name in STORED_NUMBERS]
            rows = _table_rows(table.select(range(arity)))
            for row, (holds, given, *counts) in zip(
                rows, zip(*numbers, strict=True), strict=True
            ):
                if holds:
                    store.materialised.contents.setdefault(relation, set()).add(row)
                if given:
                    store.explicit.contents.setdefault(relation, set()).add(row)
                store.nonrecursive.numbers[relation, row] = counts[0]
                store.recursive.numbers[relation, row] = counts[1]

    def copy_explicit(self, target: Engine, *, without: Facts, also: Facts) -> None:
        """Copy explicit facts into a fresh engine, without some and with others."""
        for relation, arity in self.relations().items():
            target.declare(relation, arity)
        facts = (self.store.explicit - without) | also
        cast("ReferenceEngine", target).insert(Settled(contents_of(facts)))

    def adopt(self, other: Engine) -> tuple[Snapshot, Snapshot]:
        """Take over the facts of a fresh engine; return those removed and added."""
        source = cast("ReferenceEngine", other)
        for relation, arity in source.relations().items():
            self.declare(relation, arity)
        removed = self.snapshot(self.materialised - source.materialised)
        added = self.snapshot(source.materialised - self.materialised)
        arities = self.store.arities
        if self.journal is not None:
            self.journal(source.store.difference(self.store.numbers()))
        self.is_torn = True
        seal()
        self.store.take(source.store)
        self.store.arities = arities
        self.matches += source.matches
        return removed, added

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Count the facts, explicit facts, bytes and indexes of each relation."""
        return {
            relation: {
                "facts": len(rows_of(self.store.materialised, relation)),
                "explicit": len(rows_of(self.store.explicit, relation)),
                "bytes": sys.getsizeof(rows_of(self.store.materialised, relation)),
                "indexes": 0,
            }
            for relation in self.store.arities
        }

    def insert(self, facts: SettledFacts) -> None:
        """Make facts explicit and materialised, counting those not explicit before."""
        new = self.settle(facts - self.store.explicit)
        self.extend(new)
        for relation, row in facts_of(new):
            self.store.explicit.contents.setdefault(relation, set()).add(row)
        self.store.nonrecursive.add(self.once(new))


def _table_rows(table: pa.Table) -> Iterable[Row]:
    if not table.num_columns:
        return [()] * table.num_rows
    columns = [constants(as_terms(column)) for column in table.columns]
    return zip(*columns, strict=True)
