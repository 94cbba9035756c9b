"""Saturation: small sets of facts in compiled code, larger ones in batches.

A round of few facts takes far less time than the operators around it, so one call of
compiled code (`kernels.fixpoint`) runs rounds as long as they are small. A larger round
is applied by the operators of the engine, and may again derive few facts. Either way, a
round leaves behind the same facts and counts.
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
"""Capacity of each list, in facts."""

MOST_SEEDS = 1 << 13
"""Up to this many facts, rounds are run in compiled code."""

MOST_CHUNKS = 1 << 12
"""Number of times that one call can change counts."""

MOST_ROWS = 1 << 17
"""Cost limit of a compiled round, in rows; larger rounds are left to batches."""

PAUSE_AFTER = 1 << 20
"""Matches after which a call returns to Python, so that interrupts are answered."""

_HALF = np.uint64(32)


CountedRules = tuple["QuerySet", int]
"""Rules, and the number of the counter of their derivations, or -1."""


def new_scratch(size: int) -> Scratch:
    """Allocate lists of `size` facts; unused pages cost nothing."""
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
    """Lists that all calls reuse; see `kernels.fixpoint`."""

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
    """A saturation in the form that compiled code reads.

    Attributes:
        triggers: the trigger index of the rules.
        first, step: the slots of the first rules, and of the rules of rounds.
        rules, settings: see `kernels.fixpoint`.
        seen: computes, for status bits, which views contain each status.
    """

    triggers: Triggers
    first: Sequence[int]
    step: int
    rules: Numbers
    settings: Settings
    seen: Callable[[Bits], Seen]


class Change(NamedTuple):
    """The facts that the first rules read as changed.

    Attributes:
        facts: the change.
        read: those of its relations that the rules read.
    """

    facts: Settled
    read: frozenset[str]

    def size(self) -> int:
        """Return the number of facts that the rules read."""
        if len(self.read) == len(self.facts.names):
            return self.facts.size()
        return sum(n for name, n in self.facts.sizes().items() if name in self.read)


@dataclass(frozen=True, slots=True)
class Beginning:
    """The rules that a saturation begins with, by how they are evaluated.

    Attributes:
        small: rules that read a change; all of them read the same change and views.
        views: the views that these read.
        large: the other rules.
        changes: the positive and the negative change.
    """

    small: tuple[Application, ...]
    views: Views | None
    large: tuple[Application, ...]
    changes: tuple[Change, Change]

    @classmethod
    def of(cls, applications: Sequence[Application]) -> Beginning:
        """Classify rules: compiled rounds are for those that read a change."""
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
    """Return the part of a change that rules read."""
    if delta is None or delta.is_empty():
        return NO_CHANGE
    facts = cast("Settled", delta)
    read: set[str] = set()
    for each in small:
        read |= each.queries.changes.get(role, frozenset())
    return Change(facts, frozenset(facts.names) & read)


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
        """Release views, so that growing sets free their status bits."""
        self._known_codes.clear()
        self._triggers.note_update()
        self._forms.note_update()

    def forget(self) -> None:
        """Discard cached triggers and forms, which may refer to other relations."""
        self._triggers.clear()
        self._forms.clear()

    def prepare_updates(self, strata: PlannedStrata) -> None:
        """Build plans and indexes for updates by DRed^c."""
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
        """Apply rules until no candidate is admitted."""
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
        """Return compiled rounds; None if the views or rules do not allow them."""
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
        """Return the trigger index that all tasks of a stratum share."""
        every = [*rules, step] if step is not None else [*rules]
        key = every[-1] if every else None
        known = self._triggers.get(key)
        if known is None or not known.is_apt():
            known = self._triggers[key] = Triggers(self._engine.plans, step)
        for each in every:
            known.add_rules(each)
        return known

    def _codes(self, task: Saturation, beginning: Beginning) -> list[Code] | None:
        """Return the views that rules read, and `unless`, as codes over status bits."""
        views: list[Facts] = []
        for each in (beginning.views, None if task.step is None else task.step.views):
            if each is None:
                views += [task.unless] * 3  # not read
            else:
                local = each.positive if each.local is None else each.local
                views += [each.positive, each.negative, local]
        views.append(task.unless)
        codes = [self._code(view) for view in views]
        return None if None in codes else cast("list[Code]", codes)

    def _code(self, view: Facts) -> Code | None:
        """Return a view as a code over status bits, if possible; cached per update."""
        if view not in self._known_codes:
            sets = self._engine.store.sets
            is_marked = sets.is_marked(view)
            self._known_codes[view] = (
                sets.common_code(view, Marker(sets)) if is_marked else None
            )
        return self._known_codes[view]

    def _seen_by(self, codes: Sequence[Code], bits: Bits) -> Seen:
        """Return, for each status, which views contain it."""
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
    """The rounds of one saturation that are run in compiled code."""

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
        """Return whether all rules that a round can reach have programs."""
        triggers, form = self._triggers, self._form
        has_room = candidates.size() <= self._scratch.candidates.size
        if not has_room or not self._engine.store.sets.has_bits(2):
            return False
        if not all(triggers.reach(form.first, read) for _, read in self._changes):
            return False
        names = candidates.names
        if form.step >= 0:
            return triggers.reach((form.step,), names)
        triggers.number(names)
        return True

    def run(self, candidates: Settled, on_rounds: OnRounds) -> Settled | None:
        """Run rounds as long as they are small.

        Returns:
            The candidates left after a larger round; None if there are none.
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
        """Return the relations of facts whose count has become negative."""
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
        """Report the work of a call; a large round is reported without its rules."""
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
        """Apply the rules that exceeded the cost limit; return the next candidates."""
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
        """Record the changes of a call in the growing set, counters and relations."""
        state = self._state
        if state["logged"]:
            try:
                self._take_over_counts()
            except BaseException:
                # The overwritten values are unknown, so nothing can be undone.
                self._engine.is_torn = True
                raise
            state["logged"] = state["chunks"] = 0
        entered = int(state["admitted"])
        if entered:
            facts = self._facts(self._log.admitted[:entered])
            cast("Growing", self._task.into).take_over(facts)
            state["admitted"] = 0

    def _take_over_counts(self) -> None:
        """Log overwritten counts, and record which facts are counted."""
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
        """Append rows for new facts, count them, and make them candidates."""
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
        """Clear the status bits that a call has left behind, after an error."""
        mask = np.uint16(~sum(bits) & 0xFFFF)
        for relation in self._triggers.numbered.relations:
            relation.status[: relation.count] &= mask
        # Rows with the growing set's bit that the set does not list yet.
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
        """Return relations, rows and old counts, in the order of the changes."""
        found: list[Overwritten] = []
        start = 0
        for end, changed in self._chunks:
            if changed == which:
                found += self._split(slice(start, end))
            start = end
        return found

    def _split(self, part: slice) -> list[Overwritten]:
        """Split a part by relation; its keys are sorted."""
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
    """Return the number of a counter, or -1 for none."""
    return -1 if counters is None else cast("CounterColumn", counters).which


def _is_same(one: Views, other: Views) -> bool:
    """Return whether rules read the same facts."""
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
