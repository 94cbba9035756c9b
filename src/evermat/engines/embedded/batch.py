"""Evaluates the plan of a query in batches of bindings.

Each step of a plan turns a batch of bindings into further batches of bounded length and
passes each on before it makes the next one, so an intermediate result never has to fit
in memory. The rows of the first scan are shared among the cores; if they are few, the
matches of the first index probe are shared instead.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from evermat.algebra import Column
from evermat.engines.embedded.arrays import NO_FLAGS
from evermat.engines.embedded.cores import core_count, together
from evermat.engines.embedded.dedup import Heads, intern_rows
from evermat.engines.embedded.dictionary import are_integers
from evermat.engines.embedded.expressions import Calculator
from evermat.engines.embedded.index import WIDEST_EXACT_KEY, make_keys
from evermat.engines.embedded.kernels import keys as kernels
from evermat.engines.embedded.planner import (
    Calculate,
    Check,
    Probe,
    ProbeInline,
    Scan,
    Test,
)
from evermat.engines.embedded.relation import Relation
from evermat.engines.embedded.views import Sight
from evermat.runtime.interrupts import check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from evermat.algebra import Compute, InlineRows, Monitor, Operand, Pattern, Require
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Mask, Rows, Status
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.index import Run
    from evermat.engines.embedded.planner import Plan, Solution, Step

    Binder = Callable[["Evaluation"], "Stage"]


BATCH = 1 << 17
"""Approximate number of bindings per batch, so that batches stay in the cache."""

SCAN = 1 << 14
"""Rows per batch of a scan; fewer, because joins usually multiply them."""

Place = tuple[bool, int]
"""An operand: whether it is a column, and its index or else the id of a constant."""


@dataclass(slots=True)
class Batch:
    """Bindings: for each column an array of `size` ids."""

    size: int
    columns: dict[int, Ids]

    def value(self, place: Place) -> Ids:
        """Return the ids of an operand."""
        is_column, number = place
        return (
            self.columns[number] if is_column else np.full(self.size, number, np.uint32)
        )

    def only(self, keep: frozenset[int]) -> Batch:
        """Return the same bindings with the columns that are still needed."""
        columns = self.columns
        return Batch(self.size, {c: columns[c] for c in columns if c in keep})

    def where(self, mask: Mask, keep: frozenset[int]) -> Batch:
        """Return the bindings selected by a mask, with the columns to keep."""
        size = int(np.count_nonzero(mask))
        if size == self.size:
            return self.only(keep)
        columns = self.columns
        return Batch(size, {c: columns[c][mask] for c in columns if c in keep})


@dataclass(slots=True)
class Source:
    """The rows that a pattern reads: a relation, and its visible rows.

    If `rows` is set, it lists the rows to read, all of which are visible.
    """

    relation: Relation
    sight: Sight
    rows: Rows | None = None


class Stage(Protocol):
    """A step of a plan, bound to its source."""

    def apply(self, batch: Batch) -> Iterator[Batch]:
        """Yield the batches that result from a batch."""


class ScanLayout:
    """The part of a scan that does not depend on its source."""

    def __init__(self, places: Sequence[Place], keep: frozenset[int]) -> None:
        self.keep = keep
        self.columns = _first_positions(places)
        self.equal = _repeated_positions(places)
        self.constants = [
            (at, number)
            for at, (is_column, number) in enumerate(places)
            if not is_column
        ]


class ScanStage:
    """Extends bindings by all rows of a source."""

    def __init__(self, source: Source, layout: ScanLayout) -> None:
        self._source = source
        self._layout = layout
        self._table = source.relation.table
        self._rows = source.rows
        self._visible = source.sight.visible
        self._low, self._high = source.sight.low, source.sight.high
        if source.rows is not None:
            self._visible = NO_FLAGS
            self._low, self._high = 0, source.rows.size
            if _is_range(source.rows):
                self._rows = None
                self._low = int(source.rows[0])
                self._high = self._low + source.rows.size

    @property
    def size(self) -> int:
        """The number of rows to scan."""
        return self._high - self._low

    def pieces(self) -> list[tuple[int, int]]:
        """Return the rows in pieces that can be read independently."""
        return [
            (at, min(at + SCAN, self._high))
            for at in range(self._low, self._high, SCAN)
        ]

    def read(self, low: int, high: int) -> Batch:
        """Read one piece, as bindings."""
        rows: Rows | None = None
        if self._rows is not None:
            rows = self._rows[low:high]
        elif self._visible.size:
            seen = self._visible[self._source.relation.status[low:high]]
            rows = (low + np.flatnonzero(seen)).astype(np.int32)

        def column(at: int) -> Ids:
            # Consecutive rows are read as a slice, without a copy.
            whole: Ids = self._table[at]
            return whole[low:high] if rows is None else whole.take(rows)

        layout = self._layout
        mask: Mask | None = None
        for at, number in layout.constants:
            mask = _both(mask, column(at) == number)
        for at, other in layout.equal:
            mask = _both(mask, column(at) == column(other))
        size = high - low if rows is None else rows.size
        batch = Batch(size, {c: column(at) for c, at in layout.columns.items()})
        if mask is None:
            return batch.only(layout.keep)
        return batch.where(mask, layout.keep)

    def apply(self, batch: Batch) -> Iterator[Batch]:
        """Yield all pairs of a binding and a row."""
        for piece in self.pieces():
            rows = self.read(*piece)
            if not batch.columns and batch.size == 1:
                yield rows
                continue
            step = max(1, BATCH // max(1, rows.size))
            for low in range(0, batch.size, step):
                yield _all_pairs(
                    batch, low, min(low + step, batch.size), rows, self._layout.keep
                )


class ProbeLayout:
    """The part of an index probe that does not depend on its source."""

    def __init__(
        self, places: Sequence[Place], key: tuple[int, ...], keep: frozenset[int]
    ) -> None:
        self.places = places
        self.key = key
        self.keep = keep
        free = [
            (True, number) if at not in key else (False, -1)
            for at, (_, number) in enumerate(places)
        ]
        self.new = {c: at for c, at in _first_positions(free).items() if c in keep}
        self.equal = _repeated_positions(free)
        self.verify = (
            list(zip(key, (places[at] for at in key), strict=True))
            if len(key) > WIDEST_EXACT_KEY
            else []
        )


class ProbeStage:
    """Extends bindings by the rows that an index finds for them."""

    def __init__(self, source: Source, layout: ProbeLayout) -> None:
        self._source = source
        self._relation = source.relation
        self._layout = layout
        self._index = source.relation.index(layout.key)
        self._by_half = len(layout.key) == 1
        columns = self._index.columns
        self._goal_places = [layout.places[at] for at in columns[: len(layout.key)]]
        self._second = columns[1] if len(columns) == WIDEST_EXACT_KEY else -1

    def apply(self, batch: Batch) -> Iterator[Batch]:
        """Yield the bindings with each of their rows."""
        for found in self.find(batch):
            yield self.extend(batch, found)

    def extend(self, batch: Batch, found: Found) -> Batch:
        """Return the bindings joined with the rows found for them."""
        parents = np.empty(found.most, np.int32)
        rows = np.empty(found.most, np.int32)
        seconds = np.empty(found.most, np.uint32)
        size = kernels.expand(*self._seen(found), parents, rows, seconds)
        parents, rows = parents[:size], rows[:size]
        if found.start:
            parents += found.start
        table, layout = self._relation.table, self._layout
        columns = {
            c: ids.take(parents) for c, ids in batch.columns.items() if c in layout.keep
        }
        for column, at in layout.new.items():
            columns[column] = (
                seconds[:size] if at == self._second else table[at].take(rows)
            )
        extended = Batch(size, columns)
        mask: Mask | None = None
        for at, other in layout.equal:
            mask = _both(mask, table[at, rows] == table[other, rows])
        for at, place in layout.verify:
            mask = _both(mask, table[at, rows] == batch.value(place)[parents])
        return extended if mask is None else extended.where(mask, layout.keep)

    def packing(self, head: Sequence[Place]) -> Packing | None:
        """Return how binary heads pair a known id with the id found in the index.

        None if the heads are not of that kind. This is the last step of most recursive
        rules, and packing keys at once avoids writing the bindings first.
        """
        layout = self._layout
        if not self._by_half or layout.equal or len(head) != WIDEST_EXACT_KEY:
            return None
        new = [is_column and number in layout.new for is_column, number in head]
        if new[0] == new[1] or layout.new[head[new.index(True)][1]] != self._second:
            return None
        flipped = new[0]
        return Packing(head[1] if flipped else head[0], flipped)

    def pack(self, batch: Batch, found: Found, packing: Packing, room: Keys) -> Keys:
        """Return the keys of the heads of bindings joined with found rows."""
        ids = np.ascontiguousarray(batch.value(packing.known))
        ids = ids[found.start : found.start + found.first.size]
        size = kernels.expand_into_keys(*self._seen(found), ids, packing.flipped, room)
        return room[:size]

    def _seen(
        self, found: Found
    ) -> tuple[Rows, Rows, Keys, Rows, Status, Flags, int, int]:
        """Return found ranges and the visibility of their rows, for kernels."""
        run, sight = found.run, self._source.sight
        return (
            *(found.first, found.last, run.keys, run.rows),
            *(self._relation.status, sight.visible, sight.low, sight.high),
        )

    def find(self, batch: Batch, most: int = BATCH) -> Iterator[Found]:
        """Yield the ranges of the index that match the bindings, in pieces.

        Args:
            batch: the bindings.
            most: the largest number of matches of a piece; up to twice as many are one
                piece.
        """
        if self._source.sight.high == 0:
            return
        goals = [
            np.ascontiguousarray(batch.value(place)) for place in self._goal_places
        ]
        keys = None if self._by_half else make_keys(np.stack(goals))
        for run in self._index.runs:
            if keys is None:
                first, last, total = run.find_halves(goals[0])
            else:
                first, last, total = run.find_keys(keys)
            if total > 2 * most:
                yield from _in_pieces(run, first, last, most)
            elif total:
                yield Found(run, 0, first, last, total)


@dataclass(slots=True)
class Found:
    """Ranges of a run for the bindings from `start` on, with `most` matches in all."""

    run: Run
    start: int
    first: Rows
    last: Rows
    most: int


@dataclass(frozen=True, slots=True)
class Packing:
    """How the keys of heads are made.

    Attributes:
        known: the operand of the head that is known before the probe.
        flipped: whether it is the second column of the head.
    """

    known: Place
    flipped: bool


def _in_pieces(run: Run, first: Rows, last: Rows, most: int) -> Iterator[Found]:
    ends = np.cumsum(last - first, dtype=np.int64)
    start, done = 0, 0
    while start < first.size:
        stop = int(np.searchsorted(ends, done + most, side="right"))
        if stop > start:
            size = int(ends[stop - 1]) - done
            if size:
                yield Found(run, start, first[start:stop], last[start:stop], size)
        else:
            stop = start + 1
            yield from _parts_of_one(run, start, range(first[start], last[start], most))
        start, done = stop, int(ends[stop - 1])


def _parts_of_one(run: Run, binding: int, places: range) -> Iterator[Found]:
    """Yield the many matches of one binding in pieces of the range's step."""
    for low in places:
        high = min(low + places.step, places.stop)
        ends = np.array([[low], [high]], np.int32)
        yield Found(run, binding, ends[0], ends[1], high - low)


