"""Seminaïve evaluation: materialisation from scratch.

Source: the algorithm is folklore; its counting form is in [hu2018]. Updates end with
the same loop, which begins with what changed: `Run.insert`.

Notation (left: the paper; right: this file)

    I            `facts`, the materialised facts of a fresh engine
    Δ, Δ_A       `delta`        facts found in the last round for the first time
    C_nr, C_r    `engine.nonrecursive_counts`, `engine.recursive_counts`

Every rule instance is matched exactly once: in the round in which the last of its body
facts arrived. This is why counts need no extra work.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from evermat.algebra.abilities import has_fixpoints
from evermat.algebra.compile import derive, derive_counts
from evermat.maintenance.updates import StratumReport

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evermat.algebra import Counters, Counts, Engine, QuerySet, SettledFacts
    from evermat.algebra.compile import StratumPlan
    from evermat.maintenance.limits import Watch


# ------------------------------------------------------------------ from scratch


def materialise(
    engine: Engine, strata: Iterable[StratumPlan], watch: Watch
) -> list[StratumReport]:
    """Derive all facts on a fresh engine whose given facts are loaded."""
    facts = engine.materialised

    def apply(queries: QuerySet, delta: SettledFacts | None = None) -> SettledFacts:
        derived = derive(
            engine, queries, positive=facts, negative=facts, delta_positive=delta
        )
        return engine.settle(derived - facts)

    reports = []
    for stratum in strata:
        report = Growth(engine, stratum, watch)
        report.extend(apply(stratum.nonrecursive.full))
        at_once = _at_once(engine, stratum)
        if at_once is not None:
            _, new = at_once
            report.extend(new)
            reports.append(report.finish())
            continue
        delta = report.extend(apply(stratum.recursive.full))
        while not delta.is_empty():
            delta = report.extend(apply(stratum.recursive.delta, delta))
        reports.append(report.finish())
    return reports


def materialise_counting(
    engine: Engine, strata: Iterable[StratumPlan], watch: Watch
) -> list[StratumReport]:
    """Derive all facts on a fresh engine, with exact C_nr and C_r.

    The given facts are loaded, each with C_nr = 1.
    """
    facts = engine.materialised

    def apply(
        counters: Counters, queries: QuerySet, delta: SettledFacts | None = None
    ) -> SettledFacts:
        counts = derive_counts(
            engine, queries, positive=facts, negative=facts, delta_positive=delta
        )
        counters.add(counts)
        return engine.settle(counts.facts - facts)

    reports = []
    for stratum in strata:
        report = Growth(engine, stratum, watch)
        report.extend(apply(engine.nonrecursive_counts, stratum.nonrecursive.full))
        at_once = _at_once(engine, stratum)
        if at_once is not None:
            counts, new = at_once
            engine.recursive_counts.add(counts)
            report.extend(new)
            reports.append(report.finish())
            continue
        delta = report.extend(apply(engine.recursive_counts, stratum.recursive.full))
        while not delta.is_empty():
            delta = report.extend(
                apply(engine.recursive_counts, stratum.recursive.delta, delta)
            )
        reports.append(report.finish())
    return reports


def _at_once(
    engine: Engine, stratum: StratumPlan
) -> tuple[Counts, SettledFacts] | None:
    """All instances of the recursive rules, where the engine finds them in one go."""
    if not stratum.recursive.rules or not has_fixpoints(engine):
        return None
    return engine.fixpoint(stratum.recursive.full)


class Growth:
    """The growth of one stratum: adds facts to the engine and keeps the report."""

    def __init__(
        self,
        engine: Engine,
        stratum: StratumPlan,
        watch: Watch,
        title: str = "remat",
    ) -> None:
        self.engine = engine
        self.watch = watch
        self.report = StratumReport(stratum.index + 1, algorithm=title)
        self.start = perf_counter()
        self.matches = engine.matches
        watch.stratum = stratum.index + 1
        watch.phase = "materialise"

    def extend(self, delta: SettledFacts) -> SettledFacts:
        """Add the facts of a round; returns them."""
        if not delta.is_empty():
            self.engine.extend(delta)
            self.report.inserted += delta.size()
            self.report.rounds += 1
            self.watch.round(self.report.rounds, delta.size())
        return delta

    def finish(self) -> StratumReport:
        """The report, when nothing more will come."""
        self.report.forward_instances = self.engine.matches - self.matches
        self.report.seconds["materialise"] = perf_counter() - self.start
        return self.report
