"""FP-update: maintenance from the old fixpoint alone, for facts and rules that change.

Source: [kotowski2011], Algorithms 1.2 and 1.3; negation by strata (Section 7.1) with
the affected-instance operator of [hu2018], because with negation what is lost below
can add facts above and the other way round.

Notation (left: the paper; right: this file)

    T_P^ω            `run.materialised`, the old fixpoint
    D                the facts withdrawn and the rules removed
    U                `run.deleted`      [u]nsure: depend on something removed
    K = T_P^ω ∖ U    `run.updated`      [k]ept, before facts are added again
    T_P(F, Δ)        `derive(…, delta_positive=delta)`
    T_{P∖D}(K) ∖ K   `restored`

Unlike DRed, overestimation applies the rules to the whole old fixpoint in every round,
not to what is left of it. It then needs no more rounds than facts depend on each other
in sequence, at the price of meeting some instances in more than one round.

T_{P∖D}(K) ∖ K is computed naively in the paper. For definite programs it is a subset of
U, so where U is small it is cheaper to evaluate the rules for the facts of U only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra import Application, Saturation, Views
from evermat.algebra.compile import derive
from evermat.maintenance.dred import gains, losses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.algebra import SettledFacts
    from evermat.maintenance.context import Changes, Run
    from evermat.maintenance.strata import Stratum

_SMALL = 16
"""U is small if the stratum has this many times more facts.

Evaluating a rule for one given head costs several lookups where the naive step costs a
fraction of a scan; the two met between 8 and 32 on the workloads of the benchmarks.
"""


def maintain(run: Run) -> None:
    """Bring the facts up to date, stratum by stratum."""
    for stratum in run.touched_strata():
        changes = run.changes()
        with run.forwards("overestimate"):
            overestimate(run, stratum, changes)
        unsure = run.engine.settle(run.deleted.within(stratum.region))
        if is_small(run, stratum, unsure):
            with run.backwards("restore"):
                restored = run.union(restore_by_head(run, stratum, unsure))
        else:
            with run.forwards("restore"):
                restored = run.union(restore_naively(run, stratum, unsure))
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


def is_small(run: Run, stratum: Stratum, unsure: SettledFacts) -> bool:
    """Whether few of the stratum's facts are unsure."""
    relations = unsure.relations() & stratum.holds
    known = sum(run.engine.size(run.materialised, name) for name in relations)
    return unsure.size() * _SMALL <= known


def restore_naively(
    run: Run, stratum: Stratum, unsure: SettledFacts
) -> Iterator[SettledFacts]:
    """T_{P∖D}(K) ∖ K, by applying the rules once to all that is kept."""
    yield run.engine.settle(unsure & run.explicit)
    for rules in (stratum.nonrecursive, stratum.recursive):
        if rules.rules:
            derived = derive(
                run.engine, rules.full, positive=run.updated, negative=run.updated
            )
            yield run.engine.settle(derived & unsure)


def restore_by_head(
    run: Run, stratum: Stratum, unsure: SettledFacts
) -> Iterator[SettledFacts]:
    """T_{P∖D}(K) ∖ K, by asking of each unsure fact whether it is derived."""
    yield run.engine.settle(unsure & run.explicit)
    for rules in (stratum.nonrecursive, stratum.recursive):
        if rules.rules:
            yield derive(
                run.engine,
                rules.rederive,
                positive=run.updated,
                negative=run.updated,
                delta_positive=unsure,
            )
