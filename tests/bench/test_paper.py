"""The tables of the papers: every row has its look-alike, contradictions are told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evermat import KnowledgeBase
from evermat.bench import paper, paper_task, published, run
from evermat.bench.generators.lookalikes import (
    Shape,
    related_places,
    triples_with_rules,
    with_equal_names,
)
from evermat.bench.paper import ROWS, contradicts, tables
from evermat.bench.paper_task import COUNTING_WAYS, equilibrium, rule_counts
from evermat.bench.processes import Options

if TYPE_CHECKING:
    from pathlib import Path

    from evermat.bench.generators.problem import Problem


def test_every_row_of_the_papers_tables_has_a_look_alike() -> None:
    rows: dict[str, list[str]] = {
        table: [] for table in ("000-1", "000-2", "001-1", "003")
    }
    for row in ROWS:
        for table in row.tables:
            if table in rows:
                rows[table].append(row.name.removesuffix(" with ≈"))
    assert sorted(rows["000-1"]) == sorted(published.SMALL_DELETIONS)
    assert sorted(rows["000-2"]) == sorted(published.LARGE_DELETIONS)
    assert sorted(rows["001-1"]) == sorted(published.EQUALITY)
    assert sorted(rows["003"]) == sorted(published.MODULES)


@pytest.mark.parametrize(
    "shape", [Shape(60, 12, 3), Shape(0, 90, 1), Shape(80, 0, 2, hubs=0.3)]
)
def test_look_alikes_have_the_rules_that_were_asked_for(shape: Shape) -> None:
    problem = triples_with_rules(shape, 2_000)
    counted = rule_counts(problem)
    # Random rules may be the same, and then they are one.
    assert 0.4 * shape.nonrecursive <= counted["nonrecursive"] <= shape.nonrecursive
    assert 0.7 * shape.recursive <= counted["recursive"] <= shape.recursive
    base = KnowledgeBase(problem.rules, equality="off")
    base.load(problem.facts)
    assert base.stats()["facts"] > problem.size


def test_rules_on_finds_are_as_deep_as_those_of_the_paper() -> None:
    problem = next(row for row in ROWS if row.name == "Claros-LE").make(0.02)
    counted = rule_counts(problem)
    assert counted["strata"] <= published.SIZES_000["Claros-LE"][1]
    assert counted["nonrecursive"] > 1_000
    base = KnowledgeBase(problem.rules, equality="off")
    base.load(problem.facts)
    assert base.count("kind10") > 0


def test_rules_that_change_are_a_thousand() -> None:
    problem = next(row for row in ROWS if row.name == "1,000 rules").make(0.02)
    counted = rule_counts(problem)
    assert counted["nonrecursive"] + counted["recursive"] == 1_000
    assert counted["recursive"] > 100


def test_equal_names_and_related_places_do_what_they_say() -> None:
    problem = with_equal_names(triples_with_rules(Shape(20, 0, 1), 400), 3, 4)
    base = KnowledgeBase(problem.rules)
    base.load(problem.facts)
    assert len(base.representatives()) == 3 * 4
    places = related_places(problem, 8, 4)
    base = KnowledgeBase(places.rules)
    base.load(places.facts)
    assert base.count("same") == 2 * 4 * 4


def test_a_share_costs_as_much_as_starting_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Deleting a share s costs s, starting again 0.3: so it is looked for at 0.3."""

    def loaded(problem: Problem, way: object) -> tuple[KnowledgeBase, dict[str, float]]:
        del problem, way
        return KnowledgeBase(), {"seconds": 0.3}

    def deleting(base: object, way: object, rows: dict[str, list[int]]) -> float:
        del base, way
        return sum(map(len, rows.values())) / problem.size

    problem = triples_with_rules(Shape(20, 0, 1), 4_000)
    monkeypatch.setattr(paper_task, "loaded", loaded)
    monkeypatch.setattr(paper_task, "_deleting", deleting)
    monkeypatch.setattr(paper_task, "_warm", lambda *_: None)
    found = equilibrium(problem, COUNTING_WAYS[:1], COUNTING_WAYS[1])
    assert found == pytest.approx(0.3, rel=0.2)


@pytest.mark.parametrize(
    ("ours", "theirs", "is_told"),
    [(0.5, 2.0, True), (2.0, 0.5, True), (2.0, 30.0, False), (1.1, 0.5, False)],
)
def test_ratios_on_the_other_side_of_one_are_told(
    ours: float, theirs: float, *, is_told: bool
) -> None:
    assert contradicts(ours, theirs) == is_told


@pytest.mark.usefixtures("in_process")
def test_a_row_is_measured_and_shown_beside_the_papers_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("paper", scale=0.005, only=["DAG-R"], json=tmp_path / "figures.json")
    printed = capsys.readouterr().out
    assert "003, Tables 1 and 2" in printed
    assert "(3,239 s)" in printed
    found = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    events = {(r["event"], r.get("way")) for r in found["tables"]["003"]["DAG-R"]}
    for event in ("loaded", "deleted", "inserted", "large"):
        for way in ("on", "off", "default"):
            assert (event, way) in events
    assert not found["endings"]


def test_what_was_not_measured_is_told() -> None:
    figures = paper.Figures(
        {"000-1": {"SSPE": []}}, {"000-1, SSPE": "stopped after 5 s"}
    )
    first, _ = tables(figures, Options())
    assert "000-1, SSPE: stopped after 5 s" in first.notes[-1]
    assert first.rows[0][5].startswith("– (10.53 s)")
