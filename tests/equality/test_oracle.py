"""Rewriting ends where the axioms of equality end, on every engine."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, cast

import pytest

import equality_skeletons
from equality_scenarios import NAMES, TrackedEquality, play, scenario_of
from evermat.algebra.equality import UnequalValuesError
from evermat.engines import make_engine
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.errors import StratificationError
from evermat.lang.equality import EqualityError
from evermat.lang.parser import parse_rules
from evermat.lang.syntax import TRIPLE
from strategies import Update

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.algebra.engine import Engine


REFUSED = (EqualityError, StratificationError, UnequalValuesError)


def _maker(name: str) -> Callable[[], Engine]:
    return cast("Callable[[], Engine]", partial(make_engine, name))


@pytest.mark.parametrize("seed", range(0, 60, 5))
def test_oracle_merges_and_splits(seed: int, engine_name: str, stories: slice) -> None:
    for number in range(seed, seed + 5)[stories]:
        try:
            play(scenario_of(number), ("bf",), _maker(engine_name))
        except (EqualityError, StratificationError):
            continue  # equality depends on a negation: refused, and rightly so


@pytest.mark.parametrize("number", range(len(equality_skeletons.BY_HAND)))
def test_oracle_chosen_by_hand(number: int, engine_name: str) -> None:
    play(equality_skeletons.BY_HAND[number], ("bf",), _maker(engine_name))


@pytest.mark.parametrize("seed", range(0, 70, 7))
def test_oracle_hard_programs(seed: int, engine_name: str, stories: slice) -> None:
    for number in range(seed, seed + 7)[stories]:
        play(equality_skeletons.scenario_of(number), ("bf",), _maker(engine_name))


@pytest.mark.parametrize("algorithm", ["dred", "fp", "remat", "auto"])
def test_oracle_algorithms_for_the_other_rules(
    algorithm: str, engine_name: str, stories: slice
) -> None:
    for number in range(1000, 1008)[stories]:
        try:
            play(scenario_of(number), (algorithm,), _maker(engine_name))
        except (EqualityError, StratificationError, UnequalValuesError):
            continue


def test_oracle_algorithms_can_take_turns(engine_name: str, stories: slice) -> None:
    for number in range(2000, 2008)[stories]:
        story = scenario_of(number)
        tracked = TrackedEquality(_maker(engine_name)())
        try:
            tracked.apply(Update(insert=story.facts, add_rules=story.rules), "remat")
            for update, algorithm in zip(
                story.updates, ("bf", "remat", "dred", "bf"), strict=False
            ):
                tracked.apply(update, algorithm)
        except (EqualityError, StratificationError, UnequalValuesError):
            continue


@pytest.mark.parametrize("seed", range(0, 18, 6))
def test_oracle_facts_that_only_go(seed: int, engine_name: str, stories: slice) -> None:
    for number in range(seed, seed + 6)[stories]:
        random = Random(number)  # noqa: S311  tests are to be repeatable
        for story in (scenario_of(number), equality_skeletons.scenario_of(number)):
            atoms = (a for r in story.rules for a in (r.head, *r.positive_atoms()))
            if TRIPLE in {atom.predicate for atom in atoms}:
                continue
            tracked = TrackedEquality(_maker(engine_name)())
            facts = frozenset(fact for fact in story.facts if fact[0] != TRIPLE)
            try:
                tracked.apply(Update(insert=facts, add_rules=story.rules), "remat")
                for _ in range(5):
                    there = sorted(tracked.explicit, key=repr)
                    count = min(len(there), random.choice([1, 1, 2, 3, 5]))
                    gone = frozenset(random.sample(there, count))
                    tracked.apply(Update(delete=gone), "bf")
                    require_no_marks(tracked)
                    back = frozenset(f for f in gone if random.random() < 0.6)
                    tracked.apply(Update(insert=back), "bf")
            except REFUSED:
                continue


def require_no_marks(tracked: TrackedEquality) -> None:
    """Status bits that were taken for a time have left nothing behind."""
    engine = tracked.engine
    if isinstance(engine, EmbeddedEngine):
        for relation in engine.store.relations.values():
            assert (relation.status[: relation.count] < 4).all(), relation.name


_FUNCTIONAL = "?x ≈ ?y :- r(?z, ?x), r(?z, ?y) .  p(?x) :- q(?x) ."


def test_a_clique_is_split(engine_name: str) -> None:
    a, b, c = NAMES[:3]
    tracked = TrackedEquality(_maker(engine_name)())
    facts = {("r", (c, a)), ("r", (c, b)), ("q", (a,)), ("q", (b,))}
    rules = tuple(parse_rules(_FUNCTIONAL))
    tracked.apply(Update(insert=frozenset(facts), add_rules=rules), "bf")
    assert tracked.pairs()
    tracked.apply(Update(delete=frozenset({("r", (c, b))})), "bf")
    assert not tracked.pairs()


def test_a_split_clique_splits_another(engine_name: str) -> None:
    """Only while c and d are the same, one thing has two values of a function."""
    a, b, c, d = NAMES[:4]
    tracked = TrackedEquality(_maker(engine_name)())
    facts = {("r", (c, a)), ("r", (d, b)), ("same_as", (c, d)), ("q", (a,))}
    rules = tuple(parse_rules(_FUNCTIONAL))
    tracked.apply(Update(insert=frozenset(facts), add_rules=rules), "bf")
    assert (a, b) in tracked.pairs()
    tracked.apply(Update(delete=frozenset({("same_as", (c, d))})), "bf")
    assert not tracked.pairs()
