"""Writing tables of terms to files."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as arrow_feather
import pyarrow.parquet as arrow_parquet

from evermat.columns import (
    column_names,
    kinds_in,
    natural,
    ntriples_texts,
    plain_texts,
    term_table,
    term_texts,
    terms_of_kind,
)
from evermat.errors import EvermatError
from evermat.io.delimited import DIALECTS
from evermat.io.files import UnknownFormatError, data_file
from evermat.lang.terms import RDF_TYPE
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evermat.io.delimited import Dialect

_ROWS_AT_ONCE = 1 << 16
_TRIPLE = 3


class NotTriplesError(EvermatError, ValueError):
    """Rows that are not RDF triples."""

    code = "EM721"


class NotDelimitableError(EvermatError, ValueError):
    """A text that cannot stand in a file without quotes."""

    code = "EM722"


def write_table(
    table: pa.Table,
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  as users say it
    dialect: Dialect | None = None,
    header: bool = False,
    terms: bool = False,
    predicate: str | None = None,
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

    Raises:
        UnknownFormatError: the suffix says nothing, or nothing that can be written.
        NotTriplesError: the rows do not fit in N-Triples.
        NotDelimitableError: a text of a `.facts` file holds a tab or a line end.
    """
    file = data_file(path, format=format)
    table = term_table(table)
    with _complete_or_not_at_all(file.path, file.compression) as sink:
        if file.format in DIALECTS:
            _write_delimited(
                table,
                sink,
                dialect or DIALECTS[file.format],
                header=header,
                terms=terms,
            )
        elif file.format == "nt":
            _write_lines(_triples(table, predicate or file.predicate), sink, " ", " .")
        elif file.format in _WRITERS:
            _WRITERS[file.format](table if terms else _natural_table(table), sink)
        else:
            raise UnknownFormatError(file.path.name)


@contextlib.contextmanager
def _complete_or_not_at_all(
    path: Path, compression: str | None
) -> Iterator[pa.NativeFile]:
    partial = path.with_name(f".{path.name}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with contextlib.ExitStack() as stack:
            sink = stack.enter_context(pa.OSFile(str(partial), "wb"))
            if compression is not None:
                compressed = pa.CompressedOutputStream(sink, compression)
                sink = stack.enter_context(compressed)
            yield sink
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _natural_table(table: pa.Table) -> pa.Table:
    columns = [natural(column) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _write_delimited(
    table: pa.Table, sink: pa.NativeFile, dialect: Dialect, *, header: bool, terms: bool
) -> None:
    if not table.num_columns:
        sink.write(b"()\n" * table.num_rows)
        return
    as_text = term_texts if terms else plain_texts
    # Whole columns first: how a value is written depends on the others in its column.
    texts = [as_text(column) for column in table.columns]
    protect = _quoted_where_needed if dialect.quoting else _refuse_structure
    columns = [protect(text, dialect.delimiter) for text in texts]
    if header:
        names = [
            protect(pa.array([name]), dialect.delimiter)[0].as_py()
            for name in table.column_names
        ]
        sink.write((dialect.delimiter.join(names) + "\n").encode())
    _write_lines(pa.table(columns, names=table.column_names), sink, dialect.delimiter)


def _quoted_where_needed(texts: pa.Array, delimiter: str) -> pa.Array:
    # An empty line is no row, so that an empty text is quoted as well.
    needed = pc.match_substring_regex(texts, f'["\r\n{delimiter}]|^$')
    if not pc.any(needed).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(needed, pc.binary_join_element_wise('"', doubled, '"', ""), texts)


def _refuse_structure(texts: pa.Array, delimiter: str) -> pa.Array:
    wrong = pc.match_substring_regex(texts, f"[\r\n{delimiter}]")
    row = pc.index(wrong, value=True).as_py()
    if row >= 0:
        text = texts[row].as_py()
        raise NotDelimitableError(
            f"row {row + 1} has a text with a tab or a line end: {text!r}",
            law="a `.facts` file has no quotes",
            help="write `.csv`, `.tsv` or `.parquet`",
        )
    return texts


def _write_lines(
    table: pa.Table, sink: pa.NativeFile, between: str, end: str = ""
) -> None:
    """Write a table of texts, each row as a line."""
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        lines = pc.binary_join_element_wise(*batch.columns, between)
        lines = pc.binary_join_element_wise(lines, f"{end}\n", "")
        # The texts of an Arrow column lie behind each other in one buffer.
        lines = pa.concat_arrays([lines])
        _, offsets, data = lines.buffers()
        if data is not None:
            first, last = _ends(lines, offsets)
            sink.write(data.slice(first, last - first))


def _ends(lines: pa.Array, offsets: pa.Buffer) -> tuple[int, int]:
    ends = pa.Array.from_buffers(
        pa.int32(), len(lines) + 1, [None, offsets], offset=lines.offset
    )
    return ends[0].as_py(), ends[-1].as_py()


def _triples(table: pa.Table, predicate: str) -> pa.Table:
    """The rows of a predicate as N-Triples: s p o, `a p b` for two, type for one."""
    width = table.num_columns
    if not 1 <= width <= _TRIPLE:
        raise NotTriplesError(
            f"rows with {width} columns are not triples",
            help="write `.csv` or `.parquet` instead",
        )
    columns = [column.combine_chunks() for column in table.columns]
    if width < _TRIPLE:
        name = _repeated(predicate if ":" in predicate else f"urn:{predicate}", table)
        if width == 1:
            columns += [_repeated(RDF_TYPE.text, table), name]
        else:
            columns.insert(1, name)
    _require_kinds(columns[0], {Kind.IRI, Kind.BLANK}, "subject")
    _require_kinds(columns[1], {Kind.IRI}, "predicate")
    return pa.table(
        [ntriples_texts(column) for column in columns], names=column_names(_TRIPLE)
    )


def _repeated(iri: str, table: pa.Table) -> pa.Array:
    return terms_of_kind(Kind.IRI, pa.repeat(pa.scalar(iri), table.num_rows))


def _require_kinds(terms: pa.Array, allowed: set[Kind], place: str) -> None:
    if kinds_in(terms) <= allowed:
        return
    numbers = pa.array([int(kind) for kind in allowed], pa.uint8())
    row = pc.index(pc.is_in(terms.field(0), value_set=numbers), value=False).as_py()
    text = term_texts(terms.slice(row, 1))[0].as_py()
    what = " or blank node" if Kind.BLANK in allowed else ""
    raise NotTriplesError(
        f"row {row + 1} has {text} as its {place}",
        law=f"the {place} of a triple is an IRI{what}",
        help="write `.csv` or `.parquet` instead",
    )


_WRITERS: dict[str, Callable[[pa.Table, pa.NativeFile], None]] = {
    "parquet": arrow_parquet.write_table,
    "arrow": lambda table, sink: arrow_feather.write_feather(
        table, sink, compression="uncompressed"
    ),
}
