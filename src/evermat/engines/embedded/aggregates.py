"""Aggregates over rows of ids: for all groups, or for touched groups by difference.

Counts, sums and averages of touched groups are updated from their stored results and
the changed members. The least or greatest member is compared with the changed members;
only when it is deleted is the next one searched for, among the members of its group or,
for large groups, in a sorted order of the group (`GroupOrder`).

Small integers are processed as arrays; all other values by the definition of the
aggregate, member by member.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from evermat.algebra import Regrouped
from evermat.algebra.aggregates import aggregate_error
from evermat.algebra.totals import (
    AGGREGATES,
    Total,
    average_columns,
    better,
    sum_columns,
)
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.cores import slices_of, together
from evermat.engines.embedded.dedup import intern_rows
from evermat.engines.embedded.dictionary import FIRST_INTEGER, INTEGER_ZERO, UNKNOWN
from evermat.engines.embedded.fact_sets import Settled
from evermat.engines.embedded.group_orders import GroupOrder
from evermat.engines.embedded.index import make_keys
from evermat.engines.embedded.kernels import aggregates as kernels_aggregates
from evermat.functions import FunctionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from evermat.algebra import Aggregate, Facts, SettledFacts
    from evermat.engines.embedded.arrays import Ids, Rows
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.engine import EmbeddedEngine
    from evermat.engines.embedded.relation import Relation
    from evermat.values import Constant

    Integers = npt.NDArray[np.int64]

ROOM = 1 << 61
"""Stored sums up to this absolute value cannot overflow by adding all members."""

DENSE = 8
"""Groups are numbered by their ids if these span at most this times their number."""

LARGE = 1 << 12
"""Groups with more members get a sorted order when their least member is deleted."""

NO_INTEGER = np.uint32(UNKNOWN)
"""Greater than the ids of all integers; 0 is less than all."""

BY_DIFFERENCE = frozenset({"count", "sum", "avg"})
EXTREMES = frozenset({"min", "max", "any"})


class Groups(NamedTuple):
    """Groups of members.

    Attributes:
        ids: the constants of each group, by column.
        numbers: the group of each member.
    """

    ids: Ids
    numbers: Integers

    @property
    def size(self) -> int:
        """The number of groups."""
        return int(self.ids.shape[1])


class Tallies(NamedTuple):
    """Size, sum, least and greatest member of each group; see `kernels.aggregates`.

    Attributes:
        ids: the constants of each group, by column.
        table: a line for each group.
        are_integers: whether all values are integers; otherwise only sizes are valid.
    """

    ids: Ids
    table: Integers
    are_integers: bool


class Changed(NamedTuple):
    """Members that were added (sign 1) or deleted (sign -1)."""

    rows: Rows
    signs: Integers
    table: Ids


class Results(NamedTuple):
    """The results for some groups.

    Attributes:
        which: the numbers of the groups.
        columns: the columns of the results after the group.
    """

    which: Integers
    columns: list[Ids]


class Aggregator:
    """Computes aggregates for one engine, and caches the orders of large groups."""

    def __init__(self, engine: EmbeddedEngine) -> None:
        self._engine = engine
        self._orders: dict[tuple[Aggregate, bytes], GroupOrder] = {}

    def forget(self) -> None:
        """Discard all orders, after changes that they have not been updated for."""
        self._orders.clear()

    @property
    def _dictionary(self) -> Dictionary:
        return self._engine.inline.dictionary

    def _relation(self, name: str) -> Relation:
        return self._engine.store.relations[name]

    # ---------------------------------------------------------------------- all groups

    def aggregate(self, aggregates: Sequence[Aggregate], facts: Facts) -> Settled:
        """Return the results for all groups, in one pass per set of members."""
        engine = self._engine
        found: dict[str, Rows] = {}
        tables: dict[str, Ids] = {}
        for aggregate in aggregates:
            engine.declare(aggregate.members, aggregate.arity)
            engine.declare(aggregate.values, aggregate.result_arity)
        if self._orders:
            kept = self._orders.items()
            self._orders = {key: each for key, each in kept if key[0] not in aggregates}
        for aggregate in aggregates:
            if aggregate.members not in tables:
                tables[aggregate.members] = self._table(aggregate.members, facts)
        for alike in _alike(aggregates):
            table = tables[alike[0].members]
            if table.shape[1]:
                self._results(alike, table, found)
        return Settled(found)

    def _table(self, name: str, facts: Facts) -> Ids:
        """Return the facts of a relation, in any order."""
        relation = self._relation(name)
        if facts is self._engine.materialised and relation.alive == relation.count:
            return relation.whole_table()
        if isinstance(facts, Settled):
            rows = facts.rows.get(name, NO_ROWS)
        else:
            rows = self._engine.store.sets.stored_rows(facts, name)
        if rows.size == relation.count:
            return relation.whole_table()
        return relation.table[:, rows]

    def _results(
        self, aggregates: Sequence[Aggregate], table: Ids, found: dict[str, Rows]
    ) -> None:
        """Compute aggregates with the same group and value, given all their members."""
        first = aggregates[0]
        columns = np.ascontiguousarray(table[list(first.group)])
        values = np.ascontiguousarray(table[first.value])
        groups: Groups | None = None
        tallies = _tallied(columns, values)
        for aggregate in aggregates:
            self._note(aggregate, values.size)
            plain = self._of_tallies(aggregate, tallies)
            if plain is not None:
                found[aggregate.values] = self._interned(aggregate, tallies.ids, plain)
                continue
            groups = _grouped(columns) if groups is None else groups
            each = self._by_definition(aggregate, groups, values)
            found[aggregate.values] = self._interned(aggregate, groups.ids, each)

    def _of_tallies(self, aggregate: Aggregate, tallies: Tallies) -> list[Ids] | None:
        """Return the result columns of the groups, if the tallies determine them."""
        encode = self._dictionary.encode_numbers
        sizes, sums, least, greatest = tallies.table.T
        if aggregate.function == "count":
            return [encode(sizes)]
        if not tallies.are_integers:
            return None
        match aggregate.function:
            case "sum":
                return [encode(sums), encode(sizes)]
            case "min":
                return [least.astype(np.uint32)]
            case "max":
                return [greatest.astype(np.uint32)]
            case "avg":
                lines = zip(sizes.tolist(), sums.tolist(), strict=True)
                totals = [Total(size=size, exact=exact) for size, exact in lines]
                return self._each(
                    aggregate, tallies.ids, lambda at: average_columns(totals[at])
                )
            case _:
                return None

    def _by_definition(
        self, aggregate: Aggregate, groups: Groups, values: Ids
    ) -> list[Ids]:
        constants = self._constants(values)
        members: list[list[Constant]] = [[] for _ in range(groups.size)]
        for number, id_ in zip(groups.numbers.tolist(), values.tolist(), strict=True):
            members[number].append(constants[id_])
        columns = AGGREGATES[aggregate.function].columns

        def results(at: int) -> tuple[Constant, ...]:
            return columns(members[at])

        return self._each(aggregate, groups.ids, results)

    # ------------------------------------------------------------------ touched groups

    def again(
        self, aggregates: Sequence[Aggregate], results: SettledFacts, facts: Facts
    ) -> Settled:
        """Return the results for the groups of some results."""
        found: dict[str, Rows] = {}
        for aggregate in aggregates:
            rows = self._rows_of(results, aggregate.values)
            table = self._relation(aggregate.values).table[:, rows]
            if rows.size:
                groups = _grouped(table[: len(aggregate.group)])
                _, members = self._members(aggregate, groups.ids, facts)
                if members.size:
                    mine = self._relation(aggregate.members).table[:, members]
                    self._results([aggregate], mine, found)
        return Settled(found)

    def changes(
        self,
        aggregates: Sequence[Aggregate],
        changes: Sequence[SettledFacts],
        before: Facts,
        after: Facts,
    ) -> Regrouped:
        """Return the results that a change removes and adds."""
        changed: dict[str, Changed] = {}
        grouped: dict[tuple[str, tuple[int, ...]], Groups] = {}
        removed: dict[str, Rows] = {}
        added: dict[str, Rows] = {}
        for aggregate in aggregates:
            name = aggregate.members
            mine = changed.get(name)
            if mine is None:
                mine = changed[name] = self._changed(name, changes, before, after)
            if not mine.rows.size:
                continue
            self._note(aggregate, mine.rows.size)
            groups = grouped.get((name, aggregate.group))
            if groups is None:
                groups = _grouped(mine.table[list(aggregate.group)])
                grouped[name, aggregate.group] = groups
            old = self._known(aggregate, groups, before)
            new = np.full(groups.size, -1, np.int32)
            results = self._new(aggregate, groups, mine, old, after)
            new[results.which] = self._rows_for(aggregate, groups, results)
            differs = new != old
            removed[aggregate.values] = old[differs & (old >= 0)]
            added[aggregate.values] = new[differs & (new >= 0)]
        return Regrouped(Settled(removed), Settled(added))

    def _changed(
        self, name: str, changes: Sequence[SettledFacts], before: Facts, after: Facts
    ) -> Changed:
        """Return the members that were added or deleted."""
        parts = [self._rows_of(facts, name) for facts in changes]
        some = [part for part in parts if part.size]
        rows = some[0] if len(some) == 1 else np.concatenate([NO_ROWS, *some])
        test = self._engine.store.sets.test
        signs = test(after, name, rows).astype(np.int64)
        signs -= test(before, name, rows)
        if not signs.all():
            rows, signs = rows[signs != 0], signs[signs != 0]
        return Changed(rows, signs, self._relation(name).table[:, rows])

    def _new(
        self,
        aggregate: Aggregate,
        groups: Groups,
        changed: Changed,
        old: Rows,
        after: Facts,
    ) -> Results:
        """Return the results of touched groups after a change."""
        values = changed.table[aggregate.value]
        if aggregate.function in BY_DIFFERENCE:
            return self._by_difference(aggregate, groups, values, changed, old)
        if aggregate.function in EXTREMES:
            plain = aggregate.function != "any" and self._integers(values) is not None
            work = self._extreme_integers if plain else self._extremes
            return work(aggregate, groups, values, changed, old, after)
        which, rows = self._members(aggregate, groups.ids, after)
        self._note(aggregate, rows.size)
        left, numbers = np.unique(which, return_inverse=True)
        mine = Groups(groups.ids[:, left], numbers)
        table = self._relation(aggregate.members).table
        values = table[aggregate.value, rows]
        return Results(left, self._by_definition(aggregate, mine, values))

    def _rows_of(self, facts: SettledFacts, name: str) -> Rows:
        return facts.rows.get(name, NO_ROWS) if isinstance(facts, Settled) else NO_ROWS

    def _known(self, aggregate: Aggregate, groups: Groups, before: Facts) -> Rows:
        """Return the row of each group's result, or -1."""
        relation = self._relation(aggregate.values)
        width = tuple(range(len(aggregate.group)))
        which, rows = _rows_of_groups(relation, width, groups.ids)
        there = self._engine.store.sets.test(before, aggregate.values, rows)
        old = np.full(groups.size, -1, np.int32)
        old[which[there]] = rows[there]
        return old

    def _members(
        self, aggregate: Aggregate, ids: Ids, after: Facts
    ) -> tuple[Integers, Rows]:
        """Return the members of groups: the group of each, and its row."""
        relation = self._relation(aggregate.members)
        which, rows = _rows_of_groups(relation, aggregate.group, ids)
        there = self._engine.store.sets.test(after, aggregate.members, rows)
        return which[there], rows[there]

    # -- counts, sums and averages

    def _by_difference(
        self,
        aggregate: Aggregate,
        groups: Groups,
        values: Ids,
        changed: Changed,
        old: Rows,
    ) -> Results:
        width = len(aggregate.group)
        known = old >= 0
        before = self._relation(aggregate.values).table[width:, old[known]]
        added: list[Integers | None] = [changed.signs]
        if aggregate.function == "sum":
            of_members = self._integers(values)
            products = None if of_members is None else of_members * changed.signs
            added = [products, changed.signs]
        encode = self._dictionary.encode_numbers
        totals = []
        for ids, more in zip(before, added, strict=False):
            start = self._stored(ids)
            if start is None or more is None or aggregate.function == "avg":
                return self._by_totals(aggregate, groups, values, changed, old)
            total = np.zeros(groups.size, np.int64)
            total[known] = start
            np.add.at(total, groups.numbers, more)
            totals.append(total)
        which = np.flatnonzero(totals[-1])
        return Results(which, [encode(total[which]) for total in totals])

    def _stored(self, ids: Ids) -> Integers | None:
        """Return the numbers of results that are integers and cannot overflow."""
        small = self._integers(ids)
        if small is not None:
            return small
        found = self._dictionary.large_integers(ids)
        if found is None or found.min() < -ROOM or found.max() > ROOM:
            return None
        return found

    def _by_totals(
        self,
        aggregate: Aggregate,
        groups: Groups,
        values: Ids,
        changed: Changed,
        old: Rows,
    ) -> Results:
        """Do the same member by member."""
        width, name = len(aggregate.group), aggregate.function
        table = self._relation(aggregate.values).table
        constant = self._dictionary.constant
        totals = [Total()] * groups.size
        for at in np.flatnonzero(old >= 0).tolist():
            stored = [constant(int(id_)) for id_ in table[width:, old[at]]]
            totals[at] = Total.of(stored[0], stored[1])
        constants = self._constants(values)
        for at, id_, sign in zip(
            groups.numbers.tolist(),
            values.tolist(),
            changed.signs.tolist(),
            strict=True,
        ):
            with self._telling(aggregate, groups.ids[:, at]):
                totals[at] = totals[at].changed(name, constants[id_], sign)
        columns = sum_columns if name == "sum" else average_columns
        which = np.flatnonzero([total.size > 0 for total in totals])
        left = [total for total in totals if total.size]
        ids = groups.ids[:, which]
        return Results(which, self._each(aggregate, ids, lambda at: columns(left[at])))

    # -- the least and the greatest

    def _extreme_integers(
        self,
        aggregate: Aggregate,
        groups: Groups,
        values: Ids,
        changed: Changed,
        old: Rows,
        after: Facts,
    ) -> Results:
        """Return results among integers, whose ids are in the order of the integers."""
        known = old >= 0
        width = len(aggregate.group)
        stored = self._relation(aggregate.values).table[width, old[known]]
        if self._integers(stored) is None:
            return self._extremes(aggregate, groups, values, changed, old, after)
        least = aggregate.function == "min"
        nothing = NO_INTEGER if least else np.uint32(0)
        best = np.full(groups.size, nothing)
        best[known] = stored
        went = changed.signs < 0
        numbers = groups.numbers[went]
        lost = np.zeros(groups.size, np.bool_)
        lost[numbers[values[went] == best[numbers]]] = True
        for place in np.flatnonzero(~went).tolist() if self._orders else ():
            group = groups.ids[:, groups.numbers[place]]
            row, id_ = int(changed.rows[place]), int(values[place])
            self._note_member(aggregate, group, row, id_)
        if lost.any():
            found = self._next_integers(aggregate, groups.ids[:, lost], after)
            if found is None:
                return self._extremes(aggregate, groups, values, changed, old, after)
            best[lost] = found
        choose = np.minimum if least else np.maximum
        choose.at(best, groups.numbers[~went], values[~went])
        which = np.flatnonzero(best != nothing)
        return Results(which, [best[which]])

    def _next_integers(
        self, aggregate: Aggregate, groups: Ids, after: Facts
    ) -> Ids | None:
        """Return the ids of the least members of groups, if all are integers."""
        relation = self._relation(aggregate.members)
        least = aggregate.function == "min"
        nothing = NO_INTEGER if least else np.uint32(0)
        best = np.full(groups.shape[1], nothing)
        small = np.array([not self._has_order(aggregate, g) for g in groups.T])
        which, rows = _rows_of_groups(relation, aggregate.group, groups[:, small])
        sizes = np.bincount(which, minlength=int(small.sum()))
        are_few = sizes <= LARGE
        small[small] = are_few
        for at in np.flatnonzero(~small).tolist():
            first = self._next(aggregate, groups[:, at : at + 1], after)
            if first is not None and first < FIRST_INTEGER:
                return None
            best[at] = nothing if first is None else first
        there = self._engine.store.sets.test(after, aggregate.members, rows)
        there &= are_few[which]
        values = relation.table[aggregate.value, rows[there]]
        if self._integers(values) is None:
            return None
        self._note(aggregate, values.size)
        found = np.full(sizes.size, nothing)
        (np.minimum if least else np.maximum).at(found, which[there], values)
        best[small] = found[are_few]
        return best

    def _has_order(self, aggregate: Aggregate, group: Ids) -> bool:
        return bool(self._orders) and (aggregate, group.tobytes()) in self._orders

    def _extremes(
        self,
        aggregate: Aggregate,
        groups: Groups,
        values: Ids,
        changed: Changed,
        old: Rows,
        after: Facts,
    ) -> Results:
        width = len(aggregate.group)
        table = self._relation(aggregate.values).table
        # The first candidate of each group is its current result, if it remains.
        candidates: list[list[int]] = [
            [int(table[width, row])] if row >= 0 else [] for row in old.tolist()
        ]
        lost = set()
        for at, id_, sign in zip(
            groups.numbers.tolist(),
            values.tolist(),
            changed.signs.tolist(),
            strict=True,
        ):
            if sign < 0 and candidates[at][:1] == [id_]:
                lost.add(at)
        added = np.flatnonzero(changed.signs > 0).tolist()
        for place in added:
            at, id_ = int(groups.numbers[place]), int(values[place])
            candidates[at].append(id_)
            self._note_member(
                aggregate, groups.ids[:, at], int(changed.rows[place]), id_
            )
        for at in lost:
            group = groups.ids[:, at : at + 1]
            with self._telling(aggregate, group):
                first = self._next(aggregate, group, after)
            candidates[at][:1] = [] if first is None else [first]
        return self._chosen(aggregate, groups, candidates)

    def _chosen(
        self, aggregate: Aggregate, groups: Groups, candidates: list[list[int]]
    ) -> Results:
        """Return the results of groups that have candidates."""
        choose = self._chooser(aggregate)
        found: dict[int, int] = {}
        for at, ids in enumerate(candidates):
            if not ids:
                continue
            with self._telling(aggregate, groups.ids[:, at]):
                found[at] = choose(ids)
        which = np.fromiter(found, np.int64, len(found))
        return Results(which, [np.fromiter(found.values(), np.uint32, len(found))])

    def _chooser(self, aggregate: Aggregate) -> Callable[[list[int]], int]:
        """Return a function that finds the id of the least or greatest constant."""
        name, constant = aggregate.function, self._dictionary.constant

        def choose(ids: list[int]) -> int:
            chosen = ids[0]
            for id_ in ids[1:]:
                if id_ != chosen:
                    one, other = constant(chosen), constant(id_)
                    if name == "any":
                        keys = [(int(c.kind), c.text) for c in (one, other)]
                        chosen = chosen if keys[0] <= keys[1] else id_
                    else:
                        chosen = chosen if better(name, one, other) == one else id_
            return chosen

        return choose

    def _note_member(
        self, aggregate: Aggregate, group: Ids, row: int, id_: int
    ) -> None:
        key = aggregate, group.tobytes()
        order = self._orders.get(key)
        if order is not None and id_ < FIRST_INTEGER:
            del self._orders[key]  # not an inline integer: ids are not ordered
        elif order is not None:
            order.add(row, id_)

    def _next(self, aggregate: Aggregate, group: Ids, after: Facts) -> int | None:
        """Return the id of the least member of a group, or None."""
        relation = self._relation(aggregate.members)
        key = aggregate, group[:, 0].tobytes()
        order = self._orders.get(key)
        if order is not None and order.numbering == relation.numbering:
            return order.first(after)
        _, rows = self._members(aggregate, group, after)
        if not rows.size:
            return None
        values = relation.table[aggregate.value, rows]
        if rows.size > LARGE:
            numbers = self._integers(values)
            if numbers is not None:
                order = GroupOrder(self._engine, aggregate, relation, rows, numbers)
                self._orders[key] = order
                return order.first(after)
        self._note(aggregate, rows.size)
        distinct = np.unique(values)
        if aggregate.function != "any" and self._integers(distinct) is not None:
            least = aggregate.function == "min"
            return int(distinct[0 if least else -1])  # ids are in order of integers
        return self._chooser(aggregate)(distinct.tolist())

    # ------------------------------------------------------------------------- results

    def _interned(self, aggregate: Aggregate, groups: Ids, columns: list[Ids]) -> Rows:
        """Return the rows of results, in order."""
        relation = self._relation(aggregate.values)
        return intern_rows(relation, np.vstack([groups, *columns]))

    def _rows_for(self, aggregate: Aggregate, groups: Groups, results: Results) -> Rows:
        """Return the row of each result; new ones are appended."""
        relation = self._relation(aggregate.values)
        table = np.vstack([groups.ids[:, results.which], *results.columns])
        keys = relation.keys_of(table)
        rows = relation.find(table, keys)
        unknown = np.flatnonzero(rows < 0)
        if unknown.size:
            order = unknown[np.argsort(keys[unknown])]
            rows[order] = relation.append(keys[order], table[:, order])
        return rows

    def _each(
        self,
        aggregate: Aggregate,
        groups: Ids,
        results: Callable[[int], tuple[Constant, ...]],
    ) -> list[Ids]:
        """Compute the columns of results group by group."""
        columns: list[list[Constant]] = [
            [] for _ in range(aggregate.result_arity - groups.shape[0])
        ]
        for at in range(groups.shape[1]):
            with self._telling(aggregate, groups[:, at]):
                found = results(at)
            for column, value in zip(columns, found, strict=True):
                column.append(value)
        return [self._dictionary.encode_constants(column) for column in columns]

    @contextmanager
    def _telling(self, aggregate: Aggregate, group: Ids) -> Iterator[None]:
        """Report the group in errors about its value."""
        try:
            yield
        except FunctionError as problem:
            names = tuple(map(self._dictionary.constant, group.ravel().tolist()))
            raise aggregate_error(aggregate, names, problem.message) from None

    def _integers(self, ids: Ids) -> Integers | None:
        """Return the numbers of ids, if all are inline integers."""
        if ids.size and ids.min() < FIRST_INTEGER:
            return None
        return cast("Integers", self._dictionary.numbers(ids))

    def _constants(self, ids: Ids) -> dict[int, Constant]:
        constant = self._dictionary.constant
        return {id_: constant(id_) for id_ in np.unique(ids).tolist()}

    def _note(self, aggregate: Aggregate, members: int) -> None:
        engine = self._engine
        engine.matches += members
        if engine.monitor is not None and members:
            engine.monitor.working(aggregate.label, members)


