"""Term columns into ordinary Arrow columns and Python objects."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns.syntax import blank_texts, term_texts
from evermat.columns.terms import by_kind, halves, kinds_in, single
from evermat.values import XSD, Constant, Kind, Value, value_of

if TYPE_CHECKING:
    from collections.abc import Callable

Item = TypeVar("Item")


def natural(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Turn a term column into the plainest Arrow column that tells its terms apart.

    | terms                       | column                                            |
    | --------------------------- | ------------------------------------------------- |
    | strings                     | string                                            |
    | IRIs and blank nodes        | string; blank nodes as `_:label`                  |
    | integers                    | int64, or decimal or string where they are larger |
    | decimals                    | decimal, or string where they have too many digits|
    | doubles, Booleans           | double, bool                                      |
    | dates; dateTimes, UTC or no zone | date32; timestamp                            |
    | anything else, mixtures     | string in the syntax of the language              |

    Nulls, which only results of SPARQL have, stay nulls.
    """
    terms = single(column)
    if terms.null_count:
        return natural(terms.drop_null()).take(_places_of_values(terms))
    kinds = kinds_in(terms)
    if kinds <= {Kind.IRI, Kind.BLANK}:
        return by_kind(terms, {Kind.IRI: _same, Kind.BLANK: blank_texts})
    if len(kinds) == 1:
        plain = _NATURAL[kinds.pop()](terms.field(1))
        if plain is not None:
            return plain
    return term_texts(terms)


def plain_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The terms as texts without syntax, as `natural` would show them.

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
    """The terms as Python values; a null is None, which no fact has."""
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
    """The terms as constants; a null is None, which no fact has."""
    terms = single(column)
    if terms.null_count:
        return _with_nones(constants(terms.drop_null()), terms)
    kinds = list(Kind)
    pairs = zip(terms.field(0).to_pylist(), terms.field(1).to_pylist(), strict=True)
    return [Constant(kinds[kind], text) for kind, text in pairs]


def _places_of_values(terms: pa.Array) -> pa.Array:
    """For each term its place among those that are not null."""
    is_valid = terms.is_valid()
    places = pc.subtract(pc.cumulative_sum(pc.cast(is_valid, pa.int64())), 1)
    return pc.if_else(is_valid, places, pa.scalar(None, pa.int64()))


def _with_nones(found: list[Item], terms: pa.Array) -> list[Item]:
    """What was found for the terms that are not null, and None for the others."""
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
    """Arrow decimals, or the texts themselves where they have too many digits."""
    # Counted by hand: the cast lets some numbers overflow without a word.
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
    """Whether no two texts, such as those that end in `Z` and `+00:00`, are one."""
    return (
        moments is not None
        and pc.count_distinct(moments).as_py() == pc.count_distinct(texts).as_py()
    )


def _same(texts: pa.Array) -> pa.Array:
    return texts


_NATURAL: dict[Kind, Callable[[pa.Array], pa.Array | None]] = {
    Kind.STRING: _same,
    Kind.INTEGER: _natural_integers,
    Kind.DECIMAL: _natural_decimals,
    Kind.DOUBLE: lambda texts: texts.cast(pa.float64()),
    Kind.BOOLEAN: lambda texts: pc.equal(texts, "true"),
    Kind.TYPED: _natural_typed,
    Kind.LANGUAGE: lambda _: None,
}
