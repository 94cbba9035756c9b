"""Sessions: the rules, facts and settings of a knowledge base, and their updates.

A request is checked (`evermat.kb.requests`), carried out by a materialisation
(`evermat.maintenance`), and written to the state, if there is one
(`evermat.kb.persistence`): all of this happens, or nothing.

Subscribers are notified after each commit, in the order of the updates and one at a
time, even if a callback makes an update itself. An exception in a callback is logged
and undoes nothing, since the update has been committed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from evermat.algebra.equality import UnequalValuesError
from evermat.columns import term_table
from evermat.engines import make_engine
from evermat.kb.contradictions import (
    MOST_GIVEN,
    ContradictionError,
    Contradictions,
    Refused,
    contradiction_sizes,
    has_contradictions,
    refusing,
    warn_of,
)
from evermat.kb.equality import (
    EqualityMaterialisation,
    asks_for_equality,
    missing_axioms,
    require_usual_arities,
    with_equality,
)
from evermat.kb.explanations import with_proof
from evermat.kb.inputs import listed
from evermat.kb.materialisation import Materialisation
from evermat.kb.queries import PreparedQueries, reader_of
from evermat.kb.requests import Request, RequestError, check_request
from evermat.lang.catalogue import Catalogue
from evermat.lang.syntax import Program, rule_key
from evermat.maintenance.algorithms import REMATERIALISE
from evermat.maintenance.rules import single_heads
from evermat.results.change import Change, expanded_outcome
from evermat.runtime.interrupts import allowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType

    from evermat.algebra import Engine
    from evermat.algebra.compile import StratumPlan
    from evermat.kb.contradictions import Policy
    from evermat.kb.equality import Equality
    from evermat.kb.inputs import RuleInput
    from evermat.kb.persistence import Persistence
    from evermat.kb.queries import Reader
    from evermat.kb.requests import CheckedRequest
    from evermat.lang.syntax import Rule
    from evermat.maintenance.counting import CountersSetting
    from evermat.maintenance.limits import Budget, Progress
    from evermat.maintenance.modules import Module
    from evermat.maintenance.update import Outcome

    Callback = Callable[[Change], object]


_LOG = logging.getLogger("evermat")


class Subscriptions:
    """The subscriptions to one knowledge base."""

    def __init__(self) -> None:
        self._all: list[Subscription] = []
        self._waiting: deque[Change] = deque()
        self._is_delivering = False

    def add(self, predicate: str | None, callback: Callback | None) -> Subscription:
        """Subscribe to changes of a predicate, or to all changes."""
        subscription = Subscription(self, predicate, callback)
        self._all.append(subscription)
        return subscription

    def remove(self, subscription: Subscription) -> None:
        """Stop notifying a subscription."""
        if subscription in self._all:
            self._all.remove(subscription)

    def notify(self, change: Change) -> None:
        """Deliver a change to all subscriptions to one of its predicates."""
        if not self._all:
            return
        self._waiting.append(change)
        if self._is_delivering:
            return  # in a callback: its caller delivers pending changes
        self._is_delivering = True
        try:
            while self._waiting:
                waiting = self._waiting.popleft()
                for subscription in tuple(self._all):
                    subscription.deliver(waiting)
        finally:
            self._is_delivering = False


class Subscription:
    """Changes of a predicate, delivered to a callback or to `async for`.

    Leaving its `with` block, or `cancel()`, ends it.

    Attributes:
        predicate: the predicate; None for all predicates.
    """

    def __init__(
        self,
        subscriptions: Subscriptions,
        predicate: str | None,
        callback: Callback | None,
    ) -> None:
        self.predicate = predicate
        self._subscriptions = subscriptions
        self._callback = callback
        self._waiting: deque[Change] = deque()
        self._awaited: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """End the subscription; changes that were not read yet can still be read."""
        self._is_cancelled = True
        self._subscriptions.remove(self)
        self._wake_up()

    def deliver(self, change: Change) -> None:
        """Deliver a change if it affects the predicate."""
        if self.predicate is None:
            if change.is_empty():
                return
        elif self.predicate not in change.sizes:
            return
        if self._callback is None:
            self._waiting.append(change)
            self._wake_up()
            return
        try:
            self._callback(change)
        except Exception:  # noqa: BLE001  raised by a user's callback, after the commit
            _LOG.exception("a subscriber to `%s` failed", self.predicate or "all")

    def _wake_up(self) -> None:
        if self._awaited is not None:
            loop, event = self._awaited
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        event = asyncio.Event()
        self._awaited = (asyncio.get_running_loop(), event)
        try:
            while not self._waiting:
                if self._is_cancelled:
                    raise StopAsyncIteration
                event.clear()
                if not self._waiting and not self._is_cancelled:
                    await event.wait()
            return self._waiting.popleft()
        finally:
            self._awaited = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cancel()


# ------------------------------------------------------------------------------ session


@dataclass(frozen=True, slots=True)
class Settings:
    """How facts are maintained; `KnowledgeBase` documents the entries."""

    algorithm: str
    equality: Equality
    counters: CountersSetting
    modules: bool
    budget: Budget | None
    progress: Progress | None
    contradictions: Policy = "report"


class Session:
    """Rules and explicit facts with their materialisation, updated by requests.

    Attributes:
        catalogue: the predicates, with the known properties of their columns.
        prefixes: the prefixes declared by rules.
        persistence: the state to which every change is written, if there is one.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        persistence: Persistence | None,
        rules: RuleInput | Iterable[RuleInput] | None,
    ) -> None:
        self.persistence = persistence
        self._settings = settings
        self._materialisation = _materialisation(engine, settings, persistence)
        self._materialisation.require_algorithm(settings.algorithm)
        self._is_empty = True
        self._has_contradictions = False
        is_known = settings.equality == "axioms"
        self.catalogue = with_equality(Catalogue()) if is_known else Catalogue()
        self.prefixes: Mapping[str, str] = {}
        self._queries = PreparedQueries()
        if persistence is None or not self._resume(persistence, rules):
            self.change(Request(add_rules=listed(rules)))

    # --------------------------------------------------------------- properties

    @property
    def is_torn(self) -> bool:
        """Whether an update broke off that could neither be completed nor undone."""
        state = None if self.persistence is None else self.persistence.state
        return self.engine.is_torn or (state is not None and state.is_ahead)

    @property
    def engine(self) -> Engine:
        """The engine that stores the facts."""
        return self._materialisation.engine

    @property
    def settings(self) -> Settings:
        """How facts are maintained."""
        return self._settings

    @property
    def reader(self) -> Reader:
        """The reader of the facts."""
        materialisation, catalogue = self._materialisation, self.catalogue
        self._queries.follow(catalogue, self.prefixes)
        return reader_of(
            materialisation, catalogue, self._queries, self._settings.counters
        )

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules as written, one for each head."""
        rules = self._materialisation.written_rules
        if self._settings.equality != "axioms":
            return rules
        added = {rule_key(rule) for rule in missing_axioms(self.catalogue, ())}
        return tuple(rule for rule in rules if rule_key(rule) not in added)

    @property
    def materialisation(self) -> Materialisation | EqualityMaterialisation:
        """The driver that carries out requests."""
        return self._materialisation

    @property
    def strata(self) -> tuple[StratumPlan, ...]:
        """The compiled strata of the rules."""
        return self._materialisation.strata

    @property
    def modules(self) -> tuple[Module, ...]:
        """The modules that evaluate some of the rules, also in updates."""
        materialisation = self._materialisation
        return (
            materialisation.modules
            if isinstance(materialisation, Materialisation)
            else ()
        )

    # ------------------------------------------------------------------ changes

    def change(
        self,
        request: Request,
        *,
        algorithm: str | None = None,
        batch: tuple[str, int] | None = None,
    ) -> Change:
        """Carry out a request."""
        with allowed():
            checked = self._check(request)
        materialisation, algorithm = self._prepared(checked, algorithm)
        policy = self._settings.contradictions
        try:
            with (
                self._announced(
                    materialisation, checked.catalogue, checked.prefixes, batch
                ),
                refusing(materialisation) if policy == "refuse" else nullcontext(),
            ):
                update = self._bound(materialisation.update, checked, algorithm)
                outcome = materialisation.engine.with_room(update)
        except UnequalValuesError as error:
            raise _with_proof(error, materialisation, checked) from None
        except Refused as refused:
            raise self._refusal(refused, checked) from None
        self._materialisation = materialisation
        self.catalogue = checked.catalogue
        self.prefixes = checked.prefixes
        self._is_empty = self._is_empty and not outcome.summary.inserted
        self.engine.is_torn = False
        if checked.add_rules:
            self._has_contradictions = has_contradictions(materialisation)
        if not self._has_contradictions:
            return _change_of(outcome, self.catalogue)
        return self._change_with_contradictions(outcome)

    @property
    def contradictions(self) -> Contradictions:
        """Return the facts derived by rules with the head `false`."""
        return Contradictions(self._materialisation, self.rules, self.prefixes)

    def _change_with_contradictions(self, outcome: Outcome) -> Change:
        """Convert an outcome, and warn of the contradictions that it added."""
        sizes = contradiction_sizes(outcome)
        if sizes[0] and self._settings.contradictions == "report":
            warn_of(self.contradictions.added(outcome), sizes[0])
        return _change_of(outcome, self.catalogue, contradictions=sizes)

    def _refusal(self, refused: Refused, checked: CheckedRequest) -> ContradictionError:
        """Return the error for a refused update, with a proof if that is quick.

        The proof is found in another knowledge base, after the same update.
        """
        found = [self.contradictions.of(fact) for fact in refused.facts]
        tables = (*checked.insert.values(), *checked.delete.values())
        given = sum(each["explicit"] for each in self.reader.sizes().values())
        explanation = None
        if given <= MOST_GIVEN and all(isinstance(each, pa.Table) for each in tables):
            explanation = self._after(checked).explain(refused.facts[0])
        return ContradictionError(found, refused.count, explanation)

    def _after(self, checked: CheckedRequest) -> Contradictions:
        """Return the contradictions that would hold after a request."""
        settings = replace(self._settings, contradictions="ignore")
        other = Session(make_engine("embedded"), settings, None, None)
        reader = self.reader
        facts: dict[str, list[object]] = {
            each.name: [reader.facts(each, "explicit")] for each in self.catalogue
        }
        declared = tuple(self.catalogue.declarations())
        program = Program(rules=self.rules, declarations=declared)
        other.change(Request(insert=facts, add_rules=[program]))
        materialisation, algorithm = other._prepared(checked, None)
        materialisation.engine.with_room(
            other._bound(materialisation.update, checked, algorithm)
        )
        rules = tuple(materialisation.written_rules)
        return Contradictions(materialisation, rules, checked.prefixes)

    def plan(self, request: Request, *, algorithm: str | None = None) -> Change:
        """Carry out a request, and undo it."""
        with allowed():
            checked = self._check(request)
        materialisation, algorithm = self._prepared(checked, algorithm)
        try:
            plan = self._bound(materialisation.plan, checked, algorithm)
            outcome = materialisation.engine.with_room(plan)
        except UnequalValuesError as error:
            raise _with_proof(error, materialisation, checked) from None
        sizes = contradiction_sizes(outcome)
        return _change_of(
            outcome, checked.catalogue, applied=False, contradictions=sizes
        )

    def rematerialise(self) -> Change:
        """Materialise everything again from the explicit facts."""
        materialisation = self._materialisation
        with self._announced(materialisation, self.catalogue, self.prefixes):
            outcome = materialisation.engine.with_room(materialisation.rematerialise)
        self.engine.is_torn = False
        return _change_of(outcome, self.catalogue)

    def _check(self, request: Request) -> CheckedRequest:
        engine = self.engine
        checked = check_request(
            request,
            catalogue=self.catalogue,
            prefixes=self.prefixes,
            stage=engine.stage if engine.takes_frames else None,
            rules=lambda: self.rules,
        )
        if not checked.add_rules and not checked.remove_rules:
            return checked
        return replace(checked, catalogue=self._named(checked))

    def _prepared(
        self, checked: CheckedRequest, algorithm: str | None
    ) -> tuple[Materialisation | EqualityMaterialisation, str]:
        """Return the driver that carries out a request, and the algorithm to use."""
        materialisation, settings = self._materialisation, self._settings
        usual = algorithm or self._usual_algorithm()
        has_equality = isinstance(materialisation, EqualityMaterialisation)
        is_new = (
            settings.equality == "auto"
            and not has_equality
            and bool(checked.insert or checked.add_rules)
            and asks_for_equality(checked)
        )
        if is_new or has_equality or settings.equality == "axioms":
            require_usual_arities(checked.catalogue)
        if not is_new or isinstance(materialisation, EqualityMaterialisation):
            return materialisation, usual
        materialisation.write_out()  # changes are found by comparison with stored facts
        new = EqualityMaterialisation.taking_over(
            materialisation.engine,
            materialisation.written_rules,
            modules=settings.modules,
            budget=materialisation.budget,
            progress=materialisation.progress,
        )
        new.require_algorithm(settings.algorithm)
        new.require_algorithm(usual)
        return new, REMATERIALISE

    def _named(self, checked: CheckedRequest) -> Catalogue:
        """Return the predicates after a request, with columns named after its rules."""
        removed = set(map(rule_key, single_heads(checked.remove_rules)))
        stay = (rule for rule in self.rules if rule_key(rule) not in removed)
        return checked.catalogue.named_after((*stay, *checked.add_rules))

    def _bound(
        self, work: Callable[..., Outcome], checked: CheckedRequest, algorithm: str
    ) -> Callable[[], Outcome]:
        """Bind a materialisation's `update` or `plan` to the contents of a request."""
        unused = checked.delete.keys() - self.engine.relations().keys()
        declared = self._declared_only(unused) if unused else {}
        has_axioms = self._settings.equality == "axioms"
        return partial(
            work,
            delete=checked.delete,
            insert={**declared, **checked.insert},
            remove_rules=checked.remove_rules,
            add_rules=self._with_axioms(checked) if has_axioms else checked.add_rules,
            replace=checked.replace,
            algorithm=algorithm,
        )

    def _declared_only(self, unused: Iterable[str]) -> dict[str, pa.Table]:
        """Return empty tables for deletions from predicates declared but unused."""
        predicates = (self.catalogue.get(name) for name in unused)
        return {
            each.name: term_table(pa.table({name: [] for name in each.columns}))
            for each in predicates
            if each is not None
        }

    def _usual_algorithm(self) -> str:
        """Return the algorithm of an update that does not specify one.

        The first facts are materialised, whatever maintains them later, except by
        Counting, which must see all rules itself because it refuses recursive ones.
        """
        usual = self._settings.algorithm
        is_first = self._is_empty and usual != "counting"
        return "auto" if is_first else usual

    def _with_axioms(self, checked: CheckedRequest) -> tuple[Rule, ...]:
        removed = set(map(rule_key, single_heads(checked.remove_rules)))
        given = self._materialisation.written_rules
        # An axiom stays even if a user removes an identical rule.
        stay = (rule for rule in given if rule_key(rule) not in removed)
        known = (*stay, *checked.add_rules)
        return (*checked.add_rules, *missing_axioms(checked.catalogue, known))

    # ---------------------------------------------------------------- the state

    @contextmanager
    def _announced(
        self,
        materialisation: Materialisation | EqualityMaterialisation,
        catalogue: Catalogue,
        prefixes: Mapping[str, str],
        batch: tuple[str, int] | None = None,
    ) -> Iterator[None]:
        """Write the update in the block to the state, if there is one."""
        if self.persistence is not None:
            self.persistence.announce(materialisation, catalogue, prefixes, batch)
            yield
            self.persistence.finish(materialisation.engine)
            return
        if batch is not None:
            raise RequestError(
                "a batch is recorded with the state, and there is none",
                help="make the knowledge base with `state=PATH`",
            )
        yield

    def _resume(
        self,
        persistence: Persistence,
        rules: RuleInput | Iterable[RuleInput] | None,
    ) -> bool:
        """Restore the state; return whether there was one."""
        persistence.connect(self._materialisation)
        program = persistence.state.program
        if program is None:
            return False
        self.catalogue = program.catalogue().named_after(self.rules)
        self.prefixes = program.prefixes
        sizes = self.reader.sizes().values()
        self._is_empty = not any(each["explicit"] for each in sizes)
        materialisation = self._materialisation
        self._has_contradictions = has_contradictions(materialisation)
        if (
            isinstance(materialisation, EqualityMaterialisation)
            and materialisation.lacks_names()
        ):
            if persistence.state.is_read_only:
                materialisation.rematerialise()
            else:
                self.rematerialise()
        if rules is not None:
            request = persistence.difference(listed(rules), self.rules, self.prefixes)
            if request is not None:
                self.change(request)
        return True


