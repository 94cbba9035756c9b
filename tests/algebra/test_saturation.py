"""What an engine's own saturation leaves is what its definition leaves."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from engine_facts import facts_of, interned, make_facts, stored_counts, tables
from evermat.algebra import Application, Saturation, Views, saturate
from evermat.algebra.compile import compile_rules
from evermat.engines import make_engine
from evermat.lang.parser import parse_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.algebra import Counters, Engine, Facts, Rounds, SettledFacts
    from evermat.algebra.fixpoint import OnRounds
    from evermat.lang.syntax import Atom, Rule
    from oracle import Fact

    Saturate = Callable[[Engine, Saturation, OnRounds], None]

NODES = 7


def _is_local(_rule: Rule, atom: Atom) -> bool:
    return atom.predicate in {"reach", "met"}


NONRECURSIVE = compile_rules(
    parse_rules("""
        reach(?x, ?y) :- edge(?x, ?y) .
        reach(?x, ?y) :- link(?y, ?x), not blocked(?x) .
        met(?x, ?x, 1) :- link(?x, ?x) .
    """),
    _is_local,
)
RECURSIVE = compile_rules(
    parse_rules("""
        reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) .
        reach(?x, ?z) :- reach(?x, ?y), edge(?z, ?y), not blocked(?z), ?x != ?z .
        met(?x, ?y, 2) :- reach(?x, ?y), reach(?y, ?x), link(?x, ?y) .
        reach(?x, ?y) :- met(?x, ?y, 2), not blocked(?y) .
    """),
    _is_local,
)


@dataclass
class Log:
    """What saturations have left, and what they told on the way."""

    sets: list[set[Fact]]
    counts: list[dict[Fact, tuple[int, int]]]
    rounds: list[tuple[int, int]]


class Game:
    """Random updates of an engine by a way to saturate."""

    def __init__(self, engine: Engine, seed: int, way: Saturate) -> None:
        self.engine = engine
        self.way = way
        self.random = random.Random(seed)  # noqa: S311  no secret
        self.given: set[Fact] = set()
        self.log = Log([], [], [])
        for name, arity in (("edge", 2), ("link", 2), ("blocked", 1)):
            engine.declare(name, arity)
        engine.declare("reach", 2)
        engine.declare("met", 3)

    def play(self, updates: int) -> Log:
        for _ in range(updates):
            self._update(is_counted=True)
            self.engine.commit(
                deleted=self.deleted,
                added=self.added,
                explicit_removed=self.gone,
                explicit_added=self.come,
            )
            self.log.counts.append(stored_counts(self.engine))
            given = set(self.given)
            self._update(is_counted=False)
            self.engine.rollback()
            self.given = given
            self.log.counts.append(stored_counts(self.engine))
        return self.log

    def _facts(self, size: int) -> set[Fact]:
        return make_facts(
            edge=[(self._node(), self._node()) for _ in range(size)],
            link=[(self._node(), self._node()) for _ in range(size // 2)],
            blocked=[(self._node(),) for _ in range(self.random.randrange(3))],
        )

    def _node(self) -> int:
        return self.random.randrange(NODES)

    def _update(self, *, is_counted: bool) -> None:
        """Delete some facts and what depends on them, and add others."""
        engine = self.engine
        come = self._facts(self.random.randrange(6)) - self.given
        size = min(len(self.given), self.random.randrange(6))
        gone = set(self.random.sample(sorted(self.given, key=repr), size))
        self.given = (self.given - gone) | come
        engine.begin()
        self.deleted, self.added = engine.growing(), engine.growing()
        self.gone, self.come = interned(engine, gone), interned(engine, come)
        self.__dict__.pop("views", None)
        self.deleted.add(self.gone)
        self.added.add(self.come)
        if is_counted:
            engine.nonrecursive_counts.subtract(engine.once(self.gone))
            engine.nonrecursive_counts.add(engine.once(self.come))
            self._maintain()
        else:
            self._go_round()

    @cached_property
    def views(self) -> tuple[Facts, Facts, Facts]:
        known = self.engine.materialised
        return (
            known - (self.deleted - self.added),
            known | self.added,
            (known - self.deleted) | self.added,
        )

    def _maintain(self) -> None:
        """DRed^c, in one stratum."""
        engine = self.engine
        remaining, possible, updated = self.views
        once, again = engine.nonrecursive_counts, engine.recursive_counts
        old = Views(engine.materialised, engine.materialised, self.gone, self.come)
        self._saturate(
            Saturation(
                engine.no_facts(),
                into=self.deleted,
                unless=self.deleted,
                first=self._first(old, once, again),
                step=Application(RECURSIVE.delta, Views(remaining, possible), again),
                is_deletion=True,
                enters_first=False,
                zero=once,
            )
        )
        new = Views(updated, updated, self.come, self.gone)
        self._saturate(
            Saturation(
                again.positive(engine.settle(self.deleted - self.gone)),
                into=self.added,
                unless=updated,
                first=self._first(new, once, again),
                step=Application(RECURSIVE.delta, Views(updated, updated), again),
            )
        )

    def _go_round(self) -> None:
        """Two saturations that no algorithm asks for, without counts."""
        engine, chance = self.engine, self.random
        remaining, possible, updated = self.views
        old = Views(engine.materialised, engine.materialised, self.gone, self.come)
        nodes = [(self._node(), self._node()) for _ in range(4)]
        seeds = interned(engine, make_facts(reach=nodes))
        self._saturate(
            Saturation(
                seeds,
                into=self.deleted,
                unless=self.deleted,
                first=self._first(old, None, None)[: chance.randrange(3)],
                step=Application(RECURSIVE.delta, Views(remaining, possible)),
                is_deletion=True,
                enters_first=chance.random() < 0.5,
            )
        )
        every = Application(NONRECURSIVE.full, Views(updated, updated))
        step = Application(RECURSIVE.delta, Views(updated, possible))
        self._saturate(
            Saturation(
                seeds,
                into=self.added,
                unless=updated,
                first=(every,) if chance.random() < 0.5 else (),
                step=step if chance.random() < 0.7 else None,
            )
        )

    def _first(
        self, views: Views, once: Counters | None, again: Counters | None
    ) -> tuple[Application, ...]:
        return (
            Application(NONRECURSIVE.delta, views, once),
            Application(RECURSIVE.delta, views, again),
        )

    def _saturate(self, task: Saturation) -> None:
        told: list[Rounds] = []
        task = replace(task, is_watched=self.random.random() < 0.3)
        self.way(self.engine, task, told.append)
        for facts in (self.deleted, self.added):
            self.log.sets.append(facts_of(self.engine, facts))
        if task.is_watched:
            assert all(rounds.number == 1 for rounds in told)
        counted = sum(rounds.number for rounds in told)
        self.log.rounds.append((counted, sum(rounds.facts for rounds in told)))


def by_engine(engine: Engine, task: Saturation, on_rounds: OnRounds) -> None:
    engine.saturate(task, on_rounds)


@pytest.mark.parametrize("seed", range(8))
def test_saturation_is_what_its_definition_says(engine: Engine, seed: int) -> None:
    updates = 2 if engine.name == "spark" else 6
    mine = Game(engine, seed, by_engine).play(updates)
    assert mine == Game(make_engine("reference"), seed, saturate).play(updates)
    if engine.name == "embedded":
        assert mine == Game(make_engine("embedded"), seed, saturate).play(updates)


def test_nothing_is_told_where_nothing_is_admitted(engine: Engine) -> None:
    engine.load(tables(make_facts(edge=[(1, 2)], reach=[(1, 2)])))
    engine.begin()
    told: list[Rounds] = []
    task = Saturation(
        interned(engine, make_facts(reach=[(1, 2)])),
        into=engine.growing(),
        unless=engine.materialised,
    )
    engine.saturate(task, told.append)
    assert not told
    assert facts_of(engine, task.into) == set()


def test_without_rules_seeds_are_admitted_once(engine: Engine) -> None:
    engine.begin()
    told: list[Rounds] = []
    facts = make_facts(reach=[(1, 2), (2, 3)])
    seeds: SettledFacts = interned(engine, facts)
    task = Saturation(seeds, into=engine.growing(), unless=engine.materialised)
    engine.saturate(task, told.append)
    assert facts_of(engine, task.into) == facts
    assert [(rounds.number, rounds.facts) for rounds in told] == [(1, 2)]
