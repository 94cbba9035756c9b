"""Columns of constants: the Arrow form in which facts travel between the parts.

A *term column* is an Arrow struct of `kind` and `text`, the two halves of a
`evermat.values.Constant`. Everything that can be a constant fits in one, mixed as it
comes. Data that arrives in ordinary Arrow types is turned into term columns by
`as_terms`, and back into the most ordinary type that holds it by `natural`.

Both work on whole columns. Python objects are made only where they are asked for
(`values`, `constants`) or where they are what was given (`table_of_rows`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.errors import EvermatError
from evermat.values import (
    XSD,
    Constant,
    Kind,
    Value,
    ValueConversionError,
    constant,
    decimal_constant,
    double_constant,
    value_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TERM = pa.struct([("kind", pa.uint8()), ("text", pa.string())])
"""The type of a term column."""


class MissingValueError(EvermatError, ValueError):
    """A null where a fact needs a value."""

    code = "EM701"

    def __init__(self, row: int, column: str | None = None) -> None:
        self.row = row
        self.column = column
        where = "" if column is None else f" in column `{column}`"
        super().__init__(
            f"row {row} has no value{where}",
            law="every argument of a fact has a value; there are no nulls",
            help="drop the rows with missing values, or fill them in",
        )


class ArityMismatchError(EvermatError, ValueError):
    """Rows that have more or fewer values than they should."""

    code = "EM702"

    def __init__(
        self, expected: int, found: int, *, row: int | None = None, name: str = ""
    ) -> None:
        self.expected = expected
        self.found = found
        self.row = row
        what = "the table" if row is None else f"row {row}"
        of = f" of `{name}`" if name else ""
        unit = "column" if row is None else "value"
        super().__init__(
            f"{what}{of} has {_count(found, unit)}, expected {expected}",
            law="all facts of a predicate have the same number of arguments",
        )


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


# --------------------------------------------------------------- into term columns


def as_terms(
    column: pa.Array | pa.ChunkedArray, *, name: str | None = None
) -> pa.Array:
    """Turn an Arrow column of any supported type into a term column.

    Args:
        column: integers, floats, decimals, Booleans, strings, dates, times,
            timestamps, dictionaries of these, or terms already. Decimals without
            digits after the point are integers.
        name: what to call the column in an error.

    Raises:
        MissingValueError: there is a null.
        ValueConversionError: the type has no constants.

    >>> as_terms(pa.array([7])).to_pylist()
    [{'kind': 3, 'text': '7'}]
    """
    column = _plain_layout(column)
    _refuse_nulls(column, name)
    if pa.types.is_dictionary(column.type):
        return _dictionary_terms(column, name)
    if pa.types.is_struct(column.type):
        return _struct_terms(column, name)
    for is_type, convert in _INTO_TERMS:
        if is_type(column.type):
            return convert(column)
    raise _no_constants(column.type, name)


def term_table(table: pa.Table) -> pa.Table:
    """The table with every column as a term column, chunk by chunk."""
    if not table.num_columns:
        return table
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        # Before the chunks are: rows count from the start of the table.
        _refuse_nulls(column, name)
        terms = [as_terms(chunk, name=name) for chunk in column.chunks]
        columns.append(pa.chunked_array(terms, TERM))
    return pa.table(columns, names=table.column_names)


def terms_of_kind(kind: Kind, texts: pa.Array) -> pa.Array:
    """A term column of one kind; the texts must be canonical for it."""
    kinds = pa.repeat(pa.scalar(int(kind), pa.uint8()), len(texts))
    return pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))


def _plain_layout(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    column = _single(column)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    return column


def _refuse_nulls(column: pa.Array | pa.ChunkedArray, name: str | None) -> None:
    if column.null_count:
        row = pc.index(pc.is_null(column), value=True).as_py() + 1
        raise MissingValueError(row, name)


def _no_constants(arrow_type: pa.DataType, name: str | None) -> ValueConversionError:
    where = "a column" if name is None else f"column `{name}`"
    return ValueConversionError(
        f"{where} of Arrow type `{arrow_type}` cannot be stored",
        help="cast it to strings, numbers, Booleans, dates or timestamps",
    )


def _dictionary_terms(column: pa.DictionaryArray, name: str | None) -> pa.Array:
    if column.dictionary.null_count:
        return as_terms(column.dictionary_decode(), name=name)
    return as_terms(column.dictionary, name=name).take(column.indices)


def _struct_terms(column: pa.StructArray, name: str | None) -> pa.Array:
    if column.type.equals(TERM):
        kinds, texts = column.field(0), column.field(1)
    elif [field.name for field in column.type] == ["kind", "text"]:
        kinds = column.field(0).cast(pa.uint8())
        texts = column.field(1).cast(pa.string())
    else:
        raise _no_constants(column.type, name)
    _refuse_nulls(kinds, name)
    _refuse_nulls(texts, name)
    if column.type.equals(TERM):
        return column
    return pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))


def _integer_terms(column: pa.Array) -> pa.Array:
    return terms_of_kind(Kind.INTEGER, column.cast(pa.string()))


def _string_terms(column: pa.Array) -> pa.Array:
    return terms_of_kind(Kind.STRING, column.cast(pa.string()))


def _boolean_terms(column: pa.Array) -> pa.Array:
    return terms_of_kind(Kind.BOOLEAN, column.cast(pa.string()))


def _double_terms(column: pa.Array) -> pa.Array:
    # Distinct by bits: as numbers, 0.0 and -0.0 would be one value.
    bits = column.cast(pa.float64()).view(pa.int64()).dictionary_encode()
    distinct = bits.dictionary.view(pa.float64()).to_pylist()
    texts = pa.array([double_constant(value).text for value in distinct], pa.string())
    return terms_of_kind(Kind.DOUBLE, texts.take(bits.indices))


def _decimal_terms(column: pa.Array) -> pa.Array:
    if column.type.scale <= 0:
        # Databases hand out large integers in this form, and so does `natural`.
        whole = pa.decimal256(76, 0)
        return terms_of_kind(Kind.INTEGER, column.cast(whole).cast(pa.string()))
    encoded = column.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    texts = pa.array([decimal_constant(value).text for value in distinct], pa.string())
    return terms_of_kind(Kind.DECIMAL, texts.take(encoded.indices))


def _typed_terms(datatype: str, lexical: pa.Array) -> pa.Array:
    prefix = pa.scalar(f"{XSD}{datatype}\0")
    return terms_of_kind(Kind.TYPED, pc.binary_join_element_wise(prefix, lexical, ""))


def _date_terms(column: pa.Array) -> pa.Array:
    return _typed_terms("date", column.cast(pa.date32()).cast(pa.string()))


def _time_terms(column: pa.Array) -> pa.Array:
    column = _in_microseconds(column, pa.time64("us"))
    return _typed_terms("time", _without_zero_fraction(column.cast(pa.string())))


def _timestamp_terms(column: pa.Array) -> pa.Array:
    """Texts as Python's `datetime.isoformat` writes them, so that both ways agree."""
    column = _in_microseconds(column, pa.timestamp("us", column.type.tz))
    texts = _without_zero_fraction(column.cast(pa.string()))
    texts = pc.replace_substring(texts, " ", "T", max_replacements=1)
    texts = pc.replace_substring_regex(texts, "Z$", "+00:00")
    texts = pc.replace_substring_regex(texts, r"([+-]\d\d)(\d\d)$", r"\1:\2")
    return _typed_terms("dateTime", texts)


