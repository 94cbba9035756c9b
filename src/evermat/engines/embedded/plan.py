"""The steps by which a query is run, and how their order is chosen.

A query is run as a pipeline over batches of bindings: the first pattern is scanned, the
others are probed through an index on the columns that are bound by then, and conditions
apply as soon as they can. The change comes first where there is one, because it is
small; after it, always the pattern that is expected to add the fewest matches.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
from evermat.engines.embedded.solving import Solution, find_solution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from evermat.algebra import Expression
    from evermat.values import Constant

CANNOT_FAIL = frozenset({"=", "!=", "<", "<=", ">", ">="})
"""Functions that have a value for all arguments, and so may be used early."""

FEW_INLINE_ROWS = 8
"""So many rows are tried one after the other, as if each were a rule of its own."""


@dataclass(slots=True)
class Step:
    """One stage of the pipeline.

    Attributes:
        keep: the columns that later steps or the head still need.
    """

    keep: frozenset[int] = field(default=frozenset(), init=False)


@dataclass(slots=True)
class Scan(Step):
    """Extend each binding by all facts of a pattern; mostly the first step."""

    pattern: Pattern


@dataclass(slots=True)
class Probe(Step):
    """Extend each binding by the matching facts of a pattern.

    Attributes:
        key: the positions of the pattern that are bound: constants and known columns.
        solution: what fixes one more position where numbers are integers.
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
    """Keep the bindings for which a fact is there, or is not there."""

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
    """Steps in order, and what they were chosen for.

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
        query: what to run.
        fan_out: how many facts of a relation share given values of some positions.
        frequency: how many facts of a relation have certain values there.
        size: how many facts a relation has.
    """
    steps = list(_Planner(query, fan_out, frequency, size).steps())
    _note_columns_to_keep(query, steps)
    relations = {pattern.relation for pattern in (*query.positive, *query.negative)}
    return Plan(query, steps, {name: size(name) for name in relations})


class _Planner:
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
        self.patterns = list(query.positive)
        self.negative = list(query.negative)
        self.computations = list(query.computations)
        self.inline = query.inline

    def steps(self) -> Iterator[Step]:
        changed = self.query.changed
        if changed is not None:
            self.patterns.remove(changed)
            self._bind_pattern(changed)
            yield Scan(changed)
        yield from self._ready()
        while self.patterns or self.inline is not None:
            yield self._cheapest()
            yield from self._ready()
        yield from self._ready_at_last()

    # ------------------------------------------------------------- joins

    def _cheapest(self) -> Step:
        costs: list[tuple[float, int, Pattern | InlineRows]] = [
            (self._cost(pattern), at, pattern)
            for at, pattern in enumerate(self.patterns)
        ]
        if self.inline is not None:
            costs.append((self._inline_cost(self.inline), -1, self.inline))
        _, _, best = min(costs, key=lambda cost: cost[:2])
        if isinstance(best, InlineRows):
            return self._take_inline(best)
        if self.inline is not None and self._is_narrowed_by(self.inline, best):
            return self._take_inline(self.inline)
        self.patterns.remove(best)
        key = self._key(best)
        solution = self._solution(best)
        self._bind_pattern(best)
        if len(key) == len(best.operands):
            return Test(best, present=True)
        return Probe(best, key, solution) if key else Scan(best)

    def _is_narrowed_by(self, inline: InlineRows, pattern: Pattern) -> bool:
        """Whether a pattern is better looked up with few inline rows known.

        Rules that are not folded have constants there, and their indexes will do.
        """
        columns = {column.index for column in inline.columns}
        return (
            len(inline.rows) <= FEW_INLINE_ROWS
            and self.bound.isdisjoint(columns)
            and bool(self._key(pattern))
            and not columns.isdisjoint(_columns_of(pattern))
        )

    def _solution(self, pattern: Pattern) -> Solution | None:
        return find_solution(pattern, self.computations, self.bound)

    def _take_inline(self, inline: InlineRows) -> Step:
        self.inline = None
        key = tuple(
            at for at, column in enumerate(inline.columns) if column.index in self.bound
        )
        self.bound |= {column.index for column in inline.columns}
        return ProbeInline(inline, key)

    def _cost(self, pattern: Pattern) -> float:
        key = self._key(pattern)
        solution = self._solution(pattern) if key else None
        if solution is not None:
            key = tuple(sorted((*key, solution.position)))
        if len(key) == len(pattern.operands):
            return 0.0
        if not key:
            # Nothing in common with what is bound: all pairs, unless it comes first.
            size = float(self.size(pattern.relation))
            # What is empty now need not stay so, and programs scan but once.
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
        self.bound |= set(_columns_of(pattern))

    # -------------------------------------------------------- conditions

    def _ready(self) -> Iterator[Step]:
        """What can be tested by now, and cannot fail."""
        for pattern in [
            p for p in self.negative if self.bound.issuperset(_columns_of(p))
        ]:
            self.negative.remove(pattern)
            yield Test(pattern, present=False)
        for step in list(self.computations):
            if (
                isinstance(step, Require)
                and _cannot_fail(step.expression)
                and self.bound.issuperset(_columns_in(step.expression))
            ):
                self.computations.remove(step)
                yield Check(step)

    def _ready_at_last(self) -> Iterator[Step]:
        """The computations, in the order in which the query has them."""
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
    """The steps, a line each, for people."""
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
