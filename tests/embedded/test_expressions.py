"""Expressions over columns agree with their definition on single constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat.algebra import Apply, Column
from evermat.algebra.queries import EvaluationError
from evermat.engines.embedded.dictionary import Dictionary
from evermat.engines.embedded.expressions import Calculator
from evermat.functions import FunctionError, evaluate
from evermat.values import Constant, Kind, Value, constant

if TYPE_CHECKING:
    import numpy as np

INTEGERS = st.one_of(st.integers(-9, 9), st.integers(-(2**40), 2**40), st.integers())
DOUBLES = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1.5, 1e300]))
ANYTHING = st.one_of(INTEGERS, DOUBLES, st.text(max_size=3), st.booleans())


def columns_of(values: st.SearchStrategy[Value]) -> st.SearchStrategy[list[Value]]:
    return st.lists(values, min_size=4, max_size=4)


COLUMNS = st.one_of(columns_of(INTEGERS), columns_of(DOUBLES), columns_of(ANYTHING))


def expected(name: str, *arguments: Value) -> Constant | None:
    try:
        return evaluate(name, *(constant(argument) for argument in arguments))
    except FunctionError:
        return None


@given(COLUMNS, COLUMNS, st.sampled_from(["+", "-", "*", "/", "%", "min", "max"]))
def test_agree_binary_functions(
    left: list[Value], right: list[Value], name: str
) -> None:
    check(Apply(name, (Column(0), Column(1))), [left, right], name)


@given(COLUMNS, st.sampled_from(["-", "abs"]))
def test_agree_unary_functions(values: list[Value], name: str) -> None:
    check(Apply(name, (Column(0),)), [values], name)


@given(COLUMNS, COLUMNS, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
def test_agree_comparisons(left: list[Value], right: list[Value], name: str) -> None:
    dictionary = Dictionary()
    ids = [encode(dictionary, values) for values in (left, right)]
    calculator = Calculator(dictionary, "a rule")
    mask = calculator.mask(
        Apply(name, (Column(0), Column(1))), dict(enumerate(ids)), len(left)
    )
    assert mask.tolist() == [
        expected(name, a, b) == Constant(Kind.BOOLEAN, "true")
        for a, b in zip(left, right, strict=True)
    ]


def check(expression: Apply, columns: list[list[Value]], name: str) -> None:
    dictionary = Dictionary()
    ids = [encode(dictionary, values) for values in columns]
    results = [expected(name, *row) for row in zip(*columns, strict=True)]
    calculator = Calculator(dictionary, "a rule")
    count = len(columns[0])
    if None in results:
        with pytest.raises(EvaluationError, match="a rule"):
            calculator.column(expression, dict(enumerate(ids)), count)
        return
    found = calculator.column(expression, dict(enumerate(ids)), count)
    assert [dictionary.constant(id_) for id_ in found.tolist()] == results


def encode(dictionary: Dictionary, values: list[Value]) -> np.ndarray:
    return dictionary.encode_constants([constant(value) for value in values])
