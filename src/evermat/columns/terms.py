"""Term columns: constants as Arrow structs of a kind and a text.

This module contains their layout, their text in the syntax of the language and in
N-Triples, and their conversion to ordinary Arrow columns and Python values for users.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.values import NOT_IN_IRI, XSD, Constant, Kind, Value, iri_text, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet


TERM = pa.struct([("kind", pa.uint8()), ("text", pa.string())])
"""The type of a term column."""


def terms_of_kind(kind: Kind, texts: pa.Array) -> pa.Array:
    """Return a term column of one kind; the texts must be canonical for it."""
    kinds = pa.repeat(pa.scalar(int(kind), pa.uint8()), len(texts))
    return pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))


def kinds_in(terms: pa.Array) -> set[Kind]:
    """Return the kinds that occur in a term column."""
    numbers = terms.field(0).drop_null().to_numpy()
    return {_KINDS[number] for number in np.flatnonzero(np.bincount(numbers)).tolist()}


_KINDS = {int(kind): kind for kind in Kind}


def by_kind(
    terms: pa.Array,
    convert: Mapping[Kind, Callable[[pa.Array], pa.Array]],
    found: AbstractSet[Kind] | None = None,
) -> pa.Array:
    """Convert the texts of each kind with the kind's own function, in order.

    Args:
        terms: a term column.
        convert: a function for each kind.
        found: the kinds in the column, if they are known.
    """
    kinds, texts = terms.field(0), terms.field(1)
    present = sorted(kinds_in(terms) if found is None else found)
    if len(present) <= 1:
        return convert[present[0]](texts) if present else texts
    places = [pc.indices_nonzero(pc.equal(kinds, int(kind))) for kind in present]
    pieces = [
        convert[kind](texts.take(rows))
        for kind, rows in zip(present, places, strict=True)
    ]
    return reassembled(places, pieces)


def reassembled(places: list[pa.Array], pieces: list[pa.Array]) -> pa.Array:
    """Merge pieces into one array, given the rows of the values of each."""
    back = pc.sort_indices(pa.concat_arrays(places))
    return pa.concat_arrays(pieces).take(back)


def single(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the column as a single chunk."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def halves(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Split TYPED and LANGUAGE texts at the NUL."""
    parts = pc.extract_regex(texts, r"(?s)^(?P<before>[^\x00]*)\x00(?P<after>.*)$")
    return parts.field(0), parts.field(1)


# ------------------------------------------------------------------------------- syntax


def term_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the terms in the syntax of the language, like `values.term_text`."""
    return by_kind(single(column), _TERM_TEXTS)


def shown_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return each term on one line for people: strings without quotes, if possible.

    A string with a tab or a line end is quoted as in a program.
    """
    return by_kind(single(column), _SHOWN_TEXTS)


def ntriples_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the terms in N-Triples, where numbers and Booleans are typed literals."""
    return by_kind(single(column), _NTRIPLES_TEXTS)


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def quoted(texts: pa.Array) -> pa.Array:
    """Return string literals with the escapes of Turtle, like `values.quote`."""
    for char, escape in _ESCAPES:
        texts = pc.replace_substring(texts, char, escape)
    return _joined('"', texts, '"')


_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


def blank_texts(texts: pa.Array) -> pa.Array:
    """Return blank nodes as `_:label`."""
    return _joined("_:", texts)


def _iri_texts(texts: pa.Array) -> pa.Array:
    """Return IRIs with forbidden characters escaped."""
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


_NAMES = {Kind.IRI: _same, Kind.BLANK: blank_texts}

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


# ----------------------------------------------------------------------------- outgoing


Item = TypeVar("Item")


def natural(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Convert a term column to the plainest Arrow column that distinguishes its terms.

    | terms                       | column                                            |
    | --------------------------- | ------------------------------------------------- |
    | strings                     | string                                            |
    | IRIs and blank nodes        | string; blank nodes as `_:label`                  |
    | integers                    | int64, or decimal or string if they are larger    |
    | decimals                    | decimal, or string if they have too many digits   |
    | doubles, Booleans           | double, bool                                      |
    | dates; dateTimes, UTC or no zone | date32; timestamp                            |
    | anything else, mixtures     | string in the syntax of the language              |

    Nulls, which only results of SPARQL contain, stay nulls.
    """
    terms = single(column)
    if terms.null_count:
        return natural(terms.drop_null()).take(_places_of_values(terms))
    kinds = kinds_in(terms)
    if kinds <= {Kind.IRI, Kind.BLANK}:
        return by_kind(terms, _NAMES, kinds)
    if len(kinds) == 1:
        plain = _NATURAL[kinds.pop()](terms.field(1))
        if plain is not None:
            return plain
    return term_texts(terms)


