"""Writing tables of terms to files."""

from __future__ import annotations

import re
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as arrow_parquet

from evermat.columns import as_parts, natural, plain_texts, term_texts
from evermat.errors import EvermatError
from evermat.io.delimited import DIALECTS, NO_ARGUMENTS
from evermat.io.files import UnknownFormatError, data_file
from evermat.io.lines import ROWS_AT_ONCE, text_block
from evermat.io.ntriples import TripleLines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from evermat.columns import Shape, TableParts
    from evermat.io.delimited import Dialect
    from evermat.io.files import DataFile


class NotDelimitableError(EvermatError, ValueError):
    """A string that cannot be written to a file without quotes."""

    code = "EM722"


def write_table(  # noqa: PLR0913  the options of one call
    rows: pa.Table | TableParts,
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  as users say it
    dialect: Dialect | None = None,
    header: bool = False,
    terms: bool = False,
    predicate: str | None = None,
    shapes: Sequence[Shape] | None = None,
) -> None:
    """Write facts to a file, in the format of its suffix.

    The file appears when it is complete: a failed write leaves the old one.

    Args:
        rows: term columns, or any columns that `as_terms` knows; or such in parts.
        path: `.csv`, `.tsv`, `.facts`, `.parquet`, `.arrow` or `.nt`, and `.gz`, `.zst`
            or `.bz2` after it.
        format: overrides the suffix.
        dialect: the syntax of a text file, if its format is not enough.
        header: whether text files start with the names of the columns.
        terms: write every value as a term (`<iri>`, `"text"`, `7`), which reads
            back exactly with the type `term`; otherwise values are as plain as
            possible.
        predicate: for `.nt`, the name of the predicate of one or two columns.
        shapes: the shapes of whole columns, if the table is only a part of the
            rows.

    Raises:
        UnknownFormatError: the suffix is unknown, or cannot be written.
        NotTriplesError: the rows do not fit in N-Triples.
        NotDelimitableError: a string of a `.facts` file has a tab or a line end.

    Warns:
        LeftOutTriplesWarning: some rows are no triples, and are missing in a `.nt`
            file.
    """
    file = data_file(path, format=format)
    require_writable(file)
    parts = as_parts(rows, shapes)
    lines: TripleLines | None = None
    with file.replace() as sink:
        if file.format in DIALECTS:
            _write_delimited(
                parts,
                sink,
                dialect or DIALECTS[file.format],
                header=header,
                terms=terms,
            )
        elif file.format == "nt":
            lines = TripleLines(parts, predicate or file.predicate)
            for block in lines:
                sink.write(block)
            lines.require_some()
        elif file.is_rdf:
            raise UnknownFormatError(file.path.name)
        else:
            tables = iter(parts) if terms else _natural_tables(parts)
            _WRITERS[file.format](tables, sink)
    if lines is not None:
        lines.tell(file.path.name)


def require_writable(file: DataFile) -> None:
    """Reject a format that is only read.

    Raises:
        UnknownFormatError: JSON is never written.
    """
    if file.format not in {*DIALECTS, *_WRITERS} and not file.is_rdf:
        raise UnknownFormatError(file.path.name, is_written=True)


def _natural_tables(parts: TableParts) -> Iterator[pa.Table]:
    shapes = parts.shapes()
    for table in parts:
        if not table.num_columns:
            yield table  # a table of no columns would have no rows either
            continue
        if shapes is None:
            columns = list(map(natural, table.columns))
        else:
            pairs = zip(shapes, table.columns, strict=True)
            columns = [shape.natural(column) for shape, column in pairs]
        yield pa.table(columns, names=table.column_names)


def _texts(
    table: pa.Table, shapes: Sequence[Shape] | None, *, terms: bool
) -> list[pa.Array]:
    """Return the columns as strings; their form depends on whole columns."""
    if terms or shapes is None:
        return list(map(term_texts if terms else plain_texts, table.columns))
    pairs = zip(shapes, table.columns, strict=True)
    return [shape.plain_texts(column) for shape, column in pairs]


def _write_delimited(
    parts: TableParts,
    sink: pa.NativeFile,
    dialect: Dialect,
    *,
    header: bool,
    terms: bool,
) -> None:
    protect = _protection(dialect, before=0)
    if header and parts.column_names:
        names = [
            protect(pa.array([name]), dialect.delimiter)[0].as_py()
            for name in parts.column_names
        ]
        sink.write((dialect.delimiter.join(names) + "\n").encode())
    shapes = None if terms else parts.shapes()
    before = 0
    for table in parts:
        if not table.num_columns:
            sink.write(f"{NO_ARGUMENTS}\n".encode() * table.num_rows)
            continue
        texts = _texts(table, shapes, terms=terms)
        protect = _protection(dialect, before)
        columns = [protect(text, dialect.delimiter) for text in texts]
        rows = pa.table(columns, names=table.column_names)
        for batch in rows.to_batches(max_chunksize=ROWS_AT_ONCE):
            sink.write(text_block(batch.columns, between=dialect.delimiter, end="\n"))
        before += table.num_rows


def _protection(dialect: Dialect, before: int) -> Callable[[pa.Array, str], pa.Array]:
    """Return the function that protects delimiters and quotes in strings."""
    if dialect.quoting:
        return _quoted_where_needed
    return partial(_refuse_structure, before=before)


def _quoted_where_needed(texts: pa.Array, delimiter: str) -> pa.Array:
    # An empty line is no row, so an empty string is quoted as well.
    needed = pc.match_substring_regex(texts, f'["\r\n{re.escape(delimiter)}]|^$')
    if not pc.any(needed).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(needed, pc.binary_join_element_wise('"', doubled, '"', ""), texts)


def _refuse_structure(texts: pa.Array, delimiter: str, *, before: int) -> pa.Array:
    wrong = pc.match_substring_regex(texts, f"[\r\n{re.escape(delimiter)}]")
    row = pc.index(wrong, value=True).as_py()
    if row >= 0:
        text = texts[row].as_py()
        raise NotDelimitableError(
            f"row {before + row + 1} has a text with a tab or a line end: {text!r}",
            reason="a `.facts` file has no quotes",
            help="write `.csv`, `.tsv` or `.parquet`",
        )
    return texts


def _write_parquet(tables: Iterator[pa.Table], sink: pa.NativeFile) -> None:
    first = next(tables)
    if not first.num_columns:  # Parquet would keep no rows without columns
        first = pa.table({NO_ARGUMENTS: pa.repeat(True, first.num_rows)})  # noqa: FBT003
    with arrow_parquet.ParquetWriter(sink, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def _write_arrow(tables: Iterator[pa.Table], sink: pa.NativeFile) -> None:
    first = next(tables)
    with pa.ipc.new_file(sink, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table, max_chunksize=ROWS_AT_ONCE)


_WRITERS: dict[str, Callable[[Iterator[pa.Table], pa.NativeFile], None]] = {
    "parquet": _write_parquet,
    "arrow": _write_arrow,
}
