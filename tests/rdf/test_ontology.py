"""Ontologies become rules, and what does not is counted."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

from evermat import IRI, KnowledgeBase, Program
from evermat.rdf.ontology import IgnoredAxiomsWarning, read_ontology

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings(
    "ignore::evermat.rdf.ontology.IgnoredAxiomsWarning"
)

PREFIXES = """
@prefix : <http://e/> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
"""
A = IRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
Triple = tuple[str, str, str]


def term(name: str) -> IRI:
    return A if name == "a" else IRI(f"http://e/{name}")


def derived(folder: Path, axioms: str, *facts: Triple) -> set[Triple]:
    """What follows from facts, as short names."""
    (folder / "o.ttl").write_text(PREFIXES + axioms, encoding="utf-8")
    rules = read_ontology(folder / "o.ttl").rules
    kb = KnowledgeBase(Program(rules=rules), engine="reference", equality="off")
    kb.insert("triple", [tuple(map(term, fact)) for fact in facts])
    found = kb.facts("triple", "derived")
    return {tuple(map(short, row)) for row in found}  # type: ignore[misc]


def short(value: object) -> str:
    return "a" if value == A else str(value).rpartition("/")[2]


@pytest.mark.parametrize(
    ("axioms", "facts", "expected"),
    [
        (":C rdfs:subClassOf :D . :D rdfs:subClassOf :E .",
         ["x a C"], ["x a D", "x a E"]),
        (":C owl:equivalentClass :D .", ["x a C", "y a D"], ["x a D", "y a C"]),
        (":p rdfs:subPropertyOf :q .", ["x p y"], ["x q y"]),
        (":p owl:equivalentProperty :q .", ["x p y", "u q v"], ["x q y", "u p v"]),
        (":p rdfs:domain :C ; rdfs:range :D .", ["x p y"], ["x a C", "y a D"]),
        (":p owl:inverseOf :q .", ["x p y", "u q v"], ["y q x", "v p u"]),
        (":p a owl:SymmetricProperty .", ["x p y"], ["y p x"]),
        (":p a owl:TransitiveProperty .", ["x p y", "y p z"], ["x p z"]),
        (":p owl:propertyChainAxiom (:q :r) .", ["x q y", "y r z"], ["x p z"]),
        (":C owl:equivalentClass [ owl:intersectionOf (:D :E) ] .",
         ["x a D", "x a E", "y a C"], ["x a C", "y a D", "y a E"]),
        ("[ owl:unionOf (:C :D) ] rdfs:subClassOf :E .",
         ["x a C", "y a D"], ["x a E", "y a E"]),
        ("[ owl:onProperty :p ; owl:someValuesFrom :C ] rdfs:subClassOf :D .",
         ["x p y", "y a C", "u p v"], ["x a D"]),
        ("[ owl:onProperty :p ; owl:someValuesFrom owl:Thing ] rdfs:subClassOf :D .",
         ["x p y"], ["x a D"]),
        ("[ owl:onProperty :p ; owl:hasValue :v ] rdfs:subClassOf :D .",
         ["x p v", "y p w"], ["x a D"]),
        (":C rdfs:subClassOf [ owl:onProperty :p ; owl:hasValue :v ] .",
         ["x a C"], ["x p v"]),
        (":C rdfs:subClassOf [ owl:onProperty :p ; owl:allValuesFrom :D ] .",
         ["x a C", "x p y", "u p v"], ["y a D"]),
        (":C owl:intersectionOf (:D [ owl:onProperty :p ; owl:someValuesFrom :E ]) .",
         ["x a D", "x p y", "y a E", "u a C"], ["x a C", "u a D"]),
        (":C owl:unionOf (:D :E) .", ["x a D", "y a E", "z a C"], ["x a C", "y a C"]),
        (("[ owl:onProperty [ owl:inverseOf :p ] ; owl:someValuesFrom :C ]"
         " rdfs:subClassOf :D ."), ["y p x", "y a C", "u p v"], ["x a D"]),
        ((":C rdfs:subClassOf"
         " [ owl:onProperty [ owl:inverseOf :p ] ; owl:allValuesFrom :D ] ."),
         ["x a C", "y p x", "x p u"], ["y a D"]),
        ((":C rdfs:subClassOf [ owl:onProperty [ owl:inverseOf :p ] ; owl:hasValue :v ]"
         " ."), ["x a C"], ["v p x"]),
        (":r owl:propertyChainAxiom (:p [ owl:inverseOf :q ]) .",
         ["x p y", "z q y"], ["x r z"]),
        (":p rdfs:subPropertyOf [ owl:inverseOf :q ] .", ["x p y"], ["y q x"]),
        ("[ owl:inverseOf :p ] owl:propertyChainAxiom (:q :r) .",
         ["x q y", "y r z"], ["z p x"]),
        ("[ owl:inverseOf :p ] a owl:TransitiveProperty .",
         ["x p y", "y p z"], ["x p z"]),
        ("[ owl:inverseOf :p ] a owl:SymmetricProperty .", ["x p y"], ["y p x"]),
    ],
)  # fmt: skip
def test_axioms_as_rules(
    tmp_path: Path, axioms: str, facts: list[str], expected: list[str]
) -> None:
    given = [fact.split() for fact in facts]
    found = derived(tmp_path, axioms, *given)  # type: ignore[arg-type]
    assert found == {tuple(fact.split()) for fact in expected}


def test_functional_properties_make_things_equal(tmp_path: Path) -> None:
    found = derived(
        tmp_path,
        ":p a owl:FunctionalProperty . :q a owl:InverseFunctionalProperty .",
        ("x", "p", "y"), ("x", "p", "z"), ("u", "q", "w"), ("v", "q", "w"),
    )  # fmt: skip
    pairs = {(s, o) for s, p, o in found if p.endswith("sameAs")}
    assert {("y", "z"), ("u", "v")} <= pairs


@pytest.mark.parametrize(
    ("axioms", "facts", "equal"),
    [
        (":C owl:hasKey (:p :q) .",
         ["x a C", "y a C", "z a C", "u a D", "x p v", "y p v", "z p v", "u p v",
          "x q w", "y q w", "z q t", "u q w"], {"x", "y"}),
        (":C rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality 1 ] .",
         ["x a C", "x p y", "x p z", "u p v", "u p w"], {"y", "z"}),
        ("[ owl:inverseOf :p ] a owl:FunctionalProperty .",
         ["x p y", "x p z", "u p z"], {"x", "u"}),
        ((":C rdfs:subClassOf [ owl:onProperty :p ; owl:onClass :D ;"
         ' owl:maxQualifiedCardinality "1"^^<http://www.w3.org/2001/XMLSchema#'
         "nonNegativeInteger> ] ."),
         ["x a C", "x p y", "x p z", "x p u", "y a D", "z a D"], {"y", "z"}),
    ],
)  # fmt: skip
def test_axioms_that_make_things_equal(
    tmp_path: Path, axioms: str, facts: list[str], equal: set[str]
) -> None:
    given = [fact.split() for fact in facts]
    found = derived(tmp_path, axioms, *given)  # type: ignore[arg-type]
    pairs = {frozenset({s, o}) for s, p, o in found if p.endswith("sameAs")}
    assert {pair for pair in pairs if len(pair) > 1} == {frozenset(equal)}


def test_axioms_that_are_no_rules_are_counted(tmp_path: Path) -> None:
    (tmp_path / "o.ttl").write_text(
        PREFIXES + ":C owl:disjointWith :D . :p a owl:AsymmetricProperty ."
        ":C rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality 2 ], :C ."
        ":C rdfs:subClassOf owl:Nothing . :x a [ owl:onProperty :p ; owl:hasValue :y ]."
        "[] a owl:NegativePropertyAssertion . [] a owl:AllDisjointClasses ."
        ":p rdfs:range rdfs:Literal . :q rdfs:range :Age . :Age a rdfs:Datatype ."
        "<http://e/> owl:imports <http://f/> .",
        encoding="utf-8",
    )
    with pytest.warns(IgnoredAxiomsWarning) as told:
        ontology = read_ontology(tmp_path / "o.ttl")
    (warning,) = (str(each.message) for each in told)
    assert "o.ttl` are ignored: class expression on the right (1), datatype (2)" in (
        warning
    )
    assert warning.splitlines()[1].endswith(
        "is not checked: owl:AllDisjointClasses (1), owl:AsymmetricProperty (1), "
        "owl:NegativePropertyAssertion (1), owl:Nothing (1), owl:disjointWith (1)"
    )
    assert ontology.rules == ()
    assert ontology.ignored == {
        "class expression on the right": 1,
        "datatype": 2,
        "member of a class without a name": 1,
        "owl:AllDisjointClasses": 1,
        "owl:AsymmetricProperty": 1,
        "owl:NegativePropertyAssertion": 1,
        "owl:Nothing": 1,
        "owl:disjointWith": 1,
        "owl:imports": 1,
    }


@pytest.mark.parametrize(
    ("axioms", "ignored"),
    [
        ("_:c owl:intersectionOf (_:c :D) . :E rdfs:subClassOf _:c .",
         "class that is part of itself"),
        (("_:c owl:unionOf (_:d :D) . _:d owl:onProperty :p ; owl:someValuesFrom _:c ."
          " _:c rdfs:subClassOf :E ."),
         "class that is part of itself"),
        (":p owl:propertyChainAxiom () .", "owl:propertyChainAxiom"),
        (":p rdfs:subPropertyOf owl:bottomObjectProperty .", "impossible property"),
        (":r a <http://www.w3.org/2003/11/swrl#Imp> .", "rule in SWRL"),
        ("[ owl:onProperty :p ; owl:maxCardinality 0 ] .", "owl:maxCardinality 0"),
    ],
)  # fmt: skip
def test_axioms_without_sense_spoil_no_others(
    tmp_path: Path, axioms: str, ignored: str
) -> None:
    assert ("x", "a", "B") in derived(
        tmp_path, f"{axioms} :A rdfs:subClassOf :B .", ("x", "a", "A")
    )
    assert read_ontology(tmp_path / "o.ttl").ignored == {ignored: 1}


def test_an_ontology_of_rules_alone_is_no_reason_for_a_warning(tmp_path: Path) -> None:
    (tmp_path / "o.ttl").write_text(PREFIXES + ":A rdfs:subClassOf :B .")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_ontology(tmp_path / "o.ttl").ignored == {}
