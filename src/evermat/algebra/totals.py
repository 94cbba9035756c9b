"""The aggregate functions, on constants.

A sum is stored with a *state*, from which it can be updated without reading the other
members of its group, and which does not depend on the order in which members were
inserted and deleted. If all members are integers, the state is their number. Otherwise
it is a string: the number of members, the numbers of decimals, doubles, positive and
negative infinities and NaNs among them, and the exact sum of the others.

Doubles are summed exactly and rounded once, so the result is the double nearest to the
sum.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import cmp_to_key
from typing import TYPE_CHECKING

from evermat.functions import FunctionError, compare, number_of, quotient
from evermat.values import (
    NUMERIC_KINDS,
    Constant,
    Kind,
    decimal_constant,
    double_constant,
    integer_constant,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_EXACT = Context(prec=100_000)


@dataclass(frozen=True, slots=True)
class Total:
    """A running sum of numbers; `INF`, `-INF` and `NaN` are counted separately."""

    size: int = 0
    decimals: int = 0
    doubles: int = 0
    infinities: tuple[int, int, int] = (0, 0, 0)
    exact: int | Decimal = 0

    def changed(self, name: str, value: Constant, sign: int) -> Total:
        """Return the total with a number added, or subtracted if `sign` is negative."""
        number = number_of(name, value)
        size = self.size + sign
        if isinstance(number, int):
            if isinstance(self.exact, int):
                return replace(self, size=size, exact=self.exact + sign * number)
            number = Decimal(number)
        if isinstance(number, float):
            doubles = self.doubles + sign
            if not math.isfinite(number):
                at = 2 if math.isnan(number) else int(number < 0)
                counts = list(self.infinities)
                counts[at] += sign
                first, second, third = counts
                return replace(
                    self, size=size, doubles=doubles, infinities=(first, second, third)
                )
            exact = self._with(Decimal(number), sign)
            return replace(self, size=size, doubles=doubles, exact=exact)
        decimals = self.decimals + (value.kind is Kind.DECIMAL) * sign
        return replace(
            self, size=size, decimals=decimals, exact=self._with(number, sign)
        )

    def _with(self, number: Decimal, sign: int) -> Decimal:
        operation = _EXACT.add if sign > 0 else _EXACT.subtract
        return operation(Decimal(self.exact), number)

    @property
    def is_of_integers(self) -> bool:
        """Return whether all the numbers are integers."""
        return not self.decimals and not self.doubles

    def sum(self) -> Constant:
        """Return the sum."""
        if self.is_of_integers:
            return _integer("sum", self.exact)
        if self.doubles:
            return double_constant(self._as_double(float(self.exact)))
        return decimal_constant(_EXACT.plus(Decimal(self.exact)))

    def average(self) -> Constant:
        """Return the average: a double if any number is one, otherwise a decimal."""
        if self.doubles:
            finite = float(Fraction(self.exact) / self.size)
            return double_constant(self._as_double(finite))
        return decimal_constant(quotient(Decimal(self.exact), Decimal(self.size)))

    def _as_double(self, finite: float) -> float:
        positive, negative, undefined = self.infinities
        if undefined or (positive and negative):
            return math.nan
        if positive or negative:
            return math.inf if positive else -math.inf
        return finite

    def state(self, *, with_sum: bool) -> Constant:
        """Encode the total as a constant; a known sum of integers is left out."""
        if self.is_of_integers and not with_sum:
            return integer_constant(self.size)
        exact = _EXACT.normalize(Decimal(self.exact))
        numbers = (self.size, self.decimals, self.doubles, *self.infinities)
        return Constant(Kind.STRING, " ".join([*map(str, numbers), str(exact or 0)]))

    @classmethod
    def of(cls, value: Constant, state: Constant) -> Total:
        """Decode the total of a value and a state."""
        if state.kind is Kind.INTEGER:
            return cls(size=int(state.text), exact=int(value.text))
        *numbers, exact = state.text.split(" ")
        size, decimals, doubles, *infinities = map(int, numbers)
        first, second, third = infinities
        whole = Decimal(exact)
        is_integer = not decimals and not doubles
        return cls(
            size,
            decimals,
            doubles,
            (first, second, third),
            int(whole) if is_integer else whole,
        )


def _integer(name: str, value: int | Decimal) -> Constant:
    try:
        return integer_constant(int(value))
    except ValueError:
        raise FunctionError(f"`{name}`: an integer has too many digits") from None


def total_of(name: str, values: Iterable[Constant]) -> Total:
    """Return the total of numbers."""
    total = Total()
    for value in values:
        total = total.changed(name, value, 1)
    return total


def better(name: str, one: Constant, other: Constant) -> Constant:
    """Return the lesser (or greater) of two constants; equals have a fixed order."""
    if one == other:
        return one
    order = compare(one, other)
    if order is None:
        first, second = sorted((one, other), key=_text_key)
        raise FunctionError(f"`{name}`: {first} and {second} are in no order")
    if order == 0:
        return min(one, other, key=_text_key)
    return one if (order < 0) == (name == "min") else other


def _text_key(value: Constant) -> tuple[int, str]:
    return int(value.kind), value.text


def _extreme(name: str) -> Callable[[list[Constant]], tuple[Constant, ...]]:
    def evaluate(values: list[Constant]) -> tuple[Constant, ...]:
        best = values[0]
        for value in values[1:]:
            best = better(name, best, value)
        return (best,)

    return evaluate


def _count(values: list[Constant]) -> tuple[Constant, ...]:
    return (integer_constant(len(values)),)


def _sum(values: list[Constant]) -> tuple[Constant, ...]:
    return sum_columns(total_of("sum", values))


def sum_columns(total: Total) -> tuple[Constant, ...]:
    """Return a sum and its state."""
    return total.sum(), total.state(with_sum=False)


def _average(values: list[Constant]) -> tuple[Constant, ...]:
    return average_columns(total_of("avg", values))


def average_columns(total: Total) -> tuple[Constant, ...]:
    """Return an average and its state."""
    return total.average(), total.state(with_sum=True)


def _any(values: list[Constant]) -> tuple[Constant, ...]:
    return (min(values, key=_text_key),)


def _list(values: list[Constant]) -> tuple[Constant, ...]:
    ordered = sorted(values, key=cmp_to_key(_compare_all))
    text = f"[{', '.join(map(_json, ordered))}]"
    return (Constant(Kind.STRING, text),)


def _compare_all(one: Constant, other: Constant) -> int:
    """Compare constants of any kind: numbers first, then kind by kind."""
    ranks = one.kind not in NUMERIC_KINDS, other.kind not in NUMERIC_KINDS
    if ranks[0] == ranks[1]:
        order = compare(one, other)
        if order:
            return order
    mine, others = (ranks[0], *_text_key(one)), (ranks[1], *_text_key(other))
    return (mine > others) - (mine < others)


def _json(value: Constant) -> str:
    if value.kind in {Kind.INTEGER, Kind.DECIMAL, Kind.BOOLEAN}:
        return value.text
    text = value.text if value.kind is Kind.STRING else str(value)
    return json.dumps(text, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One aggregate function.

    Attributes:
        columns: computes the columns after the group from the values of the members.
        has_state: whether there is a state next to the value.
    """

    name: str
    columns: Callable[[list[Constant]], tuple[Constant, ...]] = field(repr=False)
    has_state: bool = False


AGGREGATES = {
    function.name: function
    for function in (
        AggregateFunction("count", _count),
        AggregateFunction("sum", _sum, has_state=True),
        AggregateFunction("min", _extreme("min")),
        AggregateFunction("max", _extreme("max")),
        AggregateFunction("avg", _average, has_state=True),
        AggregateFunction("list", _list),
        AggregateFunction("any", _any),
    )
}
"""The aggregate functions, by name."""
