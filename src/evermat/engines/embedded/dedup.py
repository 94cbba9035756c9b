"""Deduplication: derived heads are sorted, counted, and given rows.

`Heads` gathers the heads that rules derive. Rules that scan facts in order derive heads
in the order of their first ids. Such heads (`HeadsInOrder`) are written to a reused
buffer and counted while they are still in the cache; heads counted early precede those
counted late, so they need no merging. Where cores share a scan, parts overlap only at
their ends and are merged only there. The result is a list of sorted pieces that are
left where they are: one array would need as much memory again.

Facts of more than two columns have hashes as keys. They are partitioned by the upper
bits of their hashes into pieces that fit into the cache, and each piece is sorted and
counted there. Cores share the facts when they are partitioned, and the pieces when they
are counted.

Compiled code writes facts that have no row yet as records: the number of a relation,
and as many ids as the relation has columns. They are few, but most updates have some,
so a few calls sort and count them for all relations (`give_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from evermat.engines.embedded.arrays import NO_FACTS, NO_KEYS, NO_ROWS, empty, fitted
from evermat.engines.embedded.cores import (
    core_count,
    equal_shares,
    for_each,
    in_slices,
    within,
)
from evermat.engines.embedded.index import HALF, WIDEST_EXACT_KEY, make_keys
from evermat.engines.embedded.kernels import keys as kernels
from evermat.engines.embedded.kernels import rows as kernels_rows
from evermat.engines.embedded.kernels import wide as kernels_wide
from evermat.engines.embedded.memory import make_room

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from evermat.engines.embedded.arrays import Ids, Keys, Places, Rows
    from evermat.engines.embedded.kernels.layout import Numbers
    from evermat.engines.embedded.relation import Relation


_T = TypeVar("_T", bound=np.generic)

EARLY = 1 << 17
"""Derivations gathered before they are counted."""

CHUNK = 1 << 22
"""Capacity, in counted heads, of each allocation; unused pages cost nothing."""

MOST_TALLIED = 1 << 20
"""The widest range of ids in which heads are tallied: it should stay in the cache."""

_HALF = np.uint64(32)


class HeadsInOrder:
    """Heads of two columns, gathered while they are in the order of their first ids.

    Attributes:
        counted: the heads counted so far, in a part for one or more blocks.
    """

    def __init__(self) -> None:
        self._chunks = _Chunks()
        self.counted = self._chunks.parts
        self._room = NO_KEYS
        self._pending = 0
        self._early = EARLY
        self._tally = NO_ROWS

    def room(self, most: int) -> Keys:
        """Return a buffer for the next heads, at most `most`."""
        end = self._pending + most
        if end > self._room.size:
            longer = np.empty(max(end, 2 * self._room.size), np.uint64)
            longer[: self._pending] = self._room[: self._pending]
            self._room = longer
        return self._room[self._pending : end]

    def take(self, size: int) -> bool:
        """Accept `size` heads from the buffer; return whether they are in order."""
        self._pending += size
        return self._pending <= self._early or self._count()

    def end_block(self) -> bool:
        """Count all heads, as those of other threads may come next; see `take`."""
        is_in_order = not self._pending or self._count(is_end=True)
        self._chunks.end_part()
        return is_in_order

    def pending(self) -> Keys:
        """Return the heads that are not counted yet."""
        return self._room[: self._pending].copy()

    def _count(self, *, is_end: bool = False) -> bool:
        """Count the heads whose groups are complete."""
        keys = self._room[: self._pending]
        least = self.counted[-1].keys[-1] >> _HALF if self.counted else np.uint64(0)
        complete = kernels_rows.complete_groups(keys, least)
        if complete < 0:
            return False
        if is_end:
            complete = keys.size
        self._early = EARLY if complete else 2 * keys.size
        if complete:
            spare = np.empty(complete, np.uint64)
            if not self._tally.size:
                self._tally = np.zeros(MOST_TALLIED, np.int32)
            free = self._chunks.room(complete)
            size = kernels.count_groups(
                keys[:complete], spare, self._tally, free.counts
            )
            free.keys[:size] = keys[:size]
            self._chunks.add(size)
            self._pending -= complete
            keys[: self._pending] = keys[complete:]
        return True


class _Chunks:
    """Memory in which counted heads are written contiguously.

    Attributes:
        parts: the counted heads. A part ends where a block or a chunk ends.
    """

    def __init__(self) -> None:
        self.parts: list[Counted] = []
        self._chunk = _counted(NO_KEYS, NO_ROWS)
        self._start = self._end = 0

    def room(self, size: int) -> Counted:
        """Return a buffer for at most `size` heads."""
        if self._end + size > self._chunk.keys.size:
            self._chunk = _empty(max(size, CHUNK))
            self._start = self._end = 0
        return _slice(self._chunk, self._end, self._end + size)

    def add(self, size: int) -> None:
        """Accept `size` heads from the buffer, at least one."""
        if self._end > self._start:
            self.parts.pop()
        self._end += size
        self.parts.append(_slice(self._chunk, self._start, self._end))

    def end_part(self) -> None:
        """Start another part."""
        self._start = self._end


@dataclass(slots=True)
class CountedPieces:
    """Facts with exact keys and their counts, in sorted pieces.

    Attributes:
        keys: the keys of each piece.
        counts: the counts of all facts.
    """

    keys: list[Keys]
    counts: Rows


def joined(parts: list[Counted]) -> list[Counted]:
    """Return the same facts in sorted pieces that do not overlap.

    Args:
        parts: nonempty, with exact keys. Few of them should overlap anywhere.
    """
    pieces: list[Counted] = []
    for part in sorted(parts, key=_first):
        _add(pieces, part)
    return pieces


def in_pieces(pieces: list[Counted]) -> CountedPieces:
    """Return the pieces with all counts in one array, which is kept for longer."""
    parts = [piece.counts for piece in pieces]
    counts = empty(sum(part.size for part in parts), np.int32)

    def copy(share: slice) -> int:
        for part, places in within(parts, share):
            counts[places] = part
        return 0

    in_slices(counts.size, copy)
    return CountedPieces([piece.keys for piece in pieces], counts)


def as_one(pieces: list[Counted]) -> Counted:
    """Return all pieces as one."""
    return _counted(
        _concatenated([piece.keys for piece in pieces], np.uint64),
        _concatenated([piece.counts for piece in pieces], np.int32),
    )


def merged_pair(left: Counted, right: Counted) -> Counted:
    """Merge two parts, which may overlap anywhere."""
    both = _empty(left.keys.size + right.keys.size)
    keys, counts = both.keys, both.counts
    size = kernels.merge_counts(
        left.keys, left.counts, right.keys, right.counts, keys, counts
    )
    if size < keys.size // 2:
        # A copy, because most of the memory would otherwise be kept unused.
        keys, counts = keys[:size].copy(), counts[:size].copy()
    return _counted(keys[:size], counts[:size])


def _add(pieces: list[Counted], part: Counted) -> None:
    """Add a part that starts after the starts of all others, without overlaps."""
    behind: list[Counted] = []
    while pieces and pieces[-1].keys[-1] >= part.keys[0]:
        last = pieces.pop()
        place = int(np.searchsorted(last.keys, part.keys[0]))
        if place:
            pieces.append(_slice(last, 0, place))
        behind.append(_slice(last, place, last.keys.size))
    if not behind:
        pieces.append(part)
        return
    end = int(np.searchsorted(part.keys, behind[0].keys[-1], side="right"))
    tail = as_one(behind[::-1])
    pieces.append(merged_pair(tail, _slice(part, 0, end)))
    if end < part.keys.size:
        pieces.append(_slice(part, end, part.keys.size))


def _concatenated(arrays: list[npt.NDArray[_T]], kind: type[_T]) -> npt.NDArray[_T]:
    if len(arrays) == 1:
        return arrays[0]
    whole = empty(sum(array.size for array in arrays), kind)
    return np.concatenate(arrays, out=whole)


def _empty(size: int) -> Counted:
    """Allocate `size` heads in one array, so that it is kept or freed as a whole."""
    halves = empty(3 * size, np.uint32)
    keys, counts = halves[: 2 * size], halves[2 * size :]
    return _counted(keys.view(np.uint64), counts.view(np.int32))


def _first(part: Counted) -> int:
    return int(part.keys[0])


def _slice(part: Counted, low: int, high: int) -> Counted:
    return _counted(part.keys[low:high], part.counts[low:high])


def _counted(keys: Keys, counts: Rows) -> Counted:
    return Counted(keys, counts, NO_FACTS)


MOST_IN_CACHE = 1 << 15
"""Up to this many facts are sorted in place."""

PIECE_BITS = 8
"""Facts are partitioned by this many bits: a core can write to 2**8 pieces at once."""


@dataclass(slots=True)
class Counted:
    """Facts and how often each was derived.

    Attributes:
        keys: exact keys, which are sorted and distinct, or hashes, which are neither
            before they are counted.
        counts: for each fact; empty for hashes that count once each.
        facts: the facts of hashes, one after the other, in either memory order; without
            columns if the keys are exact.
    """

    keys: Keys
    counts: Rows
    facts: Ids

    @property
    def is_wide(self) -> bool:
        """Whether the keys are hashes."""
        return bool(self.facts.shape[1])


def count_wide(parts: list[Counted], cores: int) -> Counted:
    """Return the distinct facts of all parts, in the order of their hashes."""
    sizes = np.array([part.keys.size for part in parts])
    size = int(sizes.sum())
    bits = PIECE_BITS if size > MOST_IN_CACHE else 0
    # NumPy allocates the arrays, not compiled code: it requests huge pages, and
    # scattering facts over small pages takes twice as long.
    keys = np.empty(size, np.uint64)
    facts = np.empty((size, parts[0].facts.shape[1]), np.uint32)
    counted = any(part.counts.size for part in parts)
    times = np.empty(size, np.int32) if counted else NO_ROWS
    moved = Counted(keys, times, facts)
    if not bits:
        starts = np.zeros(1, np.int64)
        _move(parts, bits, starts, moved)
        counts = np.empty(size, np.int32)
        bounds = np.array((0, size))
        found = kernels_wide.count_pieces(bounds, bits, keys, facts, times, counts)
        return Counted(keys[:found], counts[:found], facts[:found])
    bounds = _divide(parts, sizes.cumsum(), bits, cores, moved)
    return _count(bounds, bits, cores, moved)


def _divide(
    parts: list[Counted], ends: Places, bits: int, cores: int, moved: Counted
) -> Places:
    """Move facts into pieces; return the bounds of the pieces."""
    shares = equal_shares(ends, cores)
    tallies = np.zeros((len(shares), 1 << bits), np.int64)

    def tally(share: int) -> None:
        for part in parts[shares[share]]:
            kernels_wide.tally_pieces(part.keys, bits, tallies[share])

    for_each(range(len(shares)), tally)
    # Within each piece, the facts of one share follow those of the previous one.
    ends_of_shares = tallies.T.cumsum().reshape(tallies.T.shape)
    starts = np.ascontiguousarray((ends_of_shares - tallies.T).T)
    bounds = np.append(starts[0], moved.keys.size)

    def move(share: int) -> None:
        _move(parts[shares[share]], bits, starts[share], moved)

    for_each(range(len(shares)), move)
    return bounds


def _move(parts: list[Counted], bits: int, starts: Places, moved: Counted) -> None:
    for part in parts:
        kernels_wide.move_facts(
            *(part.keys, part.facts, part.counts, bits, starts),
            *(moved.keys, moved.facts, moved.counts),
        )


def _count(bounds: Places, bits: int, cores: int, moved: Counted) -> Counted:
    """Count equal facts of all pieces."""
    shares = equal_shares(bounds[1:], cores)
    counts = np.empty(moved.keys.size, np.int32)
    found = [0] * len(shares)

    def count(share: int) -> None:
        pieces = shares[share]
        found[share] = kernels_wide.count_pieces(
            bounds[pieces.start : pieces.stop + 1],
            bits,
            *(moved.keys, moved.facts, moved.counts, counts),
        )

    for_each(range(len(shares)), count)
    end = found[0]
    for pieces, size in zip(shares[1:], found[1:], strict=True):
        low = int(bounds[pieces.start])
        kernels_wide.close_gap(low, size, end, moved.keys, moved.facts, counts)
        end += size
    whole = Counted(moved.keys[:end], counts[:end], moved.facts[:end])
    if end < counts.size // 2:
        # A copy, because most of the memory would otherwise be kept unused.
        whole = Counted(whole.keys.copy(), whole.counts.copy(), whole.facts.copy())
    return whole


COMPACT_AT = 1 << 23
"""Derivations gathered before equal ones are counted, which bounds memory."""

FEW = 32
"""Rows are sorted by marking them if at least one in this many is present."""


class Heads:
    """The heads of one relation, gathered from rule evaluations.

    Args:
        arity: the number of columns.
        in_order: whether heads are expected in the order of their first ids.
    """

    def __init__(self, arity: int, *, in_order: bool = False) -> None:
        self.arity = arity
        self._exact = arity <= WIDEST_EXACT_KEY
        self._keys: list[Keys] = []
        self._pending = 0
        self._counted: list[Counted] = []
        self._pieces: list[list[Counted]] = []
        """Heads counted by other threads, each list in sorted pieces."""
        self._in_order: HeadsInOrder | None = None
        if in_order and arity == WIDEST_EXACT_KEY:
            self._in_order = HeadsInOrder()

    def room(self, most: int) -> Keys:
        """Return a buffer for exact keys of at most `most` heads."""
        if self._in_order is not None:
            return self._in_order.room(most)
        return np.empty(most, np.uint64)

    def take(self, keys: Keys) -> None:
        """Accept keys that were written to the beginning of the buffer."""
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
        """Add heads that were gathered and counted by other threads."""
        in_order: list[Counted] = []
        for other in others:
            counted, ordered = other.parts()
            self._counted += counted
            in_order += ordered
        if in_order:
            self._pieces.append(joined(in_order))

    def parts(self) -> tuple[list[Counted], list[Counted]]:
        """Return counted heads: those in any order, and those in order."""
        ordered = [] if self._in_order is None else self._in_order.counted
        return self._counted, ordered

    def end_block(self) -> None:
        """End a block: other threads may have heads between these and the next ones."""
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
                # On one core, because this may run on one of the cores that share the
                # work.
                self._counted = [merged(self._counted, cores=1)]

    def count_pending(self) -> None:
        """Count heads with exact keys; hashes are counted at the end."""
        if self._pending and self._exact:
            keys = self._keys[0] if len(self._keys) == 1 else np.concatenate(self._keys)
            self._keys = []
            count = _count_ids if self.arity == 1 else count_keys
            self._counted.append(count(keys))
        self._pending = 0

    def counted(self) -> Counted | CountedPieces | None:
        """Return all heads, sorted and distinct; None if there are none."""
        self.count_pending()
        if len(self._pieces) == 1 and not self._counted:
            return in_pieces(self._pieces.pop())
        while self._pieces:
            self._counted.append(as_one(self._pieces.pop()))
        return merged(self._counted) if self._counted else None

    def table(self) -> Ids:
        """Return all distinct heads, by column."""
        counted = self.counted()
        if counted is None:
            return np.empty((self.arity, 0), np.uint32)
        if isinstance(counted, CountedPieces):
            return _columns(np.concatenate(counted.keys), self.arity)
        return (
            counted.facts.T if counted.is_wide else _columns(counted.keys, self.arity)
        )


def merged(parts: list[Counted], cores: int | None = None) -> Counted:
    """Merge all parts, sorted and distinct; the list is consumed."""
    if parts[0].is_wide:
        return count_wide(parts, core_count() if cores is None else cores)
    while len(parts) > 1:
        # Removed from the list first, so that they are freed as soon as they are
        # merged.
        parts.append(_merge(parts.pop(0), parts.pop(0)))
    return parts[0]


def _count_ids(keys: Keys) -> Counted:
    """Count heads of one column, which are few compared with their derivations."""
    half = np.uint64(32)
    least = int(keys.min() >> half)
    span = int(keys.max() >> half) - least + 1
    if span > min(MOST_TALLIED, 8 * keys.size):
        return count_keys(keys)
    tally = np.zeros(span, np.int32)
    kernels_rows.tally_ids(keys, least, tally)
    offsets = np.flatnonzero(tally)
    found = (offsets + least).astype(np.uint64) << half
    return Counted(found, tally[offsets], NO_FACTS)


def count_keys(keys: Keys) -> Counted:
    """Return the sorted distinct keys and their counts; the array is overwritten."""
    if kernels_rows.is_ascending(keys):
        # For example, after a rule that copies a relation.
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
    """Return the rows of distinct heads, appending those that have no row.

    The keys of the heads are released.
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
    """Return the sorted distinct rows of those facts that have one."""
    rows = relation.find(table)
    return distinct(rows[rows >= 0])


