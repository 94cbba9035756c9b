"""Rows from any Python object: frames, tables, tuples.

Frame libraries are recognised without being imported: a caller that passes a frame has
loaded its library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from evermat.columns import (
    ArityMismatchError,
    ColumnNamesError,
    column_names,
    column_of,
    declared_places,
    joined_tables,
    order_of,
    require_values,
    rows_without_columns,
    table_of_rows,
    term_table,
)
from evermat.errors import EvermatError
from evermat.errors.redaction import redacted
from evermat.io.databases import is_database
from evermat.io.rdf_objects import answers_of, triples_of

_MATRIX = 2


class NotRowsError(EvermatError, TypeError):
    """A Python object that cannot be converted to rows."""

    code = "EM719"

    def __init__(self, given: object, *, row: int | None = None) -> None:
        if row is not None:
            super().__init__(
                f"row {row} is not a mapping as row 1 is: {given!r}",
                help="give rows of one form",
            )
            return
        if isinstance(given, str):
            if is_database(given):
                super().__init__(
                    f"an address is not rows: {redacted(given)!r}",
                    help="read the table with evermat.io.read_database(…)",
                )
                return
            super().__init__(
                f"a text is not rows: {given!r}",
                help=f"write [({given!r},)] for a single row; to read a file, write "
                f"Path({given!r})",
            )
            return
        super().__init__(
            f"cannot take rows from a value of type `{type(given).__name__}`",
            help="give tuples, a mapping from names to columns, or a frame of pandas, "
            "Polars, Arrow or Spark",
        )


class UnevenRecordsError(EvermatError, ValueError):
    """A row with a column that the rows before it lack."""

    code = "EM724"

    def __init__(self, row: int, name: str) -> None:
        super().__init__(
            f"row {row} has a column `{name}` that row 1 has not",
            reason="all rows have the same columns",
            help="choose the columns that make the fact",
        )


class UnevenColumnsError(EvermatError, ValueError):
    """Columns of different lengths."""

    code = "EM720"

    def __init__(self, names: Sequence[str], lengths: Sequence[int]) -> None:
        pairs = zip(names, lengths, strict=True)
        found = ", ".join(f"`{name}` has {length:,}" for name, length in pairs)
        super().__init__(f"the columns have different numbers of values: {found}")


def rows_from(
    given: object,
    arity: int | None = None,
    *,
    name: str = "",
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Convert a Python object to a table of rows.

    Args:
        given: an Arrow table, record batch or reader; a pandas, Polars or Spark frame,
            or anything with the Arrow stream interface; a two-dimensional NumPy array;
            a mapping from names to columns; an RDF graph; or an iterable of tuples,
            lists, mappings, triples or record batches.
        arity: the required number of columns.
        name: the name of the rows in an error.
        columns: the required names of the columns, in order. Columns with names of
            their own are reordered; unnamed ones stay as they are.

    Raises:
        NotRowsError: the object is something else.
        ArityMismatchError: there are more or fewer columns.
        ColumnNamesError: the columns have other names.
        MissingValueError: a value is missing.

    >>> rows_from([("a", 1), ("b", 2)]).num_rows
    2
    """
    table, has_names = _table_of(given, arity)
    if columns is not None and has_names and table.num_columns:
        places = declared_places(table.column_names, columns, name=name)
        table = table.select(list(places))
    if arity is not None and table.num_columns != arity:
        if table.num_columns or table.num_rows:
            raise ArityMismatchError(arity, table.num_columns, name=name)
        table = table_of_rows([], arity)
    for at, column in enumerate(table.columns):
        require_values(column, table.column_names[at])
    return table


def names_of(row: object) -> Sequence[str] | None:
    """Return the names of the values of a row, if they have any.

    Mappings, named tuples and rows of Spark have names.
    """
    if isinstance(row, Mapping):
        return list(map(str, row))
    if not isinstance(row, tuple) or type(row) is tuple:
        return None
    fields = getattr(row, "_fields", None) or getattr(row, "__fields__", None)
    is_complete = isinstance(fields, Sequence) and len(fields) == len(row)
    return list(map(str, fields)) if fields and is_complete else None


def _table_of(given: object, arity: int | None) -> tuple[pa.Table, bool]:
    """Return the rows, and whether the names of the columns are their own."""
    if isinstance(given, str | bytes):
        raise NotRowsError(given)
    for is_kind, convert, has_names in _KINDS:
        if is_kind(given):
            return convert(given), has_names
    answers = answers_of(given)
    if answers is not None:
        names, rows = answers
        return table_of_rows(rows, len(names)).rename_columns(names), True
    if isinstance(given, Iterable):
        return _table_of_iterable(given, arity)
    raise NotRowsError(given)


def _is_from(library: str, *names: str) -> Callable[[object], bool]:
    def check(given: object) -> bool:
        module = sys.modules.get(library)
        types = tuple(getattr(module, name) for name in names) if module else ()
        return isinstance(given, types)

    return check


def _has(*attributes: str) -> Callable[[object], bool]:
    return lambda given: all(hasattr(given, attribute) for attribute in attributes)


def _is_matrix(given: object) -> bool:
    return getattr(given, "ndim", None) == _MATRIX and hasattr(given, "__array__")


def _from_pandas(frame: Any) -> pa.Table:  # noqa: ANN401  pandas is optional
    if hasattr(frame, "to_frame"):
        frame = frame.to_frame()
    names = [str(name) for name in frame.columns]
    columns = [
        _pandas_column(frame.iloc[:, index], names[index])
        for index in range(len(names))
    ]
    return pa.table(columns, names=names)


