"""Queries (SELECT, ASK, CONSTRUCT, DESCRIBE) and updates in SPARQL 1.1."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from pyparsing import ParseException
from rdflib.plugins.sparql.algebra import translateQuery, translateUpdate
from rdflib.plugins.sparql.parser import parseQuery, parseUpdate
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import BNode, Literal, URIRef, Variable

from evermat.columns import TERM, rows_without_columns, table_of_rows, term_table
from evermat.kb.requests import Request
from evermat.lang.syntax import QUAD, TRIPLE, TRIPLE_ARITY
from evermat.results.result import Result
from evermat.sparql.datasets import Dataset
from evermat.sparql.errors import UnsupportedSparqlError, syntax_error
from evermat.sparql.evaluation import BasicPattern, Evaluation, Node
from evermat.sparql.solutions import Solutions, constant_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evermat.sparql.evaluation import Graph
    from evermat.sparql.solutions import Part, RdfTerm

_MOST_PARSED = 256
"""Queries whose algebra is kept: parsing takes longer than answering most of them."""

Row: TypeAlias = "tuple[RdfTerm, ...]"
"""A triple, or one with its graph."""

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
    # To evaluate EXISTS changes the algebra.
    read = ParsedQuery.of if "EXISTS" in text.upper() else _parsed
    parsed = read(text, tuple(prefixes.items()))
    if parsed.pattern is not None:
        explicit = parsed.dataset.is_explicit
        table = parsed.pattern.matches(graph, explicit=explicit)
        return Result(table.select(parsed.places), parsed.names)
    algebra = parsed.algebra
    evaluation = Evaluation(graph, parsed.prologue, parsed.dataset)
    match algebra.name:
        case "SelectQuery":
            return _selected(evaluation, algebra, parsed.names)
        case "AskQuery":
            return evaluation.solutions(algebra.p).size > 0
        case "ConstructQuery":
            found = evaluation.solutions(algebra.p)
            template = algebra.template or algebra.p.p.triples
            return _as_result(instances(template, found, evaluation))
    return _described(evaluation, algebra)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query that was read, and what follows from its text alone.

    Attributes:
        algebra: what it asks for, which nobody may change: others will read it.
        prologue: prefixes and base.
        dataset: the graphs that it is about.
        names: the variables that are selected.
        pattern: a basic graph pattern with these variables, if it is nothing else.
        places: where the variables are in the answers to the pattern.
    """

    algebra: Part
    prologue: object
    dataset: Dataset
    names: tuple[str, ...] = ()
    pattern: BasicPattern | None = None
    places: tuple[int, ...] = ()

    @classmethod
    def of(cls, text: str, prefixes: tuple[tuple[str, str], ...]) -> ParsedQuery:
        """Read a query."""
        known = {name: URIRef(iri) for name, iri in prefixes}
        try:
            tree = parseQuery(with_inverse_sets(text))
            query = translateQuery(tree, initNs=known)
        except ParseException as problem:
            raise syntax_error(text, problem) from None
        except Exception as problem:
            raise syntax_error(text, problem) from problem
        algebra = query.algebra
        dataset = Dataset.of(algebra.datasetClause)
        if algebra.name != "SelectQuery":
            return cls(algebra, query.prologue, dataset)
        names = tuple(map(str, algebra.PV))
        if not tree[1].projection:  # `*`: the library has them in no order
            names = tuple(sorted(names, key=partial(_first_mention, text)))
        pattern = None
        if algebra.p.name == "Project":
            pattern = BasicPattern.alone(algebra.p.p, dataset)
        if pattern is None or not names or not set(names) <= set(pattern.names):
            return cls(algebra, query.prologue, dataset, names)
        places = tuple(map(pattern.names.index, names))
        return cls(algebra, query.prologue, dataset, names, pattern, places)


def _first_mention(text: str, name: str) -> int:
    found = re.search(rf"[?$]{name}\b", text)
    return found.start() if found else len(text)


_parsed = lru_cache(maxsize=_MOST_PARSED)(ParsedQuery.of)


def _selected(evaluation: Evaluation, algebra: Part, names: tuple[str, ...]) -> Result:
    found = evaluation.solutions(algebra.p)
    columns = [evaluation.terms.column(found.column(name)) for name in names]
    if not names:
        return Result(rows_without_columns(found.size), ())
    return Result(pa.table(columns, names=names), names)


