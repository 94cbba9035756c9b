"""The suite that compares closures with modules and without."""

from __future__ import annotations

import pytest

import evermat
from evermat import bench
from evermat.bench.modules import WORKLOADS, Figures, Row, tables
from evermat.bench.plans import Options


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_modules_change_nothing_but_the_time(workload: object) -> None:
    assert workload in WORKLOADS
    chosen = next(each for each in WORKLOADS if each is workload)
    problem = chosen.make(0.0005)
    with_modules, without = (
        evermat.KnowledgeBase(problem.rules + chosen.reader, modules=on)
        for on in (True, False)
    )
    first, second = with_modules.load(problem.facts), without.load(problem.facts)
    assert first.sizes == second.sizes
    assert set(with_modules.facts(chosen.closure)) == set(without.facts(chosen.closure))


def test_a_run_measures_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    bench.run("modules", scale=0.001, only=("cliques",), time_limit=120)
    shown = capsys.readouterr().out
    assert "20 cliques of 700" in shown
    assert "large deletion" in shown


def test_goals_are_compared_with_what_was_measured() -> None:
    rows = [
        Row(
            "cliques",
            modules=True,
            scale=1.0,
            status="done",
            seconds={"materialise": 0.05, "read": 2.0},
        ),
        Row(
            "cliques",
            modules=True,
            scale=0.05,
            status="done",
            seconds={"materialise": 0.01},
        ),
        Row("cliques", modules=False, scale=0.05, status="time limit"),
    ]
    _, goals = tables(Figures(rows), Options())
    assert [row[-1] for row in goals.rows] == [
        "yes",
        "no",
        "–",
        "yes, without modules it did not end",
    ]
