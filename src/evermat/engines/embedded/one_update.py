"""One small update that is carried out as a whole, in compiled code.

It is all arrays: what it is given, what it has found, and what it must take back if it
is too much. See `kernels_changes` for what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from evermat.engine_abilities import StratumWork
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.counters import below_zero
from evermat.engines.embedded.fact_keys import facts_of, keys_of
from evermat.engines.embedded.fresh_rows import give_rows
from evermat.engines.embedded.kernels_changes import (
    ADDITIONS,
    BELOW_ZERO,
    CANDIDATES,
    CHUNKS,
    DELETIONS,
    DONE,
    FRESH,
    FRESH_NONRECURSIVE,
    HAS_COUNTERS,
    HAS_FRESH,
    IN_ADDED,
    IN_CANDIDATES,
    IN_DELETED,
    IN_LOG,
    IN_OLD_COUNTS,
    IS_TOUCHED,
    LISTS,
    LOGGED,
    MATCHES,
    NUMBER_LISTS,
    PATIENCE,
    REPORT_SIZE,
    STATE_SIZE,
    mark_keys,
)
from evermat.engines.embedded.kernels_updates import maintain, restore_counts
from evermat.engines.embedded.relation import NONRECURSIVE, RECURSIVE
from evermat.engines.embedded.settled import RowCounts, Settled

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Rows
    from evermat.engines.embedded.counters import Overwritten
    from evermat.engines.embedded.layout import Numbers
    from evermat.engines.embedded.relation import Relation
    from evermat.engines.embedded.store import Store
    from evermat.engines.embedded.wiring import Wiring

MOST_FACTS = 1 << 16
"""How many facts there is room for in a list."""

MOST_ROUNDS = 1 << 12
"""How often counts can be changed."""

PATIENCE_FOR_ALL = 1 << 17
"""How many rows may be looked at."""

_HALF = np.uint64(32)


@dataclass(slots=True)
class Room:
    """Lists that are used again by every update; see `kernels_changes`."""

    keys: Keys = field(default_factory=lambda: np.empty((LISTS, MOST_FACTS), np.uint64))
    numbers: Rows = field(
        default_factory=lambda: np.empty((NUMBER_LISTS, MOST_FACTS), np.int32)
    )
    fresh: Ids = field(default_factory=lambda: np.empty(MOST_FACTS, np.uint32))
    chunks: Numbers = field(
        default_factory=lambda: np.empty((MOST_ROUNDS, 2), np.int64)
    )


@dataclass(frozen=True, slots=True)
class Changes:
    """What an update begins with.

    Attributes:
        withdrawn, given: E⁻ and E⁺.
        lost, gained: facts that are deleted and added already, net.
    """

    withdrawn: Settled
    given: Settled
    lost: Settled
    gained: Settled

    def each(self) -> tuple[Settled, ...]:
        """All of them."""
        return self.withdrawn, self.given, self.lost, self.gained

    def size(self) -> int:
        """How many facts these are."""
        return sum(facts.size() for facts in self.each())


class ProvedUpdate:
    """An update that deletes in the manner of B/F.

    Args:
        wiring: what changes set off.
        store: the facts.
        room: lists to work with.
        bits: status bits; see `kernels_changes`.
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
        self.before = (0, 0)
        """How many facts were deleted and added before."""

    def carry_out(self, changes: Changes) -> tuple[Settled, Settled] | None:
        """What is deleted and added; None if it is too much.

        In that case nothing has changed, nor has it after an error.

        Raises:
            EngineUseError: a count would fall below zero.
        """
        if not self._begin(changes):
            return None
        try:
            ends = self._run(changes)
            if ends == DONE:
                found = tuple(map(self._facts, self._changed()))
                self._finish()
                return found[0], found[1]
        except BaseException:
            self._take_back()
            raise
        self._take_back()
        if ends == BELOW_ZERO:
            raise below_zero("a relation")
        return None

    def _run(self, changes: Changes) -> int:
        """Do the work; how it ends."""
        given = (
            self.bits,
            self.table,
            self._keys(changes.withdrawn),
            self._keys(changes.given),
        )
        while True:
            growth = self._growth()
            ends = maintain(
                self.wiring.arrays, self.lists, given, self.state, self.report, growth
            )
            self.wiring.note_growth()
            if ends != HAS_FRESH or not self._give_rows():
                break
        self.wiring.note_work()
        return ends

    def work(self) -> list[StratumWork]:
        """What was done in each stratum that was reached."""
        return [
            StratumWork(at - 1, *line[IS_TOUCHED + 1 :])
            for at, line in enumerate(self.report.tolist())
            if line[IS_TOUCHED]
        ]

    @property
    def matches(self) -> int:
        """How many rule instances were matched."""
        return int(self.state[MATCHES])

    def _begin(self, changes: Changes) -> bool:
        """Put down what has changed already; whether there is room."""
        lost, gained = self._keys(changes.lost), self._keys(changes.gained)
        self.before = lost.size, gained.size
        if max(self.before) > MOST_FACTS:
            return False
        self.room.keys[IN_DELETED, : lost.size] = lost
        self.room.keys[IN_ADDED, : gained.size] = gained
        self.state[[DELETIONS, ADDITIONS]] = self.before
        return True

    def _changed(self) -> tuple[Keys, Keys]:
        """What was deleted and added by this update."""
        keys, state = self.room.keys, self.state
        deletions, additions = self.before
        return (
            keys[IN_DELETED, deletions : state[DELETIONS]],
            keys[IN_ADDED, additions : state[ADDITIONS]],
        )

    def _keys(self, facts: Settled) -> Keys:
        return keys_of(facts, self.store, self.wiring)

    def _facts(self, keys: Keys) -> Settled:
        return facts_of(keys, self.wiring)

    # -- facts that are derived for the first time

    def _growth(self) -> Numbers:
        """What compiled code needs to give rows to facts."""
        return self.wiring.growth()

    def _give_rows(self) -> bool:
        """Give rows to facts that have none; whether there is room."""
        state, names, numbered = self.state, self.wiring.names, self.wiring.numbered
        fresh = self.room.fresh[: state[FRESH]]
        # What is not counted need not be told apart.
        end = int(state[FRESH_NONRECURSIVE]) if state[HAS_COUNTERS] else 0
        candidates, first = self.room.keys[IN_CANDIDATES], int(state[CANDIDATES])
        relations: list[Relation] = []
        for which, part in ((NONRECURSIVE, fresh[:end]), (RECURSIVE, fresh[end:])):
            # Rules of both sorts may have derived a fact.
            again = which == RECURSIVE and end > 0
            for number, rows, counts in give_rows(part, numbered, may_be_known=again):
                self._count_new(which, names[number], rows, counts)
                last = first + rows.size
                if last > MOST_FACTS:
                    return False
                candidates[first:last] = rows
                candidates[first:last] |= np.uint64(number << 32)
                first = last
                relations.append(numbered.relations[number])
        state[CANDIDATES] = first
        self.wiring.describe_grown(relations)
        return True

    # -- how it ends

    def _count_new(self, which: int, name: str, rows: Rows, counts: Rows) -> None:
        """Count derivations of facts that had no row."""

    def _finish(self) -> None:
        """Tell others what was done."""

    def _take_back(self) -> None:
        relations = self.wiring.arrays[0]
        for keys, bit in zip(self._changed(), self.bits[:2], strict=True):
            mark_keys(relations, keys, keys.size, 0, bit, 0)


