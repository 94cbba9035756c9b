"""Backward chaining, depth first, on an explicit stack: function CHECK of [hu2018].

`evermat.algebra.fixpoint` explains its purpose. A *frame* represents a fact that is
being checked: the rule that is tried, the cursors of the search for its next instance,
and the body fact of the current instance that is checked next. Frames are on a stack of
our own, so that a call can return and the next one continue: to answer interrupts, or
to let the stack grow.

Instances are matched one at a time by the bytecode of `kernels.instructions`, with a
cursor for each join: the search for a fact ends as soon as it is proved, and further
instances are never enumerated. The consequences of a proved fact are derived in blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evermat.engines.embedded.kernels.changes import (
    HALF,
    KEYS,
    LOWER,
    SCRATCH,
    STATE,
    TABLE,
    TRIGGERS,
    derive,
    group_rows,
    mark_keys,
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
    read_id,
    read_key,
    read_number,
    read_row,
    read_status,
)
from evermat.engines.embedded.kernels.layout import KEYS as KEYS_OF_RUN
from evermat.engines.embedded.kernels.layout import TABLE as TABLE_OF_RELATION
from evermat.engines.embedded.kernels.lookups import find_row, key_of, part_of_run
from evermat.engines.embedded.runtime import part, structure_of, tuple_of

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids, Keys
    from evermat.engines.embedded.kernels.changes import Scratch, State, TriggerIndex
    from evermat.engines.embedded.kernels.layout import Numbers

# ------------------------------------------------------------------ data structures


class Searched(NamedTuple):
    """The facts that a search has proved, checked and delayed, as keys."""

    checked: Keys
    proved: Keys
    delayed: Keys


class Bits(NamedTuple):
    """Status bits of the three sets, and of the change that queries read."""

    checked: int
    proved: int
    delayed: int
    changed: int


class Seen(NamedTuple):
    """View masks, as tables over all statuses.

    Attributes:
        backwards: the roles that see a status in rules from head to body.
        forwards: the roles that see it in rules from proved facts to heads.
        explicit: whether a fact with this status is explicit.
    """

    backwards: Flags
    forwards: Flags
    explicit: Flags


class Settings(NamedTuple):
    """Settings of a search.

    Attributes:
        counter: the counter that is positive for facts that hold without recursive
            rules, or -1 if there is none.
        cost_limit: the number of rows that may be visited to derive the consequences
            of a fact.
        pause_after: matches after which a call returns to Python, so that interrupts
            are answered.
    """

    counter: int
    cost_limit: int
    pause_after: int


SEARCH = np.dtype(
    [
        *STATE.descr,
        *(
            (name, np.int64)
            for name in (
                *("next", "depth", "searched", "rounds"),
                *("checked", "proved", "delayed"),
            )
        ),
    ]
)
"""Fields beside those of `kernels.changes`: the next fact of the batch, the depth of
the stack, the number of instances matched backwards, the rounds of saturation, and the
lengths of the lists of checked, proved and delayed facts."""

FOLLOWING, RECURSIVE, OWN = range(3)
"""Slots of queries: from proved facts to heads; from heads to bodies, by recursive
rules and by nonrecursive ones."""

CHECKED_ALL, INTERRUPTIBLE, STACK_FULL, TOO_LARGE = range(4)
"""Results of a call; see `check`."""

# --------------------------------------------------------------- layout of a frame

FACT, TRIED, AT, BODY = range(4)
"""A frame: the fact, the program that is tried, whether it has been started, and the
next step to look at for a body fact; 0 if an instance has to be found first, -1 if the
fact is new."""

_CURSORS = BODY + 1
_PLACES = _CURSORS + MOST_STEPS + 1
_ENDS = _PLACES + MOST_STEPS + 1
_GOALS = _ENDS + MOST_STEPS + 1
_FOUND = _GOALS + MOST_STEPS + 1
"""For each step: the run that rows are read from, the position of the next one and the
end, the key that is sought, and the row that was found."""

FRAME_SIZE = _FOUND + MOST_STEPS + 1

VALUES = MOST_SLOTS

_SEARCHED = tuple_of(Searched, KEYS, KEYS, KEYS)
_BITS = tuple_of(Bits, int64, int64, int64, int64)
_FLAGS = uint8[::1]
_SEEN = tuple_of(Seen, _FLAGS, _FLAGS, _FLAGS)
_SETTINGS = tuple_of(Settings, int64, int64, int64)
_STATE = structure_of(SEARCH)[::1]

_NEW = -1
_WORD = 8
_ROW = 4


# ------------------------------------------------------------------- the next instance


@part
def _take_values(record: int, row: int, key: np.uint64, values: Ids) -> bool:
    """Bind values from a row; return whether its other columns match."""
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
    """Return whether a row is visible to an instruction."""
    seen_by = read_number(record, SEEN_BY)
    if seen_by == 0:
        return True
    status = read_number(read_number(record, RELATION), STATUS)
    return (int64(visible[read_status(status, row)]) & seen_by) != 0


@part
def _goal_of(record: int, values: Ids, ids: Ids) -> np.uint64:
    """Return the key that an instruction seeks; `ids` receives its parts."""
    size = read_number(record, KEY_SIZE)
    for at in range(size):
        ids[at] = values[read_number(record, OPERANDS + at)]
    return key_of(ids, int64(0), size)


@part
def _passes(
    record: int, at: int, frame: Numbers, values: Ids, ids: Ids, visible: Flags
) -> bool:
    """Return whether values pass a test; record the row of a required fact."""
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
    """Advance to the next row that a step joins with; return whether there is one."""
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
    """Bind constants and the head; return whether the rule can derive the fact."""
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
    """Find the next instance by which a program derives the fact (backtracking)."""
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
    triggers: TriggerIndex,
    state: State,
) -> bool:
    """Find the next instance of the rules of a slot that derives the frame's fact."""
    programs, work = triggers.programs, triggers.work
    line = ranges[triggers.relations.size * slot + int64(uint64(frame[FACT]) >> HALF)]
    while line[0] + frame[TRIED] < line[1]:
        number = line[0] + frame[TRIED]
        work[number, READ] += frame[AT] == 0
        if _match_next(programs[number, 0], frame, values, ids, visible):
            work[number, MATCHED] += 1
            state.searched += 1
            return True
        frame[TRIED] += 1
        frame[AT] = 0
    return False


