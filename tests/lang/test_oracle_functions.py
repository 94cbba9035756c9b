"""The functions of the language are those that the oracle has of its own."""

from __future__ import annotations

from itertools import product

import pytest

import oracle_functions
from boundary_numbers import DECIMALS, DOUBLES, INTEGERS, NOT_FINITE
from evermat.functions import FUNCTIONS, FunctionError, evaluate
from evermat.values import (
    IRI,
    XSD,
    BlankNode,
    Constant,
    LangString,
    TypedLiteral,
    constant,
)

NUMBERS = (*INTEGERS, *DOUBLES, *NOT_FINITE, *DECIMALS)
TEXTS = ("", "a", "ab", "12", " 12 ", "-5", "1_0", "+7", "1e3", "nan", "9" * 30, "1.5")
OTHERS = (
    True,
    False,
    IRI("urn:a"),
    *(
        IRI(XSD + name)
        for name in ("integer", "byte", "long", "string", "date", "float")
    ),
    BlankNode("b"),
    LangString("Chat", "fr"),
    LangString("a", "ar--rtl"),
    TypedLiteral("2024-01-01", XSD + "date"),
    TypedLiteral("z", XSD + "integer"),
    *(TypedLiteral(text, XSD + "float") for text in ("1.5", "1e39", "x", "16777217")),
)
VALUES = [constant(value) for value in (*NUMBERS, *TEXTS, *OTHERS)]
SHARE = 12
"""One in so many pairs is tried for each function; another function tries others."""


def by_definition(name: str, arguments: tuple[Constant, ...]) -> Constant | None:
    try:
        return evaluate(name, *arguments)
    except FunctionError:
        return None


def by_oracle(name: str, arguments: tuple[Constant, ...]) -> Constant | None:
    try:
        return oracle_functions.evaluate(name, *arguments)
    except oracle_functions.NoValueError:
        return None


@pytest.mark.parametrize(("number", "name"), list(enumerate(FUNCTIONS)))
def test_oracle_functions_agree(number: int, name: str) -> None:
    function = FUNCTIONS[name]
    cases: list[tuple[Constant, ...]] = []
    if function.takes(1):
        cases += [(value,) for value in VALUES]
    if function.takes(2):
        cases += list(product(VALUES, VALUES))[number % SHARE :: SHARE + 1]
    if function.takes(3):
        cases += list(product(VALUES[::5], VALUES[::7], VALUES[::6]))[::3]
    different = [
        (name, *map(str, case))
        for case in cases
        if by_definition(name, case) != by_oracle(name, case)
    ]
    assert different == []
