"""Which programs a change of a relation sets off, as numbers for compiled code.

Rules can be many, and an update reaches few relations: only what an update can reach
has plans and programs, and is numbered.
"""

from __future__ import annotations

from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from evermat.algebra import Role
from evermat.engines.embedded.fresh_rows import Numbered
from evermat.engines.embedded.relation import NONRECURSIVE, RECURSIVE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evermat.algebra import Query
    from evermat.engine_abilities import CountedStrata, CountedStratum
    from evermat.engines.embedded.index import Index
    from evermat.engines.embedded.kernels_changes import Wired
    from evermat.engines.embedded.layout import Numbers
    from evermat.engines.embedded.plans import Plans
    from evermat.engines.embedded.programs import Program
    from evermat.engines.embedded.relation import Relation

SIGNS = (Role.CHANGED, Role.CHANGED_ABSENT)

REDERIVE, BACKWARD, SORTS = 2, 3, 4
"""Sorts of queries after those of the two sorts of rules; see `kernels_changes`."""

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


def is_worth_it(strata: CountedStrata, relations: Iterable[Relation]) -> bool:
    """Whether to make plans before they are needed, for facts that are all new."""
    rules = sum(stratum.rule_count for stratum in strata.strata)
    given = facts = 0
    for relation in relations:
        given += relation.given
        facts += relation.alive
    return given >= FACTS_PER_RULE * rules and facts <= MOST_DERIVED * given


Reached = dict[str, list[tuple[int, "Program"]]]
"""For each relation the programs that read its change, and the slot of each."""


class Wires:
    """Programs that changes of relations set off, numbered.

    Args:
        plans: plans and programs of queries.

    Attributes:
        names: the relations, by number.
        numbers: the number of each relation.
        programs: all programs, by number.
        arrays: all of it as numbers, when it was last described.
        numbered: the relations themselves, likewise.
        work: for each program how many rows it has read and how many matches it had,
            since programs were last told of it.
    """

    arrays: Wired
    work: Numbers
    numbered: Numbered

    def __init__(self, plans: Plans) -> None:
        self._plans = plans
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}
        self.programs: list[Program] = []
        self._entries: dict[int, list[tuple[int, int, int]]] = {}
        self._holders: list[int] = []
        self._uses: dict[Relation, dict[Index, None]] = {}
        self._sizes: dict[Relation, int] = {}
        self._apt_at = -1
        """When relations were found to be as large as plans have it."""
        self._many = MANY_SEARCHES
        self._time = -1
        """When everything was described for the last time."""
        self._growth: tuple[Numbers, int] = np.empty((0, 3), np.int64), -1
        """What `growth` tells, and when it was found out."""

    def is_apt(self) -> bool:
        """Whether relations are about as large as they were when plans were made."""
        for relation in self._plans.changed_since(self._apt_at):
            size, count = self._sizes.get(relation), relation.count + 16
            if size and not size <= GROWTH * count <= GROWTH * GROWTH * size:
                return False
        self._apt_at = self._plans.time
        return True

    def describe(self) -> None:
        """Have layouts of relations and indexes up to date."""
        self.describe_grown(self._plans.changed_since(self._time))

    def describe_grown(self, relations: Iterable[Relation]) -> None:
        """The same, where no others have changed since."""
        for relation in relations:
            for index in self._uses.get(relation, ()):
                if index.described != relation.count:
                    relation.describe(index)
        self._time = self._plans.time

    def growth(self) -> Numbers:
        """What compiled code needs to give rows to facts; see `kernels_updates`."""
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

    def _number(self, name: str, holder: int) -> None:
        """Give a relation the next number."""
        self.numbers[name] = len(self.names)
        self.names.append(name)
        self._holders.append(holder)
        relation = self._plans.relations[name]
        self._use(relation.primary, relation)
        self._sizes[relation] = relation.count + 16

    def _use(self, index: Index, relation: Relation) -> None:
        """Have an index up to date from now on."""
        if index not in self._uses.setdefault(relation, {}):
            relation.unite_runs(index)
            self._uses[relation][index] = None
        self._time = -1
        # It has to be known which indexes are kept up to date.
        self._growth = self._growth[0], -1

    def _connect(self, name: str, slot: int, programs: Iterable[Program]) -> None:
        """Have a change of a relation set off programs of a slot."""
        first = len(self.programs)
        for program in programs:
            self.programs.append(program)
            for index, relation in program.uses:
                self._use(index, relation)
        entry = self.numbers[name], first, len(self.programs)
        self._entries.setdefault(slot, []).append(entry)

    def _lay_out(self, slots: int, recursive: list[int]) -> None:
        """Put it all in arrays."""
        known = self._plans.relations
        relations = [known[name] for name in self.names]
        self.numbered = Numbered.of(relations)
        addresses = [relation.address for relation in relations]
        entries = [self._entries.get(slot, []) for slot in range(slots)]
        every = [entry for some in entries for entry in some]
        programs = [
            (program.address, self.numbers[program.target]) for program in self.programs
        ]
        self.work = np.zeros((len(programs), 2), np.int64)
        self.arrays = (
            np.array(addresses, np.int64),
            np.array(self._holders, np.int64),
            np.cumsum([0, *map(len, entries)], dtype=np.int64),
            np.array(every, np.int64).reshape(-1, 3),
            np.array(programs, np.int64).reshape(-1, 2),
            self.work,
            np.array(recursive, np.int64),
        )


