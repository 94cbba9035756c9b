"""Questions about facts and equal constants are answered as the reference does."""

# ruff: noqa: SLF001, N803  mutants are made in private functions

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from engine_facts import facts_of, interned, tables
from evermat.algebra import Region
from evermat.engines import make_engine
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.engines.embedded.equality import Rewriting, _Columns
from evermat.values import constant
from planting import Mutant, plant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.algebra import Facts, SettledFacts
    from evermat.algebra.engine import Engine
    from evermat.algebra.equality import Representatives
    from evermat.values import Constant
    from oracle import Fact

ARITIES = {"flag": 0, "p": 1, "q": 2, "r": 2, "t": 3}
NAMES = 24


class World:
    """Random facts and cliques, and sets of facts to ask about."""

    def __init__(self, seed: int, engine: Engine) -> None:
        self.random = random.Random(seed)  # noqa: S311  seeded, no secret
        self.engine = engine
        for name, arity in {**ARITIES, "same": 2, "lost": 1, "mark": 1}.items():
            engine.declare(name, arity)
        engine.load(tables(self.facts(40)))
        engine.begin()
        self.cliques = self.some_cliques()
        self.others = self.some_cliques()
        self.interned = interned(engine, self.facts(15))
        self.normal = engine.rewrite(interned(engine, self.facts(15)), self.cliques)
        self.growing = engine.growing()
        self.growing.add(interned(engine, self.facts(15)))
        self.marks = interned(engine, {("mark", (self.name(),)) for _ in range(4)})

    def name(self) -> Constant:
        return constant(f"n{self.random.randrange(NAMES)}")

    def facts(self, count: int) -> set[Fact]:
        return {
            (name, tuple(self.name() for _ in range(arity)))
            for name, arity in self.random.choices(list(ARITIES.items()), k=count)
        }

    def some_cliques(self) -> Representatives:
        cliques = self.engine.representatives()
        pairs = {("same", (self.name(), self.name())) for _ in range(8)}
        self.engine.merge(cliques, interned(self.engine, pairs), "lost", frozenset())
        return cliques

    def views(self) -> Iterator[Facts]:
        engine, growing = self.engine, self.growing
        yield from (engine.materialised, engine.explicit, growing, self.interned)
        yield engine.materialised - growing
        yield (engine.materialised | growing).within(Region(frozenset({"q", "t"})))
        yield growing | self.normal

    def answers(self) -> Iterator[SettledFacts]:
        """The answers to all sorts of questions."""
        engine = self.engine
        for cliques in (self.cliques, self.others):
            for facts in (self.interned, self.normal, engine.no_facts()):
                yield engine.rewrite(facts, cliques)
                yield engine.shared(facts, cliques)
                for view in self.views():
                    yield engine.rewritten_into(facts, cliques, view)
                yield engine.mentioning(self.marks, facts)
            normal = engine.rewrite(self.normal, cliques)
            yield engine.preimages(normal, cliques)
            yield engine.nodes_of(normal, cliques, "same")
        for view in self.views():
            yield engine.mentioning(self.marks, view)
        united = engine.settle(self.interned | self.normal)
        yield united
        yield engine.settle(united - self.normal)
        # What is left of the bits that were used on the way shows here.
        yield engine.settle(self.interned | self.growing)

    def told(self) -> list[set[Fact]]:
        return [facts_of(self.engine, answer) for answer in self.answers()]


def told(seed: int, name: str) -> list[set[Fact]]:
    """What an engine answers."""
    return World(seed, make_engine(name)).told()


@pytest.mark.parametrize("seed", range(40))
def test_law_answers_are_those_of_the_reference(seed: int) -> None:
    assert told(seed, "embedded") == told(seed, "reference")


def test_edge_more_facts_are_found_than_there_was_room_for() -> None:
    engine = EmbeddedEngine()
    engine.declare("q", 2)
    engine.declare("mark", 1)
    facts = {("q", (constant("a"), constant(f"n{at}"))) for at in range(5000)}
    engine.load(tables(facts))
    marks = interned(engine, {("mark", (constant("a"),))})
    assert facts_of(engine, engine.mentioning(marks, engine.explicit)) == facts


MUTANTS = (
    Mutant(
        "facts without a row are taken to stand for themselves",
        Rewriting.rewrite,
        lambda count, UNKNOWN: count != UNKNOWN,
        lambda count: (count := max(count, 0)) >= 0,
        algorithm="bf",
    ),
    Mutant(
        "all relations are looked through, whatever the region",
        Rewriting._columns_of,
        lambda relation, wanted, name: (
            relation.count and (wanted is None or name in wanted)
        ),
        lambda relation: relation.count,
        algorithm="bf",
    ),
    Mutant(
        "only the first columns are looked up",
        _Columns.__init__,
        lambda relation: relation.arity,
        lambda relation: min(1, relation.arity),
        algorithm="bf",
    ),
    Mutant(
        "what is equal under one name is equal under all of them",
        Rewriting.rewritten_into,
        lambda cliques: cliques.links,
        lambda cliques: cliques.ring,
        algorithm="bf",
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [told(seed, "reference") for seed in range(10)]
    plant(mutant, monkeypatch)
    assert any(_differs(seed, answers) for seed, answers in enumerate(expected))


def _differs(seed: int, answers: list[set[Fact]]) -> bool:
    return told(seed, "embedded") != answers
