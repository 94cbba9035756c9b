"""Trigger indexes: the programs that a change of a relation triggers.

Compiled code reads a trigger index as arrays of numbers, and facts as keys: the number
of a relation, and a row. There can be many rules while an update reaches few relations,
so only those that an update can reach have plans and programs, and are numbered.

Engines are not notified of rules that are removed from a program. To keep their caches
from growing without end, `Recent` drops entries that updates no longer ask for.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from evermat.algebra import Role
from evermat.engines.embedded.arrays import NO_KEYS
from evermat.engines.embedded.dedup import Numbered
from evermat.engines.embedded.fact_sets import NOTHING, Settled
from evermat.engines.embedded.kernels.changes import (
    TriggerIndex,
    join_keys,
    split_keys,
)
from evermat.engines.embedded.views import found_facts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from evermat.algebra import QuerySet
    from evermat.algebra.engine import PlannedStrata
    from evermat.engines.embedded.arrays import Keys
    from evermat.engines.embedded.bytecode import Program
    from evermat.engines.embedded.index import Index
    from evermat.engines.embedded.kernels.layout import Numbers
    from evermat.engines.embedded.relation import Relation
    from evermat.engines.embedded.rules import Plans
    from evermat.engines.embedded.store import Store


Key = TypeVar("Key")
Value = TypeVar("Value")

UPDATES = 16
"""Entries that were not used during this many updates are dropped, at the latest after
twice as many.
"""


class Recent(Generic[Key, Value]):
    """A dictionary that drops entries that were not used recently."""

    def __init__(self) -> None:
        self._new: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}
        self._updates = 0

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, if it was used recently."""
        found = self._new.get(key)
        if found is None and key in self._old:
            found = self._new[key] = self._old.pop(key)
        return found

    def __setitem__(self, key: Key, value: Value) -> None:
        self._new[key] = value

    def clear(self) -> None:
        """Remove all entries."""
        self._new.clear()
        self._old.clear()

    def note_update(self) -> None:
        """Record the end of an update."""
        self._updates += 1
        if self._updates % UPDATES == 0:
            self._old, self._new = self._new, {}


SIGNS = (Role.CHANGED, Role.CHANGED_ABSENT)

MANY_SEARCHES = 1 << 15
"""Number of look-ups after which they are reported to programs; grows over time."""

FACTS_PER_RULE = 1 << 16
"""With this many explicit facts per rule, plans are made before the first update: that
takes about a hundredth of the time for loading and deriving the facts.
"""

MOST_DERIVED = 4
"""The largest ratio of all facts to explicit ones for that: beyond it, indexes that
only updates need could take as long as deriving the facts, and as much memory.
"""

GROWTH = 2
"""Plans are reconsidered when a relation has grown or shrunk by this factor."""


def is_worth_it(strata: PlannedStrata, relations: Iterable[Relation]) -> bool:
    """Return whether to make plans in advance, for facts that are all new."""
    rules = sum(stratum.rule_count for stratum in strata.strata)
    explicit = facts = 0
    for relation in relations:
        explicit += relation.explicit_count
        facts += relation.alive
    return explicit >= FACTS_PER_RULE * rules and facts <= MOST_DERIVED * explicit


