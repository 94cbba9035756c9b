"""Safety: every variable of a rule gets its values from somewhere.

A variable is *bound* by a positive body atom that has it as an argument, or by an
equation `?z = expression` whose other side is bound. Variables of heads and of
expressions must be bound. A variable that occurs in one negated atom only need not be:
`not p(?x, ?y)` then means that there is no such `?y`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.errors import Label, UnsafeRuleError
from evermat.lang.syntax import (
    ANONYMOUS,
    Atom,
    Call,
    Condition,
    Expression,
    Negation,
    Rule,
    Variable,
    atom_variables,
    element_variables,
    expression_variables,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evermat.errors import Span

_LAW = "every variable must occur in a positive body atom"


def unsafe_variables(rule: Rule) -> Iterator[UnsafeRuleError]:
    """An error for each variable of a rule that is not bound but must be."""
    bound = _bound_variables(rule)
    reported: set[str] = set()
    for variable, need in _needed_variables(rule):
        name = variable.name
        if name == ANONYMOUS:
            yield _anonymous(variable, need)
        elif name not in bound and name not in reported:
            reported.add(name)
            yield _unbound(rule, variable, need)


def unsafe_fact(fact: Atom) -> UnsafeRuleError | None:
    """An error if a fact has a variable."""
    variable = next(atom_variables(fact), None)
    if variable is None:
        return None
    shown = _shown(variable)
    return UnsafeRuleError(
        f"the fact has a variable, `{shown}`",
        labels=_labels((variable.span, "needs a value here")),
        law="facts have constants only",
        help=f"write a constant, or a rule with a body that gives `{shown}` a value"
        if variable.name != ANONYMOUS
        else "write a constant",
    )


def _bound_variables(rule: Rule) -> set[str]:
    bound = {
        argument.name
        for atom in rule.positive_atoms()
        for argument in atom.arguments
        if isinstance(argument, Variable) and argument.name != ANONYMOUS
    }
    equations = [
        element.expression.arguments
        for element in rule.body
        if isinstance(element, Condition) and element.expression.function == "="
    ]
    grows = bool(equations)
    while grows:
        grows = False
        for left, right in equations:
            for target, value in ((left, right), (right, left)):
                if _is_unbound(target, bound) and not _unbound_in(value, bound):
                    bound.update(each.name for each in expression_variables(target))
                    grows = True
    return bound


def _is_unbound(target: Expression, bound: set[str]) -> bool:
    return (
        isinstance(target, Variable)
        and target.name not in bound
        and target.name != ANONYMOUS
    )


def _unbound_in(expression: Expression, bound: set[str]) -> bool:
    return any(each.name not in bound for each in expression_variables(expression))


def _needed_variables(rule: Rule) -> Iterator[tuple[Variable, str]]:
    """The variables that must be bound, and what the place of each is called."""
    for head in rule.heads:
        for variable in atom_variables(head):
            yield variable, "head variable"
    for element in rule.body:
        match element:
            case Atom():
                yield from _in_calls(element.arguments)
            case Negation(atom=atom):
                yield from _in_calls(atom.arguments)
            case _:
                for variable in element_variables(element):
                    yield variable, "variable"
    yield from _shared_by_negations(rule)


def _in_calls(arguments: Iterable[Expression]) -> Iterator[tuple[Variable, str]]:
    for argument in arguments:
        if isinstance(argument, Call):
            for variable in expression_variables(argument):
                yield variable, "variable"


def _shared_by_negations(rule: Rule) -> Iterator[tuple[Variable, str]]:
    negations = [set(_names(atom)) for atom in rule.negated_atoms()]
    seen: set[str] = set()
    for atom, names in zip(rule.negated_atoms(), negations, strict=True):
        for variable in atom_variables(atom):
            if variable.name in seen and variable.name != ANONYMOUS:
                yield variable, "variable"
        seen |= names


def _names(atom: Atom) -> Iterator[str]:
    return (variable.name for variable in atom_variables(atom))


def _unbound(rule: Rule, variable: Variable, need: str) -> UnsafeRuleError:
    places: list[tuple[Span | None, str]] = [(variable.span, "needs a value here")]
    places += [
        (other.span, "a negated atom cannot give it one")
        for atom in rule.negated_atoms()
        for other in atom_variables(atom)
        if other.name == variable.name and other.span != variable.span
    ]
    places += [
        (other.span, "an expression cannot give it one")
        for atom in rule.positive_atoms()
        for other in atom_variables(atom)
        if other.name == variable.name and other.span != variable.span
    ]
    return UnsafeRuleError(
        f"{need} `?{variable.name}` is not bound by the body",
        labels=_labels(*places),
        law=_LAW,
        help=f"add a positive atom that mentions `?{variable.name}`"
        + (f", or drop `?{variable.name}` from the head" if "head" in need else ""),
    )


def _anonymous(variable: Variable, need: str) -> UnsafeRuleError:
    where = "a head" if "head" in need else "an expression"
    return UnsafeRuleError(
        f"`_` cannot stand in {where}",
        labels=_labels((variable.span, "needs a value here")),
        law="every `_` is a variable of its own, which nothing else can bind",
        help="give the variable a name",
    )


def _shown(variable: Variable) -> str:
    return ANONYMOUS if variable.name == ANONYMOUS else f"?{variable.name}"


def _labels(*places: tuple[Span | None, str]) -> tuple[Label, ...]:
    return tuple(Label(span, text) for span, text in places if span is not None)
