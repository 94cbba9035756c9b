"""Columns of sources into term columns, row by row where rows are wrong.

Texts are converted as whole columns, with the readers that other files have too. Only
where that fails, halves of the column are tried, down to the rows that are wrong.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import TERM, as_terms, beyond_calendar, terms_of_kind
from evermat.errors import EvermatError
from evermat.io.column_types import TYPES as TEXT_TYPES
from evermat.values import Kind, constant

if TYPE_CHECKING:
    from collections.abc import Callable

    Converter = Callable[[pa.Array], pa.Array]


def _full_iris(texts: pa.Array) -> pa.Array:
    """IRIs with a scheme: a row has nothing that others could be relative to."""
    terms = TEXT_TYPES["iri"](texts)
    is_full = pc.match_substring_regex(terms.field(1), r"^[A-Za-z][A-Za-z0-9+.\-]*:")
    if not pc.all(is_full, min_count=0).as_py():
        message = "an IRI without a scheme"
        raise ValueError(message)
    return terms


def _dates(texts: pa.Array) -> pa.Array:
    return texts.cast(pa.date32())


def _datetimes(texts: pa.Array) -> pa.Array:
    encoded = texts.dictionary_encode()
    moments = map(datetime.datetime.fromisoformat, encoded.dictionary.to_pylist())
    canonical = [constant(in_utc(moment)).text for moment in moments]
    terms = terms_of_kind(Kind.TYPED, pa.array(canonical, pa.string()))
    return terms.take(encoded.indices)


def in_utc(moment: datetime.datetime) -> datetime.datetime:
    """The same moment in UTC; one without a time zone as it is."""
    return moment if moment.tzinfo is None else moment.astimezone(datetime.UTC)


TYPES: dict[str, Converter] = {
    **TEXT_TYPES, "iri": _full_iris, "date": _dates, "datetime": _datetimes,
}  # fmt: skip
"""The types that columns can have, and how texts become constants of them."""

NAMES = {
    "integer": "an integer", "decimal": "a decimal number", "double": "a number",
    "boolean": "true or false", "iri": "a full IRI", "term": "a term", "date": "a date",
    "datetime": "a date with time", "string": "a text",
}  # fmt: skip
"""What messages call values of the types."""

NOTHING = "null"
"""The family of columns without any value, which fit every type."""

_WRONG = (EvermatError, pa.ArrowInvalid, ValueError)


def family(arrow_type: pa.DataType) -> str:
    """The sort of values that a column of a source holds."""
    if pa.types.is_dictionary(arrow_type):
        return family(arrow_type.value_type)
    if isinstance(arrow_type, pa.BaseExtensionType):
        return family(arrow_type.storage_type)
    for name, is_type in _FAMILIES:
        if is_type(arrow_type):
            return name
    return str(arrow_type)


def _is_text(arrow_type: pa.DataType) -> bool:
    types = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_type(arrow_type) for is_type in types)


_FAMILIES: tuple[tuple[str, Callable[[pa.DataType], bool]], ...] = (
    ("string", _is_text),
    ("integer", pa.types.is_integer),
    ("double", pa.types.is_floating),
    ("boolean", pa.types.is_boolean),
    ("decimal", pa.types.is_decimal),
    ("date", pa.types.is_date),
    ("datetime", pa.types.is_timestamp),
    ("time", pa.types.is_time),
    (NOTHING, pa.types.is_null),
)

TAKES: dict[str, frozenset[str]] = {
    "string": frozenset(name for name, _ in _FAMILIES),
    "integer": frozenset({"string", "integer"}),
    "decimal": frozenset({"string", "decimal", "integer"}),
    "double": frozenset({"string", "double", "integer", "decimal"}),
    "boolean": frozenset({"string", "boolean"}),
    "iri": frozenset({"string"}),
    "term": frozenset({"string"}),
    "date": frozenset({"string", "date"}),
    "datetime": frozenset({"string", "datetime"}),
}
"""For each type of the configuration, the families it can be made from."""


def converted(column: pa.Array, type_name: str | None) -> pa.Array:
    """The values as terms, null where there is none or where it does not fit."""
    column = _plain(column)
    given = pc.is_valid(column)
    if pa.types.is_temporal(column.type):
        beyond = pc.fill_null(beyond_calendar(column), fill_value=True)
        given = pc.and_not(given, beyond)
    present = _in_microseconds(column.filter(given))
    if type_name is not None and _is_text(column.type):
        fits, terms = _of_texts(present.cast(pa.string()), TYPES[type_name])
        return scattered(terms, _within(given, fits))
    return scattered(_of_values(present, type_name), given)


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    return column


def _in_microseconds(column: pa.Array) -> pa.Array:
    if not pa.types.is_timestamp(column.type):
        return column
    # Spark hands out moments in the time zone of its session.
    zone = None if column.type.tz is None else "UTC"
    return column.cast(pa.timestamp("us", zone), safe=False)


def _of_values(column: pa.Array, type_name: str | None) -> pa.Array:
    match type_name:
        case "string":
            terms = as_terms(column)
            return terms_of_kind(Kind.STRING, lexical(terms))
        case "double":
            return as_terms(column.cast(pa.float64()))
        case "decimal":
            texts = as_terms(column).field(1)
            return as_terms(TEXT_TYPES["decimal"](texts))
        case _:
            return as_terms(column)


def _of_texts(texts: pa.Array, convert: Converter) -> tuple[pa.Array, pa.Array]:
    """Which texts fit, and the terms of those that do."""
    try:
        return pa.repeat(pa.scalar(value=True), len(texts)), as_terms(convert(texts))
    except _WRONG:
        if len(texts) == 1:
            return pa.array([False]), pa.array([], TERM)
    middle = len(texts) // 2
    halves = [_of_texts(part, convert) for part in (texts[:middle], texts[middle:])]
    return (
        pa.concat_arrays([fits for fits, _ in halves]),
        pa.concat_arrays([terms for _, terms in halves]),
    )


def _within(outer: pa.Array, inner: pa.Array) -> pa.Array:
    """Of the rows that `outer` keeps, those that `inner` keeps."""
    return pc.replace_with_mask(outer, outer, inner)


def scattered(values: pa.Array, places: pa.Array) -> pa.Array:
    """The values in the rows that are true, nulls in the others."""
    if len(values) == len(places):
        return values
    numbers = pc.subtract(pc.cumulative_sum(places.cast(pa.int64())), 1)
    nothing = pa.scalar(None, pa.int64())
    return values.take(pc.if_else(places, numbers, nothing))


def lexical(terms: pa.Array) -> pa.Array:
    """The texts of terms, without datatypes and languages."""
    # Rows that are null as a whole are null in their halves too, with `struct_field`.
    texts = pc.struct_field(terms, [1])
    is_long = pc.is_in(
        pc.struct_field(terms, [0]),
        value_set=pa.array([int(Kind.TYPED), int(Kind.LANGUAGE)], pa.uint8()),
    )
    if not pc.any(is_long, min_count=0).as_py():
        return texts
    return pc.if_else(
        is_long, pc.replace_substring_regex(texts, r"(?s)^[^\x00]*\x00", ""), texts
    )
