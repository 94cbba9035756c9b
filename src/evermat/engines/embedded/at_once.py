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
from evermat.engines.embedded.heads import Heads, find_or_append
from evermat.engines.embedded.kernels_programs import TOO_MUCH, find_facts, run_programs
from evermat.engines.embedded.programs import ROLES, fact_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from evermat.algebra import Facts, Query, QuerySet, Views
    from evermat.engines.embedded.arrays import Flags, Ids, Rows
    from evermat.engines.embedded.plans import Plans
    from evermat.engines.embedded.programs import Program
    from evermat.engines.embedded.relation import Relation
    from evermat.engines.embedded.sets import Code, Settled, Sets

    from evermat.engines.embedded.layout import Numbers

    Line = tuple[int, int, int, int]

MOST_CHANGED = 1 << 13
"""Up to this many changed rows, queries are run at once."""

MOST_FOUND = 1 << 16
"""How many derivations there is room for."""

MOST_FACTS = MOST_FOUND // 2
"""How many ids of facts, one more for each fact, can be looked up in one call."""

PATIENCE = 1 << 20
"""How many rows may be looked at."""

Derived = dict[str, tuple["Rows", "Rows"]]
"""For each relation rows, and how often each was derived."""


@dataclass(slots=True)
class Work:
    """Programs to run, and what they read.

    Attributes:
        programs: in the order of the jobs.
        jobs, changed: lines of numbers for the kernel.
        rows: changed rows of one relation after the other.
        targets: the relations that are derived, and their numbers.
        rest: queries without a program.
        matches: of each program, when it has run.
    """

    programs: list[Program] = field(default_factory=list)
    jobs: list[Line] = field(default_factory=list)
    changed: list[Line] = field(default_factory=list)
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
        self._visible: dict[tuple[Code | None, ...], Flags] = {}

    def run(
        self, queries: QuerySet, views: Views, sets: Sets
    ) -> tuple[Derived, Work] | None:
        """What queries derive, and the work that it was.

        None if all of them are to be run in the other way.
        """
        deltas = _deltas(views)
        if not 0 < sum(delta.size() for _, delta in deltas) <= MOST_CHANGED:
            return None
        codes = [
            None if facts is None else sets.common_code(facts)
            for facts in (views.positive, views.negative, views.local)
        ]
        if codes[0] is None or codes[1] is None:
            return None
        if codes[2] is None and views.local is not None:
            return None
        bits = [sets.take_bit() for _ in deltas]
        try:
            work = self._work(queries, deltas, bits)
            if not work.jobs:
                return {}, work
            by_role = {role: bit for (role, _), bit in zip(deltas, bits, strict=True)}
            visible = self._table(codes, by_role, sets)
            return self._carry_out(work, visible)
        finally:
            for bit in reversed(bits):
                sets.give_back(bit)

    def _work(
        self, queries: QuerySet, deltas: list[tuple[Role, Settled]], bits: list[int]
    ) -> Work:
        work = Work(rest=list(queries.by_change.get(None, ())))
        place = 0
        relations = self._plans.relations
        for (role, delta), bit in zip(deltas, bits, strict=True):
            for name, rows in delta.rows.items():
                end = place + rows.size
                work.rows.append(rows)
                for query in queries.by_change.get((role, name), ()):
                    program = self._plans.program(query)
                    if program is None:
                        work.rest.append(query)
                        continue
                    number = work.targets.setdefault(program.target, len(work.targets))
                    work.programs.append(program)
                    work.jobs.append((program.address, place, end, number))
                address = relations[name].require_layout()
                work.changed.append((address, place, end, bit))
                place = end
        return work

    def _table(
        self, codes: list[Code | None], bits: dict[Role, int], sets: Sets
    ) -> Flags:
        """For each status the roles that may see it."""
        positive, negative, local = codes
        changed = bits.get(Role.CHANGED, 0)
        absent = bits.get(Role.CHANGED_ABSENT, 0)
        key = (positive, negative, local, changed, absent)
        table = self._visible.get(key)
        if table is None:
            own = positive if local is None else local
            by_role: dict[tuple[Role, bool], Code] = {
                (Role.ALL, False): positive,
                (Role.UNCHANGED, False): ("-", positive, changed),
                (Role.ABSENT, False): negative,
                (Role.ABSENT_BEFORE, False): ("|", negative, absent),
                (Role.ALL, True): own,
                (Role.UNCHANGED, True): ("-", own, changed),
            }
            table = self._visible[key] = np.zeros(1 << 16, np.uint8)
            for role, code in by_role.items():
                table |= sets.visible(code) * np.uint8(ROLES[role])
        return table

    def _carry_out(
        self, work: Work, visible: Flags
    ) -> tuple[Derived, Work] | None:
        matches = np.empty(len(work.jobs), np.int64)
        ends = np.empty(len(work.targets) + 1, np.int64)
        size = run_programs(
            np.array(work.jobs, np.int64),
            np.array(work.changed, np.int64),
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
        derived = self._found_rows(size, names, ends)
        self._add_fresh(ends, names, derived)
        return derived, work

    def find(
        self, tables: Mapping[str, pa.Table], ids: Ids, *, add: bool
    ) -> dict[str, Rows]:
        """The sorted distinct rows of facts.

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
        derived = self._found_rows(size, names, ends)
        if add:
            self._add_fresh(ends, names, derived)
        return {name: rows for name, (rows, _) in derived.items()}

    def _found_rows(self, size: int, names: list[str], ends: Numbers) -> Derived:
        rows = self._found[:size].astype(np.uint32).view(np.int32)
        counts = self._counts[:size].copy()
        derived: Derived = {}
        place = 0
        for name, end in zip(names, ends[:-1].tolist(), strict=True):
            if end > place:
                derived[name] = (rows[place:end], counts[place:end])
                place = end
        return derived

    def _add_fresh(self, ends: Numbers, names: list[str], derived: Derived) -> None:
        """Give rows to facts that have none."""
        written = int(ends[-1])
        if not written:
            return
        relations = self._plans.relations
        fresh = self._fresh[:written]
        place = 0
        tables: dict[str, list[Ids]] = {}
        while place < written:
            name = names[fresh[place]]
            end = place + 1 + relations[name].arity
            tables.setdefault(name, []).append(fresh[place + 1 : end])
            place = end
        for name, facts in tables.items():
            derived[name] = joined(
                derived.get(name), _new_rows(relations[name], np.stack(facts, axis=1))
            )


def _new_rows(relation: Relation, table: Ids) -> tuple[Rows, Rows]:
    heads = Heads(relation.arity)
    heads.add_columns(list(table), table.shape[1])
    counted = heads.counted()
    assert counted is not None
    return find_or_append(relation, counted), counted.counts


def _deltas(views: Views) -> list[tuple[Role, Settled]]:
    both = (
        (Role.CHANGED, views.delta_positive),
        (Role.CHANGED_ABSENT, views.delta_negative),
    )
    return [
        (role, cast("Settled", delta)) for role, delta in both if delta is not None
    ]


def joined(
    one: tuple[Rows, Rows] | None, other: tuple[Rows, Rows]
) -> tuple[Rows, Rows]:
    """Both lots of rows with their counts, where a row can be in both."""
    if one is None:
        return other
    rows, places = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    counts = np.bincount(places, np.concatenate([one[1], other[1]]))
    return rows, counts.astype(np.int32)
