"""The printer: programs to text, which parses to the same program."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evermat.errors import Source, UnknownPrefixError, raise_all
from evermat.functions import FUNCTIONS, own_functions
from evermat.lang.lexer import KEYWORDS, LOCAL_NAME, PREFIX_NAME, RDF_TYPE, tokenise
from evermat.lang.parser import check_syntax
from evermat.lang.reader import COMPARISON_LEVEL, LEVELS
from evermat.lang.syntax import (
    ANONYMOUS,
    CONTRADICTION,
    FALSE,
    QUAD,
    TRIPLE,
    TRIPLE_ARITY,
    Aggregation,
    Assignment,
    Atom,
    BodyElement,
    Call,
    Condition,
    Expression,
    Negation,
    Program,
    Rule,
    Term,
    Variable,
    is_auxiliary,
)
from evermat.values import Constant, Kind, iri_text, quote, term_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evermat.lang.lexer import Token
    from evermat.lang.syntax import DataSink, DataSource, Declaration


_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_LOCAL = re.compile(LOCAL_NAME)
_PREFIX = re.compile(PREFIX_NAME)
_PLAIN_OPERAND = re.compile(r"\?\w+|-?[0-9][0-9.eE+\-]*")
_BRACKETED = {TRIPLE: TRIPLE_ARITY, QUAD: TRIPLE_ARITY + 1}
"""Predicates that are written in brackets, with their numbers of arguments."""


def rule_text(rule: Rule, prefixes: Mapping[str, str] | None = None) -> str:
    """Return a rule on one line, IRIs shortened by the prefixes.

    >>> from evermat.lang.parser import parse_rules
    >>> rule_text(*parse_rules("p(?x):-q(?x,a)."))
    'p(?x) :- q(?x, "a") .'
    """
    return Printer(prefixes or {}).rule(rule)


def program_text(program: Program) -> str:
    """Return the text of a whole program.

    The base comes last: all IRIs are written in full or with a prefix, so none of them
    must be resolved against it.
    """
    printer = Printer(dict(program.prefixes))
    prefixes = [
        f"@prefix {prefix}: {iri_text(iri)} ."
        for prefix, iri in program.prefixes
        if _is_prefix(prefix)
    ]
    base = [] if program.base is None else [f"@base {iri_text(program.base)} ."]
    blocks = [
        prefixes,
        [printer.declaration(declaration) for declaration in program.declarations],
        [printer.file("import", source) for source in program.sources],
        [f"{printer.atom(fact)} ." for fact in program.facts],
        [printer.rule(rule) for rule in program.rules],
        [printer.file("export", sink) for sink in program.sinks],
        base,
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


class Printer:
    """Prints the parts of programs, using prefixes."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._namespaces = sorted(
            (
                (iri, prefix)
                for prefix, iri in prefixes.items()
                if iri and _is_prefix(prefix)
            ),
            key=lambda pair: -len(pair[0]),
        )
        self._names: dict[str, str | None] = {}

    # -- names and constants

    def shortened(self, iri: str) -> str | None:
        """Return the IRI as a prefixed name, None if no prefix matches."""
        if iri not in self._names:
            self._names[iri] = self._shorten(iri)
        return self._names[iri]

    def _shorten(self, iri: str) -> str | None:
        for namespace, prefix in self._namespaces:
            if iri.startswith(namespace):
                local = iri[len(namespace) :]
                if _LOCAL.fullmatch(local):
                    return f"{prefix}:{local}"
        return None

    def predicate(self, name: str) -> str:
        """Return the text of a predicate's name."""
        if _PLAIN_NAME.fullmatch(name) and not _is_reserved(name):
            return name
        if is_auxiliary(name):
            return FALSE if CONTRADICTION.fullmatch(name) else name
        return self.shortened(name) or iri_text(name)

    def constant(self, constant: Constant) -> str:
        """Return the text of a constant."""
        if constant.kind is Kind.IRI:
            return self.shortened(constant.text) or iri_text(constant.text)
        if constant.kind is Kind.TYPED:
            datatype, _, lexical = constant.text.partition("\0")
            written = self.shortened(datatype) or iri_text(datatype)
            return f"{quote(lexical)}^^{written}"
        return term_text(constant.kind, constant.text)

    # -- expressions

    def expression(self, expression: Expression, level: int = COMPARISON_LEVEL) -> str:
        """Format an expression, parenthesised if it binds less tightly than `level`."""
        match expression:
            case Variable(name=name):
                return name if name == ANONYMOUS else f"?{name}"
            case Term(constant=constant):
                return self.constant(constant)
            case Call(function="-", arguments=(argument,)):
                inner = self.expression(argument)
                return f"-{inner}" if isinstance(argument, Variable) else f"-({inner})"
            case Call(function=sign, arguments=(left, right)) if sign in LEVELS:
                return self._operation(sign, left, right, level)
            case Call(function=name, arguments=arguments):
                return f"{name}({', '.join(map(self.expression, arguments))})"

    def _operation(
        self, sign: str, left: Expression, right: Expression, level: int
    ) -> str:
        own = LEVELS[sign]
        # `a - b - c` is `(a - b) - c`, but comparisons cannot be chained.
        left_level = own + 1 if own == COMPARISON_LEVEL else own
        before = self.expression(left, left_level)
        after = self.expression(right, own + 1)
        if sign == "%":
            before, after = _beside_percent(before), _beside_percent(after)
        text = f"{before} {sign} {after}"
        return f"({text})" if own < level else text

    # -- atoms and rules

    def atom(self, atom: Atom) -> str:
        """Return the text of an atom; triples are in square brackets."""
        if len(atom.arguments) == _BRACKETED.get(atom.predicate):
            parts = [*map(self.expression, atom.arguments)]
            if atom.arguments[1] == Term(RDF_TYPE):
                parts[1] = "a"
            return f"[{', '.join(parts)}]"
        name = self.predicate(atom.predicate)
        if not atom.arguments:
            return name
        return f"{name}({', '.join(map(self.expression, atom.arguments))})"

    def element(self, element: BodyElement) -> str:
        """Return the text of an element of a body."""
        match element:
            case Atom():
                return self.atom(element)
            case Negation(atom=atom):
                return f"not {self.atom(atom)}"
            case Condition(expression=expression):
                text = self.expression(expression)
                # Without the comparison, the text would be parsed as an atom.
                is_own = expression.function in own_functions()
                return f"{text} = true" if is_own else text
            case Assignment(variable=variable, expression=expression):
                value = self.expression(expression, COMPARISON_LEVEL + 1)
                return f"?{variable.name} = {value}"
            case Aggregation(target=target):
                return f"?{target.name} = {self.aggregate(element)}"

    def aggregate(self, element: Aggregation) -> str:
        """Return the text of an aggregate without its target."""
        values = ", ".join(map(self.expression, element.values))
        body = ", ".join(map(self.element, element.body))
        return f"{element.function}{{ {values} : {body} }}"

    def rule(self, rule: Rule) -> str:
        """Return a rule with its final dot; without a body, a fact."""
        heads = ", ".join(map(self.atom, rule.heads))
        if not rule.body:
            return f"{heads} ."
        return f"{heads} :- {', '.join(map(self.element, rule.body))} ."

    # -- directives

    def declaration(self, declaration: Declaration) -> str:
        """Return `@declare age(person: string, years: integer) .`."""
        types = declaration.column_types or ("any",) * declaration.arity
        columns = list(types)
        for index, name in enumerate(declaration.column_names):
            if _PREFIX.fullmatch(name) or _PLAIN_NAME.fullmatch(name):
                columns[index] = f"{name}: {types[index]}"
        listed = f"({', '.join(columns)})" if columns else ""
        return f"@declare {self.predicate(declaration.predicate)}{listed} ."

    def file(self, directive: str, file: DataSource | DataSink) -> str:
        """Return an `@import` or `@export` directive."""
        options = ", ".join(f"{name} = {quote(value)}" for name, value in file.options)
        braces = f" {{{options}}}" if options else ""
        name = self.predicate(file.predicate)
        return f"@{directive} {name} {quote(file.path)}{braces} ."


