"""A scanner, and the errors that readers of other rule languages share.

A language is one regular expression with a named group per kind of token; the groups
`blank` and `comment` are skipped.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from evermat.errors import (
    Label,
    ParseError,
    ProgramError,
    Source,
    Span,
    UnknownPrefixError,
)
from evermat.lang.lexer import EscapeError, Token, string_content
from evermat.lang.syntax import Call

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator

    from evermat.lang.syntax import Expression

END = "end"
_DEEPEST = 50
"""Nesting limit of groups, signs and calls; deeper ones would exhaust the stack."""
_MOST_OPERATIONS = 150
"""Limit of operations in one expression, for the same reason, as in Evermat's syntax.
"""
_SKIPPED = frozenset({"blank", "comment"})


class UnsupportedSyntaxError(ProgramError):
    """A construct of another rule language that has no equivalent in Evermat."""

    code = "EM510"


class Scanner:
    """The tokens of a text, read from left to right with a lookahead of one token."""

    def __init__(
        self,
        source: Source,
        pattern: re.Pattern[str],
        language: str,
        *,
        start: int = 0,
        end: int | None = None,
    ) -> None:
        self.source = source
        self.language = language
        self._tokens = _tokenise(
            source, pattern, start, len(source.text) if end is None else end
        )
        self.position = 0
        self._depth = 0
        self._operations = 0

    @property
    def end(self) -> Token:
        """The token at the end of the text."""
        return self._tokens[-1]

    def replace(self, expand: Callable[[list[Token]], list[Token]]) -> None:
        """Have other tokens in place of those of the text, before any is read."""
        self._tokens = expand(self._tokens)

    @property
    def current(self) -> Token:
        """The current token; after the last one, a token of kind `end`."""
        return self._tokens[self.position]

    @property
    def previous(self) -> Token:
        """The token that was read last."""
        return self._tokens[self.position - 1]

    @property
    def following(self) -> Token:
        """The token after the current one."""
        return self._tokens[min(self.position + 1, len(self._tokens) - 1)]

    def advance(self) -> Token:
        """Read the current token."""
        token = self.current
        if token.kind != END:
            self.position += 1
        return token

    def accept(self, *texts: str) -> Token | None:
        """Read the current token if its text is one of these."""
        return self.advance() if self.current.text in texts else None

    def accept_kind(self, kind: str) -> Token | None:
        """Read the current token if it is of this kind."""
        return self.advance() if self.current.kind == kind else None

    def expect(self, text: str, where: str) -> Token:
        """Read a required token; `where` completes the error message."""
        if self.current.text != text:
            raise self.wrong(f"`{text}` {where}")
        return self.advance()

    def expect_kind(self, kind: str, what: str) -> Token:
        """Read a required token of a kind."""
        if self.current.kind != kind:
            raise self.wrong(what)
        return self.advance()

    @contextlib.contextmanager
    def nested(self, opening: Token) -> Iterator[None]:
        """Check the nesting limit while a nested construct is parsed."""
        if not self._depth:
            self._operations = 0
        self._depth += 1
        try:
            if self._depth > _DEEPEST:
                message = f"more than {_DEEPEST} levels of nesting"
                hint = "give names to the parts: `x = …`"
                raise self.error(message, opening, hint=hint)
            yield
        finally:
            self._depth -= 1

    def operations(
        self, symbols: tuple[str, ...], operand: Callable[[], Expression]
    ) -> Expression:
        """Parse operands of left-associative operators of equal precedence."""
        first = self.current
        left = operand()
        while self.current.text in symbols:
            operator = self.advance()
            self.count_operation(operator)
            left = Call(operator.text, (left, operand()), span=self.span_since(first))
        return left

    def count_operation(self, operator: Token) -> None:
        """Count one more operator in the current expression."""
        self._operations += 1
        if self._operations > _MOST_OPERATIONS:
            message = f"more than {_MOST_OPERATIONS} operations in one expression"
            hint = "give names to the parts: `x = …`"
            raise self.error(message, operator, hint=hint)

    def skip_behind(self, text: str) -> None:
        """Skip to the token after the next one with this text, or to the end."""
        while self.current.kind != END and self.advance().text != text:
            pass

    def string(self, token: Token) -> str:
        """Return the content of a string token."""
        try:
            return string_content(token)
        except EscapeError as problem:
            start = token.start + problem.offset
            end = start + len(problem.escape)
            place = Token("escape", problem.escape, start, end)
            message = f"there is no escape `{problem.escape}`"
            raise self.error(message, place) from None

    def span(self, token: Token) -> Span:
        """Return the span of a token."""
        return Span(self.source, token.start, token.end)

    def span_since(self, first: Token) -> Span:
        """Return the span from a token to the one that was read last."""
        return Span(self.source, first.start, self.previous.end)

    def wrong(self, expected: str, *, hint: str | None = None) -> ParseError:
        """Return the error that something else was expected here."""
        return self.error(
            f"expected {expected}, found {_shown(self.current)}",
            self.current,
            hint=hint,
        )

    def error(
        self, message: str, token: Token, *, hint: str | None = None
    ) -> ParseError:
        """Return a syntax error at a token."""
        return ParseError(message, labels=(Label(self.span(token)),), help=hint)

    def unknown_prefix(self, token: Token, directive: str) -> UnknownPrefixError:
        """Return the error for a prefixed name with an unknown prefix."""
        prefix = token.text.partition(":")[0]
        return UnknownPrefixError(
            f"unknown prefix `{prefix}:`",
            labels=(Label(self.span(token)),),
            reason="a prefix must be declared before it is used",
            help=f"add `{directive.format(prefix)}` above, with the IRI that "
            f"`{prefix}:` stands for",
        )

    def unsupported(
        self, construct: str, token: Token, *, hint: str | None = None
    ) -> UnsupportedSyntaxError:
        """Return the error for an unsupported construct, at a token of it."""
        return UnsupportedSyntaxError(
            f"{construct} not supported",
            labels=(Label(self.span(token)),),
            reason=f"only the plain part of {self.language} is read",
            help=hint,
        )


def _shown(token: Token) -> str:
    return "the end of the text" if token.kind == END else f"`{token.text}`"


def _no_token(character: str) -> str:
    if character in "\"'":
        return "this string is never closed"
    return f"unexpected character `{character}`"


def _tokenise(
    source: Source, pattern: re.Pattern[str], start: int, end: int
) -> list[Token]:
    tokens: list[Token] = []
    position = start
    while position < end:
        match = pattern.match(source.text, position, end)
        if match is None or match.lastgroup is None:
            place = Span(source, position, position + 1)
            raise ParseError(_no_token(source.text[position]), labels=(Label(place),))
        if match.lastgroup not in _SKIPPED:
            token = Token(match.lastgroup, match.group(), position, match.end())
            tokens.append(token)
        position = match.end()
    tokens.append(Token(END, "", end, end))
    return tokens
