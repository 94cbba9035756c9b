"""Rules of a program with equality, under representatives.

Source: [motik2015equality], Sections 2 and 3.1. A program is divided in two:

- the *component* of equality: the rules that equality depends on. Every fact depends on
  equality, so these rules and equality are worked out together, by merging constants;
- the other rules. When they are run it is settled which constants are equal, and the
  facts hold representatives only: they are a plain program, with negation and
  built-ins, that all algorithms for plain programs can maintain.

Constants in rules are replaced by their representatives like those in facts.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from evermat.lang.equality import (
    SAME,
    replace_constants,
    require_monotone,
    rule_constants,
    without_equality,
)
from evermat.lang.shapes import shape_of
from evermat.lang.strata import rules_behind
from evermat.lang.syntax import Atom, Call, Condition
from evermat.maintenance.closures import find_closure_modules
from evermat.maintenance.compiled_rules import compile_plans, strata_of
from evermat.rule_plans import compile_rules, region_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evermat.algebra import Region, Representatives
    from evermat.lang.syntax import Rule
    from evermat.maintenance.closures import ClosureModule
    from evermat.maintenance.compiled_rules import ModularPlan, RuleBook
    from evermat.maintenance.state import Strata
    from evermat.rule_plans import RuleSet
    from evermat.values import Constant

Values = dict["Constant", "Constant"]
"""Constants of rules that something else stands for."""


def _always_local(rule: Rule, atom: Atom) -> bool:
    """In the component of equality, all facts of bodies are looked for and proved."""
    del rule, atom
    return True


class EqualityProgram:
    """Rules in which equality occurs in heads only, as `~same`."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(dict.fromkeys(rules))
        self._normal: dict[tuple[frozenset[object], frozenset[Rule]], NormalRules] = {}
        self._behind: dict[frozenset[object], frozenset[Rule]] = {}

    @classmethod
    def of(cls, book: RuleBook, arities: Mapping[str, int]) -> EqualityProgram:
        """The rules of a program.

        Raises:
            EqualityError: a rule has no sensible meaning together with equality.
        """
        program = cls(without_equality(book.normal.values(), arities))
        program.behind({})
        return program

    @cached_property
    def rule_set(self) -> frozenset[Rule]:
        """The rules as a set."""
        return frozenset(self.rules)

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """The constants of the rules."""
        return rule_constants(self.rules)

    def values(self, representatives: Representatives) -> Values:
        """The constants of the rules that something else stands for."""
        return representatives.replaced(self.constants)

    def behind(self, values: Values) -> frozenset[Rule]:
        """The rules that equality depends on, when constants are replaced.

        Raises:
            EqualityError: more equality could undo what one of them derives.
        """
        key = frozenset(values.items())
        if key not in self._behind:
            normal = {rule: replace_constants(rule, values) for rule in self.rules}
            found, _ = rules_behind(tuple(normal.values()), SAME)
            chosen = frozenset(found)
            require_monotone(rule for rule in self.rules if normal[rule] in chosen)
            self._behind[key] = frozenset(r for r in self.rules if normal[r] in chosen)
        return self._behind[key]

    def under(self, values: Values, component: frozenset[Rule]) -> NormalRules:
        """The rules with constants replaced, `component` of them worked together."""
        key = (frozenset(values.items()), component)
        if key not in self._normal:
            if len(self._normal) > _MOST_KEPT:
                self._normal.clear()
            self._normal[key] = NormalRules(self, values, component)
        return self._normal[key]


_MOST_KEPT = 8
"""Compiled forms of a program that are kept for the next update."""


