"""Every algorithm, on every engine, ends where a computation from scratch ends.

Facts, both counters and the reported change are compared after every update.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat.engines import make_engine
from strategies import Scenario, scenarios
from tracked import ALGORITHMS, WITHOUT_COUNTERS, Tracked

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(scenario=scenarios())
def test_oracle_facts_change(
    scenario: Scenario, algorithm: str, engine_name: str
) -> None:
    tracked = Tracked(make_engine(engine_name))
    tracked.load(scenario.rules, scenario.facts)
    for update in scenario.updates:
        tracked.apply(update, algorithm)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(scenario=scenarios(change_rules=True))
def test_oracle_facts_and_rules_change(
    scenario: Scenario, algorithm: str, engine_name: str
) -> None:
    tracked = Tracked(make_engine(engine_name))
    tracked.load(scenario.rules, scenario.facts)
    for update in scenario.updates:
        tracked.apply(update, algorithm)


@pytest.mark.parametrize("algorithm", WITHOUT_COUNTERS)
@given(scenario=scenarios(change_rules=True))
def test_oracle_without_counters(
    scenario: Scenario, algorithm: str, engine_name: str
) -> None:
    tracked = Tracked(make_engine(engine_name), counters=False)
    tracked.load(scenario.rules, scenario.facts)
    for update in scenario.updates:
        tracked.apply(update, algorithm)


@given(
    scenario=scenarios(max_updates=6, change_rules=True),
    choose=st.functions(
        like=lambda number: None, returns=st.sampled_from(ALGORITHMS), pure=True
    ),
)
def test_agree_algorithms_can_take_turns(
    scenario: Scenario, choose: Callable[[int], str], engine_name: str
) -> None:
    tracked = Tracked(make_engine(engine_name))
    tracked.load(scenario.rules, scenario.facts)
    for number, update in enumerate(scenario.updates):
        tracked.apply(update, choose(number))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(scenario=scenarios(max_updates=2, change_rules=True))
def test_agree_dry_runs_foretell_updates(
    scenario: Scenario, algorithm: str, engine_name: str
) -> None:
    tracked = Tracked(make_engine(engine_name))
    tracked.load(scenario.rules, scenario.facts)
    for update in scenario.updates:
        tracked.plan(update, algorithm)
        tracked.apply(update, algorithm)
