"""The base of drivers, and attempts at an update that are committed or discarded.

A driver maintains one materialisation. An update is applied as a whole or not at all.
There are two drivers: one stores facts as they are, the other one fact for all facts
that differ only in equal constants.

An attempt is made inside a transaction of the engine, which `commit` and `discard` end.
There are two kinds: the old materialisation was *maintained*, or a new one was *built*
next to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from time import perf_counter
from traceback import clear_frames
from typing import TYPE_CHECKING, Protocol

from evermat.algebra import Engine, EngineUseError
from evermat.maintenance.algorithms import AUTO, REMATERIALISE
from evermat.maintenance.context import Run
from evermat.maintenance.cost_model import Choice, History
from evermat.maintenance.counting import Kept, bring_in_line, count_explicit
from evermat.maintenance.lazy_closures import LazyView, compare_lazy, with_lazy_changes
from evermat.maintenance.limits import Watch
from evermat.maintenance.modular import materialise_modular
from evermat.maintenance.rules import (
    reclassify,
    strata_of,
    undermine_counting,
)
from evermat.maintenance.seminaive import copy_explicit_facts, materialise
from evermat.maintenance.update import Outcome, Report, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa

    from evermat.algebra import Closure, SettledFacts, Snapshot, StoredChange
    from evermat.algebra.compile import StratumPlan
    from evermat.lang.syntax import Rule
    from evermat.maintenance.algorithms import Incremental
    from evermat.maintenance.lazy_closures import LazyChanges
    from evermat.maintenance.limits import Budget, Progress
    from evermat.maintenance.rules import (
        CompiledRules,
        ModularPlan,
        RuleBook,
        RuleChange,
    )
    from evermat.maintenance.update import Ignored, StratumReport, Update


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """Maintenance of the counters that are kept, and are exact between updates."""

    kept: Kept

    def materialise(
        self,
        engine: Engine,
        strata: Iterable[ModularPlan],
        watch: Watch,
        unfit: set[Closure] | None = None,
    ) -> list[StratumReport]:
        """Materialise and count on a fresh engine."""
        if self.kept is Kept.BOTH:
            return materialise_modular(engine, strata, watch, unfit)
        return materialise(engine, strata, watch, self.kept)  # there are no modules

    def begin(
        self,
        engine: Engine,
        update: Update,
        change: RuleChange,
        old: CompiledRules,
        new: CompiledRules,
    ) -> SettledFacts:
        """Count independently of the algorithm: explicit facts, and removed rules.

        Returns facts that lose a derivation by a removed rule.
        """
        undermined = engine.no_facts()
        if not change.is_empty():
            # Modules find the external facts of the old program by their counts.
            undermined = undermine_counting(engine, old, change, self.kept)
            reclassify(engine, old, new, self.kept)
        if self.kept is not Kept.NONE:
            count_explicit(engine, update)
        return undermined

    def maintain(self, algorithm: Incremental, run: Run) -> None:
        """Run an algorithm, then update the counts that it did not maintain."""
        run.kept = self.kept
        algorithm.maintain(run)
        bring_in_line(run, algorithm.keeps, self.kept)


# ------------------------------------------------------------------------------ attempt


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One update, with all that is needed to carry it out.

    Attributes:
        old, new: the rules before and after.
        change: the difference between them.
        start: the time at which the update began.
        without_modules: compiles the new rules with closures evaluated by their rules.
    """

    engine: Engine
    bookkeeping: Bookkeeping
    old: CompiledRules
    new: CompiledRules
    change: RuleChange
    start: float
    without_modules: Callable[[frozenset[Closure]], CompiledRules]


@dataclass(frozen=True, slots=True, eq=False)
class ExplicitChange:
    """Snapshots of the explicit facts that changed."""

    removed: Snapshot
    added: Snapshot
    ignored: Ignored


class Origin(Protocol):
    """The part of a job that outcomes need."""

    @property
    def change(self) -> RuleChange:
        """The change of the rules."""

    @property
    def start(self) -> float:
        """The time at which the update began."""


