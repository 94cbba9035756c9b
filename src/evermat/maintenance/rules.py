"""The rules of a program: in normal form, compiled into strata, and their changes.

A program is a set of rules. Two rules are the same if they differ only in the names of
their variables; a rule with several heads represents one rule per head.

A change of rules may change the strata, and which rules are recursive. It consists of
four kinds of normal rules:

- removed rules: all their instances over the old facts are lost. They are handled first
  (`undermine`), by the old division into recursive and nonrecursive rules;
- kept rules that become recursive or nonrecursive: the counts of their instances over
  the old facts move from one counter to the other (`reclassify`);
- other kept rules: as in any update, but in the strata of the new program;
- new rules: all their instances over the new facts are gained, each in its stratum's
  insertion phase (`Stratum.new_nonrecursive`, `Stratum.new_recursive`).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol

from evermat.algebra import Region
from evermat.algebra.compile import (
    StratumPlan,
    compile_rules,
    derive,
    derive_counts,
    plan_strata,
    plan_stratum,
)
from evermat.errors import EvermatError
from evermat.lang.normalise import normal_rules
from evermat.lang.strata import stratify
from evermat.lang.syntax import Term, body_atoms, canonical, rule_key
from evermat.maintenance.aggregates import plain
from evermat.maintenance.context import Strata, Stratum
from evermat.maintenance.counting import Kept
from evermat.maintenance.modules import ClosureModule, Stage
from evermat.runtime import collection_paused
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Hashable,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from evermat.algebra import (
        Closure,
        Counters,
        Engine,
        Facts,
        Operand,
        Pattern,
        SettledFacts,
    )
    from evermat.algebra.compile import RuleSet
    from evermat.lang.strata import Stratification
    from evermat.lang.strata import Stratum as ProgramStratum
    from evermat.lang.syntax import Atom, Rule
    from evermat.maintenance.modules import Module


class UnknownRuleError(EvermatError, LookupError):
    """A rule to be removed is not in the program.

    Attributes:
        rule: the rule.
        nearest: similar rules of the program.
    """

    code: ClassVar[str] = "EM513"

    def __init__(self, rule: Rule, nearest: Sequence[str]) -> None:
        self.rule = rule
        self.nearest = tuple(nearest)
        shown = ", ".join(f"`{text}`" for text in nearest)
        super().__init__(
            f"the program has no rule `{rule}`",
            reason="only rules of the program can be removed; names of variables do "
            "not matter, the order of atoms does",
            help=f"did you mean {shown}?" if shown else "the program has no such rules",
        )


@dataclass(frozen=True, slots=True)
class RuleChange:
    """The normal rules that a change removes and adds, and its ineffective requests."""

    removed: tuple[Rule, ...] = ()
    added: tuple[Rule, ...] = ()
    ignored: int = 0

    def is_empty(self) -> bool:
        """Return whether the program does not change."""
        return not self.removed and not self.added


_NO_CHANGE = RuleChange()


@dataclass(frozen=True, slots=True)
class RuleBook:
    """The rules of a program, by keys that do not depend on names of variables.

    Attributes:
        written: the rules as written, each with one head.
        normal: the normal rules.
        uses: for each normal rule, the number of written rules that need it.
    """

    written: Mapping[Hashable, Rule] = field(default_factory=dict)
    normal: Mapping[Hashable, Rule] = field(default_factory=dict)
    uses: Mapping[Hashable, int] = field(default_factory=dict)

    def change(
        self, *, remove: Iterable[Rule], add: Iterable[Rule]
    ) -> tuple[RuleBook, RuleChange]:
        """Return the rules after a change, and the change of normal rules.

        Raises:
            UnknownRuleError: a rule to remove is not in the program.
        """
        remove, add = tuple(remove), tuple(add)
        if not remove and not add:  # the usual case, and programs can be large
            return self, _NO_CHANGE
        return self._changed(remove, add)

    @collection_paused()
    def _changed(
        self, remove: tuple[Rule, ...], add: tuple[Rule, ...]
    ) -> tuple[RuleBook, RuleChange]:
        written, normal, uses = dict(self.written), dict(self.normal), dict(self.uses)
        ignored = 0
        for key, rule in {
            rule_key(rule): rule for rule in single_heads(remove)
        }.items():
            if written.pop(key, None) is None:
                raise UnknownRuleError(rule, self._nearest(rule))
            for part in normal_rules((rule,)):
                uses[part] -= 1
        for rule in single_heads(add):
            key = rule_key(rule)
            if key in written:
                ignored += 1
                continue
            written[key] = rule
            for part, normal_rule in normal_rules((rule,)).items():
                normal.setdefault(part, normal_rule)
                uses[part] = uses.get(part, 0) + 1
        _drop_unused(normal, uses)
        removed = (rule for key, rule in self.normal.items() if key not in normal)
        added = (rule for key, rule in normal.items() if key not in self.normal)
        change = RuleChange(tuple(removed), tuple(added), ignored)
        return RuleBook(written, normal, uses), change

    def in_normal_order(self) -> tuple[Rule, ...]:
        """Return the written rules, in the order of their normal rules.

        A book created from them has its normal rules in the same order, on which the
        choice of modules depends. A rule that was removed and added again has its old
        place among the normal rules, and a new one among the written rules.
        """
        places = {key: place for place, key in enumerate(self.normal)}

        def place_of(key: Hashable) -> int:
            if key not in places:
                own = next(iter(normal_rules((self.written[key],))), None)
                return len(places) if own is None else places[own]
            return places[key]

        return tuple(self.written[key] for key in sorted(self.written, key=place_of))

    def _nearest(self, rule: Rule) -> list[str]:
        texts = [str(known) for known in self.written.values()]
        return difflib.get_close_matches(str(rule), texts, n=3, cutoff=0.4)


def _drop_unused(normal: dict[Hashable, Rule], uses: dict[Hashable, int]) -> None:
    unused = [key for key, number in uses.items() if not number]
    for key in unused:
        del uses[key], normal[key]


def single_heads(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Yield the rules, with a rule for each head of those with several."""
    for rule in rules:
        if len(rule.heads) == 1:
            yield rule
        else:
            yield from (replace(rule, heads=(head,)) for head in rule.heads)