class TestStage:
    """Keeps the bindings for which a fact is visible, or those for which none is."""

    __test__ = False  # the name is not for pytest

    def __init__(
        self,
        source: Source,
        places: Sequence[Place],
        keep: frozenset[int],
        *,
        present: bool,
    ) -> None:
        self._source = source
        self._places = places
        self._keep = keep
        self._present = present

    def apply(self, batch: Batch) -> Iterator[Batch]:
        """Yield the bindings that pass."""
        relation, sight = self._source.relation, self._source.sight
        table = np.empty((len(self._places), batch.size), np.uint32)
        for at, place in enumerate(self._places):
            table[at] = batch.value(place)
        marks = np.zeros(batch.size, np.uint8)
        if sight.high > 0:
            kernels.mark_visible(
                relation.find(table),
                relation.status,
                sight.visible,
                sight.low,
                sight.high,
                marks,
            )
        yield batch.where(marks == self._present, self._keep)


class CalculateStage:
    """Adds a computed column."""

    def __init__(
        self, calculator: Calculator, compute: Compute, keep: frozenset[int]
    ) -> None:
        self._calculator = calculator
        self._compute = compute
        self._keep = keep

    def apply(self, batch: Batch) -> Iterator[Batch]:
        """Yield the bindings with the new column."""
        target = self._compute.target.index
        value = self._calculator.column(
            self._compute.expression, batch.columns, batch.size
        )
        yield Batch(batch.size, batch.columns | {target: value}).only(self._keep)


