"""Facts and their representatives: rows of a relation, mapped by cliques of constants.

A row whose constants all stand for themselves is its own image and is found without a
look-up, which is what most rows are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.heads import distinct, intern_rows
from evermat.engines.embedded.kernels import cliques as kernels_cliques
from evermat.engines.embedded.kernels.rewriting import MOST_COMBINATIONS
from evermat.engines.embedded.relation import EXPLICIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.engines.embedded.arrays import Ids, Rows
    from evermat.engines.embedded.relation import Relation
    from evermat.engines.embedded.representatives import Cliques


def rewritten(relation: Relation, rows: Rows, cliques: Cliques) -> Rows:
    """The rows of the images of some rows; images never seen before get new ones."""
    moved = cliques.differs(relation.table, rows)
    if not moved.any():
        return rows
    new = _image_rows(relation, rows[moved], cliques)
    return distinct(np.concatenate([rows[~moved], new]))


def _image_rows(relation: Relation, rows: Rows, cliques: Cliques) -> Rows:
    return intern_rows(relation, cliques.map(relation.table[:, rows]))


def normalise(relation: Relation, cliques: Cliques) -> Rows:
    """Let the images of explicit rows hold in their place, and be explicit, too.

    For relations in which nothing else holds. Returns the images that were not
    explicit before.
    """
    rows = np.arange(relation.count, dtype=np.int32)
    outdated = _explicit(relation, rows[cliques.differs(relation.table, rows)])
    if not outdated.size:
        return NO_ROWS
    images = _image_rows(relation, outdated, cliques)
    implied: Rows = images[(relation.status[images] & EXPLICIT) == 0]
    relation.hide(outdated)
    relation.show(images)
    relation.give(implied)
    return implied


def images_of(relation: Relation, rows: Rows, cliques: Cliques) -> Rows:
    """For each row the row of its image, or -1 if that was never seen."""
    if cliques.is_identity():
        return rows
    other = cliques.differs(relation.table, rows)
    found = rows.copy()
    if other.any():
        images = cliques.map(relation.table[:, rows[other]])
        found[other] = relation.find(images)
    return found


class Sought:
    """Ids that are looked for in any column of relations.

    Attributes:
        low, high: the range of index keys that begin with one of them.
    """

    __slots__ = ("high", "ids", "low")

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.low = int(ids.min()) << 32
        self.high = (int(ids.max()) + 1) << 32


def rows_mentioning(relation: Relation, sought: Sought) -> Rows:
    """All rows with one of some ids in any column."""
    parts = [
        part
        for column in range(relation.arity)
        for part in _parts_with(relation, column, sought)
    ]
    if not parts:
        return NO_ROWS
    return distinct(parts[0] if len(parts) == 1 else np.concatenate(parts))


def rows_among(relation: Relation, rows: Rows, ids: Ids) -> Rows:
    """Those of some rows that have one of some ids in any column."""
    found: Rows = rows[np.isin(relation.table[:, rows], ids).any(axis=0)]
    return found


def shared_ids(relation: Relation, rows: Rows, cliques: Cliques) -> Ids:
    """The ids in some rows that stand for cliques of two and more."""
    ids = relation.table[:, rows].ravel()
    return np.unique(ids[cliques.sizes(ids) > 1])


def explicit_behind(relation: Relation, rows: Rows, cliques: Cliques) -> Rows:
    """The explicit rows whose images are among some rows of representatives."""
    if cliques.is_identity() or not relation.arity:
        return _explicit(relation, rows)
    shared = cliques.shared(relation.table, rows)
    if not shared.size:
        return _explicit(relation, rows)
    parts = [_explicit(relation, rows)]
    members, many = cliques.combinations(relation.table, shared, MOST_COMBINATIONS)
    found = relation.find(members)
    parts.append(_explicit(relation, found[found >= 0]))
    if many.size:
        parts.append(_explicit(relation, _through_index(relation, many, cliques)))
    return distinct(np.concatenate(parts))


def _explicit(relation: Relation, rows: Rows) -> Rows:
    explicit: Rows = rows[(relation.status[rows] & EXPLICIT) != 0]
    return explicit


def _through_index(relation: Relation, rows: Rows, cliques: Cliques) -> Rows:
    """Explicit rows with these images, found by the column that narrows most."""
    best: tuple[int, int, Ids] | None = None
    for column in range(relation.arity):
        ids = distinct(relation.table[column, rows].astype(np.int64)).astype(np.uint32)
        members = cliques.members(ids)[1]
        index = relation.index((column,))
        hits = sum(run.find_halves(members)[2] for run in index.runs)
        if best is None or hits < best[0]:
            best = (hits, column, members)
    if best is None or not best[0]:
        return NO_ROWS
    _, column, members = best
    parts = list(_parts_with(relation, column, Sought(members)))
    found = _explicit(relation, np.concatenate(parts))
    images = images_of(relation, found, cliques)
    return found[np.isin(images, rows)]


def _parts_with(relation: Relation, column: int, sought: Sought) -> Iterator[Rows]:
    """All rows that have one of some ids in a column."""
    for run in relation.index((column,)).runs:
        if int(run.keys[-1]) < sought.low or int(run.keys[0]) >= sought.high:
            continue  # as with most columns: constants of a sort are neighbours
        first, last, total = run.find_halves(sought.ids)
        if total:
            found = np.empty(total, np.int32)
            kernels_cliques.list_ranges(first, last, run.rows, found)
            yield found
