"""Plans of queries, kept as long as relations are about as large as they were."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from evermat.columns import ArityMismatchError
from evermat.engines.embedded.bytecode import Program, can_be_programmed
from evermat.engines.embedded.evaluation import Prepared
from evermat.engines.embedded.plan import make_plan
from evermat.engines.embedded.relation import Relation

if TYPE_CHECKING:
    from evermat.algebra import Query
    from evermat.engines.embedded.evaluation import InlineTables
    from evermat.engines.embedded.plan import Plan
    from evermat.engines.embedded.store import Store

REPLAN_FACTOR = 8
"""A plan is made anew when a relation has grown or shrunk by more than this."""


class Plans:
    """The plans for the relations of a store.

    They go with their queries, which go when rules change: a plan has a query of its
    own, so that it does not keep alive what it is found by.

    Args:
        store: relations that queries mention are added to it.
        inline: the inline rows of queries.
    """

    def __init__(self, store: Store, inline: InlineTables) -> None:
        self._inline = inline
        self._plans: WeakKeyDictionary[Query, Plan] = WeakKeyDictionary()
        self._prepared: WeakKeyDictionary[Query, Prepared] = WeakKeyDictionary()
        self._programs: WeakKeyDictionary[Query, tuple[int, Plan, Program | None]] = (
            WeakKeyDictionary()
        )
        """Each with the time at which it was right."""
        self.move_to(store)

    def move_to(self, store: Store) -> None:
        """Go on with another store."""
        self.relations = store.relations
        self._clock = store.clock
        self.forget_programs()

    @property
    def time(self) -> int:
        """Goes on whenever a relation has other rows, or other arrays."""
        return self._clock.time

    def changed_since(self, time: int) -> list[Relation]:
        """The relations that have changed after some time."""
        return self._clock.since(time)

    def forget_programs(self) -> None:
        """Make programs anew: they may mention relations that are no more."""
        self._programs.clear()

    def declare(self, relation: str, arity: int) -> None:
        """Make a relation known."""
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
        """The plan of a query, ready to be run a step at a time."""
        plan = self._plan(query)
        prepared = self._prepared.get(query)
        if prepared is None or prepared.plan is not plan:
            prepared = self._prepared[query] = Prepared(plan, self._inline)
        return prepared

    def program(self, query: Query) -> Program | None:
        """The program of a query, if it can have one, for relations as they are."""
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

    def new_plan(self, query: Query) -> Plan:
        """A plan for relations as they are."""
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
        relations = self.relations
        if plan.query.head.relation not in relations:
            return True
        for name, size in plan.sizes.items():
            if name not in relations:
                return True
            now = relations[name].count
            if not (size + 16) <= REPLAN_FACTOR * (now + 16):
                return True
            if not (now + 16) <= REPLAN_FACTOR * (size + 16):
                return True
        return False