def _beside_percent(operand: str) -> str:
    """Parenthesise an operand unless it is plain: `%` might begin a comment."""
    is_plain = _PLAIN_OPERAND.fullmatch(operand) is not None
    return operand if is_plain else f"({operand})"


def _is_prefix(name: str) -> bool:
    """Return whether a prefix can be written; other languages allow dots."""
    return not name or _PREFIX.fullmatch(name) is not None


def _is_reserved(name: str) -> bool:
    function = FUNCTIONS.get(name)
    is_condition = function is not None and function.is_condition
    return name in KEYWORDS or name == ANONYMOUS or is_condition


# ------------------------------------------------------------ formatting of source text
#
# The tokens and comments are kept, with regular spaces and lines. A statement is on one
# line if it fits and has no comment inside; otherwise each body element has its own
# line. Constants are kept as written, and several blank lines become one.


LINE_LENGTH = 88
_INDENT = "    "
_OPENING = frozenset({"(", "[", "{"})
_CLOSING = frozenset({")", "]", "}"})
_GLUED_BEFORE = _CLOSING | {",", "^^"}
_GLUED_AFTER = frozenset({"(", "[", "{", "^^", "~"})
_NAMES = frozenset({"name", "prefixed", "iri"})
_OPERANDS = _NAMES | _CLOSING | {"variable", "blank", "string"}
_OPERANDS |= {"integer", "decimal", "double", "at"}