def _pandas_column(series: Any, name: str) -> pa.Array:  # noqa: ANN401
    if series.dtype != object:
        try:
            return pa.Array.from_pandas(series)
        except pa.ArrowException:  # such as categories of several types
            series = series.astype(object)
    # Objects of any type; values that pandas treats as missing are missing here.
    return column_of(series.where(series.notna(), None).tolist(), name)


def _from_polars(frame: Any) -> pa.Table:  # noqa: ANN401  Polars is optional
    if hasattr(frame, "collect"):
        frame = frame.collect()
    if hasattr(frame, "to_frame"):
        frame = frame.to_frame()
    return frame.to_arrow()


def _from_matrix(matrix: Any) -> pa.Table:  # noqa: ANN401  any array library
    width = matrix.shape[1]
    names = column_names(width)
    columns = [_array_column(matrix[:, at], names[at]) for at in range(width)]
    return pa.table(columns, names=names)


def _array_column(array: Any, name: str) -> pa.Array:  # noqa: ANN401  as above
    if getattr(getattr(array, "dtype", None), "kind", "") != "O":
        try:
            return pa.array(array)
        except (pa.ArrowException, UnicodeError):
            pass  # what is wrong with a value is said below
    return column_of(array.tolist(), name)


def _from_batch(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def _is_column(given: object) -> bool:
    return isinstance(given, pa.Array | pa.ChunkedArray)


def _from_column(column: pa.Array | pa.ChunkedArray) -> pa.Table:
    return pa.table([column], names=["c1"])


def _table_of_columns(columns: Mapping[Any, Any]) -> pa.Table:
    arrays = [_any_column(column, str(name)) for name, column in columns.items()]
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1:
        raise UnevenColumnsError(
            [str(name) for name in columns], list(map(len, arrays))
        )
    return pa.table(arrays, names=[str(name) for name in columns])


def _any_column(column: Any, name: str) -> pa.Array:  # noqa: ANN401  what users have
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if _is_from("pandas", "Series")(column):
        return _pandas_column(column, name)
    if hasattr(column, "__arrow_c_stream__"):
        return pa.chunked_array(column)
    if hasattr(column, "__array__"):
        return _array_column(column, name)
    if isinstance(column, Iterable) and not isinstance(column, str | bytes):
        return column_of(list(column), name)
    raise NotRowsError(column)


def _table_of_records(records: Sequence[Any]) -> pa.Table:
    first = records[0]
    for row, record in enumerate(records, start=1):
        if not isinstance(record, Mapping):
            raise NotRowsError(record, row=row)
        if len(record) > len(first):
            unknown = next(name for name in record if name not in first)
            raise UnevenRecordsError(row, str(unknown))
    return _table_of_columns(
        {name: [record.get(name) for record in records] for name in first}
    )


def _table_of_iterable(rows: Iterable[Any], arity: int | None) -> tuple[pa.Table, bool]:
    iterator = iter(rows)
    first = next(iterator, iterator)
    if first is iterator:
        return rows_without_columns(0), False
    if isinstance(first, pa.RecordBatch | pa.Table):
        return _table_of_batches([first, *iterator]), True
    if isinstance(first, Mapping):
        return _table_of_records([first, *iterator]), True
    given = rows if isinstance(rows, list) else [first, *iterator]
    given = triples_of(rows, first, given, arity)
    width = len(given[0]) if isinstance(given[0], Sequence) else 1
    names = names_of(first)
    if names is None or any(names_of(row) != names for row in given):
        return table_of_rows(given, width if arity is None else arity), False
    return table_of_rows(given, width).rename_columns(names), True


def _table_of_batches(batches: Sequence[pa.RecordBatch | pa.Table]) -> pa.Table:
    """Return the rows of all batches, whose columns may be in different orders."""
    first = batches[0].schema.names
    tables = []
    for batch in batches:
        names = batch.schema.names
        places = range(len(names)) if names == first else order_of(names, first)
        if places is None:
            raise ColumnNamesError(names, first)
        table = batch if isinstance(batch, pa.Table) else _from_batch(batch)
        tables.append(table.select(list(places)))
    if any(not table.schema.equals(tables[0].schema) for table in tables):
        tables = [term_table(table) for table in tables]
    return joined_tables(tables) if first else pa.concat_tables(tables)


_KINDS: tuple[tuple[Callable[[object], bool], Callable[[Any], pa.Table], bool], ...] = (
    (lambda given: isinstance(given, pa.Table), lambda table: table, True),
    (lambda given: isinstance(given, pa.RecordBatch), _from_batch, True),
    (_is_from("pandas", "DataFrame"), _from_pandas, True),
    (_is_from("polars", "DataFrame", "LazyFrame"), _from_polars, True),
    # A single column may have any name.
    (_is_from("pandas", "Series"), _from_pandas, False),
    (_is_from("polars", "Series"), _from_polars, False),
    (_is_column, _from_column, False),
    (_has("toArrow"), lambda frame: frame.toArrow(), True),
    (_has("__arrow_c_stream__"), pa.table, True),
    (_is_matrix, _from_matrix, False),
    (lambda given: isinstance(given, Mapping), _table_of_columns, True),
)
"""Recognised types, their conversions to tables, and whether columns have names."""
