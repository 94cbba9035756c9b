"""Closures of facts under paths, in the linear form: paths grow by one step a round.

A round is one plan like that of a rule, so that large closures are worked out on the
cluster, with the edges broadcast if they are few and partitioned if they are many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evermat.algebra import (
    ClosureKind,
    Column,
    Pattern,
    Query,
    QuerySet,
    Role,
    Views,
)
from evermat.engines.spark.sets import Growing, Heap, Settled, rows_of, settle
from evermat.engines.spark.snapshot import Copy

if TYPE_CHECKING:
    from evermat.algebra import Captured, Closure, Facts
    from evermat.engines.spark.blocks import Cluster
    from evermat.engines.spark.evaluation import Evaluation


def close(evaluation: Evaluation, closure: Closure, facts: Facts) -> Settled:
    """The closure of facts."""
    return _Closing(evaluation, closure).close(facts)


class _Closing:
    def __init__(self, evaluation: Evaluation, closure: Closure) -> None:
        self._evaluation = evaluation
        self._cluster = evaluation.cluster
        self._closure = closure
        self._pattern = closure.pattern

    def close(self, facts: Facts) -> Settled:
        """The closure of facts."""
        kind = self._closure.kind
        external = self._run(facts, self._copied(0, 1))
        if kind is ClosureKind.PLAIN or external.is_empty():
            return external
        edges = self._pattern if self._closure.edges is None else self._closure.edges
        steps: Facts = facts
        if kind is ClosureKind.SYMMETRIC:
            external = self._both_ways(external)
            steps = external
        closed = self._follow(external, steps, edges)
        if kind is ClosureKind.TRANSITIVE and self._closure.loops:
            loops = self._run(facts, *(self._copied(at, at) for at in self._loops()))
            closed = settle(closed | loops, self._cluster)
        return closed

    def _loops(self) -> list[int]:
        return sorted(self._closure.loops)

    def _both_ways(self, external: Settled) -> Settled:
        turned = self._run(external, self._copied(1, 0))
        return settle(external | turned, self._cluster)

    def _follow(self, seeds: Settled, steps: Facts, edges: Pattern) -> Settled:
        """Seeds, and where steps lead to from them."""
        path = replace(_renamed(self._pattern, 0, 1), role=Role.CHANGED)
        step, head = _renamed(edges, 1, 2), _renamed(self._pattern, 0, 2)
        if self._closure.kind is ClosureKind.RIGHT_LINEAR:
            step, head = _renamed(edges, 2, 0), _renamed(self._pattern, 2, 1)
        queries = QuerySet((Query(head, (path, step), column_count=3),))
        found, delta = Growing(Heap(self._cluster)), seeds
        while not delta.is_empty():
            found.add(delta)
            block, _ = self._evaluation.run(queries, Views(steps, steps, delta))
            derived = Settled(block).without_numbers()
            delta = settle(derived - found, self._cluster)
        self._evaluation.forget(queries)
        return settle(found, self._cluster)

    def _copied(self, first: int, second: int) -> Query:
        """The facts of the pattern with other columns in the two places."""
        head = _renamed(self._pattern, first, second)
        return Query(head, (_renamed(self._pattern, 0, 1),), column_count=2)

    def _run(self, facts: Facts, *queries: Query) -> Settled:
        once = QuerySet(queries)
        block, _ = self._evaluation.run(once, Views(facts, facts))
        self._evaluation.forget(once)
        return Settled(block).without_numbers()


def _renamed(pattern: Pattern, first: int, second: int) -> Pattern:
    """The pattern with other columns in the places of columns 0 and 1."""
    names = {Column(0): Column(first), Column(1): Column(second)}
    operands = tuple(
        names[operand] if isinstance(operand, Column) else operand
        for operand in pattern.operands
    )
    return Pattern(pattern.relation, operands)


@dataclass(frozen=True)
class CapturedFacts:
    """A closure, worked out at once."""

    cluster: Cluster
    arities: dict[str, int]
    facts: Settled

    def minus(self, other: Captured | None) -> Copy:
        """What the closure has and another one has not."""
        facts: Facts = self.facts
        if isinstance(other, CapturedFacts):
            facts -= other.facts
        return Copy(self.cluster, rows_of(facts, self.cluster), self.arities)
