"""Maps rows of a source to facts; invalid rows are set aside with the reason.

Both engines use this module: the embedded one in its own process, Spark in the tasks
that read.
"""

from __future__ import annotations

import datetime
import json
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from operator import gt, lt
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import TERM, as_terms, beyond_calendar, column_names, terms_of_kind
from evermat.errors import EvermatError
from evermat.io.column_types import TYPES as TEXT_TYPES
from evermat.pipeline.config import Argument, Column
from evermat.values import Kind, constant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evermat.pipeline.config import FactMap, Source

    Converter = Callable[[pa.Array], pa.Array]


# ------------------------------------------------------------------------- conversions

# Conversion of columns of sources into term columns, row by row if rows are invalid.
#
# Strings are converted as whole columns, with the same readers as for other files. Only
# if that fails, the column is halved repeatedly to find the invalid rows.


def _full_iris(texts: pa.Array) -> pa.Array:
    """Convert IRIs with a scheme: a row has no base for relative ones."""
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
    """Return a moment in UTC; one without a time zone is unchanged."""
    return moment if moment.tzinfo is None else moment.astimezone(datetime.UTC)


TYPES: dict[str, Converter] = {
    **TEXT_TYPES, "iri": _full_iris, "date": _dates, "datetime": _datetimes,
}  # fmt: skip
"""The types of columns, and the conversions of strings to their constants."""

NAMES = {
    "integer": "an integer", "decimal": "a decimal number", "double": "a number",
    "boolean": "true or false", "iri": "a full IRI", "term": "a term", "date": "a date",
    "datetime": "a date with time", "string": "a text",
}  # fmt: skip
"""The names of values of the types in messages."""

NOTHING = "null"
"""The family of columns without any value, which fit every type."""

_WRONG = (EvermatError, pa.ArrowInvalid, ValueError)


def family(arrow_type: pa.DataType) -> str:
    """Return the kind of values in a column of a source."""
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
"""For each type of the configuration, the families that convert to it."""


def converted(column: pa.Array, type_name: str | None) -> pa.Array:
    """Return the values as terms, null for missing and invalid ones."""
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
    # Spark converts moments to the time zone of its session.
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
    """Return which strings are valid, and the terms of those."""
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
    """Return the rows that both masks keep, the second one within the first."""
    return pc.replace_with_mask(outer, outer, inner)


def scattered(values: pa.Array, places: pa.Array) -> pa.Array:
    """Return the values in the rows that are true, and nulls in the others."""
    if len(values) == len(places):
        return values
    numbers = pc.subtract(pc.cumulative_sum(places.cast(pa.int64())), 1)
    nothing = pa.scalar(None, pa.int64())
    return values.take(pc.if_else(places, numbers, nothing))


def lexical(terms: pa.Array) -> pa.Array:
    """Return the lexical forms of terms, without datatypes and languages."""
    # With `struct_field`, null rows have null fields.
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


# ----------------------------------------------------------------------------- mapping

REJECTED = pa.schema(
    [
        ("source", pa.string()),
        ("file", pa.string()),
        ("position", pa.int64()),
        ("column", pa.string()),
        ("reason", pa.string()),
        ("row", pa.string()),
    ]
)
"""Rejected rows. The position is the offset of a line in its file, in bytes from 0, or
the number of a row of Parquet, from 0.
"""

