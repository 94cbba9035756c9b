"""The SPARQL 1.1 protocol: queries and updates, in all their forms and formats."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pyoxigraph
import pytest

from evermat import KnowledgeBase
from served import client_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.testclient import TestClient

DATA = """
PREFIX : <http://e/> INSERT DATA {
  :a :p "x, \\"y\\"" . :a :q "chat"@fr . :a :r 1.5 . :a :s _:b . :a :t :b . :b :t :c }
"""
RULES = "@prefix : <http://e/> . [?x, :t, ?z] :- [?x, :t, ?y], [?y, :t, ?z] ."
ALL = "SELECT ?p ?o ?none WHERE { <http://e/a> ?p ?o } ORDER BY ?p ?o"
UPDATE = {"Content-Type": "application/sparql-update"}
QUERY = {"Content-Type": "application/sparql-query"}
SPACE = "{http://www.w3.org/2005/sparql-results#}"


@pytest.fixture
def client() -> Iterator[TestClient]:
    with client_of(KnowledgeBase(RULES, engine="reference")) as client:
        made = client.post("/sparql", content=DATA, headers=UPDATE)
        assert made.json()["sizes"]["triple"]["added"] == 7
        yield client


def test_solutions_come_as_json(client: TestClient) -> None:
    answer = client.get("/sparql", params={"query": ALL})
    assert answer.headers["content-type"] == "application/sparql-results+json"
    found = answer.json()
    assert found["head"]["vars"] == ["p", "o", "none"]
    by_predicate = {each["p"]["value"]: each for each in found["results"]["bindings"]}
    assert by_predicate["http://e/q"]["o"] == {
        "type": "literal", "value": "chat", "xml:lang": "fr",
    }  # fmt: skip
    number = by_predicate["http://e/r"]["o"]
    assert number["datatype"] == "http://www.w3.org/2001/XMLSchema#decimal"
    assert by_predicate["http://e/s"]["o"]["type"] == "bnode"
    assert all("none" not in each for each in found["results"]["bindings"])
    # Another implementation reads it.
    read = pyoxigraph.parse_query_results(
        answer.content, format=pyoxigraph.QueryResultsFormat.JSON
    )
    assert len(list(read)) == 6  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("media_type", "form"),
    [
        ("application/sparql-results+xml", pyoxigraph.QueryResultsFormat.XML),
        ("text/tab-separated-values", pyoxigraph.QueryResultsFormat.TSV),
    ],
)
def test_solutions_come_as_xml_and_tsv(
    client: TestClient, media_type: str, form: pyoxigraph.QueryResultsFormat
) -> None:
    headers = {"Accept": media_type}
    answer = client.get("/sparql", params={"query": ALL}, headers=headers)
    assert answer.headers["content-type"].startswith(media_type)
    plain = client.get("/sparql", params={"query": ALL})
    read, expected = (
        {
            tuple(str(each[name]) for name in ("p", "o"))
            for each in pyoxigraph.parse_query_results(content, format=kind)  # type: ignore[union-attr]
            if "_:" not in str(each["o"])
        }
        for content, kind in (
            (answer.content, form),
            (plain.content, pyoxigraph.QueryResultsFormat.JSON),
        )
    )
    assert read == expected
    assert len(read) == 5


def test_solutions_come_as_csv(client: TestClient) -> None:
    headers = {"Accept": "text/csv"}
    answer = client.get("/sparql", params={"query": ALL}, headers=headers)
    rows = list(csv.reader(io.StringIO(answer.text, newline="")))
    assert rows[0] == ["p", "o", "none"]
    assert ["http://e/p", 'x, "y"', ""] in rows


def test_truths_and_graphs(client: TestClient) -> None:
    ask = "ASK { <http://e/a> <http://e/t> <http://e/c> }"
    assert client.get("/sparql", params={"query": ask}).json()["boolean"] is True
    headers = {"Accept": "application/sparql-results+xml"}
    answer = client.get("/sparql", params={"query": ask}, headers=headers)
    assert ET.fromstring(answer.text).findtext(f"{SPACE}boolean") == "true"  # noqa: S314  our own
    construct = "CONSTRUCT { ?y <http://e/back> ?x } WHERE { ?x <http://e/t> ?y }"
    answer = client.post(
        "/sparql",
        content=construct,
        headers={**QUERY, "Accept": "application/n-triples"},
    )
    assert answer.text.count("<http://e/back>") == 3


def test_queries_and_updates_come_as_forms(client: TestClient) -> None:
    answer = client.post("/sparql", data={"query": "ASK { ?s ?p ?o }"})
    assert answer.json()["boolean"] is True
    delete = "DELETE DATA { <http://e/a> <http://e/t> <http://e/b> }"
    made = client.post("/sparql", data={"update": delete}).json()
    assert made["sizes"]["triple"] == {"added": 0, "removed": 2}
    versions = client.get("/api/versions").json()["versions"]
    assert [each["number"] for each in versions] == [2, 1, 0]


def test_several_operations_are_one_update(client: TestClient) -> None:
    text = """
        INSERT DATA { <http://e/c> <http://e/t> <http://e/d> } ;
        DELETE DATA { <http://e/a> <http://e/t> <http://e/b> }
    """
    client.post("/sparql", content=text, headers=UPDATE)
    found = client.get("/api/query?query=[?x, <http://e/t>, <http://e/d>]").json()
    assert len(found["rows"]) == 2
    # The other copy has the same.
    client.post("/api/update", json={"insert": {"q": [[1]]}})
    again = client.get("/api/query?query=[?x, <http://e/t>, <http://e/d>]").json()
    assert sorted(map(json.dumps, again["rows"])) == sorted(
        map(json.dumps, found["rows"])
    )


@pytest.mark.parametrize(
    ("text", "headers", "status"),
    [
        ("SELECT nonsense", QUERY, 422),
        ("INSERT nonsense", UPDATE, 422),
        ("ASK { ?s ?p ?o }", UPDATE, 400),
        ("INSERT DATA { <a:a> <a:b> 1 }", QUERY, 400),
        ("SELECT * { SERVICE <http://e/> { ?s ?p ?o } }", QUERY, 422),
        ("LOAD <file:///etc/passwd>", UPDATE, 422),
        ("ASK {}", {"Content-Type": "text/plain"}, 415),
    ],
)
def test_what_is_wrong_is_told(
    client: TestClient, text: str, headers: dict[str, str], status: int
) -> None:
    answer = client.post("/sparql", content=text, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["code"].startswith("EM")
