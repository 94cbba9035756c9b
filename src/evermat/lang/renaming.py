"""Rules up to the names of their variables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evermat.lang.expressions import substitute, substitute_atom
from evermat.lang.syntax import (
    ANONYMOUS,
    Assignment,
    Atom,
    BodyElement,
    Call,
    Condition,
    Expression,
    Negation,
    Rule,
    Term,
    Variable,
    rule_variables,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping


def canonical(rule: Rule) -> Rule:
    """The rule with its variables renamed in order of first occurrence.

    Two rules that differ only in the names of variables have equal canonical forms.
    """
    names: dict[str, Expression] = {}
    for variable in rule_variables(rule):
        if variable.name != ANONYMOUS:
            names.setdefault(variable.name, Variable(f"x{len(names) + 1}"))
    return substitute_rule(rule, names)


def rule_key(rule: Rule) -> Hashable:
    """A key that is equal for rules that differ only in names of variables."""
    numbers: dict[str, int] = {}
    heads = tuple(_atom_key(head, numbers) for head in rule.heads)
    return heads, tuple(_element_key(element, numbers) for element in rule.body)


def substitute_condition(
    condition: Condition, substitution: Mapping[str, Expression]
) -> Condition:
    """The condition with expressions in place of variables."""
    call = condition.expression
    arguments = tuple(substitute(argument, substitution) for argument in call.arguments)
    return replace(condition, expression=replace(call, arguments=arguments))


def _substitute_element(
    element: BodyElement, substitution: Mapping[str, Expression]
) -> BodyElement:
    match element:
        case Atom():
            return substitute_atom(element, substitution)
        case Negation(atom=atom):
            return replace(element, atom=substitute_atom(atom, substitution))
        case Condition():
            return substitute_condition(element, substitution)
        case Assignment(variable=variable, expression=expression):
            target = substitution.get(variable.name, variable)
            value = substitute(expression, substitution)
            if not isinstance(target, Variable):
                return Condition(Call("=", (target, value)), element.span)
            return replace(element, variable=target, expression=value)


def substitute_rule(rule: Rule, substitution: Mapping[str, Expression]) -> Rule:
    """The rule with expressions in place of variables."""
    return replace(
        rule,
        heads=tuple(substitute_atom(head, substitution) for head in rule.heads),
        body=tuple(_substitute_element(element, substitution) for element in rule.body),
    )


def _expression_key(expression: Expression, numbers: dict[str, int]) -> Hashable:
    match expression:
        case Variable(name=name) if name == ANONYMOUS:
            return name
        case Variable(name=name):
            return numbers.setdefault(name, len(numbers))
        case Term(constant=constant):
            return constant.kind, constant.text  # quicker to hash than the constant
        case Call(function=function, arguments=arguments):
            return function, *(_expression_key(part, numbers) for part in arguments)


def _atom_key(atom: Atom, numbers: dict[str, int]) -> Hashable:
    keys = (_expression_key(argument, numbers) for argument in atom.arguments)
    return atom.predicate, *keys


def _element_key(element: BodyElement, numbers: dict[str, int]) -> Hashable:
    match element:
        case Atom():
            return _atom_key(element, numbers)
        case Negation(atom=atom):
            return "not", _atom_key(atom, numbers)
        case Condition(expression=expression):
            return "if", _expression_key(expression, numbers)
        case Assignment(variable=variable, expression=expression):
            value = _expression_key(expression, numbers)
            return "let", _expression_key(variable, numbers), value
