"""Attempts at an update of a program with equality, to be committed or thrown away.

The counterpart of `evermat.maintenance.attempt`, where facts stand for others: beside
the facts that leave and come, an attempt tells what facts stood for and stand for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from evermat.maintenance.equality.state import MOVED
from evermat.maintenance.equality.update import EqualityUpdate
from evermat.maintenance.updates import CliqueChange

if TYPE_CHECKING:
    from evermat.algebra import Snapshot
    from evermat.algebra.abilities import EqualityEngine, Representatives
    from evermat.maintenance.equality.update import EqualityJob
    from evermat.maintenance.limits import Watch
    from evermat.maintenance.updates import StratumReport

Facts = tuple["Snapshot", "Snapshot"]
"""Facts that left, and facts that came."""


class Attempt(Protocol):
    """An update that is worked out, in a transaction that is still open.

    Attributes:
        deleted, inserted: given facts that it changes.
        representatives: those after it.
    """

    deleted: Snapshot
    inserted: Snapshot
    strata: tuple[StratumReport, ...]
    representatives: Representatives

    def commit(self) -> Facts:
        """Make it so."""

    def discard(self) -> Facts:
        """Undo it."""

    def cliques(self, facts: Facts) -> CliqueChange:
        """What facts stood for and stand for, where one of them changed."""


class Maintained:
    """The old facts with some deleted and some added."""

    def __init__(self, update: EqualityUpdate) -> None:
        engine, job = update.engine, update.job
        self._update = update
        self.deleted = engine.snapshot(job.deletions)
        self.inserted = engine.snapshot(job.insertions)
        self.strata = tuple(update.run.reports)
        self.representatives = update.after
        lost, gained, *_ = update.run.changes()
        self._facts = (engine.snapshot(lost), engine.snapshot(gained))
        self._change = self._compared()

    def commit(self) -> Facts:
        """Make it so."""
        self._update.commit()
        return self._facts

    def discard(self) -> Facts:
        """Undo it."""
        self._update.engine.rollback()
        return self._facts

    def cliques(self, facts: Facts) -> CliqueChange:
        """What facts stood for and stand for, where one of them changed."""
        del facts
        return self._change

    def _compared(self) -> CliqueChange:
        engine, run = self._update.engine, self._update.run
        before, after = self._update.before, self._update.after
        about = self._update.about_moved()
        if about.is_empty():
            return CliqueChange(before, after, *self._facts)
        stayed = engine.snapshot(engine.settle(about & run.updated))
        return CliqueChange(before, after, *self._facts, stayed)


@dataclass(frozen=True, slots=True, eq=False)
class Old:
    """What a new materialisation takes the place of.

    Attributes:
        inserted: given facts that the update brings.
        is_empty: whether there were no facts.
    """

    engine: EqualityEngine
    representatives: Representatives
    job: EqualityJob
    inserted: Snapshot
    is_empty: bool


class Rebuilt:
    """New facts on a fresh engine, to take the place of the old ones."""

    def __init__(
        self,
        fresh: EqualityEngine,
        old: Old,
        representatives: Representatives,
        strata: tuple[StratumReport, ...],
    ) -> None:
        engine = old.engine
        self._fresh = fresh
        self._old = old
        self.deleted = engine.snapshot(old.job.deletions)
        self.inserted = old.inserted
        self.strata = strata
        self.representatives = representatives
        moved = engine.moved(old.representatives, representatives, MOVED)
        is_renamed = not (old.is_empty or moved.is_empty())
        self._everything = self._compared() if is_renamed else None

    def commit(self) -> Facts:
        """Make it so."""
        # The transaction only served to read the request.
        self._old.engine.rollback()
        return self._old.engine.adopt(self._fresh)

    def discard(self) -> Facts:
        """Undo it; all facts are compared if somebody asks."""
        engine = self._old.engine
        self._everything = self._everything or self._compared()
        nothing = engine.snapshot(engine.no_facts())
        engine.rollback()
        return nothing, nothing

    def cliques(self, facts: Facts) -> CliqueChange:
        """What facts stood for and stand for; all facts where cliques changed."""
        if self._everything is not None:
            return self._everything
        return CliqueChange(self._old.representatives, self.representatives, *facts)

    def _compared(self) -> CliqueChange:
        engine, fresh = self._old.engine, self._fresh
        return CliqueChange(
            self._old.representatives,
            self.representatives,
            engine.snapshot(engine.materialised),
            fresh.snapshot(fresh.materialised),
        )


def rebuild(fresh: EqualityEngine, old: Old, watch: Watch) -> Rebuilt:
    """Materialise the new program on a fresh engine with the new given facts."""
    nothing = fresh.no_facts()
    job = replace(old.job, old=frozenset(), deletions=nothing, insertions=nothing)
    fresh.begin()
    merging = EqualityUpdate(fresh, job, fresh.representatives(), watch)
    known = merging.merge_given()
    fresh.begin()
    update = EqualityUpdate(fresh, job, known, watch)
    update.materialise_component()
    others = update.materialise_others(watch)
    strata = (*merging.run.reports, *update.run.reports, *others)
    return Rebuilt(fresh, old, update.after, strata)
