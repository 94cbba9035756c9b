"""Every algorithm, on every engine, ends where a computation from scratch ends.

Facts, both counters and the reported change are compared after every update.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import number_scenarios
import shared_supports
from evermat.engines import make_engine
from evermat.kb import materialisation
from evermat.maintenance import limits
from evermat.maintenance.cost_model import Choice, Situation
from evermat.maintenance.limits import CostLimit, Forecast
from scaled_scenarios import scaled
from skeletons import scenario as hard_scenario
from strategies import Scenario, scenarios
from tracked import (
    ALGORITHMS,
    WITH_ONE_COUNTER,
    WITHOUT_COUNTERS,
    Tracked,
    play,
    run_through,
)

if TYPE_CHECKING:
    from evermat.maintenance.cost_model import History


@pytest.mark.parametrize("seed", range(0, 120, 10))
def test_oracle_hard_programs(seed: int, engine_name: str) -> None:
    for number in range(seed, seed + 10):
        play(hard_scenario(number), ALGORITHMS, partial(make_engine, engine_name))


@pytest.mark.parametrize("seed", range(0, 32, 4))
def test_oracle_numbers_at_boundaries(seed: int, engine_name: str) -> None:
    for number in range(seed, seed + 4):
        _play_some(number_scenarios.scenario(number), number, engine_name)


@pytest.mark.parametrize("seed", range(0, 32, 4))
def test_oracle_several_instances_at_once(seed: int, engine_name: str) -> None:
    for number in range(seed, seed + 4):
        scenario = scaled(shared_supports.scenario(number), number)
        _play_some(scenario, number, engine_name)


def _play_some(scenario: Scenario, number: int, engine_name: str) -> None:
    """Play with two of the algorithms, and with updates that do not come about."""
    chance = Random(number)  # noqa: S311  repeatable, not secret
    algorithms = chance.sample(ALGORITHMS, 2)
    make = partial(make_engine, engine_name)
    play(scenario, algorithms, make, modules=number % 2 == 0, mishaps=chance)


@pytest.mark.parametrize("seed", range(0, 60, 10))
def test_oracle_deletions_begin_with_a_part(
    seed: int, engine_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some go on with the rest, others are given up."""

    def doubtful(situation: Situation, history: History) -> Choice:
        del situation, history
        forecast = Forecast(
            instances=100.0, facts=20, limit=50.0, until=1e9, seconds=1e9
        )
        return Choice("dred-c", "", CostLimit(1e9, 1e9, forecast=forecast))

    monkeypatch.setattr(materialisation, "choose", doubtful)
    monkeypatch.setattr(limits, "_TELLING", 1)
    for number in range(seed, seed + 10):
        play(hard_scenario(number), ["auto"], partial(make_engine, engine_name))


@settings(max_examples=60)
@given(scenario=scenarios())
def test_oracle_facts_change(scenario: Scenario, engine_name: str) -> None:
    play(scenario, ALGORITHMS, partial(make_engine, engine_name))


@settings(max_examples=60)
@given(scenario=scenarios(change_rules=True))
def test_oracle_facts_and_rules_change(scenario: Scenario, engine_name: str) -> None:
    play(scenario, ALGORITHMS, partial(make_engine, engine_name))


@settings(max_examples=30)
@given(
    scenario=scenarios(change_rules=True), algorithm=st.sampled_from(WITHOUT_COUNTERS)
)
def test_oracle_without_counters(
    scenario: Scenario, algorithm: str, engine_name: str
) -> None:
    tracked = Tracked(make_engine(engine_name), counters=False)
    tracked.load(scenario.rules, scenario.facts)
    for update in scenario.updates:
        tracked.apply(update, algorithm)


@pytest.mark.parametrize("seed", range(0, 60, 10))
def test_oracle_one_counter(seed: int, engine_name: str) -> None:
    """Algorithms take turns, so that each finds what the others leave."""
    for number in range(seed, seed + 10):
        tracked = Tracked(make_engine(engine_name), counters="nonrecursive")
        turn = number % len(WITH_ONE_COUNTER)
        algorithms = WITH_ONE_COUNTER[turn:] + WITH_ONE_COUNTER[:turn]
        run_through(hard_scenario(number), tracked, algorithms)


@settings(max_examples=30)
@given(
    scenario=scenarios(change_rules=True), algorithm=st.sampled_from(WITH_ONE_COUNTER)
)
def test_oracle_one_counter_as_rules_change(
    scenario: Scenario, algorithm: str, engine_name: str
) -> None:
    tracked = Tracked(make_engine(engine_name), counters="nonrecursive")
    tracked.load(scenario.rules, scenario.facts)
    for update in scenario.updates:
        tracked.apply(update, algorithm)


@settings(max_examples=40)
@given(
    scenario=scenarios(max_updates=6, change_rules=True),
    turns=st.lists(st.sampled_from(ALGORITHMS), min_size=6, max_size=6),
)
def test_agree_algorithms_can_take_turns(
    scenario: Scenario, turns: list[str], engine_name: str
) -> None:
    tracked = Tracked(make_engine(engine_name))
    tracked.load(scenario.rules, scenario.facts)
    for update, algorithm in zip(scenario.updates, turns, strict=False):
        tracked.apply(update, algorithm)


@settings(max_examples=30)
@given(
    scenario=scenarios(max_updates=2, change_rules=True),
    algorithm=st.sampled_from(ALGORITHMS),
)
def test_agree_dry_runs_foretell_updates(
    scenario: Scenario, algorithm: str, engine_name: str
) -> None:
    tracked = Tracked(make_engine(engine_name))
    tracked.load(scenario.rules, scenario.facts)
    for update in scenario.updates:
        tracked.plan(update, algorithm)
        tracked.apply(update, algorithm)
