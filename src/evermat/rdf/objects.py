"""Graphs, datasets and stores of rdflib and pyoxigraph, read as they are.

The libraries are recognised by the names of their classes; rdflib is never imported.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evermat.columns import table_of_rows, term_table
from evermat.io.rdf_objects import is_of
from evermat.rdf.lines import LineError, columns_of_triples
from evermat.rdf.reading import RdfSyntaxError
from evermat.values import constant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evermat.values import Constant

_TRIPLE, _QUAD = 3, 4
_DEFAULT_GRAPH = "urn:x-rdflib:default"
"""What rdflib calls the default graph of a dataset."""


def is_rdf_object(given: object) -> bool:
    """Whether something is a graph, a dataset or a store of a library for RDF."""
    return is_of(given, "rdflib", "Graph") or is_of(
        given, "pyoxigraph", "Store", "Dataset", "QuadParser", "QueryTriples"
    )


def read_object(given: Any) -> tuple[pa.Table, pa.Table]:  # noqa: ANN401  of any library
    """The triples of the default graph, and those of named graphs with their graphs.

    Args:
        given: a graph, a dataset or a store.
    """
    if is_of(given, "pyoxigraph", "Store", "Dataset", "QuadParser", "QueryTriples"):
        return _of_pyoxigraph(given)
    return _of_rdflib(given)


def _of_pyoxigraph(given: Iterable[Any]) -> tuple[pa.Table, pa.Table]:
    graphs: dict[Any, list[Any]] = {}
    for each in given:
        graph = getattr(each, "graph_name", None)
        triple = each if graph is None else each.triple
        graphs.setdefault(graph, []).append(triple)
    triples, quads = [_table((), _TRIPLE)], [_table((), _QUAD)]
    for graph, several in graphs.items():
        is_default = graph is None or is_of(graph, "pyoxigraph", "DefaultGraph")
        for columns in _columns(several):
            table = pa.table(columns, names=["s", "p", "o"])
            if is_default:
                triples.append(table)
                continue
            names = _table([(constant(graph),)] * table.num_rows, 1).column(0)
            quads.append(table.append_column("g", names))
    return pa.concat_tables(triples), pa.concat_tables(quads)


def _columns(triples: list[Any]) -> list[list[pa.Array]]:
    try:
        return list(columns_of_triples(triples))
    except LineError as error:
        raise RdfSyntaxError(str(error.problem)) from None


def _of_rdflib(given: Any) -> tuple[pa.Table, pa.Table]:  # noqa: ANN401  optional
    if not is_of(given, "rdflib", "ConjunctiveGraph", "Dataset"):
        return _table([tuple(map(constant, row)) for row in given], _TRIPLE), _table(
            (), _QUAD
        )
    triples, quads = [], []
    with warnings.catch_warnings():
        # rdflib calls what it calls deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        found = list(given.quads())
    for subject, predicate, value, graph in found:
        row = tuple(map(constant, (subject, predicate, value)))
        name = getattr(graph, "identifier", graph)
        if name is None or str(name) == _DEFAULT_GRAPH:
            triples.append(row)
        else:
            quads.append((*row, constant(name)))
    return _table(triples, _TRIPLE), _table(quads, _QUAD)


def _table(rows: Iterable[tuple[Constant, ...]], width: int) -> pa.Table:
    table = term_table(table_of_rows(list(rows), width))
    return table.rename_columns(["s", "p", "o", "g"][:width] if width > 1 else ["g"])


def both(tables: tuple[pa.Table, pa.Table]) -> pa.Table:
    """All triples, whatever graph they are in."""
    triples, quads = tables
    return pa.concat_tables([triples, quads.select(["s", "p", "o"])])
