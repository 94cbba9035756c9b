"""Delimited text: CSV, TSV and the `.facts` files of Soufflé.

| format | delimiter | quoting | header                                       |
| ------ | --------- | ------- | -------------------------------------------- |
| csv    | `,`       | `"…"`   | none, unless it has the names of the columns |
| tsv    | tab       | `"…"`   | none, unless it has the names of the columns |
| facts  | tab       | none    | none                                         |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
import pyarrow.csv as arrow_csv

from evermat.columns import column_names, folded, rows_without_columns
from evermat.io.column_types import (
    UnknownColumnError,
    ValueFormatError,
    guessed,
    typed,
    types_by_column,
)
from evermat.io.files import FileOptionError
from evermat.io.headers import first_row, holds_names
from evermat.io.places import (
    MalformedFileError,
    decoded,
    label_at,
    label_between,
    records,
)
from evermat.runtime.input_limits import WidthError, input_limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evermat.errors import Label
    from evermat.io.files import DataFile

_USUAL_COLUMNS = 1 << 10
BLOCK = 1 << 24
"""Bytes of a text file that are read at once; a record must fit in them."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The syntax of a delimited text.

    Attributes:
        delimiter: the character between two fields.
        quoting: whether fields may be quoted, and then contain delimiters and line
            ends.
        header: whether the first row has names; None if that depends on whether it has
            the known names.
    """

    delimiter: str = ","
    quoting: bool = True
    header: bool | None = None

    def __post_init__(self) -> None:
        """Reject a delimiter that Arrow cannot parse."""
        sign = self.delimiter
        if len(sign) != 1 or not sign.isascii() or sign in '"\r\n':
            raise FileOptionError(
                f"{sign!r} cannot be the delimiter",
                reason="one ASCII character, no quote and no line end, is between "
                "fields",
            )


DIALECTS = {
    "csv": Dialect(","),
    "tsv": Dialect("\t"),
    "facts": Dialect("\t", quoting=False, header=False),
}


def read_delimited(
    file: DataFile,
    dialect: Dialect,
    *,
    columns: Sequence[str] | None = None,
    types: Sequence[str | None] | Mapping[str, str] | None = None,
    arity: int | None = None,
) -> pa.Table:
    """Read a delimited text; see `evermat.io.read_table`."""
    data = file.read()
    if arity == 0:
        return _rows_without_columns(file, data)
    if not _has_text(data):
        names = list(columns) if columns is not None else column_names(arity or 0)
        return pa.table([pa.array([], pa.string()) for _ in names], names=names)
    expected = _expected(columns, arity, dialect)
    texts = _Texts(file, dialect, data, expected, columns or ())
    table = texts.read()
    first = first_row(table)
    has_header = dialect.header
    if has_header is None:
        has_header = columns is not None and holds_names(
            table, columns, texts.first_labels
        )
    places: Sequence[int] = range(table.num_columns)
    if has_header:
        table = table.slice(1).rename_columns(first)
        if columns is not None:
            places = chosen_places(first, columns, file.path.name)
            table = table.select(list(places)).rename_columns(list(columns))
    elif columns is not None:
        table = table.rename_columns(list(columns))
    wanted = types_by_column(types, table.column_names)
    arrays = [
        texts.convert(column.combine_chunks(), type_name, place, header=has_header)
        for column, type_name, place in zip(table.columns, wanted, places, strict=True)
    ]
    return pa.table(arrays, names=table.column_names)


def chosen(table: pa.Table, columns: Sequence[str], where: str) -> pa.Table:
    """Return the named columns of a table, in the order of the names."""
    places = chosen_places(table.column_names, columns, where)
    return table.select(places).rename_columns(list(columns))


def chosen_places(
    found: Sequence[str], columns: Sequence[str], where: str
) -> list[int]:
    """Return the positions of columns by name; case matters only to break ties.

    Raises:
        UnknownColumnError: there is no column of a name.
        MalformedFileError: there are several.
    """
    return [_place(found, name, where) for name in columns]


def _place(found: Sequence[str], name: str, where: str) -> int:
    for form in (str, folded):
        names = list(map(form, found))
        count = names.count(form(name))
        if count > 1:
            raise MalformedFileError(
                f"`{where}` has several columns `{name}`",
                reason="columns that are chosen by name have names of their own",
                help="rename them in the file",
            )
        if count:
            return names.index(form(name))
    raise UnknownColumnError(name, found, f"`{where}`")


def _expected(
    columns: Sequence[str] | None, arity: int | None, dialect: Dialect
) -> int | None:
    # With a header, columns are selected by name, so a file may have more.
    if columns is not None and dialect.header is not True:
        return len(columns)
    return arity if columns is None else None


def _has_text(data: pa.Buffer) -> bool:
    empty = b"\xef\xbb\xbf\r\n"
    return bool(bytes(data[:64]).strip(empty) or bytes(data[64:]).strip(empty))


def whole_lines(data: pa.Buffer) -> pa.Buffer:
    """Return data that ends in a line end, which Arrow requires of a single line."""
    if bytes(data[-1:]) in b"\r\n":
        return data
    return pa.py_buffer(data.to_pybytes() + b"\n")


def require_width(file: DataFile, columns: int) -> None:
    """Reject a file with too many columns.

    Raises:
        WidthError: it has too many.
    """
    if columns > input_limits().columns:
        raise WidthError(f"`{file.path.name}` has {columns:,} columns", "columns")


NO_ARGUMENTS = "()"
"""The representation of a fact without arguments where a field is required."""


def _rows_without_columns(file: DataFile, data: pa.Buffer) -> pa.Table:
    """Read facts without arguments: one per line, written `()` by Soufflé."""
    lines = decoded(file.path, data.to_pybytes()).split("\n")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    for number in filled:
        line = lines[number].rstrip("\r")
        if line != NO_ARGUMENTS:
            raise MalformedFileError(
                "a fact without arguments has values here",
                labels=(label_at(file.path, number + 1, 1, text=line),),
                reason="a fact without arguments is a line `()`",
                help="correct the file, or the number of arguments in the rules",
            )
    return rows_without_columns(len(filled))


@dataclass(slots=True)
class _Texts:
    """The contents of one file, parsed to columns of strings."""

    file: DataFile
    dialect: Dialect
    data: pa.Buffer
    expected: int | None
    columns: Sequence[str]

    def read(self) -> pa.Table:
        """Return all fields as strings, in columns `c1`, `c2` and so on."""
        self._require_width()
        try:
            table = self._parse(_USUAL_COLUMNS)
            if table.num_columns > _USUAL_COLUMNS:
                table = self._parse(table.num_columns)
        except pa.ArrowInvalid as error:
            self._explain(error)
        if self.expected is not None and table.num_columns != self.expected:
            self._explain(None)
        if self.dialect.quoting:
            self._check_last_quote(table)
        return table.rename_columns(column_names(table.num_columns))

    def _require_width(self) -> None:
        """Count the fields of the first record, before Arrow allocates columns."""
        start = bytes(self.data[:BLOCK])
        if start.count(self.dialect.delimiter.encode()) >= input_limits().columns:
            first = next(self._records(start.decode("utf-8", "replace")), ())
            require_width(self.file, len(first))

    def _parse(self, columns: int) -> pa.Table:
        """Parse up to `columns` columns as strings, without guessing types."""
        quote = '"' if self.dialect.quoting else False
        types = {f"f{number}": pa.string() for number in range(columns)}
        return arrow_csv.read_csv(
            pa.BufferReader(whole_lines(self.data)),
            arrow_csv.ReadOptions(
                autogenerate_column_names=True,
                block_size=BLOCK,
            ),
            arrow_csv.ParseOptions(
                delimiter=self.dialect.delimiter,
                quote_char=quote,
                double_quote=self.dialect.quoting,
                newlines_in_values=self.dialect.quoting,
            ),
            arrow_csv.ConvertOptions(column_types=types),
        )

    def convert(
        self, texts: pa.Array, type_name: str | None, place: int, *, header: bool
    ) -> pa.Array:
        """Convert a column to its type; an error points at the field in its row."""
        if type_name is None:
            return guessed(texts)
        try:
            return typed(texts, type_name)
        except ValueFormatError as error:
            contents = self._contents()
            for row, fields in enumerate(self._records(contents), start=1):
                if row == error.row + header:
                    label = label_between(self.file.path, contents, *fields[place])
                    raise ValueFormatError(
                        error.text, error.row, error.expected, (label,)
                    ) from None
            raise

    def first_labels(self) -> tuple[Label, ...]:
        """Return the position of the first row."""
        contents = self._contents()
        fields = next(self._records(contents))
        return (label_between(self.file.path, contents, fields[0][0], fields[-1][1]),)

    def _contents(self) -> str:
        return decoded(self.file.path, self.data.to_pybytes())

    def _records(self, contents: str) -> Iterator[list[tuple[int, int]]]:
        return records(contents, self.dialect.delimiter, quoting=self.dialect.quoting)

    def _explain(self, cause: Exception | None) -> NoReturn:
        """Find the position of an error that the fast reader has only detected."""
        contents = self._contents()
        expected = self.expected
        fields = [(0, 0)]
        for fields in self._records(contents):
            if expected is None:
                expected = len(fields)
            if len(fields) != expected:
                self._refuse_open_quote(contents, fields[-1])
                found = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
                place = fields[min(expected, len(fields) - 1)]
                remark = "one too many" if len(fields) > expected else "ends here"
                label = label_between(self.file.path, contents, *place, remark)
                raise MalformedFileError(
                    f"this row has {found}, expected {expected}",
                    labels=(label,),
                    reason="all rows of a file have the same number of fields"
                    if self.expected is None
                    else "every row has a field for each column",
                    help=self._advice(contents),
                ) from cause
        self._refuse_open_quote(contents, fields[-1])
        raise MalformedFileError(
            f"`{self.file.path.name}` cannot be read: {cause}"
        ) from cause

    def _advice(self, contents: str) -> str:
        other = {",": "\t", "\t": ","}.get(self.dialect.delimiter, ",")
        first = contents.partition("\n")[0]
        if self.dialect.delimiter not in first and other in first:
            name = {",": "commas", "\t": "tabs"}[other]
            return f"the file seems to be separated by {name}: say `delimiter=…`"
        row = [contents[slice(*field)] for field in next(self._records(contents))]
        if self.columns and set(map(folded, self.columns)) <= set(map(folded, row)):
            return (
                "to choose columns by the names in the first row, say that it has "
                "names: `--header`, or `header=True`"
            )
        if self.dialect.quoting:
            return "quote fields that contain the delimiter"
        return "check the delimiter of this row"

    def _check_last_quote(self, table: pa.Table) -> None:
        """Reject a quote that is never closed, which the fast reader accepts."""
        last = table.columns[-1][-1].as_py().replace('"', '""').encode()
        tail = self.data.slice(max(0, self.data.size - len(last) - 2)).to_pybytes()
        is_closed = tail == b'"' + last + b'"'
        if is_closed or not tail.endswith(b'"' + last):
            return
        contents = self._contents()
        raise self._open_quote(contents, len(contents) - len(last.decode()) - 1)

    def _refuse_open_quote(self, contents: str, field: tuple[int, int]) -> None:
        text = contents[slice(*field)]
        if self.dialect.quoting and re.fullmatch(r'"(?:[^"]|"")*', text):
            raise self._open_quote(contents, field[0])

    def _open_quote(self, contents: str, start: int) -> MalformedFileError:
        return MalformedFileError(
            "this quote is never closed",
            labels=(label_between(self.file.path, contents, start, start + 1),),
            help="close it, or say `quoting=False` if quotes are ordinary characters",
        )
