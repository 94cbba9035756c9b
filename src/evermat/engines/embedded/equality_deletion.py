"""Takes few given facts back where names are equal, in compiled code.

What `evermat.maintenance.equality.deletion` does in some hundred steps on sets of a few
facts, two calls do here: the search for facts and cliques that no longer hold
(`kernels.equality_deletion`), and the new normal form of given facts
(`kernels.equality_marks`). Between them, cliques are taken apart. A withdrawal that
turns out not to be small is given up, and carried out step by step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from evermat.algebra.abilities import Withdrawal
from evermat.engines.embedded import small_batch
from evermat.engines.embedded.equality_component import ComponentWires
from evermat.engines.embedded.fact_keys import facts_of, keys_of
from evermat.engines.embedded.fresh_rows import give_rows
from evermat.engines.embedded.kernels.changes import (
    ADDED,
    CHANGED,
    DELETED,
    DONE,
    FRESH,
    HAS_FRESH,
    IN_ADDED,
    IN_DELETED,
    LOWER,
    MATCHES,
    NUMBER_LISTS,
    PATIENCE,
    PROVED,
    mark_keys,
)
from evermat.engines.embedded.kernels.equality_deletion import search_doubts
from evermat.engines.embedded.kernels.equality_marks import (
    IN_ABOUT,
    IN_CLEARED,
    IN_GIVEN,
    IN_IMPLIED,
    IN_NEW,
    IN_NOT_IMPLIED,
    IN_WITHDRAWN,
    mark_given,
)
from evermat.engines.embedded.kernels.equality_search import IMAGED
from evermat.engines.embedded.kernels.equality_steps import (
    ALL_LISTS,
    ARE_PROVED,
    BACKWARDS,
    BIT_COUNT,
    BITS,
    CONSTANT_COUNT,
    CONSTANTS,
    ENDS,
    FORWARDS,
    FRESH_IDS,
    GROWN,
    KINDS,
    LISTED,
    LISTS_OF_NAMES,
    NAMED,
    NEW,
    NUMBER_LISTED,
    OLD,
    RANKS,
    ROOM_OF_LIST,
    ROUNDS,
    SEEN_BY,
    SIZES,
    SPARE_IDS,
    TASK_SIZE,
    TEXTS,
    UNITED,
    WITHDRAWAL_COUNT,
    WITHDRAWALS,
)
from evermat.engines.embedded.kernels.instructions import MOST_SLOTS
from evermat.engines.embedded.kernels.layout import address
from evermat.engines.embedded.relation import MATERIALISED
from evermat.engines.embedded.representatives import ranks_of

if TYPE_CHECKING:
    from evermat.algebra.abilities import ComponentRules
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Rows
    from evermat.engines.embedded.bits import Growing
    from evermat.engines.embedded.kernels.layout import Numbers
    from evermat.engines.embedded.plan_cache import Plans
    from evermat.engines.embedded.representatives import Cliques
    from evermat.engines.embedded.settled import Settled
    from evermat.engines.embedded.small_batch import AtOnce
    from evermat.engines.embedded.store import Store
    from evermat.engines.embedded.view_masks import Code
    from evermat.values import Kind

MOST_FACTS = 1 << 16
"""How many facts there is room for in a list."""

PATIENCE_FOR_ALL = 1 << 15
"""How many rows may be looked at."""

MOST_TRIES = 8
"""How often a search may begin anew because facts need rows."""


LESS = 2
"""After an update that was too large, those this much smaller are tried at once, and
larger ones after a while: the more have failed, the longer."""

LONGEST_PAUSE = 1 << 10
"""How many updates are not tried at most."""


class Restraint:
    """Which updates are worth a try, after some have turned out to be too large."""

    def __init__(self) -> None:
        self._most = small_batch.MOST_CHANGED
        """The largest update that need not wait."""
        self._pause = 0
        """How many larger ones are not tried."""
        self._failures = 0

    def allows(self, size: int) -> bool:
        """Whether an update of so many facts is to be tried."""
        if size > self._most and self._pause:
            self._pause -= 1
            return False
        return True

    def note(self, size: int, *, done: bool) -> None:
        """Take note that an update was carried out, or was too much."""
        if not done:
            self._failures += 1
            self._pause = min(1 << self._failures, LONGEST_PAUSE)
            self._most = size // LESS
        elif size > self._most:
            self._most, self._failures = small_batch.MOST_CHANGED, 0


@dataclass(slots=True)
class Room:
    """Lists that are used again by every withdrawal; see `kernels.equality_steps`."""

    keys: Keys = field(
        default_factory=lambda: np.empty((ALL_LISTS, MOST_FACTS), np.uint64)
    )
    numbers: Rows = field(
        default_factory=lambda: np.empty((NUMBER_LISTS, MOST_FACTS), np.int32)
    )
    fresh: Ids = field(default_factory=lambda: np.empty(MOST_FACTS, np.uint32))
    names: Ids = field(
        default_factory=lambda: np.empty((LISTS_OF_NAMES, MOST_FACTS), np.uint32)
    )
    spare: Ids = field(default_factory=lambda: np.empty((3, MOST_SLOTS), np.uint32))

    def task(self, wires: ComponentWires) -> Numbers:
        """A task that knows these lists and what rules there are."""
        task: Numbers = np.zeros(TASK_SIZE, np.int64)
        task[LISTED], task[ROOM_OF_LIST] = address(self.keys), MOST_FACTS
        task[NUMBER_LISTED] = address(self.numbers)
        task[FRESH_IDS], task[NAMED] = address(self.fresh), address(self.names)
        task[SPARE_IDS] = address(self.spare)
        wires.write(task)
        return task


class Withdrawals:
    """Carries out withdrawals.

    Args:
        plans: plans and programs of queries.
        queries: knows what may be seen.
    """

    def __init__(self, plans: Plans, queries: AtOnce) -> None:
        self._plans = plans
        self._at_once = queries
        self._wires: ComponentWires | None = None
        self._restraint = Restraint()
        self._room = Room()
        self._task: Numbers = np.empty(0, np.int64)
        """What all withdrawals begin with, for the present rules."""
        self._tables: dict[tuple[int, ...], Flags] = {}

    def forget(self) -> None:
        """Look at the rules anew: relations may be others, or no more."""
        self._wires = None

    def run(
        self,
        rules: ComponentRules,
        store: Store,
        deletions: Settled,
        cliques: Cliques,
        sets: tuple[Growing, Growing],
        values: frozenset[Kind],
    ) -> tuple[Withdrawal, int] | None:
        """What it comes to, and the number of all matches.

        None if it has to be carried out step by step.
        """
        size = deletions.size()
        if not 0 < size <= small_batch.MOST_CHANGED or cliques.has_integers:
            return None
        wires = self._wired(rules)
        if not wires.is_whole or not store.sets.has_bits(_TAKEN):
            return None
        if not self._restraint.allows(size):
            return None
        wires.describe()
        free = store.sets.take_bits(_TAKEN)
        try:
            bits = (sets[0].bit, sets[1].bit, free[0], 0, *free[1:])
            table = self._table(bits)
            one = _OneWithdrawal(wires, store, self._room, self._task, bits, table)
            found = one.carry_out(deletions, cliques, values)
        finally:
            store.sets.give_back(*free)
        self._restraint.note(size, done=found is not None)
        if found is None:
            return None
        withdrawal, *changed = found
        for growing, facts in zip(sets, changed, strict=True):
            growing.take_over(facts)
        return withdrawal, int(one.task[MATCHES])

    def _wired(self, rules: ComponentRules) -> ComponentWires:
        wires = self._wires
        if wires is None or wires.rules is not rules or not wires.is_apt():
            wires = self._wires = ComponentWires(rules, self._plans)
            if wires.is_whole:
                self._task = self._room.task(wires)
        return wires

    def _table(self, bits: tuple[int, ...]) -> Flags:
        """What queries see of each status, ordered as in `kernels.equality_search`."""
        known = self._tables.get(bits)
        if known is None:
            deleted, changed = bits[DELETED], bits[CHANGED]
            remaining: Code = ("-", MATERIALISED, deleted)
            possible: Code = ("-", MATERIALISED, ("-", deleted, bits[IMAGED]))
            known = self._tables[bits] = np.stack(
                [
                    self._at_once.table(seen, seen, changed, 0)
                    for seen in (remaining, possible, bits[PROVED])
                ]
            )
        return known


_TAKEN = BIT_COUNT - 3
"""How many status bits are taken for the time of a withdrawal: not those of the two
sets, nor one for changes that negation reads."""


class _OneWithdrawal:
    """A withdrawal that is carried out.

    Attributes:
        task: all that compiled code works on; see `kernels.equality_steps`.
    """

    def __init__(
        self,
        wires: ComponentWires,
        store: Store,
        room: Room,
        task: Numbers,
        bits: tuple[int, ...],
        table: Flags,
    ) -> None:
        self.wires = wires
        self.store = store
        self.room = room
        self.table = table
        self.task = task.copy()
        self.task[BITS : BITS + BIT_COUNT] = bits
        self.task[SEEN_BY] = address(table)

    def carry_out(
        self, deletions: Settled, cliques: Cliques, values: frozenset[Kind]
    ) -> tuple[Withdrawal, Settled, Settled] | None:
        """What it comes to, and what is deleted and added; None if it is too much.

        In that case nothing has changed, nor has it after an error.
        """
        task, wires = self.task, self.wires
        keys = keys_of(deletions, self.store, wires)
        task[WITHDRAWALS], task[WITHDRAWAL_COUNT] = address(keys), keys.size
        constants = cliques.ids_of(wires.rules.constants)
        task[CONSTANTS], task[CONSTANT_COUNT] = address(constants), constants.size
        kinds, ranks = cliques.kinds, ranks_of(values)
        task[KINDS], task[RANKS] = address(kinds), address(ranks)
        texts, ends = cliques.texts
        task[TEXTS], task[ENDS] = address(texts), address(ends)
        proved = cliques.without_any_like()
        self._write_names(OLD, cliques)
        if not self._search(proved):
            return None
        try:
            after = self._mark(cliques, proved)
            if after is not None:
                wires.note_work()
                found = self._found(after)
                return found, self._facts(IN_DELETED), self._facts(IN_ADDED)
        except BaseException:
            self._take_back()
            raise
        self._take_back()
        return None

    def _write_names(self, at: int, cliques: Cliques) -> None:
        """Tell the task which names are equal."""
        self.task[at : at + 4] = cliques.layout

    def _search(self, proved: Cliques) -> bool:
        """Find out what no longer holds; whether it could be found out."""
        task, names = self.task, self.room.names

        def search() -> Ids:
            self._write_names(NEW, proved)
            for _ in range(MOST_TRIES):
                task[:BITS] = 0
                task[PATIENCE] = PATIENCE_FOR_ALL
                ends = search_doubts(address(task))
                if ends != HAS_FRESH:
                    break
                self._give_rows()
            is_done.append(ends == DONE)
            return names[GROWN, : task[UNITED] if ends == DONE else 0]

        is_done: list[bool] = []
        proved.unite_by(search)
        return is_done[0]

    def _mark(self, cliques: Cliques, proved: Cliques) -> Cliques | None:
        """Bring given facts into their new normal form; returns the cliques then."""
        task, after = self.task, cliques
        nodes = self._nodes()
        if nodes.size:
            after = cliques.copy()
            after.assign(cliques.members(nodes)[1], proved)
            self.wires.look_everywhere(task)
        self._write_names(NEW, after)
        for _ in range(MOST_TRIES):
            task[FRESH] = 0
            ends = mark_given(address(task), bool(nodes.size))
            if ends != HAS_FRESH:
                break
            self._give_rows()
        return after if ends == DONE else None

    def _nodes(self) -> Ids:
        """What stood for cliques that fall apart."""
        keys = self._keys(IN_DELETED)
        rows = keys[keys <= LOWER].astype(np.int64)
        names: Ids = self.store.relations[self.wires.rules.same].table[0, rows]
        return names

    def _keys(self, which: int) -> Keys:
        return self.room.keys[which, : self.task[SIZES + which]]

    def _facts(self, which: int) -> Settled:
        """The facts of a list."""
        return facts_of(self._keys(which), self.wires)

    def _give_rows(self) -> None:
        """Give rows to facts that have none."""
        give_rows(self.room.fresh[: self.task[FRESH]], self.wires.numbered)
        self.wires.describe()

    def _take_back(self) -> None:
        """Have neither of the two sets changed."""
        for which, bit in ((IN_DELETED, DELETED), (IN_ADDED, ADDED)):
            keys = self._keys(which)
            zeros = int(self.task[BITS + bit])
            mark_keys(self.wires.arrays[0], keys, keys.size, 0, zeros, 0)

    def _found(self, after: Cliques) -> Withdrawal:
        task = self.task
        about = None if task[SIZES + IN_ABOUT] < 0 else self._facts(IN_ABOUT)
        return Withdrawal(
            representatives=after,
            about_moved=about,
            withdrawn=self._facts(IN_WITHDRAWN),
            given=self._facts(IN_GIVEN),
            cleared=self._facts(IN_CLEARED),
            set=self._facts(IN_NEW),
            implied=self._facts(IN_IMPLIED),
            not_implied=self._facts(IN_NOT_IMPLIED),
            rounds=int(task[ROUNDS]),
            forward_instances=int(task[FORWARDS]),
            backward_instances=int(task[BACKWARDS]),
            proved=int(task[ARE_PROVED]),
            deleted=int(task[SIZES + IN_DELETED]),
            added=int(task[SIZES + IN_ADDED]),
        )
