"""Closures on the cluster.

Paths grow by one step a round, in the linear form: a round is one plan like that of a
rule, with the edges broadcast if they are few and partitioned if they are many. Where
edges can be walked both ways, the components are found by star contraction, and all
pairs of a component are written down by one join.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evermat.algebra import (
    ClosureKind,
    Column,
    Pattern,
    Query,
    QuerySet,
    Region,
    Role,
    Views,
)
from evermat.engines.spark.components import stars
from evermat.engines.spark.heaps import Heap
from evermat.engines.spark.ids import constant_id
from evermat.engines.spark.joins import hint_for, shuffled
from evermat.engines.spark.rows import Rows, block_rows, settled_block
from evermat.engines.spark.sets import Growing, Settled, settle
from evermat.values import Constant

if TYPE_CHECKING:
    from evermat.algebra import Closure, Facts
    from evermat.engines.spark.closure_snapshots import Start
    from evermat.engines.spark.evaluation import Evaluation


def spread(
    evaluation: Evaluation,
    start: Start,
    *,
    only: Pattern | None = None,
    among: Settled | None = None,
) -> Settled:
    """The closure of facts.

    Args:
        evaluation: runs the rounds.
        start: the facts.
        only: if given, facts without its constants are not needed.
        among: if given, other facts than these are not needed.
    """
    kind, external = start.closure.kind, start.external
    walk = _Walk(evaluation, start.closure)
    if kind is not ClosureKind.SYMMETRIC:
        external = walk.narrowed(external, only, among)
    if kind is ClosureKind.PLAIN or external.is_empty():
        return external
    if kind is ClosureKind.SYMMETRIC:
        return walk.within_components(external)
    edges = start.external if start.closure.edges is None else start.edges
    closed: Facts = walk.follow(external, edges)
    if kind is ClosureKind.TRANSITIVE and start.closure.loops:
        closed |= walk.loops(start.external)
    return settle(closed, evaluation.cluster)


class _Walk:
    def __init__(self, evaluation: Evaluation, closure: Closure) -> None:
        self._evaluation = evaluation
        self._cluster = evaluation.cluster
        self._closure = closure
        self._pattern = closure.pattern

    def narrowed(
        self, seeds: Settled, only: Pattern | None, among: Settled | None
    ) -> Settled:
        """Seeds with the end from which facts that are needed begin."""
        is_backwards = self._closure.kind is ClosureKind.RIGHT_LINEAR
        at = self._pattern.operands.index(Column(1 if is_backwards else 0))
        if only is not None and isinstance(only.operands[at], Constant):
            operands = list(self._pattern.operands)
            operands[at] = only.operands[at]
            shape = Pattern(self._pattern.relation, tuple(operands))
            seeds = settle(seeds.within(Region(shapes=(shape,))), self._cluster)
        if among is not None and seeds.block.table is None:
            seeds = self._beginning(seeds, among, f"c{at}")
        return seeds

    def _beginning(self, seeds: Settled, among: Settled, name: str) -> Settled:
        """Seeds that have a column in common with one of some facts."""
        left, right = block_rows(seeds.block), block_rows(among.block)
        hint = hint_for(self._cluster, right.bound)
        sql = (
            f"SELECT /*+ {hint}(r) */ l.* FROM ({left.query()}) l "  # noqa: S608
            f"LEFT SEMI JOIN ({right.query()}) r ON l.{name} = r.{name}"
        )
        keeps = left.blocks + right.blocks
        rows = Rows(self._cluster, left.width, left.bound, None, sql, keeps)
        return Settled(settled_block(rows))

    def follow(self, seeds: Settled, steps: Settled) -> Facts:
        """Seeds, and where steps lead to from them."""
        edges = self._pattern if self._closure.edges is None else self._closure.edges
        path = replace(_renamed(self._pattern, 0, 1), local=True)
        step, head = _renamed(edges, 1, 2), _renamed(self._pattern, 0, 2)
        if self._closure.kind is ClosureKind.RIGHT_LINEAR:
            step, head = _renamed(edges, 2, 0), _renamed(self._pattern, 2, 1)
        found = Growing(Heap(self._cluster))
        rules = QuerySet((Query(head, (path, step), column_count=3),))
        at_once = self._evaluation.fixpoints.run(rules, seeds, steps)
        self._evaluation.forget(rules)
        if at_once is not None:
            found.add(seeds)
            found.heap.add(at_once[1].block)  # none of the seeds is among them
            return found
        changed = replace(path, role=Role.CHANGED, local=False)
        queries = QuerySet((Query(head, (changed, step), column_count=3),))
        delta = seeds
        while not delta.is_empty():
            found.add(delta)
            views = Views(steps, steps, delta)
            block = self._evaluation.put_off(queries, views, _nobody)
            if block is None:
                block, _ = self._evaluation.run(queries, views)
            derived = Settled(block).without_numbers()
            delta = settle(derived - found, self._cluster)
        self._evaluation.forget(queries)
        return found

    def loops(self, external: Settled) -> Settled:
        """Facts that lead from the ends of others to themselves."""
        queries = [self._copied(at, at) for at in sorted(self._closure.loops)]
        once = QuerySet(tuple(queries))
        block, _ = self._evaluation.run(once, Views(external, external))
        self._evaluation.forget(once)
        return Settled(block).without_numbers()

    def _copied(self, first: int, second: int) -> Query:
        """The facts of the pattern with other columns in the two places."""
        head = _renamed(self._pattern, first, second)
        return Query(head, (_renamed(self._pattern, 0, 1),), column_count=2)

    def within_components(self, external: Settled) -> Settled:
        """All pairs of the components of the facts, taken as edges both ways."""
        rows = block_rows(external.block)
        first, last = (self._pattern.operands.index(Column(at)) for at in (0, 1))
        edges = f"SELECT 0L AS tag, c{first} AS c0, c{last} AS c1 FROM ({rows.query()})"  # noqa: S608
        found = stars(Rows(self._cluster, 2, rows.bound, None, edges, rows.blocks))
        hint = hint_for(self._cluster, found.size)
        nodes = f"SELECT explode(array(c0, c1)) AS node FROM ({edges})"  # noqa: S608
        members = (
            f"SELECT /*+ {hint}(s) */ DISTINCT node, coalesce(s.c1, node) AS one "  # noqa: S608
            f"FROM ({nodes}) LEFT JOIN {found.view} s ON node = s.c0"
        )
        names = {Column(0): "a.node", Column(1): "b.node"}
        columns = [f"{self._cluster.tag(self._pattern.relation)}L AS tag"]
        columns += [
            f"{names[operand]} AS c{at}"
            if isinstance(operand, Column)
            else f"{constant_id(operand)}L AS c{at}"
            for at, operand in enumerate(self._pattern.operands)
        ]
        sql = (
            f"SELECT /*+ {shuffled(self._cluster, 2 * rows.bound)}(b) */ "  # noqa: S608
            f"{', '.join(columns)} "
            f"FROM ({members}) a JOIN ({members}) b ON a.one = b.one"
        )
        width, most = len(self._pattern.operands), (2 * rows.bound) ** 2
        pairs = Rows(self._cluster, width, most, None, sql, (*rows.blocks, found))
        return Settled(settled_block(pairs))


def _renamed(pattern: Pattern, first: int, second: int) -> Pattern:
    """The pattern with other columns in the places of columns 0 and 1."""
    names = {Column(0): Column(first), Column(1): Column(second)}
    operands = tuple(
        names[operand] if isinstance(operand, Column) else operand
        for operand in pattern.operands
    )
    return Pattern(pattern.relation, operands)


def _nobody(matches: int) -> None:
    """Steps of a closure are not matches of a rule."""
