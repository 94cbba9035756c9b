"""Lines of N-Triples into columns of terms, by whole columns.

Blank nodes are local to a file; a `Renaming` keeps those of different files apart.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph

from evermat.columns import TERM, TermSyntaxError, read_terms
from evermat.columns.reading import quick_kinds
from evermat.rdf.untrusted_input import is_deep
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Renaming(Protocol):
    """Gives the blank nodes of a term column other labels."""

    def rename(self, terms: pa.Array) -> pa.Array:
        """The terms, with blank nodes renamed."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Leaves labels as they are."""

    def rename(self, terms: pa.Array) -> pa.Array:
        """The terms themselves."""
        return terms


@dataclass(frozen=True, slots=True)
class Labelled:
    """Puts a scope before each label, for files in which every node has one."""

    scope: str

    def rename(self, terms: pa.Array) -> pa.Array:
        """The terms, with blank nodes `_:x` renamed to `_:scope_x`."""
        kinds, texts = terms.field(0), terms.field(1)
        is_blank = pc.equal(kinds, int(Kind.BLANK))
        if not pc.any(is_blank, min_count=0).as_py():
            return terms
        scoped = pc.binary_join_element_wise(self.scope, texts, "_")
        return _rebuilt(kinds, pc.if_else(is_blank, scoped, texts))


@dataclass(frozen=True, slots=True)
class Numbered:
    """Numbers nodes in the order of the file.

    A parser gives nodes without a label a new random one each time it reads the file;
    numbers are the same each time.
    """

    scope: str
    numbers: dict[str, int] = field(default_factory=dict)

    def rename(self, terms: pa.Array) -> pa.Array:
        """The terms, with the n-th blank node of the file renamed to `_:scope_n`."""
        kinds, texts = terms.field(0), terms.field(1)
        is_blank = pc.equal(kinds, int(Kind.BLANK))
        if not pc.any(is_blank, min_count=0).as_py():
            return terms
        encoded = texts.filter(is_blank).dictionary_encode()
        known = self.numbers
        renamed = [
            f"{self.scope}_{known.setdefault(label, len(known) + 1)}"
            for label in encoded.dictionary.to_pylist()
        ]
        new = pa.array(renamed, pa.string()).take(encoded.indices)
        return _rebuilt(kinds, pc.replace_with_mask(texts, is_blank, new))


def _rebuilt(kinds: pa.Array, texts: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))


BYTES_AT_ONCE = 1 << 23
NO_TRIPLE_TERMS = "triples as terms are not supported"
"""What is said of lines with such."""

_LITERALS = {Kind.STRING, Kind.TYPED, Kind.LANGUAGE}
_ALLOWED = (
    {Kind.IRI, Kind.BLANK},
    {Kind.IRI},
    {Kind.IRI, Kind.BLANK, *_LITERALS},
)


class LineError(Exception):
    """A line that is not a triple.

    Attributes:
        problem: what the parser said, or what we say.
        line: its number in the file.
    """

    def __init__(self, problem: SyntaxError | str, line: int | None) -> None:
        super().__init__(problem, line)
        self.problem = problem
        self.line = line


class Stream(Protocol):
    """What can be read piece by piece."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, or some of them; none at the end."""


class Unmarked:
    """A stream without the byte order mark that it may begin with."""

    def __init__(self, stream: Stream) -> None:
        start = stream.read(len(BOM_UTF8))
        self._start = b"" if start == BOM_UTF8 else start
        self._stream = stream

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        start, self._start = self._start, b""
        return start or self._stream.read(size)


def line_arrays(stream: Stream) -> Iterator[tuple[int, pa.Array]]:
    """The lines of a stream in arrays of many, each with its first line's number."""
    number = 1
    rest = b""
    while block := stream.read(BYTES_AT_ONCE):
        end = block.rfind(b"\n")
        if end < 0:
            rest += block
            continue
        lines = _split(b"".join((rest, memoryview(block)[:end])))
        yield number, lines
        number += len(lines)
        rest = block[end + 1 :]
    if rest:
        yield number, _split(rest)


def _split(text: bytes) -> pa.Array:
    ends = pa.array([0, len(text)], pa.int32()).buffers()[1]
    whole = pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(text)])
    # The cast is where bytes are checked to be UTF-8.
    lines = pc.split_pattern(whole.cast(pa.string()), "\n").flatten()
    if b"\r" in text:
        lines = pc.utf8_rtrim(lines, "\r")
    return lines


