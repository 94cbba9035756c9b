"""The compiled loop that saturates: see `evermat.algebra.saturation` for the algorithm.

It serves rounds of few facts, for which a step of Python between two operators would
take longer than the operators do. Facts are keys: the number of a relation in the upper
half, a row in the lower one. Between rounds, a call may return: to have facts that are
derived for the first time given rows, to be interrupted, or because a round turns out
to be large and is better run in batches. Another call, or other code, goes on from
there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.index import WIDEST_EXACT_KEY
from evermat.engines.embedded.kernels.appends import append_few, can_append
from evermat.engines.embedded.kernels.changes import (
    CANDIDATES,
    CHUNKS,
    FRESH,
    HALF,
    HAS_COUNTERS,
    IN_CANDIDATES,
    IN_CHANGED,
    IN_COUNTS,
    IN_DELTA,
    IN_FOUND,
    IN_LOG,
    IN_OLD_COUNTS,
    IN_ROWS,
    KEYS,
    LISTED,
    LOGGED,
    LOWER,
    MATCHES,
    NUMBERS,
    PATIENCE,
    TABLE,
    WIRED,
    derive,
    group_rows,
    mark_grouped,
    mark_keys,
    part,
    set_status,
    status_of,
)
from evermat.engines.embedded.kernels.heads import group_records
from evermat.engines.embedded.kernels.keys import int64, kernel, uint64
from evermat.engines.embedded.kernels.layout import ARITY, COUNTERS
from evermat.engines.embedded.kernels.raw import read_number, read_row, write_row

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Keys
    from evermat.engines.embedded.kernels.changes import Lists, Wired
    from evermat.engines.embedded.kernels.layout import Numbers

# -------------------------------------------------------------- what a call works on

NEXT, ROUNDS, ADMITTED, IN_ALL, DELTA, SEGMENTS = 0, 1, 2, 3, 11, 12
"""Where a saturation is, in its state: which of the rules for the beginning is next,
how many rounds there were since the last call, how much of the list of admitted facts
is used, how many facts were admitted since the last call, how many facts the last round
has, and how many segments of fresh facts there are. The rest of the state is that of
`kernels.changes`."""

SIGN, ZERO, ENTERS_FIRST, COST_LIMIT, PAUSE_AFTER = range(5)
"""How to saturate: 1 or -1; the counter that has to be zero, or -1; whether facts enter
the set before rules are applied to them; how many rows a round may look at; after how
many matches a call returns."""

SETTINGS = 5

SLOT, COUNTER = range(2)
"""A line of rules: which queries, and the counter of their derivations; -1 if none."""

INTO, CHANGED, CHANGED_ABSENT = range(3)
"""Status bits: of the set that grows, and of the two changes that queries read."""

FIRST, STEP, UNLESS = range(3)
"""What the rules for the beginning may see, and those of a round; and which statuses
are not admitted."""

SATURATED, HAS_FRESH, PAUSED, TOO_LARGE, BELOW_ZERO = range(5)
"""How a call ends."""

IN_ADMITTED = 0
"""The list of admitted facts, in the order in which they were."""

LISTS, NUMBER_LISTS = 7, 4
"""How many lists there are of facts, and of numbers."""

_DONE = -1


# -------------------------------------------------------------------------- counters


@part
def _count_of(relations: Numbers, key: np.uint64, which: int) -> int:
    counter = read_number(relations[int64(key >> HALF)], COUNTERS + which)
    if counter == 0:
        return int64(0)
    return int64(read_row(counter, int64(key & LOWER)))


@part
def _take_heads(
    size: int, which: int, sign: int, wiring: Wired, lists: Lists, state: Numbers
) -> int:
    """Make the heads that were found candidates, and change their counts.

    The old counts are logged. Returns how the call ends, or `_DONE`; where it is too
    large, nothing has changed.
    """
    relations = wiring[0]
    keys, numbers, _, chunks, greatest = lists
    room = keys.shape[1]
    log, first = state[LOGGED], state[CANDIDATES]
    if size < 0 or log + size > room or first + size > room:
        return int64(TOO_LARGE)
    keys[IN_CANDIDATES, first : first + size] = keys[IN_FOUND, :size]
    state[CANDIDATES] += size
    if which < 0 or size == 0:
        return int64(_DONE)
    least = int64(0)
    for i in range(size):
        key = keys[IN_FOUND, i]
        number = int64(key >> HALF)
        row = int64(key & LOWER)
        counter = read_number(relations[number], COUNTERS + which)
        old = read_row(counter, row)
        new = int64(old) + sign * int64(numbers[IN_COUNTS, i])
        write_row(counter, row, new)
        least = min(least, new)
        keys[IN_LOG, log + i] = key
        numbers[IN_OLD_COUNTS, log + i] = old
        greatest[which, number] = max(greatest[which, number], row)
    state[LOGGED] += size
    chunks[state[CHUNKS], 0] = state[LOGGED]
    chunks[state[CHUNKS], 1] = which
    state[CHUNKS] += 1
    return int64(_DONE if least >= 0 else BELOW_ZERO)


# ----------------------------------------------------------------------------- rules


@part
def _apply_first(
    lost: Keys,
    gained: Keys,
    bits: Numbers,
    visible: Flags,
    rules: Numbers,
    segments: Numbers,
    sign: int,
    limit: int,
    wiring: Wired,
    lists: Lists,
    state: Numbers,
) -> int:
    """Apply the rules for the beginning to a change; their heads become candidates.

    `lost` is read as a positive change, `gained` as a negative one; the rest is as in
    `saturate`. Returns how the call ends, or `_DONE`.
    """
    relations = wiring[0]
    rows = lists[1][IN_CHANGED]
    if lost.size + gained.size > rows.size:
        return int64(TOO_LARGE)
    positive = np.empty(relations.size + 1, np.int64)
    negative = np.empty(relations.size + 1, np.int64)
    end = group_rows(lost, lost.size, 0, positive, rows)
    group_rows(gained, gained.size, end, negative, rows)
    mark_grouped(relations, positive, rows, bits[CHANGED], 0)
    mark_grouped(relations, negative, rows, bits[CHANGED_ABSENT], 0)
    ends = int64(_DONE)
    while ends == _DONE and state[NEXT] < rules.shape[0] - 1:
        line = rules[state[NEXT]]
        state[HAS_COUNTERS] = line[COUNTER] >= 0
        state[PATIENCE] = limit
        size = derive(
            line[SLOT], rows, positive, negative, visible, wiring, lists, state
        )
        ends = _take_heads(size, line[COUNTER], sign, wiring, lists, state)
        if ends == _DONE:
            segments[state[SEGMENTS], 0] = state[FRESH]
            segments[state[SEGMENTS], 1] = line[COUNTER]
            state[SEGMENTS] += 1
            state[NEXT] += 1
    mark_grouped(relations, positive, rows, 0, bits[CHANGED])
    mark_grouped(relations, negative, rows, 0, bits[CHANGED_ABSENT])
    return ends


@part
def _apply_step(
    size: int,
    visible: Flags,
    line: Numbers,
    segments: Numbers,
    sign: int,
    limit: int,
    wiring: Wired,
    lists: Lists,
    state: Numbers,
) -> int:
    """Apply the rules to the facts of a round; their heads become the candidates."""
    relations = wiring[0]
    keys, numbers = lists[0], lists[1]
    state[CANDIDATES] = 0
    if line[SLOT] < 0:
        return int64(_DONE)
    starts = np.empty(relations.size + 1, np.int64)
    nothing = np.zeros(relations.size + 1, np.int64)
    group_rows(keys[IN_DELTA], size, 0, starts, numbers[IN_ROWS])
    state[HAS_COUNTERS] = line[COUNTER] >= 0
    state[PATIENCE] = limit
    found = derive(
        line[SLOT], numbers[IN_ROWS], starts, nothing, visible, wiring, lists, state
    )
    ends = _take_heads(found, line[COUNTER], sign, wiring, lists, state)
    if ends == _DONE:
        segments[0, 0] = state[FRESH]
        segments[0, 1] = line[COUNTER]
        state[SEGMENTS] = 1
    return ends


# ------------------------------------------------------------------------ new facts


@part
def _give_rows(
    growth: Numbers, segments: Numbers, wiring: Wired, lists: Lists, state: Numbers
) -> bool:
    """Give rows to facts that have none, and make them candidates.

    Returns:
        Whether none of them is counted and there was room for all of them; if not,
        nothing has changed.
    """
    relations = wiring[0]
    candidates = lists[0][IN_CANDIDATES]
    fresh = lists[2][: state[FRESH]]
    for segment in range(state[SEGMENTS]):
        if segments[segment, 1] >= 0:
            return False
    arities = np.empty(relations.size, np.int64)
    for number in range(relations.size):
        arities[number] = read_number(relations[number], ARITY)
    ends = np.zeros(relations.size + 1, np.int64)
    keys = np.empty(fresh.size, np.uint64)
    group_records(fresh, arities, ends, keys)
    start = int64(0)
    for number in range(relations.size):
        count, other = growth[number, 0], growth[number, 1]
        size = ends[number] - start
        start = ends[number]
        if size > 0 and not (
            0 < arities[number] <= WIDEST_EXACT_KEY
            and can_append(relations[number], count, other, size)
        ):
            return False
    if state[CANDIDATES] + start > candidates.size:
        return False
    counts = np.empty(start, np.int32)
    start = int64(0)
    for number in range(relations.size):
        first, other = growth[number, 0], growth[number, 1]
        mine = keys[start : ends[number]]
        start = ends[number]
        if mine.size > 0:
            size = append_few(relations[number], first, other, mine, counts)
            for row in range(first, first + size):
                candidates[state[CANDIDATES]] = (uint64(number) << HALF) | uint64(row)
                state[CANDIDATES] += 1
            growth[number, 0] += size
    state[FRESH] = 0
    state[SEGMENTS] = 0
    return True


# ---------------------------------------------------------------------------- rounds


@part
def _admit(
    bits: Numbers,
    unless: Flags,
    settings: Numbers,
    wiring: Wired,
    lists: Lists,
    state: Numbers,
) -> int:
    """Make the admitted candidates the facts of a round; how many there are."""
    relations, keys = wiring[0], lists[0]
    into, changed = bits[INTO], bits[CHANGED]
    ones = changed | (into if settings[ENTERS_FIRST] else 0)
    size = int64(0)
    for i in range(state[CANDIDATES]):
        key = keys[IN_CANDIDATES, i]
        status = status_of(relations, key)
        if status & changed or unless[status]:
            continue
        if settings[ZERO] >= 0 and _count_of(relations, key, settings[ZERO]) != 0:
            continue
        set_status(relations, key, ones, 0)
        keys[IN_DELTA, size] = key
        size += 1
    state[DELTA] = size
    if settings[ENTERS_FIRST]:
        _enter(size, lists, state)
    return size


@part
def _enter(size: int, lists: Lists, state: Numbers) -> None:
    """List the facts of a round among those that have entered the set."""
    keys = lists[0]
    first = state[ADMITTED]
    keys[IN_ADMITTED, first : first + size] = keys[IN_DELTA, :size]
    state[ADMITTED] += size


@kernel(
    f"int64({WIRED}, {LISTED}, UniTuple({KEYS}, 2), {NUMBERS}, uint8[:, ::1], {TABLE}, "
    f"{NUMBERS}, {TABLE}, {NUMBERS}, {TABLE})"
)
def saturate(
    wiring: Wired,
    lists: Lists,
    changes: tuple[Keys, Keys],
    bits: Numbers,
    tables: Flags,
    rules: Numbers,
    settings: Numbers,
    segments: Numbers,
    state: Numbers,
    growth: Numbers,
) -> int:
    """Apply rules until no candidate is admitted any more.

    Args:
        wiring: what changes set off.
        lists: room to work in; candidates are listed already.
        changes: facts that the rules for the beginning read as changed, positive and
            negative.
        bits: status bits.
        tables: for each status what may see it.
        rules: a line for each set of rules for the beginning, and one for the rules of
            rounds.
        settings: how to saturate.
        segments: is given where segments of fresh facts end, and the counter of each.
        state: where the saturation is.
        growth: for each relation how many rows it has, which changes as facts get rows,
            and the layout of its other index; see `kernels_tails.append_few`.

    Returns:
        `SATURATED`; `HAS_FRESH`, if facts without rows have to be given rows and
        counts, and to be made candidates, before the next call; `PAUSED`, if the next
        call can go on when lists are emptied; `TOO_LARGE`, if the next of the rules for
        the beginning, or the rules of a round whose facts are listed, have to be
        applied otherwise; `BELOW_ZERO`, if a count has fallen below zero.
    """
    relations, keys, chunks = wiring[0], lists[0], lists[3]
    room = keys.shape[1]
    sign, limit = settings[SIGN], settings[COST_LIMIT]
    first_rules = rules.shape[0] - 1
    stop = state[MATCHES] + settings[PAUSE_AFTER]
    if state[NEXT] < first_rules:
        ends = _apply_first(
            changes[0],
            changes[1],
            bits,
            tables[FIRST],
            rules,
            segments,
            sign,
            limit,
            wiring,
            lists,
            state,
        )
        if ends != _DONE:
            return ends
    while True:
        if state[FRESH] > 0 and not _give_rows(growth, segments, wiring, lists, state):
            return int64(HAS_FRESH)
        state[SEGMENTS] = 0
        if (
            state[ADMITTED] + state[CANDIDATES] > room
            or 2 * state[LOGGED] > room
            or state[CHUNKS] >= chunks.shape[0]
            or state[MATCHES] >= stop
        ):
            return int64(PAUSED)
        size = _admit(bits, tables[UNLESS], settings, wiring, lists, state)
        if size == 0:
            return int64(SATURATED)
        state[ROUNDS] += 1
        state[IN_ALL] += size
        ends = _apply_step(
            size,
            tables[STEP],
            rules[first_rules],
            segments,
            sign,
            limit,
            wiring,
            lists,
            state,
        )
        if ends == TOO_LARGE or settings[ENTERS_FIRST]:
            mark_keys(relations, keys[IN_DELTA], size, 0, bits[CHANGED], 0)
        else:
            # Not before: an instance may use two facts that fall in the same round.
            mark_keys(relations, keys[IN_DELTA], size, bits[INTO], bits[CHANGED], 0)
            _enter(size, lists, state)
        if ends != _DONE:
            return ends
        state[DELTA] = 0
