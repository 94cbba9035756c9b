"""Every explanation is the canonical proof, whatever engine and history it comes from.

The oracle says what that is, and there is one only: so explanations are the same on all
engines, with modules and without, and after updates as if all had been loaded at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given, settings

from closure_scenarios import closure_scenario
from evermat import KnowledgeBase
from evermat.maintenance import proof_heights
from proof_checker import Expected, by_predicate, carry_out, facts_of
from skeletons import scenario as hard_scenario
from strategies import scenarios
from tracked import model_of

if TYPE_CHECKING:
    from evermat.explanation import Explanation
    from strategies import Scenario

Way = Literal["as usual", "forwards", "in turns"]
MOST = 12
"""Facts that are explained after each update."""


def go(monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    """Have the search go a way that it would take on much more data only."""
    if way == "as usual":
        return
    turns = iter(range(10**9))

    def expected(_: object) -> float:
        return -1 if way == "forwards" or next(turns) % 2 else 10**9

    monkeypatch.setattr(proof_heights, "_FEW", -1)
    monkeypatch.setattr(proof_heights._Forwards, "expected", property(expected))  # noqa: SLF001


def play(scenario: Scenario, engine: str, *, modules: bool) -> None:
    kb = KnowledgeBase(engine=engine, modules=modules, equality="off")
    kb.update(insert=by_predicate(scenario.facts), add_rules=list(scenario.rules))
    check_all(kb)
    for update in scenario.updates:
        carry_out(kb, update)
        check_all(kb)


def check_all(kb: KnowledgeBase) -> None:
    # Not those of the scenario: rules without a body are given facts, too.
    explicit = frozenset(facts_of(kb, "explicit"))
    expected = Expected(kb.rules, explicit, model_of(kb.rules, explicit))
    facts = sorted(expected.model.facts, key=repr)
    for name, row in facts[:: 1 + len(facts) // MOST]:
        explanation = kb.explain(name, row, derivations=10**6)
        expected.check(explanation)
        expected.check_derivations((name, row), explanation.derivations)


@pytest.mark.parametrize("modules", [False, True])
@pytest.mark.parametrize("way", ["as usual", "forwards", "in turns"])
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


@pytest.mark.parametrize("way", ["as usual", "forwards", "in turns"])
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


@settings(max_examples=25)
@given(scenario=scenarios(max_updates=2, change_rules=True))
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
