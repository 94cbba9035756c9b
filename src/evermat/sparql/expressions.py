"""Expressions: rdflib computes them, once for each combination of their values."""

from __future__ import annotations

from decimal import Decimal
from types import MethodType
from typing import TYPE_CHECKING, cast

import numpy as np
from rdflib import Graph
from rdflib.plugins.sparql.evalutils import _ebv, _eval
from rdflib.plugins.sparql.operators import numeric
from rdflib.plugins.sparql.parserutils import CompValue, Expr
from rdflib.plugins.sparql.sparql import FrozenBindings, QueryContext, SPARQLError
from rdflib.term import BNode, Literal, URIRef, Variable

from evermat.sparql.solutions import UNBOUND, Solutions, Terms, expanded_where
from evermat.values import XSD, ValueConversionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.sparql.solutions import Numbers
    from evermat.sparql.terms import Part, RdfTerm

_NEW_EACH_TIME = frozenset(
    {"Builtin_RAND", "Builtin_BNODE", "Builtin_UUID", "Builtin_STRUUID"}
)
"""Functions whose values differ from solution to solution."""

_FAILURES = (
    SPARQLError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    ValueConversionError,
)
"""What the functions of rdflib raise for values that they have no result for."""


class Expressions:
    """Computes the expressions of one query."""

    def __init__(self, terms: Terms, prologue: object) -> None:
        self._terms = terms
        self._context = QueryContext(Graph(), initBindings={})
        self._context.prologue = prologue  # type: ignore[assignment]

    def holds(self, expression: Part, solutions: Solutions) -> Numbers:
        """For each solution 1 if the expression is true, and 0 if not, or an error."""

        def value(row: dict[str, int]) -> int:
            try:
                return int(_ebv(expression, self._bindings(row)))
            except _FAILURES:
                return 0

        return self._each(expression, solutions, value)

    def values(self, expression: Part, solutions: Solutions) -> Numbers:
        """For each solution the term that the expression yields; errors are unbound."""
        if isinstance(expression, Variable):
            return solutions.column(str(expression))

        def value(row: dict[str, int]) -> int:
            try:
                found: object = _eval(expression, self._bindings(row))
                if not isinstance(found, URIRef | BNode | Literal):
                    return UNBOUND
                return self._terms.number(found)
            except _FAILURES:
                return UNBOUND

        return self._each(expression, solutions, value)

    def _each(self, expression: Part, solutions: Solutions, value: Part) -> Numbers:
        nodes = [*_nodes(expression)]
        if any(getattr(each, "name", None) in _NEW_EACH_TIME for each in nodes):
            rows = solutions.rows()
            return np.fromiter(map(value, rows), np.int64, solutions.size)
        for node in nodes:
            _correct(node)
        names = [*dict.fromkeys(str(n) for n in nodes if isinstance(n, Variable))]
        return expanded_where(solutions, names, value)

    def _bindings(self, row: dict[str, int]) -> FrozenBindings:
        terms = {Variable(name): self._terms.term(each) for name, each in row.items()}
        return FrozenBindings(self._context, terms)


def _correct(node: object) -> None:
    """Put right what rdflib computes otherwise than SPARQL 1.1 says."""
    if isinstance(node, Expr):
        if node.name == "MultiplicativeExpression":
            node._evalfn = MethodType(_product, node)  # noqa: SLF001  its own place
        elif node.name == "Function" and str(node.iri) == XSD + "integer":
            node._evalfn = MethodType(_as_integer, node)  # noqa: SLF001  the same


def _product(expression: Part, context: object) -> RdfTerm:
    """Products and quotients; those of integers are integers, or decimals."""
    del context
    first, others = expression.expr, expression.other
    if others is None:
        return cast("RdfTerm", first)
    result: Part = numeric(first)
    for sign, other in zip(expression.op, others, strict=True):
        number: Part = numeric(other)
        if isinstance(result, float) or isinstance(number, float):
            result, number = float(result), float(number)
        if sign == "*":
            result *= number
        elif not number and not isinstance(number, float):
            raise SPARQLError("division by zero")
        else:
            exact = isinstance(number, float)
            result = result / number if exact else Decimal(result) / Decimal(number)
    return Literal(result)


def _as_integer(expression: Part, context: object) -> RdfTerm:
    """`xsd:integer(…)`: numbers lose what is behind the point."""
    del context
    (given,) = expression.expr
    if not isinstance(given, Literal):
        raise SPARQLError("only literals are cast to integers")
    value = given.value
    if isinstance(value, bool | int | float | Decimal):
        return Literal(int(value))
    return Literal(int(str(given)))


def _nodes(expression: Part) -> Iterator[Part]:
    """All parts of an expression, itself included."""
    yield expression
    if isinstance(expression, CompValue):
        for part in expression.values():
            yield from _nodes(part)
    elif isinstance(expression, list | tuple):
        for part in expression:
            yield from _nodes(part)


def order_key(term: RdfTerm | None) -> tuple[Part, ...]:
    """Unbound, then blank nodes, IRIs and literals; these by value where they can."""
    match term:
        case None:
            return (0,)
        case BNode():
            return (1, str(term))
        case URIRef():
            return (2, str(term))
    value = term.value
    if isinstance(value, bool):
        return (3, 1, value)
    if isinstance(value, int | Decimal):
        return (3, 0, value)
    if isinstance(value, float):
        return (3, 0, value) if value == value else (3, 0, float("-inf"))  # noqa: PLR0124  NaN
    if term.datatype is None or str(term.datatype).endswith("#string"):
        return (3, 2, str(term), term.language or "")
    return (3, 3, str(term.datatype), str(term))
