"""Layout of program texts: same tokens, same comments, regular spaces and lines.

A statement goes on one line if it fits and has no comment inside; otherwise there is a
line for each element of its body. Constants stay as they were written, and one blank
line stays where there were some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.errors import Source, UnknownPrefixError, raise_all
from evermat.lang.lexer import tokenise
from evermat.lang.parser import check_syntax

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.lang.lexer import Token

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
    """A program text in the layout of the house.

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
    """Statements and comments, laid out one after the other."""

    def __init__(self, text: str, tokens: list[Token], comments: list[Token]) -> None:
        self._text = text
        self._pieces = sorted([*tokens[:-1], *comments], key=lambda piece: piece.start)
        self._lines: list[str] = []

    def text(self) -> str:
        """The whole layout."""
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
        """Whole statements, and single comments between them."""
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
    """Each token with the space before it."""
    previous: Token | None = None
    is_sign = False
    for token in group:
        glued = previous is None or is_sign or _is_glued(previous, token)
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
    """A line for each element of the body; comments end the line they are on."""
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