class Wiring(Wires):
    """What the relations that updates have reached so far set off.

    Args:
        strata: the rules.
        plans: plans and programs of queries.
        proofs: whether facts are proved, where derivations are not counted.
    """

    def __init__(self, strata: CountedStrata, plans: Plans, *, proofs: bool) -> None:
        super().__init__(plans)
        self.strata = strata
        self._proofs = proofs
        self._barred: set[str] = set()
        """Relations whose change reaches rules that have no program."""
        self._lay_out_strata()

    def reach(self, names: Iterable[str]) -> bool:
        """Have numbers for relations and all that a change of them can reach.

        Returns:
            Whether all rules that it reaches have programs.
        """
        for name in names:
            if name in self.numbers:
                continue
            found = None if name in self._barred else self._reached(name)
            if found is None:
                self._barred.add(name)
                return False
            self._add(found)
        return True

    def describe(self) -> None:
        """Have all numbers up to date: layouts of relations and indexes, too."""
        if self.arrays[0].size < len(self.names):
            self._lay_out_strata()
        super().describe()

    def raised(self) -> list[Relation]:
        """The relations that want to know whose counts were raised."""
        return [relation for relation in self._sizes if relation.raised]

    # -- what a change reaches

    def _reached(self, name: str) -> Reached | None:
        """What a change of a relation reaches.

        None if some queries have no program, or derive a part of a relation only.
        """
        found: Reached = {}
        waiting = [name]
        while waiting:
            here = waiting.pop()
            if here in found or here in self.numbers:
                continue
            if here in self._barred or not self._is_whole(here):
                return None
            found[here] = []
            if any(each.modules for each in self._strata_of(here)):
                return None
            provers = self._provers(here) if self._proofs else ()
            for slot, query in chain(self._readers(here), provers):
                program = self._plans.program(query)
                if program is None:
                    return None
                found[here].append((slot, program))
                waiting.append(query.head.relation)
        return found

    def _is_whole(self, name: str) -> bool:
        """Whether facts of a relation are derived by one stratum at most."""
        positions = self.strata.holders.get(name, ())
        if not positions:
            return True
        stratum = self.strata.strata[positions[0]]
        return len(positions) == 1 and name in stratum.region.relations

    def _strata_of(self, name: str) -> Iterator[CountedStratum]:
        """The strata that read a relation, or derive it."""
        strata = self.strata
        for positions in (strata.readers.get(name, ()), strata.holders.get(name, ())):
            for position in positions:
                yield strata.strata[position]

    def _readers(self, name: str) -> Iterator[tuple[int, Query]]:
        for position in self.strata.readers.get(name, ()):
            stratum = self.strata.strata[position]
            for which in (NONRECURSIVE, RECURSIVE):
                rules = stratum.recursive if which else stratum.nonrecursive
                by_change = rules.delta.by_change
                for sign, role in enumerate(SIGNS):
                    slot = _slot(position, which) + sign
                    for query in by_change.get((role, name), ()):
                        yield slot, query

    def _provers(self, name: str) -> Iterator[tuple[int, Query]]:
        """Queries that look for proofs of facts of a relation."""
        change = Role.CHANGED, name
        for position in self.strata.holders.get(name, ()):
            stratum = self.strata.strata[position]
            for query in stratum.nonrecursive.rederive.by_change.get(change, ()):
                yield _slot(position, REDERIVE), query
            for query in stratum.recursive.backward.by_change.get(change, ()):
                yield _slot(position, BACKWARD), query

    def _add(self, found: Reached) -> None:
        relations = self._plans.relations
        for name in found:
            positions = self.strata.holders.get(name, ())
            self._number(name, positions[0] + 1 if positions else 0)
        for name, readers in found.items():
            for slot, some in groupby(readers, key=itemgetter(0)):
                programs = [program for _, program in some]
                self._connect(name, slot, programs)
                if not self._proofs:
                    for program in programs:
                        relations[program.target].counter(slot // 2 % SORTS)

    def _lay_out_strata(self) -> None:
        strata = self.strata.strata
        recursive = [0, *(bool(each.recursive.rules) for each in strata)]
        self._lay_out(_slot(len(strata), NONRECURSIVE), recursive)


def _growth_of(relation: Relation) -> tuple[int, int, int]:
    """What the rows of a relation are given by, and how many it knows of."""
    count, other = relation.growth
    return count, other, count


def _slot(position: int, sort: int) -> int:
    """Where the entries of a stratum are for changes that a sort of queries reads."""
    return 2 * (SORTS * (position + 1) + sort)
