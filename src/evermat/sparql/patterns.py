"""Basic graph patterns, answered by the knowledge base, and property paths on top."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from rdflib.paths import (
    AlternativePath,
    InvPath,
    MulPath,
    NegatedPath,
    Path,
    SequencePath,
)
from rdflib.term import BNode, URIRef
from rdflib.term import Variable as RdfVariable

from evermat.lang.syntax import TRIPLE, Atom, Term, Variable
from evermat.sparql.errors import UnsupportedSparqlError
from evermat.sparql.solutions import (
    UNBOUND,
    Solutions,
    Terms,
    joined,
    union,
)
from evermat.sparql.terms import constant_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from evermat.sparql.solutions import Numbers
    from evermat.sparql.terms import Part, RdfTerm

HIDDEN = "~"
"""Names of variables begin with it that a query cannot mention: its blank nodes."""


class Node(NamedTuple):
    """A term in a pattern that stands for itself, also if it is a blank node."""

    term: RdfTerm


class Graph(Protocol):
    """The triples that a query is about."""

    def match(self, atoms: tuple[Atom, ...], names: Sequence[str]) -> pa.Table:
        """The distinct values of variables for which all atoms hold, as term columns.

        Without variables one empty row for yes, and none for no.
        """


class Patterns:
    """Answers basic graph patterns."""

    def __init__(self, graph: Graph, terms: Terms) -> None:
        self._graph = graph
        self._terms = terms
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

    def table(self, triples: Sequence[Part]) -> pa.Table | None:
        """The solutions as term columns; None if the pattern has property paths."""
        if any(isinstance(each[1], Path) for each in triples):
            return None
        names, table = self._matching(triples)
        return table.rename_columns(list(names)) if names else table

    def _matches(self, triples: Sequence[Part]) -> Solutions:
        names, table = self._matching(triples)
        columns = map(self._terms.numbers, table.columns)
        return Solutions(dict(zip(names, columns, strict=True)), table.num_rows)

    def _matching(self, triples: Sequence[Part]) -> tuple[tuple[str, ...], pa.Table]:
        atoms = tuple(
            Atom(TRIPLE, tuple(self._argument(each) for each in triple))
            for triple in triples
        )
        variables = (
            each.name
            for atom in atoms
            for each in atom.arguments
            if isinstance(each, Variable)
        )
        names = tuple(dict.fromkeys(variables))
        return names, self._graph.match(atoms, names)

    def _argument(self, term: Part) -> Variable | Term:
        if isinstance(term, Node):
            return Term(constant_of(term.term))
        name = variable_name(term)
        return Term(constant_of(term)) if name is None else Variable(name)

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
        if not all(isinstance(each, URIRef) for each in excluded):
            # The parser forgets what stands behind `^` there.
            raise UnsupportedSparqlError(
                "`^` below `!`", "write `(!p)|^(!q)` for `!(p|^q)`"
            )
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
