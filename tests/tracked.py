"""A materialisation and the oracle beside it: every update is checked in full."""

from __future__ import annotations

from functools import lru_cache
from itertools import cycle
from typing import TYPE_CHECKING

import pytest

import oracle
from engine_facts import facts_in, facts_of, stored_counts, tables
from evermat.algebra.queries import EvaluationError
from evermat.kb.materialisation import Materialisation
from evermat.lang.syntax import (
    Atom,
    Call,
    Condition,
    Negation,
    Rule,
    Term,
    Variable,
    is_auxiliary,
)
from evermat.maintenance.counting import Kept
from evermat.values import constant
from strategies import Update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from evermat.algebra import Engine, Snapshot
    from evermat.lang.syntax import BodyElement
    from evermat.maintenance.counting import CountersSetting
    from evermat.maintenance.limits import Budget, Progress, Step
    from evermat.maintenance.update import Outcome
    from oracle import Fact, Model
    from strategies import Scenario

ALGORITHMS = ("remat", "fp", "dred", "dred-c", "bf", "bf-c", "auto")
"""Those that maintain any program; `counting` needs one without recursion."""

WITH_ONE_COUNTER = ("remat", "fp", "dred", "bf", "bf-c", "auto")
"""Those that need no recursive counts."""

WITHOUT_COUNTERS = ("remat", "fp", "dred", "bf", "auto")

MISHAPS = ("dry run", "interrupted", "no value")
"""Why an update may not come about."""

SHARE_OF_MISHAPS = 0.4


class InterruptedUpdateError(Exception):
    """Raised on purpose, after some rounds of an update."""


