"""Numeric keys for several columns of a row, equal on the driver and in plans.

A join by one number is faster than one by all columns, and plans for different columns
can share it. Rows with the same key can be different, so the caller has to compare
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt
    import pyarrow as pa

    Ids = npt.NDArray[np.int64]
    Keys = npt.NDArray[np.int64]

FEW_VALUES = 10
"""Number of values of a column up to which they are listed for scans to skip rows.

Spark converts more values to a set, with which scans skip nothing.
"""
_BITS = 64
_TAG_TURN = 45


@dataclass(frozen=True, slots=True)
class Shape:
    """Rows of a relation, by the positions of given values."""

    tag: int
    positions: tuple[int, ...]

    @property
    def _start(self) -> int:
        places = sum(1 << at for at in self.positions)
        return (self.tag << 24) + (places << 8) + 1

    def keys(self, columns: Mapping[int, Ids], size: int) -> Keys:
        """Return the key of each row."""
        numbers = np.full(size, self._start, np.uint64)
        for at in self.positions:
            numbers ^= _turned(columns[at], _turn(at))
        return numbers.view(np.int64)

    def sql(self) -> str:
        """Return the same key in a plan."""
        parts = [_turned_sql(f"c{at}", _turn(at)) for at in self.positions]
        return " ^ ".join([f"{self._start}L", *parts])


def whole_keys(table: pa.Table, width: int) -> Keys:
    """Return a key for each whole row, including the relation."""
    numbers = _turned(table["tag"].to_numpy(), _TAG_TURN).copy()
    for at in range(width):
        numbers ^= _turned(table[f"c{at}"].to_numpy(), _turn(at))
    return numbers.view(np.int64)


def whole_key_sql(width: int) -> str:
    """Return the same key in a plan."""
    parts = [_turned_sql(f"c{at}", _turn(at)) for at in range(width)]
    return " ^ ".join([_turned_sql("tag", _TAG_TURN), *parts])


def listed_values(columns: Iterable[tuple[str, Ids]]) -> list[str]:
    """Return conditions for columns that have few values."""
    found = []
    for name, column in columns:
        values = np.unique(column)
        if values.size <= FEW_VALUES:
            listed = ", ".join(f"{value}L" for value in values)
            found.append(f"{name} IN ({listed})")
    return found


def _turn(at: int) -> int:
    return 1 + 17 * at % (_BITS - 1)


def _turned(column: Ids, by: int) -> npt.NDArray[np.uint64]:
    bits = np.ascontiguousarray(column).view(np.uint64)
    return (bits << np.uint64(by)) | (bits >> np.uint64(_BITS - by))


def _turned_sql(name: str, by: int) -> str:
    return f"(shiftleft({name}, {by}) | shiftrightunsigned({name}, {_BITS - by}))"
