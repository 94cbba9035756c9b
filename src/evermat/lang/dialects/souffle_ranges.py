"""Soufflé's generator `range(low, high, step)` as rules.

`out(x) :- n(y), x = range(0, y).` becomes

    range_4(0, ?y, 1, 0)                   :- n(?y), 0 < ?y .
    range_4(?low, ?high, ?step, ?x + ?step) :- range_4(?low, ?high, ?step, ?x), …
    out(?x)                                :- n(?y), ?x = ?r, range_4(0, ?y, 1, ?r) .

and likewise for ranges that go down. The high end is no part of a range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.lang.dialects.desugar import AllOf, AnyOf, Formula
from evermat.lang.syntax import (
    Atom,
    Call,
    Condition,
    Rule,
    Term,
    Variable,
    atom_variables,
    expression_variables,
)
from evermat.values import integer_constant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.errors import Span
    from evermat.lang.syntax import BodyElement, Expression

RANGE = "range_4"
_UP, _DOWN = (Term(integer_constant(step)) for step in (1, -1))
_ZERO = Term(integer_constant(0))


def range_atom(arguments: tuple[Expression, ...], target: Variable, span: Span) -> Atom:
    """Return the atom that gives a variable the values of a range.

    Without a step, the range goes from the one end to the other, up or down.
    """
    low, high, *others = arguments
    step = others[0] if others else Variable(f"{target.name}_step", span)
    return Atom(RANGE, (low, high, step, target), span)


def has_range(formula: Formula) -> bool:
    """Return whether there is a range in a formula."""
    match formula:
        case AllOf(parts) | AnyOf(parts):
            return any(map(has_range, parts))
        case Atom(predicate=predicate):
            return predicate == RANGE
        case _:
            return False


def with_ranges(rule: Rule) -> Iterator[Rule]:
    """Yield the rules that derive the ranges in the body of a rule."""
    for atom in rule.positive_atoms():
        if atom.predicate == RANGE:
            yield from _seeds(rule, atom)


def rules_of_ranges() -> Iterator[Rule]:
    """Yield the rules by which ranges go on."""
    low, high, step, last = map(Variable, ("low", "high", "step", "last"))
    further = Call("+", (last, step))
    head = Atom(RANGE, (low, high, step, further))
    atom = Atom(RANGE, (low, high, step, last))
    for sign, test in ((">", "<"), ("<", ">")):
        conditions = _test(sign, step, _ZERO), _test(test, further, high)
        yield _rule(head, (atom, *conditions))


def _seeds(rule: Rule, atom: Atom) -> Iterator[Rule]:
    low, high, step, _ = atom.arguments
    body = _binding(rule, atom)
    given = not (isinstance(step, Variable) and step.name.endswith("_step"))
    for sign, test, usual in ((">", "<", _UP), ("<", ">", _DOWN)):
        chosen = step if given else usual
        conditions = [_test(test, low, high)]
        if given:
            conditions.append(_test(sign, step, _ZERO))
        yield _rule(Atom(RANGE, (low, high, chosen, low)), (*body, *conditions))


def _binding(rule: Rule, atom: Atom) -> list[BodyElement]:
    """Return what gives the ends of a range their values.

    That is all atoms, and equations with values that are known by then; other ranges
    only where it is not enough.
    """
    wanted = {variable.name for each in atom.arguments[:3] for variable in _names(each)}
    others = [each for each in rule.positive_atoms() if each.predicate != RANGE]
    found, known = _known_from(rule, others)
    if wanted - known - {f"{target.name}_step" for target in _names(atom.arguments[3])}:
        others += [
            each
            for each in rule.positive_atoms()
            if each.predicate == RANGE and each != atom
        ]
        found, _ = _known_from(rule, others)
    return found


def _names(expression: Expression) -> list[Variable]:
    return list(expression_variables(expression))


def _known_from(rule: Rule, atoms: list[Atom]) -> tuple[list[BodyElement], set[str]]:
    """Return atoms and the equations that they solve, and the variables with values."""
    found: list[BodyElement] = [*atoms]
    known = {variable.name for each in atoms for variable in atom_variables(each)}
    waiting = [each for each in rule.body if isinstance(each, Condition)]
    size = -1
    while size < len(found):
        size = len(found)
        for each in [*waiting]:
            if each.expression.function == "=" and _solves(each, known):
                known.update(v.name for v in expression_variables(each.expression))
                waiting.remove(each)
                found.append(each)
    return found, known


def _solves(condition: Condition, known: set[str]) -> bool:
    """Return whether an equation gives at most one variable its value."""
    left, right = condition.expression.arguments
    sides = [
        {variable.name for variable in expression_variables(each)} <= known
        for each in (left, right)
    ]
    one = left if sides[1] else right
    return all(sides) or (any(sides) and isinstance(one, Variable))


def _test(sign: str, left: Expression, right: Expression) -> Condition:
    return Condition(Call(sign, (left, right)))


def _rule(head: Atom, body: tuple[BodyElement, ...]) -> Rule:
    return Rule((head,), body)