class Tracked:
    """Applies updates and compares with what they must lead to."""

    def __init__(
        self,
        engine: Engine,
        *,
        counters: CountersSetting = True,
        modules: bool = False,
        budget: Budget | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.materialisation = Materialisation(
            engine,
            counters=counters,
            modules=modules,
            budget=budget,
            progress=progress,
        )
        self.kept = Kept.of(counters)
        self.rules: tuple[Rule, ...] = ()
        self.explicit: frozenset[Fact] = frozenset()
        self.model = oracle.materialise([], [])

    @property
    def engine(self) -> Engine:
        return self.materialisation.engine

    def load(self, rules: Iterable[Rule], facts: Iterable[Fact]) -> Outcome:
        update = Update(insert=frozenset(facts), add_rules=tuple(rules))
        return self.apply(update, "remat")

    def apply(self, update: Update, algorithm: str) -> Outcome:
        """Carry out an update, and check the oracles of the algorithms' page."""
        rules, explicit, model = self.expected(update)
        outcome = self._ask(self.materialisation.update, update, algorithm)
        self.check_change(outcome, explicit, model)
        self.rules, self.explicit, self.model = rules, explicit, model
        self.check_state()
        return outcome

    def plan(self, update: Update, algorithm: str) -> Outcome:
        """A dry run, which must foretell the change and leave all as it was."""
        _, explicit, model = self.expected(update)
        outcome = self._ask(self.materialisation.plan, update, algorithm)
        self.check_change(outcome, explicit, model)
        self.check_state()
        return outcome

    def mishap(self, update: Update, algorithm: str, chance: Random) -> bool:
        """Have an update not come about; all must be as it was.

        Returns:
            Whether it came about all the same, being too short to be interrupted.
        """
        relations = dict(self.engine.relations())
        sort = chance.choice(MISHAPS)
        try:
            match sort:
                case "dry run":
                    self.plan(update, algorithm)
                case "interrupted":
                    if self._interrupt(update, algorithm, chance.randint(1, 5)):
                        return True
                case _:
                    with pytest.raises(EvaluationError):
                        self._ask(
                            self.materialisation.update, self.doomed(update), algorithm
                        )
            self.check_state()
            assert dict(self.engine.relations()) == relations
        except Exception as error:
            error.add_note(f"after an update that did not come about: {sort}")
            raise
        return False

    def _interrupt(self, update: Update, algorithm: str, after: int) -> bool:
        """Raise an error after so many rounds; whether the update came about."""
        rounds = 0

        def interrupt(step: Step) -> None:
            nonlocal rounds
            rounds += 1
            if rounds == after:
                raise InterruptedUpdateError(step.phase)

        self.materialisation.progress = interrupt
        try:
            self.apply(update, algorithm)
        except InterruptedUpdateError:
            return False
        finally:
            self.materialisation.progress = None
        return True

    def doomed(self, update: Update) -> Update:
        """The update, with a division by zero in one of its last strata."""
        rules, _, _ = self.expected(update)
        value, never = Variable("value"), Term(constant("never"))
        quotient = Call("/", (Term(constant(1)), value))
        last = {
            Negation(Atom(head.predicate, (never,) * head.arity))
            for rule in rules
            for head in rule.heads
            if head.arity
        }
        body: tuple[BodyElement, ...] = (
            Atom("doom", (value,)),
            Condition(Call("=", (Variable("result"), quotient))),
            *sorted(last, key=repr),
        )
        rule = Rule((Atom("doomed", (Variable("result"),)),), body)
        return Update(
            update.delete,
            update.insert | {("doom", (constant(0),))},
            update.remove_rules,
            (*update.add_rules, rule),
        )

    def _ask(
        self, method: Callable[..., Outcome], update: Update, algorithm: str
    ) -> Outcome:
        return method(
            delete=dict(tables(self.known(update.delete))),
            insert=dict(tables(update.insert)),
            remove_rules=update.remove_rules,
            add_rules=update.add_rules,
            algorithm=algorithm,
        )

    def known(self, facts: Iterable[Fact]) -> set[Fact]:
        """Facts of relations that exist; deleting others is an error."""
        relations = self.engine.relations()
        return {fact for fact in facts if fact[0] in relations}

    def expected(
        self, update: Update
    ) -> tuple[tuple[Rule, ...], frozenset[Fact], Model]:
        kept = tuple(rule for rule in self.rules if rule not in update.remove_rules)
        rules = kept + tuple(rule for rule in update.add_rules if rule not in kept)
        explicit = (self.explicit - update.delete) | update.insert
        return rules, explicit, model_of(rules, explicit)

    def check_change(
        self, outcome: Outcome, explicit: frozenset[Fact], model: Model
    ) -> None:
        """The reported change is exactly the difference."""
        assert visible(outcome.removed) == self.model.facts - model.facts
        assert visible(outcome.added) == model.facts - self.model.facts
        assert visible(outcome.explicit_removed) == self.explicit - explicit
        assert visible(outcome.explicit_added) == explicit - self.explicit
        assert outcome.report.removed == len(facts_in(outcome.removed))
        assert outcome.report.added == len(facts_in(outcome.added))

    def check_state(self) -> None:
        """Facts and counters are those computed from scratch."""
        engine, model = self.engine, self.model
        reading = self.materialisation.reading
        stored = facts_in(engine.snapshot(engine.materialised))
        held = [each for name in engine.relations() for each in reading.rest(name)]
        rest = [fact for each in held for fact in facts_in(each)]
        assert stored.isdisjoint(rest)
        assert len(set(rest)) == len(rest)
        assert hidden(stored.union(rest)) == model.facts
        for name in engine.relations():
            assert reading.size(name) == sum(
                fact[0] == name for fact in (*stored, *rest)
            )
        assert facts_of(engine, engine.explicit) == self.explicit
        # What `auto` goes by must not drift away from what there is.
        history = self.materialisation._history  # noqa: SLF001
        assert history.explicit == len(self.explicit)
        assert history.facts == len(stored)
        if self.kept is not Kept.NONE:
            numbers = stored_counts(engine, reading.counts)
            is_both = self.kept is Kept.BOTH
            expected = {
                fact: (model.nonrecursive[fact], is_both * model.recursive[fact])
                for fact in model.facts
            }
            assert {f: n for f, n in numbers.items() if f in expected} == expected


@lru_cache(maxsize=64)
def model_of(rules: tuple[Rule, ...], explicit: frozenset[Fact]) -> Model:
    """The oracle's answer, which several algorithms are compared with in turn."""
    return oracle.materialise(rules, explicit)


def play(
    scenario: Scenario,
    algorithms: Iterable[str],
    new_engine: Callable[[], Engine],
    *,
    modules: bool = False,
    mishaps: Random | None = None,
) -> None:
    """Run through a scenario once for each algorithm."""
    for algorithm in algorithms:
        tracked = Tracked(new_engine(), modules=modules)
        run_through(scenario, tracked, [algorithm], mishaps)


def run_through(
    scenario: Scenario,
    tracked: Tracked,
    algorithms: Iterable[str],
    mishaps: Random | None = None,
) -> None:
    """Run through a scenario once, with algorithms that take turns.

    Args:
        scenario: what happens.
        tracked: what it happens to.
        algorithms: take turns, one for each update.
        mishaps: decides which updates do not come about when they are first tried.
    """
    algorithm = "remat"
    try:
        tracked.load(scenario.rules, scenario.facts)
        for update, algorithm in zip(scenario.updates, cycle(algorithms), strict=False):
            is_done = (
                mishaps is not None
                and mishaps.random() < SHARE_OF_MISHAPS
                and tracked.mishap(update, algorithm, mishaps)
            )
            if not is_done:
                tracked.apply(update, algorithm)
    except Exception as error:
        error.add_note(f"algorithm: {algorithm}")
        raise


def visible(snapshot: Snapshot) -> set[Fact]:
    """The facts of a snapshot, without those of auxiliary predicates."""
    return hidden(facts_in(snapshot))


def hidden(facts: set[Fact]) -> set[Fact]:
    """The facts without those of auxiliary predicates."""
    return {fact for fact in facts if not is_auxiliary(fact[0])}
