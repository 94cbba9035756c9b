"""Other reasoners for OWL 2 RL, and the triples on which they agree with Evermat.

Reasoners differ in what they derive about the vocabulary itself (`owl:Thing a
owl:Class`), about a constant alone (that it is equal to itself), about classes and
properties, and about blank nodes, which they name differently. So only triples about
named individuals are compared: triples of three IRIs, whose predicate is not one of the
schema.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from evermat.api import KnowledgeBase
from evermat.rdf.namespaces import OWL, RDF, RDFS, XSD
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_VOCABULARY = (OWL, RDF, RDFS, XSD)
_SAME = OWL + "sameAs"
_TYPE = RDF + "type"
_SCHEMA = [
    *(RDF + name for name in ("first", "rest")),
    *(RDFS + name for name in ("domain", "range", "subClassOf", "subPropertyOf")),
    *(OWL + name for name in ("equivalentClass", "equivalentProperty", "inverseOf")),
    *(OWL + name for name in ("onProperty", "someValuesFrom", "intersectionOf")),
    *(OWL + name for name in ("disjointWith", "imports", "unionOf")),
]
_ALL_THINGS = [OWL + "Thing", RDFS + "Resource"]


def by_reasonable(files: Iterable[Path]) -> Sequence[Any]:
    """Return the triples derived by `reasonable`."""
    from reasonable import PyReasoner  # noqa: PLC0415  a peer, if it is there

    reasoner = PyReasoner()
    for file in files:
        turtle = file.with_suffix(".ttl")
        if not turtle.exists():
            turtle.symlink_to(file)
        reasoner.load_file(str(turtle))
    found: Sequence[Any] = reasoner.reason()
    return found


def by_owlrl(files: Iterable[Path]) -> Sequence[Any]:
    """Return the triples derived by `owlrl`."""
    import owlrl  # noqa: PLC0415  a peer, if it is there
    import rdflib  # noqa: PLC0415  comes with it

    graph = rdflib.Graph()
    for file in files:
        graph.parse(file, format="turtle")
    owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(graph)
    return list(graph)


def about_things(found: KnowledgeBase | Iterable[Sequence[Any]]) -> pa.Array:
    """Return the triples about named individuals, each as one string."""
    if isinstance(found, KnowledgeBase):
        texts = _texts_of_terms(found)
    else:
        texts = _texts_of_objects(found)
    subject, predicate, value = texts.columns
    is_type = pc.equal(predicate, _TYPE)
    is_itself = pc.and_(pc.equal(predicate, _SAME), pc.equal(subject, value))
    left_out = (
        _is_vocabulary(subject),
        pc.is_in(predicate, value_set=pa.array(_SCHEMA)),
        pc.is_in(value, value_set=pa.array(_ALL_THINGS)),
        pc.and_(is_type, _is_vocabulary(value)),
        is_itself,
    )
    chosen = texts.filter(pc.invert(reduce(pc.or_, left_out)))
    return pc.unique(pc.binary_join_element_wise(*chosen.columns, "\n"))


def only_in(one: pa.Array, other: pa.Array) -> int:
    """Return how many triples of one array are not in the other."""
    return int(pc.sum(pc.invert(pc.is_in(one, value_set=other))).as_py() or 0)


def _texts_of_terms(kb: KnowledgeBase) -> pa.Table:
    """Return the triples of three IRIs."""
    terms = kb.facts("triple").to_terms().combine_chunks()
    columns = [column.combine_chunks() for column in terms.columns]
    kinds = (pc.equal(each.field("kind"), int(Kind.IRI)) for each in columns)
    return pa.table(
        [each.field("text") for each in columns], names=["s", "p", "o"]
    ).filter(reduce(pc.and_, kinds))


def _texts_of_objects(triples: Iterable[Sequence[Any]]) -> pa.Table:
    """Return the triples of three IRIs, from triples of rdflib's terms."""
    rows = [
        (str(subject), str(predicate), str(value))
        for subject, predicate, value in triples
        if {type(subject).__name__, type(value).__name__} == {"URIRef"}
    ]
    columns = [*zip(*rows, strict=True)] or [(), (), ()]
    return pa.table([pa.array(c, pa.string()) for c in columns], names=["s", "p", "o"])


def _is_vocabulary(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return reduce(pc.or_, (pc.starts_with(texts, each) for each in _VOCABULARY))