# ------------------------------------------------------------------- proved facts


@part
def _holds_by_itself(
    frame: Numbers,
    spare: Numbers,
    values: Ids,
    ids: Ids,
    seen: Seen,
    counter: int,
    ranges: Numbers,
    triggers: TriggerIndex,
    state: State,
) -> bool:
    """Return whether a fact is explicit or derived by a nonrecursive rule."""
    key = uint64(frame[FACT])
    relations = triggers.relations
    if counter >= 0:
        counts = read_number(relations[int64(key >> HALF)], COUNTERS + counter)
        return counts != 0 and read_row(counts, int64(key & LOWER)) > 0
    if seen.explicit[status_of(relations, key)]:
        return True
    spare[FACT] = frame[FACT]
    spare[TRIED] = 0
    spare[AT] = 0
    return _find_instance(
        OWN, spare, values, ids, seen.backwards, ranges, triggers, state
    )


@part
def _saturate(
    key: np.uint64,
    bits: Bits,
    visible: Flags,
    limit: int,
    triggers: TriggerIndex,
    scratch: Scratch,
    lists: Searched,
    state: State,
) -> bool:
    """Prove a fact and its consequences (SATURATE); return whether there was room."""
    relations, delta = triggers.relations, scratch.delta
    room = lists.proved.size
    starts = np.empty(relations.size + 1, np.int64)
    nothing = np.zeros(relations.size + 1, np.int64)
    scratch.candidates[0] = key
    count = int64(1)
    while True:
        if state.proved + count > room or state.delayed + count > room:
            return False
        size = int64(0)
        for i in range(count):
            each = scratch.candidates[i]
            status = status_of(relations, each)
            if status & bits.checked:
                if not status & bits.proved:
                    set_status(relations, each, bits.proved, 0)
                    delta[size] = each
                    lists.proved[state.proved] = each
                    state.proved += 1
                    size += 1
            elif not status & bits.delayed:
                set_status(relations, each, bits.delayed, 0)
                lists.delayed[state.delayed] = each
                state.delayed += 1
        if size == 0:
            return True
        state.rounds += 1
        state.fresh = 0
        state.is_counted = 0
        state.cost_left = limit
        rows = scratch.rows
        group_rows(delta, size, 0, starts, rows)
        mark_keys(relations, delta, size, bits.changed, 0, 0)
        count = derive(
            FOLLOWING, rows, starts, nothing, visible, triggers, scratch, state
        )
        mark_keys(relations, delta, size, 0, bits.changed, 0)
        if count < 0:
            return False
        scratch.candidates[:count] = scratch.found[:count]


