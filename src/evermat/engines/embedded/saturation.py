"""Saturates small sets of facts in compiled code, and larger ones in batches.

A round of few facts takes far less time than the operators around it, so rounds are run
by one call of compiled code (`kernels.fixpoint`) as long as they are small. A round
that is not is applied by the operators of the engine, and what it derives may be few
facts again. Whatever runs a round, it leaves behind the same facts and counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from evermat.algebra import Role, Rounds, apply_round, apply_rules, apply_step
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.dedup import give_rows
from evermat.engines.embedded.fact_sets import Marker, RowCounts, Settled
from evermat.engines.embedded.kernels.changes import Scratch, mark_keys
from evermat.engines.embedded.kernels.fixpoint import (
    BELOW_ZERO,
    HAS_FRESH,
    PAUSED,
    SATURATED,
    SATURATION,
    TOO_LARGE,
    Bits,
    Log,
    Seen,
    Settings,
    saturate,
)
from evermat.engines.embedded.relation import NONRECURSIVE, RECURSIVE
from evermat.engines.embedded.store import below_zero
from evermat.engines.embedded.triggers import Recent, Triggers, facts_of, keys_of
from evermat.engines.embedded.views import mark_visible
from evermat.runtime.interrupts import check

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evermat.algebra import (
        Application,
        Counters,
        Facts,
        QuerySet,
        Saturation,
        SettledFacts,
        Views,
    )
    from evermat.algebra.engine import PlannedStrata
    from evermat.algebra.fixpoint import OnRounds
    from evermat.engines.embedded.arrays import Keys, Rows
    from evermat.engines.embedded.engine import EmbeddedEngine
    from evermat.engines.embedded.fact_sets import Growing
    from evermat.engines.embedded.kernels.layout import Numbers
    from evermat.engines.embedded.store import CounterColumn, Overwritten
    from evermat.engines.embedded.views import Code

MOST_FACTS = 1 << 16
"""How many facts there is room for in a list."""

MOST_SEEDS = 1 << 13
"""Up to this many facts, rounds are run in compiled code."""

MOST_CHUNKS = 1 << 12
"""How often counts can be changed by one call."""

MOST_ROWS = 1 << 17
"""How many rows a round may look at before it is left to batches."""

PAUSE_AFTER = 1 << 20
"""After so many matches a call returns, so that it can be interrupted."""

_HALF = np.uint64(32)


CountedRules = tuple["QuerySet", int]
"""Rules, and the number of the counter of their derivations, or -1."""


def new_scratch(size: int) -> Scratch:
    """Room for so many facts in each list; what is not used is not taken."""
    return Scratch(
        candidates=np.empty(size, np.uint64),
        delta=np.empty(size, np.uint64),
        found=np.empty(size, np.uint64),
        spare=np.empty(size, np.uint64),
        rows=np.empty(size, np.int32),
        counts=np.empty(size, np.int32),
        fresh=np.empty(size, np.uint32),
    )


class Room:
    """Lists that are used again by every call; see `kernels.fixpoint`."""

    def __init__(self) -> None:
        self.scratch = new_scratch(MOST_FACTS)
        nothing: Numbers = np.empty((0, 0), np.int64)
        self.log = Log(
            admitted=np.empty(MOST_FACTS, np.uint64),
            changed=np.empty(MOST_FACTS, np.int32),
            counted=np.empty(MOST_FACTS, np.uint64),
            old_counts=np.empty(MOST_FACTS, np.int32),
            chunks=np.empty((MOST_CHUNKS, 2), np.int64),
            greatest=nothing,
            segments=nothing,
        )


@dataclass(frozen=True, slots=True)
class Form:
    """How to saturate, in the form that compiled code reads.

    Attributes:
        triggers: which programs a change sets off.
        first, step: the slots of the rules for the beginning, and of those of rounds.
        rules, settings: see `kernels.fixpoint`.
        seen: for status bits, what may see each status.
    """

    triggers: Triggers
    first: Sequence[int]
    step: int
    rules: Numbers
    settings: Settings
    seen: Callable[[Bits], Seen]


class Change(NamedTuple):
    """What rules for the beginning read as changed.

    Attributes:
        facts: the change.
        read: those of its relations that matter to the rules.
    """

    facts: Settled
    read: frozenset[str]

    def size(self) -> int:
        """How many facts matter."""
        if len(self.read) == len(self.facts.names()):
            return self.facts.size()
        return sum(n for name, n in self.facts.sizes().items() if name in self.read)


@dataclass(frozen=True, slots=True)
class Beginning:
    """The rules that a saturation begins with, sorted out.

    Attributes:
        small: rules that read a change, which is the same for all of them.
        views: what these read.
        large: the others.
        changes: the positive and the negative change.
    """

    small: tuple[Application, ...]
    views: Views | None
    large: tuple[Application, ...]
    changes: tuple[Change, Change]

    @classmethod
    def of(cls, applications: Sequence[Application]) -> Beginning:
        """Sort out rules: those that read everything are not for compiled rounds."""
        small, large = [], []
        views: Views | None = None
        for each in applications:
            if None in each.queries.by_change:
                large.append(each)
            elif views is None or _is_same(views, each.views):
                views = each.views
                small.append(each)
            else:
                large.append(each)
        if views is None:
            return cls((), None, tuple(large), (NO_CHANGE, NO_CHANGE))
        changes = (
            _change(small, Role.CHANGED, views.delta_positive),
            _change(small, Role.CHANGED_ABSENT, views.delta_negative),
        )
        return cls(tuple(small), views, tuple(large), changes)


def _change(
    small: Sequence[Application], role: Role, delta: SettledFacts | None
) -> Change:
    """What rules read of a change."""
    if delta is None or delta.is_empty():
        return NO_CHANGE
    facts = cast("Settled", delta)
    read: set[str] = set()
    for each in small:
        read |= each.queries.changes.get(role, frozenset())
    return Change(facts, frozenset(facts.names()) & read)


NO_CHANGE = Change(Settled({}), frozenset())

NOTHING = Beginning((), None, (), (NO_CHANGE, NO_CHANGE))


class Saturator:
    """Saturates with the rules of an engine."""

    def __init__(self, engine: EmbeddedEngine) -> None:
        self._engine = engine
        self._room = Room()
        self._triggers: Recent[CountedRules | None, Triggers] = Recent()
        self._forms: Recent[tuple[object, ...], Form] = Recent()
        self._seen: dict[tuple[object, ...], Seen] = {}
        self._known_codes: dict[Facts, Code | None] = {}

    def end(self) -> None:
        """Forget views: growing sets give their status bits back."""
        self._known_codes.clear()
        self._triggers.note_update()
        self._forms.note_update()

    def forget(self) -> None:
        """Look at rules anew: relations may be others, or no more."""
        self._triggers.clear()
        self._forms.clear()

    def prepare_updates(self, strata: PlannedStrata) -> None:
        """Make plans and indexes for updates by DRed^c."""
        known = self._engine.store.relations.keys()
        for stratum in strata.strata:
            nonrecursive, recursive = stratum.nonrecursive, stratum.recursive
            rules: list[CountedRules] = [(nonrecursive.delta, NONRECURSIVE)]
            step = (recursive.delta, RECURSIVE) if recursive.rules else None
            if step is not None:
                rules.append(step)
            triggers = self._triggers_of(rules, step)
            for each in rules:
                for change in each[0].by_change:
                    if change is not None and change[1] in known:
                        triggers.reach([triggers.slot(each)], [change[1]])
            triggers.describe()
            triggers.make_directories()

    def saturate(self, task: Saturation, on_rounds: OnRounds) -> None:
        """Apply rules until no candidate is admitted any more."""
        engine = self._engine
        beginning = Beginning.of(task.first)
        candidates = cast("Settled", task.seeds)
        if beginning.large and _size(candidates, beginning) <= MOST_SEEDS:
            for each in beginning.large:
                heads = apply_rules(engine, task, each)
                candidates = engine.settle(candidates | heads)
            beginning = replace(beginning, large=())
        while True:
            rounds = None
            if _size(candidates, beginning) <= MOST_SEEDS:
                rounds = self._rounds(task, beginning)
            if rounds is None or not rounds.can_take(candidates):
                for each in (*beginning.large, *beginning.small):
                    heads = apply_rules(engine, task, each)
                    candidates = engine.settle(candidates | heads)
                left = apply_round(engine, task, candidates, on_rounds)
            else:
                left = rounds.run(candidates, on_rounds)
            if left is None:
                return
            candidates = cast("Settled", left)
            beginning = NOTHING

    def _rounds(self, task: Saturation, beginning: Beginning) -> CompiledRounds | None:
        """What runs compiled rounds; None if views or rules are not for that."""
        codes = self._codes(task, beginning)
        step = task.step
        if codes is None or (step is not None and None in step.queries.by_change):
            return None
        rules = [(each.queries, _which(each.counters)) for each in beginning.small]
        key = (
            *rules,
            None if step is None else (step.queries, _which(step.counters)),
            *codes,
            task.is_deletion,
            task.enters_first,
            _which(task.zero),
        )
        form = self._forms.get(key)
        if form is None or not form.triggers.is_apt():
            form = self._forms[key] = self._new_form(task, rules, codes)
        return CompiledRounds(self._engine, task, beginning, form, self._room)

    def _new_form(
        self,
        task: Saturation,
        first: list[CountedRules],
        codes: Sequence[Code],
    ) -> Form:
        step = None
        if task.step is not None:
            step = task.step.queries, _which(task.step.counters)
        triggers = self._triggers_of(first, step)
        slots = [triggers.slot(rules) for rules in first]
        lines = [(slot, which) for slot, (_, which) in zip(slots, first, strict=True)]
        last = (-1, -1) if step is None else (triggers.slot(step), step[1])
        settings = Settings(
            sign=-1 if task.is_deletion else 1,
            zero=_which(task.zero),
            enters_first=int(task.enters_first),
            cost_limit=MOST_ROWS,
            pause_after=PAUSE_AFTER,
        )
        return Form(
            triggers,
            slots,
            last[0],
            np.array([*lines, last], np.int64),
            settings,
            lambda bits: self._seen_by(codes, bits),
        )

    def _triggers_of(
        self, rules: Sequence[CountedRules], step: CountedRules | None
    ) -> Triggers:
        """What the rules of a stratum are set off by: the same for all its tasks."""
        every = [*rules, step] if step is not None else [*rules]
        key = every[-1] if every else None
        known = self._triggers.get(key)
        if known is None or not known.is_apt():
            known = self._triggers[key] = Triggers(self._engine.plans, step)
        for each in every:
            known.add_rules(each)
        return known

    def _codes(self, task: Saturation, beginning: Beginning) -> list[Code] | None:
        """The views that rules read, and `unless`, by the status of rows."""
        views: list[Facts] = []
        for each in (beginning.views, None if task.step is None else task.step.views):
            if each is None:
                views += [task.unless] * 3  # it is not read
            else:
                local = each.positive if each.local is None else each.local
                views += [each.positive, each.negative, local]
        views.append(task.unless)
        codes = [self._code(view) for view in views]
        return None if None in codes else cast("list[Code]", codes)

    def _code(self, view: Facts) -> Code | None:
        """A view by the status of rows, if it tells: an update reads few views."""
        if view not in self._known_codes:
            sets = self._engine.store.sets
            is_marked = sets.is_marked(view)
            self._known_codes[view] = (
                sets.common_code(view, Marker(sets)) if is_marked else None
            )
        return self._known_codes[view]

    def _seen_by(self, codes: Sequence[Code], bits: Bits) -> Seen:
        """For each status what may see it."""
        key = (*codes, *bits)
        known = self._seen.get(key)
        if known is None:
            table = self._engine.at_once.table
            changed, absent = bits.changed, bits.changed_absent
            known = self._seen[key] = Seen(
                first=table(codes[0], codes[1], changed, absent, codes[2]),
                step=table(codes[3], codes[4], changed, absent, codes[5]),
                unless=mark_visible({1: codes[6]}),
            )
        return known


class CompiledRounds:
    """CompiledRounds of one saturation that are run in compiled code."""

    def __init__(
        self,
        engine: EmbeddedEngine,
        task: Saturation,
        beginning: Beginning,
        form: Form,
        room: Room,
    ) -> None:
        self._engine = engine
        self._task = task
        self._small = beginning.small
        self._changes = beginning.changes
        self._form = form
        self._triggers = form.triggers
        self._scratch = room.scratch
        self._log = room.log._replace(
            segments=np.empty((len(form.rules), 2), np.int64),
        )
        self._states = np.zeros(1, SATURATION)
        self._state = self._states[0]

    def can_take(self, candidates: Settled) -> bool:
        """Whether all rules that a round can reach have programs."""
        triggers, form = self._triggers, self._form
        has_room = candidates.size() <= self._scratch.candidates.size
        if not has_room or not self._engine.store.sets.has_bits(2):
            return False
        if not all(triggers.reach(form.first, read) for _, read in self._changes):
            return False
        names = candidates.names()
        if form.step >= 0:
            return triggers.reach((form.step,), names)
        triggers.number(names)
        return True

    def run(self, candidates: Settled, on_rounds: OnRounds) -> Settled | None:
        """Run rounds as long as they are small.

        Returns:
            The candidates that are left after a round that was not; None if there are
            none.
        """
        sets = self._engine.store.sets
        bits = sets.take_bits(2)
        try:
            ends = self._run(candidates, bits, on_rounds)
        except BaseException:
            self._wipe(bits)
            raise
        finally:
            sets.give_back(*bits)
        if ends == SATURATED:
            return None
        if ends == BELOW_ZERO:
            raise below_zero(", ".join(self._names_below_zero()))
        return self._run_large_round()

    def _run(self, candidates: Settled, bits: list[int], on_rounds: OnRounds) -> int:
        engine, triggers, state = self._engine, self._triggers, self._state
        triggers.describe()
        keys = keys_of(candidates, engine.store, triggers)
        self._scratch.candidates[: keys.size] = keys
        state["candidates"] = keys.size
        store = engine.store
        lost, gained = (
            keys_of(facts, store, triggers, read) for facts, read in self._changes
        )
        into = cast("Growing", self._task.into).bit
        all_bits = Bits(into, *bits)
        seen = self._form.seen(all_bits)
        greatest: Numbers = np.empty((2, len(triggers.names)), np.int64)
        log = self._log = self._log._replace(greatest=greatest)
        while True:
            greatest[:] = -1
            before = triggers.work[:, 1].copy()
            try:
                ends = saturate(
                    triggers.index,
                    self._scratch,
                    log,
                    (lost, gained),
                    all_bits,
                    seen,
                    self._form.rules,
                    self._form.settings,
                    self._states,
                    triggers.growth(),
                )
            finally:
                self._take_over()
            triggers.note_growth()
            self._tell(before, on_rounds, was_too_large=ends == TOO_LARGE)
            if ends == HAS_FRESH:
                self._give_rows()
            elif ends != PAUSED:
                break
            check()
        triggers.note_work()
        if state["fresh"]:
            self._give_rows()
        engine.matches += int(state["matches"])
        return int(ends)

    def _names_below_zero(self) -> list[str]:
        """The relations of facts that were not counted as often as they went."""
        relations = self._engine.store.relations
        return sorted(
            {
                name
                for counter in self._engine.store.counters
                for name, rows, _ in counter.overwritten()
                if (relations[name].counted(counter.which, rows) < 0).any()
            }
        )

    def _tell(
        self, before: Numbers, on_rounds: OnRounds, *, was_too_large: bool
    ) -> None:
        """Tell what was done by a call; a large round still lacks its rules."""
        state, monitor = self._state, self._engine.monitor
        rounds, admitted = int(state["rounds"]), int(state["in_all"])
        state["rounds"] = state["in_all"] = 0
        if monitor is not None:
            matched = self._triggers.work[:, 1] - before
            for program in np.flatnonzero(matched).tolist():
                label = self._triggers.programs[program].label
                monitor.working(label, int(matched[program]))
        large = int(state["delta"]) if was_too_large else 0
        if rounds > (large > 0):
            done = rounds - (large > 0)
            on_rounds(Rounds(done, admitted - large, are_compiled=True))
        if large:
            on_rounds(Rounds(1, large))

    def _run_large_round(self) -> Settled:
        """Apply rules that were too much for compiled code; the next candidates."""
        engine, task, state = self._engine, self._task, self._state
        waiting = self._small[int(state["next"]) :]
        if not waiting:
            delta = self._facts(self._scratch.delta[: state["delta"]])
            return cast("Settled", apply_step(engine, task, delta))
        # Several rules may have derived a fact, and it may be among the seeds.
        candidates: Facts = self._facts(
            np.unique(self._scratch.candidates[: state["candidates"]])
        )
        for each in waiting:
            candidates |= apply_rules(engine, task, each)
        return engine.settle(candidates)

    def _facts(self, keys: Keys) -> Settled:
        return facts_of(keys, self._triggers)

    # -- what calls leave behind

    def _take_over(self) -> None:
        """Tell the set that grows, counters and relations what a call has changed."""
        state = self._state
        if state["logged"]:
            try:
                self._take_over_counts()
            except BaseException:
                # Nobody knows what was overwritten, so nothing can be undone.
                self._engine.is_torn = True
                raise
            state["logged"] = state["chunks"] = 0
        entered = int(state["admitted"])
        if entered:
            facts = self._facts(self._log.admitted[:entered])
            cast("Growing", self._task.into).take_over(facts)
            state["admitted"] = 0

    def _take_over_counts(self) -> None:
        """Tell counters what was overwritten, and relations whose facts are counted."""
        names = self._triggers.names
        relations = self._engine.store.relations
        greatest = self._log.greatest
        state = self._state
        log = _Overwritten(names, self._log, int(state["logged"]), int(state["chunks"]))
        for which, counter in enumerate(self._engine.store.counters):
            if which not in log.counters:
                continue
            counter.note(partial(log.of, which))
            for number in np.flatnonzero(greatest[which] >= 0).tolist():
                relation = relations[names[number]]
                relation.note_counted(which, NO_ROWS, int(greatest[which, number]))
            if self._triggers.has_raised():
                for name, rows, _ in log.of(which):
                    relations[name].note_raised(rows)

    def _give_rows(self) -> None:
        """Give rows to facts that have none, count them, and make them candidates."""
        state, triggers = self._state, self._triggers
        fresh = self._scratch.fresh
        candidates = self._scratch.candidates
        counters = self._engine.store.counters
        is_deletion = self._task.is_deletion
        grown = []
        start = 0
        for end, which in self._log.segments[: state["segments"]].tolist():
            # Rules of several segments may have derived a fact.
            for number, rows, counts in give_rows(
                fresh[start:end], triggers.numbered, may_be_known=start > 0
            ):
                relation = triggers.numbered.relations[number]
                if which >= 0:
                    counted = RowCounts(Settled({relation.name: rows}), counts)
                    count = counters[which]
                    (count.subtract if is_deletion else count.add)(counted)
                first = state["candidates"]
                last = first + rows.size
                candidates[first:last] = rows
                candidates[first:last] |= np.uint64(number << 32)
                state["candidates"] = last
                grown.append(relation)
            start = end
        state["fresh"] = state["segments"] = 0
        triggers.describe_grown(grown)

    def _wipe(self, bits: list[int]) -> None:
        """Clear status bits that a call has left anywhere, after an error."""
        mask = np.uint16(~sum(bits) & 0xFFFF)
        for relation in self._triggers.numbered.relations:
            relation.status[: relation.count] &= mask
        # These are in the set that grows, which does not know of them.
        admitted = int(self._state["admitted"])
        into = cast("Growing", self._task.into).bit
        keys = self._log.admitted
        mark_keys(self._triggers.index.relations, keys, admitted, 0, into, 0)


class _Overwritten:
    """Counts that a call has overwritten."""

    def __init__(self, names: Sequence[str], log: Log, size: int, chunks: int) -> None:
        self._names = list(names)
        self._keys: Keys = log.counted[:size].copy()
        self._old: Rows = log.old_counts[:size].copy()
        self._chunks = log.chunks[:chunks].tolist()
        self.counters = {which for _, which in self._chunks}

    def of(self, which: int) -> list[Overwritten]:
        """Relations, rows and old counts, in the order in which they were changed."""
        found: list[Overwritten] = []
        start = 0
        for end, changed in self._chunks:
            if changed == which:
                found += self._split(slice(start, end))
            start = end
        return found

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


def _size(candidates: Settled, beginning: Beginning) -> int:
    one, other = beginning.changes
    return candidates.size() + one.size() + other.size()


def _which(counters: Counters | None) -> int:
    """The number of a counter; -1 stands for none."""
    return -1 if counters is None else cast("CounterColumn", counters).which


def _is_same(one: Views, other: Views) -> bool:
    """Whether rules read the same facts."""
    return all(
        getattr(one, name) is getattr(other, name)
        for name in (
            "positive",
            "negative",
            "delta_positive",
            "delta_negative",
            "local",
        )
    )
