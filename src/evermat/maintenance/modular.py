"""MAT-MOD, DRed^c-MOD and B/F^c-MOD: modules together with ordinary rules.

MAT-MOD is materialisation with modules, with counters and without.

Source: [hu2019], Algorithm 2. Strata without modules are evaluated seminaïvely.

With counters, the facts of a closure with a positive count are external, and the
closure is computed from them. Without counters, closures serve to materialise only: a
closure's rules derive the closure of all its facts, derived ones included, so it is not
necessary to know which of them are external. Other modules are not used then.

A module is one way to evaluate its rules. If other recursive rules feed a closure, its
module compares the closures of all rounds, while the rules only match new facts:
`_cost_less_by_rules` estimates the costs, and `_by_rules` works without modules.

DRed^c-MOD and B/F^c-MOD are updates by modules together with ordinary rules.

Source: [hu2019], Algorithm 3; B/F^c-MOD is mentioned as future work in its conclusion.

Notation (left: the paper; right: this file)

    Δ; Δᵢ            `delta`; `own[i]`, the facts that module i derived last
    Add, Diff, …     see `evermat.maintenance.modules`
    Π_nr; Π_r without Πᵢ  `stratum.nonrecursive`; `stratum.recursive`

The ordinary recursive rules are the module that the paper calls seminaïve. Its
derivations are counted, so an overdeleted fact with a recursive count is rederived, and
a fact of a module's region with a count is known to have support from outside.

Differences from the paper:

- Lines 23 and 25 keep only facts whose nonrecursive count has fallen to zero. Otherwise
  a fact that lost one of two nonrecursive derivations would be deleted permanently.
- `Del` runs before the recursive counts of the round are lowered. A path that loses
  two facts in two rounds is then found in the first of them.
- Facts that certainly hold are not overdeleted (`Module.prove`).
- B/F^c-MOD searches for proofs before anything is deleted; the searches use the
  bodies of ordinary rules and the bodies named by modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra.compile import compile_rules, derive, derive_counts
from evermat.maintenance.backward_forward import Search, counted_support
from evermat.maintenance.context import gained_counts, lost_counts
from evermat.maintenance.counting import Kept
from evermat.maintenance.modules import ClosureModule, Stage, from_others
from evermat.maintenance.monotone import maintain_monotone
from evermat.maintenance.seminaive import Growth, materialise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from evermat.algebra import (
        Closure,
        Counters,
        Counts,
        Engine,
        Facts,
        QuerySet,
        SettledFacts,
    )
    from evermat.lang.syntax import Rule
    from evermat.maintenance.context import Changes, Run, Stratum
    from evermat.maintenance.limits import Watch
    from evermat.maintenance.rules import ModularPlan
    from evermat.maintenance.update import StratumReport

    Apply = Callable[[QuerySet, Counters, SettledFacts | None], SettledFacts]

    "The facts that queries derive, with the help of new facts if these are passed."

    Follow = Callable[[ModularPlan, list[SettledFacts] | None], list[SettledFacts]]

    "The facts that each module derives from facts new to it, or from all facts."


LEAST_FACTS = 10_000
"""Closures of fewer facts are computed in no time, however often."""

SAMPLES = (256, 4096)
"""The numbers of facts from which the number of instances is estimated. The instances
of facts may be so uneven that the smaller sample is inconclusive; then the larger one
decides."""

MOST_INSTANCES = 128
"""The most instances per new fact for which closures are left to their rules."""


def materialise_modular(
    engine: Engine,
    strata: Iterable[ModularPlan],
    watch: Watch,
    unfit: set[Closure] | None = None,
) -> list[StratumReport]:
    """Materialise on a fresh engine, and count derivations by ordinary rules.

    The explicit facts are loaded, each with C_nr = 1.

    Args:
        engine: the engine.
        strata: the program.
        watch: receives progress.
        unfit: collects the closures that were evaluated by their rules, with counts,
            because that is less work; if it is None, modules keep their rules.
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
            # Explicit facts and facts from lower strata are new to every module.
            return [module.derive(stage) for module in modules]
        return [m.add(stage, each) for m, each in zip(modules, inputs, strict=True)]

    reports: list[StratumReport] = []
    for stratum in strata:
        if stratum.modules:
            reports.append(_take_turns(engine, stratum, watch, apply, follow, unfit))
        else:
            reports += materialise(engine, (stratum,), watch, Kept.BOTH)
    return reports


