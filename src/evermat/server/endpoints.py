"""The endpoints of a server: paths, parameters, bodies, and the work.

The work runs in a separate thread. Endpoints that change something need the role
`write` or `admin`; all others but the health check need `read`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from evermat.lang.parser import parse_program
from evermat.server import formats
from evermat.server.access import Role
from evermat.server.errors import (
    BadRequestError,
    BusyError,
    NotThereError,
)
from evermat.server.formats import ARROW, CSV, JSON, Rows
from evermat.server.graph import graph_of
from evermat.server.metrics import MEDIA_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evermat.api import KnowledgeBase
    from evermat.kb.profile import RuleProfile
    from evermat.results.change import Change
    from evermat.results.result import Result
    from evermat.server.formats import Body
    from evermat.server.history import Difference, Version
    from evermat.server.limits import CostLimit
    from evermat.server.service import Service, Updated

Params = TypeVar("Params", bound=BaseModel)
Given = TypeVar("Given")

_SHOWN = 100
"""Facts per predicate that a change shows by default."""
_MOST_SHOWN = 10_000
_TERMS = 'Write every value as a term of the language, as in `"a"` or `<http://e/a>`.'
_EXPLAINED = 20_000_000
"""Limit of rule instances in the search for an explanation."""


@dataclass(frozen=True, slots=True)
class Call(Generic[Params, Given]):
    """A valid and authorised request.

    Attributes:
        accept: the `Accept` header.
        body: the body: a model, or the bytes of files of facts and of SPARQL.
        path: the numbers in the path.
    """

    service: Service
    params: Params
    body: Given
    cost_limit: CostLimit
    role: Role
    accept: str | None = None
    path: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a request."""

    content: bytes
    media_type: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint.

    Attributes:
        params: the parameters of the address.
        body: the JSON body, if there may be one.
        files: the types of bodies that are passed on unparsed.
        offers: the types of answers, the default one first.
    """

    method: str
    path: str
    role: Role
    work: Callable[[Call[Any, Any]], Answer]
    params: type[BaseModel]
    body: type[BaseModel] | None = None
    files: tuple[str, ...] = ()
    offers: tuple[str, ...] = (JSON,)

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return (self.work.__doc__ or "").partition("\n")[0].rstrip(".")

    @property
    def description(self) -> str:
        """The rest of the docstring."""
        rest = (self.work.__doc__ or "").partition("\n")[2]
        return " ".join(rest.split())


def as_json(document: object, **headers: str) -> Answer:
    """Return a document as an answer."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    return Answer(text.encode("utf-8", "replace"), headers=headers)


# --------------------------------------------------------------------- parameters


class Model(BaseModel):
    """A model that rejects unknown fields."""

    model_config = ConfigDict(extra="forbid")


class Nothing(Model):
    """No parameters."""


class Page(Model):
    """A range of the rows of an answer."""

    limit: int = Field(1000, ge=0, le=1_000_000, description="Largest number of rows.")
    offset: int = Field(0, ge=0, le=1 << 40, description="Number of rows to skip.")
    order: str | None = Field(
        None, description="Sort by this column; `-column` for descending order."
    )
    terms: bool = Field(default=False, description=_TERMS)


class Profiled(Model):
    """Whether to profile rules."""

    profile: bool = Field(default=False, description="Measure the cost of each rule.")


class Limited(Model):
    """The largest number of results."""

    limit: int = Field(20, ge=0, le=1000, description="Largest number of results.")


class FactsPage(Page):
    """Facts of a predicate."""

    predicate: str = Field(description="The predicate.", min_length=1)
    sort: Literal["all", "explicit", "derived"] = Field(
        "all", description="All facts, those that were inserted, or the others."
    )


class Shown(Model):
    """The part of a change to show."""

    show: int = Field(
        _SHOWN, ge=0, le=_MOST_SHOWN, description="Facts to show per predicate."
    )
    terms: bool = Field(default=False, description=_TERMS)


class FactsChange(Shown):
    """A predicate whose facts are to be changed."""

    predicate: str = Field(description="The predicate.", min_length=1)
    header: bool | None = Field(
        None, description="Whether CSV and TSV begin with names of columns."
    )
    dry_run: bool = Field(default=False, description="Only tell what would change.")
    version: int | None = Field(
        None, ge=0, description="Refuse the update if the facts are at another version."
    )


class RowsBody(Model):
    """Facts of a predicate."""

    rows: Rows


class QueryParams(Page):
    """A query in the address; only bodies can have its parameters."""

    query: str = Field(
        description="A conjunction of atoms.", examples=["reach(?x, ?y)"]
    )


