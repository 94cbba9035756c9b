"""Data structures and steps that the kernels for small updates share.

A small update runs round by round in compiled code, with no Python between the
operators: forwards (`kernels.fixpoint`) or backwards (`kernels.backward`). A fact is a
64-bit key: the number of its relation in the upper half, its row id in the lower half.

Rules are run as bytecode by `kernels.interpreter`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evermat.engines.embedded.kernels.interpreter import (
    MATCHED,
    READ,
    match_programs,
    tally,
)
from evermat.engines.embedded.kernels.keys import (
    inner_kernel,
    int32,
    int64,
    kernel,
    uint32,
    uint64,
)
from evermat.engines.embedded.kernels.layout import (
    STATUS,
    read_number,
    read_status,
    write_status,
)
from evermat.engines.embedded.runtime import part, tuple_of, void

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Rows
    from evermat.engines.embedded.kernels.layout import Numbers

    State = Any
    """A record of type STATE, or of a type that begins with the same fields."""

# ------------------------------------------------------------------ data structures


class TriggerIndex(NamedTuple):
    """Trigger index: which programs have to run when a relation changes.

    A *slot* is a set of queries that are run together.

    Attributes:
        relations: the address of each relation.
        starts: for each slot, where its entries for positive and for negative changes
            begin.
        entries: a relation, and the first and the end of the programs that read its
            change.
        programs: the address of each program, and the relation that it derives.
        work: the number of rows that each program has read, and of its matches.
    """

    relations: Numbers
    starts: Numbers
    entries: Numbers
    programs: Numbers
    work: Numbers


class Scratch(NamedTuple):
    """Work arrays of a call; facts are keys unless stated otherwise.

    Attributes:
        candidates, delta: the facts of a round before and after admission.
        found, spare: derived heads, and a buffer for sorting them.
        rows: the rows of a change, grouped by relation.
        counts: the number of derivations of each fact in `found`.
        fresh: facts that have no row yet, as `run_programs` writes them.
    """

    candidates: Keys
    delta: Keys
    found: Keys
    spare: Keys
    rows: Rows
    counts: Rows
    fresh: Ids


STATE = np.dtype(
    [
        (name, np.int64)
        for name in ("candidates", "fresh", "cost_left", "matches", "is_counted")
    ]
)
"""The lengths of the lists of candidates and of facts without a row; the number of rows
that may still be visited, all matches so far, and whether derivations are counted."""

HALF = np.uint64(32)
LOWER = np.uint64(0xFFFFFFFF)
ONE = np.uint64(1)

KEYS = uint64[::1]
ROWS = int32[::1]
NUMBERS = int64[::1]
TABLE = int64[:, ::1]
TRIGGERS = tuple_of(TriggerIndex, NUMBERS, NUMBERS, TABLE, TABLE, TABLE)
SCRATCH = tuple_of(Scratch, KEYS, KEYS, KEYS, KEYS, ROWS, ROWS, uint32[::1])


# --------------------------------------------------------------------------- facts


@inner_kernel(int64(NUMBERS, uint64))
def status_of(relations: Numbers, key: np.uint64) -> int:
    """Return the status bits of a fact."""
    status = read_number(relations[int64(key >> HALF)], STATUS)
    return int64(read_status(status, int64(key & LOWER)))


@inner_kernel(void(NUMBERS, uint64, int64, int64))
def set_status(relations: Numbers, key: np.uint64, ones: int, zeros: int) -> None:
    """Set some status bits of a fact and clear others."""
    status = read_number(relations[int64(key >> HALF)], STATUS)
    row = int64(key & LOWER)
    write_status(status, row, np.uint16((read_status(status, row) | ones) & ~zeros))


@kernel(void(NUMBERS, KEYS, int64, int64, int64, int64))
def mark_keys(
    relations: Numbers, keys: Keys, size: int, ones: int, zeros: int, unless: int
) -> None:
    """Set and clear status bits of facts, except of those with a bit of `unless`."""
    for i in range(size):
        if not status_of(relations, keys[i]) & unless:
            set_status(relations, keys[i], ones, zeros)


@part
def group_rows(keys: Keys, size: int, first: int, starts: Numbers, rows: Rows) -> int:
    """Group the rows of facts by relation (counting sort).

    Args:
        keys: the facts.
        size: their number.
        first: the position in `rows` at which to begin.
        starts: receives the position at which each relation begins, and the end.
        rows: receives the rows.

    Returns:
        The position after the last row.
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


