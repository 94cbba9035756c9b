"""Built-in functions in plans.

Arithmetic and comparisons of small integers are Spark expressions on their ids. A row
with other values stops the plan with a mark (`NEEDS_DEFINITION`); from then on the
query is planned with the definitions of `evermat.functions` in Python workers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evermat.algebra import Apply, Column
from evermat.algebra.queries import EvaluationError, evaluation_error
from evermat.engines.spark.dictionary import (
    FIRST_DIGEST,
    SMALLEST,
    constant_id,
    small_constant,
)
from evermat.functions import FunctionError, evaluate
from evermat.functions.python import shipped, take_over
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from evermat.algebra import Expression, Query

NEEDS_DEFINITION = "EVERMAT-NEEDS-DEFINITION"
"""A part of the error message of a plan that found other values than small integers."""
_FAILED, _END = "EVERMAT-FAILED<<", ">>EVERMAT"

_ORDER = frozenset({"<", "<=", ">", ">="})
_TRUE = Constant(Kind.BOOLEAN, "true")
_BINARY = 2


def columns_in(expression: Expression) -> set[int]:
    """Return the columns that an expression reads."""
    match expression:
        case Column(index=index):
            return {index}
        case Apply(arguments=arguments):
            return {index for each in arguments for index in columns_in(each)}
        case _:
            return set()


# ---------------------------------------------------------------- small integers


def small_value(expression: Expression, mark: str) -> str | None:
    """Return SQL for the id of a value, or None if the function is not for integers."""
    if not isinstance(expression, Apply):
        return _operand(expression)
    number = _number(expression)
    if number is None:
        return None
    fits = f"({number}) BETWEEN {SMALLEST}L AND {FIRST_DIGEST - 1}L"
    return _guarded(f"{_are_small(expression)} AND {fits}", number, mark)


def small_condition(expression: Apply, mark: str) -> str | None:
    """Return SQL for a condition on integers or identity, or None."""
    if expression.function in {"=", "!="}:
        sides = [small_value(each, mark) for each in expression.arguments]
        if any(side is None for side in sides):
            return None
        sign = "=" if expression.function == "=" else "<>"
        return f"({sides[0]}) {sign} ({sides[1]})"
    if expression.function not in _ORDER:
        return None
    numbers = [_number(each) for each in expression.arguments]
    if any(number is None for number in numbers):
        return None
    there = " AND ".join(f"({number}) IS NOT NULL" for number in numbers)
    holds = f"({numbers[0]}) {expression.function} ({numbers[1]})"
    return _guarded(f"{_are_small(expression)} AND {there}", holds, mark)


def _operand(expression: Column | Constant) -> str:
    if isinstance(expression, Column):
        return f"v{expression.index}"
    return f"{constant_id(expression)}L"


def _are_small(expression: Expression) -> str:
    tests = [f"v{index} < {FIRST_DIGEST}L" for index in sorted(columns_in(expression))]
    return " AND ".join(tests) or "true"


def _guarded(condition: str, value: str, mark: str) -> str:
    stop = f"raise_error('{NEEDS_DEFINITION}:{mark}:')"
    return f"CASE WHEN {condition} THEN {value} ELSE {stop} END"


def _number(expression: Expression) -> str | None:
    """Return SQL for a number, NULL if it does not fit into 64 bits."""
    match expression:
        case Column(index=index):
            return f"v{index}"
        case Constant():
            id_ = constant_id(expression)
            return f"{id_}L" if id_ < FIRST_DIGEST else None
        case Apply(function=name, arguments=arguments):
            values = [_number(argument) for argument in arguments]
            if any(value is None for value in values):
                return None
            return _apply(name, [value for value in values if value is not None])


def _apply(name: str, values: list[str]) -> str | None:
    if len(values) == 1:
        return {"-": f"try_subtract(0L, {values[0]})", "abs": f"abs({values[0]})"}.get(
            name
        )
    if len(values) != _BINARY:
        return None
    left, right = values
    return {
        "+": f"try_add({left}, {right})",
        "-": f"try_subtract({left}, {right})",
        "*": f"try_multiply({left}, {right})",
        # Like the language, Spark truncates towards zero.
        "/": f"CASE WHEN ({right}) <> 0L THEN ({left}) DIV ({right}) END",
        "%": f"CASE WHEN ({right}) <> 0L THEN ({left}) % ({right}) END",
        "min": _chosen("least", left, right),
        "max": _chosen("greatest", left, right),
    }.get(name)


def _chosen(function: str, left: str, right: str) -> str:
    """Return one of two numbers; Spark's functions would ignore a missing one."""
    there = f"({left}) IS NOT NULL AND ({right}) IS NOT NULL"
    return f"CASE WHEN {there} THEN {function}({left}, {right}) END"


