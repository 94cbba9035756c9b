"""DRed^c: Delete/Rederive with derivation counts.

Source: [hu2018], Algorithm 2.

Notation (left: the paper; right: this file)

    E⁻ ∩ O^s; E⁺ ∩ O^s   `run.deletions_in(stratum)`; `run.insertions_in(stratum)`
    N_D; Δ_D             `candidates`; `delta`
    R                    `rederived`
    Π_nr^s, Π_r^s        `stratum.nonrecursive`, `stratum.recursive`
    C_nr, C_r            `engine.nonrecursive_counts`, `engine.recursive_counts`

Unlike in DRed, a fact with a positive nonrecursive count is never overdeleted, and an
overdeleted fact is rederived if and only if its recursive count is still positive: no
rule is ever evaluated from head to body. On nonrecursive rules this is Counting.

The counts of explicit facts change before the first stratum (in `counting`), not in
lines 29 and 41, so a fact that the update inserts is not overdeleted either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.maintenance.context import gaining, losing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.algebra import Application
    from evermat.maintenance.context import Changes, Run, Stratum


def maintain(run: Run) -> None:
    """Bring facts and both counters up to date, stratum by stratum (l. 22 to 25)."""
    for stratum in run.touched_strata():
        changes = run.changes()
        with run.forwards("overdelete"):
            overdelete(run, stratum, changes)
        rederived = run.engine.no_facts()
        if stratum.recursive.rules:
            with run.forwards("rederive"):
                rederived = run.engine.recursive_counts.positive(
                    run.deleted.within(stratum.region)
                )
                run.report.rederived = rederived.size()
        with run.forwards("insert"):
            run.insert(
                run.union([rederived, run.insertions_in(stratum)]),
                gains(run, stratum, changes),
                stratum.all_recursive.delta_queries,
                counters=run.engine.recursive_counts,
            )


def overdelete(run: Run, stratum: Stratum, changes: Changes) -> None:
    """Delete facts that may have lost their support, and lower counts (l. 27 to 38).

    Afterwards the counts are the numbers of instances over I ∖ (D ∖ A) and I ∪ A, and
    no deleted fact of the stratum has a nonrecursive derivation.
    """
    nonrecursive, recursive = (
        run.engine.nonrecursive_counts,
        run.engine.recursive_counts,
    )
    run.overdelete(
        run.deletions_in(stratum),
        [
            *losing(run, stratum.nonrecursive, changes, nonrecursive),
            *losing(run, stratum.recursive, changes, recursive),
        ],
        stratum.recursive.delta_queries,
        counters=recursive,
        zero=nonrecursive,
    )


def gains(run: Run, stratum: Stratum, changes: Changes) -> Iterator[Application]:
    """Yield rules for facts gained from lower strata or by new rules (l. 42 to 44)."""
    yield from gaining(
        run,
        stratum.nonrecursive,
        stratum.new_nonrecursive,
        changes,
        run.engine.nonrecursive_counts,
    )
    yield from gaining(
        run,
        stratum.recursive,
        stratum.new_recursive,
        changes,
        run.engine.recursive_counts,
    )