class CheckStage:
    """Keeps the bindings for which an expression is true."""

    def __init__(
        self, calculator: Calculator, require: Require, keep: frozenset[int]
    ) -> None:
        self._calculator = calculator
        self._require = require
        self._keep = keep

    def apply(self, batch: Batch) -> Iterator[Batch]:
        """Yield the bindings that pass."""
        mask = self._calculator.mask(
            self._require.expression, batch.columns, batch.size
        )
        yield batch.where(mask, self._keep)


class SolvingStage:
    """Probes for the solution of an equation where operands are integers.

    For other operands it probes without the solution.
    """

    def __init__(
        self,
        solution: Solution,
        operands: Sequence[Place],
        exact: Stage,
        plain: Stage,
        dictionary: Dictionary,
    ) -> None:
        self._solution = solution
        self._operands = operands
        self._exact = exact
        self._plain = plain
        self._dictionary = dictionary

    def apply(self, batch: Batch) -> Iterator[Batch]:
        """Yield the bindings with the facts that can satisfy the equation."""
        left, right = (batch.value(place) for place in self._operands)
        integers = are_integers(left) & are_integers(right)
        every = frozenset(batch.columns)
        others = batch.where(~integers, every)
        if others.size:
            yield from self._plain.apply(others)
        solved = batch.where(integers, every)
        if solved.size:
            ids = self._dictionary.look_up_sums(
                left[integers], right[integers], self._solution.sign
            )
            columns = solved.columns | {self._solution.column: ids}
            yield from self._exact.apply(Batch(solved.size, columns))


