"""Facts as N-Triples."""

from __future__ import annotations

import warnings
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import (
    as_parts,
    kinds_in,
    ntriples_texts,
    term_texts,
    terms_of_kind,
)
from evermat.errors import EvermatError
from evermat.errors.wording import counted
from evermat.io.lines import ROWS_AT_ONCE, text_block
from evermat.io.rdf_spelling import misspelt_row
from evermat.lang.lexer import RDF_TYPE
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evermat.columns import TableParts

_TRIPLE = 3


class NotTriplesError(EvermatError, ValueError):
    """Rows that are not RDF triples."""

    code = "EM721"


class LeftOutTriplesWarning(EvermatError, UserWarning):  # noqa: N818  a warning
    """Triples that RDF does not allow, and that were skipped."""

    code = "EM913"


_ALLOWED = {"subject": (Kind.IRI, Kind.BLANK), "predicate": (Kind.IRI,)}
"""Kinds allowed at places that literals may not take."""

_OTHER_FORMAT = "write `.csv` or `.parquet` instead"


class TripleLines:
    """The rows of term columns as lines of N-Triples, in blocks of many lines.

    Three columns are subject, predicate and object. A fact `p(a, b)` becomes `a p b`,
    and `p(a)` becomes `a rdf:type p`; a predicate name that is no IRI is written
    `urn:name`.

    Rows that RDF does not allow, such as those with literals as subjects, which rules
    may derive, are skipped and counted.

    Attributes:
        written: the number of triples so far.
        left_out: the number of skipped rows, by reason.
    """

    def __init__(self, rows: pa.Table | TableParts, predicate: str = "") -> None:
        """Convert rows; `predicate` names the predicate of one or two columns.

        Raises:
            NotTriplesError: there are more than three columns, or none.
        """
        self._parts = as_parts(rows)
        self._predicate = predicate
        self.written = 0
        self.left_out: Counter[str] = Counter()
        self._first: NotTriplesError | None = None
        width = len(self._parts.column_names)
        if not 1 <= width <= _TRIPLE:
            raise NotTriplesError(
                f"rows with {width} columns are not triples",
                help=_OTHER_FORMAT,
            )

    def __iter__(self) -> Iterator[pa.Buffer]:
        """Yield the blocks.

        Raises:
            NotTriplesError: RDF cannot represent a constant.
        """
        row = 1
        batches = (part.to_batches(max_chunksize=ROWS_AT_ONCE) for part in self._parts)
        for batch in chain.from_iterable(batches):
            columns = _triple_columns(batch.columns, self._predicate)
            for at, place in enumerate(_ALLOWED):
                wrong = _wrong_kinds(columns[at], place)
                if wrong is not None:
                    if self._first is None:
                        self._first = _not_a_triple(columns[at], wrong, place, row)
                    self._leave_out(columns[at], wrong, place)
                    columns = [column.filter(pc.invert(wrong)) for column in columns]
            _require_spelling(columns, first_row=row)
            texts = [ntriples_texts(column) for column in columns]
            yield text_block(texts, between=" ", end=" .\n")
            self.written += len(columns[0])
            row += batch.num_rows

    def require_some(self) -> None:
        """Reject rows none of which is a triple.

        Raises:
            NotTriplesError: there were rows, and all were skipped.
        """
        if self._first is not None and not self.written:
            raise self._first

    def tell(self, name: str) -> None:
        """Warn once about triples that a file lacks, if there are any."""
        warn_of_left_out(name, self.written + self.left_out.total(), self.left_out)

    def _leave_out(self, terms: pa.Array, wrong: pa.Array, place: str) -> None:
        kinds = pc.filter(terms.field(0), wrong)
        blank = pc.sum(pc.equal(kinds, int(Kind.BLANK))).as_py()
        self.left_out[f"a literal as {place}"] += len(kinds) - blank
        self.left_out[f"a blank node as {place}"] += blank


def warn_of_left_out(name: str, rows: int, left_out: Mapping[str, int]) -> None:
    """Warn once about triples that a file lacks, if there are any.

    Args:
        name: the name of the output.
        rows: the number of triples, including missing ones.
        left_out: the number of missing triples, by reason.
    """
    counts = {what: count for what, count in left_out.items() if count}
    if not counts:
        return
    listed = ", ".join(f"{count:,} with {what}" for what, count in counts.items())
    number = sum(counts.values())
    warnings.warn(
        LeftOutTriplesWarning(
            f"{number:,} of {counted(rows, 'triple')} left out of `{name}`: {listed}",
            reason="in RDF a subject is an IRI or a blank node, a predicate an IRI",
            help="write `.csv` or `.parquet` to have all of them",
        ),
        stacklevel=4,
    )


def ntriples_blocks(
    rows: pa.Table | TableParts, predicate: str = ""
) -> Iterator[pa.Buffer]:
    """Yield the rows of term columns as lines of N-Triples; see `TripleLines`.

    Raises:
        NotTriplesError: the rows are no triples.

    Warns:
        LeftOutTriplesWarning: some of them are not.
    """
    lines = TripleLines(rows, predicate)
    yield from lines
    lines.require_some()
    lines.tell(predicate or "the file")


def _require_spelling(columns: list[pa.Array], *, first_row: int) -> None:
    for column in columns:
        row = misspelt_row(column)
        if row is not None:
            text = term_texts(column.slice(row, 1))[0].as_py()
            raise NotTriplesError(
                f"row {first_row + row} has {text!r}, which RDF cannot hold",
                reason="an IRI has no blanks, quotes, brackets or backslashes; labels "
                "of blank nodes and tags of languages have letters and digits",
                help=f"correct the data, or {_OTHER_FORMAT}",
            )


def _triple_columns(columns: list[pa.Array], predicate: str) -> list[pa.Array]:
    if len(columns) == _TRIPLE:
        return columns
    length = len(columns[0])
    name = _repeated(predicate if ":" in predicate else f"urn:{predicate}", length)
    if len(columns) == 1:
        return [columns[0], _repeated(RDF_TYPE.text, length), name]
    return [columns[0], name, columns[1]]


def _repeated(iri: str, length: int) -> pa.Array:
    return terms_of_kind(Kind.IRI, pa.repeat(pa.scalar(iri), length))


def _wrong_kinds(terms: pa.Array, place: str) -> pa.Array | None:
    """Return which terms are not allowed at a place; None if all are."""
    allowed = _ALLOWED[place]
    if kinds_in(terms) <= set(allowed):
        return None
    numbers = pa.array([int(kind) for kind in allowed], pa.uint8())
    return pc.invert(pc.is_in(terms.field(0), value_set=numbers))


def _not_a_triple(
    terms: pa.Array, wrong: pa.Array, place: str, first_row: int
) -> NotTriplesError:
    row = pc.index(wrong, value=True).as_py()
    text = term_texts(terms.slice(row, 1))[0].as_py()
    what = " or blank node" if Kind.BLANK in _ALLOWED[place] else ""
    return NotTriplesError(
        f"row {first_row + row} has {text} as its {place}, and no row is a triple",
        reason=f"the {place} of a triple is an IRI{what}",
        help=_OTHER_FORMAT,
    )
