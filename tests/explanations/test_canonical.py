"""Every explanation is the canonical proof, whatever engine and history it comes from.

The oracle says what that is, and there is one only: so explanations are the same on all
engines, with modules and without, and after updates as if all had been loaded at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from closure_scenarios import closure_scenario
from evermat import KnowledgeBase
from proof_checker import Way, by_predicate, go, paths, play
from skeletons import scenario as hard_scenario
from strategies import scenarios

if TYPE_CHECKING:
    from evermat.explain.explanation import Explanation
    from strategies import Scenario

WAYS: tuple[Way, ...] = ("as usual", "backwards", "forwards", "in turns")


@pytest.mark.parametrize("modules", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(0, 12, 4))
def test_oracle_closures(
    monkeypatch: pytest.MonkeyPatch,
    engine_name: str,
    stories: slice,
    seed: int,
    way: Way,
    *,
    modules: bool,
) -> None:
    go(monkeypatch, way)
    for number in range(seed, seed + 4)[stories]:
        play(
            closure_scenario(number, change_rules=number % 2 == 0),
            engine_name,
            modules=modules,
        )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(0, 15, 5))
def test_oracle_programs_that_are_hard(
    monkeypatch: pytest.MonkeyPatch,
    engine_name: str,
    stories: slice,
    seed: int,
    way: Way,
) -> None:
    go(monkeypatch, way)
    for number in range(seed, seed + 5)[stories]:
        play(hard_scenario(number), engine_name, modules=number % 2 == 0)


@pytest.mark.parametrize("modules", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(3))
def test_oracle_long_paths(
    monkeypatch: pytest.MonkeyPatch,
    engine_name: str,
    seed: int,
    way: Way,
    *,
    modules: bool,
) -> None:
    go(monkeypatch, way)
    play(paths(seed), engine_name, modules=modules)


@settings(max_examples=25)
@given(scenario=scenarios(max_updates=2, change_rules=True, aggregates=False))
def test_oracle_random_programs(engine_name: str, scenario: Scenario) -> None:
    play(scenario, engine_name, modules=True)


def test_agree_explanations_do_not_depend_on_counters(engine_name: str) -> None:
    texts = set()
    for counters in (True, False):
        kb = KnowledgeBase(
            "r(?x, ?y) :- e(?x, ?y) . r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .",
            engine=engine_name,
            counters=counters,
        )
        kb.insert("e", [(1, 2), (2, 3), (3, 4), (4, 1), (1, 3)])
        explanations: list[Explanation] = [
            kb.explain("r", row) for row in kb.facts("r").to_list()
        ]
        texts.add("\n".join(sorted(map(str, explanations))))
    assert len(texts) == 1


@pytest.mark.parametrize("seed", range(4))
def test_agree_on_what_does_not_hold(engine_name: str, seed: int) -> None:
    scenario = closure_scenario(seed, change_rules=False)
    texts = set()
    for engine, modules in ((engine_name, True), ("reference", False)):
        kb = KnowledgeBase(engine=engine, modules=modules, equality="off")
        kb.update(insert=by_predicate(scenario.facts), add_rules=list(scenario.rules))
        two = [name for name, arity in kb.predicates.items() if arity == 2]
        rows = [("y1", "y6"), ("y3", "y3"), ("never", "heard")]
        asked = [(name, row) for name in two for row in rows]
        absent = [each for each in asked if not kb.contains(*each)]
        texts.add("\n".join(str(kb.explain(*each)) for each in absent))
    assert len(texts) == 1


def test_integers_that_python_does_not_print_are_in_order(engine_name: str) -> None:
    kb = KnowledgeBase("p(?x) :- q(?x, ?y) .", engine=engine_name)
    kb.insert("q", [(1, -(10**5000)), (1, 7), (1, 10**5000), (2, 10**5000)])
    explanation = kb.explain("p", (1,))
    assert explanation.derivation is not None
    assert explanation.derivation.values == {"x": 1, "y": -(10**5000)}
    assert not kb.explain("p", (10**5000,))
