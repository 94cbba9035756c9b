"""Query plans: the steps of a query, and the choice of their order.

A query is a pipeline over batches of bindings: the first pattern is scanned, the others
are probed through an index on the columns that are bound by then, and conditions apply
as early as possible. A change comes first, because it is small; after it, always the
pattern that is expected to add the fewest matches. The estimates come from a sample of
each relation's rows (`Statistics`): they must be quick and seldom far off, not exact.

Equations between integers are solved before a pattern is probed. A rule such as `d(?y,
?z) :- d(?x, ?a), edge(?x, ?y, ?b), ?z = ?a + ?b` that is run from head to body knows ?z
and ?b before it looks for `d(?x, ?a)`. Functions cannot be inverted in general, so the
equation is checked in the end; but if both are integers, only ?z - ?b can pass, and one
fact is looked up instead of all that share ?x. Sums of other numbers are rounded or
have other kinds, so they are probed without the solution.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from evermat.algebra import (
    Apply,
    Column,
    Compute,
    InlineRows,
    Pattern,
    Query,
    Require,
    Role,
)
from evermat.engines.embedded.index import make_keys
from evermat.engines.embedded.kernels import keys as kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import TypeGuard

    from evermat.algebra import Compute, Expression, Operand
    from evermat.engines.embedded.arrays import Ids
    from evermat.values import Constant


@dataclass(frozen=True, slots=True)
class Solution:
    """A solved equation: the column at a position must be `left + sign * right`."""

    position: int
    column: int
    left: Operand
    right: Operand
    sign: int


def can_be_solved(step: Compute | Require) -> TypeGuard[Require]:
    """Return whether a step is an equation that may determine a column of a pattern."""
    return isinstance(step, Require) and any(_forms(step.expression))


def find_solution(
    pattern: Pattern, equations: Iterable[Require], bound: set[int]
) -> Solution | None:
    """Return how an equation determines another column of a pattern."""
    free = {
        operand.index: at
        for at, operand in enumerate(pattern.operands)
        if isinstance(operand, Column) and operand.index not in bound
    }
    for step in equations:
        for unknown, left, right, sign in _forms(step.expression):
            if unknown in free and _is_known(left, bound) and _is_known(right, bound):
                return Solution(free[unknown], unknown, left, right, sign)
    return None


def _forms(equation: Apply) -> Iterator[tuple[int, Operand, Operand, int]]:
    """Yield for each column of `z = a + b` or `z = a - b` its solution."""
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


CANNOT_FAIL = frozenset({"=", "!=", "<", "<=", ">", ">="})
"""Functions that are defined for all arguments, and so may be evaluated early."""

FEW_INLINE_ROWS = 8
"""Up to this many rows are tried one after the other, like rules that are not folded.
"""


@dataclass(slots=True)
class Step:
    """One step of a plan.

    Attributes:
        keep: the columns that later steps or the head still need.
    """

    keep: frozenset[int] = field(default=frozenset(), init=False)


@dataclass(slots=True)
class Scan(Step):
    """Extend each binding by all facts of a pattern; usually the first step."""

    pattern: Pattern


@dataclass(slots=True)
class Probe(Step):
    """Extend each binding by the matching facts of a pattern.

    Attributes:
        key: the positions of the pattern that are bound: constants and known columns.
        solution: a solved equation for one more position, if its operands are integers.
    """

    pattern: Pattern
    key: tuple[int, ...]
    solution: Solution | None = None


@dataclass(slots=True)
class ProbeInline(Step):
    """Extend each binding by the matching inline rows."""

    inline: InlineRows
    key: tuple[int, ...]


@dataclass(slots=True)
class Test(Step):
    """Keep the bindings for which a fact exists, or for which it does not."""

    pattern: Pattern
    present: bool


@dataclass(slots=True)
class Calculate(Step):
    """Compute a column."""

    compute: Compute


@dataclass(slots=True)
class Check(Step):
    """Keep the bindings for which an expression is true."""

    require: Require


@dataclass(slots=True)
class Plan:
    """A query's steps in order.

    Attributes:
        sizes: the number of rows of each relation when the plan was made.
    """

    query: Query
    steps: list[Step]
    sizes: dict[str, int]


def make_plan(
    query: Query,
    fan_out: Callable[[str, tuple[int, ...]], float],
    frequency: Callable[[str, Mapping[int, Constant]], float],
    size: Callable[[str], int],
) -> Plan:
    """Choose the order of the steps of a query.

    Args:
        query: the query.
        fan_out: estimates how many facts of a relation share values at some positions.
        frequency: estimates how many facts of a relation have certain values there.
        size: returns the number of facts of a relation.
    """
    steps = list(_Planner(query, fan_out, frequency, size).steps())
    _note_columns_to_keep(query, steps)
    relations = {pattern.relation for pattern in (*query.positive, *query.negative)}
    return Plan(query, steps, {name: size(name) for name in relations})


class _Planner:
    """Chooses one step after the other, greedily.

    The cost of a pattern is recomputed only when columns that it depends on have been
    bound, so that planning is at most quadratic in the size of a rule.
    """

    def __init__(
        self,
        query: Query,
        fan_out: Callable[[str, tuple[int, ...]], float],
        frequency: Callable[[str, Mapping[int, Constant]], float],
        size: Callable[[str], int],
    ) -> None:
        self.query = query
        self.fan_out = fan_out
        self.frequency = frequency
        self.size = size
        self.bound: set[int] = set()
        self.patterns = dict(enumerate(query.positive))
        self.negative = list(query.negative)
        self.computations = list(query.computations)
        self.equations = [step for step in query.computations if can_be_solved(step)]
        self.inline = query.inline
        self._costs: dict[int, float] = {}
        """The cost of each pattern."""
        self._queue: list[tuple[float, int]] = []
        """A heap of costs and patterns; outdated entries are skipped."""
        self._touched = self._patterns_by_column()
        self._conditions = _Conditions(query)

    def _patterns_by_column(self) -> dict[int, set[int]]:
        """Return for each column the patterns whose cost may depend on it."""
        by_column: dict[int, set[int]] = {}
        for at, pattern in self.patterns.items():
            for column in _columns_of(pattern):
                by_column.setdefault(column, set()).add(at)
        solved: dict[int, set[int]] = {}
        for step in self.equations:
            columns = set(_columns_in(step.expression))
            touched = {at for each in columns for at in by_column.get(each, ())}
            for column in columns:
                solved.setdefault(column, set()).update(touched)
        for column, touched in solved.items():
            by_column.setdefault(column, set()).update(touched)
        return by_column

    def steps(self) -> Iterator[Step]:
        changed = self.query.changed
        if changed is not None:
            del self.patterns[self.query.positive.index(changed)]
            self._bind_pattern(changed)
            yield Scan(changed)
        if not self.bound:
            self._weigh(self.patterns)
        yield from self._ready()
        while self.patterns or self.inline is not None:
            yield self._cheapest()
            yield from self._ready()
        yield from self._ready_at_last()

    # ------------------------------------------------------------- joins

    def _cheapest(self) -> Step:
        inline = self.inline
        if inline is not None and self._comes_now(inline):
            return self._take_inline(inline)
        at = self._cheapest_pattern()
        best = self.patterns.pop(at)
        key = self._key(best)
        solution = self._solution(best)
        self._bind_pattern(best)
        if len(key) == len(best.operands):
            return Test(best, present=True)
        return Probe(best, key, solution) if key else Scan(best)

    def _comes_now(self, inline: InlineRows) -> bool:
        """Return whether inline rows come before the cheapest pattern."""
        if not self.patterns:
            return True
        at = self._cheapest_pattern()
        return self._inline_cost(inline) <= self._costs[at] or self._is_narrowed_by(
            inline, self.patterns[at]
        )

    def _cheapest_pattern(self) -> int:
        """Return the position of the first of the cheapest patterns."""
        while True:
            cost, at = self._queue[0]
            if at in self.patterns and self._costs[at] == cost:
                return at
            heappop(self._queue)

    def _weigh(self, patterns: Iterable[int]) -> None:
        """Compute the current costs of some patterns."""
        for at in patterns:
            cost = self._cost(self.patterns[at])
            if self._costs.get(at) != cost:
                self._costs[at] = cost
                heappush(self._queue, (cost, at))

    def _bind(self, columns: Iterable[int]) -> None:
        new = set(columns) - self.bound
        if not new:
            return
        is_first = not self.bound
        self.bound |= new
        self._conditions.bind(new)
        if is_first:
            self._weigh(self.patterns)
        else:
            touched = {at for each in new for at in self._touched.get(each, ())}
            self._weigh(touched & self.patterns.keys())

    def _is_narrowed_by(self, inline: InlineRows, pattern: Pattern) -> bool:
        """Return whether a pattern is better looked up once few inline rows are bound.

        Rules that are not folded have constants there, and share their indexes.
        """
        columns = {column.index for column in inline.columns}
        return (
            len(inline.rows) <= FEW_INLINE_ROWS
            and self.bound.isdisjoint(columns)
            and bool(self._key(pattern))
            and not columns.isdisjoint(_columns_of(pattern))
        )

    def _solution(self, pattern: Pattern) -> Solution | None:
        return find_solution(pattern, self.equations, self.bound)

    def _take_inline(self, inline: InlineRows) -> Step:
        self.inline = None
        key = tuple(
            at for at, column in enumerate(inline.columns) if column.index in self.bound
        )
        self._bind(column.index for column in inline.columns)
        return ProbeInline(inline, key)

    def _cost(self, pattern: Pattern) -> float:
        key = self._key(pattern)
        solution = self._solution(pattern) if key else None
        if solution is not None:
            key = tuple(sorted((*key, solution.position)))
        if len(key) == len(pattern.operands):
            return 0.0
        if not key:
            # No column in common with the bound ones: a product, unless it comes first.
            size = float(self.size(pattern.relation))
            # An empty relation may be filled later, and programs scan only once.
            return 1e6 * max(size, 1.0) if self.bound else size
        constants = {
            at: operand
            for at, operand in enumerate(pattern.operands)
            if not isinstance(operand, Column)
        }
        if len(constants) == len(key):
            return self.frequency(pattern.relation, constants)
        return self.fan_out(pattern.relation, key)

    def _inline_cost(self, inline: InlineRows) -> float:
        known = sum(column.index in self.bound for column in inline.columns)
        if known == 0:
            return len(inline.rows) * (1e6 if self.bound else 1.0)
        return 0.5 if known == len(inline.columns) else 1.0

    def _key(self, pattern: Pattern) -> tuple[int, ...]:
        return tuple(
            at
            for at, operand in enumerate(pattern.operands)
            if not isinstance(operand, Column) or operand.index in self.bound
        )

    def _bind_pattern(self, pattern: Pattern) -> None:
        self._bind(_columns_of(pattern))

    # -------------------------------------------------------- conditions

    def _ready(self) -> Iterator[Step]:
        """Yield conditions whose columns are bound, and which cannot fail."""
        for condition in self._conditions.take_ready():
            if isinstance(condition, Pattern):
                self.negative.remove(condition)
                yield Test(condition, present=False)
            else:
                self.computations.remove(condition)
                yield Check(condition)

    def _ready_at_last(self) -> Iterator[Step]:
        """Yield the computations, in the order of the query."""
        for step in self.computations:
            if isinstance(step, Require):
                yield Check(step)
            else:
                self.bound.add(step.target.index)
                yield Calculate(step)
            for pattern in list(self.negative):
                if self.bound.issuperset(_columns_of(pattern)):
                    self.negative.remove(pattern)
                    yield Test(pattern, present=False)


class _Conditions:
    """Negated patterns and comparisons that wait for their columns to be bound."""

    def __init__(self, query: Query) -> None:
        self._all: list[Pattern | Require] = list(query.negative)
        columns = [set(_columns_of(pattern)) for pattern in query.negative]
        for step in query.computations:
            if isinstance(step, Require) and _cannot_fail(step.expression):
                self._all.append(step)
                columns.append(set(_columns_in(step.expression)))
        self._missing = [len(each) for each in columns]
        self._ready = [at for at, each in enumerate(columns) if not each]
        self._waiting: dict[int, list[int]] = {}
        for at, each in enumerate(columns):
            for column in each:
                self._waiting.setdefault(column, []).append(at)

    def bind(self, columns: set[int]) -> None:
        """Record newly bound columns."""
        for column in columns:
            for at in self._waiting.pop(column, ()):
                self._missing[at] -= 1
                if not self._missing[at]:
                    self._ready.append(at)

    def take_ready(self) -> list[Pattern | Require]:
        """Return those whose columns are all bound, in the order of the query."""
        taken = [self._all[at] for at in sorted(self._ready)]
        self._ready.clear()
        return taken


def _columns_of(pattern: Pattern) -> Iterator[int]:
    return (op.index for op in pattern.operands if isinstance(op, Column))


def _columns_in(expression: Expression) -> Iterator[int]:
    match expression:
        case Column(index=index):
            yield index
        case Apply(arguments=arguments):
            for argument in arguments:
                yield from _columns_in(argument)


def _cannot_fail(expression: Expression) -> bool:
    match expression:
        case Apply(function=function, arguments=arguments):
            return function in CANNOT_FAIL and all(
                not isinstance(argument, Apply) for argument in arguments
            )
        case _:
            return True


def _note_columns_to_keep(query: Query, steps: list[Step]) -> None:
    needed = set(_columns_of(query.head))
    for step in reversed(steps):
        step.keep = frozenset(needed)
        match step:
            case Scan(pattern=pattern) | Probe(pattern=pattern) | Test(pattern=pattern):
                needed |= set(_columns_of(pattern))
            case ProbeInline(inline=inline):
                needed |= {column.index for column in inline.columns}
            case Calculate(compute=compute):
                needed |= set(_columns_in(compute.expression))
            case Check(require=require):
                needed |= set(_columns_in(require.expression))


def describe(plan: Plan) -> list[str]:
    """Return the steps as text, one line each."""
    return [_describe(step) for step in plan.steps]


def _describe(step: Step) -> str:
    match step:
        case Scan(pattern=pattern):
            return f"scan {_pattern_text(pattern)}"
        case Probe(pattern=pattern, key=key, solution=solution):
            also = "" if solution is None else f", and by ${solution.column} if integer"
            return f"probe {_pattern_text(pattern)} by {_positions(key)}{also}"
        case ProbeInline(inline=inline, key=key):
            rows = f"{len(inline.rows)} inline rows"
            return f"probe {rows} by {_positions(key)}"
        case Test(pattern=pattern, present=present):
            return f"{'require' if present else 'exclude'} {_pattern_text(pattern)}"
        case Calculate(compute=compute):
            return f"compute ${compute.target.index} = {_text(compute.expression)}"
        case Check(require=require):
            return f"check {_text(require.expression)}"
        case _:
            return type(step).__name__


def _positions(key: tuple[int, ...]) -> str:
    return "columns " + ", ".join(str(at) for at in key) if key else "nothing"


def _pattern_text(pattern: Pattern) -> str:
    operands = ", ".join(_text(operand) for operand in pattern.operands)
    role = "" if pattern.role is Role.ALL else f" [{pattern.role.name.lower()}]"
    return f"{pattern.relation}({operands}){role}"


def _text(expression: Expression) -> str:
    match expression:
        case Column(index=index):
            return f"${index}"
        case Apply(function=function, arguments=arguments):
            inner = ", ".join(_text(argument) for argument in arguments)
            return f"{function}({inner})"
        case _:
            return str(expression)


SAMPLE = 2048
"""Number of rows in a sample."""


class Statistics:
    """Estimates for a table, from a sample of its rows.

    Attributes:
        count: the number of rows of the table.
    """

    def __init__(self, table: Ids) -> None:
        self.count = int(table.shape[1])
        self._step = max(1, self.count // SAMPLE)
        self._sample: Ids = table[:, :: self._step].copy()
        self._distinct: dict[tuple[int, ...], float] = {}

    def fan_out(self, columns: tuple[int, ...]) -> float:
        """Estimate how many rows share values of some columns."""
        if not self.count:
            return 0.0
        distinct = self._distinct.get(columns)
        if distinct is None:
            distinct = self._distinct[columns] = self._estimate_distinct(columns)
        return max(self.count / distinct, 1e-3)

    def frequency(self, values: Mapping[int, int]) -> float:
        """Estimate how many rows have certain values, by column.

        Values are not equally frequent: most triples may have the same predicate.
        """
        usual = self.fan_out(tuple(values))
        seen = np.ones(self._sample.shape[1], np.bool_)
        for column, value in values.items():
            seen &= self._sample[column] == value
        times = int(np.count_nonzero(seen))
        return float(times * self._step) if times else min(usual, float(self._step))

    def _estimate_distinct(self, columns: tuple[int, ...]) -> float:
        sample = make_keys(self._sample[list(columns)])
        sample = kernels.sort_keys(sample, np.empty_like(sample))
        different = int(np.count_nonzero(sample[1:] != sample[:-1])) + 1
        if self._step == 1:
            return float(different)
        once = sample[1:-1][
            (sample[1:-1] != sample[:-2]) & (sample[1:-1] != sample[2:])
        ].size
        # Values seen once in the sample represent values not seen at all.
        return float(different + once * (self._step - 1))