def _grouped(columns: Ids) -> Groups:
    """Group members by the ids in the grouping columns."""
    size = columns.shape[1]
    if not columns.shape[0]:
        return Groups(np.empty((0, 1), np.uint32), np.zeros(size, np.int64))
    numbers, firsts = _numbered(columns[0])
    for column in columns[1:]:
        pairs = numbers.astype(np.uint64) << np.uint64(32) | column
        _, firsts, numbers = np.unique(pairs, return_index=True, return_inverse=True)
    return Groups(np.ascontiguousarray(columns[:, firsts]), numbers)


def _numbered(ids: Ids) -> tuple[Integers, Integers]:
    """Return consecutive numbers for ids, and the first position of each number."""
    least, span = int(ids.min()), _span(ids)
    if span > DENSE * ids.size:
        _, firsts, numbers = np.unique(ids, return_index=True, return_inverse=True)
        return numbers, firsts
    offsets = ids - np.uint32(least)
    places = np.full(span, -1, np.int64)
    places[offsets[::-1]] = np.arange(ids.size - 1, -1, -1)
    there = places >= 0
    firsts = places[there]
    if there.all():
        return offsets.astype(np.int64), firsts
    return (np.cumsum(there) - 1)[offsets], firsts


def _alike(aggregates: Sequence[Aggregate]) -> list[list[Aggregate]]:
    """Group aggregates with the same members, group and value."""
    found: dict[object, list[Aggregate]] = {}
    for each in aggregates:
        found.setdefault((each.members, each.group, each.value), []).append(each)
    return list(found.values())


