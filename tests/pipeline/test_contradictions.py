"""Contradictions are counted and shown by the report of a run, or refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evermat import KnowledgeBase
from evermat.cli import OK, WRONG_INPUT
from evermat.cli import run as evermat

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PIPELINE = """
[program]
ontologies = "ontology.ttl"

[engine]
name = "embedded"
{policy}

[state]
path = "state"

[[source]]
path = "data.nt"

[[output]]
predicates = ["triple"]
format = "nt"
path = "out"
"""
ONTOLOGY = """
@prefix : <http://e/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
:A rdfs:subClassOf :B . :B owl:disjointWith :C .
"""
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
X_IS_A, X_IS_C = (f"<http://e/x> {TYPE} <http://e/{name}> .\n" for name in "AC")


def configured(folder: Path, policy: str) -> str:
    text = PIPELINE.format(policy=policy)
    (folder / "pipeline.toml").write_text(text)
    (folder / "ontology.ttl").write_text(ONTOLOGY)
    (folder / "data.nt").write_text(X_IS_A + X_IS_C)
    return str(folder / "pipeline.toml")


def last_report(folder: Path) -> dict[str, object]:
    *_, report = sorted((folder / "runs").glob("*.json"))
    found: dict[str, object] = json.loads(report.read_text())["contradictions"]
    return found


def test_the_report_shows_them_as_long_as_they_are_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    pipeline = configured(tmp_path, "")
    assert evermat(["pipeline", "run", pipeline]) == OK
    shown = "false(owl:disjointWith, :B, :C, :x)"
    assert f"\nContradictions\ncontradiction\n{shown}\n" in capsys.readouterr().out
    assert last_report(tmp_path) == {"count": 1, "shown": [shown]}
    (page,) = (tmp_path / "runs").glob("*.html")
    assert "owl:disjointWith" in page.read_text()
    (tmp_path / "data.nt").write_text(X_IS_A)
    assert evermat(["pipeline", "update", pipeline]) == OK
    assert "Contradictions" not in capsys.readouterr().out
    assert last_report(tmp_path) == {"count": 0, "shown": []}


def test_a_run_that_brings_some_can_be_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    pipeline = configured(tmp_path, 'contradictions = "refuse"')
    (tmp_path / "data.nt").write_text(X_IS_A)
    assert evermat(["pipeline", "run", pipeline]) == OK
    (tmp_path / "data.nt").write_text(X_IS_A + X_IS_C)
    assert evermat(["pipeline", "update", pipeline]) == WRONG_INPUT
    assert "EM613" in capsys.readouterr().err
    assert KnowledgeBase.open(str(tmp_path / "state")).count("triple") == 2
