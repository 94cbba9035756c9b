"""The compiled loop that carries out a whole small update.

Where derivations are counted it is DRed^c: see `evermat.maintenance.dred_counting` for
the algorithm. Otherwise facts are deleted in the manner of B/F (`kernels_proofs`).

Facts that are derived for the first time have no row yet. They are given rows if there
is room for them. If there is none, or if derivations are counted, the call returns, and
when they have rows another call goes on where the first one stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.index import WIDEST_EXACT_KEY
from evermat.engines.embedded.kernels import int64, kernel, uint64
from evermat.engines.embedded.kernels_changes import (
    ADDED,
    ADDITIONS,
    BEFORE,
    BELOW_ZERO,
    CANDIDATES,
    CHANGED,
    CHANGED_ABSENT,
    CHUNKS,
    DELETED,
    DELETIONS,
    DONE,
    FRESH,
    FRESH_NONRECURSIVE,
    GAINING,
    GAVE_UP,
    GIVEN,
    HALF,
    HAS_COUNTERS,
    HAS_FRESH,
    IN_ADDED,
    IN_CANDIDATES,
    IN_CHANGED,
    IN_COUNTS,
    IN_DELETED,
    IN_DELTA,
    IN_FOUND,
    IN_LOG,
    IN_OLD_COUNTS,
    IN_ROWS,
    INSERT,
    INSERTED,
    IS_TOUCHED,
    LISTED,
    LOGGED,
    LOSE,
    LOSING,
    LOWER,
    MATCHES,
    NONRECURSIVE,
    NUMBERS,
    OLD_ADDITIONS,
    OLD_DELETIONS,
    OVERDELETED,
    PHASE,
    RECURSIVE,
    REDERIVED,
    REMAINING,
    ROUNDS,
    SEARCHING,
    SORTS,
    STRATUM,
    TABLE,
    UPDATED,
    WIRED,
    derive,
    find_read,
    group_changes,
    group_rows,
    mark_grouped,
    mark_keys,
    part,
    set_status,
    sets_off,
    status_of,
)
from evermat.engines.embedded.kernels_heads import group_records
from evermat.engines.embedded.kernels_proofs import delete_unproved
from evermat.engines.embedded.kernels_tails import append_few, can_append
from evermat.engines.embedded.layout import ARITY, COUNTERS
from evermat.engines.embedded.raw import read_number, read_row, write_row

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Keys
    from evermat.engines.embedded.kernels_changes import Given, Lists, Wired
    from evermat.engines.embedded.layout import Numbers

_MATERIALISED = 1

# -------------------------------------------------------------------------- counts


@part
def _count_of(relations: Numbers, key: np.uint64, which: int) -> int:
    counter = read_number(relations[int64(key >> HALF)], COUNTERS + which)
    if counter == 0:
        return int64(0)
    return int64(read_row(counter, int64(key & LOWER)))


@part
def _count(
    size: int, which: int, sign: int, wiring: Wired, lists: Lists, state: Numbers
) -> int:
    """Add the counts of what was found, or subtract them, and keep the old ones.

    What was found becomes candidates. Returns how the call ends, or `DONE`.
    """
    relations = wiring[0]
    keys, numbers, _, chunks, greatest = lists
    room = keys.shape[1]
    log = state[LOGGED]
    first = state[CANDIDATES]
    if size < 0 or log + size > room or first + size > room:
        return int64(GAVE_UP)
    keys[IN_CANDIDATES, first : first + size] = keys[IN_FOUND, :size]
    state[CANDIDATES] += size
    if not state[HAS_COUNTERS]:
        return int64(DONE)
    if state[CHUNKS] == chunks.shape[0]:
        return int64(GAVE_UP)
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
    if size > 0:
        chunks[state[CHUNKS], 0] = state[LOGGED]
        chunks[state[CHUNKS], 1] = which
        state[CHUNKS] += 1
    return int64(DONE if least >= 0 else BELOW_ZERO)


@kernel(f"void({WIRED}, {LISTED}, int64)")
def restore_counts(wiring: Wired, lists: Lists, count: int) -> None:
    """Write back the counts that so many parts of the log were overwritten by."""
    relations = wiring[0]
    keys, numbers, _, chunks, _ = lists
    for chunk in range(count - 1, -1, -1):
        start = chunks[chunk - 1, 0] if chunk else int64(0)
        for i in range(start, chunks[chunk, 0]):
            key = keys[IN_LOG, i]
            address = relations[int64(key >> HALF)]
            counter = read_number(address, COUNTERS + chunks[chunk, 1])
            write_row(counter, int64(key & LOWER), numbers[IN_OLD_COUNTS, i])


@part
def _count_affected(
    stratum: int,
    sign: int,
    lost: Numbers,
    gained: Numbers,
    wiring: Wired,
    lists: Lists,
    given: Given,
    state: Numbers,
) -> int:
    """Count the instances that a change of lower strata destroys (-1) or creates (1).

    Their heads become candidates. Returns how the call ends, or `DONE`.
    """
    relations = wiring[0]
    rows = lists[1][IN_CHANGED]
    bits, tables, _, _ = given
    positive, negative = (lost, gained) if sign < 0 else (gained, lost)
    nonrecursive, recursive = (
        SORTS * stratum + NONRECURSIVE,
        SORTS * stratum + RECURSIVE,
    )
    if not sets_off(nonrecursive, positive, negative, wiring) and not sets_off(
        recursive, positive, negative, wiring
    ):
        return int64(DONE)
    mark_grouped(relations, positive, rows, bits[CHANGED], 0)
    mark_grouped(relations, negative, rows, bits[CHANGED_ABSENT], 0)
    ends = int64(DONE)
    for which in range(2):
        size = derive(
            SORTS * stratum + which,
            rows,
            positive,
            negative,
            tables[BEFORE if sign < 0 else UPDATED],
            wiring,
            lists,
            state,
        )
        ends = _count(size, which, sign, wiring, lists, state)
        if ends != DONE:
            break
        if which == NONRECURSIVE:
            state[FRESH_NONRECURSIVE] = state[FRESH]
    mark_grouped(relations, positive, rows, 0, bits[CHANGED])
    mark_grouped(relations, negative, rows, 0, bits[CHANGED_ABSENT])
    return ends


@part
def _count_round(
    stratum: int,
    size: int,
    sign: int,
    seen: int,
    wiring: Wired,
    lists: Lists,
    given: Given,
    state: Numbers,
) -> int:
    """Count the recursive instances that the facts of a round are part of.

    Those facts are the delta; their heads become the candidates.
    """
    relations = wiring[0]
    keys, numbers, _, _, _ = lists
    starts = np.empty(relations.size + 1, np.int64)
    nothing = np.zeros(relations.size + 1, np.int64)
    group_rows(keys[IN_DELTA], size, 0, starts, numbers[IN_ROWS])
    state[CANDIDATES] = 0
    slot = SORTS * stratum + RECURSIVE
    rows, visible = numbers[IN_ROWS], given[1][seen]
    found = derive(slot, rows, starts, nothing, visible, wiring, lists, state)
    return _count(found, RECURSIVE, sign, wiring, lists, state)


# -------------------------------------------------------------------------- updates


@part
def _add_own(
    stratum: int, facts: Keys, wiring: Wired, lists: Lists, state: Numbers
) -> int:
    """Make those of the facts candidates that a stratum derives.

    Returns how many, or -1: there was no room.
    """
    holders = wiring[1]
    candidates = lists[0][IN_CANDIDATES]
    before = state[CANDIDATES]
    if before + facts.size > candidates.size:
        return int64(-1)
    for i in range(facts.size):
        if holders[int64(facts[i] >> HALF)] == stratum:
            candidates[state[CANDIDATES]] = facts[i]
            state[CANDIDATES] += 1
    return state[CANDIDATES] - before


@part
def _overdelete(
    wiring: Wired, lists: Lists, given: Given, state: Numbers, report: Numbers
) -> int:
    """Delete what may have lost its support.

    Those of them that have recursive derivations left become the candidates.
    """
    relations = wiring[0]
    keys = lists[0]
    deleted, changed = given[0][DELETED], given[0][CHANGED]
    stratum = state[STRATUM]
    while True:
        size = int64(0)
        for i in range(state[CANDIDATES]):
            key = keys[IN_CANDIDATES, i]
            is_waiting = status_of(relations, key) & (deleted | changed)
            if not is_waiting and not _count_of(relations, key, NONRECURSIVE):
                set_status(relations, key, changed, 0)
                keys[IN_DELTA, size] = key
                size += 1
        if size == 0:
            break
        report[ROUNDS] += stratum > 0
        report[OVERDELETED] += size
        ends = int64(GAVE_UP)
        if state[DELETIONS] + size <= keys.shape[1]:
            ends = _count_round(
                stratum, size, -1, REMAINING, wiring, lists, given, state
            )
        if ends != DONE:
            mark_keys(relations, keys[IN_DELTA], size, 0, changed, 0)
            return ends
        # Not before: an instance may use two facts that fall in the same round.
        mark_keys(relations, keys[IN_DELTA], size, deleted, changed, 0)
        for i in range(size):
            keys[IN_DELETED, state[DELETIONS] + i] = keys[IN_DELTA, i]
        state[DELETIONS] += size
    state[CANDIDATES] = 0
    for i in range(state[OLD_DELETIONS], state[DELETIONS]):
        if _count_of(relations, keys[IN_DELETED, i], RECURSIVE) > 0:
            keys[IN_CANDIDATES, state[CANDIDATES]] = keys[IN_DELETED, i]
            state[CANDIDATES] += 1
    report[REDERIVED] = state[CANDIDATES]
    return int64(DONE)


@part
def _insert(
    wiring: Wired, lists: Lists, given: Given, state: Numbers, report: Numbers
) -> int:
    """Add the candidates and all that follows from them in the stratum."""
    relations = wiring[0]
    keys = lists[0]
    bits = given[0]
    deleted, added, changed = bits[DELETED], bits[ADDED], bits[CHANGED]
    stratum = state[STRATUM]
    while True:
        size = int64(0)
        for i in range(state[CANDIDATES]):
            key = keys[IN_CANDIDATES, i]
            status = status_of(relations, key)
            held = status & _MATERIALISED and not status & deleted
            if not held and not status & added:
                set_status(relations, key, added | changed, 0)
                keys[IN_DELTA, size] = key
                size += 1
        if size == 0:
            return int64(DONE)
        if state[ADDITIONS] + size > keys.shape[1]:
            mark_keys(relations, keys[IN_DELTA], size, 0, added | changed, 0)
            return int64(GAVE_UP)
        for i in range(size):
            keys[IN_ADDED, state[ADDITIONS] + i] = keys[IN_DELTA, i]
        state[ADDITIONS] += size
        report[ROUNDS] += stratum > 0
        report[INSERTED] += size
        state[FRESH] = 0
        state[FRESH_NONRECURSIVE] = 0
        before = state[MATCHES]
        ends = _count_round(stratum, size, 1, UPDATED, wiring, lists, given, state)
        mark_keys(relations, keys[IN_DELTA], size, 0, changed, 0)
        report[GAINING] += state[MATCHES] - before
        if ends != DONE:
            return ends
        if state[FRESH] > 0:
            return int64(HAS_FRESH)


@part
def _give_rows(growth: Numbers, wiring: Wired, lists: Lists, state: Numbers) -> bool:
    """Give rows to facts that have none, and make them candidates.

    Returns:
        Whether there was room for all of them; if not, nothing has changed.
    """
    relations = wiring[0]
    candidates = lists[0][IN_CANDIDATES]
    fresh = lists[2][: state[FRESH]]
    if growth.shape[0] < relations.size:
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
    return True


@part
def _change(
    lost: Numbers,
    gained: Numbers,
    read: Flags,
    wiring: Wired,
    lists: Lists,
    given: Given,
    state: Numbers,
    report: Numbers,
) -> int:
    """Begin with a stratum: all but adding facts.

    `lost` and `gained` are room for what `group_changes` finds, and `read` for which
    relations matter.
    """
    _, _, withdrawn, inserted = given
    stratum = state[STRATUM]
    before = state[MATCHES]
    state[OLD_DELETIONS] = state[DELETIONS]
    state[OLD_ADDITIONS] = state[ADDITIONS]
    state[CANDIDATES] = 0
    find_read(stratum, wiring, read)
    if not group_changes(lost, gained, read, wiring, lists, given, state):
        return int64(GAVE_UP)
    is_read = lost[0] < lost[-1] or gained[0] < gained[-1]
    own = _add_own(stratum, withdrawn, wiring, lists, state)
    if own < 0:
        return int64(GAVE_UP)
    report[IS_TOUCHED] = stratum == 0 or is_read or own > 0
    ends = int64(DONE)
    if is_read:
        ends = _count_affected(stratum, -1, lost, gained, wiring, lists, given, state)
    if ends == DONE and state[HAS_COUNTERS]:
        ends = _overdelete(wiring, lists, given, state, report)
    elif ends == DONE:
        ends = delete_unproved(wiring, lists, given, state, report)
    if ends != DONE:
        return ends
    report[LOSING] = state[MATCHES] - before - report[SEARCHING]
    before = state[MATCHES]
    own = _add_own(stratum, inserted, wiring, lists, state)
    if own < 0:
        return int64(GAVE_UP)
    report[IS_TOUCHED] |= own > 0
    state[PHASE] = INSERT
    state[FRESH] = 0
    if is_read:
        ends = _count_affected(stratum, 1, lost, gained, wiring, lists, given, state)
        report[GAINING] += state[MATCHES] - before
        if state[FRESH] > 0 and ends == DONE:
            ends = int64(HAS_FRESH)
    return ends


@kernel(f"int64({WIRED}, {LISTED}, {GIVEN}, {NUMBERS}, {TABLE}, {TABLE})")
def maintain(
    wiring: Wired,
    lists: Lists,
    given: Given,
    state: Numbers,
    report: Numbers,
    growth: Numbers,
) -> int:
    """Bring facts and both counters up to date; the counts of given facts are.

    Args:
        wiring: what changes set off.
        lists: room to work in.
        given: what changes first.
        state: where the update is; zeros at first, but for the patience.
        report: what was done, a line for each stratum; the first is for facts of none.
        growth: for each relation how many rows it has, which changes as facts get rows,
            and the layout of its other index; see `kernels_tails.append_few`. What
            follows is left alone. Without lines, no facts get rows.

    Returns:
        `DONE`; `HAS_FRESH`, if facts without rows have to be given rows and counts,
        and to be made candidates, before the next call; `GAVE_UP` or `BELOW_ZERO`,
        when counts and the bits of both sets have to be restored.
    """
    lost = np.empty(wiring[0].size + 1, np.int64)
    gained = np.empty(wiring[0].size + 1, np.int64)
    read = np.empty(wiring[0].size, np.uint8)
    while state[STRATUM] < report.shape[0]:
        line = report[state[STRATUM]]
        if state[PHASE] == LOSE:
            ends = _change(lost, gained, read, wiring, lists, given, state, line)
        else:
            ends = _insert(wiring, lists, given, state, line)
            if ends == DONE:
                state[STRATUM] += 1
                state[PHASE] = LOSE
        if ends == HAS_FRESH and _give_rows(growth, wiring, lists, state):
            continue
        if ends != DONE:
            return ends
    return int64(DONE)
