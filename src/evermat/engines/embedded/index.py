"""Sorted keys of a relation, for finding rows by the values of some columns.

An index is a list of sorted *runs*, the largest first. New rows make a new run; runs of
similar size are merged, so there are few of them and each row is merged a logarithmic
number of times. Rows are never removed: the status of a row says whether it holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.arrays import NO_KEYS, NO_ROWS
from evermat.engines.embedded.kernels import keys as kernels
from evermat.engines.embedded.kernels.layout import (
    ARITY_OF_RUN,
    FIRST_RUN,
    ROOM_OF_LAST,
    RUNS,
    address,
    index_layout,
)
from evermat.engines.embedded.sorting import SortedPairs, merge_pairs, sort_pairs
from evermat.runtime.interrupts import masked

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids, Keys, Rows
    from evermat.engines.embedded.mapped_file import ArrayWriter, MappedArrays

MERGE_RATIO = 3
"""Adjacent runs are merged unless the longer one is more than this times as long."""

FEW = 16
"""With a directory, a goal is looked up by itself if there are at least this many keys
per goal; otherwise goals and keys are merged. A directory is not built for that alone,
as it would cost more than it saves.
"""

WORTH = 128
"""Number of keys that a directory may have per look-up so far. Building it then takes
about as long as the look-ups without it have lost.
"""

_NEVER = 1 << 62

MOST_UNITED = 1 << 20
"""Up to this many keys are merged into one run when updates first use an index, which
takes little time compared with building indexes and plans.
"""

BITS_PER_KEY = 8
"""Bits of a filter per key: about a tenth of the absent keys pass."""

MOST_FILTERED = 1 << 16
"""Longer runs have no filter, because it would not stay in the cache."""

TAIL = 256
"""Capacity of the last run, if it has less than half as many keys: `kernels.appends`
adds to it. It has no directory, which would often have to be rebuilt.
"""

SPREAD = 4
"""Buckets of a directory per key, unless there are fewer ids: most values are then
found without a search.
"""

HALF = np.uint64(32)
WIDEST_EXACT_KEY = 2
"""The number of columns that fit into a key; wider keys are hashes."""


def make_keys(columns: Ids) -> Keys:
    """Return the keys of columns: exact for up to two columns, else hashes."""
    count = columns.shape[0]
    if count == 0:
        return np.zeros(columns.shape[1], np.uint64)
    if count > WIDEST_EXACT_KEY:
        hashes: Keys = np.empty(columns.shape[1], np.uint64)
        kernels.hash_columns(np.ascontiguousarray(columns), hashes)
        return hashes
    keys: Keys = columns[0].astype(np.uint64)
    keys <<= HALF
    if count == WIDEST_EXACT_KEY:
        keys |= columns[1]
    return keys


class Run(SortedPairs):
    """Sorted keys and their rows, with a directory that is built on first use.

    Short runs also have a Bloom filter of the upper halves of their keys, because most
    keys are found in the first run, and not in the others.
    """

    __slots__ = ("_base", "_directory", "_filter", "_line", "_shift")

    def __init__(self, keys: Keys, rows: Rows, size: int | None = None) -> None:
        super().__init__(keys, rows, size)
        self._directory: Rows = NO_ROWS
        self._filter: Keys = NO_KEYS
        self._base = 0
        self._shift = 0
        self._line: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return self.keys.size

    def find_halves(self, ids: Ids) -> tuple[Rows, Rows, int]:
        """Return the range of keys that begin with each id, and their number."""
        first, last = self._places(ids.size)
        total = kernels.find_halves(
            ids, self.keys, self._directory, self._base, self._shift, first, last
        )
        return first, last, total

    def find_keys(self, goals: Keys) -> tuple[Rows, Rows, int]:
        """Return the range of keys equal to each goal, and their number."""
        first, last = self._places(goals.size)
        total = kernels.find_keys(
            goals, self.keys, self._directory, self._base, self._shift, first, last
        )
        return first, last, total

    def find_rows(self, goals: Keys, found: Rows) -> int:
        """Write the rows of goals that are not found yet; return their number."""
        self.require_directory()
        return kernels.find_rows(
            goals,
            self.keys,
            self.rows,
            self._directory,
            self._base,
            self._shift,
            found,
        )

    def find_sorted(self, goals: Keys, found: Rows) -> int:
        """Like `find_rows`, for sorted goals."""
        if self._directory.size and goals.size * FEW < self.keys.size:
            return self.find_rows(goals, found)
        return kernels.find_sorted(goals, self.keys, self.rows, found)

    def _places(self, size: int) -> tuple[Rows, Rows]:
        self.require_directory()
        return np.empty(size, np.int32), np.empty(size, np.int32)

    @property
    def has_directory(self) -> bool:
        """Whether there is a directory."""
        return self._directory.size > 0

    def require_directory(self, spread: int = SPREAD) -> None:
        """Build the directory if there is none, with `spread` buckets per key."""
        if self._directory.size:
            return
        self._base = int(self.keys[0] >> HALF)
        span = int(self.keys[-1] >> HALF) - self._base + 1
        # One bucket for each possible upper half if they are dense enough; otherwise
        # neighbouring ones share a bucket.
        most = max(64, spread * self.keys.size)
        self._shift = max(0, (span // most).bit_length())
        buckets = ((span - 1) >> self._shift) + 1
        directory: Rows = np.empty(buckets + 1, np.int32)
        kernels.make_directory(self.keys, self._base, self._shift, directory)
        # Last, because other threads test it to see whether the directory is complete.
        self._directory = directory
        self._line = None

    def require_filter(self) -> None:
        """Build the filter if there is none."""
        if not self._filter.size:
            # Sized for the spare capacity too, which compiled code may fill.
            bits = BITS_PER_KEY * self.keys_with_room.size
            self._filter = np.zeros(1 << (bits // 64).bit_length(), np.uint64)
            kernels.make_filter(self.keys, self._filter)
            self._line = None

    @property
    def line(self) -> tuple[int, ...]:
        """The addresses and sizes of all arrays; zero for those that are missing."""
        if self._line is None:
            directory = self._directory
            self._line = (
                address(self.keys),
                address(self.rows),
                self.keys.size,
                address(directory),
                directory.size - 1 if directory.size else 0,
                self._base,
                self._shift,
                address(self._filter) if self._filter.size else 0,
                64 * self._filter.size - 1,
            )
        return self._line

    @property
    def is_tail(self) -> bool:
        """Whether compiled code may append keys to the run."""
        return self.keys.size < self.keys_with_room.size == TAIL

    def as_tail(self) -> Run:
        """Return a copy of the run with spare capacity."""
        keys: Keys = np.empty(TAIL, np.uint64)
        rows: Rows = np.empty(TAIL, np.int32)
        size = self.keys.size
        keys[:size], rows[:size] = self.keys, self.rows
        return Run(keys, rows, size)

    def without_room(self) -> Run:
        """Return a run that shares the keys, without spare capacity to write to."""
        run = Run(self.keys, self.rows)
        run._directory, run._base, run._shift = self._directory, self._base, self._shift
        return run

    def note_added(self, size: int) -> None:
        """Record that compiled code has appended keys to the run."""
        size += self.keys.size
        self.keys, self.rows = self.keys_with_room[:size], self.rows_with_room[:size]
        self._directory = NO_ROWS
        self._line = None

    def write(self, file: ArrayWriter, name: str) -> None:
        """Write the run to a file, with its directory if there is one."""
        file.put(f"{name}/keys", self.keys)
        file.put(f"{name}/rows", self.rows)
        if self._directory.size:
            file.put(f"{name}/directory", self._directory)
            file.values[f"{name}/directory"] = [self._base, self._shift]

    @classmethod
    def read(cls, file: MappedArrays, name: str) -> Run:
        """Read a run that was written to a file."""
        run = cls(file.get(f"{name}/keys"), file.get(f"{name}/rows"))
        if f"{name}/directory" in file:
            run._base, run._shift = file.values[f"{name}/directory"]
            run._directory = file.get(f"{name}/directory")
        return run

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        own = self.keys.nbytes + self.rows.nbytes
        return own + self._directory.nbytes + self._filter.nbytes


class Index:
    """An index: the rows of a relation by the values of some columns.

    Attributes:
        columns: the columns that make up the key, in order.
        covered: the number of rows in the index.
        layout: the addresses of its arrays, for compiled code.
        address: the address of the layout.
        described: the number of rows of the relation when the layout was written.
        spread: buckets per key for new directories.
        searches: single-key look-ups by compiled code so far.
    """

    __slots__ = (
        "_next",
        "address",
        "columns",
        "covered",
        "described",
        "layout",
        "runs",
        "searches",
        "spread",
    )

    def __init__(self, columns: tuple[int, ...]) -> None:
        self.columns = columns
        self.layout = index_layout()
        self.address = address(self.layout)
        self.spread = 1
        self.searches = 0
        self._next = 0
        self.clear()

    def clear(self) -> None:
        """Forget all rows."""
        self.runs: list[Run] = []
        self.covered = 0
        self.described = -1

    def write(self, file: ArrayWriter, name: str) -> None:
        """Write all runs to a file."""
        file.values[name] = len(self.runs)
        for at, run in enumerate(self.runs):
            run.write(file, f"{name}/{at}")

    def take_up(self, file: MappedArrays, name: str, covered: int) -> None:
        """Map the runs of a file, which cover `covered` rows."""
        self.clear()
        self.runs = [Run.read(file, f"{name}/{at}") for at in range(file.values[name])]
        self.covered = covered

    def describe(self, count: int) -> None:
        """Bring the layout up to date for a relation with `count` rows."""
        self.layout[RUNS] = len(self.runs)
        has_tail = bool(self.runs) and self.runs[-1].is_tail
        self.layout[ROOM_OF_LAST] = TAIL if has_tail else 0
        place = FIRST_RUN
        enough = WORTH * self.searches
        self._next = _NEVER
        for run in self.runs:
            if (run is not self.runs[0] and len(run) <= MOST_FILTERED) or run.is_tail:
                run.require_filter()
            needs_directory = len(run) > FEW and not run.is_tail
            if needs_directory and len(run) <= enough:
                run.require_directory(self.spread)
            elif needs_directory and not run.has_directory:
                self._next = min(self._next, len(run) // WORTH + 1)
            self.layout[place : place + ARITY_OF_RUN] = run.line
            place += ARITY_OF_RUN
        self.described = count

    @property
    def wants_directories(self) -> bool:
        """Whether a run had no directory when the layout was last written."""
        return self._next != _NEVER

    def make_directories(self) -> None:
        """Build all directories before the first look-up."""
        for run in self.runs:
            if len(run) > FEW and not run.is_tail:
                run.require_directory(self.spread)

    def note_searches(self, times: int) -> None:
        """Record single-key look-ups, and build directories once they are worthwhile.

        The layout must be up to date.
        """
        self.searches += times
        if self.searches >= self._next:
            self.describe(self.described)

    def add(self, keys: Keys, rows: Rows) -> None:
        """Add new rows, in any order; the index takes ownership of the arrays."""
        if keys.size:
            self.add_sorted(*sort_pairs(keys, rows))

    def add_sorted(self, keys: Keys, rows: Rows) -> None:
        """Add new rows with sorted keys."""
        if not keys.size:
            return
        runs = [*self.runs, Run(keys, rows)]
        runs.sort(key=len, reverse=True)
        # Merging in place cannot be undone, so interrupts wait until the index has the
        # merged runs.
        with masked():
            for at in range(len(runs) - 1, 0, -1):
                if len(runs[at - 1]) < MERGE_RATIO * len(runs[at]):
                    runs[at - 1] = Run(*merge_pairs(runs[at - 1], runs[at]))
                    del runs[at]
            # Only once compiled code reads the index: many relations are small.
            is_read = self.described >= 0
            if is_read and len(runs[-1]) < TAIL // 2 and not runs[-1].is_tail:
                runs[-1] = runs[-1].as_tail()
            self.runs = runs

    def share_runs(self, other: Index) -> None:
        """Share the keys and rows of another index: for an index without rows."""
        self.runs = [run.without_room() for run in other.runs]

    def unite_runs(self) -> bool:
        """Merge all runs unless there are many keys; return whether they changed.

        If they did, the layout is out of date.
        """
        if len(self.runs) < 2 or sum(map(len, self.runs)) > MOST_UNITED:  # noqa: PLR2004
            return False
        *longer, united = self.runs
        with masked():
            for run in reversed(longer):
                united = Run(*merge_pairs(run, united))
            self.runs, self.described = [united], -1
        return True

    def note_added(self, size: int, count: int) -> None:
        """Record that compiled code has added `size` rows, `count` in all."""
        self.runs[-1].note_added(size)
        self.covered = self.described = count

    def rows_for(self, goals: Ids) -> Rows:
        """Return the rows for one goal: an id, a pair, or the columns of a hash."""
        parts = [NO_ROWS]
        for run in self.runs:
            if goals.shape[0] == 1:
                first, last, _ = run.find_halves(goals[0])
            else:
                first, last, _ = run.find_keys(make_keys(goals))
            parts.append(run.rows[first[0] : last[0]])
        return np.concatenate(parts)

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        return sum(run.nbytes for run in self.runs)
