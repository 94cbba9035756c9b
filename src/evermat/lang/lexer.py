"""The lexer: text to tokens, and tokens to names and constants.

One regular expression finds the tokens; two characters depend on the previous token:

- `<` begins an IRI, but is a comparison after an operand: `?x<?y, ?z>1` does not
  contain the IRI `<?y, ?z>`, while `p(<a>)` contains one;
- `%` begins a comment, but is the remainder if an operand ends before it and another
  one begins after it on the same line, as in `?n % 2`.

Names and constants are read with their escapes, prefixes and relative IRIs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from evermat.functions import FUNCTIONS
from evermat.values import (
    LABEL_SIGNS,
    XSD,
    Constant,
    Kind,
    boolean_constant,
    decimal_constant,
    double_constant,
)

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
    """A token: `kind` is its group above, for punctuation the character itself."""

    kind: str
    text: str
    start: int
    end: int


class Tokens(NamedTuple):
    """The tokens of a text, the last of kind `end`, and its comments."""

    tokens: list[Token]
    comments: list[Token]


def tokenise(text: str) -> Tokens:
    """Return the tokens of a text; invalid characters are tokens of kind `unknown`."""
    tokens: list[Token] = []
    comments: list[Token] = []
    position = 0
    while True:
        position = _scan(text, position, tokens, comments)
        if tokens[-1].kind == "end":
            return Tokens(tokens, comments)


def _scan(text: str, position: int, tokens: list[Token], comments: list[Token]) -> int:
    """Scan to the end, or to a character that turns out to be an operator."""
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
        previous = "" if word in {"not", ":"} else kind
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
    """Return whether the last `)` closes an expression, not the list of an atom."""
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


# -------------------------------------------------------------------------------- terms


RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDF_TYPE = Constant(Kind.IRI, RDF + "type")

STANDARD_PREFIXES = {
    "rdf": RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": XSD,
}
"""Prefixes that are predefined in every program, which may redeclare them."""

KEYWORDS = frozenset({"not", "true", "false"})

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_SIMPLE_ESCAPES = {
    "t": "\t",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "f": "\f",
    '"': '"',
    "'": "'",
    "\\": "\\",
}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_REFERENCE = re.compile(
    r"(?://(?P<place>[^/?#]*))?(?P<path>[^?#]*)(?P<query>\?[^#]*)?(?P<fragment>\#.*)?",
    re.DOTALL,
)
_LONG_QUOTE = 3


class EscapeError(ValueError):
    """An invalid escape, at an offset of the token."""

    def __init__(self, escape: str, offset: int) -> None:
        self.escape = escape
        self.offset = offset
        super().__init__(escape)


def unescape(text: str, offset: int) -> str:
    """Replace the escapes of Turtle; `offset` is the beginning of the text."""
    if "\\" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        digits = match[1] or match[2]
        if digits is None:
            char = _SIMPLE_ESCAPES.get(match[3])
        else:
            code = int(digits, 16)
            is_character = code < 0x110000 and not 0xD800 <= code < 0xE000  # noqa: PLR2004  the range of Unicode
            char = chr(code) if is_character else None
        if char is None:
            raise EscapeError(match[0], offset + match.start())
        return char

    return _ESCAPE.sub(character, text)


def string_content(token: Token) -> str:
    """Return the contents of a string token; raises `EscapeError`."""
    text = token.text
    is_long = len(text) >= 2 * _LONG_QUOTE and text[0] == text[1] == text[2]
    quotes = _LONG_QUOTE if is_long else 1
    return unescape(text[quotes:-quotes], quotes)


def number(token: Token) -> Constant:
    """Return the constant of a number token."""
    match token.kind:
        case "integer":
            # Not by `int`, which refuses very long numbers.
            return Constant(Kind.INTEGER, token.text.lstrip("0") or "0")
        case "decimal":
            return decimal_constant(Decimal(token.text))
        case _:
            return double_constant(float(token.text))


def negated(constant: Constant) -> Constant:
    """Return the number with the opposite sign."""
    if constant.kind is Kind.DOUBLE:
        return double_constant(-float(constant.text))
    if constant.text in {"0", "0.0"}:
        return constant
    is_negative = constant.text.startswith("-")
    text = constant.text[1:] if is_negative else f"-{constant.text}"
    return Constant(constant.kind, text)


def bare_constant(name: str) -> Constant | None:
    """Return the constant of a bare name; None if it must not be one."""
    if name in {"true", "false"}:
        return boolean_constant(value=name == "true")
    if name == "not" or name[0].isupper() or not name[0].isalpha():
        return None
    return Constant(Kind.STRING, name)


@dataclass
class Namespace:
    """The prefixes and the base that apply at a position of a program."""

    prefixes: dict[str, str] = field(default_factory=dict)
    base: str | None = None

    def expand(self, name: str) -> str | None:
        """Return the IRI of a prefixed name, None if the prefix is unknown."""
        prefix, _, local = name.partition(":")
        start = self.prefixes.get(prefix, STANDARD_PREFIXES.get(prefix))
        return None if start is None else start + local

    def known_prefixes(self) -> list[str]:
        """Return the prefixes that are declared here."""
        return [*self.prefixes, *STANDARD_PREFIXES]

    def resolve(self, iri: str) -> str:
        """Resolve a relative IRI against the base; an absolute one is unchanged."""
        if self.base is None or is_absolute(iri):
            return iri
        return _joined(self.base, iri)


def is_absolute(iri: str) -> bool:
    """Return whether an IRI begins with a scheme such as `http:`."""
    return _SCHEME.match(iri) is not None


def _joined(base: str, iri: str) -> str:
    """Resolve a relative IRI against a base, according to RFC 3986.

    `urljoin` does not: it drops the `#` of `<#>`, and supports some schemes only. A
    base without folders, such as `urn:x:`, is simply prepended.
    """
    scheme = _SCHEME.match(base)
    start = scheme.end() if scheme else 0
    old, new = _REFERENCE.fullmatch(base, start), _REFERENCE.fullmatch(iri)
    assert old is not None and new is not None  # noqa: S101, PT018  all parts are optional
    place, path, query = old["place"], old["path"], new["query"]
    if new["place"] is not None:
        place, path = new["place"], _without_dots(new["path"])
    elif not new["path"]:
        query = old["query"] if query is None else query
    elif scheme is None or (place is None and "/" not in path):
        return base + iri
    elif new["path"].startswith("/"):
        path = _without_dots(new["path"])
    else:
        path = _without_dots(f"{path.rpartition('/')[0]}/{new['path']}")
    authority = "" if place is None else f"//{place}"
    ends = (query or "") + (new["fragment"] or "")
    return f"{base[:start]}{authority}{path}{ends}"


def _without_dots(path: str) -> str:
    """Remove the segments `.` and `..` from a path."""
    segments = path.split("/")
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[max(1, len(kept) - 1) :]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in {".", ".."}:
        kept.append("")
    return "/".join(kept)