def _materialisation(
    engine: Engine, settings: Settings, persistence: Persistence | None
) -> Materialisation | EqualityMaterialisation:
    is_kept_rewritten = persistence is not None and persistence.rewrites
    if settings.equality == "rewrite" or is_kept_rewritten:
        return EqualityMaterialisation(
            engine,
            modules=settings.modules,
            budget=settings.budget,
            progress=settings.progress,
        )
    return Materialisation(
        engine,
        counters=settings.counters,
        modules=settings.modules,
        lazy=persistence is None,
        budget=settings.budget,
        progress=settings.progress,
    )


def _with_proof(
    error: UnequalValuesError,
    materialisation: Materialisation | EqualityMaterialisation,
    checked: CheckedRequest,
) -> UnequalValuesError:
    """Return the error with a proof of the equality by the rules of a request."""
    book, _ = materialisation.book.change(
        remove=checked.remove_rules, add=checked.add_rules
    )
    return with_proof(error, book, checked.prefixes)


def _change_of(
    outcome: Outcome,
    catalogue: Catalogue,
    *,
    applied: bool = True,
    contradictions: tuple[int, int] = (0, 0),
) -> Change:
    """Convert an outcome to a `Change` for users."""
    if outcome.cliques is None:
        return Change(
            outcome, catalogue, applied=applied, contradictions=contradictions
        )
    # Equality can be queried even if only triples mention it.
    asked = with_equality(catalogue)
    outcome = expanded_outcome(outcome, asked.arities)
    return Change(
        outcome,
        catalogue,
        asked=asked,
        applied=applied,
        contradictions=contradictions,
    )
