"""Materialisation with closures and without counters.

Source: [hu2019], Algorithm 2, for the closure modules alone. What follows from a
closure's rules is the closure of all its facts, derived ones included, so that it need
not be known which of them are external. Updates need to know that, and have counters
for it; where none are kept, closures serve to materialise only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.maintenance.closures import ClosureModule
from evermat.maintenance.modules import from_others
from evermat.maintenance.seminaive import Growth, materialise
from evermat.rule_plans import derive

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evermat.algebra import Engine, Facts, QuerySet, SettledFacts
    from evermat.maintenance.compiled_rules import ModularPlan
    from evermat.maintenance.state import StratumReport
    from evermat.maintenance.watch import Watch


def materialise_closing(
    engine: Engine, strata: Iterable[ModularPlan], watch: Watch
) -> list[StratumReport]:
    """Derive all facts on a fresh engine whose given facts are loaded."""
    reports: list[StratumReport] = []
    for stratum in strata:
        if stratum.modules:
            reports.append(_materialise(engine, stratum, watch))
        else:
            reports += materialise(engine, (stratum,), watch)
    return reports


def _materialise(engine: Engine, stratum: ModularPlan, watch: Watch) -> StratumReport:
    growth = Growth(engine, stratum, watch)
    facts = engine.materialised
    closures = [m for m in stratum.modules if isinstance(m, ClosureModule)]

    def apply(queries: QuerySet, delta: SettledFacts | None = None) -> SettledFacts:
        derived = derive(
            engine, queries, positive=facts, negative=facts, delta_positive=delta
        )
        return engine.settle(derived - facts)

    def close(module: ClosureModule) -> SettledFacts:
        return engine.settle(engine.close(module.closure, facts) - facts)

    growth.extend(apply(stratum.nonrecursive.full))
    others = apply(stratum.recursive.full)
    own = [close(module) for module in closures]
    while True:
        delta = _union(engine, [others, *own])
        if delta.is_empty():
            return growth.finish()
        growth.extend(delta)
        # Facts that a closure derived itself lead nowhere new.
        inputs = from_others(engine, others, own)
        own = [
            close(module) if _reads(module, each) else engine.no_facts()
            for module, each in zip(closures, inputs, strict=True)
        ]
        others = apply(stratum.recursive.delta, delta)


def _reads(module: ClosureModule, facts: SettledFacts) -> bool:
    return module.closure.pattern.relation in facts.relations()


def _union(engine: Engine, parts: Sequence[SettledFacts]) -> SettledFacts:
    total: Facts = engine.no_facts()
    for part in parts:
        total |= part
    return engine.settle(total)
