"""Results of aggregates: their materialisation, and maintenance by changed groups.

Results are facts of auxiliary predicates (`evermat.lang.aggregates`). They are computed
at the beginning of their stratum, before any algorithm evaluates its rules, so all
algorithms find them among the changes from lower strata:

    members lost and gained  →  results removed and added  →  `run.deleted`, `run.added`

A result has one derivation that is counted, which is nonrecursive: C_nr = 1. It does
not matter how the engine computes it, because a result depends on nothing but the
members of its group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.lang.aggregates import is_aggregate_rule
from evermat.lang.syntax import Rule

if TYPE_CHECKING:
    from evermat.algebra import Counters, Engine, SettledFacts
    from evermat.algebra.compile import StratumPlan
    from evermat.maintenance.context import Run, Stratum


def materialise_aggregates(
    engine: Engine, stratum: StratumPlan, counters: Counters | None
) -> SettledFacts:
    """Return the results of a stratum on a fresh engine; the caller adds them."""
    aggregates = [each.aggregate for each in stratum.aggregates]
    results = engine.aggregate(aggregates, engine.materialised)
    if counters is not None:
        counters.add(engine.once(results))
    return results


def maintain_aggregates(run: Run, stratum: Stratum) -> None:
    """Remove and add results, according to the changes of lower strata."""
    engine, changes = run.engine, run.changes()
    changed = changes.lost_from | changes.gained_by
    aggregates = [each.aggregate for each in stratum.aggregates]
    touched = [each for each in aggregates if each.members in changed]
    if touched:
        removed, added = engine.aggregate_changes(
            touched, (changes.lost, changes.gained), run.materialised, run.updated
        )
        counters = _counters(run)
        if counters is not None:
            counters.subtract(engine.once(removed))
        run.delete(removed)
        _add(run, added)
    if stratum.new_aggregates:
        new = [each.aggregate for each in stratum.new_aggregates]
        _add(run, engine.aggregate(new, run.updated))


def _add(run: Run, results: SettledFacts) -> None:
    if results.is_empty():
        return
    counters = _counters(run)
    if counters is not None:
        counters.add(run.engine.once(results))
    run.add(results)
    run.round(results)


def _counters(run: Run) -> Counters | None:
    return None if run.kept is None else run.kept.counters(run.engine)[0]


def plain(rule: Rule) -> Rule:
    """Return a rule that derives all results of an aggregate rule from themselves.

    It replaces an aggregate rule that is removed, so that all of its results are
    deleted.
    """
    if not is_aggregate_rule(rule):
        return rule
    return Rule((rule.head,), (rule.head,), rule.span, rule.written)
