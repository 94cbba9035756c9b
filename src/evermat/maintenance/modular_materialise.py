"""MAT-MOD: materialisation with modules, with counters and without.

Source: [hu2019], Algorithm 2. Notation as in `modular`. Strata without modules are left
to seminaïve evaluation.

With counters, those of a closure's facts that have a count are external, and it is they
that are closed. Without counters, closures serve to materialise only: what follows from
a closure's rules is the closure of all its facts, derived ones included, so that it
need not be known which of them are external. Other modules are not used then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra.compile import derive, derive_counts
from evermat.maintenance.closures import ClosureModule
from evermat.maintenance.modules import Stage, from_others
from evermat.maintenance.seminaive import Growth, materialise, materialise_counting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from evermat.algebra import Counters, Engine, QuerySet, SettledFacts
    from evermat.maintenance.compiled_rules import ModularPlan
    from evermat.maintenance.limits import Watch
    from evermat.maintenance.updates import StratumReport

    Apply = Callable[[QuerySet, Counters, SettledFacts | None], SettledFacts]
    """What queries derive, with the help of new facts if they are given."""
    Follow = Callable[[ModularPlan, list[SettledFacts] | None], list[SettledFacts]]
    """What each module derives, with facts new to it, or from all there are."""


def materialise_modular(
    engine: Engine, strata: Iterable[ModularPlan], watch: Watch
) -> list[StratumReport]:
    """Derive all facts on a fresh engine, and count what no module derives.

    The given facts are loaded, each with C_nr = 1.
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
            reports.append(_take_turns(engine, stratum, watch, apply, follow))
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
    engine: Engine, stratum: ModularPlan, watch: Watch, apply: Apply, follow: Follow
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
        own = [engine.settle(new - facts) for new in follow(stratum, inputs)]
        others = engine.no_facts()
        if stratum.recursive.rules:
            new = apply(stratum.recursive.delta, again, delta)
            others = engine.settle(new - facts)


def _union(engine: Engine, parts: list[SettledFacts]) -> SettledFacts:
    some = [part for part in parts if not part.is_empty()]
    if not some:
        return engine.no_facts()
    total = some[0]
    for part in some[1:]:
        total = engine.settle(total | part)
    return total
