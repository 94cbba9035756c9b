"""The algebra of SPARQL, one method for each operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from rdflib.plugins.sparql.algebra import simplify, translateGroupGraphPattern, traverse
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import Literal, Variable

from evermat.sparql.aggregates import aggregated
from evermat.sparql.errors import UnsupportedSparqlError
from evermat.sparql.expressions import Expressions, order_key
from evermat.sparql.patterns import HIDDEN, Patterns
from evermat.sparql.solutions import (
    UNBOUND,
    Solutions,
    Terms,
    joined,
    merged,
    pairs,
    union,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from evermat.sparql.patterns import Graph
    from evermat.sparql.solutions import Flags, Numbers
    from evermat.sparql.terms import Part


class Evaluation:
    """Evaluates one query or update.

    Attributes:
        terms: the terms that it meets.
        expressions: computes expressions.
    """

    def __init__(self, graph: Graph, prologue: object) -> None:
        self.terms = Terms()
        self.expressions = Expressions(self.terms, prologue)
        self._patterns = Patterns(graph, self.terms)
        self._exists = 0

    def solutions(self, part: Part, seed: Solutions | None = None) -> Solutions:
        """The solutions of a part of the algebra.

        Args:
            part: a node of the algebra as rdflib has it.
            seed: solutions that are known already, which the found ones extend: for
                `EXISTS`, whose pattern may mention what is bound outside.
        """
        evaluate = self._OPERATORS.get(part.name)
        if evaluate is None:
            what = _NAMES.get(part.name, f"`{part.name}`")
            raise UnsupportedSparqlError(what, "leave this part out of the query")
        return evaluate(self, part, Solutions.one() if seed is None else seed)

    def table(self, part: Part) -> pa.Table | None:
        """The solutions of a basic graph pattern as term columns, without detours.

        None for other parts of the algebra, and for patterns with property paths.
        """
        return self._patterns.table(part.triples) if part.name == "BGP" else None

    # -- patterns

    def _pattern(self, part: Part, seed: Solutions) -> Solutions:
        return self._patterns.solutions(part.triples, seed)

    def _join(self, part: Part, seed: Solutions) -> Solutions:
        left = self.solutions(part.p1, seed)
        return joined(left, self.solutions(part.p2))

    def _left_join(self, part: Part, seed: Solutions) -> Solutions:
        left, right = self.solutions(part.p1, seed), self.solutions(part.p2)
        at_left, at_right = pairs(left, right)
        both = merged(left, right, at_left, at_right)
        fits = self._holds(part.expr, both)
        lonely = np.ones(left.size, bool)
        lonely[at_left[fits]] = False
        return union([both.where(fits), left.where(lonely)])

    def _union(self, part: Part, seed: Solutions) -> Solutions:
        return union([self.solutions(part.p1, seed), self.solutions(part.p2, seed)])

    def _minus(self, part: Part, seed: Solutions) -> Solutions:
        left, right = self.solutions(part.p1, seed), self.solutions(part.p2)
        at_left, _ = pairs(left, right, sharing=True)
        stays = np.ones(left.size, bool)
        stays[at_left] = False
        return left.where(stays)

    def _values(self, part: Part, seed: Solutions) -> Solutions:
        if part.p.name != "values":
            return joined(seed, self.solutions(part.p))
        rows = part.p.res
        names = dict.fromkeys(str(name) for row in rows for name in row)
        columns = {
            name: self.terms.all_numbers(
                [
                    None if isinstance(value, str) and value == "UNDEF" else value
                    for value in (row.get(Variable(name)) for row in rows)
                ]
            )
            for name in names
        }
        return joined(seed, Solutions(columns, len(rows)))

    # -- expressions

    def _filter(self, part: Part, seed: Solutions) -> Solutions:
        found = self.solutions(part.p, seed)
        chosen = self._holds(part.expr, found)
        return found.where(chosen)

    def _holds(self, expression: Part, found: Solutions) -> Flags:
        if isinstance(expression, CompValue) and expression.name == "TrueFilter":
            return np.ones(found.size, bool)
        expression, known = self._without_exists(expression, found)
        holds: Flags = self.expressions.holds(expression, known) == 1
        return holds

    def _extend(self, part: Part, seed: Solutions) -> Solutions:
        found = self.solutions(part.p, seed)
        expression, known = self._without_exists(part.expr, found)
        return found.extended(str(part.var), self.expressions.values(expression, known))

    def _without_exists(
        self, expression: Part, found: Solutions
    ) -> tuple[Part, Solutions]:
        """The expression with a variable in place of each `EXISTS`.

        The solutions bind these variables to whether the pattern has solutions that are
        compatible.
        """
        known = found

        def replace(node: Part) -> Part:
            nonlocal known
            if not isinstance(node, CompValue):
                return None
            if node.name not in {"Builtin_EXISTS", "Builtin_NOTEXISTS"}:
                return None
            self._exists += 1
            name = f"{HIDDEN}exists{self._exists}"
            has = self._has_solutions(node.graph, found)
            truth = has == (node.name == "Builtin_EXISTS")
            numbers = self.terms.all_numbers([Literal(False), Literal(True)])  # noqa: FBT003
            known = known.extended(name, numbers[truth.astype(np.int64)])
            return Variable(name)

        return traverse(expression, visitPre=replace), known

    def _has_solutions(self, pattern: Part, found: Solutions) -> Flags:
        """For each solution whether a pattern has one that extends it."""
        if pattern.name == "GroupGraphPatternSub":
            pattern = simplify(translateGroupGraphPattern(pattern))
        row = f"{HIDDEN}row"
        visible = {n: c for n, c in found.columns.items() if (c != UNBOUND).any()}
        numbered = Solutions(visible, found.size)
        seed = numbered.extended(row, np.arange(found.size, dtype=np.int64))
        extended = self.solutions(pattern, seed)
        has = np.zeros(found.size, bool)
        has[extended.column(row)] = True
        return has

    # -- modifiers

    def _project(self, part: Part, seed: Solutions) -> Solutions:
        inner = self.solutions(part.p)
        return joined(seed, inner.project(str(name) for name in part.PV))

    def _distinct(self, part: Part, seed: Solutions) -> Solutions:
        return self.solutions(part.p, seed).distinct()

    def _reduced(self, part: Part, seed: Solutions) -> Solutions:
        return self.solutions(part.p, seed)

    def _slice(self, part: Part, seed: Solutions) -> Solutions:
        return self.solutions(part.p, seed).slice(part.start, part.length)

    def _order(self, part: Part, seed: Solutions) -> Solutions:
        found = self.solutions(part.p, seed)
        order = np.arange(found.size)
        for condition in reversed(part.expr):
            values = self.expressions.values(condition.expr, found)
            ranks = self._ranks(values)
            if condition.order == "DESC":
                ranks = -ranks
            order = order[np.argsort(ranks[order], kind="stable")]
        return found.take(order)

    def _ranks(self, values: Numbers) -> Numbers:
        """The place of each term in the order of SPARQL."""
        distinct, inverse = np.unique(values, return_inverse=True)
        keys = [
            order_key(None if number == UNBOUND else self.terms.term(number))
            for number in distinct.tolist()
        ]
        ordered = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        ranks = np.array([ordered[key] for key in keys], np.int64)
        return ranks[inverse]

    def _aggregate(self, part: Part, seed: Solutions) -> Solutions:
        found = self.solutions(part.p.p)
        groups = aggregated(part, found, self.terms, self.expressions)
        return joined(seed, groups)

    _OPERATORS: ClassVar[
        dict[str, Callable[[Evaluation, Part, Solutions], Solutions]]
    ] = {
        "BGP": _pattern,
        "Join": _join,
        "LeftJoin": _left_join,
        "Union": _union,
        "Minus": _minus,
        "ToMultiSet": _values,
        "Filter": _filter,
        "Extend": _extend,
        "Project": _project,
        "Distinct": _distinct,
        "Reduced": _reduced,
        "Slice": _slice,
        "OrderBy": _order,
        "AggregateJoin": _aggregate,
    }


_NAMES = {
    "Graph": "`GRAPH`, because there is one graph only, it",
    "ServiceGraphPattern": "`SERVICE`",
}
