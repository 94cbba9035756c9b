"""Facts and their representatives: rows of a relation, mapped by cliques of constants.

A row whose constants all stand for themselves is its own image and is found without a
look-up, which is what most rows are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.heads import intern_rows
from evermat.engines.embedded.relation import EXPLICIT

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids, Rows
    from evermat.engines.embedded.relation import Relation
    from evermat.engines.embedded.representatives import Cliques

MOST_COMBINATIONS = 64
"""Up to this many combinations of members are tried for one fact."""


def distinct(rows: Rows) -> Rows:
    """Rows in order, each once."""
    rows = np.sort(rows)
    if rows.size < 2:  # noqa: PLR2004  nothing to compare
        return rows
    keep = np.ones(rows.size, np.bool_)
    keep[1:] = rows[1:] != rows[:-1]
    return rows[keep]


def rewritten(relation: Relation, rows: Rows, cliques: Cliques) -> Rows:
    """The rows of the images of some rows; images never seen before get new ones."""
    table = relation.table[:, rows]
    images = cliques.map(table)
    same = (table == images).all(axis=0)
    if same.all():
        return rows
    new = intern_rows(relation, images[:, ~same])
    return distinct(np.concatenate([rows[same], new]))


def images_of(relation: Relation, rows: Rows, cliques: Cliques) -> Rows:
    """For each row the row of its image, or -1 if that was never seen."""
    if cliques.is_identity():
        return rows
    table = relation.table[:, rows]
    images = cliques.map(table)
    other = (table != images).any(axis=0)
    found = rows.copy()
    if other.any():
        found[other] = relation.find(np.ascontiguousarray(images[:, other]))
    return found


def rows_mentioning(relation: Relation, ids: Ids) -> Rows:
    """All rows with one of some ids in any column."""
    parts = [_rows_with(relation, column, ids) for column in range(relation.arity)]
    found = [part for part in parts if part.size]
    if not found:
        return NO_ROWS
    return distinct(found[0] if len(found) == 1 else np.concatenate(found))


def explicit_outdated(relation: Relation, cliques: Cliques) -> Rows:
    """The explicit rows that are not their own images."""
    outdated = np.zeros(relation.count, np.bool_)
    for column in relation.table[:, : relation.count]:
        outdated |= cliques.map(column) != column
    return _explicit(relation, np.flatnonzero(outdated).astype(np.int32))


def explicit_behind(relation: Relation, rows: Rows, cliques: Cliques) -> Rows:
    """The explicit rows whose images are among some rows of representatives."""
    if cliques.is_identity() or not relation.arity:
        return _explicit(relation, rows)
    table = relation.table[:, rows]
    sizes = cliques.sizes(table).astype(np.float64).prod(axis=0)
    alone = sizes == 1
    few = ~alone & (sizes <= MOST_COMBINATIONS)
    many = ~alone & ~few
    parts = [rows[alone]]
    if few.any():
        _, members = cliques.multiply(np.ascontiguousarray(table[:, few]))
        found = relation.find(members)
        parts.append(found[found >= 0])
    if many.any():
        parts.append(_through_index(relation, rows[many], cliques))
    return distinct(_explicit(relation, np.concatenate(parts)))


def _explicit(relation: Relation, rows: Rows) -> Rows:
    explicit: Rows = rows[(relation.status[rows] & EXPLICIT) != 0]
    return explicit


def _through_index(relation: Relation, rows: Rows, cliques: Cliques) -> Rows:
    """Explicit rows with these images, found by the column that narrows most."""
    best: tuple[int, int, Ids] | None = None
    for column in range(relation.arity):
        ids = distinct(relation.table[column, rows].astype(np.int64)).astype(np.uint32)
        members = cliques.multiply(ids.reshape(1, -1))[1][0]
        index = relation.index((column,))
        hits = sum(run.find_halves(members)[2] for run in index.runs)
        if best is None or hits < best[0]:
            best = (hits, column, members)
    if best is None or not best[0]:
        return NO_ROWS
    _, column, members = best
    found = _explicit(relation, _rows_with(relation, column, members))
    images = images_of(relation, found, cliques)
    return found[np.isin(images, rows)]


def _rows_with(relation: Relation, column: int, ids: Ids) -> Rows:
    """All rows that have one of some ids in a column."""
    parts = [NO_ROWS]
    for run in relation.index((column,)).runs:
        first, last, total = run.find_halves(ids)
        if not total:
            continue
        sizes = np.maximum(last - first, 0).astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        place = np.repeat(first.astype(np.int64) - starts, sizes) + np.arange(
            int(sizes.sum())
        )
        parts.append(run.rows[place])
    return np.concatenate(parts)