def plain_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the terms as strings without syntax, like `natural`.

    Strings as they are, `true`, `7`, `2.5`; dates and dateTimes without datatype;
    mixtures in the syntax of the language.
    """
    terms = single(column)
    kinds = kinds_in(terms)
    if len(kinds) == 1 and not kinds & {Kind.BLANK, Kind.TYPED, Kind.LANGUAGE}:
        return terms.field(1)
    plain = natural(terms)
    if pa.types.is_temporal(plain.type):
        return halves(terms.field(1))[1]
    return plain


def values(column: pa.Array | pa.ChunkedArray) -> list[Value]:
    """Return the terms as Python values; a null is None, which no fact has."""
    terms = single(column)
    if terms.null_count:
        return _with_nones(values(terms.drop_null()), terms)
    kinds = kinds_in(terms)
    texts: list[str] = terms.field(1).to_pylist()
    if kinds == {Kind.STRING}:
        return list(texts)
    if len(kinds) == 1:
        return list(map(_READERS[kinds.pop()], texts))
    pairs = zip(terms.field(0).to_pylist(), texts, strict=True)
    return [_READERS[kind](text) for kind, text in pairs]


def constants(column: pa.Array | pa.ChunkedArray) -> list[Constant]:
    """Return the terms as constants; a null is None, which no fact has."""
    terms = single(column)
    if terms.null_count:
        return _with_nones(constants(terms.drop_null()), terms)
    kinds = list(Kind)
    pairs = zip(terms.field(0).to_pylist(), terms.field(1).to_pylist(), strict=True)
    return [Constant(kinds[kind], text) for kind, text in pairs]


def _places_of_values(terms: pa.Array) -> pa.Array:
    """Return for each term its position among those that are not null."""
    is_valid = terms.is_valid()
    places = pc.subtract(pc.cumulative_sum(pc.cast(is_valid, pa.int64())), 1)
    return pc.if_else(is_valid, places, pa.scalar(None, pa.int64()))


def _with_nones(found: list[Item], terms: pa.Array) -> list[Item]:
    """Return the items for the terms that are not null, and None for the others."""
    nothing = cast("Item", None)
    places = _places_of_values(terms).to_pylist()
    return [nothing if place is None else found[place] for place in places]


_READERS: list[Callable[[str], Value]] = [
    functools.partial(value_of, kind) for kind in Kind
]


def _cast_or_none(texts: pa.Array, arrow_type: pa.DataType) -> pa.Array | None:
    try:
        return texts.cast(arrow_type)
    except pa.ArrowInvalid:
        return None


def _natural_integers(texts: pa.Array) -> pa.Array:
    plain = _cast_or_none(texts, pa.int64())
    return _as_arrow_decimals(texts, scale=0) if plain is None else plain


def _natural_decimals(texts: pa.Array) -> pa.Array:
    fraction = pc.subtract(pc.binary_length(texts), pc.find_substring(texts, "."))
    return _as_arrow_decimals(texts, scale=pc.max(fraction).as_py() - 1)


def _as_arrow_decimals(texts: pa.Array, *, scale: int) -> pa.Array:
    """Convert to Arrow decimals, or return the texts if they have too many digits."""
    # Counted explicitly: the cast lets some numbers overflow silently.
    whole = pc.binary_length(pc.replace_substring_regex(texts, r"^-|\..*$", ""))
    digits = pc.max(whole).as_py() + scale
    if digits <= _DECIMAL128_DIGITS:
        return texts.cast(pa.decimal128(_DECIMAL128_DIGITS, scale))
    if digits <= _DECIMAL256_DIGITS:
        return texts.cast(pa.decimal256(_DECIMAL256_DIGITS, scale))
    return texts


_DECIMAL128_DIGITS = 38
_DECIMAL256_DIGITS = 76


def _natural_typed(texts: pa.Array) -> pa.Array | None:
    datatype, lexical = halves(texts)
    datatypes = datatype.unique().to_pylist()
    if datatypes == [XSD + "date"]:
        return _cast_or_none(lexical, pa.date32())
    if datatypes == [XSD + "dateTime"]:
        utc = pc.all(pc.match_substring_regex(lexical, r"(\+00:00|Z)$")).as_py()
        moments = _cast_or_none(lexical, pa.timestamp("us", "UTC" if utc else None))
        return moments if _are_as_many(moments, lexical) else None
    return None


def _are_as_many(moments: pa.Array | None, texts: pa.Array) -> bool:
    """Return whether distinct texts, such as with `Z` and `+00:00`, stay distinct."""
    return (
        moments is not None
        and pc.count_distinct(moments).as_py() == pc.count_distinct(texts).as_py()
    )


_NATURAL: dict[Kind, Callable[[pa.Array], pa.Array | None]] = {
    Kind.STRING: _same,
    Kind.INTEGER: _natural_integers,
    Kind.DECIMAL: _natural_decimals,
    Kind.DOUBLE: lambda texts: texts.cast(pa.float64()),
    Kind.BOOLEAN: lambda texts: pc.equal(texts, "true"),
    Kind.TYPED: _natural_typed,
    Kind.LANGUAGE: lambda _: None,
}
