"""Questions in SPARQL on the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from evermat.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

ONTOLOGY = """
@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Cat rdfs:subClassOf :Animal .
"""


def test_an_ontology_is_asked_in_sparql(tmp_path: Path) -> None:
    (tmp_path / "o.ttl").write_text(ONTOLOGY)
    (tmp_path / "d.ttl").write_text("@prefix : <http://e/> . :tom a :Cat .")
    start = ["query", str(tmp_path / "o.ttl"), "-f", str(tmp_path / "d.ttl")]
    asked = "SELECT ?x { ?x a :Animal }"
    done = CliRunner().invoke(app, [*start, asked, "--sparql", "--json"])
    assert json.loads(done.output)["rows"] == [["<http://e/tom>"]]
    done = CliRunner().invoke(app, [*start, "ASK { :tom a :Dog }", "--sparql"])
    assert done.output == "no\n"
    done = CliRunner().invoke(app, [*start, "DELETE DATA { :a :b :c }", "--sparql"])
    assert done.exit_code == 1


def test_unbound_values_are_empty(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text("@prefix : <http://e/> . [:a, :p, :b] .")
    asked = "SELECT ?o ?q { :a :p ?o OPTIONAL { :a :q ?q } }"
    start = ["query", str(tmp_path / "p.dl"), asked, "--sparql"]
    assert CliRunner().invoke(app, start).output == "o\tq\n<http://e/b>\t\n"
    done = CliRunner().invoke(app, [*start, "--json"])
    assert json.loads(done.output)["rows"] == [["<http://e/b>", None]]
