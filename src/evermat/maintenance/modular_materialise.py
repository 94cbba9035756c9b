"""MAT-MOD: materialisation with modules, with counters and without.

Source: [hu2019], Algorithm 2. Notation as in `modular`. Strata without modules are left
to seminaïve evaluation.

With counters, those of a closure's facts that have a count are external, and it is they
that are closed. Without counters, closures serve to materialise only: what follows from
a closure's rules is the closure of all its facts, derived ones included, so that it
need not be known which of them are external. Other modules are not used then.

A module is one way to run its rules. Where other recursive rules feed a closure round
after round, its module compares the closures of all rounds, while the rules only match
what is new: `_costs_less_by_rules` weighs them, and `_by_rules` goes on without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra.abilities import can_divide
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


ROUNDS = 3
"""A closure that is fed in so many rounds is taken to be fed in all."""

LEAST_FACTS = 10_000
"""Closures of fewer facts are closed in no time, however often."""

SAMPLE = 256
"""Facts for which instances are matched to estimate how many there are."""

MOST_INSTANCES = 32
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
    others = engine.settle(apply(stratum.recursive.full, again, None) - facts)
    own = [engine.settle(new - facts) for new in follow(stratum, None)]
    while True:
        delta = _union(engine, [others, *own])
        if delta.is_empty():
            return growth.finish()
        growth.extend(delta)
        # Facts that a module derived itself lead it nowhere new.
        inputs = from_others(engine, others, own)
        if unfit is not None and growth.report.rounds > ROUNDS:
            closures = _closures(stratum)
            if _costs_less_by_rules(engine, stratum, closures, inputs, delta):
                unfit.update(module.closure for module in closures)
                _by_rules(engine, stratum, growth, apply, delta)
                return growth.finish()
        own = [engine.settle(new - facts) for new in follow(stratum, inputs)]
        others = engine.no_facts()
        if stratum.recursive.rules:
            new = apply(stratum.recursive.delta, again, delta)
            others = engine.settle(new - facts)


def _closures(stratum: ModularPlan) -> list[ClosureModule]:
    """The modules of a stratum if all are closures, else none."""
    closures = [m for m in stratum.modules if isinstance(m, ClosureModule)]
    return closures if len(closures) == len(stratum.modules) else []


def _costs_less_by_rules(
    engine: Engine,
    stratum: ModularPlan,
    closures: list[ClosureModule],
    inputs: list[SettledFacts],
    delta: SettledFacts,
) -> bool:
    """Whether to match the rules of closures is less work than to close once more.

    Instances are estimated from a sample of the facts that came last.
    """
    is_fed = any(
        module.closure.pattern.relation in each.relations()
        for module, each in zip(closures, inputs, strict=False)
    )
    if not is_fed or not can_divide(engine):
        return False
    facts = engine.materialised
    known = sum(
        engine.size(facts, module.closure.pattern.relation) for module in closures
    )
    if known < LEAST_FACTS:
        return False
    sample = engine.part(delta, max(1, delta.size() // SAMPLE))
    rules = compile_rules(_rules_of(closures), stratum.recursive.is_local)
    before = engine.matches
    derive(engine, rules.delta, positive=facts, negative=facts, delta_positive=sample)
    instances = engine.matches - before
    # Of the two atoms of a rule that both are recursive, each is matched once.
    return instances <= 2 * MOST_INSTANCES * sample.size()


def _by_rules(
    engine: Engine,
    stratum: ModularPlan,
    growth: Growth,
    apply: Apply,
    delta: SettledFacts,
) -> None:
    """Go on without modules: count all instances of their rules, then match the rest.

    Facts of the last round are known, and ordinary rules have not been applied to them.
    """
    facts, again = engine.materialised, engine.recursive_counts
    is_local = stratum.recursive.is_local
    taken = _rules_of(_closures(stratum))
    new = apply(compile_rules(taken, is_local).full, again, None)
    parts = [engine.settle(new - facts)]
    if stratum.recursive.rules:
        new = apply(stratum.recursive.delta, again, delta)
        parts.append(engine.settle(new - facts))
    rules = compile_rules((*stratum.recursive.rules, *taken), is_local)
    delta = _union(engine, parts)
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