class QueryBody(Page):
    """A query, and the values of `$name` in it."""

    query: str = Field(examples=["reach(?x, $to)"])
    parameters: dict[str, formats.Cell] = Field(default_factory=dict)


class UpdateParams(Shown):
    """Options of an update."""

    dry_run: bool = Field(default=False, description="Only tell what would change.")


class UpdateBody(Model):
    """Changes of facts and rules in one transaction."""

    insert: dict[str, Rows] = Field(default_factory=dict)
    delete: dict[str, Rows] = Field(default_factory=dict)
    replace: dict[str, Rows] = Field(
        default_factory=dict,
        description="By predicate, its only explicit facts from now on.",
    )
    add_rules: str = Field("", description="Rules to add, in the language.")
    remove_rules: str = Field("", description="Rules to remove.")
    algorithm: str | None = Field(None, description="How to maintain; `auto` chooses.")
    title: str = Field("", max_length=200, description="For the list of versions.")
    version: int | None = Field(
        None, ge=0, description="Refuse the update if the facts are at another version."
    )


class ExplainParams(Model):
    """A fact that is to be explained."""

    fact: str = Field(description="The fact.", examples=['reach("a", "c")'])
    derivations: int = Field(
        0, ge=0, le=1000, description="Number of its derivations to show, too."
    )


class Since(Model):
    """A known version; later ones are requested."""

    since: int | None = Field(None, ge=0, description="Changes after this version.")
    predicate: str | None = Field(None, description="Only changes of it.")


# ------------------------------------------------------------------------ reading


def info(call: Call[Nothing, None]) -> Answer:
    """Describe what is served.

    Version, sizes, limits, and whether there is a state that keeps every version.
    """
    service = call.service
    with service.reading() as view, call.cost_limit.turn(view.kb):
        stats = view.kb.stats()
    return as_json(
        {
            "name": service.name,
            "version": view.version,
            "engine": stats["engine"],
            "predicates": len(stats["predicates"]),
            "facts": stats["facts"],
            "rules": stats["rules"],
            "strata": stats["strata"],
            "has_state": service.state is not None,
            "is_writable": service.replicas.is_writable,
            "started": service.started.isoformat(),
            "limits": asdict(service.limits),
        }
    )


def predicates(call: Call[Nothing, None]) -> Answer:
    """List the predicates, with their columns and sizes."""
    with call.service.reading() as view, call.cost_limit.turn(view.kb):
        sizes = view.kb.stats()["predicates"]
        derived = {rule.head.predicate for rule in view.kb.rules}
        found = [
            {
                "name": each.name,
                "columns": list(each.columns),
                "types": list(each.types) or None,
                "facts": sizes[each.name]["facts"],
                "explicit": sizes[each.name]["explicit"],
                "is_derived": each.name in derived,
            }
            for each in view.kb.catalogue
        ]
    return as_json({"version": view.version, "predicates": found})


def facts(call: Call[FactsPage, None]) -> Answer:
    """Read the facts of a predicate."""
    params = call.params
    with call.service.reading() as view, call.cost_limit.turn(view.kb):
        found = view.kb.facts(params.predicate, params.sort)
        return _page(call, found, params, view.version)


def query(call: Call[QueryParams, None]) -> Answer:
    """Answer a query.

    A conjunction such as `reach(?x, "c"), not blocked(?x)`; the columns of the answer
    are its variables. Without variables, there is one row for yes and none for no.
    """
    return _answered(call, call.params, {})


def query_with_body(call: Call[Nothing, QueryBody]) -> Answer:
    """Answer a query with parameters.

    The values of `parameters` replace `$name` in the query.
    """
    values = call.body.parameters
    known = {name: formats.python_value(value) for name, value in values.items()}
    return _answered(call, call.body, known)


def _answered(
    call: Call[Any, Any], asked: QueryParams | QueryBody, values: Mapping[str, Any]
) -> Answer:
    reserved = {"text", "raw", "limit", "self"} & values.keys()
    if reserved:
        raise BadRequestError(f"a parameter cannot be called `{min(reserved)}`")
    with call.service.reading() as view, call.cost_limit.turn(view.kb):
        found = view.kb.query(asked.query, **values)
        return _page(call, found, asked, view.version)


