"""Reads the rule languages of VLog (`.dlog`) and RDFox.

VLog: one rule per line, with an optional final dot. `TE(s, p, o)` is the triple
relation. Names that begin with a capital letter are variables; `<…>` and `rdf:type` are
IRIs.

RDFox: `PREFIX a: <…>` (or `@prefix`), variables `?X`, a dot after each rule. Predicates
are IRIs, and atoms represent triples: `a:Person(?X)` is `[?X, rdf:type, a:Person]` and
`a:knows(?X, ?Y)` is `[?X, a:knows, ?Y]`. Square brackets may replace the parentheses.

Both may be mixed in one text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evermat.errors import ParseError, ProgramError, Source, raise_all
from evermat.lang.dialects.desugar import (
    AllOf,
    Formula,
    alternatives,
    count_alternatives,
)
from evermat.lang.dialects.scanner import END, Scanner
from evermat.lang.dialects.sparql_expressions import ExpressionReader
from evermat.lang.dialects.sparql_rl_conditions import formula_of, value_of
from evermat.lang.lexer import RDF_TYPE, Namespace, negated, number
from evermat.lang.reader import query_of_another_language
from evermat.lang.syntax import (
    ANONYMOUS,
    TRIPLE,
    Aggregation,
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
    element_variables,
    substitute_rule,
)
from evermat.values import Constant, Kind, language_string, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evermat.errors import Span
    from evermat.lang.lexer import Token

_TOKEN = re.compile(
    r"""
    (?P<blank>\s+)
  | (?P<comment>(?:\#|//|%)[^\n]*)
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<iri><[^<>\s]*>)
  | (?P<variable>\?\w+)
  | (?P<null>_:\w+)
  | (?P<at>@[A-Za-z][\w\-]*)
  | (?P<double>(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+)
  | (?P<decimal>\d*\.\d+)
  | (?P<integer>\d+)
  | (?P<prefixed>(?:[^\W\d_][\w\-.]*)?:(?!-)(?:[\w\-%:]|\.(?=\w))*)
  | (?P<name>[^\W\d]\w*)
  | (?P<sign>:-|<-|\^\^|&&|\|\||!=|<=|>=|[-+*/(),.\[\]~!=<>])
    """,
    re.VERBOSE,
)
_TRIPLES = "TE"
_COMPARISONS = frozenset({"=", "!", "!=", "<", "<=", ">", ">="})
_MOST_ALTERNATIVES = 1000
_CLOSING = {"(": ")", "[": "]"}


def read_dlog(text: str, *, name: str = "<rules>") -> Program:
    """Parse a text in the syntax of VLog or RDFox.

    Raises:
        ParseError: the text is in neither syntax.
        UnsupportedSyntaxError: it uses unsupported constructs.

    >>> print(read_dlog("RP0(X) :- TE(X,rdf:type,<http://a/C>)").rules[0])
    RP0(?X) :- [?X, a, <http://a/C>] .
    """
    source = Source(name, text)
    try:
        return _Reader(source).program()
    except ParseError as problem:
        # Queries of SPARQL begin with prefixes, like programs of RDFox.
        raise query_of_another_language(source) or problem from None


_AGGREGATES = {
    "COUNT": "count",
    "SUM": "sum",
    "MIN": "min",
    "MAX": "max",
    "AVG": "avg",
    "SAMPLE": "any",
}
"""Evermat's names of the aggregates of RDFox."""


class _Reader(ExpressionReader):
    """Parses one program."""

    def __init__(self, source: Source) -> None:
        self._tokens = Scanner(source, _TOKEN, "the languages of VLog and RDFox")
        self._namespace = Namespace()
        self._rules: list[Rule] = []
        self._facts: list[Atom] = []
        self._aggregate_count = 0

    def program(self) -> Program:
        """Parse the whole text."""
        problems: list[ProgramError] = []
        while self._tokens.current.kind != END:
            first = self._tokens.current
            try:
                self._statement(first)
            except ProgramError as problem:
                problems.append(problem)
                self._skip_line(first)
        raise_all(problems)
        return Program(
            rules=tuple(self._rules),
            facts=tuple(self._facts),
            prefixes=tuple(self._namespace.prefixes.items()),
        )

    def _skip_line(self, first: Token) -> None:
        """Continue at the next line after an error; each rule is on its own line."""
        tokens = self._tokens
        text = tokens.source.text
        end = text.find("\n", max(first.start, tokens.current.start))
        while tokens.current.kind != END and tokens.current.start < end:
            tokens.advance()
        if end < 0:
            while tokens.current.kind != END:
                tokens.advance()

    def _statement(self, first: Token) -> None:
        tokens = self._tokens
        if first.text.lower() in {"prefix", "@prefix"}:
            self._prefix()
            return
        heads = [self._atom()]
        while tokens.accept(","):
            heads.append(self._atom())
        if not tokens.accept(":-", "<-"):
            self._facts += heads
            self._end_of_statement("a fact")
            return
        parts = [*self._part()]
        while tokens.accept(","):
            parts += self._part()
        span = tokens.span_since(first)
        self._end_of_statement("a part of a rule's body")
        formula = AllOf(tuple(parts))
        if count_alternatives(formula) > _MOST_ALTERNATIVES:
            construct = f"a body with more than {_MOST_ALTERNATIVES} alternatives is"
            raise tokens.unsupported(construct, first)
        for body in alternatives(formula):
            self._rules.append(Rule(tuple(heads), body, span=span))

    def _end_of_statement(self, after: str) -> None:
        """Accept a dot, or the end of the line."""
        tokens = self._tokens
        if tokens.accept(".") or tokens.current.kind == END:
            return
        between = tokens.source.text[tokens.previous.end : tokens.current.start]
        if "\n" not in between:
            raise tokens.wrong(f"`,`, `.` or the end of the line after {after}")

    def _prefix(self) -> None:
        tokens = self._tokens
        tokens.advance()
        prefix = tokens.expect_kind("prefixed", "a prefix such as `ex:`")
        iri = tokens.expect_kind("iri", "an IRI such as `<http://example.org/>`")
        self._namespace.prefixes[prefix.text.removesuffix(":")] = iri.text[1:-1]
        tokens.accept(".")

    def _part(self) -> Sequence[Formula]:
        """A literal, the aggregates of an `AGGREGATE(…)`, a `FILTER` or a `BIND`."""
        tokens = self._tokens
        first = tokens.current
        if first.text == "AGGREGATE":
            return self._aggregates()
        if self._accept_word("FILTER"):
            if tokens.current.text != "(":
                raise tokens.wrong("`(` after `FILTER`")
            return [formula_of(self._unary(), truth=True)]
        if self._accept_word("BIND"):
            return self._bound(first)
        return [self._literal()]

    def _bound(self, first: Token) -> list[Formula]:
        """RDFox's `BIND(?x + 1 AS ?y)`."""
        tokens = self._tokens
        tokens.expect("(", "after `BIND`")
        guards: list[Formula] = []
        value = value_of(self._expression(), guards)
        tokens.expect("AS", "behind an expression")
        target = self._variable(tokens.expect_kind("variable", "a variable"))
        tokens.expect(")", "at the end of `BIND`")
        span = tokens.span_since(first)
        return [*guards, Condition(Call("=", (target, value), span), span)]

    def _aggregates(self) -> list[BodyElement]:
        """Parse RDFox's `AGGREGATE([?x, :p, ?v] ON ?x BIND SUM(?v) AS ?total)`.

        Variables that are not listed after `ON` are local to the aggregate, all
        solutions of its body count, and groups without solutions have no value.
        """
        tokens = self._tokens
        first = tokens.advance()
        tokens.expect("(", "after `AGGREGATE`")
        body = [self._literal()]
        while tokens.accept(","):
            body.append(self._literal())
        group: set[str] = set()
        if tokens.accept("ON"):
            while tokens.current.kind == "variable":
                group.add(tokens.advance().text[1:])
        self._aggregate_count += 1
        inside = {v.name for element in body for v in element_variables(element)}
        own: dict[str, Expression] = {
            name: Variable(f"{name}_in{self._aggregate_count}")
            for name in inside - group - {ANONYMOUS}
        }
        (plain,) = [substitute_rule(Rule((), tuple(body)), own).body]
        solution = [
            Variable(name) if name in group else own[name] for name in sorted(inside)
        ]
        span = tokens.span_since(first)
        found: list[BodyElement] = []
        while tokens.accept("BIND"):
            function, values = self._aggregated(own, solution)
            tokens.expect("AS", "behind what is aggregated")
            target = tokens.expect_kind("variable", "a variable behind `AS`")
            name = Variable(target.text[1:], tokens.span(target))
            found.append(Aggregation(name, function, tuple(values), plain, span))
        tokens.expect(")", "at the end of `AGGREGATE`")
        # Only groups with solutions have a value of `any`.
        some = Variable(f"some_in{self._aggregate_count}")
        return [*found, Aggregation(some, "any", (solution[0],), plain, span)]

    def _aggregated(
        self, own: dict[str, Expression], solution: list[Expression]
    ) -> tuple[str, list[Expression]]:
        """Parse `SUM(?v)`; return the function and the tuples that it aggregates."""
        tokens = self._tokens
        name = tokens.advance()
        function = _AGGREGATES.get(name.text)
        if function is None:
            raise tokens.unsupported(f"the aggregate `{name.text}` is", name)
        tokens.expect("(", f"after `{name.text}`")
        is_distinct = tokens.accept("DISTINCT") is not None
        value = tokens.expect_kind("variable", "a variable").text[1:]
        tokens.expect(")", f"after the argument of `{name.text}`")
        chosen = own.get(value, Variable(value))
        return function, [chosen] if is_distinct else [chosen, *solution]

    def _literal(self) -> BodyElement:
        tokens = self._tokens
        first = tokens.current
        is_word = first.text.lower() == "not" and tokens.following.text not in _CLOSING
        if first.text == "~" or is_word:
            tokens.advance()
            return Negation(self._atom(), span=tokens.span_since(first))
        return self._atom()

    def _atom(self) -> Atom:
        tokens = self._tokens
        name = tokens.current
        if name.text == "[":
            return self._triple()
        if tokens.following.text in _COMPARISONS:
            raise tokens.unsupported("comparisons are", tokens.following)
        if name.kind not in {"name", "prefixed", "iri"}:
            raise tokens.wrong("a predicate")
        if name.text in {"AGGREGATE", "EXISTS", "SKOLEM"}:
            raise tokens.unsupported(f"`{name.text}` is", name)
        tokens.advance()
        arguments = self._arguments(name)
        span = tokens.span_since(name)
        if name.kind == "name":
            predicate = TRIPLE if name.text == _TRIPLES else name.text
            place = tokens.span(name)
            return Atom(predicate, arguments, span=span, predicate_span=place)
        return self._rdf_atom(name, arguments, span)

    def _triple(self) -> Atom:
        """Parse RDFox's `[?X, rdf:type, a:Person]`."""
        first = self._tokens.current
        arguments = self._arguments(first)
        return Atom(TRIPLE, arguments, span=self._tokens.span_since(first))

    def _arguments(self, name: Token) -> tuple[Variable | Term, ...]:
        tokens = self._tokens
        opening = tokens.current
        if opening.text not in _CLOSING:
            raise tokens.wrong(f"`(` after `{name.text}`")
        tokens.advance()
        arguments: list[Variable | Term] = []
        while not tokens.accept(_CLOSING[opening.text]):
            if arguments:
                tokens.expect(",", "between arguments")
            arguments.append(self._argument())
        return tuple(arguments)

    def _rdf_atom(
        self, name: Token, arguments: tuple[Variable | Term, ...], span: Span
    ) -> Atom:
        place = self._tokens.span(name)
        iri = Term(Constant(Kind.IRI, self._iri(name)), span=place)
        match len(arguments):
            case 1:
                kind = Term(RDF_TYPE, span=place)
                arguments = (arguments[0], kind, iri)
            case 2:
                arguments = (arguments[0], iri, arguments[1])
            case arity:
                message = f"an IRI as predicate has 1 or 2 arguments, not {arity}"
                raise self._tokens.error(message, name)
        return Atom(TRIPLE, arguments, span=span, predicate_span=place)

    def _argument(self) -> Variable | Term:
        tokens = self._tokens
        token = tokens.current
        span = tokens.span(token)
        if token.kind == "variable":
            tokens.advance()
            return Variable(token.text[1:], span=span)
        if token.kind == "name" and (token.text[0].isupper() or token.text == "_"):
            tokens.advance()
            return Variable(token.text, span=span)
        return self._constant()

    def _variable(self, token: Token) -> Variable:
        return Variable(token.text[1:], self._tokens.span(token))

    def _constant(self) -> Term:
        tokens = self._tokens
        first = tokens.current
        sign = tokens.accept("-")
        token = tokens.advance()
        match token.kind:
            case "integer" | "decimal" | "double":
                found = number(token) if sign is None else negated(number(token))
            case "iri" | "prefixed" if sign is None:
                found = Constant(Kind.IRI, self._iri(token))
            case "name" if sign is None:
                found = Constant(Kind.STRING, token.text)
            case "null" if sign is None:
                found = Constant(Kind.BLANK, token.text[2:])
            case "string" if sign is None:
                found = self._literal_of(token)
            case _:
                tokens.position -= 1
                raise tokens.wrong("a variable or a constant")
        return Term(found, tokens.span_since(first))

    def _literal_of(self, token: Token) -> Constant:
        tokens = self._tokens
        text = tokens.string(token)
        tag = tokens.accept_kind("at")
        if tag is not None:
            return language_string(text, tag.text[1:])
        if tokens.accept("^^"):
            return literal(text, self._iri(tokens.advance()))
        return Constant(Kind.STRING, text)

    def _iri(self, token: Token) -> str:
        if token.kind == "iri":
            return token.text[1:-1]
        iri = self._namespace.expand(token.text)
        if iri is None:
            raise self._tokens.unknown_prefix(token, "PREFIX {}: <http://example.org/>")
        return iri
