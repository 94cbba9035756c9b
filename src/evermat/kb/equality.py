"""Equality in a knowledge base: its modes, and the driver for rewriting.

| mode      | meaning                                                                |
| --------- | ---------------------------------------------------------------------- |
| `off`     | `same_as` and `owl:sameAs` are ordinary predicates                     |
| `axioms`  | rules are added that make equality a congruence; the baseline          |
| `rewrite` | a representative replaces all constants that are equal to it           |
| `auto`    | `off` until a rule or a fact mentions equality, then `rewrite`         |

`EqualityMaterialisation` is the counterpart of `Materialisation` in
`evermat.kb.materialisation`, with the same methods; its engine stores one fact for all
facts that differ only in equal constants.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra.engine import Engine
from evermat.algebra.equality import UnequalValuesError
from evermat.columns import as_terms
from evermat.errors import EvermatError
from evermat.lang.catalogue import ArityClashError
from evermat.lang.equality import OWL_SAME_AS, SAME, axioms, mentions_equality
from evermat.lang.equality_builtins import NAME
from evermat.lang.syntax import SAME_AS, TRIPLE, Declaration, rule_key
from evermat.maintenance.algorithms import (
    AUTO,
    INCREMENTAL,
    REMATERIALISE,
    AlgorithmError,
    require_algorithm,
)
from evermat.maintenance.cost_model import Choice, History, Situation, choose, learnt
from evermat.maintenance.counting import Kept
from evermat.maintenance.driver import (
    Driver,
    Entry,
    ExplicitChange,
    NewCliques,
    NewRules,
    outcome_of,
)
from evermat.maintenance.equality.program import (
    LOST,
    MOVED,
    EqualityProgram,
    LargerComponent,
    explicit_among,
    values_among,
)
from evermat.maintenance.equality.update import (
    EqualityJob,
    EqualityUpdate,
    Maintained,
    Old,
    Rebuilt,
    rebuild,
)
from evermat.maintenance.limits import CostLimitReached, Watch
from evermat.maintenance.rules import RuleBook
from evermat.maintenance.update import Request, declare, read_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from evermat.algebra import Engine, Facts, SettledFacts
    from evermat.algebra.compile import StratumPlan
    from evermat.algebra.engine import StagedRows
    from evermat.algebra.equality import Representatives
    from evermat.kb.requests import CheckedRequest
    from evermat.lang.catalogue import Catalogue
    from evermat.lang.syntax import Rule
    from evermat.maintenance.equality.update import Attempt
    from evermat.maintenance.limits import Budget, Progress
    from evermat.maintenance.rules import RuleChange
    from evermat.maintenance.update import Outcome, Update


Equality = Literal["off", "axioms", "rewrite", "auto"]


class UnknownEqualityError(EvermatError, ValueError):
    """An unknown mode of equality."""

    code: ClassVar[str] = "EM560"


def check_equality(mode: object) -> None:
    """Raise an error unless the mode exists."""
    if mode not in get_args(Equality):
        raise UnknownEqualityError(
            f"there is no way to treat equality called {mode!r}",
            help='use "off", "axioms", "rewrite" or "auto"',
        )


def asks_for_equality(request: CheckedRequest) -> bool:
    """Return whether an update contains a rule or a fact about equality."""
    if mentions_equality(request.add_rules):
        return True
    facts = request.insert.get(SAME_AS)
    if facts is not None and facts.num_columns == 2 and facts.num_rows:  # noqa: PLR2004
        return True
    triples = request.insert.get(TRIPLE)
    return triples is not None and _has_same_as(triples)


def _has_same_as(triples: pa.Table | StagedRows) -> bool:
    if triples.num_columns != 3:  # noqa: PLR2004  subject, predicate, object
        return False
    if not isinstance(triples, pa.Table):
        return triples.mentions(1, OWL_SAME_AS)
    terms = as_terms(triples.column(1))
    is_same = pc.and_(
        pc.equal(pc.struct_field(terms, [0]), int(OWL_SAME_AS.kind)),
        pc.equal(pc.struct_field(terms, [1]), OWL_SAME_AS.text),
    )
    return bool(pc.any(is_same).as_py())


def require_usual_arities(catalogue: Catalogue) -> None:
    """Check the arities of the predicates that equality uses.

    Raises:
        ArityClashError: the arity of `same_as` is not 2, or that of `triple` not 3.
    """
    for name, usual in ((SAME_AS, 2), (TRIPLE, 3)):
        known = catalogue.arity(name)
        if known is not None and known != usual:
            where = "where constants are equal"
            raise ArityClashError(name, known=known, found=usual, where=where)


def with_equality(catalogue: Catalogue) -> Catalogue:
    """Return the catalogue with `same_as`, even if only triples mention equality."""
    if SAME_AS in catalogue:
        return catalogue
    return catalogue.extended([Declaration(SAME_AS, 2)])


def missing_axioms(catalogue: Catalogue, known: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the axioms of equality for all predicates that are not known yet."""
    arities = {each.name: each.arity for each in catalogue}
    arities.setdefault(SAME_AS, 2)
    there = {rule_key(rule) for rule in known}
    return tuple(rule for rule in axioms(arities) if rule_key(rule) not in there)