HOLE = re.compile(r"\{([^{}]+)\}")
"""A column in a template."""

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a source.

    Attributes:
        columns: by name, as they were read.
        file: their file, if it is known.
        positions: the position of each row in the file.
        texts: the lines they were read from, if they were lines.
    """

    columns: dict[str, pa.Array]
    length: int
    file: str | None = None
    positions: pa.Array | None = None
    texts: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class Mapped:
    """The results of mapping rows: facts by predicate, and rejected rows."""

    facts: list[tuple[str, pa.Table]]
    rejected: pa.Table
    rows: int


class Mapper:
    """Maps rows of a source to facts."""

    def __init__(self, source: Source, names: Sequence[str]) -> None:
        """Create a mapper for rows with columns of these names."""
        self._source = source
        declared = {column.name: column for column in source.columns}
        self._columns = [
            declared.get(name) or Column(name) for name in (declared or names)
        ]
        self._facts = [
            (each, each.arguments or self._all_columns()) for each in source.facts
        ]
        self._types = self._declared_types()

    def _all_columns(self) -> tuple[Argument, ...]:
        return tuple(Argument("column", column.name) for column in self._columns)

    def _declared_types(self) -> dict[str, str]:
        """Return the types that rules declare for columns, if all uses agree."""
        uses: dict[str, set[str]] = {}
        for facts, arguments in self._facts:
            types = facts.types if len(facts.types) == len(arguments) else ()
            for at, argument in enumerate(arguments):
                is_column = argument.kind == "column" and argument.language is None
                declared = types[at] if types and is_column else ""
                names = holes(argument.text) if argument.kind != "column" else ()
                for name in names or (argument.text,):
                    uses.setdefault(name, set()).add(declared)
        return {
            name: found.pop()
            for name, found in uses.items()
            if len(found) == 1 and found <= TYPES.keys()
        }

    def _typed(self, column: Column, values: pa.Array) -> Column:
        """Return the column; one of strings without a type gets the declared one."""
        declared = self._types.get(column.name)
        if column.type is not None or declared is None:
            return column
        is_text = family(values.type) == "string"
        return replace(column, type=declared) if is_text else column

    def map(self, rows: Rows) -> Mapped:
        """Return the facts of some rows."""
        wrong = _Wrong(rows.length)
        terms = {
            column.name: _checked(self._typed(column, values), values, wrong)
            for column in self._columns
            for values in (rows.columns[column.name],)
        }
        keep = wrong.others
        if keep is not None:
            terms = {name: column.filter(keep) for name, column in terms.items()}
        length = rows.length - wrong.count
        facts = [
            (each.predicate, _facts(each, arguments, terms, length))
            for each, arguments in self._facts
        ]
        return Mapped(facts, self._rejected(rows, wrong), rows.length)

    def _rejected(self, rows: Rows, wrong: _Wrong) -> pa.Table:
        numbers = sorted(wrong.reasons)
        reasons = [wrong.reasons[number] for number in numbers]
        at = pa.array(numbers, pa.int64())
        texts = (
            [self._row_text(rows, number) for number in numbers]
            if rows.texts is None
            else rows.texts.take(at).to_pylist()
        )
        positions = (
            pa.nulls(len(numbers), pa.int64())
            if rows.positions is None
            else rows.positions.take(at)
        )
        return pa.table(
            [
                pa.array([self._source.name] * len(numbers), pa.string()),
                pa.array([rows.file] * len(numbers), pa.string()),
                positions.cast(pa.int64()),
                pa.array([column for column, _ in reasons], pa.string()),
                pa.array([reason for _, reason in reasons], pa.string()),
                pa.array(texts, pa.string()),
            ],
            schema=REJECTED,
        )

    def _row_text(self, rows: Rows, number: int) -> str:
        values = {
            column.name: _python_value(rows.columns[column.name][number])
            for column in self._columns
        }
        return json.dumps(values, ensure_ascii=False, default=str)


class _Wrong:
    """The invalid rows, each with a column and the first reason found."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.reasons: dict[int, tuple[str, str]] = {}

    def note(
        self, column: str, is_wrong: pa.Array, reason: Callable[[int], str]
    ) -> None:
        """Record the rows that are true (null counts as false)."""
        if not pc.any(is_wrong, min_count=0).as_py():
            return
        for number in pc.indices_nonzero(is_wrong).to_pylist():
            self.reasons.setdefault(number, (column, reason(number)))

    @property
    def count(self) -> int:
        return len(self.reasons)

    @property
    def others(self) -> pa.Array | None:
        """Return a mask of the valid rows; None for all."""
        if not self.reasons:
            return None
        numbers = pa.array(sorted(self.reasons), pa.int64())
        every = pa.array(range(self.length), pa.int64())
        return pc.invert(pc.is_in(every, value_set=numbers))


