"""A relation: a table of constant ids, with the status and counters of each row.

A row id is a fact's number within its relation. The *status* of a row is 16 bits, each
of which says whether the fact is in one set of facts.

The life of a fact:

1. It gets a row, with status 0, when it is first mentioned: inserted by a user, derived
   as a candidate, or looked up by `intern`. The row is never moved or changed until the
   relation is compacted, so row ids can be kept.
2. During a transaction, the two lowest bits do not change: `MATERIALISED` and
   `EXPLICIT` still describe the facts before the update. Each growing set (such as the
   deleted and the added facts) takes one of the other 14 bits and sets it in the rows
   of its members. The bit is cleared and freed when the set is released, at the end of
   the transaction at the latest. Settled sets and compiled rounds borrow bits for the
   time of one call.
3. The counters c_nr and c_r, in contrast, change during the transaction; the old values
   are logged (`store.CounterColumn`).
4. A commit clears `EXPLICIT` of facts that are no longer explicit and sets it for new
   ones, clears `MATERIALISED` and both counters of deleted facts, and sets
   `MATERIALISED` of added ones (`Store.remove_explicit`, `add_explicit`, `remove`,
   `add`). A rollback writes the logged counts back. Both release all growing sets, so
   that outside transactions only the two lowest bits are ever set.
5. A deleted fact keeps its row; if it is derived again, it gets the same one. When dead
   rows outnumber live ones, and are more than a few, `compact` removes all rows with
   neither bit and renumbers the rest.

Explicit facts are usually materialised. With equality they need not be: `normalise`
materialises the rewritten fact instead.

An engine that materialises from scratch has no update to undo, and sets the two lowest
bits directly. A view such as "materialised before, and not deleted" is a mask over
statuses (`views`), and deleting a fact changes no index.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from operator import is_
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from evermat.algebra import EngineUseError
from evermat.engines.embedded.arrays import empty
from evermat.engines.embedded.cores import in_slices, within
from evermat.engines.embedded.index import TAIL, WIDEST_EXACT_KEY, Index, make_keys
from evermat.engines.embedded.kernels import appends as kernels_appends
from evermat.engines.embedded.kernels import keys as kernels
from evermat.engines.embedded.kernels import rows as kernels_rows
from evermat.engines.embedded.kernels import wide as kernels_wide
from evermat.engines.embedded.kernels.layout import address, relation_layout
from evermat.engines.embedded.planner import Statistics
from evermat.engines.embedded.sorting import sort_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from evermat.engines.embedded.arrays import Ids, Keys, Rows, Status
    from evermat.engines.embedded.mapped_file import ArrayWriter, MappedArrays

_Listener = TypeVar("_Listener")

MATERIALISED = 1
"""The status bit of facts that hold."""
EXPLICIT = 2
"""The status bit of facts that are explicit."""

NONRECURSIVE, RECURSIVE = 0, 1
"""The two counters."""

MOST_ROWS = 2**31 - 1

MOST_UNREAD = 1 << 10
"""Raised rows are recorded in at most this many pieces for a listener that does not
read them. After that the listener is dropped, and starts from all counts next time.
"""

FRESH = 8
"""A sample is fresh until one row in this many has been added or removed."""

_SLACK = 8
"""Spare capacity: one row in this many."""

_LEFT_OVER = 1 / 16
"""A copy has all rows if this share of the copied ones, or less, is left out."""

_MANY, _LARGE = 1 << 22, 1 << 25
"""From this many rows on, relations reserve generously, because copying is the largest
cost; from this many on cautiously, because systems refuse to allocate more memory than
they can have.
"""


class Clock:
    """A logical clock that records when the rows of each relation last changed.

    Attributes:
        time: increases whenever rows are added, or are cleared out.
        changed: relations whose layout may be out of date.
    """

    __slots__ = ("_in_order", "changed", "time")

    def __init__(self) -> None:
        self.time = 0
        self.changed: set[Relation] = set()
        self._in_order: dict[Relation, None] = {}
        """All relations, the most recently changed one last."""

    def tick(self, relation: Relation) -> None:
        """Record that a relation has other rows, or other arrays."""
        self.time += 1
        self.changed.add(relation)
        relation.changed_at = self.time
        self._in_order.pop(relation, None)
        self._in_order[relation] = None

    def since(self, time: int) -> list[Relation]:
        """Return the relations changed after a time; usually few of many."""
        changed = takewhile(
            lambda each: each.changed_at > time, reversed(self._in_order)
        )
        return list(changed)

    def forget(self, relation: Relation) -> None:
        """Record that a relation no longer exists."""
        self.changed.discard(relation)
        del self._in_order[relation]


class Relation:
    """A table of rows with status and counters; see the module's docstring.

    Args:
        name: its name.
        arity: the number of columns.
        clock: records changes.
    """

    def __init__(self, name: str, arity: int, clock: Clock | None = None) -> None:
        self.name = name
        self.arity = arity
        self._clock = Clock() if clock is None else clock
        self.changed_at = 0
        """The time of the last change of rows or arrays."""
        self.count = 0
        """The number of rows, whatever their status."""
        self.alive = 0
        """The number of materialised rows."""
        self.explicit_count = 0
        """The number of explicit rows."""
        self._table: Ids = np.empty((arity, 16), np.uint32)
        self._status: Status = np.empty(16, np.uint16)
        self._counters: list[Rows | None] = [None, None]
        self._counted = [0, 0]
        """For each counter, the row from which on all counts are zero."""
        self.raised: dict[tuple[tuple[int, int], ...], list[Rows]] = {}
        """Constants that `ClosureOperators.counted` was called for, with the rows that
        had them and a count at that time, and any rows whose counts were raised since.
        """
        self.raised_for: dict[object, list[Rows]] = {}
        """For each listener, rows whose counts may have been raised since it last read
        them.
        """
        self.numbering = 0
        """Increases whenever rows are renumbered."""
        self.origin, self.shared = object(), 0
        """Relations of one origin have the same first rows, as many as are shared."""
        self.layout = relation_layout()
        """The addresses of the arrays, for compiled code; valid while an index of the
        relation is described for the current number of rows.
        """
        self._laid_out: tuple[object, ...] = (None, None, None, None)
        """The arrays that the layout describes."""
        self.address = address(self.layout)
        """The address of the layout."""
        self.primary = Index(tuple(range(arity)))
        self._indexes: dict[tuple[int, ...], Index] = {}
        self._statistics: Statistics | None = None
        self._clock.tick(self)

    # ------------------------------------------------------------------------ rows

    @property
    def table(self) -> Ids:
        """The rows by column, including spare capacity at the end."""
        return self._table

    def whole_table(self) -> Ids:
        """Return all rows by column, as a view: the ids of a row never change."""
        return self._table[:, : self.count]

    @property
    def status(self) -> Status:
        """The status of each row, including spare capacity at the end."""
        return self._status

    def counter(self, which: int) -> Rows:
        """Return one of the two counters of each row, with spare capacity."""
        counter = self._counters[which]
        if counter is None:
            counter = self._counters[which] = np.zeros(self._status.size, np.int32)
            self.primary.described = -1
            self._clock.tick(self)
        return counter

    def note_counted(self, which: int, rows: Rows, greatest: int) -> None:
        """Record that counts of rows have changed, up to the row `greatest`."""
        if greatest >= self._counted[which]:
            self._counted[which] = greatest + 1
        self.note_raised(rows)

    def restore_counts(self, which: int, rows: Rows, counts: Rows) -> None:
        """Write back earlier counts."""
        self.counter(which)[rows] = counts
        self.note_raised(rows)

    def note_raised(self, rows: Rows) -> None:
        """Record that counts of rows may have been raised."""
        if rows.size:
            _append_to_all(self.raised, rows)
            _append_to_all(self.raised_for, rows)

    @property
    def tells_of_counts(self) -> bool:
        """Whether there is a listener for raised counts."""
        return bool(self.raised or self.raised_for)

    def counted(self, which: int, rows: Rows) -> Rows:
        """Return the counts of rows, without allocating a counter that is not used."""
        counter = self._counters[which]
        return np.zeros(rows.size, np.int32) if counter is None else counter[rows]

    @property
    def counted_until(self) -> int:
        """The row from which on all counts are zero."""
        return max(self._counted)

    def counted_rows(self) -> Rows:
        """Return the rows with at least one count above zero."""
        counted = np.zeros(self.count, np.bool_)
        for counter in self._counters:
            if counter is not None:
                counted |= counter[: self.count] > 0
        return np.flatnonzero(counted).astype(np.int32)

    def marked_rows(self) -> Rows:
        """Return the explicit rows whose recursive count is above zero."""
        counter = self._counters[RECURSIVE]
        if counter is None:
            return np.empty(0, np.int32)
        used = min(self._counted[RECURSIVE], self.count)
        rows = np.flatnonzero(counter[:used]).astype(np.int32)
        marked: Rows = rows[(self._status[rows] & EXPLICIT) != 0]
        return marked

    def keys_of(self, table: Ids) -> Keys:
        """Return the keys that identify facts in the primary index."""
        return make_keys(table)

    def find(self, table: Ids, keys: Keys | None = None) -> Rows:
        """Return the row of each fact, or -1."""
        keys = self.keys_of(table) if keys is None else keys
        found = np.full(keys.size, -1, np.int32)
        if self.arity > WIDEST_EXACT_KEY:
            table = np.ascontiguousarray(table)
            for run in self.primary.runs:
                first, last, total = run.find_keys(keys)
                if total:
                    kernels.confirm_wide(
                        table, self._table, run.rows, first, last, found
                    )
            return found
        for run in self.primary.runs:
            run.find_rows(keys, found)
        return found

    def find_sorted(self, *pieces: Keys) -> Rows:
        """Return the row of each of sorted exact keys, or -1.

        Args:
            pieces: the keys, possibly in several arrays.
        """
        found = empty(sum(keys.size for keys in pieces), np.int32)

        def find(part: slice) -> int:
            found[part] = -1
            for keys, places in within(pieces, part):
                missing = keys.size
                for run in self.primary.runs:
                    missing -= run.find_sorted(keys, found[places])
                    if not missing:
                        break
            return 0

        in_slices(found.size, find)
        return found

    def find_wide_sorted(self, facts: Ids, keys: Keys) -> Rows:
        """Return the row of each fact, or -1, for keys that are sorted hashes.

        The facts are stored one after the other, in either memory order. The first row
        with the same hash is almost always the fact. If one is not, all of them are
        looked up again by `find`, which handles collisions.
        """
        found = self.find_sorted(keys)

        def count_different(part: slice) -> int:
            return kernels_wide.count_different(facts[part], self._table, found[part])

        if in_slices(keys.size, count_different):
            return self.find(facts.T, keys)
        return found

    def append(self, keys: Keys, table: Ids) -> Rows:
        """Append rows for facts that have none; the keys are sorted."""
        first, last = self.count, self.count + keys.size
        self._reserve(last)
        self._table[:, first:last] = table
        self._status[first:last] = 0
        rows = np.arange(first, last, dtype=np.int32)
        self._accept(last, keys, rows)
        return rows

    def _accept(self, count: int, keys: Keys, rows: Rows) -> None:
        """Add rows that are already written to the index; the keys are sorted.

        If this raises an error, the rows are not in the index.
        """
        self.primary.add_sorted(keys, rows)
        self.count = count

    def append_few(self, keys: Keys) -> tuple[Rows, Rows] | None:
        """Append rows for a few facts that have none and whose keys are exact.

        The keys are overwritten.

        Returns:
            The rows and how often each fact occurs; None if there is no capacity, or
            the layout is out of date.
        """
        first, other = self.growth
        if self.primary.described != first or keys.size > TAIL:
            return None
        counts: Rows = np.empty(keys.size, np.int32)
        size = kernels_appends.append_few(self.address, first, other, keys, counts)
        if size < 0:
            return None
        self.note_appended(first + size, has_other=other != 0)
        return np.arange(first, self.count, dtype=np.int32), counts[:size]

    @property
    def growth(self) -> tuple[int, int]:
        """The number of rows, and the address of the layout of the second index.

        That index is keyed by the second of two columns; the address is 0 if it does
        not exist or is out of date.
        """
        other = self._indexes.get((1, 0))
        if other is None or other.described != self.count:
            return self.count, 0
        return self.count, other.address

    def note_appended(self, count: int, *, has_other: bool) -> None:
        """Record that compiled code has appended rows.

        Args:
            count: the number of rows now.
            has_other: whether the rows are also in the second index; see `growth`.
        """
        size = count - self.count
        self.count = count
        self._clock.tick(self)
        self.primary.note_added(size, count)
        if has_other:
            self._indexes[1, 0].note_added(size, count)

    def append_wide(self, facts: Ids, keys: Keys, rows: Rows) -> None:
        """Append rows for those facts that have none; the keys are sorted hashes."""
        new = int(np.count_nonzero(rows < 0))
        if not new:
            return
        first, last = self.count, self.count + new
        self._reserve(last)
        new_keys = np.empty(new, np.uint64)
        kernels_wide.number_new(keys, facts, rows, first, new_keys, self._table)
        self._status[first:last] = 0
        self._accept(last, new_keys, np.arange(first, last, dtype=np.int32))

    def append_new(self, pieces: Sequence[Keys], rows: Rows) -> None:
        """Append rows for those of sorted exact keys that have none yet.

        Args:
            pieces: the keys, possibly in several arrays.
            rows: the row of each key; negative if it has none.
        """
        sizes: dict[int, int] = {}

        def count(part: slice) -> int:
            sizes[part.start] = int(np.count_nonzero(rows[part] < 0))
            return sizes[part.start]

        size = in_slices(rows.size, count)
        if not size:
            return
        first, last = self.count, self.count + size
        self._reserve(last)
        starts, low = {}, 0
        for start in sorted(sizes):
            starts[start], low = low, low + sizes[start]
        new_keys = empty(size, np.uint64)
        table = self._table[:, first:last]
        status = self._status[first:last]

        def number(part: slice) -> int:
            start = starts[part.start]
            mine = slice(start, start + sizes[part.start])
            new = new_keys[mine]
            done = 0
            for keys, places in within(pieces, part):
                done += kernels_rows.number_new(
                    keys, rows[places], first + start + done, new[done:]
                )
            if self.arity > 1:
                kernels_rows.split_keys(new, *table[:, mine])
            elif self.arity:
                table[0, mine] = new >> np.uint64(32)
            status[mine] = 0
            return 0

        in_slices(rows.size, number)
        self._accept(last, new_keys, np.arange(first, last, dtype=np.int32))

    def copy_rows(self, kept: npt.NDArray[np.bool_], twin: Relation) -> Rows:
        """Copy rows into an empty relation, in sorted runs as they are here.

        Args:
            kept: for each row whether it is copied.
            twin: an empty relation of the same arity.
        """
        size = int(np.count_nonzero(kept))
        if self.count - size <= size * _LEFT_OVER:
            self._copy_all(twin)
            rows = np.arange(self.count, dtype=np.int32)
            return rows if size == self.count else rows[kept]
        for run in self.primary.runs:
            chosen = kept[run.rows]
            twin.append(run.keys[chosen], self._table[:, run.rows[chosen]])
        return np.arange(twin.count, dtype=np.int32)

    def _copy_all(self, twin: Relation) -> None:
        """Share all rows with another relation, so that both have a common origin.

        They share the table and the keys. The other relation has no spare capacity, so
        it copies the table before it appends rows.
        """
        size = self.count
        status = np.zeros(size, np.uint16)
        twin._clock.tick(twin)
        twin._table, twin._status = self._table, status
        twin.primary.share_runs(self.primary)
        twin.count = size
        self.origin = twin.origin
        self.shared = twin.shared = size

    def _reserve(self, size: int) -> None:
        self._clock.tick(self)
        if size <= self._status.size:
            return
        if size > MOST_ROWS:
            raise EngineUseError(
                f"`{self.name}` would have {size:,} facts, and has room for "
                f"{MOST_ROWS:,}",
                help="divide the data, or derive less",
            )
        # Untouched memory costs nothing; copying and clearing it does.
        growth = 4 if size < _MANY else 16 if size < _LARGE else 2
        room = max(size + size // _SLACK, self._status.size * growth)
        table: Ids = empty((self.arity, room), np.uint32, growth)
        table[:, : self.count] = self._table[:, : self.count]
        status: Status = empty(room, np.uint16, growth)
        status[: self.count] = self._status[: self.count]
        counters: list[Rows | None] = [None, None]
        for which, counter in enumerate(self._counters):
            if counter is not None:
                used = self._counted[which]
                longer: Rows = np.zeros(room, np.int32)
                longer[:used] = counter[:used]
                counters[which] = longer
        # All of them or none: an allocation may fail.
        self._table, self._status, self._counters = table, status, counters

    def compact(self) -> None:
        """Remove rows that are neither materialised nor explicit."""
        held = MATERIALISED | EXPLICIT
        alive = np.flatnonzero(self._status[: self.count] & held)
        size = alive.size
        table = np.ascontiguousarray(self._table[:, alive])
        keys, order = sort_pairs(self.keys_of(table), np.arange(size, dtype=np.int32))
        alive = alive[order]
        room = max(16, size + size // _SLACK)
        new_table: Ids = np.empty((self.arity, room), np.uint32)
        new_table[:, :size] = table[:, order]
        status: Status = np.empty(room, np.uint16)
        status[:size] = self._status[alive]
        counters: list[Rows | None] = [None, None]
        for which, counter in enumerate(self._counters):
            if counter is not None:
                shorter: Rows = np.zeros(room, np.int32)
                shorter[:size] = counter[alive]
                counters[which] = shorter
        rows = np.arange(size, dtype=np.int32)
        # Nothing has changed so far, and the rest needs no memory.
        self._clock.tick(self)
        self._table, self._status, self._counters = new_table, status, counters
        self._counted = [size, size]
        # Keep the index objects, because others may refer to them.
        for index in (self.primary, *self._indexes.values()):
            index.clear()
        self._statistics = None
        self.raised.clear()
        self.raised_for.clear()
        self.numbering += 1
        self.origin, self.shared = object(), 0
        self._accept(size, keys, rows)

    def recovered(self, clock: Clock) -> Relation:
        """Return a relation that takes over the arrays and rebuilds everything else."""
        new = Relation(self.name, self.arity, clock)
        new.alive, new.explicit_count = self.alive, self.explicit_count
        new._table, new._status = self._table, self._status
        new._counters = list(self._counters)
        new._counted = [self.count, self.count]
        # Sets of an unfinished update have left their bits behind.
        self._status[: self.count] &= np.uint16(MATERIALISED | EXPLICIT)
        rows = np.arange(self.count, dtype=np.int32)
        new._accept(self.count, *sort_pairs(self.keys_of(self.whole_table()), rows))
        return new

    # ----------------------------------------------------------------------- files

    def write(self, file: ArrayWriter, name: str) -> None:
        """Write all rows to a file, with their status, counters and indexes."""
        count = self.count
        room = count + count // _SLACK
        counted = [0 if each is None else used for each, used in self._counters_used]
        indexes = [
            columns for columns, each in self._indexes.items() if each.covered == count
        ]
        file.values[name] = {
            "rows": count,
            "alive": self.alive,
            "explicit": self.explicit_count,
            "counted": counted,
            "instances": sum(
                int(each[:used].sum(dtype=np.int64))
                for each, used in self._counters_used
                if each is not None
            )
            - self.explicit_count,
            "indexes": indexes,
        }
        file.put(f"{name}/table", self._table[:, :count], room)
        held = np.uint16(MATERIALISED | EXPLICIT)
        file.put(f"{name}/status", self._status[:count] & held, room)
        for which, (counter, _) in enumerate(self._counters_used):
            if counted[which] and counter is not None:
                file.put(f"{name}/counter {which}", counter[:count], room)
        self.primary.write(file, f"{name}/index")
        for columns in indexes:
            self._indexes[columns].write(file, f"{name}/index {columns}")

    @property
    def _counters_used(self) -> list[tuple[Rows | None, int]]:
        """Each counter, and the row from which on all counts are zero."""
        used = (min(each, self.count) for each in self._counted)
        return list(zip(self._counters, used, strict=True))

    def take_up(self, file: MappedArrays, name: str) -> int:
        """Map the rows of a file into a relation that has none.

        Returns:
            The number of rule instances that the counts represent.
        """
        about = file.values[name]
        self._clock.tick(self)
        self.count = about["rows"]
        self.alive, self.explicit_count = about["alive"], about["explicit"]
        self._table = file.get(f"{name}/table")
        self._status = file.get(f"{name}/status")
        self._counted = about["counted"]
        self._counters = [None, None]
        for which, used in enumerate(self._counted):
            if used:
                counter = self._counters[which] = file.get(f"{name}/counter {which}")
                # New rows start at zero, and spare capacity in a file is not verified.
                counter[self.count :] = 0
        self.primary.take_up(file, f"{name}/index", self.count)
        for columns in map(tuple, about["indexes"]):
            index = self._indexes[columns] = Index(columns)
            index.take_up(file, f"{name}/index {columns}", self.count)
        return int(about["instances"])

    # --------------------------------------------------------------------- indexes

    def index(self, columns: tuple[int, ...]) -> Index:
        """Return an up-to-date index that finds rows by these columns.

        One column is looked up by the upper half of a key, two by the key, and more by
        its hash. The primary index serves all columns, and the first of two.
        """
        wanted = self._key_columns(columns)
        if wanted == self.primary.columns:
            return self.primary
        index = self._indexes.get(wanted)
        if index is None:
            index = self._indexes[wanted] = Index(wanted)
        self._bring_up_to_date(index)
        return index

    def _bring_up_to_date(self, index: Index) -> None:
        if index is not self.primary and index.covered < self.count:
            new = slice(index.covered, self.count)
            keys = make_keys(self._table[list(index.columns), new])
            index.add(keys, np.arange(index.covered, self.count, dtype=np.int32))
            index.covered = self.count

    def unite_runs(self, index: Index) -> None:
        """Merge the runs of an index that is looked up frequently."""
        if index.unite_runs():
            self._clock.tick(self)

    def require_layout(self) -> int:
        """Bring the layout up to date, and return its address."""
        if self.primary.described != self.count:
            self.describe(self.primary)
        return self.address

    def describe(self, index: Index) -> None:
        """Bring an index, its layout and the layout of the relation up to date."""
        self._bring_up_to_date(index)
        index.describe(self.count)
        arrays = (self._table, self._status, *self._counters)
        if all(map(is_, arrays, self._laid_out)):
            return
        self._laid_out = arrays
        self.layout[:] = (
            address(self._table),
            self._table.shape[1],
            address(self._status),
            *(0 if each is None else address(each) for each in self._counters),
            self.primary.address,
            self.arity,
        )

    def _key_columns(self, columns: tuple[int, ...]) -> tuple[int, ...]:
        if len(columns) == 1 and self.arity > 1:
            for known in self._indexes:
                if len(known) == WIDEST_EXACT_KEY and known[0] == columns[0]:
                    return known
            return (columns[0], (columns[0] + 1) % self.arity)
        if len(columns) == WIDEST_EXACT_KEY and columns[::-1] in self._indexes:
            return columns[::-1]
        return columns

    @property
    def statistics(self) -> Statistics:
        """Statistics of a sample, renewed when the number of rows doubles or halves."""
        known = self._statistics
        if known is None or not known.count / 2 <= self.count <= known.count * 2:
            known = self._statistics = Statistics(self.whole_table())
        return known

    def sample_again(self) -> None:
        """Renew the sample unless it was taken at nearly the same size.

        Facts derived since an older sample would seem to be rare.
        """
        known = self._statistics
        if known is None or abs(self.count - known.count) > known.count // FRESH:
            self._statistics = Statistics(self.whole_table())

    @property
    def nbytes(self) -> int:
        """Memory in use, without what is reserved for growth."""
        counters = sum(
            4 * self.count for counter in self._counters if counter is not None
        )
        indexes = sum(index.nbytes for index in self._indexes.values())
        rows = self.count * (4 * self.arity + 2)
        return rows + counters + indexes + self.primary.nbytes

    @property
    def index_count(self) -> int:
        """The number of indexes."""
        return 1 + len(self._indexes)


def _append_to_all(lists: dict[_Listener, list[Rows]], rows: Rows) -> None:
    """Append rows to all lists, and drop lists that have not been read for long."""
    unread = []
    for listener, parts in lists.items():
        parts.append(rows)
        if len(parts) > MOST_UNREAD:
            unread.append(listener)
    for listener in unread:
        del lists[listener]


# ------------------------------------------------------------------ rows with constants


@dataclass(frozen=True, slots=True, eq=False)
class Fitting:
    """Selects rows of a relation by their ids at some positions."""

    relation: Relation
    constants: Mapping[int, int]

    def __call__(self, rows: Rows) -> Rows:
        """Return those of the rows that have the ids."""
        table = self.relation.table
        for at, wanted in self.constants.items():
            rows = rows[table[at, rows] == wanted]
        return rows
