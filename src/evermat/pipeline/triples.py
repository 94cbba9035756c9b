"""RDF into triples: N-Triples and N-Quads by lines, other syntaxes by files."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING
from xml.parsers.expat import ExpatError

import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph

from evermat.pipeline.files import contents, lines_of
from evermat.pipeline.mapping import Mapped
from evermat.pipeline.records import not_unicode, rejected_lines
from evermat.rdf.blank_nodes import Labelled, Numbered
from evermat.rdf.lines import (
    NO_TRIPLE_TERMS,
    LineError,
    columns_of_lines,
    line_arrays,
)
from evermat.rdf.nesting import is_deep, require_safe_xml, require_shallow_triples
from evermat.rdf.reading import FORMATS, QUADS_AT_ONCE, RdfSyntaxError
from evermat.rdf.xml_text import plain_xml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.pipeline.config import Source
    from evermat.pipeline.files import File, Lines, Split
    from evermat.rdf.blank_nodes import Renaming

NAMES = ("a0", "a1", "a2")
_TRIALS = 8
"""So many wrong lines are taken out one at a time; with more, each line is tried."""


def mapped_lines(source: Source, split: Split) -> Iterator[Mapped]:
    """The triples of lines of N-Triples or N-Quads; graph names are left out."""
    renaming = Labelled(_scope(split.file))
    for lines in lines_of(split):
        rejected = not_unicode(lines)
        columns, wrong = _parsed(source.format, lines)
        rejected += wrong
        yield Mapped(
            [(source.facts[0].predicate, _table(columns, renaming))],
            rejected_lines(source.name, lines.file, rejected),
            len(lines.texts) + len(lines.broken),
        )


def _scope(file: File) -> str:
    return "f" + hashlib.blake2s(file.name.encode(), digest_size=5).hexdigest()


def _table(columns: list[pa.Array], renaming: Renaming) -> pa.Table:
    return pa.table([renaming.rename(column) for column in columns], names=NAMES)


def _parsed(
    syntax: str, lines: Lines
) -> tuple[list[pa.Array], list[tuple[int, str, str]]]:
    """The terms of lines, and those that are wrong."""
    wrong: list[tuple[int, str, str]] = []
    while True:
        try:
            return _columns(syntax, lines.texts), wrong
        except LineError as error:
            if error.line is None or len(wrong) == _TRIALS:
                return _one_by_one(syntax, lines, wrong)
            at = error.line - 1
            reason = _reason(error.problem)
            wrong.append((lines.positions[at].as_py(), lines.texts[at].as_py(), reason))
            keep = pc.not_equal(pa.array(range(len(lines.texts)), pa.int64()), at)
            lines = lines.where(keep)


def _columns(syntax: str, texts: pa.Array) -> list[pa.Array]:
    """The terms of lines.

    Raises:
        LineError: a line is wrong; its number counts from the first text.
    """
    return columns_of_lines(_without_graphs(texts) if syntax == "nq" else texts, 1)


def _without_graphs(texts: pa.Array) -> pa.Array:
    """Quads as triples. Lines that are wrong stay as they are, to be found later."""
    has_graph = pc.match_substring_regex(texts, r"(<[^>]*>|_:\S+)\s*\.\s*$")
    rows = pc.indices_nonzero(pc.fill_null(has_graph, fill_value=False))
    if not len(rows):
        return texts
    replaced = texts.to_pylist()
    for row in rows.to_pylist():
        replaced[row] = _triple_line(replaced[row])
    return pa.array(replaced, pa.string())


def _triple_line(line: str) -> str:
    if is_deep(line):
        return line
    try:
        quads = list(pyoxigraph.parse(line, FORMATS["nq"]))
    except SyntaxError:
        return line
    data = pyoxigraph.serialize((quad.triple for quad in quads), format=FORMATS["nt"])
    return (data or b"").decode().rstrip("\n")


def _one_by_one(
    syntax: str, lines: Lines, wrong: list[tuple[int, str, str]]
) -> tuple[list[pa.Array], list[tuple[int, str, str]]]:
    """The terms of lines of which many are wrong, or one in an unknown place."""
    right = []
    for position, line in zip(
        lines.positions.to_pylist(), lines.texts.to_pylist(), strict=True
    ):
        reason = _what_is_wrong(syntax, line)
        if reason is not None:
            wrong.append((position, line, reason))
        right.append(reason is None)
    kept = lines.texts.filter(pa.array(right, pa.bool_()))
    return _columns(syntax, kept), wrong


def _what_is_wrong(syntax: str, line: str) -> str | None:
    """Why a line is no triple or quad, if it is none."""
    if is_deep(line):
        return NO_TRIPLE_TERMS
    try:
        for quad in pyoxigraph.parse(line, FORMATS[syntax]):
            if isinstance(quad.object, pyoxigraph.Triple):
                return NO_TRIPLE_TERMS
    except SyntaxError as error:
        return _reason(error)
    return None


def _reason(problem: SyntaxError | str) -> str:
    message = problem if isinstance(problem, str) else problem.msg
    message = re.sub(r"^Parser error at .*?\d: ", "", message)
    return message[:1].lower() + message[1:]


def mapped_file(source: Source, file: File) -> Iterator[Mapped]:
    """The triples of a file of Turtle, TriG or RDF/XML, which is right or wrong whole.

    Raises:
        RdfSyntaxError: with the file, and the line where the parser knows it.
    """
    renaming = Numbered(_scope(file))
    predicate = source.facts[0].predicate
    nothing = rejected_lines(source.name, file.name, [])
    text = _safe(contents(file), source.format, file.name)
    try:
        quads = iter(
            pyoxigraph.parse(text, FORMATS[source.format], base_iri=source.base)
        )
        while batch := _some(quads):
            lines = pyoxigraph.serialize(batch, format=FORMATS["nt"]) or b""
            for _, texts in line_arrays(pa.BufferReader(lines)):
                table = _table(columns_of_lines(texts, None), renaming)
                yield Mapped([(predicate, table)], nothing, table.num_rows)
    except SyntaxError as error:
        where = f" in line {error.lineno}" if error.lineno else ""
        raise RdfSyntaxError(f"`{file.name}`{where}: {_reason(error)}") from None
    except LineError as error:
        raise RdfSyntaxError(f"`{file.name}`: {_reason(error.problem)}") from None


def _safe(data: bytes, syntax: str, name: str) -> bytes:
    """A file that does its reader no harm."""
    if syntax != "rdf":
        require_shallow_triples(name, data.decode(errors="replace"))
        return data
    data = plain_xml(data)
    try:
        require_safe_xml(name, data)
    except ExpatError as error:
        raise RdfSyntaxError(f"`{name}`: {error}") from None
    return data


def _some(quads: Iterator[pyoxigraph.Quad]) -> list[pyoxigraph.Triple]:
    found = []
    for quad in quads:
        found.append(quad.triple)
        if len(found) == QUADS_AT_ONCE:
            break
    return found
