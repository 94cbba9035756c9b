"""Reading RDF files into columns of terms.

pyoxigraph parses; what it has parsed comes back as lines of N-Triples, and one reader
turns lines into columns (`evermat.rdf.lines`). Files that are N-Triples already go to
that reader directly, and only lines that need a second look pass through pyoxigraph.
Measured on a million LUBM triples: 0.9 s, against 4.5 s for a loop over the terms of
pyoxigraph's quads.

Memory follows the size of a batch, not of the file; only RDF/XML is held as a whole.
"""

from __future__ import annotations

import hashlib
import re
import xml.parsers.expat
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyoxigraph

from evermat.columns import TERM, table_of_rows, term_table
from evermat.errors import EvermatError
from evermat.io.files import UnknownFormatError, data_file
from evermat.io.places import decoded, label_at
from evermat.rdf.lines import (
    Labelled,
    LineError,
    Numbered,
    Unchanged,
    Unmarked,
    columns_of_lines,
    columns_of_triples,
    line_arrays,
)
from evermat.rdf.untrusted_input import Shallow, plain_xml, require_safe_xml
from evermat.values import constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from evermat.io.files import DataFile
    from evermat.rdf.lines import Renaming

GraphName: TypeAlias = (
    "pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.DefaultGraph"
)

QUADS_AT_ONCE = 1 << 16
COLUMNS = ("s", "p", "o")
FORMATS = {
    "nt": pyoxigraph.RdfFormat.N_TRIPLES,
    "nq": pyoxigraph.RdfFormat.N_QUADS,
    "ttl": pyoxigraph.RdfFormat.TURTLE,
    "trig": pyoxigraph.RdfFormat.TRIG,
    "rdf": pyoxigraph.RdfFormat.RDF_XML,
    "jsonld": pyoxigraph.RdfFormat.JSON_LD,
    "n3": pyoxigraph.RdfFormat.N3,
}
"""Names of formats and what pyoxigraph calls them."""


class RdfSyntaxError(EvermatError, ValueError):
    """An RDF file that breaks the rules of its syntax."""

    code = "EM723"


def read_rdf(
    path: str | Path | DataFile,
    format: str | None = None,  # noqa: A002  as users say it
    *,
    base: str | None = None,
    blank_scope: str | bool = True,
) -> pa.Table:
    """Read the triples of an RDF file; see `rdf_batches`.

    Returns:
        Term columns `s`, `p` and `o`.
    """
    batches = rdf_batches(path, format, base=base, blank_scope=blank_scope)
    empty = pa.table({name: pa.array([], TERM) for name in COLUMNS})
    return pa.concat_tables([empty, *batches])


def rdf_batches(
    path: str | Path | DataFile,
    format: str | None = None,  # noqa: A002  as users say it
    *,
    base: str | None = None,
    blank_scope: str | bool = True,
) -> Iterator[pa.Table]:
    """Read the triples of an RDF file, some ten thousand at a time.

    Triples of named graphs are read like all others; the names are left out.

    Args:
        path: N-Triples, N-Quads, Turtle, TriG or RDF/XML by its suffix (`.nt`, `.nq`,
            `.ttl`, `.trig`, `.rdf`, `.owl`, `.jsonld`, `.n3`); `.gz`, `.zst` or `.bz2`
            may follow.
        format: `nt`, `nq`, `ttl`, `trig`, `rdf`, `jsonld` or `n3`; overrules the
            suffix.
        base: what relative IRIs are relative to.
        blank_scope: blank nodes are local to a file, and get names that no other file
            has and that are the same each time this path is read. A text takes the
            place of the path; False leaves labels as they are.

    Raises:
        FileMissingError, UnknownFormatError, DamagedFileError: no such file, or not of
            its kind.
        RdfSyntaxError, NotUnicodeError: with file, line and column.
    """
    file = data_file(path, format=format)
    if not file.is_rdf:
        raise UnknownFormatError(format or file.path.name, rdf=True)
    if file.format == "nt":
        labelled = _scope(file.path, Labelled, blank_scope=blank_scope)
        return _from_lines(file, labelled)
    numbered = _scope(file.path, Numbered, blank_scope=blank_scope)
    return (table for _, table in _from_parser(file, base, numbered))


def read_dataset(
    path: str | Path | DataFile,
    format: str | None = None,  # noqa: A002  as users say it
    *,
    base: str | None = None,
    blank_scope: str | bool = True,
) -> tuple[pa.Table, pa.Table]:
    """Read an RDF file, and keep the triples of named graphs apart; see `rdf_batches`.

    Returns:
        The triples of the default graph, and, with a column `g`, those of others.
    """
    file = data_file(path, format=format)
    if file.format not in _WITH_GRAPHS:
        table = read_rdf(file, base=base, blank_scope=blank_scope)
        return table, _empty((*COLUMNS, "g"))
    numbered = _scope(file.path, Numbered, blank_scope=blank_scope)
    triples, quads = [_empty(COLUMNS)], [_empty((*COLUMNS, "g"))]
    for graph, table in _from_parser(file, base, numbered, keep_graphs=True):
        if isinstance(graph, pyoxigraph.DefaultGraph):
            triples.append(table)
        else:
            name = constant(graph)
            names = term_table(table_of_rows([(name,)] * table.num_rows, 1)).column(0)
            # Blank nodes are renamed, wherever they stand in the file.
            names = numbered.rename(names.combine_chunks())
            quads.append(table.append_column("g", names))
    return pa.concat_tables(triples), pa.concat_tables(quads)