def _in_microseconds(column: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        return column.cast(target)
    except pa.ArrowInvalid:
        return column  # nanoseconds that matter


def _without_zero_fraction(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, r"\.0+(Z|[+-]\d{4}|)$", r"\1")


def _is_text(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(arrow_type)
        or types.is_large_string(arrow_type)
        or types.is_string_view(arrow_type)
        or types.is_null(arrow_type)
    )


_INTO_TERMS: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]], ...
] = (
    (_is_text, _string_terms),
    (pa.types.is_integer, _integer_terms),
    (pa.types.is_floating, _double_terms),
    (pa.types.is_boolean, _boolean_terms),
    (pa.types.is_decimal, _decimal_terms),
    (pa.types.is_date, _date_terms),
    (pa.types.is_timestamp, _timestamp_terms),
    (pa.types.is_time, _time_terms),
)


# -------------------------------------------------------------- out of term columns


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
    """
    terms = _single(column)
    kinds = kinds_in(terms)
    if kinds <= {Kind.IRI, Kind.BLANK}:
        return by_kind(terms, {Kind.IRI: lambda text: text, Kind.BLANK: _blank_texts})
    if len(kinds) == 1:
        plain = _NATURAL[kinds.pop()](terms.field(1))
        if plain is not None:
            return plain
    return term_texts(terms)


def term_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The terms in the syntax of the language, as `values.term_text` writes them."""
    return by_kind(_single(column), _TERM_TEXTS)