def outcome_of(
    origin: Origin,
    choice: Choice,
    explicit: ExplicitChange,
    stored: tuple[Snapshot, Snapshot],
    strata: tuple[StratumReport, ...],
    lazy: LazyChanges | None = None,
) -> Outcome:
    """Return the outcome of an update that removed and added stored facts.

    Args:
        origin: the update.
        choice: the choice of its algorithm.
        explicit: the facts that became explicit, and those that ceased to be.
        stored: the stored facts that it removed and added.
        strata: the reports of the strata.
        lazy: closures that are not stored.
    """
    removed, added = with_lazy_changes(stored, lazy or {})
    return Outcome(
        removed=removed,
        added=added,
        explicit_removed=explicit.removed,
        explicit_added=explicit.added,
        summary=Report(
            algorithm=choice.algorithm,
            reason=choice.reason,
            strata=strata,
            deleted=_size(explicit.removed),
            inserted=_size(explicit.added),
            removed=_size(stored[0]),
            added=_size(stored[1]),
            ignored=explicit.ignored,
            removed_rules=len(origin.change.removed),
            added_rules=len(origin.change.added),
            seconds=perf_counter() - origin.start,
        ),
    )


def _size(snapshot: Snapshot) -> int:
    return sum(snapshot.relations().values())


class Attempt(Protocol):
    """A prepared update, in a transaction that is still open."""

    job: Job
    strata: tuple[StratumReport, ...]

    def commit(self, algorithm: str, reason: str) -> Outcome:
        """Apply the update."""

    def discard(self, algorithm: str, reason: str) -> Outcome:
        """Undo the update, and return the outcome that it would have had."""


# --------------------------------------------------------------------- maintained


class Maintained:
    """The old materialisation with facts deleted and added."""

    def __init__(self, job: Job, update: Update, run: Run) -> None:
        self.job = job
        self.update = update
        self.run = run
        self.strata = tuple(report for report in run.reports if _has_work(report))

    def commit(self, algorithm: str, reason: str) -> Outcome:
        """Apply the update."""
        run = self.run
        outcome = self._outcome(algorithm, reason)
        self.job.engine.commit(
            deleted=run.deleted,
            added=run.added,
            explicit_removed=run.deletions,
            explicit_added=run.insertions,
        )
        return outcome

    def discard(self, algorithm: str, reason: str) -> Outcome:
        """Undo the update, and return the outcome that it would have had."""
        outcome = self._outcome(algorithm, reason)
        self.job.engine.rollback()
        return outcome

    def _outcome(self, algorithm: str, reason: str) -> Outcome:
        engine, run, job = self.job.engine, self.run, self.job
        lost, gained, *_ = run.changes()
        lazy: LazyChanges = {}
        if job.old.lazy or job.new.lazy:
            lazy = compare_lazy(
                LazyView(engine, run.materialised, job.old.lazy),
                LazyView(engine, run.updated, job.new.lazy),
                (lost, gained),
            )
        explicit = ExplicitChange(
            removed=engine.snapshot(run.deletions),
            added=engine.snapshot(run.insertions),
            ignored=self.update.ignored,
        )
        choice = Choice(algorithm, reason)
        stored = engine.snapshot(lost), engine.snapshot(gained)
        return outcome_of(job, choice, explicit, stored, self.strata, lazy)


def maintain(
    job: Job, update: Update, algorithm: Incremental, watch: Watch
) -> Maintained:
    """Maintain the old materialisation."""
    engine = job.engine
    undermined = job.bookkeeping.begin(engine, update, job.change, job.old, job.new)
    strata = job.new.strata
    if job.change.added:
        strata = strata_of(job.new.plans, frozenset(job.change.added))
    run = Run(engine, strata, update, undermined, watch, algorithm.modular)
    run.algorithm = algorithm.name
    job.bookkeeping.maintain(algorithm, run)
    return Maintained(job, update, run)