_WITH_GRAPHS = frozenset({"nq", "trig", "jsonld"})
"""Formats whose triples may be in named graphs."""


def _empty(columns: Sequence[str]) -> pa.Table:
    return pa.table({name: pa.array([], TERM) for name in columns})


def _scope(
    path: Path, renaming: type[Labelled | Numbered], *, blank_scope: str | bool
) -> Renaming:
    if blank_scope is False:
        return Unchanged()
    name = path.as_posix() if blank_scope is True else blank_scope
    return renaming("f" + hashlib.blake2s(name.encode(), digest_size=5).hexdigest())


def _from_lines(file: DataFile, renaming: Renaming) -> Iterator[pa.Table]:
    try:
        with file.open() as stream:
            for first_line, lines in line_arrays(Unmarked(stream)):
                yield _table(columns_of_lines(lines, first_line), renaming)
    except LineError as error:
        raise _syntax_error(file, error.problem, error.line) from None
    except pa.ArrowInvalid as error:
        decoded(file.path, file.read().to_pybytes())
        raise file.damaged(error) from error
    except OSError as error:
        raise file.reading_error(error) from error


def _from_parser(
    file: DataFile,
    base: str | None,
    renaming: Renaming,
    *,
    keep_graphs: bool = False,
) -> Iterator[tuple[GraphName, pa.Table]]:
    """The triples of a file, each with its graph if these are kept apart."""
    default: GraphName = pyoxigraph.DefaultGraph()
    try:
        with file.open() as stream:
            is_xml = file.format == "rdf"
            # The parser reads from anything that can be read from.
            source: Any = _safe_xml(file, stream.read()) if is_xml else None
            source = source or Shallow(
                Unmarked(stream), file.path.name, partial(_text, file)
            )
            quads = pyoxigraph.parse(source, FORMATS[file.format], base_iri=base)
            while batch := [*islice(quads, QUADS_AT_ONCE)]:
                graphs = _by_graph(batch) if keep_graphs else {default: batch}
                for graph, quads_in_it in graphs.items():
                    triples = [quad.triple for quad in quads_in_it]
                    for columns in columns_of_triples(triples):
                        yield graph, _table(columns, renaming)
    except SyntaxError as error:
        raise _syntax_error(file, error) from None
    except LineError as error:
        raise _syntax_error(file, error.problem) from None
    except OSError as error:
        raise file.reading_error(error) from error


def _by_graph(
    quads: Iterable[pyoxigraph.Quad],
) -> dict[GraphName, list[pyoxigraph.Quad]]:
    graphs: dict[GraphName, list[pyoxigraph.Quad]] = {}
    for quad in quads:
        graphs.setdefault(quad.graph_name, []).append(quad)
    return graphs


def _safe_xml(file: DataFile, data: bytes) -> bytes:
    data = plain_xml(data)
    try:
        require_safe_xml(file.path.name, data)
    except xml.parsers.expat.ExpatError as error:
        raise _not_xml(file, data, error) from None
    return data


def _table(columns: list[pa.Array], renaming: Renaming) -> pa.Table:
    return pa.table([renaming.rename(column) for column in columns], names=COLUMNS)


def _syntax_error(
    file: DataFile, problem: SyntaxError | str, line: int | None = None
) -> RdfSyntaxError:
    """The error for what a parser said, with the line it spoke of."""
    if isinstance(problem, str):
        return RdfSyntaxError(f"`{file.path.name}`: {problem}")
    message = re.sub(r"^Parser error at .*?\d: ", "", problem.msg)
    number = line or problem.lineno
    if not number:
        # Pyoxigraph gives no place in RDF/XML.
        message = f"`{file.path.name}`: {message}"
        return RdfSyntaxError(message, help=_advice(message))
    text = _line(file, number)
    column = problem.offset or 1
    length = 1
    if problem.end_offset and problem.end_lineno == problem.lineno:
        length = problem.end_offset - column
    label = label_at(file.path, number, column, text=text, length=length)
    return RdfSyntaxError(
        message[:1].lower() + message[1:], labels=(label,), help=_advice(message)
    )


def _not_xml(
    file: DataFile, data: bytes, error: xml.parsers.expat.ExpatError
) -> RdfSyntaxError:
    """What expat found, with the place, in the words of pyoxigraph if it agrees."""
    lines = data.split(b"\n")
    number = min(error.lineno, len(lines))
    text = lines[number - 1].decode(errors="replace")
    message = xml.parsers.expat.ErrorString(error.code)
    try:
        near = b"\n".join(lines[:number])
        for _ in pyoxigraph.parse(near, FORMATS["rdf"], base_iri="u:"):
            pass
    except SyntaxError as other:
        message = re.sub(r"^Parser error at .*?\d: ", "", other.msg)
    label = label_at(file.path, error.lineno, error.offset + 1, text=text)
    return RdfSyntaxError(message, labels=(label,))


def _text(file: DataFile) -> str:
    return str(file.read().to_pybytes().decode(errors="replace"))


def _line(file: DataFile, number: int) -> str:
    lines = decoded(file.path, file.read().to_pybytes()).split("\n")
    return lines[number - 1] if number <= len(lines) else ""


def _advice(message: str) -> str | None:
    if "No scheme" in message:
        return "say `base=…` to give relative IRIs a beginning"
    return None
