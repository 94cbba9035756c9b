"""SPARQL over what is maintained: queries, updates, equality, errors."""

from __future__ import annotations

from decimal import Decimal
from itertools import permutations
from typing import Literal

import pytest

from evermat import IRI, EvermatError, KnowledgeBase, Result
from evermat.results.change import Change
from evermat.sparql import UnsupportedSparqlError

RULES = """
    @prefix : <http://e.org/> .
    [?x, :ancestor, ?y] :- [?x, :parent, ?y] .
    [?x, :ancestor, ?z] :- [?x, :ancestor, ?y], [?y, :parent, ?z] .
    [:ann, :parent, :bob] . [:bob, :parent, :cem] .
    [:ann, :age, 70] . [:bob, :age, 40] . [:cem, :age, 12] .
    [:ann, :name, "Ann"] . [:bob, :name, "Bob"@en] .
"""


def iri(name: str) -> IRI:
    return IRI(f"http://e.org/{name}")


@pytest.fixture
def kb(engine_name: str) -> KnowledgeBase:
    return KnowledgeBase(RULES, engine=engine_name)


def rows(answer: object) -> list[tuple[object, ...]]:
    assert isinstance(answer, Result)
    return [*answer]


def test_queries_see_what_is_derived(kb: KnowledgeBase) -> None:
    found = kb.sparql("SELECT ?x { :ann :ancestor ?x } ORDER BY ?x")
    assert rows(found) == [(iri("bob"),), (iri("cem"),)]
    kb.delete("triple", [(iri("bob"), iri("parent"), iri("cem"))])
    assert rows(kb.sparql("SELECT ?x { :ann :ancestor ?x }")) == [(iri("bob"),)]


def test_what_is_unbound_is_none(kb: KnowledgeBase) -> None:
    found = kb.sparql(
        "SELECT ?x ?name { ?x :age ?n OPTIONAL { ?x :name ?name } } ORDER BY ?n"
    )
    assert isinstance(found, Result)
    assert rows(found)[0] == (iri("cem"), None)
    assert found.to_arrow().column("name").null_count == 1
    assert found.to_polars().height == 3


def test_filters_and_aggregates_compute(kb: KnowledgeBase) -> None:
    found = kb.sparql(
        "SELECT (SUM(?n) AS ?sum) (AVG(?n) AS ?mean) (COUNT(*) AS ?count) (MAX(?n) AS "
        "?max) (SUM(?n) * 2 AS ?twice) { ?x :age ?n FILTER(?n > 20) }"
    )
    assert rows(found) == [(110, Decimal("55.0"), 2, 70, 220)]
    assert rows(
        kb.sparql("SELECT ?x { ?x :age ?n FILTER NOT EXISTS { ?x :parent ?y } }")
    ) == [(iri("cem"),)]
    assert rows(kb.sparql("SELECT ?n { ?x :age ?n } ORDER BY DESC(?n) LIMIT 1")) == [
        (70,)
    ]


def test_paths_and_negation(kb: KnowledgeBase) -> None:
    assert len(rows(kb.sparql("SELECT * { ?x :parent+ ?y }"))) == 3
    assert len(rows(kb.sparql("SELECT * { :ann :parent* ?y }"))) == 3
    assert rows(kb.sparql("SELECT ?x { ?x :parent/:parent :cem }")) == [(iri("ann"),)]
    assert rows(kb.sparql("SELECT ?x { ?x :age ?n MINUS { ?x :parent ?y } }")) == [
        (iri("cem"),)
    ]
    others = "^:parent|^:ancestor|:age|:ancestor|:name|^:name"
    found = kb.sparql(f"SELECT ?x ?y {{ ?x !({others}) ?y }}")
    assert set(rows(found)) == {
        *((iri("ann"), iri("bob")), (iri("bob"), iri("cem"))),
        *((each, iri(name)) for each, name in ((70, "ann"), (40, "bob"), (12, "cem"))),
    }
    text = kb.sparql('SELECT ?t { BIND("!(^:parent)" AS ?t) }')
    assert rows(text) == [("!(^:parent)",)]