class CountedUpdate(ProvedUpdate):
    """An update by DRed^c, which changes both counters, too."""

    def __init__(
        self,
        wiring: Wiring,
        store: Store,
        room: Room,
        bits: tuple[int, ...],
        table: Flags,
    ) -> None:
        super().__init__(wiring, store, room, bits, table)
        self.state[HAS_COUNTERS] = 1
        self.fresh: list[tuple[int, RowCounts]] = []

    def _growth(self) -> Numbers:
        # The counts of new facts have to be written down by those who know of them.
        return np.empty((0, 3), np.int64)

    def _give_rows(self) -> bool:
        # A relation that grows takes along the counts that it knows of.
        self._note_counts()
        return super()._give_rows()

    def _count_new(self, which: int, name: str, rows: Rows, counts: Rows) -> None:
        counted = RowCounts({name: (rows, counts)})
        self.store.counters[which].add(counted)
        self.fresh.append((which, counted))

    def _finish(self) -> None:
        self._note_counts()
        self._note_overwritten()

    def _take_back(self) -> None:
        restore_counts(self.wiring.arrays, self.lists, self.state[CHUNKS])
        for which, counted in reversed(self.fresh):
            self.store.counters[which].subtract(counted)
        super()._take_back()

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


class _Log:
    """Counts that an update has overwritten."""

    def __init__(self, update: CountedUpdate) -> None:
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