# ------------------------------------------------------------- equality materialisation


ALGORITHMS = (AUTO, REMATERIALISE, "bf", "dred", "fp")
"""The algorithms for the rules outside the component of equality. The component is
always maintained by B/F^≈."""


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """The rules after an update, and their changes.

    Attributes:
        start: the time at which the update began.
        component: rules that equality turned out to depend on in an earlier attempt.
        tracing: whether a contradiction is to be explained.
    """

    book: RuleBook
    change: RuleChange
    program: EqualityProgram
    arities: Mapping[str, int]
    start: float
    component: frozenset[Rule] = frozenset()
    tracing: bool = False


class EqualityMaterialisation(Driver):
    """Rules and materialised facts, stored in terms of representatives."""

    def __init__(
        self,
        engine: Engine,
        *,
        modules: bool = True,
        budget: Budget | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Take over an engine without facts, or one to be materialised anew.

        Args:
            engine: the engine that stores the facts.
            modules: materialise closures by modules, not by matching their rules.
            budget: the limits of each update.
            progress: called after every round.
        """
        super().__init__(engine, budget, progress)
        self._has_modules = modules
        self.representatives: Representatives = engine.representatives()
        self._book = RuleBook()
        self._program = EqualityProgram(())
        self._arities: Mapping[str, int] = {}
        self._seen: tuple[Mapping[str, int], Mapping[str, int]] = {}, {}
        """All relations that the engine knew, and those that are visible to users."""
        self._values = values_among(engine.relations())
        self._is_foreign = False
        """Whether the engine's counts were made by maintenance without equality."""

    @classmethod
    def taking_over(
        cls,
        engine: Engine,
        rules: Iterable[Rule],
        *,
        modules: bool = True,
        budget: Budget | None = None,
        progress: Progress | None = None,
    ) -> EqualityMaterialisation:
        """Continue with an engine that was maintained without equality.

        Its next update must be a rematerialisation.
        """
        new = cls(engine, modules=modules, budget=budget, progress=progress)
        new._is_foreign = True
        new._history = _history_of(engine)
        new._book, _ = new._book.change(remove=(), add=rules)
        return new

    # -- properties

    @property
    def book(self) -> RuleBook:
        """The rules, as written and in normal form."""
        return self._book

    @property
    def strata(self) -> tuple[StratumPlan, ...]:
        """The plans of the rules that equality does not depend on, in order."""
        values = self._program.values(self.representatives)
        normal = self._program.under(values, self._program.needed(values))
        return normal.plans(self._program.rule_set)

    def require_algorithm(self, name: str) -> None:
        """Refuse an algorithm that does not exist or is not supported here.

        Raises:
            AlgorithmError: with the supported algorithms.
        """
        require_algorithm(name, Kept.BOTH)
        if name not in ALGORITHMS:
            raise AlgorithmError(
                f"`{name}` counts derivations, which representatives do not keep",
                reason="with `equality='rewrite'` no counters are kept",
                help=f"choose from {', '.join(ALGORITHMS)}",
            )

    # -- facts stored elsewhere

    def take_up(
        self, rules: Iterable[Rule], claimed: Iterable[str] | None = None
    ) -> None:
        """Prepare to restore stored facts: for engines without facts.

        The engine knows all predicates. It then also knows all relations of the rules,
        and can reinstate the facts.
        """
        del claimed  # without counters, modules only materialise
        self._book, change = self._book.change(remove=(), add=rules)
        plan = self._read_rules(Request({}, {}), self._book, change, perf_counter())
        self._program, self._arities = plan.program, plan.arities
        self._values = values_among(self.engine.relations())

    def taken_up(self, cliques: pa.Table) -> None:
        """Continue from the facts that the engine has reinstated.

        Args:
            cliques: constants that are not their own representatives, and these.
        """
        self.representatives.take_up(cliques)
        self._history = _history_of(self.engine)

    def lacks_names(self) -> bool:
        """Return whether rules read names of cliques, and none of them is stored.

        This is the case in states of versions whose built-ins read representatives
        only.
        """
        program = self._program
        if not program.reads_names(program.rule_set):
            return False
        stored = self.engine.statistics().get(NAME, {"facts": 0})["facts"]
        return not stored and self.representatives.cliques().num_rows > 0

    # -- updates

    def _carry_out(self, request: Request, algorithm: str, *, dry: bool) -> Outcome:
        self.require_algorithm(algorithm)
        start = perf_counter()
        book, change = self._book.change(
            remove=request.remove_rules, add=request.add_rules
        )
        component: frozenset[Rule] = frozenset()
        forced = None if algorithm == AUTO else Choice(algorithm, "asked for")

        def attempt(*, dry: bool, tracing: bool = False) -> Outcome:
            with self._transaction():
                plan = self._read_rules(request, book, change, start)
                if component or tracing:
                    plan = replace(plan, component=component, tracing=tracing)
                return self._attempt(request, plan, forced, dry=dry)

        while True:
            try:
                return attempt(dry=dry)
            except LargerComponent as larger:
                component = larger.component
            except CostLimitReached:
                forced = Choice(REMATERIALISE, "maintaining took longer than expected")
            except UnequalValuesError as error:
                raise _traced(error, partial(attempt, dry=True, tracing=True)) from None

    def _attempt(
        self,
        request: Request,
        plan: _Plan,
        forced: Choice | None,
        *,
        dry: bool,
    ) -> Outcome:
        is_first = self._is_first
        # The first facts are loaded without a comparison.
        rows = replace(request, insert={}) if is_first else request
        update = read_request(self.engine, rows, plan.change, self._given)
        job = self._job(plan, update)
        begun = None if is_first else perf_counter()
        choice = self._choose(forced, plan, job)
        watch = Watch(self.budget, self.progress, choice.cost_limit)
        watch.start = plan.start
        self.engine.monitor = watch.monitor
        if choice.algorithm == REMATERIALISE:
            attempt: Attempt = self._rebuild(request, job, watch)
        else:
            try:
                attempt = self._maintain(job, choice.algorithm, watch)
            except CostLimitReached as signal:
                deletions = job.deletions.size()
                self._history = self._history.reached(deletions, signal.expected)
                raise
        explicit = ExplicitChange(attempt.deleted, attempt.inserted, update.ignored)
        if dry:
            facts = attempt.discard()
        else:
            with self._recorded(lambda: self._entry(plan, attempt)):
                facts = attempt.commit()
        outcome = outcome_of(plan, choice, explicit, facts, attempt.strata)
        if not dry:
            self._accept(plan, attempt.representatives)
            seconds = None if begun is None else perf_counter() - begun
            self._history = learnt(
                self._history, outcome.summary, seconds, len(self.engine.relations())
            )
        return replace(outcome, cliques=attempt.cliques(facts))

    def _choose(self, forced: Choice | None, plan: _Plan, job: EqualityJob) -> Choice:
        values = values_among(self.engine.relations())
        if values != self._values and not self.representatives.is_identity():
            return Choice(REMATERIALISE, "strings are literals from now on")
        if self._is_first:
            return Choice(REMATERIALISE, "there were no facts before")
        if forced is not None:
            return forced
        situation = Situation(
            deletions=job.deletions.size(),
            insertions=job.insertions.size(),
            changes_rules=not plan.change.is_empty(),
            is_recursive=True,
            kept=Kept.NONE,
            is_search=True,
        )
        return choose(situation, self._history)

    def _maintain(self, job: EqualityJob, algorithm: str, watch: Watch) -> Maintained:
        update = EqualityUpdate(self.engine, job, self.representatives, watch)
        update.delete()
        update.insert()
        update.maintain_others(INCREMENTAL[algorithm].maintain)
        return Maintained(update)

    def _rebuild(self, request: Request, job: EqualityJob, watch: Watch) -> Rebuilt:
        engine = self.engine
        fresh = engine.fresh()
        fresh.monitor = watch.monitor
        inserted = engine.snapshot(job.insertions)
        is_first = self._is_first
        if not is_first:
            implied = engine.no_facts() if self._is_foreign else engine.marked()
            engine.copy_explicit(
                fresh,
                without=engine.settle(job.deletions | implied),
                also=job.insertions,
            )
        else:
            fresh.load(request.insert.items())
            inserted = fresh.snapshot(fresh.explicit)
        old = Old(engine, self.representatives, job, inserted, is_first)
        return rebuild(fresh, old, watch)

    def _entry(self, plan: _Plan, attempt: Attempt) -> Entry:
        rules = None
        if self._is_foreign or plan.book is not self._book:
            rules = NewRules(tuple(plan.book.written.values()))
        engine, before, after = (
            self.engine,
            self.representatives,
            attempt.representatives,
        )
        moved = engine.moved(before, after, MOVED)
        if moved.is_empty():
            return Entry(rules)
        members = engine.snapshot(moved).read(MOVED)
        names = NewCliques(
            members, before.normalised(members), after.normalised(members)
        )
        return Entry(rules, names)

    def _accept(self, plan: _Plan, representatives: Representatives) -> None:
        self._book = plan.book
        self._program = plan.program
        self._arities = plan.arities
        self._is_foreign = False
        self.representatives = representatives
        self._values = values_among(self.engine.relations())

    # -- reading requests

    @property
    def _is_first(self) -> bool:
        """Whether no facts have been inserted so far."""
        if self._history.explicit:
            return False
        return not any(size["explicit"] for size in self.engine.statistics().values())

    def _read_rules(
        self, request: Request, book: RuleBook, change: RuleChange, start: float
    ) -> _Plan:
        engine = self.engine
        declare(engine, request, book.normal.values() if change.added else ())
        engine.declare(SAME, 2)
        engine.declare(LOST, 1)
        engine.declare(MOVED, 1)
        arities = self._visible(engine.relations())
        if change.is_empty() and arities == self._arities:
            return _Plan(book, change, self._program, arities, start)
        values = values_among(engine.relations())
        program = EqualityProgram.of(book, arities, values)
        for rule in program.rules:
            engine.declare(rule.head.predicate, rule.head.arity)
        if program.reads_names(program.rule_set):
            engine.declare(NAME, 2)
        if program.rule_set == self._program.rule_set:
            program = self._program
        return _Plan(book, change, program, arities, start)

    def _visible(self, known: Mapping[str, int]) -> Mapping[str, int]:
        """Return those of the relations of an engine that are visible to users."""
        if known is not self._seen[0]:
            shown = {name: arity for name, arity in known.items() if name[:1] != "~"}
            self._seen = known, shown
        return self._seen[1]

    def _job(self, plan: _Plan, update: Update) -> EqualityJob:
        old, new = self._program.rule_set, plan.program.rule_set
        together = plan.program
        if old is not new and not old <= new:
            together = EqualityProgram((*plan.program.rules, *self._program.rules))
        values = together.values(self.representatives)
        needed = together.needed(values)
        return EqualityJob(
            program=together,
            old=old,
            new=new,
            component=needed | plan.component if plan.component else needed,
            deletions=update.deletions,
            insertions=update.insertions,
            modules=self._has_modules,
            tracing=plan.tracing,
        )

    def _given(self, facts: Facts) -> SettledFacts:
        if self._is_foreign:
            return self.engine.settle(facts & self.engine.explicit)
        return explicit_among(self.engine, facts)


def _traced(
    error: UnequalValuesError, attempt: Callable[[], Outcome]
) -> UnequalValuesError:
    """Return a contradiction error with its derivation.

    The update is repeated, and this time records the facts needed to explain it.
    """
    try:
        attempt()
    except UnequalValuesError as traced:
        return traced
    except (EvermatError, LargerComponent, CostLimitReached):
        pass  # for example, it takes too long
    return error


def _history_of(engine: Engine) -> History:
    """Return the statistics of an engine before its first update."""
    sizes = engine.statistics().values()
    return History(
        explicit=sum(size["explicit"] for size in sizes),
        facts=sum(size["facts"] for size in sizes),
    )
