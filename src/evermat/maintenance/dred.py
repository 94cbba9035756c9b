"""DRed: Delete/Rederive.

Source: [gupta1993] and [staudt1996], as stated in [hu2018], Algorithm 1.

Notation (left: the paper; right: this file)

    E⁻ ∩ O^s; E⁺ ∩ O^s   `run.deletions_in(stratum)`; `run.insertions_in(stratum)`
    N_D; Δ_D             `candidates`; `delta`
    R                    `rederived`
    E ∖ E⁻               `run.explicit`, which has E⁺ as well: one step earlier

DRed needs no data besides the facts. It deletes all facts that depend on a deleted
fact, then searches for other derivations of the deleted facts by evaluating rules from
head to body, and derives forwards from those that have one. Both the overdeletion and
the backward step can be far larger than the change: see DRed^c and B/F.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.maintenance.context import gaining, holding, losing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.algebra import Application, SettledFacts
    from evermat.maintenance.context import Changes, Run, Stratum


def maintain(run: Run) -> None:
    """Bring the facts up to date, stratum by stratum (l. 2 to 5)."""
    for stratum in run.touched_strata():
        changes = run.changes()
        with run.forwards("overdelete"):
            overdelete(run, stratum, changes)
        with run.backwards("rederive"):
            rederived = rederive(run, stratum)
            run.report.rederived = rederived.size()
        with run.forwards("insert"):
            run.insert(
                run.union([rederived, run.insertions_in(stratum)]),
                gains(run, stratum, changes),
                stratum.all_recursive.delta_queries,
            )


def overdelete(run: Run, stratum: Stratum, changes: Changes) -> None:
    """Delete every fact with a derivation through a deleted one (l. 7 to 13).

    Each fact is deleted in one round, and no rule instance is matched in two rounds.
    """
    run.overdelete(
        run.deletions_in(stratum),
        losses(run, stratum, changes),
        stratum.recursive.delta_queries,
    )


def losses(run: Run, stratum: Stratum, changes: Changes) -> Iterator[Application]:
    """Yield rules for facts that lost a derivation from lower strata."""
    yield from losing(run, stratum.nonrecursive, changes)
    yield from losing(run, stratum.recursive, changes)


def gains(run: Run, stratum: Stratum, changes: Changes) -> Iterator[Application]:
    """Yield rules for facts that newly follow from lower strata, or by new rules."""
    yield from gaining(run, stratum.nonrecursive, stratum.new_nonrecursive, changes)
    yield from gaining(run, stratum.recursive, stratum.new_recursive, changes)


def rederive(run: Run, stratum: Stratum) -> SettledFacts:
    """Return overdeleted facts that are explicit, or have a derivation left (l. 4).

    Every other fact that still holds follows from these and the facts not deleted.
    """
    deleted = run.engine.settle(run.deleted.within(stratum.region))
    if deleted.is_empty():
        return deleted
    return holding(run, deleted, stratum.nonrecursive, stratum.recursive)
