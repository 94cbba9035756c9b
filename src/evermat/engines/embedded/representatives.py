"""Cliques of equal constants: an array that says for each id which id stands for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.algebra import UnequalValuesError
from evermat.engines.clique_tables import CliqueTables
from evermat.engines.embedded import kernels_cliques
from evermat.engines.embedded.dictionary import FIRST_INTEGER

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from evermat.engines.embedded.arrays import Ids
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.values import Constant, Kind


class Cliques(CliqueTables[np.uint32]):
    """See `evermat.algebra.Representatives`."""

    def __init__(self, dictionary: Dictionary, parents: Ids | None = None) -> None:
        super().__init__()
        self._dictionary = dictionary
        self._parents: Ids = np.empty(0, np.uint32) if parents is None else parents
        self._moved = 0
        self._inverse: tuple[Ids, Ids] | None = None

    # ------------------------------------------------------------------- questions

    def copy(self) -> Cliques:
        """The same cliques, to be changed on their own."""
        twin = Cliques(self._dictionary, self._parents.copy())
        twin._moved = self._moved
        twin._inverse = self._inverse
        twin._known = self._known
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

    def members(self) -> tuple[Ids, Ids]:
        """All members that do not represent, in the order of their representatives."""
        if self._inverse is None:
            every = np.arange(self._parents.size, dtype=np.uint32)
            members = every[self._parents != every]
            ones = self._parents[members]
            order = np.argsort(ones, kind="stable")
            self._inverse = (members[order], ones[order])
        return self._inverse

    def encoded(self, columns: Sequence[pa.ChunkedArray]) -> Ids:
        """The ids of a table of constants."""
        ids = np.empty((len(columns), len(columns[0])), np.uint32)
        for at, column in enumerate(columns):
            ids[at] = self._dictionary.encode(column)
        return ids

    def encoded_constants(self, constants: Sequence[Constant]) -> Ids:
        """The ids of constants."""
        return self._dictionary.encode_constants(list(constants))

    def decoded(self, ids: Ids) -> pa.StructArray:
        """The constants of ids, as a column of terms."""
        return self._dictionary.decode(ids)

    def constant(self, id_: int) -> Constant:
        """The constant of an id."""
        return self._dictionary.constant(id_)

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
