"""What compiled updates work on, and the steps that all of them are made of.

An update of few facts is carried out stratum by stratum and round by round without a
step of Python between them: forwards (`kernels.fixpoint`), or by looking for proofs
(`kernels.backward`). Facts are keys: the number of a relation in the upper half, a row
in the lower one.

Rules run as programs of `kernels.interpreter`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.interpreter import (
    MATCHED,
    READ,
    match_programs,
    tally,
)
from evermat.engines.embedded.kernels.keys import inner_kernel, int64, kernel
from evermat.engines.embedded.kernels.layout import STATUS
from evermat.engines.embedded.kernels.raw import read_number, read_status, write_status
from evermat.engines.embedded.runtime import part

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Rows
    from evermat.engines.embedded.kernels.layout import Numbers

# -------------------------------------------------------------- what a call works on

DELETED, ADDED, CHANGED, CHANGED_ABSENT, CHECKED, PROVED, DELAYED = range(7)
"""Status bits: the two sets that an update fills, and the two changes that queries
read; the rest is for proofs only."""

CANDIDATES, LOGGED, CHUNKS, FRESH, PATIENCE, MATCHES, HAS_COUNTERS = (
    4,
    5,
    6,
    7,
    8,
    10,
    13,
)
"""Where the work is, in its state: how much of each list is used, and of the lists of
overwritten counts and of facts without a row; how many rows may still be looked at, all
matches so far, and whether derivations are counted. The rest belongs to the kernel."""

STATE_SIZE = 16

DONE, HAS_FRESH, GAVE_UP, BELOW_ZERO = range(4)
"""How a call ends."""

(IN_DELETED, IN_ADDED, IN_CANDIDATES, IN_DELTA, IN_FOUND, IN_SPARE, IN_LOG) = range(7)
"""Lists of facts."""

IN_BATCH, IN_TODO, IN_OPEN, IN_CHECKED, IN_DELAYED = 6, 7, 8, 9, 10
"""Lists of facts for proofs, which have no log."""

LISTS, NUMBER_LISTS = 11, 4
"""How many lists there are of each sort."""

IN_ROWS, IN_COUNTS, IN_OLD_COUNTS, IN_CHANGED = range(4)
"""Lists of numbers; the last one is for rows that lower strata have lost and gained."""

Wired = tuple[
    "Numbers", "Numbers", "Numbers", "Numbers", "Numbers", "Numbers", "Numbers"
]
"""What changes set off: addresses of relations; for each relation the stratum that
derives it, from 1, or 0; where the entries begin that each slot has for positive
changes, and for negative ones; the entries, each a relation and which programs read its
change; for each program its address and the relation it derives; what is counted, how
many rows it has read and how many matches it had; and for each stratum whether it has
recursive rules. There is a slot for each set of queries."""

Lists = tuple["Keys", "Rows", "Ids", "Numbers", "Numbers"]
"""Room to work in: lists of facts and of numbers; facts that have no row yet, as
`run_programs` writes them; ends of parts of the log, with the counter that was changed;
and for each counter and relation the greatest row that was changed."""

Given = tuple["Numbers", "Flags", "Keys", "Keys"]
"""The status bits, which no fact has at first, but for the two sets; for each status
the roles that may see it, by what queries may see; E⁻ and E⁺."""

HALF = np.uint64(32)
LOWER = np.uint64(0xFFFFFFFF)
ONE = np.uint64(1)

KEYS = "uint64[::1]"
NUMBERS = "int64[::1]"
TABLE = "int64[:, ::1]"
WIRED = (
    f"Tuple(({NUMBERS}, {NUMBERS}, {NUMBERS}, {TABLE}, {TABLE}, {TABLE}, {NUMBERS}))"
)
LISTED = f"Tuple((uint64[:, ::1], int32[:, ::1], uint32[::1], {TABLE}, {TABLE}))"
GIVEN = f"Tuple(({NUMBERS}, uint8[:, ::1], {KEYS}, {KEYS}))"


# --------------------------------------------------------------------------- facts


@inner_kernel(f"int64({NUMBERS}, uint64)")
def status_of(relations: Numbers, key: np.uint64) -> int:
    """The status of a fact."""
    status = read_number(relations[int64(key >> HALF)], STATUS)
    return int64(read_status(status, int64(key & LOWER)))


@inner_kernel(f"void({NUMBERS}, uint64, int64, int64)")
def set_status(relations: Numbers, key: np.uint64, ones: int, zeros: int) -> None:
    """Set some bits of the status of a fact and clear others."""
    status = read_number(relations[int64(key >> HALF)], STATUS)
    row = int64(key & LOWER)
    write_status(status, row, np.uint16((read_status(status, row) | ones) & ~zeros))


@kernel(f"void({NUMBERS}, {KEYS}, int64, int64, int64, int64)")
def mark_keys(
    relations: Numbers, keys: Keys, size: int, ones: int, zeros: int, unless: int
) -> None:
    """Set and clear bits of facts, except those that have another bit."""
    for i in range(size):
        if not status_of(relations, keys[i]) & unless:
            set_status(relations, keys[i], ones, zeros)


@part
def group_rows(keys: Keys, size: int, first: int, starts: Numbers, rows: Rows) -> int:
    """Put rows of one relation after those of another, from a place on.

    Args:
        keys: facts.
        size: how many.
        first: the place.
        starts: is given the places where relations begin, and the end.
        rows: is given the rows.

    Returns:
        The end.
    """
    starts[:] = 0
    for i in range(size):
        starts[(keys[i] >> HALF) + ONE] += 1
    starts[0] = first
    for number in range(starts.size - 1):
        starts[number + 1] += starts[number]
    for i in range(size):
        number = keys[i] >> HALF
        rows[starts[number]] = int64(keys[i] & LOWER)
        starts[number] += 1
    for number in range(starts.size - 1, 0, -1):
        starts[number] = starts[number - 1]
    starts[0] = first
    return starts[starts.size - 1]


@kernel(f"int64({NUMBERS}, {KEYS}, int32[::1], {TABLE})")
def split_keys(relations: Numbers, keys: Keys, rows: Rows, lines: Numbers) -> int:
    """Have facts as rows and lines of `kernels.fact_sets`; how many lines."""
    starts = np.empty(relations.size + 1, np.int64)
    group_rows(keys, keys.size, 0, starts, rows)
    found = int64(0)
    for number in range(relations.size):
        if starts[number + 1] > starts[number]:
            lines[found, 0] = relations[number]
            lines[found, 1] = starts[number]
            lines[found, 2] = starts[number + 1]
            lines[found, 3] = number
            found += 1
    return found


@kernel(f"void({TABLE}, int32[::1], {NUMBERS}, {KEYS})")
def join_keys(lines: Numbers, rows: Rows, numbers: Numbers, keys: Keys) -> None:
    """Have lines of `kernels.fact_sets`, whose relations have numbers, as keys."""
    place = int64(0)
    for line in range(lines.shape[0]):
        number = np.uint64(numbers[line]) << HALF
        for i in range(lines[line, 1], lines[line, 2]):
            keys[place] = number | np.uint64(rows[i])
            place += 1


# --------------------------------------------------------------------------- rules


@part
def _list_jobs(
    slot: int, positive: Numbers, negative: Numbers, wiring: Wired
) -> tuple[Numbers, Numbers]:
    """The programs that read what changed, as jobs and by number; see `derive`."""
    _, _, entry_starts, entries, programs, _, _ = wiring
    first, middle, last = entry_starts[2 * slot : 2 * slot + 3]
    total = int64(0)
    for entry in range(first, last):
        starts = positive if entry < middle else negative
        number = entries[entry, 0]
        if starts[number + 1] > starts[number]:
            total += entries[entry, 2] - entries[entry, 1]
    jobs = np.empty((total, 4), np.int64)
    origins = np.empty(total, np.int64)
    job = int64(0)
    for entry in range(first, last):
        starts = positive if entry < middle else negative
        number = entries[entry, 0]
        if starts[number + 1] > starts[number]:
            for program in range(entries[entry, 1], entries[entry, 2]):
                jobs[job, 0] = programs[program, 0]
                jobs[job, 1] = starts[number]
                jobs[job, 2] = starts[number + 1]
                jobs[job, 3] = programs[program, 1]
                origins[job] = program
                job += 1
    return jobs, origins


@part
def _run_jobs(
    jobs: Numbers,
    origins: Numbers,
    rows: Rows,
    visible: Flags,
    proved: Flags,
    wiring: Wired,
    lists: Lists,
    state: Numbers,
) -> int:
    """Run programs; how many heads that have a row were found, or -1: no room."""
    work = wiring[5]
    keys, _, fresh, _, _ = lists
    done = np.empty((origins.size, 2), np.int64)
    known, written, patience = match_programs(
        jobs,
        rows,
        visible,
        proved,
        keys[IN_FOUND],
        fresh,
        state[FRESH],
        done,
        state[PATIENCE],
    )
    if known < 0:
        return int64(-1)
    state[FRESH] = written
    state[PATIENCE] = patience
    for job in range(origins.size):
        work[origins[job], READ] += done[job, READ]
        work[origins[job], MATCHED] += done[job, MATCHED]
        state[MATCHES] += done[job, MATCHED]
    return known


@part
def derive(
    slot: int,
    rows: Rows,
    positive: Numbers,
    negative: Numbers,
    visible: Flags,
    wiring: Wired,
    lists: Lists,
    state: Numbers,
) -> int:
    """Run some queries that read what changed, and count the heads if that matters.

    Args:
        slot: which queries.
        rows: what changed.
        positive: where the changed rows of each relation begin.
        negative: the same for rows that are changed the other way.
        visible: for each status the roles that may see it.
        wiring: what changes set off.
        lists: room to work in.
        state: where the update is.

    Returns:
        The number of heads that have a row, or -1: there was no room. If they are
        counted, each is there once.
    """
    jobs, origins = _list_jobs(slot, positive, negative, wiring)
    if origins.size == 0:
        return int64(0)
    no_flags = np.empty(0, np.uint8)
    known = _run_jobs(jobs, origins, rows, visible, no_flags, wiring, lists, state)
    if known < 0:
        return known
    if not state[HAS_COUNTERS]:
        return known
    keys, numbers = lists[0], lists[1]
    return tally(known, keys[IN_FOUND], keys[IN_SPARE], numbers[IN_COUNTS])


@part
def mark_grouped(
    relations: Numbers, starts: Numbers, rows: Rows, ones: int, zeros: int
) -> None:
    """Set and clear bits of facts that are grouped by relation."""
    for number in range(relations.size):
        status = read_number(relations[number], STATUS)
        for i in range(starts[number], starts[number + 1]):
            row = int64(rows[i])
            new = (read_status(status, row) | ones) & ~zeros
            write_status(status, row, np.uint16(new))