def values(column: pa.Array | pa.ChunkedArray) -> list[Value]:
    """The terms as Python values."""
    terms = _single(column)
    kinds = kinds_in(terms)
    texts: list[str] = terms.field(1).to_pylist()
    if kinds == {Kind.STRING}:
        return list(texts)
    if len(kinds) == 1:
        return list(map(_READERS[kinds.pop()], texts))
    pairs = zip(terms.field(0).to_pylist(), texts, strict=True)
    return [_READERS[kind](text) for kind, text in pairs]


def constants(column: pa.Array | pa.ChunkedArray) -> list[Constant]:
    """The terms as constants."""
    terms = _single(column)
    kinds = list(Kind)
    pairs = zip(terms.field(0).to_pylist(), terms.field(1).to_pylist(), strict=True)
    return [Constant(kinds[kind], text) for kind, text in pairs]


def kinds_in(terms: pa.Array) -> set[Kind]:
    """The kinds that occur in a term column."""
    return {Kind(number) for number in terms.field(0).unique().to_pylist()}


def by_kind(
    terms: pa.Array, convert: dict[Kind, Callable[[pa.Array], pa.Array]]
) -> pa.Array:
    """Convert the texts of each kind with the kind's own function, order kept."""
    kinds, texts = terms.field(0), terms.field(1)
    present = sorted(kinds_in(terms))
    if len(present) <= 1:
        return convert[present[0]](texts) if present else texts
    places = [pc.indices_nonzero(pc.equal(kinds, int(kind))) for kind in present]
    pieces = [
        convert[kind](texts.take(rows))
        for kind, rows in zip(present, places, strict=True)
    ]
    back = pc.sort_indices(pa.concat_arrays(places))
    return pa.concat_arrays(pieces).take(back)


