"""Counting: optimal on nonrecursive programs, refused on recursive ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings

import oracle
from evermat.engines import make_engine
from evermat.maintenance.counting import RecursiveProgramError
from paper_examples import REACHABILITY, SYMMETRIC_PAIRS, Example, symmetric_pairs
from strategies import Scenario, scenarios
from tracked import play

if TYPE_CHECKING:
    from evermat.algebra import Engine


def is_recursive(scenario: Scenario) -> bool:
    rules = list(scenario.rules)
    for update in scenario.updates:
        rules += update.add_rules
    program = oracle.Program(oracle.distinct(rules))
    return any(program.is_recursive(rule) for rule in program.rules)


@settings(max_examples=40)
@given(scenario=scenarios())
def test_oracle_nonrecursive_programs(scenario: Scenario, engine_name: str) -> None:
    assume(not is_recursive(scenario))
    play(scenario, ["counting"], partial(make_engine, engine_name))


def test_recursive_rules_are_named(engine: Engine) -> None:
    example = Example(engine, REACHABILITY, edge=[("a", "b")])
    with pytest.raises(RecursiveProgramError, match="`counting` cannot") as raised:
        example.update(delete={"edge": [("a", "b")]}, algorithm="counting")
    (rule,) = raised.value.rules
    assert str(rule) in str(raised.value)
    assert example.rows("reach") == {("a", "b")}


def test_added_recursive_rule_is_refused(engine: Engine) -> None:
    example = Example(engine, "reach(?x, ?y) :- edge(?x, ?y) .", edge=[("a", "b")])
    with pytest.raises(RecursiveProgramError):
        example.update(
            add_rules="reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .",
            algorithm="counting",
        )
    assert len(example.materialisation.rules) == 1


def test_paper_example_1_looks_only_at_destroyed_instances(engine: Engine) -> None:
    number = 10
    example = Example(engine, SYMMETRIC_PAIRS, r=symmetric_pairs(number))
    spokes = [(f"a{i}", f"c{i}") for i in range(number)]
    outcome = example.update(delete={"r": spokes}, algorithm="counting")
    assert outcome.report.forward_instances == 3 * number
    assert example.counts("s") == {("b", "b"): (number, 0)}


def test_fact_that_changes_its_support_stays(engine: Engine) -> None:
    rules = "p(?x) :- q(?x) . p(?x) :- o(?x) . r(?x) :- p(?x) ."
    example = Example(engine, rules, q=[(1,)], o=[(2,)])
    outcome = example.update(
        delete={"q": [(1,)]}, insert={"o": [(1,)]}, algorithm="counting"
    )
    assert outcome.removed.relations() == {"q": 1}
    assert outcome.added.relations() == {"o": 1}
    assert sum(stratum.overdeleted for stratum in outcome.report.strata) == 1
