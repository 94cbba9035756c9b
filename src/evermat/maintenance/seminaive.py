"""Seminaïve evaluation: materialisation from scratch, and rematerialisation.

Source: the algorithm is folklore; its counting form is in [hu2018]. Updates end with
the same loop, which then begins with the changes: `Run.insert`.

Notation (left: the paper; right: this file)

    I            `facts`, the materialised facts of a fresh engine
    Δ, Δ_A       `delta`        facts first derived in the last round
    C_nr, C_r    `engine.nonrecursive_counts`, `engine.recursive_counts`

Every rule instance is matched exactly once: in the round in which the last of its body
facts arrived. This is why counts need no extra work.

Rematerialisation discards the derived facts and starts again from the explicit facts.
It is the baseline that every other algorithm must beat, and the best choice when a
large part of the facts changes. It works on a fresh engine, so a failure costs nothing.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from evermat.algebra.compile import derive, derive_counts
from evermat.maintenance.aggregates import materialise_aggregates
from evermat.maintenance.context import Run, Strata
from evermat.maintenance.monotone import as_new, maintain_monotone
from evermat.maintenance.update import StratumReport, Update
from evermat.runtime.interrupts import unseal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from evermat.algebra import Counters, Counts, Engine, Facts, QuerySet, SettledFacts
    from evermat.algebra.compile import StratumPlan
    from evermat.maintenance.counting import Kept
    from evermat.maintenance.limits import Watch


# ------------------------------------------------------------------ from scratch


def materialise(
    engine: Engine, strata: Iterable[StratumPlan], watch: Watch, kept: Kept
) -> list[StratumReport]:
    """Derive all facts on a fresh engine, with exact values of the counters kept.

    The explicit facts are loaded, each with C_nr = 1.
    """
    facts = engine.materialised
    nonrecursive, recursive = kept.counters(engine)

    def apply(
        counters: Counters | None,
        queries: QuerySet,
        delta: SettledFacts | None = None,
    ) -> SettledFacts:
        if counters is None:
            derived = derive(
                engine, queries, positive=facts, negative=facts, delta_positive=delta
            )
            return engine.settle(derived - facts)
        counts = derive_counts(
            engine, queries, positive=facts, negative=facts, delta_positive=delta
        )
        counters.add(counts)
        return engine.settle(counts.facts - facts)

    reports = []
    for stratum in strata:
        report = Growth(engine, stratum, watch)
        report.extend_by_aggregates(nonrecursive)
        if stratum.monotone:
            report.extend_by_recursion(kept)
            reports.append(report.finish())
            continue
        report.extend(apply(nonrecursive, stratum.nonrecursive.full))
        at_once = _at_once(engine, stratum)
        if at_once is not None:
            counts, new = at_once
            if recursive is not None:
                recursive.add(counts)
            report.extend(new)
            reports.append(report.finish())
            continue
        delta = report.extend(apply(recursive, stratum.recursive.full))
        while not delta.is_empty():
            delta = report.extend(apply(recursive, stratum.recursive.delta, delta))
        reports.append(report.finish())
    return reports


def _at_once(
    engine: Engine, stratum: StratumPlan
) -> tuple[Counts, SettledFacts] | None:
    """Find all instances of the recursive rules, if the engine can do it at once."""
    if not stratum.recursive.rules:
        return None
    return engine.fixpoint(stratum.recursive.full)


class Growth:
    """The growth of one stratum: adds facts to the engine and writes the report."""

    def __init__(
        self,
        engine: Engine,
        stratum: StratumPlan,
        watch: Watch,
        title: str = "remat",
    ) -> None:
        self.engine = engine
        self.stratum = stratum
        self.watch = watch
        self.report = StratumReport(stratum.index + 1, algorithm=title)
        self.start = perf_counter()
        self.matches = engine.matches
        watch.stratum = stratum.index + 1
        watch.phase = "materialise"

    def extend(self, delta: SettledFacts) -> SettledFacts:
        """Add the facts of a round, and return them."""
        if not delta.is_empty():
            self.engine.extend(delta)
            self.report.inserted += delta.size()
            self.report.rounds += 1
            self.watch.round(self.report.rounds, delta.size())
        return delta

    def extend_by_aggregates(self, counters: Counters | None) -> None:
        """Add the results of the stratum's aggregates."""
        if self.stratum.aggregates:
            self.extend(materialise_aggregates(self.engine, self.stratum, counters))

    def extend_by_recursion(self, kept: Kept) -> None:
        """Add all facts of a stratum with recursion through aggregates.

        Some facts are derived temporarily and deleted again, which needs a transaction.
        """
        engine = self.engine
        stratum, nothing = as_new(self.stratum), engine.no_facts()
        strata = Strata((stratum,), stratum.region, {}, {})
        engine.begin()
        run = Run(engine, strata, Update(nothing, nothing), nothing, self.watch)
        run.kept, run.report = kept, self.report
        maintain_monotone(run, stratum)
        engine.commit(
            deleted=run.deleted,
            added=run.added,
            explicit_removed=nothing,
            explicit_added=nothing,
        )
        engine.is_torn = False
        unseal()

    def finish(self) -> StratumReport:
        """Return the final report."""
        self.report.forward_instances = self.engine.matches - self.matches
        self.report.seconds["materialise"] = perf_counter() - self.start
        return self.report


# ------------------------------------------------------------------------ rematerialise


def copy_explicit_facts(
    engine: Engine, watch: Watch, *, without: Facts, also: Facts
) -> Engine:
    """Return a fresh engine with the facts that are explicit after an update."""
    fresh = engine.fresh()
    fresh.monitor = watch.monitor
    engine.copy_explicit(fresh, without=without, also=also)
    return fresh


def load_explicit(
    engine: Engine, watch: Watch, tables: Mapping[str, pa.Table]
) -> Engine:
    """Return a fresh engine with rows of tables as its explicit facts."""
    fresh = engine.fresh()
    fresh.monitor = watch.monitor
    fresh.load(tables.items())
    return fresh
