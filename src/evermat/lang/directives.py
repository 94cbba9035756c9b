"""Directives of a program: prefixes, declarations, files to read and write."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evermat.errors import DeclarationError, Label
from evermat.errors.wording import did_you_mean
from evermat.lang.syntax import DataSink, DataSource, Declaration
from evermat.lang.types import COLUMN_TYPES, TYPE_ALIASES

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.errors import Span
    from evermat.lang.lexer import Namespace, Token
    from evermat.lang.parser import StatementReader


@dataclass
class Directives:
    """The effects of the directives of a program so far."""

    namespace: Namespace
    declarations: list[Declaration] = field(default_factory=list)
    sources: list[DataSource] = field(default_factory=list)
    sinks: list[DataSink] = field(default_factory=list)

    def prefix(self, reader: StatementReader, _: Token) -> None:
        """Read `@prefix ex: <http://example.org/> .`."""
        advice = "as in `@prefix ex: <http://example.org/> .`"
        token = reader.expect("prefixed", "a prefix with a colon", help=advice)
        if not token.text.endswith(":"):
            raise reader.error(
                f"`{token.text}` is not a prefix: nothing may follow its colon",
                token,
                help=advice,
            )
        iri = reader.expect("iri", "an IRI in angle brackets", help=advice)
        self.namespace.prefixes[token.text[:-1]] = reader.iri_text(iri)
        self._end(reader)

    def base(self, reader: StatementReader, _: Token) -> None:
        """Read `@base <http://example.org/> .`."""
        advice = "as in `@base <http://example.org/> .`"
        iri = reader.expect("iri", "an IRI in angle brackets", help=advice)
        self.namespace.base = reader.iri_text(iri)
        self._end(reader)

    def _end(self, reader: StatementReader) -> None:
        reader.forget_names()
        reader.expect(".", "`.` after the directive")

    def declare(self, reader: StatementReader, start: Token) -> None:
        """Read `@declare age(string, integer) .`, with or without column names."""
        predicate = _predicate(reader)
        columns: list[tuple[str, str]] = []
        if reader.kind == "(":
            reader.advance()
            while reader.kind != ")":
                if columns:
                    reader.expect(",", "`,` or `)` in the declaration")
                columns.append(_column(reader))
            reader.advance()
        reader.expect(".", "`.` after the declaration")
        names = tuple(name for name, _ in columns)
        types = tuple(type_name for _, type_name in columns)
        self.declarations.append(
            Declaration(
                predicate,
                len(columns),
                types,
                names if any(names) else (),
                reader.span_since(start.start),
            )
        )

    def read_from(self, reader: StatementReader, start: Token) -> None:
        """Read `@import edge "edges.csv" {delimiter = ";"} .`."""
        self.sources.append(DataSource(*_file(reader, start)))

    def write_to(self, reader: StatementReader, start: Token) -> None:
        """Read `@export reach "reach.csv" .`."""
        self.sinks.append(DataSink(*_file(reader, start)))


DIRECTIVES: dict[str, Callable[[Directives, StatementReader, Token], None]] = {
    "prefix": Directives.prefix,
    "base": Directives.base,
    "declare": Directives.declare,
    "import": Directives.read_from,
    "export": Directives.write_to,
}


def _predicate(reader: StatementReader) -> str:
    if reader.kind not in {"name", "prefixed", "iri"}:
        raise reader.unexpected("the name of a predicate")
    return reader.predicate_name()


def _column(reader: StatementReader) -> tuple[str, str]:
    """Read a column's name, if any, and its type; `n : int` is one to three tokens."""
    token = reader.advance()
    before = ""
    if token.kind == "name" and reader.token.text.startswith(":"):
        before = token.text
        token = reader.advance()
    if token.kind == "prefixed":
        name, _, type_name = (before + token.text).partition(":")
        if not type_name:
            token = reader.expect("name", "a type")
            type_name = token.text
    elif token.kind == "name":
        name, type_name = "", token.text
    else:
        reader.go_to(reader.position - 1)
        raise reader.unexpected("a type", help=_listed_types())
    type_name = TYPE_ALIASES.get(type_name, type_name)
    if type_name not in COLUMN_TYPES:
        reader.problems.append(
            DeclarationError(
                f"unknown type `{type_name}`",
                labels=(Label(reader.span_of(token)),),
                help=did_you_mean(type_name, [*COLUMN_TYPES, *TYPE_ALIASES])
                or _listed_types(),
            )
        )
    return name, type_name


def _listed_types() -> str:
    return "the types are " + ", ".join(f"`{name}`" for name in COLUMN_TYPES)


def _file(
    reader: StatementReader, start: Token
) -> tuple[str, str, tuple[tuple[str, str], ...], Span]:
    predicate = _predicate(reader)
    path = reader.string_text(reader.expect("string", "a file name in quotes"))
    options: list[tuple[str, str]] = []
    if reader.kind == "{":
        reader.advance()
        while reader.kind != "}":
            if options:
                reader.expect(",", "`,` or `}` in the options")
            name = reader.expect("name", "the name of an option").text
            reader.expect("=", "`=` after the name of an option")
            value = reader.expect("string", "the value of the option in quotes")
            options.append((name, reader.string_text(value)))
        reader.advance()
    reader.expect(".", "`.` after the directive")
    return predicate, path, tuple(options), reader.span_since(start.start)
