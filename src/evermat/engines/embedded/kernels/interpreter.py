"""The compiled loop that runs small queries, all that belong together in one call.

A query is a *program* here: numbers that say which columns to read, to compare and to
look up (`programs`). Relations and indexes are described by numbers as well, the
addresses of their arrays among them (`layout`), so that a call takes the same few
arguments however many arrays it reads.

A program is run on a block of rows at a time (`kernels.instructions`): what they join
with is another block, or several of them, one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.instructions import (
    BLOCK,
    FOUND_BY,
    INDEX,
    KEY_SIZE,
    LEVEL_SIZE,
    MOST_SLOTS,
    OPERANDS,
    RELATION,
    SLOTS,
    STEP,
    STEPS,
    begin_join,
    count_joins,
    draw,
    heads_of,
    is_idle,
    members_of,
    note_proofs,
    put_heads,
    record_of,
    scan,
    take_drawn,
    take_tests,
)
from evermat.engines.embedded.kernels.keys import (
    inner_kernel,
    int64,
    kernel,
    sort_keys,
    uint32,
    uint64,
)
from evermat.engines.embedded.kernels.layout import (
    STATUS,
    flags_at,
    ids_at,
    keys_at,
    number_lines_at,
    prefetch,
    read_number,
)
from evermat.engines.embedded.kernels.lookups import find_rows

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Places, Rows
    from evermat.engines.embedded.kernels.layout import Numbers

# ------------------------------------------------------------------- what is to be run

PROGRAM, LOW, HIGH, TARGET = range(4)
"""What to run: the address of a program, its part of the changed rows, and the number
of the relation that its heads belong to."""

READ, MATCHED = range(2)
"""What was done: how many changed rows were read, and how many matches there were."""

FACTS, FIRST_ID = OPERANDS, OPERANDS + 1
"""What follows a record of kind HEAD where facts are looked up."""

TOO_MUCH = -1
"""The result of a run that was given up."""

_HALF = np.uint64(32)
_WORD = 8
_ID = 4
_STATUS = 2

_ROOM = _ID * BLOCK * MOST_SLOTS
_KEYS = _ROOM + 4 * _WORD * BLOCK
_WHICH = _KEYS + _WORD * BLOCK
_DESK = _WHICH + _ID * BLOCK
"""Where the arrays are by which heads are looked up, in bytes from where heads wait,
and where the first level begins."""


# ----------------------------------------------------------------------- running it


@kernel(
    "UniTuple(int64, 2)(int64, int64, uint64, uint32[::1], uint64[::1], uint32[::1], "
    "int64, int64, uint64[::1], uint32[::1], int64[:, ::1])"
)
def _find_heads(
    head: int,
    size: int,
    target: np.uint64,
    ids: Ids,
    found: Keys,
    fresh: Ids,
    known: int,
    written: int,
    keys: Keys,
    which: Ids,
    room: Places,
) -> tuple[int, int]:
    """Look for the rows of heads; `found` and `fresh` have room for all of them.

    The last three are what `find_rows` works with.
    """
    if size == 0:
        return known, written
    arity = read_number(head, KEY_SIZE)
    relation = read_number(head, RELATION)
    index = read_number(head, INDEX)
    find_rows(relation, index, arity, ids, size, keys, which, room)
    rows = room[0]
    status = read_number(relation, STATUS)
    for i in range(size):
        if rows[i] >= 0:
            found[known] = (target << _HALF) | uint64(rows[i])
            known += 1
            prefetch(status + _STATUS * rows[i])
        else:
            fresh[written] = uint32(target)
            for a in range(arity):
                fresh[written + 1 + a] = ids[arity * i + a]
            written += arity + 1
    return known, written


@inner_kernel("int64(int64, int64, uint64, uint64[::1], int64)")
def _note_heads(
    level: int, count: int, target: np.uint64, found: Keys, known: int
) -> int:
    """Write down heads whose rows a step has found; how many there are then."""
    members, rows = members_of(level), heads_of(level)
    for i in range(count):
        found[known + i] = (target << _HALF) | uint64(rows[members[i]])
    return known + count


@kernel("int64(int64, int64, uint8[::1], int64[::1], int64)")
def _list_unproved(
    low: int, high: int, proved: Flags, unproved: Places, left: int
) -> int:
    """The places of rows that are not proved; how many.

    If they were listed before, so many were left then; otherwise that is negative.
    """
    if left < 0:
        left = high - low
        for i in range(left):
            unproved[i] = low + i
    if proved.size == 0:
        return left
    kept = int64(0)
    for i in range(left):
        place = unproved[i]
        unproved[kept] = place
        kept += not proved[place]
    return kept


@kernel(
    "UniTuple(int64, 3)(int64[:, ::1], int32[::1], uint8[::1], uint8[::1], "
    "uint64[::1], uint32[::1], int64, int64[:, ::1], int64)"
)
def match_programs(
    jobs: Numbers,
    rows: Rows,
    visible: Flags,
    proved: Flags,
    found: Keys,
    fresh: Ids,
    written: int,
    done: Numbers,
    patience: int,
) -> tuple[int, int, int]:
    """Run all programs; see `run_programs`.

    Returns:
        The number of heads that have a row, which are not distinct yet, or `TOO_MUCH`;
        how much of `fresh` is used, where `written` is used already; and what is left
        of the patience.
    """
    is_proof = proved.size > 0
    levels = int64(1)
    most = int64(0)
    for job in range(jobs.shape[0]):
        levels = max(levels, 1 + count_joins(jobs[job, PROGRAM]))
        most = max(most, jobs[job, HIGH] - jobs[job, LOW])
    desk = np.empty(_DESK + levels * LEVEL_SIZE, np.uint8)
    start = int64(desk.ctypes.data)
    heads = ids_at(start, BLOCK * MOST_SLOTS)
    room = number_lines_at(start + _ROOM, 4, BLOCK)
    keys, which = keys_at(start + _KEYS, BLOCK), ids_at(start + _WHICH, BLOCK)
    # Whoever is given parts of memory that hold nothing need not take hold of them.
    visible = flags_at(int64(visible.ctypes.data), visible.size)
    proved = flags_at(int64(proved.ctypes.data), proved.size)
    unproved = np.empty(most, np.int64)
    left = int64(0)
    known = int64(0)
    for job in range(jobs.shape[0]):
        program = jobs[job, PROGRAM]
        low, high = jobs[job, LOW], jobs[job, HIGH]
        is_next = is_proof and job > 0 and jobs[job - 1, LOW] == low
        left = _list_unproved(low, high, proved, unproved, left if is_next else -1)
        done[job, READ] = left
        done[job, MATCHED] = 0
        if is_idle(program):
            continue
        steps, slots = read_number(program, STEPS), read_number(program, SLOTS)
        head = record_of(program, steps + 1)
        arity = read_number(head, KEY_SIZE)
        found_by = read_number(head, FOUND_BY)
        target = uint64(jobs[job, TARGET])
        waiting = int64(0)
        for begin in range(0, left, BLOCK):
            members = unproved[begin : min(begin + BLOCK, left)]
            level, number, joining = start + _DESK, int64(0), int64(0)
            count = scan(program, rows, members, level)
            while True:
                count = take_tests(program, number + 1, count, level, visible)
                if read_number(level, STEP) <= steps and count > 0:
                    begin_join(record_of(program, read_number(level, STEP)), level)
                    joining += 1
                elif is_proof:
                    done[job, MATCHED] += note_proofs(level, count, proved)
                else:
                    done[job, MATCHED] += count
                    if waiting + count > BLOCK or found_by > 0:
                        if (
                            known + waiting + count > found.size
                            or written + (arity + 1) * waiting > fresh.size
                        ):
                            return int64(TOO_MUCH), written, patience
                        known, written = _find_heads(
                            head,
                            waiting,
                            target,
                            heads,
                            found,
                            fresh,
                            known,
                            written,
                            keys,
                            which,
                            room,
                        )
                        waiting = int64(0)
                    if found_by > 0:
                        known = _note_heads(level, count, target, found, known)
                    else:
                        put_heads(head, level, count, heads, waiting)
                        waiting += count
                count = int64(0)
                while joining > 0 and count == 0:
                    level = start + _DESK + LEVEL_SIZE * (joining - 1)
                    number = read_number(level, STEP)
                    count = draw(record_of(program, number), slots, level, proved)
                    joining -= count == 0
                if count == 0:
                    break
                patience -= count
                if patience < 0:
                    return int64(TOO_MUCH), written, patience
                level += LEVEL_SIZE
                step, is_head = record_of(program, number), number == found_by
                count = take_drawn(step, int64(is_head), count, level, visible)
        if known + waiting > found.size or written + (arity + 1) * waiting > fresh.size:
            return int64(TOO_MUCH), written, patience
        known, written = _find_heads(
            head,
            waiting,
            target,
            heads,
            found,
            fresh,
            known,
            written,
            keys,
            which,
            room,
        )
    # The desk is held until here; its parts do not hold it.
    desk[0] = 0
    return known, written, patience


@kernel("int64(int64, uint64[::1], uint64[::1], int32[::1])")
def tally(known: int, found: Keys, spare: Keys, counts: Rows) -> int:
    """Put heads that have a row in order and count equal ones; how many differ."""
    ordered = sort_keys(found[:known], spare[:known])
    size = int64(0)
    for i in range(known):
        if size > 0 and ordered[i] == found[size - 1]:
            counts[size - 1] += 1
        else:
            found[size] = ordered[i]
            counts[size] = 1
            size += 1
    return size


@kernel("int64(int64, int64, uint64[::1], uint64[::1], int32[::1], int64[::1])")
def _count(
    known: int, written: int, found: Keys, spare: Keys, counts: Rows, ends: Numbers
) -> int:
    """Count equal rows; returns how many there are; see `run_programs`."""
    size = tally(known, found, spare, counts)
    place = int64(0)
    for target in range(ends.size - 1):
        while place < size and int64(found[place] >> _HALF) <= target:
            place += 1
        ends[target] = place
    ends[ends.size - 1] = written
    return size


@kernel(
    "int64(int64[:, ::1], int32[::1], uint8[::1], uint8[::1], uint64[::1], "
    "uint64[::1], int32[::1], uint32[::1], int64[:, ::1], int64[::1], int64)"
)
def run_programs(
    jobs: Numbers,
    rows: Rows,
    visible: Flags,
    proved: Flags,
    found: Keys,
    spare: Keys,
    counts: Rows,
    fresh: Ids,
    done: Numbers,
    ends: Numbers,
    patience: int,
) -> int:
    """Run programs and count what they derive.

    Args:
        jobs: what to run, a line each.
        rows: the changed rows.
        visible: for each status the roles that may see it, a bit each.
        proved: for each of the rows whether it was derived, where nothing else is
            wanted: all programs derive the facts that they scan, and each fact is left
            alone as soon as it has a derivation. Without elements, heads are wanted.
        found: is given the heads that have a row, distinct and in order: the number
            of the relation in the upper half, the row in the lower one.
        spare: as much room again.
        counts: is given how often each of them was derived.
        fresh: is given the others: each the number of the relation, then the ids.
        done: is given what was done for each job.
        ends: is given the place in `found` where each relation ends, and last of all
            how much of `fresh` is used.
        patience: how many rows may be looked at.

    Returns:
        The number of distinct heads that have a row; or `TOO_MUCH`, where there is no
        room for more or patience ran out. Then nothing has changed.
    """
    known, written, _ = match_programs(
        jobs, rows, visible, proved, found, fresh, int64(0), done, patience
    )
    if known < 0:
        return int64(TOO_MUCH)
    return _count(known, written, found, spare, counts, ends)


@kernel(
    "int64(int64[:, ::1], uint32[::1], uint64[::1], uint64[::1], int32[::1], "
    "uint32[::1], int64[::1])"
)
def find_facts(
    lines: Numbers,
    ids: Ids,
    found: Keys,
    spare: Keys,
    counts: Rows,
    fresh: Ids,
    ends: Numbers,
) -> int:
    """Find the rows of facts of several relations.

    Args:
        lines: for each relation a record of kind HEAD, then how many facts there are
            and where their ids begin, which are given by column.
        ids: of all facts.
        found: is given what is found, as by `run_programs`; the rest likewise.
        spare: as much room again.
        counts: is given how often each fact was asked for.
        fresh: is given facts that have no row.
        ends: is given where each relation ends.

    Returns:
        The number of distinct facts that have a row.
    """
    known = int64(0)
    written = int64(0)
    facts = np.empty(BLOCK * MOST_SLOTS, np.uint32)
    keys = np.empty(BLOCK, np.uint64)
    which = np.empty(BLOCK, np.uint32)
    room = np.empty((4, BLOCK), np.int64)
    for line in range(lines.shape[0]):
        head = int64(lines[line].ctypes.data)
        arity = lines[line, KEY_SIZE]
        count = lines[line, FACTS]
        start = lines[line, FIRST_ID]
        for low in range(0, count, BLOCK):
            size = min(BLOCK, count - low)
            for column in range(arity):
                for i in range(size):
                    at = start + column * count + low + i
                    facts[arity * i + column] = ids[at]
            known, written = _find_heads(
                head,
                size,
                uint64(line),
                facts,
                found,
                fresh,
                known,
                written,
                keys,
                which,
                room,
            )
    return _count(known, written, found, spare, counts, ends)
