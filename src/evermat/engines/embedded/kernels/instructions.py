"""Steps of programs, compiled: each is taken by a block of bindings at once.

What a program is made of is told here; `kernels.interpreter` runs them. Relations are
larger than the cache, so that one binding after the other would wait for one read after
the other. What is fetched for a whole block comes at once.

A block of bindings is a *level*. The rows that the members of a level join with are
drawn, some at a time, and become the members of the level below it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.keys import (
    inner_kernel,
    int64,
    kernel,
    uint8,
    uint32,
    uint64,
)
from evermat.engines.embedded.kernels.layout import (
    ARITY_OF_RUN,
    FIRST_RUN,
    KEYS,
    ROOM,
    ROWS,
    RUNS,
    STATUS,
    TABLE,
    ids_at,
    keys_at,
    numbers_at,
    prefetch,
    read_id,
    read_key,
    read_number,
    read_row,
    read_status,
    write_number,
)
from evermat.engines.embedded.kernels.lookups import (
    find_places,
    half_of_fact,
    key_of,
    row_in_run,
)

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Places, Rows

# ----------------------------------------------------------- what a program is made of

STEPS, SLOTS, CONSTANTS, FIRST_OFFSET = range(4)
"""A program: how many steps, slots and constants it has, then where each record begins:
that of the scan, those of the steps and that of the head. Constants follow: slot and
id."""

RELATION, INDEX, SEEN_BY, KIND, KEY_SIZE, BINDS, CHECKS, OPERANDS = range(8)
"""A record: addresses of a relation and an index, the roles that may see a row (0 for
every row), its kind and three numbers. Then the slots of the key, and pairs of a
position and a slot: values to take from a row, and values that it must have."""

SCAN, BY_HALF, BY_KEY, REQUIRE, EXCLUDE, AGREE, DIFFER, HEAD = range(8)
"""Kinds of records. The key of the two before the last is two values to compare."""

FOUND_BY = BINDS
"""Of a record of kind HEAD: the step whose row is the head, or 0 if there is none."""

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

# ------------------------------------------------------------- what a level is made of

STEP, _COUNT, _RUN, _LIVE, _AT = range(5)
"""A level: the step that comes next, and how many members it is for. Where that step
joins, the run of its index that rows are drawn from, how many members may have rows
there, and how many of them have been asked already."""

_HEADER = 8
_ORIGINS = _WORD * _HEADER
"""Of each member: the place of the row that it began with, …"""
_HEADS = _ORIGINS + _WORD * BLOCK
"""… the row of its head, if it has been found, …"""
_GOALS = _HEADS + _WORD * BLOCK
"""… the key that is looked for, …"""
_FIRSTS = _GOALS + _WORD * BLOCK
_LASTS = _FIRSTS + _WORD * BLOCK
"""… where its rows begin and end, …"""
_FOUND = _LASTS + _WORD * BLOCK
_FOUND_KEYS = _FOUND + _WORD * BLOCK
"""… and a row that was found, with its key."""
_ROOM = _FOUND_KEYS + _WORD * BLOCK
_WHICH = _ROOM + _WORD * BLOCK
"""The members that are left."""
_LIVING = _WHICH + _ROW * BLOCK
"""Those that may have rows in a run."""
_IDS = _LIVING + _ROW * BLOCK
_VALUES = _IDS + _ROW * MOST_SLOTS
"""The values of the first slot for all members, then those of the next one."""
LEVEL_SIZE = _VALUES + _ROW * BLOCK * MOST_SLOTS
"""Where all of it begins, in bytes from the address of a level, and its size."""


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


@inner_kernel("int64(int64)")
def count_joins(program: int) -> int:
    """How many steps of a program join."""
    joins = int64(0)
    for number in range(1, read_number(program, STEPS) + 1):
        joins += read_number(record_of(program, number), KIND) < REQUIRE
    return joins


@inner_kernel("uint32[::1](int64)")
def members_of(level: int) -> Ids:
    """The members of a level that are left, with room for all of them."""
    return ids_at(level + _WHICH, BLOCK)


@inner_kernel("int64[::1](int64)")
def heads_of(level: int) -> Places:
    """The rows of the heads of all members, where a step has found them."""
    return numbers_at(level + _HEADS, BLOCK)


@inner_kernel("uint32[::1](int64)")
def _values_of(level: int) -> Ids:
    return ids_at(level + _VALUES, BLOCK * MOST_SLOTS)


# ------------------------------------------------------------------- rows of a block


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


@inner_kernel("int64(int64, boolean, uint8[::1], uint32[::1], int64, int64[::1])")
def _leave_seen(
    record: int,
    wanted: bool,  # noqa: FBT001  kernels have no keywords
    visible: Flags,
    which: Ids,
    count: int,
    rows: Places,
) -> int:
    """Keep the members whose row, if there is one, may be seen; or may not."""
    seen_by = read_number(record, SEEN_BY)
    status = read_number(read_number(record, RELATION), STATUS)
    kept = int64(0)
    for i in range(count):
        member = which[i]
        row = rows[member]
        there = row >= 0
        if there and seen_by != 0:
            there = (visible[read_status(status, row)] & seen_by) != 0
        which[kept] = member
        kept += there == wanted
    return kept


@inner_kernel("int64(int64, uint32[::1], int64, int64[::1], uint64[::1], uint32[::1])")
def _take_rows(
    record: int, which: Ids, count: int, rows: Places, keys: Keys, values: Ids
) -> int:
    """Take values from the rows of members; keep those that have what they must have.

    Returns how many they are.
    """
    relation = read_number(record, RELATION)
    at = OPERANDS + read_number(record, KEY_SIZE)
    for _ in range(read_number(record, BINDS)):
        position = read_number(record, at)
        own = uint32(BLOCK * read_number(record, at + 1))
        if position == IN_KEY:
            for i in range(count):
                values[own + which[i]] = uint32(keys[which[i]] & _LOWER)
        else:
            column = _column(relation, position)
            for i in range(count):
                values[own + which[i]] = read_id(column, rows[which[i]])
        at += 2
    for _ in range(read_number(record, CHECKS)):
        column = _column(relation, read_number(record, at))
        own = uint32(BLOCK * read_number(record, at + 1))
        kept = int64(0)
        for i in range(count):
            member = which[i]
            which[kept] = member
            kept += read_id(column, rows[member]) == values[own + member]
        count = kept
        at += 2
    return count


@kernel("int64(int64, int32[::1], int64[::1], int64)")
def scan(program: int, rows: Rows, members: Places, level: int) -> int:
    """Make a level of some of the changed rows; of how many that fit."""
    record = record_of(program, 0)
    count = members.size
    which = members_of(level)
    origins = numbers_at(level + _ORIGINS, BLOCK)
    taken = numbers_at(level + _FOUND, BLOCK)
    values = _values_of(level)
    for member in range(count):
        which[member] = member
        origins[member] = members[member]
        taken[member] = int64(rows[members[member]])
    _fetch_rows(record, which, count, taken)
    at = FIRST_OFFSET + read_number(program, STEPS) + 2
    for _ in range(read_number(program, CONSTANTS)):
        own = BLOCK * read_number(program, at)
        constant = uint32(read_number(program, at + 1))
        for member in range(count):
            values[own + member] = constant
        at += 2
    keys = keys_at(level + _FOUND_KEYS, BLOCK)
    return _take_rows(record, which, count, taken, keys, values)


# ------------------------------------------------------------------------------ tests


@inner_kernel("uint64(int64, uint32[::1], uint32, uint32[::1])")
def _goal_of(record: int, values: Ids, member: int, ids: Ids) -> np.uint64:
    """The key that a record looks for; `ids` is given what it is made of."""
    size = read_number(record, KEY_SIZE)
    for at in range(size):
        ids[at] = values[BLOCK * read_number(record, OPERANDS + at) + member]
    return key_of(ids, 0, size)


@inner_kernel("void(int64, uint32[::1], int64, uint32[::1], uint64[::1], uint32[::1])")
def _set_goals(
    record: int, which: Ids, count: int, values: Ids, goals: Keys, ids: Ids
) -> None:
    """Do for members what `_goal_of` does for one."""
    size = read_number(record, KEY_SIZE)
    first = uint32(BLOCK * read_number(record, OPERANDS))
    if size == 1:
        for i in range(count):
            goals[which[i]] = uint64(values[first + which[i]]) << _HALF
    elif size == 2:  # noqa: PLR2004  two ids fit into a key
        second = uint32(BLOCK * read_number(record, OPERANDS + 1))
        for i in range(count):
            upper = uint64(values[first + which[i]]) << _HALF
            goals[which[i]] = upper | uint64(values[second + which[i]])
    else:
        for i in range(count):
            goals[which[i]] = _goal_of(record, values, which[i], ids)


@inner_kernel("int64(int64, int64, uint32[::1], int64, uint32[::1])")
def _leave_compared(step: int, kind: int, which: Ids, count: int, values: Ids) -> int:
    """Keep the members two of whose values agree, or differ."""
    left = uint32(BLOCK * read_number(step, OPERANDS))
    right = uint32(BLOCK * read_number(step, OPERANDS + 1))
    kept = int64(0)
    for i in range(count):
        member = which[i]
        which[kept] = member
        kept += (values[left + member] == values[right + member]) == (kind == AGREE)
    return kept


@inner_kernel("void(int64, int64, int64)")
def _find_same(step: int, count: int, level: int) -> None:
    """Find the rows of the facts that members test for, or -1."""
    which, sought = members_of(level), ids_at(level + _LIVING, BLOCK)
    values, ids = _values_of(level), ids_at(level + _IDS, MOST_SLOTS)
    goals = keys_at(level + _GOALS, BLOCK)
    rows = numbers_at(level + _FOUND, BLOCK)
    firsts, lasts = (
        numbers_at(level + _FIRSTS, BLOCK),
        numbers_at(level + _LASTS, BLOCK),
    )
    room = numbers_at(level + _ROOM, BLOCK)
    size = read_number(step, KEY_SIZE)
    relation = read_number(step, RELATION)
    index = read_number(step, INDEX)
    _set_goals(step, which, count, values, goals, ids)
    for i in range(count):
        rows[which[i]] = -1
        sought[i] = which[i]
    run = index + _WORD * FIRST_RUN
    for _ in range(read_number(index, RUNS)):
        half = half_of_fact(size)
        find_places(run, half, goals, sought, count, firsts, lasts, room)
        left = int64(0)
        for i in range(count):
            at = sought[i]
            if size > 2:  # noqa: PLR2004  two ids fit into a key
                _goal_of(step, values, at, ids)
            rows[at] = row_in_run(
                relation, run, goals[at], firsts[at], lasts[at], size, ids, 0
            )
            sought[left] = at
            left += rows[at] < 0
        count = left
        run += _WORD * ARITY_OF_RUN


@kernel("int64(int64, int64, int64, int64, uint8[::1])")
def take_tests(
    program: int, number: int, count: int, level: int, visible: Flags
) -> int:
    """Have the members of a level take the steps before the next that joins.

    Args:
        program: what is run.
        number: of the first step to be taken.
        count: how many members are left.
        level: where they are; it is given the step that follows.
        visible: for each status the roles that may see it.

    Returns:
        How many members are left.
    """
    steps = read_number(program, STEPS)
    found_by = read_number(record_of(program, steps + 1), FOUND_BY)
    which, values = members_of(level), _values_of(level)
    rows, heads = numbers_at(level + _FOUND, BLOCK), heads_of(level)
    while number <= steps and count > 0:
        step = record_of(program, number)
        kind = read_number(step, KIND)
        if kind < REQUIRE:
            break
        if kind >= AGREE:
            count = _leave_compared(step, kind, which, count, values)
        else:
            _find_same(step, count, level)
            if kind == REQUIRE:
                kept = int64(0)
                for i in range(count):
                    which[kept] = which[i]
                    kept += rows[which[i]] >= 0
                count = kept
                _fetch_rows(step, which, count, rows)
            count = _leave_seen(step, kind == REQUIRE, visible, which, count, rows)
            if number == found_by:
                for i in range(count):
                    heads[which[i]] = rows[which[i]]
        number += 1
    write_number(level, STEP, number)
    write_number(level, _COUNT, count)
    return count


# ------------------------------------------------------------------------------ joins


@kernel("void(int64, int64)")
def begin_join(step: int, level: int) -> None:
    """Get ready to draw the rows that the members of a level join with."""
    count = read_number(level, _COUNT)
    goals, ids = keys_at(level + _GOALS, BLOCK), ids_at(level + _IDS, MOST_SLOTS)
    _set_goals(step, members_of(level), count, _values_of(level), goals, ids)
    write_number(level, _RUN, -1)
    write_number(level, _LIVE, 0)
    write_number(level, _AT, 0)


@inner_kernel("boolean(int64, int64, uint8[::1])")
def _turn_to_next_run(step: int, level: int, proved: Flags) -> bool:
    """Look for the members of a level in another run; whether there is one.

    Those that are proved already are left alone.
    """
    index = read_number(step, INDEX)
    number = read_number(level, _RUN) + 1
    if number >= read_number(index, RUNS):
        return False
    which, living = members_of(level), ids_at(level + _LIVING, BLOCK)
    origins = numbers_at(level + _ORIGINS, BLOCK)
    live = int64(0)
    for i in range(read_number(level, _COUNT)):
        living[live] = which[i]
        live += proved.size == 0 or proved[origins[which[i]]] == 0
    run = index + _WORD * (FIRST_RUN + ARITY_OF_RUN * number)
    find_places(
        run,
        uint8(read_number(step, KIND) == BY_HALF),
        keys_at(level + _GOALS, BLOCK),
        living,
        live,
        numbers_at(level + _FIRSTS, BLOCK),
        numbers_at(level + _LASTS, BLOCK),
        numbers_at(level + _ROOM, BLOCK),
    )
    write_number(level, _RUN, number)
    write_number(level, _LIVE, live)
    write_number(level, _AT, 0)
    return True


@kernel("int64(int64, int64, int64, uint8[::1])")
def draw(step: int, slots: int, level: int, proved: Flags) -> int:
    """Make the level below of rows that members join with; of how many, or 0.

    Members that want a proof each draw one row at a time, unless they are proved.

    Args:
        step: the record of the join.
        slots: how many values members have.
        level: where the members are.
        proved: for each row that was scanned whether it is proved; or nothing.
    """
    is_proof = proved.size > 0
    below = level + LEVEL_SIZE
    living = ids_at(level + _LIVING, BLOCK)
    values, new_values = _values_of(level), _values_of(below)
    origins = numbers_at(level + _ORIGINS, BLOCK)
    new_origins = numbers_at(below + _ORIGINS, BLOCK)
    heads, new_heads = heads_of(level), heads_of(below)
    goals = keys_at(level + _GOALS, BLOCK)
    firsts, lasts = (
        numbers_at(level + _FIRSTS, BLOCK),
        numbers_at(level + _LASTS, BLOCK),
    )
    found, found_keys = (
        numbers_at(below + _FOUND, BLOCK),
        keys_at(below + _FOUND_KEYS, BLOCK),
    )
    which = members_of(below)
    shift = _HALF if read_number(step, KIND) == BY_HALF else uint64(0)
    runs = read_number(step, INDEX) + _WORD * FIRST_RUN
    size = int64(0)
    while size < BLOCK:
        live, at = read_number(level, _LIVE), read_number(level, _AT)
        if at == live:
            if size > 0 and is_proof:
                break
            if not _turn_to_next_run(step, level, proved):
                break
            continue
        run = runs + _WORD * ARITY_OF_RUN * read_number(level, _RUN)
        keys, rows = read_number(run, KEYS), read_number(run, ROWS)
        kept = int64(0)
        while at < live and size < BLOCK:
            member = living[at]
            at += 1
            place, end = firsts[member], lasts[member]
            goal = goals[member] >> shift
            most = size + 1 if is_proof else int64(BLOCK)
            if is_proof and proved[origins[member]]:
                continue
            while place < end:
                key = read_key(keys, place)
                if key >> shift != goal:
                    place = end
                    break
                if size == most:
                    break
                which[size] = size
                new_origins[size] = origins[member]
                new_heads[size] = heads[member]
                found[size] = int64(read_row(rows, place))
                found_keys[size] = key
                for slot in range(slots):
                    new_values[BLOCK * slot + size] = values[BLOCK * slot + member]
                size += 1
                place += 1
            if place < end:
                firsts[member] = place
                living[kept] = member
                kept += 1
        if is_proof:
            # The next rows are drawn when it is known who is proved by these.
            write_number(level, _LIVE, kept)
            write_number(level, _AT, 0)
            if kept > 0 and size > 0:
                break
            continue
        if kept > 0:
            # The last one has more rows, and is asked again.
            at -= 1
            living[at] = living[0]
        write_number(level, _AT, at)
    return size


@kernel("int64(int64, int64, int64, int64, uint8[::1])")
def take_drawn(step: int, is_head: int, count: int, level: int, visible: Flags) -> int:
    """Take values from the rows that were drawn, where they fit; from how many.

    Args:
        step: the record of the join.
        is_head: whether the rows are those of heads.
        count: how many rows there are.
        level: where they are.
        visible: for each status the roles that may see it.
    """
    which, values = members_of(level), _values_of(level)
    rows, keys = numbers_at(level + _FOUND, BLOCK), keys_at(level + _FOUND_KEYS, BLOCK)
    _fetch_rows(step, which, count, rows)
    count = _leave_seen(step, True, visible, which, count, rows)  # noqa: FBT003
    count = _take_rows(step, which, count, rows, keys, values)
    if is_head:
        heads = heads_of(level)
        for i in range(count):
            heads[which[i]] = rows[which[i]]
    return count


# ---------------------------------------------------------------------------- results


@inner_kernel("void(int64, int64, int64, uint32[::1], int64)")
def put_heads(head: int, level: int, count: int, ids: Ids, waiting: int) -> None:
    """Write down the heads of members, behind those that are waiting already."""
    which, values = members_of(level), _values_of(level)
    arity = read_number(head, KEY_SIZE)
    for a in range(arity):
        own = uint32(BLOCK * read_number(head, OPERANDS + a))
        for i in range(count):
            ids[arity * (waiting + i) + a] = values[own + which[i]]


@inner_kernel("int64(int64, int64, uint8[::1])")
def note_proofs(level: int, count: int, proved: Flags) -> int:
    """Note that what members began with is proved; for how many that is new."""
    which, origins = members_of(level), numbers_at(level + _ORIGINS, BLOCK)
    new = int64(0)
    for i in range(count):
        origin = origins[which[i]]
        new += proved[origin] == 0
        proved[origin] = 1
    return new