class NormalRules:
    """A program under representatives, compiled as far as it is asked for."""

    def __init__(
        self, program: EqualityProgram, values: Values, component: frozenset[Rule]
    ) -> None:
        self.values = values
        self._normal = {rule: replace_constants(rule, values) for rule in program.rules}
        self._component = component
        self._sets: dict[tuple[str, frozenset[Rule]], RuleSet] = {}
        self._plans: dict[frozenset[Rule], tuple[ModularPlan, ...]] = {}
        self._closing: dict[frozenset[Rule], tuple[ModularPlan, ...]] = {}
        self._strata: dict[tuple[frozenset[Rule], frozenset[Rule]], Strata] = {}
        self._others: dict[frozenset[Rule], frozenset[Rule]] = {}

    @cached_property
    def region(self) -> Region:
        """The facts that the rules of the component speak of."""
        return region_of(rules_behind(self._together, SAME)[1])

    @cached_property
    def derivable(self) -> Region:
        """The facts that the rules of the component can derive."""
        return region_of(dict.fromkeys(shape_of(rule.head) for rule in self._together))

    @cached_property
    def _together(self) -> tuple[Rule, ...]:
        return tuple(self._normal[r] for r in self._normal if r in self._component)

    def checking(self, chosen: frozenset[Rule]) -> RuleSet:
        """Rules of the component over facts in which all equal constants are merged.

        Equality derives only `~same(c, c)` there, which is kept for cliques of two and
        more constants: it stands for all their equalities.
        """
        return self._compiled("checking", chosen)

    def proving(self, chosen: frozenset[Rule]) -> RuleSet:
        """Rules of the component that may find new equalities."""
        return self._compiled("proving", chosen)

    def _compiled(self, purpose: str, chosen: frozenset[Rule]) -> RuleSet:
        key = (purpose, chosen)
        if key not in self._sets:
            change = _on_cliques if purpose == "checking" else _between_different
            rules = dict.fromkeys(
                change(self._normal[rule])
                for rule in self._normal
                if rule in self._component and rule in chosen
            )
            self._sets[key] = compile_rules(rules, _always_local)
        return self._sets[key]

    def others(self, chosen: frozenset[Rule]) -> frozenset[Rule]:
        """The rules outside of the component."""
        if chosen not in self._others:
            self._others[chosen] = frozenset(
                self._normal[rule]
                for rule in self._normal
                if rule in chosen and rule not in self._component
            )
        return self._others[chosen]

    def plans(self, chosen: frozenset[Rule]) -> tuple[ModularPlan, ...]:
        """The strata of the rules outside of the component, for updates."""
        if chosen not in self._plans:
            plans = self._closing.get(chosen)
            if plans is None or any(plan.modules for plan in plans):
                plans = compile_plans(self._ordered(chosen))
            self._plans[chosen] = plans
        return self._plans[chosen]

    def closing_plans(self, chosen: frozenset[Rule]) -> tuple[ModularPlan, ...]:
        """The same for materialisation, where closures take care of some rules."""
        if chosen not in self._closing:
            plans = compile_plans(self._ordered(chosen), _find_closures)
            self._closing[chosen] = plans
        return self._closing[chosen]

    def _ordered(self, chosen: frozenset[Rule]) -> list[Rule]:
        rules = self.others(chosen)
        return [rule for rule in dict.fromkeys(self._normal.values()) if rule in rules]

    def strata(self, chosen: frozenset[Rule], new: frozenset[Rule]) -> Strata:
        """The same for an update that adds some of the rules."""
        key = (chosen, new)
        if key not in self._strata:
            self._strata[key] = strata_of(self.plans(chosen), new)
        return self._strata[key]


def _find_closures(
    rules: Sequence[Rule], is_local: Callable[[Rule, Atom], bool]
) -> tuple[ClosureModule, ...]:
    """The closures of a stratum; two of them may speak of the same facts."""
    return tuple(find_closure_modules(rules, is_local))


def _on_cliques(rule: Rule) -> Rule:
    """An equality of representatives is about the clique of one of them."""
    if rule.head.predicate != SAME:
        return rule
    first = rule.head.arguments[0]
    return replace(rule, body=(Atom(SAME, (first, first)), *rule.body))


def _between_different(rule: Rule) -> Rule:
    """That a constant is equal to itself is no news."""
    if rule.head.predicate != SAME:
        return rule
    return replace(rule, body=(*rule.body, Condition(Call("!=", rule.head.arguments))))