class Triggers:
    """A trigger index: for each relation, the programs that its changes trigger.

    Only programs that changes have reached so far exist and are numbered. The rules of
    a step, if there are any, are in slot 0.

    Args:
        plans: plans and programs of queries.
        step: the rules that read the facts derived by all rules, if there are any.

    Attributes:
        names: the relations, by number.
        numbers: the number of each relation.
        programs: all programs, by number.
        index: the index as arrays, as of the last description.
        numbered: the relations themselves, likewise.
        work: for each program the numbers of rows read and of matches since they were
            last reported to it.
    """

    index: TriggerIndex
    work: Numbers
    numbered: Numbered

    def __init__(self, plans: Plans, step: tuple[QuerySet, int] | None) -> None:
        self._plans = plans
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}
        self.programs: list[Program] = []
        self._entries: dict[int, list[tuple[int, int, int]]] = {}
        self._uses: dict[Relation, dict[Index, None]] = {}
        self._sizes: dict[Relation, int] = {}
        self._is_laid_out = False
        """Whether `index` is up to date."""
        self._apt_at = -1
        """The time when relations were last checked to have the sizes of their plans.
        """
        self._many = MANY_SEARCHES
        self._time = -1
        """The time when everything was last described."""
        self._growth: tuple[Numbers, int] = np.empty((0, 3), np.int64), -1
        """The result of `growth`, and the time it was computed."""
        self._rules: list[tuple[QuerySet, int]] = []
        """For each slot, queries that read a change, and the counter of their
        derivations or -1.
        """
        self._reached: list[set[str]] = []
        """For each slot, the relations whose changes have been reached."""
        self._step = step
        self._barred: set[tuple[int, str]] = set()
        """Slots and relations that reach queries without a program."""
        if step is not None:
            self.add_rules(step)
        self._lay_out()

    def add_rules(self, rules: tuple[QuerySet, int]) -> None:
        """Add a slot for rules."""
        if rules not in self._rules:
            self._rules.append(rules)
            self._reached.append(set())
            self._is_laid_out = False

    def slot(self, rules: tuple[QuerySet, int]) -> int:
        """Return the slot of rules."""
        return self._rules.index(rules)

    def reach(self, slots: Iterable[int], names: Collection[str]) -> bool:
        """Number everything that a change of some relations can reach.

        Args:
            slots: the slots whose queries read the change.
            names: the relations.

        Returns:
            Whether all queries that it reaches have programs.
        """
        return all(
            self._reached[slot].issuperset(names)
            or all(self._can_reach(slot, name) for name in names)
            for slot in slots
        )

    def number(self, names: Iterable[str]) -> None:
        """Number some relations."""
        for name in names:
            if name not in self.numbers:
                self._number(name)

    def entries(self, slot: int) -> list[tuple[int, int, int]]:
        """Return the positive changes that queries of a slot read, and their programs.

        Each is the number of a relation, the first program, and the end.
        """
        return self._entries.get(2 * slot, [])

    def has_raised(self) -> bool:
        """Return whether any relation has a listener for raised counts."""
        return any(relation.tells_of_counts for relation in self._sizes)

    def _can_reach(self, slot: int, name: str) -> bool:
        """Reach all that a change of a relation reaches, if it has programs."""
        found = self._programs(slot, name)
        if found is None:
            self._barred.add((slot, name))
            return False
        self.number(each for _, each in found)
        every = [*chain.from_iterable(chain.from_iterable(found.values()))]
        self.number(program.target for program in every)
        for program in every:
            self._use_all(program)
        # Merging runs may be interrupted; the rest may not be: a relation that is
        # marked as reached but not connected would never trigger its programs.
        for place, each in found:
            self._reached[place].add(each)
        for (place, each), programs in found.items():
            for sign, some in enumerate(programs):
                if some:
                    self._connect(each, 2 * place + sign, some)
            self._count(place, chain.from_iterable(programs))
        return True

    def _count(self, slot: int, programs: Iterable[Program]) -> None:
        """Allocate the counter that the programs of a slot use, if any."""
        which = self._rules[slot][1]
        if which >= 0:
            for program in programs:
                self._plans.relations[program.target].counter(which)

    def _programs(
        self, slot: int, name: str
    ) -> dict[tuple[int, str], list[list[Program]]] | None:
        """Return the programs that a change triggers; None if one is missing."""
        found: dict[tuple[int, str], list[list[Program]]] = {}
        waiting = [(slot, name)]
        while waiting:
            here = waiting.pop()
            if here in found or here[1] in self._reached[here[0]]:
                continue
            if here in self._barred:
                return None
            by_change = self._rules[here[0]][0].by_change
            found[here] = []
            for role in SIGNS:
                programs = []
                for query in by_change.get((role, here[1]), ()):
                    program = self._plans.program(query)
                    if program is None:
                        return None
                    programs.append(program)
                    if self._step is not None:
                        waiting.append((0, program.target))
                found[here].append(programs)
        return found

    def is_apt(self) -> bool:
        """Return whether relations are about as large as when plans were made."""
        for relation in self._plans.changed_since(self._apt_at):
            size, count = self._sizes.get(relation), relation.count + 16
            if size and not size <= GROWTH * count <= GROWTH * GROWTH * size:
                return False
        self._apt_at = self._plans.time
        return True

    def describe(self) -> None:
        """Bring the arrays up to date, including layouts of relations and indexes."""
        if not self._is_laid_out:
            self._lay_out()
        self.describe_grown(self._plans.changed_since(self._time))

    def describe_grown(self, relations: Iterable[Relation]) -> None:
        """Do the same if no other relations have changed since."""
        for relation in relations:
            for index in self._uses.get(relation, ()):
                if index.described != relation.count:
                    relation.describe(index)
        self._time = self._plans.time

    def growth(self) -> Numbers:
        """Return the array with which compiled code appends rows."""
        known, time = self._growth
        relations = self.numbered.relations
        if len(known) < len(relations):
            known = np.array([_growth_of(each) for each in relations], np.int64)
        else:
            for relation in self._plans.changed_since(time):
                number = self.numbers.get(relation.name)
                if number is not None:
                    known[number] = _growth_of(relation)
        self._growth = known, self._plans.time
        return known

    def note_growth(self) -> None:
        """Record the rows that compiled code has appended to relations."""
        known, _ = self._growth
        grown = np.flatnonzero(known[:, 0] != known[:, 2]).tolist()
        if grown:
            relations = [self.numbered.relations[number] for number in grown]
            for relation, line in zip(relations, known[grown].tolist(), strict=True):
                relation.note_appended(line[0], has_other=line[1] != 0)
            known[:, 2] = known[:, 0]
            self.describe_grown(relations)

    def make_directories(self) -> None:
        """Build directories for all later look-ups."""
        for relation, indexes in self._uses.items():
            for index in indexes:
                index.make_directories()
                relation.describe(index)

    def note_work(self) -> None:
        """Report look-ups to programs, if there were many that are of use."""
        if self.work.sum() < self._many:
            return
        every = chain.from_iterable(self._uses.values())
        if not any(index.wants_directories for index in every):
            self._many += MANY_SEARCHES
            return
        self._many *= GROWTH
        searches = self.work.sum(axis=1)
        for program, times in zip(self.programs, searches.tolist(), strict=True):
            if times:
                program.note_searches(times)
        self.work[:] = 0

    def _number(self, name: str) -> None:
        """Give a relation the next number."""
        relation = self._plans.relations[name]
        self._use(relation.primary, relation)  # may be interrupted
        self._is_laid_out = False
        self.numbers[name] = len(self.names)
        self.names.append(name)
        self._sizes[relation] = relation.count + 16

    def _use(self, index: Index, relation: Relation) -> None:
        """Keep an index up to date from now on."""
        if index not in self._uses.setdefault(relation, {}):
            relation.unite_runs(index)
            self._uses[relation][index] = None
        self._time = -1
        # `growth` depends on which indexes are kept up to date.
        self._growth = self._growth[0], -1

    def _use_all(self, program: Program) -> None:
        for index, relation in program.uses:
            self._use(index, relation)

    def _connect(self, name: str, slot: int, programs: Iterable[Program]) -> None:
        """Make a change of a relation trigger programs of a slot."""
        self._is_laid_out = False
        first = len(self.programs)
        for program in programs:
            self.programs.append(program)
            self._use_all(program)
        entry = self.numbers[name], first, len(self.programs)
        self._entries.setdefault(slot, []).append(entry)

    def _lay_out(self) -> None:
        """Write the index to arrays."""
        known = self._plans.relations
        relations = [known[name] for name in self.names]
        self.numbered = Numbered.of(relations)
        slots = range(2 * len(self._rules))
        entries = [self._entries.get(slot, []) for slot in slots]
        programs = [
            (program.address, self.numbers[program.target]) for program in self.programs
        ]
        self.work = np.zeros((len(programs), 2), np.int64)
        self.index = TriggerIndex(
            relations=np.array([each.address for each in relations], np.int64),
            starts=np.cumsum([0, *map(len, entries)], dtype=np.int64),
            entries=np.array([*chain(*entries)], np.int64).reshape(-1, 3),
            programs=np.array(programs, np.int64).reshape(-1, 2),
            work=self.work,
        )
        self._is_laid_out = True