def format_source(text: str, *, name: str = "<rules>") -> str:
    """Return a program text in the standard layout.

    Files that the text includes are not read.

    Raises:
        ParseError: if the text is not a program.
    """
    source = Source(name, text)
    problems = [
        problem
        for problem in check_syntax(source)
        # An included file may declare the prefix.
        if not isinstance(problem, UnknownPrefixError)
    ]
    raise_all(problems)
    tokens, comments = tokenise(text)
    return _Layout(text, tokens, comments).text()


class _Layout:
    """The layout of statements and comments, one after the other."""

    def __init__(self, text: str, tokens: list[Token], comments: list[Token]) -> None:
        self._text = text
        self._pieces = sorted([*tokens[:-1], *comments], key=lambda piece: piece.start)
        self._lines: list[str] = []

    def text(self) -> str:
        """Return the whole layout."""
        end = 0
        for group in self._groups():
            gap = self._text.count("\n", end, group[0].start)
            if group[0].kind == "comment" and not gap and self._lines:
                self._lines[-1] += f"  {group[0].text.rstrip()}"
            else:
                if gap > 1 and self._lines:
                    self._lines.append("")
                self._lines += _statement_lines(group, self._text)
            end = group[-1].end
        return "\n".join(self._lines) + "\n" if self._lines else ""

    def _groups(self) -> Iterator[list[Token]]:
        """Yield the tokens of whole statements, and single comments between them."""
        group: list[Token] = []
        for piece in self._pieces:
            group.append(piece)
            is_comment_between = piece.kind == "comment" and len(group) == 1
            if piece.kind == "." or is_comment_between:
                yield group
                group = []


def _statement_lines(group: list[Token], text: str) -> list[str]:
    if all(piece.kind != "comment" for piece in group):
        line = "".join(space + piece.text for space, piece in _spaced(group))
        if len(line) <= LINE_LENGTH or group[0].kind == "at":
            return [line]
    if len(group) == 1:
        return [group[0].text.rstrip()]
    return _broken(group, text)


def _spaced(group: list[Token]) -> Iterator[tuple[str, Token]]:
    """Yield each token with the space before it."""
    previous: Token | None = None
    is_sign = False
    for token in group:
        glued = previous is None or is_sign or _is_glued(previous, token)
        if previous is not None and group[0].kind != "at":  # the braces of aggregates
            braces = token.kind == "}" or previous.kind == "{"
            glued = (glued and not braces) or token.kind == "{"
        yield "" if glued else " ", token
        if token.kind != "comment":
            after_operand = previous is not None and _ends_operand(previous)
            is_sign = token.kind in {"-", "+"} and not after_operand
            previous = token


def _is_glued(previous: Token, token: Token) -> bool:
    if token.kind in _GLUED_BEFORE or previous.kind in _GLUED_AFTER:
        return True
    if token.kind == "(":
        return previous.kind in _NAMES and previous.text != "not"
    return token.kind == "at" and previous.kind == "string"


def _ends_operand(token: Token) -> bool:
    return token.kind in _OPERANDS and token.text != "not"


def _broken(group: list[Token], text: str) -> list[str]:
    """Return a line for each element of the body; comments end their lines."""
    lines = [""]
    depth = 0
    end = group[0].start
    for space, piece in _spaced(group):
        if piece.kind == "comment":
            on_own_line = "\n" in text[end : piece.start]
            if on_own_line and lines[-1].strip():
                lines.append(_INDENT)
            elif not on_own_line and not lines[-1].strip() and len(lines) > 1:
                lines.pop()
            gap = "  " if lines[-1].strip() else ""
            lines[-1] += gap + piece.text.rstrip()
            lines.append(_INDENT)
        else:
            lines[-1] += piece.text if not lines[-1].strip() else space + piece.text
            depth += (piece.kind in _OPENING) - (piece.kind in _CLOSING)
            if depth == 0 and piece.kind in {":-", ","}:
                lines.append(_INDENT)
        end = piece.end
    return [line.rstrip() for line in lines if line.strip()]
