"""RDFS in one line: the schema is among the facts, and counts as it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evermat import IRI, KnowledgeBase
from evermat.cli import OK
from evermat.cli import run as evermat
from evermat.io.ntriples import LeftOutTriplesWarning
from evermat.lang import format_source, parse_program
from evermat.lang.parser import READY_MADE
from evermat.rdf import read_rdf, write_rdf
from evermat.rdf.namespaces import RDFS

if TYPE_CHECKING:
    from pathlib import Path

LINE = "@include rdfs .\n"
DATA = """
@prefix : <http://e/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Painter rdfs:subClassOf :Artist . :Artist rdfs:subClassOf :Person .
:paints rdfs:subPropertyOf :creates ; rdfs:domain :Painter .
:creates rdfs:range :Work . :born rdfs:range xsd:integer .
:frida :paints :roots ; :born 1907 .
"""
FRIDA = {("frida", "Painter"), ("frida", "Artist"), ("frida", "Person")}
ROOTS = {("roots", "Work")}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.ttl"
    path.write_text(DATA, encoding="utf-8")
    return path


def types(kb: KnowledgeBase) -> set[tuple[str, str]]:
    rows = kb.query("[?x, a, ?c], datatype(?x) = rdfs:Resource").to_list()
    return {(short(thing), short(of)) for thing, of in rows}


def short(value: object) -> str:
    return str(value).rpartition("/")[2]


def named(name: str) -> IRI:
    return IRI(f"http://e/{name}")


def test_the_schema_counts_as_it_changes(data: Path, engine_name: str) -> None:
    kb = KnowledgeBase(LINE, engine=engine_name)
    kb.load(rdf=data)
    assert types(kb) == FRIDA | ROOTS
    artists_are_persons = (named("Artist"), IRI(RDFS + "subClassOf"), named("Person"))
    kb.delete("triple", [artists_are_persons])
    assert types(kb) == (FRIDA | ROOTS) - {("frida", "Person")}
    kb.insert("triple", [artists_are_persons])
    assert types(kb) == FRIDA | ROOTS
    kb.update(remove_rules=LINE)
    assert types(kb) == set()


def test_equal_things_have_the_same_types(data: Path, engine_name: str) -> None:
    kb = KnowledgeBase(
        LINE + "[<http://e/frida>, owl:sameAs, <http://e/kahlo>] .", engine=engine_name
    )
    kb.load(rdf=data)
    assert {("kahlo", "Person"), ("kahlo", "Painter")} <= types(kb)


def test_what_can_be_written_as_rdf_is_what_no_literal_is_about(data: Path) -> None:
    kb = KnowledgeBase(LINE)
    kb.load(rdf=data)
    with pytest.warns(LeftOutTriplesWarning, match="1 with a literal as subject"):
        write_rdf(kb.facts("triple").to_terms(), data.with_name("all.nt"))
    assert read_rdf(data.with_name("all.nt")).num_rows == kb.count("triple") - 1


def test_files_of_rules_have_the_same_line(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = data.with_name("rules.dl")
    rules.write_text(LINE * 2 + "person(?x) :- [?x, a, <http://e/Person>] .")
    assert evermat(["query", str(rules), "--facts", str(data), "person(?x)"]) == OK
    assert capsys.readouterr().out.split() == ["x", "<http://e/frida>"]


def test_a_program_reads_them_once_and_is_laid_out_without_them() -> None:
    text = READY_MADE["rdfs"].read_text(encoding="utf-8")
    assert parse_program(LINE * 2).rules == parse_program(text).rules
    assert format_source("@include  rdfs.") == LINE