def _page(call: Call[Any, Any], found: Result, page: Page, version: int) -> Answer:
    """Return a range of some rows, in the requested format."""
    offered = (JSON, CSV, ARROW)
    media_type = formats.chosen_type(call.accept, offered)
    most = call.service.limits.rows
    if page.limit > most:
        raise BadRequestError(
            f"an answer has {most:,} rows at most", help="use `limit` and `offset`"
        )
    count = len(found)
    if page.order:
        name = page.order.removeprefix("-")
        found = found.sort(name, descending=page.order.startswith("-"))
    part = found.first(page.offset + page.limit)
    if page.offset:
        part = part[page.offset :]
    headers = {"Evermat-Version": str(version), "Evermat-Count": str(count)}
    if media_type == CSV:
        return Answer(formats.csv_bytes(part), CSV, headers=headers)
    if media_type == ARROW:
        return Answer(formats.arrow_bytes(part), ARROW, headers=headers)
    return as_json(
        {
            "version": version,
            "columns": list(part.columns),
            "rows": formats.json_rows(part, terms=page.terms),
            "count": count,
        },
        **headers,
    )


def explain(call: Call[ExplainParams, None]) -> Answer:
    """Explain why a fact holds, or why it does not.

    A proof of least height. For a fact that does not hold, how far each rule gets that
    could derive it. As JSON, text, a drawing (SVG), or a graph for Graphviz.
    """
    from evermat.explain.drawing import proof_svg  # noqa: PLC0415  seldom needed

    params = call.params
    media_type = formats.chosen_type(call.accept, _EXPLANATIONS)
    with call.service.reading() as view, call.cost_limit.turn(view.kb):
        found = view.kb.explain(
            params.fact, derivations=params.derivations, limit=_EXPLAINED
        )
    headers = {"Evermat-Version": str(view.version)}
    if media_type == JSON:
        return as_json({"version": view.version, **found.to_dict()}, **headers)
    if media_type == "text/plain":
        text = str(found)
    elif media_type == "image/svg+xml":
        text = proof_svg(found)
    else:
        text = found.to_dot()
    return Answer(text.encode(), media_type, headers=headers)


_EXPLANATIONS = (JSON, "text/plain", "image/svg+xml", "text/vnd.graphviz")


def rules(call: Call[Profiled, None]) -> Answer:
    """List the rules, by stratum, and their plans.

    With `profile`, each is applied once, and the answer has its cost.
    """
    with call.service.reading() as view, call.cost_limit.turn(view.kb):
        found = graph_of(view.kb)
        plan = view.kb.explain_plan()
        if call.params.profile:
            costs = {each.rule: each for each in view.kb.profile().rules}
            for shown, rule in zip(found.rules, view.kb.rules, strict=True):
                shown["profile"] = _costs(costs.get(str(rule)))
    return as_json({"version": view.version, "rules": found.rules, "plan": plan})


def _costs(found: RuleProfile | None) -> dict[str, object] | None:
    if found is None or found.module is not None:
        return None
    join = found.slowest_join
    return {
        "seconds": found.seconds,
        "instances": found.instances,
        "facts": found.facts,
        "duplicates": found.duplicates,
        "slowest_join": None if join is None else str(join),
    }


def graph(call: Call[Nothing, None]) -> Answer:
    """Return the dependencies between predicates, and their strata."""
    with call.service.reading() as view, call.cost_limit.turn(view.kb):
        found = graph_of(view.kb)
    return as_json(
        {"version": view.version, "nodes": found.nodes, "edges": found.edges}
    )


def contradictions(call: Call[Limited, None]) -> Answer:
    """List the contradictions between facts and rules.

    Each with the rule for `false` that derives it and a proof.
    """
    with call.service.reading() as view, call.cost_limit.turn(view.kb):
        count = view.kb.stats()["contradictions"]
        found = [
            {"text": str(each), "proof": each.explain().to_dict()}
            for each in view.kb.contradictions(limit=call.params.limit)
        ]
    return as_json({"version": view.version, "count": count, "contradictions": found})


# ----------------------------------------------------------------------- changing


def update(call: Call[UpdateParams, UpdateBody]) -> Answer:
    """Change facts and rules in one transaction.

    It is applied as a whole or not at all. With `dry_run`, the answer has the exact
    changes, and nothing is changed. With `version`, the update is rejected if another
    one was made since that version.
    """
    body, params = call.body, call.params
    given: dict[str, object] = {
        kind: {name: formats.python_rows(rows) for name, rows in found.items()}
        for kind in ("insert", "delete", "replace")
        if (found := getattr(body, kind))
    }
    if body.algorithm is not None:
        given["algorithm"] = body.algorithm

    def arguments(kb: KnowledgeBase) -> dict[str, object]:
        """Return the arguments of `kb.update`; rules may use the known prefixes."""
        texts = {"add_rules": body.add_rules, "remove_rules": body.remove_rules}
        read = {
            name: parse_program(text, prefixes=kb.prefixes)
            for name, text in texts.items()
            if text.strip()
        }
        return given | read

    if params.dry_run:
        return _planned(call, arguments)
    made = call.service.update(
        arguments, call.cost_limit, title=body.title, expected=body.version
    )
    return as_told(call.service, made, params)


