"""Queries of SPARQL with one property path, as rules and a question.

Every part of a path becomes a predicate of two arguments, and of one more in front for
the name of the graph where a query asks for it. Rules derive sets, so answers are those
of `SELECT DISTINCT`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urljoin

from evermat.rdf.namespaces import RDF

_TOKEN = re.compile(r"<[^>]*>|\?\w+|[\w\-]*:\w*|\w+|\S")
_PREFIX = re.compile(r"prefix\s+([\w\-]*:)\s*(<[^>]*>)", re.IGNORECASE)
_GRAPH = re.compile(r"graph\s+(\S+)\s*\{([^}]*)\}", re.IGNORECASE)
_FILTER = re.compile(r"filter\s*\((.*?)\)", re.IGNORECASE)
_VALUES = re.compile(r"values\s+(\?\w+)\s*\{\s*(\S+)\s*\}", re.IGNORECASE)
_SELECTED = re.compile(r"(?:select|ask)(.*?)\{", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class PathQuery:
    """Rules, the question about what they derive, and the variables it is about."""

    rules: str
    question: str
    variables: tuple[str, ...]
    """In the order of `SELECT`; none for `SELECT *`."""


def path_query(sparql: str, base: str) -> PathQuery:
    """The rules and the question that a query stands for.

    Args:
        sparql: `SELECT` or `ASK` with one triple whose predicate is a path; `GRAPH`
            around it, and `FILTER` or `VALUES` that say what one variable is.
        base: what relative IRIs are relative to.
    """
    prefixes = dict(_PREFIX.findall(sparql))
    absolute = re.sub("<([^>]*)>", lambda found: f"<{urljoin(base, found[1])}>", sparql)
    body = absolute[absolute.index("{") + 1 : absolute.rindex("}")]
    conditions = [found.strip() for found in _FILTER.findall(body)]
    conditions += [" = ".join(pair) for pair in _VALUES.findall(body)]
    body = _VALUES.sub("", _FILTER.sub("", body))
    graph = _GRAPH.search(body)
    start, *path, end = _TOKEN.findall(graph[2] if graph else body)
    parser = _Parser(path, in_graph=graph is not None)
    whole = parser.path()
    declared = [f"@prefix {name} {iri} ." for name, iri in prefixes.items()]
    # A path of no length leads from a term of the query to itself.
    named = [f"node({term}) ." for term in (start, end) if not term.startswith("?")]
    if graph is not None:
        named = []
    ends = [graph[1], start, end] if graph else [start, end]
    selected = _SELECTED.search(absolute)
    return PathQuery(
        "\n".join([*declared, *named, *parser.rules]),
        ", ".join([f"{whole}({', '.join(ends)})", *conditions]),
        tuple(re.findall(r"\?(\w+)", selected[1])) if selected else (),
    )


@dataclass
class _Parser:
    """Reads a path from its end operators outwards, and writes a rule for each part."""

    tokens: list[str]
    in_graph: bool
    at: int = 0
    rules: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for triple in (("?x", "_", "_"), ("_", "_", "?x")):
            self.rules.append(
                f"{self._atom('node', '?x')} :- {self._triple(*triple)} ."
            )

    # ------------------------------------------------------------------------ grammar

    def path(self) -> str:
        """`sequence | sequence`; the name of the predicate for it."""
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        if len(parts) == 1:
            return parts[0]
        return self._new(*(self._atom(part, "?x", "?y") for part in parts))

    def _sequence(self) -> str:
        parts = [self._inverse()]
        while self._take("/"):
            parts.append(self._inverse())
        if len(parts) == 1:
            return parts[0]
        nodes = ["?x", *(f"?n{at}" for at in range(1, len(parts))), "?y"]
        atoms = [self._atom(part, *nodes[at : at + 2]) for at, part in enumerate(parts)]
        return self._new(", ".join(atoms))

    def _inverse(self) -> str:
        if self._take("^"):
            return self._new(self._atom(self._repeated(), "?y", "?x"))
        return self._repeated()

    def _repeated(self) -> str:
        part = self._primary()
        if self._next() not in {"*", "+", "?"}:
            return part
        sign = self._advance()
        repeated = self._new(self._atom(part, "?x", "?y"))
        if sign != "?":
            onwards = [self._atom(repeated, "?x", "?n"), self._atom(part, "?n", "?y")]
            self._rule(self._atom(repeated, "?x", "?y"), ", ".join(onwards))
        if sign != "+":
            self._rule(self._atom(repeated, "?x", "?x"), self._atom("node", "?x"))
        return repeated

    def _primary(self) -> str:
        if self._take("("):
            part = self.path()
            assert self._take(")")
            return part
        if self._take("!"):
            return self._negated()
        return self._new(self._triple("?x", self._iri(), "?y"))

    def _negated(self) -> str:
        """`!(:p | ^:q)`: a step along, or against, any property but these."""
        members = [self._member()]
        if members[0] == "(":
            members = [self._member()]
            while self._take("|"):
                members.append(self._member())
            assert self._take(")")
        bodies = []
        for sign, ends in (("", ("?x", "?p", "?y")), ("^", ("?y", "?p", "?x"))):
            named = [member[1:] for member in members if member[0] == (sign or "<")]
            if named:
                tests = [f"?p != {name}" for name in named]
                bodies.append(", ".join([self._triple(*ends), *tests]))
        return self._new(*bodies)

    def _member(self) -> str:
        if self._take("("):
            return "("
        return ("^" if self._take("^") else "<") + self._iri()

    def _iri(self) -> str:
        name = self._advance()
        return f"<{RDF}type>" if name == "a" else name

    # -------------------------------------------------------------------------- rules

    def _new(self, *bodies: str) -> str:
        """A new predicate that holds where one of the bodies does."""
        name = f"path{len(self.rules)}"
        for body in bodies:
            self._rule(self._atom(name, "?x", "?y"), body)
        return name

    def _rule(self, head: str, body: str) -> None:
        self.rules.append(f"{head} :- {body} .")

    def _atom(self, name: str, *ends: str) -> str:
        context = ["?g"] if self.in_graph else []
        return f"{name}({', '.join([*context, *ends])})"

    def _triple(self, subject: str, predicate: str, found: str) -> str:
        ends = f"{subject}, {predicate}, {found}"
        return f"quad(?g, {ends})" if self.in_graph else f"[{ends}]"

    # ------------------------------------------------------------------------- tokens

    def _next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _advance(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def _take(self, sign: str) -> bool:
        if self._next() != sign:
            return False
        self.at += 1
        return True
