"""The part of a whole small update that deletes facts in the manner of B/F.

See `evermat.maintenance.backward_forward` for the algorithm; here it is once more for
few facts. Its growing sets are status bits, and lists by which these bits are cleared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels import int64
from evermat.engines.embedded.kernels_changes import (
    ARE_PROVED,
    BACKWARD,
    CANDIDATES,
    CHANGED,
    CHECKED,
    DELAYED,
    DELETED,
    DELETIONS,
    DONE,
    EXPLICIT,
    GAVE_UP,
    HALF,
    IN_BATCH,
    IN_CANDIDATES,
    IN_CHECKED,
    IN_DELAYED,
    IN_DELETED,
    IN_DELTA,
    IN_FOUND,
    IN_OPEN,
    IN_ROWS,
    IN_TODO,
    IS_CHECKED,
    IS_DELAYED,
    MATCHES,
    OVERDELETED,
    PROVED,
    PROVING,
    RECURSIVE,
    REDERIVE,
    REMAINING,
    ROUNDS,
    SEARCHING,
    SORTS,
    STRATUM,
    derive,
    group_rows,
    mark_keys,
    part,
    prove,
    set_status,
    status_of,
)

if TYPE_CHECKING:
    from evermat.engines.embedded.kernels_changes import Given, Lists, Wired
    from evermat.engines.embedded.layout import Numbers


@part
def _keep_without(bit: int, source: int, size: int, wiring: Wired, lists: Lists) -> int:
    """Keep those facts of a list that do not have a status bit; how many."""
    relations, keys = wiring[0], lists[0]
    kept = int64(0)
    for i in range(size):
        if not status_of(relations, keys[source, i]) & bit:
            keys[source, kept] = keys[source, i]
            kept += 1
    return kept


@part
def derive_from(
    source: int,
    size: int,
    sort: int,
    seen: int,
    wiring: Wired,
    lists: Lists,
    given: Given,
    state: Numbers,
) -> int:
    """Run queries of the stratum that read the facts of a list as changed ones.

    Returns how many facts were found, or -1: there was no room.
    """
    relations = wiring[0]
    keys, numbers = lists[0], lists[1]
    changed = given[0][CHANGED]
    starts = np.empty(relations.size + 1, np.int64)
    nothing = np.zeros(relations.size + 1, np.int64)
    group_rows(keys[source], size, 0, starts, numbers[IN_ROWS])
    slot = SORTS * state[STRATUM] + sort
    mark_keys(relations, keys[source], size, changed, 0, 0)
    rows, visible = numbers[IN_ROWS], given[1][seen]
    found = derive(slot, rows, starts, nothing, visible, wiring, lists, state)
    mark_keys(relations, keys[source], size, 0, changed, 0)
    return found


@part
def _find_sure(
    source: int,
    size: int,
    wiring: Wired,
    lists: Lists,
    given: Given,
    state: Numbers,
    report: Numbers,
) -> int:
    """Make those facts of a list candidates that hold by themselves.

    They are given, or nonrecursive rules derive them from what remains. The others are
    found. Returns how many candidates there are, or -1: there was no patience.
    """
    relations = wiring[0]
    keys, numbers = lists[0], lists[1]
    is_given = given[1][EXPLICIT]
    sure = int64(0)
    unsure = int64(0)
    for i in range(size):
        key = keys[source, i]
        if is_given[status_of(relations, key)]:
            keys[IN_CANDIDATES, sure] = key
            sure += 1
        else:
            keys[IN_FOUND, unsure] = key
            unsure += 1
    if unsure == 0:
        return sure
    rows = numbers[IN_ROWS]
    starts = np.empty(relations.size + 1, np.int64)
    group_rows(keys[IN_FOUND], unsure, 0, starts, rows)
    proved = np.zeros(unsure, np.uint8)
    slot = SORTS * state[STRATUM] + REDERIVE
    before = state[MATCHES]
    if not prove(slot, starts, given[1][REMAINING], proved, wiring, lists, state):
        return int64(-1)
    report[SEARCHING] += state[MATCHES] - before
    unsure = int64(0)
    for number in range(relations.size):
        upper = np.uint64(number) << HALF
        for i in range(starts[number], starts[number + 1]):
            key = upper | np.uint64(rows[i])
            if proved[i]:
                keys[IN_CANDIDATES, sure] = key
                sure += 1
            else:
                keys[IN_FOUND, unsure] = key
                unsure += 1
    return sure


@part
def _saturate(
    todo: int,
    wiring: Wired,
    lists: Lists,
    given: Given,
    state: Numbers,
    report: Numbers,
) -> int:
    """Prove those facts to be looked into that hold by themselves, and what follows."""
    relations, holders = wiring[0], wiring[1]
    keys = lists[0]
    bits = given[0]
    checked, proved, delayed = bits[CHECKED], bits[PROVED], bits[DELAYED]
    count = _find_sure(IN_TODO, todo, wiring, lists, given, state, report)
    if count < 0 or count + todo > keys.shape[1]:
        return int64(GAVE_UP)
    for i in range(todo):
        key = keys[IN_TODO, i]
        # Facts that the stratum's rules do not derive stay as they are.
        is_below = holders[int64(key >> HALF)] != state[STRATUM]
        if is_below or status_of(relations, key) & delayed:
            keys[IN_CANDIDATES, count] = key
            count += 1
    while True:
        size = int64(0)
        for i in range(count):
            key = keys[IN_CANDIDATES, i]
            status = status_of(relations, key)
            if status & checked:
                if not status & proved:
                    set_status(relations, key, proved, 0)
                    keys[IN_DELTA, size] = key
                    size += 1
            elif not status & delayed:
                if state[IS_DELAYED] == keys.shape[1]:
                    return int64(GAVE_UP)
                set_status(relations, key, delayed, 0)
                keys[IN_DELAYED, state[IS_DELAYED]] = key
                state[IS_DELAYED] += 1
        if size == 0:
            return int64(DONE)
        report[ARE_PROVED] += size
        report[ROUNDS] += 1
        count = derive_from(
            IN_DELTA, size, RECURSIVE, PROVING, wiring, lists, given, state
        )
        if count < 0:
            return int64(GAVE_UP)
        keys[IN_CANDIDATES, :count] = keys[IN_FOUND, :count]


@part
def _find_bodies(
    todo: int,
    wiring: Wired,
    lists: Lists,
    given: Given,
    state: Numbers,
    report: Numbers,
) -> int:
    """Facts to be looked into next: those that the last ones may follow from.

    Returns how many they are, or -1: there was no room.
    """
    relations = wiring[0]
    keys = lists[0]
    bits = given[0]
    checked, proved, changed = bits[CHECKED], bits[PROVED], bits[CHANGED]
    size = int64(0)
    for i in range(todo):
        if not status_of(relations, keys[IN_TODO, i]) & proved:
            keys[IN_DELTA, size] = keys[IN_TODO, i]
            size += 1
    before = state[MATCHES]
    found = derive_from(
        IN_DELTA, size, BACKWARD, REMAINING, wiring, lists, given, state
    )
    report[SEARCHING] += state[MATCHES] - before
    if found < 0:
        return found
    size = int64(0)
    for i in range(found):
        key = keys[IN_FOUND, i]
        if not status_of(relations, key) & (checked | changed):
            set_status(relations, key, changed, 0)
            keys[IN_TODO, size] = key
            size += 1
    mark_keys(relations, keys[IN_TODO], size, 0, changed, 0)
    return size


@part
def _check(
    size: int,
    wiring: Wired,
    lists: Lists,
    given: Given,
    state: Numbers,
    report: Numbers,
) -> int:
    """Look for proofs of the facts of the batch, and keep those without (CHECK).

    Returns how many they are, or -1: there was no room.
    """
    relations = wiring[0]
    keys = lists[0]
    checked, proved = given[0][CHECKED], given[0][PROVED]
    first = state[IS_CHECKED]
    todo = int64(0)
    for i in range(size):
        if not status_of(relations, keys[IN_BATCH, i]) & checked:
            keys[IN_TODO, todo] = keys[IN_BATCH, i]
            keys[IN_OPEN, todo] = keys[IN_BATCH, i]
            todo += 1
    still_open = todo
    while todo > 0:
        end = state[IS_CHECKED] + todo
        if end > keys.shape[1]:
            return int64(-1)
        keys[IN_CHECKED, state[IS_CHECKED] : end] = keys[IN_TODO, :todo]
        mark_keys(relations, keys[IN_TODO], todo, checked, 0, 0)
        state[IS_CHECKED] = end
        if _saturate(todo, wiring, lists, given, state, report) != DONE:
            return int64(-1)
        still_open = _keep_without(proved, IN_OPEN, still_open, wiring, lists)
        if still_open == 0:
            # What was not looked into thoroughly is forgotten again.
            state[IS_CHECKED] = first
            for i in range(first, end):
                key = keys[IN_CHECKED, i]
                if status_of(relations, key) & proved:
                    keys[IN_CHECKED, state[IS_CHECKED]] = key
                    state[IS_CHECKED] += 1
                else:
                    set_status(relations, key, 0, checked)
            break
        todo = _find_bodies(todo, wiring, lists, given, state, report)
        if todo < 0:
            return todo
    return _keep_without(proved, IN_BATCH, size, wiring, lists)


@part
def _take_batch(wiring: Wired, lists: Lists, given: Given, state: Numbers) -> int:
    """Candidates that are not deleted, each once; how many."""
    relations = wiring[0]
    keys = lists[0]
    deleted, changed = given[0][DELETED], given[0][CHANGED]
    size = int64(0)
    for i in range(state[CANDIDATES]):
        key = keys[IN_CANDIDATES, i]
        if not status_of(relations, key) & (deleted | changed):
            set_status(relations, key, changed, 0)
            keys[IN_BATCH, size] = key
            size += 1
    mark_keys(relations, keys[IN_BATCH], size, 0, changed, 0)
    return size


@part
def _leave_unsure(
    size: int,
    wiring: Wired,
    lists: Lists,
    given: Given,
    state: Numbers,
    report: Numbers,
) -> int:
    """Keep those facts of the batch that do not hold by themselves.

    Returns how many they are, or -1: there was no patience.
    """
    keys = lists[0]
    sure = _find_sure(IN_BATCH, size, wiring, lists, given, state, report)
    if sure < 0:
        return sure
    # What no rule derives is given or not, and nothing is proved.
    report[ARE_PROVED] += sure if state[STRATUM] > 0 else 0
    report[ROUNDS] += state[STRATUM] > 0
    left = size - sure
    keys[IN_BATCH, :left] = keys[IN_FOUND, :left]
    return left


@part
def _delete(
    wiring: Wired, lists: Lists, given: Given, state: Numbers, report: Numbers
) -> int:
    """Delete the candidates and what depends on them, unless proved."""
    relations, is_recursive = wiring[0], wiring[6]
    keys = lists[0]
    deleted = given[0][DELETED]
    recursive = is_recursive[state[STRATUM]]
    while True:
        size = _take_batch(wiring, lists, given, state)
        if size == 0:
            return int64(DONE)
        if recursive:
            size = _check(size, wiring, lists, given, state, report)
            report[ROUNDS] += size > 0
        else:
            size = _leave_unsure(size, wiring, lists, given, state, report)
        first = state[DELETIONS]
        if size < 0 or first + size > keys.shape[1]:
            return int64(GAVE_UP)
        if size == 0:
            return int64(DONE)
        found = int64(0)
        if recursive:
            found = derive_from(
                IN_BATCH, size, RECURSIVE, REMAINING, wiring, lists, given, state
            )
            if found < 0:
                return int64(GAVE_UP)
            keys[IN_CANDIDATES, :found] = keys[IN_FOUND, :found]
        state[CANDIDATES] = found
        mark_keys(relations, keys[IN_BATCH], size, deleted, 0, 0)
        keys[IN_DELETED, first : first + size] = keys[IN_BATCH, :size]
        state[DELETIONS] += size
        report[OVERDELETED] += size


@part
def delete_unproved(
    wiring: Wired, lists: Lists, given: Given, state: Numbers, report: Numbers
) -> int:
    """Delete facts of a stratum; no candidates are left. Returns how the call ends."""
    ends = _delete(wiring, lists, given, state, report)
    relations = wiring[0]
    keys = lists[0]
    bits = given[0]
    zeros = bits[CHECKED] | bits[PROVED]
    mark_keys(relations, keys[IN_CHECKED], state[IS_CHECKED], 0, zeros, 0)
    mark_keys(relations, keys[IN_DELAYED], state[IS_DELAYED], 0, bits[DELAYED], 0)
    state[IS_CHECKED] = 0
    state[IS_DELAYED] = 0
    state[CANDIDATES] = 0
    return ends
