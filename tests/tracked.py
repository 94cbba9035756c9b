"""A materialisation and the oracle beside it: every update is checked in full."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import oracle
from engine_facts import facts_in, facts_of, stored_counts, tables
from evermat.lang.normalise import is_auxiliary
from evermat.maintenance.materialisation import Materialisation
from strategies import Update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from evermat.algebra import Engine, Snapshot
    from evermat.lang.syntax import Rule
    from evermat.maintenance.updates import Outcome
    from evermat.maintenance.watch import Budget, Progress
    from oracle import Fact, Model
    from strategies import Scenario

ALGORITHMS = ("remat", "fp", "dred", "dred-c", "bf", "bf-c", "auto")
"""Those that maintain any program; `counting` needs one without recursion."""

WITHOUT_COUNTERS = ("remat", "fp", "dred", "bf", "auto")


class Tracked:
    """Applies updates and compares with what they must lead to."""

    def __init__(
        self,
        engine: Engine,
        *,
        counters: bool = True,
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
        self.has_counters = counters
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
        if self.has_counters:
            numbers = stored_counts(engine, reading.counts)
            expected = {
                fact: (model.nonrecursive[fact], model.recursive[fact])
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
) -> None:
    """Run through a scenario once for each algorithm."""
    for algorithm in algorithms:
        tracked = Tracked(new_engine(), modules=modules)
        try:
            tracked.load(scenario.rules, scenario.facts)
            for update in scenario.updates:
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
