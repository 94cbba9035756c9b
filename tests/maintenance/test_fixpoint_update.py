"""FP-update: the run of Table 1, what it meets and what DRed does, rules."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from evermat import KnowledgeBase
from evermat.bench.generators.graphs import backward_work
from evermat.engines import make_engine
from evermat.maintenance import fixpoint_update
from paper_examples import GRAPH, REACHABILITY, Example, pairs, values
from skeletons import scenario
from tracked import play

if TYPE_CHECKING:
    from evermat.algebra import Engine, SettledFacts
    from evermat.maintenance.context import Run, Stratum
    from evermat.maintenance.limits import Step

UNSURE = ["ef", "bf", "af", "eg", "eh", "bg", "bh", "ag", "ah"]


def test_paper_table_1(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Step] = []
    example = Example(engine, REACHABILITY, edge=pairs(GRAPH), progress=steps.append)
    seen: dict[str, set[tuple[object, ...]]] = {}

    def spy(run: Run, stratum: Stratum) -> SettledFacts:
        unsure = run.engine.settle(run.deleted.within(stratum.region))
        seen["unsure"] = values(run.engine.snapshot(unsure), "reach")
        restored = restore(run, stratum)
        seen["restored"] = values(run.engine.snapshot(restored), "reach")
        return restored

    restore = fixpoint_update.restore
    monkeypatch.setattr(fixpoint_update, "restore", spy)
    outcome = example.update(delete={"edge": [("e", "f")]}, algorithm="fp")

    assert seen["unsure"] == pairs(UNSURE)
    assert seen["restored"] == pairs(["af", "bg", "eg", "ag"])
    assert values(outcome.removed, "reach") == pairs(["ef", "eh", "bf", "bh"])
    # The paper derives `ef` one round before `bf` and `af`, although all three follow
    # from the edge by one rule application; after that its rounds and ours agree.
    overestimation = [s.new_facts for s in steps if s.phase == "overestimate"]
    assert overestimation == [3, 6]
    continuation = [s.new_facts for s in steps if s.phase == "continue"]
    assert continuation == [4, 1]  # af bg eg ag; then ah


@pytest.mark.parametrize("is_asked", [False, True])
def test_agree_both_ways_to_restore(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, *, is_asked: bool
) -> None:
    monkeypatch.setattr(fixpoint_update, "asks", lambda *_: is_asked)
    example = Example(engine, REACHABILITY, edge=pairs(GRAPH))
    outcome = example.update(delete={"edge": [("e", "f")]}, algorithm="fp")
    assert values(outcome.removed, "reach") == pairs(["ef", "eh", "bf", "bh"])
    assert (outcome.report.backward_instances > 0) == is_asked


@pytest.mark.parametrize("seed", range(0, 40, 10))
def test_oracle_rules_are_applied_to_all_that_is_kept(
    seed: int, engine_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixpoint_update, "asks", lambda *_: False)
    for number in range(seed, seed + 10):
        play(scenario(number), ["fp"], partial(make_engine, engine_name))


def test_rules_that_are_hard_to_evaluate_backwards_are_applied_forwards() -> None:
    """Example 1 of the paper on DRed^c: from head to body there are n^2 candidates."""
    size = 4_000
    problem = backward_work(size)
    spokes = problem.facts["r"].slice(size)
    kb = KnowledgeBase(problem.rules, counters=False, algorithm="fp")
    kb.load(problem.facts)
    change = kb.update(delete={"r": spokes})
    assert kb.count("s") == 1
    # Each fact that is kept derives one instance again: R(a, b), R(a, b) → S(b, b).
    assert change.report.forward_instances == 4 * size


def test_one_derivation_of_an_unsure_fact_is_enough() -> None:
    """As for DRed: a hub that loses one of many links is looked at once."""
    rules = "hub(?x) :- link(?x, ?y) ."
    links = [("a", str(number)) for number in range(500)]
    matched = {}
    for algorithm in ("fp", "dred"):
        example = Example(make_engine("embedded"), rules, link=links)
        outcome = example.update(delete={"link": links[:1]}, algorithm=algorithm)
        assert not values(outcome.removed, "hub")
        matched[algorithm] = outcome.report.backward_instances
    assert matched["fp"] == matched["dred"] == 1


def test_overestimation_takes_the_rounds_of_overdeletion(engine_name: str) -> None:
    """It meets some instances more than once, and no fact in an earlier round."""
    rules = (
        "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), path(?y, ?z) ."
    )
    work = {}
    for algorithm, phase in (("fp", "overestimate"), ("dred", "overdelete")):
        steps: list[Step] = []
        edges = pairs(["ab", "bc", "cd", "da"])
        engine = make_engine(engine_name)
        example = Example(engine, rules, edge=edges, progress=steps.append)
        outcome = example.update(delete={"edge": [("a", "b")]}, algorithm=algorithm)
        rounds = [step.new_facts for step in steps if step.phase == phase]
        work[algorithm] = rounds, outcome.report.forward_instances
    assert work["fp"][0] == work["dred"][0]
    assert work["fp"][1] > work["dred"][1]


def test_removed_rule_takes_its_dependants_along(engine: Engine) -> None:
    example = Example(engine, REACHABILITY, edge=pairs(GRAPH))
    outcome = example.update(
        remove_rules="reach(?a, ?b) :- reach(?a, ?i), edge(?i, ?b) .", algorithm="fp"
    )
    assert example.rows("reach") == pairs(GRAPH)
    assert outcome.report.removed_rules == 1
