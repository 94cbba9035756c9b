"""The cases of Apache Jena: closures under RDFS and parts of it, and contradictions.

All cases are in scope but one, see `OUT_OF_SCOPE`; those that their authors have taken
out are left out here, too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import pytest

from evermat import KnowledgeBase
from evermat.algebra.equality import UnequalValuesError
from evermat.rdf.namespaces import RDF as RDF_NAMES
from evermat.rdf.namespaces import RDFS as RDFS_NAMES
from evermat.rdf.ontology import read_ontology
from evermat.values import Constant, Kind
from rdf.published_cases import (
    BASE,
    FOLDER,
    NO_DATA,
    QueryCase,
    Row,
    query_cases,
    triples,
)
from rdf.rdfs_rules import RDFS, RDFS_OF_WHAT_HAS_A_TYPE, RHO_DF

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings(
    "ignore::evermat.rdf.ontology.IgnoredAxiomsWarning"
)

SUBCLASSES_AND_SUBPROPERTIES = """
    [?a, rdfs:subPropertyOf, ?c] :-
        [?a, rdfs:subPropertyOf, ?b], [?b, rdfs:subPropertyOf, ?c] .
    [?a, rdfs:subPropertyOf, ?a], [?b, rdfs:subPropertyOf, ?b] :-
        [?a, rdfs:subPropertyOf, ?b] .
    [?a, rdfs:subClassOf, ?c] :- [?a, rdfs:subClassOf, ?b], [?b, rdfs:subClassOf, ?c] .
    [?a, rdfs:subClassOf, ?a], [?b, rdfs:subClassOf, ?b] :- [?a, rdfs:subClassOf, ?b] .
    [?x, ?b, ?y] :- [?a, rdfs:subPropertyOf, ?b], [?x, ?a, ?y] .
"""
OLDER_AXIOMS = """
    [rdf:predicate, rdfs:range, rdf:Property] .
    recognised(rdf:XMLLiteral) .
"""
DOMAIN_OF_TYPE = """
    [rdfs:Resource, rdfs:subClassOf, ?c] :-
        [rdf:type, rdfs:subPropertyOf, ?p], [?p, rdfs:domain, ?c] .
"""
JENA = RDFS + OLDER_AXIOMS
RULES = {
    "rdfs/manifest": JENA,
    "rdfs/manifest-nodirect": JENA,
    "rdfs/manifest-standard": RDFS_OF_WHAT_HAS_A_TYPE + OLDER_AXIOMS,
    "rdfs/manifest-nodirect-noresource": RDFS_OF_WHAT_HAS_A_TYPE + OLDER_AXIOMS,
    "rdfs/manifest-simple": RHO_DF,
    "rdfs/manifest-rdfs12": RDFS + DOMAIN_OF_TYPE,
    "transitive/manifest": SUBCLASSES_AND_SUBPROPERTIES,
}
"""What each list of cases is about."""

CASES = {name: query_cases(f"jena/{name}.rdf") for name in RULES}
KNOWN = "rdfs/result11.rdf"
"""Has all types of all things, and so the datatypes that Jena recognises."""

OUT_OF_SCOPE = {5: "no rule of OWL 2 RL says that an individual is not a literal"}


def _all_cases() -> Sequence[object]:
    found = [
        pytest.param(name, case, id=f"{name.replace('/manifest', '')}-{case.name}")
        for name, cases in CASES.items()
        for case in cases
    ]
    return found or [pytest.param("", None, id="no data", marks=NO_DATA)]


@NO_DATA
def test_all_cases_are_there() -> None:
    assert [len(cases) for cases in CASES.values()] == [21, 18, 19, 18, 1, 1, 11]


@pytest.mark.parametrize(("name", "case"), _all_cases())
def test_closures_match_patterns(name: str, case: QueryCase, engine_name: str) -> None:
    """What data and schema add is matched exactly; Jena has fewer axioms than RDFS."""
    rules = RULES[name]
    found = _matches(_closed(rules, case.files, engine_name), case.query)
    axioms = _matches(_closed(rules, (), engine_name), case.query)
    expected = set(triples(case.result))
    assert expected <= found
    assert found - axioms <= expected


@NO_DATA
@pytest.mark.parametrize("number", [1, 2, 3, 4, 6, 7])
def test_contradictions_are_found(number: int, engine_name: str) -> None:
    assert _is_contradictory(f"inconsistent{number}.rdf", engine_name)


@NO_DATA
@pytest.mark.parametrize(
    "document",
    ["consistentData.rdf", *(f"inconsistent{each}.rdf" for each in OUT_OF_SCOPE)],
)
def test_no_other_contradictions_are_found(document: str, engine_name: str) -> None:
    assert not _is_contradictory(document, engine_name)


@lru_cache
def _closed(rules: str, files: tuple[Path, ...], engine: str) -> KnowledgeBase:
    """Triples and what follows; nobody changes it."""
    kb = KnowledgeBase(rules, engine=engine, equality="off")
    rows = {row for file in files for row in triples(file)}
    if rules == JENA:
        kb.insert("recognised", _datatypes())
    kb.insert("triple", sorted(rows, key=str))
    return kb


def _datatypes() -> list[Row]:
    a = Constant(Kind.IRI, RDF_NAMES + "type")
    datatype = Constant(Kind.IRI, RDFS_NAMES + "Datatype")
    rows = triples(FOLDER / "jena" / KNOWN)
    return [(s,) for s, p, o in rows if (p, o) == (a, datatype)]


def _matches(kb: KnowledgeBase, query: Path) -> set[Row]:
    """The triples that match one of the patterns; literals are no subjects in Jena."""
    found: set[Row] = set()
    for pattern in triples(query):
        terms = [_term(constant) for constant in pattern]
        answers = kb.query(f"[{', '.join(terms)}]")
        for row in answers.constants():
            values = dict(zip(answers.columns, row, strict=True))
            pairs = zip(terms, pattern, strict=True)
            found.add(tuple(values.get(text[1:], term) for text, term in pairs))
    return {row for row in found if row[0].kind in {Kind.IRI, Kind.BLANK}}


def _term(constant: Constant) -> str:
    is_variable = constant.text.startswith("var:")
    return f"?{constant.text.removeprefix('var:')}" if is_variable else str(constant)


def _is_contradictory(document: str, engine: str) -> bool:
    folder = FOLDER / "jena" / "owl"
    files = [folder / "tbox.owl", folder / document]
    ontologies = [read_ontology(each, base=BASE) for each in files]
    kb = KnowledgeBase(ontologies, engine=engine, contradictions="ignore")
    try:
        kb.load(rdf=files, base=BASE)
    except UnequalValuesError:
        return True
    return bool(kb.contradictions())
