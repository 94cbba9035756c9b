"""Expressions over whole columns of ids.

Small integers are computed with as arrays of numbers, which is the common case and
needs no dictionary. Everything else takes the definition in `evermat.functions`, once
for each distinct combination of arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.algebra import Apply, Column, evaluation_error
from evermat.engines.embedded.dictionary import FIRST_INTEGER, INTEGER_ZERO
from evermat.functions import FunctionError, evaluate
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from evermat.algebra import Expression
    from evermat.engines.embedded.arrays import Ids
    from evermat.engines.embedded.dictionary import Dictionary

    Numbers = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

LARGEST_FACTOR = 1 << 31
"""Products of two numbers below this fit into 64 bits."""

_COMPARISONS: dict[str, Callable[..., Mask]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_ARITHMETIC: dict[str, Callable[..., Numbers]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


class Calculator:
    """Evaluates the expressions of one query over batches of bindings."""

    def __init__(self, dictionary: Dictionary, label: str) -> None:
        self._dictionary = dictionary
        self._label = label

    def column(self, expression: Expression, columns: Mapping[int, Ids], n: int) -> Ids:
        """The value of an expression for each of n bindings."""
        if isinstance(expression, Column):
            return columns[expression.index]
        if isinstance(expression, Constant):
            return np.full(n, self._id(expression), np.uint32)
        numbers = self._numbers(expression, columns, n)
        if numbers is not None:
            return self._dictionary.encode_numbers(numbers)
        return self._by_definition(expression, columns, n)

    def mask(self, expression: Apply, columns: Mapping[int, Ids], n: int) -> Mask:
        """For which of n bindings an expression is true."""
        name = expression.function
        if name in {"=", "!="}:
            left, right = (self.column(e, columns, n) for e in expression.arguments)
            return np.equal(left, right) if name == "=" else np.not_equal(left, right)
        if name in _COMPARISONS:
            sides = [self._numbers(e, columns, n) for e in expression.arguments]
            if sides[0] is not None and sides[1] is not None:
                return _COMPARISONS[name](sides[0], sides[1])
        truth = self._id(Constant(Kind.BOOLEAN, "true"))
        return np.equal(self._by_definition(expression, columns, n), truth)

    # ---------------------------------------------------------------- small integers

    def _numbers(
        self, expression: Expression, columns: Mapping[int, Ids], n: int
    ) -> Numbers | None:
        """The value as 64-bit integers, or None where that will not do."""
        match expression:
            case Column(index=index):
                return _small_integers(columns[index])
            case Constant():
                one = _small_integers(np.array([self._id(expression)], np.uint32))
                return None if one is None else np.broadcast_to(one, n)
            case Apply(function=name, arguments=arguments):
                values = [self._numbers(e, columns, n) for e in arguments]
                if any(value is None for value in values):
                    return None
                return _apply(name, [value for value in values if value is not None])

    # ------------------------------------------------------------------ by definition

    def _by_definition(
        self, expression: Apply, columns: Mapping[int, Ids], n: int
    ) -> Ids:
        if n == 0:
            return np.empty(0, np.uint32)
        used = sorted(set(_columns_in(expression)))
        table = np.stack([columns[index] for index in used]) if used else None
        if table is None:
            return np.full(n, self._id(self._one(expression, {})), np.uint32)
        order = np.lexsort(table)
        table = table[:, order]
        new = np.ones(n, np.bool_)
        new[1:] = (table[:, 1:] != table[:, :-1]).any(axis=0)
        constants: list[Constant] = []
        for row in table[:, new].T.tolist():
            binding = {
                index: self._dictionary.constant(id_)
                for index, id_ in zip(used, row, strict=True)
            }
            constants.append(self._one(expression, binding))
        ids = self._dictionary.encode_constants(constants)
        result = np.empty(n, np.uint32)
        result[order] = ids[np.cumsum(new) - 1]
        return result

    def _one(self, expression: Expression, binding: dict[int, Constant]) -> Constant:
        match expression:
            case Column(index=index):
                return binding[index]
            case Constant():
                return expression
            case Apply(function=name, arguments=arguments):
                values = [self._one(argument, binding) for argument in arguments]
                try:
                    return evaluate(name, *values)
                except FunctionError as error:
                    raise evaluation_error(
                        self._label, expression, binding, error.message
                    ) from error

    def _id(self, constant: Constant) -> int:
        return self._dictionary.id_of(constant)


def _small_integers(ids: Ids) -> Numbers | None:
    if ids.size and ids.min() < FIRST_INTEGER:
        return None
    return ids.astype(np.int64) - INTEGER_ZERO


def _apply(name: str, values: list[Numbers]) -> Numbers | None:
    """A function of integers, or None if it is not one or does not surely fit."""
    if not all(_fits(value) for value in values):
        return None
    if name in _ARITHMETIC and len(values) == 2:  # noqa: PLR2004  binary operators
        return _ARITHMETIC[name](values[0], values[1])
    if len(values) == 1 and name == "-":
        return -values[0]
    if len(values) == 1 and name == "abs":
        return np.abs(values[0])
    if name in {"/", "%"} and len(values) == 2 and values[1].all():  # noqa: PLR2004
        dividend, divisor = values
        # NumPy rounds down; the language cuts towards zero.
        quotient: Numbers = np.abs(dividend) // np.abs(divisor)
        quotient *= np.sign(dividend) * np.sign(divisor)
        return quotient if name == "/" else dividend - quotient * divisor
    return None


def _fits(numbers: Numbers) -> bool:
    if not numbers.size:
        return True
    return bool(numbers.min() > -LARGEST_FACTOR and numbers.max() < LARGEST_FACTOR)


def _columns_in(expression: Expression) -> list[int]:
    match expression:
        case Column(index=index):
            return [index]
        case Apply(arguments=arguments):
            return [index for argument in arguments for index in _columns_in(argument)]
        case _:
            return []
