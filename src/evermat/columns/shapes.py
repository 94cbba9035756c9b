"""Shapes of columns that are processed in pieces.

`natural` inspects a whole column. If no process has the whole column, the shapes of its
pieces are determined one by one and combined; every piece is then converted like a part
of the whole column. `TableParts` are tables in pieces that may be too large for memory
together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns.incoming import term_table
from evermat.columns.terms import (
    halves,
    kinds_in,
    natural,
    plain_texts,
    single,
    term_texts,
)
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_MIXED = "mixed"
_DIGITS_128, _DIGITS_256 = 38, 76
_PLAIN = {
    Kind.STRING: "text",
    Kind.IRI: "node",
    Kind.BLANK: "node",
    Kind.INTEGER: "int64",
    Kind.DECIMAL: "decimal",
    Kind.DOUBLE: "double",
    Kind.BOOLEAN: "bool",
    Kind.LANGUAGE: _MIXED,
}
_TYPES = {
    "text": pa.string(),
    "node": pa.string(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "date32[day]": pa.date32(),
    "timestamp[us]": pa.timestamp("us"),
    "timestamp[us, tz=UTC]": pa.timestamp("us", "UTC"),
    _MIXED: pa.string(),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a column or of a piece of it.

    Attributes:
        word: the kind of column; empty for a column without rows.
        whole, fraction: for numbers, the most digits before and after the point.
    """

    word: str = ""
    whole: int = 0
    fraction: int = 0

    def __or__(self, other: Shape) -> Shape:
        """Return the common shape of two pieces."""
        words = {self.word, other.word} - {""}
        if words == {"int64", "integer"}:
            words = {"integer"}
        word = "" if not words else words.pop() if len(words) == 1 else _MIXED
        return Shape(
            word, max(self.whole, other.whole), max(self.fraction, other.fraction)
        )

    @property
    def type(self) -> pa.DataType:
        """The type that `natural` would give the whole column."""
        if self.word not in {"integer", "decimal"}:
            return _TYPES.get(self.word, pa.string())
        digits = self.whole + self.fraction
        if digits <= _DIGITS_128:
            return pa.decimal128(_DIGITS_128, self.fraction)
        if digits <= _DIGITS_256:
            return pa.decimal256(_DIGITS_256, self.fraction)
        return pa.string()

    def natural(self, piece: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Convert a piece like `natural`, as part of the whole column."""
        terms = single(piece)
        if self.word == _MIXED:
            return term_texts(terms)
        if self.word in {"integer", "decimal"}:
            return terms.field(1).cast(self.type)
        return natural(terms).cast(self.type)

    def plain_texts(self, piece: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Convert a piece like `plain_texts`, as part of the whole column."""
        terms = single(piece)
        if self.word == _MIXED:
            return term_texts(terms)
        if self.word == "node":
            return plain_texts(terms)
        if pa.types.is_temporal(self.type):
            return halves(terms.field(1))[1]
        return terms.field(1)


def shape_of(piece: pa.Array | pa.ChunkedArray) -> Shape:
    """Return the shape of a term column."""
    terms = single(piece)
    shapes = [_shape(kind, terms) for kind in kinds_in(terms)]
    return joined_shapes(shapes)


def joined_shapes(shapes: Iterable[Shape]) -> Shape:
    """Return the common shape of pieces."""
    return reduce(Shape.__or__, shapes, Shape())


def _shape(kind: Kind, terms: pa.Array) -> Shape:
    texts = terms.field(1)
    if kind is Kind.TYPED:
        found = str(natural(terms).type)
        return Shape(found if found in _TYPES else _MIXED)
    if kind not in {Kind.INTEGER, Kind.DECIMAL}:
        return Shape(_PLAIN[kind])
    texts = texts.filter(pc.equal(terms.field(0), int(kind)))
    whole = pc.max(
        pc.binary_length(pc.replace_substring_regex(texts, r"^-|\..*$", ""))
    ).as_py()
    if kind is Kind.DECIMAL:
        point = pc.find_substring(texts, ".")
        fraction = pc.max(pc.subtract(pc.binary_length(texts), point)).as_py() - 1
        return Shape("decimal", whole, fraction)
    try:
        texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return Shape("integer", whole)
    return Shape("int64", whole)


# -------------------------------------------------------------------------------- parts


class TableParts(Protocol):
    """Term columns that are read in parts, one at a time."""

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""

    def shapes(self) -> Sequence[Shape] | None:
        """Return the shapes of whole columns; None if there is a single part."""

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield the parts, one after the other."""


def as_parts(
    rows: pa.Table | TableParts, shapes: Sequence[Shape] | None = None
) -> TableParts:
    """Return rows as a table in parts; a table is its own only part.

    Args:
        rows: a table of columns that `as_terms` supports, or parts.
        shapes: the shapes of the whole columns, if a table is only a part of the rows.
    """
    return _OnePart(term_table(rows), shapes) if isinstance(rows, pa.Table) else rows


@dataclass(frozen=True, slots=True)
class _OnePart:
    table: pa.Table
    whole: Sequence[Shape] | None

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        names: list[str] = self.table.column_names
        return names

    def shapes(self) -> Sequence[Shape] | None:
        """Return the shapes of whole columns, if they are known."""
        return self.whole

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield the table."""
        yield self.table
