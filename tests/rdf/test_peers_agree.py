"""OWL 2 RL as other reasoners have it: the same triples, but for tautologies."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest

from evermat import KnowledgeBase
from evermat.rdf import read_ontology, write_rdf
from evermat.rdf.namespaces import OWL, RDF, RDFS, XSD
from evermat.rdf.ontology import IgnoredAxiomsWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

Triple = tuple[str, str, str]

BASE = "http://example.org/base"
LINES = 1500
"""Triples of a university that take part; one peer is slow."""
VOCABULARY = (OWL, RDF, RDFS, XSD)
REFLEXIVE = frozenset(
    {
        *(OWL + name for name in ("sameAs", "equivalentClass", "equivalentProperty")),
        *(RDFS + name for name in ("subClassOf", "subPropertyOf")),
    }
)
LISTS = frozenset({RDF + "first", RDF + "rest"})
SCHEMA = frozenset(
    {*REFLEXIVE, *LISTS, RDFS + "domain", RDFS + "range"}
    | {OWL + name for name in ("onProperty", "someValuesFrom", "intersectionOf")}
)


def is_telling(triple: Triple) -> bool:
    """Whether a triple is no tautology, and about names that all know."""
    subject, predicate, value = triple
    if subject.startswith(VOCABULARY) or not subject.startswith("http"):
        return False  # what holds of the vocabulary itself, blank nodes, literals
    if subject == value and predicate in REFLEXIVE:
        return False
    if predicate == RDF + "type":
        return value.startswith("http") and not value.startswith(VOCABULARY)
    return value not in {OWL + "Thing", RDFS + "Resource"}


def by_reasonable(files: Iterable[Path]) -> Iterable[Any]:
    reasonable = pytest.importorskip("reasonable")
    reasoner = reasonable.PyReasoner()
    for file in files:
        reasoner.load_file(str(file))
    found: Iterable[Any] = reasoner.reason()
    return found


def by_owlrl(files: Iterable[Path]) -> Iterable[Any]:
    owlrl = pytest.importorskip("owlrl")
    rdflib = pytest.importorskip("rdflib")
    graph = rdflib.Graph()
    for file in files:
        graph.parse(file)
    owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(graph)
    found: Iterable[Any] = graph
    return found


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::evermat.io.ntriples.LeftOutTriplesWarning")
@pytest.mark.parametrize("peer", [by_reasonable, by_owlrl])
def test_the_same_triples_as_peers(
    shared_data: Path, tmp_path: Path, peer: Callable[[Iterable[Path]], Iterable[Any]]
) -> None:
    """The rule set has all of theirs; the compiled form all but those of the schema."""
    ontology, facts = tmp_path / "ontology.ttl", tmp_path / "facts.ttl"
    kb = KnowledgeBase()
    kb.load(rdf=shared_data / "lubm" / "univ-bench.owl", base=BASE)
    write_rdf(kb.facts("triple").to_terms(), ontology)
    lines = gzip.decompress((shared_data / "lubm" / "lubm-1.nt.gz").read_bytes())
    facts.write_bytes(b"\n".join(lines.split(b"\n")[:LINES]) + b"\n")
    files = [ontology, facts]
    theirs = texts(peer(files))
    rule_set = texts(closed("@include owl2rl .", files))
    assert theirs - rule_set == set()
    assert about_things(rule_set) == about_things(theirs)
    if peer is by_owlrl:  # the other one derives little about the schema
        assert rule_set == theirs
    with pytest.warns(IgnoredAxiomsWarning):
        ontology_rules = read_ontology(ontology)
    compiled = texts(closed(ontology_rules, files))
    assert compiled <= rule_set
    assert about_things(compiled) == about_things(theirs)


def closed(rules: Any, files: list[Path]) -> Iterable[Any]:
    """What holds, as triples of rdflib."""
    kb = KnowledgeBase(rules, contradictions="ignore")
    kb.load(rdf=files)
    return kb.to_rdflib()


def texts(triples: Iterable[Any]) -> set[Triple]:
    """Triples without tautologies, and without blank nodes, as texts."""
    return {
        (str(subject), str(predicate), str(value))
        for subject, predicate, value in triples
        if "BNode" not in {type(subject).__name__, type(value).__name__}
        and is_telling((str(subject), str(predicate), str(value)))
    }


def about_things(triples: set[Triple]) -> set[Triple]:
    """Those that are not about classes and properties."""
    return {triple for triple in triples if triple[1] not in SCHEMA}
