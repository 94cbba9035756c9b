"""SPARQL 1.1: evaluation cases of the W3C."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rdflib import RDF, RDFS, BNode, Graph, Literal, Namespace, URIRef
from rdflib.collection import Collection
from rdflib.compare import isomorphic
from rdflib.query import Result as RdfResult

from evermat import IRI, KnowledgeBase, Result
from evermat.columns import constants
from evermat.rdf import read_rdf
from evermat.sparql.solutions import constant_of, term_of

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(os.environ.get("EVERMAT_TEST_DATA", "../shared/data"))
MANIFESTS = sorted(
    [
        *DATA.glob("sparql11-cases/*/manifest.ttl"),
        *DATA.glob("rdf-entailment/property-paths/manifest.ttl"),
    ]
)
MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
RS = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/result-set#")
QT = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
UT = Namespace("http://www.w3.org/2009/sparql/tests/test-update#")

QUERIES, UPDATES = MF.QueryEvaluationTest, MF.UpdateEvaluationTest


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


def load_named(kb: KnowledgeBase, data: Any, graph: Any) -> None:
    """Load a file into a graph of its own."""
    table = read_rdf(path_of(data), base=str(data))
    rows = zip(*map(constants, table.columns), strict=True)
    kb.insert("quad", [(*row, IRI(str(graph))) for row in rows])


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


def solutions_in(graph: Graph) -> Iterator[dict[str, Any]]:
    """The solutions that a graph describes."""
    for solution in graph.objects(None, RS.solution):
        yield {
            str(graph.value(binding, RS.variable)): graph.value(binding, RS.value)
            for binding in graph.objects(solution, RS.binding)
        }


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
    del name
    answer, query = answered(graph, case)
    expected = path_of(graph.value(case, MF.result))
    if expected.suffix == ".ttl":
        assert isinstance(answer, Result)
        wanted_graph = Graph().parse(expected)
        if (None, RDF.type, RS.ResultSet) in wanted_graph:
            rows = list(solutions_in(wanted_graph))
            assert isomorphic(graph_of(solutions(answer)), graph_of(rows))
            return
        assert isomorphic(triples(answer), normal_graph(expected))
        return
    formats = {".srx": "xml", ".srj": "json", ".csv": "csv", ".tsv": "tsv"}
    with expected.open("rb") as file:
        wanted = RdfResult.parse(file, format=formats[expected.suffix])
    if wanted.type == "ASK":
        assert answer is wanted.askAnswer
        return
    assert isinstance(answer, Result)
    check_solutions(answer, wanted, is_ordered="ORDER BY" in query.upper())


def answered(graph: Graph, case: URIRef) -> tuple[object, str]:
    """The answer to the query of a case, and its text."""
    action = graph.value(case, MF.action)
    kb = KnowledgeBase(engine="reference")
    for data in graph.objects(action, QT.data):
        kb.load(rdf=path_of(data), base=str(data))
    for data in graph.objects(action, QT.graphData):
        load_named(kb, data, data)
    place = graph.value(action, QT.query)
    query = path_of(place).read_text(encoding="utf-8")
    if "FROM" in query:
        for data in graph.objects(action, QT.data):
            load_named(kb, data, data)
    if "BASE" not in query:
        query = f"BASE <{place}>\n{query}"
    return kb.sparql(query), query


def check_solutions(answer: Result, wanted: RdfResult, *, is_ordered: bool) -> None:
    rows = [{str(name): term for name, term in row.items()} for row in wanted.bindings]
    if wanted.vars:
        assert set(answer.columns) == {str(each) for each in wanted.vars}
    has_blanks = any(isinstance(term, BNode) for row in rows for term in row.values())
    if is_ordered and not has_blanks:
        assert [{n: normal(t) for n, t in row.items()} for row in rows] == solutions(
            answer
        )
    assert isomorphic(graph_of(solutions(answer)), graph_of(rows))


@pytest.mark.parametrize(("graph", "case", "name"), _need_data(UPDATES))
def test_update(graph: Graph, case: URIRef, name: str) -> None:
    del name
    action, result = graph.value(case, MF.action), graph.value(case, MF.result)
    kb = KnowledgeBase(engine="reference")
    for data in graph.objects(action, UT.data):
        kb.load(rdf=path_of(data), base=str(data))
    for node in graph.objects(action, UT.graphData):
        load_named(kb, graph.value(node, UT.graph), graph.value(node, RDFS.label))
    text = path_of(graph.value(action, UT.request)).read_text(encoding="utf-8")
    kb.sparql(text)
    found = triples(kb["triple"]) if "triple" in kb else Graph()
    wanted = Graph()
    for data in graph.objects(result, UT.data):
        wanted += normal_graph(path_of(data))
    assert isomorphic(found, wanted)
    named = {
        str(graph.value(node, RDFS.label)): normal_graph(
            path_of(graph.value(node, UT.graph))
        )
        for node in graph.objects(result, UT.graphData)
    }
    quads = list(kb["quad"].constants()) if "quad" in kb else []
    names = {row[3].text for row in quads}
    assert names == {each for each, triples in named.items() if len(triples)}
    for each in names:
        rows = [row[:3] for row in quads if row[3].text == each]
        one = Graph()
        for row in rows:
            one.add(tuple(map(term_of, row)))  # type: ignore[arg-type]
        assert isomorphic(one, named[each])
