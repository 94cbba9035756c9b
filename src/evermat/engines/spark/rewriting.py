"""Facts and their representatives: joins of facts with the map of cliques.

Rows on the driver are mapped there. Rows on the cluster are joined with the map, once
for each column and in one plan, in which the map is broadcast unless it is large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.engines.spark.blocks import local_block
from evermat.engines.spark.joins import hint_for
from evermat.engines.spark.representatives import NO_IDS, Cliques
from evermat.engines.spark.row_tables import (
    appended,
    chosen,
    common,
    distinct,
    key_columns,
    key_names,
)
from evermat.engines.spark.rows import (
    Rows,
    intersection,
    local_rows,
    no_rows,
    work_out,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.engines.spark.blocks import Block
    from evermat.engines.spark.dictionary import Ids

# Unused columns are 0, the id of an integer. It is always its own representative, so
# mapping does not change these columns.


def images(rows: Rows, cliques: Cliques) -> Rows:
    """Return the rows with every id replaced by its representative, each once."""
    if cliques.is_identity() or not rows.bound:
        return rows
    if rows.table is not None:
        return local_rows(rows.cluster, distinct(_mapped(rows.table, cliques)))
    keys = ", ".join(key_columns(rows.width))
    values = ", ".join(f"i{at} AS c{at}" for at in range(rows.width))
    mapped = f"SELECT tag, {values} FROM ({_mapping(rows, cliques)})"  # noqa: S608
    sql = f"SELECT {keys} FROM ({mapped}) GROUP BY {keys}"  # noqa: S608
    return Rows(
        rows.cluster, rows.width, rows.bound, None, sql, (*rows.blocks, cliques.block)
    )


def behind(rows: Rows, cliques: Cliques, target: Rows) -> Rows:
    """Return those of the rows whose images are in a target."""
    if not rows.bound or not target.bound:
        return no_rows(rows.cluster)
    if cliques.is_identity():
        return intersection(rows, target)
    if rows.table is not None:
        return _behind_on_driver(rows.table, cliques, target)
    width = max(rows.width, target.width)
    on = " AND ".join(
        ["l.tag = r.tag"]
        + [f"l.i{at} = r.c{at}" for at in range(rows.width)]
        + [f"r.c{at} = 0L" for at in range(rows.width, width)]
    )
    hint = hint_for(target.cluster, target.bound)
    names = ", ".join(f"l.{name}" for name in key_columns(rows.width))
    sql = (
        f"SELECT /*+ {hint}(r) */ {names} FROM ({_mapping(rows, cliques)}) l "  # noqa: S608
        f"LEFT SEMI JOIN ({target.query(width)}) r ON {on}"
    )
    keeps = (*rows.blocks, *target.blocks, cliques.block)
    return Rows(rows.cluster, rows.width, rows.bound, None, sql, keeps)


def _behind_on_driver(table: pa.Table, cliques: Cliques, target: Rows) -> Rows:
    mapped = _mapped(table, cliques)
    wanted = intersection(local_rows(target.cluster, distinct(mapped)), target)
    numbered = mapped.append_column("at", pa.array(np.arange(table.num_rows)))
    found = common(numbered, work_out(wanted))
    return local_rows(target.cluster, table.take(found["at"]))


def _mapped(table: pa.Table, cliques: Cliques) -> pa.Table:
    """Return the image of each row, in the same order."""
    names = key_names(table)
    columns = [table["tag"]]
    columns += [pa.array(cliques.map(table[name].to_numpy())) for name in names[1:]]
    return pa.table(columns, names=names)


def _mapping(rows: Rows, cliques: Cliques) -> str:
    """Return a query for rows, with the ids of their images as `i0`, `i1`, …."""
    values = [f"coalesce(m{at}.c1, l.c{at}) AS i{at}" for at in range(rows.width)]
    return _beside(rows, cliques.block, values)


def _beside(rows: Rows, block: Block, values: list[str], where: str = "true") -> str:
    """Return rows joined by each column with a block's `c0`, named `m0`, `m1`, …."""
    joins = [f"LEFT JOIN {block.view} m{at} ON l.c{at} = m{at}.c0" for at in _at(rows)]
    hint = hint_for(block.cluster, block.size)
    hints = ", ".join(f"{hint}(m{at})" for at in _at(rows))
    return (
        f"SELECT /*+ {hints} */ {', '.join(['l.*', *values])} "  # noqa: S608
        f"FROM ({rows.query()}) l {' '.join(joins)} WHERE {where}"
    )


