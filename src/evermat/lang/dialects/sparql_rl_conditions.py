"""Translates conditions and values of SPARQL-RL to Evermat's functions.

In SPARQL a solution for which an expression has an error is rejected, while in Evermat
an error stops the run. So each operand that could be of the wrong type gets a
condition, its *guard*, which is defined for all constants.

Comparisons are by value: `1` and `1.0` are equal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evermat.errors import Label
from evermat.lang.dialects.desugar import AllOf, AnyOf, Formula
from evermat.lang.dialects.scanner import UnsupportedSyntaxError
from evermat.lang.syntax import Call, Condition, Expression, Term, call
from evermat.values import (
    XSD,
    Constant,
    Kind,
    boolean_constant,
    double_constant,
    literal,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "=": "!=", "!=": "="}
_TESTS = {
    "CONTAINS": "contains",
    "STRSTARTS": "starts_with",
    "STRENDS": "ends_with",
    "REGEX": "regex",
}
_TEXTS = {"STRLEN": "length", "SUBSTR": "substr", "UCASE": "upper", "LCASE": "lower"}
_TEXTS |= _TESTS | {"CONCAT": "concat"}
_CONDITIONS = frozenset({*_TESTS, *COMPARISONS, "&&", "||", "!", "IN", "SAMETERM"})
_GIVE_NUMBERS = frozenset({"+", "-", "*", "/", "abs", "length"})
_GIVE_TEXTS = frozenset({"str", "concat", "substr", "upper", "lower", "language"})
_NUMERIC = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})
_INFINITY = Term(double_constant(float("inf")))
_FALSE, _TRUE = (Term(boolean_constant(value=truth)) for truth in (False, True))
_STRING_TYPES = "#(string|langString|dirLangString)$"
_ZERO = Term(Constant(Kind.INTEGER, "0"))
_ONE = Term(literal("1.0", XSD + "decimal"))


def formula_of(expression: Expression, *, truth: bool) -> Formula:
    """Return when an expression has this truth value; with an error it has none."""
    if isinstance(expression, Term) and expression in (_TRUE, _FALSE):
        return AllOf(()) if (expression == _TRUE) is truth else AnyOf(())
    if not isinstance(expression, Call):
        raise _refused("a filter that is no condition is", expression)
    name, arguments = expression.function, expression.arguments
    match name:
        case "!":
            return formula_of(arguments[0], truth=not truth)
        case "&&" | "||":
            parts = tuple(formula_of(each, truth=truth) for each in arguments)
            return AllOf(parts) if (name == "&&") is truth else AnyOf(parts)
        case "IN":
            left, *others = arguments
            options = (Call("=", (left, each), expression.span) for each in others)
            parts = tuple(formula_of(each, truth=truth) for each in options)
            return AnyOf(parts) if truth else AllOf(parts)
    guards: list[Formula] = []
    values = [value_of(each, guards) for each in arguments]
    found = _test(name, values, truth=truth)
    if found is None:
        raise _refused("a filter that is no condition is", expression)
    if name in _TESTS:
        guards += [g for each in values if (g := _guard_text(each)) is not None]
    tests = [replace(each, span=expression.span) for each in found]
    return AllOf((*guards, *tests))


def _test(
    name: str, values: Sequence[Expression], *, truth: bool
) -> list[Condition] | None:
    wanted = _TRUE if truth else _FALSE
    first = values[0]
    is_literal = call("is_literal", first)
    is_ordered = call("<=", first, first)  # true except for blank nodes and NaN
    match name:
        case "SAMETERM":
            return [Condition(Call("=" if truth else "!=", tuple(values)))]
        case "ISLITERAL":
            return [Condition(call("=", is_literal, wanted))]
        case "ISIRI" | "ISURI":
            iri = call("min", call("=", is_literal, _FALSE), is_ordered)
            return [Condition(call("=", iri, wanted))]
        case "ISBLANK":
            blank = call("max", is_literal, is_ordered)
            return [Condition(call("!=", blank, wanted))]
        case "ISNUMERIC":
            return [Condition(call("=", call("<=", first, _INFINITY), wanted))]
        case _ if name in _TESTS:
            holds = Call(_TESTS[name], tuple(values))
            return [Condition(holds if truth else call("=", holds, _FALSE))]
        case _ if name in COMPARISONS:
            return _compared(name if truth else _OPPOSITE[name], *values)
    return None


def value_of(expression: Expression, guards: list[Formula]) -> Expression:
    """Translate an expression, adding conditions that exclude errors to the guards."""
    if not isinstance(expression, Call):
        return expression
    name, span = expression.function, expression.span
    if name in _CONDITIONS or name.startswith("IS"):
        hint = "write a rule with this condition in a `FILTER`"
        raise _refused("a truth value as a value is", expression, hint)
    values = [value_of(each, guards) for each in expression.arguments]
    needed = _guards(name, values)
    guards += [replace(each, span=span) for each in needed if each is not None]
    if name == "+" and len(values) == 1:
        return values[0]
    if name == "/":  # decimal even for integers
        values[0] = call("*", values[0], _ONE)
    ours = {"STR": "str", "LANG": "language", "DATATYPE": "datatype", "ABS": "abs"}
    return Call({**ours, **_TEXTS}.get(name, name), tuple(values), span)


def _guards(name: str, values: Sequence[Expression]) -> list[Condition | None]:
    """Return the conditions under which a SPARQL function has a value."""
    first = values[0]
    match name:
        case "/":
            # Both comparisons are equal for zero, and for anything that is not a
            # number.
            nonzero = call(
                "!=", call("<=", values[1], _ZERO), call(">=", values[1], _ZERO)
            )
            return [_guard_number(first), Condition(nonzero)]
        case "+" | "-" | "*" | "ABS":
            return [_guard_number(each) for each in values]
        case "SUBSTR":
            return [_guard_text(first), *map(_guard_integer, values[1:])]
        case "LANG" | "DATATYPE":
            return [Condition(call("is_literal", first))]
        case "STR":
            return [Condition(call("<=", first, first))]  # blank nodes are not ordered
        case _:
            return [_guard_text(each) for each in values]


def _refused(
    construct: str, expression: Expression, hint: str | None = None
) -> UnsupportedSyntaxError:
    return UnsupportedSyntaxError(
        f"{construct} not supported",
        labels=() if expression.span is None else (Label(expression.span),),
        reason="only the plain part of SPARQL-RL is read",
        help=hint,
    )


def _compared(name: str, left: Expression, right: Expression) -> list[Condition]:
    """Translate a comparison by value: numbers of different types may be equal."""
    if name not in {"=", "!="}:
        return [Condition(call(name, left, right))]
    sides = (left, right)
    below, above = call("<=", left, right), call(">=", left, right)
    if any(isinstance(s, Term) and s.constant.kind not in _NUMERIC for s in sides):
        return [Condition(call(name, left, right))]
    level = call("min", below, above)
    if any(_gives(each, _GIVE_NUMBERS, _NUMERIC) for each in sides):
        if name == "=":
            return [Condition(below), Condition(above)]
        return [Condition(call("=", level, _FALSE))]  # also for other types
    same = call("max", call("=", left, right), level)
    return [Condition(call("=", same, _TRUE if name == "=" else _FALSE))]


def _gives(
    expression: Expression, functions: frozenset[str], kinds: frozenset[Kind]
) -> bool:
    match expression:
        case Call(function=function):
            return function in functions
        case Term(constant=constant):
            return constant.kind in kinds
        case _:
            return False


def _guard_number(value: Expression) -> Condition | None:
    if _gives(value, _GIVE_NUMBERS, _NUMERIC):
        return None
    return Condition(call("<=", value, _INFINITY))


def _guard_integer(value: Expression) -> Condition | None:
    if isinstance(value, Term) and value.constant.kind is Kind.INTEGER:
        return None
    integer = Term(Constant(Kind.IRI, XSD + "integer"))
    return Condition(call("=", call("datatype", value), integer))


def _guard_text(value: Expression) -> Condition | None:
    if _gives(value, _GIVE_TEXTS, frozenset({Kind.STRING, Kind.LANGUAGE})):
        return None
    datatype = call("str", call("datatype", value))
    return Condition(call("regex", datatype, _STRING_TYPES))
