"""Delimited text as Nemo reads and writes it.

Unlike Evermat's own tables (`evermat.io.delimited`), a row that does not fit is skipped
and counted, and each cell determines its own type:

| cell                                  | constant                        |
| ------------------------------------- | ------------------------------- |
| `alice`, `http://a/b`, `<alice>`      | IRI                             |
| `42`, `-7`                            | integer                         |
| `1.5`                                 | decimal number                  |
| `"text"`, `"text"@en`, `"1"^^<type>`  | string or literal               |
| `_:b`                                 | blank node                      |
| empty, or with blanks                 | string                          |

White space around a cell is ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from evermat.columns import TERM, by_kind, column_names, terms_of_kind
from evermat.columns.terms import halves, reassembled, single
from evermat.io.column_types import typed
from evermat.io.delimited import BLOCK, Dialect, whole_lines
from evermat.io.places import decoded, records
from evermat.values import XSD, Constant, Kind, language_string, literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evermat.io.files import DataFile

_BARE_IRI = r'^[^\s>"<0-9+\-_][^\s>]*$'
_WHOLE = "^(0|-?[1-9][0-9]*)$"
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_FITTING = {
    "integer": r"^\s*[+-]?[0-9]+\s*$",
    "double": r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$",
}
_SKIPPED = "skip"


@dataclass(frozen=True, slots=True)
class NemoTable:
    """The rows of a file, and the number of rows that did not fit."""

    table: pa.Table
    skipped: int


def read_nemo_table(
    file: DataFile,
    *,
    delimiter: str,
    quoting: bool,
    header: bool,
    types: Sequence[str] | None,
    limit: int | None = None,
) -> NemoTable:
    """Read a delimited text; see the module.

    Args:
        file: the file, which may be compressed.
        delimiter: the character between two cells.
        quoting: whether a cell may be enclosed in double quotation marks.
        header: whether to skip the first row.
        types: one of `any`, `string`, `integer`, `double` and `skip` per column; by
            default, `any` for each column of the first row.
        limit: the largest number of rows to read.
    """
    dialect = Dialect(delimiter, quoting=quoting)
    data = whole_lines(file.read())
    if types is None:
        types = ["any"] * _width(file, dialect, data)
    if not bytes(data).strip() or not types:
        kept = [name for name in types if name != _SKIPPED]
        empty = [pa.array([], TERM)] * len(kept)
        return NemoTable(pa.table(empty, names=column_names(len(kept))), 0)
    texts, skipped = _texts(data, delimiter, len(types), quoting=quoting, header=header)
    if limit is not None:
        texts = texts.slice(0, limit)
    fitting = _fitting(texts, types)
    arrays = [
        _convert(single(column), name)
        for column, name in zip(fitting.columns, types, strict=True)
        if name != _SKIPPED
    ]
    table = pa.table(arrays, names=column_names(len(arrays)))
    return NemoTable(table, skipped + texts.num_rows - fitting.num_rows)


def _width(file: DataFile, dialect: Dialect, data: pa.Buffer) -> int:
    text = decoded(file.path, data.to_pybytes())
    rows = records(text, dialect.delimiter, quoting=dialect.quoting)
    return len(next(rows, ()))


def _parse_options(delimiter: str, *, quoting: bool) -> arrow_csv.ParseOptions:
    return arrow_csv.ParseOptions(
        delimiter=delimiter,
        quote_char='"' if quoting else False,
        double_quote=quoting,
        newlines_in_values=quoting,
    )


def _texts(
    data: pa.Buffer, delimiter: str, width: int, *, quoting: bool, header: bool
) -> tuple[pa.Table, int]:
    """Return the cells of the rows with the right number of cells."""
    skipped = 0

    def skip(_: object) -> str:
        nonlocal skipped
        skipped += 1
        return "skip"

    options = _parse_options(delimiter, quoting=quoting)
    options.invalid_row_handler = skip
    names = column_names(width)
    table = arrow_csv.read_csv(
        pa.BufferReader(data),
        arrow_csv.ReadOptions(
            column_names=names,
            block_size=BLOCK,
            skip_rows=1 if header else 0,
            # The handler counts, so it must not be called from several threads.
            use_threads=False,
        ),
        options,
        arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
    )
    return table, skipped


def _fitting(texts: pa.Table, types: Sequence[str]) -> pa.Table:
    """Return the rows whose numeric cells are numbers."""
    for column, name in zip(texts.column_names, types, strict=True):
        if name in _FITTING:
            fits = pc.match_substring_regex(texts[column], _FITTING[name])
            texts = texts.filter(fits)
    return texts


def _convert(texts: pa.Array, type_name: str) -> pa.Array:
    if type_name == "any":
        return read_cells(texts)
    return typed(texts, type_name)


def read_cells(texts: pa.Array) -> pa.Array:
    """Convert cells to constants, as a term column.

    Integers and bare names are converted by whole columns, the rest by distinct value.
    """
    texts = pc.utf8_trim_whitespace(texts)
    is_whole = pc.match_substring_regex(texts, _WHOLE)
    is_bare = pc.match_substring_regex(texts, _BARE_IRI)
    is_other = pc.invert(pc.or_(is_whole, is_bare))
    places = [pc.indices_nonzero(mask) for mask in (is_whole, is_bare, is_other)]
    whole, bare, other = (texts.take(rows) for rows in places)
    pieces = [
        terms_of_kind(Kind.INTEGER, whole),
        terms_of_kind(Kind.IRI, bare),
        _read_distinct(other),
    ]
    return reassembled(places, pieces)


def _read_distinct(texts: pa.Array) -> pa.Array:
    encoded = texts.dictionary_encode()
    terms = [read_cell(text) for text in encoded.dictionary.to_pylist()]
    kinds = pa.array([term.kind for term in terms], pa.uint8())
    contents = pa.array([term.text for term in terms], pa.string())
    column = pa.StructArray.from_arrays([kinds, contents], fields=list(TERM))
    return column.take(encoded.indices)


def read_cell(cell: str) -> Constant:
    """Convert one cell to a constant.

    >>> print(read_cell("Anna"), read_cell("Anna B"), read_cell("-1"))
    <Anna> "Anna B" -1
    """
    text = cell.strip()
    if text.startswith("<") and text.endswith(">"):
        return Constant(Kind.IRI, text[1:-1])
    if _DECIMAL.fullmatch(text):
        return literal(text, XSD + ("decimal" if "." in text else "integer"))
    if text.startswith('"'):
        quoted = _read_quoted(text)
        if quoted is not None:
            return quoted
    if re.fullmatch(r"_:\w[\w.\-]*", text):
        return Constant(Kind.BLANK, text[2:])
    is_name = text and not re.search(r"[\s>]", text)
    return Constant(Kind.IRI if is_name else Kind.STRING, text)


def _read_quoted(text: str) -> Constant | None:
    """Parse a string or literal; the last quotation mark ends it, whatever precedes."""
    end = text.rfind('"')
    content, rest = text[1:end], text[end + 1 :]
    if end == 0:
        return None
    if not rest:
        return Constant(Kind.STRING, content)
    if rest.startswith("@"):
        return language_string(content, rest[1:])
    if rest.startswith("^^<") and rest.endswith(">"):
        datatype = rest[3:-1]
        # Nemo abbreviates the datatypes of integers of more than 64 bits.
        if datatype.startswith("xsd:"):
            datatype = XSD + datatype.removeprefix("xsd:")
        return literal(content, datatype)
    return None


def nemo_cells(terms: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Convert the constants of a term column to cells."""
    return by_kind(single(terms), _CELLS)


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _strings(texts: pa.Array) -> pa.Array:
    return _joined('"', texts, '"')


