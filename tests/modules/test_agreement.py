"""With modules, everything ends where a computation from scratch ends.

Facts, counters and reported changes are compared after every update, for every
algorithm: nothing may tell whether modules were at work.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from closure_scenarios import (
    closure_scenario,
    lost_loops,
    lost_start,
    second_paths,
)
from evermat.engines import make_engine
from strategies import Scenario, scenarios
from tracked import ALGORITHMS, Tracked, play

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("seed", range(0, 60, 10))
def test_oracle_facts_change(seed: int, engine_name: str, stories: slice) -> None:
    new_engine = partial(make_engine, engine_name)
    for number in range(seed, seed + 10)[stories]:
        scenario = closure_scenario(number, change_rules=False)
        play(scenario, ALGORITHMS, new_engine, modules=True)


@pytest.mark.parametrize("seed", range(1000, 1060, 10))
def test_oracle_facts_and_rules_change(
    seed: int, engine_name: str, stories: slice
) -> None:
    new_engine = partial(make_engine, engine_name)
    for number in range(seed, seed + 10)[stories]:
        scenario = closure_scenario(number, change_rules=True)
        play(scenario, ALGORITHMS, new_engine, modules=True)


@pytest.mark.parametrize("make", [second_paths, lost_start, lost_loops])
def test_oracle_hard_cases(make: Callable[[], Scenario], engine_name: str) -> None:
    play(make(), ALGORITHMS, partial(make_engine, engine_name), modules=True)


@pytest.mark.parametrize("seed", range(2000, 2010))
def test_agree_algorithms_can_take_turns(seed: int, engine_name: str) -> None:
    scenario = closure_scenario(seed, change_rules=True, updates=6)
    tracked = Tracked(make_engine(engine_name), modules=True)
    tracked.load(scenario.rules, scenario.facts)
    for number, update in enumerate(scenario.updates, start=seed):
        tracked.plan(update, ALGORITHMS[(number + 3) % len(ALGORITHMS)])
        tracked.apply(update, ALGORITHMS[number % len(ALGORITHMS)])


@settings(max_examples=25)
@given(scenario=scenarios(change_rules=True))
def test_oracle_any_program(scenario: Scenario, engine_name: str) -> None:
    play(scenario, ALGORITHMS, partial(make_engine, engine_name), modules=True)