# ----------------------------------------------------------------------- compiled rules


@dataclass(frozen=True, eq=False)
class ModularPlan(StratumPlan):
    """The plan of a stratum some of whose recursive rules are evaluated by modules.

    `recursive` are the others, `rules` are all of them.
    """

    modules: tuple[Module, ...] = ()

    @cached_property
    def reads(self) -> frozenset[str]:
        """The relations in the bodies of the rules."""
        return frozenset(
            atom.predicate
            for rule in self.rules.rules
            for atom in body_atoms(rule.body)
        ) | {each.aggregate.members for each in (*self.aggregates, *self.monotone)}

    @cached_property
    def is_closed(self) -> bool:
        """Whether local atoms match only facts of the region."""
        return _is_closed(self)


@dataclass(frozen=True, slots=True, eq=False)
class CompiledRules:
    """A program ready to run.

    Attributes:
        plans: its strata, for materialisation.
        strata: its strata, for updates that do not change the rules.
        recursive: the recursive normal rules not evaluated by modules.
        modules: the modules of all strata.
        lazy: the lazy closures: their rules are in no stratum, and their facts are
            computed when they are read (see `lazy_closures`).
        all_plans: the strata of the whole program, lazy closures included.
        unfit: closures that could have modules, but whose rules are less work.
    """

    book: RuleBook
    plans: tuple[ModularPlan, ...]
    strata: Strata
    recursive: frozenset[Rule]
    modules: tuple[Module, ...] = ()
    lazy: tuple[ClosureModule, ...] = ()
    all_plans: tuple[StratumPlan, ...] = ()
    unfit: frozenset[Closure] = frozenset()

    @property
    def claimed(self) -> frozenset[Rule]:
        """The rules that modules evaluate; their instances are not counted."""
        modules = (*self.modules, *self.lazy)
        return frozenset(rule for module in modules for rule in module.rules)

    @property
    def rules(self) -> frozenset[Rule]:
        """All normal rules."""
        return frozenset(self.book.normal.values())


class FindModules(Protocol):
    """Finds the modules of a stratum; `no_modules` finds none."""

    def __call__(
        self, rules: Sequence[Rule], is_local: Callable[[Rule, Atom], bool]
    ) -> tuple[Module, ...]:
        """Return the modules for some of the recursive rules of a stratum."""


