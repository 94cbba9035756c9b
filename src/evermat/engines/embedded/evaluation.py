"""Runs the plan of a query.

Each step turns a batch of bindings into further batches of bounded length and hands
each on before it makes the next one, so an intermediate result never has to fit in
memory. The rows of the first scan are divided among the cores, or, where they are few,
the many that an index may find for them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from evermat.algebra import Column
from evermat.engines.embedded.arrays import NO_FLAGS
from evermat.engines.embedded.cores import core_count, together
from evermat.engines.embedded.expressions import Calculator
from evermat.engines.embedded.heads import Heads, intern_rows
from evermat.engines.embedded.operators import (
    Batch,
    CalculateStage,
    CheckStage,
    Place,
    ProbeLayout,
    ProbeStage,
    ScanLayout,
    ScanStage,
    Source,
    Stage,
    TestStage,
)
from evermat.engines.embedded.plan import (
    Calculate,
    Check,
    Probe,
    ProbeInline,
    Scan,
    Test,
)
from evermat.engines.embedded.relation import Relation
from evermat.engines.embedded.sets import Sight
from evermat.engines.embedded.solving import SolvingStage
from evermat.runtime.interrupts import check

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evermat.algebra import InlineRows, Monitor, Operand, Pattern
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.operators import Found
    from evermat.engines.embedded.plan import Plan, Step
    from evermat.engines.embedded.solving import Solution

    Binder = Callable[["Evaluation"], Stage]

_T = TypeVar("_T")

ALONE = 1 << 14
"""Up to this many rows, one core does it all."""

SHARE = 1 << 15
"""Matches that a core takes at a time, of those that an index has found."""


class InlineTables:
    """The inline rows of queries as relations, made once and kept as long as they."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self._relations: WeakKeyDictionary[InlineRows, Relation] = WeakKeyDictionary()

    def relation(self, inline: InlineRows) -> Relation:
        """A relation that holds the rows."""
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
    """A plan with all that does not depend on what its patterns may see.

    Attributes:
        head: the operands of the head.
        steps: makes each step's stage.
    """

    def __init__(self, plan: Plan, inline: InlineTables) -> None:
        self.plan = plan
        self.inline = inline
        query = plan.query
        self._calculator = Calculator(inline.dictionary, query.label, query.positive)
        self.head = self._places(query.head.operands)
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
                calculation = CalculateStage(self._calculator, compute, step.keep)
                return lambda _run: calculation
            case Check(require=require):
                check = CheckStage(self._calculator, require, step.keep)
                return lambda _run: check
            case _:
                raise TypeError(step)

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
    """One run of one plan.

    Attributes:
        source_of: what a pattern reads.
        matches: how many there were so far.
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
        """Go on from few bindings, such as classes, which may have many members."""
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
        """Have the cores work on pieces, which are given away."""
        # In order, because what is scanned in order is often derived in order.
        pieces.reverse()
        cores = core_count()
        lock = threading.Lock()
        stopped = threading.Event()

        def take() -> list[_T]:
            """Neighbouring pieces, and fewer of them towards the end."""
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
                self._follow(batch, stage, found, at, heads)
            return
        for following in stage.apply(batch):
            self._descend(following, at + 1, heads)

    def _follow(
        self, batch: Batch, probe: ProbeStage, found: Found, at: int, heads: Heads
    ) -> None:
        """Go on from what a probe has found."""
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
