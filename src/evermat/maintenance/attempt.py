"""Attempts at an update, which can be committed or thrown away.

An attempt is made inside a transaction of the engine, which `commit` and `discard` end.
There are two sorts: the old materialisation was *maintained*, or a new one was *built*
beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from evermat.maintenance.compiled_rules import strata_of
from evermat.maintenance.context import Run
from evermat.maintenance.cost_model import Choice
from evermat.maintenance.lazy_closures import Sight, capture, with_held_changes
from evermat.maintenance.limits import Watch
from evermat.maintenance.rematerialise import copy_given
from evermat.maintenance.updates import Outcome, Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.algebra import Closure, Engine, Snapshot
    from evermat.maintenance.algorithms import Incremental
    from evermat.maintenance.bookkeeping import Bookkeeping
    from evermat.maintenance.compiled_rules import CompiledRules
    from evermat.maintenance.lazy_closures import Captures
    from evermat.maintenance.rule_book import RuleChange
    from evermat.maintenance.updates import Ignored, StratumReport, Update


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One update, with all that is needed to carry it out.

    Attributes:
        old, new: the rules before and after.
        change: the difference between them.
        start: when the update began.
        without_modules: compiles the new rules so that closures have no modules.
    """

    engine: Engine
    bookkeeping: Bookkeeping
    old: CompiledRules
    new: CompiledRules
    change: RuleChange
    start: float
    without_modules: Callable[[frozenset[Closure]], CompiledRules]


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Given facts that changed, copied."""

    removed: Snapshot
    added: Snapshot
    ignored: Ignored


class Origin(Protocol):
    """Where an update comes from: a job."""

    @property
    def change(self) -> RuleChange:
        """What happens to the rules."""

    @property
    def start(self) -> float:
        """When the update began."""


def outcome_of(
    origin: Origin,
    choice: Choice,
    given: Given,
    stored: tuple[Snapshot, Snapshot],
    strata: tuple[StratumReport, ...],
    held: Captures | None = None,
) -> Outcome:
    """The outcome of an update that removed and added some stored facts.

    Args:
        origin: the update.
        choice: how it was done.
        given: what was given and withdrawn.
        stored: the stored facts that it removed and added.
        strata: the work it was.
        held: closures that are not stored.
    """
    removed, added = with_held_changes(stored, held or {})
    return Outcome(
        removed=removed,
        added=added,
        explicit_removed=given.removed,
        explicit_added=given.added,
        summary=Report(
            algorithm=choice.algorithm,
            reason=choice.reason,
            strata=strata,
            deleted=_size(given.removed),
            inserted=_size(given.added),
            removed=_size(stored[0]),
            added=_size(stored[1]),
            ignored=given.ignored,
            removed_rules=len(origin.change.removed),
            added_rules=len(origin.change.added),
            seconds=perf_counter() - origin.start,
        ),
    )


def _size(snapshot: Snapshot) -> int:
    return sum(snapshot.relations().values())


class Attempt(Protocol):
    """An update that is worked out, in a transaction that is still open."""

    job: Job
    strata: tuple[StratumReport, ...]

    def commit(self, algorithm: str, reason: str) -> Outcome:
        """Make it so."""

    def discard(self, algorithm: str, reason: str) -> Outcome:
        """Undo it, and say what would have been."""


# --------------------------------------------------------------------- maintained


class Maintained:
    """The old materialisation with facts deleted and added."""

    def __init__(self, job: Job, update: Update, run: Run) -> None:
        self.job = job
        self.update = update
        self.run = run
        self.strata = tuple(report for report in run.reports if _is_telling(report))

    def commit(self, algorithm: str, reason: str) -> Outcome:
        """Make it so."""
        run = self.run
        outcome = self._outcome(algorithm, reason)
        self.job.engine.commit(
            deleted=run.deleted,
            added=run.added,
            withdrawn=run.withdrawn,
            given=run.given,
        )
        return outcome

    def discard(self, algorithm: str, reason: str) -> Outcome:
        """Undo it, and say what would have been."""
        outcome = self._outcome(algorithm, reason)
        self.job.engine.rollback()
        return outcome

    def _outcome(self, algorithm: str, reason: str) -> Outcome:
        engine, run, job = self.job.engine, self.run, self.job
        lost, gained, *_ = run.changes()
        held: Captures = {}
        if job.old.held or job.new.held:
            held = capture(
                Sight(engine, run.materialised, job.old.held),
                Sight(engine, run.updated, job.new.held),
                (lost, gained),
            )
        given = Given(
            removed=engine.snapshot(run.withdrawn),
            added=engine.snapshot(run.given),
            ignored=self.update.ignored,
        )
        choice = Choice(algorithm, reason)
        stored = engine.snapshot(lost), engine.snapshot(gained)
        return outcome_of(job, choice, given, stored, self.strata, held)


def maintain(
    job: Job, update: Update, algorithm: Incremental, watch: Watch
) -> Maintained:
    """Bring the old materialisation up to date."""
    engine = job.engine
    undermined = job.bookkeeping.begin(engine, update, job.change, job.old, job.new)
    strata = job.new.strata
    if job.change.added:
        strata = strata_of(job.new.plans, frozenset(job.change.added))
    run = Run(engine, strata, update, undermined, watch, algorithm.modular)
    run.algorithm = algorithm.name
    job.bookkeeping.maintain(algorithm, run)
    return Maintained(job, update, run)


def _is_telling(report: StratumReport) -> bool:
    """Whether something happened; facts of no stratum often just pass through."""
    return bool(
        report.index
        or report.overdeleted
        or report.inserted
        or report.forward_instances
    )


# -------------------------------------------------------------------------- built


class Built:
    """A new materialisation on a fresh engine, to take the place of the old one."""

    def __init__(
        self, job: Job, fresh: Engine, given: Given, strata: list[StratumReport]
    ) -> None:
        self.job = job
        self.fresh = fresh
        self.given = given
        self.strata = tuple(strata)

    def commit(self, algorithm: str, reason: str) -> Outcome:
        """Make it so."""
        # The transaction only served to read the request; its sets are not needed
        # any more, and an engine adopts another between transactions.
        engine = self.job.engine
        held = self._held()
        engine.rollback()
        return self._outcome(algorithm, reason, engine.adopt(self.fresh), held)

    def _held(self) -> Captures:
        engine, fresh, job = self.job.engine, self.fresh, self.job
        return capture(
            Sight(engine, engine.materialised, job.old.held),
            Sight(fresh, fresh.materialised, job.new.held),
        )

    def discard(self, algorithm: str, reason: str) -> Outcome:
        """Undo it, and say what would have been."""
        engine = self.job.engine
        # Adopting is how engines are compared, so the old facts are built once more.
        nothing = engine.no_facts()
        watch = Watch()
        before = copy_given(engine, watch, without=nothing, also=nothing)
        self.job.bookkeeping.materialise(before, self.job.old.plans, watch)
        held = self._held()
        stored = before.adopt(self.fresh)
        engine.rollback()
        return self._outcome(algorithm, reason, stored, held)

    def _outcome(
        self,
        algorithm: str,
        reason: str,
        stored: tuple[Snapshot, Snapshot],
        held: Captures,
    ) -> Outcome:
        unfit = self.job.new.unfit
        if unfit:
            names = ", ".join(sorted({f"`{each.pattern.relation}`" for each in unfit}))
            reason = (
                f"{reason}; closures of {names} are left to their rules, as other "
                "recursive rules add to them in every round"
            )
        choice = Choice(algorithm, reason)
        return outcome_of(self.job, choice, self.given, stored, self.strata, held)


def build(job: Job, fresh: Engine, given: Given, watch: Watch) -> Built:
    """Materialise the new program on a fresh engine with the new given facts."""
    unfit: set[Closure] = set()
    strata = job.bookkeeping.materialise(fresh, job.new.plans, watch, unfit)
    if unfit:
        job = replace(job, new=job.without_modules(frozenset(unfit)))
    return Built(job, fresh, given, strata)
