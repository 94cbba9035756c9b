"""FP-update: the run of Table 1, small and large sets of unsure facts, rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evermat.maintenance import fixpoint_update
from paper_examples import GRAPH, REACHABILITY, Example, pairs, values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.algebra import Engine, SettledFacts
    from evermat.maintenance.context import Run
    from evermat.maintenance.limits import Step
    from evermat.maintenance.strata import Stratum

UNSURE = ["ef", "bf", "af", "eg", "eh", "bg", "bh", "ag", "ah"]


def test_paper_table_1(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Step] = []
    example = Example(engine, REACHABILITY, edge=pairs(GRAPH), progress=steps.append)
    seen: dict[str, set[tuple[object, ...]]] = {}

    def spy(run: Run, stratum: Stratum, unsure: SettledFacts) -> Iterator[SettledFacts]:
        restored = list(restore(run, stratum, unsure))
        union = run.engine.snapshot(run.union(restored))
        seen["unsure"] = values(run.engine.snapshot(unsure), "reach")
        seen["restored"] = values(union, "reach")
        yield from restored

    restore = fixpoint_update.restore_naively
    monkeypatch.setattr(fixpoint_update, "restore_naively", spy)
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


@pytest.mark.parametrize("share", [0, 10_000])
def test_agree_both_ways_to_restore(
    engine: Engine, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixpoint_update, "_SMALL", share)
    example = Example(engine, REACHABILITY, edge=pairs(GRAPH))
    outcome = example.update(delete={"edge": [("e", "f")]}, algorithm="fp")
    assert values(outcome.removed, "reach") == pairs(["ef", "eh", "bf", "bh"])
    assert (outcome.report.backward_instances > 0) == (share == 0)


def test_removed_rule_takes_its_dependants_along(engine: Engine) -> None:
    example = Example(engine, REACHABILITY, edge=pairs(GRAPH))
    outcome = example.update(
        remove_rules="reach(?a, ?b) :- reach(?a, ?i), edge(?i, ?b) .", algorithm="fp"
    )
    assert example.rows("reach") == pairs(GRAPH)
    assert outcome.report.removed_rules == 1
