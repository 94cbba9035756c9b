"""Translates queries to SQL.

The patterns are joined one after the other, the change first, then connected and small
ones. A side that is known to be small is broadcast. Matches of negative patterns are
removed as soon as their columns are bound, and computations come last. All queries of a
call go into one plan, whose rows are counted by one aggregation.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from evermat.algebra import Apply, Column, Compute, Require
from evermat.engines.spark.blocks import FEW_ROWS, united, width_of
from evermat.engines.spark.dictionary import constant_id
from evermat.engines.spark.expressions import (
    VALUE_TYPE,
    columns_in,
    condition_function,
    small_condition,
    small_value,
    value_function,
)
from evermat.engines.spark.heavy_keys import (
    HeavyKeys,
    Side,
    find_heavy_keys,
    join_apart,
)
from evermat.engines.spark.joins import (
    BROADCAST,
    FEW,
    hint_for_terms,
    join_hint,
    shuffled,
)
from evermat.engines.spark.row_tables import padded_keys
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evermat.algebra import Expression, Operand, Pattern, Query
    from evermat.engines.spark.blocks import Block, Cluster
    from evermat.engines.spark.reading import Reader

LISTED = 64
"""Inline rows up to which they are part of the text of a plan."""
SMALL_CHANGE = 20_000
"""Rows of a change up to which its first join needs no shuffle."""
TERMS_TYPE = f"array<{VALUE_TYPE}>"

_marks = count()
_NOTHING: Mapping[int, Sequence[int]] = MappingProxyType({})


@dataclass(eq=False)
class Knowledge:
    """Data about a query that are kept between calls.

    Attributes:
        mark: its name in messages and functions.
        by_definition: whether it has found other values than small integers.
        inline: the name of the view of its inline rows.
        functions: the names of functions that were registered, by computation.
    """

    mark: str = field(default_factory=lambda: f"q{next(_marks)}")
    by_definition: bool = False
    inline: str | None = None
    functions: dict[int, str] = field(default_factory=dict)

    def give_back(self, cluster: Cluster) -> None:
        """Drop the functions and views of the query."""
        if self.inline is not None:
            cluster.waste.append((self.inline, None))
        for name in self.functions.values():
            cluster.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")


@dataclass(frozen=True, slots=True, eq=False)
class QueryPlan:
    """A query as SQL.

    Attributes:
        sql: yields `tag`, the columns of the head, and `terms` if it creates any.
        steps: descriptions of the steps, one line each.
    """

    sql: str
    width: int
    makes_terms: bool
    blocks: tuple[Block, ...]
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Leaf:
    name: str
    sql: str
    columns: frozenset[int]
    bound: int
    is_change: bool = False
    is_listed: bool = False
    """Whether the rows are part of the text of the plan."""


class Planner:
    """Writes the SQL of one query."""

    def __init__(
        self, cluster: Cluster, reader: Reader, query: Query, knowledge: Knowledge
    ) -> None:
        self._cluster = cluster
        self._reader = reader
        self._query = query
        self._knowledge = knowledge
        self._blocks: list[Block] = []
        self._steps: list[str] = []
        self._bound: set[int] = set()
        self._described: set[int] = set()
        """Columns whose kind and text are available, as `k…` and `t…`."""
        self._made: list[int] = []
        """Columns whose values may be new constants."""
        self._sql = "SELECT 0L AS unit"
        self._estimate = 0
        self._joined: list[_Leaf] = []
        self._listed = listed_ids(query, cluster)

    def plan(self) -> QueryPlan | None:
        """Return the plan, or None if the query certainly has no match."""
        leaves = self._leaves()
        if leaves is None:
            return None
        self._join(leaves)
        waiting = list(self._query.negative)
        waiting = self._reject(waiting)
        for number, step in enumerate(self._query.computations):
            self._compute(number, step)
            waiting = self._reject(waiting)
        head = self._query.head
        width = width_of(len(head.operands))
        tag = self._cluster.tag(head.relation)
        columns = [self._value(operand) for operand in head.operands] or ["0L"]
        names = [f"{tag}L AS tag"]
        names += [f"{value} AS c{at}" for at, value in enumerate(columns)]
        made = [index for index in self._made if Column(index) in head.operands]
        if made:
            names.append(f"{_terms(made)} AS terms")
        return QueryPlan(
            sql=f"SELECT {', '.join(names)} FROM ({self._sql})",  # noqa: S608
            width=width,
            makes_terms=bool(made),
            blocks=tuple(self._blocks),
            steps=tuple(self._steps),
        )

    # ---------------------------------------------------------------------- joins

    def _leaves(self) -> list[_Leaf] | None:
        leaves = []
        for number, pattern in enumerate(self._query.positive):
            source = self._reader.source(pattern)
            if not source.bound:
                return None
            self._blocks += source.rows.blocks
            columns = _columns(pattern)
            where = condition_on(pattern, self._cluster, self._listed)
            names = [f"c{at} AS v{index}" for index, at in columns.items()]
            sql = (
                f"SELECT {', '.join(names) or f'0L AS u{number}'} "  # noqa: S608
                f"FROM ({source.rows.query(len(pattern.operands))}) WHERE {where}"
            )
            leaves.append(
                _Leaf(
                    f"{pattern.relation} ({pattern.role.name.lower()})",
                    sql,
                    frozenset(columns),
                    self._reader.most(pattern, self._listed),
                    pattern is self._query.changed,
                )
            )
        inline = self._query.inline
        if inline is not None:
            if not inline.rows:
                return None
            indexes = frozenset(column.index for column in inline.columns)
            size = len(inline.rows)
            if self._listed:
                leaves.append(_Leaf("inline rows", "", indexes, size, is_listed=True))
            else:
                sql = f"SELECT * FROM {self._inline_view()}"  # noqa: S608
                leaves.append(_Leaf("inline rows", sql, indexes, size))
        return leaves

    def _inline_view(self) -> str:
        knowledge, inline = self._knowledge, self._query.inline
        if knowledge.inline is None and inline is not None:
            columns = [
                pa.array(self._cluster.dictionary.encode_constants(column), pa.int64())
                for column in zip(*inline.rows, strict=True)
            ]
            names = [f"v{column.index}" for column in inline.columns]
            table = pa.table(columns, names=names)
            knowledge.inline = self._cluster.register_table(table)
        return str(knowledge.inline)

    def _join(self, leaves: list[_Leaf]) -> None:
        while leaves:
            leaf = min(leaves, key=self._rank)
            leaves.remove(leaf)
            if not self._bound and not self._steps:
                self._sql, self._estimate = leaf.sql, leaf.bound
                self._steps.append(f"scan {leaf.name}, {leaf.bound:,} rows")
            else:
                self._join_one(leaf)
            self._bound |= leaf.columns
            self._joined.append(leaf)

    def _rank(self, leaf: _Leaf) -> tuple[bool, bool, int]:
        connected = bool(leaf.columns & self._bound)
        if leaf.is_listed:
            # They cost nothing once they are connected, and must not come first.
            return not connected, not connected, -1 if connected else sys.maxsize
        return not leaf.is_change, not connected, leaf.bound

    def _join_one(self, leaf: _Leaf) -> None:
        if leaf.is_listed:
            self._look_up(leaf)
            return
        estimate = self._estimate
        shared = sorted(leaf.columns & self._bound)
        few = bool(shared) and max(leaf.bound, estimate) <= FEW
        if leaf.bound <= BROADCAST and not few:
            hint, how = "/*+ BROADCAST(r) */", "broadcast"
        elif estimate <= SMALL_CHANGE and not few:
            hint, how = "/*+ BROADCAST(l) */", "broadcast what was found"
        elif max(leaf.bound, estimate) <= FEW_ROWS:
            # Spark would shuffle the result of a join, although there is one partition.
            hint = f"/*+ {shuffled(self._cluster, leaf.bound)}(r), COALESCE(1) */"
            how = "shuffle"
        else:
            hint, how = f"/*+ {shuffled(self._cluster, leaf.bound)}(r) */", "shuffle"
        columns = sorted(self._bound | leaf.columns)
        names = ", ".join(f"v{index}" for index in columns) or "0L AS unit"
        heavy = self._heavy_keys(leaf, shared) if how == "shuffle" else HeavyKeys()
        if heavy:
            left, right = f"SELECT * FROM ({self._sql})", leaf.sql  # noqa: S608
            keys = [f"v{index}" for index in shared]
            self._sql = join_apart(left, right, names, keys, heavy, hint)
            how = "shuffle, heavy keys apart"
        elif shared:
            on = f"JOIN ({leaf.sql}) r USING ({', '.join(f'v{i}' for i in shared)})"
            self._sql = f"SELECT {hint} {names} FROM ({self._sql}) l {on}"  # noqa: S608
        else:
            on = f"CROSS JOIN ({leaf.sql}) r"
            self._sql = f"SELECT {hint} {names} FROM ({self._sql}) l {on}"  # noqa: S608
        by = ", ".join(f"?{index}" for index in shared) or "nothing"
        self._steps.append(f"join {leaf.name} on {by}, {leaf.bound:,} rows, {how}")
        # Assume up to ten matches per row, but no more than either side has rows.
        self._estimate = min(estimate * 10, max(estimate, leaf.bound))

    def _look_up(self, leaf: _Leaf) -> None:
        """Join inline rows by a list of cases."""
        shared = sorted(leaf.columns & self._bound)
        added = sorted(leaf.columns - self._bound)
        cases: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for at in range(leaf.bound):
            key, rest = (
                tuple(self._listed[index][at] for index in each)
                for each in (shared, added)
            )
            cases.setdefault(key, []).append(rest)
        names = [f"v{index}" for index in added] or ["unit"]
        whens = []
        for key, rows in cases.items():
            found = " AND ".join(
                f"v{index} = {id_}L" for index, id_ in zip(shared, key, strict=True)
            )
            values = ", ".join(
                "struct(" + ", ".join(f"{id_}L" for id_ in row or (0,)) + ")"
                for row in rows
            )
            whens.append(f"WHEN {found or 'true'} THEN array({values})")
        bound = ", ".join(f"v{index}" for index in sorted(self._bound)) or "0L AS none"
        self._sql = (
            f"SELECT {bound}, {', '.join(names)} FROM ({self._sql}) "  # noqa: S608
            f"LATERAL VIEW inline(CASE {' '.join(whens)} END) AS {', '.join(names)}"
        )
        by = ", ".join(f"?{index}" for index in shared) or "nothing"
        self._steps.append(f"look up {leaf.name} by {by}, {leaf.bound:,} rows")

    def _heavy_keys(self, leaf: _Leaf, shared: list[int]) -> HeavyKeys:
        """Return keys with too many rows for one task, on either side.

        The result so far is not computed for that: a scan that has the keys is sampled.
        """
        known = (each for each in self._joined if each.columns >= set(shared))
        other = next(known, None)
        if not shared or other is None:
            return HeavyKeys()
        return find_heavy_keys(
            self._cluster,
            Side(other.sql, other.bound),
            Side(leaf.sql, leaf.bound),
            [f"v{index}" for index in shared],
        )

    # ------------------------------------------------------------------ negation

    def _reject(self, waiting: list[Pattern]) -> list[Pattern]:
        """Remove matches of negative patterns; return those not bound yet."""
        rest = []
        for pattern in waiting:
            columns = {o.index for o in pattern.operands if isinstance(o, Column)}
            if columns <= self._bound:
                self._reject_one(pattern)
            else:
                rest.append(pattern)
        return rest

    def _reject_one(self, pattern: Pattern) -> None:
        source = self._reader.source(pattern)
        if not source.bound:
            return
        self._blocks += source.rows.blocks
        columns, where = _columns(pattern), condition_on(pattern, self._cluster)
        rows = f"({source.rows.query(len(pattern.operands))}) WHERE {where}"
        if columns:
            names = ", ".join(f"c{at}" for at in columns.values())
            on = " AND ".join(f"l.v{i} = r.c{at}" for i, at in columns.items())
            right = f"SELECT {names} FROM {rows}"  # noqa: S608
        else:
            right, on = f"SELECT 1 AS one FROM {rows} LIMIT 1", "true"  # noqa: S608
        hint = "BROADCAST"
        if columns:
            hint = join_hint(self._cluster, self._estimate, source.bound)
        self._sql = (
            f"SELECT /*+ {hint}(r) */ l.* FROM ({self._sql}) l "  # noqa: S608
            f"LEFT ANTI JOIN ({right}) r ON {on}"
        )
        self._steps.append(f"reject {pattern.relation}, {source.bound:,} rows")

    # -------------------------------------------------------------- computations

    def _compute(self, number: int, step: Compute | Require) -> None:
        self._steps.append(f"compute {step}")
        knowledge = self._knowledge
        if not knowledge.by_definition and self._compute_small(step):
            return
        knowledge.by_definition = True
        match step:
            case Compute(target=Column(index=index), expression=expression):
                call = self._call(number, step, expression)
                inner = f"SELECT *, {call} AS s{index} FROM ({self._sql})"  # noqa: S608
                self._sql = (
                    f"SELECT *, s{index}.id AS v{index}, s{index}.kind AS k{index}, "  # noqa: S608
                    f"s{index}.text AS t{index} FROM ({inner})"
                )
                self._bound.add(index)
                self._described.add(index)
                self._made.append(index)
            case Require(expression=Apply(function="=" | "!=") as equality) if all(
                not isinstance(each, Apply) for each in equality.arguments
            ):
                condition = small_condition(equality, knowledge.mark)
                self._sql = f"SELECT * FROM ({self._sql}) WHERE {condition}"  # noqa: S608
            case Require(expression=expression):
                call = self._call(number, step, expression)
                self._sql = f"SELECT * FROM ({self._sql}) WHERE {call}"  # noqa: S608

    def _compute_small(self, step: Compute | Require) -> bool:
        mark = self._knowledge.mark
        match step:
            case Compute(target=Column(index=index), expression=expression):
                value = small_value(expression, mark)
                if value is None:
                    return False
                if isinstance(expression, Constant):
                    self._id(expression)
                self._sql = f"SELECT *, {value} AS v{index} FROM ({self._sql})"  # noqa: S608
                self._bound.add(index)
            case Require(expression=expression):
                condition = small_condition(expression, mark)
                if condition is None:
                    return False
                self._sql = f"SELECT * FROM ({self._sql}) WHERE {condition}"  # noqa: S608
        return True

    def _call(
        self, number: int, step: Compute | Require, expression: Expression
    ) -> str:
        """Return the call of a Python function, with all of its inputs."""
        used = sorted(columns_in(expression))
        # An error names the facts that a rule was applied to, so all columns are
        # passed.
        others = sorted(self._bound - set(used))
        for index in used:
            self._describe(index)
        name = self._knowledge.functions.get(number)
        if name is None:
            name = f"evermat_{self._knowledge.mark}_{number}"
            self._knowledge.functions[number] = name
            self._register(name, step, others)
        arguments = [f"v{i}, k{i}, t{i}" for i in used]
        arguments += [f"v{i}" for i in others]
        return f"{name}({', '.join(arguments or ['0L'])})"

    def _register(self, name: str, step: Compute | Require, others: list[int]) -> None:
        from pyspark.sql import functions  # noqa: PLC0415  slow to load

        rest = (self._query, self._knowledge.mark, others)
        match step:
            case Compute(expression=expression):
                function, type_ = value_function(expression, *rest), VALUE_TYPE
            case Require(expression=condition):
                function, type_ = condition_function(condition, *rest), "boolean"
        # Spark must not move it below joins and filters, where it could fail.
        arrow_udf = getattr(functions, "arrow_udf")  # noqa: B009  not in the types
        made = arrow_udf(function, type_).asNondeterministic()
        self._cluster.session.udf.register(name, made)

    def _describe(self, index: int) -> None:
        if index in self._described:
            return
        terms = self._cluster.terms_view()
        hint = hint_for_terms(self._cluster)
        self._sql = (
            f"SELECT /*+ {hint}(r) */ l.*, r.kind AS k{index}, r.text AS t{index} "  # noqa: S608
            f"FROM ({self._sql}) l LEFT JOIN {terms} r ON l.v{index} = r.id"
        )
        self._described.add(index)

    # ------------------------------------------------------------------- operands

    def _value(self, operand: Operand) -> str:
        if isinstance(operand, Column):
            return f"v{operand.index}"
        return f"{self._id(operand)}L"

    def _id(self, constant: Constant) -> int:
        return self._cluster.dictionary.id_of(constant)


def listed_ids(query: Query, cluster: Cluster) -> dict[int, list[int]]:
    """Return few inline rows, by column, which are not worth a broadcast."""
    inline = query.inline
    if inline is None or not 0 < len(inline.rows) <= LISTED or not inline.columns:
        return {}
    columns = zip(inline.columns, zip(*inline.rows, strict=True), strict=True)
    return {
        column.index: [cluster.dictionary.id_of(constant) for constant in constants]
        for column, constants in columns
    }


def _columns(pattern: Pattern) -> dict[int, int]:
    """Return the first position of each column of a pattern."""
    columns: dict[int, int] = {}
    for at, operand in enumerate(pattern.operands):
        if isinstance(operand, Column):
            columns.setdefault(operand.index, at)
    return columns


def condition_on(
    pattern: Pattern, cluster: Cluster, listed: Mapping[int, Sequence[int]] = _NOTHING
) -> str:
    """Return the condition on rows that a pattern matches.

    Args:
        pattern: the pattern.
        cluster: has the tags of relations.
        listed: ids that columns can have, if those are few. Rows that inline rows do
            not match are then not read from the cache at all.
    """
    conditions = [f"tag = {cluster.tag(pattern.relation)}L"]
    columns = _columns(pattern)
    for at, operand in enumerate(pattern.operands):
        if isinstance(operand, Constant):
            conditions.append(f"c{at} = {constant_id(operand)}L")
        elif columns[operand.index] != at:
            conditions.append(f"c{at} = c{columns[operand.index]}")
        elif operand.index in listed:
            conditions.append(f"c{at} IN ({_longs(listed[operand.index])})")
    return " AND ".join(conditions)


def heads_condition(queries: Iterable[Query], cluster: Cluster) -> str:
    """Return the condition on rows that queries derive, for any matches."""
    conditions = {
        condition_on(query.head, cluster, listed_ids(query, cluster))
        for query in queries
    }
    if len(conditions) > LISTED:
        return "true"
    return " OR ".join(f"({condition})" for condition in sorted(conditions))


def _longs(ids: Iterable[int]) -> str:
    return ", ".join(f"{id_}L" for id_ in sorted(set(ids)))


def _terms(made: list[int]) -> str:
    """Return the new constants of a head."""
    parts = ", ".join(
        f"named_struct('id', v{i}, 'kind', k{i}, 'text', t{i})" for i in made
    )
    return f"filter(array({parts}), term -> term.kind IS NOT NULL)"


def all_matches(plans: list[tuple[int, QueryPlan]], width: int) -> str:
    """Return all matches of all queries, with the number of the query as `q`."""
    makes_terms = any(plan.makes_terms for _, plan in plans)
    parts = []
    for number, plan in plans:
        names = padded_keys(plan.width, width)
        if makes_terms:
            made = plan.makes_terms
            names.append("terms" if made else f"CAST(NULL AS {TERMS_TYPE}) AS terms")
        parts.append(f"SELECT {number} AS q, {', '.join(names)} FROM ({plan.sql})")  # noqa: S608
    read = {block: block.size for _, plan in plans for block in plan.blocks}
    return united(parts, sum(read.values()))
