"""Token readers: names, constants and expressions, one token after the other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evermat.errors import (
    Label,
    ParseError,
    ProgramError,
    ReservedNameError,
    Source,
    Span,
    UnknownPrefixError,
)
from evermat.errors.wording import did_you_mean
from evermat.functions import ARITHMETIC, COMPARISONS, FUNCTIONS
from evermat.lang.lexer import (
    KEYWORDS,
    EscapeError,
    Namespace,
    Token,
    bare_constant,
    negated,
    number,
    string_content,
    tokenise,
    unescape,
)
from evermat.lang.syntax import (
    AGGREGATE_FUNCTIONS,
    Call,
    Expression,
    Term,
    Variable,
)
from evermat.runtime.input_limits import ProgramSizeError, input_limits
from evermat.values import Constant, Kind, language_string, literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


# ------------------------------------------- syntax of other languages, for help texts


FOREIGN_SIGNS = {
    "!": "negation is written `not`, and inequality `!=`",
    ";": "separate body atoms with a comma; write one rule for each alternative",
    "|": "write one rule for each alternative",
    "&": "separate body atoms with a comma",
    "?": "a variable needs a name, such as `?x`; an anonymous one is written `_`",
    "$": "variables are written `?x`",
}
"""Single characters used by other languages."""

_EQUAL = "equality is written `=`"
_UNEQUAL = "inequality is written `!=`"
_NOT = "negation is written `not`"
_AND = "separate body atoms with a comma"
_OR = "write one rule for each alternative"
_IMPLIES = "the sign between head and body is `:-`"

FOREIGN_OPERATORS = {
    "==": _EQUAL,
    "===": _EQUAL,
    "=:=": _EQUAL,
    ":=": "a variable gets its value with `=`, as in `?z = ?x + 1`",
    "<>": _UNEQUAL,
    "!==": _UNEQUAL,
    "=!": _UNEQUAL,
    "=!=": _UNEQUAL,
    "\\=": _UNEQUAL,
    "\\==": _UNEQUAL,
    "=\\=": _UNEQUAL,
    "≠": _UNEQUAL,
    "=<": "less or equal is written `<=`",
    "≤": "less or equal is written `<=`",
    "=>": "greater or equal is written `>=`",
    "≥": "greater or equal is written `>=`",
    "=~": 'use `regex(?text, "pattern")`',
    "\\+": _NOT,
    "¬": _NOT,
    "&&": _AND,
    "/\\": _AND,
    "||": _OR,
    "\\/": _OR,
    "**": "there is no power; multiply",
    "?-": "a query is a body by itself: leave `?-` out",
}
"""Operators of other languages, of one or several characters."""

FOREIGN_WORDS = {
    "in": "write one rule for each value; or make the values facts, as in "
    "`wanted(1) . wanted(2) .`, and add `wanted(?x)` to the body",
    "is": "a variable gets its value with `=`, as in `?z = ?x + 1`",
    "and": _AND,
    "or": _OR,
    "xor": _OR,
    "mod": "the remainder is written `%`",
    "div": "a quotient is written `/`",
    "like": "use `contains`, `starts_with`, `ends_with` or `regex`",
    "between": "write two comparisons, as in `?x >= 1, ?x <= 9`",
}
"""Infix words of other languages."""

FOREIGN_ARROWS = dict.fromkeys(
    ("<", "<=", "-", "=", ":", "←", "⇐", "if", "where"), _IMPLIES
)
"""Tokens that begin the separator of head and body in other languages."""

FOREIGN_FUNCTIONS = {
    "cat": "concat",
    "float": "double",
    "integer": "int",
    "lang": "language",
    "lcase": "lower",
    "len": "length",
    "match": "regex",
    "string": "str",
    "strends": "ends_with",
    "strlen": "length",
    "strstarts": "starts_with",
    "substring": "substr",
    "to_lower": "lower",
    "to_number": "int",
    "to_string": "str",
    "to_upper": "upper",
    "ucase": "upper",
}
"""Functions of other languages, and their names here."""

FOREIGN_AGGREGATES = {
    "average": "avg",
    "collect": "list",
    "group_concat": "list",
    "mean": "avg",
    "sample": "any",
    "total": "sum",
    **{name: name for name in AGGREGATE_FUNCTIONS},
}
"""Aggregates of other languages, and their names here."""

_COMMENTS = r"(?:\s|\#[^\n]*\n)*"
_SPARQL = re.compile(
    rf"{_COMMENTS}(?:(?:PREFIX\s+[\w\-.]*:|BASE)\s*<[^>]*>{_COMMENTS})*"
    r"(?P<word>SELECT|ASK|CONSTRUCT|DESCRIBE|INSERT|DELETE|WITH)"
    r"\s*(?:[{*?$<]|\(\s*\w+\s*\(|(?:DISTINCT|REDUCED|WHERE|DATA|FROM)\b)",
    re.IGNORECASE,
)
_SQL = re.compile(
    r"(?:\s|--[^\n]*\n)*(?P<word>SELECT\s[\w\s.,*\"]+?\sFROM|INSERT\s+INTO|CREATE\s+TABLE)"
    r"\s+\w",
    re.IGNORECASE,
)


def query_of_another_language(source: Source) -> ParseError | None:
    """Return the mistake of a text that is a query in SPARQL or SQL, if it is one."""
    form = (
        "a query is a conjunction of atoms, such as "
        "`[?x, a, :Person], [?x, :age, ?n], ?n > 17` or `edge(?x, ?y)`; "
        "a rule is `adult(?x) :- [?x, :age, ?n], ?n > 17 .`"
    )
    sparql = f"`kb.sparql(...)` and `evermat query --sparql` answer SPARQL; here {form}"
    for language, pattern, advice in (("SQL", _SQL, form), ("SPARQL", _SPARQL, sparql)):
        found = pattern.match(source.text)
        if found is not None:
            place = Span(source, found.start("word"), found.end("word"))
            return ParseError(
                f"the text is a query in {language}, which is not understood here",
                labels=(Label(place),),
                help=advice,
            )
    return None


COMPARISON_LEVEL = 1
LEVELS = {
    **dict.fromkeys(COMPARISONS, COMPARISON_LEVEL),
    "+": 2,
    "-": 2,
    "*": 3,
    "/": 3,
    "%": 3,
}
"""The precedence of operators; comparisons have the lowest."""

OPERATORS = ARITHMETIC | COMPARISONS
NAME_KINDS = frozenset({"name", "prefixed", "iri"})
NUMBER_KINDS = frozenset({"integer", "decimal", "double"})

_MAXIMUM_OPERATIONS = 150
"""The most operations in one body element or head; deeper trees exhaust the stack."""

_MANY = 1000
"""The number of arguments up to which the limit is not looked up."""

_ENDS = frozenset({",", ")", "]"})
"""The tokens that can follow an argument."""

_LANGUAGE = re.compile(r"@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--(?:ltr|rtl))?")


class TokenReader:
    """A position in the tokens of a text.

    Attributes:
        kind: the kind of the current token.
        problems: receives mistakes after which reading continues.
        parameters: the values of `$name`; None if there cannot be any.
        used_parameters: the names among them that were read.
    """

    def __init__(
        self, source: Source, namespace: Namespace, problems: list[ProgramError]
    ) -> None:
        self.source = source
        self.namespace = namespace
        self.problems = problems
        self.tokens, self.comments = tokenise(source.text)
        self.position = 0
        self.kind = self.tokens[0].kind
        self.parameters: Mapping[str, Constant] | None = None
        self.used_parameters: set[str] = set()
        self._constants: dict[str, Constant] = {}
        self._operations = 0

    @property
    def token(self) -> Token:
        """The current token."""
        return self.tokens[self.position]

    def advance(self) -> Token:
        """Advance to the next token; return the current one."""
        token = self.tokens[self.position]
        if token.kind != "end":
            self.position += 1
            self.kind = self.tokens[self.position].kind
        return token

    def go_to(self, position: int) -> None:
        """Continue at another token."""
        self.position = position
        self.kind = self.tokens[position].kind

    def next_kind(self) -> str:
        """Return the kind of the next token."""
        following = min(self.position + 1, len(self.tokens) - 1)
        return self.tokens[following].kind

    def expect(self, kind: str, expected: str, *, help: str | None = None) -> Token:  # noqa: A002  as in errors
        """Consume a token of a kind.

        Raises:
            ParseError: if the current token is of another kind.
        """
        if self.kind != kind:
            raise self.unexpected(expected, help=help)
        return self.advance()

    def span(self, start: int, end: int) -> Span:
        """Return a part of the text, by offsets."""
        return Span(self.source, start, end)

    def span_of(self, token: Token) -> Span:
        """Return the place of a token."""
        return Span(self.source, token.start, token.end)

    def span_since(self, start: int) -> Span:
        """Return the span from an offset to the end of the previous token."""
        return Span(self.source, start, self.tokens[self.position - 1].end)

    def error(
        self,
        message: str,
        token: Token,
        *,
        help: str | None = None,  # noqa: A002  as in errors
    ) -> ParseError:
        """Return a mistake at a token."""
        return ParseError(message, labels=(Label(self.span_of(token)),), help=help)

    def at_open_string(self) -> bool:
        """Return whether the current token is an unterminated string."""
        return self.kind == "unknown" and self.token.text[0] in "\"'"

    def unexpected(self, expected: str, *, help: str | None = None) -> ParseError:  # noqa: A002  as in errors
        """Return the mistake of a token that cannot follow here."""
        token = self.token
        if self.at_open_string():
            return self.error(
                "the string is not closed",
                token,
                help=f"end the string with {token.text[0]} on the same line, or begin "
                f"and end it with {token.text[0] * 3}",
            )
        foreign = self.foreign_operator()
        if foreign is not None:
            return foreign
        found = "the end of the text" if token.kind == "end" else f"`{token.text}`"
        advice = help or FOREIGN_SIGNS.get(token.text)
        return self.error(f"expected {expected}, found {found}", token, help=advice)

    def foreign_operator(self) -> ParseError | None:
        """Return the mistake of an operator of other languages, if there is one here.

        It may consist of several tokens, such as `=` and `=`.
        """
        if not self._is_sign(self.position):
            return None
        first = last = self.position
        while first and self._is_sign(first - 1) and self._touches(first - 1):
            first -= 1
        while self._is_sign(last + 1) and self._touches(last):
            last += 1
        start, end = self.tokens[first].start, self.tokens[last].end
        text = self.source.text[start:end]
        advice = FOREIGN_OPERATORS.get(text)
        if advice is None:
            return None
        return ParseError(
            f"there is no operator `{text}`",
            labels=(Label(self.span(start, end)),),
            help=advice,
        )

    def _is_sign(self, position: int) -> bool:
        """Return whether a token is a sign, but no bracket or separator."""
        token = self.tokens[position]
        return token.kind != "end" and all(sign in _SIGNS for sign in token.text)

    def _touches(self, position: int) -> bool:
        """Return whether the next token follows without a blank."""
        return self.tokens[position].end == self.tokens[position + 1].start


_SIGNS = frozenset("!&*+-/:<=>?\\^|~¬≠≤≥")


class ExpressionReader(TokenReader):
    """Reads terms, calls and operators."""

    def begin_element(self) -> None:
        """Reset the number of operations for a body element or a head."""
        self._operations = 0

    def expression(self, level: int, left: Expression | None = None) -> Expression:
        """Read operands joined by operators that bind at least as tightly as `level`.

        Args:
            level: see `LEVELS`.
            left: the first operand, if it has been read already.
        """
        if left is None:
            left = self.operand()
        while LEVELS.get(self.kind, 0) >= level:
            sign = self.advance()
            self._count_operation(sign)
            self._refuse_foreign_operator()
            right = self.expression(LEVELS[sign.kind] + 1)
            left = Call(sign.kind, (left, right), _around(self.source, left, right))
            if sign.kind in COMPARISONS and self.kind in COMPARISONS:
                raise self.error(
                    "comparisons cannot be chained",
                    self.token,
                    help="write two comparisons, or put one in parentheses",
                )
        return left

    def _refuse_foreign_operator(self) -> None:
        """Refuse `==` and others whose beginning has been read as an operator."""
        # `?x <-1` and `?x ++1` are comparisons and sums with signed numbers.
        if self._is_sign(self.position) and self.kind not in {"-", "+"}:
            problem = self.foreign_operator()
            if problem is not None:
                raise problem

    def _count_operation(self, token: Token) -> None:
        self._operations += 1
        if self._operations > _MAXIMUM_OPERATIONS:
            raise self.error(
                f"more than {_MAXIMUM_OPERATIONS} operations in one expression",
                token,
                help="give names to its parts: `?part = ...`",
            )

    def arguments(self, what: str) -> tuple[Expression, ...]:
        """Read `(`, expressions and `)`."""
        opening = self.advance()
        if self.kind == ")":
            self.advance()
            return ()
        arguments = [self.argument()]
        while self.kind == ",":
            self.advance()
            arguments.append(self.argument())
        if len(arguments) > _MANY and len(arguments) > input_limits().columns:
            message = f"{what} has {len(arguments):,} arguments"
            label = Label(self.span_of(opening))
            raise ProgramSizeError(message, "columns", labels=(label,))
        if self.kind != ")":
            problem = self.unexpected(f"`,` or `)` in the arguments of {what}")
            problem.labels += (Label(self.span_of(opening), "opened here"),)
            raise problem
        self.advance()
        return tuple(arguments)

    def argument(self) -> Expression:
        """Read an expression as the argument of an atom or a call."""
        token = self.tokens[self.position]
        # Most arguments are a single variable; this saves three calls for each.
        if token.kind == "variable" and self.tokens[self.position + 1].kind in _ENDS:
            self.advance()
            return Variable(token.text[1:], Span(self.source, token.start, token.end))
        return self.expression(COMPARISON_LEVEL)

    def at_operand(self) -> bool:
        """Return whether an operand can begin with the current token."""
        return self.kind in _OPERANDS

    def operand(self) -> Expression:
        """Read a term, a call, or an expression in parentheses."""
        token = self.tokens[self.position]
        read = _OPERANDS.get(token.kind)
        if read is None:
            raise self.unexpected("a term")
        return read(self, token)

    # -- one method for each kind of operand

    def variable(self, token: Token) -> Expression:
        """Read `?x`."""
        self.advance()
        return Variable(token.text[1:], self.span_of(token))

    def parameter(self, token: Token) -> Term:
        """Read `$x` as its value."""
        name = token.text[1:]
        if self.parameters is None or name not in self.parameters:
            raise self._no_value(token, name)
        self.advance()
        self.used_parameters.add(name)
        return Term(self.parameters[name], self.span_of(token))

    def _no_value(self, token: Token, name: str) -> ParseError:
        if self.parameters is None:
            advice = f"write `?{name}` for a variable; parameters are for `kb.query`"
        else:
            advice = f"give it one, as in `kb.query(…, {name}=…)`, or write `?{name}` "
            advice += "for a variable"
        return self.error(f"`{token.text}` has no value", token, help=advice)

    def number(self, token: Token) -> Term:
        """Read `1`, `1.5` or `1e3`."""
        self.advance()
        constant = self._constants.get(token.text)
        if constant is None:
            constant = self._constants[token.text] = number(token)
        return Term(constant, self.span_of(token))

    def named(self, token: Token) -> Expression:
        """Read a bare or prefixed name: `_`, a call or a constant."""
        following = self.tokens[self.position + 1].kind
        if following == "(":
            return self.call(token)
        if following == "{":
            return self.aggregate(token)
        self.advance()
        span = self.span_of(token)
        if token.text == "_":
            return Variable("_", span)
        constant = self._constants.get(token.text)
        if constant is None:
            constant = self._constants[token.text] = self._name_constant(token)
        return Term(constant, span)

    def _name_constant(self, token: Token) -> Constant:
        if token.kind == "prefixed":
            return Constant(Kind.IRI, self.expand(token))
        constant = bare_constant(token.text)
        if constant is None:
            raise self._no_constant(token)
        return constant

    def _no_constant(self, token: Token) -> ParseError:
        if token.text in KEYWORDS:
            return self.error(f"`{token.text}` cannot stand here", token)
        return self.error(
            f"`{token.text}` is neither a variable nor a constant",
            token,
            help=f'write `?{token.text}` for a variable, `"{token.text}"` for a string',
        )

    def iri(self, token: Token) -> Expression:
        """Read `<http://example.org/a>`."""
        self.advance()
        return Term(Constant(Kind.IRI, self.iri_text(token)), self.span_of(token))

    def blank(self, token: Token) -> Expression:
        """Read `_:b`."""
        self.advance()
        return Term(Constant(Kind.BLANK, token.text[2:]), self.span_of(token))

    def string(self, token: Token) -> Expression:
        """Read a string, with its datatype or language tag, if any."""
        self.advance()
        text = self.string_text(token)
        following = self.token
        if following.kind == "^^":
            self.advance()
            constant = literal(text, self._datatype())
        elif following.kind == "at" and following.start == token.end:
            self.advance()
            if _LANGUAGE.fullmatch(following.text) is None:
                raise self.error(f"`{following.text}` is no language tag", following)
            constant = language_string(text, following.text[1:])
        else:
            constant = Constant(Kind.STRING, text)
        return Term(constant, self.span_since(token.start))

    def _datatype(self) -> str:
        token = self.token
        if token.kind == "iri":
            self.advance()
            return self.iri_text(token)
        self.expect("prefixed", "a datatype", help='as in `"2024-01-31"^^xsd:date`')
        return self.expand(token)

    def sign(self, token: Token) -> Expression:
        """Read `-` or `+` before an operand."""
        self.advance()
        following = self.token
        if following.kind in NUMBER_KINDS:
            term = self.number(following)
            constant = term.constant if token.kind == "+" else negated(term.constant)
            return Term(constant, self.span_since(token.start))
        if token.kind == "+":
            raise self.unexpected("a number")
        self._count_operation(token)
        argument = self.operand()
        return Call("-", (argument,), self.span_since(token.start))

    def parenthesised(self, token: Token) -> Expression:
        """Read an expression in parentheses."""
        self.advance()
        self._count_operation(token)
        inner = self.expression(COMPARISON_LEVEL)
        if self.kind != ")":
            problem = self.unexpected("`)`")
            problem.labels += (Label(self.span_of(token), "opened here"),)
            raise problem
        self.advance()
        return inner

    def call(self, token: Token) -> Call:
        """Read a function and its arguments; whether it exists is checked later."""
        self._count_operation(token)
        self.advance()
        arguments = self.arguments(f"`{token.text}`")
        return Call(token.text, arguments, self.span_since(token.start))

    def aggregate(self, token: Token) -> Expression:
        """Read `count{ … }`, which is only allowed in rules and queries."""
        raise self.error(f"an aggregate `{token.text}{{…}}` cannot stand here", token)

    # -- names

    def predicate_name(self) -> str:
        """Read the name of a predicate."""
        token = self.advance()
        if token.kind == "prefixed":
            return self.expand(token)
        if token.kind == "iri":
            name = self.iri_text(token)
            if name.startswith("~"):
                what = f"`{name}` begins with `~`, which marks auxiliary predicates"
                raise self._reserved(token, what, "choose another name")
            return name
        if token.text in KEYWORDS or token.text == "_":
            what = f"`{token.text}` is a word of the language"
            raise self._reserved(token, what, "choose another name")
        function = FUNCTIONS.get(token.text)
        if function is not None and function.is_condition:
            what = f"`{token.text}` is a built-in condition"
            raise self._reserved(
                token, what, f"choose another name, or write `<{token.text}>`"
            )
        return token.text

    def _reserved(
        self, token: Token, what: str, advice: str | None
    ) -> ReservedNameError:
        return ReservedNameError(
            f"{what}; it cannot be the name of a predicate",
            labels=(Label(self.span_of(token)),),
            help=advice,
        )

    def expand(self, token: Token) -> str:
        """Return the IRI of a prefixed name; record an unknown prefix as a problem."""
        iri = self.namespace.expand(token.text)
        if iri is not None:
            return iri
        prefix = token.text.partition(":")[0]
        known = self.namespace.known_prefixes()
        self.problems.append(
            UnknownPrefixError(
                f"unknown prefix `{prefix}:`",
                labels=(Label(self.span_of(token)),),
                reason="a prefix must be declared before it is used",
                help=did_you_mean(prefix, known, after=":")
                or f"add `@prefix {prefix}: <http://example.org/> .` above, with the "
                f"IRI that `{prefix}:` stands for",
            )
        )
        # Declared from now on: one report for each prefix is enough.
        self.namespace.prefixes[prefix] = f"{prefix}:"
        return token.text

    def iri_text(self, token: Token) -> str:
        """Return the IRI of an `<...>` token, resolved against the base."""
        iri = self._unescaped(token, lambda token: unescape(token.text[1:-1], 1))
        return self.namespace.resolve(iri)

    def string_text(self, token: Token) -> str:
        """Return the contents of a string token."""
        return self._unescaped(token, string_content)

    def _unescaped(self, token: Token, read: Callable[[Token], str]) -> str:
        try:
            return read(token)
        except EscapeError as problem:
            start = token.start + problem.offset
            span = self.span(start, start + len(problem.escape))
            raise ParseError(
                f"`{problem.escape}` is not an escape",
                labels=(Label(span),),
                help=r"the escapes are \t \b \n \r \f \" \' \\ \uXXXX \UXXXXXXXX",
            ) from None

    def forget_names(self) -> None:
        """Clear cached names after prefixes or the base have changed."""
        self._constants.clear()


def _around(source: Source, left: Expression, right: Expression) -> Span | None:
    if left.span is None or right.span is None:
        return None
    return Span(source, left.span.start, right.span.end)


_OPERANDS: dict[str, Callable[[ExpressionReader, Token], Expression]] = {
    "variable": ExpressionReader.variable,
    "parameter": ExpressionReader.parameter,
    "name": ExpressionReader.named,
    "prefixed": ExpressionReader.named,
    "iri": ExpressionReader.iri,
    "blank": ExpressionReader.blank,
    "string": ExpressionReader.string,
    "integer": ExpressionReader.number,
    "decimal": ExpressionReader.number,
    "double": ExpressionReader.number,
    "-": ExpressionReader.sign,
    "+": ExpressionReader.sign,
    "(": ExpressionReader.parenthesised,
}
