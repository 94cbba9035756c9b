"""Aggregates: all algorithms, on all engines, end where a new computation ends."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

import aggregate_scenarios
from evermat.engines import make_engine
from tracked import ALGORITHMS, WITHOUT_COUNTERS, Tracked, play


@pytest.mark.parametrize("seed", range(0, 64, 8))
def test_oracle_aggregates(seed: int, engine_name: str) -> None:
    for number in range(seed, seed + 8):
        chance = Random(number)  # noqa: S311  repeatable, not secret
        play(
            aggregate_scenarios.scenario(number),
            ALGORITHMS if engine_name == "reference" else chance.sample(ALGORITHMS, 3),
            partial(make_engine, engine_name),
            modules=number % 2 == 0,
            mishaps=chance,
        )


@pytest.mark.parametrize("seed", range(0, 32, 8))
def test_oracle_aggregates_without_counters(seed: int, engine_name: str) -> None:
    for number in range(seed, seed + 8):
        scenario = aggregate_scenarios.scenario(number)
        tracked = Tracked(make_engine(engine_name), counters=False)
        tracked.load(scenario.rules, scenario.facts)
        for at, update in enumerate(scenario.updates):
            tracked.apply(update, WITHOUT_COUNTERS[(at + number) % 5])


@pytest.mark.parametrize("seed", range(0, 40, 5))
def test_oracle_recursion_through_aggregates(seed: int, engine_name: str) -> None:
    for number in range(seed, seed + 5):
        chance = Random(number)  # noqa: S311  repeatable, not secret
        play(
            aggregate_scenarios.monotone_scenario(number),
            ALGORITHMS if engine_name == "reference" else chance.sample(ALGORITHMS, 3),
            partial(make_engine, engine_name),
            modules=number % 2 == 0,
            mishaps=chance,
        )
