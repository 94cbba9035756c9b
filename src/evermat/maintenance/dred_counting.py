"""DRed^c: Delete/Rederive with a count of derivations.

Source: [hu2018], Algorithm 2.

Notation (left: the paper; right: this file)

    E⁻ ∩ O^s; E⁺ ∩ O^s   `run.deletions_in(stratum)`; `run.insertions_in(stratum)`
    N_D; Δ_D             `candidates`; `delta`
    R                    `rederived`
    Π_nr^s, Π_r^s        `stratum.nonrecursive`, `stratum.recursive`
    C_nr, C_r            `engine.nonrecursive_counts`, `engine.recursive_counts`

Unlike DRed, a fact with a positive nonrecursive count is never overdeleted, and a fact
that was overdeleted comes back exactly if its recursive count is still positive: no
rule is ever evaluated from head to body. On nonrecursive rules this is Counting.

The counts of given facts change before the first stratum (in `counters`), not in lines
29 and 41: a fact that the update gives is then not overdeleted either.

Some engines do all of it by themselves where it is little work; they know the algorithm
from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.maintenance.affected import gained_counts, lost_counts
from evermat.maintenance.seminaive import insert_counting
from evermat.maintenance.whole_updates import is_carried_out
from evermat.rule_plans import derive_counts

if TYPE_CHECKING:
    from evermat.algebra import SettledFacts
    from evermat.maintenance.run import Changes, Run
    from evermat.maintenance.strata import Stratum


def maintain(run: Run) -> None:
    """Bring facts and both counters up to date, stratum by stratum (l. 22 to 25)."""
    if is_carried_out(run, counting=True):
        return
    for stratum in run.touched_strata():
        changes = run.changes()
        with run.forwards("overdelete"):
            overdelete(run, stratum, changes)
        with run.forwards("rederive"):
            rederived = run.engine.recursive_counts.positive(
                run.deleted.within(stratum.region)
            )
            run.report.rederived = rederived.size()
        with run.forwards("insert"):
            candidates = [rederived, *gains(run, stratum, changes)]
            insert_counting(run, stratum, run.union(candidates))


def overdelete(run: Run, stratum: Stratum, changes: Changes) -> None:
    """Delete what may have lost its support, and lower the counts (l. 27 to 38).

    Afterwards the counts are the numbers of instances over I ∖ (D ∖ A) and I ∪ A, and
    no deleted fact of the stratum has a nonrecursive derivation.
    """
    engine = run.engine
    losers = [run.deletions_in(stratum)]
    for counts in lost_counts(run, stratum.nonrecursive, changes):
        engine.nonrecursive_counts.subtract(counts)
        losers.append(counts.facts)
    for counts in lost_counts(run, stratum.recursive, changes):
        engine.recursive_counts.subtract(counts)
        losers.append(counts.facts)
    first = run.union(losers)
    for candidates in run.portions(first) if stratum.recursive.rules else (first,):
        follow_deletion(run, stratum, candidates)


def follow_deletion(run: Run, stratum: Stratum, candidates: SettledFacts) -> None:
    """Delete those of the candidates that may be lost, and what depends on them."""
    engine = run.engine
    while True:
        delta = engine.nonrecursive_counts.zero(candidates - run.deleted)
        if delta.is_empty():
            return
        run.round(delta)
        if not stratum.recursive.rules:
            run.delete(delta)
            return
        # `deleted` must not contain `delta` yet: an instance may use two facts that
        # fall in the same round.
        counts = derive_counts(
            engine,
            stratum.recursive.delta,
            positive=run.remaining,
            negative=run.possible,
            delta_positive=delta,
        )
        engine.recursive_counts.subtract(counts)
        candidates = counts.facts
        run.delete(delta)


def gains(run: Run, stratum: Stratum, changes: Changes) -> list[SettledFacts]:
    """What the update gives or newly derives from lower strata (l. 41 to 44)."""
    engine = run.engine
    candidates = [run.insertions_in(stratum)]
    for counts in gained_counts(
        run, stratum.nonrecursive, stratum.new_nonrecursive, changes
    ):
        engine.nonrecursive_counts.add(counts)
        candidates.append(counts.facts)
    for counts in gained_counts(run, stratum.recursive, stratum.new_recursive, changes):
        engine.recursive_counts.add(counts)
        candidates.append(counts.facts)
    return candidates
