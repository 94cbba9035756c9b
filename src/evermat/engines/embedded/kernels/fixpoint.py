"""The compiled loop that saturates: see `evermat.algebra.fixpoint` for the algorithm.

It serves rounds of few facts, for which a step of Python between two operators would
take longer than the operators do. Facts are keys: the number of a relation in the upper
half, a row in the lower one. Between rounds, a call may return: to have facts that are
derived for the first time given rows, to be interrupted, or because a round turns out
to be large and is better run in batches. Another call, or other code, goes on from
there.
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

# -------------------------------------------------------------- what a call works on


class Log(NamedTuple):
    """What a call leaves behind.

    Attributes:
        admitted: the facts that entered the set, in the order in which they did.
        changed: rows of the changes that the rules for the beginning read.
        counted: facts whose counts were overwritten, part by part in order.
        old_counts: their counts before.
        chunks: for each part where it ends, and the counter that was changed.
        greatest: for each counter and relation the greatest row that was changed.
        segments: where segments of fresh facts end, and the counter of each.
    """

    admitted: Keys
    changed: Rows
    counted: Keys
    old_counts: Rows
    chunks: Numbers
    greatest: Numbers
    segments: Numbers


class Settings(NamedTuple):
    """How to saturate.

    Attributes:
        sign: 1 if derivations are added to counts, or -1.
        zero: the counter that has to be zero, or -1.
        enters_first: whether facts enter the set before rules are applied to them.
        cost_limit: how many rows a round may look at.
        pause_after: after how many matches a call returns.
    """

    sign: int
    zero: int
    enters_first: int
    cost_limit: int
    pause_after: int


class Bits(NamedTuple):
    """Status bits: of the set that grows, and of the two changes that queries read."""

    into: int
    changed: int
    changed_absent: int


class Seen(NamedTuple):
    """For each status what may see it.

    Attributes:
        first: the rules for the beginning.
        step: those of a round.
        unless: which statuses are not admitted.
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
"""Beside what `kernels.changes` has: which of the rules for the beginning is next; how
many rounds there were since the last call, and how many facts they admitted; how many
facts the last round has; and how much is used of the lists of admitted facts, of
segments of fresh facts, of overwritten counts and of their parts."""

SLOT, COUNTER = range(2)
"""A line of rules: which queries, and the counter of their derivations; -1 if none."""

SATURATED, HAS_FRESH, PAUSED, TOO_LARGE, BELOW_ZERO = range(5)
"""How a call ends."""

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
    """Make the heads that were found candidates, and change their counts.

    The old counts are logged. Returns how the call ends, or `_DONE`; where it is too
    large, nothing has changed.
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
    """Apply the rules for the beginning to a change; their heads become candidates.

    Returns how the call ends, or `_DONE`.
    """
    lost, gained = changes
    relations, rows = triggers.relations, log.changed
    if lost.size + gained.size > rows.size:
        return int64(TOO_LARGE)
    positive = np.empty(relations.size + 1, np.int64)
    negative = np.empty(relations.size + 1, np.int64)
    end = group_rows(lost, lost.size, 0, positive, rows)
    group_rows(gained, gained.size, end, negative, rows)
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
    """Apply the rules to the facts of a round; their heads become the candidates."""
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
    """Give rows to facts that have none, and make them candidates.

    Returns:
        Whether none of them is counted and there was room for all of them; if not,
        nothing has changed.
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
    """Make the admitted candidates the facts of a round; how many there are."""
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
    """List the facts of a round among those that have entered the set."""
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
    """Apply rules until no candidate is admitted any more.

    Args:
        triggers: what changes set off.
        scratch: room to work in; candidates are listed already.
        log: is given what happens.
        changes: facts that the rules for the beginning read as changed, positive and
            negative.
        bits: status bits.
        seen: for each status what may see it.
        rules: a line for each set of rules for the beginning, and one for the rules of
            rounds.
        settings: how to saturate.
        states: where the saturation is: one record.
        growth: for each relation how many rows it has, which changes as facts get rows,
            and the layout of its other index; see `kernels.appends.append_few`.

    Returns:
        `SATURATED`; `HAS_FRESH`, if facts without rows have to be given rows and
        counts, and to be made candidates, before the next call; `PAUSED`, if the next
        call can go on when lists are emptied; `TOO_LARGE`, if the next of the rules for
        the beginning, or the rules of a round whose facts are listed, have to be
        applied otherwise; `BELOW_ZERO`, if a count has fallen below zero.
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
            # Not before: an instance may use two facts that fall in the same round.
            mark_keys(relations, delta, size, bits.into, bits.changed, 0)
            _enter(size, scratch, log, state)
        if ends != _DONE:
            return ends
        state.delta = 0
