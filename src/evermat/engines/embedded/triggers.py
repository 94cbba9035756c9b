"""What was made for rules, as long as updates ask for it.

Engines do not hear of rules that leave a program. What they keep for rules would live
as long as the engine, and would grow without end where rules change for years.

Which programs a change of a relation sets off, as numbers for compiled code.

Rules can be many, and an update reaches few relations: only what an update can reach
has plans and programs, and is numbered.

Facts as keys for compiled code: the number of a relation, and a row.
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
"""What was not asked for during so many updates is forgotten, after twice as many at
the latest."""


class Recent(Generic[Key, Value]):
    """A dictionary that forgets what nothing has asked for lately."""

    def __init__(self) -> None:
        self._new: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}
        self._updates = 0

    def get(self, key: Key) -> Value | None:
        """What there is for a key, if it was asked for lately."""
        found = self._new.get(key)
        if found is None and key in self._old:
            found = self._new[key] = self._old.pop(key)
        return found

    def __setitem__(self, key: Key, value: Value) -> None:
        self._new[key] = value

    def clear(self) -> None:
        """Forget everything."""
        self._new.clear()
        self._old.clear()

    def note_update(self) -> None:
        """An update is over."""
        self._updates += 1
        if self._updates % UPDATES == 0:
            self._old, self._new = self._new, {}


SIGNS = (Role.CHANGED, Role.CHANGED_ABSENT)

MANY_SEARCHES = 1 << 15
"""After so many look-ups programs are told of them, and then after more and more."""

FACTS_PER_RULE = 1 << 16
"""With so many given facts for each rule, plans are made before anything is updated:
that takes about a hundredth of the time for loading and deriving them."""

MOST_DERIVED = 4
"""Unless there are more facts than this for each given one: indexes that only updates
need could then take as long as deriving them has, and as much memory as they do."""

GROWTH = 2
"""Plans are looked at again when a relation has grown or shrunk by this factor."""


def is_worth_it(strata: PlannedStrata, relations: Iterable[Relation]) -> bool:
    """Whether to make plans before they are needed, for facts that are all new."""
    rules = sum(stratum.rule_count for stratum in strata.strata)
    given = facts = 0
    for relation in relations:
        given += relation.given
        facts += relation.alive
    return given >= FACTS_PER_RULE * rules and facts <= MOST_DERIVED * given


class Triggers:
    """Which programs of some sets of queries a change of a relation sets off, numbered.

    Only what changes have reached so far has plans and programs, and is numbered. The
    rules of a step, if there are any, are in slot 0.

    Args:
        plans: plans and programs of queries.
        step: the rules that read what all of them derive, if there are any.

    Attributes:
        names: the relations, by number.
        numbers: the number of each relation.
        programs: all programs, by number.
        index: all of it as numbers, when it was last described.
        numbered: the relations themselves, likewise.
        work: for each program how many rows it has read and how many matches it had,
            since programs were last told of it.
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
        """Whether `index` has all that is known."""
        self._apt_at = -1
        """When relations were found to be as large as plans have it."""
        self._many = MANY_SEARCHES
        self._time = -1
        """When everything was described for the last time."""
        self._growth: tuple[Numbers, int] = np.empty((0, 3), np.int64), -1
        """What `growth` tells, and when it was found out."""
        self._rules: list[tuple[QuerySet, int]] = []
        """For each slot queries that read a change, and the counter of what they
        derive, or -1."""
        self._reached: list[set[str]] = []
        """For each slot the relations whose change has been reached."""
        self._step = step
        self._barred: set[tuple[int, str]] = set()
        """What reaches queries that have no program."""
        if step is not None:
            self.add_rules(step)
        self._lay_out()

    def add_rules(self, rules: tuple[QuerySet, int]) -> None:
        """Have a slot for rules."""
        if rules not in self._rules:
            self._rules.append(rules)
            self._reached.append(set())
            self._is_laid_out = False

    def slot(self, rules: tuple[QuerySet, int]) -> int:
        """The slot of rules."""
        return self._rules.index(rules)

    def reach(self, slots: Iterable[int], names: Collection[str]) -> bool:
        """Have numbers for all that a change of some relations can reach.

        Args:
            slots: those whose queries read the change.
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
        """Have numbers for some relations."""
        for name in names:
            if name not in self.numbers:
                self._number(name)

    def entries(self, slot: int) -> list[tuple[int, int, int]]:
        """The positive changes that queries of a slot read, and their programs.

        Each is the number of a relation, the first program, and the end.
        """
        return self._entries.get(2 * slot, [])

    def has_raised(self) -> bool:
        """Whether relations want to know whose counts were raised."""
        return any(relation.tells_of_counts for relation in self._sizes)

    def _can_reach(self, slot: int, name: str) -> bool:
        """Reach what a change of a relation reaches, if all of it has programs."""
        found = self._programs(slot, name)
        if found is None:
            self._barred.add((slot, name))
            return False
        self.number(each for _, each in found)
        every = [*chain.from_iterable(chain.from_iterable(found.values()))]
        self.number(program.target for program in every)
        for program in every:
            self._use_all(program)
        # Uniting runs may be broken off, and from here on nothing is: what is reached
        # but not connected would never be derived again.
        for place, each in found:
            self._reached[place].add(each)
        for (place, each), programs in found.items():
            for sign, some in enumerate(programs):
                if some:
                    self._connect(each, 2 * place + sign, some)
            self._count(place, chain.from_iterable(programs))
        return True

    def _count(self, slot: int, programs: Iterable[Program]) -> None:
        """Have the counter that the programs of a slot count with, if they do."""
        which = self._rules[slot][1]
        if which >= 0:
            for program in programs:
                self._plans.relations[program.target].counter(which)

    def _programs(
        self, slot: int, name: str
    ) -> dict[tuple[int, str], list[list[Program]]] | None:
        """The programs that a change sets off, by sign; None if one is missing."""
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
        """Whether relations are about as large as they were when plans were made."""
        for relation in self._plans.changed_since(self._apt_at):
            size, count = self._sizes.get(relation), relation.count + 16
            if size and not size <= GROWTH * count <= GROWTH * GROWTH * size:
                return False
        self._apt_at = self._plans.time
        return True

    def describe(self) -> None:
        """Have all numbers up to date: layouts of relations and indexes, too."""
        if not self._is_laid_out:
            self._lay_out()
        self.describe_grown(self._plans.changed_since(self._time))

    def describe_grown(self, relations: Iterable[Relation]) -> None:
        """The same, where no others have changed since."""
        for relation in relations:
            for index in self._uses.get(relation, ()):
                if index.described != relation.count:
                    relation.describe(index)
        self._time = self._plans.time

    def growth(self) -> Numbers:
        """What compiled code needs to give rows to facts; see `kernels.fixpoint`."""
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
        """Tell relations how many rows compiled code has given to their facts."""
        known, _ = self._growth
        grown = np.flatnonzero(known[:, 0] != known[:, 2]).tolist()
        if grown:
            relations = [self.numbered.relations[number] for number in grown]
            for relation, line in zip(relations, known[grown].tolist(), strict=True):
                relation.note_appended(line[0], has_other=line[1] != 0)
            known[:, 2] = known[:, 0]
            self.describe_grown(relations)

    def make_directories(self) -> None:
        """Have directories for all look-ups to come."""
        for relation, indexes in self._uses.items():
            for index in indexes:
                index.make_directories()
                relation.describe(index)

    def note_work(self) -> None:
        """Tell programs of look-ups, when there were enough, if anybody cares."""
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
        self._use(relation.primary, relation)  # may be broken off
        self._is_laid_out = False
        self.numbers[name] = len(self.names)
        self.names.append(name)
        self._sizes[relation] = relation.count + 16

    def _use(self, index: Index, relation: Relation) -> None:
        """Have an index up to date from now on."""
        if index not in self._uses.setdefault(relation, {}):
            relation.unite_runs(index)
            self._uses[relation][index] = None
        self._time = -1
        # It has to be known which indexes are kept up to date.
        self._growth = self._growth[0], -1

    def _use_all(self, program: Program) -> None:
        for index, relation in program.uses:
            self._use(index, relation)

    def _connect(self, name: str, slot: int, programs: Iterable[Program]) -> None:
        """Have a change of a relation set off programs of a slot."""
        self._is_laid_out = False
        first = len(self.programs)
        for program in programs:
            self.programs.append(program)
            self._use_all(program)
        entry = self.numbers[name], first, len(self.programs)
        self._entries.setdefault(slot, []).append(entry)

    def _lay_out(self) -> None:
        """Put it all in arrays."""
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
    """What the rows of a relation are given by, and how many it knows of."""
    count, other = relation.growth
    return count, other, count


def keys_of(
    facts: Settled,
    store: Store,
    triggers: Triggers,
    only: Collection[str] | None = None,
) -> Keys:
    """The keys of facts, if need be of some relations only."""
    if facts.is_empty():
        return NO_KEYS
    names, rows = facts.names(), facts.every
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
    """The facts of keys."""
    if not keys.size:
        return NOTHING
    rows = np.empty(keys.size, np.int32)
    names = triggers.names
    lines = np.empty((len(names), 4), np.int64)
    lines = lines[: split_keys(triggers.index.relations, keys, rows, lines)]
    return found_facts(names, rows, lines)
