"""Rows of Python values into tables."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns.incoming import MissingValueError
from evermat.columns.terms import TERM, terms_of_kind
from evermat.errors import EvermatError
from evermat.values import (
    IRI,
    BlankNode,
    Kind,
    ValueConversionError,
    constant,
    is_missing,
)
from evermat.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from evermat.values import Constant


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
            f"{what}{of} has {counted(found, unit)}, expected {expected}",
            law="all facts of a predicate have the same number of arguments",
        )


def column_names(arity: int) -> list[str]:
    """Names for columns that have none: `c1`, `c2` and so on."""
    return [f"c{number}" for number in range(1, arity + 1)]


def table_of_rows(rows: Iterable[Sequence[object]], arity: int) -> pa.Table:
    """A table of rows of Python values.

    A column of plain strings, integers, floats or Booleans gets the Arrow type of that
    name; any other column becomes a term column.

    Raises:
        ArityMismatchError: a row has more or fewer values than `arity`.
        MissingValueError: a value is None, or what pandas and NumPy have for it.
        ValueConversionError: a value that no constant can stand for.
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
    """A table of `count` empty rows: facts of a predicate without arguments."""
    return pa.table({"c1": pa.nulls(count)}).select([])


def empty_table(arity: int) -> pa.Table:
    """A table of term columns without rows."""
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
    """An Arrow column of Python values; see `table_of_rows`."""
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
    """The same table without empty chunks: Spark loses all rows behind one of them."""
    batches = [batch for batch in table.to_batches() if batch.num_rows]
    return pa.Table.from_batches(batches, table.schema)


def rows_without(
    table: pa.Table, unwanted: Sequence[Mapping[int, Constant]]
) -> pa.Table:
    """The rows of a table of terms that have not all constants of any of some rows.

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
    """The rows of one or more tables, which have the same columns but for names."""
    some = [table for table in tables if table.num_rows]
    if len(some) < 2:  # noqa: PLR2004  nothing to join
        return some[0] if some else tables[0]
    names = some[0].column_names
    return pa.concat_tables([table.rename_columns(names) for table in some])
