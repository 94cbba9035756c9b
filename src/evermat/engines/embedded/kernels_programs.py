"""The compiled loop that runs small queries, all that belong together in one call.

A query is a *program* here: numbers that say which columns to read, to compare and to
look up (`programs`). Relations and indexes are described by numbers as well, the
addresses of their arrays among them (`layout`), so that a call takes the same few
arguments however many arrays it reads. Programs run one binding at a time, by nested
loops: for few rows, what costs is not the loop but what happens around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels import (
    inner_kernel,
    int64,
    kernel,
    sort_keys,
    uint8,
    uint32,
    uint64,
)
from evermat.engines.embedded.kernels_lookups import (
    find_places,
    find_row,
    find_rows,
    key_of,
    part_of_run,
    row_in_run,
)
from evermat.engines.embedded.layout import (
    ARITY_OF_RUN,
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
    from evermat.engines.embedded.layout import Numbers

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
_LOWER = np.uint64(0xFFFFFFFF)
_WORD = 8
_ROW = 4
_STATUS = 2


# ------------------------------------------------------------------- steps of a run


@inner_kernel("uint64(int64, uint32[::1], int64, uint32[::1])")
def _goal(record: int, values: Ids, own: int, ids: Ids) -> np.uint64:
    """The key that a record looks for; `ids` is given what it is made of.

    The values of a binding begin at the place `own`.
    """
    size = read_number(record, KEY_SIZE)
    for at in range(size):
        ids[at] = values[own + read_number(record, OPERANDS + at)]
    return key_of(ids, 0, size)


@inner_kernel("boolean(int64, int64, uint8[::1])")
def _is_seen(record: int, row: int, visible: Flags) -> bool:
    seen_by = read_number(record, SEEN_BY)
    if seen_by == 0:
        return True
    status = read_number(read_number(record, RELATION), STATUS)
    return bool(visible[read_status(status, row)] & seen_by)


@inner_kernel("boolean(int64, int64, uint64, uint32[::1], int64)")
def _take(record: int, row: int, key: np.uint64, values: Ids, own: int) -> bool:
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
def _passes(
    step: int, kind: int, visible: Flags, values: Ids, own: int, ids: Ids
) -> bool:
    """Whether a test is passed; `ids` is room."""
    if kind >= AGREE:
        left = values[own + read_number(step, OPERANDS)]
        right = values[own + read_number(step, OPERANDS + 1)]
        return bool((left == right) == (kind == AGREE))
    goal = _goal(step, values, own, ids)
    relation = read_number(step, RELATION)
    index = read_number(step, INDEX)
    row = find_row(relation, index, read_number(step, KEY_SIZE), goal, ids, 0)
    there = row >= 0 and _is_seen(step, row, visible)
    return bool(there == (kind == REQUIRE))


@inner_kernel("int64(int64, int64)")
def _record(program: int, number: int) -> int:
    """Where a record of a program is; 0 is the scan."""
    return program + _WORD * read_number(program, FIRST_OFFSET + number)


@inner_kernel("boolean(int64)")
def _is_idle(program: int) -> bool:
    """Whether a program finds nothing because a relation that it reads is empty."""
    for number in range(1, read_number(program, STEPS) + 1):
        step = _record(program, number)
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
    """Do for the rows of members what `_take` does for one; keep those that fit."""
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
def _scan(
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
    scan = _record(program, 0)
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
    """Do for members what `_goal` does for one."""
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
            goals[which[i]] = _goal(record, values, MOST_SLOTS * which[i], ids)


NOTHING, ONE, SOME = range(3)
"""What is known of the matches of a row: there is none; there is one, or one is enough;
nothing is known."""


@kernel(
    "int64(int64, int64, uint8[::1], uint8, uint32[::1], uint32[::1], uint8[::1], "
    "uint32[::1], uint64[:, ::1], int64[:, ::1])"
)
def _look_ahead(
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
        step = _record(program, number)
        kind = read_number(step, KIND)
        if kind >= AGREE:
            left = read_number(step, OPERANDS)
            right = read_number(step, OPERANDS + 1)
            kept = int64(0)
            for i in range(count):
                member = which[i]
                own = MOST_SLOTS * member
                is_same = values[own + left] == values[own + right]
                which[kept] = member
                kept += is_same == (kind == AGREE)
            count = kept
            continue
        relation = read_number(step, RELATION)
        index = read_number(step, INDEX)
        runs = read_number(index, RUNS)
        if runs == 0:
            # Nothing is excluded; `_is_idle` knows of the other kinds.
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
                _goal(step, values, MOST_SLOTS * member, ids)
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
        if kind == EXCLUDE:
            # A row that is there must not be seen.
            kept = int64(0)
            for i in range(count):
                member = which[i]
                which[kept] = member
                kept += not (
                    rows[member] >= 0 and _is_seen(step, rows[member], visible)
                )
            count = kept
            continue
        looked_at += count if kind < REQUIRE else 0
        _fetch_rows(step, which, count, rows)
        seen_by = read_number(step, SEEN_BY)
        if seen_by:
            status = read_number(relation, STATUS)
            kept = int64(0)
            for i in range(count):
                member = which[i]
                which[kept] = member
                kept += (visible[read_status(status, rows[member])] & seen_by) != 0
            count = kept
        count = _take_rows(step, which, count, rows, found, values)
    for i in range(count):
        if is_proof or outcomes[which[i]] == NOTHING:
            outcomes[which[i]] = ONE
    return looked_at


# ------------------------------------------------------------------------ all steps


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
    values = np.empty(BLOCK * MOST_SLOTS, np.uint32)
    ids = np.empty(MOST_SLOTS, np.uint32)
    heads = np.empty(BLOCK * MOST_SLOTS, np.uint32)
    runs = np.empty(MOST_STEPS + 2, np.int64)
    places = np.empty(MOST_STEPS + 2, np.int64)
    ends = np.empty(MOST_STEPS + 2, np.int64)
    goals = np.empty(MOST_STEPS + 2, np.uint64)
    which = np.empty(BLOCK, np.uint32)
    outcomes = np.empty(BLOCK, np.uint8)
    keys = np.empty((2, BLOCK), np.uint64)
    room = np.empty((4, BLOCK), np.int64)
    most = int64(0)
    for job in range(jobs.shape[0]):
        most = max(most, jobs[job, HIGH] - jobs[job, LOW])
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
        if _is_idle(program):
            continue
        steps = read_number(program, STEPS)
        head = _record(program, steps + 1)
        arity = read_number(head, KEY_SIZE)
        target = uint64(jobs[job, TARGET])
        waiting = int64(0)
        for begin in range(0, left, BLOCK):
            members = unproved[begin : min(begin + BLOCK, left)]
            count = _scan(program, rows, members, which, room[0], keys[0], values)
            patience -= _look_ahead(
                program,
                count,
                visible,
                uint8(is_proof),
                which,
                values,
                outcomes,
                ids,
                keys,
                room,
            )
            for member in range(members.size):
                outcome = outcomes[member]
                if outcome == NOTHING:
                    continue
                own = MOST_SLOTS * member
                depth = steps + 1 if outcome == ONE else int64(1)
                runs[1] = -1
                while depth > 0:
                    if depth > steps:
                        done[job, MATCHED] += 1
                        if is_proof:
                            proved[members[member]] = 1
                            break
                        for a in range(arity):
                            slot = own + read_number(head, OPERANDS + a)
                            heads[arity * waiting + a] = values[slot]
                        waiting += 1
                        if waiting == BLOCK:
                            if (
                                known + waiting > found.size
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
                                keys[0],
                                which,
                                room,
                            )
                            waiting = int64(0)
                        depth = int64(0) if outcome == ONE else depth - 1
                        continue
                    step = _record(program, depth)
                    kind = read_number(step, KIND)
                    if kind >= REQUIRE:
                        # Passed at most once: whoever comes back goes further back.
                        is_new = runs[depth] < 0
                        runs[depth] = 0
                        if is_new and _passes(step, kind, visible, values, own, ids):
                            depth += 1
                            runs[depth] = -1
                            continue
                        depth -= 1
                        continue
                    by_half = kind == BY_HALF
                    if runs[depth] < 0:
                        goals[depth] = _goal(step, values, own, ids)
                        places[depth] = 0
                        ends[depth] = 0
                    goal = goals[depth]
                    shift = _HALF if by_half else uint64(0)
                    index = read_number(step, INDEX)
                    run = runs[depth]
                    place = places[depth]
                    end = ends[depth]
                    matched = False
                    while True:
                        here = index + _WORD * (FIRST_RUN + ARITY_OF_RUN * run)
                        while place < end:
                            key = read_key(read_number(here, KEYS), place)
                            if key >> shift != goal >> shift:
                                place = end
                                break
                            row = int64(read_row(read_number(here, ROWS), place))
                            place += 1
                            patience -= 1
                            if _is_seen(step, row, visible) and _take(
                                step, row, key, values, own
                            ):
                                matched = True
                                break
                        if matched:
                            break
                        run += 1
                        if run >= read_number(index, RUNS):
                            break
                        here = index + _WORD * (FIRST_RUN + ARITY_OF_RUN * run)
                        place, end = part_of_run(here, goal, uint8(by_half))
                    if patience < 0:
                        return int64(TOO_MUCH), written, patience
                    if matched:
                        runs[depth] = run
                        places[depth] = place
                        ends[depth] = end
                        depth += 1
                        runs[depth] = -1
                    else:
                        depth -= 1
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
            keys[0],
            which,
            room,
        )
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
