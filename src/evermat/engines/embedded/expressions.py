"""Evaluates expressions over whole columns of ids.

Columns of small integers or of doubles are evaluated as arrays of numbers. All other
cases, and any that might fail or overflow, use the definition in `evermat.functions`,
once for each distinct combination of arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.algebra import Apply, Column
from evermat.algebra.queries import EvaluationError, evaluation_error
from evermat.functions import FUNCTIONS, FunctionError, evaluate
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from evermat.algebra import Expression, Pattern
    from evermat.engines.embedded.arrays import Ids, Mask
    from evermat.engines.embedded.dictionary import Dictionary

    Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]

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
}
_EXTREMES: dict[str, Callable[..., Numbers]] = {"min": np.minimum, "max": np.maximum}


class Calculator:
    """Evaluates the expressions of one query over batches of bindings.

    Args:
        dictionary: the constants.
        label: the name of the rule in errors.
        patterns: the body patterns of the rule, shown in errors.
    """

    def __init__(
        self, dictionary: Dictionary, label: str, patterns: Sequence[Pattern] = ()
    ) -> None:
        self._dictionary = dictionary
        self._label = label
        self._patterns = patterns

    def column(self, expression: Expression, columns: Mapping[int, Ids], n: int) -> Ids:
        """Return the value of an expression for each of n bindings."""
        if isinstance(expression, Column):
            return columns[expression.index]
        if isinstance(expression, Constant):
            return np.full(n, self._id(expression), np.uint32)
        numbers = self._numbers(expression, columns, n)
        if numbers is not None:
            return self._dictionary.encode_numbers(numbers)
        return self._by_definition(expression, columns, n)

    def mask(self, expression: Apply, columns: Mapping[int, Ids], n: int) -> Mask:
        """Return for which of n bindings an expression is true."""
        name = expression.function
        if name in {"=", "!="}:
            left, right = (self.column(e, columns, n) for e in expression.arguments)
            return np.equal(left, right) if name == "=" else np.not_equal(left, right)
        if name in _COMPARISONS:
            sides = [self._numbers(e, columns, n) for e in expression.arguments]
            known = [side for side in sides if side is not None]
            if len(known) == len(sides) and all(map(_fits, known)):
                return _COMPARISONS[name](*known)
        truth = self._id(Constant(Kind.BOOLEAN, "true"))
        return np.equal(self._by_definition(expression, columns, n), truth)

    # ---------------------------------------------------------------------- numbers

    def _numbers(
        self, expression: Expression, columns: Mapping[int, Ids], n: int
    ) -> Numbers | None:
        """Return the value as an array of integers or doubles, if possible."""
        match expression:
            case Column(index=index):
                return self._dictionary.numbers(columns[index])
            case Constant():
                ids = np.full(n, self._id(expression), np.uint32)
                return self._dictionary.numbers(ids)
            case Apply(function=name, arguments=arguments):
                values = [self._numbers(e, columns, n) for e in arguments]
                known = [value for value in values if value is not None]
                return _apply(name, known) if len(known) == len(values) else None

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
        constants = self._by_columns(expression, used, table[:, new])
        if constants is not None:
            ids = self._dictionary.encode_constants(constants)
            result = np.empty(n, np.uint32)
            result[order] = ids[np.cumsum(new) - 1]
            return result
        constants = []
        for first, row in zip(order[new], table[:, new].T.tolist(), strict=True):
            binding = {
                index: self._dictionary.constant(id_)
                for index, id_ in zip(used, row, strict=True)
            }
            try:
                constants.append(self._one(expression, binding))
            except EvaluationError as error:
                error.name_facts(self._patterns, self._binding(columns, first))
                raise
        ids = self._dictionary.encode_constants(constants)
        result = np.empty(n, np.uint32)
        result[order] = ids[np.cumsum(new) - 1]
        return result

    def _by_columns(
        self, expression: Apply, used: Sequence[int], table: Ids
    ) -> list[Constant] | None:
        """Return the values for all rows by one call, if that is supported."""
        compute = FUNCTIONS[expression.function].evaluate_columns
        if compute is None or not used:
            return None
        decoded = {
            index: [self._dictionary.constant(id_) for id_ in ids.tolist()]
            for index, ids in zip(used, table, strict=True)
        }
        columns: list[list[Constant]] = []
        for argument in expression.arguments:
            if isinstance(argument, Column):
                columns.append(decoded[argument.index])
            elif isinstance(argument, Constant):
                columns.append([argument] * table.shape[1])
            else:
                return None
        try:
            return compute(columns)
        except FunctionError:
            return None  # row by row, to find the one that fails

    def _binding(self, columns: Mapping[int, Ids], row: int) -> dict[int, Constant]:
        return {
            index: self._dictionary.constant(int(ids[row]))
            for index, ids in columns.items()
        }

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


def _apply(name: str, values: list[Numbers]) -> Numbers | None:
    """Apply a function to numbers; None if it is not numeric, or might overflow."""
    if len(values) == 1:
        return _apply_to_one(name, values[0])
    if len(values) != 2:  # noqa: PLR2004  there are only binary operators
        return None
    left, right = values
    if left.dtype != right.dtype:
        left, right = left.astype(np.float64), right.astype(np.float64)
    if left.dtype == np.float64:
        return _apply_to_doubles(name, left, right)
    if not _fits(left) or not _fits(right):
        return None
    if name in _ARITHMETIC or name in _EXTREMES:
        return (_ARITHMETIC | _EXTREMES)[name](left, right)
    return _divide(name, left, right)


def _apply_to_one(name: str, value: Numbers) -> Numbers | None:
    if name == "-":
        return -value
    return np.abs(value) if name == "abs" else None


def _apply_to_doubles(name: str, left: Numbers, right: Numbers) -> Numbers | None:
    with np.errstate(all="ignore"):  # as in IEEE 754: infinite, or not a number
        if name in _ARITHMETIC:
            return _ARITHMETIC[name](left, right)
        if name == "/" and right.all():
            return left / right
    return None


def _divide(name: str, dividend: Numbers, divisor: Numbers) -> Numbers | None:
    if name not in {"/", "%"} or not divisor.all():
        return None
    # NumPy rounds down; the language truncates towards zero.
    quotient: Numbers = np.abs(dividend) // np.abs(divisor)
    quotient *= np.sign(dividend) * np.sign(divisor)
    return quotient if name == "/" else dividend - quotient * divisor


def _fits(numbers: Numbers) -> bool:
    """Return whether integers are small enough to multiply or compare exactly."""
    if not numbers.size or numbers.dtype == np.float64:
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
