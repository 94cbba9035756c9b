"""Upper bounds of ontologies, and rules in SWRL inside of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evermat import IRI, KnowledgeBase
from evermat.rdf import read_ontology
from evermat.rdf.owl.bounds import SOME, BoundError

if TYPE_CHECKING:
    from pathlib import Path

    from evermat.rdf.owl.bounds import Bound

pytestmark = pytest.mark.filterwarnings(
    "ignore::evermat.rdf.ontology.IgnoredAxiomsWarning"
)

PREFIXES = """
@prefix : <http://e/> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix swrl: <http://www.w3.org/2003/11/swrl#> .
@prefix swrlb: <http://www.w3.org/2003/11/swrlb#> .
"""
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
OWL = "http://www.w3.org/2002/07/owl#"
Triple = tuple[object, str, object]


def names(value: object) -> object:
    """Full names for short ones; other values are literals."""
    if not isinstance(value, str) or value.startswith("'"):
        return value.strip("'") if isinstance(value, str) else value
    if value in {"sameAs", "differentFrom"}:
        return IRI(OWL + value)
    return IRI(TYPE if value == "a" else f"http://e/{value}")


def short(value: object) -> object:
    if not isinstance(value, IRI):
        return value
    text = str(value)
    if text == TYPE:
        return "a"
    return "some" if text.startswith(SOME) else text.rpartition("/")[2]


def derived(
    folder: Path, axioms: str, *facts: Triple, bound: Bound = "lower"
) -> set[tuple[object, ...]]:
    """What follows from facts, in short."""
    (folder / "o.ttl").write_text(PREFIXES + axioms, encoding="utf-8")
    ontology = read_ontology(folder / "o.ttl", bound=bound)
    kb = KnowledgeBase(ontology, equality="off", contradictions="ignore")
    kb.insert("triple", [tuple(map(names, fact)) for fact in facts])
    return {tuple(map(short, row)) for row in kb.facts("triple", "derived")}


def ignored(folder: Path, axioms: str, bound: Bound = "lower") -> list[str]:
    (folder / "o.ttl").write_text(PREFIXES + axioms, encoding="utf-8")
    found = read_ontology(folder / "o.ttl", bound=bound).ignored
    return [each.name for each in found]


# -------------------------------------------------------------------------- bounds


UNION = ":A rdfs:subClassOf [ owl:unionOf ( :B :C ) ] ."
SOME_VALUE = ":A rdfs:subClassOf [ owl:onProperty :p ; owl:someValuesFrom :B ] ."


def test_a_union_on_the_right_is_all_of_it_in_the_upper_bound(tmp_path: Path) -> None:
    fact = ("x", "a", "A")
    assert derived(tmp_path, UNION, fact) == set()
    assert ignored(tmp_path, UNION) == ["class expression on the right"]
    found = derived(tmp_path, UNION, fact, bound="upper")
    assert found == {("x", "a", "B"), ("x", "a", "C")}
    assert ignored(tmp_path, UNION, "upper") == []


def test_values_that_must_exist_are_one_constant_of_the_axiom(tmp_path: Path) -> None:
    facts = ("x", "a", "A"), ("y", "a", "A")
    found = derived(tmp_path, SOME_VALUE, *facts, bound="upper")
    assert found == {("x", "p", "some"), ("y", "p", "some"), ("some", "a", "B")}


def test_values_of_expressions_differ_by_what_they_say(tmp_path: Path) -> None:
    path = tmp_path / "o.ttl"
    inner = "[ owl:onProperty :q ; owl:someValuesFrom :{} ]"
    axioms = [
        f":A rdfs:subClassOf [ owl:onProperty :p ; owl:someValuesFrom {inner} ] ."
        for inner in (inner.format("B"), inner.format("C"), inner.format("B"))
    ]
    path.write_text(PREFIXES + "\n".join(axioms), encoding="utf-8")
    links = [
        rule.head
        for rule in read_ontology(path, bound="upper").rules
        if "http://e/p" in str(rule.head)
    ]
    assert len(set(links)) == 2


def test_two_axioms_have_two_constants_which_are_the_same_each_time(
    tmp_path: Path,
) -> None:
    path = tmp_path / "o.ttl"
    other = SOME_VALUE.replace(":B", ":C")
    path.write_text(PREFIXES + SOME_VALUE + other, encoding="utf-8")
    rules = {str(rule) for rule in read_ontology(path, bound="upper").rules}
    constants = {
        word.strip("<>],") for rule in rules for word in rule.split() if SOME in word
    }
    assert len({text.strip("[<>],") for text in constants}) == 2
    assert rules == {str(rule) for rule in read_ontology(path, bound="upper").rules}


@pytest.mark.parametrize(
    ("axioms", "facts", "gained"),
    [
        (
            ":A rdfs:subClassOf [ owl:oneOf ( :i :j ) ] .",
            [("x", "a", "A")],
            {("x", "sameAs", "i"), ("x", "sameAs", "j")},
        ),
        (
            ":A rdfs:subClassOf [ owl:onProperty :p ; owl:minCardinality 2 ] .",
            [("x", "a", "A")],
            {("x", "p", "some")},
        ),
        (
            (
                ":A rdfs:subClassOf [ owl:onProperty :p ; owl:cardinality 1 ] . "
                ":p a owl:ObjectProperty ."
            ),
            [("x", "a", "A"), ("x", "p", "v"), ("x", "p", "w")],
            {("x", "p", "some"), ("v", "sameAs", "w"), ("some", "sameAs", "v")},
        ),
        (
            (
                ":A rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality 3 ] . "
                ":p a owl:ObjectProperty ."
            ),
            [("x", "a", "A"), ("x", "p", "v"), ("x", "p", "w")],
            {("v", "sameAs", "w")},
        ),
        (
            (
                "[ owl:intersectionOf ( :A [ owl:complementOf :B ] ) ] "
                "rdfs:subClassOf :C ."
            ),
            [("x", "a", "A")],
            {("x", "a", "B"), ("x", "a", "C")},
        ),
        (
            "[ owl:onProperty :p ; owl:minCardinality 2 ] rdfs:subClassOf :C .",
            [("x", "p", "y")],
            {("x", "a", "C")},
        ),
        (
            ":A owl:disjointUnionOf ( :B :C ) .",
            [("x", "a", "A")],
            {("x", "a", "B"), ("x", "a", "C")},
        ),
    ],
)
def test_the_upper_bound_says_more(
    tmp_path: Path, axioms: str, facts: list[Triple], gained: set[Triple]
) -> None:
    lower = derived(tmp_path, axioms, *facts)
    upper = derived(tmp_path, axioms, *facts, bound="upper")
    assert gained <= {
        tuple(
            each.rpartition("#")[2] if isinstance(each, str) else each for each in row
        )
        for row in upper
    }
    assert lower <= upper
    assert not ignored(tmp_path, axioms, "upper")


def test_axioms_about_everything_speak_of_all_that_is_named(tmp_path: Path) -> None:
    axioms = "owl:Thing rdfs:subClassOf :Known ."
    found = derived(tmp_path, axioms, ("x", "p", "y"), bound="upper")
    assert {("x", "a", "Known"), ("y", "a", "Known")} <= found


def test_other_bounds_are_refused(tmp_path: Path) -> None:
    (tmp_path / "o.ttl").write_text(PREFIXES + UNION, encoding="utf-8")
    with pytest.raises(BoundError, match="no bound 'LE'"):
        read_ontology(tmp_path / "o.ttl", bound="LE")  # type: ignore[arg-type]


# ---------------------------------------------------------------------------- SWRL

VARIABLES = ":x a swrl:Variable . :y a swrl:Variable . :z a swrl:Variable . "


def imp(body: str, head: str) -> str:
    return f"{VARIABLES} [] a swrl:Imp ; swrl:body ({body}) ; swrl:head ({head}) ."


def member(name: str, node: str = ":x") -> str:
    return f"[ a swrl:ClassAtom ; swrl:classPredicate {name} ; swrl:argument1 {node} ]"


def link(name: str, one: str, other: str, kind: str = "IndividualProperty") -> str:
    return (
        f"[ a swrl:{kind}Atom ; swrl:propertyPredicate {name} ; "
        f"swrl:argument1 {one} ; swrl:argument2 {other} ]"
    )


def builtin(name: str, *arguments: str) -> str:
    return (
        f"[ a swrl:BuiltinAtom ; swrl:builtin swrlb:{name} ; "
        f"swrl:arguments ( {' '.join(arguments)} ) ]"
    )


def data(name: str, one: str, other: str) -> str:
    return link(name, one, other, "DatavaluedProperty")


def test_the_uncle_of_the_specification(tmp_path: Path) -> None:
    axioms = imp(
        link(":parent", ":x", ":y") + link(":brother", ":y", ":z"),
        link(":uncle", ":x", ":z"),
    )
    facts = ("c", "parent", "p"), ("p", "brother", "u")
    assert derived(tmp_path, axioms, *facts) == {("c", "uncle", "u")}
    assert not ignored(tmp_path, axioms)


@pytest.mark.parametrize(
    ("body", "head", "facts", "gained"),
    [
        (
            data(":age", ":x", ":y") + builtin("greaterThanOrEqual", ":y", "18"),
            member(":Adult"),
            [("k", "age", 12), ("m", "age", 40)],
            {("m", "a", "Adult")},
        ),
        (
            data(":net", ":x", ":y") + builtin("multiply", ":z", ":y", "2"),
            data(":gross", ":x", ":z"),
            [("k", "net", 21)],
            {("k", "gross", 42)},
        ),
        (
            data(":name", ":x", ":y") + builtin("startsWith", ":y", "'A'"),
            member(":A"),
            [("k", "name", "'Ann'"), ("m", "name", "'Bob'")],
            {("k", "a", "A")},
        ),
        (
            data(":name", ":x", ":y") + builtin("stringEqualIgnoreCase", ":y", "'ANN'"),
            member(":A"),
            [("k", "name", "'Ann'"), ("m", "name", "'Bob'")],
            {("k", "a", "A")},
        ),
        (
            member("[ owl:unionOf ( :B :C ) ]"),
            member("[ owl:intersectionOf ( :D :E ) ]"),
            [("k", "a", "C")],
            {("k", "a", "D"), ("k", "a", "E")},
        ),
        (
            link(":key", ":x", ":z") + link(":key", ":y", ":z"),
            "[ a swrl:SameIndividualAtom ; swrl:argument1 :x ; swrl:argument2 :y ]",
            [("k", "key", "v"), ("m", "key", "v")],
            {("k", "sameAs", "m"), ("m", "sameAs", "k")},
        ),
        (
            link(":p", ":x", ":y")
            + "[ a swrl:DifferentIndividualsAtom ; swrl:argument1 :x ; "
            "swrl:argument2 :y ]",
            member(":Odd"),
            [("k", "p", "m"), ("m", "p", "k"), ("k", "differentFrom", "m")],
            {("k", "a", "Odd")},
        ),
        (
            data(":v", ":x", ":y")
            + "[ a swrl:DataRangeAtom ; swrl:dataRange xsd:integer ; "
            "swrl:argument1 :y ]",
            member(":Counted"),
            [("k", "v", 3), ("m", "v", "'three'")],
            {("k", "a", "Counted")},
        ),
        (
            link(":p", ":x", ":individual"),
            link(":q", ":individual", ":x"),
            [("k", "p", "individual"), ("m", "p", "other")],
            {("individual", "q", "k")},
        ),
    ],
)
def test_atoms(
    tmp_path: Path, body: str, head: str, facts: list[Triple], gained: set[Triple]
) -> None:
    axioms = imp(body, head)
    assert not ignored(tmp_path, axioms)
    found = {
        tuple(
            each.rpartition("#")[2] if isinstance(each, str) else each for each in row
        )
        for row in derived(tmp_path, axioms, *facts)
        if row[0] != row[2]
    }
    assert found == gained


@pytest.mark.parametrize(
    ("body", "head", "missing"),
    [
        (
            data(":d", ":x", ":y") + builtin("yearMonthDuration", ":y", "1", "2"),
            member(":A"),
            "the built-in `yearMonthDuration`",
        ),
        (member(":A"), builtin("equal", ":x", "1"), "a built-in in its head"),
        (member(":A"), link(":p", ":x", ":y"), "not safe"),
        (data(":d", ":x", ":y") + builtin("add", ":z", ":y"), member(":A"), "`add`"),
        (
            member(":A"),
            member("[ owl:onProperty :p ; owl:someValuesFrom :B ]"),
            "a class expression that is no rule",
        ),
        ("[ a swrl:Strange ; swrl:argument1 :x ]", member(":A"), "swrl:argument2"),
    ],
)
def test_a_rule_that_cannot_be_said_is_left_out_as_a_whole(
    tmp_path: Path, body: str, head: str, missing: str
) -> None:
    axioms = imp(body, head)
    found = ignored(tmp_path, axioms)
    assert any(missing in name for name in found), found
    assert derived(tmp_path, axioms, ("k", "a", "A"), ("k", "d", 1)) == set()


def test_two_variables_of_one_local_name_stay_two(tmp_path: Path) -> None:
    axioms = """
        <http://one/x> a swrl:Variable . <http://two/x> a swrl:Variable .
        [] a swrl:Imp ; swrl:body (
            [ a swrl:IndividualPropertyAtom ; swrl:propertyPredicate :p ;
              swrl:argument1 <http://one/x> ; swrl:argument2 <http://two/x> ]
        ) ; swrl:head (
            [ a swrl:IndividualPropertyAtom ; swrl:propertyPredicate :q ;
              swrl:argument1 <http://two/x> ; swrl:argument2 <http://one/x> ]
        ) .
    """
    assert derived(tmp_path, axioms, ("k", "p", "m")) == {("m", "q", "k")}
