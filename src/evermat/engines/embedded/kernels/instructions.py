"""The bytecode of queries, and its instructions, each for a block of bindings at once.

A *program* is the plan of a query as numbers, and a *record* in it is an instruction; a
*slot* is the register of a variable. `kernels.interpreter` runs programs. Relations are
larger than the cache: if bindings were processed one by one, each read would wait for
the one before it. For a block, all reads are prefetched, and the waits overlap.

A *level* is a block of bindings, its *members*. A join draws rows for the members of a
level, a block at a time, and these become the members of the level below.
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

# ---------------------------------------------------------------- layout of programs

STEPS, SLOTS, CONSTANTS, FIRST_OFFSET = range(4)
"""A program: the numbers of its steps, slots and constants, then the offset of each
record: the scan, the steps and the head. Then the constants, each a slot and an id."""

RELATION, INDEX, SEEN_BY, KIND, KEY_SIZE, BINDS, CHECKS, OPERANDS = range(8)
"""A record: the addresses of a relation and an index, the roles to which a row has to
be visible (0 for every row), the kind, and three lengths. Then the slots of the key,
and pairs of a column and a slot: values to bind from a row, and values to check."""

SCAN, BY_HALF, BY_KEY, REQUIRE, EXCLUDE, AGREE, DIFFER, HEAD = range(8)
"""Kinds of records. The key of AGREE and DIFFER is the two slots to compare."""

FOUND_BY = BINDS
"""In a record of kind HEAD: the step whose row is the head, or 0 if there is none."""

IN_KEY = -1
"""In place of a column: the lower half of the key of an index."""

BLOCK = 64
"""The number of bindings that are processed together."""

MOST_STEPS = 16
MOST_SLOTS = 64

_HALF = np.uint64(32)
_LOWER = np.uint64(0xFFFFFFFF)
_WORD = 8
_ROW = 4
_STATUS = 2

# ------------------------------------------------------------------ layout of levels

STEP, _COUNT, _RUN, _LIVE, _AT = range(5)
"""A level: the next step, and the number of members that are left. If that step is a
join: the run of the index that rows are drawn from, the number of members that may have
rows in it, and how many of these are done."""

_HEADER = 8
_ORIGINS = _WORD * _HEADER
"""For each member: the position of the row that it began with, …"""
_HEADS = _ORIGINS + _WORD * BLOCK
"""… the row of its head, if it has been found, …"""
_GOALS = _HEADS + _WORD * BLOCK
"""… the key that it seeks, …"""
_FIRSTS = _GOALS + _WORD * BLOCK
_LASTS = _FIRSTS + _WORD * BLOCK
"""… where its rows begin and end, …"""
_FOUND = _LASTS + _WORD * BLOCK
_FOUND_KEYS = _FOUND + _WORD * BLOCK
"""… and a row that was found, with its key."""
_ROOM = _FOUND_KEYS + _WORD * BLOCK
_WHICH = _ROOM + _WORD * BLOCK
"""The members that are left, …"""
_LIVING = _WHICH + _ROW * BLOCK
"""… and those that may have rows in the current run."""
_IDS = _LIVING + _ROW * BLOCK
_VALUES = _IDS + _ROW * MOST_SLOTS
"""The values of the first slot for all members, then those of the next slot."""
LEVEL_SIZE = _VALUES + _ROW * BLOCK * MOST_SLOTS
"""These are offsets in bytes from the address of a level, and this is its size."""


@inner_kernel("int64(int64, int64)")
def record_of(program: int, number: int) -> int:
    """Return the address of a record of a program; number 0 is the scan."""
    return program + _WORD * read_number(program, FIRST_OFFSET + number)


@inner_kernel("boolean(int64)")
def is_idle(program: int) -> bool:
    """Return whether a program has no matches because it reads an empty relation."""
    for number in range(1, read_number(program, STEPS) + 1):
        step = record_of(program, number)
        is_empty = read_number(read_number(step, INDEX), RUNS) == 0
        if is_empty and read_number(step, KIND) <= REQUIRE:
            return True
    return False


@inner_kernel("int64(int64)")
def count_joins(program: int) -> int:
    """Return the number of steps of a program that are joins."""
    joins = int64(0)
    for number in range(1, read_number(program, STEPS) + 1):
        joins += read_number(record_of(program, number), KIND) < REQUIRE
    return joins


@inner_kernel("uint32[::1](int64)")
def members_of(level: int) -> Ids:
    """Return the array of members that are left, of full size."""
    return ids_at(level + _WHICH, BLOCK)


@inner_kernel("int64[::1](int64)")
def heads_of(level: int) -> Places:
    """Return the array of the rows of heads, as far as a step has found them."""
    return numbers_at(level + _HEADS, BLOCK)


@inner_kernel("uint32[::1](int64)")
def _values_of(level: int) -> Ids:
    return ids_at(level + _VALUES, BLOCK * MOST_SLOTS)


# ------------------------------------------------------------------- rows of a block


@inner_kernel("int64(int64, int64)")
def _column(relation: int, position: int) -> int:
    """Return the address of a column of a relation."""
    return read_number(relation, TABLE) + _ROW * position * read_number(relation, ROOM)


@inner_kernel("void(int64, uint32[::1], int64, int64[::1])")
def _fetch_rows(record: int, which: Ids, count: int, rows: Places) -> None:
    """Prefetch what a record reads from the rows of members."""
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
    """Keep the members that have a visible row, or those that have none."""
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
    """Bind values from the rows of members; keep the members whose checks succeed.

    Returns the number of members that are left.
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
    """Fill a level with some of the changed rows; return how many of them match."""
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
    """Return the key that a member seeks; `ids` receives its parts."""
    size = read_number(record, KEY_SIZE)
    for at in range(size):
        ids[at] = values[BLOCK * read_number(record, OPERANDS + at) + member]
    return key_of(ids, 0, size)


