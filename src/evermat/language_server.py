"""A language server for editors: problems, hovers, definitions and formatting.

`evermat lsp` uses the Language Server Protocol on standard input and output
(`pip install "evermat[lsp]"`). Problems are those of `evermat check`, updated on every
change.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from evermat import __version__
from evermat.errors import EvermatError
from evermat.errors.wording import counted
from evermat.lang.checks import check_program
from evermat.lang.parser import parse_program
from evermat.lang.printer import Printer, format_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.errors import Span
    from evermat.lang.syntax import Program

_NAME = re.compile(r"<[^>\s]*>|[A-Za-z_][\w-]*")


class Definition(NamedTuple):
    """A place where a predicate is declared, or that provides facts of it."""

    predicate: str
    span: Span


def program_of(text: str, name: str) -> tuple[Program | None, list[EvermatError], int]:
    """Return the program in a text, its problems, and the number of errors."""
    try:
        program = parse_program(text, name=name)
    except EvermatError as error:
        problems = list(getattr(error, "problems", None) or (error,))
        return None, problems, len(problems)
    report = check_program(program)
    return program, [*report.errors, *report.warnings], len(report.errors)


def diagnostics(text: str, name: str) -> list[types.Diagnostic]:
    """Return the problems of a text as diagnostics of the protocol."""
    _, problems, errors = program_of(text, name)
    return [
        types.Diagnostic(
            range=_range(problem.span, text, name),
            message=_message(problem),
            severity=types.DiagnosticSeverity.Error
            if number < errors
            else types.DiagnosticSeverity.Warning,
            code=problem.code,
            source="evermat",
        )
        for number, problem in enumerate(problems)
    ]


def _message(problem: EvermatError) -> str:
    parts = [problem.message, problem.reason, problem.help]
    return "\n".join(part for part in parts if part)


def _range(span: Span | None, text: str, name: str) -> types.Range:
    if span is None or span.source.name != name:  # in an included file
        return types.Range(types.Position(0, 0), types.Position(0, 1))
    return types.Range(_position(text, span.start), _position(text, span.end))


def _position(text: str, offset: int) -> types.Position:
    """Return a position in a text; the protocol counts columns in UTF-16 units."""
    line = text.count("\n", 0, offset)
    before = text[text.rfind("\n", 0, offset) + 1 : offset]
    return types.Position(line, len(before.encode("utf-16-le")) // 2)


def _offset(text: str, position: types.Position) -> int:
    lines = text.split("\n")
    start = sum(len(line) + 1 for line in lines[: position.line])
    line = lines[position.line] if position.line < len(lines) else ""
    units = line.encode("utf-16-le")[: 2 * position.character]
    return start + len(units.decode("utf-16-le", "ignore"))


def word_at(text: str, position: types.Position) -> str | None:
    """Return the name at a position, unless it is a variable."""
    at = _offset(text, position)
    for found in _NAME.finditer(text):
        if found.start() <= at <= found.end():
            is_variable = text[: found.start()].endswith(("?", "$"))
            return None if is_variable else found[0].strip("<>")
    return None


def definitions(program: Program) -> Iterator[Definition]:
    """Yield the definitions of predicates: declarations, then heads, then facts."""
    for declaration in program.declarations:
        if declaration.span is not None:
            yield Definition(declaration.predicate, declaration.span)
    heads = (head for rule in program.rules for head in rule.heads)
    for atom in (*heads, *program.facts):
        span = atom.predicate_span or atom.span
        if span is not None:
            yield Definition(atom.predicate, span)


def hover(program: Program, predicate: str) -> str | None:
    """Describe a predicate, as Markdown."""
    rules = [
        rule
        for rule in program.rules
        if any(head.predicate == predicate for head in rule.heads)
    ]
    readers = [
        rule
        for rule in program.rules
        if any(
            atom.predicate == predicate
            for atom in (*rule.positive_atoms(), *rule.negated_atoms())
        )
    ]
    facts = sum(fact.predicate == predicate for fact in program.facts)
    declared = [d for d in program.declarations if d.predicate == predicate]
    if not (rules or readers or facts or declared):
        return None
    printer = Printer(dict(program.prefixes))
    texts = [*map(printer.declaration, declared), *map(printer.rule, rules[:5])]
    code = "\n".join(texts)
    block = [f"```evermat\n{code}\n```"] if texts else []
    sizes = [counted(len(rules), "rule"), counted(facts, "fact")]
    read = f"read by {counted(len(readers), 'rule')}"
    return "\n\n".join([f"**{predicate}**: {', '.join(sizes)}, {read}", *block])


class Documents:
    """Handles requests of editors about the open documents."""

    def __init__(self, made: LanguageServer) -> None:
        self._server = made

    def _read(self, uri: str) -> tuple[str, str, Program | None]:
        """Return the text of a document, its path, and its program."""
        document = self._server.workspace.get_text_document(uri)
        program, _, _ = program_of(document.source, document.path)
        return document.source, document.path, program

    def changed(
        self,
        params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams,
    ) -> None:
        """Publish the problems of a document that was opened or changed."""
        uri = params.text_document.uri
        document = self._server.workspace.get_text_document(uri)
        found = diagnostics(document.source, document.path)
        self._server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=found)
        )

    def hovered(self, params: types.HoverParams) -> types.Hover | None:
        """Describe the predicate at a position."""
        text, _, program = self._read(params.text_document.uri)
        name = word_at(text, params.position)
        said = hover(program, name) if program is not None and name else None
        if said is None:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, said))

    def defined(self, params: types.DefinitionParams) -> list[types.Location]:
        """Return the definitions of the predicate at a position."""
        uri = params.text_document.uri
        text, path, program = self._read(uri)
        name = word_at(text, params.position)
        return [
            types.Location(uri, _range(each.span, text, path))
            for each in (() if program is None else definitions(program))
            if each.predicate == name and each.span.source.name == path
        ]

    def formatted(self, params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        """Return the edits that format a document."""
        text, path, _ = self._read(params.text_document.uri)
        try:
            tidy = format_source(text, name=path)
        except EvermatError:
            return []
        whole = types.Range(types.Position(0, 0), _position(text, len(text)))
        return [types.TextEdit(whole, tidy)]


def server() -> LanguageServer:
    """Return a server with all handlers registered."""
    made = LanguageServer("evermat", __version__)
    documents = Documents(made)
    for feature, answer in (
        (types.TEXT_DOCUMENT_DID_OPEN, documents.changed),
        (types.TEXT_DOCUMENT_DID_CHANGE, documents.changed),
        (types.TEXT_DOCUMENT_HOVER, documents.hovered),
        (types.TEXT_DOCUMENT_DEFINITION, documents.defined),
        (types.TEXT_DOCUMENT_FORMATTING, documents.formatted),
    ):
        made.feature(feature)(partial(answer))  # it sets attributes on the function
    return made
