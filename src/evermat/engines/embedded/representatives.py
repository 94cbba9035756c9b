"""Cliques of equal constants: an array that says for each id which id stands for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evermat.algebra import UnequalValuesError
from evermat.columns import rows_without_columns
from evermat.engines.embedded import kernels_cliques
from evermat.engines.embedded.dictionary import FIRST_INTEGER

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from evermat.engines.embedded.arrays import Ids
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.values import Constant, Kind

    Sizes = npt.NDArray[np.int64]


class Cliques:
    """See `evermat.algebra.Representatives`."""

    def __init__(self, dictionary: Dictionary, parents: Ids | None = None) -> None:
        self._dictionary = dictionary
        self._parents: Ids = np.empty(0, np.uint32) if parents is None else parents
        self._moved = 0
        self._inverse: tuple[Ids, Ids] | None = None
        self._ids: dict[int, tuple[Sequence[Constant], Ids]] = {}

    # ------------------------------------------------------------------- questions

    def copy(self) -> Cliques:
        """The same cliques, to be changed on their own."""
        twin = Cliques(self._dictionary, self._parents.copy())
        twin._moved = self._moved
        twin._inverse = self._inverse
        twin._ids = self._ids
        return twin

    def is_identity(self) -> bool:
        """Whether no two constants are equal."""
        return not self._moved

    def map(self, ids: Ids) -> Ids:
        """The representatives of ids, in any shape."""
        if not self._moved:
            return ids
        known = ids < self._parents.size
        mapped: Ids = self._parents[np.where(known, ids, 0)]
        return mapped if known.all() else np.where(known, mapped, ids)

    def of(self, constants: Sequence[Constant]) -> list[Constant]:
        """What stands for each of the constants."""
        if not self._moved:
            return list(constants)
        known = self._ids.get(id(constants))
        if known is None or known[0] is not constants:
            ids = self._dictionary.encode_constants(list(constants))
            known = self._ids[id(constants)] = (constants, ids)
        before = known[1]
        after = self.map(before)
        found = list(constants)
        for at in np.flatnonzero(before != after):
            found[at] = self._dictionary.constant(int(after[at]))
        return found

    def _members(self) -> tuple[Ids, Ids]:
        """All members that do not represent, in the order of their representatives."""
        if self._inverse is None:
            every = np.arange(self._parents.size, dtype=np.uint32)
            members = every[self._parents != every]
            ones = self._parents[members]
            order = np.argsort(ones, kind="stable")
            self._inverse = (members[order], ones[order])
        return self._inverse

    def sizes(self, ids: Ids) -> Sizes:
        """The size of the clique of each representative."""
        _, ones = self._members()
        first = np.searchsorted(ones, ids.ravel(), "left")
        last = np.searchsorted(ones, ids.ravel(), "right")
        sizes: Sizes = (last - first + 1).reshape(ids.shape)
        return sizes

    def multiply(self, table: Ids) -> tuple[npt.NDArray[np.int64], Ids]:
        """All rows that rows of representatives stand for, and which row each is of."""
        members, ones = self._members()
        origin = np.arange(table.shape[1], dtype=np.int64)
        columns: list[Ids] = []
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

    def cliques(self) -> pa.Table:
        """The members of cliques of two and more, beside their representative."""
        members, ones = self._members()
        first = np.ones(ones.size, np.bool_)
        first[1:] = ones[1:] != ones[:-1]
        heads = ones[first]
        columns = [np.concatenate([heads, members]), np.concatenate([heads, ones])]
        return self._decoded(columns)

    # ---------------------------------------------------------------------- tables

    def _encoded(self, table: pa.Table) -> Ids:
        ids = np.empty((table.num_columns, table.num_rows), np.uint32)
        for at, column in enumerate(table.columns):
            ids[at] = self._dictionary.encode(column)
        return ids

    def _decoded(self, columns: Sequence[Ids] | Ids) -> pa.Table:
        return pa.table(
            [self._dictionary.decode(column) for column in columns],
            names=[str(at) for at in range(len(columns))],
        )

    def normalised(self, table: pa.Table) -> pa.Table:
        """A table with every constant replaced by its representative."""
        if not self._moved or not table.num_columns:
            return table
        return self._decoded(self.map(self._encoded(table)))

    def expanded(self, table: pa.Table) -> pa.Table:
        """All rows that the rows of a table of term columns stand for."""
        if not table.num_columns:
            return rows_without_columns(table.num_rows)
        if not self._moved or not table.num_rows:
            return table
        return self._decoded(self.multiply(self._encoded(table))[1])

    def expanded_size(self, table: pa.Table) -> int:
        """How many rows `expanded` would have."""
        if not self._moved or not table.num_columns:
            return int(table.num_rows)
        return self.weight(self._encoded(table))

    def weight(self, table: Ids) -> int:
        """How many rows some rows of representatives stand for."""
        return int(self.sizes(table).prod(axis=0).sum())

    # --------------------------------------------------------------------- changes

    def unite(self, left: Ids, right: Ids, values: frozenset[Kind]) -> Ids:
        """Make pairs of constants equal; returns those that lost their status."""
        self._reserve(len(self._dictionary))
        roots = np.concatenate([self.map(left), self.map(right)])
        ranks = self._dictionary.ranks(values)
        conflict = kernels_cliques.unite(
            self._parents,
            ranks,
            np.ascontiguousarray(left),
            np.ascontiguousarray(right),
        )
        if conflict >= 0:
            raise UnequalValuesError(
                self._dictionary.constant(self._root(int(left[conflict]))),
                self._dictionary.constant(self._root(int(right[conflict]))),
            )
        self._moved = kernels_cliques.flatten(self._parents)
        self._inverse = None
        lost = roots[self.map(roots) != roots]
        return np.unique(lost).astype(np.uint32) if lost.size else lost

    def _root(self, id_: int) -> int:
        while id_ < FIRST_INTEGER and self._parents[id_] != id_:
            id_ = int(self._parents[id_])
        return id_

    def assign(self, members: Ids, ones: Ids) -> None:
        """Say what stands for each of some members, whole cliques of them."""
        self._reserve(len(self._dictionary))
        names = members < FIRST_INTEGER
        self._parents[members[names]] = ones[names]
        every = np.arange(self._parents.size, dtype=np.uint32)
        self._moved = int(np.count_nonzero(self._parents != every))
        self._inverse = None

    def _reserve(self, size: int) -> None:
        if size > self._parents.size:
            more = np.arange(self._parents.size, size, dtype=np.uint32)
            self._parents = np.concatenate([self._parents, more])

    def differences(self, other: Cliques) -> Ids:
        """The constants whose representative is another one there."""
        size = max(self._parents.size, other._parents.size)
        every = np.arange(size, dtype=np.uint32)
        found: Ids = every[self.map(every) != other.map(every)]
        return found
