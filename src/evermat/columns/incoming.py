"""Conversion of input to tables of terms: Arrow columns, and rows of Python values."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns.terms import TERM, single, terms_of_kind
from evermat.errors import EvermatError
from evermat.errors.wording import counted
from evermat.values import (
    IRI,
    XSD,
    BlankNode,
    Kind,
    ValueConversionError,
    constant,
    decimal_constant,
    double_constant,
    is_missing,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from evermat.values import Constant


class MissingValueError(EvermatError, ValueError):
    """A null where a fact needs a value."""

    code = "EM701"

    def __init__(self, row: int | None, column: str | None = None) -> None:
        """Record the place; rows of a distributed frame have no numbers."""
        self.row = row
        self.column = column
        where = "" if column is None else f" in column `{column}`"
        super().__init__(
            f"{'a row' if row is None else f'row {row}'} has no value{where}",
            reason="every argument of a fact has a value; there are no nulls",
            help="drop the rows with missing values, or fill them in",
        )


def as_terms(
    column: pa.Array | pa.ChunkedArray, *, name: str | None = None
) -> pa.Array:
    """Convert an Arrow column of any supported type to a term column.

    Args:
        column: integers, floats, decimals, Booleans, strings, dates, times,
            timestamps, dictionaries of these, or terms already. Decimals without
            digits after the point are integers.
        name: the name of the column in errors.

    Raises:
        MissingValueError: there is a null.
        ValueConversionError: the type has no constants, or a moment is outside the
            range of the calendar.

    >>> as_terms(pa.array([7])).to_pylist()
    [{'kind': 3, 'text': '7'}]
    """
    column = _plain_layout(column, name)
    require_values(column, name)
    if pa.types.is_dictionary(column.type):
        return _dictionary_terms(column, name)
    if pa.types.is_struct(column.type):
        return _struct_terms(column, name)
    for is_type, convert in _INTO_TERMS:
        if is_type(column.type):
            return convert(column)
    raise _no_constants(column.type, name)


def term_table(table: pa.Table) -> pa.Table:
    """Return the table with every column as a term column, chunk by chunk."""
    if not table.num_columns:
        return table
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        # Before the chunks are converted: rows count from the start of the table.
        require_values(column, name)
        terms = [as_terms(chunk, name=name) for chunk in column.chunks]
        columns.append(pa.chunked_array(terms, TERM))
    return pa.table(columns, names=table.column_names)


def _plain_layout(column: pa.Array | pa.ChunkedArray, name: str | None) -> pa.Array:
    column = single(column)
    if isinstance(column, pa.ExtensionArray):
        extension, column = column.type, column.storage
        if extension.extension_name == "arrow.bool8":
            column = column.cast(pa.bool_())
        elif pa.types.is_primitive(column.type):
            # The numbers may have any meaning: months of a calendar, for example.
            raise _no_constants(extension, name)
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    return column


def require_values(column: pa.Array | pa.ChunkedArray, name: str | None) -> None:
    """Check that every row of a column has a value that can be represented.

    Raises:
        MissingValueError: there is a null.
        ValueConversionError: a moment is outside the range of the calendar.
    """
    refuse_nulls(column, name)
    if pa.types.is_temporal(column.type):
        _refuse_moments_beyond(column, name)


def refuse_nulls(column: pa.Array | pa.ChunkedArray, name: str | None) -> None:
    """Raise MissingValueError if a column has a null."""
    if column.null_count:
        row = pc.index(pc.is_null(column), value=True).as_py() + 1
        raise MissingValueError(row, name)


_DAY = 86_400
_FIRST_DAY = -12_687_063
_LAST_DAY = 11_248_372
"""For the years -32766 to 32766. Arrow formats one more, but not in all time zones."""

_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _refuse_moments_beyond(
    column: pa.Array | pa.ChunkedArray, name: str | None
) -> None:
    row = pc.index(beyond_calendar(column), value=True).as_py()
    if row >= 0:
        where = "" if name is None else f" in column `{name}`"
        number = column.slice(row, 1).cast(_number_type(column.type))[0]
        raise ValueConversionError(
            f"row {row + 1} has a {column.type} that no calendar has{where}: {number}",
            reason="dates lie between the years -32766 and 32766, times within a day",
            help="correct the values, or drop their rows",
        )


def beyond_calendar(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return for each row whether it is a moment that Arrow would format as another.

    Far outside its range of years, Arrow wraps around.
    """
    limits = _limits(column.type)
    if limits is None:
        return pa.repeat(pa.scalar(value=False), len(column))
    first, last = limits
    numbers = column.cast(_number_type(column.type))
    return pc.or_(pc.less(numbers, first), pc.greater(numbers, last))


