"""What a knowledge base keeps, and how requests change it.

A request is checked (`evermat.kb.requests`), carried out by a materialisation
(`evermat.maintenance`), and written to the state, where there is one
(`evermat.kb.persistence`). All of that happens, or nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from evermat.algebra.abilities import can_stage, with_room
from evermat.columns import term_table
from evermat.kb.contradiction_proofs import contradictions_proved
from evermat.kb.equality_materialisation import EqualityMaterialisation
from evermat.kb.equality_modes import (
    asks_for_equality,
    missing_axioms,
    require_rewriting,
    require_usual_arities,
    with_equality,
)
from evermat.kb.materialisation import Materialisation
from evermat.kb.reading import reader_of
from evermat.kb.requests import Request, RequestError, check_request
from evermat.kb.rule_inputs import listed
from evermat.lang.catalogue import Catalogue
from evermat.lang.normalise import rule_key
from evermat.maintenance.algorithms import REMATERIALISE
from evermat.maintenance.rule_book import single_heads
from evermat.results.change import Change
from evermat.results.equality_changes import expanded_outcome
from evermat.runtime.interrupts import allowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from evermat.algebra import Engine
    from evermat.algebra.compile import StratumPlan
    from evermat.kb.equality_modes import Equality
    from evermat.kb.persistence import Persistence
    from evermat.kb.reading import Reader
    from evermat.kb.requests import CheckedRequest
    from evermat.kb.rule_inputs import RuleInput
    from evermat.lang.syntax import Rule
    from evermat.maintenance.limits import Budget, Progress
    from evermat.maintenance.modules import Module
    from evermat.maintenance.rule_book import RuleBook
    from evermat.maintenance.updates import Outcome


@dataclass(frozen=True, slots=True)
class Manner:
    """How facts are kept; see `KnowledgeBase` for what each entry means."""

    algorithm: str
    equality: Equality
    counters: bool
    modules: bool
    budget: Budget | None
    progress: Progress | None


class Keeper:
    """Rules, the facts they were given, and what follows, changed by requests.

    Attributes:
        catalogue: the predicates, with what is known of their columns.
        prefixes: those that rules have declared.
        persistence: the state that every change is written to, if there is one.
    """

    def __init__(
        self,
        engine: Engine,
        manner: Manner,
        persistence: Persistence | None,
        rules: RuleInput | Iterable[RuleInput] | None,
    ) -> None:
        self.persistence = persistence
        self._manner = manner
        self._materialisation = _materialisation(engine, manner, persistence)
        self._materialisation.require_algorithm(manner.algorithm)
        self._is_empty = True
        is_known = manner.equality == "axioms"
        self.catalogue = with_equality(Catalogue()) if is_known else Catalogue()
        self.prefixes: Mapping[str, str] = {}
        if persistence is None or not self._resume(persistence, rules):
            self.change(Request(add_rules=listed(rules)))

    # ------------------------------------------------------------ what is there

    @property
    def is_torn(self) -> bool:
        """Whether an update broke off where it could neither be ended nor undone."""
        state = None if self.persistence is None else self.persistence.state
        return self.engine.is_torn or (state is not None and state.is_ahead)

    @property
    def engine(self) -> Engine:
        """What the facts are in."""
        return self._materialisation.engine

    @property
    def settings(self) -> Manner:
        """How facts are kept."""
        return self._manner

    @property
    def reader(self) -> Reader:
        """What reads the facts."""
        kept, catalogue = self._materialisation, self.catalogue
        return reader_of(kept, catalogue, counters=self._manner.counters)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules as they were given, one for each head."""
        rules = self._materialisation.given_rules
        if self._manner.equality != "axioms":
            return rules
        added = {rule_key(rule) for rule in missing_axioms(self.catalogue, ())}
        return tuple(rule for rule in rules if rule_key(rule) not in added)

    @property
    def strata(self) -> tuple[StratumPlan, ...]:
        """The rules as they are run."""
        return self._materialisation.strata

    @property
    def modules(self) -> tuple[Module, ...]:
        """What takes care of some of the rules, in updates too."""
        kept = self._materialisation
        return kept.modules if isinstance(kept, Materialisation) else ()

    # ------------------------------------------------------------------ changes

    def change(
        self,
        request: Request,
        *,
        algorithm: str | None = None,
        batch: tuple[str, int] | None = None,
    ) -> Change:
        """Carry a request out."""
        with allowed():
            checked = self._check(request)
        kept, algorithm = self._prepared(checked, algorithm)
        with (
            self._announced(kept, checked.catalogue, checked.prefixes, batch),
            _contradictions_proved(kept, checked),
        ):
            update = self._bound(kept.update, checked, algorithm)
            outcome = with_room(kept.engine, update)
        self._materialisation = kept
        self.catalogue = checked.catalogue
        self.prefixes = checked.prefixes
        self._is_empty = self._is_empty and not outcome.summary.inserted
        self.engine.is_torn = False
        return _told(outcome, self.catalogue)

    def plan(self, request: Request, *, algorithm: str | None = None) -> Change:
        """Carry a request out and undo it."""
        with allowed():
            checked = self._check(request)
        kept, algorithm = self._prepared(checked, algorithm)
        with _contradictions_proved(kept, checked):
            plan = self._bound(kept.plan, checked, algorithm)
            outcome = with_room(kept.engine, plan)
        return _told(outcome, checked.catalogue, applied=False)

    def rematerialise(self) -> Change:
        """Derive everything again from the given facts."""
        kept = self._materialisation
        with self._announced(kept, self.catalogue, self.prefixes):
            outcome = with_room(kept.engine, kept.rematerialise)
        self.engine.is_torn = False
        return _told(outcome, self.catalogue)

    def _check(self, request: Request) -> CheckedRequest:
        engine = self.engine
        checked = check_request(
            request,
            catalogue=self.catalogue,
            prefixes=self.prefixes,
            stage=engine.stage if can_stage(engine) else None,
            rules=lambda: self.rules,
        )
        if not checked.add_rules and not checked.remove_rules:
            return checked
        return replace(checked, catalogue=self._named(checked))

    def _prepared(
        self, checked: CheckedRequest, algorithm: str | None
    ) -> tuple[Materialisation | EqualityMaterialisation, str]:
        """What carries a request out, and by which algorithm."""
        kept, manner = self._materialisation, self._manner
        usual = algorithm or self._usual_algorithm()
        has_equality = isinstance(kept, EqualityMaterialisation)
        is_new = (
            manner.equality == "auto"
            and not has_equality
            and asks_for_equality(checked)
        )
        if is_new or has_equality or manner.equality == "axioms":
            require_usual_arities(checked.catalogue)
        if not is_new or isinstance(kept, EqualityMaterialisation):
            return kept, usual
        kept.write_out()  # what changes is told by comparison with what is stored
        new = EqualityMaterialisation.taking_over(
            require_rewriting(kept.engine),
            kept.given_rules,
            modules=manner.modules,
            budget=kept.budget,
            progress=kept.progress,
        )
        new.require_algorithm(manner.algorithm)
        new.require_algorithm(usual)
        return new, REMATERIALISE

    def _named(self, checked: CheckedRequest) -> Catalogue:
        """The predicates after a request, with columns named after its rules."""
        removed = set(map(rule_key, single_heads(checked.remove_rules)))
        stay = (rule for rule in self.rules if rule_key(rule) not in removed)
        return checked.catalogue.named_after((*stay, *checked.add_rules))

    def _bound(
        self, work: Callable[..., Outcome], checked: CheckedRequest, algorithm: str
    ) -> Callable[[], Outcome]:
        """`update` or `plan` of a materialisation, with what a request asks for."""
        return partial(
            work,
            delete=checked.delete,
            insert={**self._declared_only(checked), **checked.insert},
            remove_rules=checked.remove_rules,
            add_rules=self._with_axioms(checked),
            replace=checked.replace,
            algorithm=algorithm,
        )

    def _declared_only(self, checked: CheckedRequest) -> dict[str, pa.Table]:
        """No rows of predicates to delete from that are declared, and not used yet."""
        used = self.engine.relations()
        unused = [
            self.catalogue.get(name) for name in checked.delete if name not in used
        ]
        return {
            each.name: term_table(pa.table({name: [] for name in each.columns}))
            for each in unused
            if each is not None
        }

    def _usual_algorithm(self) -> str:
        """What an update uses that does not say.

        The first facts are materialised, whatever maintains them later; Counting goes
        all the way itself, because it refuses recursive rules.
        """
        usual = self._manner.algorithm
        is_first = self._is_empty and usual != "counting"
        return "auto" if is_first else usual

    def _with_axioms(self, checked: CheckedRequest) -> tuple[Rule, ...]:
        if self._manner.equality != "axioms":
            return checked.add_rules
        removed = set(map(rule_key, single_heads(checked.remove_rules)))
        given = self._materialisation.given_rules
        # An axiom stays, though somebody who has written the same rule removes it.
        stay = (rule for rule in given if rule_key(rule) not in removed)
        known = (*stay, *checked.add_rules)
        return (*checked.add_rules, *missing_axioms(checked.catalogue, known))

    # ---------------------------------------------------------------- the state

    @contextmanager
    def _announced(
        self,
        kept: Materialisation | EqualityMaterialisation,
        catalogue: Catalogue,
        prefixes: Mapping[str, str],
        batch: tuple[str, int] | None = None,
    ) -> Iterator[None]:
        """Have the update in the block written to the state, where one is kept."""
        if self.persistence is not None:
            self.persistence.announce(kept, catalogue, prefixes, batch)
            yield
            self.persistence.finish()
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
        """Take a state up; false if there is nothing to be taken up."""
        persistence.connect(self._materialisation)
        program = persistence.state.program
        if program is None:
            return False
        self.catalogue = program.catalogue().named_after(self.rules)
        self.prefixes = program.prefixes
        sizes = self.reader.sizes().values()
        self._is_empty = not any(each["given"] for each in sizes)
        kept = self._materialisation
        if isinstance(kept, EqualityMaterialisation) and kept.lacks_names():
            if persistence.state.is_read_only:
                kept.rematerialise()
            else:
                self.rematerialise()
        if rules is not None:
            request = persistence.difference(listed(rules), self.rules, self.prefixes)
            if request is not None:
                self.change(request)
        return True


