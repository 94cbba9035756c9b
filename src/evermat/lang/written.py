"""Instances of rules as their authors wrote them.

Rules are matched in normal form, in which expressions have moved, equations are
substituted and some negated atoms are projected. People want to see their own rule, the
values of their own variables, and what was computed and found absent on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.lang.expressions import fold_if_possible, substitute, substitute_atom
from evermat.lang.syntax import (
    ANONYMOUS,
    Assignment,
    Atom,
    Call,
    Condition,
    Negation,
    Term,
    Variable,
    atom_variables,
    element_variables,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evermat.lang.syntax import Expression, Rule
    from evermat.values import Constant


@dataclass(frozen=True, slots=True)
class Computation:
    """An expression of a rule, with values in place of its variables.

    Attributes:
        expression: as written.
        filled: with values.
        result: what it comes to; `true` for conditions.
    """

    expression: Call
    filled: Call
    result: Constant


@dataclass(frozen=True, slots=True)
class WrittenInstance:
    """What an instance says about the parts of a rule.

    Attributes:
        binding: the variables and their values, those of the body first.
        absent: the negated atoms, with values; variables that are left stand for any.
        computations: conditions, and expressions inside of atoms.
    """

    binding: dict[str, Constant]
    absent: tuple[Atom, ...]
    computations: tuple[Computation, ...]


def written_instance(rule: Rule, normal: Mapping[str, Constant]) -> WrittenInstance:
    """The instance of a rule that has one head.

    Args:
        rule: as written.
        normal: values of the variables of its normal form, which has some of the
            variables of the rule and some of its own.
    """
    known = written_values(rule, normal)
    calls = [call for element in (*rule.body, rule.head) for call in _calls(element)]
    filled = [(call, substitute(call, known)) for call in calls]
    results = [(call, full, fold_if_possible(full)) for call, full in filled]
    return WrittenInstance(
        binding=written_binding(rule, known),
        absent=tuple(filled_atom(atom, known) for atom in rule.negated_atoms()),
        computations=tuple(
            Computation(call, full, result.constant)
            for call, full, result in results
            if isinstance(full, Call) and isinstance(result, Term)
        ),
    )


def written_values(rule: Rule, normal: Mapping[str, Constant]) -> dict[str, Expression]:
    """The values of all variables that have one, by the equations of a rule."""
    known: dict[str, Expression] = {name: Term(value) for name, value in normal.items()}
    calls = (call for element in rule.body for call in _calls(element))
    equations = [call for call in calls if call.function == "="]
    while any(_solve(equation, known) for equation in equations):
        pass
    return known


def written_binding(rule: Rule, known: Mapping[str, Expression]) -> dict[str, Constant]:
    """The values of the variables of a rule, those of the body first."""
    variables = [v for element in rule.body for v in element_variables(element)]
    found = {}
    for variable in (*variables, *atom_variables(rule.head)):
        value = known.get(variable.name)
        if isinstance(value, Term) and variable.name != ANONYMOUS:
            found[variable.name] = value.constant
    return found


def _calls(element: object) -> Iterator[Call]:
    """The conditions of a body, and the expressions in its atoms."""
    match element:
        case Condition(expression=expression):
            yield expression
        case Assignment(variable=variable, expression=value):
            yield Call("=", (variable, value))
        case Atom(arguments=arguments) | Negation(atom=Atom(arguments=arguments)):
            yield from (each for each in arguments if isinstance(each, Call))
        case _:
            return


def _solve(equation: Call, known: dict[str, Expression]) -> bool:
    """Give a variable the value that an equation says it has, if that is news."""
    left, right = (
        fold_if_possible(substitute(each, known)) for each in equation.arguments
    )
    if not isinstance(left, Variable):
        left, right = right, left
    if isinstance(left, Variable) and isinstance(right, Term):
        known[left.name] = right
        return True
    return False


def filled_atom(atom: Atom, known: Mapping[str, Expression]) -> Atom:
    """An atom with values for its variables, and expressions worked out."""
    arguments = substitute_atom(atom, known).arguments
    return Atom(atom.predicate, tuple(map(fold_if_possible, arguments)))
