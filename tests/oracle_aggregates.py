"""Aggregates in the plainest way: over Python sets of rows, with fractions."""

from __future__ import annotations

import json
import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from evermat.lang.syntax import (
    ANONYMOUS,
    Aggregation,
    Assignment,
    Atom,
    Call,
    Condition,
    Rule,
    Variable,
    element_variables,
    expression_variables,
)
from evermat.values import (
    Constant,
    Kind,
    decimal_constant,
    double_constant,
    integer_constant,
)

if TYPE_CHECKING:
    from collections.abc import Collection

NUMBERS = {Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE}


class NoValueError(Exception):
    """The members of a group cannot be compared or summed up."""


def names_inside(element: Aggregation) -> set[str]:
    """The variables of an aggregate but for its target."""
    names = {v.name for value in element.values for v in expression_variables(value)}
    for inner in element.body:
        names |= {v.name for v in element_variables(inner)}
    return names - {ANONYMOUS}


def names_outside(rule: Rule) -> set[str]:
    """The variables that a rule has outside of aggregates."""
    names = {v.name for head in rule.heads for e in head.arguments
             for v in expression_variables(e)}  # fmt: skip
    for element in rule.body:
        if isinstance(element, Aggregation):
            names.add(element.target.name)
        else:
            names |= {v.name for v in element_variables(element)}
    return names - {ANONYMOUS}


def names_bound_outside(rule: Rule) -> set[str]:
    """The variables that get a value without looking into any aggregate."""
    bound = {
        argument.name
        for element in rule.body
        if isinstance(element, Atom)
        for argument in element.arguments
        if isinstance(argument, Variable)
    }
    bound |= {each.target.name for each in rule.aggregations()}
    while True:
        more = set(bound)
        for element in rule.body:
            match element:
                case Condition(expression=Call(function="=", arguments=(left, right))):
                    pairs = [(left, right), (right, left)]
                case Assignment(variable=variable, expression=value):
                    pairs = [(variable, value)]
                case _:
                    continue
            for target, value in pairs:
                if isinstance(target, Variable) and all(
                    each.name in bound for each in expression_variables(value)
                ):
                    more.add(target.name)
        if more == bound:
            return bound
        bound = more


def evaluate(function: str, rows: Collection[tuple[Constant, ...]]) -> Constant | None:
    """The value of the first column of distinct rows; None if there is none."""
    values = [row[0] for row in rows]
    if function == "count":
        return integer_constant(len(values))
    if not values:
        return integer_constant(0) if function == "sum" else None
    if function == "any":
        return min(values, key=_text_key)
    if function == "list":
        return _listed(values)
    if function in {"min", "max"}:
        return _extreme(function, values)
    if any(value.kind not in NUMBERS for value in values):
        raise NoValueError
    return _total(function, values)


def _total(function: str, values: list[Constant]) -> Constant:
    kinds = {value.kind for value in values}
    if Kind.DOUBLE in kinds:
        floats = [float(v.text) for v in values if v.kind is Kind.DOUBLE]
        special = sum(each for each in floats if not math.isfinite(each))
        total = sum(map(_fraction, values), Fraction())
        number = float(total if function == "sum" else total / len(values)) + special
        return double_constant(number)
    total = sum(map(_fraction, values), Fraction())
    if function == "sum" and kinds == {Kind.INTEGER}:
        return integer_constant(int(total))
    if function == "sum":
        exact = Context(prec=10_000)
        numerator, denominator = Decimal(total.numerator), Decimal(total.denominator)
        return decimal_constant(exact.divide(numerator, denominator))
    # A sum of terminating decimals terminates, an average need not.
    whole = Context(prec=10_000).divide(
        Decimal(total.numerator), Decimal(total.denominator)
    )
    return decimal_constant(Context(prec=34).divide(whole, Decimal(len(values))))


def _fraction(value: Constant) -> Fraction:
    if value.kind is Kind.DOUBLE:
        number = float(value.text)
        return Fraction(number) if math.isfinite(number) else Fraction()
    return Fraction(value.text)


def _extreme(function: str, values: list[Constant]) -> Constant:
    if len({_sort(value) for value in values}) > 1:
        raise NoValueError
    if len(values) > 1 and any(value.text == "NaN" for value in values):
        raise NoValueError
    if _sort(values[0]) == "number":
        keyed = [(_order(value), value) for value in values]
        best = (
            min(k for k, _ in keyed) if function == "min" else max(k for k, _ in keyed)
        )
        return min((v for k, v in keyed if k == best), key=_text_key)
    pick = min if function == "min" else max
    return pick(values, key=lambda value: value.text)


def _order(value: Constant) -> float | Fraction:
    if value.kind is Kind.DOUBLE and not math.isfinite(float(value.text)):
        return float(value.text)
    return _fraction(value)


def _sort(value: Constant) -> str:
    return "number" if value.kind in NUMBERS else value.kind.name


def _listed(values: list[Constant]) -> Constant:
    numbers = sorted(
        (v for v in values if v.kind in NUMBERS),
        key=lambda v: (_order(v), *_text_key(v)),
    )
    others = sorted((v for v in values if v.kind not in NUMBERS), key=_text_key)
    parts = [_json(value) for value in (*numbers, *others)]
    return Constant(Kind.STRING, "[" + ", ".join(parts) + "]")


def _json(value: Constant) -> str:
    if value.kind in {Kind.INTEGER, Kind.DECIMAL, Kind.BOOLEAN}:
        return value.text
    text = value.text if value.kind is Kind.STRING else str(value)
    return json.dumps(text, ensure_ascii=False)


def _text_key(value: Constant) -> tuple[int, str]:
    return int(value.kind), value.text
