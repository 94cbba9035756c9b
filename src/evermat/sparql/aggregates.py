"""Groups of solutions, and the aggregates over them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from rdflib.plugins.sparql.datatypes import type_promotion
from rdflib.plugins.sparql.operators import numeric
from rdflib.plugins.sparql.sparql import SPARQLError
from rdflib.term import BNode, Literal, URIRef

from evermat.sparql.expressions import order_key
from evermat.sparql.solutions import UNBOUND, Solutions, grouped
from evermat.values import XSD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evermat.sparql.expressions import Expressions
    from evermat.sparql.solutions import Numbers, Terms
    from evermat.sparql.terms import Part, RdfTerm


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