def no_modules(
    rules: Sequence[Rule], is_local: Callable[[Rule, Atom], bool]
) -> tuple[Module, ...]:
    """Return no modules, so that all rules are matched instance by instance."""
    del rules, is_local
    return ()


@collection_paused()
def compile_book(
    book: RuleBook,
    find: FindModules = no_modules,
    may_be_lazy: Callable[[ClosureModule], bool] = lambda _: False,
    unfit: frozenset[Closure] = frozenset(),
) -> CompiledRules:
    """Stratify and compile the rules of a program.

    Args:
        book: the program.
        find: finds modules.
        may_be_lazy: whether a closure that no other rule reads may be lazy.
        unfit: closures that are evaluated by their rules.

    Raises:
        StratificationError: the program has recursion through negation.
    """
    find = _apart_from(unfit, find)
    rules = tuple(book.normal.values())
    stratification = stratify(rules)
    all_plans = plan_strata(stratification)
    plans = _modular_plans(stratification, all_plans, find)
    lazy = tuple(
        module
        for plan in plans
        for module in plan.modules
        if isinstance(module, ClosureModule)
        and can_be_lazy(module, rules)
        and may_be_lazy(module)
    )
    if lazy:
        without = {rule for module in lazy for rule in module.rules}
        others = stratify(tuple(rule for rule in rules if rule not in without))
        plans = _modular_plans(others, plan_strata(others), find)
    return CompiledRules(
        book=book,
        plans=plans,
        strata=strata_of(plans, frozenset()),
        recursive=frozenset(rule for plan in plans for rule in plan.recursive.rules),
        modules=tuple(module for plan in plans for module in plan.modules),
        lazy=lazy,
        all_plans=all_plans,
        unfit=unfit,
    )


def _apart_from(unfit: frozenset[Closure], find: FindModules) -> FindModules:
    """Wrap a finder so that it ignores some closures."""
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
    """Return the closures none of whose rules, as written or canonical, is claimed."""
    return frozenset(
        module.closure
        for module in compiled.modules
        if isinstance(module, ClosureModule)
        and not any(
            str(rule) in claimed or str(canonical(rule)) in claimed
            for rule in module.rules
        )
    )


def can_be_lazy(module: ClosureModule, rules: Iterable[Rule]) -> bool:
    """Return whether no other rule reads the facts of a closure."""
    form, own = module.found.form, set(module.rules)
    return not any(
        form.may_be(atom)
        for rule in rules
        if rule not in own
        for atom in body_atoms(rule.body)
    )


@collection_paused()
def compile_plans(
    rules: Sequence[Rule], find: FindModules = no_modules
) -> tuple[ModularPlan, ...]:
    """Return the strata of normal rules."""
    stratification = stratify(rules)
    return _modular_plans(stratification, plan_strata(stratification), find)


def _modular_plans(
    stratification: Stratification, plans: Sequence[StratumPlan], find: FindModules
) -> tuple[ModularPlan, ...]:
    """Return plans with modules, dividing strata that also have other recursive rules.

    Args:
        stratification: the strata.
        plans: their plans without modules.
        find: finds modules.
    """
    found: list[ModularPlan] = []
    for stratum, plan in zip(stratification.strata, plans, strict=True):
        parts = list(_parts(stratum, find))
        some = [plan] if len(parts) <= 1 else map(plan_stratum, parts)
        for each in some:
            found.append(_with_modules(replace(each, index=len(found)), find))
    return tuple(found)


def _parts(stratum: ProgramStratum, find: FindModules) -> Iterator[ProgramStratum]:
    """Divide a stratum, so that rules do not wait for modules that they do not feed.

    If modules take all recursive rules of a component, their external facts are
    certain; otherwise they are not, and modules and rules take turns. Components of
    both kinds are separated.
    """
    recursive = stratum.recursive_rules
    modules = () if stratum.monotone_rules else find(recursive, stratum.is_local)
    if not modules:
        return
    taken = {rule for module in modules for rule in module.rules}
    homes = {stratum.home(rule) for rule in taken}
    others = {stratum.home(rule) for rule in recursive if rule not in taken}
    fed, alone = homes & others, homes - others
    if others - fed or (fed and alone):
        yield from stratum.parts([some for some in (alone, fed) if some])


