"""Backward chaining in compiled code, depth first: function CHECK of [hu2018].

See `evermat.algebra.proving` for what it is for. A *frame* is a fact that is being
checked: the rule that is tried, how far the search for its next instance has come, and
which body fact of the present instance is checked next. Frames lie on a stack of our
own, so that a call can return and another one go on: to be interrupted, or because the
stack has to grow.

Instances are matched one at a time, by the programs of `kernels.instructions`, whose
joins keep a cursor each: a fact is left as soon as it is proved, and what else would
match is never looked at. What follows from a proved fact is derived in blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.changes import (
    FRESH,
    HALF,
    HAS_COUNTERS,
    IN_CANDIDATES,
    IN_DELTA,
    IN_FOUND,
    IN_ROWS,
    KEYS,
    LISTED,
    LOWER,
    MATCHES,
    NUMBERS,
    PATIENCE,
    TABLE,
    WIRED,
    derive,
    group_rows,
    mark_keys,
    part,
    set_status,
    status_of,
)
from evermat.engines.embedded.kernels.instructions import (
    AGREE,
    BINDS,
    BY_HALF,
    CHECKS,
    CONSTANTS,
    FIRST_OFFSET,
    IN_KEY,
    INDEX,
    KEY_SIZE,
    KIND,
    MOST_SLOTS,
    MOST_STEPS,
    OPERANDS,
    RELATION,
    REQUIRE,
    SEEN_BY,
    STEPS,
    is_idle,
    record_of,
)
from evermat.engines.embedded.kernels.interpreter import MATCHED, READ
from evermat.engines.embedded.kernels.keys import int64, kernel, uint8, uint32, uint64
from evermat.engines.embedded.kernels.layout import (
    ARITY_OF_RUN,
    COUNTERS,
    FIRST_RUN,
    ROOM,
    ROWS,
    RUNS,
    STATUS,
)
from evermat.engines.embedded.kernels.layout import KEYS as KEYS_OF_RUN
from evermat.engines.embedded.kernels.layout import TABLE as TABLE_OF_RELATION
from evermat.engines.embedded.kernels.lookups import find_row, key_of, part_of_run
from evermat.engines.embedded.kernels.raw import (
    read_id,
    read_key,
    read_number,
    read_row,
    read_status,
)

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids, Keys
    from evermat.engines.embedded.kernels.changes import Lists, Wired
    from evermat.engines.embedded.kernels.layout import Numbers

# -------------------------------------------------------------- what a call works on

NEXT, DEPTH, SEARCHED, ARE_PROVED, ROUNDS = 0, 1, 2, 3, 5
ARE_CHECKED, ARE_DELAYED = 14, 15
"""Where a search is, in its state: which fact of the batch comes next, how many frames
there are, how many instances were matched backwards, and how much is used of the lists
of facts that the search has proved, checked and delayed. The rest of the state is that
of `kernels.changes`."""

IN_CHECKED, IN_PROVED, IN_DELAYED = 0, 1, 6
"""Lists of facts beside those of `kernels.changes`."""

CHECKED, PROVED, DELAYED, CHANGED = range(4)
"""Status bits."""

BACKWARDS, FORWARDS, GIVEN = range(3)
"""What rules may see from head to body, and from proved facts to heads; and which
statuses are explicit."""

FOLLOWING, RECURSIVE, OWN = range(3)
"""Slots: rules from proved facts to heads; recursive rules for heads, and nonrecursive
ones."""

COUNTER, COST_LIMIT, PAUSE_AFTER, DEEPEST = range(4)
"""How to search: the counter of facts that hold by themselves, or -1; how many rows
what follows from a fact may take; after how many matches a call returns; and how many
frames there may be."""

CHECKED_ALL, INTERRUPTIBLE, STACK_FULL, TOO_LARGE = range(4)
"""How a call ends."""

# -------------------------------------------------------------- what a frame is made of

FACT, TRIED, AT, BODY = range(4)
"""A frame: the fact, the program that is tried, whether it has begun, and the next step
whose row is a body fact; 0 if an instance is to be found first, -1 if the fact is
new."""

_CURSORS = BODY + 1
_PLACES = _CURSORS + MOST_STEPS + 1
_ENDS = _PLACES + MOST_STEPS + 1
_GOALS = _ENDS + MOST_STEPS + 1
_FOUND = _GOALS + MOST_STEPS + 1
"""Of each step: the run that rows come from, the place of the next one and the end, the
key that is looked for, and the row that was found."""

FRAME_SIZE = _FOUND + MOST_STEPS + 1

VALUES = MOST_SLOTS

_NEW = -1
_WORD = 8
_ROW = 4


# ------------------------------------------------------------------- the next instance


@part
def _take_values(record: int, row: int, key: np.uint64, values: Ids) -> bool:
    """Take values from a row; whether it has those that it must have."""
    relation = read_number(record, RELATION)
    table = read_number(relation, TABLE_OF_RELATION)
    room = read_number(relation, ROOM)
    at = OPERANDS + read_number(record, KEY_SIZE)
    for _ in range(read_number(record, BINDS)):
        position = read_number(record, at)
        slot = read_number(record, at + 1)
        if position == IN_KEY:
            values[slot] = uint32(key & LOWER)
        else:
            values[slot] = read_id(table + _ROW * position * room, row)
        at += 2
    for _ in range(read_number(record, CHECKS)):
        column = table + _ROW * read_number(record, at) * room
        if read_id(column, row) != values[read_number(record, at + 1)]:
            return False
        at += 2
    return True


@part
def _is_seen(record: int, row: int, visible: Flags) -> bool:
    """Whether a record may see a row."""
    seen_by = read_number(record, SEEN_BY)
    if seen_by == 0:
        return True
    status = read_number(read_number(record, RELATION), STATUS)
    return (int64(visible[read_status(status, row)]) & seen_by) != 0


@part
def _goal_of(record: int, values: Ids, ids: Ids) -> np.uint64:
    """The key that a record looks for; `ids` is given what it is made of."""
    size = read_number(record, KEY_SIZE)
    for at in range(size):
        ids[at] = values[read_number(record, OPERANDS + at)]
    return key_of(ids, int64(0), size)


@part
def _passes(
    record: int, at: int, frame: Numbers, values: Ids, ids: Ids, visible: Flags
) -> bool:
    """Whether values pass a test; the row of a fact that must be there is noted."""
    kind = read_number(record, KIND)
    if kind >= AGREE:
        left = values[read_number(record, OPERANDS)]
        right = values[read_number(record, OPERANDS + 1)]
        return (left == right) == (kind == AGREE)
    goal = _goal_of(record, values, ids)
    size = read_number(record, KEY_SIZE)
    relation, index = read_number(record, RELATION), read_number(record, INDEX)
    row = find_row(relation, index, size, goal, ids, int64(0))
    frame[_FOUND + at] = row
    is_there = row >= 0 and _is_seen(record, row, visible)
    return is_there == (kind == REQUIRE)


@part
def _draw(record: int, at: int, frame: Numbers, values: Ids, visible: Flags) -> bool:
    """Go on to the next row that a step joins with; whether there is one."""
    index = read_number(record, INDEX)
    by_half = read_number(record, KIND) == BY_HALF
    shift = HALF if by_half else uint64(0)
    goal = uint64(frame[_GOALS + at])
    while True:
        number = frame[_CURSORS + at]
        if number >= 0:
            run = index + _WORD * (FIRST_RUN + ARITY_OF_RUN * number)
            keys, rows = read_number(run, KEYS_OF_RUN), read_number(run, ROWS)
            place, end = frame[_PLACES + at], frame[_ENDS + at]
            while place < end:
                key = read_key(keys, place)
                if key >> shift != goal >> shift:
                    break
                row = int64(read_row(rows, place))
                place += 1
                if _is_seen(record, row, visible) and _take_values(
                    record, row, key, values
                ):
                    frame[_PLACES + at] = place
                    frame[_FOUND + at] = row
                    return True
        number += 1
        if number >= read_number(index, RUNS):
            return False
        run = index + _WORD * (FIRST_RUN + ARITY_OF_RUN * number)
        low, high = part_of_run(run, goal, uint8(by_half))
        frame[_CURSORS + at] = number
        frame[_PLACES + at] = low
        frame[_ENDS + at] = high


@part
def _begin(program: int, frame: Numbers, values: Ids) -> bool:
    """Have the values of the fact and of constants; whether the rule may derive it."""
    if is_idle(program):
        return False
    at = FIRST_OFFSET + read_number(program, STEPS) + 2
    for _ in range(read_number(program, CONSTANTS)):
        values[read_number(program, at)] = uint32(read_number(program, at + 1))
        at += 2
    key = uint64(frame[FACT])
    return _take_values(record_of(program, 0), int64(key & LOWER), key, values)


@part
def _match_next(
    program: int, frame: Numbers, values: Ids, ids: Ids, visible: Flags
) -> bool:
    """Find the next instance that derives the fact by a program, if there is one."""
    steps = read_number(program, STEPS)
    at = steps
    is_new = False
    if frame[AT] == 0:
        frame[AT] = 1
        if not _begin(program, frame, values):
            return False
        at = int64(1)
        is_new = True
    while at > 0:
        if at > steps:
            return True
        record = record_of(program, at)
        if read_number(record, KIND) < REQUIRE:
            if is_new:
                frame[_GOALS + at] = int64(_goal_of(record, values, ids))
                frame[_CURSORS + at] = -1
            is_new = _draw(record, at, frame, values, visible)
        elif is_new:
            is_new = _passes(record, at, frame, values, ids, visible)
        at += 1 if is_new else -1
    return False


@part
def _find_instance(
    slot: int,
    frame: Numbers,
    values: Ids,
    ids: Ids,
    visible: Flags,
    ranges: Numbers,
    wiring: Wired,
    state: Numbers,
) -> bool:
    """Find the next instance of some rules that derives the fact of a frame."""
    relations, programs, work = wiring[0], wiring[4], wiring[5]
    line = ranges[relations.size * slot + int64(uint64(frame[FACT]) >> HALF)]
    while line[0] + frame[TRIED] < line[1]:
        number = line[0] + frame[TRIED]
        work[number, READ] += frame[AT] == 0
        if _match_next(programs[number, 0], frame, values, ids, visible):
            work[number, MATCHED] += 1
            state[SEARCHED] += 1
            return True
        frame[TRIED] += 1
        frame[AT] = 0
    return False


# ------------------------------------------------------------------- what is proved


@part
def _holds_by_itself(
    frame: Numbers,
    spare: Numbers,
    values: Ids,
    ids: Ids,
    tables: Flags,
    counter: int,
    ranges: Numbers,
    wiring: Wired,
    state: Numbers,
) -> bool:
    """Whether a fact is explicit, or follows from lower strata."""
    key = uint64(frame[FACT])
    relations = wiring[0]
    if counter >= 0:
        counts = read_number(relations[int64(key >> HALF)], COUNTERS + counter)
        return counts != 0 and read_row(counts, int64(key & LOWER)) > 0
    if tables[GIVEN, status_of(relations, key)]:
        return True
    spare[FACT] = frame[FACT]
    spare[TRIED] = 0
    spare[AT] = 0
    return _find_instance(
        OWN, spare, values, ids, tables[BACKWARDS], ranges, wiring, state
    )


@part
def _saturate(
    key: np.uint64,
    bits: Numbers,
    visible: Flags,
    limit: int,
    wiring: Wired,
    lists: Lists,
    state: Numbers,
) -> bool:
    """Prove a fact that holds, and what follows (SATURATE); whether there was room."""
    relations = wiring[0]
    keys, numbers = lists[0], lists[1]
    room = keys.shape[1]
    starts = np.empty(relations.size + 1, np.int64)
    nothing = np.zeros(relations.size + 1, np.int64)
    keys[IN_CANDIDATES, 0] = key
    count = int64(1)
    while True:
        if state[ARE_PROVED] + count > room or state[ARE_DELAYED] + count > room:
            return False
        size = int64(0)
        for i in range(count):
            each = keys[IN_CANDIDATES, i]
            status = status_of(relations, each)
            if status & bits[CHECKED]:
                if not status & bits[PROVED]:
                    set_status(relations, each, bits[PROVED], 0)
                    keys[IN_DELTA, size] = each
                    keys[IN_PROVED, state[ARE_PROVED]] = each
                    state[ARE_PROVED] += 1
                    size += 1
            elif not status & bits[DELAYED]:
                set_status(relations, each, bits[DELAYED], 0)
                keys[IN_DELAYED, state[ARE_DELAYED]] = each
                state[ARE_DELAYED] += 1
        if size == 0:
            return True
        state[ROUNDS] += 1
        state[FRESH] = 0
        state[HAS_COUNTERS] = 0
        state[PATIENCE] = limit
        group_rows(keys[IN_DELTA], size, 0, starts, numbers[IN_ROWS])
        mark_keys(relations, keys[IN_DELTA], size, bits[CHANGED], 0, 0)
        rows = numbers[IN_ROWS]
        count = derive(FOLLOWING, rows, starts, nothing, visible, wiring, lists, state)
        mark_keys(relations, keys[IN_DELTA], size, 0, bits[CHANGED], 0)
        if count < 0:
            return False
        keys[IN_CANDIDATES, :count] = keys[IN_FOUND, :count]


# ------------------------------------------------------------------------- the search


@part
def _push(key: np.uint64, stack: Numbers, state: Numbers) -> None:
    frame = stack[state[DEPTH]]
    frame[FACT] = int64(key)
    frame[TRIED] = 0
    frame[AT] = 0
    frame[BODY] = _NEW
    state[DEPTH] += 1


@part
def _next_body(
    frame: Numbers, bodies: Numbers, ranges: Numbers, wiring: Wired, steps: int
) -> int:
    """The next body fact of the stratum in the instance of a frame, or -1."""
    number = ranges[wiring[0].size * RECURSIVE + int64(uint64(frame[FACT]) >> HALF), 0]
    line = bodies[number + frame[TRIED]]
    while frame[BODY] <= steps:
        at = frame[BODY]
        frame[BODY] += 1
        if line[at] >= 0:
            return (line[at] << 32) | frame[_FOUND + at]
    return int64(-1)


@kernel(
    f"int64({WIRED}, {LISTED}, {KEYS}, {NUMBERS}, uint8[:, ::1], {TABLE}, {TABLE}, "
    f"{TABLE}, uint32[:, ::1], {NUMBERS}, {NUMBERS})"
)
def check(
    wiring: Wired,
    lists: Lists,
    batch: Keys,
    bits: Numbers,
    tables: Flags,
    ranges: Numbers,
    bodies: Numbers,
    stack: Numbers,
    values: Ids,
    settings: Numbers,
    state: Numbers,
) -> int:
    """Look for derivations of facts, one after the other (CHECK).

    Args:
        wiring: what changes set off, and the programs of all slots.
        lists: room to work in.
        batch: the facts.
        bits: status bits.
        tables: for each status what may see it.
        ranges: for each slot and relation which programs are for its facts.
        bodies: for each program and step the relation of a body fact of the stratum
            that the step finds, or -1.
        stack: room for frames.
        values: for each of them room for the values of slots.
        settings: how to search.
        state: where the search is.

    Returns:
        `CHECKED_ALL`; `INTERRUPTIBLE` or `STACK_FULL`, if the next call goes on from
        here; `TOO_LARGE`, if it has to be done otherwise.
    """
    relations, keys = wiring[0], lists[0]
    stop = state[MATCHES] + state[SEARCHED] + settings[PAUSE_AFTER]
    ids = np.empty(MOST_SLOTS, np.uint32)
    while True:
        if state[DEPTH] == 0:
            if state[NEXT] == batch.size:
                return int64(CHECKED_ALL)
            key = batch[state[NEXT]]
            state[NEXT] += 1
            if not status_of(relations, key) & bits[CHECKED]:
                _push(key, stack, state)
            continue
        # There has to be a frame for the next body fact, and a spare one behind it.
        if state[DEPTH] + 2 > stack.shape[0]:
            return int64(STACK_FULL)
        if state[MATCHES] + state[SEARCHED] >= stop:
            return int64(INTERRUPTIBLE)
        top = state[DEPTH] - 1
        frame = stack[top]
        key = uint64(frame[FACT])
        if frame[BODY] == _NEW:
            if state[ARE_CHECKED] == keys.shape[1]:
                return int64(TOO_LARGE)
            set_status(relations, key, bits[CHECKED], 0)
            keys[IN_CHECKED, state[ARE_CHECKED]] = key
            state[ARE_CHECKED] += 1
            is_sure = (status_of(relations, key) & bits[DELAYED]) != 0
            if is_sure or _holds_by_itself(
                frame,
                stack[top + 1],
                values[top],
                ids,
                tables,
                settings[COUNTER],
                ranges,
                wiring,
                state,
            ):
                state[DEPTH] -= 1
                if not _saturate(
                    key,
                    bits,
                    tables[FORWARDS],
                    settings[COST_LIMIT],
                    wiring,
                    lists,
                    state,
                ):
                    return int64(TOO_LARGE)
                continue
            frame[BODY] = 0
        if status_of(relations, key) & bits[PROVED]:
            state[DEPTH] -= 1
            continue
        if frame[BODY] == 0:
            if not _find_instance(
                RECURSIVE,
                frame,
                values[top],
                ids,
                tables[BACKWARDS],
                ranges,
                wiring,
                state,
            ):
                state[DEPTH] -= 1
                continue
            frame[BODY] = 1
        body = _next_body(frame, bodies, ranges, wiring, int64(MOST_STEPS))
        if body < 0:
            frame[BODY] = 0
        elif not status_of(relations, uint64(body)) & bits[CHECKED]:
            _push(uint64(body), stack, state)
