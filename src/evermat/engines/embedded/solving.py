"""Equations between integers, solved before a pattern is probed.

A rule such as `d(?y, ?z) :- d(?x, ?a), edge(?x, ?y, ?b), ?z = ?a + ?b` that is run from
head to body knows ?z and ?b before it looks for `d(?x, ?a)`. Functions cannot be
inverted in general, so the equation is checked in the end; but where both are integers,
only ?z - ?b can pass, and one fact is looked up instead of all that share ?x. Sums of
other numbers are rounded or have other kinds, so there the pattern is probed as ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.algebra import Apply, Column, Require
from evermat.engines.embedded.dictionary import are_integers
from evermat.engines.embedded.operators import Batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evermat.algebra import Compute, Expression, Operand, Pattern
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.operators import Place, Stage


@dataclass(frozen=True, slots=True)
class Solution:
    """The column at a position must be `left + sign * right`."""

    position: int
    column: int
    left: Operand
    right: Operand
    sign: int


def find_solution(
    pattern: Pattern, computations: Iterable[Compute | Require], bound: set[int]
) -> Solution | None:
    """How an equation between known columns fixes a further column of a pattern."""
    free = {
        operand.index: at
        for at, operand in enumerate(pattern.operands)
        if isinstance(operand, Column) and operand.index not in bound
    }
    for step in computations:
        if not isinstance(step, Require):
            continue
        for unknown, left, right, sign in _forms(step.expression):
            if unknown in free and _is_known(left, bound) and _is_known(right, bound):
                return Solution(free[unknown], unknown, left, right, sign)
    return None


def _forms(equation: Apply) -> Iterator[tuple[int, Operand, Operand, int]]:
    """For each column of `z = a + b` or `z = a - b`: how the others give it."""
    if equation.function != "=":
        return
    for total, term in (equation.arguments, equation.arguments[::-1]):
        if not isinstance(term, Apply) or isinstance(total, Apply):
            continue
        match term.arguments:
            case (a, b) if not isinstance(a, Apply) and not isinstance(b, Apply):
                if term.function == "+":
                    yield from _unknown(a, total, b, -1)
                    yield from _unknown(b, total, a, -1)
                elif term.function == "-":
                    yield from _unknown(a, total, b, 1)
                    yield from _unknown(b, a, total, -1)


def _unknown(
    operand: Expression, left: Operand, right: Operand, sign: int
) -> Iterator[tuple[int, Operand, Operand, int]]:
    if isinstance(operand, Column):
        yield operand.index, left, right, sign


def _is_known(operand: Operand, bound: set[int]) -> bool:
    return not isinstance(operand, Column) or operand.index in bound


class SolvingStage:
    """Probes by the solution where operands are integers, and without it elsewhere."""

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
        """The bindings with the facts that can pass the equation."""
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
