"""Disjunctions, existential heads and constant expressions, as plain rules."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING

from evermat.errors import ConstantExpressionError, Label
from evermat.functions import FunctionError
from evermat.lang.syntax import (
    ANONYMOUS,
    Aggregation,
    Assignment,
    Atom,
    BodyElement,
    Call,
    Condition,
    Negation,
    Rule,
    Term,
    Variable,
    atom_variables,
    expression_variables,
    fold,
    rule_variables,
    substitute,
    substitute_atom,
)
from evermat.values import Constant, Kind, boolean_constant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.lang.syntax import Expression


# -------------------------------------------------------------- disjunctive normal form
#
# A body of another language may nest conjunction, disjunction and negation freely; ours
# is a list of elements. `alternatives` returns one list per disjunct.


_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class AllOf:
    """A conjunction; without parts, true."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A disjunction; without parts, false."""

    parts: tuple[Formula, ...]


Formula = BodyElement | AllOf | AnyOf


def negate(formula: Formula) -> Formula:
    """Return the negation of a formula."""
    match formula:
        case AllOf(parts):
            # Counts and sums always have a value; the negation is about that value.
            values = tuple(part for part in parts if isinstance(part, Aggregation))
            others = [part for part in parts if not isinstance(part, Aggregation)]
            denied = AnyOf(tuple(negate(part) for part in others))
            return AllOf((*values, denied)) if values else denied
        case AnyOf(parts):
            return AllOf(tuple(negate(part) for part in parts))
        case Atom():
            return Negation(formula, span=formula.span)
        case Negation(atom=atom):
            return atom
        case Condition(expression=call):
            return Condition(_opposite(call), span=formula.span)
        case Assignment() | Aggregation():
            message = "assignments and aggregates do not stand below a negation"
            raise TypeError(message)


def may_have_no_value(formula: Formula) -> bool:
    """Return whether some aggregate has no value for an empty group."""
    match formula:
        case AllOf(parts) | AnyOf(parts):
            return any(map(may_have_no_value, parts))
        case Aggregation(function=function):
            return function not in {"count", "sum"}
        case _:
            return False


def _opposite(call: Call) -> Call:
    opposite = _OPPOSITE.get(call.function)
    if opposite is not None:
        return Call(opposite, call.arguments, span=call.span)
    return Call("=", (call, Term(boolean_constant(value=False))), span=call.span)


def alternatives(formula: Formula) -> list[tuple[BodyElement, ...]]:
    """Return the bodies of the disjunctive normal form, in reading order."""
    match formula:
        case AnyOf(parts):
            return [body for part in parts for body in alternatives(part)]
        case AllOf(parts):
            choices = product(*(alternatives(part) for part in parts))
            return [tuple(e for body in choice for e in body) for choice in choices]
        case _:
            return [(formula,)]


def count_alternatives(formula: Formula) -> int:
    """Return the number of bodies that `alternatives` would return."""
    match formula:
        case AnyOf(parts):
            return sum(map(count_alternatives, parts))
        case AllOf(parts):
            return prod(map(count_alternatives, parts))
        case _:
            return 1


# -------------------------------------------------- existential rules: the skolem chase
#
# `s(?x, !y) :- p(?x)` says that every `p` has an `s`. It becomes
#
#     s(?x, ?y) :- p(?x), ?y = skolem("y-…", ?x) .
#
# with a blank node that depends on the *frontier*: the variables that heads and body
# share. The result has a homomorphism into that of the restricted chase, which Nemo
# runs, and vice versa, so both have the same facts over known individuals.


MARK = "!"
"""The first character of an existential variable's name, until it is replaced."""


def with_skolem_terms(rule: Rule) -> Rule:
    """Return the rule with a skolem term for each existential variable of its heads."""
    in_heads: dict[str, Variable] = {}
    for head in rule.heads:
        for variable in atom_variables(head):
            in_heads.setdefault(variable.name, variable)
    existentials = [each for name, each in in_heads.items() if name.startswith(MARK)]
    if not existentials:
        return rule
    universal = [name for name in in_heads if name[0] != MARK and name != ANONYMOUS]
    frontier = [Variable(name) for name in universal]
    taken = {variable.name for variable in rule_variables(rule)}
    names: dict[str, Expression] = {}
    invented: list[Condition] = []
    for variable in existentials:
        name = _free_name(variable.name.removeprefix(MARK), taken)
        taken.add(name)
        names[variable.name] = Variable(name)
        term = Call("skolem", (_skolem_name(rule, variable), *frontier))
        equation = Call("=", (Variable(name), term))
        invented.append(Condition(equation, span=variable.span))
    heads: tuple[Atom, ...] = tuple(substitute_atom(head, names) for head in rule.heads)
    return replace(rule, heads=heads, body=(*rule.body, *invented))


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _skolem_name(rule: Rule, variable: Variable) -> Term:
    """Return a name that distinguishes the variables of all rules.

    It is derived from the rule itself, so it does not change when other rules are added
    or removed, and the same rule in two programs means the same individuals.
    """
    digest = hashlib.blake2b(str(rule).encode(), digest_size=8).hexdigest()
    name = f"{variable.name.removeprefix(MARK)}-{digest}"
    return Term(Constant(Kind.STRING, name))


# ----------------------------------------------------------------- constant expressions


_NOTHING: Mapping[str, Constant] = MappingProxyType({})


def value_of(
    expression: Expression, values: Mapping[str, Constant] = _NOTHING
) -> Constant:
    """Return the value of an expression, given those of its variables.

    Raises:
        ConstantExpressionError: a function or a variable has no value.
    """
    terms: dict[str, Expression] = {name: Term(values[name]) for name in values}
    try:
        folded = fold(substitute(expression, terms))
    except FunctionError as problem:
        raise _no_value(problem.message, expression) from None
    if isinstance(folded, Term):
        return folded.constant
    missing = next(expression_variables(folded), None)
    if missing is None:
        raise _no_value("a function has more or fewer arguments here", expression)
    raise _no_value(f"`?{missing.name}` has no value here", expression)


def settled(atom: Atom) -> Atom:
    """Return the atom of a fact, with values in place of expressions."""
    arguments = tuple(
        Term(value_of(argument), span=argument.span) for argument in atom.arguments
    )
    return replace(atom, arguments=arguments)


def _no_value(message: str, expression: Expression) -> ConstantExpressionError:
    labels = () if expression.span is None else (Label(expression.span),)
    return ConstantExpressionError(message, labels=labels)
