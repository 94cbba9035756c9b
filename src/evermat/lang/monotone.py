"""Monotonicity of recursion through aggregates, which gives it a unique meaning.

A *cost* is the value of an aggregate in a cycle, or a value computed from one. Costs of
`min` only decrease while facts are derived, those of `max`, `count` and `sum` (of
numbers that are not negative) only increase. A cycle is monotone if no rule of it can
lose a fact by that, except facts that are replaced by ones with a better cost:

- costs are compared in the direction in which they change: `?cost < 10` for `min`,
  `?share > 50` for `sum`;
- values computed from them change in the same direction: sums, differences, products
  with constants that are not negative, `min` and `max`;
- they are not used in joins or as groups, and are neither counted nor summed up;
- they depend on themselves through an aggregate only.

Then all values together have a best fixpoint that is reached from below, whatever the
order in which rules are applied.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evermat.functions import FunctionError, number_of
from evermat.lang.aggregates import is_aggregate_rule
from evermat.lang.syntax import (
    Assignment,
    Call,
    Condition,
    Term,
    Variable,
    atom_variables,
    expression_variables,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evermat.lang.syntax import Atom, Expression, Rule

    IsLocal = Callable[[Atom], bool]

DIRECTIONS = {"min": -1, "max": 1, "count": 1, "sum": 1}
"""The direction in which the results of aggregates change in a cycle."""

_SMALLER = frozenset({"<", "<="})
_GREATER = frozenset({">", ">="})


class NotMonotoneError(Exception):
    """A cycle is not monotone; the text is the reason."""


def why_not_monotone(rules: Sequence[Rule], is_local: IsLocal) -> str | None:
    """Return why a component with aggregates in a cycle is not monotone, or None.

    Args:
        rules: the normal rules of the component.
        is_local: whether an atom belongs to the component.
    """
    try:
        _Costs(rules, is_local).check()
    except NotMonotoneError as problem:
        return str(problem)
    return None


class _Costs:
    """The columns of a component that contain costs, and their directions."""

    def __init__(self, rules: Sequence[Rule], is_local: IsLocal) -> None:
        self._aggregates = [rule for rule in rules if is_aggregate_rule(rule)]
        self._rules = [rule for rule in rules if not is_aggregate_rule(rule)]
        self._is_local = is_local
        self._directions: dict[tuple[str, int], int] = {}

    def check(self) -> None:
        """Raise an error unless the component is monotone."""
        for rule in self._aggregates:
            self._start(rule)
        size = -1
        while size < len(self._directions):
            size = len(self._directions)
            for rule in self._rules:
                self._follow(rule)
        for rule in self._rules:
            self._check_conditions(rule)
        for rule in self._aggregates:
            self._check_members(rule)
        self._check_cycles()

    def _start(self, rule: Rule) -> None:
        (element,) = rule.aggregations()
        direction = DIRECTIONS.get(element.function)
        if direction is None:
            message = f"`{element.function}` neither only grows nor only shrinks"
            raise NotMonotoneError(message)
        first = list(rule.head.arguments).index(element.target)
        for at in range(first, rule.head.arity):
            self._directions[rule.head.predicate, at] = direction

    def _costs(self, rule: Rule) -> dict[str, int]:
        """Return the directions of the variables of a rule that are costs."""
        costs: dict[str, int] = {}
        for atom in filter(self._is_local, rule.positive_atoms()):
            for at, argument in enumerate(atom.arguments):
                direction = self._directions.get((atom.predicate, at))
                if direction is None:
                    continue
                if not isinstance(argument, Variable):
                    message = "a rule asks for a cost that is not the final one"
                    raise NotMonotoneError(message)
                costs[argument.name] = direction
        for element in rule.body:
            if isinstance(element, Assignment):
                direction = self._direction(element.expression, costs)
                if direction:
                    costs[element.variable.name] = direction
        return costs

    def _follow(self, rule: Rule) -> None:
        """Propagate costs from a body to the head."""
        costs = self._costs(rule)
        uses = Counter(
            v.name for atom in rule.positive_atoms() for v in atom_variables(atom)
        )
        for name in costs:
            if uses[name] > 1:
                raise NotMonotoneError(f"`?{name}` joins, though it is a cost")
        for at, argument in enumerate(rule.head.arguments):
            if isinstance(argument, Variable) and argument.name in costs:
                key = rule.head.predicate, at
                direction = costs[argument.name]
                if self._directions.setdefault(key, direction) != direction:
                    message = "a cost goes up by one rule and down by another"
                    raise NotMonotoneError(message)

    def _direction(self, expression: Expression, costs: dict[str, int]) -> int:
        """Return the direction of an expression; 0 if it has no costs."""
        match expression:
            case Variable(name=name):
                return costs.get(name, 0)
            case Term():
                return 0
            case Call(function=name, arguments=arguments):
                found = [self._direction(each, costs) for each in arguments]
                if not any(found):
                    return 0
                return _combined(name, arguments, found)

    def _check_conditions(self, rule: Rule) -> None:
        costs = self._costs(rule)
        for element in rule.body:
            if not isinstance(element, Condition):
                continue
            call = element.expression
            found = [self._direction(each, costs) for each in call.arguments]
            if not any(found):
                continue
            left, right = (*found, 0)[:2]
            # `?low < ?high` continues to hold if the left side decreases and the right
            # increases.
            holds_on = {-1: _SMALLER, 1: _GREATER}[left or -right]
            if call.function not in holds_on or left == right:
                names = {v.name for v in expression_variables(call)} & costs.keys()
                message = (
                    f"the condition on `?{min(names)}` can hold first and not later"
                )
                raise NotMonotoneError(message)
        for atom in rule.negated_atoms():
            if costs.keys() & {v.name for v in atom_variables(atom)}:
                raise NotMonotoneError("a cost stands below `not`")

    def _check_members(self, rule: Rule) -> None:
        (element,) = rule.aggregations()
        (atom,) = element.atoms()
        if not self._is_local(atom):
            return
        columns = {a.name: at for at, a in enumerate(_variables(atom))}
        group = {a.name for a in _variables(rule.head)} & columns.keys()
        (value,) = (v.name for v in _variables_of(element.values))
        for name, at in columns.items():
            direction = self._directions.get((atom.predicate, at))
            if direction is None:
                continue
            if name in group:
                raise NotMonotoneError("an aggregate groups by a cost")
            if element.function in {"count", "sum"}:
                message = f"`{element.function}` is over tuples with a cost"
                raise NotMonotoneError(message)
            if name == value and direction != DIRECTIONS[element.function]:
                message = f"`{element.function}` is over costs that go the other way"
                raise NotMonotoneError(message)

    def _check_cycles(self) -> None:
        """Refuse costs that depend on themselves without an aggregate in between."""
        needs: dict[str, set[str]] = {}
        for rule in self._rules:
            costs = self._costs(rule).keys()
            if costs & {v.name for v in atom_variables(rule.head)}:
                needs.setdefault(rule.head.predicate, set()).update(
                    atom.predicate
                    for atom in rule.positive_atoms()
                    if costs & {v.name for v in atom_variables(atom)}
                )
        for start, first in needs.items():
            reached, waiting = set(), list(first)
            while waiting:
                name = waiting.pop()
                if name not in reached:
                    reached.add(name)
                    waiting += needs.get(name, ())
            if start in reached:
                message = (
                    f"costs of `{start}` lead to costs of `{start}` by rules alone"
                )
                raise NotMonotoneError(message)


def _combined(
    name: str, arguments: Sequence[Expression], directions: Sequence[int]
) -> int:
    """Return the direction of a function of costs and other values."""
    if name == "-":
        directions = [-each for each in directions] if len(directions) == 1 else [
            directions[0],
            -directions[1],
        ]  # fmt: skip
    elif name in {"*", "/"}:
        _require_factor(name, arguments, directions)
    elif name not in {"+", "min", "max", "int", "double"}:
        raise NotMonotoneError(f"`{name}` of a cost need not go in its direction")
    found = {each for each in directions if each}
    if len(found) > 1:
        raise NotMonotoneError(f"`{name}` is of costs that go in two directions")
    return found.pop()


def _require_factor(
    name: str, arguments: Sequence[Expression], directions: Sequence[int]
) -> None:
    """Refuse products and quotients except with a constant that is not negative."""
    others = [a for a, each in zip(arguments, directions, strict=True) if not each]
    try:
        is_fine = (
            len(others) == 1
            and isinstance(others[0], Term)
            and number_of(name, others[0].constant) >= 0
            and (name == "*" or others[0] is arguments[1])
        )
    except FunctionError:
        is_fine = False
    if not is_fine:
        message = f"`{name}` of a cost goes in its direction only with a constant"
        raise NotMonotoneError(f"{message} that is not negative")


def _variables(atom: Atom) -> Iterator[Variable]:
    return (each for each in atom.arguments if isinstance(each, Variable))


def _variables_of(values: Iterable[Expression]) -> Iterator[Variable]:
    return (each for each in values if isinstance(each, Variable))
