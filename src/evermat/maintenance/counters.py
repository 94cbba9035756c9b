"""Counters around an algorithm: given facts before it, derived ones after it.

DRed, B/F and FP-update keep no counts, B/F^c keeps one of the two. Where counts are
kept at all, they are brought in line from the net change: the instances destroyed are
Π⟦I : D∖A, A∖D⟧ over the old facts, those created Π⟦I' : A∖D, D∖A⟧ over the new ones,
and a new rule has created all its instances. Rules that go lost theirs at the start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.maintenance.affected import gained_counts, lost_counts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.algebra import Counters, Engine
    from evermat.algebra.compile import RuleSet
    from evermat.maintenance.context import Run
    from evermat.maintenance.strata import Stratum
    from evermat.maintenance.updates import Update


def count_given(engine: Engine, update: Update) -> None:
    """Count given facts, which are akin to nonrecursive derivations."""
    if not update.deletions.is_empty():
        engine.nonrecursive_counts.subtract(engine.once(update.deletions))
    if not update.insertions.is_empty():
        engine.nonrecursive_counts.add(engine.once(update.insertions))


def leave_alone(run: Run) -> None:
    """For algorithms that keep both counts themselves."""
    del run


def bring_in_line(run: Run) -> None:
    """Bring both counts in line with the facts that the run arrived at."""
    bring_nonrecursive_in_line(run)
    bring_recursive_in_line(run)


def bring_nonrecursive_in_line(run: Run) -> None:
    """Bring C_nr in line with the facts that the run arrived at."""
    for stratum in _affected(run):
        _recount(
            run,
            run.engine.nonrecursive_counts,
            stratum.nonrecursive,
            stratum.new_nonrecursive,
        )


def bring_recursive_in_line(run: Run) -> None:
    """Bring C_r in line with the facts that the run arrived at."""
    for stratum in _affected(run):
        _recount(
            run, run.engine.recursive_counts, stratum.recursive, stratum.new_recursive
        )


def _recount(run: Run, counters: Counters, stayed: RuleSet, new: RuleSet) -> None:
    with run.forwards("count"):
        for counts in lost_counts(run, stayed, run.changes()):
            counters.subtract(counts)
        for counts in gained_counts(run, stayed, new, run.changes()):
            counters.add(counts)


def _affected(run: Run) -> Iterator[Stratum]:
    """The strata whose rules read a relation that changed, or that have new rules.

    Those with modules are left out: `modular` keeps their counts.
    """
    strata = run.strata
    positions = set(strata.changed)
    changes = run.changes()
    for relation in changes.lost_from | changes.gained_by:
        positions.update(strata.readers.get(relation, ()))
    for position in sorted(positions):
        stratum = strata.strata[position]
        if not stratum.modules:
            run.return_to(stratum)
            yield stratum
