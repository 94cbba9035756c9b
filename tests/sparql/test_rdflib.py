"""Graphs of rdflib made of a knowledge base, and graphs that are one."""

from __future__ import annotations

import pytest
from rdflib import Graph, Literal, Namespace
from rdflib.namespace import RDF, RDFS

from evermat import KnowledgeBase
from evermat.io.ntriples import LeftOutTriplesWarning
from evermat.rdflib_store import EvermatStore

E = Namespace("http://e.org/")
RULES = "@prefix : <http://e.org/> . @include rdfs ."


@pytest.fixture
def graph() -> Graph:
    graph = Graph(store=EvermatStore(KnowledgeBase(RULES, engine="reference")))
    graph.add((E.Cat, RDFS.subClassOf, E.Animal))
    graph.add((E.tom, RDF.type, E.Cat))
    graph.add((E.tom, E.age, Literal(7)))
    return graph


def test_reading_sees_what_follows(graph: Graph) -> None:
    assert (E.tom, RDF.type, E.Animal) in graph
    assert set(graph.objects(E.tom, RDF.type)) == {E.Cat, E.Animal}
    assert set(graph) == {
        (E.Cat, RDFS.subClassOf, E.Animal),
        (E.tom, RDF.type, E.Cat),
        (E.tom, RDF.type, E.Animal),
        (E.tom, E.age, Literal(7)),
    }
    assert len(graph) == 4
    assert graph.value(E.tom, E.age) == Literal(7)


def test_changes_are_maintained(graph: Graph) -> None:
    graph.remove((E.tom, RDF.type, E.Animal))  # follows from what is explicit
    assert (E.tom, RDF.type, E.Animal) in graph
    graph.remove((None, RDFS.subClassOf, None))
    assert set(graph.objects(E.tom, RDF.type)) == {E.Cat}
    graph += Graph().add((E.Cat, RDFS.subClassOf, E.Pet))
    assert (E.tom, RDF.type, E.Pet) in graph
    graph.remove((None, None, None))
    assert len(graph) == 0
    assert not list(graph)


def test_queries_and_updates(graph: Graph) -> None:
    found = graph.query("SELECT ?x ?y { ?x a e:Animal OPTIONAL { ?x e:no ?y } }",
                        initNs={"e": E})  # fmt: skip
    assert [(row.x, row.y) for row in found] == [(E.tom, None)]  # type: ignore[union-attr]
    assert graph.query("ASK { ?x a <http://e.org/Cat> }").askAnswer
    made = graph.query("CONSTRUCT { ?c a <http://e.org/Used> } { ?x a ?c }").graph
    assert made is not None
    assert len(made) == 2
    bound = graph.query("SELECT ?c { ?x a ?c }", initBindings={"x": E.tom})
    assert len(bound) == 2
    graph.update("DELETE DATA { <http://e.org/tom> a <http://e.org/Cat> }")
    assert not list(graph.subjects(RDF.type, E.Animal))


def test_the_plug_in_is_known_by_name() -> None:
    graph = Graph(store="Evermat")
    graph.store.kb.update(add_rules=RULES)  # type: ignore[attr-defined]
    graph.parse(data="@prefix : <http://e.org/> . @prefix rdfs: <http://www.w3.org/"
                "2000/01/rdf-schema#> . :p rdfs:domain :C . :x :p _:y .")  # fmt: skip
    assert (E.x, RDF.type, E.C) in graph
    assert "http://e.org/" in graph.serialize(format="turtle")


def test_a_knowledge_base_becomes_a_graph() -> None:
    kb = KnowledgeBase(f"{RULES} [?y, :of, ?x] :- [?x, :age, ?y] .")
    kb.sparql("INSERT DATA { :p rdfs:range :C . :x :p :y ; :age 7 }")
    with pytest.warns(LeftOutTriplesWarning, match="1 with a literal as subject"):
        graph = kb.to_rdflib()
    assert set(graph) == {
        (E.p, RDFS.range, E.C), (E.x, E.p, E.y), (E.y, RDF.type, E.C),
        (E.x, E.age, Literal(7)),
    }  # fmt: skip
    assert dict(graph.namespaces())[""] == E[""]
    assert set(kb.to_rdflib("explicit")) == set(graph) - {(E.y, RDF.type, E.C)}
    again = KnowledgeBase()
    again.load(rdf=graph)
    assert again.count("triple") == 4