def _tallied(columns: Ids, values: Ids) -> Tallies:
    """Tally all groups in one pass: size, sum, least and greatest member.

    Args:
        columns: the ids that group the members.
        values: the ids of the aggregated values.
    """
    if len(columns) == 1 and (span := _span(columns[0])) <= DENSE * values.size:
        numbers, first, ids = columns[0], int(columns[0].min()), None
    else:
        groups = _grouped(columns)
        numbers, first, ids = groups.numbers.astype(np.uint32), 0, groups.ids
        span = groups.size

    def tally(part: slice) -> tuple[Integers, bool]:
        table = np.empty((span, 4), np.int64)
        table[:] = 0, 0, UNKNOWN, 0
        mine = numbers[part], first, values[part]
        known = kernels_aggregates.tally(*mine, INTEGER_ZERO, FIRST_INTEGER, table)
        return table, known

    parts = slices_of(values.size)
    if len(parts) * span > values.size:
        parts = [slice(0, values.size)]
    (table, are_integers), *others = together([partial(tally, each) for each in parts])
    for more, known in others:
        table[:, :2] += more[:, :2]
        np.minimum(table[:, 2], more[:, 2], out=table[:, 2])
        np.maximum(table[:, 3], more[:, 3], out=table[:, 3])
        are_integers &= known
    there = np.flatnonzero(table[:, 0])
    if ids is None:
        ids = (there + first).astype(np.uint32)[np.newaxis]
    return Tallies(ids, table[there], are_integers)


