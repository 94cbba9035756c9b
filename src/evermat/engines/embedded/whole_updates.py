"""Carries out small updates as a whole, in compiled code.

`at_once` runs the queries of a round by one call. An update has some dozen rounds and
hundreds of set operations around them, all on few facts. Where all rules that an update
reaches have programs, one call does all of it (`one_update`, `kernels_updates`). An
update that turns out not to be small is taken back, and carried out step by step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded import at_once
from evermat.engines.embedded.bits import Marker
from evermat.engines.embedded.codes import mark_visible
from evermat.engines.embedded.one_update import (
    Changes,
    CountedUpdate,
    ProvedUpdate,
    Room,
)
from evermat.engines.embedded.relation import MATERIALISED
from evermat.engines.embedded.wiring import Wiring

if TYPE_CHECKING:
    from evermat.algebra import Facts
    from evermat.engine_abilities import CountedStrata, StratumWork
    from evermat.engines.embedded.arrays import Flags
    from evermat.engines.embedded.at_once import AtOnce
    from evermat.engines.embedded.bits import Growing
    from evermat.engines.embedded.codes import Code
    from evermat.engines.embedded.plans import Plans
    from evermat.engines.embedded.settled import Settled
    from evermat.engines.embedded.store import Store

LESS = 2
"""After an update that was too large, those this much smaller are tried at once, and
larger ones after a while: the more have failed, the longer."""

LONGEST_PAUSE = 1 << 10
"""How many updates are not tried at most."""

BITS_FOR_COUNTS, BITS_FOR_PROOFS = 2, 5
"""How many status bits are taken for the time of an update; see `kernels_changes`."""

BITS_FOR_GIVEN = 2
"""How many more it may take to tell which facts are given."""


class Restraint:
    """Which updates are worth a try, after some have turned out to be too large."""

    def __init__(self) -> None:
        self._most = at_once.MOST_CHANGED
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
            self._most, self._failures = at_once.MOST_CHANGED, 0


class WholeUpdates:
    """Carries out updates.

    Args:
        plans: plans and programs of queries.
        queries: knows what may be seen.
        proofs: whether facts are proved, where derivations are not counted.
    """

    def __init__(self, plans: Plans, queries: AtOnce, *, proofs: bool) -> None:
        self._plans = plans
        self._at_once = queries
        self._proofs = proofs
        self._wiring: Wiring | None = None
        self._restraint = Restraint()
        self._room = Room()
        self._tables: dict[tuple[Code, ...], Flags] = {}

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
        explicit: Facts | None,
    ) -> tuple[list[StratumWork], int] | None:
        """The work in each stratum that is reached, and the number of all matches.

        None if the update has to be carried out step by step.
        """
        begun = Changes(*changes, *_net(store, sets))
        size = begun.size()
        if not 0 < size <= at_once.MOST_CHANGED:
            return None
        if not self._restraint.allows(size):
            return None
        wiring = self._wired(strata)
        if not all(wiring.reach(facts.names()) for facts in begun.each()):
            return None
        wiring.describe()
        update = self._carried_out(wiring, store, begun, sets, explicit)
        self._restraint.note(size, done=update is not None)
        if update is None:
            return None
        return update.work(), update.matches

    def _carried_out(
        self,
        wiring: Wiring,
        store: Store,
        changes: Changes,
        sets: tuple[Growing, Growing],
        explicit: Facts | None,
    ) -> ProvedUpdate | None:
        """The update, if it was small enough."""
        needed = BITS_FOR_PROOFS if self._proofs else BITS_FOR_COUNTS
        if not store.sets.has_bits(needed + BITS_FOR_GIVEN):
            return None
        with Marker(store.sets) as marker:
            given: Code | None = 0
            if explicit is not None:
                given = store.sets.common_code(explicit, marker)
            if given is None:
                return None
            free = store.sets.take_bits(needed)
            try:
                bits = (sets[0].bit, sets[1].bit, *free)
                kind = ProvedUpdate if self._proofs else CountedUpdate
                table = self._table(bits, given)
                update = kind(wiring, store, self._room, bits, table)
                found = update.carry_out(changes)
            finally:
                store.sets.give_back(*free)
        if found is None:
            return None
        for growing, facts in zip(sets, found, strict=True):
            growing.take_over(facts)
        return update

    def _wired(self, strata: CountedStrata) -> Wiring:
        wiring = self._wiring
        if wiring is None or wiring.strata is not strata or not wiring.is_apt():
            wiring = Wiring(strata, self._plans, proofs=self._proofs)
            self._wiring = wiring
        return wiring

    def _table(self, bits: tuple[int, ...], given: Code) -> Flags:
        """What queries may see of each status, in the order of `kernels_changes`.

        Last of all, which facts are given after the update.
        """
        key = (*bits, given)
        known = self._tables.get(key)
        if known is None:
            known = self._tables[key] = self._new_table(bits, given)
        return known

    def _new_table(self, bits: tuple[int, ...], given: Code) -> Flags:
        deleted, added, changed, absent, *others = bits
        before: Code = MATERIALISED
        remaining: Code = ("-", MATERIALISED, ("-", deleted, added))
        possible: Code = ("|", MATERIALISED, added)
        updated: Code = ("|", ("-", MATERIALISED, deleted), added)
        table = self._at_once.table
        tables = [
            table(before, before, changed, absent),
            table(remaining, possible, changed, absent),
            table(updated, updated, changed, absent),
        ]
        if self._proofs:
            _, proved, _ = others
            tables += [
                table(remaining, possible, changed, absent, proved),
                mark_visible({1: given}),
            ]
        return np.stack(tables)


def _net(store: Store, sets: tuple[Growing, Growing]) -> tuple[Settled, Settled]:
    """What was deleted and not added so far, and the other way round."""
    deleted, added = sets
    if deleted.is_empty() or added.is_empty():
        return deleted.settled(), added.settled()
    return store.sets.settled(deleted - added), store.sets.settled(added - deleted)
