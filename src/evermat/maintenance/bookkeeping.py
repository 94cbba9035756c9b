"""The two ways to keep a materialisation: with counters, and without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from evermat.maintenance.counters import count_given
from evermat.maintenance.modular_materialise import materialise_modular
from evermat.maintenance.rule_changes import reclassify, undermine, undermine_counting
from evermat.maintenance.seminaive import materialise

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evermat.algebra import Closure, Engine, SettledFacts
    from evermat.maintenance.algorithms import Incremental
    from evermat.maintenance.compiled_rules import CompiledRules, ModularPlan
    from evermat.maintenance.context import Run
    from evermat.maintenance.limits import Watch
    from evermat.maintenance.rule_book import RuleChange
    from evermat.maintenance.updates import StratumReport, Update


class Bookkeeping(Protocol):
    """What depends on whether derivations are counted."""

    def materialise(
        self,
        engine: Engine,
        strata: Iterable[ModularPlan],
        watch: Watch,
        unfit: set[Closure] | None = None,
    ) -> list[StratumReport]:
        """Derive all facts on a fresh engine."""

    def begin(
        self,
        engine: Engine,
        update: Update,
        change: RuleChange,
        old: CompiledRules,
        new: CompiledRules,
    ) -> SettledFacts:
        """Prepare an update; returns facts that lose a derivation with a rule."""

    def maintain(self, algorithm: Incremental, run: Run) -> None:
        """Have an algorithm do its work, and leave all that is kept in line."""


class WithCounters:
    """C_nr and C_r are exact between updates."""

    def materialise(
        self,
        engine: Engine,
        strata: Iterable[ModularPlan],
        watch: Watch,
        unfit: set[Closure] | None = None,
    ) -> list[StratumReport]:
        """Derive and count."""
        return materialise_modular(engine, strata, watch, unfit)

    def begin(
        self,
        engine: Engine,
        update: Update,
        change: RuleChange,
        old: CompiledRules,
        new: CompiledRules,
    ) -> SettledFacts:
        """Count what does not depend on the algorithm: given facts, rules that go."""
        undermined = engine.no_facts()
        if not change.is_empty():
            # Modules find the external facts of the old program by their counts.
            undermined = undermine_counting(engine, old, change)
            reclassify(engine, old, new)
        count_given(engine, update)
        return undermined

    def maintain(self, algorithm: Incremental, run: Run) -> None:
        """Maintain, then count what the algorithm did not."""
        algorithm.maintain(run)
        algorithm.finish(run)


class WithoutCounters:
    """Nothing but facts is kept."""

    def materialise(
        self,
        engine: Engine,
        strata: Iterable[ModularPlan],
        watch: Watch,
        unfit: set[Closure] | None = None,
    ) -> list[StratumReport]:
        """Derive only."""
        del unfit  # there are no modules
        return materialise(engine, strata, watch)

    def begin(
        self,
        engine: Engine,
        update: Update,
        change: RuleChange,
        old: CompiledRules,
        new: CompiledRules,
    ) -> SettledFacts:
        """Find the facts of rules that go."""
        del update, old, new
        return undermine(engine, change)

    def maintain(self, algorithm: Incremental, run: Run) -> None:
        """Maintain the facts."""
        algorithm.maintain(run)