def _with_modules(plan: StratumPlan, find: FindModules) -> ModularPlan:
    recursive = plan.recursive
    # Recursive aggregates are evaluated rule by rule.
    modules = () if plan.monotone else find(recursive.rules, recursive.is_local)
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
        aggregates=plan.aggregates,
        monotone=plan.monotone,
    )


@collection_paused()
def strata_of(plans: Sequence[ModularPlan], new_rules: frozenset[Rule]) -> Strata:
    """Return the strata for an update that adds `new_rules` to the others."""
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
            or stratum.new_aggregates
            or stratum.new_monotone
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
        aggregates=tuple(a for a in plan.aggregates if a.rule not in new_rules),
        new_aggregates=tuple(a for a in plan.aggregates if a.rule in new_rules),
        monotone=tuple(a for a in plan.monotone if a.rule not in new_rules),
        new_monotone=tuple(a for a in plan.monotone if a.rule in new_rules),
    )


def _divide(rules: RuleSet, new_rules: frozenset[Rule]) -> tuple[RuleSet, RuleSet]:
    """Divide rules into kept and new ones, reusing compiled queries where possible."""
    new = tuple(rule for rule in rules.rules if rule in new_rules)
    if not new:
        return rules, compile_rules((), rules.is_local)
    if len(new) == len(rules.rules):
        return compile_rules((), rules.is_local), rules
    return rules.without(new_rules), compile_rules(new, rules.is_local)


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

    # Most atoms lie within, and this test is faster than that for locality.
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


# ------------------------------------------------------------------------- rule changes


def undermine(engine: Engine, removed: Iterable[Rule]) -> SettledFacts:
    """Return the facts that removed rules derive; some of them may be deleted."""
    rules = compile_rules(map(plain, removed), _never_local)
    if not rules.rules:
        return engine.no_facts()
    facts = engine.materialised
    return derive(engine, rules.full, positive=facts, negative=facts)


def undermine_counting(
    engine: Engine, old: CompiledRules, change: RuleChange, kept: Kept
) -> SettledFacts:
    """Like `undermine`, and subtract the derivations from the counters kept."""
    facts = engine.materialised
    heads: Facts = engine.no_facts()
    for module in old.modules:
        if not set(change.removed).isdisjoint(module.rules):
            # Instances of modules were never counted, and are too many to match.
            heads |= module.derive(Stage(engine, facts, facts, facts))
    nonrecursive, recursive = kept.counters(engine)
    uncounted = []
    for counters, removed in (
        (recursive, [rule for rule in change.removed if rule in old.recursive]),
        (nonrecursive, [rule for rule in change.removed if rule not in old.recursive]),
    ):
        others = [rule for rule in removed if rule not in old.claimed]
        if counters is None:
            uncounted += others
        elif others:
            rules = compile_rules(map(plain, others), _never_local)
            counts = derive_counts(engine, rules.full, positive=facts, negative=facts)
            counters.subtract(counts)
            heads |= counts.facts
    return engine.settle(heads | undermine(engine, uncounted))


def reclassify(
    engine: Engine, old: CompiledRules, new: CompiledRules, kept: Kept
) -> None:
    """Move the counts of rules that became recursive, or nonrecursive.

    Rules evaluated by modules are not counted.
    """
    if kept is Kept.NONE:
        return
    facts = engine.materialised
    moves: dict[tuple[Counters | None, Counters | None], list[Rule]] = {}
    for rule in old.rules & new.rules:
        move = (
            _counters_of(engine, rule, old, kept),
            _counters_of(engine, rule, new, kept),
        )
        if move[0] is not move[1]:
            moves.setdefault(move, []).append(rule)
    for (source, target), rules in moves.items():
        counts = derive_counts(
            engine,
            compile_rules(rules, _never_local).full,
            positive=facts,
            negative=facts,
        )
        if source is not None:
            source.subtract(counts)
        if target is not None:
            target.add(counts)


def _counters_of(
    engine: Engine, rule: Rule, compiled: CompiledRules, kept: Kept
) -> Counters | None:
    """Return the counters for the instances of a rule."""
    if rule in compiled.claimed:
        return None
    nonrecursive, recursive = kept.counters(engine)
    return recursive if rule in compiled.recursive else nonrecursive


def _never_local(rule: Rule, atom: Atom) -> bool:
    del rule, atom
    return False