def materialise_closing(
    engine: Engine, strata: Iterable[ModularPlan], watch: Watch
) -> list[StratumReport]:
    """Materialise on a fresh engine whose explicit facts are loaded."""
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
            reports.append(
                _take_turns(engine, stratum, watch, apply, follow, kept=Kept.NONE)
            )
        else:
            reports += materialise(engine, (stratum,), watch, Kept.NONE)
    return reports


def _take_turns(  # noqa: PLR0913  the differences with and without counters
    engine: Engine,
    stratum: ModularPlan,
    watch: Watch,
    apply: Apply,
    follow: Follow,
    unfit: set[Closure] | None = None,
    *,
    kept: Kept = Kept.BOTH,
) -> StratumReport:
    """Evaluate one stratum with modules (l. 9 to 15)."""
    growth = Growth(engine, stratum, watch, "remat + modules")
    facts = engine.materialised
    once, again = engine.nonrecursive_counts, engine.recursive_counts
    growth.extend_by_aggregates(kept.counters(engine)[0])
    growth.extend(engine.settle(apply(stratum.nonrecursive.full, once, None) - facts))
    own = [engine.settle(new - facts) for new in follow(stratum, None)]
    if unfit is not None and _cost_less_by_rules(engine, stratum, own):
        unfit.update(module.closure for module in _fed_closures(stratum))
        # What was closed to find out need not be derived step by step.
        growth.extend(_union(engine, own))
        _by_rules(engine, stratum, growth, apply)
        return growth.finish()
    others = engine.settle(apply(stratum.recursive.full, again, None) - facts)
    while True:
        delta = _union(engine, [others, *own])
        if delta.is_empty():
            return growth.finish()
        growth.extend(delta)
        # A module derives nothing new from the facts that it derived itself.
        inputs = from_others(engine, others, own)
        own = [engine.settle(new - facts) for new in follow(stratum, inputs)]
        others = engine.no_facts()
        if stratum.recursive.rules:
            new = apply(stratum.recursive.delta, again, delta)
            others = engine.settle(new - facts)


