"""Working on expressions: putting values for variables, working out constants."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evermat.functions import FUNCTIONS, FunctionError
from evermat.lang.syntax import Atom, Call, Expression, Term, Variable

if TYPE_CHECKING:
    from collections.abc import Mapping


def fold(expression: Expression) -> Expression:
    """An expression with every call that has only constants replaced by its value.

    Raises:
        FunctionError: if such a call has no value.
    """
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(fold(argument) for argument in expression.arguments)
    constants = [
        argument.constant for argument in arguments if isinstance(argument, Term)
    ]
    function = FUNCTIONS.get(expression.function)
    if len(constants) == len(arguments) and function and function.takes(len(arguments)):
        return Term(function.evaluate(*constants), expression.span)
    return Call(expression.function, arguments, expression.span)


def fold_if_possible(expression: Expression) -> Expression:
    """As `fold`, but an expression that has no value stays as it is."""
    try:
        return fold(expression)
    except FunctionError:
        return expression


def substitute(
    expression: Expression, substitution: Mapping[str, Expression]
) -> Expression:
    """The expression with other expressions in place of variables."""
    match expression:
        case Variable(name=name):
            return substitution.get(name, expression)
        case Call(arguments=arguments):
            changed = tuple(
                substitute(argument, substitution) for argument in arguments
            )
            return replace(expression, arguments=changed)
        case Term():
            return expression


def substitute_atom(atom: Atom, substitution: Mapping[str, Expression]) -> Atom:
    """The atom with expressions in place of variables."""
    arguments = tuple(substitute(argument, substitution) for argument in atom.arguments)
    return replace(atom, arguments=arguments)
