"""`auto` looks for proofs first where deleting for a time costs more."""

from __future__ import annotations

import pytest

import evermat
from closure_scenarios import closure_scenario
from evermat.engines import make_engine
from evermat.maintenance import cost_model, modular
from tracked import Tracked

RULES = """
    r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .
    r(?x, ?y) :- e(?x, ?y) .
    r(?x, ?y) :- link(?x, ?y), r(?k, ?x), key(?k) .
    seen(?y) :- r(0, ?y) .
"""
LENGTH = 30


def two_chains(engine_name: str) -> evermat.KnowledgeBase:
    """Two chains with a link between them, which any of four keys opens."""
    chains = [
        (first + at, first + at + 1) for first in (0, 1000) for at in range(LENGTH)
    ]
    keys = [(5000 + at,) for at in range(4)]
    kb = evermat.KnowledgeBase(RULES, engine=engine_name)
    opened = [(key, LENGTH) for (key,) in keys]
    kb.load({"e": [*chains, *opened], "link": [(LENGTH, 1000)], "key": keys})
    return kb


def test_auto_learns_that_facts_come_back(
    engine_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost_model, "_MANY_RETURNING", 100)
    kb = two_chains(engine_name)
    first, second = (
        kb.update(delete={"e": [(key, LENGTH)]}).report for key in (5000, 5001)
    )
    assert first.algorithm == "dred-c"
    assert second.algorithm == "bf-c"
    assert "for a time only" in second.reason
    assert "1 facts need a proof" in second.reason
    assert second.removed == first.removed
    overdeleted = [
        sum(stratum.overdeleted for stratum in report.strata)
        for report in (first, second)
    ]
    # All ways through the link were deleted at first, and came back.
    assert overdeleted[0] > LENGTH**2
    assert overdeleted[1] <= second.removed
    assert kb.contains("r", (0, 1000 + LENGTH))


def test_auto_keeps_to_dred_where_few_facts_come_back(engine_name: str) -> None:
    kb = two_chains(engine_name)
    reports = [kb.update(delete={"e": [(key, LENGTH)]}).report for key in (5000, 5001)]
    assert [report.algorithm for report in reports] == ["dred-c", "dred-c"]


def test_auto_keeps_to_dred_where_much_is_in_doubt(engine_name: str) -> None:
    edges = [(at, (at * 7 + step) % 40) for at in range(40) for step in (1, 5)]
    kb = evermat.KnowledgeBase(
        "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) ."
        "r(?x, ?y) :- e(?x, ?y) ."
        "r(?x, ?z) :- r(?x, ?y), s(?y, ?z) ."
        "seen(?y) :- r(0, ?y) .",
        engine=engine_name,
    )
    kb.load({"e": edges[:20], "s": edges[20:]})
    for edge in edges[:3]:
        assert kb.update(delete={"e": [edge]}).report.algorithm != "bf-c"


@pytest.mark.parametrize("seed", range(12))
def test_closures_that_are_left_to_their_rules_stay_right(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modular, "LEAST_FACTS", 0)
    algorithm = ("dred-c", "bf-c", "bf", "auto", "remat")[seed % 5]
    story = closure_scenario(7000 + 3 * seed, change_rules=True)
    tracked = Tracked(make_engine("embedded"), modules=True)
    tracked.load(story.rules, story.facts)
    for update in story.updates:
        tracked.apply(update, algorithm)


def test_one_fact_of_many_instances_does_not_decide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A small sample has the busiest fact in it, and a larger one is asked then."""
    monkeypatch.setattr(modular, "LEAST_FACTS", 1)
    monkeypatch.setattr(modular, "MOST_INSTANCES", 8)
    rules = """
        r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .
        r(?x, ?z) :- r(?x, ?y), f(?y, ?z) .
    """
    # The first fact that is derived leads to a node that reaches 2,000 others.
    leaves = [(2, 10 + at) for at in range(2_000)]
    facts = {"r": [(0, 1), (1, 2), *leaves]}
    facts["f"] = [(10, 4)]
    for sizes, left in (((4,), False), ((4, 1_024), True)):
        monkeypatch.setattr(modular, "SAMPLES", sizes)
        kb = evermat.KnowledgeBase(rules, engine="embedded")
        report = kb.load(facts).report
        assert ("left to their rules" in report.reason) == left
        assert kb.contains("r", (0, 4))
