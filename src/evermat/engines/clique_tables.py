"""What cliques of equal constants make of tables, whatever the ids of an engine are.

A table of ids is an array with a row for each column. An engine says which id stands
for each id, and which members a clique has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import pyarrow as pa

from evermat.columns import rows_without_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from evermat.values import Constant

    Sizes = npt.NDArray[np.int64]

Id = TypeVar("Id", bound=np.integer)


class CliqueTables(Generic[Id]):
    """The part of `evermat.algebra.Representatives` that is about tables."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Sequence[Constant], npt.NDArray[Id]]] = {}

    # ---------------------------------------------------------- what an engine knows

    def is_identity(self) -> bool:
        """Whether no two constants are equal."""
        raise NotImplementedError

    def map(self, ids: npt.NDArray[Id]) -> npt.NDArray[Id]:
        """The representatives of ids, in any shape."""
        raise NotImplementedError

    def members(self) -> tuple[npt.NDArray[Id], npt.NDArray[Id]]:
        """All members that do not represent, in the order of their representatives."""
        raise NotImplementedError

    def encoded(self, columns: Sequence[pa.ChunkedArray]) -> npt.NDArray[Id]:
        """The ids of a table of constants."""
        raise NotImplementedError

    def encoded_constants(self, constants: Sequence[Constant]) -> npt.NDArray[Id]:
        """The ids of constants."""
        raise NotImplementedError

    def decoded(self, ids: npt.NDArray[Id]) -> pa.StructArray:
        """The constants of ids, as a column of terms."""
        raise NotImplementedError

    def constant(self, id_: int) -> Constant:
        """The constant of an id."""
        raise NotImplementedError

    # --------------------------------------------------------------------- questions

    def of(self, constants: Sequence[Constant]) -> list[Constant]:
        """What stands for each of the constants."""
        if self.is_identity():
            return list(constants)
        # The constants of a program are asked about again and again.
        known = self._known.get(id(constants))
        if known is None or known[0] is not constants:
            ids = self.encoded_constants(constants)
            known = self._known[id(constants)] = (constants, ids)
        before = known[1]
        after = self.map(before)
        found = list(constants)
        for at in np.flatnonzero(before != after):
            found[at] = self.constant(int(after[at]))
        return found

    def sizes(self, ids: npt.NDArray[Id]) -> Sizes:
        """The size of the clique of each representative."""
        _, ones = self.members()
        first = np.searchsorted(ones, ids.ravel(), "left")
        last = np.searchsorted(ones, ids.ravel(), "right")
        sizes: Sizes = (last - first + 1).reshape(ids.shape)
        return sizes

    def weight(self, table: npt.NDArray[Id]) -> int:
        """How many rows some rows of representatives stand for."""
        return int(self.sizes(table).prod(axis=0).sum())

    def multiply(
        self, table: npt.NDArray[Id]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[Id]]:
        """All rows that rows of representatives stand for, and which row each is of."""
        members, ones = self.members()
        origin = np.arange(table.shape[1], dtype=np.int64)
        columns: list[npt.NDArray[Id]] = []
        for at in range(table.shape[0]):
            column = table[at, origin]
            first = np.searchsorted(ones, column, "left")
            sizes = np.searchsorted(ones, column, "right") - first + 1
            repeated = np.repeat(np.arange(column.size), sizes)
            starts = np.cumsum(sizes) - sizes
            offset = np.arange(repeated.size) - starts[repeated]
            place = first[repeated] + offset - 1
            chosen = column[repeated].copy()
            others = offset > 0
            chosen[others] = members[place[others]]
            columns = [done[repeated] for done in columns]
            columns.append(chosen)
            origin = origin[repeated]
        if not columns:
            return origin, table
        return origin, np.stack(columns)

    # ------------------------------------------------------------------------ tables

    def cliques(self) -> pa.Table:
        """The members of cliques of two and more, beside their representative."""
        members, ones = self.members()
        first = np.ones(ones.size, np.bool_)
        first[1:] = ones[1:] != ones[:-1]
        heads = ones[first]
        columns = [np.concatenate([heads, members]), np.concatenate([heads, ones])]
        return self._table(columns)

    def normalised(self, table: pa.Table) -> pa.Table:
        """A table with every constant replaced by its representative."""
        if self.is_identity() or not table.num_columns:
            return table
        return self._table(list(self.map(self.encoded(table.columns))))

    def expanded(self, table: pa.Table) -> pa.Table:
        """All rows that the rows of a table of term columns stand for."""
        if not table.num_columns:
            return rows_without_columns(table.num_rows)
        if self.is_identity() or not table.num_rows:
            return table
        return self._table(list(self.multiply(self.encoded(table.columns))[1]))

    def expanded_size(self, table: pa.Table) -> int:
        """How many rows `expanded` would have."""
        if self.is_identity() or not table.num_columns:
            return int(table.num_rows)
        return self.weight(self.encoded(table.columns))

    def _table(self, columns: Sequence[npt.NDArray[Id]]) -> pa.Table:
        return pa.table(
            [self.decoded(column) for column in columns],
            names=[str(at) for at in range(len(columns))],
        )