def test_other_forms(kb: KnowledgeBase) -> None:
    assert kb.sparql("ASK { :ann :ancestor :cem }") is True
    assert kb.sparql("ASK { :cem :ancestor :ann }") is False
    made = kb.sparql("CONSTRUCT { ?y :descendant ?x } WHERE { ?x :parent ?y }")
    assert set(rows(made)) == {
        (iri("bob"), iri("descendant"), iri("ann")),
        (iri("cem"), iri("descendant"), iri("bob")),
    }
    assert len(rows(kb.sparql("DESCRIBE :ann"))) == 5


def test_updates_are_maintained(kb: KnowledgeBase) -> None:
    change = kb.sparql("INSERT DATA { :cem :parent :dee }")
    assert isinstance(change, Change)
    assert len(change.added("triple", "derived")) == 3
    kb.sparql("DELETE { ?x :age ?n } INSERT { ?x :age ?m } WHERE "
              "{ ?x :age ?n BIND(?n + 1 AS ?m) }")  # fmt: skip
    assert sorted(rows(kb.sparql("SELECT ?n { ?x :age ?n }"))) == [(13,), (41,), (71,)]
    kb.undo()
    assert sorted(rows(kb.sparql("SELECT ?n { ?x :age ?n }"))) == [(12,), (40,), (70,)]
    kb.sparql("DELETE WHERE { ?x :parent ?y }")
    assert kb.sparql("ASK { ?x :ancestor ?y }") is False
    kb.sparql("CLEAR DEFAULT")
    assert kb.count("triple") == 0
    kb.sparql("DELETE DATA { :x :y :z }")


def test_several_operations_happen_all_or_not_at_all(kb: KnowledgeBase) -> None:
    before = set(kb["triple"])
    changes = kb.sparql(
        "INSERT DATA { :cem :parent :dee } ; DELETE WHERE { ?x :parent :dee }"
    )
    assert isinstance(changes, list)
    assert [each.total for each in changes] == [(4, 0), (0, 4)]
    kb.update(
        add_rules="@prefix : <http://e.org/> . bad(?z) :- [?x, :age, ?n], ?z = 1 / ?n ."
    )
    with pytest.raises(EvermatError):
        kb.sparql("INSERT DATA { :cem :parent :dee } ; INSERT DATA { :dee :age 0 }")
    assert set(kb["triple"]) == before


def test_equality_answers_as_the_axioms_would(engine_name: str) -> None:
    texts = {}
    for equality in ("rewrite", "axioms"):
        kb = KnowledgeBase(RULES, engine=engine_name, equality=equality)
        kb.load(rdf=[])
        kb.sparql("INSERT DATA { :bob <http://www.w3.org/2002/07/owl#sameAs> :robert }")
        found = kb.sparql("SELECT ?x ?y { ?x :parent ?y FILTER(?y != :bob) }")
        texts[equality] = sorted(map(str, rows(found)))
    assert texts["rewrite"] == texts["axioms"]
    assert len(texts["rewrite"]) == 3


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELEC ?x { ?x ?y ?z }", "EM108"),
        ("SELECT ?x { ?x :p }", "EM108"),
        ("SELECT ?x { ?x nope:p ?y }", "EM108"),
        ("", "EM108"),
        ("INSERT DATA { ?x :p 1 }", "EM108"),
        ("SELECT ?x { SERVICE :g { ?x :p ?y } }", "EM515"),
        ("LOAD <http://e.org/>", "EM515"),
        (7, "EM557"),
    ],
)
def test_mistakes_are_named_and_change_nothing(
    kb: KnowledgeBase, text: str, code: str
) -> None:
    before = set(kb["triple"])
    with pytest.raises(EvermatError, match=code):
        kb.sparql(text)
    assert set(kb["triple"]) == before


def test_a_knowledge_base_without_triples_is_an_empty_graph(engine_name: str) -> None:
    kb = KnowledgeBase("p(1) .", engine=engine_name)
    assert rows(kb.sparql("SELECT * { ?s ?p ?o }")) == []
    assert rows(kb.sparql("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")) == [(0,)]