def _materialisation(
    engine: Engine, manner: Manner, persistence: Persistence | None
) -> Materialisation | EqualityMaterialisation:
    is_kept_rewritten = persistence is not None and persistence.rewrites
    if manner.equality == "rewrite" or is_kept_rewritten:
        return EqualityMaterialisation(
            require_rewriting(engine),
            modules=manner.modules,
            budget=manner.budget,
            progress=manner.progress,
        )
    return Materialisation(
        engine,
        counters=manner.counters,
        modules=manner.modules,
        holding=persistence is None,
        budget=manner.budget,
        progress=manner.progress,
    )


def _contradictions_proved(
    kept: Materialisation | EqualityMaterialisation, checked: CheckedRequest
) -> AbstractContextManager[None]:
    """Have errors tell why values would be equal by the rules of a request."""

    def rules() -> RuleBook:
        book, _ = kept.book.change(remove=checked.remove_rules, add=checked.add_rules)
        return book

    return contradictions_proved(rules, checked.prefixes)


def _told(outcome: Outcome, catalogue: Catalogue, *, applied: bool = True) -> Change:
    """An outcome in the words of users."""
    if outcome.cliques is None:
        return Change(outcome, catalogue, applied=applied)
    # Equality can be asked about, even if it is only spoken of in triples.
    asked = with_equality(catalogue)
    outcome = expanded_outcome(outcome, asked.arities)
    return Change(outcome, catalogue, asked=asked, applied=applied)
