"""Shapes of SHACL are checked on what follows; rules of SHACL are rules."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from evermat import KnowledgeBase
from evermat.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

pyshacl = pytest.importorskip("pyshacl")
shapes_module = pytest.importorskip("evermat.sparql.shapes")

PREFIXES = """
@prefix : <http://e/> . @prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
SHAPES = f"""{PREFIXES}
:PersonShape a sh:NodeShape ; sh:targetClass :Person ;
    sh:property [ sh:path :name ; sh:minCount 1 ; sh:message "no name" ] .
"""
RULES = f"""{PREFIXES}
<http://e/> sh:declare [ sh:prefix "e" ; sh:namespace "http://e/" ] .
:A sh:targetClass :Person ;
    sh:rule [ a sh:TripleRule ; sh:subject sh:this ; sh:predicate :knows ;
              sh:object [ sh:path :friend ] ] ;
    sh:rule [ a sh:TripleRule ; sh:subject sh:this ; sh:predicate :isA ;
              sh:object :Being ; sh:condition [ a sh:NodeShape ;
              sh:class :Living ] ] ;
    sh:rule [ a sh:SPARQLRule ; sh:prefixes <http://e/> ; sh:construct
        "CONSTRUCT {{ ?y e:likes $this }} {{ $this e:friend ?y }}" ] ;
    sh:rule [ a sh:SPARQLRule ; sh:prefixes <http://e/> ; sh:construct
        "CONSTRUCT {{ ?y e:x $this }} {{ $this e:age ?y FILTER(?y > 3) }}" ] .
:B sh:targetSubjectsOf :age ;
    sh:rule [ a sh:TripleRule ; sh:subject sh:this ; sh:predicate :known ;
              sh:object true ; sh:condition [ a sh:NodeShape ;
              sh:nodeKind sh:IRI ] ] .
"""


def test_shapes_see_what_follows(tmp_path: Path) -> None:
    (tmp_path / "s.ttl").write_text(SHAPES)
    kb = KnowledgeBase("@prefix : <http://e/> . [?x, a, :Person] :- [?x, a, :Man] .")
    kb.sparql("INSERT DATA { :tom a :Man . :ann a :Person ; :name 'Ann' }")
    found = kb.validate(tmp_path / "s.ttl")
    assert not found
    (violation,) = found.violations
    assert str(violation) == "Violation: :tom :name: no name"
    kb.sparql("INSERT DATA { :tom :name 'Tom' }")
    assert kb.validate(tmp_path / "s.ttl").conforms
    (tmp_path / "s.ttl").write_text("nonsense")
    with pytest.raises(shapes_module.ShapesError):
        kb.validate(tmp_path / "s.ttl")


def test_the_command_line_checks_shapes(tmp_path: Path) -> None:
    (tmp_path / "s.ttl").write_text(SHAPES)
    (tmp_path / "o.ttl").write_text(f"{PREFIXES} :Man rdfs:subClassOf :Person .")
    (tmp_path / "d.ttl").write_text(f"{PREFIXES} :tom a :Man .")
    words = ["check", "o.ttl", "-f", "d.ttl", "--shapes", "s.ttl"]
    paths = [str(tmp_path / each) if "." in each else each for each in words]
    done = CliRunner().invoke(app, paths)
    assert done.exit_code == 1
    assert "1 violation" in done.output
    (tmp_path / "d.ttl").write_text(f'{PREFIXES} :tom a :Man ; :name "Tom" .')
    assert CliRunner().invoke(app, paths).exit_code == 0


def test_rules_of_shacl_become_rules(tmp_path: Path) -> None:
    (tmp_path / "r.ttl").write_text(RULES)
    with pytest.warns(shapes_module.IgnoredShaclRulesWarning) as told:
        program = shapes_module.read_shacl_rules(tmp_path / "r.ttl")
    text = str(told[0].message)
    assert "more than triple patterns" in text
    assert "a condition that is more than a class" in text
    kb = KnowledgeBase(program)
    kb.sparql("INSERT DATA { :a a :Person, :Living ; :friend :b . :c :friend :d }")
    derived = {
        tuple(str(each).rpartition("/")[2] for each in row)
        for row in kb.facts("triple", "derived")
    }
    assert derived == {("a", "knows", "b"), ("a", "isA", "Being"), ("b", "likes", "a")}


def test_rules_of_shacl_agree_with_pyshacl(tmp_path: Path) -> None:
    (tmp_path / "r.ttl").write_text(RULES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kb = KnowledgeBase(shapes_module.read_shacl_rules(tmp_path / "r.ttl"))
    kb.sparql(
        "INSERT DATA { :a a :Person ; :friend :b, :c . :b a :Person ; :friend :a }"
    )
    theirs = kb.to_rdflib("explicit")
    shapes = shapes_module.read_shapes(tmp_path / "r.ttl")
    pyshacl.validate(theirs, shacl_graph=shapes, advanced=True, inplace=True)
    wanted = {(s, p, o) for s, p, o in theirs if str(p) != "http://e/x"}
    assert set(kb.to_rdflib()) == wanted
