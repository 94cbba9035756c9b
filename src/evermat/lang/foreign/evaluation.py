"""Values of expressions, needed while a program is read."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from evermat.functions import FunctionError
from evermat.functions import evaluate as evaluate_function
from evermat.lang.syntax import Call, Term, Variable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.lang.syntax import Expression
    from evermat.values import Constant

_NOTHING: Mapping[str, Constant] = MappingProxyType({})


def evaluate(
    expression: Expression, values: Mapping[str, Constant] = _NOTHING
) -> Constant:
    """The value of an expression, given those of its variables.

    Raises:
        FunctionError: a function or a variable has no value.
    """
    match expression:
        case Term(constant=value):
            return value
        case Call(function=name, arguments=arguments):
            operands = [evaluate(argument, values) for argument in arguments]
            return evaluate_function(name, *operands)
        case Variable(name=name):
            if name in values:
                return values[name]
            message = f"`?{name}` has no value here"
            raise FunctionError(message)