def _first_positions(places: Sequence[Place]) -> dict[int, int]:
    """Return the first position of each column."""
    first: dict[int, int] = {}
    for at, (is_column, number) in enumerate(places):
        if is_column:
            first.setdefault(number, at)
    return first


def _repeated_positions(places: Sequence[Place]) -> list[tuple[int, int]]:
    """Return pairs of positions that must be equal, as they share a column."""
    first = _first_positions(places)
    return [
        (at, first[number])
        for at, (is_column, number) in enumerate(places)
        if is_column and first[number] != at
    ]


def _both(left: Mask | None, right: Mask) -> Mask:
    return right if left is None else left & right


def _is_range(rows: Rows) -> bool:
    if not rows.size or int(rows[-1]) - int(rows[0]) != rows.size - 1:
        return False
    return bool((rows[1:] > rows[:-1]).all())


def _all_pairs(
    batch: Batch, low: int, high: int, rows: Batch, keep: frozenset[int]
) -> Batch:
    columns = {
        c: np.repeat(ids[low:high], rows.size)
        for c, ids in batch.columns.items()
        if c in keep
    }
    for c, ids in rows.columns.items():
        columns[c] = np.tile(ids, high - low)
    return Batch((high - low) * rows.size, columns)


_T = TypeVar("_T")