# ------------------------------------------------------------------------- the search


@part
def _push(key: np.uint64, stack: Numbers, state: State) -> None:
    frame = stack[state.depth]
    frame[FACT] = int64(key)
    frame[TRIED] = 0
    frame[AT] = 0
    frame[BODY] = _NEW
    state.depth += 1


@part
def _next_body(
    frame: Numbers, bodies: Numbers, ranges: Numbers, relations: int, steps: int
) -> int:
    """The next body fact of the stratum in the instance of a frame, or -1."""
    number = ranges[relations * RECURSIVE + int64(uint64(frame[FACT]) >> HALF), 0]
    line = bodies[number + frame[TRIED]]
    while frame[BODY] <= steps:
        at = frame[BODY]
        frame[BODY] += 1
        if line[at] >= 0:
            return (line[at] << 32) | frame[_FOUND + at]
    return int64(-1)


@kernel(
    int64(
        TRIGGERS,
        SCRATCH,
        _SEARCHED,
        KEYS,
        _BITS,
        _SEEN,
        TABLE,
        TABLE,
        TABLE,
        uint32[:, ::1],
        _SETTINGS,
        _STATE,
    )
)
def check(
    triggers: TriggerIndex,
    scratch: Scratch,
    lists: Searched,
    batch: Keys,
    bits: Bits,
    seen: Seen,
    ranges: Numbers,
    bodies: Numbers,
    stack: Numbers,
    values: Ids,
    settings: Settings,
    states: State,
) -> int:
    """Search for derivations of facts, one after the other (CHECK).

    Args:
        triggers: the trigger index, and the programs of all slots.
        scratch: work arrays.
        lists: receives the checked, proved and delayed facts.
        batch: the facts.
        bits: status bits.
        seen: view masks.
        ranges: for each slot and relation, the range of programs that derive its facts.
        bodies: for each program and step, the relation of the local body fact that the
            step finds, or -1.
        stack: the frames.
        values: the values of the registers of each frame.
        settings: settings of the search.
        states: the state of the search, one record.

    Returns:
        `CHECKED_ALL`; `INTERRUPTIBLE` or `STACK_FULL`, if the next call continues from
        here; `TOO_LARGE`, if the caller has to use batches instead.
    """
    state, relations = states[0], triggers.relations
    stop = state.matches + state.searched + settings.pause_after
    ids = np.empty(MOST_SLOTS, np.uint32)
    while True:
        if state.depth == 0:
            if state.next == batch.size:
                return int64(CHECKED_ALL)
            key = batch[state.next]
            state.next += 1
            if not status_of(relations, key) & bits.checked:
                _push(key, stack, state)
            continue
        # The next body fact needs a frame, and a spare one after it.
        if state.depth + 2 > stack.shape[0]:
            return int64(STACK_FULL)
        if state.matches + state.searched >= stop:
            return int64(INTERRUPTIBLE)
        top = state.depth - 1
        frame = stack[top]
        key = uint64(frame[FACT])
        if frame[BODY] == _NEW:
            if state.checked == lists.checked.size:
                return int64(TOO_LARGE)
            set_status(relations, key, bits.checked, 0)
            lists.checked[state.checked] = key
            state.checked += 1
            is_sure = (status_of(relations, key) & bits.delayed) != 0
            if is_sure or _holds_by_itself(
                frame,
                stack[top + 1],
                values[top],
                ids,
                seen,
                settings.counter,
                ranges,
                triggers,
                state,
            ):
                state.depth -= 1
                if not _saturate(
                    key,
                    bits,
                    seen.forwards,
                    settings.cost_limit,
                    triggers,
                    scratch,
                    lists,
                    state,
                ):
                    return int64(TOO_LARGE)
                continue
            frame[BODY] = 0
        if status_of(relations, key) & bits.proved:
            state.depth -= 1
            continue
        if frame[BODY] == 0:
            if not _find_instance(
                RECURSIVE,
                frame,
                values[top],
                ids,
                seen.backwards,
                ranges,
                triggers,
                state,
            ):
                state.depth -= 1
                continue
            frame[BODY] = 1
        body = _next_body(frame, bodies, ranges, relations.size, int64(MOST_STEPS))
        if body < 0:
            frame[BODY] = 0
        elif not status_of(relations, uint64(body)) & bits.checked:
            _push(uint64(body), stack, state)
