"""Errors for computations in rules that have no value, the same on every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from evermat.algebra import Apply, Column
from evermat.errors import EvermatError
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evermat.algebra import Expression, Pattern


class EvaluationError(EvermatError, ArithmeticError):
    """A computation in a rule failed: division by zero, overflow, a wrong type."""

    code: ClassVar[str] = "EM601"

    def name_facts(
        self, patterns: Iterable[Pattern], binding: Mapping[int, Constant]
    ) -> None:
        """Say to which facts the rule was applied; values not at hand are `_`."""
        facts = [_instance_text(pattern, binding) for pattern in patterns]
        if facts:
            self.message += f"; the rule was applied to {', '.join(facts)}"


def evaluation_error(
    label: str, expression: Expression, binding: Mapping[int, Constant], reason: str
) -> EvaluationError:
    """The error for an expression that has no value, the same on every engine.

    Args:
        label: the rule.
        expression: what was to be computed.
        binding: the values of the columns, by their index.
        reason: what went wrong.
    """
    return EvaluationError(
        f"cannot compute `{expression_text(expression, binding)}`: {reason}",
        law=f"every computation in a rule must have a value: {label}",
        help="add a condition to the rule that keeps such values out",
    )


def expression_text(expression: Expression, binding: Mapping[int, Constant]) -> str:
    """An expression with its columns replaced by their values."""
    match expression:
        case Constant():
            return str(expression)
        case Column(index=index):
            return str(binding.get(index, f"?{index}"))
        case Apply(function=function, arguments=arguments):
            texts = [expression_text(argument, binding) for argument in arguments]
            if not _is_infix(expression):
                return f"{function}({', '.join(texts)})"
            # Brackets around every operation inside another: nobody has to know
            # which of them binds more tightly.
            return f" {function} ".join(
                f"({text})" if _is_infix(argument) else text
                for argument, text in zip(arguments, texts, strict=True)
            )


def _instance_text(pattern: Pattern, binding: Mapping[int, Constant]) -> str:
    values = (
        operand if isinstance(operand, Constant) else binding.get(operand.index, "_")
        for operand in pattern.operands
    )
    return f"{pattern.relation}({', '.join(map(str, values))})"


def _is_infix(expression: Expression) -> bool:
    return (
        isinstance(expression, Apply)
        and len(expression.arguments) > 1
        and not expression.function.isidentifier()
    )
