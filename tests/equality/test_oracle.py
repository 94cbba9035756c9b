"""Rewriting ends where the axioms of equality end, on every engine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import pytest

import equality_skeletons
from equality_scenarios import TrackedEquality, play, scenario_of
from evermat.algebra.abilities import UnequalValuesError
from evermat.engines import make_engine
from evermat.errors import StratificationError
from evermat.lang.equality import EqualityError
from strategies import Update

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.algebra.abilities import EqualityEngine


def _maker(name: str) -> Callable[[], EqualityEngine]:
    return cast("Callable[[], EqualityEngine]", partial(make_engine, name))


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
