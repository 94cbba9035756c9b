"""Expressions and aggregates over tables of solutions.

rdflib computes expressions, once for each combination of the values that they read.
"""

from __future__ import annotations

from decimal import Decimal
from types import MethodType
from typing import TYPE_CHECKING, cast

import numpy as np
from rdflib import Graph
from rdflib.plugins.sparql.datatypes import type_promotion
from rdflib.plugins.sparql.evalutils import _ebv, _eval
from rdflib.plugins.sparql.operators import numeric
from rdflib.plugins.sparql.parserutils import CompValue, Expr
from rdflib.plugins.sparql.sparql import FrozenBindings, QueryContext, SPARQLError
from rdflib.term import BNode, Literal, URIRef, Variable

from evermat.sparql.solutions import UNBOUND, Solutions, Terms, expanded_where, grouped
from evermat.values import XSD, ValueConversionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from evermat.sparql.solutions import Numbers, Part, RdfTerm, Terms

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


def aggregated(
    part: Part,
    solutions: Solutions,
    terms: Terms,
    expressions: Expressions,
) -> Solutions:
    """A solution for each group, which binds the results of the aggregates.

    Args:
        part: the node `AggregateJoin` of the algebra.
        solutions: those of the pattern that is grouped.
        terms: the terms of the query.
        expressions: computes what is grouped by, and what is aggregated.
    """
    by = part.p.expr
    keys = [expressions.values(each, solutions) for each in by or ()]
    groups, count = grouped(keys, solutions.size)
    if by is None:
        count = 1  # all solutions are one group, even if there are none
    columns = {}
    for each in part.A:
        column = _column(each, solutions, groups, count, terms, expressions)
        columns[str(each.res)] = column
    return Solutions(columns, count)


def _column(
    aggregate: Part,
    solutions: Solutions,
    groups: Numbers,
    count: int,
    terms: Terms,
    expressions: Expressions,
) -> Numbers:
    """The results of one aggregate, for each group."""
    name, distinct = aggregate.name, bool(aggregate.distinct)
    if name == "Aggregate_Count" and aggregate.vars == "*":
        if distinct:
            rows = solutions.extended("~group", groups).distinct()
            groups = rows.columns["~group"]
        return _numbers_of(np.bincount(groups, minlength=count), terms)
    values = expressions.values(aggregate.vars, solutions)
    bound = values != UNBOUND
    errors = np.bincount(groups[~bound], minlength=count) > 0
    groups, values = groups[bound], values[bound]
    if distinct:
        both = Solutions({"group": groups, "value": values}, len(values)).distinct()
        groups, values = both.columns["group"], both.columns["value"]
    if name == "Aggregate_Count":
        return _numbers_of(np.bincount(groups, minlength=count), terms)
    order = np.argsort(groups, kind="stable")
    ends = np.searchsorted(groups[order], np.arange(count), "right")
    parts = np.split(values[order], ends[:-1]) if count else []
    compute = _COMPUTED[name]
    results: list[RdfTerm | None] = []
    for members, has_errors in zip(parts, errors, strict=True):
        found = [terms.term(number) for number in members.tolist()]
        if has_errors and name in _FAIL_ON_ERRORS:
            results.append(None)
            continue
        try:
            results.append(compute(found, aggregate))
        except (SPARQLError, ArithmeticError, TypeError, ValueError):
            results.append(None)
    return terms.all_numbers(results)


def _numbers_of(counts: Numbers, terms: Terms) -> Numbers:
    return terms.all_numbers([Literal(number) for number in counts.tolist()])


def _sum(values: Sequence[RdfTerm], _: object) -> RdfTerm:
    total, datatype = _added(values)
    return Literal(total, datatype=datatype)


def _added(values: Sequence[RdfTerm]) -> tuple[Part, URIRef]:
    total: Part = 0
    datatype = URIRef(XSD + "integer")
    for value in values:
        if not isinstance(value, Literal) or value.datatype is None:
            raise TypeError(value)
        number: Part = numeric(value)
        datatype = URIRef(type_promotion(datatype, value.datatype))
        if isinstance(total, float) or isinstance(number, float):
            total, number = float(total), float(number)
        total += number
    return total, datatype


def _average(values: Sequence[RdfTerm], _: object) -> RdfTerm:
    if not values:
        return Literal(0)
    total, datatype = _added(values)
    if str(datatype) in {XSD + "double", XSD + "float"}:
        return Literal(total / len(values), datatype=datatype)
    return Literal(Decimal(total) / len(values))


def _least(values: Sequence[RdfTerm], _: object) -> RdfTerm | None:
    return min(values, key=order_key, default=None)


def _greatest(values: Sequence[RdfTerm], _: object) -> RdfTerm | None:
    return max(values, key=order_key, default=None)


def _any(values: Sequence[RdfTerm], _: object) -> RdfTerm | None:
    return min(values, key=order_key, default=None)


def _concatenated(values: Sequence[RdfTerm], aggregate: Part) -> RdfTerm:
    if any(isinstance(each, BNode) for each in values):
        raise TypeError
    separator = " " if aggregate.separator is None else str(aggregate.separator)
    return Literal(separator.join(map(str, sorted(values, key=order_key))))


_COMPUTED: dict[str, Callable[[Sequence[RdfTerm], Part], RdfTerm | None]] = {
    "Aggregate_Sum": _sum,
    "Aggregate_Avg": _average,
    "Aggregate_Min": _least,
    "Aggregate_Max": _greatest,
    "Aggregate_Sample": _any,
    "Aggregate_GroupConcat": _concatenated,
}

_FAIL_ON_ERRORS = frozenset({"Aggregate_Sum", "Aggregate_Avg", "Aggregate_GroupConcat"})
"""Aggregates without a result for a group in which an expression has none."""
