"""Graphs of rdflib made of triples that hold."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from rdflib import BNode, Graph, URIRef

from evermat.columns import constants
from evermat.io.ntriples import warn_of_left_out
from evermat.sparql.solutions import term_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa


def make_graph(triples: pa.Table, prefixes: Mapping[str, str]) -> Graph:
    """A graph of rdflib.

    Warns:
        LeftOutTriplesWarning: some triples are not such as RDF allows; rules may derive
            something of literals. They are left out.
    """
    graph = Graph()
    for prefix, iri in prefixes.items():
        graph.bind(prefix, iri, replace=True)
    term = cache(term_of)
    left_out: Counter[str] = Counter()
    columns = map(constants, triples.columns)
    for row in zip(*columns, strict=True):
        subject, predicate, value = map(term, row)
        if not isinstance(subject, URIRef | BNode):
            left_out["a literal as subject"] += 1
        elif not isinstance(predicate, URIRef):
            left_out["no IRI as predicate"] += 1
        else:
            graph.add((subject, predicate, value))
    if left_out:
        warn_of_left_out("the graph", triples.num_rows, left_out)
    return graph
