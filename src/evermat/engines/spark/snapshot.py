"""Copies of facts that outlive later changes of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from evermat.engines.spark.row_tables import chosen
from evermat.engines.spark.rows import block_rows, settled_block

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.engines.spark.blocks import Cluster
    from evermat.engines.spark.decoding import ClusterRows
    from evermat.engines.spark.rows import Rows


class Copy:
    """Rows at one moment. Blocks never change, so nothing is copied."""

    def __init__(
        self, cluster: Cluster, rows: Rows, arities: Mapping[str, int]
    ) -> None:
        self._cluster = cluster
        self._rows = rows
        self._arities = dict(arities)
        self._sizes: Mapping[str, int] | None = None

    def relations(self) -> Mapping[str, int]:
        """Return the number of facts of each relation that has any."""
        if self._sizes is None:
            sizes = self._counted()
            names = self._cluster.names
            self._sizes = {names[tag]: size for tag, size in sizes.items() if size}
        return self._sizes

    def _counted(self) -> Mapping[int, int]:
        if self._rows.sizes is not None:
            return self._rows.sizes
        if self._rows.bound <= self._cluster.small:
            self._rows = block_rows(settled_block(self._rows))
        if self._rows.block is not None:
            return self._rows.block.sizes
        table = self._cluster.collect(
            f"SELECT tag, count(1) AS n FROM ({self._rows.sql}) GROUP BY tag"  # noqa: S608
        )
        return dict(zip(table["tag"].to_pylist(), table["n"].to_pylist(), strict=True))

    def read(self, relation: str) -> pa.Table:
        """Return the rows of a relation, as columns of terms."""
        tag, arity = self._cluster.tags.get(relation), self._arities.get(relation, 0)
        if tag is None:
            return decoded(self._cluster, _nothing(arity), arity)
        rows = self._rows
        if rows.table is not None:
            return decoded(self._cluster, chosen(rows.table, frozenset({tag})), arity)
        sql = f"SELECT * FROM ({rows.sql}) WHERE tag = {tag}L"  # noqa: S608
        ids = self._cluster.collect(sql, rows.bound)
        return decoded(self._cluster, ids, arity)

    def is_large(self, relation: str) -> bool:
        """Return whether a relation has too many rows for the driver."""
        size = self.relations().get(relation, 0)
        return size > self._cluster.small and bool(self._arities[relation])

    def distant(self, relation: str) -> ClusterRows:
        """Return the distributed rows of a relation."""
        from evermat.engines.spark.decoding import ClusterRows  # noqa: PLC0415  it needs us

        tag, arity = self._cluster.tags[relation], self._arities[relation]
        return ClusterRows(self._cluster, self._rows, tag, arity)


def decoded(cluster: Cluster, table: pa.Table, arity: int) -> pa.Table:
    """Return rows of one relation as columns of terms."""
    if arity == 0:
        # A table without columns still has a number of rows.
        return pa.table({"": pa.nulls(table.num_rows)}).select([])
    if table.num_rows == 0:
        table = _nothing(arity)
    columns = [cluster.dictionary.decode(table[f"c{at}"]) for at in range(arity)]
    return pa.table(columns, names=[str(at) for at in range(arity)])


def _nothing(arity: int) -> pa.Table:
    names = ["tag", *(f"c{at}" for at in range(max(arity, 1)))]
    return pa.table({name: pa.array([], pa.int64()) for name in names})