def _number_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the integer type that represents moments of a type."""
    return pa.int32() if arrow_type.bit_width == 32 else pa.int64()  # noqa: PLR2004


def _limits(arrow_type: pa.DataType) -> tuple[int, int] | None:
    """Return the least and the greatest number of a column of moments, if limited."""
    types = pa.types
    if types.is_date32(arrow_type):
        return _FIRST_DAY, _LAST_DAY
    if types.is_date64(arrow_type):
        return _FIRST_DAY * _DAY * 1000, (_LAST_DAY + 1) * _DAY * 1000 - 1
    if types.is_time(arrow_type):
        return 0, _DAY * _TICKS[arrow_type.unit] - 1
    if types.is_timestamp(arrow_type) and arrow_type.unit != "ns":  # no limits
        ticks = _TICKS[arrow_type.unit]
        return _FIRST_DAY * _DAY * ticks, (_LAST_DAY + 1) * _DAY * ticks - 1
    return None


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
    refuse_nulls(kinds, name)
    refuse_nulls(texts, name)
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
    # Distinct by bits: as numbers, 0.0 and -0.0 would be equal.
    bits = column.cast(pa.float64()).view(pa.int64()).dictionary_encode()
    distinct = bits.dictionary.view(pa.float64()).to_pylist()
    texts = pa.array([double_constant(value).text for value in distinct], pa.string())
    return terms_of_kind(Kind.DOUBLE, texts.take(bits.indices))


def _decimal_terms(column: pa.Array) -> pa.Array:
    if column.type.scale <= 0:
        # Databases return large integers in this form, and so does `natural`.
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
    return _typed_terms("time", _with_short_fraction(column.cast(pa.string())))


def _timestamp_terms(column: pa.Array) -> pa.Array:
    """Format timestamps like `values.constant` formats moments of Python."""
    column = _in_microseconds(column, pa.timestamp("us", column.type.tz))
    texts = _with_short_fraction(column.cast(pa.string()))
    texts = pc.replace_substring(texts, " ", "T", max_replacements=1)
    texts = pc.replace_substring_regex(texts, r"([+-]\d\d)(\d\d)$", r"\1:\2")
    texts = pc.replace_substring_regex(texts, r"\+00:00$", "Z")
    return _typed_terms("dateTime", texts)


def _in_microseconds(column: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        return column.cast(target)
    except pa.ArrowInvalid:
        return column  # with significant nanoseconds


def _with_short_fraction(texts: pa.Array) -> pa.Array:
    """Strip trailing zeros of fractions, whatever the rest of the column needs."""
    texts = pc.replace_substring_regex(texts, r"(\.\d*?)0+(Z|[+-]\d{4}|)$", r"\1\2")
    return pc.replace_substring_regex(texts, r"\.(Z|[+-]\d{4}|)$", r"\1")


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


# --------------------------------------------------------------------------------- rows


class ArityMismatchError(EvermatError, ValueError):
    """A row has more or fewer values than expected."""

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
            f"{what}{of} has {counted(found, unit)}, expected {expected}",
            reason="all facts of a predicate have the same number of arguments",
        )


def column_names(arity: int) -> list[str]:
    """Return default names of columns: `c1`, `c2` and so on."""
    return [f"c{number}" for number in range(1, arity + 1)]


def table_of_rows(rows: Iterable[Sequence[object]], arity: int) -> pa.Table:
    """Return a table of rows of Python values.

    A column of plain strings, integers, floats or Booleans gets the corresponding Arrow
    type; any other column becomes a term column.

    Raises:
        ArityMismatchError: a row has more or fewer values than `arity`.
        MissingValueError: a value is None, or missing according to pandas or NumPy.
        ValueConversionError: a value that cannot be converted to a constant.
    """
    given = rows if isinstance(rows, list) else list(rows)
    _check_rows(given, arity)
    if not arity:
        return rows_without_columns(len(given))
    names = column_names(arity)
    columns = list(zip(*given, strict=True)) or [()] * arity
    arrays = [
        column_of(column, name) for column, name in zip(columns, names, strict=True)
    ]
    return pa.table(arrays, names=names)


def rows_without_columns(count: int) -> pa.Table:
    """Return a table of `count` empty rows: facts of a predicate without arguments."""
    return pa.table({"c1": pa.nulls(count)}).select([])


def empty_table(arity: int) -> pa.Table:
    """Return a table of term columns without rows."""
    if not arity:
        return rows_without_columns(0)
    empty = pa.chunked_array([], TERM)
    return pa.table([empty] * arity, names=column_names(arity))


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


def column_of(column: Sequence[object], name: str) -> pa.Array:
    """Return an Arrow column of Python values; see `table_of_rows`."""
    try:
        return _column(column, name)
    except UnicodeEncodeError as error:
        raise ValueConversionError(
            f"column `{name}` has a string that is not Unicode text: {error.object!r}"
        ) from error


def _column(column: Sequence[object], name: str) -> pa.Array:
    types = set(map(type, column))
    if len(types) == 1 and types <= _PLAIN.keys():
        try:
            return pa.array(column, _PLAIN[types.pop()])
        except OverflowError:  # integers that need more than 64 bits
            texts = pa.array((constant(each).text for each in column), pa.string())
            return terms_of_kind(Kind.INTEGER, texts)
    if len(types) == 1 and types <= _SINGLE_KINDS.keys():
        kind, text_of = _SINGLE_KINDS[types.pop()]
        return terms_of_kind(kind, pa.array(map(text_of, column), pa.string()))
    return _mixed_column(column, name)


_SINGLE_KINDS: dict[type, tuple[Kind, Callable[[Any], str]]] = {
    IRI: (Kind.IRI, attrgetter("text")),
    BlankNode: (Kind.BLANK, attrgetter("label")),
}

_PLAIN: dict[type, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
}


def _mixed_column(column: Sequence[object], name: str) -> pa.Array:
    for row, value in enumerate(column, start=1):
        if is_missing(value):
            raise MissingValueError(row, name)
    converted = [constant(value) for value in column]
    kinds = pa.array([each.kind for each in converted], pa.uint8())
    texts = pa.array([each.text for each in converted], pa.string())
    return pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))


def for_spark(table: pa.Table) -> pa.Table:
    """Drop empty chunks from a table: Spark loses all rows after one of them."""
    batches = [batch for batch in table.to_batches() if batch.num_rows]
    return pa.Table.from_batches(batches, table.schema)


def rows_without(
    table: pa.Table, unwanted: Sequence[Mapping[int, Constant]]
) -> pa.Table:
    """Return the rows of a table that do not have all the constants of an unwanted row.

    Args:
        table: columns of terms.
        unwanted: one or more constants by their column.
    """
    for constants in unwanted:
        has_all = None
        for at, wanted in constants.items():
            column = table.column(at)
            has = pc.and_(
                pc.equal(pc.struct_field(column, [0]), int(wanted.kind)),
                pc.equal(pc.struct_field(column, [1]), wanted.text),
            )
            has_all = has if has_all is None else pc.and_(has_all, has)
        table = table.filter(pc.invert(has_all))
    return table


def joined_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables whose columns differ at most in their names."""
    some = [table for table in tables if table.num_rows]
    if len(some) < 2:  # noqa: PLR2004  nothing to join
        return some[0] if some else tables[0]
    names = some[0].column_names
    return pa.concat_tables([table.rename_columns(names) for table in some])
