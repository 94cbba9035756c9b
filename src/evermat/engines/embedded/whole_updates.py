"""Carries out small updates as a whole, in compiled code.

`at_once` runs the queries of a round by one call. An update has some dozen rounds and
hundreds of set operations around them, all on few facts. Where counters are kept and
all rules that an update reaches have programs, one call does all of it
(`kernels_updates`). An update that turns out not to be small is taken back, and carried
out step by step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from evermat.engine_abilities import StratumWork
from evermat.engines.embedded import at_once
from evermat.engines.embedded.arrays import NO_KEYS, NO_ROWS
from evermat.engines.embedded.counters import below_zero
from evermat.engines.embedded.flat import Flat
from evermat.engines.embedded.heads import new_rows
from evermat.engines.embedded.kernels_updates import (
    ADDITIONS,
    BELOW_ZERO,
    CANDIDATES,
    CHUNKS,
    DELETIONS,
    DONE,
    FRESH,
    FRESH_NONRECURSIVE,
    HAS_FRESH,
    IN_ADDED,
    IN_CANDIDATES,
    IN_DELETED,
    IN_LOG,
    IN_OLD_COUNTS,
    IN_SPARE,
    IS_TOUCHED,
    LISTS,
    LOGGED,
    MATCHES,
    NUMBER_LISTS,
    PATIENCE,
    REPORT_SIZE,
    STATE_SIZE,
    maintain,
    mark_keys,
    restore_counts,
    split_keys,
)
from evermat.engines.embedded.relation import MATERIALISED, NONRECURSIVE, RECURSIVE
from evermat.engines.embedded.settled import RowCounts, Settled
from evermat.engines.embedded.wiring import Wiring

if TYPE_CHECKING:
    from evermat.engine_abilities import CountedStrata
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Rows
    from evermat.engines.embedded.at_once import AtOnce
    from evermat.engines.embedded.counters import Overwritten
    from evermat.engines.embedded.layout import Numbers
    from evermat.engines.embedded.plans import Plans
    from evermat.engines.embedded.sets import Code, Growing
    from evermat.engines.embedded.store import Store

MOST_FACTS = 1 << 16
"""How many facts there is room for in a list."""

MOST_ROUNDS = 1 << 12
"""How often counts can be changed."""

PATIENCE_FOR_ALL = 1 << 16
"""How many rows may be looked at."""

LESS = 2
"""After an update that was too large, those this much smaller are tried at once, and
larger ones after a while: the more have failed, the longer."""

LONGEST_PAUSE = 1 << 10
"""How many updates are not tried at most."""

_HALF = np.uint64(32)


@dataclass(slots=True)
class Room:
    """Lists that are used again by every update; see `kernels_updates`."""

    keys: Keys = field(default_factory=lambda: np.empty((LISTS, MOST_FACTS), np.uint64))
    numbers: Rows = field(
        default_factory=lambda: np.empty((NUMBER_LISTS, MOST_FACTS), np.int32)
    )
    fresh: Ids = field(default_factory=lambda: np.empty(MOST_FACTS, np.uint32))
    chunks: Numbers = field(
        default_factory=lambda: np.empty((MOST_ROUNDS, 2), np.int64)
    )


class WholeUpdates:
    """Carries out updates.

    Args:
        plans: plans and programs of queries.
        queries: knows what may be seen.
    """

    def __init__(self, plans: Plans, queries: AtOnce) -> None:
        self._plans = plans
        self._at_once = queries
        self._wiring: Wiring | None = None
        self._most = at_once.MOST_CHANGED
        """The largest update that need not wait."""
        self._pause = 0
        """How many larger ones are not tried."""
        self._failures = 0
        self._room = Room()
        self._tables: dict[tuple[int, ...], Flags] = {}

    def forget(self) -> None:
        """Look at the rules anew: relations may be others, or no more."""
        self._wiring = None

    def get_ready(self, strata: CountedStrata) -> None:
        """Make all that updates of given facts need."""
        wiring = self._wired(strata)
        for relation in self._plans.relations.values():
            if relation.given:
                wiring.reach([relation.name])
        wiring.describe()
        wiring.make_directories()

    def run(
        self,
        strata: CountedStrata,
        store: Store,
        changes: tuple[Settled, Settled],
        sets: tuple[Growing, Growing],
    ) -> tuple[list[StratumWork], int] | None:
        """The work in each stratum that is reached, and the number of all matches.

        None if the update has to be carried out step by step.
        """
        withdrawn, given = changes
        size = withdrawn.size() + given.size()
        if not 0 < size <= at_once.MOST_CHANGED:
            return None
        if size > self._most and self._pause:
            self._pause -= 1
            return None
        wiring = self._wired(strata)
        if not (wiring.reach(withdrawn.names()) and wiring.reach(given.names())):
            return None
        wiring.describe()
        free = store.sets.take_bit(), store.sets.take_bit()
        try:
            bits = (sets[0].bit, sets[1].bit, *free)
            update = _Update(wiring, store, self._room, bits, self._table(bits))
            found = update.carry_out(withdrawn, given)
        finally:
            for bit in free:
                store.sets.give_back(bit)
        if found is None:
            self._failures += 1
            self._pause = min(1 << self._failures, LONGEST_PAUSE)
            self._most = size // LESS
            return None
        if size > self._most:
            self._most, self._failures = at_once.MOST_CHANGED, 0
        for growing, facts in zip(sets, found, strict=True):
            growing.take_over(facts)
        return update.work(), int(update.state[MATCHES])

    def _wired(self, strata: CountedStrata) -> Wiring:
        wiring = self._wiring
        if wiring is None or wiring.strata is not strata or not wiring.is_apt():
            wiring = self._wiring = Wiring(strata, self._plans)
        return wiring

    def _table(self, bits: tuple[int, ...]) -> Flags:
        """What queries may see of each status, in the order of `kernels_updates`."""
        known = self._tables.get(bits)
        if known is None:
            deleted, added, changed, absent = bits
            before: Code = MATERIALISED
            remaining: Code = ("-", MATERIALISED, ("-", deleted, added))
            possible: Code = ("|", MATERIALISED, added)
            updated: Code = ("|", ("-", MATERIALISED, deleted), added)
            known = self._tables[bits] = np.stack(
                [
                    self._at_once.table(positive, negative, changed, absent)
                    for positive, negative in (
                        (before, before),
                        (remaining, possible),
                        (updated, updated),
                    )
                ]
            )
        return known


class _Update:
    """One update.

    Args:
        wiring: what changes set off.
        store: the facts.
        room: lists to work with.
        bits: four status bits; see `kernels_updates`.
        table: what queries may see.
    """

    def __init__(
        self,
        wiring: Wiring,
        store: Store,
        room: Room,
        bits: tuple[int, ...],
        table: Flags,
    ) -> None:
        self.wiring = wiring
        self.store = store
        self.room = room
        self.bits: Numbers = np.array(bits, np.int64)
        self.table = table
        self.state: Numbers = np.zeros(STATE_SIZE, np.int64)
        self.state[PATIENCE] = PATIENCE_FOR_ALL
        strata = len(wiring.strata.strata)
        self.report: Numbers = np.zeros((strata + 1, REPORT_SIZE), np.int64)
        self.greatest: Numbers = np.full((2, len(wiring.names)), -1, np.int64)
        self.lists = (room.keys, room.numbers, room.fresh, room.chunks, self.greatest)
        self.fresh: list[tuple[int, RowCounts]] = []

    def carry_out(
        self, withdrawn: Settled, given: Settled
    ) -> tuple[Settled, Settled] | None:
        """What is deleted and added; None if it is too much, and nothing has changed.

        Raises:
            EngineUseError: a count would fall below zero.
        """
        room = self.room
        given_keys = self._keys(withdrawn), self._keys(given)
        changes = (self.bits, self.table, *given_keys)
        while True:
            ends = maintain(
                self.wiring.arrays, self.lists, changes, self.state, self.report
            )
            if ends != HAS_FRESH or not self._give_rows():
                break
        self.wiring.note_work()
        if ends != DONE:
            self._take_back()
            if ends == BELOW_ZERO:
                raise below_zero("a relation")
            return None
        self._note_counts()
        self._note_overwritten()
        state = self.state
        return (
            self._facts(room.keys[IN_DELETED, : state[DELETIONS]]),
            self._facts(room.keys[IN_ADDED, : state[ADDITIONS]]),
        )

    def work(self) -> list[StratumWork]:
        """What was done in each stratum that was reached."""
        return [
            StratumWork(at - 1, *line[IS_TOUCHED + 1 :])
            for at, line in enumerate(self.report.tolist())
            if line[IS_TOUCHED]
        ]

    def _keys(self, facts: Settled) -> Keys:
        if facts.is_empty():
            return NO_KEYS
        flat = facts.flat(self.store.relations)
        known = self.wiring.numbers
        numbers = np.array([known[name] for name in flat.names], np.uint64)
        sizes = flat.lines[:, 2] - flat.lines[:, 1]
        keys: Keys = np.repeat(numbers << _HALF, sizes)
        keys |= flat.rows.astype(np.uint64)
        return keys

    def _facts(self, keys: Keys) -> Settled:
        if not keys.size:
            return Settled({})
        rows = np.empty(keys.size, np.int32)
        names = self.wiring.names
        lines = np.empty((len(names), 4), np.int64)
        spare = self.room.keys[IN_SPARE]
        count = split_keys(self.wiring.arrays[0], keys, keys.size, spare, rows, lines)
        lines = lines[:count]
        return Settled(Flat([names[at] for at in lines[:, 3].tolist()], rows, lines))

    # -- facts that are derived for the first time

    def _give_rows(self) -> bool:
        """Give rows and counts to facts that have none; whether there is room."""
        state, wiring = self.state, self.wiring
        relations = self.store.relations
        # A relation that grows takes along the counts that it knows of.
        self._note_counts()
        for (which, number), facts in self._fresh_facts().items():
            name = wiring.names[number]
            rows, counts = new_rows(relations[name], np.stack(facts, axis=1))
            counted = RowCounts({name: (rows, counts)})
            self.store.counters[which].add(counted)
            self.fresh.append((which, counted))
            first = int(state[CANDIDATES])
            last = first + rows.size
            if last > MOST_FACTS:
                return False
            key = np.uint64(number) << _HALF
            self.room.keys[IN_CANDIDATES, first:last] = key | rows.astype(np.uint64)
            state[CANDIDATES] = last
        wiring.describe()
        return True

    def _fresh_facts(self) -> dict[tuple[int, int], list[Ids]]:
        """The facts without a row, by the sort of rules and the relation."""
        names, relations = self.wiring.names, self.store.relations
        fresh = self.room.fresh[: self.state[FRESH]]
        tables: dict[tuple[int, int], list[Ids]] = {}
        place = 0
        while place < fresh.size:
            number = int(fresh[place])
            end = place + 1 + relations[names[number]].arity
            which = (
                NONRECURSIVE if place < self.state[FRESH_NONRECURSIVE] else RECURSIVE
            )
            tables.setdefault((which, number), []).append(fresh[place + 1 : end])
            place = end
        return tables

    # -- counts

    def _note_counts(self) -> None:
        """Tell relations which rows have counts now."""
        names, relations = self.wiring.names, self.store.relations
        for which in (NONRECURSIVE, RECURSIVE):
            for name, last in zip(names, self.greatest[which].tolist(), strict=True):
                if last >= 0:
                    relations[name].note_counted(which, NO_ROWS, last)

    def _note_overwritten(self) -> None:
        """Tell counters what was overwritten."""
        log = _Log(self)
        for which, counter in enumerate(self.store.counters):
            counter.note(partial(log.of, which))
            for relation in self.wiring.raised():
                relation.note_raised(log.rows_of(which, relation.name))

    def _take_back(self) -> None:
        state, relations = self.state, self.wiring.arrays[0]
        keys = self.room.keys
        restore_counts(self.wiring.arrays, self.lists, state[CHUNKS])
        for which, counted in reversed(self.fresh):
            self.store.counters[which].subtract(counted)
        deleted, added = self.bits[:2]
        mark_keys(relations, keys[IN_DELETED], state[DELETIONS], 0, deleted, 0)
        mark_keys(relations, keys[IN_ADDED], state[ADDITIONS], 0, added, 0)


class _Log:
    """Counts that an update has overwritten."""

    def __init__(self, update: _Update) -> None:
        size, chunks = int(update.state[LOGGED]), int(update.state[CHUNKS])
        self._names = list(update.wiring.names)
        self._keys: Keys = update.room.keys[IN_LOG, :size].copy()
        self._old: Rows = update.room.numbers[IN_OLD_COUNTS, :size].copy()
        self._chunks: Numbers = update.room.chunks[:chunks].copy()

    def of(self, which: int) -> list[Overwritten]:
        """Relations, rows and old counts, in the order in which they were changed."""
        found: list[Overwritten] = []
        start = 0
        for end, changed in self._chunks.tolist():
            if changed == which:
                found += self._split(slice(start, end))
            start = end
        return found

    def rows_of(self, which: int, name: str) -> Rows:
        """The rows of a relation whose count was changed."""
        parts = [rows for each, rows, _ in self.of(which) if each == name]
        return np.concatenate([NO_ROWS, *parts])

    def _split(self, part: slice) -> list[Overwritten]:
        """The keys of a part are in order."""
        keys, old = self._keys[part], self._old[part]
        numbers = (keys >> _HALF).astype(np.int64)
        rows = keys.astype(np.uint32).view(np.int32)
        starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
        return [
            (self._names[numbers[low]], rows[low:high], old[low:high])
            for low, high in zip(starts, [*starts[1:], keys.size], strict=True)
        ]
