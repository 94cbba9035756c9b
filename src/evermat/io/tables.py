"""Reads files of facts: one file, or a folder of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as arrow_feather
import pyarrow.json as arrow_json
import pyarrow.parquet as arrow_parquet

from evermat.columns import (
    ArityMismatchError,
    as_terms,
    column_of,
    plain_texts,
    require_values,
    term_table,
)
from evermat.errors import EvermatError
from evermat.io.arrow_messages import announced_bytes
from evermat.io.column_types import typed, types_by_column
from evermat.io.delimited import (
    BLOCK,
    DIALECTS,
    NO_ARGUMENTS,
    Dialect,
    chosen,
    read_delimited,
    require_width,
)
from evermat.io.expansion import (
    require_moderate_pages,
    require_moderate_parquet,
    require_moderate_table,
)
from evermat.io.files import FileMissingError, UnknownFormatError, data_file
from evermat.io.json_shape import require_plain_json
from evermat.io.places import MalformedFileError, decoded, label_at
from evermat.runtime.input_limits import require_unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evermat.io.files import DataFile

_TOO_LARGE = 2.0**63
"""The smallest number that does not fit into 64 bits."""


def read_table(  # noqa: PLR0913  the options of one call
    path: str | Path | DataFile,
    *,
    format: str | None = None,  # noqa: A002  as users say it
    columns: Sequence[str] | None = None,
    types: Sequence[str | None] | Mapping[str, str] | None = None,
    arity: int | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    quoting: bool | None = None,
) -> pa.Table:
    """Read a file of facts: CSV, TSV, `.facts`, Parquet, Arrow or JSON lines.

    Args:
        path: the file; `.gz`, `.zst` or `.bz2` may follow its suffix.
        format: `csv`, `tsv`, `facts`, `parquet`, `arrow` or `jsonl`; by default the
            suffix decides.
        columns: the names of the columns. If a file has column names of its own,
            these are selected from it, in this order.
        types: for each column, or by name, one of `string`, `integer`, `decimal`,
            `double`, `boolean`, `iri` and `term`, or None. The types of other
            columns of text files are guessed conservatively: see
            `evermat.io.column_types`.
        arity: the required number of columns.
        header: whether the first row of a text file has names. By default it does
            if it equals `columns`.
        delimiter: the character between the fields of a text file.
        quoting: whether fields of a text file may be quoted.

    Raises:
        FileMissingError, UnknownFormatError, DamagedFileError: no such file, or not of
            its kind.
        MalformedFileError, NotUnicodeError, ValueFormatError: with file, line and
            column.
        ArityMismatchError, MissingValueError: not rows of facts of this arity.
    """
    file = data_file(path, format=format)
    if file.format in DIALECTS:
        usual = DIALECTS[file.format]
        dialect = Dialect(
            delimiter=usual.delimiter if delimiter is None else delimiter,
            quoting=usual.quoting if quoting is None else quoting,
            header=usual.header if header is None else header,
        )
        table = read_delimited(file, dialect, columns=columns, types=types, arity=arity)
    elif file.format in _READERS:
        table = _READERS[file.format](file)
        if columns is not None:
            table = chosen(table, columns, file.path.name)
        table = _with_types(table, types)
    else:
        raise UnknownFormatError(file.path.name)
    if arity is not None and table.num_columns != arity:
        raise ArityMismatchError(arity, table.num_columns, name=file.path.name)
    for name, column in zip(table.column_names, table.columns, strict=True):
        require_values(column, name)
    return table


def read_folder(
    folder: str | Path, *, read_rdf: Callable[[Path], pa.Table] | None = None
) -> dict[str, pa.Table]:
    """Read every data file of a folder, by predicate.

    A file is named after its predicate: `edge.facts`, `edge.csv.gz`. The rows of
    several files of one predicate are concatenated. Files with other suffixes are
    ignored.

    Args:
        folder: the folder of the files; its subfolders are ignored.
        read_rdf: reads RDF files, whose rows belong to `triple`; without it, they are
            ignored too.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileMissingError(folder)
    found: dict[str, list[pa.Table]] = {}
    for path in sorted(folder.iterdir()):
        try:
            file = data_file(path)
        except UnknownFormatError:
            continue
        if not path.is_file() or path.name.startswith("."):
            continue
        if not file.is_rdf:
            found.setdefault(file.predicate, []).append(read_table(path))
        elif read_rdf is not None:
            found.setdefault("triple", []).append(read_rdf(path))
    return {name: rows_together(name, tables) for name, tables in found.items()}