def instances(
    template: Iterable[Sequence[Part]], found: Solutions, evaluation: Evaluation
) -> Iterator[Row]:
    """The triples or quads of a template, for every solution that yields any of RDF.

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

        for each in template:
            subject, predicate, thing, *graph = map(value, each)
            if thing is None or not isinstance(subject, URIRef | BNode):
                continue
            if isinstance(predicate, URIRef) and None not in graph:
                yield subject, predicate, thing, *graph


def _as_result(triples: Iterable[Row]) -> Result:
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


@dataclass(frozen=True, slots=True)
class TripleChange:
    """The triples that one operation of an update deletes and inserts.

    Attributes:
        delete, insert: rows of `triple` and `quad`.
        replaces: predicates of which all explicit facts go, before others are inserted.
    """

    delete: Mapping[str, pa.Table]
    insert: Mapping[str, pa.Table]
    replaces: tuple[str, ...] = ()

    def request(self) -> Request:
        """The same as a request to a knowledge base."""
        insert: dict[str, list[object]] = {TRIPLE: [_table((), TRIPLE)]}
        insert |= {name: [rows] for name, rows in self.insert.items()}
        replace = {name: insert.pop(name, [_table((), name)]) for name in self.replaces}
        delete: dict[str, list[object]] = {
            name: [rows]
            for name, rows in self.delete.items()
            if name not in self.replaces
        }
        return Request(insert=insert, delete=delete, replace=replace)


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
        update = translateUpdate(parseUpdate(with_inverse_sets(text)), initNs=known)
    except ParseException as problem:
        raise syntax_error(text, problem) from None
    except Exception as problem:
        raise syntax_error(text, problem) from problem
    operations = [Operation(each, update.prologue) for each in update.algebra]
    for each in operations:
        each.require_support()
        if each.part.name in _DATA and has_variables(each.part):
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
        if self.part.name not in _SUPPORTED:
            name = self.part.name.upper()
            advice = "insert and delete triples"
            if self.part.name == "Load":
                advice = "read the file with `kb.load(rdf=…)`"
            raise UnsupportedSparqlError(f"`{name}`", advice)

    def change(self, graph: Graph) -> TripleChange:
        """The triples that it deletes and inserts, given what holds now."""
        part = self.part
        if part.name in {"Clear", "Drop"}:
            return self._cleared(graph, part.graphiri)
        if part.name == "Create":
            return TripleChange({}, {})  # a graph is there as soon as it has triples
        if part.name in {"Add", "Move", "Copy"}:
            return self._transferred(graph, *part.graph)
        dataset = Dataset.of(part.using)
        if part.withClause is not None and part.using is None:
            dataset.default = (part.withClause,)
        evaluation = Evaluation(graph, self.prologue, dataset)
        if part.name in _DATA:
            rows = _rows(part, Solutions.one(), evaluation, None)
            is_insertion = part.name == "InsertData"
            return _change(graph, *(((), rows) if is_insertion else (rows, ())))
        if part.name == "DeleteWhere":
            found = evaluation.solutions(_pattern_of(part))
            return _change(graph, _rows(part, found, evaluation, None), ())
        found = evaluation.solutions(part.where)
        delete, insert = (
            _rows(each, found, evaluation, part.withClause) if each else ()
            for each in (part.delete, part.insert)
        )
        return _change(graph, delete, insert)

    def _cleared(self, graph: Graph, which: Part) -> TripleChange:
        """What `CLEAR` and `DROP` delete."""
        if isinstance(which, URIRef):
            return _change(graph, self._of_graph(graph, which), ())
        replaced = {"DEFAULT": (TRIPLE,), "NAMED": (QUAD,)}.get(which, (TRIPLE, QUAD))
        known = tuple(name for name in replaced if name in graph.catalogue)
        return TripleChange({}, {}, known)

    def _transferred(self, graph: Graph, source: Part, target: Part) -> TripleChange:
        """What `ADD`, `MOVE` and `COPY` do with two graphs."""
        if source == target:
            return TripleChange({}, {})
        from_graph = self._of_graph(graph, source)
        end = (target,) if isinstance(target, URIRef) else ()
        insert = [(*row[:TRIPLE_ARITY], *end) for row in from_graph]
        delete: list[Row] = []
        if self.part.name != "Add":
            delete += self._of_graph(graph, target)
        if self.part.name == "Move":
            delete += from_graph
        return _change(graph, delete, insert)

    def _of_graph(self, graph: Graph, name: Part) -> list[Row]:
        """The explicit triples of a graph, as rows that say which it is."""
        evaluation = Evaluation(graph, self.prologue, Dataset(is_explicit=True))
        triple = tuple(map(Variable, ("s", "p", "o")))
        pattern = CompValue("BGP", triples=[triple])
        end: Row = ()
        if isinstance(name, URIRef):
            pattern = CompValue("Graph", term=name, p=pattern)
            end = (name,)
        term = evaluation.terms.term
        return [
            (*(term(row[str(each)]) for each in triple), *end)
            for row in evaluation.solutions(pattern).rows()
        ]


_DATA = frozenset({"InsertData", "DeleteData"})

_SUPPORTED = frozenset(
    {
        *("InsertData", "DeleteData", "DeleteWhere", "Modify"),
        *("Clear", "Drop", "Create", "Add", "Move", "Copy"),
    }
)


def has_variables(part: Part) -> bool:
    """Whether a variable stands in some triples, or for a graph."""
    return any(
        isinstance(each, Variable)
        for graph, triples in _by_graph(part)
        for row in ((graph,), *triples)
        for each in row
    )


def _by_graph(part: Part) -> Iterator[tuple[Part, Sequence[Sequence[Part]]]]:
    """The triples of a template: those without a graph, and those of each graph."""
    yield None, part.triples or ()
    yield from (part.quads or {}).items()


def _pattern_of(part: Part) -> Part:
    """The pattern of `DELETE WHERE`, which is its template, too."""
    patterns = [CompValue("BGP", triples=part.triples or [])]
    for graph, triples in (part.quads or {}).items():
        inner = CompValue("BGP", triples=triples)
        patterns.append(CompValue("Graph", term=graph, p=inner))
    return reduce(lambda left, right: CompValue("Join", p1=left, p2=right), patterns)


def _rows(
    part: Part, found: Solutions, evaluation: Evaluation, default: RdfTerm | None
) -> Iterator[Row]:
    """The triples and quads of a template, for every solution.

    Args:
        part: the template.
        found: the solutions.
        evaluation: knows the terms.
        default: the graph of triples that do not say theirs.
    """
    template: list[Sequence[Part]] = []
    for graph, triples in _by_graph(part):
        name = default if graph is None else graph
        end = () if name is None else (name,)
        template += [(*triple, *end) for triple in triples]
    return instances(template, found, evaluation)


def _change(graph: Graph, delete: Iterable[Row], insert: Iterable[Row]) -> TripleChange:
    known = graph.catalogue
    gone = {name: rows for name, rows in _tables(delete).items() if name in known}
    return TripleChange(gone, _tables(insert))


def _tables(rows: Iterable[Row]) -> dict[str, pa.Table]:
    """Rows of three terms are triples, those of four are quads."""
    distinct = dict.fromkeys(rows)
    parts = {
        TRIPLE: [row for row in distinct if len(row) == TRIPLE_ARITY],
        QUAD: [row for row in distinct if len(row) != TRIPLE_ARITY],
    }
    return {name: _table(several, name) for name, several in parts.items() if several}


def _table(rows: Iterable[Row], name: str) -> pa.Table:
    width = TRIPLE_ARITY if name == TRIPLE else TRIPLE_ARITY + 1
    terms = [tuple(map(constant_of, row)) for row in rows]
    if not terms:
        names = [f"c{at}" for at in range(width)]
        return pa.table([pa.array([], TERM)] * width, names=names)
    return term_table(table_of_rows(terms, width))


# ------------------------------------------------------------------- property paths

_NAME = r"(?:<[^<>\s]*>|[\w.\-]*:[\w.\-%]*|a\b)"
_STEP = rf"\s*\^?\s*{_NAME}\s*"
_SKIPPED = r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\#[^\n]*)"""
_NEGATED = re.compile(
    rf"(?P<skipped>{_SKIPPED})|!\s*(?:\((?P<set>{_STEP}(?:\|{_STEP})*)\)"
    rf"|(?P<one>\^\s*{_NAME}))"
)


def with_inverse_sets(text: str) -> str:
    """A text with `!(p|^q)` written as `(!p|^(!q))`.

    rdflib's parser forgets what stands behind `^` below `!`.
    """
    if "^" not in text or "!" not in text:
        return text

    def rewritten(found: re.Match[str]) -> str:
        inside = found["set"] or found["one"]
        if found["skipped"] or "^" not in inside:
            return found[0]
        steps = [each.strip() for each in inside.split("|")]
        forward = [each for each in steps if not each.startswith("^")]
        inverse = [each[1:].strip() for each in steps if each.startswith("^")]
        both = [f"!({'|'.join(forward)})"] if forward else []
        both.append(f"^(!({'|'.join(inverse)}))")
        return f"({'|'.join(both)})"

    return _NEGATED.sub(rewritten, text)
