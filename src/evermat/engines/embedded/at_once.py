"""Runs the queries of a round at once, where little has changed.

Queries are otherwise run one after the other, a step at a time for many bindings. For a
few hundred of them, what surrounds the compiled loops takes far longer than the loops
do. So here all queries that have a program are run by one call, which also finds the
rows of what they derive and counts it.

A change that looks small may have large consequences: then the call gives up, nothing
has happened, and the queries are run in the other way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np

from evermat.algebra import Role
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.flat import Flat
from evermat.engines.embedded.heads import Heads, find_or_append
from evermat.engines.embedded.kernels_programs import TOO_MUCH, find_facts, run_programs
from evermat.engines.embedded.programs import ROLES, fact_line
from evermat.engines.embedded.sets import Marker
from evermat.engines.embedded.settled import RowCounts

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from evermat.algebra import Query, QuerySet, Views
    from evermat.engines.embedded.arrays import Flags, Ids, Rows
    from evermat.engines.embedded.layout import Numbers
    from evermat.engines.embedded.plans import Plans
    from evermat.engines.embedded.programs import Program
    from evermat.engines.embedded.relation import Relation
    from evermat.engines.embedded.sets import Code, Sets
    from evermat.engines.embedded.settled import Derived, Settled

    Line = tuple[int, int, int, int]

MOST_CHANGED = 1 << 13
"""Up to this many changed rows, queries of an update are run at once."""

MOST_FROM_SCRATCH = 0
"""The same for a materialisation from scratch: there, little is found in a round only
after much was, and all that was described would be described anew."""

MOST_FOUND = 1 << 16
"""How many derivations there is room for."""

MOST_FACTS = MOST_FOUND // 2
"""How many ids of facts, one more for each fact, can be looked up in one call."""

PATIENCE = 1 << 20
"""How many rows may be looked at."""


@dataclass(slots=True)
class Work:
    """Programs to run, and what they read.

    Attributes:
        programs: in the order of the jobs.
        jobs: lines of numbers for the kernel.
        rows: changed rows of one relation after the other.
        targets: the relations that are derived, and their numbers.
        rest: queries without a program.
        matches: of each program, when it has run.
    """

    programs: list[Program] = field(default_factory=list)
    jobs: list[Line] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)
    targets: dict[str, int] = field(default_factory=dict)
    rest: list[Query] = field(default_factory=list)
    matches: list[int] = field(default_factory=list)


class AtOnce:
    """Runs what has a program; what it derives has room that is used again."""

    def __init__(self, plans: Plans) -> None:
        self._plans = plans
        self._found = np.empty(MOST_FOUND, np.uint64)
        self._spare = np.empty(MOST_FOUND, np.uint64)
        self._counts = np.empty(MOST_FOUND, np.int32)
        self._fresh: Ids = np.empty(MOST_FOUND, np.uint32)
        self._visible: dict[tuple[Code, ...], Flags] = {}

    def run(
        self, queries: QuerySet, views: Views, sets: Sets, *, from_scratch: bool
    ) -> tuple[RowCounts, Work] | None:
        """What queries derive, and the work that it was.

        None if all of them are to be run in the other way.
        """
        most = MOST_FROM_SCRATCH if from_scratch else MOST_CHANGED
        deltas = _deltas(views)
        if sum(delta.size() for _, delta in deltas) > most:
            return None
        work = self._work(queries, deltas)
        if not work.jobs:
            return RowCounts({}), work
        positive, negative = (
            sets.common_code(facts) for facts in (views.positive, views.negative)
        )
        local = positive if views.local is None else sets.common_code(views.local)
        if positive is None or negative is None or local is None:
            return None
        codes = (positive, negative, local)
        bits = {}
        with Marker(sets) as marker:
            if any(program.reads_unchanged for program in work.programs):
                for role, delta in deltas:
                    bits[role] = marker.bit_everywhere(delta)
            return self._carry_out(work, self._table(codes, bits, sets))

    def _work(self, queries: QuerySet, deltas: list[tuple[Role, Settled]]) -> Work:
        by_change = queries.by_change
        work = Work(rest=list(by_change.get(None, ())))
        place = 0
        for role, delta in deltas:
            read = queries.changes.get(role)
            if read is None or read.isdisjoint(delta.names()):
                continue
            for name in delta.rows.keys() & read:
                rows = delta.rows[name]
                end = place + rows.size
                work.rows.append(rows)
                for query in by_change[role, name]:
                    program = self._plans.program(query)
                    if program is None:
                        work.rest.append(query)
                        continue
                    number = work.targets.setdefault(program.target, len(work.targets))
                    work.programs.append(program)
                    work.jobs.append((program.address, place, end, number))
                place = end
        return work

    def _table(
        self, codes: tuple[Code, Code, Code], bits: dict[Role, int], sets: Sets
    ) -> Flags:
        """For each status the roles that may see it."""
        positive, negative, local = codes
        changed = bits.get(Role.CHANGED, 0)
        absent = bits.get(Role.CHANGED_ABSENT, 0)
        key = (positive, negative, local, changed, absent)
        table = self._visible.get(key)
        if table is None:
            by_role: dict[tuple[Role, bool], Code] = {
                (Role.ALL, False): positive,
                (Role.UNCHANGED, False): ("-", positive, changed),
                (Role.ABSENT, False): negative,
                (Role.ABSENT_BEFORE, False): ("|", negative, absent),
                (Role.ALL, True): local,
                (Role.UNCHANGED, True): ("-", local, changed),
            }
            table = self._visible[key] = np.zeros(1 << 16, np.uint8)
            for role, code in by_role.items():
                table |= sets.visible(code) * np.uint8(ROLES[role])
        return table

    def _carry_out(self, work: Work, visible: Flags) -> tuple[RowCounts, Work] | None:
        matches = np.empty(len(work.jobs), np.int64)
        ends = np.empty(len(work.targets) + 1, np.int64)
        size = run_programs(
            np.array(work.jobs, np.int64),
            work.rows[0] if len(work.rows) == 1 else np.concatenate(work.rows),
            visible,
            self._found,
            self._spare,
            self._counts,
            self._fresh,
            matches,
            ends,
            PATIENCE,
        )
        if size == TOO_MUCH:
            return None
        work.matches = matches.tolist()
        names = list(work.targets)
        found = self._counted(size, names, ends)
        return self._with_fresh(found, ends, names), work

    def find(self, tables: Mapping[str, pa.Table], ids: Ids, *, add: bool) -> Settled:
        """The rows of facts.

        Args:
            tables: facts by relation.
            ids: those of the first relation by column, then those of the next one.
            add: whether facts that have no row get one.
        """
        lines = []
        place = 0
        for name, table in tables.items():
            relation = self._plans.relations[name]
            lines.append(fact_line(relation, table.num_rows, place))
            place += relation.arity * table.num_rows
        ends = np.empty(len(lines) + 1, np.int64)
        size = find_facts(
            np.array(lines, np.int64),
            ids,
            self._found,
            self._spare,
            self._counts,
            self._fresh,
            ends,
        )
        names = list(tables)
        found = self._counted(size, names, ends)
        return (self._with_fresh(found, ends, names) if add else found).facts

    def _counted(self, size: int, names: list[str], ends: Numbers) -> RowCounts:
        """What was found by the last call."""
        rows = self._found[:size].astype(np.uint32).view(np.int32)
        relations = self._plans.relations
        found, lines = [], []
        place = 0
        for name, end in zip(names, ends[:-1].tolist(), strict=True):
            if end > place:
                found.append(name)
                lines.append((relations[name].address, place, end))
                place = end
        if not found:
            return RowCounts({})
        flat = Flat(found, rows, np.array(lines, np.int64))
        return RowCounts((flat, self._counts[:size].copy()))

    def _with_fresh(
        self, found: RowCounts, ends: Numbers, names: list[str]
    ) -> RowCounts:
        """What was found, and rows for facts that had none."""
        written = int(ends[-1])
        if not written:
            return found
        relations = self._plans.relations
        fresh = self._fresh[:written]
        place = 0
        tables: dict[str, list[Ids]] = {}
        while place < written:
            name = names[fresh[place]]
            end = place + 1 + relations[name].arity
            tables.setdefault(name, []).append(fresh[place + 1 : end])
            place = end
        more = {
            name: _new_rows(relations[name], np.stack(facts, axis=1))
            for name, facts in tables.items()
        }
        return joined(found, more)


def _new_rows(relation: Relation, table: Ids) -> tuple[Rows, Rows]:
    heads = Heads(relation.arity)
    heads.add_columns(list(table), table.shape[1])
    counted = heads.counted()
    if counted is None:
        return NO_ROWS, NO_ROWS
    return find_or_append(relation, counted), counted.counts


def _deltas(views: Views) -> list[tuple[Role, Settled]]:
    both = (
        (Role.CHANGED, views.delta_positive),
        (Role.CHANGED_ABSENT, views.delta_negative),
    )
    return [(role, cast("Settled", delta)) for role, delta in both if delta is not None]


def joined(found: RowCounts, more: Derived) -> RowCounts:
    """Both together; a row can be in both."""
    both = dict(found.by_name)
    for name, counted in more.items():
        both[name] = _summed(both[name], counted) if name in both else counted
    return RowCounts(both)


def _summed(one: tuple[Rows, Rows], other: tuple[Rows, Rows]) -> tuple[Rows, Rows]:
    rows, places = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    counts = np.bincount(places, np.concatenate([one[1], other[1]]))
    return rows, counts.astype(np.int32)
