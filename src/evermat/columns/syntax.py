"""Term columns as text: the syntax of the language, and N-Triples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns.terms import by_kind, halves, single
from evermat.values import NOT_IN_IRI, XSD, Kind, iri_text

if TYPE_CHECKING:
    from collections.abc import Callable


def term_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The terms in the syntax of the language, as `values.term_text` writes them."""
    return by_kind(single(column), _TERM_TEXTS)


def shown_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The terms on a line of text for people: strings without quotes, if that works.

    A string that holds a tab or a line end is quoted like all others in a program.
    """
    return by_kind(single(column), _SHOWN_TEXTS)


def ntriples_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The terms in N-Triples, where numbers and Booleans are typed literals."""
    return by_kind(single(column), _NTRIPLES_TEXTS)


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def quoted(texts: pa.Array) -> pa.Array:
    """String literals with the escapes of Turtle, as `values.quote` writes them."""
    for char, escape in _ESCAPES:
        texts = pc.replace_substring(texts, char, escape)
    return _joined('"', texts, '"')


_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


def blank_texts(texts: pa.Array) -> pa.Array:
    """Blank nodes as `_:label`."""
    return _joined("_:", texts)


def _iri_texts(texts: pa.Array) -> pa.Array:
    """IRIs in which characters that may not stand in one are written as escapes."""
    encoded = texts.dictionary_encode()
    distinct = encoded.dictionary
    if pc.any(pc.match_substring_regex(distinct, NOT_IN_IRI)).as_py():
        written = pa.array(map(iri_text, distinct.to_pylist()), pa.string())
    else:
        written = _joined("<", distinct, ">")
    return written.take(encoded.indices)


def _typed_texts(texts: pa.Array) -> pa.Array:
    datatype, lexical = halves(texts)
    return _joined(quoted(lexical), "^^", _iri_texts(datatype))


def _language_texts(texts: pa.Array) -> pa.Array:
    language, lexical = halves(texts)
    return _joined(quoted(lexical), "@", language)


def _double_texts(texts: pa.Array) -> pa.Array:
    with_exponent = pc.if_else(
        pc.match_substring(texts, "e"), texts, _joined(texts, "e0")
    )
    for text, name in _SPECIAL_DOUBLES:
        special = f'"{name}"^^<{XSD}double>'
        with_exponent = pc.if_else(pc.equal(texts, text), special, with_exponent)
    return with_exponent


def _datatype_texts(datatype: str) -> Callable[[pa.Array], pa.Array]:
    return lambda texts: _joined('"', texts, f'"^^<{XSD}{datatype}>')


def _ntriples_doubles(texts: pa.Array) -> pa.Array:
    for text, name in _SPECIAL_DOUBLES:
        texts = pc.if_else(pc.equal(texts, text), name, texts)
    return _joined('"', texts, f'"^^<{XSD}double>')


_SPECIAL_DOUBLES = (("nan", "NaN"), ("inf", "INF"), ("-inf", "-INF"))


def _on_one_line(texts: pa.Array) -> pa.Array:
    breaks = pc.match_substring_regex(texts, r"[\t\r\n]")
    return pc.if_else(breaks, quoted(texts), texts)


def _same(texts: pa.Array) -> pa.Array:
    return texts


_TERM_TEXTS: dict[Kind, Callable[[pa.Array], pa.Array]] = {
    Kind.STRING: quoted,
    Kind.IRI: _iri_texts,
    Kind.BLANK: blank_texts,
    Kind.INTEGER: _same,
    Kind.DECIMAL: _same,
    Kind.DOUBLE: _double_texts,
    Kind.BOOLEAN: _same,
    Kind.TYPED: _typed_texts,
    Kind.LANGUAGE: _language_texts,
}

_SHOWN_TEXTS: dict[Kind, Callable[[pa.Array], pa.Array]] = {
    **_TERM_TEXTS,
    Kind.STRING: _on_one_line,
}

_NTRIPLES_TEXTS: dict[Kind, Callable[[pa.Array], pa.Array]] = {
    **_TERM_TEXTS,
    Kind.INTEGER: _datatype_texts("integer"),
    Kind.DECIMAL: _datatype_texts("decimal"),
    Kind.DOUBLE: _ntriples_doubles,
    Kind.BOOLEAN: _datatype_texts("boolean"),
}