def test_named_graphs_are_a_fourth_column(engine_name: str) -> None:
    kb = KnowledgeBase(
        """@prefix : <http://e.org/> .
        [?s, ?p, ?o] :- [?s, ?p, ?o, ?g], [?g, a, :Trusted] .
        [?x, :ancestor, ?z, ?g] :- [?x, :parent, ?y, ?g], [?y, :parent, ?z, ?g] .
        """,
        engine=engine_name,
    )
    kb.sparql(
        "INSERT DATA { :g a :Trusted . GRAPH :g { :a :parent :b . :b :parent :c } "
        "GRAPH :h { :c :parent :d } }"
    )
    assert kb.sparql("ASK { GRAPH :g { :a :ancestor :c } . :a :ancestor :c }")
    assert not kb.sparql("ASK { :c :parent :d }")
    graphs = kb.sparql("SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }")
    assert set(rows(graphs)) == {(iri("g"),), (iri("h"),)}
    both = "SELECT ?x FROM :g FROM :h { ?x :parent/:parent :d }"
    assert rows(kb.sparql(both)) == [(iri("b"),)]
    assert rows(kb.sparql("SELECT ?x FROM NAMED :h { GRAPH ?g { ?x ?p ?y } }")) == [
        (iri("c"),)
    ]
    change = kb.sparql("CLEAR GRAPH :g")
    assert change.sizes == {"quad": (0, 3), "triple": (0, 3)}  # type: ignore[union-attr]
    assert kb.sparql("ASK { GRAPH :h { :c :parent :d } }")


@pytest.mark.parametrize("equality", ["off", "rewrite"])
def test_explicit_facts_can_be_asked_for(equality: Literal["off", "rewrite"]) -> None:
    kb = KnowledgeBase(
        "@prefix : <http://e.org/> . [?x, :q, ?y] :- [?x, :p, ?y] .", equality=equality
    )
    kb.sparql("INSERT DATA { :a :p :b . :c :q :d }")
    every = kb.sparql("SELECT ?x { ?x :q ?y }")
    explicit = kb.sparql("SELECT ?x FROM <evermat:explicit> { ?x :q ?y }")
    assert set(rows(every)) == {(iri("a"),), (iri("c"),)}
    assert rows(explicit) == [(iri("c"),)]


def test_a_query_is_answered_again_as_the_first_time(kb: KnowledgeBase) -> None:
    text = (
        "SELECT ?x (COUNT(*) AS ?n) { ?x :age ?y "
        "FILTER (?y > 20 && NOT EXISTS { ?z :parent ?x "
        "FILTER EXISTS { ?z :age 70 } }) } GROUP BY ?x ORDER BY ?x"
    )
    first = rows(kb.sparql(text))
    assert first == [(iri("ann"), 1)]
    kb.sparql("INSERT DATA { :dee :age 30 }")
    assert rows(kb.sparql(text)) == [*first, (iri("dee"), 1)]


def test_all_variables_are_columns_in_the_order_of_their_mention() -> None:
    kb = KnowledgeBase("[a, p, b] .")
    for names in permutations(["zeta", "alpha", "mu", "x"], 3):
        found = kb.sparql(f"SELECT * {{ ?{names[0]} ${names[1]} ?{names[2]} }}")
        assert isinstance(found, Result)
        assert found.columns == names


def test_people_see_iris_with_the_prefixes_of_the_program() -> None:
    kb = KnowledgeBase(
        "@prefix : <http://e/> . [:a, :p, :b] . [:a, :p, <http://f/c>] ."
    )
    for found in (
        kb.sparql("SELECT ?o { :a :p ?o } ORDER BY ?o"),
        kb.query("[:a, :p, ?o]").sort(),
    ):
        assert repr(found) == "<Result o: 2 rows>\n  :b\n  <http://f/c>"
        assert isinstance(found, Result)
        assert found.to_list() == [(IRI("http://e/b"),), (IRI("http://f/c"),)]
    assert "  :a, :p, :b" in repr(kb["triple"])


def test_unbound_values_are_shown_as_nothing() -> None:
    kb = KnowledgeBase("@prefix : <http://e/> . [:a, :p, :b] .")
    found = kb.sparql("SELECT ?o ?q { :a :p ?o OPTIONAL { :a :q ?q } }")
    assert repr(found) == "<Result o, q: 1 row>\n  :b, "


def test_load_says_what_to_do_instead() -> None:
    with pytest.raises(UnsupportedSparqlError, match=r"kb\.load\(rdf="):
        KnowledgeBase().sparql("LOAD <http://e/>")
