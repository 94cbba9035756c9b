"""Cliques of equal constants: a sorted map from ids to the ids that stand for them.

The driver, which has the dictionary, has the map as well. It never changes in place:
plans join with the block that was made of it, for as long as they need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import UnequalValuesError
from evermat.engines.clique_tables import CliqueTables
from evermat.engines.embedded import kernels_cliques
from evermat.engines.spark.blocks import local_block
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from evermat.engines.spark.blocks import Block, Cluster
    from evermat.engines.spark.dictionary import Ids

    Flags = npt.NDArray[np.uint8]
    Numbers = npt.NDArray[np.uint32]

NO_IDS: Ids = np.empty(0, np.int64)


class Cliques(CliqueTables[np.int64]):
    """See `evermat.algebra.Representatives`."""

    def __init__(
        self, cluster: Cluster, moved: Ids = NO_IDS, ones: Ids = NO_IDS
    ) -> None:
        super().__init__()
        self._cluster = cluster
        self._dictionary = cluster.dictionary
        self._set(moved, ones)

    def _set(self, moved: Ids, ones: Ids) -> None:
        """Say which constants do not stand for themselves, and what does."""
        self._moved, self._ones = moved, ones
        self._inverse: tuple[Ids, Ids] | None = None
        self._block: Block | None = None

    # ------------------------------------------------------------------- questions

    def copy(self) -> Cliques:
        """The same cliques, to be changed on their own."""
        twin = Cliques(self._cluster, self._moved, self._ones)
        twin._inverse, twin._block = self._inverse, self._block
        twin._known = self._known
        return twin

    def is_identity(self) -> bool:
        """Whether no two constants are equal."""
        return not self._moved.size

    @property
    def moved(self) -> Ids:
        """The constants that something else stands for."""
        return self._moved

    @property
    def block(self) -> Block:
        """The map as a block: what moved is `c0`, what stands for it `c1`."""
        if self._block is None:
            tags = np.zeros(self._moved.size, np.int64)
            table = pa.table({"tag": tags, "c0": self._moved, "c1": self._ones})
            self._block = local_block(self._cluster, table)
        return self._block

    def size_table(self) -> pa.Table:
        """The representatives `c0` of two and more constants, and `n`, how many."""
        ones, counts = np.unique(self._ones, return_counts=True)
        return pa.table(
            {"tag": np.zeros(ones.size, np.int64), "c0": ones, "n": counts + 1}
        )

    def map(self, ids: Ids) -> Ids:
        """The representatives of ids, in any shape."""
        if not self._moved.size:
            return ids
        places = np.searchsorted(self._moved, ids)
        places[places == self._moved.size] = 0
        return np.where(self._moved[places] == ids, self._ones[places], ids)

    def members(self) -> tuple[Ids, Ids]:
        """All members that do not represent, in the order of their representatives."""
        if self._inverse is None:
            order = np.argsort(self._ones, kind="stable")
            self._inverse = self._moved[order], self._ones[order]
        return self._inverse

    def encoded(self, columns: Sequence[pa.ChunkedArray]) -> Ids:
        """The ids of a table of constants."""
        return np.stack([self._dictionary.encode(column) for column in columns])

    def encoded_constants(self, constants: Sequence[Constant]) -> Ids:
        """The ids of constants."""
        return np.array(self._dictionary.encode_constants(constants), np.int64)

    def decoded(self, ids: Ids) -> pa.StructArray:
        """The constants of ids, as a column of terms."""
        return self._dictionary.decode(pa.array(ids))

    def constant(self, id_: int) -> Constant:
        """The constant of an id."""
        term = self.decoded(np.array([id_], np.int64))[0].as_py()
        return Constant(Kind(term["kind"]), term["text"])

    # --------------------------------------------------------------------- changes

    def unite(self, left: Ids, right: Ids, values: frozenset[Kind]) -> Ids:
        """Make pairs of constants equal; returns those that lost their status."""
        left, right = self.map(left), self.map(right)
        every = np.unique(np.concatenate([left, right]))
        ids, ranks = self._in_order(every, values)
        by_id = np.argsort(ids)
        parents = np.arange(ids.size, dtype=np.uint32)
        numbers = [
            by_id[np.searchsorted(ids, side, sorter=by_id)].astype(np.uint32)
            for side in (left, right)
        ]
        conflict = kernels_cliques.unite(parents, ranks, *numbers)
        if conflict >= 0:
            one, other = (_root(parents, int(side[conflict])) for side in numbers)
            raise UnequalValuesError(
                self.constant(int(ids[one])), self.constant(int(ids[other]))
            )
        kernels_cliques.flatten(parents)
        lost = np.flatnonzero(parents != np.arange(ids.size))
        self._move(ids[lost], ids[parents[lost]])
        return np.sort(ids[lost])

    def _in_order(self, ids: Ids, values: frozenset[Kind]) -> tuple[Ids, Flags]:
        """Ids with those first that rather stand for others, and their ranks.

        The order is that of kinds and texts, so that it does not depend on digests.
        """
        terms = self.decoded(ids)
        kinds = terms.field("kind").to_numpy(zero_copy_only=False)
        ranks = 1 - np.isin(kinds, [int(kind) for kind in values]).astype(np.uint8)
        table = pa.table({"rank": ranks, "kind": kinds, "text": terms.field("text")})
        keys = [(name, "ascending") for name in table.column_names]
        order = pc.sort_indices(table, sort_keys=keys).to_numpy()
        return ids[order], ranks[order]

    def _move(self, members: Ids, ones: Ids) -> None:
        """Let other constants stand for some that stood for themselves."""
        if not members.size:
            return
        order = np.argsort(members)
        step = Cliques(self._cluster, members[order], ones[order])
        self._sort(
            np.concatenate([self._moved, members]),
            np.concatenate([step.map(self._ones), ones]),
        )

    def assign(self, members: Ids, ones: Ids) -> None:
        """Say what stands for each of some members, whole cliques of them."""
        others = ~np.isin(self._moved, members)
        moved = members != ones
        self._sort(
            np.concatenate([self._moved[others], members[moved]]),
            np.concatenate([self._ones[others], ones[moved]]),
        )

    def _sort(self, members: Ids, ones: Ids) -> None:
        order = np.argsort(members)
        self._set(members[order], ones[order])

    def differences(self, other: Cliques) -> Ids:
        """The constants whose representative is another one there."""
        moved = np.union1d(self._moved, other._moved)
        found: Ids = moved[self.map(moved) != other.map(moved)]
        return found


def _root(parents: Numbers, number: int) -> int:
    while parents[number] != number:
        number = int(parents[number])
    return number
