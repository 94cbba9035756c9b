"""Evaluation of queries, by backtracking.

The patterns are taken one by one, each over the rows that agree with the bindings so
far. When all have matched, the negative patterns are tested, and computations run.

The only departure from the most obvious method: rows are looked up in a dictionary by
their known values, without which tests would take too long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.algebra import Apply, Column, Compute, Require, Role
from evermat.algebra.queries import evaluation_error
from evermat.engines.reference.store import NO_ROWS, Row, rows_of
from evermat.functions import FUNCTIONS, FunctionError
from evermat.values import Constant, boolean_constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evermat.algebra import Expression, Operand, Pattern, Query, Views
    from evermat.engines.reference.store import Rows

Binding = dict[int, Constant]
"""The values of columns, by the index of the column."""

_TRUE = boolean_constant(value=True)


class Lookup:
    """Rows, indexed by some of their values."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._indexes: dict[tuple[int, ...], dict[Row, list[Row]]] = {}

    def find(self, places: tuple[int, ...], key: Row) -> Iterable[Row]:
        """Return the rows that have the values of `key` at `places`."""
        if not places:
            return self.rows
        index = self._indexes.get(places)
        if index is None:
            index = self._indexes[places] = {}
            for row in self.rows:
                index.setdefault(tuple(row[place] for place in places), []).append(row)
        return index.get(key, ())


class Reader:
    """The rows that patterns read in the given views; each view is evaluated once."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._lookups: dict[tuple[Role, bool, str], Lookup] = {}

    def lookup(self, pattern: Pattern) -> Lookup:
        """Return the rows that a pattern may match or, if negative, must not match."""
        key = (pattern.role, pattern.local, pattern.relation)
        if key not in self._lookups:
            facts = self._views.read_by(pattern)
            rows = NO_ROWS if facts is None else rows_of(facts, pattern.relation)
            self._lookups[key] = Lookup(rows)
        return self._lookups[key]


@dataclass(frozen=True, slots=True)
class _Source:
    """A positive pattern, or the inline rows."""

    name: str
    operands: tuple[Operand, ...]
    lookup: Lookup
    is_change: bool = False

    def known(self, bound: set[Operand]) -> tuple[int, ...]:
        """Return the places of the operands that have a value."""
        return tuple(
            place
            for place, operand in enumerate(self.operands)
            if isinstance(operand, Constant) or operand in bound
        )


@dataclass(frozen=True, slots=True)
class Matcher:
    """Finds the matches of one query."""

    query: Query
    reader: Reader

    def matches(self) -> Iterator[Binding]:
        """Yield every match exactly once."""
        for binding in _joined(self._steps(), {}):
            if self._passes(binding):
                yield binding

    def explain(self) -> list[str]:
        """Describe the steps, one per line."""
        lines = []
        for source, places in self._steps():
            how = f"by columns {places}" if places else "all rows"
            lines.append(f"match {source.name}, {how} of {len(source.lookup.rows)}")
        lines += [f"reject matches of {each.relation}" for each in self.query.negative]
        lines += [f"compute {each}" for each in self.query.computations]
        return lines

    def _steps(self) -> list[tuple[_Source, tuple[int, ...]]]:
        """Return the sources in order, with the places known at their turn.

        The change comes first, then always the source with the most known places.
        """
        waiting = list(self._sources())
        bound: set[Operand] = set()
        steps = []
        while waiting:
            chosen = min(
                waiting,
                key=lambda source: (
                    not source.is_change,
                    -len(source.known(bound)),
                    len(source.lookup.rows),
                ),
            )
            waiting.remove(chosen)
            steps.append((chosen, chosen.known(bound)))
            bound |= set(chosen.operands)
        return steps

    def _sources(self) -> Iterator[_Source]:
        for pattern in self.query.positive:
            yield _Source(
                name=f"{pattern.relation} ({pattern.role.name.lower()})",
                operands=pattern.operands,
                lookup=self.reader.lookup(pattern),
                is_change=pattern is self.query.changed,
            )
        inline = self.query.inline
        if inline is not None:
            rows = frozenset(inline.rows)
            yield _Source("inline rows", inline.columns, Lookup(rows))

    def _passes(self, binding: Binding) -> bool:
        """Reject or complete a match, in the order that `Query` specifies."""
        if not self._absent(binding, earlier=set()):
            return False
        for step in self.query.computations:
            earlier = set(binding)
            match step:
                case Compute(target=target, expression=expression):
                    binding[target.index] = self._value(expression, binding)
                case Require(expression=expression):
                    if self._value(expression, binding) != _TRUE:
                        return False
            if not self._absent(binding, earlier=earlier):
                return False
        return True

    def _absent(self, binding: Binding, *, earlier: set[int]) -> bool:
        """Return whether no negative pattern matches, among those newly bound."""
        for pattern in self.query.negative:
            used = {o.index for o in pattern.operands if isinstance(o, Column)}
            if used <= binding.keys() and (not earlier or not used <= earlier):
                row = instance(pattern.operands, binding)
                if row in self.reader.lookup(pattern).rows:
                    return False
        return True

    def _value(self, expression: Expression, binding: Binding) -> Constant:
        try:
            return _evaluate(expression, binding)
        except FunctionError as error:
            label, reason = self.query.label, error.message
            failure = evaluation_error(label, expression, binding, reason)
            failure.name_facts(self.query.positive, binding)
            raise failure from error


def _joined(
    steps: list[tuple[_Source, tuple[int, ...]]], binding: Binding
) -> Iterator[Binding]:
    if not steps:
        yield binding
        return
    (source, places), *rest = steps
    key = tuple(_operand_value(source.operands[place], binding) for place in places)
    for row in source.lookup.find(places, key):
        extended = _bind(source.operands, row, binding)
        if extended is not None:
            yield from _joined(rest, extended)


def _bind(operands: tuple[Operand, ...], row: Row, binding: Binding) -> Binding | None:
    """Return the binding with the columns of a pattern bound, if the row fits."""
    extended = dict(binding)
    for operand, value in zip(operands, row, strict=True):
        match operand:
            case Column(index=index) if extended.setdefault(index, value) != value:
                return None
            case Constant() if operand != value:
                return None
    return extended


def instance(operands: tuple[Operand, ...], binding: Binding) -> Row:
    """Return the row of the values of operands."""
    return tuple(_operand_value(operand, binding) for operand in operands)


def _operand_value(operand: Operand, binding: Binding) -> Constant:
    return binding[operand.index] if isinstance(operand, Column) else operand


def _evaluate(expression: Expression, binding: Binding) -> Constant:
    if isinstance(expression, Apply):
        arguments = [_evaluate(each, binding) for each in expression.arguments]
        return FUNCTIONS[expression.function].evaluate(*arguments)
    return _operand_value(expression, binding)
