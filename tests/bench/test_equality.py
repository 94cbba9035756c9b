"""The suite `equality` runs, and its problems have the equalities they promise."""

from __future__ import annotations

import pytest

import evermat
from evermat.bench import equality, run
from evermat.bench.generators.equalities import (
    ontology_equalities,
    university_equalities,
)


@pytest.mark.usefixtures("uncollected")
def test_the_suite_measures_all_ways(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is measured again and again is the same each time, but for the time.
    for name in ("_ROUNDS", "_SAMPLES", "_WARM_UPS"):
        monkeypatch.setattr(equality, name, 1)
    run("equality", scale=0.0002, repeat=1, only=["small-cliques", "one-clique"])
    told = capsys.readouterr().out
    assert "Deleting facts with equality" in told
    assert "1,000 knows" in told
    assert equality.NAMES == ("universities", "one-clique", "small-cliques", "ontology")


def test_people_and_universities_have_second_names() -> None:
    problem = university_equalities(1, departments=2)
    kb = evermat.KnowledgeBase(problem.rules)
    kb.load(problem.facts)
    members = {name for name, _ in kb.representatives()}
    assert any(str(name).startswith("university") for name in members)
    assert any(str(name).startswith("undergraduate") for name in members)


def test_most_rules_of_the_ontology_are_idle() -> None:
    problem = ontology_equalities(1000, 100)
    kb = evermat.KnowledgeBase(problem.rules)
    kb.load(problem.facts)
    assert len(kb.rules) > 900
    assert len(kb.representatives()) > 0
