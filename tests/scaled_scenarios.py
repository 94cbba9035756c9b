"""Scenarios with small integers, and the same with large ones.

Sums, differences and comparisons hold for multiples of numbers as for the numbers
themselves, so integers of any size go through programs that were made for small ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evermat.lang.syntax import (
    Aggregation,
    Assignment,
    Atom,
    Call,
    Condition,
    Negation,
    Rule,
    Term,
)
from evermat.values import Constant, Kind, constant
from strategies import Scenario, Update

if TYPE_CHECKING:
    from evermat.lang.syntax import BodyElement, Expression
    from oracle import Fact

FACTORS = (1, 1, 2**28, 2**29, 2**30, 2**31 - 1, 2**52 + 1, 2**61, 2**62, 2**63 + 1)
"""Multiples of these are on both sides of a boundary."""


def scaled(scenario: Scenario, number: int) -> Scenario:
    """A scenario with its integers multiplied by the factor that a number chooses."""
    return _Scale(FACTORS[number % len(FACTORS)]).scenario(scenario)


@dataclass(frozen=True)
class _Scale:
    factor: int

    def scenario(self, scenario: Scenario) -> Scenario:
        return Scenario(
            tuple(map(self.rule, scenario.rules)),
            frozenset(map(self.fact, scenario.facts)),
            tuple(map(self.update, scenario.updates)),
        )

    def update(self, update: Update) -> Update:
        return Update(
            frozenset(map(self.fact, update.delete)),
            frozenset(map(self.fact, update.insert)),
            tuple(map(self.rule, update.remove_rules)),
            tuple(map(self.rule, update.add_rules)),
        )

    def fact(self, fact: Fact) -> Fact:
        return fact[0], tuple(map(self.number, fact[1]))

    def number(self, value: Constant) -> Constant:
        if value.kind is not Kind.INTEGER:
            return value
        return constant(int(value.text) * self.factor)

    def rule(self, rule: Rule) -> Rule:
        heads = tuple(map(self.atom, rule.heads))
        return Rule(heads, tuple(map(self.element, rule.body)))

    def atom(self, atom: Atom) -> Atom:
        return replace(atom, arguments=tuple(map(self.term, atom.arguments)))

    def element(self, element: BodyElement) -> BodyElement:
        match element:
            case Atom():
                return self.atom(element)
            case Negation(atom=atom):
                return Negation(self.atom(atom))
            case Condition(expression=call):
                return Condition(self.call(call))
            case Assignment(variable=variable, expression=value):
                return Assignment(variable, self.term(value))
            case Aggregation():
                return element  # counts do not grow with the numbers

    def term(self, term: Expression) -> Expression:
        match term:
            case Term(constant=value):
                return Term(self.number(value))
            case Call():
                return self.call(term)
            case _:
                return term

    def call(self, call: Call) -> Call:
        return Call(call.function, tuple(map(self.term, call.arguments)))
