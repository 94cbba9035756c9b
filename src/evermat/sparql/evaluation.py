"""The algebra of SPARQL, one method for each operator.

Basic graph patterns are answered by the knowledge base, a whole pattern at a time
(`Patterns`); property paths are joins and closures on top.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import numpy as np
from rdflib.paths import (
    AlternativePath,
    InvPath,
    MulPath,
    NegatedPath,
    Path,
    SequencePath,
)
from rdflib.plugins.sparql.algebra import simplify, translateGroupGraphPattern, traverse
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import BNode, Literal, URIRef
from rdflib.term import Variable as RdfVariable

from evermat.lang.syntax import QUAD, TRIPLE, Atom, Term, Variable
from evermat.sparql.datasets import Dataset
from evermat.sparql.errors import UnsupportedSparqlError
from evermat.sparql.expressions import Expressions, aggregated, order_key
from evermat.sparql.solutions import (
    UNBOUND,
    Solutions,
    Terms,
    constant_of,
    joined,
    merged,
    pairs,
    union,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    import pyarrow as pa

    from evermat.sparql.solutions import Flags, Numbers, Part, RdfTerm

HIDDEN = "~"
"""Names of variables begin with it that a query cannot mention: its blank nodes."""


class Node(NamedTuple):
    """A term in a pattern that stands for itself, also if it is a blank node."""

    term: RdfTerm


class Graph(Protocol):
    """The triples that a query is about."""

    @property
    def catalogue(self) -> Container[str]:
        """The predicates that there are."""

    def match(
        self, atoms: tuple[Atom, ...], names: tuple[str, ...], *, explicit: bool = False
    ) -> pa.Table:
        """The distinct values of variables for which all atoms hold, as term columns.

        Without variables one empty row for yes, and none for no. `explicit`: only
        explicit facts count.
        """


@dataclass(frozen=True, slots=True)
class BasicPattern:
    """A basic graph pattern without property paths, as atoms.

    Attributes:
        atoms: one for each triple.
        names: the variables.
    """

    atoms: tuple[Atom, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, triples: Sequence[Part], graphs: Sequence[Part] | None) -> BasicPattern:
        """A pattern; `graphs` are those of its triples, if that is not the default."""
        if graphs is None:
            places: list[tuple[Part, ...]] = [tuple(each) for each in triples]
        else:
            places = [
                (*each, graph) for each, graph in zip(triples, graphs, strict=True)
            ]
        name = TRIPLE if graphs is None else QUAD
        atoms = tuple(Atom(name, tuple(map(_argument, place))) for place in places)
        variables = (
            each.name
            for atom in atoms
            for each in atom.arguments
            if isinstance(each, Variable)
        )
        return cls(atoms, tuple(dict.fromkeys(variables)))

    @classmethod
    def alone(cls, part: Part, dataset: Dataset) -> BasicPattern | None:
        """A part of the algebra, if it is nothing else, and about a single graph."""
        if part.name != "BGP" or any(
            isinstance(each[1], Path) for each in part.triples
        ):
            return None
        graphs = dataset.graphs
        if graphs is not None and len(graphs) != 1:
            return None
        return cls.of(part.triples, graphs and [graphs[0]] * len(part.triples))

    def matches(self, graph: Graph, *, explicit: bool) -> pa.Table:
        """The values of its variables, as term columns."""
        return graph.match(self.atoms, self.names, explicit=explicit)


def _argument(term: Part) -> Variable | Term:
    if isinstance(term, Node):
        return Term(constant_of(term.term))
    name = variable_name(term)
    return Term(constant_of(term)) if name is None else Variable(name)


class Patterns:
    """Answers basic graph patterns."""

    def __init__(self, graph: Graph, terms: Terms, dataset: Dataset) -> None:
        self._graph = graph
        self._terms = terms
        self._dataset = dataset
        self._fresh = 0

    def solutions(self, triples: Sequence[Part], seed: Solutions) -> Solutions:
        """The solutions of a basic graph pattern that are compatible with others.

        Args:
            triples: the pattern; its predicates may be property paths.
            seed: solutions that it is joined with.
        """
        plain = [each for each in triples if not isinstance(each[1], Path)]
        paths = [each for each in triples if isinstance(each[1], Path)]
        found = joined(seed, self._matches(plain)) if plain else seed
        for begin, path, end in paths:
            found = self._along(begin, path, end, found)
        return found

    def _matches(self, triples: Sequence[Part]) -> Solutions:
        graphs = self._dataset.graphs
        if graphs is None or len(graphs) == 1:
            return self._numbered(triples, graphs and [graphs[0]] * len(triples))
        return self._merged(triples, graphs)

    def _merged(self, triples: Sequence[Part], graphs: Sequence[Part]) -> Solutions:
        """Matches of a pattern with several graphs together: each triple in any."""
        hidden = [RdfVariable(f"{HIDDEN}graph{at}") for at in range(len(triples))]
        found = self._numbered(triples, hidden)
        wanted = self._terms.all_numbers(graphs)
        chosen = np.ones(found.size, bool)
        for name in map(str, hidden):
            chosen &= np.isin(found.columns[name], wanted)
        visible = [name for name in found.columns if name not in map(str, hidden)]
        return found.where(chosen).project(visible).distinct()

    def _numbered(
        self, triples: Sequence[Part], graphs: Sequence[Part] | None
    ) -> Solutions:
        names, table = self._matching(triples, graphs)
        columns = map(self._terms.numbers, table.columns)
        return Solutions(dict(zip(names, columns, strict=True)), table.num_rows)

    def graph_names(self) -> list[RdfTerm]:
        """The names of the graphs that `GRAPH` may speak of."""
        allowed = self._dataset.named
        name = RdfVariable(f"{HIDDEN}name")
        triple = tuple(map(RdfVariable, (f"{HIDDEN}{each}" for each in "spo")))
        found = self._numbered([triple], [name]).columns[str(name)]
        terms = [self._terms.term(each) for each in np.unique(found).tolist()]
        return [each for each in terms if allowed is None or each in allowed]

    def _matching(
        self, triples: Sequence[Part], graphs: Sequence[Part] | None
    ) -> tuple[tuple[str, ...], pa.Table]:
        """The values of variables in a pattern, each triple in a graph of its own."""
        pattern = BasicPattern.of(triples, graphs)
        is_explicit = self._dataset.is_explicit
        return pattern.names, pattern.matches(self._graph, explicit=is_explicit)

    # -- property paths

    def _along(self, begin: Part, path: Part, end: Part, found: Solutions) -> Solutions:
        """Join solutions with the ends of a path."""
        ends = []
        for term in (begin, end):
            name = variable_name(term)
            if name is None:
                self._fresh += 1
                name = f"{HIDDEN}end{self._fresh}"
                column = np.full(found.size, self._terms.number(term), np.int64)
                found = found.extended(name, column)
            ends.append(name)
        first, last = ends
        known = [self._bound(found, name) for name in ends]
        pairs = self._pairs(path, known[0], known[1])
        columns = {first: pairs[0], last: pairs[1]}
        if first == last:
            same = pairs[0] == pairs[1]
            columns = {first: pairs[0][same]}
        size = len(next(iter(columns.values())))
        return joined(found, Solutions(columns, size))

    @staticmethod
    def _bound(found: Solutions, name: str) -> Numbers | None:
        """The terms that a variable is bound to, if every solution binds it."""
        column = found.columns.get(name)
        if column is None or (column == UNBOUND).any():
            return None
        return np.unique(column)

    def _pairs(
        self,
        path: Part,
        begins: Numbers | None,
        ends: Numbers | None,
    ) -> tuple[Numbers, Numbers]:
        """The ends of a path, duplicates included.

        Args:
            path: the path.
            begins: if given, only paths from there need to be found.
            ends: if given, only paths to there need to be found.
        """
        match path:
            case URIRef():
                return self._step(path)
            case InvPath():
                last, first = self._pairs(path.arg, ends, begins)
                return first, last
            case SequencePath():
                return self._sequence(path.args, begins, ends)
            case AlternativePath():
                parts = [self._pairs(each, begins, ends) for each in path.args]
                firsts, lasts = zip(*parts, strict=True)
                return np.concatenate(firsts), np.concatenate(lasts)
            case NegatedPath():
                return self._others(path.args)
            case MulPath():
                return self._repeated(path, begins, ends)
        raise TypeError(path)

    def _step(self, predicate: URIRef) -> tuple[Numbers, Numbers]:
        subject, value = RdfVariable("s"), RdfVariable("o")
        found = self._matches([(subject, predicate, value)])
        return found.columns["s"], found.columns["o"]

    def _sequence(
        self, parts: Sequence[Part], begins: Numbers | None, ends: Numbers | None
    ) -> tuple[Numbers, Numbers]:
        first, middle = self._pairs(parts[0], begins, None)
        for at, part in enumerate(parts[1:], 2):
            stops = ends if at == len(parts) else None
            starts, last = self._pairs(part, np.unique(middle), stops)
            left = Solutions({"first": first, "middle": middle}, len(first))
            right = Solutions({"middle": starts, "last": last}, len(last))
            both = joined(left, right)
            first, middle = both.columns["first"], both.columns["last"]
        return first, middle

    def _others(self, excluded: Sequence[Part]) -> tuple[Numbers, Numbers]:
        """The ends of triples with other predicates, `!(p|q)`."""
        subject, predicate, value = map(RdfVariable, "spo")
        every = self._matches([(subject, predicate, value)])
        numbers = self._terms.all_numbers(excluded)
        chosen = every.where(~np.isin(every.columns["p"], numbers))
        return chosen.columns["s"], chosen.columns["o"]

    def _repeated(
        self,
        path: Part,
        begins: Numbers | None,
        ends: Numbers | None,
    ) -> tuple[Numbers, Numbers]:
        """`path?`, `path*` or `path+`: each pair of ends once."""
        if begins is None and ends is not None:
            inverse = MulPath(InvPath(path.path), path.mod)
            last, first = self._repeated(inverse, ends, None)
            return first, last
        first, last = self._pairs(path.path, None, None)
        if path.mod == "?":
            if begins is not None:
                chosen = np.isin(first, begins)
                first, last = first[chosen], last[chosen]
            found = first, last
        else:
            found = closure(first, last, np.unique(first) if begins is None else begins)
        if path.mod == "+":
            return found
        itself = self._nodes() if begins is None else begins
        parts = [
            Solutions({"first": one, "last": other}, len(one))
            for one, other in (found, (itself, itself))
        ]
        every = union(parts).distinct()
        return every.columns["first"], every.columns["last"]

    def _nodes(self) -> Numbers:
        """All subjects and objects."""
        subject, predicate, value = map(RdfVariable, "spo")
        every = self._matches([(subject, predicate, value)])
        return np.unique(np.concatenate([every.columns["s"], every.columns["o"]]))


def variable_name(term: object) -> str | None:
    """The name of a variable, or of the blank node that stands for one."""
    if isinstance(term, RdfVariable):
        return str(term)
    return f"{HIDDEN}{term}" if isinstance(term, BNode) else None


def closure(first: Numbers, last: Numbers, begins: Numbers) -> tuple[Numbers, Numbers]:
    """All pairs of a begin and what edges lead to from there, each once.

    Args:
        first: where each edge begins.
        last: where it ends.
        begins: where to begin.
    """
    order = np.argsort(first, kind="stable")
    first, last = first[order], last[order]
    origin, node = begins, begins
    found = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    seen = np.empty(0, np.int64)
    width = int(max(first.max(initial=0), last.max(initial=0), begins.max(initial=0)))
    while len(node):
        low = np.searchsorted(first, node, "left")
        counts = np.searchsorted(first, node, "right") - low
        starts = np.cumsum(counts) - counts
        total = int(counts.sum())
        places = np.arange(total) - np.repeat(starts - low, counts)
        keys = np.repeat(origin, counts) * (width + 1) + last[places]
        keys = np.setdiff1d(keys, seen)
        seen = np.union1d(seen, keys)
        origin, node = keys // (width + 1), keys % (width + 1)
        found.append((origin, node))
    firsts, lasts = zip(*found, strict=True)
    return np.concatenate(firsts), np.concatenate(lasts)


class Evaluation:
    """Evaluates one query or update.

    Attributes:
        terms: the terms that it meets.
        expressions: computes expressions.
    """

    def __init__(
        self, graph: Graph, prologue: object, dataset: Dataset | None = None
    ) -> None:
        self.terms = Terms()
        self.expressions = Expressions(self.terms, prologue)
        self._dataset = Dataset() if dataset is None else dataset
        self._patterns = Patterns(graph, self.terms, self._dataset)
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

    # -- patterns

    def _in_graph(self, part: Part, seed: Solutions) -> Solutions:
        """`GRAPH`: one graph by name, or each of them."""
        term, inner = part.term, part.p
        allowed = self._dataset.named
        if not isinstance(term, RdfVariable):
            if allowed is not None and term not in allowed:
                return seed.slice(0, 0)
            with self._dataset.within(term):
                return self.solutions(inner, seed)
        is_plain = inner.name == "BGP" and not any(
            isinstance(each[1], Path) for each in inner.triples
        )
        if is_plain and inner.triples and allowed is None:
            with self._dataset.within(term):
                return self.solutions(inner, seed)
        parts = [seed.slice(0, 0)]
        for graph in self._patterns.graph_names():
            with self._dataset.within(graph):
                found = self.solutions(inner, seed)
            column = np.full(1, self.terms.number(graph), np.int64)
            parts.append(joined(found, Solutions({str(term): column}, 1)))
        return union(parts)

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
                    for value in (row.get(RdfVariable(name)) for row in rows)
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
            return RdfVariable(name)

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
        "Graph": _in_graph,
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
    "ServiceGraphPattern": "`SERVICE`",
}
