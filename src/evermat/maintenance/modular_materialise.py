"""MAT-MOD: materialisation with modules, with counters and without.

Source: [hu2019], Algorithm 2. Notation as in `modular`. Strata without modules are left
to seminaïve evaluation.

With counters, those of a closure's facts that have a count are external, and it is they
that are closed. Without counters, closures serve to materialise only: what follows from
a closure's rules is the closure of all its facts, derived ones included, so that it
need not be known which of them are external. Other modules are not used then.

A module is one way to run its rules. Where other recursive rules feed a closure, its
module compares the closures of all rounds, while the rules only match what is new:
`_cost_less_by_rules` weighs them, and `_by_rules` does without modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra.abilities import can_divide, has_fixpoints
from evermat.algebra.compile import compile_rules, derive, derive_counts
from evermat.maintenance.closures import ClosureModule
from evermat.maintenance.modules import Stage, from_others
from evermat.maintenance.seminaive import Growth, materialise, materialise_counting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from evermat.algebra import Closure, Counters, Engine, QuerySet, SettledFacts
    from evermat.lang.syntax import Rule
    from evermat.maintenance.compiled_rules import ModularPlan
    from evermat.maintenance.limits import Watch
    from evermat.maintenance.updates import StratumReport

    Apply = Callable[[QuerySet, Counters, SettledFacts | None], SettledFacts]
    """What queries derive, with the help of new facts if they are given."""
    Follow = Callable[[ModularPlan, list[SettledFacts] | None], list[SettledFacts]]
    """What each module derives, with facts new to it, or from all there are."""


LEAST_FACTS = 10_000
"""Closures of fewer facts are closed in no time, however often."""

SAMPLE = 256
"""Facts for which instances are matched to estimate how many there are."""

MOST_INSTANCES = 128
"""With more instances for each new fact, closures are not left to their rules."""


def materialise_modular(
    engine: Engine,
    strata: Iterable[ModularPlan],
    watch: Watch,
    unfit: set[Closure] | None = None,
) -> list[StratumReport]:
    """Derive all facts on a fresh engine, and count what no module derives.

    The given facts are loaded, each with C_nr = 1.

    Args:
        engine: where the facts are.
        strata: the program.
        watch: is told of progress.
        unfit: is given the closures whose rules were matched one by one, and counted,
            because that is less work; without it, modules keep their rules.
    """
    facts = engine.materialised
    stage = Stage(engine, facts, facts, facts)

    def apply(
        queries: QuerySet, counters: Counters, delta: SettledFacts | None
    ) -> SettledFacts:
        counts = derive_counts(
            engine, queries, positive=facts, negative=facts, delta_positive=delta
        )
        counters.add(counts)
        return counts.facts

    def follow(
        stratum: ModularPlan, inputs: list[SettledFacts] | None
    ) -> list[SettledFacts]:
        modules = stratum.modules
        if inputs is None:
            # What was given or derived from below is new to every module.
            return [module.derive(stage) for module in modules]
        return [m.add(stage, each) for m, each in zip(modules, inputs, strict=True)]

    reports: list[StratumReport] = []
    for stratum in strata:
        if stratum.modules:
            reports.append(_take_turns(engine, stratum, watch, apply, follow, unfit))
        else:
            reports += materialise_counting(engine, (stratum,), watch)
    return reports


def materialise_closing(
    engine: Engine, strata: Iterable[ModularPlan], watch: Watch
) -> list[StratumReport]:
    """Derive all facts on a fresh engine whose given facts are loaded."""
    facts = engine.materialised

    def apply(
        queries: QuerySet, _counters: Counters, delta: SettledFacts | None
    ) -> SettledFacts:
        return derive(
            engine, queries, positive=facts, negative=facts, delta_positive=delta
        )

    def follow(
        stratum: ModularPlan, inputs: list[SettledFacts] | None
    ) -> list[SettledFacts]:
        closures = [m.closure for m in stratum.modules if isinstance(m, ClosureModule)]
        return [
            engine.close(closure, facts)
            if inputs is None or closure.pattern.relation in inputs[at].relations()
            else engine.no_facts()
            for at, closure in enumerate(closures)
        ]

    reports: list[StratumReport] = []
    for stratum in strata:
        if stratum.modules:
            reports.append(_take_turns(engine, stratum, watch, apply, follow))
        else:
            reports += materialise(engine, (stratum,), watch)
    return reports


def _take_turns(
    engine: Engine,
    stratum: ModularPlan,
    watch: Watch,
    apply: Apply,
    follow: Follow,
    unfit: set[Closure] | None = None,
) -> StratumReport:
    """One stratum with modules (l. 9 to 15)."""
    growth = Growth(engine, stratum, watch, "remat + modules")
    facts = engine.materialised
    once, again = engine.nonrecursive_counts, engine.recursive_counts
    growth.extend(engine.settle(apply(stratum.nonrecursive.full, once, None) - facts))
    own = [engine.settle(new - facts) for new in follow(stratum, None)]
    if unfit is not None and _cost_less_by_rules(engine, stratum, own):
        unfit.update(module.closure for module in _fed_closures(stratum))
        _by_rules(engine, stratum, growth, apply)
        return growth.finish()
    others = engine.settle(apply(stratum.recursive.full, again, None) - facts)
    while True:
        delta = _union(engine, [others, *own])
        if delta.is_empty():
            return growth.finish()
        growth.extend(delta)
        # Facts that a module derived itself lead it nowhere new.
        inputs = from_others(engine, others, own)
        own = [engine.settle(new - facts) for new in follow(stratum, inputs)]
        others = engine.no_facts()
        if stratum.recursive.rules:
            new = apply(stratum.recursive.delta, again, delta)
            others = engine.settle(new - facts)


def _fed_closures(stratum: ModularPlan) -> list[ClosureModule]:
    """The modules of a stratum if all are closures that other rules feed, else none."""
    closures = [
        module
        for module in stratum.modules
        if isinstance(module, ClosureModule)
        and any(
            module.found.form.may_be(rule.heads[0]) for rule in stratum.recursive.rules
        )
    ]
    return closures if len(closures) == len(stratum.modules) else []


def _cost_less_by_rules(
    engine: Engine, stratum: ModularPlan, own: list[SettledFacts]
) -> bool:
    """Whether matching the rules of closures is less work than closing again and again.

    Instances are estimated from a sample of what the closures derive at first.
    """
    closures = _fed_closures(stratum)
    known = sum(new.size() for new in own)
    if not closures or known < LEAST_FACTS or not can_divide(engine):
        return False
    derived = _union(engine, own)
    facts = engine.materialised | derived
    sample = engine.part(derived, max(1, known // SAMPLE))
    rules = compile_rules(_rules_of(closures), stratum.recursive.is_local)
    before = engine.matches
    derive(engine, rules.delta, positive=facts, negative=facts, delta_positive=sample)
    instances = engine.matches - before
    # A fact that both atoms of a rule can match is matched by each of them.
    return instances <= 2 * MOST_INSTANCES * sample.size()


def _by_rules(
    engine: Engine, stratum: ModularPlan, growth: Growth, apply: Apply
) -> None:
    """Materialise without modules, when the nonrecursive rules have been applied."""
    facts, again = engine.materialised, engine.recursive_counts
    taken = _rules_of(_fed_closures(stratum))
    rules = compile_rules(
        (*stratum.recursive.rules, *taken), stratum.recursive.is_local
    )
    found = engine.fixpoint(rules.full) if has_fixpoints(engine) else None
    if found is not None:
        counts, new = found
        again.add(counts)
        growth.extend(new)
        return
    delta = engine.settle(apply(rules.full, again, None) - facts)
    while not delta.is_empty():
        growth.extend(delta)
        delta = engine.settle(apply(rules.delta, again, delta) - facts)


def _rules_of(modules: Iterable[ClosureModule]) -> list[Rule]:
    return [rule for module in modules for rule in module.rules]


def _union(engine: Engine, parts: list[SettledFacts]) -> SettledFacts:
    some = [part for part in parts if not part.is_empty()]
    if not some:
        return engine.no_facts()
    total = some[0]
    for part in some[1:]:
        total = engine.settle(total | part)
    return total