def _checked(column: Column, values: pa.Array, wrong: _Wrong) -> pa.Array:
    """Return the terms of a column; rows that violate a constraint are recorded."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    terms = converted(values, column.type)
    missing = pc.is_null(values)
    if column.required:
        wrong.note(column.name, missing, lambda _: "no value")
    unfit = pc.and_(pc.invert(missing), pc.is_null(terms))
    expected = NAMES.get(column.type or "", "a value")
    wrong.note(
        column.name,
        unfit,
        lambda at: f"{_shown(_python_value(values[at]))} is not {expected}",
    )
    if _has_rules(column):
        texts = lexical(terms)
        for is_wrong, reason in _Rules(column).broken(texts):
            wrong.note(column.name, is_wrong, partial(_told, texts, reason))
    return terms


def _told(texts: pa.Array, reason: str, row: int) -> str:
    return f"{_shown(texts[row].as_py())} {reason}"


def _has_rules(column: Column) -> bool:
    bounds = (column.pattern, column.minimum, column.maximum)
    return bool(column.one_of) or any(bound is not None for bound in bounds)


@dataclass(frozen=True)
class _Rules:
    """The constraints on the values of a column."""

    column: Column

    def broken(self, texts: pa.Array) -> list[tuple[pa.Array, str]]:
        """Return for each constraint the rows that violate it, and the message."""
        column = self.column
        found = []
        if column.pattern is not None:
            fits = pc.match_substring_regex(texts, rf"^(?:{column.pattern})$")
            found.append((pc.invert(fits), f"does not match {column.pattern}"))
        if column.one_of:
            fits = pc.is_in(texts, value_set=pa.array(column.one_of, pa.string()))
            absent = pc.and_(pc.invert(fits), pc.is_valid(texts))
            found.append((absent, f"is not one of {', '.join(column.one_of)}"))
        bounds = (
            (column.minimum, pc.less, "below"),
            (column.maximum, pc.greater, "above"),
        )
        for bound, is_beyond, word in bounds:
            if isinstance(bound, str):
                # Dates and moments in UTC have the order of their strings, without the
                # `Z`.
                plain = pc.replace_substring_regex(texts, "Z$", "")
                beyond = is_beyond(plain, bound.removesuffix("Z"))
                found.append((beyond, f"is {word} {bound}"))
            elif bound is not None:
                numbers = _numbers(texts)
                is_text = pc.and_(pc.is_null(numbers), pc.is_valid(texts))
                found.append((is_text, "is not a number"))
                beyond = _beyond(texts, numbers, bound, is_beyond)
                found.append((beyond, f"is {word} {bound}"))
        return found


def _beyond(
    texts: pa.Array,
    numbers: pa.Array,
    bound: int | Decimal,
    is_beyond: Callable[[pa.Array, pa.Scalar], pa.Array],
) -> pa.Array:
    """Return which numbers are beyond a bound, exactly.

    Rounding preserves the order of numbers. So floats are sufficient unless they are
    equal; in that case the strings are compared, digit by digit.
    """
    limit = Decimal(bound)
    rounded = pa.scalar(float(limit))
    beyond = is_beyond(numbers, rounded)
    is_close = pc.fill_null(pc.equal(numbers, rounded), fill_value=False)
    if not pc.any(is_close, min_count=0).as_py():
        return beyond
    compare = gt if is_beyond is pc.greater else lt
    close = texts.filter(is_close).dictionary_encode()
    exactly = [compare(Decimal(text), limit) for text in close.dictionary.to_pylist()]
    return pc.replace_with_mask(
        beyond, is_close, pa.array(exactly, pa.bool_()).take(close.indices)
    )


def _numbers(texts: pa.Array) -> pa.Array:
    """Return strings as numbers, null for other strings."""
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return pa.array([_number(text) for text in texts.to_pylist()], pa.float64())


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _python_value(scalar: pa.Scalar) -> object:
    """Return a value to display; Python has no moments after the year 9999."""
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return scalar.cast(pa.string()).as_py()


def _shown(value: object) -> str:
    text = str(value)
    return f"`{text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}`"


# ---------------------------------------------------------------------------- facts


def _facts(
    facts: FactMap,
    arguments: Sequence[Argument],
    terms: dict[str, pa.Array],
    length: int,
) -> pa.Table:
    """Return the facts of rows; those that lack a value are left out."""
    columns = [_argument(argument, terms, length) for argument in arguments]
    is_declared = len(facts.declared) == len(columns)
    names = facts.declared if is_declared else column_names(len(columns))
    table = pa.table(columns, names=names)
    keep = None
    for column in columns:
        if column.null_count:
            valid = pc.is_valid(column)
            keep = valid if keep is None else pc.and_(keep, valid)
    return table if keep is None else table.filter(keep)


def _argument(argument: Argument, terms: dict[str, pa.Array], length: int) -> pa.Array:
    match argument.kind:
        case "column":
            return _in_language(terms[argument.text], argument.language)
        case "iri":
            texts = _filled(argument.text, terms, length, encode=True)
            return _of_kind(Kind.IRI, texts)
        case "text":
            texts = _filled(argument.text, terms, length, encode=False)
            return _in_language(_of_kind(Kind.STRING, texts), argument.language)
        case "value":
            texts = pa.repeat(pa.scalar(argument.text), length)
            return terms_of_kind(Kind(argument.value_kind), texts)


def _in_language(terms: pa.Array, language: str | None) -> pa.Array:
    if language is None:
        return terms
    prefix = pa.scalar(f"{language.lower()}\0")
    texts = pc.binary_join_element_wise(prefix, lexical(terms), "")
    return _of_kind(Kind.LANGUAGE, texts)


def _of_kind(kind: Kind, texts: pa.Array) -> pa.Array:
    """Return terms of a kind, null where the string is."""
    if not texts.null_count:
        return terms_of_kind(kind, texts)
    kinds = pa.repeat(pa.scalar(int(kind), pa.uint8()), len(texts))
    return pa.StructArray.from_arrays(
        [kinds, texts], fields=list(TERM), mask=pc.is_null(texts)
    )


def _filled(
    template: str, terms: dict[str, pa.Array], length: int, *, encode: bool
) -> pa.Array:
    """Return a template filled with the values of its columns."""
    parts: list[pa.Array | pa.Scalar] = []
    for at, piece in enumerate(HOLE.split(template)):
        if at % 2:
            texts = lexical(terms[piece])
            parts.append(_percent_encoded(texts) if encode else texts)
        elif piece:
            parts.append(pa.scalar(piece))
    if not any(isinstance(part, pa.Array) for part in parts):
        return pa.repeat(pa.scalar(template), length)
    joined = pc.binary_join_element_wise(*parts, "")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def holes(template: str) -> list[str]:
    """Return the columns that a template names."""
    return HOLE.findall(template)


def _percent_encoded(texts: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(texts, r"[^A-Za-z0-9_.~\-]")
    if not pc.any(special, min_count=0).as_py():
        return texts
    encoded = texts.dictionary_encode()
    safe = [quote(text, safe="") for text in encoded.dictionary.to_pylist()]
    return pa.array(safe, pa.string()).take(encoded.indices)
