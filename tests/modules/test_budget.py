"""Limits hold where modules are at work, too."""

from __future__ import annotations

import pytest

import evermat
from evermat.algebra import Closure, ClosureKind, Column, Pattern
from evermat.engines import make_engine

CLOSURE = "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) . seen(?y) :- r(0, ?y) ."
TAKING_TURNS = CLOSURE + "r(?y, ?z) :- r(0, ?y), step(?y, ?z) ."
STEPS = [(at, at + 1) for at in range(10)]


def test_facts_of_modules_are_counted(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(
        CLOSURE, engine=engine_name, budget=evermat.Budget(facts=30)
    )
    kb.insert("r", STEPS[:5])
    with pytest.raises(evermat.BudgetExceededError) as error:
        kb.insert("r", STEPS)
    assert error.value.resource == "facts"
    assert kb.count("r") == 15


def test_rounds_are_counted_where_modules_and_rules_take_turns(
    engine_name: str,
) -> None:
    kb = evermat.KnowledgeBase(
        TAKING_TURNS, engine=engine_name, budget=evermat.Budget(rounds=5)
    )
    kb.insert("step", STEPS)
    with pytest.raises(evermat.BudgetExceededError) as error:
        kb.insert("r", STEPS[:1])
    assert error.value.resource == "rounds"
    assert not kb.count("r")


def test_a_closure_by_itself_takes_one_round(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(
        CLOSURE, engine=engine_name, budget=evermat.Budget(rounds=2)
    )
    kb.insert("r", STEPS)
    assert kb.count("r") == 55


def test_an_engine_lets_the_monitor_look_before_it_writes_a_closure() -> None:
    class Impatient:
        def working(self, label: str, matches: int) -> None:
            raise TimeoutError(label, matches)

    engine = make_engine("embedded")
    engine.declare("r", 2)
    pattern = Pattern("r", (Column(0), Column(1)))
    engine.monitor = Impatient()
    with pytest.raises(TimeoutError, match="closure of `r`"):
        engine.close(Closure(ClosureKind.TRANSITIVE, pattern), engine.materialised)
