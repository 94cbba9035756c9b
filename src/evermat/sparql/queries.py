"""The four forms of queries: SELECT, ASK, CONSTRUCT and DESCRIBE."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pyarrow as pa
from pyparsing import ParseException
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import BNode, Literal, URIRef, Variable

from evermat.columns import TERM, rows_without_columns, table_of_rows, term_table
from evermat.lang.syntax import TRIPLE
from evermat.results.result import Result
from evermat.sparql.errors import UnsupportedSparqlError, syntax_error
from evermat.sparql.evaluation import Evaluation
from evermat.sparql.patterns import Node
from evermat.sparql.terms import constant_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evermat.sparql.patterns import Graph
    from evermat.sparql.solutions import Solutions
    from evermat.sparql.terms import Part, RdfTerm

TRIPLE_COLUMNS = ("subject", "predicate", "object")


def run_query(text: str, graph: Graph, prefixes: Mapping[str, str]) -> Result | bool:
    """Answer a query.

    Args:
        text: the query.
        graph: what it is about.
        prefixes: those that it may use without declaring them.

    Returns:
        For SELECT the solutions, in which unbound variables are None; for ASK a truth
        value; for CONSTRUCT and DESCRIBE facts of `triple`.

    Raises:
        SparqlSyntaxError: the text is not a query.
        UnsupportedSparqlError: it has a part that is not supported.
    """
    query = _parsed(text, prefixes)
    algebra = query.algebra
    if algebra.datasetClause:
        raise UnsupportedSparqlError("`FROM`", "ask about the whole knowledge base")
    evaluation = Evaluation(graph, query.prologue)
    match algebra.name:
        case "SelectQuery":
            return _selected(evaluation, algebra)
        case "AskQuery":
            return evaluation.solutions(algebra.p).size > 0
        case "ConstructQuery":
            found = evaluation.solutions(algebra.p)
            template = algebra.template or algebra.p.p.triples
            return _as_result(instances(template, found, evaluation))
    return _described(evaluation, algebra)


def _parsed(text: str, prefixes: Mapping[str, str]) -> Part:
    known = {name: URIRef(iri) for name, iri in prefixes.items()}
    try:
        return translateQuery(parseQuery(text), initNs=known)
    except ParseException as problem:
        raise syntax_error(text, problem) from None
    except Exception as problem:
        raise syntax_error(text, problem) from problem


def _selected(evaluation: Evaluation, algebra: Part) -> Result:
    names = [str(name) for name in algebra.PV]
    is_plain = algebra.p.name == "Project" and bool(names)
    plain = evaluation.table(algebra.p.p) if is_plain else None
    if plain is not None and set(names) <= set(plain.column_names):
        return Result(plain.select(names), names)
    found = evaluation.solutions(algebra.p)
    columns = [evaluation.terms.column(found.column(name)) for name in names]
    if not names:
        return Result(rows_without_columns(found.size), ())
    return Result(pa.table(columns, names=names), names)


def instances(
    template: Iterable[Sequence[Part]], found: Solutions, evaluation: Evaluation
) -> Iterator[tuple[RdfTerm, RdfTerm, RdfTerm]]:
    """The triples of a template, for every solution that yields triples of RDF.

    Blank nodes of the template are new ones for every solution.
    """
    template = [*template]
    has_blanks = any(isinstance(each, BNode) for row in template for each in row)
    names = {str(n) for row in template for n in row if isinstance(n, Variable)}
    if not has_blanks:
        found = found.project(sorted(names)).distinct()
    for row in found.rows():
        blanks: defaultdict[BNode, BNode] = defaultdict(BNode)

        def value(
            term: Part,
            row: dict[str, int] = row,
            blanks: defaultdict[BNode, BNode] = blanks,
        ) -> Part:
            if isinstance(term, Variable):
                number = row.get(str(term))
                return None if number is None else evaluation.terms.term(number)
            return blanks[term] if isinstance(term, BNode) else term

        for triple in template:
            subject, predicate, thing = map(value, triple)
            if thing is None or not isinstance(subject, URIRef | BNode):
                continue
            if isinstance(predicate, URIRef):
                yield subject, predicate, thing


def _as_result(triples: Iterable[tuple[RdfTerm, RdfTerm, RdfTerm]]) -> Result:
    rows = [tuple(map(constant_of, triple)) for triple in dict.fromkeys(triples)]
    table = term_table(table_of_rows(rows, len(TRIPLE_COLUMNS)))
    if not rows:
        table = pa.table([pa.array([], TERM)] * 3, names=["1", "2", "3"])
    return Result(table, TRIPLE_COLUMNS, predicate=TRIPLE)


def _described(evaluation: Evaluation, algebra: Part) -> Result:
    """What is said about resources, and about blank nodes that this leads to."""
    resources: dict[RdfTerm, None] = dict.fromkeys(
        each for each in algebra.PV if isinstance(each, URIRef)
    )
    if algebra.p is not None:
        found = evaluation.solutions(algebra.p)
        for name in algebra.PV:
            if isinstance(name, Variable):
                numbers = dict.fromkeys(found.column(str(name)).tolist())
                terms = (evaluation.terms.term(each) for each in numbers if each >= 0)
                resources |= dict.fromkeys(terms)
    triples: dict[tuple[RdfTerm, RdfTerm, RdfTerm], None] = {}
    waiting = [each for each in resources if not isinstance(each, Literal)]
    seen = set(waiting)
    while waiting:
        about = waiting.pop()
        for triple in _statements(evaluation, about):
            triples[triple] = None
            thing = triple[2]
            if isinstance(thing, BNode) and thing not in seen:
                seen.add(thing)
                waiting.append(thing)
    return _as_result(triples)


def _statements(
    evaluation: Evaluation, about: RdfTerm
) -> Iterator[tuple[RdfTerm, RdfTerm, RdfTerm]]:
    """The triples with a subject."""
    names = Variable("p"), Variable("o")
    pattern = CompValue("BGP", triples=[(Node(about), *names)])
    found = evaluation.solutions(pattern)
    for row in found.rows():
        predicate, thing = (evaluation.terms.term(row[str(name)]) for name in names)
        if isinstance(about, URIRef | BNode) and isinstance(predicate, URIRef):
            yield about, predicate, thing
