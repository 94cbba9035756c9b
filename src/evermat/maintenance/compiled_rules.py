"""The rules of a program, compiled into strata and taken apart for updates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from evermat.algebra import Region
from evermat.algebra.compile import StratumPlan, compile_rules, plan_strata
from evermat.lang.renaming import canonical
from evermat.lang.strata import stratify
from evermat.lang.syntax import Term
from evermat.maintenance.closures import ClosureModule
from evermat.maintenance.strata import Strata, Stratum
from evermat.runtime.garbage import collection_paused
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Iterable,
        Iterator,
        Sequence,
    )

    from evermat.algebra import Closure, Operand, Pattern
    from evermat.algebra.compile import RuleSet
    from evermat.lang.syntax import Atom, Rule
    from evermat.maintenance.modules import Module
    from evermat.maintenance.rule_book import RuleBook


@dataclass(frozen=True, eq=False)
class ModularPlan(StratumPlan):
    """The plan of a stratum some of whose recursive rules are taken by modules.

    `recursive` are the others, `rules` are all of them.
    """

    modules: tuple[Module, ...] = ()

    @cached_property
    def reads(self) -> frozenset[str]:
        """The relations in the bodies of the rules."""
        return frozenset(
            atom.predicate for rule in self.rules.rules for atom in _body_atoms(rule)
        )

    @cached_property
    def is_closed(self) -> bool:
        """Whether local atoms match only facts of the region."""
        return _is_closed(self)


@dataclass(frozen=True, slots=True, eq=False)
class CompiledRules:
    """A program ready to run.

    Attributes:
        plans: its strata, for materialisation.
        strata: its strata, for updates that leave the rules alone.
        recursive: the normal rules that are recursive and taken by no module.
        modules: the modules of all strata.
        held: closures that are not written out: their rules are in no stratum, and
            their facts are worked out when they are read (see `holding`).
        all_plans: the strata of the whole program, what is held included.
        unfit: closures that could have modules, and whose rules are less work.
    """

    book: RuleBook
    plans: tuple[ModularPlan, ...]
    strata: Strata
    recursive: frozenset[Rule]
    modules: tuple[Module, ...] = ()
    held: tuple[ClosureModule, ...] = ()
    all_plans: tuple[StratumPlan, ...] = ()
    unfit: frozenset[Closure] = frozenset()

    @property
    def claimed(self) -> frozenset[Rule]:
        """The rules that modules take care of; their instances are not counted."""
        modules = (*self.modules, *self.held)
        return frozenset(rule for module in modules for rule in module.rules)

    @property
    def rules(self) -> frozenset[Rule]:
        """All normal rules."""
        return frozenset(self.book.normal.values())


class FindModules(Protocol):
    """How the modules of a stratum are found; `no_modules` finds none."""

    def __call__(
        self, rules: Sequence[Rule], is_local: Callable[[Rule, Atom], bool]
    ) -> tuple[Module, ...]:
        """The modules for some of the recursive rules of a stratum."""


def no_modules(
    rules: Sequence[Rule], is_local: Callable[[Rule, Atom], bool]
) -> tuple[Module, ...]:
    """Leave all rules to be matched instance by instance."""
    del rules, is_local
    return ()


@collection_paused()
def compile_book(
    book: RuleBook,
    find: FindModules = no_modules,
    may_hold: Callable[[ClosureModule], bool] = lambda _: False,
    unfit: frozenset[Closure] = frozenset(),
) -> CompiledRules:
    """Stratify and compile the rules of a program.

    Args:
        book: the program.
        find: how modules are found.
        may_hold: whether a closure that no other rule reads may be held.
        unfit: closures that are left to their rules.

    Raises:
        StratificationError: the program has recursion through negation.
    """
    find = _apart_from(unfit, find)
    rules = tuple(book.normal.values())
    all_plans = plan_strata(stratify(rules))
    plans = tuple(_with_modules(plan, find) for plan in all_plans)
    held = tuple(
        module
        for plan in plans
        for module in plan.modules
        if isinstance(module, ClosureModule)
        and can_be_held(module, rules)
        and may_hold(module)
    )
    if held:
        without = {rule for module in held for rule in module.rules}
        others = stratify(tuple(rule for rule in rules if rule not in without))
        plans = tuple(_with_modules(plan, find) for plan in plan_strata(others))
    return CompiledRules(
        book=book,
        plans=plans,
        strata=strata_of(plans, frozenset()),
        recursive=frozenset(rule for plan in plans for rule in plan.recursive.rules),
        modules=tuple(module for plan in plans for module in plan.modules),
        held=held,
        all_plans=all_plans,
        unfit=unfit,
    )


def _apart_from(unfit: frozenset[Closure], find: FindModules) -> FindModules:
    """Find modules, but none for some closures."""
    if not unfit:
        return find

    def find_others(
        rules: Sequence[Rule], is_local: Callable[[Rule, Atom], bool]
    ) -> tuple[Module, ...]:
        return tuple(
            module
            for module in find(rules, is_local)
            if not isinstance(module, ClosureModule) or module.closure not in unfit
        )

    return find_others


def unclaimed(compiled: CompiledRules, claimed: frozenset[str]) -> frozenset[Closure]:
    """The closures of which no rule is claimed, be it as it was given or canonical."""
    return frozenset(
        module.closure
        for module in compiled.modules
        if isinstance(module, ClosureModule)
        and not any(
            str(rule) in claimed or str(canonical(rule)) in claimed
            for rule in module.rules
        )
    )


def can_be_held(module: ClosureModule, rules: Iterable[Rule]) -> bool:
    """Whether no other rule reads the facts of a closure."""
    form, own = module.found.form, set(module.rules)
    return not any(
        form.may_be(atom)
        for rule in rules
        if rule not in own
        for atom in _body_atoms(rule)
    )


@collection_paused()
def compile_plans(
    rules: Sequence[Rule], find: FindModules = no_modules
) -> tuple[ModularPlan, ...]:
    """The strata of normal rules."""
    return tuple(_with_modules(plan, find) for plan in plan_strata(stratify(rules)))


def _with_modules(plan: StratumPlan, find: FindModules) -> ModularPlan:
    recursive = plan.recursive
    modules = find(recursive.rules, recursive.is_local)
    if modules:
        taken = {rule for module in modules for rule in module.rules}
        others = (rule for rule in recursive.rules if rule not in taken)
        recursive = compile_rules(others, recursive.is_local)
    return ModularPlan(
        index=plan.index,
        region=plan.region,
        nonrecursive=plan.nonrecursive,
        recursive=recursive,
        rules=plan.rules,
        modules=modules,
    )


@collection_paused()
def strata_of(plans: Sequence[ModularPlan], new_rules: frozenset[Rule]) -> Strata:
    """The strata for an update that adds `new_rules`, which are among the rules."""
    strata = tuple(
        _stratum(number, plan, new_rules) for number, plan in enumerate(plans, start=1)
    )
    region = _union(stratum.region for stratum in strata)
    readers: dict[str, list[int]] = {}
    holders: dict[str, list[int]] = {}
    for position, stratum in enumerate(strata):
        for relation in stratum.reads:
            readers.setdefault(relation, []).append(position)
        for relation in stratum.holds:
            holders.setdefault(relation, []).append(position)
    return Strata(
        strata=strata,
        region=region,
        readers={name: tuple(positions) for name, positions in readers.items()},
        holders={name: tuple(positions) for name, positions in holders.items()},
        changed=tuple(
            position
            for position, stratum in enumerate(strata)
            if stratum.new_nonrecursive.rules
            or stratum.new_recursive.rules
            or stratum.new_modules
        ),
    )


def _union(regions: Iterable[Region]) -> Region:
    relations: set[str] = set()
    shapes: list[Pattern] = []
    for region in regions:
        relations |= region.relations
        shapes += region.shapes
    return Region(frozenset(relations), tuple(shapes))


def _stratum(number: int, plan: ModularPlan, new_rules: frozenset[Rule]) -> Stratum:
    nonrecursive, new_nonrecursive = _divide(plan.nonrecursive, new_rules)
    recursive, new_recursive = _divide(plan.recursive, new_rules)
    region = plan.region
    return Stratum(
        index=number,
        region=region,
        nonrecursive=nonrecursive,
        recursive=recursive,
        new_nonrecursive=new_nonrecursive,
        new_recursive=new_recursive,
        all_recursive=plan.recursive,
        holds=region.names,
        reads=plan.reads,
        is_closed=plan.is_closed,
        modules=plan.modules,
        new_modules=tuple(
            module for module in plan.modules if not new_rules.isdisjoint(module.rules)
        ),
    )


def _divide(rules: RuleSet, new_rules: frozenset[Rule]) -> tuple[RuleSet, RuleSet]:
    """Rules that stay and rules that come; what can be shared is not compiled anew."""
    new = tuple(rule for rule in rules.rules if rule in new_rules)
    if not new:
        return rules, compile_rules((), rules.is_local)
    if len(new) == len(rules.rules):
        return compile_rules((), rules.is_local), rules
    return rules.without(new_rules), compile_rules(new, rules.is_local)


def _body_atoms(rule: Rule) -> Iterator[Atom]:
    yield from rule.positive_atoms()
    yield from rule.negated_atoms()


def _is_closed(plan: StratumPlan) -> bool:
    region, is_local = plan.region, plan.recursive.is_local
    shapes = {(shape.relation, _fixed(shape.operands)) for shape in region.shapes}
    places = {tuple(at for at, _ in fixed) for _, fixed in shapes}

    def lies_within(atom: Atom) -> bool:
        if atom.predicate in region.relations:
            return True
        fixed = tuple(
            (at, argument.constant)
            for at, argument in enumerate(atom.arguments)
            if isinstance(argument, Term)
        )
        if (atom.predicate, fixed) in shapes:
            return True
        constants = dict(fixed)
        return any(
            (atom.predicate, tuple((at, constants.get(at)) for at in choice)) in shapes
            for choice in places
        )

    # Most atoms lie within, and finding out is quicker than whether they are local.
    return all(
        lies_within(atom) or not is_local(rule, atom)
        for rule in plan.recursive.rules
        for atom in rule.positive_atoms()
    )


def _fixed(operands: Sequence[Operand]) -> tuple[tuple[int, Constant], ...]:
    return tuple(
        (at, operand)
        for at, operand in enumerate(operands)
        if isinstance(operand, Constant)
    )
