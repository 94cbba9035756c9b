from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat.functions import FUNCTIONS, FunctionError, compare, evaluate
from evermat.rdf.namespaces import RDF, RDFS
from evermat.values import (
    IRI,
    XSD,
    BlankNode,
    LangString,
    TypedLiteral,
    constant,
)

BIG = 10**40
DAY = TypedLiteral("2024-01-31", XSD + "date")
LATER = TypedLiteral("2024-02-01", XSD + "date")


@pytest.mark.parametrize(
    ("name", "arguments", "value"),
    [
        ("+", (BIG, 1), BIG + 1),
        ("+", (1, Decimal("0.5")), Decimal("1.5")),
        ("+", (1, 0.5), 1.5),
        ("+", (Decimal("0.1"), Decimal("0.2")), Decimal("0.3")),
        ("-", (3,), -3),
        ("-", (Decimal("1.5"),), Decimal("-1.5")),
        ("-", (3, 5), -2),
        ("*", (BIG, BIG), BIG * BIG),
        ("*", (2, 1.5), 3.0),
        ("/", (7, 2), 3),
        ("/", (-7, 2), -3),
        ("/", (7, -2), -3),
        ("/", (-7, -2), 3),
        ("/", (7, 2.0), 3.5),
        ("/", (Decimal(1), 4), Decimal("0.25")),
        ("%", (7, 2), 1),
        ("%", (-7, 2), -1),
        ("%", (7, -2), 1),
        ("%", (7.5, 2), 1.5),
        ("%", (Decimal("-7.5"), 2), Decimal("-1.5")),
        ("abs", (-3,), 3),
        ("abs", (-1.5,), 1.5),
        ("abs", (Decimal("-1.5"),), Decimal("1.5")),
        ("min", (3, 1, 2), 1),
        ("max", (3, Decimal("3.5"), 2.0), Decimal("3.5")),
        ("min", ("b", "a"), "a"),
        ("max", (1, 1.0), 1),
        ("str", (IRI("urn:a"),), "urn:a"),
        ("str", (LangString("chat", "fr"),), "chat"),
        ("str", (DAY,), "2024-01-31"),
        ("str", (BlankNode("b"),), "_:b"),
        ("str", (1.0,), "1.0"),
        ("str", (True,), "true"),
        ("concat", ("a", 1, IRI("urn:b")), "a1urn:b"),
        ("length", ("äöü",), 3),
        ("substr", ("hello", 2), "ello"),
        ("substr", ("hello", 2, 3), "ell"),
        ("substr", ("hello", 0, 3), "he"),
        ("substr", ("hello", 9), ""),
        ("substr", ("hello", 2, -1), ""),
        ("upper", ("aß",), "ASS"),
        ("lower", (LangString("ABC", "en"),), "abc"),
        ("contains", ("hello", "ell"), True),
        ("contains", (IRI("urn:a"), "b"), False),
        ("starts_with", ("hello", "he"), True),
        ("ends_with", ("hello", "he"), False),
        ("regex", ("hello", "l+o$"), True),
        ("regex", ("hello", "^ello"), False),
        ("regex", ("HELLO", "ell", "i"), True),
        ("int", ("12",), 12),
        ("int", (-1.7,), -1),
        ("double", ("1e3",), 1000.0),
        ("double", (2,), 2.0),
        ("double", (TypedLiteral("0.5", XSD + "float"),), 0.5),
        ("+", (TypedLiteral("0.5", XSD + "float"), 1), 1.5),
        ("max", (TypedLiteral("9", XSD + "float"), 10), 10),
        ("datatype", (TypedLiteral("9", XSD + "float"),), IRI(XSD + "float")),
        ("datatype", ("a",), IRI(XSD + "string")),
        ("datatype", (1,), IRI(XSD + "integer")),
        ("datatype", (Decimal("1.5"),), IRI(XSD + "decimal")),
        ("datatype", (1.5,), IRI(XSD + "double")),
        ("datatype", (True,), IRI(XSD + "boolean")),
        ("datatype", (DAY,), IRI(XSD + "date")),
        ("datatype", (TypedLiteral("x", XSD + "integer"),), IRI(XSD + "integer")),
        ("datatype", (LangString("chat", "fr"),), IRI(RDF + "langString")),
        ("datatype", (LangString("a", "ar--rtl"),), IRI(RDF + "dirLangString")),
        ("datatype", (IRI("urn:a"),), IRI(RDFS + "Resource")),
        ("datatype", (BlankNode("b"),), IRI(RDFS + "Resource")),
        ("language", (LangString("chat", "fr-CA"),), "fr-ca"),
        ("language", (LangString("a", "ar--rtl"),), "ar"),
        ("language", ("chat",), ""),
        ("language", (DAY,), ""),
        ("language", (IRI("urn:a"),), ""),
    ],
)
def test_functions_have_the_value(
    name: str, arguments: tuple[object, ...], value: object
) -> None:
    assert evaluate(name, *map(constant, arguments)) == constant(value)


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        (1, 2, -1),
        (1, 1.0, 0),
        (BIG, 1e300, -1),
        (Decimal("0.1"), 0.1, -1),
        (1, float("nan"), None),
        ("a", "b", -1),
        ("a", "a", 0),
        ("a", 1, None),
        ("a", IRI("a"), None),
        (IRI("a"), IRI("b"), -1),
        (False, True, -1),
        (True, 1, None),
        (DAY, LATER, -1),
        (DAY, TypedLiteral("2024-02-01", XSD + "time"), None),
        (LangString("a", "en"), LangString("b", "en"), -1),
        (LangString("a", "en"), LangString("b", "de"), None),
        (BlankNode("a"), BlankNode("b"), None),
        (TypedLiteral("9", XSD + "float"), TypedLiteral("10.0", XSD + "float"), -1),
        (TypedLiteral("1.50", XSD + "float"), 1.5, 0),
        (TypedLiteral("1.5", XSD + "float"), 2, -1),
        (Decimal("0.1"), TypedLiteral("0.1", XSD + "float"), -1),  # in 24 bits
        (TypedLiteral("-INF", XSD + "float"), 10**400, -1),
        (TypedLiteral("NaN", XSD + "float"), 1, None),
        (TypedLiteral("much", XSD + "float"), 1, None),
    ],
)
def test_constants_compare(left: object, right: object, order: int | None) -> None:
    a, b = constant(left), constant(right)
    assert compare(a, b) == order
    assert compare(b, a) == (None if order is None else -order)
    accepted = {"<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}
    for name, orders in accepted.items():
        assert evaluate(name, a, b) == constant(order in orders)


def test_equality_is_identity() -> None:
    one, real, text = constant(1), constant(1.0), constant("1")
    assert evaluate("=", one, one) == constant(value=True)
    assert evaluate("=", one, real) == constant(value=False)
    assert evaluate("!=", one, text) == constant(value=True)
    nan = constant(float("nan"))
    assert evaluate("=", nan, nan) == constant(value=True)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("/", (1, 0), "division of 1 by zero"),
        ("%", (1, 0), "division of 1 by zero"),
        ("/", (1.0, 0), "division of 1.0 by zero"),
        ("/", (Decimal("1.5"), 0), "division of 1.5 by zero"),
        ("+", ("a", 1), '`+` needs a number, but got "a"'),
        ("+", (10**400, 1.0), "is too big for a double"),
        ("abs", ("a",), "`abs` needs a number"),
        ("abs", (TypedLiteral("much", XSD + "float"),), "`abs` needs a number"),
        ("min", (1, "a"), "are in no order"),
        ("length", (3,), "`length` needs a text, but got 3"),
        ("substr", ("a", 1.5), "`substr` needs an integer"),
        ("regex", ("a", "("), "is not a regular expression"),
        ("regex", ("a", "a", "q"), "unknown flag `q`"),
        ("int", ("a",), '`int`: "a" is not an integer'),
        ("int", ("1_0",), '`int`: "1_0" is not an integer'),
        ("int", ("\N{ARABIC-INDIC DIGIT ONE}",), "is not an integer"),
        ("double", ("1_0",), '`double`: "1_0" is not a number'),
        ("int", (float("inf"),), "is not an integer"),
        ("double", ("a",), '`double`: "a" is not a number'),
        ("*", (10**4000, 10**4000), "more than 4300 digits"),
    ],
)
def test_functions_without_a_value_say_why(
    name: str, arguments: tuple[object, ...], message: str
) -> None:
    with pytest.raises(FunctionError) as caught:
        evaluate(name, *map(constant, arguments))
    assert message in str(caught.value)


@given(st.integers(), st.integers().filter(bool))
def test_quotient_and_remainder_belong_together(a: int, b: int) -> None:
    left, right = constant(a), constant(b)
    product = evaluate("*", evaluate("/", left, right), right)
    assert evaluate("+", product, evaluate("%", left, right)) == left


@given(st.lists(st.text(max_size=3), min_size=1), st.lists(st.text(max_size=3)))
def test_skolem_tells_different_arguments_apart(a: list[str], b: list[str]) -> None:
    one = evaluate("skolem", *map(constant, a))
    other = evaluate("skolem", *map(constant, b or ["x"]))
    assert (one == other) == (a == (b or ["x"]))


def test_skolem_depends_on_kinds() -> None:
    assert evaluate("skolem", constant(1)) != evaluate("skolem", constant("1"))


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda each: each.name)
def test_arities_are_what_evaluate_takes(function: object) -> None:
    known = FUNCTIONS[getattr(function, "name", "")]
    assert known.takes(known.minimum_arity)
    assert not known.takes(known.minimum_arity - 1)
    if known.maximum_arity is None:
        assert known.takes(99)
    else:
        assert not known.takes(known.maximum_arity + 1)
