"""The engine's operators on rules: plans, evaluation, and one-step provability.

`Plans` caches the plans of queries while relations keep about the same size. All
queries of a set are run by one call of compiled code if that is little work
(`at_once`), and otherwise one after the other, each by its plan (`_evaluate`).

`Proofs` decides which facts have a derivation. If many rules derive the same relation,
such as `person(?x)`, one or two of them derive most facts. So these rules are tried
first, and the others only on the remaining facts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

import numpy as np

from evermat.algebra import Column, Role
from evermat.columns import ArityMismatchError
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.batch import Evaluation, Prepared, Source
from evermat.engines.embedded.bytecode import (
    START,
    START_CONSTANT,
    Program,
    begun_alone,
    can_be_programmed,
    can_begin_alone,
)
from evermat.engines.embedded.dedup import Heads, find_or_append, intern_rows
from evermat.engines.embedded.fact_sets import Marker, RowCounts, Settled
from evermat.engines.embedded.planner import describe, make_plan
from evermat.engines.embedded.relation import Relation
from evermat.engines.embedded.small_batch import joined
from evermat.engines.embedded.store import Copy
from evermat.runtime.interrupts import check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from evermat.algebra import Facts, Monitor, Pattern, Query, QuerySet, Views
    from evermat.engines.embedded.arrays import Ids, Rows
    from evermat.engines.embedded.batch import InlineTables
    from evermat.engines.embedded.fact_sets import Derived
    from evermat.engines.embedded.planner import Plan
    from evermat.engines.embedded.small_batch import AtOnce, Work
    from evermat.engines.embedded.store import Store

    Run = Callable[[Query, Views, Heads], None]


REPLAN_FACTOR = 8
"""A plan is replaced when a relation has grown or shrunk by more than this factor."""


@dataclass(slots=True)
class Asked:
    """A query that was asked, and how it is answered.

    Attributes:
        prepared: its plan.
        program: finds few answers by one call; None if there is none, or if it found
            too many.
        is_repeated: whether it was asked again.
        time: when the program was right.
    """

    prepared: Prepared
    program: Program | None = None
    is_repeated: bool = False
    time: int = -1


class Plans:
    """The plans for the relations of a store.

    A plan is dropped with its query, when the rule is removed: plans contain a copy of
    the query, so that they do not keep their own weak key alive.

    Attributes:
        answered: the queries that were asked from outside, and how they are answered.
    """

    def __init__(self, store: Store, inline: InlineTables) -> None:
        """Begin without plans.

        Args:
            store: relations that queries mention are added to it.
            inline: the inline rows of queries.
        """
        self._inline = inline
        self._plans: WeakKeyDictionary[Query, Plan] = WeakKeyDictionary()
        self._prepared: WeakKeyDictionary[Query, Prepared] = WeakKeyDictionary()
        self._programs: WeakKeyDictionary[Query, tuple[int, Plan, Program | None]] = (
            WeakKeyDictionary()
        )
        """Programs, with the logical time at which each was up to date."""
        self.answered: WeakKeyDictionary[Query, Asked] = WeakKeyDictionary()
        self._start = Relation(START.pattern.relation, 1)
        first = inline.dictionary.encode_constants([START_CONSTANT])
        intern_rows(self._start, first[None])
        self.move_to(store)

    def move_to(self, store: Store) -> None:
        """Use another store."""
        self.relations = store.relations
        self._clock = store.clock
        self.forget_programs()

    @property
    def time(self) -> int:
        """The logical time of the last change of rows or arrays of any relation."""
        return self._clock.time

    def changed_since(self, time: int) -> list[Relation]:
        """Return the relations that have changed after a time."""
        return self._clock.since(time)

    def forget_programs(self) -> None:
        """Discard all programs, which may mention relations that no longer exist."""
        self._programs.clear()
        self.answered.clear()

    def declare(self, relation: str, arity: int) -> None:
        """Declare a relation."""
        known = self.relations.get(relation)
        if known is None:
            self.relations[relation] = Relation(relation, arity, self._clock)
        elif known.arity != arity:
            raise ArityMismatchError(known.arity, arity, name=relation)

    def _plan(self, query: Query) -> Plan:
        plan = self._plans.get(query)
        if plan is None or self._is_outdated(plan):
            self.declare(query.head.relation, len(query.head.operands))
            plan = self._plans[query] = self.new_plan(query)
        return plan

    def prepared(self, query: Query) -> Prepared:
        """Return the plan of a query, prepared for evaluation in batches."""
        plan = self._plan(query)
        prepared = self._prepared.get(query)
        if prepared is None or prepared.plan is not plan:
            prepared = self._prepared[query] = Prepared(plan, self._inline)
        return prepared

    def program(self, query: Query) -> Program | None:
        """Return the up-to-date program of a query, or None if it cannot have one."""
        known = self._programs.get(query)
        if known is not None and known[0] == self._clock.time:
            return known[2]
        plan = self._plan(query)
        program = known[2] if known is not None and known[1] is plan else None
        if program is None and can_be_programmed(plan):
            program = Program(plan, self.relations, self._inline)
        if program is not None:
            program.bring_up_to_date()
        self._programs[query] = (self._clock.time, plan, program)
        return program

    def asked(self, query: Query) -> Asked:
        """Return how a query is evaluated, possibly by a program after the first time.

        A query that is evaluated only once needs none.
        """
        asked = self.answered.get(query)
        if asked is None or self._has_other_sizes(asked.prepared.plan):
            for pattern in (*query.positive, *query.negative):
                known = self.relations.get(pattern.relation)
                if known is not None:
                    known.sample_again()
            prepared = Prepared(self.new_plan(query), self._inline)
            asked = self.answered[query] = Asked(prepared)
        elif not asked.is_repeated:
            asked.is_repeated = True
            asked.program = self._program_from_start(asked.prepared.plan)
        if asked.program is not None and asked.time != self._clock.time:
            asked.program.bring_up_to_date()
            asked.time = self._clock.time
        return asked

    def _program_from_start(self, plan: Plan) -> Program | None:
        if not can_begin_alone(plan):
            return None
        head = plan.query.head
        own = Relation(head.relation, len(head.operands)), self._start
        relations = {**self.relations, **{each.name: each for each in own}}
        return Program(begun_alone(plan), relations, self._inline)

    def new_plan(self, query: Query) -> Plan:
        """Return a plan for the current sizes of relations."""
        for pattern in (*query.positive, *query.negative):
            self.declare(pattern.relation, len(pattern.operands))
        relations, id_of = self.relations, self._inline.dictionary.id_of
        return make_plan(
            replace(query),
            fan_out=lambda name, columns: relations[name].statistics.fan_out(columns),
            frequency=lambda name, constants: relations[name].statistics.frequency(
                {column: id_of(value) for column, value in constants.items()}
            ),
            size=lambda name: relations[name].count,
        )

    def _is_outdated(self, plan: Plan) -> bool:
        return plan.query.head.relation not in self.relations or (
            self._has_other_sizes(plan)
        )

    def _has_other_sizes(self, plan: Plan) -> bool:
        relations = self.relations
        for name, size in plan.sizes.items():
            if name not in relations:
                return True
            now = relations[name].count
            if not (size + 16) <= REPLAN_FACTOR * (now + 16):
                return True
            if not (now + 16) <= REPLAN_FACTOR * (size + 16):
                return True
        return False


class Proofs:
    """Tests facts for derivations, with the most successful queries first.

    Attributes:
        found: the number of facts that each query has derived so far.
    """

    def __init__(self) -> None:
        self.found: WeakKeyDictionary[Query, int] = WeakKeyDictionary()

    def derivable(
        self, queries: QuerySet, views: Views, store: Store, run: Run
    ) -> Settled:
        """Return those of the changed facts that a query derives.

        Args:
            queries: each derives facts that it reads as changed.
            views: the views that they read.
            store: the relations.
            run: evaluates a query.
        """
        changed = cast("Settled", views.delta_positive)
        proved = {}
        for name, rows in changed.rows.items():
            asked = queries.by_change.get((Role.CHANGED, name), ())
            left, parts = rows, []
            for query in sorted(asked, key=self._successes, reverse=True):
                heads = Heads(len(query.head.operands))
                run(query, replace(views, delta_positive=Settled({name: left})), heads)
                counted = heads.counted()
                if counted is None:
                    continue
                found = find_or_append(store.relations[name], counted)
                self.found[query] = self.found.get(query, 0) + found.size
                parts.append(found)
                if found.size == left.size:
                    break
                others = Settled({name: left}) - Settled({name: found})
                left = store.sets.rows_of(others)[name]
            proved[name] = _joined(parts)
        return Settled(proved)

    def _successes(self, query: Query) -> int:
        return self.found.get(query, 0)


def _joined(parts: list[Rows]) -> Rows:
    if not parts:
        return NO_ROWS
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


class RuleOperators:
    """The methods of an engine that run queries.

    Attributes:
        store: the facts.
        inline: the inline rows of queries.
        monitor: receives the numbers of matches.
        matches: the number of matches so far.
    """

    store: Store
    inline: InlineTables
    monitor: Monitor | None
    matches: int
    plans: Plans
    at_once: AtOnce
    _proofs: Proofs
    _known_before: set[str] | None

    def derive(self, queries: QuerySet, views: Views) -> Settled:
        """Return the facts that the queries derive, each once."""
        return self._run(queries, views).facts

    def derive_counts(self, queries: QuerySet, views: Views) -> RowCounts:
        """Return the facts that the queries derive, with numbers of matches."""
        return self._run(queries, views)

    def derivable(
        self, rules: Sequence[QuerySet], views: Views, explicit: Facts
    ) -> Settled:
        """Return those of the changed facts that are explicit or derived."""
        sets = self.store.sets
        changed = cast("Settled", views.delta_positive)
        found = sets.settled(changed & explicit)
        for queries in rules:
            changed = sets.settled(changed - found)
            if changed.is_empty():
                break
            views = replace(views, delta_positive=changed)
            found = sets.settled(found | self._derivable(queries, views))
        return found

    def _derivable(self, queries: QuerySet, views: Views) -> Settled:
        """Return those of the changed facts that a query derives."""
        done = self.at_once.prove(queries, views, self.store.sets)
        if done is not None:
            found, work = done
            self._note(work)
            return found
        with Marker(self.store.sets) as marker:

            def run(query: Query, views: Views, heads: Heads) -> None:
                self._evaluate(self.plans.prepared(query), views, marker, heads)

            return self._proofs.derivable(queries, views, self.store, run)

    def answer(self, query: Query, views: Views) -> pa.Table:
        """Return the distinct rows of a single query."""
        asked = self.plans.asked(query)
        rows = None
        if asked.program is not None:
            rows = self._answered_at_once(query, asked.program, views)
            if rows is None:
                asked.program = None
        if rows is None:
            rows = self._answered_in_batches(query, asked.prepared, views)
        return Copy(self.inline.dictionary, {"": rows}).read("")

    def _answered_at_once(
        self, query: Query, program: Program, views: Views
    ) -> Ids | None:
        found = self.at_once.answer(program, views, self.store.sets)
        if found is None:
            return None
        rows, work = found
        self._note(work)
        # If heads have all columns, no two matches have the same one.
        columns = {each for each in query.head.operands if isinstance(each, Column)}
        is_whole = len(columns) == query.column_count
        return rows if is_whole else np.unique(rows, axis=1)

    def _answered_in_batches(
        self, query: Query, prepared: Prepared, views: Views
    ) -> Ids:
        heads = Heads(len(query.head.operands))
        with Marker(self.store.sets) as marker:
            self._evaluate(prepared, views, marker, heads)
        return heads.table()

    def explain(self, query: Query, views: Views) -> list[str]:
        """Return the steps of the plan of a query."""
        del views  # the order of steps depends on sizes, not on what is visible
        return describe(self.plans.new_plan(query))

    def _run(self, queries: QuerySet, views: Views) -> RowCounts:
        is_update = self._known_before is not None
        done = self.at_once.run(
            queries, views, self.store.sets, from_scratch=not is_update
        )
        if done is None:
            every = queries.affected(views)
            return RowCounts.of(self._run_in_turn(every, views))
        found, work = done
        self._note(work)
        if work.rest:
            found = joined(found, self._run_in_turn(work.rest, views))
        return found

    def _note(self, work: Work) -> None:
        """Report the number of matches."""
        for label, matches in work.matches_by_label():
            self.matches += matches
            if self.monitor is not None:
                self.monitor.working(label, matches)

    def _run_in_turn(self, queries: Iterable[Query], views: Views) -> Derived:
        gathered: dict[str, Heads] = {}
        with Marker(self.store.sets) as marker:
            for query in queries:
                check()
                head = query.head
                heads = gathered.get(head.relation)
                if heads is None:
                    heads = gathered[head.relation] = Heads(len(head.operands))
                self._evaluate(self.plans.prepared(query), views, marker, heads)
        counted = ((name, heads.counted()) for name, heads in gathered.items())
        relations = self.store.relations
        return {
            name: (find_or_append(relations[name], some), some.counts)
            for name, some in counted
            if some is not None
        }

    def _evaluate(
        self, prepared: Prepared, views: Views, marker: Marker, heads: Heads
    ) -> None:
        evaluation = Evaluation(
            prepared, lambda pattern: self._source(pattern, views, marker), self.monitor
        )
        try:
            evaluation.run(heads)
        finally:
            self.matches += evaluation.matches

    def _source(self, pattern: Pattern, views: Views, marker: Marker) -> Source:
        name = pattern.relation
        relation = self.store.relations[name]
        facts = views.read_by(pattern)
        if facts is None:
            return Source(relation, self.store.sets.nothing)
        if pattern.role is Role.CHANGED or pattern.role is Role.CHANGED_ABSENT:
            rows = cast("Settled", facts).rows.get(name, NO_ROWS)
            return Source(relation, self.store.sets.nothing, rows)
        return Source(relation, self.store.sets.sight(facts, name, marker))
