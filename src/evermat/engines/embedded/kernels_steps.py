"""Steps of programs, compiled: for one binding, and for a block of them at once.

What a program is made of is told here; `kernels_programs` runs them. Relations are
larger than the cache, so that one binding after the other would wait for one read after
the other. For a block, each step is taken by all of its members before the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels import (
    inner_kernel,
    int64,
    kernel,
    uint8,
    uint32,
    uint64,
)
from evermat.engines.embedded.kernels_lookups import (
    find_places,
    find_row,
    key_of,
    row_in_run,
)
from evermat.engines.embedded.layout import (
    FIRST_RUN,
    KEYS,
    ROOM,
    ROWS,
    RUNS,
    STATUS,
    TABLE,
)
from evermat.engines.embedded.raw import (
    prefetch,
    read_id,
    read_key,
    read_number,
    read_row,
    read_status,
)

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Places, Rows

# ----------------------------------------------------------- what a program is made of

STEPS, CONSTANTS, FIRST_OFFSET = 0, 1, 2
"""A program: how many steps and constants it has, then where each record begins: that
of the scan, those of the steps and that of the head. Constants follow: slot and id."""

RELATION, INDEX, SEEN_BY, KIND, KEY_SIZE, BINDS, CHECKS, OPERANDS = range(8)
"""A record: addresses of a relation and an index, the roles that may see a row (0 for
every row), its kind and three numbers. Then the slots of the key, and pairs of a
position and a slot: values to take from a row, and values that it must have."""

SCAN, BY_HALF, BY_KEY, REQUIRE, EXCLUDE, AGREE, DIFFER, HEAD = range(8)
"""Kinds of records. The key of the two before the last is two values to compare."""

IN_KEY = -1
"""Stands for the position that is the lower half of a key."""

BLOCK = 64
"""So many look-ups are prepared together."""

MOST_STEPS = 16
MOST_SLOTS = 64

_HALF = np.uint64(32)
_LOWER = np.uint64(0xFFFFFFFF)
_WORD = 8
_ROW = 4
_STATUS = 2


# ------------------------------------------------------------------ steps of a binding


@inner_kernel("uint64(int64, uint32[::1], int64, uint32[::1])")
def goal_of(record: int, values: Ids, own: int, ids: Ids) -> np.uint64:
    """The key that a record looks for; `ids` is given what it is made of.

    The values of a binding begin at the place `own`.
    """
    size = read_number(record, KEY_SIZE)
    for at in range(size):
        ids[at] = values[own + read_number(record, OPERANDS + at)]
    return key_of(ids, 0, size)


@inner_kernel("boolean(int64, int64, uint8[::1])")
def is_seen(record: int, row: int, visible: Flags) -> bool:
    """Whether a record may see a row."""
    seen_by = read_number(record, SEEN_BY)
    if seen_by == 0:
        return True
    status = read_number(read_number(record, RELATION), STATUS)
    return bool(visible[read_status(status, row)] & seen_by)


@inner_kernel("boolean(int64, int64, uint64, uint32[::1], int64)")
def take(record: int, row: int, key: np.uint64, values: Ids, own: int) -> bool:
    """Take values from a row; whether it has those that it must have."""
    relation = read_number(record, RELATION)
    table = read_number(relation, TABLE)
    room = read_number(relation, ROOM)
    at = OPERANDS + read_number(record, KEY_SIZE)
    for _ in range(read_number(record, BINDS)):
        position = read_number(record, at)
        slot = own + read_number(record, at + 1)
        if position == IN_KEY:
            values[slot] = uint32(key & _LOWER)
        else:
            values[slot] = read_id(table, position * room + row)
        at += 2
    for _ in range(read_number(record, CHECKS)):
        value = read_id(table, read_number(record, at) * room + row)
        if value != values[own + read_number(record, at + 1)]:
            return False
        at += 2
    return True


@inner_kernel("boolean(int64, int64, uint8[::1], uint32[::1], int64, uint32[::1])")
def passes(
    step: int, kind: int, visible: Flags, values: Ids, own: int, ids: Ids
) -> bool:
    """Whether a test is passed; `ids` is room."""
    if kind >= AGREE:
        left = values[own + read_number(step, OPERANDS)]
        right = values[own + read_number(step, OPERANDS + 1)]
        return bool((left == right) == (kind == AGREE))
    goal = goal_of(step, values, own, ids)
    relation = read_number(step, RELATION)
    index = read_number(step, INDEX)
    row = find_row(relation, index, read_number(step, KEY_SIZE), goal, ids, 0)
    there = row >= 0 and is_seen(step, row, visible)
    return bool(there == (kind == REQUIRE))


@inner_kernel("int64(int64, int64)")
def record_of(program: int, number: int) -> int:
    """Where a record of a program is; 0 is the scan."""
    return program + _WORD * read_number(program, FIRST_OFFSET + number)


@inner_kernel("boolean(int64)")
def is_idle(program: int) -> bool:
    """Whether a program finds nothing because a relation that it reads is empty."""
    for number in range(1, read_number(program, STEPS) + 1):
        step = record_of(program, number)
        is_empty = read_number(read_number(step, INDEX), RUNS) == 0
        if is_empty and read_number(step, KIND) <= REQUIRE:
            return True
    return False


# ------------------------------------------------------------------- a block of rows


@inner_kernel("int64(int64, int64)")
def _column(relation: int, position: int) -> int:
    """Where a column of a relation begins."""
    return read_number(relation, TABLE) + _ROW * position * read_number(relation, ROOM)


@inner_kernel("void(int64, uint32[::1], int64, int64[::1])")
def _fetch_rows(record: int, which: Ids, count: int, rows: Places) -> None:
    """Fetch what a record reads of the rows of members."""
    relation = read_number(record, RELATION)
    if read_number(record, SEEN_BY):
        status = read_number(relation, STATUS)
        for i in range(count):
            prefetch(status + _STATUS * rows[which[i]])
    at = OPERANDS + read_number(record, KEY_SIZE)
    for _ in range(read_number(record, BINDS) + read_number(record, CHECKS)):
        position = read_number(record, at)
        if position != IN_KEY:
            column = _column(relation, position)
            for i in range(count):
                prefetch(column + _ROW * rows[which[i]])
        at += 2


@inner_kernel("int64(int64, uint32[::1], int64, int64[::1], uint64[::1], uint32[::1])")
def _take_rows(
    record: int, which: Ids, count: int, rows: Places, keys: Keys, values: Ids
) -> int:
    """Do for the rows of members what `take` does for one; keep those that fit."""
    relation = read_number(record, RELATION)
    at = OPERANDS + read_number(record, KEY_SIZE)
    for _ in range(read_number(record, BINDS)):
        position = read_number(record, at)
        slot = uint32(read_number(record, at + 1))
        if position == IN_KEY:
            for i in range(count):
                own = MOST_SLOTS * which[i]
                values[own + slot] = uint32(keys[which[i]] & _LOWER)
        else:
            column = _column(relation, position)
            for i in range(count):
                own = MOST_SLOTS * which[i]
                values[own + slot] = read_id(column, rows[which[i]])
        at += 2
    for _ in range(read_number(record, CHECKS)):
        column = _column(relation, read_number(record, at))
        slot = uint32(read_number(record, at + 1))
        kept = int64(0)
        for i in range(count):
            member = which[i]
            which[kept] = member
            value = values[MOST_SLOTS * member + slot]
            kept += read_id(column, rows[member]) == value
        count = kept
        at += 2
    return count


@kernel(
    "int64(int64, int32[::1], int64[::1], uint32[::1], int64[::1], uint64[::1], "
    "uint32[::1])"
)
def scan(
    program: int,
    rows: Rows,
    members: Places,
    which: Ids,
    taken: Places,
    keys: Keys,
    values: Ids,
) -> int:
    """Take the values of some of the changed rows; of how many that fit.

    Each member of the block has its own part of `values`. Those that fit are put into
    `which`; the rest is room.
    """
    scan = record_of(program, 0)
    count = members.size
    for member in range(count):
        which[member] = member
        taken[member] = int64(rows[members[member]])
    _fetch_rows(scan, which, count, taken)
    at = FIRST_OFFSET + read_number(program, STEPS) + 2
    for _ in range(read_number(program, CONSTANTS)):
        slot = uint32(read_number(program, at))
        constant = uint32(read_number(program, at + 1))
        for member in range(count):
            values[MOST_SLOTS * member + slot] = constant
        at += 2
    return _take_rows(scan, which, count, taken, keys, values)


@inner_kernel("void(int64, uint32[::1], int64, uint32[::1], uint64[::1], uint32[::1])")
def _set_goals(
    record: int, which: Ids, count: int, values: Ids, goals: Keys, ids: Ids
) -> None:
    """Do for members what `goal_of` does for one."""
    size = read_number(record, KEY_SIZE)
    first = uint32(read_number(record, OPERANDS))
    if size == 1:
        for i in range(count):
            own = MOST_SLOTS * which[i]
            goals[which[i]] = uint64(values[own + first]) << _HALF
    elif size == 2:  # noqa: PLR2004  two ids fit into a key
        second = uint32(read_number(record, OPERANDS + 1))
        for i in range(count):
            own = MOST_SLOTS * which[i]
            upper = uint64(values[own + first]) << _HALF
            goals[which[i]] = upper | uint64(values[own + second])
    else:
        for i in range(count):
            goals[which[i]] = goal_of(record, values, MOST_SLOTS * which[i], ids)


@inner_kernel("int64(int64, int64, uint32[::1], int64, uint32[::1])")
def _leave_compared(step: int, kind: int, which: Ids, count: int, values: Ids) -> int:
    """Keep the members two of whose values agree, or differ."""
    left = uint32(read_number(step, OPERANDS))
    right = uint32(read_number(step, OPERANDS + 1))
    kept = int64(0)
    for i in range(count):
        member = which[i]
        own = MOST_SLOTS * member
        which[kept] = member
        kept += (values[own + left] == values[own + right]) == (kind == AGREE)
    return kept


@inner_kernel("int64(int64, boolean, uint8[::1], uint32[::1], int64, int64[::1])")
def _leave_seen(
    step: int,
    wanted: bool,  # noqa: FBT001  kernels have no keywords
    visible: Flags,
    which: Ids,
    count: int,
    rows: Places,
) -> int:
    """Keep the members whose row, if there is one, may be seen; or may not."""
    kept = int64(0)
    for i in range(count):
        member = which[i]
        which[kept] = member
        there = rows[member] >= 0 and is_seen(step, rows[member], visible)
        kept += there == wanted
    return kept


NOTHING, ONE, SOME = range(3)
"""What is known of the matches of a row: there is none; there is one, or one is enough;
nothing is known."""


@kernel(
    "int64(int64, int64, uint8[::1], uint8, uint32[::1], uint32[::1], uint8[::1], "
    "uint32[::1], uint64[:, ::1], int64[:, ::1])"
)
def look_ahead(
    program: int,
    count: int,
    visible: Flags,
    is_proof: int,
    which: Ids,
    values: Ids,
    outcomes: Flags,
    ids: Ids,
    keys: Keys,
    room: Places,
) -> int:
    """Find out what follows if each member of a block takes the first row that fits.

    Relations are larger than the cache: what is fetched for many members comes at
    once, and what is read for one of them after the other does not. For most members
    there is no other row, so that all is known then.

    Args:
        program: what is run.
        count: how many members there are.
        visible: for each status the roles that may see it.
        is_proof: whether one match is enough.
        which: the members.
        values: those of each member.
        outcomes: is given what is known of each member.
        ids: room for a fact.
        keys: two lines to work with.
        room: four lines to work with.

    Returns:
        How many rows were looked at.
    """
    goals, found = keys[0], keys[1]
    rows, firsts, lasts = room[0], room[1], room[2]
    steps = read_number(program, STEPS)
    looked_at = int64(0)
    # Until a member is found to have a choice, it is taken to have nothing.
    outcomes[:] = NOTHING
    for number in range(1, steps + 1):
        step = record_of(program, number)
        kind = read_number(step, KIND)
        if kind >= AGREE:
            count = _leave_compared(step, kind, which, count, values)
            continue
        relation = read_number(step, RELATION)
        index = read_number(step, INDEX)
        runs = read_number(index, RUNS)
        if runs == 0:
            # Nothing is excluded; `is_idle` knows of the other kinds.
            continue
        _set_goals(step, which, count, values, goals, ids)
        run = index + _WORD * FIRST_RUN
        by_half = uint8(kind == BY_HALF)
        find_places(run, by_half, goals, which, count, firsts, lasts, room[3])
        run_keys = read_number(run, KEYS)
        run_rows = read_number(run, ROWS)
        shift = _HALF if by_half else uint64(0)
        size = read_number(step, KEY_SIZE)
        is_hash = kind >= REQUIRE and size > 2  # noqa: PLR2004  two ids fit into a key
        kept = int64(0)
        for i in range(count):
            member = which[i]
            goal, place, end = goals[member], firsts[member], lasts[member]
            row = int64(-1)
            if is_hash:
                goal_of(step, values, MOST_SLOTS * member, ids)
                row = row_in_run(relation, run, goal, place, end, size, ids, 0)
            elif place < end:
                found[member] = read_key(run_keys, place)
                if found[member] >> shift == goal >> shift:
                    row = int64(read_row(run_rows, place))
            is_open = runs > 1 and (row < 0 or kind < REQUIRE)
            if kind < REQUIRE and row >= 0 and place + 1 < end:
                is_open |= read_key(run_keys, place + 1) >> shift == goal >> shift
            if is_open:
                outcomes[member] = SOME
            rows[member] = row
            which[kept] = member
            # Whether something is excluded by another run is not known either.
            kept += row >= 0 or (kind == EXCLUDE and runs == 1)
        count = kept
        if kind != EXCLUDE:
            _fetch_rows(step, which, count, rows)
            looked_at += count if kind < REQUIRE else 0
        count = _leave_seen(step, kind != EXCLUDE, visible, which, count, rows)
        count = _take_rows(step, which, count, rows, found, values)
    for i in range(count):
        if is_proof or outcomes[which[i]] == NOTHING:
            outcomes[which[i]] = ONE
    return looked_at
