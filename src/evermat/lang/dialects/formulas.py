"""Bodies with `;`, groups and negated groups, taken apart into plain rule bodies.

A body of another language may nest conjunction, disjunction and negation freely; ours
is a list of elements. `alternatives` gives the disjunctive normal form: one list per
way to make the formula true.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

from evermat.lang.syntax import (
    Assignment,
    Atom,
    BodyElement,
    Call,
    Condition,
    Negation,
    Term,
)
from evermat.values import boolean_constant

_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part holds; without parts, true."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Some part holds; without parts, false."""

    parts: tuple[Formula, ...]


Formula = BodyElement | AllOf | AnyOf


def negate(formula: Formula) -> Formula:
    """The formula that holds exactly when this one does not."""
    match formula:
        case AllOf(parts):
            return AnyOf(tuple(negate(part) for part in parts))
        case AnyOf(parts):
            return AllOf(tuple(negate(part) for part in parts))
        case Atom():
            return Negation(formula, span=formula.span)
        case Negation(atom=atom):
            return atom
        case Condition(expression=call):
            return Condition(_opposite(call), span=formula.span)
        case Assignment():
            message = "assignments arise only in normal rules"
            raise TypeError(message)


def _opposite(call: Call) -> Call:
    opposite = _OPPOSITE.get(call.function)
    if opposite is not None:
        return Call(opposite, call.arguments, span=call.span)
    return Call("=", (call, Term(boolean_constant(value=False))), span=call.span)


def alternatives(formula: Formula) -> list[tuple[BodyElement, ...]]:
    """The bodies that together mean the same as the formula, in reading order."""
    match formula:
        case AnyOf(parts):
            return [body for part in parts for body in alternatives(part)]
        case AllOf(parts):
            choices = product(*(alternatives(part) for part in parts))
            return [tuple(e for body in choice for e in body) for choice in choices]
        case _:
            return [(formula,)]


def count_alternatives(formula: Formula) -> int:
    """How many bodies `alternatives` would give."""
    match formula:
        case AnyOf(parts):
            return sum(map(count_alternatives, parts))
        case AllOf(parts):
            return prod(map(count_alternatives, parts))
        case _:
            return 1
