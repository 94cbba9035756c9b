"""Writing tables of terms to files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as arrow_feather
import pyarrow.parquet as arrow_parquet

from evermat.columns import natural, plain_texts, term_table, term_texts
from evermat.errors import EvermatError
from evermat.io.delimited import DIALECTS, NO_ARGUMENTS
from evermat.io.files import UnknownFormatError, data_file
from evermat.io.lines import ROWS_AT_ONCE, text_block
from evermat.io.ntriples import ntriples_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from evermat.columns import Shape
    from evermat.io.delimited import Dialect
    from evermat.io.files import DataFile


class NotDelimitableError(EvermatError, ValueError):
    """A text that cannot stand in a file without quotes."""

    code = "EM722"


def write_table(  # noqa: PLR0913  the options of one call
    table: pa.Table,
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  as users say it
    dialect: Dialect | None = None,
    header: bool = False,
    terms: bool = False,
    predicate: str | None = None,
    shapes: Sequence[Shape] | None = None,
) -> None:
    """Write facts to a file, in the format that its suffix says.

    The file appears when it is complete: a failed write leaves what was there.

    Args:
        table: term columns, or any columns that `as_terms` knows.
        path: `.csv`, `.tsv`, `.facts`, `.parquet`, `.arrow` or `.nt`, and `.gz`, `.zst`
            or `.bz2` after it.
        format: overrules the suffix.
        dialect: how to write a text file, where its format does not say it all.
        header: whether text files start with the names of the columns.
        terms: write every value as a term (`<iri>`, `"text"`, `7`), which read back
            exactly with the type `term`; otherwise values are as plain as possible.
        predicate: for `.nt`, the name of the predicate of one or two columns.
        shapes: of the whole columns, where the table is only a part of the rows.

    Raises:
        UnknownFormatError: the suffix says nothing, or nothing that can be written.
        NotTriplesError: the rows do not fit in N-Triples.
        NotDelimitableError: a text of a `.facts` file holds a tab or a line end.
    """
    file = data_file(path, format=format)
    require_writable(file)
    table = term_table(table)
    with file.replace() as sink:
        if file.format in DIALECTS:
            _write_delimited(
                table,
                sink,
                dialect or DIALECTS[file.format],
                header=header,
                as_text=_as_texts(shapes, terms=terms),
            )
        elif file.format == "nt":
            for block in ntriples_blocks(table, predicate or file.predicate):
                sink.write(block)
        elif file.is_rdf:
            raise UnknownFormatError(file.path.name)
        else:
            plain = table if terms else _natural_table(table, shapes)
            _WRITERS[file.format](plain, sink)


def require_writable(file: DataFile) -> None:
    """Refuse a format that is only read.

    Raises:
        UnknownFormatError: nothing is written as JSON.
    """
    if file.format not in {*DIALECTS, *_WRITERS} and not file.is_rdf:
        raise UnknownFormatError(file.path.name, is_written=True)


def _natural_table(table: pa.Table, shapes: Sequence[Shape] | None) -> pa.Table:
    if not table.num_columns:
        return table  # a table of no columns would have no rows either
    if shapes is None:
        columns = list(map(natural, table.columns))
    else:
        pairs = zip(shapes, table.columns, strict=True)
        columns = [shape.natural(column) for shape, column in pairs]
    return pa.table(columns, names=table.column_names)


def _as_texts(
    shapes: Sequence[Shape] | None, *, terms: bool
) -> Callable[[pa.Table], list[pa.Array]]:
    """What turns columns into texts."""

    def texts(table: pa.Table) -> list[pa.Array]:
        if terms or shapes is None:
            return list(map(term_texts if terms else plain_texts, table.columns))
        pairs = zip(shapes, table.columns, strict=True)
        return [shape.plain_texts(column) for shape, column in pairs]

    return texts


def _write_delimited(
    table: pa.Table,
    sink: pa.NativeFile,
    dialect: Dialect,
    *,
    header: bool,
    as_text: Callable[[pa.Table], list[pa.Array]],
) -> None:
    if not table.num_columns:
        sink.write(f"{NO_ARGUMENTS}\n".encode() * table.num_rows)
        return
    # Whole columns first: how a value is written depends on the others in its column.
    texts = as_text(table)
    protect = _quoted_where_needed if dialect.quoting else _refuse_structure
    columns = [protect(text, dialect.delimiter) for text in texts]
    if header:
        names = [
            protect(pa.array([name]), dialect.delimiter)[0].as_py()
            for name in table.column_names
        ]
        sink.write((dialect.delimiter.join(names) + "\n").encode())
    rows = pa.table(columns, names=table.column_names)
    for batch in rows.to_batches(max_chunksize=ROWS_AT_ONCE):
        sink.write(text_block(batch.columns, between=dialect.delimiter, end="\n"))


def _quoted_where_needed(texts: pa.Array, delimiter: str) -> pa.Array:
    # An empty line is no row, so that an empty text is quoted as well.
    needed = pc.match_substring_regex(texts, f'["\r\n{re.escape(delimiter)}]|^$')
    if not pc.any(needed).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(needed, pc.binary_join_element_wise('"', doubled, '"', ""), texts)


def _refuse_structure(texts: pa.Array, delimiter: str) -> pa.Array:
    wrong = pc.match_substring_regex(texts, f"[\r\n{re.escape(delimiter)}]")
    row = pc.index(wrong, value=True).as_py()
    if row >= 0:
        text = texts[row].as_py()
        raise NotDelimitableError(
            f"row {row + 1} has a text with a tab or a line end: {text!r}",
            law="a `.facts` file has no quotes",
            help="write `.csv`, `.tsv` or `.parquet`",
        )
    return texts


def _write_parquet(table: pa.Table, sink: pa.NativeFile) -> None:
    if not table.num_columns:  # Parquet would keep no rows without columns
        table = pa.table({NO_ARGUMENTS: pa.repeat(True, table.num_rows)})  # noqa: FBT003
    arrow_parquet.write_table(table, sink)


_WRITERS: dict[str, Callable[[pa.Table, pa.NativeFile], None]] = {
    "parquet": _write_parquet,
    "arrow": lambda table, sink: arrow_feather.write_feather(
        table, sink, compression="uncompressed"
    ),
}
