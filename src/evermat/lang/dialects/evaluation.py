"""Values of expressions that are needed while a program is read."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from evermat.errors import ConstantExpressionError, Label
from evermat.functions import FunctionError
from evermat.lang.expressions import fold, substitute
from evermat.lang.syntax import Term, expression_variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.lang.syntax import Atom, Expression
    from evermat.values import Constant

_NOTHING: Mapping[str, Constant] = MappingProxyType({})


def value_of(
    expression: Expression, values: Mapping[str, Constant] = _NOTHING
) -> Constant:
    """The value of an expression, given those of its variables.

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
    """The atom of a fact, with values in place of expressions."""
    arguments = tuple(
        Term(value_of(argument), span=argument.span) for argument in atom.arguments
    )
    return replace(atom, arguments=arguments)


def _no_value(message: str, expression: Expression) -> ConstantExpressionError:
    labels = () if expression.span is None else (Label(expression.span),)
    return ConstantExpressionError(message, labels=labels)
