"""Runs the plan of a query.

Each step turns a batch of bindings into further batches of bounded length and hands
each on before it makes the next one, so an intermediate result never has to fit in
memory. The rows of the first scan are divided among the cores.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from evermat.algebra import Column
from evermat.engines.embedded import kernels
from evermat.engines.embedded.arrays import NO_FLAGS
from evermat.engines.embedded.cores import core_count, workers
from evermat.engines.embedded.expressions import Calculator
from evermat.engines.embedded.heads import Heads, intern_rows
from evermat.engines.embedded.index import make_keys
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
from evermat.engines.embedded.stages import (
    Batch,
    CalculateStage,
    CheckStage,
    Place,
    ProbeStage,
    ScanStage,
    Source,
    Stage,
    TestStage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evermat.algebra import InlineRows, Monitor, Operand, Pattern
    from evermat.engines.embedded.arrays import Ids, Rows
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.index import Run
    from evermat.engines.embedded.plan import Plan, Step
    from evermat.engines.embedded.solving import Solution

ALONE = 1 << 14
"""Up to this many rows of the first scan, one core does it all."""


class InlineTables:
    """The inline rows of queries as relations, made once."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self._relations: dict[InlineRows, Relation] = {}

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


class Evaluation:
    """One run of one plan."""

    def __init__(
        self,
        plan: Plan,
        source_of: Callable[[Pattern], Source],
        inline: InlineTables,
        monitor: Monitor | None,
    ) -> None:
        self.matches = 0
        self._label = plan.query.label
        self._inline = inline
        self._dictionary = inline.dictionary
        self._monitor = monitor
        self._source_of = source_of
        self._calculator = Calculator(
            inline.dictionary, plan.query.label, plan.query.positive
        )
        self._head = self._places(plan.query.head.operands)
        self._stages = [self._stage(step) for step in plan.steps]
        if plan.steps and isinstance(plan.steps[0], Probe):
            self._stages[0] = self._found_scan(plan.steps[0])

    def run(self, arity: int) -> list[Heads]:
        """The heads of all matches, gathered apart by each core that helped."""
        first = self._stages[0] if self._stages else None
        if isinstance(first, ScanStage) and first.size > ALONE:
            return self._run_shared(first, arity)
        heads = Heads(arity)
        self._descend(Batch(1, {}), 0, heads)
        return [heads]

    def _run_shared(self, scan: ScanStage, arity: int) -> list[Heads]:
        # In order, because what is scanned in order is often derived in order.
        pieces = scan.pieces()[::-1]
        lock = threading.Lock()

        def work() -> Heads:
            heads = Heads(arity)
            while True:
                with lock:
                    if not pieces:
                        break
                    piece = pieces.pop()
                self._descend(scan.read(*piece), 1, heads)
            heads.parts()
            return heads

        jobs = [workers().submit(work) for _ in range(min(len(pieces), core_count()))]
        try:
            return [job.result() for job in jobs]
        except BaseException:
            pieces.clear()  # so that the other cores stop soon
            raise

    def _descend(self, batch: Batch, at: int, heads: Heads) -> None:
        if batch.size == 0:
            return
        if at == len(self._stages):
            self._report(batch.size)
            heads.add_columns([batch.value(place) for place in self._head], batch.size)
            return
        stage = self._stages[at]
        if at + 1 == len(self._stages) and isinstance(stage, ProbeStage):
            packed = stage.pack_heads(batch, self._head)
            if packed is not None:
                for keys in packed:
                    self._report(keys.size)
                    heads.add_keys(keys)
                return
        for following in stage.apply(batch):
            self._descend(following, at + 1, heads)

    def _report(self, matches: int) -> None:
        self.matches += matches
        if self._monitor is not None:
            self._monitor.working(self._label, matches)

    # ---------------------------------------------------------------------- stages

    def _stage(self, step: Step) -> Stage:
        match step:
            case Scan(pattern=pattern):
                places = self._places(pattern.operands)
                return ScanStage(self._source_of(pattern), places, step.keep)
            case Probe(pattern=pattern, key=key):
                places = self._places(pattern.operands)
                plain = ProbeStage(self._source_of(pattern), places, key, step.keep)
                if step.solution is None:
                    return plain
                return self._solving_stage(step, step.solution, plain)
            case ProbeInline(inline=inline, key=key):
                return self._inline_stage(inline, key, step.keep)
            case Test(pattern=pattern, present=present):
                places = self._places(pattern.operands)
                source = self._source_of(pattern)
                return TestStage(source, places, step.keep, present=present)
            case Calculate(compute=compute):
                return CalculateStage(self._calculator, compute, step.keep)
            case Check(require=require):
                return CheckStage(self._calculator, require, step.keep)
            case _:
                raise TypeError(step)

    def _solving_stage(self, probe: Probe, solution: Solution, plain: Stage) -> Stage:
        source = self._source_of(probe.pattern)
        places = self._places(probe.pattern.operands)
        key = tuple(sorted((*probe.key, solution.position)))
        exact: Stage
        if len(key) == len(places):
            exact = TestStage(source, places, probe.keep, present=True)
        else:
            exact = ProbeStage(source, places, key, probe.keep)
        operands = self._places((solution.left, solution.right))
        return SolvingStage(solution, operands, exact, plain, self._dictionary)

    def _inline_stage(
        self, inline: InlineRows, key: tuple[int, ...], keep: frozenset[int]
    ) -> Stage:
        relation = self._inline.relation(inline)
        source = Source(relation, Sight(NO_FLAGS, 0, relation.count))
        places = [(True, column.index) for column in inline.columns]
        if not key:
            return ScanStage(source, places, keep)
        if len(key) == len(places):
            return TestStage(source, places, keep, present=True)
        return ProbeStage(source, places, key, keep)

    def _found_scan(self, probe: Probe) -> ScanStage:
        """A first probe, by constants alone, as a scan, which cores can share."""
        source = self._source_of(probe.pattern)
        relation, sight = source.relation, source.sight
        places = self._places(probe.pattern.operands)
        index = relation.index(probe.key)
        width = len(probe.key)
        goals = np.array([[places[at][1]] for at in index.columns[:width]], np.uint32)
        found = [_rows_for(run, goals) for run in index.runs]
        rows = np.concatenate(found) if found else np.empty(0, np.int32)
        marks = np.empty(rows.size, np.uint8)
        kernels.mark_visible(
            rows, relation.status, sight.visible, sight.low, sight.high, marks
        )
        source = Source(relation, sight, rows[marks == 1])
        return ScanStage(source, places, probe.keep)

    def _places(self, operands: Sequence[Operand]) -> list[Place]:
        return [
            (True, operand.index)
            if isinstance(operand, Column)
            else (False, self._dictionary.id_of(operand))
            for operand in operands
        ]


def _rows_for(run: Run, goals: Ids) -> Rows:
    """The rows of a run for one goal: an id, a key or what a hash is made of."""
    if goals.shape[0] == 1:
        first, last, _ = run.find_halves(goals[0])
    else:
        first, last, _ = run.find_keys(make_keys(goals))
    return run.rows[first[0] : last[0]]