def _growth_of(relation: Relation) -> tuple[int, int, int]:
    """Return a line of `growth`: rows, the second index, and the known rows."""
    count, other = relation.growth
    return count, other, count


def keys_of(
    facts: Settled,
    store: Store,
    triggers: Triggers,
    only: Collection[str] | None = None,
) -> Keys:
    """Return the keys of facts, optionally of some relations only."""
    if facts.is_empty():
        return NO_KEYS
    names, rows = facts.names, facts.every
    segments, size = facts.segments(store.relations), rows.size
    if only is not None:
        wanted = [at for at, name in enumerate(names) if name in only]
        if len(wanted) < len(names):
            names, segments = [names[at] for at in wanted], segments[wanted]
            size = int((segments[:, 2] - segments[:, 1]).sum())
    numbers = np.array([triggers.numbers[name] for name in names], np.int64)
    keys: Keys = np.empty(size, np.uint64)
    join_keys(segments, rows, numbers, keys)
    return keys


def facts_of(keys: Keys, triggers: Triggers) -> Settled:
    """Return the facts of keys."""
    if not keys.size:
        return NOTHING
    rows = np.empty(keys.size, np.int32)
    names = triggers.names
    lines = np.empty((len(names), 4), np.int64)
    lines = lines[: split_keys(triggers.index.relations, keys, rows, lines)]
    return found_facts(names, rows, lines)
