"""The embedded engine: everything in this process, in columns.

See `evermat.algebra.Engine` for the methods. Facts are rows of relations (`relation`),
sets are rows and status bits (`fact_sets`), rules are evaluated by plans (`rules`), and
derived facts are sorted, counted and given rows (`dedup`).
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from evermat.algebra import (
    STORED_NUMBERS,
    Engine,
    EngineUseError,
    SettledFacts,
    Within,
    prove,
    saturate,
)
from evermat.columns import ArityMismatchError
from evermat.engines.embedded.aggregates import Aggregator
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.backward import Prover
from evermat.engines.embedded.batch import InlineTables
from evermat.engines.embedded.closures import ClosureOperators
from evermat.engines.embedded.dedup import (
    find_known,
    intern_rows,
)
from evermat.engines.embedded.dictionary import UNKNOWN, Dictionary
from evermat.engines.embedded.equality import EqualityOperators
from evermat.engines.embedded.fact_sets import (
    NOTHING,
    Growing,
    RowCounts,
    Settled,
    Stored,
)
from evermat.engines.embedded.memory import keep_freed
from evermat.engines.embedded.relation import (
    EXPLICIT,
    NONRECURSIVE,
    RECURSIVE,
    Relation,
)
from evermat.engines.embedded.rules import Plans, Proofs, RuleOperators
from evermat.engines.embedded.saturation import Saturator
from evermat.engines.embedded.small_batch import AtOnce
from evermat.engines.embedded.store import (
    Copy,
    Store,
    apply_numbers,
    committed,
    replaced,
)
from evermat.engines.embedded.triggers import is_worth_it
from evermat.runtime.interrupts import masked, seal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from evermat.algebra import (
        Aggregate,
        Counts,
        Facts,
        Journal,
        Monitor,
        ProofSearch,
        ProofWork,
        Regrouped,
        Saturation,
    )
    from evermat.algebra.engine import PlannedStrata
    from evermat.algebra.fixpoint import OnRounds
    from evermat.engines.embedded.arrays import Ids, Rows
    from evermat.engines.embedded.mapped_file import ArrayWriter, MappedArrays
    from evermat.engines.embedded.store import CounterColumn

MANY_DEAD = 1 << 16
"""Dead rows are removed if there are more than this, and more of them than rows that
hold.
"""


class EmbeddedEngine(RuleOperators, EqualityOperators, ClosureOperators, Engine):
    """Columns, sorted indexes and compiled loops on one machine."""

    name = "embedded"

    def __init__(self, inline: InlineTables | None = None) -> None:
        keep_freed()
        self.monitor: Monitor | None = None
        self.matches = 0
        self.journal: Journal | None = None
        self.is_torn = False
        self.inline = InlineTables(Dictionary()) if inline is None else inline
        self._dictionary = self.inline.dictionary
        self._proofs = Proofs()
        self._arities: dict[str, int] = {}
        """The arities when `relations` was last called; more may have been declared."""
        self._known_before: set[str] | None = None
        """The relations at the start of the transaction; None outside transactions."""
        self._set_up(Store(self._dictionary))

    def _set_up(self, store: Store) -> None:
        """Use a store, without any cached plans or programs."""
        self.store = store
        self.plans = Plans(store, self.inline)
        self.at_once = AtOnce(self.plans)
        self._saturator = Saturator(self)
        self._prover = Prover(self)
        self._used: set[Saturator | Prover] = set()
        """The components that the transaction has used."""
        self._aggregator = Aggregator(self)

    # ------------------------------------------------------------------- relations

    def declare(self, relation: str, arity: int) -> None:
        """Declare a relation."""
        self.plans.declare(relation, arity)

    def relations(self) -> Mapping[str, int]:
        """Return the arity of every declared relation."""
        known = self.store.relations
        if len(self._arities) != len(known):
            self._arities = {name: each.arity for name, each in known.items()}
        return self._arities

    # ------------------------------------------------------------------------ sets

    @property
    def materialised(self) -> Stored:
        """The facts that held before the update."""
        return self.store.materialised

    @property
    def explicit(self) -> Stored:
        """The facts that were explicit before the update."""
        return self.store.explicit

    def growing(self) -> Growing:
        """Return a new, empty, growing set."""
        return self.store.sets.grow()

    def no_facts(self) -> Settled:
        """Return the empty set."""
        return NOTHING

    def settle(self, facts: Facts) -> Settled:
        """Evaluate a view."""
        return self.store.sets.settled(facts)

    def part(self, facts: SettledFacts, parts: int) -> Settled:
        """Return a sample of the facts."""
        some = cast("Settled", facts).rows.items()
        return Settled({name: rows[::parts] for name, rows in some})

    def size(self, facts: Facts, relation: str) -> int:
        """Return the number of facts of a relation in a view."""
        known = self.store.relations.get(relation)
        if known is None:
            return 0
        if facts is self.store.materialised:
            return known.alive
        if facts is self.store.explicit:
            return known.explicit_count
        return self._rows(facts, relation).size

    def _rows(self, facts: Facts, name: str) -> Rows:
        """Return the rows of any view, including stored sets."""
        if isinstance(facts, Settled):
            return facts.rows.get(name, np.empty(0, np.int32))
        return self.store.sets.stored_rows(facts, name)

    # -------------------------------------------------------------------- counters

    @property
    def nonrecursive_counts(self) -> CounterColumn:
        """The counter c_nr: derivations by nonrecursive rules, plus one if explicit."""
        return self.store.counters[NONRECURSIVE]

    @property
    def recursive_counts(self) -> CounterColumn:
        """The counter c_r: derivations by recursive rules."""
        return self.store.counters[RECURSIVE]

    def once(self, facts: SettledFacts) -> Counts:
        """Return the multiset that contains each of the facts once."""
        return RowCounts(cast("Settled", facts), np.ones(facts.size(), np.int32))

    def saturate(self, task: Saturation, on_rounds: OnRounds) -> None:
        """Apply rules until no candidate is admitted."""
        if task.is_watched:
            saturate(self, task, on_rounds)
        else:
            self._used.add(self._saturator)
            self._saturator.saturate(task, on_rounds)

    def prove(
        self,
        search: ProofSearch,
        facts: SettledFacts,
        work: ProofWork,
        on_rounds: OnRounds,
    ) -> SettledFacts:
        """Search for derivations of facts; return those that have none."""
        if not search.is_watched:
            self._used.add(self._prover)
            some = cast("Settled", facts)
            found = self._prover.prove(search, some, work, on_rounds)
            if found is not None:
                return found
        return prove(self, search, facts, work, on_rounds)

    def prepare_updates(self, strata: PlannedStrata) -> None:
        """Prepare plans and indexes for updates, if that is comparatively cheap."""
        if is_worth_it(strata, self.store.relations.values()):
            self._saturator.prepare_updates(strata)

    # ------------------------------------------------------------------ aggregates

    def aggregate(self, aggregates: Sequence[Aggregate], facts: Facts) -> SettledFacts:
        """Return the results for all groups of members in a view."""
        return self._aggregator.aggregate(aggregates, facts)

    def aggregate_again(
        self, aggregates: Sequence[Aggregate], results: SettledFacts, facts: Facts
    ) -> SettledFacts:
        """Return the results for the groups of some results."""
        return self._aggregator.again(aggregates, results, facts)

    def aggregate_changes(
        self,
        aggregates: Sequence[Aggregate],
        changes: Sequence[SettledFacts],
        before: Facts,
        after: Facts,
    ) -> Regrouped:
        """Return the results that a change removes and adds."""
        return self._aggregator.changes(aggregates, changes, before, after)

    # ------------------------------------------------------------- data in and out

    def intern(self, relation: str, table: pa.Table) -> Settled:
        """Return the rows as facts of a relation, whether they hold or not."""
        self.declare(relation, table.num_columns)
        ids = self._ids(table, self._dictionary.encode)
        return Settled({relation: intern_rows(self.store.relations[relation], ids)})

    def find(self, relation: str, table: pa.Table) -> Settled:
        """Return those of the rows that are known facts of a relation."""
        if not self._require_arity(relation, table):
            return self.no_facts()
        ids = self._ids(table, self._dictionary.look_up)
        seen = (ids != UNKNOWN).all(axis=0)
        known = self.store.relations[relation]
        return Settled({relation: find_known(known, ids[:, seen])})

    def intern_all(self, tables: Mapping[str, pa.Table]) -> Settled:
        """Return the rows as facts of relations, whether they hold or not."""
        if not tables:
            return NOTHING
        if not self.at_once.can_find(tables):
            return self._union(self.intern(*each) for each in tables.items())
        for name, table in tables.items():
            self.declare(name, table.num_columns)
        ids = self._dictionary.encode_all(_columns(tables))
        return self.at_once.find(tables, ids, add=True)

    def find_all(self, tables: Mapping[str, pa.Table]) -> Settled:
        """Return those of the rows that are known facts of relations."""
        known = {
            name: table
            for name, table in tables.items()
            if self._require_arity(name, table)
        }
        if not self.at_once.can_find(known):
            return self._union(self.find(*each) for each in known.items())
        ids = self._dictionary.look_up_all(_columns(known))
        return self.at_once.find(known, ids, add=False)

    def _union(self, parts: Iterable[Settled]) -> Settled:
        return Settled(
            {name: rows for part in parts for name, rows in part.rows.items()}
        )

    def _require_arity(self, relation: str, table: pa.Table) -> bool:
        """Check the number of columns; return whether the relation exists."""
        known = self.store.relations.get(relation)
        if known is not None and known.arity != table.num_columns:
            raise ArityMismatchError(known.arity, table.num_columns, name=relation)
        return known is not None

    def _ids(self, table: pa.Table, translate: Callable[[pa.ChunkedArray], Ids]) -> Ids:
        ids = np.empty((table.num_columns, table.num_rows), np.uint32)
        for at, column in enumerate(table.columns):
            ids[at] = translate(column)
        return ids

    def snapshot(self, facts: Facts) -> Copy:
        """Return a copy that outlives the transaction."""
        if isinstance(facts, Settled):
            # The ids of a row never change, so they need not be copied yet.
            relations = self.store.relations
            tables = {name: relations[name].table for name in facts.names}
            return Copy(self._dictionary, tables, facts)
        names = self.store.relations
        return self._copy({name: self._chosen(facts, name) for name in names})

    def _copy(self, chosen: Mapping[str, Rows | None]) -> Copy:
        """Return a snapshot of some rows of relations, or of all of them."""
        relations = self.store.relations
        return Copy(
            self._dictionary,
            {
                name: relations[name].whole_table()
                for name, rows in chosen.items()
                if (relations[name].count if rows is None else rows.size)
            },
            Settled({name: rows for name, rows in chosen.items() if rows is not None}),
        )

    def _chosen(self, facts: Facts, name: str) -> Rows | None:
        """Return the rows of a view in one relation, None for all rows."""
        relation = self.store.relations[name]
        match facts:
            case Within(facts=inner, region=region) if name in region.relations:
                return self._chosen(inner, name)
            case Within(region=region) if not region.touches(name):
                return NO_ROWS
            case Stored() if self.size(facts, name) == relation.count:
                return None
        return self._rows(facts, name)

    def read_counts(self, relation: str, also: Facts | None = None) -> pa.Table:
        """Return the materialised rows of a relation with their `c_nr` and `c_r`."""
        known = self.store.relations[relation]
        wanted: Facts = self.store.materialised
        rows = self._rows(wanted if also is None else wanted | also, relation)
        table = Copy(self._dictionary, {relation: known.table[:, rows]}).read(relation)
        for name, which in (("c_nr", NONRECURSIVE), ("c_r", RECURSIVE)):
            counts = known.counted(which, rows).astype(np.int64)
            table = table.append_column(name, pa.array(counts))
        return table

    # ---------------------------------------------------------------- transactions

    def begin(self) -> None:
        """Start a transaction."""
        if self._known_before is not None:
            raise EngineUseError("a transaction is under way already")
        self.is_torn = False
        known = set(self.store.relations)
        for counter in self.store.counters:
            counter.remember()
        self._known_before = known  # last: without memory, no transaction has begun

    def commit(
        self,
        *,
        deleted: Facts,
        added: Facts,
        explicit_removed: Facts,
        explicit_added: Facts,
    ) -> None:
        """Commit the transaction."""
        self._require_transaction()
        sets = self.store.sets
        removed, inserted = sets.settled(deleted - added), sets.settled(added)
        no_longer_explicit, newly_explicit = (
            sets.settled(explicit_removed),
            sets.settled(explicit_added),
        )
        if self.journal is not None:
            rows = (
                removed.rows,
                inserted.rows,
                no_longer_explicit.rows,
                newly_explicit.rows,
            )
            self.journal(committed(self.store, self._dictionary, rows))
        self.is_torn = True
        seal()
        self.store.remove_explicit(no_longer_explicit)
        self.store.add_explicit(newly_explicit)
        # All facts of both sets are among these, so their bits are cleared in passing.
        growing = {facts for facts in (deleted, added) if isinstance(facts, Growing)}
        bits = sum(each.bit for each in growing)
        self.store.remove(removed, zeros=bits)
        self.store.add(inserted, zeros=bits)
        for each in growing:
            each.note_cleared()
        self._end()
        for name in removed.names:
            self._clear_out(self.store.relations[name])

    def _has_many_dead(self, relation: Relation) -> bool:
        return relation.count - relation.alive > max(MANY_DEAD, relation.alive)

    def _clear_out(self, relation: Relation) -> None:
        """Remove rows that no longer hold, if they are too many."""
        if self._has_many_dead(relation):
            # Without memory for it, they are removed later.
            with suppress(MemoryError):
                relation.compact()

    def rollback(self) -> None:
        """Undo the transaction."""
        known = self._require_transaction()
        if self.is_torn:
            return  # a commit has started, which cannot be undone
        self.is_torn = True
        with masked():
            for counter in self.store.counters:
                counter.restore()
            self._aggregator.forget()
            self._end()
            for name in known:
                self._clear_out(self.store.relations[name])
            for name in self.store.relations.keys() - known:
                self.store.clock.forget(self.store.relations.pop(name))
                self._arities = {}
                self._forget_programs()
        self.is_torn = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read facts: those that get rows meanwhile need not be forgotten at once."""
        try:
            yield
        finally:
            for relation in self.store.relations.values():
                if self._has_many_dead(relation):
                    with masked():
                        self._clear_out(relation)

    def recover(self) -> None:
        """Rebuild everything but the stored facts and their counters."""
        if self.is_torn:
            return  # nothing can be trusted
        self.is_torn = True
        with masked():
            self._dictionary.recover()
            self._set_up(self.store.recovered(self._dictionary))
        self.is_torn = False

    def _forget_programs(self) -> None:
        """Discard compiled programs, which may mention removed relations."""
        self.plans.forget_programs()
        self._saturator.forget()
        self._prover.forget()

    def _end(self) -> None:
        for each in self._used:
            each.end()
        self._used.clear()
        self.store.sets.release_all()
        for counter in self.store.counters:
            counter.forget()
        self._known_before = None

    def _require_transaction(self) -> set[str]:
        if self._known_before is None:
            raise EngineUseError("there is no transaction", help="call begin() first")
        return self._known_before

    def fresh(self) -> EmbeddedEngine:
        """Return an empty engine for the same constants."""
        engine = EmbeddedEngine(self.inline)
        for name, arity in self.relations().items():
            engine.declare(name, arity)
        return engine

    def load(self, facts: Iterable[tuple[str, pa.Table]]) -> None:
        """Make rows explicit and materialised, each with c_nr = 1."""
        for relation, table in facts:
            self.insert(self.intern(relation, table))

    def insert(self, facts: Settled) -> None:
        """Make facts explicit and materialised, each with c_nr = 1."""
        new = self.settle(facts - self.store.explicit)
        self.store.add_explicit(new)
        self.nonrecursive_counts.add(self.once(new))
        self.extend(self.settle(new - self.store.materialised))

    def extend(self, facts: SettledFacts) -> None:
        """Add facts directly to the materialised ones."""
        self.store.add(cast("Settled", facts))

    def reinstate(self, facts: Iterable[tuple[str, pa.Table]]) -> None:
        """Restore the contents of another engine: for engines without facts."""
        for relation, table in facts:
            self.declare(relation, table.num_columns - len(STORED_NUMBERS))
            self.apply_numbers(relation, table)

    def write_arrays(self, file: ArrayWriter) -> None:
        """Write facts, constants and indexes to a file, outside transactions."""
        self._dictionary.write(file)
        relations = [each for each in self.store.relations.values() if each.count]
        file.values["relations"] = [(each.name, each.arity) for each in relations]
        for at, relation in enumerate(relations):
            relation.write(file, f"relation {at}")

    def map_arrays(self, file: MappedArrays) -> int:
        """Map the contents of a file; return the number of rule instances."""
        self._dictionary.take_up(file)
        instances = 0
        for at, (name, arity) in enumerate(file.values["relations"]):
            self.declare(name, arity)
            instances += self.store.relations[name].take_up(file, f"relation {at}")
        return instances

    def apply_numbers(self, relation: str, table: pa.Table) -> None:
        """Change the stored numbers of facts, as in `StoredChange`."""
        terms = table.select(range(table.num_columns - len(STORED_NUMBERS)))
        ids = self._ids(terms, self._dictionary.encode)
        apply_numbers(self.store, relation, ids, table)

    def copy_explicit(self, target: Engine, *, without: Facts, also: Facts) -> None:
        """Copy explicit facts into a fresh engine, without some and with others."""
        fresh = cast("EmbeddedEngine", target)
        unwanted = self.store.sets.rows_of(without)
        wanted = self.store.sets.rows_of(also)
        for name, relation in self.store.relations.items():
            kept = (relation.status[: relation.count] & EXPLICIT).astype(np.bool_)
            kept[unwanted.get(name, NO_ROWS)] = False
            kept[wanted.get(name, NO_ROWS)] = True
            if kept.any():
                fresh.declare(name, relation.arity)
                new = relation.copy_rows(kept, fresh.store.relations[name])
                fresh.insert(Settled({name: new}))

    def adopt(self, other: Engine) -> tuple[Copy, Copy]:
        """Take over the contents of a fresh engine; return removed and added facts."""
        fresh = cast("EmbeddedEngine", other)
        removed = self._copy(self.store.missing_from(fresh.store))
        added = fresh._copy(fresh.store.missing_from(self.store))  # noqa: SLF001  one of us
        if self.journal is not None:
            self.journal(replaced(self.store, fresh.store, self._dictionary))
        self.is_torn = True
        seal()
        self.matches += fresh.matches
        self.store = fresh.store
        self._arities = {}
        self.plans.move_to(self.store)
        self._forget_programs()
        self._known_before = None
        return removed, added

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Return for each relation: facts, explicit facts, bytes, indexes."""
        return {
            name: {
                "facts": relation.alive,
                "explicit": relation.explicit_count,
                "bytes": relation.nbytes,
                "indexes": relation.index_count,
            }
            for name, relation in self.store.relations.items()
        }


def _columns(tables: Mapping[str, pa.Table]) -> list[pa.ChunkedArray]:
    return [column for table in tables.values() for column in table.columns]
