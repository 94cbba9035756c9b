"""Cliques of equal constants: a sorted map from ids to their representatives.

The driver, which has the dictionary, has the map as well. It never changes in place:
plans join with the block that was made from it, as long as they need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra.equality import UnequalValuesError
from evermat.columns import rows_without_columns
from evermat.engines.embedded.arrays import sum_of_products
from evermat.engines.embedded.dictionary import RememberedIds
from evermat.engines.embedded.kernels import cliques as kernels_cliques
from evermat.engines.embedded.kernels.layout import address
from evermat.engines.spark.blocks import local_block
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy.typing as npt

    from evermat.engines.spark.blocks import Block, Cluster
    from evermat.engines.spark.dictionary import Ids

    Flags = npt.NDArray[np.uint8]
    Numbers = npt.NDArray[np.uint32]

NO_IDS: Ids = np.empty(0, np.int64)
_RANKS: Flags = np.array([0, 1], np.uint8)
_NOBODY: Numbers = np.empty(0, np.uint32)


class Cliques:
    """See `evermat.algebra.equality.Representatives`."""

    def __init__(
        self, cluster: Cluster, moved: Ids = NO_IDS, ones: Ids = NO_IDS
    ) -> None:
        self._cluster = cluster
        self._dictionary = cluster.dictionary
        self._ids = RememberedIds(self._looked_up)
        self._set(moved, ones)

    def _set(self, moved: Ids, ones: Ids) -> None:
        """Set which constants have other representatives, and these."""
        self._moved, self._ones = moved, ones
        self._inverse: tuple[Ids, Ids] | None = None
        self._block: Block | None = None

    # ------------------------------------------------------------------- questions

    def copy(self) -> Cliques:
        """Return an independent copy."""
        twin = Cliques(self._cluster, self._moved, self._ones)
        twin._inverse, twin._block = self._inverse, self._block
        twin._ids = self._ids
        return twin

    def is_identity(self) -> bool:
        """Return whether no two constants are equal."""
        return not self._moved.size

    @property
    def moved(self) -> Ids:
        """The constants that are not their own representative."""
        return self._moved

    @property
    def block(self) -> Block:
        """The map as a block: constants are `c0`, their representatives `c1`."""
        if self._block is None:
            tags = np.zeros(self._moved.size, np.int64)
            table = pa.table({"tag": tags, "c0": self._moved, "c1": self._ones})
            self._block = local_block(self._cluster, table)
        return self._block

    @property
    def heads(self) -> Ids:
        """The representatives of two or more constants."""
        return np.unique(self._ones)

    @property
    def shared(self) -> Block:
        """The representatives of several constants, as `c0`, and counts as `n`."""
        ones, counts = np.unique(self._ones, return_counts=True)
        tags = np.zeros(ones.size, np.int64)
        table = pa.table({"tag": tags, "c0": ones, "n": counts + 1})
        return local_block(self._cluster, table)

    def map(self, ids: Ids) -> Ids:
        """Return the representatives of ids, in any shape."""
        if not self._moved.size:
            return ids
        places = np.searchsorted(self._moved, ids)
        places[places == self._moved.size] = 0
        return np.where(self._moved[places] == ids, self._ones[places], ids)

    def _looked_up(self, constants: Sequence[Constant]) -> Ids:
        return np.array(self._dictionary.encode_constants(constants), np.int64)

    def replaced(self, constants: Sequence[Constant]) -> dict[Constant, Constant]:
        """Return the representatives of those constants that have another one."""
        if self.is_identity():
            return {}
        before = self._ids.of(constants)
        after = self.map(before)
        return {
            constants[at]: self._constant(int(after[at]))
            for at in np.flatnonzero(before != after).tolist()
        }

    def _constant(self, id_: int) -> Constant:
        term = self._dictionary.decode(pa.array([id_], pa.int64()))[0].as_py()
        return Constant(Kind(term["kind"]), term["text"])

    def _members(self) -> tuple[Ids, Ids]:
        """Return members except representatives, in the representatives' order."""
        if self._inverse is None:
            order = np.argsort(self._ones, kind="stable")
            self._inverse = self._moved[order], self._ones[order]
        return self._inverse

    def sizes(self, ids: Ids) -> Ids:
        """Return the size of the clique of each representative."""
        _, ones = self._members()
        first = np.searchsorted(ones, ids, "left")
        sizes: Ids = np.searchsorted(ones, ids, "right") - first + 1
        return sizes

    def weight(self, table: Ids) -> int:
        """Return how many rows some rows of representatives represent."""
        return sum_of_products(self.sizes(table))

    def multiply(self, table: Ids, names: Collection[int] = ()) -> tuple[Ids, Ids]:
        """Expand rows of representatives; return the origin of each row, and all rows.

        The columns in `names` are not expanded.
        """
        members, ones = self._members()
        origin = np.arange(table.shape[1], dtype=np.int64)
        columns: list[Ids] = []
        for at in range(table.shape[0]):
            column = table[at, origin]
            if at in names:
                columns.append(column)
                continue
            sizes = self.sizes(column)
            repeated = np.repeat(np.arange(column.size), sizes)
            # The representative comes first, followed by the other members.
            offset = np.arange(repeated.size) - (np.cumsum(sizes) - sizes)[repeated]
            place = np.searchsorted(ones, column)[repeated] + offset - 1
            chosen = column[repeated].copy()
            others = offset > 0
            chosen[others] = members[place[others]]
            columns = [done[repeated] for done in columns]
            columns.append(chosen)
            origin = origin[repeated]
        if not columns:
            return origin, table
        return origin, np.stack(columns)

    # ---------------------------------------------------------------------- tables

    def cliques(self) -> pa.Table:
        """Return the members of cliques of two or more, with their representatives."""
        heads = self.heads
        return self._decoded(
            np.concatenate([heads, self._moved]), np.concatenate([heads, self._ones])
        )

    def take_up(self, table: pa.Table) -> None:
        """Make the constants of the second column the representatives of the first."""
        if table.num_rows:
            self._sort(*self._encoded(table))

    def normalised(self, table: pa.Table) -> pa.Table:
        """Return a table with every constant replaced by its representative."""
        if self.is_identity() or not table.num_columns:
            return table
        return self._decoded(*self.map(self._encoded(table)))

    def expanded(self, table: pa.Table, names: Collection[int] = ()) -> pa.Table:
        """Return all rows that the rows of a table of term columns represent."""
        if not table.num_columns:
            return rows_without_columns(table.num_rows)
        if self.is_identity() or not table.num_rows:
            return table
        return self._decoded(*self.multiply(self._encoded(table), names)[1])

    def expanded_size(self, table: pa.Table) -> int:
        """Return the number of rows of `expanded`."""
        if self.is_identity() or not table.num_columns:
            return int(table.num_rows)
        return self.weight(self._encoded(table))

    def _encoded(self, table: pa.Table) -> Ids:
        return np.stack([self._dictionary.encode(column) for column in table.columns])

    def _decoded(self, *columns: Ids) -> pa.Table:
        return pa.table(
            [self._dictionary.decode(pa.array(column)) for column in columns],
            names=[str(at) for at in range(len(columns))],
        )

    # --------------------------------------------------------------------- changes

    def unite(self, left: Ids, right: Ids, values: frozenset[Kind]) -> Ids:
        """Make pairs of constants equal; return replaced representatives."""
        left, right = self.map(left), self.map(right)
        every = np.unique(np.concatenate([left, right]))
        ids, ranks = self._in_order(every, values)
        by_id = np.argsort(ids)
        first, second = (
            by_id[np.searchsorted(ids, side, sorter=by_id)].astype(np.uint32)
            for side in (left, right)
        )
        links, ring = np.zeros((2, ids.size), np.uint32)
        # The kernel compares strings. Here they are positions in the order, as bytes.
        texts = np.arange(ids.size, dtype=">i8")
        ends = np.arange(ids.size + 1, dtype=np.int64) * texts.itemsize
        conflict = kernels_cliques.unite(
            *(links, ring, ranks, _RANKS, address(texts), address(ends), _NOBODY),
            *(first, second),
        )
        roots = np.arange(ids.size, dtype=np.uint32)
        kernels_cliques.find_roots(links, roots)
        if conflict >= 0:
            one, other = (int(roots[side[conflict]]) for side in (first, second))
            raise UnequalValuesError(
                self._constant(int(ids[one])), self._constant(int(ids[other]))
            )
        lost = np.flatnonzero(roots != np.arange(ids.size))
        self._move(ids[lost], ids[roots[lost]])
        return np.sort(ids[lost])

    def _in_order(self, ids: Ids, values: frozenset[Kind]) -> tuple[Ids, Flags]:
        """Return ids in the order of preference as representatives, and their ranks.

        The order is that of kinds and texts, so it does not depend on digests.
        """
        terms = self._dictionary.decode(pa.array(ids))
        kinds = terms.field("kind").to_numpy(zero_copy_only=False)
        ranks = 1 - np.isin(kinds, [int(kind) for kind in values]).astype(np.uint8)
        table = pa.table({"rank": ranks, "kind": kinds, "text": terms.field("text")})
        keys = [(name, "ascending") for name in table.column_names]
        order = pc.sort_indices(table, sort_keys=keys).to_numpy()
        return ids[order], ranks[order]

    def _move(self, members: Ids, ones: Ids) -> None:
        """Give representatives to some constants that had been their own."""
        if not members.size:
            return
        order = np.argsort(members)
        step = Cliques(self._cluster, members[order], ones[order])
        self._sort(
            np.concatenate([self._moved, members]),
            np.concatenate([step.map(self._ones), ones]),
        )

    def assign(self, members: Ids, ones: Ids) -> None:
        """Set the representatives of some members, which are whole cliques."""
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
        """Return the constants whose representatives differ."""
        moved = np.union1d(self._moved, other._moved)
        found: Ids = moved[self.map(moved) != other.map(moved)]
        return found
