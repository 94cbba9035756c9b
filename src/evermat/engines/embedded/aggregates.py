"""Aggregates over rows of ids: all groups at once, or touched groups by difference.

Counts, sums and averages of touched groups are brought up to date from their stored
results and the changed members. The least and greatest member is compared with the
changed members; only where it goes is the next one looked for, among the members of its
group or, in large groups, in their order (`GroupOrder`).

Small integers are worked on as arrays; all else by the definition, member by member.
"""

from __future__ import annotations

from contextlib import contextmanager
from heapq import heappop, heappush
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
from evermat.engines.embedded.dedup import intern_rows
from evermat.engines.embedded.dictionary import FIRST_INTEGER, UNKNOWN
from evermat.engines.embedded.fact_sets import Settled
from evermat.engines.embedded.index import make_keys
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

EXACT = 1 << 53
"""Up to here, doubles count one by one."""

DENSE = 8
"""Groups are numbered by their ids if these span at most so many times their number."""

LARGE = 1 << 12
"""Groups with more members have an order, where their least one goes."""

NO_INTEGER = np.uint32(UNKNOWN)
"""Greater than the ids of all integers; 0 is less."""

BY_DIFFERENCE = frozenset({"count", "sum", "avg"})
EXTREMES = frozenset({"min", "max", "any"})


class Groups(NamedTuple):
    """Groups of members.

    Attributes:
        ids: of the constants of each group, by column.
        numbers: for each member the number of its group.
    """

    ids: Ids
    numbers: Integers

    @property
    def size(self) -> int:
        """How many groups there are."""
        return int(self.ids.shape[1])