def _has_work(report: StratumReport) -> bool:
    """Return whether anything happened; facts of no stratum often just pass through."""
    return bool(
        report.index
        or report.overdeleted
        or report.inserted
        or report.forward_instances
    )


# -------------------------------------------------------------------------- built


class Built:
    """A new materialisation on a fresh engine, which replaces the old one."""

    def __init__(
        self,
        job: Job,
        fresh: Engine,
        explicit: ExplicitChange,
        strata: list[StratumReport],
    ) -> None:
        self.job = job
        self.fresh = fresh
        self.explicit = explicit
        self.strata = tuple(strata)

    def commit(self, algorithm: str, reason: str) -> Outcome:
        """Apply the update."""
        # The transaction only served to read the request; its sets are no longer
        # needed, and an engine adopts another between transactions.
        engine = self.job.engine
        lazy = self._lazy_changes()
        engine.rollback()
        return self._outcome(algorithm, reason, engine.adopt(self.fresh), lazy)

    def _lazy_changes(self) -> LazyChanges:
        engine, fresh, job = self.job.engine, self.fresh, self.job
        return compare_lazy(
            LazyView(engine, engine.materialised, job.old.lazy),
            LazyView(fresh, fresh.materialised, job.new.lazy),
        )

    def discard(self, algorithm: str, reason: str) -> Outcome:
        """Undo the update, and return the outcome that it would have had."""
        engine = self.job.engine
        # Engines are compared by adopting, so the old facts are materialised once more.
        nothing = engine.no_facts()
        watch = Watch()
        before = copy_explicit_facts(engine, watch, without=nothing, also=nothing)
        self.job.bookkeeping.materialise(before, self.job.old.plans, watch)
        lazy = self._lazy_changes()
        stored = before.adopt(self.fresh)
        engine.rollback()
        return self._outcome(algorithm, reason, stored, lazy)

    def _outcome(
        self,
        algorithm: str,
        reason: str,
        stored: tuple[Snapshot, Snapshot],
        lazy: LazyChanges,
    ) -> Outcome:
        unfit = self.job.new.unfit
        if unfit:
            names = ", ".join(sorted({f"`{each.pattern.relation}`" for each in unfit}))
            reason = (
                f"{reason}; closures of {names} are left to their rules, as other "
                "recursive rules add to them in every round"
            )
        choice = Choice(algorithm, reason)
        return outcome_of(self.job, choice, self.explicit, stored, self.strata, lazy)


def build(job: Job, fresh: Engine, explicit: ExplicitChange, watch: Watch) -> Built:
    """Materialise the new program on a fresh engine with the new explicit facts."""
    unfit: set[Closure] = set()
    strata = job.bookkeeping.materialise(fresh, job.new.plans, watch, unfit)
    if unfit:
        job = replace(job, new=job.without_modules(frozenset(unfit)))
    return Built(job, fresh, explicit, strata)


# ------------------------------------------------------------------------------- driver


@dataclass(frozen=True, slots=True, eq=False)
class NewRules:
    """The rules of a program that was changed.

    Attributes:
        written: the rules as written, one head each.
        claimed: the normal rules whose instances modules do not count.
    """

    written: tuple[Rule, ...]
    claimed: frozenset[Rule] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class NewCliques:
    """Constants whose representative changes, in tables of one column.

    Attributes:
        members: the constants.
        before, after: their representatives before and after.
    """

    members: pa.Table
    before: pa.Table
    after: pa.Table


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """The changes that an update is about to make, besides those of facts.

    Attributes:
        rules: the new rules; None if they do not change.
        cliques: the changed representatives; None if they do not change.
    """

    rules: NewRules | None = None
    cliques: NewCliques | None = None


