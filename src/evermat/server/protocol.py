"""The SPARQL 1.1 protocol: queries and updates at `/sparql`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl
from xml.etree.ElementTree import Element, SubElement, tostring

from pydantic import Field

from evermat.results.result import Result
from evermat.server import formats
from evermat.server.access import Role
from evermat.server.endpoints import Answer, Endpoint, Model, Shown, as_told
from evermat.server.errors import BadRequestError, ForbiddenError, MediaTypeError
from evermat.server.formats import CSV, JSON
from evermat.server.replicas import Step
from evermat.values import XSD, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evermat.api import KnowledgeBase
    from evermat.server.endpoints import Call
    from evermat.server.formats import Body
    from evermat.values import Constant

QUERY = "application/sparql-query"
UPDATE = "application/sparql-update"
FORM = "application/x-www-form-urlencoded"
RESULTS_JSON = "application/sparql-results+json"
RESULTS_XML = "application/sparql-results+xml"
TSV = "text/tab-separated-values"
TURTLE = "text/turtle"
_SOLUTIONS = (RESULTS_JSON, JSON, RESULTS_XML, CSV, TSV)
_TRUTHS = (RESULTS_JSON, JSON, RESULTS_XML)
_GRAPHS = {
    TURTLE: ".ttl",
    "application/n-triples": ".nt",
    "application/rdf+xml": ".rdf",
}
_GRAPH_PARAMETERS = frozenset(
    {"default-graph-uri", "named-graph-uri", "using-graph-uri", "using-named-graph-uri"}
)


class SparqlParams(Model):
    """A query in the address."""

    query: str | None = Field(None, description="A query in SPARQL 1.1.")


def query(call: Call[SparqlParams, None]) -> Answer:
    """Answer a query in SPARQL 1.1."""
    if call.params.query is None:
        raise BadRequestError(
            "there is no query", help="send it as the parameter `query`"
        )
    return _answered(call, call.params.query)


def post(call: Call[SparqlParams, Body]) -> Answer:
    """Answer a query or execute an update, in SPARQL 1.1.

    The body is a query (`application/sparql-query`), an update
    (`application/sparql-update`, which needs the role `write`), or a form with one of
    them.
    """
    text = call.body.data.decode("utf-8", "replace")
    match call.body.media_type:
        case "application/sparql-query":
            return _answered(call, text)
        case "application/sparql-update":
            return _updated(call, text)
        case "application/x-www-form-urlencoded":
            return _from_form(call, text)
    raise MediaTypeError(
        f"there is no SPARQL in a body of type `{call.body.media_type}`",
        help=f"send {QUERY}, {UPDATE} or {FORM}",
    )


def _from_form(call: Call[SparqlParams, Body], text: str) -> Answer:
    fields = dict(parse_qsl(text, keep_blank_values=True))
    graphs = _GRAPH_PARAMETERS & fields.keys()
    if graphs:
        raise BadRequestError(
            f"`{min(graphs)}` is not supported: there is one graph",
            help="leave it out",
        )
    match fields:
        case {"query": text, **others} if "update" not in others:
            return _answered(call, text)
        case {"update": text, **others} if "query" not in others:
            return _updated(call, text)
    raise BadRequestError("a form has either `query` or `update`")


def _answered(call: Call[SparqlParams, Any], text: str) -> Answer:
    from evermat.sparql import is_update  # noqa: PLC0415  it needs rdflib

    if is_update(text):
        raise BadRequestError(
            "this is an update, not a query", help=f"send it by POST, as {UPDATE}"
        )
    most = call.service.limits.rows
    with call.service.reading() as view, call.cost_limit.turn(view.kb):
        found = view.kb.sparql(text)
        if isinstance(found, Result):
            found = found.first(most + 1)
    if isinstance(found, bool):
        media_type = formats.chosen_type(call.accept, _TRUTHS)
        content = _truth(media_type, is_true=found)
    elif not isinstance(found, Result):
        raise BadRequestError("this is not a query")
    elif len(found) > most:
        raise BadRequestError(
            f"an answer has {most:,} rows at most", help="use LIMIT and OFFSET"
        )
    elif found.predicate is not None:
        media_type = formats.chosen_type(call.accept, tuple(_GRAPHS))
        content = formats.rdf_bytes(found, _GRAPHS[media_type])
    else:
        media_type = formats.chosen_type(call.accept, _SOLUTIONS)
        content = _solutions(media_type, found)
    return Answer(content, media_type, headers={"Evermat-Version": str(view.version)})


def _updated(call: Call[SparqlParams, Body], text: str) -> Answer:
    if call.role < Role.WRITE:
        raise ForbiddenError("an update needs the role `write`")

    def work(kb: KnowledgeBase) -> list[Step]:
        found = kb.sparql(text)
        if isinstance(found, Result | bool):
            raise BadRequestError("this is a query", help=f"send it as {QUERY}")
        changes = found if isinstance(found, list) else [found]
        return [Step(each, kb.rules, kb.rules) for each in changes]

    made = call.service.change(work, call.cost_limit, title="SPARQL update")
    return as_told(call.service, made, Shown(show=0))


# ------------------------------------------------------------------------- formats


def _truth(media_type: str, *, is_true: bool) -> bytes:
    if media_type == RESULTS_XML:
        return _xml([], None, is_true=is_true)
    return json.dumps({"head": {}, "boolean": is_true}).encode()


def _solutions(media_type: str, found: Result) -> bytes:
    if media_type == CSV:
        lines = [",".join(found.columns)]
        lines += [",".join(map(_csv_cell, row)) for row in found.constants()]
        return "".join(f"{line}\r\n" for line in lines).encode()
    if media_type == TSV:
        return _tsv(found)
    if media_type == RESULTS_XML:
        return _xml(list(found.columns), found)
    bindings = [
        {name: _json_term(term) for name, term in _bound(found.columns, row)}
        for row in found.constants()
    ]
    document = {
        "head": {"vars": list(found.columns)},
        "results": {"bindings": bindings},
    }
    return json.dumps(document, ensure_ascii=False).encode()


def _csv_cell(term: Constant | None) -> str:
    if term is None:
        return ""
    text = _parts(term)[1]
    if any(sign in text for sign in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _tsv(found: Result) -> bytes:
    head = "\t".join(f"?{name}" for name in found.columns)
    rows = ("\t".join(map(_tsv_cell, row)) for row in found.constants())
    return "".join(f"{line}\n" for line in [head, *rows]).encode()


def _tsv_cell(term: Constant | None) -> str:
    return "" if term is None else str(term)


def _parts(term: Constant) -> tuple[str, str, dict[str, str]]:
    """Return a term as `bnode`, `uri` or `literal`, its text, and its attributes."""
    first, _, rest = term.text.partition("\0")
    match term.kind:
        case Kind.IRI:
            return "uri", term.text, {}
        case Kind.BLANK:
            return "bnode", term.text, {}
        case Kind.STRING:
            return "literal", term.text, {}
        case Kind.LANGUAGE:
            return "literal", rest, {"xml:lang": first}
        case Kind.TYPED:
            return "literal", rest, {"datatype": first}
        case Kind.DOUBLE:
            names = {"nan": "NaN", "inf": "INF", "-inf": "-INF"}
            text = names.get(term.text, term.text)
            return "literal", text, {"datatype": XSD + "double"}
    return "literal", term.text, {"datatype": XSD + term.kind.name.lower()}


def _json_term(term: Constant) -> dict[str, str]:
    kind, text, others = _parts(term)
    return {"type": kind, "value": text, **others}


def _xml(names: list[str], found: Result | None, *, is_true: bool = False) -> bytes:
    root = Element("sparql", xmlns="http://www.w3.org/2005/sparql-results#")
    head = SubElement(root, "head")
    for name in names:
        SubElement(head, "variable", name=name)
    if found is None:
        SubElement(root, "boolean").text = str(is_true).lower()
        return bytes(tostring(root, encoding="utf-8", xml_declaration=True))
    results = SubElement(root, "results")
    for row in found.constants():
        result = SubElement(results, "result")
        for name, term in _bound(names, row):
            binding = SubElement(result, "binding", name=name)
            kind, text, others = _parts(term)
            SubElement(binding, kind, others).text = text
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True))


def _bound(
    names: Sequence[str], row: Sequence[Constant | None]
) -> Iterator[tuple[str, Constant]]:
    """Yield the variables that a solution binds."""
    for name, term in zip(names, row, strict=True):
        if term is not None:
            yield name, term


ENDPOINTS = (
    Endpoint(
        "GET",
        "/sparql",
        Role.READ,
        query,
        SparqlParams,
        offers=(*_SOLUTIONS, *_GRAPHS),
    ),
    Endpoint(
        "POST",
        "/sparql",
        Role.READ,
        post,
        SparqlParams,
        files=(QUERY, UPDATE, FORM),
        offers=(*_SOLUTIONS, *_GRAPHS),
    ),
)