# ------------------------------------------------------------------- by definition

VALUE_TYPE = "struct<id: bigint, kind: int, text: string>"
"""The result type of computed values; kind and text only if the id needs them."""


def value_function(
    expression: Expression, query: Query, mark: str, others: Sequence[int]
) -> Callable[..., pa.Array]:
    """Return a function over columns `id`, `kind` and `text` of each column read.

    Args:
        expression: the expression.
        query: its query.
        mark: the name of the query.
        others: columns that are not read; their ids come last, and are reported if the
            expression has no value.
    """
    evaluate_row = _Evaluator(expression, query.label, mark, others)

    def compute(*columns: pa.Array) -> pa.Array:
        results: list[dict[str, Any]] = []
        for value in evaluate_row.values(columns):
            id_ = constant_id(value)
            is_small = id_ < FIRST_DIGEST
            results.append(
                {
                    "id": id_,
                    "kind": None if is_small else int(value.kind),
                    "text": None if is_small else value.text,
                }
            )
        return pa.array(results, _ARROW_VALUE)

    return compute


def condition_function(
    expression: Apply, query: Query, mark: str, others: Sequence[int]
) -> Callable[..., pa.Array]:
    """Return a function like `value_function` that tests whether the value is true."""
    evaluate_row = _Evaluator(expression, query.label, mark, others)

    def compute(*columns: pa.Array) -> pa.Array:
        values = (value == _TRUE for value in evaluate_row.values(columns))
        return pa.array(list(values), pa.bool_())

    return compute


_ARROW_VALUE = pa.struct(
    [("id", pa.int64()), ("kind", pa.int32()), ("text", pa.string())]
)


class _Evaluator:
    """Evaluates one expression for many rows, in a Python worker."""

    def __init__(
        self, expression: Expression, label: str, mark: str, others: Sequence[int]
    ) -> None:
        self._expression = expression
        self._label = label
        self._mark = mark
        self._used = sorted(columns_in(expression))
        self._others = tuple(others)
        self._functions = shipped(_functions_in(expression))

    def values(self, columns: tuple[pa.Array, ...]) -> Iterator[Constant]:
        """Yield the value for each row."""
        take_over(self._functions)
        count = 3 * len(self._used)
        lists = [column.to_pylist() for column in columns]
        for at, row in enumerate(zip(*lists[:count], strict=True)):
            yield self._evaluate(row, lists[count:], at)
        if not self._used:
            # A function without columns gets one column, for the number of rows.
            for at in range(len(columns[-1])):
                yield self._evaluate((), lists, at)

    def _evaluate(
        self, row: tuple[Any, ...], others: list[list[int]], at: int
    ) -> Constant:
        binding = {
            index: small_constant(row[3 * place])
            if row[3 * place] < FIRST_DIGEST
            else Constant(Kind(row[3 * place + 1]), row[3 * place + 2])
            for place, index in enumerate(self._used)
        }
        try:
            return _value(self._expression, binding)
        except FunctionError as error:
            failure = evaluation_error(
                self._label, self._expression, binding, error.message
            )
            ids = {index: row[3 * place] for place, index in enumerate(self._used)}
            ids |= {i: ids_[at] for i, ids_ in zip(self._others, others, strict=False)}
            report = {
                "message": failure.message,
                "reason": failure.reason,
                "help": failure.help,
                "mark": self._mark,
                "ids": list(ids.items()),
            }
            message = f"{_FAILED}{json.dumps(report)}{_END}"
            raise ValueError(message) from None


def _functions_in(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Apply):
        yield expression.function
        for argument in expression.arguments:
            yield from _functions_in(argument)


def _value(expression: Expression, binding: dict[int, Constant]) -> Constant:
    match expression:
        case Column(index=index):
            return binding[index]
        case Apply(function=name, arguments=arguments):
            return evaluate(name, *(_value(each, binding) for each in arguments))
        case _:
            return expression


@dataclass(frozen=True, slots=True)
class Failure:
    """An error in a Python worker.

    Attributes:
        mark: the name of the query.
        ids: the bound columns, with their ids.
    """

    error: EvaluationError
    mark: str
    ids: dict[int, int]


def failed_computation(error: Exception) -> Failure | None:
    """Return the error of a Python worker, parsed from Spark's message."""
    _, found, rest = str(error).partition(_FAILED)
    if not found:
        return None
    report = json.loads(rest.partition(_END)[0])
    failure = EvaluationError(
        report["message"], reason=report["reason"], help=report["help"]
    )
    return Failure(failure, report["mark"], dict(map(tuple, report["ids"])))


def mark_in(error: Exception) -> str | None:
    """Return the mark of the query that found other values than small integers."""
    _, found, rest = str(error).partition(f"{NEEDS_DEFINITION}:")
    return rest.partition(":")[0] if found else None
