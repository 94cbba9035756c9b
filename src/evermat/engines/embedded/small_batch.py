"""Runs all queries of a small round in one call of compiled code.

Queries are otherwise run one after the other, step by step, for many bindings. For a
few hundred bindings, the overhead around the compiled loops far exceeds the loops. So
all queries that have a program are run by one call, which also finds the rows of
derived facts and counts them.

A small change may have large consequences: then the call exceeds its cost limit and has
no effect, and the queries are run in batches as a fallback.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np

from evermat.algebra import Role
from evermat.engines.embedded.arrays import NO_FLAGS, NO_ROWS
from evermat.engines.embedded.bytecode import ROLES, fact_line
from evermat.engines.embedded.dedup import Numbered, give_rows
from evermat.engines.embedded.fact_sets import NOTHING, Marker, RowCounts, Settled
from evermat.engines.embedded.kernels.instructions import MOST_SLOTS
from evermat.engines.embedded.kernels.interpreter import (
    MATCHED,
    TOO_MUCH,
    find_facts,
    run_programs,
)
from evermat.engines.embedded.views import mark_visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from evermat.algebra import Query, QuerySet, Views
    from evermat.engines.embedded.arrays import Flags, Ids, Rows
    from evermat.engines.embedded.bytecode import Program
    from evermat.engines.embedded.fact_sets import Derived
    from evermat.engines.embedded.kernels.layout import Numbers
    from evermat.engines.embedded.rules import Plans
    from evermat.engines.embedded.views import Code, Sets

    Line = tuple[int, int, int, int]

MOST_CHANGED = 1 << 15
"""Up to this many changed rows, the queries of an update are run at once."""

MOST_FROM_SCRATCH = 0
"""The same for materialisation from scratch: there, small rounds follow large ones, and
all layouts would have to be described again.
"""

MOST_FOUND = 1 << 16
"""Capacity for derivations."""

MOST_FACTS = MOST_FOUND // 2
"""Largest number of ids to look up in one call, plus one for each fact."""

COST_LIMIT = 1 << 20
"""Cost limit of a call, in rows."""

FIRST: Rows = np.zeros(1, np.int32)
"""The only row of a relation."""

SHARES = 16
"""With fewer queries there is less to gain, so the limits are lower: each query adds
one in this many of the derivations and rows.
"""

LEAST_SHARES = 4
"""Smallest number of such shares, however few queries there are."""


@dataclass(slots=True)
class Work:
    """Programs to run, and their input.

    Attributes:
        programs: in the order of the jobs.
        jobs: lines of numbers for the kernel.
        rows: changed rows, in lots; the rows that a relation has gained and lost are
            two lots.
        size: the number of rows.
        names: the relation of each lot.
        targets: the head relations, and their numbers.
        rest: queries without a program.
        matches: the number of matches of each program, after the run.
    """

    programs: list[Program] = field(default_factory=list)
    jobs: list[Line] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    size: int = 0
    targets: dict[str, int] = field(default_factory=dict)
    rest: list[Query] = field(default_factory=list)
    matches: list[int] = field(default_factory=list)

    def add(self, name: str, rows: Rows) -> tuple[int, int]:
        """Add changed rows of a relation; return their range."""
        low, high = self.size, self.size + rows.size
        self.names.append(name)
        self.rows.append(rows)
        self.size = high
        return low, high

    def matches_by_label(self) -> Iterator[tuple[str, int]]:
        """Yield the queries that had matches, and how many."""
        for program, matches in zip(self.programs, self.matches, strict=False):
            if matches:
                yield program.label, matches


class AtOnce:
    """Runs programs in one call, with reused output buffers."""

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
        """Return the facts that queries derive, and the work done.

        None as a fallback: run all queries in batches.
        """
        most = MOST_FROM_SCRATCH if from_scratch else MOST_CHANGED
        work = self._work(queries, views, most)
        if work is None:
            return None
        if not work.jobs:
            return RowCounts(NOTHING, NO_ROWS), work
        ends = self._carry_out(work, views, sets, NO_FLAGS)
        if ends is None:
            return None
        names = list(work.targets)
        found = self._counted(names, ends)
        return self._with_fresh(found, ends, names), work

    def prove(
        self, queries: QuerySet, views: Views, sets: Sets
    ) -> tuple[Settled, Work] | None:
        """Return those of the changed facts that a query derives, and the work done.

        None as a fallback: run the queries in batches.
        """
        work = self._work(queries, views, MOST_CHANGED)
        if work is None or work.rest:
            return None
        proved = np.zeros(work.size, np.uint8)
        if work.jobs and self._carry_out(work, views, sets, proved) is None:
            return None
        place = 0
        found = {}
        for name, rows in zip(work.names, work.rows, strict=True):
            end = place + rows.size
            found[name] = rows[proved[place:end].view(np.bool_)]
            place = end
        return Settled(found), work

    def answer(
        self, program: Program, views: Views, sets: Sets
    ) -> tuple[Ids, Work] | None:
        """Return the heads that a program finds, by column, and the work done.

        There may be duplicates.

        None if a limit is exceeded. The relation of the heads
        has no rows.
        """
        work = Work([program], [(program.address, 0, 1, 0)], [FIRST], [program.target])
        work.targets[program.target] = 0
        ends = self._carry_out(work, views, sets, NO_FLAGS)
        if ends is None:
            return None
        lines = self._fresh[: int(ends[-1])].reshape(-1, 1 + program.arity)
        return lines[:, 1:].T.copy(), work

    def _work(self, queries: QuerySet, views: Views, most: int) -> Work | None:
        """Return the programs to run; None if there are more than `most` changes."""
        deltas = _deltas(views)
        if sum(delta.size() for _, delta in deltas) > most:
            return None
        by_change = queries.by_change
        work = Work(rest=list(by_change.get(None, ())))
        for role, delta in deltas:
            read = queries.changes.get(role)
            if read is None or read.isdisjoint(delta.names):
                continue
            for name in delta.rows.keys() & read:
                low, high = work.add(name, delta.rows[name])
                for query in by_change[role, name]:
                    program = self._plans.program(query)
                    if program is None:
                        work.rest.append(query)
                        continue
                    number = work.targets.setdefault(program.target, len(work.targets))
                    work.programs.append(program)
                    work.jobs.append((program.address, low, high, number))
        return work

    def table(
        self,
        positive: Code,
        negative: Code,
        changed: int,
        absent: int,
        local: Code | None = None,
    ) -> Flags:
        """Return for each status the roles that can see it.

        Args:
            positive: the view of positive patterns.
            negative: the view of negative patterns.
            changed: the bit of the facts of a positive change.
            absent: the bit of the facts of a negative change.
            local: the view of positive local patterns, if it is different.
        """
        local = positive if local is None else local
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
            numbers = {ROLES[role]: code for role, code in by_role.items()}
            table = self._visible[key] = mark_visible(numbers)
        return table

    def _carry_out(
        self, work: Work, views: Views, sets: Sets, proved: Flags
    ) -> Numbers | None:
        """Run programs; return the end of each relation's results.

        None if a limit is exceeded, or if status bits do not decide the views.
        """
        done = np.empty((len(work.jobs), 2), np.int64)
        ends = np.empty(len(work.targets) + 1, np.int64)
        shares = min(max(len(work.jobs), LEAST_SHARES), SHARES)
        room = MOST_FOUND * shares // SHARES
        bits = {}
        with Marker(sets) as marker:
            codes = _codes(views, sets, marker)
            if codes is None:
                return None
            positive, negative, local = codes
            if any(program.reads_unchanged for program in work.programs):
                for role, delta in _deltas(views):
                    bits[role] = marker.bit(delta)
            size = run_programs(
                np.array(work.jobs, np.int64),
                np.concatenate(work.rows),
                self.table(
                    positive,
                    negative,
                    bits.get(Role.CHANGED, 0),
                    bits.get(Role.CHANGED_ABSENT, 0),
                    local,
                ),
                proved,
                self._found[:room],
                self._spare,
                self._counts,
                self._fresh[:room],
                done,
                ends,
                COST_LIMIT * shares // SHARES,
            )
        if size == TOO_MUCH:
            return None
        work.matches = done[:, MATCHED].tolist()
        for program, searches in zip(
            work.programs, done.sum(axis=1).tolist(), strict=True
        ):
            program.note_searches(searches)
        return ends

    def can_find(self, tables: Mapping[str, pa.Table]) -> bool:
        """Return whether the facts are few enough to look up in one call."""
        widest = ids = 0
        for table in tables.values():
            arity = table.num_columns
            widest = max(widest, arity)
            ids += table.num_rows * (arity + 1)
        room = min(MOST_FACTS, self._found.size)
        return 0 < widest <= MOST_SLOTS and ids <= room

    def find(self, tables: Mapping[str, pa.Table], ids: Ids, *, add: bool) -> Settled:
        """Return the rows of facts; check `can_find` first.

        Args:
            tables: facts by relation.
            ids: the ids of the first relation by column, then those of the next one.
            add: whether to append rows for facts that have none.
        """
        relations = self._plans.relations
        lines = []
        place = 0
        for name, table in tables.items():
            relation = relations[name]
            lines.append(fact_line(relation, table.num_rows, place))
            place += relation.arity * table.num_rows
        ends = np.empty(len(lines) + 1, np.int64)
        find_facts(
            np.array(lines, np.int64),
            ids,
            self._found,
            self._spare,
            self._counts,
            self._fresh,
            ends,
        )
        names = list(tables)
        if add and ends[-1]:
            found = self._counted(names, ends)
            return self._with_fresh(found, ends, names).facts
        return self._found_rows(names, ends)

    def _counted(self, names: list[str], ends: Numbers) -> RowCounts:
        """Return the results of the last call, with counts."""
        facts = self._found_rows(names, ends)
        return RowCounts(facts, self._counts[: facts.size()].copy())

    def _found_rows(self, names: list[str], ends: Numbers) -> Settled:
        """Return the results of the last call."""
        size = int(ends[-2])
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
            return NOTHING
        return Settled.of_segments(found, rows, np.array(lines, np.int64))

    def _with_fresh(
        self, found: RowCounts, ends: Numbers, names: list[str]
    ) -> RowCounts:
        """Return the results, with new rows for facts that had none."""
        written = int(ends[-1])
        if not written:
            return found
        numbered = Numbered.of([self._plans.relations[name] for name in names])
        more = {
            names[number]: (rows, counts)
            for number, rows, counts in give_rows(self._fresh[:written], numbered)
        }
        return joined(found, more)


def _codes(views: Views, sets: Sets, marker: Marker) -> tuple[Code, Code, Code] | None:
    """Return the views of patterns as codes over status bits, if possible."""
    positive = sets.common_code(views.positive, marker)
    negative = sets.common_code(views.negative, marker)
    local = positive
    if views.local is not None:
        local = sets.common_code(views.local, marker)
    if positive is None or negative is None or local is None:
        return None
    return positive, negative, local


def _deltas(views: Views) -> list[tuple[Role, Settled]]:
    both = (
        (Role.CHANGED, views.delta_positive),
        (Role.CHANGED_ABSENT, views.delta_negative),
    )
    return [(role, cast("Settled", delta)) for role, delta in both if delta is not None]


def joined(found: RowCounts, more: Derived) -> RowCounts:
    """Return the sum of both; a row can be in both."""
    both = {name: (rows, counts) for name, rows, counts in found.parts()}
    for name, counted in more.items():
        both[name] = _summed(both[name], counted) if name in both else counted
    return RowCounts.of(both)


def _summed(one: tuple[Rows, Rows], other: tuple[Rows, Rows]) -> tuple[Rows, Rows]:
    rows, places = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    counts = np.bincount(places, np.concatenate([one[1], other[1]]))
    return rows, counts.astype(np.int32)
