"""What compiled updates work on, and the steps that all of them are made of.

An update of few facts is carried out stratum by stratum and round by round without a
step of Python between them: forwards (`kernels.fixpoint`), or by looking for proofs
(`kernels.backward`). Facts are keys: the number of a relation in the upper half, a row
in the lower one.

Rules run as programs of `kernels.interpreter`.
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
from evermat.engines.embedded.runtime import part, structure_of, tuple_of, void

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Rows
    from evermat.engines.embedded.kernels.layout import Numbers

    State = Any
    """A record of STATE, or of a state that begins like it; its fields are numbers."""

# -------------------------------------------------------------- what a call works on


class TriggerIndex(NamedTuple):
    """Which programs a change of a relation sets off.

    Attributes:
        relations: their addresses.
        starts: where the entries begin that each slot, a set of queries, has for
            positive changes, and for negative ones.
        entries: each a relation and which programs read its change: the first, the end.
        programs: the address of each, and the relation that it derives.
        work: how many rows each program has read, and how many matches it had.
    """

    relations: Numbers
    starts: Numbers
    entries: Numbers
    programs: Numbers
    work: Numbers


class Scratch(NamedTuple):
    """Room to work in, for facts as keys if nothing else is said.

    Attributes:
        candidates, delta: the facts of a round before and after they are admitted.
        found, spare: what rules derive, and room to sort it.
        rows: those of a change, one relation after the other.
        counts: how often each of the facts that were found was derived.
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
"""How much is used of the lists of candidates and of facts without a row; how many rows
may still be looked at, all matches so far, and whether derivations are counted."""

HALF = np.uint64(32)
LOWER = np.uint64(0xFFFFFFFF)
ONE = np.uint64(1)

KEYS = uint64[::1]
ROWS = int32[::1]
NUMBERS = int64[::1]
TABLE = int64[:, ::1]
STATE_TYPE = structure_of(STATE)[::1]
TRIGGERS = tuple_of(TriggerIndex, NUMBERS, NUMBERS, TABLE, TABLE, TABLE)
SCRATCH = tuple_of(Scratch, KEYS, KEYS, KEYS, KEYS, ROWS, ROWS, uint32[::1])


# --------------------------------------------------------------------------- facts


@inner_kernel(int64(NUMBERS, uint64))
def status_of(relations: Numbers, key: np.uint64) -> int:
    """The status of a fact."""
    status = read_number(relations[int64(key >> HALF)], STATUS)
    return int64(read_status(status, int64(key & LOWER)))


@inner_kernel(void(NUMBERS, uint64, int64, int64))
def set_status(relations: Numbers, key: np.uint64, ones: int, zeros: int) -> None:
    """Set some bits of the status of a fact and clear others."""
    status = read_number(relations[int64(key >> HALF)], STATUS)
    row = int64(key & LOWER)
    write_status(status, row, np.uint16((read_status(status, row) | ones) & ~zeros))


@kernel(void(NUMBERS, KEYS, int64, int64, int64, int64))
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


@kernel(int64(NUMBERS, KEYS, ROWS, TABLE))
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


@kernel(void(TABLE, ROWS, NUMBERS, KEYS))
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
    slot: int, positive: Numbers, negative: Numbers, triggers: TriggerIndex
) -> tuple[Numbers, Numbers]:
    """The programs that read what changed, as jobs and by number; see `derive`."""
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
    """Run some queries that read what changed, and count the heads if that matters.

    Args:
        slot: which queries.
        rows: what changed.
        positive: where the changed rows of each relation begin.
        negative: the same for rows that are changed the other way.
        visible: for each status the roles that may see it.
        triggers: what changes set off.
        scratch: room to work in.
        state: where the work is.

    Returns:
        The number of heads that have a row, or -1: there was no room. If they are
        counted, each is there once.
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
    """Set and clear bits of facts that are grouped by relation."""
    for number in range(relations.size):
        status = read_number(relations[number], STATUS)
        for i in range(starts[number], starts[number + 1]):
            row = int64(rows[i])
            new = (read_status(status, row) | ones) & ~zeros
            write_status(status, row, np.uint16(new))
