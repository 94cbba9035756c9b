"""Semi-naive evaluation in compiled code; `evermat.algebra.fixpoint` has the algorithm.

This kernel serves rounds of few facts, where Python between two operators would take
longer than the operators. A fact is a key: the number of its relation in the upper
half, its row id in the lower half. A call may return between rounds: to have rows
allocated for facts that are derived for the first time, to answer interrupts, or
because a round is large and runs faster in batches. The next call, or other code,
continues from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evermat.engines.embedded.index import WIDEST_EXACT_KEY
from evermat.engines.embedded.kernels.appends import append_few, can_append
from evermat.engines.embedded.kernels.changes import (
    HALF,
    KEYS,
    LOWER,
    ROWS,
    SCRATCH,
    STATE,
    TABLE,
    TRIGGERS,
    derive,
    group_rows,
    mark_grouped,
    mark_keys,
    set_status,
    status_of,
)
from evermat.engines.embedded.kernels.keys import int64, kernel, uint8, uint64
from evermat.engines.embedded.kernels.layout import (
    ARITY,
    COUNTERS,
    read_number,
    read_row,
    write_row,
)
from evermat.engines.embedded.kernels.rows import group_records
from evermat.engines.embedded.runtime import pair_of, part, structure_of, tuple_of

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Keys, Rows
    from evermat.engines.embedded.kernels.changes import Scratch, State, TriggerIndex
    from evermat.engines.embedded.kernels.layout import Numbers

# ------------------------------------------------------------------ data structures


class Log(NamedTuple):
    """Log of a call: the facts that it admitted, and the counters that it changed.

    Attributes:
        admitted: the facts that were added to the set, in order.
        changed: the rows of the changes that the initial rules read.
        counted: facts whose counters were overwritten, in chunks.
        old_counts: their previous counts.
        chunks: the end of each chunk, and the counter that was changed.
        greatest: for each counter and relation, the greatest row that was changed.
        segments: the end of each segment of fresh facts, and its counter.
    """

    admitted: Keys
    changed: Rows
    counted: Keys
    old_counts: Rows
    chunks: Numbers
    greatest: Numbers
    segments: Numbers


class Settings(NamedTuple):
    """Settings of a saturation.

    Attributes:
        sign: 1 if derivations are added to counters, -1 if they are subtracted.
        zero: the counter that has to be zero for a fact to be admitted, or -1.
        enters_first: whether facts are added to the set before rules are applied.
        cost_limit: the number of rows that a round may visit.
        pause_after: matches after which a call returns to Python, so that interrupts
            are answered.
    """

    sign: int
    zero: int
    enters_first: int
    cost_limit: int
    pause_after: int


class Bits(NamedTuple):
    """Status bits of the growing set, and of the two changes that queries read."""

    into: int
    changed: int
    changed_absent: int


class Seen(NamedTuple):
    """View masks, as tables over all statuses.

    Attributes:
        first: the roles of the initial rules that see a status.
        step: the roles of the rules of a round that see it.
        unless: whether facts with this status are not admitted.
    """

    first: Flags
    step: Flags
    unless: Flags


SATURATION = np.dtype(
    [
        *STATE.descr,
        *(
            (name, np.int64)
            for name in (
                *("next", "rounds", "admitted", "in_all", "delta", "segments"),
                *("logged", "chunks"),
            )
        ),
    ]
)
"""Fields beside those of `kernels.changes`: the next of the initial rules; the rounds
since the last call, and the facts that they admitted; the size of the current round;
and the lengths of the lists of admitted facts, of segments of fresh facts, of
overwritten counts and of their chunks."""

SLOT, COUNTER = range(2)
"""A line of rules: the slot of queries, and the counter of derivations; -1 if none."""

SATURATED, HAS_FRESH, PAUSED, TOO_LARGE, BELOW_ZERO = range(5)
"""Results of a call; see `saturate`."""

_LOG = tuple_of(Log, KEYS, ROWS, KEYS, ROWS, TABLE, TABLE, TABLE)
_SETTINGS = tuple_of(Settings, int64, int64, int64, int64, int64)
_BITS = tuple_of(Bits, int64, int64, int64)
_FLAGS = uint8[::1]
_SEEN = tuple_of(Seen, _FLAGS, _FLAGS, _FLAGS)
_STATE = structure_of(SATURATION)[::1]

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
    size: int,
    which: int,
    sign: int,
    triggers: TriggerIndex,
    scratch: Scratch,
    log: Log,
    state: State,
) -> int:
    """Append the derived heads to the candidates, and update and log their counts.

    Returns `_DONE`, or the result of the call; if that is `TOO_LARGE`, nothing has
    changed.
    """
    room = scratch.candidates.size
    start, first = state.logged, state.candidates
    if size < 0 or start + size > room or first + size > room:
        return int64(TOO_LARGE)
    scratch.candidates[first : first + size] = scratch.found[:size]
    state.candidates += size
    if which < 0 or size == 0:
        return int64(_DONE)
    least = int64(0)
    for i in range(size):
        key = scratch.found[i]
        number = int64(key >> HALF)
        row = int64(key & LOWER)
        counter = read_number(triggers.relations[number], COUNTERS + which)
        old = read_row(counter, row)
        new = int64(old) + sign * int64(scratch.counts[i])
        write_row(counter, row, new)
        least = min(least, new)
        log.counted[start + i] = key
        log.old_counts[start + i] = old
        log.greatest[which, number] = max(log.greatest[which, number], row)
    state.logged += size
    log.chunks[state.chunks, 0] = state.logged
    log.chunks[state.chunks, 1] = which
    state.chunks += 1
    return int64(_DONE if least >= 0 else BELOW_ZERO)


# ----------------------------------------------------------------------------- rules


@part
def _apply_first(
    changes: tuple[Keys, Keys],
    bits: Bits,
    visible: Flags,
    rules: Numbers,
    settings: Settings,
    triggers: TriggerIndex,
    scratch: Scratch,
    log: Log,
    state: State,
) -> int:
    """Apply the initial rules to a change; their heads become candidates.

    Returns `_DONE`, or the result of the call.
    """
    positive_keys, negative_keys = changes
    relations, rows = triggers.relations, log.changed
    if positive_keys.size + negative_keys.size > rows.size:
        return int64(TOO_LARGE)
    positive = np.empty(relations.size + 1, np.int64)
    negative = np.empty(relations.size + 1, np.int64)
    end = group_rows(positive_keys, positive_keys.size, 0, positive, rows)
    group_rows(negative_keys, negative_keys.size, end, negative, rows)
    mark_grouped(relations, positive, rows, bits.changed, 0)
    mark_grouped(relations, negative, rows, bits.changed_absent, 0)
    ends = int64(_DONE)
    while ends == _DONE and state.next < rules.shape[0] - 1:
        slot, which = rules[state.next, SLOT], rules[state.next, COUNTER]
        state.is_counted = int64(which >= 0)
        state.cost_left = settings.cost_limit
        size = derive(slot, rows, positive, negative, visible, triggers, scratch, state)
        ends = _take_heads(size, which, settings.sign, triggers, scratch, log, state)
        if ends == _DONE:
            log.segments[state.segments, 0] = state.fresh
            log.segments[state.segments, 1] = which
            state.segments += 1
            state.next += 1
    mark_grouped(relations, positive, rows, 0, bits.changed)
    mark_grouped(relations, negative, rows, 0, bits.changed_absent)
    return ends


@part
def _apply_step(
    size: int,
    visible: Flags,
    rules: Numbers,
    settings: Settings,
    triggers: TriggerIndex,
    scratch: Scratch,
    log: Log,
    state: State,
) -> int:
    """Apply the rules to the facts of a round; their heads replace the candidates."""
    last = rules.shape[0] - 1
    slot, which = rules[last, SLOT], rules[last, COUNTER]
    state.candidates = 0
    if slot < 0:
        return int64(_DONE)
    starts = np.empty(triggers.relations.size + 1, np.int64)
    nothing = np.zeros(triggers.relations.size + 1, np.int64)
    rows = scratch.rows
    group_rows(scratch.delta, size, 0, starts, rows)
    state.is_counted = int64(which >= 0)
    state.cost_left = settings.cost_limit
    found = derive(slot, rows, starts, nothing, visible, triggers, scratch, state)
    ends = _take_heads(found, which, settings.sign, triggers, scratch, log, state)
    if ends == _DONE:
        log.segments[0, 0] = state.fresh
        log.segments[0, 1] = which
        state.segments = 1
    return ends


# ------------------------------------------------------------------------ new facts


@part
def _give_rows(
    growth: Numbers, triggers: TriggerIndex, scratch: Scratch, log: Log, state: State
) -> bool:
    """Allocate rows for facts that have none, and make them candidates.

    Returns:
        False if some of them are counted or do not fit; then nothing has changed.
    """
    relations = triggers.relations
    candidates = scratch.candidates
    fresh = scratch.fresh[: state.fresh]
    for segment in range(state.segments):
        if log.segments[segment, 1] >= 0:
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
    if state.candidates + start > candidates.size:
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
                candidates[state.candidates] = (uint64(number) << HALF) | uint64(row)
                state.candidates += 1
            growth[number, 0] += size
    state.fresh = 0
    state.segments = 0
    return True


# ---------------------------------------------------------------------------- rounds


@part
def _admit(
    bits: Bits,
    unless: Flags,
    settings: Settings,
    triggers: TriggerIndex,
    scratch: Scratch,
    log: Log,
    state: State,
) -> int:
    """Admit candidates: those that are new become the delta; return its size."""
    relations = triggers.relations
    ones = bits.changed | (bits.into if settings.enters_first else 0)
    size = int64(0)
    for i in range(state.candidates):
        key = scratch.candidates[i]
        status = status_of(relations, key)
        if status & bits.changed or unless[status]:
            continue
        if settings.zero >= 0 and _count_of(relations, key, settings.zero) != 0:
            continue
        set_status(relations, key, ones, 0)
        scratch.delta[size] = key
        size += 1
    state.delta = size
    if settings.enters_first:
        _enter(size, scratch, log, state)
    return size


@part
def _enter(size: int, scratch: Scratch, log: Log, state: State) -> None:
    """Append the facts of a round to the log of admitted facts."""
    first = state.admitted
    log.admitted[first : first + size] = scratch.delta[:size]
    state.admitted += size


@kernel(
    int64(
        TRIGGERS,
        SCRATCH,
        _LOG,
        pair_of(KEYS),
        _BITS,
        _SEEN,
        TABLE,
        _SETTINGS,
        _STATE,
        TABLE,
    )
)
def saturate(
    triggers: TriggerIndex,
    scratch: Scratch,
    log: Log,
    changes: tuple[Keys, Keys],
    bits: Bits,
    seen: Seen,
    rules: Numbers,
    settings: Settings,
    states: State,
    growth: Numbers,
) -> int:
    """Apply rules until no candidate is admitted.

    Args:
        triggers: the trigger index.
        scratch: work arrays, which already contain the first candidates.
        log: receives the admitted facts and the overwritten counts.
        changes: the facts that the initial rules read as positive and as negative
            changes.
        bits: status bits.
        seen: view masks.
        rules: a line for each set of initial rules, and a last one for the rules of
            rounds.
        settings: settings of the saturation.
        states: the state of the saturation, one record.
        growth: for each relation its number of rows, which is updated as rows are
            allocated, and the layout of its other index; see
            `kernels.appends.append_few`.

    Returns:
        `SATURATED`; `HAS_FRESH`, if facts need rows and counts and have to become
        candidates before the next call; `PAUSED`, if the next call can continue once
        the lists are emptied; `TOO_LARGE`, if the next set of initial rules, or the
        rules of a round whose facts are in `delta`, have to be applied in batches;
        `BELOW_ZERO`, if a count has fallen below zero.
    """
    state = states[0]
    relations, delta = triggers.relations, scratch.delta
    room = scratch.candidates.size
    stop = state.matches + settings.pause_after
    if state.next < rules.shape[0] - 1:
        ends = _apply_first(
            changes, bits, seen.first, rules, settings, triggers, scratch, log, state
        )
        if ends != _DONE:
            return ends
    while True:
        if state.fresh > 0 and not _give_rows(growth, triggers, scratch, log, state):
            return int64(HAS_FRESH)
        state.segments = 0
        if (
            state.admitted + state.candidates > room
            or 2 * state.logged > room
            or state.chunks >= log.chunks.shape[0]
            or state.matches >= stop
        ):
            return int64(PAUSED)
        size = _admit(bits, seen.unless, settings, triggers, scratch, log, state)
        if size == 0:
            return int64(SATURATED)
        state.rounds += 1
        state.in_all += size
        ends = _apply_step(
            size, seen.step, rules, settings, triggers, scratch, log, state
        )
        if ends == TOO_LARGE or settings.enters_first:
            mark_keys(relations, delta, size, 0, bits.changed, 0)
        else:
            # Not earlier: an instance may use two facts of the same round.
            mark_keys(relations, delta, size, bits.into, bits.changed, 0)
            _enter(size, scratch, log, state)
        if ends != _DONE:
            return ends
        state.delta = 0
