"""The driver for programs without equality, or with equality as plain rules.

It reads a request, runs an algorithm inside a transaction of the engine, and commits.
Its own state changes only after the engine has committed.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

from evermat.explain.proofs import RuleLook
from evermat.maintenance.algorithms import (
    AUTO,
    INCREMENTAL,
    REMATERIALISE,
    require_algorithm,
    require_no_monotone,
)
from evermat.maintenance.cost_model import (
    Choice,
    History,
    Situation,
    choose,
    learnt,
    reason_to_give_up,
)
from evermat.maintenance.counting import Kept, require_nonrecursive
from evermat.maintenance.driver import (
    Bookkeeping,
    Driver,
    Entry,
    ExplicitChange,
    Job,
    NewRules,
    build,
    maintain,
)
from evermat.maintenance.lazy_closures import LazyClosureReader, write_out
from evermat.maintenance.limits import Budget, CostLimitReached, Watch
from evermat.maintenance.modules import ClosureModule, find_modules
from evermat.maintenance.rules import RuleBook, compile_book, unclaimed
from evermat.maintenance.seminaive import copy_explicit_facts, load_explicit
from evermat.maintenance.update import (
    Ignored,
    Request,
    declare,
    declare_rules,
    read_request,
    rows_in,
)
from evermat.runtime.interrupts import unseal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evermat.algebra import Closure, Engine
    from evermat.algebra.compile import StratumPlan
    from evermat.lang.syntax import Rule
    from evermat.maintenance.counting import CountersSetting
    from evermat.maintenance.driver import Attempt
    from evermat.maintenance.limits import Progress
    from evermat.maintenance.modules import Module
    from evermat.maintenance.rules import CompiledRules
    from evermat.maintenance.update import Outcome, Update


@dataclass(frozen=True, slots=True, eq=False)
class _Done:
    """A finished attempt, the choice of its algorithm, and the history after it.

    Attributes:
        start: the time when the request had been read; None for the first facts, where
            reading takes most of the time.
    """

    job: Job
    attempt: Attempt
    choice: Choice
    history: History
    start: float | None


class Materialisation(Driver):
    """Rules and their materialised facts, on one engine."""

    def __init__(
        self,
        engine: Engine,
        *,
        counters: CountersSetting = True,
        modules: bool = False,
        lazy: bool = True,
        budget: Budget | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Take over an empty engine.

        Args:
            engine: an engine without facts.
            counters: count all derivations of each fact, only the nonrecursive ones, or
                none.
            modules: evaluate rules by modules where possible; needs both counters.
            lazy: store closures that no other rule reads as external facts, and expand
                them when they are read.
            budget: the limits of each update.
            progress: called after every round.
        """
        super().__init__(engine, budget, progress)
        kept = Kept.of(counters)
        self._bookkeeping = Bookkeeping(kept)
        self._kept = kept
        self._has_modules = modules and kept is Kept.BOTH
        self._may_be_lazy = lazy
        self._compiled = compile_book(RuleBook())
        self._look: tuple[RuleBook, RuleLook] | None = None
        self._returning = 0

    # -- properties

    @property
    def book(self) -> RuleBook:
        """The rules, as written and in normal form."""
        return self._compiled.book

    @property
    def strata(self) -> tuple[StratumPlan, ...]:
        """The plans of the strata of all rules, in order."""
        return self._compiled.all_plans

    @property
    def modules(self) -> tuple[Module, ...]:
        """The modules in use."""
        return (*self._compiled.modules, *self._compiled.lazy)

    @property
    def reading(self) -> LazyClosureReader:
        """A reader of the facts that expands lazy closures."""
        compiled = self._compiled
        return LazyClosureReader(self.engine, compiled.lazy, compiled.modules)

    @property
    def rule_look(self) -> RuleLook:
        """The rules for explaining facts, compiled on first use."""
        if self._look is None or self._look[0] is not self.book:
            self._look = self.book, RuleLook(self.rules)
        return self._look[1]

    def require_algorithm(self, name: str) -> None:
        """Refuse an algorithm that does not exist or is not supported here.

        Raises:
            AlgorithmError: with the supported algorithms.
            RecursiveProgramError: Counting was requested for recursive rules.
        """
        self._require(name, self._compiled)

    def _require(self, name: str, compiled: CompiledRules) -> None:
        require_algorithm(name, self._kept)
        if name == "counting":
            require_nonrecursive(compiled.all_plans)

    # -- changes

    def _carry_out(self, request: Request, algorithm: str, *, dry: bool) -> Outcome:
        with self._work(request, algorithm) as done:
            choice = done.choice
            if dry:
                return done.attempt.discard(choice.algorithm, choice.reason)
            with self._recorded(lambda: self._entry(done.job)):
                outcome = done.attempt.commit(choice.algorithm, choice.reason)
        self._compiled = done.job.new
        self._history = self._learn(done, outcome)
        self._returning = self._returned(done, outcome)
        if done.start is None and self._kept is Kept.BOTH:
            self.engine.prepare_updates(self._compiled.strata)
        return outcome

    def take_up(
        self, rules: Iterable[Rule], claimed: Iterable[str] | None = None
    ) -> None:
        """Prepare to restore stored facts: for engines without facts.

        The engine then knows all relations of the rules, and can reinstate the facts.

        Args:
            rules: the program.
            claimed: the rules that modules evaluated, in canonical form; other closures
                are evaluated by their rules.
        """
        book, _ = self.book.change(remove=(), add=rules)
        new = self._compile(book, is_first=False)
        if claimed is not None:
            unfit = unclaimed(new, frozenset(claimed))
            if unfit:
                new = self._compile(book, is_first=False, unfit=unfit)
        declare_rules(self.engine, new.book.normal.values())
        self._compiled = new

    def taken_up(self, instances: int) -> None:
        """Continue from the facts that the engine has reinstated.

        Args:
            instances: the number of rule instances of these facts.
        """
        sizes = self.engine.statistics().values()
        self._history = History(
            explicit=sum(size["explicit"] for size in sizes),
            facts=sum(size["facts"] for size in sizes),
            instances=float(instances),
        )

    @property
    def claimed(self) -> frozenset[Rule]:
        """The normal rules whose instances modules do not count."""
        return self._compiled.claimed

    # -- updates

    def _entry(self, job: Job) -> Entry:
        if job.new is self._compiled:
            return Entry()
        return Entry(NewRules(job.new.book.in_normal_order(), job.new.claimed))

    @contextmanager
    def _work(self, request: Request, algorithm: str) -> Iterator[_Done]:
        """Run an update; the caller ends the transaction, and errors undo it."""
        start = perf_counter()
        book, change = self.book.change(
            remove=request.remove_rules, add=request.add_rules
        )
        new = self._compiled
        if not change.is_empty():
            new = self._compile(book, is_first=self._is_first(algorithm))
        elif book is not self.book:
            # A rule was added or removed whose normal form another rule has too.
            new = replace(new, book=book)
        if algorithm != AUTO:
            self._require(algorithm, new)
        if self._kept is not Kept.BOTH and new is not self._compiled:
            require_no_monotone(new.all_plans)
        if new is not self._compiled:
            self._write_out_for(new)
        engine = self.engine
        job = Job(
            engine,
            self._bookkeeping,
            self._compiled,
            new,
            change,
            start,
            lambda unfit: self._compile(
                new.book, is_first=self._is_first(algorithm), unfit=unfit | new.unfit
            ),
        )
        watch = Watch(self.budget, self.progress)
        with self._transaction():
            self._declare(request, new)
            engine.monitor = watch.monitor
            yield self._attempt(job, request, algorithm, watch)

    def _is_first(self, algorithm: str) -> bool:
        """Return whether an update only loads facts, and keeps no derived ones."""
        return algorithm in {AUTO, REMATERIALISE} and not self._history.explicit

    def _compile(
        self,
        book: RuleBook,
        *,
        is_first: bool,
        unfit: frozenset[Closure] | None = None,
    ) -> CompiledRules:
        """Compile rules; a closure may be lazy if it was, or if its rules are new."""
        if not self._has_modules:
            return compile_book(book)
        old = self._compiled
        if unfit is None:
            # The closures of the old program: no rule of theirs may change unnoticed.
            unfit = old.unfit
        # Other facts of the same relation may belong to a closure that is stored.
        lazy = {module.closure.pattern for module in old.lazy}

        def may_be_lazy(module: ClosureModule) -> bool:
            was_lazy = module.closure.pattern in lazy
            if not self._may_be_lazy:
                return False
            return is_first or was_lazy or old.rules.isdisjoint(module.rules)

        return compile_book(book, find_modules, may_be_lazy, unfit)

    def _write_out_for(self, new: CompiledRules) -> None:
        """Write out lazy closures that the new program reads."""
        still_lazy = {module.closure.pattern for module in new.lazy}
        self._write_out(
            [
                module
                for module in self._compiled.lazy
                if module.closure.pattern not in still_lazy
                and not new.rules.isdisjoint(module.rules)
            ]
        )

    def write_out(self) -> None:
        """Write out all lazy closures, for a caller that takes over the facts."""
        self._write_out(self._compiled.lazy)

    def _write_out(self, wanted: Sequence[ClosureModule]) -> None:
        old = self._compiled
        if wanted:
            # These facts are not new, but writing them takes time and memory.
            budget = self.budget or Budget()
            limits = replace(budget, rounds=None, facts=None, instances=None)
            compiled = compile_book(
                old.book,
                find_modules,
                lambda module: any(
                    module.rules == other.rules
                    for other in old.lazy
                    if other not in wanted
                ),
                old.unfit,
            )
            self.engine.monitor = Watch(limits).monitor
            try:
                write_out(self.engine, wanted)
            finally:
                self.engine.monitor = None
            self._compiled = compiled
            self.engine.is_torn = False
            unseal()
            # No update adds these facts, so they are not part of a report.
            sizes = self.engine.statistics().values()
            stored = sum(size["facts"] for size in sizes)
            self._history = self._history._replace(facts=stored)

    def _attempt(
        self, job: Job, request: Request, algorithm: str, watch: Watch
    ) -> _Done:
        if self._is_first(algorithm):
            return self._load(job, request, watch)
        update = self._read(request, job)
        start = perf_counter()
        choice = Choice(algorithm, "asked for")
        if algorithm == AUTO:
            choice = choose(self._situation(job, update), self._history)
        if choice.algorithm == REMATERIALISE:
            return self._rebuild(job, update, choice, watch)
        watch.cost_limit = choice.cost_limit
        self.engine.monitor = watch.monitor
        try:
            attempt = maintain(job, update, INCREMENTAL[choice.algorithm], watch)
        except CostLimitReached as signal:
            return self._start_again(job, request, choice, watch, signal)
        return _Done(job, attempt, choice, self._history, start)

    def _load(self, job: Job, request: Request, watch: Watch) -> _Done:
        """Load the first facts, without a comparison to earlier ones."""
        engine = self.engine
        fresh = load_explicit(engine, watch, request.insert)
        explicit = ExplicitChange(
            removed=engine.snapshot(engine.no_facts()),
            added=fresh.snapshot(fresh.explicit),
            ignored=Ignored(
                deletions=rows_in(request.delete), rules=job.change.ignored
            ),
        )
        choice = Choice(REMATERIALISE, "there were no facts before")
        attempt = build(job, fresh, explicit, watch)
        return _Done(attempt.job, attempt, choice, self._history, start=None)

    def _rebuild(self, job: Job, update: Update, choice: Choice, watch: Watch) -> _Done:
        engine, start = self.engine, perf_counter()
        fresh = copy_explicit_facts(
            engine, watch, without=update.deletions, also=update.insertions
        )
        explicit = ExplicitChange(
            removed=engine.snapshot(update.deletions),
            added=engine.snapshot(update.insertions),
            ignored=update.ignored,
        )
        attempt = build(job, fresh, explicit, watch)
        return _Done(attempt.job, attempt, choice, self._history, start)

    def _start_again(
        self,
        job: Job,
        request: Request,
        tried: Choice,
        watch: Watch,
        signal: CostLimitReached,
    ) -> _Done:
        """Abandon maintenance, and materialise everything again."""
        self.engine.rollback()
        self.engine.begin()
        self._declare(request, job.new)
        update = self._read(request, job)
        sizes = update.deletions.size(), update.insertions.size()
        if tried.is_search:
            history, reason = self._history.without_search(), tried.reason
        else:
            history = self._history.reached(sizes[0], signal.expected)
            reason = reason_to_give_up(self._history, *sizes, signal.expected)
        choice = Choice(
            REMATERIALISE,
            f"`{tried.algorithm}` was abandoned after {watch.instances:,} rule "
            f"instances; {reason}",
        )
        rest = Watch(self.budget, self.progress)
        rest.start = watch.start
        self.engine.monitor = rest.monitor
        done = self._rebuild(job, update, choice, rest)
        return replace(done, history=history)

    # -- reading requests

    def _declare(self, request: Request, compiled: CompiledRules) -> None:
        """Declare the relations of rules and rows, and check their arities."""
        is_new = compiled is not self._compiled
        declare(self.engine, request, compiled.book.normal.values() if is_new else ())

    def _read(self, request: Request, job: Job) -> Update:
        engine = self.engine
        return read_request(
            engine,
            request,
            job.change,
            lambda facts: engine.settle(facts & engine.explicit),
        )

    # -- learning

    def _situation(self, job: Job, update: Update) -> Situation:
        return Situation(
            deletions=update.deletions.size(),
            insertions=update.insertions.size(),
            changes_rules=not job.change.is_empty(),
            is_recursive=bool(job.new.recursive or job.new.modules),
            kept=self._kept,
            has_lazy_closures=bool(job.new.lazy),
            returning=self._returning,
            doubtful=self._doubtful(job.new) if self._returning else 0,
        )

    def _doubtful(self, compiled: CompiledRules) -> int:
        """Count the external facts of modules that only recursive rules derive."""
        engine = self.engine
        return sum(
            engine.nonrecursive_counts.zero(engine.counted(each.closure.pattern)).size()
            for each in compiled.modules
            if isinstance(each, ClosureModule)
        )

    def _returned(self, done: _Done, outcome: Outcome) -> int:
        """Count the facts in strata with modules that were only temporarily deleted."""
        if not done.job.change.is_empty() or done.choice.algorithm == REMATERIALISE:
            return 0
        if done.choice.algorithm != "dred-c" or not outcome.summary.deleted:
            return self._returning
        plans = done.job.new.plans
        # Without other recursive rules, facts that a module deletes are not reinserted.
        modular = {
            at
            for at, plan in enumerate(plans, start=1)
            if plan.modules and plan.recursive.rules
        }
        return sum(
            min(stratum.overdeleted, stratum.inserted)
            for stratum in outcome.summary.strata
            if stratum.index in modular
        )

    def _learn(self, done: _Done, outcome: Outcome) -> History:
        seconds = None if done.start is None else perf_counter() - done.start
        relations = len(self.engine.relations())
        is_search = done.choice.is_search
        return learnt(
            done.history, outcome.summary, seconds, relations, is_search=is_search
        )