class Driver(ABC):
    """Rules and their materialised facts, on one engine.

    Attributes:
        engine: the engine. Only this object may change its facts.
        budget: the limits of each update.
        progress: called after every round.
        journal: called with the changes of an update before any is made; if it raises,
            the update fails.
    """

    def __init__(
        self, engine: Engine, budget: Budget | None, progress: Progress | None
    ) -> None:
        self.engine = engine
        self.budget = budget
        self.progress = progress
        self.journal: Callable[[StoredChange, Entry], None] | None = None
        self._history = History()

    # -- properties

    @property
    @abstractmethod
    def book(self) -> RuleBook:
        """The rules, as written and in normal form."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in normal form, auxiliary ones included."""
        return tuple(self.book.normal.values())

    @property
    def written_rules(self) -> tuple[Rule, ...]:
        """The rules as written, one head each."""
        return tuple(self.book.written.values())

    @property
    @abstractmethod
    def strata(self) -> tuple[StratumPlan, ...]:
        """The plans of the strata, in order."""

    @abstractmethod
    def require_algorithm(self, name: str) -> None:
        """Refuse an algorithm that does not exist or is not supported here.

        Raises:
            AlgorithmError: with the supported algorithms.
        """

    # -- changes

    def update(
        self,
        *,
        delete: Mapping[str, pa.Table] | None = None,
        insert: Mapping[str, pa.Table] | None = None,
        remove_rules: Iterable[Rule] = (),
        add_rules: Iterable[Rule] = (),
        replace: frozenset[str] = frozenset(),
        algorithm: str = AUTO,
    ) -> Outcome:
        """Change facts and rules in one step, or nothing at all.

        A row that is both deleted and inserted is explicit afterwards.

        Args:
            delete: rows to make explicit no longer, by relation.
            insert: rows to make explicit, by relation.
            remove_rules: rules of the program, up to renaming of variables.
            add_rules: new rules; those that the program already has are ignored.
            replace: relations whose explicit facts are replaced by the inserted rows.
            algorithm: one of `evermat.maintenance.algorithms.NAMES`.

        Raises:
            EvermatError: the request cannot be carried out; nothing has changed.
        """
        request = Request(delete or {}, insert or {}, remove_rules, add_rules, replace)
        return self._carry_out(request, algorithm, dry=False)

    def plan(
        self,
        *,
        delete: Mapping[str, pa.Table] | None = None,
        insert: Mapping[str, pa.Table] | None = None,
        remove_rules: Iterable[Rule] = (),
        add_rules: Iterable[Rule] = (),
        replace: frozenset[str] = frozenset(),
        algorithm: str = AUTO,
    ) -> Outcome:
        """Return the outcome of an `update` with these arguments; nothing changes."""
        request = Request(delete or {}, insert or {}, remove_rules, add_rules, replace)
        return self._carry_out(request, algorithm, dry=True)

    def rematerialise(self) -> Outcome:
        """Materialise everything again from the explicit facts."""
        return self.update(algorithm=REMATERIALISE)

    # -- facts stored elsewhere

    @abstractmethod
    def take_up(
        self, rules: Iterable[Rule], claimed: Iterable[str] | None = None
    ) -> None:
        """Prepare to restore stored facts: for engines without facts.

        The engine then knows all relations of the rules, and can reinstate the facts.
        """

    @property
    def claimed(self) -> frozenset[Rule]:
        """The normal rules whose instances modules do not count."""
        return frozenset()

    # -- updates

    @abstractmethod
    def _carry_out(self, request: Request, algorithm: str, *, dry: bool) -> Outcome:
        """Carry out an update, or only compute its outcome."""

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Open a transaction of the engine, which ends inside; an error undoes it."""
        engine = self.engine
        try:
            engine.begin()
            yield
        except BaseException as error:
            if isinstance(error, MemoryError):
                # Release the memory of the failed work, which is needed for undoing it.
                clear_frames(error.__traceback__)
            with suppress(EngineUseError):  # the transaction may have ended already
                engine.rollback()
            raise
        finally:
            engine.monitor = None

    @contextmanager
    def _recorded(self, entry: Callable[[], Entry]) -> Iterator[None]:
        """Have the engine pass the changes that it is about to make to the journal."""
        journal, engine = self.journal, self.engine
        if journal is None:
            yield
            return
        added = entry()
        engine.journal = lambda change: journal(change, added)
        try:
            yield
        finally:
            engine.journal = None
