"""Aggregates: one fact for each group of the facts of a relation.

An engine computes the facts of all groups (`Engine.aggregate`), or the changes of the
groups that a change touches (`Engine.aggregate_changes`). `AggregatesByGroup` defines
both in terms of `answer` and `intern`, and reads all members of the touched groups. An
engine with a faster method must produce the same facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from evermat.algebra.queries import (
    Apply,
    Column,
    EvaluationError,
    InlineRows,
    Pattern,
    Query,
    QuerySet,
    Require,
    Role,
    Views,
)
from evermat.algebra.totals import AGGREGATES
from evermat.columns import as_terms, constants, table_of_rows
from evermat.functions import FunctionError
from evermat.values import integer_constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from evermat.algebra.engine import Monitor
    from evermat.algebra.facts import Facts, SettledFacts
    from evermat.values import Constant

Row = tuple["Constant", ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate: a function applied to each group of the facts of a relation.

    Attributes:
        function: a key of `totals.AGGREGATES`.
        members: the relation to aggregate; each of its facts counts once.
        arity: the number of columns of `members`.
        group: the columns to group by.
        value: the column to aggregate.
        values: the relation of the results: group, value and, for some functions, a
            state that allows incremental updates.
        label: the text of the rule, for messages.
    """

    function: str
    members: str
    arity: int
    group: tuple[int, ...]
    value: int
    values: str
    label: str = ""

    @property
    def has_state(self) -> bool:
        """Whether the facts have a state next to the value."""
        return AGGREGATES[self.function].has_state

    @property
    def result_arity(self) -> int:
        """The number of columns of the results."""
        return len(self.group) + 1 + self.has_state


class Regrouped(NamedTuple):
    """Results that a change removes, and results that it adds."""

    removed: SettledFacts
    added: SettledFacts


class _Answers(Protocol):
    """The methods of an engine that the definition uses."""

    monitor: Monitor | None
    matches: int

    def answer(self, query: Query, views: Views) -> pa.Table:
        """Return the distinct rows that a query yields."""

    def intern(self, relation: str, table: pa.Table) -> SettledFacts:
        """Return the rows as facts."""

    def settle(self, facts: Facts) -> SettledFacts:
        """Evaluate a view."""

    def no_facts(self) -> SettledFacts:
        """Return the empty set."""


class AggregatesByGroup:
    """The definition of the aggregate operators, for engines to inherit."""

    def aggregate(
        self: _Answers, aggregates: Sequence[Aggregate], facts: Facts
    ) -> SettledFacts:
        """Return the results for all groups."""
        return union_of(self, [results_of(self, each, facts) for each in aggregates])

    def aggregate_again(
        self: _Answers,
        aggregates: Sequence[Aggregate],
        results: SettledFacts,
        facts: Facts,
    ) -> SettledFacts:
        """Return the results for the groups of some earlier results."""
        views = Views(facts, facts, results)
        found = []
        for each in aggregates:
            groups = set(_read(self, _groups(each), views))
            if groups:
                found.append(results_of(self, each, facts, groups))
        return union_of(self, found)

    def aggregate_changes(
        self: _Answers,
        aggregates: Sequence[Aggregate],
        changes: Sequence[SettledFacts],
        before: Facts,
        after: Facts,
    ) -> Regrouped:
        """Return the results that a change removes and adds."""
        old, new = [], []
        for each in aggregates:
            groups: set[Row] = set()
            for facts in changes:
                if each.members in facts.relations():
                    views = Views(before, before, facts)
                    groups.update(_read(self, _touched(each), views))
            if groups:
                new.append(results_of(self, each, after, groups))
                known = stored_results(self, each, before, groups)
                table = table_of_rows(known, each.result_arity)
                old.append(self.intern(each.values, table))
        removed, added = union_of(self, old), union_of(self, new)
        return Regrouped(self.settle(removed - added), self.settle(added - removed))


def union_of(engine: _Answers, sets: Iterable[SettledFacts]) -> SettledFacts:
    """Return the union of several sets."""
    total: Facts | None = None
    for facts in sets:
        total = facts if total is None else total | facts
    return engine.no_facts() if total is None else engine.settle(total)


def results_of(
    engine: _Answers,
    aggregate: Aggregate,
    facts: Facts,
    groups: Iterable[Row] | None = None,
) -> SettledFacts:
    """Return the results for all groups of members in a view, or for some groups."""
    members = _read(engine, _members(aggregate, groups), Views(facts, facts))
    table = _results(engine, aggregate, members)
    return engine.intern(aggregate.values, table)


def stored_results(
    engine: _Answers, aggregate: Aggregate, facts: Facts, groups: Iterable[Row]
) -> list[Row]:
    """Return the results in a view that some groups have."""
    return _read(engine, _known(aggregate, groups), Views(facts, facts))


def changed_members(
    engine: _Answers, aggregate: Aggregate, facts: SettledFacts
) -> list[Row]:
    """Return the members among some facts."""
    if aggregate.members not in facts.relations():
        return []
    columns = tuple(Column(at) for at in range(aggregate.arity))
    pattern = Pattern(aggregate.members, columns, Role.CHANGED)
    head = Pattern(aggregate.members, columns)
    query = Query(head, (pattern,), column_count=aggregate.arity, label=aggregate.label)
    return _read(engine, query, Views(facts, facts, facts))


