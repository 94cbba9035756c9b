"""B/F^c: the Backward/Forward algorithm with a count of nonrecursive derivations.

Source: [hu2018], Algorithm 3, with its misprints put right: the operator in lines 59
and 61 is Π⟦I : D∖A, A∖D⟧ and line 59 is a multiset sum, line 83 returns *true*, and
line 91 is about the recursive rules.

Notation (left: the paper; right: this file)

    E⁻ ∩ O^s; E⁺ ∩ O^s   `run.deletions_in(stratum)`; `run.insertions_in(stratum)`
    N_D                  `candidates`
    C_nr                 `engine.nonrecursive_counts`
    CHECK, SATURATE      `Search` of `backward_forward`

Unlike B/F, whether a fact follows from lower strata is read off its count, so that only
recursive rules are evaluated from head to body. Unlike DRed^c, no recursive derivations
are counted: `counters` brings that count in line afterwards where it is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra import OwnSupport
from evermat.maintenance.affected import gaining, lost, lost_counts
from evermat.maintenance.backward_forward import Search, delete_unproved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.algebra import Application, SettledFacts
    from evermat.maintenance.context import Changes, Run
    from evermat.maintenance.strata import Stratum


def maintain(run: Run) -> None:
    """Bring facts and nonrecursive counts up to date (l. 52 to 55)."""
    for stratum in run.touched_strata():
        changes = run.changes()
        with run.forwards("delete"):
            candidates = losses(run, stratum, changes)
        search = Search(run, stratum, counted_support(run))
        delete_unproved(run, stratum, candidates, search)
        with run.forwards("insert"):
            run.insert(
                run.insertions_in(stratum),
                gains(run, stratum, changes),
                stratum.all_recursive.delta_queries,
            )


def counted_support(run: Run) -> OwnSupport:
    """Facts that are given, or derived from lower strata, have a count (l. 79)."""
    counter = run.engine.nonrecursive_counts
    return OwnSupport(counter.positive, counter=counter)


def losses(run: Run, stratum: Stratum, changes: Changes) -> SettledFacts:
    """Facts that lost a derivation below, counted down (l. 58 to 61)."""
    losers = [run.deletions_in(stratum), *lost(run, stratum.recursive, changes)]
    for counts in lost_counts(run, stratum.nonrecursive, changes):
        run.engine.nonrecursive_counts.subtract(counts)
        losers.append(counts.facts)
    return run.union(losers)


def gains(run: Run, stratum: Stratum, changes: Changes) -> Iterator[Application]:
    """Rules for what newly follows, the nonrecursive ones counted (l. 88 to 91)."""
    yield from gaining(run, stratum.recursive, stratum.new_recursive, changes)
    yield from gaining(
        run,
        stratum.nonrecursive,
        stratum.new_nonrecursive,
        changes,
        run.engine.nonrecursive_counts,
    )
