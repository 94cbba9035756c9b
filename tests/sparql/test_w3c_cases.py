"""SPARQL 1.1: evaluation cases of the W3C."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rdflib import RDF, BNode, Graph, Literal, Namespace, URIRef
from rdflib.collection import Collection
from rdflib.compare import isomorphic
from rdflib.query import Result as RdfResult

from evermat import KnowledgeBase, Result
from evermat.sparql.errors import UnsupportedSparqlError
from evermat.sparql.terms import constant_of, term_of

DATA = Path(os.environ.get("EVERMAT_TEST_DATA", "../shared/data"))
MANIFESTS = sorted(
    [
        *DATA.glob("sparql11-cases/*/manifest.ttl"),
        *DATA.glob("rdf-entailment/property-paths/manifest.ttl"),
    ]
)
MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
UT = Namespace("http://www.w3.org/2009/sparql/tests/test-update#")

QUERIES, UPDATES = MF.QueryEvaluationTest, MF.UpdateEvaluationTest

NAMED_GRAPHS = "is about named graphs"
_NEGATED_INVERSE = "rdflib's parser forgets what stands behind `^` in `!(^p)`"
OUT_OF_SCOPE = {
    "property-paths/nps_inverse": _NEGATED_INVERSE,
    "property-paths/nps_direct_and_inverse": _NEGATED_INVERSE,
    "property-paths/nps_a_inverse": _NEGATED_INVERSE,
}
"""Cases that are passed over, with the reason."""


def cases(kind: URIRef) -> list[Any]:
    found = []
    for manifest in MANIFESTS:
        graph = Graph().parse(manifest)
        for entries in graph.objects(None, MF.entries):
            for case in Collection(graph, entries):
                if (case, RDF.type, kind) in graph:
                    name = f"{manifest.parent.name}/{str(case).rpartition('#')[2]}"
                    found.append(pytest.param(graph, case, name, id=name))
    return found


def _need_data(kind: URIRef) -> list[Any]:
    reason = f"needs the cases in {DATA} (set EVERMAT_TEST_DATA)"
    skipped = pytest.mark.skip(reason=reason)
    return cases(kind) or [pytest.param(None, None, "", marks=skipped)]


def path_of(term: Any) -> Path:
    return Path(str(term).removeprefix("file://"))


def normal(term: Any) -> Any:
    """A term as it comes back: `01` and `1` are one constant."""
    return term if term is None else term_of(constant_of(term))


def graph_of(rows: list[dict[str, Any]]) -> Graph:
    """Solutions as a graph, in which blank nodes have no names that matter."""
    graph = Graph()
    counts = Counter(
        tuple(sorted((name, normal(term)) for name, term in row.items()))
        for row in rows
    )
    for row, count in counts.items():
        node = BNode()
        graph.add((node, URIRef("urn:count"), Literal(count)))
        for name, term in row:
            graph.add((node, URIRef(f"urn:var:{name}"), term))
    return graph


def solutions(result: Result) -> list[dict[str, Any]]:
    return [
        {
            name: term_of(value)
            for name, value in zip(result.columns, row, strict=True)
            if value is not None  # type: ignore[redundant-expr]
        }
        for row in result.constants()
    ]


def triples(result: Result) -> Graph:
    graph = Graph()
    for row in result.constants():
        graph.add(tuple(map(term_of, row)))  # type: ignore[arg-type]
    return graph


def normal_graph(path: Path) -> Graph:
    graph = Graph()
    for triple in Graph().parse(path):
        graph.add(tuple(map(normal, triple)))
    return graph


@pytest.mark.parametrize(("graph", "case", "name"), _need_data(QUERIES))
def test_query(graph: Graph, case: URIRef, name: str) -> None:
    if name in OUT_OF_SCOPE:
        pytest.skip(OUT_OF_SCOPE[name])
    action = graph.value(case, MF.action)
    kb = KnowledgeBase(engine="reference")
    for data in graph.objects(action, QT.data):
        kb.load(rdf=path_of(data), base=str(data))
    query = path_of(graph.value(action, QT.query)).read_text(encoding="utf-8")
    if (action, QT.graphData, None) in graph or "GRAPH" in query:
        with pytest.raises(UnsupportedSparqlError):
            kb.sparql(query)
        pytest.skip(NAMED_GRAPHS)
    answer = kb.sparql(query)
    expected = path_of(graph.value(case, MF.result))
    if expected.suffix == ".ttl":
        assert isinstance(answer, Result)
        assert isomorphic(triples(answer), normal_graph(expected))
        return
    formats = {".srx": "xml", ".srj": "json", ".csv": "csv", ".tsv": "tsv"}
    with expected.open("rb") as file:
        wanted = RdfResult.parse(file, format=formats[expected.suffix])
    if wanted.type == "ASK":
        assert answer is wanted.askAnswer
        return
    assert isinstance(answer, Result)
    rows = [{str(name): term for name, term in row.items()} for row in wanted.bindings]
    if wanted.vars:
        assert set(answer.columns) == {str(each) for each in wanted.vars}
    if "ORDER BY" in query.upper() and not any(
        isinstance(term, BNode) for row in rows for term in row.values()
    ):
        assert [{n: normal(t) for n, t in row.items()} for row in rows] == solutions(
            answer
        )
    assert isomorphic(graph_of(solutions(answer)), graph_of(rows))


@pytest.mark.parametrize(("graph", "case", "name"), _need_data(UPDATES))
def test_update(graph: Graph, case: URIRef, name: str) -> None:
    if name in OUT_OF_SCOPE:
        pytest.skip(OUT_OF_SCOPE[name])
    action, result = graph.value(case, MF.action), graph.value(case, MF.result)
    kb = KnowledgeBase(engine="reference")
    for data in graph.objects(action, UT.data):
        kb.load(rdf=path_of(data), base=str(data))
    text = path_of(graph.value(action, UT.request)).read_text(encoding="utf-8")
    is_named = any((node, UT.graphData, None) in graph for node in (action, result))
    if is_named or "GRAPH" in text or "WITH" in text or "USING" in text:
        pytest.skip(NAMED_GRAPHS)
    kb.sparql(text)
    found = triples(kb["triple"]) if "triple" in kb else Graph()
    wanted = Graph()
    for data in graph.objects(result, UT.data):
        wanted += normal_graph(path_of(data))
    assert isomorphic(found, wanted)