def rows_together(name: str, tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate the rows of several tables of a predicate.

    Raises:
        ArityMismatchError: one has more or fewer columns than the others.
    """
    if len(tables) == 1:
        return tables[0]
    filled = [table for table in tables if table.num_rows] or tables[:1]
    names = filled[0].column_names
    for table in filled:
        if table.num_columns != len(names):
            raise ArityMismatchError(len(names), table.num_columns, name=name)
    return pa.concat_tables(
        [term_table(table).rename_columns(names) for table in filled]
    )


def _with_types(
    table: pa.Table, types: Sequence[str | None] | Mapping[str, str] | None
) -> pa.Table:
    for index, type_name in enumerate(types_by_column(types, table.column_names)):
        if type_name is not None:
            name = table.column_names[index]
            texts = plain_texts(as_terms(table.column(index), name=name))
            table = table.set_column(index, name, typed(texts, type_name))
    return table


_DAMAGE = (pa.ArrowException, OSError, ValueError, OverflowError)
"""Errors of Arrow for a file that is not in its declared format."""


def _read_parquet(file: DataFile) -> pa.Table:
    data = file.read()
    try:
        opened = arrow_parquet.ParquetFile(pa.BufferReader(data))
        require_width(file, opened.metadata.num_columns)
        require_moderate_pages(
            lambda at, size: data[at : at + size].to_pybytes(),
            file.path.name,
            data.size,
        )
        require_moderate_parquet(
            lambda columns: arrow_parquet.ParquetFile(
                pa.BufferReader(data), read_dictionary=columns
            ),
            opened,
            file.path.name,
            data.size,
        )
        table = opened.read()
        table.validate(full=True)
    except _DAMAGE as error:
        raise _as_damaged(file, error) from error
    return table.select([]) if table.column_names == [NO_ARGUMENTS] else table


def _read_arrow(file: DataFile) -> pa.Table:
    data = file.read()
    source = pa.BufferReader(data)
    try:
        magic = bytes(data[: len(_ARROW_FILE)])
        if magic != _FEATHER:  # of the first version, which is not compressed
            require_unpacked(file.path.name, data.size, announced_bytes(data))
        table = (
            arrow_feather.read_table(source, memory_map=False)
            if magic in {_FEATHER, _ARROW_FILE}
            else pa.ipc.open_stream(source).read_all()
        )
        table.validate()
        require_width(file, table.num_columns)
        require_moderate_table(table, file.path.name, data.size)
        # Invalid offsets would abort the process later.
        table.validate(full=True)
    except _DAMAGE as error:
        raise _as_damaged(file, error) from error
    return table


_ARROW_FILE = b"ARROW1"
_FEATHER = b"FEA1\0\0"


def _as_damaged(file: DataFile, error: Exception) -> Exception:
    return error if isinstance(error, EvermatError) else file.damaged(error)


def _read_json_lines(file: DataFile) -> pa.Table:
    data = file.read()
    if not data.to_pybytes().strip():
        return pa.table({})
    require_plain_json(file, data)
    blocks = arrow_json.ReadOptions(block_size=BLOCK)
    try:
        table = arrow_json.read_json(pa.BufferReader(data), blocks)
        dates = [pa.types.is_timestamp(field.type) for field in table.schema]
        if any(dates):
            # Strings that look like dates stay strings.
            schema = pa.schema(
                field.with_type(pa.string()) if is_date else field
                for field, is_date in zip(table.schema, dates, strict=True)
            )
            options = arrow_json.ParseOptions(explicit_schema=schema)
            table = arrow_json.read_json(pa.BufferReader(data), blocks, options)
        table.validate(full=True)
    except (pa.ArrowException, ValueError) as error:
        raise _json_error(file, data.to_pybytes(), error) from error
    return _with_large_integers(table, file, data)


def _with_large_integers(table: pa.Table, file: DataFile, data: pa.Buffer) -> pa.Table:
    """Return the table with large integers that Arrow has read as doubles restored."""
    large = [
        name
        for name, column in zip(table.column_names, table.columns, strict=True)
        if pa.types.is_floating(column.type)
        and pc.any(pc.greater_equal(pc.abs(column), _TOO_LARGE)).as_py()
    ]
    if not large:
        return table
    lines = data.to_pybytes().decode("utf-8-sig").split("\n")
    try:
        records = [json.loads(line) for line in lines if line.strip()]
    except ValueError as error:  # an object on several lines, or too many digits
        raise _json_error(file, data.to_pybytes(), error) from error
    for name in large:
        numbers = [record.get(name) for record in records]
        if all(type(number) is int for number in numbers):
            at = table.column_names.index(name)
            table = table.set_column(at, name, column_of(numbers, name))
    return table


def _json_error(file: DataFile, data: bytes, cause: Exception) -> MalformedFileError:
    for number, line in enumerate(decoded(file.path, data).split("\n"), start=1):
        try:
            if line.strip() and not isinstance(json.loads(line), dict):
                return MalformedFileError(
                    "expected a JSON object",
                    labels=(label_at(file.path, number, 1, text=line),),
                    help='write a line like {"c1": "a", "c2": 7}',
                )
        except json.JSONDecodeError as error:
            label = label_at(
                file.path, number, error.colno, text=line, remark=error.msg.lower()
            )
            return MalformedFileError("malformed JSON", labels=(label,))
        except ValueError as error:
            label = label_at(file.path, number, 1, text=line)
            return MalformedFileError(f"malformed JSON: {error}", labels=(label,))
    return MalformedFileError(f"`{file.path.name}` cannot be read: {cause}")


_READERS: dict[str, Callable[[DataFile], pa.Table]] = {
    "parquet": _read_parquet,
    "arrow": _read_arrow,
    "jsonl": _read_json_lines,
}
