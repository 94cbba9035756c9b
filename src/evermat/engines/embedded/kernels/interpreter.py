"""The bytecode interpreter for small queries; one call runs several programs.

A *program* is a query as numbers, which say what columns to read, compare and look up
(`programs`). Relations and indexes are described by numbers as well, which include the
addresses of their arrays (`layout`), so a call takes the same few arguments whatever
arrays it reads.

Programs run on blocks of rows (`kernels.instructions`), depth first: each block that a
join draws runs through the remaining steps before the next block is drawn.
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

# --------------------------------------------------------------------- layout of jobs

PROGRAM, LOW, HIGH, TARGET = range(4)
"""A job: the address of a program, its range of the changed rows, and the number of the
relation of its heads."""

READ, MATCHED = range(2)
"""The work of a job: the number of changed rows read, and of matches."""

FACTS, FIRST_ID = OPERANDS, OPERANDS + 1
"""Fields that follow a record of kind HEAD in `find_facts`."""

TOO_MUCH = -1
"""The result of a run that exceeded its limit or its buffers."""

_HALF = np.uint64(32)
_WORD = 8
_ID = 4
_STATUS = 2

_ROOM = _ID * BLOCK * MOST_SLOTS
_KEYS = _ROOM + 4 * _WORD * BLOCK
_WHICH = _KEYS + _WORD * BLOCK
_FIRST_LEVEL = _WHICH + _ID * BLOCK
"""Offsets in bytes, from the heads that are waiting: the arrays for looking them up,
and the first level."""


# --------------------------------------------------------------------- running jobs


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
    """Look up the rows of heads; append them to `found`, and the rest to `fresh`.

    Both have room for all heads. The last three arguments are buffers of `find_rows`.
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
    """Append heads whose rows a step has found; return the new length of `found`."""
    members, rows = members_of(level), heads_of(level)
    for i in range(count):
        found[known + i] = (target << _HALF) | uint64(rows[members[i]])
    return known + count


@kernel("int64(int64, int64, uint8[::1], int64[::1], int64)")
def _list_unproved(
    low: int, high: int, proved: Flags, unproved: Places, left: int
) -> int:
    """List the positions of rows that are not proved; return their number.

    `left` is the length of the existing list, or negative if there is none.
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
    rows_left: int,
) -> tuple[int, int, int]:
    """Run all jobs; see `run_programs`.

    `written` is the part of `fresh` that is in use already, `rows_left` the number of
    rows that joins may visit.

    Returns:
        The number of heads that have a row, which are not distinct yet, or `TOO_MUCH`;
        how much of `fresh` is used; and the rest of `rows_left`.
    """
    is_proof = proved.size > 0
    levels = int64(1)
    most = int64(0)
    for job in range(jobs.shape[0]):
        levels = max(levels, 1 + count_joins(jobs[job, PROGRAM]))
        most = max(most, jobs[job, HIGH] - jobs[job, LOW])
    workspace = np.empty(_FIRST_LEVEL + levels * LEVEL_SIZE, np.uint8)
    start = int64(workspace.ctypes.data)
    heads = ids_at(start, BLOCK * MOST_SLOTS)
    room = number_lines_at(start + _ROOM, 4, BLOCK)
    keys, which = keys_at(start + _KEYS, BLOCK), ids_at(start + _WHICH, BLOCK)
    # Views of plain addresses: passing them on needs no reference counting.
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
            level, number, joining = start + _FIRST_LEVEL, int64(0), int64(0)
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
                            return int64(TOO_MUCH), written, rows_left
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
                    level = start + _FIRST_LEVEL + LEVEL_SIZE * (joining - 1)
                    number = read_number(level, STEP)
                    count = draw(record_of(program, number), slots, level, proved)
                    joining -= count == 0
                if count == 0:
                    break
                rows_left -= count
                if rows_left < 0:
                    return int64(TOO_MUCH), written, rows_left
                level += LEVEL_SIZE
                step, is_head = record_of(program, number), number == found_by
                count = take_drawn(step, int64(is_head), count, level, visible)
        if known + waiting > found.size or written + (arity + 1) * waiting > fresh.size:
            return int64(TOO_MUCH), written, rows_left
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
    # Keep the workspace alive until here: the arrays that lie in it do not refer to it.
    workspace[0] = 0
    return known, written, rows_left


@kernel("int64(int64, uint64[::1], uint64[::1], int32[::1])")
def tally(known: int, found: Keys, spare: Keys, counts: Rows) -> int:
    """Sort heads and count equal ones; return the number of distinct heads."""
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
    """Count equal heads and find where relations end; see `run_programs`."""
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
    rows_left: int,
) -> int:
    """Run programs and count the derivations of each head.

    Args:
        jobs: the jobs, a line each.
        rows: the changed rows.
        visible: for each status, the roles that may see it, a bit each.
        proved: empty, or receives for each row whether it has a derivation. In that
            case no heads are produced: the programs derive the facts that they scan,
            and each fact is skipped once it has a derivation.
        found: receives the heads that have a row, sorted and distinct: the number of
            the relation in the upper half, the row in the lower half.
        spare: a buffer of the same size.
        counts: receives the number of derivations of each of these heads.
        fresh: receives the other heads, each as the number of the relation and the ids.
        done: receives the work of each job.
        ends: receives the end of each relation in `found`, and in its last element how
            much of `fresh` is used.
        rows_left: the number of rows that joins may visit.

    Returns:
        The number of distinct heads that have a row; or `TOO_MUCH`, if the buffers or
        `rows_left` do not suffice, in which case the results are not to be used.
    """
    known, written, _ = match_programs(
        jobs, rows, visible, proved, found, fresh, int64(0), done, rows_left
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
    """Look up the rows of facts of several relations.

    Args:
        lines: for each relation, a record of kind HEAD, the number of facts, and the
            position at which their ids begin, column by column.
        ids: the ids of all facts.
        found: receives the facts that have a row, in the form of `run_programs`.
        spare: a buffer of the same size.
        counts: receives the number of occurrences of each of these facts.
        fresh: receives the facts that have no row.
        ends: receives the ends of relations, in the form of `run_programs`.

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
