"""The driver for programs with equality that is kept by rewriting.

The counterpart of `evermat.maintenance.materialisation`: the same calls, but the engine
holds one fact for all facts that differ only in equal constants.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, cast

from evermat.algebra import EngineUseError
from evermat.lang.equality import SAME
from evermat.maintenance.algorithms import (
    AUTO,
    INCREMENTAL,
    REMATERIALISE,
    AlgorithmError,
    require_algorithm,
)
from evermat.maintenance.choose import Choice, History, Situation, choose
from evermat.maintenance.compiled_rules import RuleBook
from evermat.maintenance.equality_insertion import LargerComponent
from evermat.maintenance.equality_rules import EqualityProgram
from evermat.maintenance.equality_state import (
    LOST,
    MOVED,
    given_among,
    values_among,
)
from evermat.maintenance.equality_update import EqualityJob, EqualityUpdate
from evermat.maintenance.materialisation import UnknownRelationError
from evermat.maintenance.modules import can_close
from evermat.maintenance.state import CliqueChange, Ignored, Outcome, Report
from evermat.maintenance.watch import OutOfPatience, Watch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from evermat.algebra import (
        EqualityEngine,
        Facts,
        Representatives,
        SettledFacts,
        Snapshot,
    )
    from evermat.lang.syntax import Rule
    from evermat.maintenance.compiled_rules import RuleChange
    from evermat.maintenance.state import StratumReport
    from evermat.maintenance.watch import Budget, Progress
    from evermat.rule_plans import StratumPlan

ALGORITHMS = (AUTO, REMATERIALISE, "bf", "dred", "fp")
"""Those that can be used. The component of equality is always maintained by B/F^≈; the
name is that of the algorithm for the other rules."""


class _Request:
    """One update as it was asked for."""

    def __init__(
        self,
        delete: Mapping[str, pa.Table] | None,
        insert: Mapping[str, pa.Table] | None,
        remove_rules: Iterable[Rule],
        add_rules: Iterable[Rule],
    ) -> None:
        self.start = perf_counter()
        self.delete = delete or {}
        self.insert = insert or {}
        self.remove_rules = tuple(remove_rules)
        self.add_rules = tuple(add_rules)


class _Plan:
    """One update, read: the rules before and after, and the facts that change."""

    def __init__(
        self,
        book: RuleBook,
        change: RuleChange,
        program: EqualityProgram,
        arities: dict[str, int],
    ) -> None:
        self.arities = arities
        self.book = book
        self.change = change
        self.program = program
        self.component: frozenset[Rule] = frozenset()
        self.ignored = Ignored()
        self.choice = Choice(AUTO, "")
        self.history = History()


@dataclass(slots=True)
class _Facts:
    """What an update removed and added, and the given facts that it changed."""

    removed: Snapshot
    added: Snapshot
    deleted: Snapshot
    inserted: Snapshot


class EqualityMaterialisation:
    """Facts, rules and all that follows; equal constants have one representative."""

    def __init__(
        self,
        engine: EqualityEngine,
        *,
        modules: bool = True,
        budget: Budget | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Take over an engine without facts, or one to be materialised anew.

        Args:
            engine: where the facts are.
            modules: materialise closures as such, not by matching their rules.
            budget: limits of every single update.
            progress: is called after every round.
        """
        self.engine = engine
        self.budget = budget
        self.progress = progress
        self._has_modules = modules and can_close(engine)
        self.representatives: Representatives = engine.representatives()
        self._book = RuleBook()
        self._program = EqualityProgram(())
        self._arities: dict[str, int] = {}
        self._history = History()
        self._values = values_among(engine.relations())
        self._is_foreign = False
        """Whether the engine's counts are those of another way to maintain it."""

    @classmethod
    def taking_over(
        cls,
        engine: EqualityEngine,
        rules: Iterable[Rule],
        *,
        modules: bool = True,
        budget: Budget | None = None,
        progress: Progress | None = None,
    ) -> EqualityMaterialisation:
        """Go on with an engine that was maintained without equality.

        Its next update must be a rematerialisation.
        """
        new = cls(engine, modules=modules, budget=budget, progress=progress)
        new._is_foreign = True
        sizes = engine.statistics().values()
        new._history = History(
            given=sum(size["given"] for size in sizes),
            facts=sum(size["facts"] for size in sizes),
        )
        new._book, _ = new._book.change(remove=(), add=rules)
        return new

    # -- what there is

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in normal form, auxiliary ones included."""
        return tuple(self._book.normal.values())

    @property
    def given_rules(self) -> tuple[Rule, ...]:
        """The rules as they were given, one head each."""
        return tuple(self._book.given.values())

    @property
    def strata(self) -> tuple[StratumPlan, ...]:
        """The plans of the rules that equality does not depend on, in order."""
        values = self._program.values(self.representatives)
        normal = self._program.under(values, self._program.behind(values))
        return normal.plans(self._program.rule_set)

    def require_algorithm(self, name: str) -> None:
        """Refuse an algorithm that does not exist or cannot work here.

        Raises:
            AlgorithmError: with the algorithms that can.
        """
        require_algorithm(name, counters=True)
        if name not in ALGORITHMS:
            raise AlgorithmError(
                f"`{name}` counts derivations, which representatives do not keep",
                law="with `equality='rewrite'` no counters are kept",
                help=f"choose from {', '.join(ALGORITHMS)}",
            )

    # -- changes

    def update(
        self,
        *,
        delete: Mapping[str, pa.Table] | None = None,
        insert: Mapping[str, pa.Table] | None = None,
        remove_rules: Iterable[Rule] = (),
        add_rules: Iterable[Rule] = (),
        algorithm: str = AUTO,
    ) -> Outcome:
        """Change facts and rules in one step, or nothing at all.

        Raises:
            EvermatError: the request cannot be carried out; nothing has changed.
        """
        request = _Request(delete, insert, remove_rules, add_rules)
        return self._carry_out(request, algorithm, dry=False)

    def plan(
        self,
        *,
        delete: Mapping[str, pa.Table] | None = None,
        insert: Mapping[str, pa.Table] | None = None,
        remove_rules: Iterable[Rule] = (),
        add_rules: Iterable[Rule] = (),
        algorithm: str = AUTO,
    ) -> Outcome:
        """What `update` would do with the same arguments; nothing changes."""
        request = _Request(delete, insert, remove_rules, add_rules)
        return self._carry_out(request, algorithm, dry=True)

    def rematerialise(self) -> Outcome:
        """Derive everything again from the given facts."""
        return self.update(algorithm=REMATERIALISE)

    # -- how they are made

    def _carry_out(self, request: _Request, algorithm: str, *, dry: bool) -> Outcome:
        self.require_algorithm(algorithm)
        component: frozenset[Rule] = frozenset()
        while True:
            self.engine.begin()
            try:
                return self._attempt(request, algorithm, component, dry=dry)
            except LargerComponent as larger:
                self.engine.rollback()
                component = larger.component
            except OutOfPatience:
                self.engine.rollback()
                algorithm = REMATERIALISE
            except BaseException:
                with suppress(EngineUseError):  # the transaction may have ended
                    self.engine.rollback()
                raise
            finally:
                self.engine.monitor = None

    def _attempt(
        self,
        request: _Request,
        algorithm: str,
        component: frozenset[Rule],
        *,
        dry: bool,
    ) -> Outcome:
        plan = self._read_rules(request)
        plan.component = component
        job = self._read(request, plan)
        plan.choice = self._choose(algorithm, plan, job)
        watch = Watch(self.budget, self.progress, plan.choice.patience)
        watch.start = request.start
        self.engine.monitor = watch.monitor
        if plan.choice.algorithm == REMATERIALISE:
            return self._rebuild(request, plan, job, watch, dry=dry)
        return self._maintain(request, plan, job, watch, dry=dry)

    def _choose(self, algorithm: str, plan: _Plan, job: EqualityJob) -> Choice:
        values = values_among(self.engine.relations())
        if values != self._values and not self.representatives.is_identity():
            return Choice(REMATERIALISE, "strings are literals from now on")
        if self._is_first:
            return Choice(REMATERIALISE, "there were no facts before")
        if algorithm != AUTO:
            return Choice(algorithm, "asked for")
        situation = Situation(
            withdrawn=job.deletions.size(),
            given=job.insertions.size(),
            changes_rules=not plan.change.is_empty(),
            is_recursive=True,
            has_counters=False,
        )
        choice = choose(situation, self._history)
        if choice.algorithm == REMATERIALISE:
            return choice
        return replace(choice, algorithm="bf", reason="few facts change")

    def _maintain(
        self,
        request: _Request,
        plan: _Plan,
        job: EqualityJob,
        watch: Watch,
        *,
        dry: bool,
    ) -> Outcome:
        engine = self.engine
        update = EqualityUpdate(engine, job, self.representatives, watch)
        update.delete()
        update.insert()
        update.maintain_others(INCREMENTAL[plan.choice.algorithm].maintain)
        run = update.run
        lost, gained = run.changes()
        sides = self._sides(update, lost, gained)
        facts = _Facts(
            removed=engine.snapshot(lost),
            added=engine.snapshot(gained),
            deleted=engine.snapshot(job.deletions),
            inserted=engine.snapshot(job.insertions),
        )
        outcome = self._outcome(request, plan, facts, sides, tuple(run.reports))
        if dry:
            engine.rollback()
            return outcome
        update.commit()
        self._accept(plan, update.after, outcome)
        return outcome

    def _rebuild(
        self,
        request: _Request,
        plan: _Plan,
        job: EqualityJob,
        watch: Watch,
        *,
        dry: bool,
    ) -> Outcome:
        engine = self.engine
        fresh = cast("EqualityEngine", engine.fresh())
        fresh.monitor = watch.monitor
        inserted = engine.snapshot(job.insertions)
        if not self._is_first:
            implied = engine.no_facts() if self._is_foreign else engine.marked()
            engine.copy_explicit(
                fresh,
                without=engine.settle(job.deletions | implied),
                also=job.insertions,
            )
        else:
            fresh.load(request.insert.items())
            inserted = fresh.snapshot(fresh.explicit)
        nothing = fresh.no_facts()
        anew = replace(job, old=frozenset(), deletions=nothing, insertions=nothing)
        fresh.begin()
        merging = EqualityUpdate(fresh, anew, fresh.representatives(), watch)
        known = merging.merge_given()
        fresh.begin()
        update = EqualityUpdate(fresh, anew, known, watch)
        update.materialise_component()
        reports = update.materialise_others(watch)
        facts = _Facts(
            removed=engine.snapshot(engine.no_facts()),
            added=engine.snapshot(engine.no_facts()),
            deleted=engine.snapshot(job.deletions),
            inserted=inserted,
        )
        strata = (*merging.run.reports, *update.run.reports, *reports)
        moved = engine.moved(self.representatives, update.after, MOVED)
        everything = None
        if dry or not moved.is_empty():
            # What facts stand for has changed, so all facts are compared if asked.
            everything = CliqueChange(
                self.representatives,
                update.after,
                engine.snapshot(engine.materialised),
                fresh.snapshot(fresh.materialised),
            )
        engine.rollback()
        if dry and everything is not None:
            return self._outcome(request, plan, facts, everything, strata)
        facts.removed, facts.added = engine.adopt(fresh)
        change = everything or CliqueChange(
            self.representatives, update.after, facts.removed, facts.added
        )
        outcome = self._outcome(request, plan, facts, change, strata)
        self._accept(plan, update.after, outcome)
        return outcome

    def _accept(
        self, plan: _Plan, representatives: Representatives, outcome: Outcome
    ) -> None:
        self._book = plan.book
        self._program = plan.program
        self._arities = plan.arities
        self._is_foreign = False
        self.representatives = representatives
        self._values = values_among(self.engine.relations())
        self._history = _learnt(self._history, plan, outcome.report)

    # -- what changed

    def _sides(
        self, update: EqualityUpdate, lost: SettledFacts, gained: SettledFacts
    ) -> CliqueChange:
        engine = self.engine
        before, after = update.before, update.after
        moved = engine.moved(before, after, MOVED)
        old, new = lost, gained
        if not moved.is_empty():
            ours = engine.settle(moved | engine.rewrite(moved, after))
            theirs = engine.settle(moved | engine.rewrite(moved, before))
            old_marks = engine.rewrite(ours, before)
            new_marks = engine.rewrite(theirs, after)
            old_facts = engine.mentioning(old_marks, engine.materialised)
            new_facts = engine.mentioning(new_marks, update.run.updated)
            old = engine.settle(lost | old_facts)
            new = engine.settle(gained | new_facts)
        return CliqueChange(before, after, engine.snapshot(old), engine.snapshot(new))

    def _outcome(
        self,
        request: _Request,
        plan: _Plan,
        facts: _Facts,
        change: CliqueChange,
        strata: tuple[StratumReport, ...],
    ) -> Outcome:
        return Outcome(
            removed=facts.removed,
            added=facts.added,
            explicit_removed=facts.deleted,
            explicit_added=facts.inserted,
            report=Report(
                algorithm=plan.choice.algorithm,
                reason=plan.choice.reason,
                strata=strata,
                deleted=_size(facts.deleted),
                inserted=_size(facts.inserted),
                removed=_size(facts.removed),
                added=_size(facts.added),
                ignored=plan.ignored,
                removed_rules=len(plan.change.removed),
                added_rules=len(plan.change.added),
                seconds=perf_counter() - request.start,
            ),
            cliques=change,
        )

    # -- reading requests

    @property
    def _is_first(self) -> bool:
        """Whether no facts were given so far."""
        return not any(size["given"] for size in self.engine.statistics().values())

    def _read_rules(self, request: _Request) -> _Plan:
        engine = self.engine
        book, change = self._book.change(
            remove=request.remove_rules, add=request.add_rules
        )
        self._declare(request, book, change)
        engine.declare(SAME, 2)
        engine.declare(LOST, 1)
        engine.declare(MOVED, 1)
        arities = _visible(engine.relations())
        if change.is_empty() and arities == self._arities:
            return _Plan(book, change, self._program, arities)
        program = EqualityProgram.of(book, arities)
        for rule in program.rules:
            engine.declare(rule.head.predicate, rule.head.arity)
        if program.rule_set == self._program.rule_set:
            program = self._program
        return _Plan(book, change, program, arities)

    def _declare(self, request: _Request, book: RuleBook, change: RuleChange) -> None:
        """Make relations of rules and rows known, and refuse what does not fit."""
        engine = self.engine
        for rule in book.normal.values() if change.added else ():
            for atom in (rule.head, *rule.positive_atoms(), *rule.negated_atoms()):
                engine.declare(atom.predicate, atom.arity)
        known = engine.relations()
        for relation in request.delete:
            if relation not in known:
                raise UnknownRelationError(relation)
        for tables in (request.delete, request.insert):
            for relation, table in tables.items():
                engine.declare(relation, table.num_columns)

    def _read(self, request: _Request, plan: _Plan) -> EqualityJob:
        engine = self.engine
        # The first facts are loaded as they are, and not compared with any.
        wanted = self._union(
            engine.intern(relation, table)
            for relation, table in ({} if self._is_first else request.insert).items()
            if table.num_rows
        )
        unwanted = self._union(
            engine.find(relation, table)
            for relation, table in request.delete.items()
            if table.num_rows
        )
        deletions = engine.settle(self._given(unwanted) - wanted)
        insertions = engine.settle(wanted - self._given(wanted))
        rows = sum(table.num_rows for table in request.delete.values())
        plan.ignored = Ignored(
            deletions=rows - deletions.size(),
            insertions=wanted.size() - insertions.size(),
            rules=plan.change.ignored,
        )
        old, new = self._program.rule_set, plan.program.rule_set
        together = plan.program
        if old is not new and not old <= new:
            together = EqualityProgram((*plan.program.rules, *self._program.rules))
        values = together.values(self.representatives)
        component = together.behind(values)
        if plan.component:
            component |= plan.component
        return EqualityJob(
            program=together,
            old=old,
            new=new,
            component=component,
            deletions=deletions,
            insertions=insertions,
            modules=self._has_modules,
        )

    def _given(self, facts: SettledFacts) -> SettledFacts:
        if self._is_foreign:
            return self.engine.settle(facts & self.engine.explicit)
        return given_among(self.engine, facts)

    def _union(self, sets: Iterable[SettledFacts]) -> SettledFacts:
        union: Facts = self.engine.no_facts()
        for part in sets:
            union |= part
        return self.engine.settle(union)


def _learnt(history: History, plan: _Plan, report: Report) -> History:
    instances = report.forward_instances + report.backward_instances
    history = history.counted(
        given=report.inserted - report.deleted, facts=report.added - report.removed
    )
    if plan.choice.algorithm == REMATERIALISE:
        deriving = sum(sum(each.seconds.values()) for each in report.strata)
        before = history.given - report.inserted + report.deleted
        before += history.facts - report.added + report.removed
        return history.restarted(instances, deriving, report.seconds, before)
    return history.maintained(report.deleted, instances, report.seconds)


def _size(snapshot: Snapshot) -> int:
    return sum(snapshot.relations().values())


def _visible(arities: Mapping[str, int]) -> dict[str, int]:
    return {name: arity for name, arity in arities.items() if name[:1] != "~"}