def columns_of_triples(
    triples: Iterable[pyoxigraph.Triple],
) -> Iterator[list[pa.Array]]:
    """The terms of triples of pyoxigraph, in columns of many rows."""
    data = pyoxigraph.serialize(triples, format=pyoxigraph.RdfFormat.N_TRIPLES)
    for _, lines in line_arrays(pa.BufferReader(data)):
        yield columns_of_lines(lines, None)


def columns_of_lines(lines: pa.Array, first_line: int | None) -> list[pa.Array]:
    """The terms of lines of N-Triples: subjects, predicates and objects.

    Args:
        lines: the lines; empty ones and comments are allowed.
        first_line: the number of the first line in its file; None for lines that
            pyoxigraph has written, which are not parsed once more.

    Raises:
        LineError: a line is not a triple.
    """
    columns, is_plain = _plain_triples(lines)
    if is_plain is None:
        return columns
    others = lines.filter(pc.invert(is_plain))
    if first_line is not None:
        others = _parsed_lines(lines, is_plain, first_line)
    return [
        pa.concat_arrays([column, more])
        for column, more in zip(columns, _second_look(others), strict=True)
    ]


def _plain_triples(lines: pa.Array) -> tuple[list[pa.Array], pa.Array | None]:
    """The terms of lines of the plainest form, and which lines have it.

    That form has single spaces, and terms that `quick_kinds` recognises. None stands
    for all lines.
    """
    parts = pc.split_pattern(lines, " ", max_splits=2)
    has_three = pc.equal(pc.list_value_length(parts), 3)
    shaped = pc.and_(has_three, pc.ends_with(lines, " ."))
    all_shaped = pc.all(shaped, min_count=0).as_py()
    if not all_shaped:
        parts = parts.filter(shaped)
    columns = []
    fits = None
    for texts, allowed in zip(_three_texts(parts), _ALLOWED, strict=True):
        terms, known = _known_terms(texts, allowed)
        columns.append(terms)
        if known is not None:
            fits = known if fits is None else pc.and_(fits, known)
    if fits is not None:
        columns = [column.filter(fits) for column in columns]
        shaped = pc.replace_with_mask(shaped, shaped, fits)
    return columns, None if all_shaped and fits is None else shaped


def _three_texts(parts: pa.ListArray) -> list[pa.Array]:
    subjects, predicates, objects = (pc.list_element(parts, at) for at in range(3))
    return [subjects, predicates, pc.utf8_slice_codeunits(objects, 0, -2)]


def _known_terms(
    texts: pa.Array, allowed: set[Kind]
) -> tuple[pa.Array, pa.Array | None]:
    """The terms of texts, and which of them count; None stands for all."""
    encoded = texts.dictionary_encode()
    distinct, indices = encoded.dictionary, encoded.indices
    kinds = quick_kinds(distinct)
    numbers = pa.array([int(kind) for kind in allowed], pa.uint8())
    known = pc.is_in(kinds, value_set=numbers)
    if pc.all(known, min_count=0).as_py():
        return read_terms(distinct, kinds).take(indices), None
    # Texts that are no terms, in lines that will be looked at again, must not fail.
    distinct = pc.if_else(known, distinct, "")
    return read_terms(distinct).take(indices), known.take(indices)


def _parsed_lines(lines: pa.Array, is_plain: pa.Array, first_line: int) -> pa.Array:
    """The lines that are not plain, as pyoxigraph writes them once it has read them."""
    rows = pc.indices_nonzero(pc.invert(is_plain))
    others = lines.take(rows).to_pylist()
    text = "\n".join(others)
    if "<<" in text:
        for row, line in zip(rows.to_pylist(), others, strict=True):
            if is_deep(line):
                raise LineError(NO_TRIPLE_TERMS, first_line + row)
    ntriples = pyoxigraph.RdfFormat.N_TRIPLES
    try:
        data = pyoxigraph.serialize(
            (quad.triple for quad in pyoxigraph.parse(text, ntriples)), format=ntriples
        )
    except SyntaxError as error:
        if "\r" in text:  # ends a line for the parser, and not for us
            raise LineError(error, None) from None
        line = first_line + rows[(error.lineno or 1) - 1].as_py()
        raise LineError(error, line) from None
    return _split(data or b"")


def _second_look(lines: pa.Array) -> list[pa.Array]:
    """The terms of lines that pyoxigraph has written, whatever they contain."""
    lines = lines.filter(pc.greater(pc.binary_length(lines), 0))
    texts = _three_texts(pc.split_pattern(lines, " ", max_splits=2))
    try:
        return [read_terms(column) for column in texts]
    except TermSyntaxError as error:
        problem = f"{NO_TRIPLE_TERMS}: {error.text}"
        raise LineError(problem, None) from None