def _single(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


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
    datatype, lexical = _halves(texts)
    datatypes = datatype.unique().to_pylist()
    if datatypes == [XSD + "date"]:
        return _cast_or_none(lexical, pa.date32())
    if datatypes == [XSD + "dateTime"]:
        utc = pc.all(pc.match_substring_regex(lexical, r"(\+00:00|Z)$")).as_py()
        return _cast_or_none(lexical, pa.timestamp("us", "UTC" if utc else None))
    return None


def _halves(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """What stands before and after the NUL of TYPED and LANGUAGE texts."""
    parts = pc.extract_regex(texts, r"(?s)^(?P<before>[^\x00]*)\x00(?P<after>.*)$")
    return parts.field(0), parts.field(1)


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def quoted(texts: pa.Array) -> pa.Array:
    """String literals with the escapes of Turtle, as `values.quote` writes them."""
    for char, escape in _ESCAPES:
        texts = pc.replace_substring(texts, char, escape)
    return _joined('"', texts, '"')


_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


def _blank_texts(texts: pa.Array) -> pa.Array:
    return _joined("_:", texts)


def _iri_texts(texts: pa.Array) -> pa.Array:
    return _joined("<", texts, ">")


def _typed_texts(texts: pa.Array) -> pa.Array:
    datatype, lexical = _halves(texts)
    return _joined(quoted(lexical), "^^<", datatype, ">")


def _language_texts(texts: pa.Array) -> pa.Array:
    language, lexical = _halves(texts)
    return _joined(quoted(lexical), "@", language)


def _double_texts(texts: pa.Array) -> pa.Array:
    with_exponent = pc.if_else(
        pc.match_substring(texts, "e"), texts, _joined(texts, "e0")
    )
    for text, name in (("nan", "NaN"), ("inf", "INF"), ("-inf", "-INF")):
        special = f'"{name}"^^<{XSD}double>'
        with_exponent = pc.if_else(pc.equal(texts, text), special, with_exponent)
    return with_exponent


def _same(texts: pa.Array) -> pa.Array:
    return texts


_TERM_TEXTS: dict[Kind, Callable[[pa.Array], pa.Array]] = {
    Kind.STRING: quoted,
    Kind.IRI: _iri_texts,
    Kind.BLANK: _blank_texts,
    Kind.INTEGER: _same,
    Kind.DECIMAL: _same,
    Kind.DOUBLE: _double_texts,
    Kind.BOOLEAN: _same,
    Kind.TYPED: _typed_texts,
    Kind.LANGUAGE: _language_texts,
}

_NATURAL: dict[Kind, Callable[[pa.Array], pa.Array | None]] = {
    Kind.STRING: _same,
    Kind.INTEGER: _natural_integers,
    Kind.DECIMAL: _natural_decimals,
    Kind.DOUBLE: lambda texts: texts.cast(pa.float64()),
    Kind.BOOLEAN: lambda texts: pc.equal(texts, "true"),
    Kind.TYPED: _natural_typed,
    Kind.LANGUAGE: lambda _: None,
}


# ------------------------------------------------------------------- Python rows


def column_names(arity: int) -> list[str]:
    """Names for columns that have none: `c1`, `c2` and so on."""
    return [f"c{number}" for number in range(1, arity + 1)]


def table_of_rows(rows: Iterable[Sequence[object]], arity: int) -> pa.Table:
    """A table of rows of Python values.

    A column of plain strings, integers, floats or Booleans gets the Arrow type of that
    name; any other column becomes a term column.

    Raises:
        ArityMismatchError: a row has more or fewer values than `arity`.
        MissingValueError: a value is None.
        ValueConversionError: a value that no constant can stand for.
    """
    given = rows if isinstance(rows, list) else list(rows)
    _check_rows(given, arity)
    if not arity:
        return rows_without_columns(len(given))
    names = column_names(arity)
    columns = list(zip(*given, strict=True)) or [()] * arity
    arrays = [
        _column_of(column, name) for column, name in zip(columns, names, strict=True)
    ]
    return pa.table(arrays, names=names)


def rows_without_columns(count: int) -> pa.Table:
    """A table of `count` empty rows: facts of a predicate without arguments."""
    return pa.table({"c1": pa.nulls(count)}).select([])


def _check_rows(rows: list[Sequence[object]], arity: int) -> None:
    if all(type(row) is tuple for row in rows) and set(map(len, rows)) <= {arity}:
        return
    for number, row in enumerate(rows, start=1):
        if isinstance(row, str | bytes) or not isinstance(row, Sequence):
            raise ValueConversionError(
                f"row {number} is not a tuple or list: {row!r}",
                help=f"write ({row!r},) for a row with one value",
            )
        if len(row) != arity:
            raise ArityMismatchError(arity, len(row), row=number)


def _column_of(column: Sequence[object], name: str) -> pa.Array:
    types = set(map(type, column))
    if types <= {str, int, float, bool} and len(types) == 1:
        try:
            return pa.array(column, _PLAIN[types.pop()])
        except OverflowError:  # integers that need more than 64 bits
            texts = pa.array([str(value) for value in column], pa.string())
            return terms_of_kind(Kind.INTEGER, texts)
        except UnicodeEncodeError as error:
            raise ValueConversionError(
                f"column `{name}` has a string that is not Unicode text: "
                f"{error.object!r}"
            ) from error
    return _mixed_column(column, name)


_PLAIN: dict[type, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
}


def _mixed_column(column: Sequence[object], name: str) -> pa.Array:
    for row, value in enumerate(column, start=1):
        if value is None:
            raise MissingValueError(row, name)
    converted = [constant(value) for value in column]
    kinds = pa.array([each.kind for each in converted], pa.uint8())
    texts = pa.array([each.text for each in converted], pa.string())
    return pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))
