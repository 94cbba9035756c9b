"""FP-update: maintenance of changed facts and rules from the old fixpoint alone.

Source: [kotowski2011], Algorithms 1.2 and 1.3; negation by strata (Section 7.1) with
the affected-instance operator of [hu2018], because with negation, facts lost in lower
strata can add facts above and vice versa.

Notation (left: the paper; right: this file)

    T_P^ω            `run.materialised`, the old fixpoint
    D                the facts deleted and the rules removed
    U                `run.deleted`      [u]nsure: depend on something removed
    K = T_P^ω ∖ U    `run.remaining`    [k]ept, before facts are added again
    T_P(F, Δ)        `derive(…, delta_positive=delta)`
    T_{P∖D}(K) ∖ K   `restore`

Unlike in DRed, overestimation applies the rules to the whole old fixpoint in every
round, not to the rest of it. A rule instance is therefore matched once for each round
in which one of its facts becomes unsure; the facts of each round are the same.

The paper computes T_{P∖D}(K) ∖ K by applying all rules to K. For definite programs it
is a subset of U, and with negation, facts outside of U are gained from lower strata. So
it is enough to determine for each unsure fact whether it is explicit or has a
derivation, as DRed does; an engine that can stop at the first derivation need not find
the others. Rules that are hard to evaluate from head to body, as in Example 1 of
[hu2018], are still applied to K, which costs no more than materialising.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from evermat.algebra import Application, Saturation, Views
from evermat.algebra.compile import derive
from evermat.maintenance.context import holding
from evermat.maintenance.dred import gains, losses, rederive

if TYPE_CHECKING:
    from evermat.algebra import SettledFacts
    from evermat.maintenance.context import Changes, Run, Stratum

_SMALL = 16
"""U is small if the stratum has at least this many times more facts."""

_SAMPLE = 64
"""The number of unsure facts that are checked to estimate the time for all of them."""

_MARGIN = 16.0
"""The most that checking may cost, relative to deriving the facts of K at the speed of
earlier instances. There are more instances than facts, often many times more."""


def maintain(run: Run) -> None:
    """Bring the facts up to date, stratum by stratum."""
    for stratum in run.touched_strata():
        changes = run.changes()
        with run.forwards("overestimate"):
            overestimate(run, stratum, changes)
        restored = restore(run, stratum)
        run.report.rederived = restored.size()
        with run.forwards("continue"):
            run.insert(
                run.union([restored, run.insertions_in(stratum)]),
                gains(run, stratum, changes),
                stratum.all_recursive.delta_queries,
            )


def overestimate(run: Run, stratum: Stratum, changes: Changes) -> None:
    """Delete every fact that depends on something removed (Algorithm 1.2)."""
    rules = stratum.recursive.delta_queries
    views = Views(run.materialised, run.materialised)
    task = Saturation(
        run.deletions_in(stratum),
        into=run.deleted,
        unless=run.deleted,
        first=tuple(losses(run, stratum, changes)),
        step=None if rules is None else Application(rules, views),
        is_deletion=True,
        is_watched=run.watch.is_strict,
    )
    run.report.overdeleted += run.saturate(task)


def restore(run: Run, stratum: Stratum) -> SettledFacts:
    """Return T_{P∖D}(K) ∖ K: unsure facts that are explicit or derived from K."""
    unsure = run.engine.settle(run.deleted.within(stratum.region))
    with run.backwards("restore"):
        if asks(run, stratum, unsure):
            return rederive(run, stratum)
    with run.forwards("restore"):
        return restore_naively(run, stratum, unsure)


def asks(run: Run, stratum: Stratum, unsure: SettledFacts) -> bool:
    """Return whether to check each unsure fact, instead of applying the rules to K."""
    engine = run.engine
    relations = unsure.relations() & stratum.holds
    known = sum(engine.size(run.materialised, name) for name in relations)
    if unsure.size() * _SMALL <= known or unsure.size() <= _SAMPLE:
        return True
    instances = run.report.forward_instances
    parts = unsure.size() // _SAMPLE
    sample = engine.part(unsure, parts) if instances else None
    if sample is None:
        return False
    start = perf_counter()
    holding(run, sample, stratum.nonrecursive, stratum.recursive)
    asking = (perf_counter() - start) * parts
    applying = run.report.seconds["overestimate"] * known / instances
    return asking <= _MARGIN * applying


def restore_naively(run: Run, stratum: Stratum, unsure: SettledFacts) -> SettledFacts:
    """Return T_{P∖D}(K) ∖ K, by applying the rules once to all of K."""
    restored = [run.engine.settle(unsure & run.explicit)]
    for rules in (stratum.nonrecursive, stratum.recursive):
        if rules.rules:
            derived = derive(
                run.engine, rules.full, positive=run.remaining, negative=run.possible
            )
            restored.append(run.engine.settle(derived & unsure))
    return run.union(restored)