def _read(engine: _Answers, query: Query, views: Views) -> list[Row]:
    table = engine.answer(query, views)
    return rows_of_table(table)


def rows_of_table(table: pa.Table) -> list[Row]:
    """Return the rows of a table of terms."""
    if not table.num_columns:
        return [()] * table.num_rows
    columns = [constants(as_terms(column)) for column in table.columns]
    return list(zip(*columns, strict=True))


def _members(aggregate: Aggregate, groups: Iterable[Row] | None = None) -> Query:
    """Build a query for the members, all of them or those of some groups."""
    columns = tuple(Column(at) for at in range(aggregate.arity))
    pattern = Pattern(aggregate.members, columns)
    inline = _inline([columns[at] for at in aggregate.group], groups)
    return Query(
        pattern,
        (pattern,),
        inline=inline,
        column_count=aggregate.arity,
        label=aggregate.label,
    )


def _touched(aggregate: Aggregate) -> Query:
    """Build a query for the groups of changed members."""
    columns = tuple(Column(at) for at in range(aggregate.arity))
    head = Pattern(aggregate.values, tuple(columns[at] for at in aggregate.group))
    changed = Pattern(aggregate.members, columns, Role.CHANGED)
    return Query(head, (changed,), column_count=aggregate.arity, label=aggregate.label)


def _groups(aggregate: Aggregate) -> Query:
    """Build a query for the groups of changed results."""
    columns = tuple(Column(at) for at in range(aggregate.result_arity))
    head = Pattern(aggregate.values, columns[: len(aggregate.group)])
    changed = Pattern(aggregate.values, columns, Role.CHANGED)
    return Query(head, (changed,), column_count=len(columns), label=aggregate.label)


@cache
def supported_results(aggregate: Aggregate) -> QuerySet:
    """Build queries for the results that depend on changed members.

    The least member of a group stays the least when others are deleted; sums and counts
    depend on all members.
    """
    columns = tuple(Column(at) for at in range(aggregate.arity))
    extra = [Column(aggregate.arity + at) for at in range(1 + aggregate.has_state)]
    if aggregate.function in {"min", "max"}:
        extra[0] = columns[aggregate.value]
    operands = (*(columns[at] for at in aggregate.group), *extra)
    query = Query(
        Pattern(aggregate.values, operands),
        (
            Pattern(aggregate.members, columns, Role.CHANGED),
            Pattern(aggregate.values, operands),
        ),
        column_count=aggregate.arity + len(extra),
        label=aggregate.label,
    )
    return QuerySet((query,))


@cache
def negative_members(aggregate: Aggregate) -> Query:
    """Build a query for changed members whose value is negative."""
    columns = tuple(Column(at) for at in range(aggregate.arity))
    zero = integer_constant(0)
    return Query(
        Pattern(aggregate.members, columns),
        (Pattern(aggregate.members, columns, Role.CHANGED),),
        computations=(Require(Apply("<", (columns[aggregate.value], zero))),),
        column_count=aggregate.arity,
        label=aggregate.label,
    )


def _known(aggregate: Aggregate, groups: Iterable[Row]) -> Query:
    """Build a query for the results of some groups."""
    columns = tuple(Column(at) for at in range(aggregate.result_arity))
    pattern = Pattern(aggregate.values, columns)
    inline = _inline(columns[: len(aggregate.group)], groups)
    return Query(
        pattern,
        (pattern,),
        inline=inline,
        column_count=len(columns),
        label=aggregate.label,
    )


def _inline(
    columns: Sequence[Column], groups: Iterable[Row] | None
) -> InlineRows | None:
    if groups is None or not columns:
        return None
    # A column may be grouped by twice: then only rows that agree in it form a group.
    return InlineRows(tuple(columns), tuple(groups))


def _results(
    engine: _Answers, aggregate: Aggregate, members: Iterable[Row]
) -> pa.Table:
    groups: dict[Row, list[Constant]] = {}
    count = 0
    for row in members:
        group = tuple(row[at] for at in aggregate.group)
        groups.setdefault(group, []).append(row[aggregate.value])
        count += 1
    engine.matches += count
    if engine.monitor is not None:
        engine.monitor.working(aggregate.label, count)
    rows = [(*group, *_columns(aggregate, group, v)) for group, v in groups.items()]
    return table_of_rows(rows, aggregate.result_arity)


def _columns(aggregate: Aggregate, group: Row, values: list[Constant]) -> Row:
    try:
        return AGGREGATES[aggregate.function].columns(values)
    except FunctionError as problem:
        raise aggregate_error(aggregate, group, problem.message) from None


def aggregate_error(aggregate: Aggregate, group: Row, reason: str) -> EvaluationError:
    """Return the error for a group without a value, the same on every engine."""
    shown = ", ".join(map(str, group))
    of = f" for the group ({shown})" if group else ""
    return EvaluationError(
        f"cannot compute `{aggregate.function}`{of}: {reason}",
        reason=f"every aggregate of a group with members must have a value: "
        f"{aggregate.label}",
        help="add a condition to the aggregate that keeps such values out",
    )
