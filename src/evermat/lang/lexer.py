"""From text to tokens.

One regular expression finds the tokens; two signs need a look at the token before:

- `<` begins an IRI, but is a comparison after an operand: in `?x<?y, ?z>1` there is no
  IRI `<?y, ?z>`, while in `p(<a>)` there is one;
- `%` begins a comment, but is the remainder where an operand ends before it and
  another one begins behind it on the same line, as in `?n % 2`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from evermat.functions import FUNCTIONS
from evermat.values import LABEL_SIGNS

_HEX = "[0-9A-Fa-f]"
_IN_LABEL = rf"[\w\-{LABEL_SIGNS}]"
PREFIX_NAME = r"[^\W\d_][\w\-]*"
LOCAL_NAME = r"(?:(?:\w|:(?!-))(?:[\w\-]|:(?!-)|\.(?=[\w\-:]))*)?"

_TOKEN = re.compile(
    rf"""[\ \t\r\n\f\ufeff]*(?:
      (?P<variable>\?\w+)
    | (?P<parameter>\$\w+)
    | (?P<prefixed>(?:{PREFIX_NAME})?:(?!-){LOCAL_NAME})
    | (?P<blank>_:(?!-){_IN_LABEL}(?:{_IN_LABEL}|\.(?={_IN_LABEL}))*)
    | (?P<name>[^\W\d]\w*)
    | (?P<double>[0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]+)
    | (?P<decimal>[0-9]+\.[0-9]+)
    | (?P<integer>[0-9]+)
    | (?P<string>\"\"\"(?:[^"\\]|\\.|"(?!""))*\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*'''
        | "(?:[^"\\\n\r]|\\[^\n\r])*" | '(?:[^'\\\n\r]|\\[^\n\r])*')
    | (?P<iri><(?:[^\x00-\x20<>"{{}}|^`\\]|\\u{_HEX}{{4}}|\\U{_HEX}{{8}})*>)
    | (?P<punctuation>:-|!=|<=|>=|\^\^|[-+*/=<>(),.\[\]~≈{{}}])
    | (?P<at>@[A-Za-z][\w\-]*)
    | (?P<comment>[%#][^\n]*)
    | (?P<end>\Z)
    | (?P<unknown>["'][^\n]*|.)
    )""",
    re.VERBOSE | re.DOTALL,
)

_OPERANDS = frozenset(
    {"variable", "parameter", "prefixed", "blank", "name"}
    | {"double", "decimal", "integer"}
    | {"string", ")", "]"}
)
_NUMBERS = frozenset({"variable", "parameter", "double", "decimal", "integer", ")"})
_OPERAND_AHEAD = re.compile(r"[ \t]*(?:[?$]\w|[0-9(]|-[ \t]*[0-9?(]|[^\W\d]\w*\()")


class Token(NamedTuple):
    """A token: `kind` is its group above, for punctuation the sign itself."""

    kind: str
    text: str
    start: int
    end: int


class Tokens(NamedTuple):
    """The tokens of a text, the last of kind `end`, and the comments beside them."""

    tokens: list[Token]
    comments: list[Token]


def tokenise(text: str) -> Tokens:
    """The tokens of a text; what is no token comes as kind `unknown`."""
    tokens: list[Token] = []
    comments: list[Token] = []
    position = 0
    while True:
        position = _scan(text, position, tokens, comments)
        if tokens[-1].kind == "end":
            return Tokens(tokens, comments)


def _scan(text: str, position: int, tokens: list[Token], comments: list[Token]) -> int:
    """Read on to the end, or to a sign that turned out to be an operator."""
    previous = tokens[-1].kind if tokens else ""
    in_directive = False
    for match in _TOKEN.finditer(text, position):
        kind = match.lastgroup or "unknown"
        start, end = match.span(kind)
        if kind == "punctuation":
            kind = text[start:end]
            in_directive = in_directive and kind != "."
        elif kind == "comment":
            if text[start] == "%" and _is_remainder(text, start, tokens):
                tokens.append(Token("%", "%", start, start + 1))
                return start + 1
            comments.append(Token(kind, text[start:end], start, end))
            continue
        elif kind == "iri" and previous in _OPERANDS and not in_directive:
            tokens.append(_less(text, start))
            return tokens[-1].end
        elif kind == "at":
            in_directive = previous != "string"  # else it is a language tag
        word = text[start:end]
        tokens.append(Token(kind, word, start, end))
        if kind == "end":
            break
        previous = "" if word == "not" else kind
    return len(text)


def _less(text: str, start: int) -> Token:
    sign = "<=" if text.startswith("<=", start) else "<"
    return Token(sign, sign, start, start + len(sign))


def _is_remainder(text: str, start: int, tokens: list[Token]) -> bool:
    if not tokens or tokens[-1].kind not in _NUMBERS:
        return False
    if "\n" in text[tokens[-1].end : start]:
        return False
    if _OPERAND_AHEAD.match(text, start + 1) is None:
        return False
    return tokens[-1].kind != ")" or _closes_expression(tokens)


def _closes_expression(tokens: list[Token]) -> bool:
    """Whether the last `)` belongs to an expression; that of an atom does not."""
    depth = 0
    for index in range(len(tokens) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(tokens[index].kind, 0)
        if depth == 0:
            before = tokens[index - 1] if index else None
            if before is None or before.kind not in {"name", "prefixed", "iri"}:
                return True
            if before.text == "not":
                return True
            function = FUNCTIONS.get(before.text)
            return function is not None and not function.is_condition
    return False
