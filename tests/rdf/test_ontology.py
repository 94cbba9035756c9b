"""Ontologies become rules, and what does not is counted."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

from evermat import IRI, KnowledgeBase
from evermat.kb.inputs import RuleFileError
from evermat.rdf.ontology import IgnoredAxiomsWarning, read_ontology
from evermat.rdf.owl.documents import OntologyFormatError
from evermat.runtime.input_limits import PathNotAllowedError

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
A = IRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
Triple = tuple[str, str, str]


def term(name: str) -> IRI:
    if name == "differentFrom":
        return IRI(f"http://www.w3.org/2002/07/owl#{name}")
    return A if name == "a" else IRI(f"http://e/{name}")


def derived(folder: Path, axioms: str, *facts: Triple) -> set[Triple]:
    """What follows from facts, as short names."""
    (folder / "o.ttl").write_text(PREFIXES + axioms, encoding="utf-8")
    ontology = read_ontology(folder / "o.ttl")
    kb = KnowledgeBase(ontology, engine="reference", equality="off")
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


def contradictions(folder: Path, axioms: str, *facts: str) -> set[str]:
    """What contradicts axioms, in short names."""
    (folder / "o.ttl").write_text(PREFIXES + axioms, encoding="utf-8")
    ontology = read_ontology(folder / "o.ttl")
    kb = KnowledgeBase(ontology, engine="reference", contradictions="ignore")
    kb.insert("triple", [*map(row_of, facts)])
    found = set()
    for each in kb.contradictions():
        text = str(each).removeprefix("false(").removesuffix(")")
        found.add(text.replace("owl:", "").replace(":", "").replace(",", ""))
    return found


def row_of(fact: str) -> tuple[object, ...]:
    return tuple(map(value, fact.split()))


def value(text: str) -> object:
    if text.isdigit():
        return int(text)
    return text.strip("'") if text.startswith("'") else term(text)


@pytest.mark.parametrize(
    ("axioms", "facts", "expected"),
    [
        (":C owl:disjointWith :D .", ["x a C", "x a D", "y a C"],
         {"disjointWith C D x"}),
        ("[] a owl:AllDisjointClasses ; owl:members (:B :C :D) .",
         ["x a B", "x a D", "y a C"], {"AllDisjointClasses B D x"}),
        (":B owl:disjointUnionOf (:C :D) .", ["x a C", "x a D"],
         {"disjointUnionOf C D x"}),
        (":C rdfs:subClassOf owl:Nothing .", ["x a C", "y a D"], {"Nothing x"}),
        (":C rdfs:subClassOf [ owl:complementOf :D ] .", ["x a C", "x a D", "y a D"],
         {"complementOf D x"}),
        (":C owl:complementOf :D .", ["x a C", "x a D"], {"complementOf D x"}),
        (":p a owl:AsymmetricProperty .", ["x p y", "y p x", "x p z"],
         {"AsymmetricProperty p x y", "AsymmetricProperty p y x"}),
        (":p a owl:IrreflexiveProperty .", ["x p x", "x p y"],
         {"IrreflexiveProperty p x"}),
        (":p owl:propertyDisjointWith :q .", ["x p y", "x q y", "x q z"],
         {"propertyDisjointWith p q x y"}),
        ("[] a owl:AllDisjointProperties ; owl:members (:p :q :r) .",
         ["x p y", "x r y", "z q y"], {"AllDisjointProperties p r x y"}),
        (("[] a owl:NegativePropertyAssertion ; owl:sourceIndividual :x ;"
         " owl:assertionProperty :p ; owl:targetIndividual :y ."),
         ["x p y", "x p z"], {"NegativePropertyAssertion x p y"}),
        (("[] a owl:NegativePropertyAssertion ; owl:sourceIndividual :x ;"
         " owl:assertionProperty :p ; owl:targetValue 5 ."),
         ["x p 5", "x p 6"], {"NegativePropertyAssertion x p 5"}),
        (":x owl:differentFrom :y . :p a owl:FunctionalProperty .",
         ["x differentFrom y", "u p x", "u p y"], {"differentFrom x"}),
        (("[] a owl:AllDifferent ; owl:distinctMembers (:x :y :z) ."
          ":p a owl:FunctionalProperty ."), ["u p z", "u p y"], {"differentFrom y"}),
        (":p a owl:FunctionalProperty .", ["x p 1", "x p 2", "y p 1", "u p v"],
         {"FunctionalProperty p x"}),
        (":p a owl:FunctionalProperty, owl:DatatypeProperty .", ["x p 1", "x p '1'"],
         {"FunctionalProperty p x"}),
        (":C rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality 0 ] .",
         ["x a C", "x p y", "z p y"], {"maxCardinality p x y"}),
        ((":C rdfs:subClassOf [ owl:onProperty :p ; owl:onClass :D ;"
          " owl:maxQualifiedCardinality 0 ] ."),
         ["x a C", "x p y", "y a D", "x p z"], {"maxCardinality p x y"}),
        (":p rdfs:range xsd:byte .", ["x p 5", "x p 500", "x p y"], {"xsdbyte 500"}),
        (":C rdfs:subClassOf [ owl:onProperty :p ; owl:allValuesFrom xsd:string ] .",
         ["x a C", "x p 'a'", "x p 5", "y p 6"], {"xsdstring 5"}),
        (":p rdfs:subPropertyOf owl:bottomObjectProperty .", ["x p y"],
         {"bottomObjectProperty p x y"}),
    ],
)  # fmt: skip
def test_axioms_that_forbid_find_contradictions(
    tmp_path: Path, axioms: str, facts: list[str], expected: set[str]
) -> None:
    assert contradictions(tmp_path, axioms, *facts) == expected
    assert read_ontology(tmp_path / "o.ttl").ignored_counts in (
        {},
        {"union on the right": 1},
        {"class expression on the left": 1},  # the other half of a definition
    )


@pytest.mark.parametrize(
    ("axioms", "facts", "expected"),
    [
        ("[ owl:onProperty :p ; owl:hasSelf true ] rdfs:subClassOf :C .",
         ["x p x", "y p z"], {"x a C"}),
        (":C rdfs:subClassOf [ owl:onProperty :p ; owl:hasSelf true ] .",
         ["x a C"], {"x p x"}),
        (":p a owl:ReflexiveProperty .", ["x p y"], {"x p x", "y p y"}),
        ("[ owl:oneOf (:x :y) ] rdfs:subClassOf :C .", ["u a D"], {"x a C", "y a C"}),
        (":C owl:oneOf (:x) .", ["u a D"], {"x a C"}),
        (("[ owl:onProperty :p ; owl:someValuesFrom [ owl:oneOf (:y) ] ]"
          " rdfs:subClassOf :C ."), ["x p y", "u p v"], {"x a C"}),
        ("[ owl:onProperty :p ; owl:minCardinality 1 ] rdfs:subClassOf :C .",
         ["x p y"], {"x a C"}),
        (("[ owl:onProperty :p ; owl:someValuesFrom xsd:integer ] rdfs:subClassOf :C ."
          ), ["x p 5", "y p 'a'", "u p v"], {"x a C"}),
        (":p owl:propertyChainAxiom (:q :r :s) .",
         ["x q y", "y r z", "z s u"], {"x p u"}),
        (":x a [ owl:onProperty :p ; owl:hasValue :y ] .", [], set()),
        (":B owl:disjointUnionOf (:C :D) .", ["x a C"], {"x a B"}),
        (":C owl:onProperty :p ; owl:hasValue :v .", ["x p v", "y a C"],
         {"x a C", "y p v"}),
    ],
)  # fmt: skip
def test_more_axioms_as_rules(
    tmp_path: Path, axioms: str, facts: list[str], expected: set[str]
) -> None:
    (tmp_path / "o.ttl").write_text(PREFIXES + axioms, encoding="utf-8")
    kb = KnowledgeBase(read_ontology(tmp_path / "o.ttl"), engine="reference")
    kb.insert("triple", [*map(row_of, facts)])
    every = {" ".join(map(short, row)) for row in kb.facts("triple", "derived")}
    every |= {fact for fact in expected if kb.contains("triple", row_of(fact))}
    assert {fact for fact in every if "sameAs" not in fact} == expected


def test_members_of_classes_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "o.ttl"
    text = ":x a [ owl:onProperty :p ; owl:hasValue :y ] ."
    path.write_text(PREFIXES + text, encoding="utf-8")
    kb = KnowledgeBase(read_ontology(path))
    kb.load(rdf=path)
    assert kb.contains("triple", (term("x"), term("p"), term("y")))


def test_axioms_that_are_no_rules_are_listed_with_their_places(tmp_path: Path) -> None:
    (tmp_path / "o.ttl").write_text(
        PREFIXES + ":C rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality 2 ] ."
        ":q rdfs:range :Age . :Age a rdfs:Datatype . :D owl:unionOf (:A :B) ."
        "<http://e/> owl:imports <http://f/> .",
        encoding="utf-8",
    )
    with pytest.warns(IgnoredAxiomsWarning) as told:
        ontology = read_ontology(tmp_path / "o.ttl")
    (warning,) = (str(each.message) for each in told)
    assert "o.ttl` are ignored: class expression on the right (2), datatype (1)" in (
        warning
    )
    assert ontology.ignored_counts == {
        "class expression on the right": 2,
        "datatype": 1,
        "owl:imports": 1,
    }
    axiom = "<http://e/C> rdfs:subClassOf [ owl:onProperty <http://e/p> … ]"
    assert set(map(str, ontology.ignored)) == {
        "owl:imports: <http://e/> owl:imports <http://f/> (o.ttl)",
        "datatype: <http://e/q> rdfs:range <http://e/Age> (o.ttl)",
        f"class expression on the right: {axiom} (o.ttl)",
        "class expression on the right: <http://e/D> owl:unionOf [ … ] (o.ttl)",
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
        ("[] a owl:NegativePropertyAssertion .", "owl:NegativePropertyAssertion"),
        (
            ":r a <http://www.w3.org/2003/11/swrl#Imp> .",
            "SWRL rule with no body or no head",
        ),
        ("owl:Thing rdfs:subClassOf :B .", "axiom about every thing"),
        (":C rdfs:subClassOf [ owl:onProperty :p ; owl:cardinality 1 ] .",
         "at least so many values on the right"),
    ],
)  # fmt: skip
def test_axioms_without_sense_spoil_no_others(
    tmp_path: Path, axioms: str, ignored: str
) -> None:
    assert ("x", "a", "B") in derived(
        tmp_path, f"{axioms} :A rdfs:subClassOf :B .", ("x", "a", "A")
    )
    assert read_ontology(tmp_path / "o.ttl").ignored_counts == {ignored: 1}


def test_imports_are_read_from_local_files(tmp_path: Path) -> None:
    (tmp_path / "b.ttl").write_text(
        PREFIXES + "<http://b/> a owl:Ontology ; owl:imports <http://a/> ."
        ":B rdfs:subClassOf :C ."
    )
    (tmp_path / "a.ttl").write_text(
        PREFIXES + "<http://a/> a owl:Ontology ; owl:imports <http://b/> ."
        ":A rdfs:subClassOf :B ."
    )
    catalogue = (
        '<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">'
        '<uri name="http://b/" uri="b.ttl"/></catalog>'
    )
    (tmp_path / "mine.xml").write_text(catalogue)
    for given in (
        {"http://b/": tmp_path / "b.ttl"}, tmp_path, tmp_path / "mine.xml"
    ):  # fmt: skip
        ontology = read_ontology(tmp_path / "a.ttl", catalogue=given)
        found = {str(rule) for rule in ontology.rules}
        assert "[?x, a, <http://e/C>] :- [?x, a, <http://e/B>] ." in found
    assert read_ontology(tmp_path / "a.ttl").ignored_counts == {"owl:imports": 1}
    (tmp_path / "catalog-v001.xml").write_text(catalogue)
    found = {str(rule) for rule in read_ontology(tmp_path / "a.ttl").rules}
    assert "[?x, a, <http://e/C>] :- [?x, a, <http://e/B>] ." in found


def test_a_catalogue_names_no_files_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "secret.ttl").write_text("")
    (folder / "a.ttl").write_text(PREFIXES)
    (folder / "catalog-v001.xml").write_text(
        '<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">'
        '<uri name="http://b/" uri="../secret.ttl"/></catalog>'
    )
    with pytest.raises(PathNotAllowedError):
        read_ontology(folder / "a.ttl")


@pytest.mark.parametrize("text", ["<catalog>", "no XML", "<!DOCTYPE a [<!ENTITY b"])
def test_a_catalogue_must_be_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.xml").write_text(text)
    (tmp_path / "a.ttl").write_text(PREFIXES)
    with pytest.raises(OntologyFormatError, match="no XML catalogue"):
        read_ontology(tmp_path / "a.ttl", catalogue=tmp_path / "c.xml")


FUNCTIONAL = """
Prefix(:=<http://e/>)
Prefix(owl:=<http://www.w3.org/2002/07/owl#>)
Ontology(<http://e/o>
  Declaration(Class(:A)) Declaration(Class(:B))
  SubClassOf(:A :B) DisjointClasses(:B :C)
)
"""
OWL_XML = """<?xml version="1.0"?>
<Ontology xmlns="http://www.w3.org/2002/07/owl#" ontologyIRI="http://e/o">
  <SubClassOf><Class IRI="http://e/A"/><Class IRI="http://e/B"/></SubClassOf>
</Ontology>
"""


@pytest.mark.parametrize(("suffix", "text"), [("ofn", FUNCTIONAL), ("owx", OWL_XML)])
def test_other_syntaxes(tmp_path: Path, suffix: str, text: str) -> None:
    pytest.importorskip("pyhornedowl")
    path = tmp_path / f"o.{suffix}"
    path.write_text(text)
    rules = {str(rule) for rule in read_ontology(path).rules}
    assert "[?x, a, <http://e/B>] :- [?x, a, <http://e/A>] ." in rules
    assert rules == {str(rule) for rule in KnowledgeBase(path).rules}
    path.write_text("nonsense")
    with pytest.raises(OntologyFormatError):
        read_ontology(path)


def test_an_rdf_file_with_axioms_is_a_file_of_rules(tmp_path: Path) -> None:
    (tmp_path / "o.ttl").write_text(PREFIXES + ":A rdfs:subClassOf :B .")
    kb = KnowledgeBase(tmp_path / "o.ttl")
    kb.sparql("INSERT DATA { :x a :A }")
    assert kb.sparql("ASK { :x a :B }")
    (tmp_path / "o.ttl").write_text(PREFIXES + ":x a :B .")
    with pytest.raises(RuleFileError, match="is a file of facts"):
        KnowledgeBase(tmp_path / "o.ttl")


def test_an_ontology_of_rules_alone_is_no_reason_for_a_warning(tmp_path: Path) -> None:
    (tmp_path / "o.ttl").write_text(PREFIXES + ":A rdfs:subClassOf :B .")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_ontology(tmp_path / "o.ttl").ignored == ()