class Aggregator:
    """Works aggregates out for one engine, and remembers the orders of large groups."""

    def __init__(self, engine: EmbeddedEngine) -> None:
        self._engine = engine
        self._orders: dict[tuple[Aggregate, bytes], GroupOrder] = {}

    def forget(self) -> None:
        """Take note that facts have changed that nobody told of."""
        self._orders.clear()

    @property
    def _dictionary(self) -> Dictionary:
        return self._engine.inline.dictionary

    def _relation(self, name: str) -> Relation:
        return self._engine.store.relations[name]

    # ---------------------------------------------------------------------- all groups

    def aggregate(self, aggregate: Aggregate, facts: Facts) -> Settled:
        """The results for all groups."""
        self._orders = {
            key: order for key, order in self._orders.items() if key[0] != aggregate
        }
        engine = self._engine
        engine.declare(aggregate.members, aggregate.arity)
        engine.declare(aggregate.values, aggregate.result_arity)
        if isinstance(facts, Settled):
            rows = facts.rows.get(aggregate.members, NO_ROWS)
        else:
            rows = engine.store.sets.stored_rows(facts, aggregate.members)
        return self._results(aggregate, rows)

    def _results(self, aggregate: Aggregate, rows: Rows) -> Settled:
        """The results for the groups of members, which are all there."""
        self._note(aggregate, rows.size)
        if not rows.size:
            return Settled({})
        table = self._columns(self._relation(aggregate.members), rows)
        groups = _grouped(table[list(aggregate.group)])
        values = table[aggregate.value]
        columns = self._of_integers(aggregate, groups, values)
        if columns is None:
            columns = self._by_definition(aggregate, groups, values)
        return self._interned(aggregate, groups.ids, columns)

    def _columns(self, relation: Relation, rows: Rows) -> Ids:
        if rows.size == relation.count:
            return relation.whole_table()  # in whatever order
        return relation.table[:, rows]

    def _of_integers(
        self, aggregate: Aggregate, groups: Groups, values: Ids
    ) -> list[Ids] | None:
        """What stands behind the groups, if the values are small integers."""
        encode = self._dictionary.encode_numbers
        sizes = np.bincount(groups.numbers, minlength=groups.size)
        if aggregate.function == "count":
            return [encode(sizes)]
        if aggregate.function not in {"sum", "min", "max"}:
            return None
        numbers = self._integers(values)
        if numbers is None:
            return None
        if aggregate.function == "sum":
            return [encode(_sums(groups, numbers)), encode(sizes)]
        least = aggregate.function == "min"
        limits = np.iinfo(np.int64)
        found = np.full(groups.size, limits.max if least else limits.min)
        (np.minimum if least else np.maximum).at(found, groups.numbers, numbers)
        return [encode(found)]

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
        self, aggregate: Aggregate, results: SettledFacts, facts: Facts
    ) -> Settled:
        """The results for the groups that some results are of."""
        rows = self._rows_of(results, aggregate.values)
        if not rows.size:
            return Settled({})
        table = self._relation(aggregate.values).table[:, rows]
        groups = _grouped(table[: len(aggregate.group)])
        return self._results(aggregate, self._members(aggregate, groups.ids, facts))

    def changes(
        self,
        aggregate: Aggregate,
        changes: Sequence[SettledFacts],
        before: Facts,
        after: Facts,
    ) -> Regrouped:
        """What a change means for the results."""
        engine, name = self._engine, aggregate.members
        parts = [self._rows_of(facts, name) for facts in changes]
        rows = np.concatenate([NO_ROWS, *parts])
        test = engine.store.sets.test
        signs = test(after, name, rows).astype(np.int64)
        signs -= test(before, name, rows)
        changed = Changed(rows[signs != 0], signs[signs != 0])
        self._note(aggregate, changed.rows.size)
        if not changed.rows.size:
            return Regrouped(Settled({}), Settled({}))
        table = self._relation(name).table[:, changed.rows]
        groups = _grouped(table[list(aggregate.group)])
        old = self._known(aggregate, groups, before)
        values = table[aggregate.value]
        if aggregate.function in BY_DIFFERENCE:
            added = self._by_difference(aggregate, groups, values, changed, old)
        elif aggregate.function in EXTREMES:
            plain = aggregate.function != "any" and self._integers(values) is not None
            work = self._extreme_integers if plain else self._extremes
            added = work(aggregate, groups, values, changed, old, after)
        else:
            found = self._members(aggregate, groups.ids, after)
            added = self._results(aggregate, found)
        removed = Settled({aggregate.values: old[old >= 0]})
        settle = engine.settle
        return Regrouped(settle(removed - added), settle(added - removed))

    def _rows_of(self, facts: SettledFacts, name: str) -> Rows:
        return facts.rows.get(name, NO_ROWS) if isinstance(facts, Settled) else NO_ROWS

    def _known(self, aggregate: Aggregate, groups: Groups, before: Facts) -> Rows:
        """For each group the row of its result, or -1."""
        relation = self._relation(aggregate.values)
        width = tuple(range(len(aggregate.group)))
        which, rows = _rows_of_groups(relation, width, groups.ids)
        there = self._engine.store.sets.test(before, aggregate.values, rows)
        old = np.full(groups.size, -1, np.int32)
        old[which[there]] = rows[there]
        return old

    def _members(self, aggregate: Aggregate, ids: Ids, after: Facts) -> Rows:
        """The members of groups."""
        relation = self._relation(aggregate.members)
        _, rows = _rows_of_groups(relation, aggregate.group, ids)
        there = self._engine.store.sets.test(after, aggregate.members, rows)
        found: Rows = rows[there]
        return found

    # -- counts, sums and averages

    def _by_difference(
        self,
        aggregate: Aggregate,
        groups: Groups,
        values: Ids,
        changed: Changed,
        old: Rows,
    ) -> Settled:
        width = len(aggregate.group)
        table = self._relation(aggregate.values).table
        known = old >= 0
        before = np.zeros((aggregate.result_arity - width, groups.size), np.uint32)
        before[:, known] = table[width:, old[known]]
        stored: list[Integers | None]
        added: list[Integers | None]
        if aggregate.function == "count":
            stored, added = [self._integers(before[0, known])], [changed.signs]
        else:
            stored = [self._integers(each[known]) for each in before]
            of_members = self._integers(values)
            products = None if of_members is None else of_members * changed.signs
            added = [products, changed.signs]
        encode = self._dictionary.encode_numbers
        totals = []
        for start, more in zip(stored, added, strict=True):
            if start is None or more is None or aggregate.function == "avg":
                return self._by_totals(aggregate, groups, values, changed, old)
            total = np.zeros(groups.size, np.int64)
            total[known] = start
            np.add.at(total, groups.numbers, more)
            totals.append(total)
        some = totals[-1] > 0
        return self._interned(
            aggregate, groups.ids[:, some], [encode(total[some]) for total in totals]
        )

    def _by_totals(
        self,
        aggregate: Aggregate,
        groups: Groups,
        values: Ids,
        changed: Changed,
        old: Rows,
    ) -> Settled:
        """The same, one member after the other."""
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
        some = np.array([total.size > 0 for total in totals], np.bool_)
        left = [total for total in totals if total.size]
        ids = groups.ids[:, some]
        return self._interned(
            aggregate, ids, self._each(aggregate, ids, lambda at: columns(left[at]))
        )

    # -- the least and the greatest

    def _extreme_integers(
        self,
        aggregate: Aggregate,
        groups: Groups,
        values: Ids,
        changed: Changed,
        old: Rows,
        after: Facts,
    ) -> Settled:
        """Results among integers, whose ids are in their order."""
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
        some = best != nothing
        return self._interned(aggregate, groups.ids[:, some], [best[some]])

    def _next_integers(
        self, aggregate: Aggregate, groups: Ids, after: Facts
    ) -> Ids | None:
        """The ids of the least members of groups, if all members are integers."""
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
    ) -> Settled:
        width = len(aggregate.group)
        table = self._relation(aggregate.values).table
        # The first candidate of each group is its result so far, if it stays there.
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
        came = np.flatnonzero(changed.signs > 0).tolist()
        for place in came:
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
    ) -> Settled:
        """The results of groups that have candidates."""
        choose = self._chooser(aggregate)
        found: dict[int, int] = {}
        for at, ids in enumerate(candidates):
            if not ids:
                continue
            with self._telling(aggregate, groups.ids[:, at]):
                found[at] = choose(ids)
        which = np.fromiter(found, np.int64, len(found))
        results = np.fromiter(found.values(), np.uint32, len(found))
        return self._interned(aggregate, groups.ids[:, which], [results])

    def _chooser(self, aggregate: Aggregate) -> Callable[[list[int]], int]:
        """Finds the id of the least (or greatest) of some constants."""
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
            del self._orders[key]  # no number by itself: ids are in no order then
        elif order is not None:
            order.add(row, id_)

    def _next(self, aggregate: Aggregate, group: Ids, after: Facts) -> int | None:
        """The id of the least member that a group has, if it has any."""
        relation = self._relation(aggregate.members)
        key = aggregate, group[:, 0].tobytes()
        order = self._orders.get(key)
        if order is not None and order.numbering == relation.numbering:
            return order.first(after)
        rows = self._members(aggregate, group, after)
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

    def _interned(
        self, aggregate: Aggregate, groups: Ids, columns: list[Ids]
    ) -> Settled:
        size = columns[0].size
        if not size:
            return Settled({})
        table = np.empty((aggregate.result_arity, size), np.uint32)
        table[: groups.shape[0]] = groups
        for at, column in enumerate(columns, start=groups.shape[0]):
            table[at] = column
        relation = self._relation(aggregate.values)
        return Settled({aggregate.values: intern_rows(relation, table)})

    def _each(
        self,
        aggregate: Aggregate,
        groups: Ids,
        results: Callable[[int], tuple[Constant, ...]],
    ) -> list[Ids]:
        """The columns of results that are worked out group by group."""
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
        """Have errors tell the group that has no value."""
        try:
            yield
        except FunctionError as problem:
            names = tuple(map(self._dictionary.constant, group.ravel().tolist()))
            raise aggregate_error(aggregate, names, problem.message) from None

    def _integers(self, ids: Ids) -> Integers | None:
        """The numbers of ids that are all integers by themselves."""
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