def _iris(texts: pa.Array) -> pa.Array:
    is_bare = pc.match_substring_regex(texts, _BARE_IRI)
    return pc.if_else(is_bare, texts, _joined("<", texts, ">"))


def _typed_as(datatype: str) -> Callable[[pa.Array], pa.Array]:
    return lambda texts: _joined('"', texts, f'"^^<{XSD}{datatype}>')


def _typed_literals(texts: pa.Array) -> pa.Array:
    datatypes, lexical = halves(texts)
    return _joined('"', lexical, '"^^<', datatypes, ">")


def _language_strings(texts: pa.Array) -> pa.Array:
    languages, content = halves(texts)
    return _joined('"', content, '"@', languages)


def _same(texts: pa.Array) -> pa.Array:
    return texts


_CELLS: dict[Kind, Callable[[pa.Array], pa.Array]] = {
    Kind.STRING: _strings,
    Kind.IRI: _iris,
    Kind.BLANK: lambda texts: _joined("_:", texts),
    Kind.INTEGER: _same,
    Kind.DECIMAL: _same,
    Kind.DOUBLE: _typed_as("double"),
    Kind.BOOLEAN: _typed_as("boolean"),
    Kind.TYPED: _typed_literals,
    Kind.LANGUAGE: _language_strings,
}