def _planned(
    call: Call[Any, Any],
    arguments: Callable[[KnowledgeBase], Mapping[str, object]],
) -> Answer:
    def work(kb: KnowledgeBase) -> dict[str, object]:
        asked: Any = arguments(kb)
        return _change_document(kb.plan(**asked), call.params)

    document = call.service.plan(work, call.cost_limit)
    return as_json({"version": call.service.replicas.version, **document})


def as_told(service: Service, made: Updated, shown: Shown) -> Answer:
    """Return the changes of an update; SPARQL may have made several."""
    for change in made.changes:
        added, removed = change.total
        service.metrics.changed.labels("+").inc(added)
        service.metrics.changed.labels("-").inc(removed)
    documents = [_change_document(each, shown) for each in made.changes]
    return as_json({"version": made.version, **documents[-1]})


def _change_document(change: Change, shown: Shown) -> dict[str, object]:
    sizes = change.sizes

    def rows(read: Callable[[str], Result], name: str) -> list[list[object]]:
        return formats.json_rows(read(name).first(shown.show), terms=shown.terms)

    facts = {
        name: {
            "added": rows(change.added, name) if added else [],
            "removed": rows(change.removed, name) if removed else [],
        }
        for name, (added, removed) in sizes.items()
        if shown.show
    }
    report = change.report
    return {
        "applied": change.applied,
        "sizes": {
            name: {"added": added, "removed": removed}
            for name, (added, removed) in sizes.items()
        },
        "facts": facts,
        "report": {
            **asdict(report),
            "rounds": report.rounds,
            "instances": report.forward_instances + report.backward_instances,
        },
    }


def insert_facts(call: Call[FactsChange, RowsBody | Body]) -> Answer:
    """Insert facts of a predicate.

    The body is JSON, or a file: CSV, TSV, Arrow, Parquet; and RDF for `triple`.
    """
    return _change_facts(call, "insert")


def delete_facts(call: Call[FactsChange, RowsBody | Body]) -> Answer:
    """Delete facts of a predicate.

    The body is like that of an insertion. Facts that rules still derive stay.
    """
    return _change_facts(call, "delete")


def replace_facts(call: Call[FactsChange, RowsBody | Body]) -> Answer:
    """Make the rows of the body the only explicit facts of a predicate.

    The latest dump of a table, for instance. The answer has the differences.
    """
    return _change_facts(call, "replace")


def _change_facts(call: Call[FactsChange, RowsBody | Body], kind: str) -> Answer:
    params, body = call.params, call.body
    name = params.predicate

    def arguments(kb: KnowledgeBase) -> dict[str, object]:
        rows: object
        if isinstance(body, RowsBody):
            rows = formats.python_rows(body.rows)
        else:
            rows = body.rows(name, kb.catalogue.get(name), header=params.header)
        return {kind: {name: rows}}

    if params.dry_run:
        return _planned(call, arguments)
    verb = {"insert": "Insert", "delete": "Delete", "replace": "Replace"}[kind]
    made = call.service.update(
        arguments, call.cost_limit, title=f"{verb} {name}", expected=params.version
    )
    return as_told(call.service, made, params)


def undo(call: Call[UpdateParams, None]) -> Answer:
    """Undo the last update; this makes a new version."""
    service = call.service
    if call.params.dry_run:
        return _planned(call, service.history.undo)
    made = service.update(service.history.undo, call.cost_limit, title="Undo")
    return as_told(service, made, call.params)


# ----------------------------------------------------------------------- versions


def versions(call: Call[Nothing, None]) -> Answer:
    """List the known versions, the latest first."""
    found = [_version_document(each) for each in call.service.history.versions()]
    return as_json({"version": call.service.history.latest, "versions": found})


def _version_document(version: Version) -> dict[str, object]:
    return {
        "number": version.number,
        "time": version.time.isoformat(),
        "title": version.title,
        "sizes": {
            name: {"added": added, "removed": removed}
            for name, (added, removed) in version.sizes.items()
        },
        "rules": {"added": version.rules[0], "removed": version.rules[1]},
        "restored": version.restored,
    }