@inner_kernel("void(int64, uint32[::1], int64, uint32[::1], uint64[::1], uint32[::1])")
def _set_goals(
    record: int, which: Ids, count: int, values: Ids, goals: Keys, ids: Ids
) -> None:
    """Compute the keys that all members seek, as `_goal_of` does for one."""
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
    """Keep the members for which two values agree, or differ; return their number."""
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
    """Find the rows of the facts that members test for; -1 if there is none."""
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
    """Run the tests that come before the next join, for all members of a level.

    Args:
        program: the address of the program.
        number: the number of the first step to run.
        count: the number of members that are left.
        level: the address of the level, which receives the step that follows.
        visible: for each status, the roles that may see it.

    Returns:
        The number of members that pass.
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
    """Prepare to draw the rows that the members of a level join with."""
    count = read_number(level, _COUNT)
    goals, ids = keys_at(level + _GOALS, BLOCK), ids_at(level + _IDS, MOST_SLOTS)
    _set_goals(step, members_of(level), count, _values_of(level), goals, ids)
    write_number(level, _RUN, -1)
    write_number(level, _LIVE, 0)
    write_number(level, _AT, 0)


@inner_kernel("boolean(int64, int64, uint8[::1])")
def _turn_to_next_run(step: int, level: int, proved: Flags) -> bool:
    """Look up the members of a level in the next run; return whether there is one.

    Members that are proved already are skipped.
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
    """Draw rows that members join with into the level below; return how many.

    In a search for proofs, each member that is not proved yet draws one row at a time.

    Args:
        step: the record of the join.
        slots: the number of slots of the program.
        level: the address of the level.
        proved: for each scanned row, whether it is proved; empty if all matches are
            needed.
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
            # More rows are drawn once it is known which members these have proved.
            write_number(level, _LIVE, kept)
            write_number(level, _AT, 0)
            if kept > 0 and size > 0:
                break
            continue
        if kept > 0:
            # The last member has more rows, and comes first next time.
            at -= 1
            living[at] = living[0]
        write_number(level, _AT, at)
    return size


@kernel("int64(int64, int64, int64, int64, uint8[::1])")
def take_drawn(step: int, is_head: int, count: int, level: int, visible: Flags) -> int:
    """Bind values from drawn rows that are visible and match; return how many do.

    Args:
        step: the record of the join.
        is_head: whether these are the rows of heads.
        count: the number of rows.
        level: the address of the level that they were drawn into.
        visible: for each status, the roles that may see it.
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
    """Append the heads of members to those that are waiting to be looked up."""
    which, values = members_of(level), _values_of(level)
    arity = read_number(head, KEY_SIZE)
    for a in range(arity):
        own = uint32(BLOCK * read_number(head, OPERANDS + a))
        for i in range(count):
            ids[arity * (waiting + i) + a] = values[own + which[i]]


@inner_kernel("int64(int64, int64, uint8[::1])")
def note_proofs(level: int, count: int, proved: Flags) -> int:
    """Record that the rows members began with are proved; return how many are new."""
    which, origins = members_of(level), numbers_at(level + _ORIGINS, BLOCK)
    new = int64(0)
    for i in range(count):
        origin = origins[which[i]]
        new += proved[origin] == 0
        proved[origin] = 1
    return new
