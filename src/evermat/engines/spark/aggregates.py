"""Aggregates of distributed facts: computed by one Spark query, updated from changes.

One query computes the size, sum, minimum and maximum of each group of integers, for all
aggregates with the same members and groups. The driver fetches one row for each group.
For groups with other values, the driver also fetches the members, and computes the
results from these.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import Aggregate, AggregatesByGroup, Regrouped
from evermat.algebra.aggregates import (
    aggregate_error,
    changed_members,
    results_of,
    stored_results,
    union_of,
)
from evermat.algebra.totals import (
    Total,
    average_columns,
    better,
    sum_columns,
)
from evermat.columns import constants, table_of_rows
from evermat.engines.spark.blocks import width_of
from evermat.engines.spark.dictionary import FIRST_DIGEST, SMALLEST
from evermat.engines.spark.row_tables import appended, key_columns, widened
from evermat.engines.spark.rows import Rows, work_out
from evermat.engines.spark.rules import RuleOperators
from evermat.engines.spark.sets import Settled, rows_of
from evermat.functions import FunctionError
from evermat.values import Constant, integer_constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evermat.algebra import Facts, SettledFacts
    from evermat.engines.spark.blocks import Block, Cluster

    Row = tuple[Constant, ...]

TALLIED = frozenset({"count", "sum", "min", "max", "avg"})
BY_DIFFERENCE = frozenset({"count", "sum", "avg"})
EXTREMES = frozenset({"min", "max"})

_HALF = 31
"""Lower bits of numbers, which are summed separately so that no sum overflows."""
_MOST_HIGH = 1 << 30
"""If the sum of the upper bits is below this, the whole sum fits into 64 bits."""


class AggregateOperators(AggregatesByGroup, RuleOperators):
    """The methods of an engine that compute aggregates."""

    @abstractmethod
    def intern(self, relation: str, table: pa.Table) -> Settled:
        """Return rows as facts of a relation, whether they hold or not."""

    @abstractmethod
    def settle(self, facts: Facts) -> Settled:
        """Evaluate a view."""

    @abstractmethod
    def no_facts(self) -> Settled:
        """Return the empty set."""

    @abstractmethod
    def _block(self, rows: pa.Table) -> Block:
        """Return rows as a block, on the driver if there are few."""

    def aggregate(self, aggregates: Sequence[Aggregate], facts: Facts) -> SettledFacts:
        """Return the results for all groups."""
        found: list[SettledFacts] = []
        tables: list[pa.Table] = []
        for alike in _alike(aggregates):
            first = alike[0]
            self.declare(first.members, first.arity)
            tag = self.cluster.tag(first.members)
            rows = rows_of(facts, self.cluster, frozenset({tag}))
            if first.function not in TALLIED or not rows.bound:
                found += [results_of(self, each, facts) for each in alike]
                continue
            tallies = Tallies(first, rows)
            others = tallies.others(self.cluster)
            for each in alike:
                self.declare(each.values, each.result_arity)
                tables.append(self._results(each, tallies))
                if others and each.function != "count":
                    found.append(results_of(self, each, facts, others))
        if tables:
            found.append(Settled(self._block(appended(tables))))
        return union_of(self, found)

    def _results(self, aggregate: Aggregate, tallies: Tallies) -> pa.Table:
        """Return the results given by tallies, in the layout of blocks."""
        self.matches += tallies.members
        if self.monitor is not None:
            self.monitor.working(aggregate.label, tallies.members)
        table = tallies.table
        if aggregate.function != "count":
            table = table.filter(pa.array(tallies.are_integers))
        sizes, sums = table["size"], table["sum"]
        match aggregate.function:
            case "count":
                columns = [sizes]
            case "sum":
                columns = [sums, sizes]
            case "avg":
                columns = self._averages(sizes.to_pylist(), sums.to_pylist())
            case _:
                least = aggregate.function == "min"
                columns = [table["least" if least else "greatest"]]
        names = key_columns(aggregate.result_arity)
        groups = [table[f"g{at}"] for at in range(len(aggregate.group))]
        tag = self.cluster.tag(aggregate.values)
        tags = pa.array(np.full(table.num_rows, tag, np.int64))
        found = pa.table([tags, *groups, *columns], names=names)
        return widened(found, width_of(aggregate.result_arity))

    def _averages(self, sizes: list[int], sums: list[int]) -> list[pa.Array]:
        """Return averages and their states, as ids."""
        totals = (Total(size=n, exact=s) for n, s in zip(sizes, sums, strict=True))
        found = [average_columns(total) for total in totals]
        encode = self.cluster.dictionary.encode_constants
        columns = zip(*found, strict=True) if found else ((), ())
        return [pa.array(encode(list(each)), pa.int64()) for each in columns]

    def aggregate_changes(
        self,
        aggregates: Sequence[Aggregate],
        changes: Sequence[SettledFacts],
        before: Facts,
        after: Facts,
    ) -> Regrouped:
        """Return the results that a change removes and adds."""
        rest: list[Aggregate] = []
        removed: list[SettledFacts] = []
        added: list[SettledFacts] = []
        changed = union_of(self, changes)
        lost = self.settle(self.settle(changed & before) - after)
        gained = self.settle(self.settle(changed & after) - before)
        for each in aggregates:
            if each.function not in BY_DIFFERENCE | EXTREMES:
                rest.append(each)
                continue
            old, new, again = self._by_difference(each, lost, gained, before)
            interned = [
                self.intern(each.values, table_of_rows(rows, each.result_arity))
                for rows in (old, new)
            ]
            removed.append(interned[0])
            added.append(interned[1])
            if again:
                added.append(results_of(self, each, after, again))
        if rest:
            others = super().aggregate_changes(rest, changes, before, after)
            removed.append(others.removed)
            added.append(others.added)
        all_removed, all_added = union_of(self, removed), union_of(self, added)
        return Regrouped(
            self.settle(all_removed - all_added), self.settle(all_added - all_removed)
        )

    def _by_difference(
        self,
        aggregate: Aggregate,
        lost: SettledFacts,
        gained: SettledFacts,
        before: Facts,
    ) -> tuple[list[Row], list[Row], list[Row]]:
        """Return old and new results of groups, and groups to recompute."""
        removed = _by_group(aggregate, changed_members(self, aggregate, lost))
        added = _by_group(aggregate, changed_members(self, aggregate, gained))
        self.matches += sum(map(len, (*removed.values(), *added.values())))
        groups = list(dict.fromkeys((*removed, *added)))
        if not groups:
            return [], [], []
        old = stored_results(self, aggregate, before, groups)
        width = len(aggregate.group)
        known = {row[:width]: row[width:] for row in old}
        new, again = [], []
        for group in groups:
            stored = known.get(group)
            try:
                result = _changed(
                    aggregate, stored, removed.get(group, ()), added.get(group, ())
                )
            except FunctionError as problem:
                raise aggregate_error(aggregate, group, problem.message) from None
            if result is None:
                again.append(group)
            elif result:
                new.append((*group, *result))
        return old, new, again


def _alike(aggregates: Sequence[Aggregate]) -> list[list[Aggregate]]:
    """Return lists of aggregates that can be computed from the same tallies."""
    found: dict[object, list[Aggregate]] = {}
    for each in aggregates:
        key = each.members, each.group, each.value, each.function in TALLIED
        found.setdefault(key, []).append(each)
    return list(found.values())


def _by_group(
    aggregate: Aggregate, members: Iterable[Row]
) -> dict[Row, list[Constant]]:
    """Return the values of members by their groups."""
    found: dict[Row, list[Constant]] = {}
    for row in members:
        group = tuple(row[at] for at in aggregate.group)
        found.setdefault(group, []).append(row[aggregate.value])
    return found


def _changed(
    aggregate: Aggregate,
    stored: Row | None,
    removed: Sequence[Constant],
    added: Sequence[Constant],
) -> Row | None:
    """Return a result after a change.

    It is empty if the group is, and None if all members are needed to compute it.
    """
    name = aggregate.function
    if name == "count":
        size = (
            (0 if stored is None else int(stored[0].text)) + len(added) - len(removed)
        )
        return (integer_constant(size),) if size else ()
    if name in EXTREMES:
        best = None if stored is None else stored[0]
        if best in removed:
            return None
        for value in added:
            best = value if best is None else better(name, best, value)
        return () if best is None else (best,)
    total = Total() if stored is None else Total.of(stored[0], stored[1])
    for sign, values in ((-1, removed), (1, added)):
        for value in values:
            total = total.changed(name, value, sign)
    if not total.size:
        return ()
    return sum_columns(total) if name == "sum" else average_columns(total)


class Tallies:
    """Size, sum, least and greatest of all groups of a relation.

    Attributes:
        table: a row for each group: ids `g0`, …, then `size`, `sum`, `least` and
            `greatest`.
        are_integers: for each group, whether all values are integers and the sum is
            small enough to be its own id; otherwise only the size is valid.
        members: the number of members.
    """

    def __init__(self, aggregate: Aggregate, rows: Rows) -> None:
        groups = [f"c{at}" for at in aggregate.group]
        value = f"c{aggregate.value}"
        found = (
            _tallied_here(work_out(rows), groups, value)
            if rows.table is not None
            else rows.cluster.collect(_tallies_sql(rows, groups, value), rows.bound)
        )
        high = found["high"].to_numpy()
        least, greatest = found["least"].to_numpy(), found["greatest"].to_numpy()
        fits = (least >= SMALLEST) & (greatest < FIRST_DIGEST)
        fits &= (high < _MOST_HIGH) & (high > -_MOST_HIGH)
        sums = (np.where(fits, high, 0) << _HALF) + found["low"].to_numpy()
        self.are_integers = fits & (sums >= SMALLEST) & (sums < FIRST_DIGEST)
        columns = [found[f"g{at}"] for at in range(len(groups))]
        columns += [found["size"], pa.array(sums), found["least"], found["greatest"]]
        names = [f"g{at}" for at in range(len(groups))]
        self.table = pa.table(
            columns, names=[*names, "size", "sum", "least", "greatest"]
        )
        self.members = int(pc.sum(found["size"]).as_py() or 0)
        self._names = names

    def others(self, cluster: Cluster) -> list[Row]:
        """Return the groups with other values than integers."""
        rest = self.table.filter(pa.array(~self.are_integers))
        if not rest.num_rows or not self._names:
            return [()] * rest.num_rows
        decode = cluster.dictionary.decode
        columns = [
            constants(decode(rest[name].combine_chunks())) for name in self._names
        ]
        return list(zip(*columns, strict=True))


def _tallies_sql(rows: Rows, groups: list[str], value: str) -> str:
    """Return the query for the tallies of rows on the cluster."""
    names = [f"{column} AS g{at}" for at, column in enumerate(groups)]
    low = (1 << _HALF) - 1
    values = [
        "count(1) AS size",
        f"sum({value} & {low}L) AS low",
        f"sum(shiftright({value}, {_HALF})) AS high",
        f"min({value}) AS least",
        f"max({value}) AS greatest",
    ]
    sql = f"SELECT {', '.join([*names, *values])} FROM ({rows.query()})"  # noqa: S608
    # Without groups, Spark returns a row even if there are no rows.
    return f"{sql} GROUP BY {', '.join(groups)}" if groups else f"{sql} HAVING size > 0"


def _tallied_here(table: pa.Table, groups: list[str], value: str) -> pa.Table:
    """Return the tallies of rows on the driver."""
    ids = table[value].to_numpy()
    parts = {
        "low": ids & ((1 << _HALF) - 1),
        "high": ids >> _HALF,
        "size": np.ones(ids.size, np.int64),
    }
    columns = [table[name] for name in groups]
    columns += [table[value], *map(pa.array, parts.values())]
    names = [f"g{at}" for at in range(len(groups))]
    parted = pa.table(columns, names=[*names, "value", *parts])
    asked = [("value", "min"), ("value", "max"), *((part, "sum") for part in parts)]
    found = parted.group_by(names, use_threads=False).aggregate(asked)
    renamed = {
        "value_min": "least",
        "value_max": "greatest",
        "low_sum": "low",
        "high_sum": "high",
        "size_sum": "size",
    }
    return found.rename_columns([renamed.get(n, n) for n in found.column_names])
