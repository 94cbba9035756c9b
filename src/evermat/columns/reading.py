"""Parsing of strings to term columns, by whole columns.

Simple terms (plain IRIs, blank nodes, strings without escapes, whole numbers) are
recognised by regular expressions; every other distinct string is parsed by `read_term`,
one at a time.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns.terms import TERM, reassembled, terms_of_kind
from evermat.errors import EvermatError
from evermat.values import LABEL_SIGNS, XSD, Constant, Kind, language_string, literal

_IRI_CHARACTER = r'(?:[^\x00-\x20<>"{}|^`\\%]|%[0-9A-Fa-f]{2})'
_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*:"
_IRI = f"<{_SCHEME}{_IRI_CHARACTER}*>"
_PLAIN_STRING = r'"[^"\\\n\r]*"'
_LABEL = r"_:[\p{L}0-9_](?:[\p{L}\p{N}_.\-]*[\p{L}\p{N}_\-])?"
_TAG = r"@[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*(?:--(?:ltr|rtl))?"
_WHOLE = r"(?:0|-?[1-9][0-9]*)"


class TermSyntaxError(EvermatError, ValueError):
    """A string that is not a term.

    Attributes:
        text: the string.
        row: its row in the column, from 1; 0 if unknown.
    """

    code = "EM703"

    def __init__(self, text: str, row: int = 0) -> None:
        self.text = text
        self.row = row
        super().__init__(
            f"`{text}` is not a term",
            help='write <iri>, _:blank, "string", "string"@en, "text"^^<datatype>, '
            "a number, true or false",
        )


def read_terms(texts: pa.Array, kinds: pa.Array | None = None) -> pa.Array:
    """Parse strings as terms, in the syntax of the language or N-Triples.

    A string without quotes or brackets that is no number, `true` or `false` is a
    string constant, as in a program.

    Args:
        texts: a string for each term.
        kinds: the result of `quick_kinds` for the strings, if it is known.

    Raises:
        TermSyntaxError: a string begins like a term but does not end like one.

    >>> read_terms(pa.array(["<http://a.org/b>", "7", "x"])).field(0).to_pylist()
    [1, 3, 0]
    """
    places, pieces = [], []
    rest = pa.array(range(0), pa.uint64())
    if kinds is None:
        kinds = quick_kinds(texts)
    for number in kinds.unique().to_pylist():
        rows = pc.indices_nonzero(pc.equal(kinds, number))
        if number == SLOW:
            rest = rows
            continue
        places.append(rows)
        pieces.append(_quick_terms(Kind(number), texts.take(rows)))
    if len(rest) or not pieces:
        places.append(rest)
        pieces.append(_slow_terms(texts.take(rest), rest))
    return pieces[0] if len(pieces) == 1 else reassembled(places, pieces)


SLOW = 255
"""The result of `quick_kinds` for strings that need `read_term`."""


def quick_kinds(texts: pa.Array) -> pa.Array:
    """Return for each string the kind that it certainly has, or `SLOW`."""
    first = pc.utf8_slice_codeunits(texts, 0, 1)
    cases = [
        (pc.equal(first, "<"), f"^{_IRI}$", Kind.IRI),
        (pc.equal(first, '"'), f"^{_PLAIN_STRING}$", Kind.STRING),
        (pc.equal(first, '"'), f"^{_PLAIN_STRING}{_TAG}$", Kind.LANGUAGE),
        (pc.equal(first, '"'), rf"^{_PLAIN_STRING}\^\^{_IRI}$", Kind.TYPED),
        (pc.equal(first, "_"), f"^{_LABEL}$", Kind.BLANK),
        (pc.match_substring_regex(first, "[-0-9]"), f"^{_WHOLE}$", Kind.INTEGER),
    ]
    kinds = pa.repeat(pa.scalar(SLOW, pa.uint8()), len(texts))
    for starts, pattern, kind in cases:
        if not pc.any(starts, min_count=0).as_py():
            continue
        fits = pc.and_(starts, pc.match_substring_regex(texts, pattern))
        kinds = pc.if_else(fits, pa.scalar(int(kind), pa.uint8()), kinds)
    return kinds


def _quick_terms(kind: Kind, texts: pa.Array) -> pa.Array:
    match kind:
        case Kind.IRI | Kind.STRING:
            return terms_of_kind(kind, pc.utf8_slice_codeunits(texts, 1, -1))
        case Kind.BLANK:
            return terms_of_kind(kind, pc.utf8_slice_codeunits(texts, 2))
        case Kind.LANGUAGE:
            parts = pc.extract_regex(texts, '^"(?P<text>[^"]*)"@(?P<tag>.*)$')
            tags = pc.ascii_lower(parts.field(1))
            joined = pc.binary_join_element_wise(tags, parts.field(0), "\0")
            return terms_of_kind(kind, joined)
        case Kind.TYPED:
            return _typed_terms(texts)
        case _:
            return terms_of_kind(kind, texts)


def _typed_terms(texts: pa.Array) -> pa.Array:
    """Parse typed literals without escapes: integers together, others by value."""
    is_whole = pc.match_substring_regex(texts, f'^"{_WHOLE}"{_OF_TYPE_INTEGER}$')
    if not pc.any(is_whole).as_py():
        return _distinct_literals(texts)
    places = [pc.indices_nonzero(each) for each in (is_whole, pc.invert(is_whole))]
    digits = pc.utf8_slice_codeunits(texts.take(places[0]), 1, -_INTEGER_TAIL)
    others = _distinct_literals(texts.take(places[1]))
    return reassembled(places, [terms_of_kind(Kind.INTEGER, digits), others])


_OF_TYPE_INTEGER = re.escape(f"^^<{XSD}integer>")
_INTEGER_TAIL = len(f'"^^<{XSD}integer>')


def _distinct_literals(texts: pa.Array) -> pa.Array:
    encoded = texts.dictionary_encode()
    parts = pc.extract_regex(
        encoded.dictionary, r'^"(?P<lexical>[^"]*)"\^\^<(?P<datatype>.*)>$'
    )
    pairs = zip(*(half.to_pylist() for half in parts.flatten()), strict=True)
    known = [literal(lexical, datatype) for lexical, datatype in pairs]
    return _term_column(known).take(encoded.indices)


def _slow_terms(texts: pa.Array, rows: pa.Array) -> pa.Array:
    encoded = texts.dictionary_encode()
    known = []
    for text in encoded.dictionary.to_pylist():
        try:
            known.append(read_term(text))
        except TermSyntaxError:
            row = rows[pc.index(texts, text).as_py()].as_py() + 1
            raise TermSyntaxError(text, row) from None
    return _term_column(known).take(encoded.indices)


def _term_column(terms: list[Constant]) -> pa.Array:
    kinds = pa.array([term.kind for term in terms], pa.uint8())
    texts = pa.array([term.text for term in terms], pa.string())
    return pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))


def read_term(text: str) -> Constant:
    """Parse one string as a term; see `read_terms`."""
    match text[:1]:
        case "<":
            return _read_iri(text)
        case '"':
            return _read_literal(text)
        case "_" if text.startswith("_:"):
            if not re.fullmatch(rf"_:[\w.\-{LABEL_SIGNS}]+", text):
                raise TermSyntaxError(text)
            return Constant(Kind.BLANK, text[2:])
        case _:
            return _read_bare(text)


def _read_iri(text: str) -> Constant:
    if not re.fullmatch(r"<[^<>\s]*>", text):
        raise TermSyntaxError(text)
    return Constant(Kind.IRI, _unescaped(text[1:-1]))


def _read_literal(text: str) -> Constant:
    parts = re.fullmatch(
        r'"((?:[^"\\]|\\.)*)"(?:@([A-Za-z0-9\-]+)|\^\^<([^<>\s]*)>)?', text, re.DOTALL
    )
    if parts is None:
        raise TermSyntaxError(text)
    body = _unescaped(parts[1])
    if parts[2]:
        return language_string(body, parts[2])
    return literal(body, _unescaped(parts[3] or XSD + "string"))


def _read_bare(text: str) -> Constant:
    for pattern, datatype in _BARE:
        if re.fullmatch(pattern, text, re.ASCII):
            return literal(text, XSD + datatype)
    return Constant(Kind.STRING, text)


_BARE = (
    (r"[+-]?\d+", "integer"),
    (r"[+-]?\d*\.\d+", "decimal"),
    (r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+", "double"),
    (r"true|false", "boolean"),
)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return re.sub(_ESCAPE, _escaped_character, text, flags=re.DOTALL)


_ESCAPE = r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)"
_CHARACTERS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_CHARACTERS |= {each: each for each in "\"'\\"}


def _escaped_character(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 1:
        character = _CHARACTERS.get(code)
    else:
        number = int(code[1:], 16)
        is_character = number < 0x110000 and not 0xD800 <= number < 0xE000  # noqa: PLR2004  the range of Unicode
        character = chr(number) if is_character else None
    if character is None:
        raise TermSyntaxError(match.string)
    return character