def intern_rows(relation: Relation, table: Ids) -> Rows:
    """Return the sorted distinct rows of facts, appending those that have none."""
    rows, _ = new_rows(relation, table)
    return distinct(rows)


def distinct(rows: Rows) -> Rows:
    """Return the sorted distinct rows."""
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
    """Return rows for facts by column, appending new ones, and their counts."""
    heads = Heads(relation.arity)
    heads.add_columns(list(table), table.shape[1])
    counted = heads.counted()
    if counted is None:
        return NO_ROWS, NO_ROWS
    return find_or_append(relation, counted), counted.counts


class Numbered(NamedTuple):
    """Relations by number, and their arities."""

    relations: Sequence[Relation]
    arities: Numbers

    @classmethod
    def of(cls, relations: Sequence[Relation]) -> Numbered:
        """Number relations."""
        return cls(relations, np.array([each.arity for each in relations], np.int64))


def give_rows(
    records: Ids, numbered: Numbered, *, may_be_known: bool = False
) -> list[tuple[int, Rows, Rows]]:
    """Append rows for facts that have none.

    Args:
        records: the facts.
        numbered: the relations by number.
        may_be_known: whether some may have rows by now.

    Returns:
        The number of each relation, the rows of its facts, and how often each occurs.
    """
    if not records.size:
        return []
    relations, arities = numbered
    ends: Numbers = np.zeros(len(relations) + 1, np.int64)
    keys: Keys = np.empty(records.size, np.uint64)
    kernels_rows.group_records(records, arities, ends, keys)
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
    """Do the same for facts with exact keys."""
    few = None if may_be_known else relation.append_few(keys)
    if few is not None:
        return few
    counted = count_keys(keys)
    keys = counted.keys
    if may_be_known:
        rows = relation.find_sorted(keys)
        relation.append_new([keys], rows)
        return rows, counted.counts
    return relation.append(keys, _columns(keys, relation.arity)), counted.counts


def _columns(keys: Keys, arity: int) -> Ids:
    """Return the facts of exact keys, by column."""
    table: Ids = np.empty((arity, keys.size), np.uint32)
    if arity > 1:
        kernels_rows.split_keys(keys, table[0], table[1])
    elif arity:
        table[0] = keys >> np.uint64(32)
    return table
