"""Graphs and terms of rdflib and pyoxigraph as facts."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pyoxigraph as ox
import pytest

from evermat import IRI, BlankNode, KnowledgeBase, LangString, TypedLiteral
from evermat.values import XSD, Constant, Kind, ValueConversionError, constant

TURTLE = """
@prefix : <http://e.org/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:a :p :b, _:z, "text", "chat"@FR, 7, "P1D"^^xsd:duration, true .
"""
OBJECTS = {
    IRI("http://e.org/b"),
    *("text", LangString("chat", "fr"), 7, True),
    TypedLiteral("P1D", XSD + "duration"),
}
on_both = pytest.mark.parametrize("engine", ["embedded", "reference"])


def check(kb: KnowledgeBase) -> None:
    """See that `triple` has what the text says."""
    rows = kb.facts("triple").to_list()
    assert {row[:2] for row in rows} == {(IRI("http://e.org/a"), IRI("http://e.org/p"))}
    objects = {value for _, _, value in rows}
    (blank,) = {value for value in objects if isinstance(value, BlankNode)}
    assert objects - {blank} == OBJECTS
    assert len(rows) == 7


# --------------------------------------------------------------------------- rdflib


@on_both
def test_a_graph_of_rdflib(engine: str) -> None:
    rdflib = pytest.importorskip("rdflib")
    graph = rdflib.Graph().parse(data=TURTLE, format="turtle")
    kb = KnowledgeBase("typed(?o) :- [?s, <http://e.org/p>, ?o] .", engine=engine)
    kb.insert("triple", graph)
    check(kb)
    assert kb.count("typed") == 7
    assert kb.contains("triple", next(iter(graph)))
    assert kb.insert("triple", list(graph)).is_empty()
    kb.delete("triple", graph)
    assert not kb.count("triple")


def test_a_dataset_of_rdflib_gives_triples() -> None:
    rdflib = pytest.importorskip("rdflib")
    dataset = rdflib.Dataset()
    iri = rdflib.URIRef("http://e.org/x")
    dataset.graph(rdflib.URIRef("http://e.org/g")).add((iri, iri, iri))
    kb = KnowledgeBase()
    kb.insert("triple", dataset)
    assert kb.facts("triple").to_list() == [(IRI("http://e.org/x"),) * 3]


def test_terms_of_rdflib_in_any_rows() -> None:
    rdflib = pytest.importorskip("rdflib")
    iri, text = rdflib.URIRef("http://e.org/a"), rdflib.Literal("x")
    kb = KnowledgeBase("@declare named(node: iri, name: string) .")
    kb.insert("named", [(iri, text)])
    kb.insert("named", {"name": [text], "node": [rdflib.URIRef("http://e.org/b")]})
    graph = rdflib.Graph()
    graph.add((rdflib.URIRef("http://e.org/c"), rdflib.RDFS.label, text))
    kb.insert("named", graph.query("SELECT ?name ?node { ?node rdfs:label ?name }"))
    expected = {(IRI(f"http://e.org/{each}"), "x") for each in "abc"}
    assert set(kb.facts("named")) == expected


def test_what_is_no_term_of_rdflib_is_refused() -> None:
    rdflib = pytest.importorskip("rdflib")
    for value in (rdflib.Variable("x"), rdflib.Namespace("http://e.org/")):
        with pytest.raises(ValueConversionError, match="of rdflib cannot be stored"):
            constant(value)


def like_rdflib(name: str, *bases: type) -> type:
    """A class that looks like one of rdflib, which need not be installed."""
    return type(name, bases or (str,), {"__module__": "rdflib.term"})


def test_classes_of_rdflib_are_known_by_their_names() -> None:
    identifier = like_rdflib("Identifier")
    iri = like_rdflib("URIRef", identifier)
    assert constant(iri("u:v")) == Constant(Kind.IRI, "u:v")
    own = type("Own", (iri,), {"__module__": "elsewhere"})
    assert constant(own("u:v")) == Constant(Kind.IRI, "u:v")
    assert constant(like_rdflib("BNode", identifier)("b")) == Constant(Kind.BLANK, "b")
    literal: Any = like_rdflib("Literal", identifier)("007")
    literal.language, literal.datatype = None, iri(XSD + "integer")
    assert constant(literal) == constant(7)
    literal.language, literal.datatype = "EN", None
    assert constant(literal) == constant(LangString("007", "en"))
    literal.language = None
    assert constant(literal) == constant("007")
    with pytest.raises(ValueConversionError, match="of rdflib cannot be stored"):
        constant(like_rdflib("Variable", identifier)("x"))


def test_rdflib_is_not_imported() -> None:
    code = (
        "import sys, evermat; evermat.KnowledgeBase().insert('p', [('a',)]); "
        "print('rdflib' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"


# ----------------------------------------------------------------------- pyoxigraph


@on_both
def test_triples_and_quads_of_pyoxigraph(engine: str) -> None:
    store = ox.Store()
    graph = ox.NamedNode("http://e.org/g")
    store.load(TURTLE.encode(), ox.RdfFormat.TURTLE, to_graph=graph)
    for given in (
        store,
        list(store),
        [quad.triple for quad in store],
        store.query("CONSTRUCT { ?s ?p ?o } WHERE { GRAPH ?g { ?s ?p ?o } }"),
        store.query("SELECT ?s ?p ?o { GRAPH ?g { ?s ?p ?o } }"),
        store.query("SELECT ?o ?s ?p { GRAPH ?g { ?s ?p ?o } }"),
        ox.parse(TURTLE.encode(), ox.RdfFormat.TURTLE),
    ):
        kb = KnowledgeBase(engine=engine)
        kb.insert("triple", given)
        check(kb)


def test_quads_keep_their_graphs_where_there_is_room() -> None:
    node = ox.NamedNode("http://e.org/x")
    kb = KnowledgeBase("@declare quad(any, any, any, any) .")
    kb.insert("quad", [ox.Quad(node, node, node, ox.NamedNode("http://e.org/g"))])
    (row,) = kb.facts("quad")
    assert row[3] == IRI("http://e.org/g")


def test_terms_of_pyoxigraph_in_any_rows() -> None:
    kb = KnowledgeBase()
    text = ox.Literal("שלום", language="he", direction=ox.BaseDirection.RTL)
    kb.insert("p", [(ox.NamedNode("u:v"), ox.BlankNode("b"), ox.Literal(7), text)])
    expected = (IRI("u:v"), BlankNode("b"), 7, LangString("שלום", "he--rtl"))
    assert kb.facts("p").to_list() == [expected]
    assert kb.contains("p", expected)
    for value in (
        ox.Variable("x"),
        ox.DefaultGraph(),
        ox.Triple(*[ox.NamedNode("u:v")] * 3),
    ):
        with pytest.raises(ValueConversionError):
            constant(value)


def test_a_frame_of_terms_keeps_them() -> None:
    column = pa.array([{"kind": int(Kind.IRI), "text": "u:v"}])
    kb = KnowledgeBase()
    kb.insert("p", {"node": column, "name": [ox.Literal("x")]})
    assert kb.facts("p").to_list() == [(IRI("u:v"), "x")]