ALONE = 1 << 14
"""Up to this many rows, one core does all the work."""

SHARE = 1 << 15
"""Number of matches of an index that a core takes at a time."""


class InlineTables:
    """The inline rows of queries as relations, built once per query."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self._relations: WeakKeyDictionary[InlineRows, Relation] = WeakKeyDictionary()

    def relation(self, inline: InlineRows) -> Relation:
        """Return the relation of inline rows."""
        relation = self._relations.get(inline)
        if relation is None:
            relation = Relation("inline rows", len(inline.columns))
            columns = [
                self.dictionary.encode_constants(column)
                for column in zip(*inline.rows, strict=True)
            ]
            intern_rows(relation, np.stack(columns))
            self._relations[inline] = relation
        return relation


class Prepared:
    """A plan with everything that does not depend on the views of an evaluation.

    Attributes:
        head: the operands of the head.
        steps: functions that make the stages.
    """

    def __init__(self, plan: Plan, inline: InlineTables) -> None:
        self.plan = plan
        self.inline = inline
        self.head = self._places(plan.query.head.operands)
        self.steps = [self._bindable(step) for step in plan.steps]

    def _bindable(self, step: Step) -> Binder:
        match step:
            case Scan(pattern=pattern):
                scan = ScanLayout(self._places(pattern.operands), step.keep)
                return lambda run: ScanStage(run.source_of(pattern), scan)
            case Probe(pattern=pattern, key=key):
                if step.solution is not None:
                    return self._solving(step, step.solution)
                probe = ProbeLayout(self._places(pattern.operands), key, step.keep)
                return lambda run: ProbeStage(run.source_of(pattern), probe)
            case ProbeInline(inline=inline, key=key):
                return self._inline(inline, key, step.keep)
            case Test(pattern=pattern, present=present):
                places, keep = self._places(pattern.operands), step.keep
                return lambda run: TestStage(
                    run.source_of(pattern), places, keep, present=present
                )
            case Calculate(compute=compute):
                calculation = CalculateStage(self._calculator(), compute, step.keep)
                return lambda _run: calculation
            case Check(require=require):
                check = CheckStage(self._calculator(), require, step.keep)
                return lambda _run: check
            case _:
                raise TypeError(step)

    def _calculator(self) -> Calculator:
        query = self.plan.query
        return Calculator(self.inline.dictionary, query.label, query.positive)

    def _solving(self, probe: Probe, solution: Solution) -> Binder:
        places, keep = self._places(probe.pattern.operands), probe.keep
        plain = ProbeLayout(places, probe.key, keep)
        key = tuple(sorted((*probe.key, solution.position)))
        narrow = ProbeLayout(places, key, keep) if len(key) < len(places) else None
        operands = self._places((solution.left, solution.right))

        def bind(run: Evaluation) -> SolvingStage:
            source = run.source_of(probe.pattern)
            exact: Stage
            if narrow is None:
                exact = TestStage(source, places, keep, present=True)
            else:
                exact = ProbeStage(source, narrow)
            dictionary = self.inline.dictionary
            return SolvingStage(
                solution, operands, exact, ProbeStage(source, plain), dictionary
            )

        return bind

    def _inline(
        self, inline: InlineRows, key: tuple[int, ...], keep: frozenset[int]
    ) -> Binder:
        relation = self.inline.relation(inline)
        source = Source(relation, Sight(NO_FLAGS, 0, relation.count))
        places = [(True, column.index) for column in inline.columns]
        stage: Stage
        if not key:
            stage = ScanStage(source, ScanLayout(places, keep))
        elif len(key) == len(places):
            stage = TestStage(source, places, keep, present=True)
        else:
            stage = ProbeStage(source, ProbeLayout(places, key, keep))
        return lambda _run: stage

    def _places(self, operands: Sequence[Operand]) -> list[Place]:
        id_of = self.inline.dictionary.id_of
        return [
            (True, operand.index)
            if isinstance(operand, Column)
            else (False, id_of(operand))
            for operand in operands
        ]


class Evaluation:
    """One evaluation of a plan.

    Attributes:
        source_of: the source of a pattern.
        matches: the number of matches so far.
    """

    def __init__(
        self,
        prepared: Prepared,
        source_of: Callable[[Pattern], Source],
        monitor: Monitor | None,
    ) -> None:
        self.source_of = source_of
        self.matches = 0
        self._label = prepared.plan.query.label
        self._monitor = monitor
        self._head = prepared.head
        self._stages = [bind(self) for bind in prepared.steps]
        last = self._stages[-1] if self._stages else None
        self._packing = (
            last.packing(self._head) if isinstance(last, ProbeStage) else None
        )

    def run(self, heads: Heads) -> None:
        """Add the heads of all matches."""
        first = self._stages[0] if self._stages else None
        if isinstance(first, ScanStage) and first.size > ALONE:
            self._share(
                first.pieces(),
                lambda piece, mine: self._descend(first.read(*piece), 1, mine),
                heads,
            )
        elif isinstance(first, ScanStage) and first.size:
            (piece,) = first.pieces()
            self._run_few(first.read(*piece), 1, heads)
        else:
            self._run_few(Batch(1, {}), 0, heads)

    def _run_few(self, batch: Batch, at: int, heads: Heads) -> None:
        """Continue with few bindings, such as classes, which may have many members."""
        probe = self._stages[at] if at < len(self._stages) else None
        if not isinstance(probe, ProbeStage) or not batch.size:
            self._descend(batch, at, heads)
            return
        found = list(probe.find(batch, SHARE))
        if sum(each.most for each in found) > ALONE:
            self._share(
                found,
                lambda each, mine: self._follow(batch, probe, each, at, mine),
                heads,
            )
        else:
            for each in found:
                self._follow(batch, probe, each, at, heads)

    def _share(
        self, pieces: list[_T], work_on: Callable[[_T, Heads], None], heads: Heads
    ) -> None:
        """Have the cores evaluate pieces; the list is consumed."""
        # In order, because facts scanned in order are often derived in order.
        pieces.reverse()
        cores = core_count()
        lock = threading.Lock()
        stopped = threading.Event()

        def take() -> list[_T]:
            """Return consecutive pieces, and fewer of them towards the end."""
            with lock:
                size = -(-len(pieces) // (2 * cores))
                block = pieces[len(pieces) - size :]
                del pieces[len(pieces) - size :]
                return block

        def work() -> Heads:
            mine = Heads(heads.arity, in_order=True)
            try:
                while block := take():
                    while block and not stopped.is_set():
                        work_on(block.pop(), mine)
                    mine.end_block()
                mine.count_pending()
            except BaseException:
                stopped.set()
                raise
            return mine

        heads.add_all(together([work] * min(len(pieces), cores)))

    def _descend(self, batch: Batch, at: int, heads: Heads) -> None:
        if batch.size == 0:
            return
        if at == len(self._stages):
            self._report(batch.size)
            heads.add_columns([batch.value(place) for place in self._head], batch.size)
            return
        stage = self._stages[at]
        if isinstance(stage, ProbeStage):
            for found in stage.find(batch):
                self._report(0)
                self._follow(batch, stage, found, at, heads)
            return
        for following in stage.apply(batch):
            self._report(0)  # filters may drop all of very many bindings
            self._descend(following, at + 1, heads)

    def _follow(
        self, batch: Batch, probe: ProbeStage, found: Found, at: int, heads: Heads
    ) -> None:
        """Continue with the matches of a probe."""
        if self._packing is not None and at + 1 == len(self._stages):
            keys = probe.pack(batch, found, self._packing, heads.room(found.most))
            self._report(keys.size)
            heads.take(keys)
        else:
            self._descend(probe.extend(batch, found), at + 1, heads)

    def _report(self, matches: int) -> None:
        self.matches += matches
        check()
        if self._monitor is not None:
            self._monitor.working(self._label, matches)