def _fed_closures(stratum: ModularPlan) -> list[ClosureModule]:
    """Return the modules of a stratum if all are closures fed by rules, or none."""
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
    """Return whether matching the rules of closures is less work than repeated closing.

    Instances are estimated from a sample of the facts that the closures derive first.
    """
    closures = _fed_closures(stratum)
    known = sum(new.size() for new in own)
    if not closures or known < LEAST_FACTS:
        return False
    derived = _union(engine, own)
    facts = engine.materialised | derived
    rules = compile_rules(_rules_of(closures), stratum.recursive.is_local)
    for size in SAMPLES:
        sample = engine.part(derived, max(1, known // size))
        if sample is None:
            return False
        before = engine.matches
        derive(
            engine, rules.delta, positive=facts, negative=facts, delta_positive=sample
        )
        # A fact that both atoms of a rule can match is matched by each of them.
        instances = (engine.matches - before) / 2 / max(sample.size(), 1)
        if instances <= MOST_INSTANCES:
            return True
        if instances > MOST_INSTANCES * SAMPLES[-1] / size:
            return False
    return False


def _by_rules(
    engine: Engine, stratum: ModularPlan, growth: Growth, apply: Apply
) -> None:
    """Materialise without modules, after the nonrecursive rules have been applied."""
    facts, again = engine.materialised, engine.recursive_counts
    taken = _rules_of(_fed_closures(stratum))
    rules = compile_rules(
        (*stratum.recursive.rules, *taken), stratum.recursive.is_local
    )
    found = engine.fixpoint(rules.full)
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


# ------------------------------------------------------------------------------ modular


# ------------------------------------------------------------------------ DRed^c-MOD


def maintain(run: Run, stratum: Stratum) -> None:
    """Maintain a stratum with modules by DRed^c-MOD (l. 17 to 19)."""
    if stratum.is_monotone:
        maintain_monotone(run, stratum)
        return
    changes = run.changes()
    with run.forwards("overdelete"):
        overdelete(run, stratum, losses(run, stratum, changes))
    with run.forwards("rederive"):
        rederived = rederive(run, stratum)
        run.report.rederived = sum(facts.size() for facts in rederived)
    with run.forwards("insert"):
        insert(run, stratum, gains(run, stratum, changes), rederived)


def losses(
    run: Run, stratum: Stratum, changes: Changes, *, is_final: bool = True
) -> SettledFacts:
    """Return facts that lost support from below, with counts lowered (l. 23 to 25).

    Unless `is_final`, recursive counts are not changed, and external facts are the old
    ones.
    """
    engine = run.engine
    losers = [run.deletions_in(stratum)]
    for counts in lost_counts(run, stratum.nonrecursive, changes):
        engine.nonrecursive_counts.subtract(counts)
        losers.append(counts.facts)
    if not changes.are_empty():
        stage = Stage(engine, run.materialised, run.materialised, run.materialised)
        losers += [
            module.diff(stage, changes.lost, changes.gained)
            for module in stratum.modules
        ]
    for counts in lost_counts(run, stratum.recursive, changes):
        if is_final:
            engine.recursive_counts.subtract(counts)
        losers.append(counts.facts)
    return run.union(losers)


def overdelete(run: Run, stratum: Stratum, candidates: SettledFacts) -> None:
    """Delete facts that may have lost their support (l. 26 to 30).

    Afterwards the recursive counts are the numbers of instances of ordinary rules over
    I ∖ (D ∖ A) and I ∪ A, and no deleted fact has a nonrecursive derivation.
    """
    engine = run.engine
    stage = _remaining(run, stratum)
    nothing = engine.no_facts()
    own = [nothing for _ in stratum.modules]
    while True:
        lost = engine.nonrecursive_counts.zero(candidates & run.remaining)
        if not lost.is_empty():
            kept = [module.prove(stage, lost, None) for module in stratum.modules]
            lost = engine.settle(lost - run.union(kept))
        delta = run.union([lost, *own])
        if delta.is_empty():
            return
        run.round(delta)
        # Modules with new rules may return facts that never held.
        own = [
            engine.nonrecursive_counts.zero(
                (module.delete(stage, each) & run.remaining) - delta
            )
            for module, each in zip(
                stratum.modules, from_others(engine, lost, own), strict=True
            )
        ]
        candidates = nothing
        if stratum.recursive.rules:
            counts = _affected(run, stratum, delta)
            engine.recursive_counts.subtract(counts)
            candidates = counts.facts
        run.delete(delta)


def _affected(run: Run, stratum: Stratum, delta: SettledFacts) -> Counts:
    # `deleted` must not contain `delta` yet: an instance may use two facts of the same
    # round.
    return derive_counts(
        run.engine,
        stratum.recursive.delta,
        positive=run.remaining,
        negative=run.possible,
        delta_positive=delta,
    )


def rederive(run: Run, stratum: Stratum) -> list[SettledFacts]:
    """Return overdeleted facts that still follow: by ordinary rules, by each module."""
    engine = run.engine
    deleted = engine.settle(run.deleted.within(stratum.region))
    if deleted.is_empty():
        return [deleted] * (1 + len(stratum.modules))
    stage = _updated(run, stratum)
    return [
        engine.recursive_counts.positive(deleted),
        *(module.rederive(stage, deleted) for module in stratum.modules),
    ]


def gains(run: Run, stratum: Stratum, changes: Changes) -> list[SettledFacts]:
    """Return facts that are inserted, gained from below, or derived by new rules.

    The first set is for ordinary rules, the others are the derivations of each module
    (l. 32 to 35).
    """
    engine = run.engine
    candidates = [run.insertions_in(stratum)]
    for counters, stayed, new in (
        (engine.nonrecursive_counts, stratum.nonrecursive, stratum.new_nonrecursive),
        (engine.recursive_counts, stratum.recursive, stratum.new_recursive),
    ):
        for counts in gained_counts(run, stayed, new, changes):
            counters.add(counts)
            candidates.append(counts.facts)
    stage = _updated(run, stratum)
    derived = []
    for module in stratum.modules:
        if module in stratum.new_modules:
            derived.append(module.derive(stage))
        else:
            derived.append(module.diff(stage, changes.gained, changes.lost))
    return [run.union(candidates), *derived]


def insert(
    run: Run,
    stratum: Stratum,
    gained: Sequence[SettledFacts],
    rederived: Sequence[SettledFacts],
) -> None:
    """Add facts and all that follows from them (l. 36 to 40).

    Both sequences begin with facts derived by ordinary rules; each module's facts
    follow, which the module itself does not need to process again.
    """
    engine = run.engine
    stage = _updated(run, stratum)
    others = run.union([gained[0], rederived[0]])
    own = [
        engine.settle((one | other) - run.updated)
        for one, other in zip(gained[1:], rederived[1:], strict=True)
    ]
    while True:
        others = engine.settle(others - run.updated)
        delta = run.union([others, *own])
        if delta.is_empty():
            return
        inputs = from_others(engine, others, own)
        run.add(delta)
        run.round(delta)
        own = [
            engine.settle(module.add(stage, each) - run.updated)
            for module, each in zip(stratum.modules, inputs, strict=True)
        ]
        others = engine.no_facts()
        if stratum.all_recursive.rules:
            counts = derive_counts(
                engine,
                stratum.all_recursive.delta,
                positive=run.updated,
                negative=run.updated,
                delta_positive=delta,
            )
            engine.recursive_counts.add(counts)
            others = counts.facts


# ------------------------------------------------------------------------- B/F^c-MOD


def maintain_searching(run: Run, stratum: Stratum) -> None:
    """Maintain a stratum with modules by B/F^c-MOD."""
    if stratum.is_monotone:
        maintain_monotone(run, stratum)
        return
    changes = run.changes()
    with run.forwards("delete"):
        candidates = losses(run, stratum, changes, is_final=False)
    delete_unproved(run, stratum, candidates)
    with run.forwards("delete"):
        # The deletions are final now, and so are the instances that they destroy.
        for counts in lost_counts(run, stratum.recursive, run.changes()):
            run.engine.recursive_counts.subtract(counts)
    with run.forwards("insert"):
        nothing = run.engine.no_facts()
        insert(
            run,
            stratum,
            gains(run, stratum, changes),
            [nothing] * (1 + len(stratum.modules)),
        )


def delete_unproved(run: Run, stratum: Stratum, candidates: SettledFacts) -> None:
    """Delete the candidates and what depends on them, unless proved."""
    engine = run.engine
    stage = _remaining(run, stratum)
    search = Search(run, stratum, counted_support(run))
    while True:
        batch = engine.settle(candidates & run.remaining)
        if batch.is_empty():
            return
        delta = search.check(batch)
        if delta.is_empty():
            return
        run.round(delta)
        with run.forwards("delete"):
            following = [module.delete(stage, delta) for module in stratum.modules]
            if stratum.recursive.rules:
                following.append(_affected(run, stratum, delta).facts)
            candidates = run.union(following)
        run.delete(delta)


# ----------------------------------------------------------------------------- views


def _remaining(run: Run, stratum: Stratum) -> Stage:
    return _stage(run, stratum, run.remaining, run.possible)


def _updated(run: Run, stratum: Stratum) -> Stage:
    return _stage(run, stratum, run.updated, run.updated)


def _stage(run: Run, stratum: Stratum, positive: Facts, negative: Facts) -> Stage:
    is_certain = not stratum.all_recursive.rules
    return Stage(run.engine, positive, negative, run.materialised, is_certain)
