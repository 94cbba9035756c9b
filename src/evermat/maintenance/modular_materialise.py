"""MAT-MOD: materialisation with modules.

Source: [hu2019], Algorithm 2. Notation as in `modular`. Strata without modules are left
to seminaïve evaluation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.maintenance.modules import Stage, from_others
from evermat.maintenance.seminaive import Growth, materialise_counting
from evermat.rule_plans import derive_counts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evermat.algebra import Counters, Engine, QuerySet, SettledFacts
    from evermat.maintenance.compiled_rules import ModularPlan
    from evermat.maintenance.state import StratumReport
    from evermat.maintenance.watch import Watch


def materialise_modular(
    engine: Engine, strata: Iterable[ModularPlan], watch: Watch
) -> list[StratumReport]:
    """Derive all facts on a fresh engine, and count what no module derives.

    The given facts are loaded, each with C_nr = 1.
    """
    reports: list[StratumReport] = []
    for stratum in strata:
        if stratum.modules:
            reports.append(_materialise(engine, stratum, watch))
        else:
            reports += materialise_counting(engine, (stratum,), watch)
    return reports


def _materialise(engine: Engine, stratum: ModularPlan, watch: Watch) -> StratumReport:
    """One stratum with modules (l. 9 to 15)."""
    growth = Growth(engine, stratum, watch)
    facts = engine.materialised
    stage = Stage(engine, facts, facts, facts)

    def apply(
        counters: Counters, queries: QuerySet, delta: SettledFacts | None = None
    ) -> SettledFacts:
        counts = derive_counts(
            engine, queries, positive=facts, negative=facts, delta_positive=delta
        )
        counters.add(counts)
        return engine.settle(counts.facts - facts)

    growth.extend(apply(engine.nonrecursive_counts, stratum.nonrecursive.full))
    others = apply(engine.recursive_counts, stratum.recursive.full)
    # What was given or derived from below is new to every module.
    own = [engine.settle(module.derive(stage) - facts) for module in stratum.modules]
    while True:
        delta = _union(engine, [others, *own])
        if delta.is_empty():
            return growth.finish()
        growth.extend(delta)
        inputs = from_others(engine, others, own)
        own = [
            engine.settle(module.add(stage, each) - facts)
            for module, each in zip(stratum.modules, inputs, strict=True)
        ]
        others = engine.no_facts()
        if stratum.recursive.rules:
            others = apply(engine.recursive_counts, stratum.recursive.delta, delta)


def _union(engine: Engine, parts: list[SettledFacts]) -> SettledFacts:
    some = [part for part in parts if not part.is_empty()]
    if not some:
        return engine.no_facts()
    total = some[0]
    for part in some[1:]:
        total = engine.settle(total | part)
    return total
