"""Stored counts are counts computed from scratch, whoever computed them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from evermat.engines import make_engine
from paper_examples import Example
from strategies import Scenario, scenarios
from tracked import ALGORITHMS, Tracked

if TYPE_CHECKING:
    from evermat.algebra import Engine


@settings(max_examples=40)
@given(scenario=scenarios())
def test_oracle_materialisation_counts(scenario: Scenario, engine_name: str) -> None:
    tracked = Tracked(make_engine(engine_name))
    tracked.load(scenario.rules, scenario.facts)


def test_given_fact_counts_as_a_nonrecursive_derivation(engine: Engine) -> None:
    example = Example(engine, "p(?x) :- q(?x, ?y) .", p=[(1,)], q=[(1, 2), (1, 3)])
    assert example.counts("p") == {(1,): (3, 0)}


def test_rules_that_differ_in_constants_count_apart(engine: Engine) -> None:
    rules = "p(?x) :- q(?x, 1) . p(?x) :- q(?x, 2) . p(?x) :- q(?x, 3) ."
    example = Example(engine, rules, q=[(7, 1), (7, 2), (8, 3)])
    assert example.counts("p") == {(7,): (2, 0), (8,): (1, 0)}


def test_instance_with_one_fact_twice_counts_once(engine: Engine) -> None:
    example = Example(engine, "s(?x, ?z) :- e(?x, ?y), e(?y, ?z) .", e=[(1, 1), (1, 2)])
    assert example.counts("s") == {(1, 1): (1, 0), (1, 2): (1, 0)}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_counts_of_a_cycle(engine: Engine, algorithm: str) -> None:
    rules = "r(?x, ?y) :- e(?x, ?y) . r(?x, ?z) :- r(?x, ?y), r(?y, ?z) ."
    example = Example(engine, rules, e=[(1, 2), (2, 1)])
    everything = {(x, y) for x in (1, 2) for y in (1, 2)}
    assert example.counts("r") == {
        pair: (int(pair in {(1, 2), (2, 1)}), 2) for pair in everything
    }
    example.update(delete={"e": [(2, 1)]}, algorithm=algorithm)
    assert example.counts("r") == {(1, 2): (1, 0)}
