"""Tables that come in parts, as they may be too large for the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from evermat.columns.incoming import term_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evermat.columns.shapes import Shape


class TableParts(Protocol):
    """Term columns of which no more than a part is seen at a time."""

    @property
    def column_names(self) -> list[str]:
        """What the columns are called."""

    def shapes(self) -> Sequence[Shape] | None:
        """The shapes of whole columns; None where one part is all."""

    def __iter__(self) -> Iterator[pa.Table]:
        """The parts, one after the other."""


def as_parts(
    rows: pa.Table | TableParts, shapes: Sequence[Shape] | None = None
) -> TableParts:
    """Rows as a table in parts; a table is its own only part.

    Args:
        rows: a table of columns that `as_terms` knows, or parts.
        shapes: of the whole columns, where a table is only a part of the rows.
    """
    return _OnePart(term_table(rows), shapes) if isinstance(rows, pa.Table) else rows


@dataclass(frozen=True, slots=True)
class _OnePart:
    table: pa.Table
    whole: Sequence[Shape] | None

    @property
    def column_names(self) -> list[str]:
        """What the columns are called."""
        names: list[str] = self.table.column_names
        return names

    def shapes(self) -> Sequence[Shape] | None:
        """The shapes of whole columns, if they are known."""
        return self.whole

    def __iter__(self) -> Iterator[pa.Table]:
        """The table."""
        yield self.table