def differences(call: Call[UpdateParams, None]) -> Answer:
    """Return the changes of a version."""
    number = call.path["number"]
    history = call.service.history
    if not 0 < number <= history.latest:
        raise NotThereError(
            f"there is no version {number} with one before it",
            help=f"the latest is {history.latest}",
        )
    found = list(history.since(number - 1, number))
    changes = [difference_document(each, call.params) for each in found]
    empty: dict[str, object] = {"number": number, "added": {}, "removed": {}}
    return as_json(changes[-1] if changes else empty)


def difference_document(
    difference: Difference, shown: Shown | None = None, predicate: str | None = None
) -> dict[str, object]:
    """Return the changes of a version as data, for one predicate or all."""
    show = None if shown is None else shown.show
    terms = shown is not None and shown.terms
    added, removed = (
        {
            name: formats.json_rows(rows[:show], terms=terms)
            for name, rows in side.items()
            if predicate in (None, name)
        }
        for side in (difference.added, difference.removed)
    )
    return {
        "number": difference.number,
        "added": added,
        "removed": removed,
        "added_rules": list(difference.added_rules),
        "removed_rules": list(difference.removed_rules),
    }


def restore(call: Call[UpdateParams, None]) -> Answer:
    """Restore a version; this makes a new one."""
    service, number = call.service, call.path["number"]

    def arguments(kb: KnowledgeBase) -> Mapping[str, object]:
        return service.history.restore(kb, number)

    if call.params.dry_run:
        return _planned(call, arguments)
    title = f"Back to version {number}"
    made = service.update(arguments, call.cost_limit, title=title, restored=number)
    return as_told(service, made, call.params)


# ---------------------------------------------------------------------- operation


def health(call: Call[Nothing, None]) -> Answer:
    """Report whether the server answers, and whether it accepts updates."""
    service = call.service
    document = {
        "status": "ok" if service.replicas.is_writable else "read only",
        "version": service.replicas.version,
    }
    return as_json(document)


def metrics(call: Call[Nothing, None]) -> Answer:
    """Return counts and durations for Prometheus."""
    service = call.service
    try:
        with service.reading() as view, call.cost_limit.turn(view.kb):
            stats = view.kb.stats()["predicates"]
    except BusyError:
        stats = {}
    sizes = {name: size["facts"] for name, size in stats.items()}
    return Answer(service.metrics.text(sizes), MEDIA_TYPE)


_TABLES = (JSON, CSV, ARROW)
_FILES = tuple(formats.SUFFIXES)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/api", Role.READ, info, Nothing),
    Endpoint("GET", "/api/predicates", Role.READ, predicates, Nothing),
    Endpoint("GET", "/api/facts", Role.READ, facts, FactsPage, offers=_TABLES),
    Endpoint(
        "POST", "/api/facts", Role.WRITE, insert_facts, FactsChange, RowsBody, _FILES
    ),
    Endpoint(
        "PUT", "/api/facts", Role.WRITE, replace_facts, FactsChange, RowsBody, _FILES
    ),
    Endpoint(
        "DELETE",
        "/api/facts",
        Role.WRITE,
        delete_facts,
        FactsChange,
        RowsBody,
        _FILES,
    ),
    Endpoint("GET", "/api/query", Role.READ, query, QueryParams, offers=_TABLES),
    Endpoint(
        "POST",
        "/api/query",
        Role.READ,
        query_with_body,
        Nothing,
        QueryBody,
        offers=_TABLES,
    ),
    Endpoint(
        "GET", "/api/explain", Role.READ, explain, ExplainParams, offers=_EXPLANATIONS
    ),
    Endpoint("GET", "/api/rules", Role.READ, rules, Profiled),
    Endpoint("GET", "/api/graph", Role.READ, graph, Nothing),
    Endpoint("GET", "/api/contradictions", Role.READ, contradictions, Limited),
    Endpoint("POST", "/api/update", Role.WRITE, update, UpdateParams, UpdateBody),
    Endpoint("POST", "/api/undo", Role.WRITE, undo, UpdateParams),
    Endpoint("GET", "/api/versions", Role.READ, versions, Nothing),
    Endpoint("GET", "/api/versions/{number}", Role.READ, differences, UpdateParams),
    Endpoint(
        "POST", "/api/versions/{number}/restore", Role.ADMIN, restore, UpdateParams
    ),
    Endpoint("GET", "/health", Role.PUBLIC, health, Nothing),
    Endpoint("GET", "/metrics", Role.READ, metrics, Nothing, offers=(MEDIA_TYPE,)),
)
