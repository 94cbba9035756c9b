"""Axioms of ontologies that no rule stands for are told, once for each file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evermat.cli import OK, run

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PIPELINE = """
[program]
ontologies = "ontology.ttl"

[engine]
name = "reference"

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
:A rdfs:subClassOf :B . :B owl:disjointWith :C , :D . :x owl:differentFrom :y .
:E owl:oneOf (:x :y) . :p rdfs:range :F . :D owl:unionOf (:E :F) .
"""
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def test_standard_error_and_the_report_tell(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipeline.toml").write_text(PIPELINE)
    (tmp_path / "ontology.ttl").write_text(ONTOLOGY)
    (tmp_path / "data.nt").write_text(
        f'<http://e/x> {TYPE} <http://e/A> .\n<http://e/x> <http://e/p> "y" .\n'
    )
    assert run(["pipeline", "run", "pipeline.toml"]) == OK
    told = capsys.readouterr().err
    assert told.count("EM912") == 1
    assert "ignored: class expression on the right (2)\n" in told
    assert "class expression on the right: <http://e/E> owl:oneOf [ … ]" in told
    (report,) = (tmp_path / "runs").glob("*.json")
    ignored = json.loads(report.read_text())["ignored_axioms"]
    # A literal with a type, which RDF does not allow, is left out.
    assert "2 of 9 triples left out of" in told
    (written,) = (tmp_path / "out").iterdir()
    assert len(written.read_text().splitlines()) == 7
    assert ignored == {"class expression on the right": 2}
