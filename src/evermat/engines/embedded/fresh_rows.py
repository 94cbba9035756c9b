"""Gives rows to facts that compiled code has found for the first time.

It writes them down as records: the number of a relation, and as many ids as the
relation has columns. There are few of them, but in most updates there are some, so they
are sorted and counted for all relations by few calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evermat.engines.embedded.heads import count_keys, new_rows
from evermat.engines.embedded.index import WIDEST_EXACT_KEY
from evermat.engines.embedded.kernels import heads as kernels_heads
from evermat.engines.embedded.kernels import rows as kernels_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evermat.engines.embedded.arrays import Ids, Keys, Rows
    from evermat.engines.embedded.kernels.layout import Numbers
    from evermat.engines.embedded.relation import Relation


class Numbered(NamedTuple):
    """Relations by number, and how many columns they have."""

    relations: Sequence[Relation]
    arities: Numbers

    @classmethod
    def of(cls, relations: Sequence[Relation]) -> Numbered:
        """Number relations."""
        return cls(relations, np.array([each.arity for each in relations], np.int64))


def give_rows(
    records: Ids, numbered: Numbered, *, may_be_known: bool = False
) -> list[tuple[int, Rows, Rows]]:
    """Give rows to facts that have none.

    Args:
        records: the facts.
        numbered: what their numbers mean.
        may_be_known: whether some may have rows by now.

    Returns:
        The number of each relation, the rows of its facts, and how often each is there.
    """
    if not records.size:
        return []
    relations, arities = numbered
    ends: Numbers = np.zeros(len(relations) + 1, np.int64)
    keys: Keys = np.empty(records.size, np.uint64)
    kernels_heads.group_records(records, arities, ends, keys)
    given = []
    start = 0
    for number, end in enumerate(ends[:-1].tolist()):
        if end > start:
            relation, mine = relations[number], keys[start:end]
            if not 0 < relation.arity <= WIDEST_EXACT_KEY:
                columns = np.arange(1, relation.arity + 1, dtype=np.uint64)
                table = records[mine + columns[:, np.newaxis]]
                given.append((number, *new_rows(relation, table)))
            else:
                rows = _exact_rows(relation, mine, may_be_known=may_be_known)
                given.append((number, *rows))
        start = end
    return given


def _exact_rows(
    relation: Relation, keys: Keys, *, may_be_known: bool
) -> tuple[Rows, Rows]:
    """The same for facts whose keys say all."""
    few = None if may_be_known else relation.append_few(keys)
    if few is not None:
        return few
    counted = count_keys(keys)
    keys = counted.keys
    if may_be_known:
        rows = relation.find_sorted(keys)
        relation.append_new([keys], rows)
        return rows, counted.counts
    table: Ids = np.empty((relation.arity, keys.size), np.uint32)
    if relation.arity > 1:
        kernels_rows.split_keys(keys, table[0], table[1])
    else:
        table[0] = keys >> np.uint64(32)
    return relation.append(keys, table), counted.counts