class Changed(NamedTuple):
    """Members that came (sign 1) or went (sign -1)."""

    rows: Rows
    signs: Integers


class GroupOrder:
    """The members of a large group in order, for finding the next least one.

    Members that were there at first are in an array, from which they are taken one by
    one; those that come later are on a heap. What no longer holds is skipped.
    """

    def __init__(
        self,
        engine: EmbeddedEngine,
        aggregate: Aggregate,
        relation: Relation,
        rows: Rows,
        numbers: Integers,
    ) -> None:
        self._engine = engine
        self._relation = relation
        self._column = aggregate.value
        self._sign = 1 if aggregate.function == "min" else -1
        self.numbering = relation.numbering
        self._rows = rows[np.argsort(self._sign * numbers, kind="stable")]
        self._at = 0
        self._later: list[tuple[int, int]] = []

    def add(self, row: int, id_: int) -> None:
        """Take note of a member that came."""
        heappush(self._later, (self._sign * id_, row))

    def first(self, facts: Facts) -> int | None:
        """The id of the least member that is there."""
        ids = self._relation.table[self._column]
        found = []
        while self._at < self._rows.size:
            row = int(self._rows[self._at])
            if self._holds(facts, row):
                found.append(int(ids[row]))
                break
            self._at += 1
        while self._later:
            _, row = self._later[0]
            if self._holds(facts, row):
                found.append(int(ids[row]))
                break
            heappop(self._later)
        if not found:
            return None
        return min(found) if self._sign > 0 else max(found)

    def _holds(self, facts: Facts, row: int) -> bool:
        rows = np.array([row], np.int32)
        name = self._relation.name
        return bool(self._engine.store.sets.test(facts, name, rows)[0])


def _grouped(columns: Ids) -> Groups:
    """Groups of members, by the ids of the columns that group."""
    size = columns.shape[1]
    if not columns.shape[0]:
        return Groups(np.empty((0, 1), np.uint32), np.zeros(size, np.int64))
    numbers, firsts = _numbered(columns[0])
    for column in columns[1:]:
        pairs = numbers.astype(np.uint64) << np.uint64(32) | column
        _, firsts, numbers = np.unique(pairs, return_index=True, return_inverse=True)
    return Groups(np.ascontiguousarray(columns[:, firsts]), numbers)


def _numbered(ids: Ids) -> tuple[Integers, Integers]:
    """Numbers for ids from 0 on, and where each number is first."""
    least = int(ids.min())
    span = int(ids.max()) - least + 1
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


def _sums(groups: Groups, numbers: Integers) -> Integers:
    """Exact sums of integers below 2**31, by doubles where these are exact."""
    greatest = max(int(numbers.max()), -int(numbers.min()), 1)
    if greatest * numbers.size < EXACT:
        sums = np.bincount(groups.numbers, numbers, groups.size)
        return sums.astype(np.int64)
    low = np.bincount(groups.numbers, numbers & 0x7FFF, groups.size)
    high = np.bincount(groups.numbers, numbers >> 15, groups.size)
    return low.astype(np.int64) + (high.astype(np.int64) << 15)


def _rows_of_groups(
    relation: Relation, columns: tuple[int, ...], groups: Ids
) -> tuple[Integers, Rows]:
    """The rows that have the ids of groups, and which group each of them is in."""
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