def _span(ids: Ids) -> int:
    """Return the size of the range of ids."""
    return int(ids.max()) - int(ids.min()) + 1


def _rows_of_groups(
    relation: Relation, columns: tuple[int, ...], groups: Ids
) -> tuple[Integers, Rows]:
    """Return the rows with the ids of groups, and the group of each row."""
    if not columns:
        rows = np.arange(relation.count, dtype=np.int32)
        return np.zeros(rows.size, np.int64), rows
    found: list[tuple[Integers, Rows]] = []
    index = relation.index(columns)
    if len(columns) > 1:
        keys = make_keys(groups[[columns.index(column) for column in index.columns]])
    for run in index.runs:
        if len(columns) == 1:
            first, last, total = run.find_halves(np.ascontiguousarray(groups[0]))
        else:
            first, last, total = run.find_keys(keys)
        if total:
            sizes = (last - first).astype(np.int64)
            which = np.repeat(np.arange(sizes.size), sizes)
            starts = np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
            found.append((which, run.rows[starts + np.arange(which.size)]))
    if not found:
        return np.empty(0, np.int64), NO_ROWS
    which = np.concatenate([each for each, _ in found])
    rows = np.concatenate([each for _, each in found])
    if len(columns) > 2:  # noqa: PLR2004  keys of more columns are hashes
        same = (relation.table[list(columns)][:, rows] == groups[:, which]).all(axis=0)
        which, rows = which[same], rows[same]
    return which, rows
