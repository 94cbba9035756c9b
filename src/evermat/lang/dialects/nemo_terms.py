"""Terms, expressions and atoms in the syntax of Nemo and Rulewerk.

Names are IRIs: a bare `alice` is the relative IRI `alice`, `ex:alice` is resolved by
its prefix, and with `@base` bare names of constants and predicates are put behind it.

`<` directly behind a word or `)` is a comparison, not the beginning of an IRI.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evermat.lang.dialects.scanner import Scanner
from evermat.lang.syntax import (
    ANONYMOUS,
    Atom,
    Call,
    Expression,
    Term,
    Variable,
)
from evermat.lang.terms import Namespace, negated
from evermat.values import (
    NUMERIC_KINDS,
    XSD,
    Constant,
    Kind,
    boolean_constant,
    double_constant,
    integer_constant,
    language_string,
    literal,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.errors import Source
    from evermat.lang.lexer import Token

TOKEN = re.compile(
    r"""
    (?P<blank>\s+)
  | (?P<comment>%[^\n]*|/\*(?:.|\n)*?\*/)
  | (?P<fstring>f(?:\"\"\"(?:.|\n)*?\"\"\"|"[^"]*"))
  | (?P<string>\"\"\"(?:.|\n)*?\"\"\"|"(?:[^"\\]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<iri>(?:(?<![\w)])|(?<=@base))<[^<>"{}|^`\\\s]*>)
  | (?P<null>_:\w+)
  | (?P<variable>\?[^\W\d]\w*)
  | (?P<existential>![^\W\d]\w*)
  | (?P<parameter>\$[^\W\d]\w*)
  | (?P<directive>@[A-Za-z][\w\-]*)
  | (?P<encoded>0x[0-9a-fA-F]+|0o[0-7]+|0b[01]+)
  | (?P<double>(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+[fd]?|[fd]\b))
  | (?P<decimal>\d*\.\d+)
  | (?P<integer>\d+)
  | (?P<prefixed>(?:[^\W\d_][\w\-]*)?:(?!-)(?:[\w\-%]|\.(?=\w))*)
  | (?P<name>[^\W\d](?:\w|%[0-9a-fA-F]{2})*)
  | (?P<sign>:-|<-|!=|<=|>=|\^\^|\#\[|[-+*/=<>(){}\[\],.~\#!_:|])
    """,
    re.VERBOSE,
)
LANGUAGE = "Nemo's language"
FUNCTIONS = {
    "str": "str",
    "concat": "concat",
    "strlen": "length",
    "substr": "substr",
    "substring": "substr",
    "contains": "contains",
    "regex": "regex",
    "strstarts": "starts_with",
    "strends": "ends_with",
    "ucase": "upper",
    "lcase": "lower",
    "int": "int",
    "double": "double",
    "float": "double",
    "abs": "abs",
    "min": "min",
    "max": "max",
    "rem": "%",
}
_REPEATED = {"sum": "+", "prod": "*"}


class TermReader:
    """Reads terms; knows the prefixes, the base and the parameters seen so far."""

    def __init__(self, source: Source, parameters: dict[str, Constant]) -> None:
        self.tokens = Scanner(source, TOKEN, LANGUAGE)
        self.namespace = Namespace()
        self.parameters = parameters

    # ------------------------------------------------------------------- names

    def expand(self, token: Token) -> str:
        """The IRI of a prefixed name."""
        iri = self.namespace.expand(token.text)
        if iri is None:
            raise self.tokens.unknown_prefix(
                token, "@prefix {}: <http://example.org/> ."
            )
        return iri

    def iri(self) -> str:
        """A name in any of its three spellings, as an IRI."""
        token = self.tokens.current
        match token.kind:
            case "iri":
                self.tokens.advance()
                return self.namespace.resolve(token.text[1:-1])
            case "prefixed":
                self.tokens.advance()
                return self.expand(token)
            case "name":
                self.tokens.advance()
                return self.namespace.resolve(token.text)
            case _:
                raise self.tokens.wrong("a name or an IRI")

    # ------------------------------------------------------------------- atoms

    def atom(self) -> Atom:
        """A predicate with its arguments."""
        tokens = self.tokens
        name = tokens.current
        predicate = self.iri()
        predicate_span = tokens.span(name)
        arguments = self._arguments(name)
        span = tokens.span_since(name)
        return Atom(predicate, arguments, span=span, predicate_span=predicate_span)

    def _arguments(self, name: Token) -> tuple[Expression, ...]:
        tokens = self.tokens
        tokens.expect("(", f"after `{name.text}`")
        arguments: list[Expression] = []
        while not tokens.accept(")"):
            if arguments:
                tokens.expect(",", f"or `)` after an argument of `{name.text}`")
            arguments.append(self.expression())
        return tuple(arguments)

    # ------------------------------------------------------------- expressions

    def expression(self) -> Expression:
        """Sums of products of terms."""
        with self.tokens.nested(self.tokens.current):
            return self.tokens.operations(("+", "-"), self._product)

    def _product(self) -> Expression:
        return self.tokens.operations(("*", "/"), self._unary)

    def _unary(self) -> Expression:
        tokens = self.tokens
        sign = tokens.accept("-", "+")
        if sign is None:
            return self._term()
        with tokens.nested(sign):
            operand = self._unary()
        if sign.text == "+":
            return operand
        span = tokens.span_since(sign)
        if isinstance(operand, Term) and operand.constant.kind in NUMERIC_KINDS:
            return Term(negated(operand.constant), span=span)
        return Call("-", (operand,), span=span)

    def _term(self) -> Expression:
        tokens = self.tokens
        token = tokens.current
        span = tokens.span(token)
        match token.kind:
            case "variable":
                tokens.advance()
                return Variable(token.text[1:], span=span)
            case "existential":
                return self.existential()
            case "parameter":
                return Term(self._parameter(), span=span)
            case "fstring":
                return self._format_string()
            case "name" if token.text == ANONYMOUS:
                tokens.advance()
                return Variable(ANONYMOUS, span=span)
            case "name" if tokens.following.text in {"(", "{"}:
                return self._call()
            case "sign":
                return self._bracketed()
            case _:
                constant = self.constant()
                return Term(constant, span=tokens.span_since(token))

    def existential(self) -> Expression:
        """A variable `!x`; only heads may have one."""
        token = self.tokens.current
        construct = "an existential variable outside a head is"
        raise self.tokens.unsupported(construct, token)

    def _parameter(self) -> Constant:
        token = self.tokens.advance()
        value = self.parameters.get(token.text[1:])
        if value is None:
            hint = f'add `@parameter {token.text} = "…" .`'
            message = f"the parameter `{token.text}` has no value"
            raise self.tokens.error(message, token, hint=hint)
        return value

    def _bracketed(self) -> Expression:
        tokens = self.tokens
        opening = tokens.current
        if opening.text == "#":
            hint = "aggregate the results with Arrow, Polars or pandas"
            raise tokens.unsupported("aggregates are", tokens.following, hint=hint)
        if opening.text in {"{", "["}:
            raise tokens.unsupported("maps and lists are", opening)
        if not tokens.accept("("):
            raise tokens.wrong("a term")
        inner = self.expression()
        if tokens.current.text == ",":
            raise tokens.unsupported("tuples are", opening)
        tokens.expect(")", "after an expression")
        return inner

    def _call(self) -> Expression:
        tokens = self.tokens
        name = tokens.current
        function = FUNCTIONS.get(name.text.lower())
        repeated = _REPEATED.get(name.text.lower())
        if tokens.following.text == "{":
            raise tokens.unsupported("maps are", name)
        if function is None and repeated is None:
            hint = "the functions are " + ", ".join(map(str.upper, sorted(FUNCTIONS)))
            construct = f"the function `{name.text}` is"
            raise tokens.unsupported(construct, name, hint=hint)
        tokens.advance()
        arguments = self._arguments(name)
        span = tokens.span_since(name)
        if repeated is None:
            return Call(function or name.text, arguments, span=span)
        if not arguments:
            raise tokens.error(f"`{name.text}` needs an argument", name)
        total = arguments[0]
        for argument in arguments[1:]:
            tokens.count_operation(name)
            total = Call(repeated, (total, argument), span=span)
        return total

    # --------------------------------------------------------------- constants

    def constant(self) -> Constant:
        """A name, a number, a literal, a truth value or a null."""
        tokens = self.tokens
        token = tokens.current
        if token.kind == "name" and token.text in {"true", "false"}:
            tokens.advance()
            return boolean_constant(value=token.text == "true")
        if token.kind in {"iri", "prefixed", "name"}:
            return Constant(Kind.IRI, self.iri())
        if token.kind == "string":
            return self._literal()
        read = _PLAIN.get(token.kind)
        if read is None:
            raise tokens.wrong("a term")
        tokens.advance()
        return read(token.text)

    def _literal(self) -> Constant:
        tokens = self.tokens
        text = tokens.string(tokens.advance())
        tag = tokens.current
        if tag.kind == "directive" and tag.start == tokens.previous.end:
            tokens.advance()
            return language_string(text, tag.text[1:])
        if tokens.accept("^^"):
            return literal(text, self.iri())
        return Constant(Kind.STRING, text)

    def _format_string(self) -> Expression:
        """`f"a{?x}b"`: the pieces put together; `{{` and `}}` are braces."""
        tokens = self.tokens
        token = tokens.advance()
        width = 4 if token.text.startswith('f"""') else 2
        position, end = token.start + width, token.end - width + 1
        parts: list[Expression] = []
        text = ""
        while position < end:
            two = tokens.source.text[position : min(position + 2, end)]
            if two in {"{{", "}}"}:
                text += two[0]
                position += 2
            elif two.startswith("{"):
                parts.append(Term(Constant(Kind.STRING, text)))
                text = ""
                position, inner = self._inserted(token, position + 1, end)
                parts.append(inner)
            else:
                text += two[0]
                position += 1
        parts.append(Term(Constant(Kind.STRING, text)))
        kept = tuple(part for part in parts if not _is_empty_string(part))
        return Call("concat", kept or (parts[0],), span=tokens.span(token))

    def _inserted(self, token: Token, start: int, end: int) -> tuple[int, Expression]:
        """An expression in braces, and the offset behind the closing one."""
        tokens = self.tokens
        close = tokens.source.text.find("}", start, end)
        if close < 0:
            raise tokens.error("a `{` in a format string is not closed", token)
        outer = self.tokens
        self.tokens = Scanner(outer.source, TOKEN, LANGUAGE, start=start, end=close)
        try:
            inner = self.expression()
            self.tokens.expect("", "after an expression in a format string")
        finally:
            self.tokens = outer
        return close + 1, inner


def _is_empty_string(part: Expression) -> bool:
    return isinstance(part, Term) and part.constant == Constant(Kind.STRING, "")


_PLAIN: dict[str, Callable[[str], Constant]] = {
    "integer": lambda text: literal(text, XSD + "integer"),
    "encoded": lambda text: integer_constant(int(text, 0)),
    "decimal": lambda text: literal(text, XSD + "decimal"),
    "double": lambda text: double_constant(float(text.rstrip("fd"))),
    "null": lambda text: Constant(Kind.BLANK, text[2:]),
}
