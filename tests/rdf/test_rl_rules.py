"""The rules of the W3C for OWL 2 RL (OWL 2 Profiles, tables 4 to 9), both ways.

There are no cases for prp-ap, cls-thing and cls-nothing1, which declare terms of OWL
itself: neither form adds these triples, and nothing follows from them about data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evermat import KnowledgeBase
from evermat.rdf import read_ontology

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
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""

FALSE = "false"

THINGS = {
    "eq-sym": (":x owl:sameAs :y .", ":y owl:sameAs :x"),
    "eq-trans": (":x owl:sameAs :y . :y owl:sameAs :z .", ":x owl:sameAs :z"),
    "eq-ref": (":x owl:sameAs :y . :x :p :z .", ":x owl:sameAs :x"),
    "eq-rep-s": (":x owl:sameAs :y . :x :p :z .", ":y :p :z"),
    "eq-rep-p": (":p owl:sameAs :q . :x :p :z .", ":x :q :z"),
    "eq-rep-o": (":y owl:sameAs :z . :x :p :y .", ":x :p :z"),
    "eq-diff1": (":x owl:sameAs :y ; owl:differentFrom :y .", FALSE),
    "eq-diff2": (
        "[] a owl:AllDifferent ; owl:members (:x :y) . :x owl:sameAs :y .",
        FALSE,
    ),
    "eq-diff3": (
        "[] a owl:AllDifferent ; owl:distinctMembers (:x :y) . :x owl:sameAs :y .",
        FALSE,
    ),
    "prp-dom": (":p rdfs:domain :C . :x :p :y .", ":x a :C"),
    "prp-rng": (":p rdfs:range :C . :x :p :y .", ":y a :C"),
    "prp-fp": (":p a owl:FunctionalProperty . :x :p :y, :z .", ":y owl:sameAs :z"),
    "prp-ifp": (
        ":p a owl:InverseFunctionalProperty . :x :p :z . :y :p :z .",
        ":x owl:sameAs :y",
    ),
    "prp-irp": (":p a owl:IrreflexiveProperty . :x :p :x .", FALSE),
    "prp-symp": (":p a owl:SymmetricProperty . :x :p :y .", ":y :p :x"),
    "prp-asyp": (":p a owl:AsymmetricProperty . :x :p :y . :y :p :x .", FALSE),
    "prp-trp": (":p a owl:TransitiveProperty . :x :p :y . :y :p :z .", ":x :p :z"),
    "prp-spo1": (":p rdfs:subPropertyOf :q . :x :p :y .", ":x :q :y"),
    "prp-spo2": (
        ":p owl:propertyChainAxiom (:q :r :s) . :x :q :y . :y :r :z . :z :s :u .",
        ":x :p :u",
    ),
    "prp-eqp1": (":p owl:equivalentProperty :q . :x :p :y .", ":x :q :y"),
    "prp-eqp2": (":p owl:equivalentProperty :q . :x :q :y .", ":x :p :y"),
    "prp-pdw": (":p owl:propertyDisjointWith :q . :x :p :y ; :q :y .", FALSE),
    "prp-adp": (
        "[] a owl:AllDisjointProperties ; owl:members (:p :q :r) . :x :p :y ; :r :y .",
        FALSE,
    ),
    "prp-inv1": (":p owl:inverseOf :q . :x :p :y .", ":y :q :x"),
    "prp-inv2": (":p owl:inverseOf :q . :x :q :y .", ":y :p :x"),
    "prp-key": (
        ":C owl:hasKey (:p :q) . :x a :C ; :p 1 ; :q :u . :y a :C ; :p 1 ; :q :u .",
        ":x owl:sameAs :y",
    ),
    "prp-npa1": (
        (
            "[] owl:sourceIndividual :x ; owl:assertionProperty :p ;"
            " owl:targetIndividual :y ; a owl:NegativePropertyAssertion . :x :p :y ."
        ),
        FALSE,
    ),
    "prp-npa2": (
        (
            "[] owl:sourceIndividual :x ; owl:assertionProperty :p ;"
            " owl:targetValue 5 ; a owl:NegativePropertyAssertion . :x :p 5 ."
        ),
        FALSE,
    ),
    "cls-nothing2": (":x a owl:Nothing .", FALSE),
    "cls-int1": (":C owl:intersectionOf (:D :E :F) . :x a :D, :E, :F .", ":x a :C"),
    "cls-int2": (":C owl:intersectionOf (:D :E :F) . :x a :C .", ":x a :F"),
    "cls-uni": (":C owl:unionOf (:D :E :F) . :x a :E .", ":x a :C"),
    "cls-com": (":C owl:complementOf :D . :x a :C, :D .", FALSE),
    "cls-svf1": (
        ":C owl:onProperty :p ; owl:someValuesFrom :D . :x :p :y . :y a :D .",
        ":x a :C",
    ),
    "cls-svf2": (
        ":C owl:onProperty :p ; owl:someValuesFrom owl:Thing . :x :p :y .",
        ":x a :C",
    ),
    "cls-avf": (
        ":C owl:onProperty :p ; owl:allValuesFrom :D . :x a :C ; :p :y .",
        ":y a :D",
    ),
    "cls-hv1": (":C owl:onProperty :p ; owl:hasValue :y . :x a :C .", ":x :p :y"),
    "cls-hv2": (":C owl:onProperty :p ; owl:hasValue :y . :x :p :y .", ":x a :C"),
    "cls-maxc1": (
        ":C owl:onProperty :p ; owl:maxCardinality 0 . :x a :C ; :p :y .",
        FALSE,
    ),
    "cls-maxc2": (
        ":C owl:onProperty :p ; owl:maxCardinality 1 . :x a :C ; :p :y, :z .",
        ":y owl:sameAs :z",
    ),
    "cls-maxqc1": (
        (
            ":C owl:onProperty :p ; owl:maxQualifiedCardinality 0 ; owl:onClass :D ."
            " :x a :C ; :p :y . :y a :D ."
        ),
        FALSE,
    ),
    "cls-maxqc2": (
        (
            ":C owl:onProperty :p ; owl:maxQualifiedCardinality 0 ;"
            " owl:onClass owl:Thing . :x a :C ; :p :y ."
        ),
        FALSE,
    ),
    "cls-maxqc3": (
        (
            ":C owl:onProperty :p ; owl:maxQualifiedCardinality 1 ; owl:onClass :D ."
            " :x a :C ; :p :y, :z . :y a :D . :z a :D ."
        ),
        ":y owl:sameAs :z",
    ),
    "cls-maxqc4": (
        (
            ":C owl:onProperty :p ; owl:maxQualifiedCardinality 1 ;"
            " owl:onClass owl:Thing . :x a :C ; :p :y, :z ."
        ),
        ":y owl:sameAs :z",
    ),
    "cls-oo": (":C owl:oneOf (:x :y) .", ":y a :C"),
    "cax-sco": (":C rdfs:subClassOf :D . :x a :C .", ":x a :D"),
    "cax-eqc1": (":C owl:equivalentClass :D . :x a :C .", ":x a :D"),
    "cax-eqc2": (":C owl:equivalentClass :D . :x a :D .", ":x a :C"),
    "cax-dw": (":C owl:disjointWith :D . :x a :C, :D .", FALSE),
    "cax-adc": (
        "[] a owl:AllDisjointClasses ; owl:members (:B :C :D) . :x a :B, :D .",
        FALSE,
    ),
    "dt-type2": (":p rdfs:range xsd:integer . :x :p 5 .", ""),
    "dt-eq": (
        ":p a owl:FunctionalProperty . :x :p 5, '5'^^xsd:byte .",
        "",
    ),
    "dt-diff": (":p a owl:FunctionalProperty . :x :p 5, 6 .", FALSE),
    "dt-not-type": (":p rdfs:range xsd:byte . :x :p 'five' .", FALSE),
}
"""About things: premises, and what follows; nothing where they are consistent."""

SCHEMA = {
    "dt-type1": ("", "xsd:byte a rdfs:Datatype"),
    "scm-cls": (":C a owl:Class .", ":C rdfs:subClassOf :C"),
    "scm-cls, thing": (":C a owl:Class .", ":C rdfs:subClassOf owl:Thing"),
    "scm-sco": (":C rdfs:subClassOf :D . :D rdfs:subClassOf :E .",
                ":C rdfs:subClassOf :E"),
    "scm-eqc1": (":C owl:equivalentClass :D .", ":D rdfs:subClassOf :C"),
    "scm-eqc2": (":C rdfs:subClassOf :D . :D rdfs:subClassOf :C .",
                 ":C owl:equivalentClass :D"),
    "scm-op": (":p a owl:ObjectProperty .", ":p rdfs:subPropertyOf :p"),
    "scm-dp": (":p a owl:DatatypeProperty .", ":p owl:equivalentProperty :p"),
    "scm-spo": (":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :r .",
                ":p rdfs:subPropertyOf :r"),
    "scm-eqp1": (":p owl:equivalentProperty :q .", ":q rdfs:subPropertyOf :p"),
    "scm-eqp2": (":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :p .",
                 ":p owl:equivalentProperty :q"),
    "scm-dom1": (":p rdfs:domain :C . :C rdfs:subClassOf :D .", ":p rdfs:domain :D"),
    "scm-dom2": (":q rdfs:domain :C . :p rdfs:subPropertyOf :q .", ":p rdfs:domain :C"),
    "scm-rng1": (":p rdfs:range :C . :C rdfs:subClassOf :D .", ":p rdfs:range :D"),
    "scm-rng2": (":q rdfs:range :C . :p rdfs:subPropertyOf :q .", ":p rdfs:range :C"),
    "scm-hv": (
        (":C owl:hasValue :i ; owl:onProperty :p . :D owl:hasValue :i ;"
        " owl:onProperty :q . :p rdfs:subPropertyOf :q ."), ":C rdfs:subClassOf :D"),
    "scm-svf1": (
        (":C owl:someValuesFrom :A ; owl:onProperty :p ."
        " :D owl:someValuesFrom :B ; owl:onProperty :p . :A rdfs:subClassOf :B ."),
        ":C rdfs:subClassOf :D"),
    "scm-svf2": (
        (":C owl:someValuesFrom :A ; owl:onProperty :p ."
        " :D owl:someValuesFrom :A ; owl:onProperty :q . :p rdfs:subPropertyOf :q ."),
        ":C rdfs:subClassOf :D"),
    "scm-avf1": (
        (":C owl:allValuesFrom :A ; owl:onProperty :p ."
        " :D owl:allValuesFrom :B ; owl:onProperty :p . :A rdfs:subClassOf :B ."),
        ":C rdfs:subClassOf :D"),
    "scm-avf2": (
        (":C owl:allValuesFrom :A ; owl:onProperty :p ."
        " :D owl:allValuesFrom :A ; owl:onProperty :q . :p rdfs:subPropertyOf :q ."),
        ":D rdfs:subClassOf :C"),
    "scm-int": (":C owl:intersectionOf (:D :E) .", ":C rdfs:subClassOf :E"),
    "scm-uni": (":C owl:unionOf (:D :E) .", ":E rdfs:subClassOf :C"),
}  # fmt: skip
"""About classes, properties and datatypes, which the compiled form has as rules rather
than as triples."""


def check(kb: KnowledgeBase, folder: Path, premises: str, wanted: str) -> None:
    path = folder / "premises.ttl"
    path.write_text(PREFIXES + premises, encoding="utf-8")
    kb.load(rdf=path)
    assert bool(kb.contradictions()) == (wanted == FALSE)
    if wanted not in {FALSE, ""}:
        text = PREFIXES.replace("@prefix", "PREFIX").replace(" .\n", "\n")
        assert kb.sparql(f"{text} ASK {{ {wanted} }}") is True


@pytest.fixture(scope="module")
def rule_set() -> KnowledgeBase:
    """The rules, for one case after the other: to prepare them takes longest."""
    return KnowledgeBase("@include owl2rl .", contradictions="ignore")


@pytest.mark.parametrize("name", [*THINGS, *SCHEMA])
def test_the_rule_set_has_the_rule(
    rule_set: KnowledgeBase, tmp_path: Path, name: str
) -> None:
    try:
        check(rule_set, tmp_path, *(THINGS | SCHEMA)[name])
    finally:
        rule_set.delete("triple", rule_set.facts("triple", "explicit"))
    assert not rule_set.contradictions()


@pytest.mark.parametrize("name", THINGS)
def test_the_compiled_form_has_the_rule(tmp_path: Path, name: str) -> None:
    premises, wanted = THINGS[name]
    path = tmp_path / "ontology.ttl"
    path.write_text(PREFIXES + premises, encoding="utf-8")
    kb = KnowledgeBase(read_ontology(path), contradictions="ignore")
    check(kb, tmp_path, premises, wanted)


def test_beyond_the_profile_the_rule_set_derives_more(
    rule_set: KnowledgeBase, tmp_path: Path
) -> None:
    """OWL 2 RL has no existentials on the right; the rules have a use for them."""
    premises = (
        ":Assistant rdfs:subClassOf _:narrow . _:narrow owl:onProperty :worksFor ;"
        " owl:someValuesFrom :Group . :Group rdfs:subClassOf :Organisation ."
        " :Employee owl:equivalentClass _:wide . _:wide owl:onProperty :worksFor ;"
        " owl:someValuesFrom :Organisation . :x a :Assistant ."
    )
    path = tmp_path / "ontology.ttl"
    path.write_text(PREFIXES + premises, encoding="utf-8")
    ontology = read_ontology(path)
    assert "class expression on the right" in ontology.ignored_counts
    compiled = KnowledgeBase(ontology)
    asked = "ASK { <http://e/x> a <http://e/Employee> }"
    try:
        for kb in (compiled, rule_set):
            kb.load(rdf=path)
            assert kb.sparql(asked) is (kb is rule_set)
    finally:
        rule_set.delete("triple", rule_set.facts("triple", "explicit"))
