"""Limits hold where modules are at work, too."""

from __future__ import annotations

import pytest

import evermat
from evermat.algebra import Closure, ClosureKind, Column, Pattern
from evermat.engines import make_engine
from evermat.maintenance.limits import Watch

SEEN = "seen(?y) :- r(0, ?y) ."
CLOSURE = "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) ." + SEEN
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


def test_a_closure_stops_before_it_writes_too_many_facts(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(
        CLOSURE, engine=engine_name, budget=evermat.Budget(facts=30)
    )
    with pytest.raises(evermat.BudgetExceededError, match="closure of r") as error:
        kb.insert("r", STEPS)
    assert error.value.resource == "facts"
    assert not kb.count("r")
    kb.insert("r", STEPS[:5])
    assert kb.count("r") == 15


def test_a_part_of_a_relation_is_counted_by_itself(engine_name: str) -> None:
    rules = (
        "link(?x, ?z, 1) :- link(?x, ?y, 1), link(?y, ?z, 1) . "
        "seen(?y) :- link(0, ?y, 1) ."
    )
    kb = evermat.KnowledgeBase(
        rules, engine=engine_name, budget=evermat.Budget(facts=200)
    )
    kb.insert("link", [(at, at + 1, 2) for at in range(100)])
    steps = [(at, at + 1, 1) for at in range(10)]
    kb.insert("link", steps)
    with pytest.raises(evermat.BudgetExceededError, match="closure of link"):
        kb.insert("link", [(at, at + 1, 1) for at in range(10, 40)])
    assert kb.count("link") == 155


def test_a_closure_takes_a_round(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(
        CLOSURE + "r(?x, ?y) :- e(?x, ?y) .",
        engine=engine_name,
        budget=evermat.Budget(rounds=1),
    )
    kb.insert("e", STEPS[:1])
    with pytest.raises(evermat.BudgetExceededError, match="closure of r") as error:
        kb.insert("e", STEPS)
    assert error.value.resource == "rounds"
    assert kb.count("r") == 1


def test_a_closure_minds_the_clock() -> None:
    watch = Watch(evermat.Budget(seconds=1))
    watch.writing("closure of r", 5)
    watch.start -= 2
    with pytest.raises(evermat.BudgetExceededError, match="closure of r"):
        watch.writing("closure of r", 5)


def test_limits_hold_while_a_held_closure_is_written(
    monkeypatch: pytest.MonkeyPatch, engine_name: str
) -> None:
    kb = evermat.KnowledgeBase(
        "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .",
        engine=engine_name,
        budget=evermat.Budget(facts=20, memory_bytes=1 << 50),
    )
    kb.insert("r", STEPS)
    with monkeypatch.context() as patch:
        patch.setattr("evermat.maintenance.limits.resident_memory", lambda: 1 << 60)
        with pytest.raises(evermat.BudgetExceededError, match="closure of r"):
            kb.update(add_rules=SEEN, algorithm="dred-c")
    assert kb.count("r") == 55
    kb.update(add_rules=SEEN, algorithm="dred-c")  # the old facts are not new ones
    assert kb.count("seen") == 10


def test_a_closure_by_itself_takes_one_round(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(
        CLOSURE, engine=engine_name, budget=evermat.Budget(rounds=2)
    )
    kb.insert("r", STEPS)
    assert kb.count("r") == 55


def test_an_engine_lets_the_monitor_look_before_it_writes_a_closure() -> None:
    class Impatient:
        def working(self, label: str, matches: int) -> None:
            raise AssertionError(label, matches)

        def writing(self, label: str, facts: int) -> None:
            raise TimeoutError(label, facts)

    engine = make_engine("embedded")
    engine.declare("r", 2)
    pattern = Pattern("r", (Column(0), Column(1)))
    engine.monitor = Impatient()
    with pytest.raises(TimeoutError, match="closure of r"):
        engine.close(Closure(ClosureKind.TRANSITIVE, pattern), engine.materialised)
