"""The plain part of Soufflé's language.

Read: `.type`, `.decl` with qualifiers, `.input`, `.output`, `.printsize`, facts and
rules (`evermat.lang.dialects.souffle_clauses`). `.pragma` and `.plan` only guide
Soufflé's own evaluation and are passed over. Everything else is refused by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evermat.errors import Label, ParseError, ProgramError, Source, raise_all
from evermat.lang.dialects.evaluation import settled
from evermat.lang.dialects.scanner import END, Scanner
from evermat.lang.dialects.souffle_clauses import ClauseReader
from evermat.lang.syntax import (
    Atom,
    DataSink,
    DataSource,
    Declaration,
    Program,
    Rule,
    Variable,
    atom_variables,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.errors import Span
    from evermat.lang.lexer import Token

_DIRECTIVES = (
    "type number_type symbol_type decl input output printsize pragma plan "
    "comp init functor limitsize lattice include once override"
)
_BEGINNINGS = frozenset({"directive", "preprocessor"})
"""Tokens that nothing but a statement begins with."""
_TOKEN = re.compile(
    rf"""
    (?P<blank>\s+)
  | (?P<comment>//[^\n]*|/\*(?:.|\n)*?\*/)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<float>\d+\.\d+(?:[eE][+-]?\d+)?)
  | (?P<integer>(?:0x[0-9a-fA-F]+|0b[01]+|\d+)u?)
  | (?P<directive>\.(?:{"|".join(_DIRECTIVES.split())})\b)
  | (?P<preprocessor>\#\s*\w+|\b__\w+__\b)
  | (?P<name>[A-Za-z_?][\w?]*)
  | (?P<sign>:-|<:|<=|>=|!=|::|[-+*/%^!=<>(){{}}\[\],.;:|$@])
    """,
    re.VERBOSE,
)
_BASE_TYPES = {
    "number": "integer",
    "unsigned": "integer",
    "float": "double",
    "symbol": "string",
}
_REFUSED = {
    ".comp": "components are",
    ".init": "components are",
    ".override": "components are",
    ".functor": "user-defined functors are",
    ".limitsize": "`.limitsize` is",
    ".lattice": "lattices are",
    ".include": "`.include` is",
    ".once": "`.once` is",
}
_NO_EFFECT = frozenset({"btree", "brie", "inline", "no_inline", "magic", "no_magic"})
_HELP_INCLUDE = "run the C preprocessor over the program first (`cpp -P`)"


def read_souffle(text: str, *, name: str = "<rules>") -> Program:
    """The program in a Soufflé text.

    Raises:
        ParseError: the text is not in Soufflé's syntax.
        UnsupportedSyntaxError: it uses more than the plain part.

    >>> print(read_souffle(".decl p(x:number)  p(x+1) :- p(x), x < 9.").rules[0])
    p(?x + 1) :- p(?x), ?x < 9 .
    """
    return _Reader(Source(name, text)).program()


@dataclass(slots=True)
class _Relation:
    """A declared relation: its columns with the names of their types."""

    name: Token
    columns: list[tuple[str, Token]]
    qualifiers: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Request:
    """A relation that is to be read or written; `kind` is the name of the directive."""

    kind: str
    relation: Token
    options: Mapping[str, str]
    span: Span


class _Reader:
    """Reads one program; types and relations may be used before they are declared."""

    def __init__(self, source: Source) -> None:
        self._tokens = Scanner(source, _TOKEN, "Soufflé's language")
        self._clauses = ClauseReader(self._tokens)
        self._types: dict[str, str] = {}
        self._relations: dict[str, _Relation] = {}
        self._requests: list[_Request] = []
        self._rules: list[Rule] = []
        self._facts: list[Atom] = []
        self._problems: list[ProgramError] = []

    def program(self) -> Program:
        """Read everything, then look up what was named before it was declared."""
        while self._tokens.current.kind != END:
            try:
                self._statement()
            except ProgramError as problem:
                self._problems.append(problem)
                self._skip_statement()
        self._require_declared()
        raise_all(self._problems)
        declarations = tuple(map(self._declaration, self._relations.values()))
        for relation in self._relations.values():
            if "eqrel" in relation.qualifiers:
                self._rules += _equivalence_rules(relation.name.text)
        return Program(
            rules=tuple(self._rules),
            facts=tuple(self._facts),
            declarations=declarations,
            sources=tuple(map(self._source, self._requests_for("input"))),
            sinks=(
                *map(self._sink, self._requests_for("output")),
                *map(self._size, self._requests_for("printsize")),
            ),
        )

    def _requests_for(self, kind: str) -> list[_Request]:
        return [request for request in self._requests if request.kind == kind]

    def _skip_statement(self) -> None:
        """Go on behind the next dot or component, or at the next directive."""
        tokens = self._tokens
        depth = 0
        while True:
            token = tokens.advance()
            depth += {"{": 1, "}": -1}.get(token.text, 0)
            # Behind an aggregate or a branch of a type, the statement goes on.
            is_whole = token.text == "}" and tokens.current.kind == "name"
            if depth <= 0 and (
                token.text == "." or is_whole or tokens.current.kind in _BEGINNINGS
            ):
                return
            if token.kind == END:
                return

    def _statement(self) -> None:
        tokens = self._tokens
        token = tokens.current
        if token.kind == "preprocessor":
            construct = f"the preprocessor directive `{token.text}` is"
            raise tokens.unsupported(construct, token, hint=_HELP_INCLUDE)
        if token.text in _REFUSED:
            raise tokens.unsupported(_REFUSED[token.text], token)
        if token.kind == "directive":
            self._directive(tokens.advance())
            return
        for rule in self._clauses.clause():
            if _is_fact(rule):
                self._facts += map(settled, rule.heads)
            else:
                self._rules.append(rule)

    def _directive(self, directive: Token) -> None:
        match directive.text:
            case ".type":
                self._type()
            case ".number_type" | ".symbol_type":
                name = self._tokens.expect_kind("name", "the name of a type")
                self._types[name.text] = directive.text[1:].removesuffix("_type")
            case ".decl":
                self._decl()
            case ".pragma":
                self._pragma()
            case ".plan":
                self._plan()
            case _:
                self._request(directive)

    def _pragma(self) -> None:
        self._tokens.expect_kind("string", "the name of a pragma in quotation marks")
        self._tokens.accept_kind("string")

    def _plan(self) -> None:
        tokens = self._tokens
        while tokens.accept_kind("integer"):
            tokens.expect(":", "after the number of a plan")
            tokens.expect("(", "before an order of atoms")
            while not tokens.accept(")"):
                tokens.accept(",")
                tokens.expect_kind("integer", "the number of an atom")
            if not tokens.accept(","):
                return

    def _type(self) -> None:
        """`.type A <: B`, `.type A = B | C`; the older `.type A` is a symbol."""
        tokens = self._tokens
        name = tokens.expect_kind("name", "the name of a type")
        base = "symbol"
        if tokens.accept("<:", "="):
            if tokens.current.text == "[":
                raise tokens.unsupported("record types are", tokens.current)
            base = tokens.expect_kind("name", "a type").text
            self._refuse_branch()
            while tokens.accept("|"):
                tokens.expect_kind("name", "a type")
                self._refuse_branch()
        self._types[name.text] = base

    def _refuse_branch(self) -> None:
        tokens = self._tokens
        if tokens.current.text == "{":
            raise tokens.unsupported("algebraic data types are", tokens.previous)

    def _decl(self) -> None:
        tokens = self._tokens
        names = [tokens.expect_kind("name", "the name of a relation")]
        while tokens.accept(","):
            names.append(tokens.expect_kind("name", "the name of a relation"))
        columns: list[tuple[str, Token]] = []
        tokens.expect("(", f"after `{names[-1].text}`")
        while not tokens.accept(")"):
            if columns:
                tokens.expect(",", "between columns")
            column = tokens.expect_kind("name", "the name of a column")
            tokens.expect(":", f"after the column `{column.text}`")
            columns.append((column.text, tokens.expect_kind("name", "a type")))
        qualifiers = self._qualifiers(names)
        for name in names:
            self._relations[name.text] = _Relation(name, columns, qualifiers)

    def _qualifiers(self, names: list[Token]) -> set[str]:
        tokens = self._tokens
        qualifiers: set[str] = set()
        while tokens.current.kind == "name" and tokens.following.text != "(":
            qualifier = tokens.advance()
            if qualifier.text in {"input", "output", "printsize"}:
                span = tokens.span(qualifier)
                self._requests += [
                    _Request(qualifier.text, name, {}, span) for name in names
                ]
            elif qualifier.text == "choice":
                raise tokens.unsupported("`choice-domain` is", qualifier)
            elif qualifier.text == "eqrel" or qualifier.text in _NO_EFFECT:
                qualifiers.add(qualifier.text)
            else:
                construct = f"the qualifier `{qualifier.text}` is"
                raise tokens.unsupported(construct, qualifier)
        return qualifiers

    def _request(self, directive: Token) -> None:
        """`.input A, B(key=value, …)` and its like."""
        tokens = self._tokens
        names = [tokens.expect_kind("name", "the name of a relation")]
        while tokens.accept(","):
            names.append(tokens.expect_kind("name", "the name of a relation"))
        if tokens.current.text == "." and tokens.following.kind == "name":
            after = tokens.following
            if after.start == tokens.current.end:
                raise tokens.unsupported("components are", names[-1])
        options = self._options() if tokens.accept("(") else {}
        span = tokens.span_since(directive)
        kind = directive.text[1:]
        self._requests += [_Request(kind, name, options, span) for name in names]

    def _options(self) -> dict[str, str]:
        tokens = self._tokens
        options: dict[str, str] = {}
        while not tokens.accept(")"):
            if options:
                tokens.expect(",", "between options")
            key = tokens.expect_kind("name", "the name of an option")
            tokens.expect("=", f"after `{key.text}`")
            value = tokens.advance()
            if value.kind not in {"string", "name", "integer"}:
                tokens.position -= 1
                raise tokens.wrong("the value of an option")
            is_string = value.kind == "string"
            text = tokens.string(value) if is_string else value.text
            if key.text not in _OPTIONS:
                raise tokens.unsupported(f"the option `{key.text}` is", key)
            if text not in _OPTIONS[key.text] and _OPTIONS[key.text]:
                construct = f"`{key.text}={text}` is"
                raise tokens.unsupported(construct, value)
            options[key.text] = text
        return options

    def _declaration(self, relation: _Relation) -> Declaration:
        return Declaration(
            relation.name.text,
            len(relation.columns),
            self._column_types(relation),
            tuple(name for name, _ in relation.columns),
            span=self._tokens.span(relation.name),
        )

    def _column_types(self, relation: _Relation) -> tuple[str, ...]:
        return tuple(self._base_type(token) for _, token in relation.columns)

    def _base_type(self, token: Token) -> str:
        seen: set[str] = set()
        name = token.text
        while name not in _BASE_TYPES:
            if name in seen or name not in self._types:
                raise self._tokens.error(f"there is no type `{token.text}`", token)
            seen.add(name)
            name = self._types[name]
        return _BASE_TYPES[name]

    def _require_declared(self) -> None:
        """Report every relation that is used but not declared, once."""
        used: dict[str, Span | None] = {}
        for rule in self._rules:
            for atom in (*rule.heads, *rule.positive_atoms(), *rule.negated_atoms()):
                used.setdefault(atom.predicate, atom.predicate_span)
        for fact in self._facts:
            used.setdefault(fact.predicate, fact.predicate_span)
        for request in self._requests:
            span = self._tokens.span(request.relation)
            used.setdefault(request.relation.text, span)
        for name, place in used.items():
            if name not in self._relations and place is not None:
                message = f"relation `{name}` is not declared"
                hint = f"add `.decl {name}(…)`"
                problem = ParseError(message, labels=(Label(place),), help=hint)
                self._problems.append(problem)

    def _source(self, request: _Request) -> DataSource:
        name = request.relation.text
        types = ",".join(self._column_types(self._relations[name]))
        form = {"types": types, **_file_form(request.options)}
        path = request.options.get("filename", f"{name}.facts")
        return DataSource(name, path, tuple(form.items()), span=request.span)

    def _sink(self, request: _Request) -> DataSink:
        name = request.relation.text
        form = _file_form(request.options)
        if form.get("header") == "true":
            columns = self._relations[name].columns
            form["names"] = ",".join(column for column, _ in columns)
        path = request.options.get("filename", f"{name}.csv")
        if form.get("compression") == "gzip" and not path.endswith(".gz"):
            path += ".gz"
        if request.options.get("IO") == "stdout":
            path = "-"
        return DataSink(name, path, tuple(form.items()), span=request.span)

    def _size(self, request: _Request) -> DataSink:
        options = (("values", "size"),)
        return DataSink(request.relation.text, "-", options, span=request.span)


_OPTIONS: dict[str, frozenset[str]] = {
    "IO": frozenset({"file", "stdout"}),
    "filename": frozenset(),
    "delimiter": frozenset(),
    "rfc4180": frozenset({"true", "false"}),
    "headers": frozenset({"true", "false"}),
    "compress": frozenset({"true", "false"}),
}


def _file_form(options: Mapping[str, str]) -> dict[str, str]:
    form = {
        "delimiter": options.get("delimiter", "\t"),
        "quoting": "double" if options.get("rfc4180") == "true" else "none",
        "values": "plain",
    }
    if options.get("headers") == "true":
        form["header"] = "true"
    if options.get("compress") == "true":
        form["compression"] = "gzip"
    return form


def _is_fact(rule: Rule) -> bool:
    return not rule.body and not any(
        variable for head in rule.heads for variable in atom_variables(head)
    )


def _equivalence_rules(name: str) -> list[Rule]:
    """What the qualifier `eqrel` means: reflexive, symmetric and transitive."""
    x, y, z = Variable("x"), Variable("y"), Variable("z")
    related = Atom(name, (x, y))
    return [
        Rule((Atom(name, (x, x)), Atom(name, (y, x))), (related,)),
        Rule((Atom(name, (x, z)),), (related, Atom(name, (y, z)))),
    ]
