"""What rules derive, gathered until it is sorted, counted and given rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.arrays import NO_FACTS, NO_KEYS, NO_ROWS
from evermat.engines.embedded.cores import core_count
from evermat.engines.embedded.in_order import (
    MOST_TALLIED,
    CountedPieces,
    HeadsInOrder,
    as_one,
    in_pieces,
    joined,
    merged_pair,
)
from evermat.engines.embedded.index import HALF, WIDEST_EXACT_KEY, make_keys
from evermat.engines.embedded.kernels import heads as kernels_heads
from evermat.engines.embedded.kernels import keys as kernels
from evermat.engines.embedded.large_arrays import fitted
from evermat.engines.embedded.memory import make_room
from evermat.engines.embedded.wide import Counted, count_wide

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids, Keys, Rows
    from evermat.engines.embedded.relation import Relation

COMPACT_AT = 1 << 23
"""Derivations gathered before equal ones are counted, which bounds memory."""

FEW = 32
"""Rows are put in order by marking them unless they are one in so many."""


class Heads:
    """Gathers the heads of one relation.

    Args:
        arity: how many columns it has.
        in_order: whether heads are expected in the order of their first ids.
    """

    def __init__(self, arity: int, *, in_order: bool = False) -> None:
        self.arity = arity
        self._exact = arity <= WIDEST_EXACT_KEY
        self._keys: list[Keys] = []
        self._pending = 0
        self._counted: list[Counted] = []
        self._pieces: list[list[Counted]] = []
        """Counted elsewhere, each in pieces that are in order."""
        self._in_order: HeadsInOrder | None = None
        if in_order and arity == WIDEST_EXACT_KEY:
            self._in_order = HeadsInOrder()

    def room(self, most: int) -> Keys:
        """Where to write exact keys of heads, of which there are at most so many."""
        if self._in_order is not None:
            return self._in_order.room(most)
        return np.empty(most, np.uint64)

    def take(self, keys: Keys) -> None:
        """Take keys that were written to the beginning of the room."""
        if self._in_order is None:
            self._keys.append(keys)
            self._grow(keys.size)
        elif not self._in_order.take(keys.size):
            self._give_up_order(self._in_order)

    def add_keys(self, keys: Keys) -> None:
        """Add heads as exact keys."""
        if self._in_order is not None:
            room = self.room(keys.size)
            room[:] = keys
            keys = room
        self.take(keys)

    def add_columns(self, columns: list[Ids], size: int) -> None:
        """Add heads by column."""
        table = np.empty((self.arity, size), np.uint32)
        for at, column in enumerate(columns):
            table[at] = column
        if self._exact:
            self.add_keys(make_keys(table))
        else:
            self._counted.append(Counted(make_keys(table), NO_ROWS, table.T))
            self._grow(size)

    def add_all(self, others: list[Heads]) -> None:
        """Add what was gathered elsewhere, and counted there."""
        in_order: list[Counted] = []
        for other in others:
            counted, ordered = other.parts()
            self._counted += counted
            in_order += ordered
        if in_order:
            self._pieces.append(joined(in_order))

    def parts(self) -> tuple[list[Counted], list[Counted]]:
        """What is counted so far: in any order, and in that of the first ids."""
        ordered = [] if self._in_order is None else self._in_order.counted
        return self._counted, ordered

    def end_block(self) -> None:
        """Others may have heads that come between those here and those to come."""
        if self._in_order is not None and not self._in_order.end_block():
            self._give_up_order(self._in_order)

    def _give_up_order(self, heads: HeadsInOrder) -> None:
        self._in_order = None
        if heads.counted:
            self._counted.append(as_one(joined(heads.counted)))
        self.take(heads.pending())

    def _grow(self, size: int) -> None:
        self._pending += size
        if self._pending > COMPACT_AT:
            self.count_pending()
            if len(self._counted) > 1:
                # Not shared: it may well be one of the cores that helps already.
                self._counted = [merged(self._counted, cores=1)]

    def count_pending(self) -> None:
        """Count heads with exact keys; hashes are counted when all are there."""
        if self._pending and self._exact:
            keys = self._keys[0] if len(self._keys) == 1 else np.concatenate(self._keys)
            self._keys = []
            count = _count_ids if self.arity == 1 else count_keys
            self._counted.append(count(keys))
        self._pending = 0

    def counted(self) -> Counted | CountedPieces | None:
        """All that was gathered, sorted and distinct, if there is anything."""
        self.count_pending()
        if len(self._pieces) == 1 and not self._counted:
            return in_pieces(self._pieces.pop())
        while self._pieces:
            self._counted.append(as_one(self._pieces.pop()))
        return merged(self._counted) if self._counted else None


def merged(parts: list[Counted], cores: int | None = None) -> Counted:
    """All pieces as one, sorted and distinct; the list is given away."""
    if parts[0].is_wide:
        return count_wide(parts, core_count() if cores is None else cores)
    while len(parts) > 1:
        # Out of the list first, so that they are gone as soon as they are merged.
        parts.append(_merge(parts.pop(0), parts.pop(0)))
    return parts[0]


def _count_ids(keys: Keys) -> Counted:
    """Count heads of one column, which are few beside what they are derived from."""
    half = np.uint64(32)
    least = int(keys.min() >> half)
    span = int(keys.max() >> half) - least + 1
    if span > min(MOST_TALLIED, 8 * keys.size):
        return count_keys(keys)
    tally = np.zeros(span, np.int32)
    kernels_heads.tally_ids(keys, least, tally)
    offsets = np.flatnonzero(tally)
    found = (offsets + least).astype(np.uint64) << half
    return Counted(found, tally[offsets], NO_FACTS)


def count_keys(keys: Keys) -> Counted:
    """Keys in order, each once, and how often each was there; they are given away."""
    if kernels_heads.is_ascending(keys):
        # As after a rule that copies a relation.
        return Counted(keys, np.ones(keys.size, np.int32), NO_FACTS)
    spare = np.empty_like(keys)
    ordered = kernels.sort_from_bit(keys, spare, HALF)
    spare = spare if ordered is keys else keys
    tally = np.zeros(min(MOST_TALLIED, 8 * keys.size), np.int32)
    counts = np.empty(keys.size, np.int32)
    size = kernels.count_groups(ordered, spare, tally, counts)
    return Counted(fitted(ordered, size), fitted(counts, size), NO_FACTS)


def _merge(left: Counted, right: Counted) -> Counted:
    make_room(left.keys.nbytes + right.keys.nbytes)
    return merged_pair(left, right)


def find_or_append(relation: Relation, heads: Counted | CountedPieces) -> Rows:
    """The rows of distinct heads; heads never seen before get new ones.

    The keys of the heads are given away.
    """
    if isinstance(heads, CountedPieces):
        pieces, heads.keys = heads.keys, []
    elif heads.is_wide:
        rows = relation.find_wide_sorted(heads.facts, heads.keys)
        relation.append_wide(heads.facts, heads.keys, rows)
        return rows
    else:
        pieces, heads.keys = [heads.keys], NO_KEYS
    rows = relation.find_sorted(*pieces)
    relation.append_new(pieces, rows)
    return rows


def find_known(relation: Relation, table: Ids) -> Rows:
    """The sorted distinct rows of those facts that have one."""
    rows = relation.find(table)
    return distinct(rows[rows >= 0])


def intern_rows(relation: Relation, table: Ids) -> Rows:
    """The sorted distinct rows of facts; facts never seen before get new ones."""
    rows, _ = new_rows(relation, table)
    return distinct(rows)


def distinct(rows: Rows) -> Rows:
    """Rows in order, each once."""
    if (rows[1:] > rows[:-1]).all():
        return rows
    most = int(rows.max()) + 1
    if most < rows.size * FEW:
        marks = np.zeros(most, np.bool_)
        marks[rows] = True
        return np.flatnonzero(marks).astype(np.int32)
    rows = np.sort(rows)
    keep = np.ones(rows.size, np.bool_)
    keep[1:] = rows[1:] != rows[:-1]
    return rows[keep]


def new_rows(relation: Relation, table: Ids) -> tuple[Rows, Rows]:
    """Rows for facts, given by column, that may be new; and how often each occurs."""
    heads = Heads(relation.arity)
    heads.add_columns(list(table), table.shape[1])
    counted = heads.counted()
    if counted is None:
        return NO_ROWS, NO_ROWS
    return find_or_append(relation, counted), counted.counts
