"""Rows from other RDF libraries: graphs, triples, quads and results of SPARQL.

The libraries are recognised by the names of their classes and never imported. Terms are
converted with all other values, in `evermat.values`.
"""

from __future__ import annotations

from typing import Any

_TRIPLE = 3
_QUAD = 4


def is_of(given: object, library: str, *names: str) -> bool:
    """Return whether an object is of a library's class, or of a subclass."""
    return any(
        each.__name__ in names and each.__module__.partition(".")[0] == library
        for each in type(given).__mro__
    )


def answers_of(given: Any) -> tuple[list[str], list[tuple[object, ...]]] | None:  # noqa: ANN401  of any library
    """Return the variables and rows of a SPARQL result, or None for other objects."""
    if is_of(given, "pyoxigraph", "QuerySolutions"):
        names = [variable.value for variable in given.variables]
    elif is_of(given, "rdflib", "Result") and given.vars:
        names = [str(variable) for variable in given.vars]
    else:
        return None
    return names, [tuple(row) for row in given]


def triples_of(
    given: object, first: object, rows: list[Any], arity: int | None
) -> list[Any]:
    """Return triples or quads as tuples, and other rows as they are.

    The names of graphs are dropped unless four columns are requested.

    Args:
        given: the object that the rows were taken from.
        first: the first of them.
        rows: all of them.
        arity: the requested number of values per row.
    """
    if is_of(first, "pyoxigraph", "Triple", "Quad"):
        rows = [tuple(row) for row in rows]
        is_graph = True
    else:
        is_graph = is_of(given, "rdflib", "Graph")
    if is_graph and len(rows[0]) == _QUAD and arity != _QUAD:
        return [row[:_TRIPLE] for row in rows]
    return rows
