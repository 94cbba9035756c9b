"""SPARQL updates, as deletions and insertions of explicit triples."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyparsing import ParseException
from rdflib.plugins.sparql.algebra import translateUpdate
from rdflib.plugins.sparql.parser import parseUpdate
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import URIRef, Variable

from evermat.columns import TERM, table_of_rows, term_table
from evermat.kb.requests import Request
from evermat.lang.syntax import TRIPLE
from evermat.sparql.errors import UnsupportedSparqlError, syntax_error
from evermat.sparql.evaluation import Evaluation
from evermat.sparql.queries import instances
from evermat.sparql.solutions import Solutions
from evermat.sparql.terms import constant_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evermat.sparql.patterns import Graph
    from evermat.sparql.terms import Part, RdfTerm


@dataclass(frozen=True, slots=True)
class TripleChange:
    """The triples that one operation of an update deletes and inserts.

    Attributes:
        replaces: whether all explicit triples go, before others are inserted.
    """

    delete: pa.Table
    insert: pa.Table
    replaces: bool = False

    def request(self) -> Request:
        """The same as a request to a knowledge base."""
        if self.replaces:
            return Request(replace={TRIPLE: [self.insert]})
        delete: dict[str, list[object]] = {}
        if self.delete.num_rows:
            delete[TRIPLE] = [self.delete]
        return Request(insert={TRIPLE: [self.insert]}, delete=delete)


_KEYWORD = re.compile(
    r"""\s*(?:\#[^\n]*\n\s*
    |PREFIX\s+[^\s:]*:\s*<[^>]*>\s*
    |BASE\s+<[^>]*>\s*)*
    (?P<keyword>[A-Za-z]+)""",
    re.VERBOSE | re.IGNORECASE,
)

_QUERIES = frozenset({"SELECT", "ASK", "CONSTRUCT", "DESCRIBE"})


def is_update(text: str) -> bool:
    """Whether a text begins like an update, and not like a query."""
    found = _KEYWORD.match(text)
    return found is not None and found["keyword"].upper() not in _QUERIES


def read_update(text: str, prefixes: Mapping[str, str]) -> list[Operation]:
    """The operations of an update, in order.

    Raises:
        SparqlSyntaxError: the text is not an update.
        UnsupportedSparqlError: it has a part that is not supported.
    """
    known = {name: URIRef(iri) for name, iri in prefixes.items()}
    try:
        update = translateUpdate(parseUpdate(text), initNs=known)
    except ParseException as problem:
        raise syntax_error(text, problem) from None
    except Exception as problem:
        raise syntax_error(text, problem) from problem
    operations = [Operation(each, update.prologue) for each in update.algebra]
    for each in operations:
        each.require_support()
        if each.part.name in _DATA and has_variables(each.part.triples):
            raise syntax_error(text, ValueError("data has no variables"))
    return operations


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of an update.

    Attributes:
        part: what it does, as rdflib says it.
        prologue: prefixes and base.
    """

    part: Part
    prologue: object

    def require_support(self) -> None:
        """Refuse what is not supported, before anything has changed."""
        part = self.part
        if part.name not in _SUPPORTED:
            name = part.name.upper()
            raise UnsupportedSparqlError(f"`{name}`", "insert and delete triples")
        # What a part does not have is None, as is everything about named graphs.
        named = [part.quads, part.withClause, part.using]
        named += [each.quads for each in (part.delete, part.insert) if each]
        if any(named) or part.graphiri not in {None, "DEFAULT", "ALL"}:
            raise UnsupportedSparqlError(
                "a named graph", "there is one graph only: leave the name out"
            )

    def change(self, graph: Graph) -> TripleChange:
        """The triples that it deletes and inserts, given what holds now."""
        part = self.part
        evaluation = Evaluation(graph, self.prologue)
        match part.name:
            case "InsertData":
                return _change((), _instances(part.triples, evaluation))
            case "DeleteData":
                return _change(_instances(part.triples, evaluation), ())
            case "DeleteWhere":
                pattern = CompValue("BGP", triples=part.triples)
                found = evaluation.solutions(pattern)
                return _change(instances(part.triples, found, evaluation), ())
            case "Clear" | "Drop":
                return TripleChange(_table(()), _table(()), replaces=True)
        found = evaluation.solutions(part.where)
        delete, insert = (
            instances(each.triples, found, evaluation) if each else ()
            for each in (part.delete, part.insert)
        )
        return _change(delete, insert)


_DATA = frozenset({"InsertData", "DeleteData"})

_SUPPORTED = frozenset(
    {"InsertData", "DeleteData", "DeleteWhere", "Modify", "Clear", "Drop"}
)


def has_variables(triples: Iterable[Part]) -> bool:
    """Whether a variable stands in some triples."""
    return any(isinstance(each, Variable) for triple in triples for each in triple)


def _instances(
    triples: Iterable[Part], evaluation: Evaluation
) -> Iterator[tuple[RdfTerm, RdfTerm, RdfTerm]]:
    return instances(triples, Solutions.one(), evaluation)


def _change(
    delete: Iterable[tuple[RdfTerm, ...]], insert: Iterable[tuple[RdfTerm, ...]]
) -> TripleChange:
    return TripleChange(_table(delete), _table(insert))


def _table(triples: Iterable[tuple[RdfTerm, ...]]) -> pa.Table:
    rows = [tuple(map(constant_of, triple)) for triple in dict.fromkeys(triples)]
    if not rows:
        return pa.table([pa.array([], TERM)] * 3, names=["c1", "c2", "c3"])
    return term_table(table_of_rows(rows, 3))