def _at(rows: Rows) -> range:
    return range(rows.width)


# ------------------------------------------------------------------------ by constant


def mentioning(rows: Rows, ids: Ids, arities: Mapping[int, int]) -> Rows:
    """Return the rows with one of some ids in any column.

    Args:
        rows: the rows.
        ids: the ids.
        arities: of the relations, by tag.
    """
    cluster = rows.cluster
    if not rows.bound or not ids.size:
        return no_rows(cluster)
    tags = _tags_by_column(rows, arities)
    if rows.table is not None:
        return local_rows(cluster, _mentioning(rows.table, ids, tags))
    marks = np.unique(ids)
    zeros = np.zeros(marks.size, np.int64)
    block = local_block(cluster, pa.table({"tag": zeros, "c0": marks}))
    conditions = [
        f"(m{at}.c0 IS NOT NULL AND l.tag IN ({_list(some)}))"
        for at, some in enumerate(tags)
        if some
    ]
    sql = _beside(rows, block, [], " OR ".join(conditions) or "false")
    return Rows(cluster, rows.width, rows.bound, None, sql, (*rows.blocks, block))


def _mentioning(table: pa.Table, ids: Ids, tags: list[frozenset[int]]) -> pa.Table:
    wanted = pa.array(np.unique(ids))
    parts = []
    for at, some in enumerate(tags):
        part = chosen(table, some).select(key_names(table))
        parts.append(part.filter(pc.is_in(part[f"c{at}"], value_set=wanted)))
    return distinct(appended(parts))


def _tags_by_column(rows: Rows, arities: Mapping[int, int]) -> list[frozenset[int]]:
    """Return for each column the relations that have it.

    In all others it is 0, which is a valid id.
    """
    return [
        frozenset(tag for tag, arity in arities.items() if arity > at)
        for at in _at(rows)
    ]


def _list(tags: frozenset[int]) -> str:
    return ", ".join(f"{tag}L" for tag in sorted(tags))


def shared_ids(rows: Rows, cliques: Cliques, arities: Mapping[int, int]) -> Ids:
    """Return the ids in rows of representatives that represent several."""
    if cliques.is_identity() or not rows.bound:
        return NO_IDS
    tags = _tags_by_column(rows, arities)
    if rows.table is not None:
        parts = [
            chosen(rows.table, some)[f"c{at}"].to_numpy()
            for at, some in enumerate(tags)
        ]
        return np.intersect1d(np.concatenate(parts), cliques.heads)
    columns = [
        f"CASE WHEN tag IN ({_list(some)}) THEN c{at} END"
        for at, some in enumerate(tags)
        if some
    ]
    ids = f"SELECT explode(array({', '.join(columns)})) AS c0 FROM ({rows.query()})"  # noqa: S608
    shared = cliques.shared
    hint = hint_for(shared.cluster, shared.size)
    sql = (
        f"SELECT /*+ {hint}(s) */ DISTINCT l.c0 FROM ({ids}) l "  # noqa: S608
        f"LEFT SEMI JOIN {shared.view} s ON l.c0 = s.c0"
    )
    found: Ids = rows.cluster.collect(sql)["c0"].to_numpy()
    return found


def weight(rows: Rows, cliques: Cliques, arity: int) -> int:
    """Return how many rows the rows of one relation represent."""
    if rows.table is not None:
        names = key_columns(arity)[1:]
        table = np.stack([rows.table[name].to_numpy() for name in names])
        return cliques.weight(table)
    block = cliques.shared
    # The sizes of cliques are multiplied: the product may exceed 64 bits.
    sizes = [f"CAST(coalesce(m{at}.n, 1L) AS DECIMAL(38))" for at in range(arity)]
    inner = _beside(rows, block, [f"{' * '.join(sizes)} AS weight"])
    total = rows.cluster.collect(f"SELECT sum(weight) AS n FROM ({inner})")  # noqa: S608
    return int(total["n"][0].as_py() or 0)