@kernel(int64(NUMBERS, KEYS, ROWS, TABLE))
def split_keys(relations: Numbers, keys: Keys, rows: Rows, lines: Numbers) -> int:
    """Convert facts to segments of `kernels.fact_sets`; return their number."""
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


@kernel(void(TABLE, ROWS, NUMBERS, KEYS))
def join_keys(lines: Numbers, rows: Rows, numbers: Numbers, keys: Keys) -> None:
    """Convert segments of `kernels.fact_sets` to keys.

    `numbers` has the number of the relation of each segment.
    """
    place = int64(0)
    for line in range(lines.shape[0]):
        number = np.uint64(numbers[line]) << HALF
        for i in range(lines[line, 1], lines[line, 2]):
            keys[place] = number | np.uint64(rows[i])
            place += 1


# --------------------------------------------------------------------------- rules


@part
def _list_jobs(
    slot: int, positive: Numbers, negative: Numbers, triggers: TriggerIndex
) -> tuple[Numbers, Numbers]:
    """Return the jobs that a change triggers, and the program number of each."""
    entries, programs = triggers.entries, triggers.programs
    first, middle, last = triggers.starts[2 * slot : 2 * slot + 3]
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
def derive(
    slot: int,
    rows: Rows,
    positive: Numbers,
    negative: Numbers,
    visible: Flags,
    triggers: TriggerIndex,
    scratch: Scratch,
    state: State,
) -> int:
    """Run the queries of a slot on a change; count derivations if the state says so.

    Args:
        slot: the set of queries.
        rows: the changed rows, grouped by relation.
        positive: where the rows of each relation begin that count as positive changes.
        negative: the same for negative changes.
        visible: for each status, the roles that may see it.
        triggers: the trigger index.
        scratch: work arrays; heads that have a row are written to `found`.
        state: the state of the call.

    Returns:
        The number of heads that have a row, or -1 if there was no room or the cost
        limit was exceeded. Heads are distinct if they are counted.
    """
    jobs, origins = _list_jobs(slot, positive, negative, triggers)
    if origins.size == 0:
        return int64(0)
    no_flags = np.empty(0, np.uint8)
    done = np.empty((origins.size, 2), np.int64)
    known, written, cost_left = match_programs(
        jobs,
        rows,
        visible,
        no_flags,
        scratch.found,
        scratch.fresh,
        state.fresh,
        done,
        state.cost_left,
    )
    if known < 0:
        return int64(-1)
    state.fresh = written
    state.cost_left = cost_left
    for job in range(origins.size):
        triggers.work[origins[job], READ] += done[job, READ]
        triggers.work[origins[job], MATCHED] += done[job, MATCHED]
        state.matches += done[job, MATCHED]
    if not state.is_counted:
        return known
    return tally(known, scratch.found, scratch.spare, scratch.counts)


@part
def mark_grouped(
    relations: Numbers, starts: Numbers, rows: Rows, ones: int, zeros: int
) -> None:
    """Set and clear status bits of rows that are grouped by relation."""
    for number in range(relations.size):
        status = read_number(relations[number], STATUS)
        for i in range(starts[number], starts[number + 1]):
            row = int64(rows[i])
            new = (read_status(status, row) | ones) & ~zeros
            write_status(status, row, np.uint16(new))
