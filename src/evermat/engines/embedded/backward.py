"""Depth-first proof search in compiled code; see `kernels.backward`.

A search that needs rules without a program, modules, or more capacity than there is, is
done level by level instead (`evermat.algebra.fixpoint`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from evermat.algebra import Role, Rounds
from evermat.engines.embedded.fact_sets import Marker
from evermat.engines.embedded.kernels.backward import (
    CHECKED_ALL,
    FRAME_SIZE,
    INTERRUPTIBLE,
    RECURSIVE,
    SEARCH,
    STACK_FULL,
    VALUES,
    Bits,
    Searched,
    Seen,
    Settings,
    check,
)
from evermat.engines.embedded.kernels.changes import mark_keys
from evermat.engines.embedded.kernels.instructions import MOST_STEPS
from evermat.engines.embedded.planner import Probe, Test
from evermat.engines.embedded.saturation import new_scratch
from evermat.engines.embedded.triggers import Recent, Triggers, facts_of, keys_of
from evermat.engines.embedded.views import mark_visible
from evermat.runtime.interrupts import check as check_interrupts

if TYPE_CHECKING:
    from evermat.algebra import Facts, ProofSearch, ProofWork, QuerySet
    from evermat.algebra.fixpoint import OnRounds
    from evermat.engines.embedded.arrays import Ids, Keys
    from evermat.engines.embedded.bytecode import Program
    from evermat.engines.embedded.engine import EmbeddedEngine
    from evermat.engines.embedded.fact_sets import Growing, Settled
    from evermat.engines.embedded.kernels.layout import Numbers
    from evermat.engines.embedded.store import CounterColumn

MOST_FACTS = 1 << 20
"""Capacity of each list, in facts; unused pages cost nothing."""

MOST_BATCH = 1 << 16
"""Largest number of facts to search proofs of."""

MOST_ROWS = 1 << 22
"""Cost limit for the consequences of a newly proved fact, in rows."""

PAUSE_AFTER = 1 << 18
"""Matches after which a call returns to Python, so that interrupts are answered."""

SHALLOW = 64
DEEPEST = 1 << 17
"""Initial and largest capacity of the stack, in frames."""

_NO_RULES = -1


class Room:
    """Lists and a stack that all calls reuse; see `kernels.backward`."""

    def __init__(self) -> None:
        self.scratch = new_scratch(MOST_FACTS)
        self.lists = Searched(*(np.empty(MOST_FACTS, np.uint64) for _ in range(3)))
        self.stack: Numbers = np.empty((SHALLOW, FRAME_SIZE), np.int64)
        self.values: Ids = np.empty((SHALLOW, VALUES), np.uint32)

    def deepen(self) -> bool:
        """Double the capacity of the stack; return whether that is allowed."""
        depth = len(self.stack)
        if depth >= DEEPEST:
            return False
        self.stack = np.concatenate([self.stack, np.empty_like(self.stack)])
        self.values = np.concatenate([self.values, np.empty_like(self.values)])
        return True


class SearchedRules:
    """The rules of a stratum in the form that a search reads.

    Attributes:
        triggers: the trigger index of their programs.
        ranges, bodies: see `kernels_backward.check`.
    """

    def __init__(
        self, engine: EmbeddedEngine, search: ProofSearch, own: QuerySet | None
    ) -> None:
        rules = search.rules
        assert rules is not None  # noqa: S101  asked for by the caller
        self._engine = engine
        self._slots: list[QuerySet | None] = [rules.delta, rules.rederive, own]
        self.triggers = Triggers(engine.plans, (rules.delta, _NO_RULES))
        self.is_whole = self._reach()
        self.ranges: Numbers = np.empty((0, 2), np.int64)
        self.bodies: Numbers = np.empty((0, 0), np.int64)
        self._size = -1

    def _reach(self) -> bool:
        """Reach all programs; return whether all rules have them."""
        triggers = self.triggers
        known = self._engine.store.relations.keys()
        heads: set[str] = set()
        for queries in self._slots[RECURSIVE:]:
            if queries is None:
                continue
            if any(
                change is None or change[0] is not Role.CHANGED
                for change in queries.by_change
            ):
                return False
            triggers.add_rules((queries, _NO_RULES))
            names = queries.changes.get(Role.CHANGED, frozenset())
            for query in queries.queries:
                self._engine.declare(query.head.relation, len(query.head.operands))
            slot = triggers.slot((queries, _NO_RULES))
            if not triggers.reach([slot], sorted(names)):
                return False
            heads |= names
        for program in list(triggers.programs):
            heads.update(_bodies(program).values())
        return triggers.reach([0], sorted(heads & known))

    def can_take(self, facts: Settled) -> bool:
        """Return whether all rules that facts can reach have programs."""
        return self.triggers.reach([0], facts.names)

    def describe(self) -> None:
        """Bring all arrays up to date."""
        triggers = self.triggers
        for program in triggers.programs:
            triggers.number(_bodies(program).values())
        triggers.describe()
        if self._size == len(triggers.programs) + len(triggers.names):
            return
        self._size = len(triggers.programs) + len(triggers.names)
        self.ranges = np.zeros((3 * len(triggers.names), 2), np.int64)
        for at, queries in enumerate(self._slots):
            if queries is None:
                continue
            slot = triggers.slot((queries, _NO_RULES))
            for number, first, last in triggers.entries(slot):
                self.ranges[at * len(triggers.names) + number] = first, last
        self.bodies = np.full((len(triggers.programs), MOST_STEPS + 1), -1, np.int64)
        for number, program in enumerate(triggers.programs):
            for at, name in _bodies(program).items():
                self.bodies[number, at] = triggers.numbers[name]


def _bodies(program: Program) -> dict[int, str]:
    """Return the steps of a program that find local body facts, and their relations."""
    found = {}
    for at, step in enumerate(program.plan.steps):
        match step:
            case Probe(pattern=pattern) | Test(pattern=pattern, present=True):
                if pattern.local:
                    found[at] = pattern.relation
            case _:
                pass
    return found


class Prover:
    """Searches for proofs with the rules of an engine."""

    def __init__(self, engine: EmbeddedEngine) -> None:
        self._engine = engine
        self._room: Room | None = None
        self._rules: Recent[tuple[QuerySet, QuerySet | None], SearchedRules] = Recent()
        self._seen: dict[tuple[object, ...], Seen] = {}

    def end(self) -> None:
        """Record the end of an update."""
        self._rules.note_update()

    def forget(self) -> None:
        """Discard cached rules, which may refer to other relations."""
        self._rules.clear()

    def prove(
        self,
        search: ProofSearch,
        facts: Settled,
        work: ProofWork,
        on_rounds: OnRounds,
    ) -> Settled | None:
        """Return the facts without a derivation; None to search by levels instead.

        In that case nothing has changed.
        """
        engine = self._engine
        sets = engine.store.sets
        if (
            search.rules is None
            or search.modules
            or search.region is not None
            or facts.size() > MOST_BATCH
            or not sets.has_bits(1)
        ):
            return None
        rules = self._searched(search)
        if not rules.is_whole or not rules.can_take(facts):
            return None
        rules.describe()
        with Marker(sets) as marker:
            (changed,) = sets.take_bits(1)
            try:
                seen = self._seen_by(search, changed, marker)
                if seen is None:
                    return None
                one = _OneSearch(engine, search, rules, self._take_room(), changed)
                found = one.run(facts, seen, on_rounds)
            finally:
                sets.give_back(changed)
        state = one.state
        engine.matches += int(state["matches"] + state["searched"])
        work.forward += int(state["matches"])
        work.backward += int(state["searched"])
        if found:
            work.proved += int(state["proved"])
            return engine.settle(facts - search.proved)
        return None

    def _take_room(self) -> Room:
        if self._room is None:
            self._room = Room()
        return self._room

    def _searched(self, search: ProofSearch) -> SearchedRules:
        rules = search.rules
        assert rules is not None  # noqa: S101  asked for by the caller
        own = None if search.support.counter is not None else search.support.rules
        key = rules.delta, own
        known = self._rules.get(key)
        if known is None or not known.triggers.is_apt():
            known = self._rules[key] = SearchedRules(self._engine, search, own)
        return known

    def _seen_by(
        self, search: ProofSearch, changed: int, marker: Marker
    ) -> Seen | None:
        """Return which views contain each status; None if bits cannot decide."""
        sets, table = self._engine.store.sets, self._engine.at_once.table
        explicit = search.support.explicit
        views: list[Facts] = [search.positive, search.negative]
        if search.support.counter is None and explicit is not None:
            views.append(explicit)
        codes = [sets.common_code(view, marker) for view in views]
        if None in codes:
            return None
        proved = cast("Growing", search.proved).bit
        key = (*codes, changed, proved)
        known = self._seen.get(key)
        if known is None:
            positive, negative, *given = [code for code in codes if code is not None]
            nothing = np.zeros(1 << 16, np.uint8)
            known = self._seen[key] = Seen(
                backwards=table(positive, negative, 0, 0),
                forwards=table(positive, negative, changed, 0, proved),
                explicit=mark_visible({1: given[0]}) if given else nothing,
            )
        return known


class _OneSearch:
    """One search in progress.

    Attributes:
        state: its state; see `kernels.backward`.
    """

    def __init__(
        self,
        engine: EmbeddedEngine,
        search: ProofSearch,
        rules: SearchedRules,
        room: Room,
        changed: int,
    ) -> None:
        self._engine = engine
        self._search = search
        self._rules = rules
        self._room = room
        self._sets = [
            cast("Growing", each)
            for each in (search.checked, search.proved, search.delayed)
        ]
        checked, proved, delayed = (each.bit for each in self._sets)
        self._bits = Bits(checked, proved, delayed, changed)
        self._states = np.zeros(1, SEARCH)
        self.state = self._states[0]

    def run(self, facts: Settled, seen: Seen, on_rounds: OnRounds) -> bool:
        """Search for proofs of all facts; change nothing if that returns false."""
        state = self.state
        try:
            if self._run(facts, seen) != CHECKED_ALL:
                self._take_back()
                return False
            triggers = self._rules.triggers
            found = [facts_of(keys, triggers) for keys in self._listed()]
        except BaseException:
            self._take_back()
            raise
        for growing, some in zip(self._sets, found, strict=True):
            growing.take_over(some)
        if state["rounds"]:
            rounds, proved = int(state["rounds"]), int(state["proved"])
            on_rounds(Rounds(rounds, proved, are_compiled=True))
        return True

    def _run(self, facts: Settled, seen: Seen) -> int:
        triggers, room = self._rules.triggers, self._room
        monitor = self._engine.monitor
        keys = keys_of(facts, self._engine.store, triggers)
        counter = self._search.support.counter
        which = -1 if counter is None else cast("CounterColumn", counter).which
        settings = Settings(which, MOST_ROWS, PAUSE_AFTER)
        while True:
            before = triggers.work[:, 1].copy()
            ends = check(
                triggers.index,
                room.scratch,
                room.lists,
                keys,
                self._bits,
                seen,
                self._rules.ranges,
                self._rules.bodies,
                room.stack,
                room.values,
                settings,
                self._states,
            )
            if monitor is not None:
                matched = triggers.work[:, 1] - before
                for program in np.flatnonzero(matched).tolist():
                    label = triggers.programs[program].label
                    monitor.working(label, int(matched[program]))
            if ends == STACK_FULL and room.deepen():
                continue
            if ends != INTERRUPTIBLE:
                break
            check_interrupts()
        triggers.note_work()
        return int(ends)

    def _listed(self) -> list[Keys]:
        """Return the facts that were checked, proved and delayed."""
        state, lists = self.state, self._room.lists
        return [
            lists.checked[: state["checked"]],
            lists.proved[: state["proved"]],
            lists.delayed[: state["delayed"]],
        ]

    def _take_back(self) -> None:
        """Restore the three sets.

        Proved facts do hold and could be kept, but then their consequences would have
        to be found as well.
        """
        relations = self._rules.triggers.index.relations
        for bit, keys in zip(self._bits, self._listed(), strict=False):
            mark_keys(relations, keys, keys.size, 0, bit, 0)
