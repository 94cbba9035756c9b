"""The compiled loop that carries out a whole small update by DRed^c.

See `evermat.maintenance.dred_counting` for the algorithm; here it is once more for few
facts, stratum by stratum and round by round without a step of Python between them.
Facts are keys: the number of a relation in the upper half, a row in the lower one.

Facts that are derived for the first time have no row yet. Then the call returns, rows
are given to them, and another call goes on where the first one stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels import int64, kernel, sort_keys
from evermat.engines.embedded.kernels_programs import match_programs, tally
from evermat.engines.embedded.layout import COUNTERS, STATUS
from evermat.engines.embedded.raw import (
    read_number,
    read_row,
    read_status,
    write_row,
    write_status,
)

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Rows
    from evermat.engines.embedded.layout import Numbers

# -------------------------------------------------------------- what a call works on

DELETED, ADDED, CHANGED, CHANGED_ABSENT = range(4)
"""Status bits: the two sets that an update fills, and the two changes that queries
read."""

BEFORE, REMAINING, UPDATED = range(3)
"""What queries may see: the facts before the update, those of them that are not known
to be lost, and the new facts as far as they are known."""

NONRECURSIVE, RECURSIVE = range(2)
"""The two sorts of rules, and their counters."""

STRATUM, PHASE, DELETIONS, ADDITIONS, CANDIDATES, LOGGED, CHUNKS, FRESH, PATIENCE = (
    range(9)
)
"""Where the update is: the stratum and what is done in it, then how much of each list
is used, and how many rows may still be looked at."""

FRESH_NONRECURSIVE, MATCHES = 9, 10
"""How much of `fresh` nonrecursive rules have written, and all matches so far."""

OLD_DELETIONS, OLD_ADDITIONS = 11, 12
"""How long the lists were when the stratum began."""

STATE_SIZE = 13

LOSE, INSERT = range(2)
"""What is done in a stratum: facts are deleted, and then added."""

IS_TOUCHED, ROUNDS, LOSING, GAINING, OVERDELETED, REDERIVED, INSERTED = range(7)
"""What is reported of a stratum: whether it was visited, how often rules were applied,
rule instances matched in the two halves, and numbers of facts."""

REPORT_SIZE = 7

DONE, HAS_FRESH, GAVE_UP, BELOW_ZERO = range(4)
"""How a call ends."""

(IN_DELETED, IN_ADDED, IN_CANDIDATES, IN_DELTA, IN_FOUND, IN_SPARE, IN_LOG) = range(7)
"""Lists of facts."""

LISTS, NUMBER_LISTS = 7, 3
"""How many lists there are of each sort."""

IN_ROWS, IN_COUNTS, IN_OLD_COUNTS = range(3)
"""Lists of numbers."""

Wired = tuple["Numbers", "Numbers", "Numbers", "Numbers", "Numbers", "Numbers"]
"""What changes set off: addresses of relations, which have both counters; for each
relation the stratum that derives it, from 1, or 0; where the entries begin that each
slot has for positive changes, and for negative ones; the entries, each a relation and
which programs read its change; for each program its address and the relation it
derives; and what is counted, how many rows it has read and how many matches it had.
There are two slots for each stratum, the nonrecursive rules first."""

Lists = tuple["Keys", "Rows", "Ids", "Numbers", "Numbers"]
"""Room to work in: lists of facts and of numbers; facts that have no row yet, as
`run_programs` writes them; ends of parts of the log, with the counter that was changed;
and for each counter and relation the greatest row that was changed."""

Given = tuple["Numbers", "Flags", "Keys", "Keys"]
"""The four status bits, which no fact has at first; for each status the roles that may
see it, by what queries may see; E⁻ and E⁺."""

_MATERIALISED = 1
_HALF = np.uint64(32)
_LOWER = np.uint64(0xFFFFFFFF)

_keys = "uint64[::1]"
_numbers = "int64[::1]"
_table = "int64[:, ::1]"
_wiring = f"Tuple(({_numbers}, {_numbers}, {_numbers}, {_table}, {_table}, {_table}))"
_lists = f"Tuple((uint64[:, ::1], int32[:, ::1], uint32[::1], {_table}, {_table}))"
_given = f"Tuple(({_numbers}, uint8[:, ::1], {_keys}, {_keys}))"


# --------------------------------------------------------------------------- facts


@kernel(f"int64({_numbers}, uint64)")
def _status_of(relations: Numbers, key: np.uint64) -> int:
    status = read_number(relations[int64(key >> _HALF)], STATUS)
    return int64(read_status(status, int64(key & _LOWER)))


@kernel(f"void({_numbers}, uint64, int64, int64)")
def _set_status(relations: Numbers, key: np.uint64, ones: int, zeros: int) -> None:
    """Set some bits of the status of a fact and clear others."""
    status = read_number(relations[int64(key >> _HALF)], STATUS)
    row = int64(key & _LOWER)
    write_status(status, row, np.uint16((read_status(status, row) | ones) & ~zeros))


@kernel(f"int64({_numbers}, uint64, int64)")
def _count_of(relations: Numbers, key: np.uint64, which: int) -> int:
    counter = read_number(relations[int64(key >> _HALF)], COUNTERS + which)
    if counter == 0:
        return int64(0)
    return int64(read_row(counter, int64(key & _LOWER)))


@kernel(f"void({_numbers}, {_keys}, int64, int64, int64, int64)")
def mark_keys(
    relations: Numbers, keys: Keys, size: int, ones: int, zeros: int, unless: int
) -> None:
    """Set and clear bits of facts, except those that have another bit."""
    for i in range(size):
        if not _status_of(relations, keys[i]) & unless:
            _set_status(relations, keys[i], ones, zeros)


@kernel(f"int64({_numbers}, {_keys}, int64, int64, int64, {_numbers}, int32[::1])")
def _group(
    relations: Numbers,
    keys: Keys,
    size: int,
    unless: int,
    first: int,
    starts: Numbers,
    rows: Rows,
) -> int:
    """Put rows of one relation after those of another, from a place on.

    Args:
        relations: addresses by number.
        keys: facts.
        size: how many.
        unless: facts with this status bit are left out.
        first: the place.
        starts: is given the places where relations begin, and the end.
        rows: is given the rows.

    Returns:
        The end.
    """
    count = relations.size
    starts[:] = 0
    for i in range(size):
        if not _status_of(relations, keys[i]) & unless:
            starts[int64(keys[i] >> _HALF) + 1] += 1
    starts[0] = first
    for number in range(count):
        starts[number + 1] += starts[number]
    for i in range(size):
        if not _status_of(relations, keys[i]) & unless:
            number = int64(keys[i] >> _HALF)
            rows[starts[number]] = int64(keys[i] & _LOWER)
            starts[number] += 1
    for number in range(count, 0, -1):
        starts[number] = starts[number - 1]
    starts[0] = first
    return starts[count]


@kernel(f"int64({_numbers}, {_keys}, int64, {_keys}, int32[::1], {_table})")
def split_keys(
    relations: Numbers, keys: Keys, size: int, spare: Keys, rows: Rows, lines: Numbers
) -> int:
    """Put facts in order, as rows and lines of `kernels_sets`; how many lines."""
    ordered = sort_keys(keys[:size], spare[:size])
    found = int64(0)
    for i in range(size):
        number = int64(ordered[i] >> _HALF)
        rows[i] = int64(ordered[i] & _LOWER)
        if found == 0 or lines[found - 1, 3] != number:
            lines[found, 0] = relations[number]
            lines[found, 1] = i
            lines[found, 3] = number
            found += 1
        lines[found - 1, 2] = i + 1
    return found


# --------------------------------------------------------------------------- rules


@kernel(
    f"int64(int64, {_numbers}, {_numbers}, uint8[::1], {_wiring}, {_lists}, {_numbers})"
)
def _derive(
    slot: int,
    positive: Numbers,
    negative: Numbers,
    visible: Flags,
    wiring: Wired,
    lists: Lists,
    state: Numbers,
) -> int:
    """Run the queries of some rules that read what changed, and count the heads.

    Args:
        slot: which rules.
        positive: where the changed rows of each relation begin.
        negative: the same for rows that are changed the other way.
        visible: for each status the roles that may see it.
        wiring: what changes set off.
        lists: room to work in.
        state: where the update is.

    Returns:
        The number of distinct heads that have a row, or -1: there was no room.
    """
    _, _, entry_starts, entries, programs, work = wiring
    keys, numbers, fresh, _, _ = lists
    first, middle, last = entry_starts[2 * slot : 2 * slot + 3]
    total = int64(0)
    for entry in range(first, last):
        starts = positive if entry < middle else negative
        number = entries[entry, 0]
        if starts[number + 1] > starts[number]:
            total += entries[entry, 2] - entries[entry, 1]
    if total == 0:
        return int64(0)
    jobs = np.empty((total, 4), np.int64)
    origins = np.empty(total, np.int64)
    matches = np.empty(total, np.int64)
    job = int64(0)
    for entry in range(first, last):
        starts = positive if entry < middle else negative
        number = entries[entry, 0]
        if starts[number + 1] > starts[number]:
            for program in range(entries[entry, 1], entries[entry, 2]):
                jobs[job, 0] = programs[program, 0]
                jobs[job, 1] = starts[number]
                jobs[job, 2] = starts[number + 1]
                jobs[job, 3] = programs[program, 1]
                origins[job] = program
                job += 1
    known, written, patience = match_programs(
        jobs,
        numbers[IN_ROWS],
        visible,
        np.empty(0, np.uint8),
        keys[IN_FOUND],
        fresh,
        state[FRESH],
        matches,
        state[PATIENCE],
    )
    if known < 0:
        return int64(-1)
    state[FRESH] = written
    state[PATIENCE] = patience
    for job in range(total):
        work[origins[job], 0] += jobs[job, 2] - jobs[job, 1]
        work[origins[job], 1] += matches[job]
        state[MATCHES] += matches[job]
    return tally(known, keys[IN_FOUND], keys[IN_SPARE], numbers[IN_COUNTS])


@kernel(f"int64(int64, int64, int64, {_wiring}, {_lists}, {_numbers})")
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
    if state[CHUNKS] == chunks.shape[0]:
        return int64(GAVE_UP)
    least = int64(0)
    for i in range(size):
        key = keys[IN_FOUND, i]
        number = int64(key >> _HALF)
        row = int64(key & _LOWER)
        counter = read_number(relations[number], COUNTERS + which)
        old = read_row(counter, row)
        new = int64(old) + sign * int64(numbers[IN_COUNTS, i])
        write_row(counter, row, new)
        least = min(least, new)
        keys[IN_LOG, log + i] = key
        numbers[IN_OLD_COUNTS, log + i] = old
        keys[IN_CANDIDATES, first + i] = key
        greatest[which, number] = max(greatest[which, number], row)
    state[LOGGED] += size
    state[CANDIDATES] += size
    if size > 0:
        chunks[state[CHUNKS], 0] = state[LOGGED]
        chunks[state[CHUNKS], 1] = which
        state[CHUNKS] += 1
    return int64(DONE if least >= 0 else BELOW_ZERO)


@kernel(f"void({_wiring}, {_lists}, int64)")
def restore_counts(wiring: Wired, lists: Lists, count: int) -> None:
    """Write back the counts that so many parts of the log were overwritten by."""
    relations = wiring[0]
    keys, numbers, _, chunks, _ = lists
    for chunk in range(count - 1, -1, -1):
        start = chunks[chunk - 1, 0] if chunk else int64(0)
        for i in range(start, chunks[chunk, 0]):
            key = keys[IN_LOG, i]
            address = relations[int64(key >> _HALF)]
            counter = read_number(address, COUNTERS + chunks[chunk, 1])
            write_row(counter, int64(key & _LOWER), numbers[IN_OLD_COUNTS, i])


@kernel(f"boolean({_numbers}, {_numbers}, {_wiring}, {_lists}, {_given}, {_numbers})")
def _group_changes(
    lost: Numbers,
    gained: Numbers,
    wiring: Wired,
    lists: Lists,
    given: Given,
    state: Numbers,
) -> bool:
    """What lower strata have lost and gained, net: rows by relation.

    That is what was deleted and not added until the stratum began, and the other way
    round. Returns whether there is room for it.
    """
    relations = wiring[0]
    keys, numbers, _, _, _ = lists
    deleted, added = given[0][DELETED], given[0][ADDED]
    rows = numbers[IN_ROWS]
    deletions, additions = state[OLD_DELETIONS], state[OLD_ADDITIONS]
    if deletions + additions > rows.size:
        return False
    end = _group(relations, keys[IN_DELETED], deletions, added, 0, lost, rows)
    _group(relations, keys[IN_ADDED], additions, deleted, end, gained, rows)
    return True


@kernel(f"boolean(int64, {_numbers}, {_numbers}, {_wiring})")
def _reads(stratum: int, lost: Numbers, gained: Numbers, wiring: Wired) -> bool:
    """Whether rules of a stratum read something that has changed."""
    _, _, entry_starts, entries, _, _ = wiring
    for entry in range(entry_starts[4 * stratum], entry_starts[4 * stratum + 4]):
        number = entries[entry, 0]
        if lost[number + 1] > lost[number] or gained[number + 1] > gained[number]:
            return True
    return False


@kernel(
    f"int64(int64, int64, {_numbers}, {_numbers}, {_wiring}, {_lists}, {_given}, "
    f"{_numbers})"
)
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
    keys = lists[0]
    bits, tables, _, _ = given
    deleted, added = bits[DELETED], bits[ADDED]
    deletions, additions = state[OLD_DELETIONS], state[OLD_ADDITIONS]
    bit_of_lost = bits[CHANGED if sign < 0 else CHANGED_ABSENT]
    bit_of_gained = bits[CHANGED_ABSENT if sign < 0 else CHANGED]
    mark_keys(relations, keys[IN_DELETED], deletions, bit_of_lost, 0, added)
    mark_keys(relations, keys[IN_ADDED], additions, bit_of_gained, 0, deleted)
    ends = int64(DONE)
    for which in range(2):
        size = _derive(
            2 * stratum + which,
            lost if sign < 0 else gained,
            gained if sign < 0 else lost,
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
    mark_keys(relations, keys[IN_DELETED], deletions, 0, bit_of_lost, 0)
    mark_keys(relations, keys[IN_ADDED], additions, 0, bit_of_gained, 0)
    return ends


@kernel(f"int64(int64, int64, int64, int64, {_wiring}, {_lists}, {_given}, {_numbers})")
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
    _group(relations, keys[IN_DELTA], size, 0, 0, starts, numbers[IN_ROWS])
    state[CANDIDATES] = 0
    slot = 2 * stratum + RECURSIVE
    found = _derive(slot, starts, nothing, given[1][seen], wiring, lists, state)
    return _count(found, RECURSIVE, sign, wiring, lists, state)


# -------------------------------------------------------------------------- updates


@kernel(f"int64(int64, {_keys}, {_wiring}, {_lists}, {_numbers})")
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
        if holders[int64(facts[i] >> _HALF)] == stratum:
            candidates[state[CANDIDATES]] = facts[i]
            state[CANDIDATES] += 1
    return state[CANDIDATES] - before


@kernel(f"int64({_wiring}, {_lists}, {_given}, {_numbers}, {_numbers})")
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
            is_waiting = _status_of(relations, key) & (deleted | changed)
            if not is_waiting and not _count_of(relations, key, NONRECURSIVE):
                _set_status(relations, key, changed, 0)
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


@kernel(f"int64({_wiring}, {_lists}, {_given}, {_numbers}, {_numbers})")
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
            status = _status_of(relations, key)
            held = status & _MATERIALISED and not status & deleted
            if not held and not status & added:
                _set_status(relations, key, added | changed, 0)
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


@kernel(
    f"int64({_numbers}, {_numbers}, {_wiring}, {_lists}, {_given}, {_numbers}, "
    f"{_numbers})"
)
def _change(
    lost: Numbers,
    gained: Numbers,
    wiring: Wired,
    lists: Lists,
    given: Given,
    state: Numbers,
    report: Numbers,
) -> int:
    """Begin with a stratum: all but adding facts.

    `lost` and `gained` are room for what `_group_changes` finds.
    """
    _, _, withdrawn, inserted = given
    stratum = state[STRATUM]
    before = state[MATCHES]
    state[OLD_DELETIONS] = state[DELETIONS]
    state[OLD_ADDITIONS] = state[ADDITIONS]
    state[CANDIDATES] = 0
    if not _group_changes(lost, gained, wiring, lists, given, state):
        return int64(GAVE_UP)
    reads = _reads(stratum, lost, gained, wiring)
    own = _add_own(stratum, withdrawn, wiring, lists, state)
    report[IS_TOUCHED] = stratum == 0 or reads or own > 0
    ends = int64(DONE)
    if reads:
        ends = _count_affected(stratum, -1, lost, gained, wiring, lists, given, state)
    if ends == DONE:
        ends = _overdelete(wiring, lists, given, state, report)
    if ends != DONE:
        return ends
    report[LOSING] = state[MATCHES] - before
    before = state[MATCHES]
    own = _add_own(stratum, inserted, wiring, lists, state)
    if own < 0:
        return int64(GAVE_UP)
    report[IS_TOUCHED] |= own > 0
    state[PHASE] = INSERT
    state[FRESH] = 0
    if reads:
        if report[ROUNDS] > 0:
            # The rounds have used the room.
            _group_changes(lost, gained, wiring, lists, given, state)
        ends = _count_affected(stratum, 1, lost, gained, wiring, lists, given, state)
        report[GAINING] += state[MATCHES] - before
        if state[FRESH] > 0 and ends == DONE:
            ends = int64(HAS_FRESH)
    return ends


@kernel(f"int64({_wiring}, {_lists}, {_given}, {_numbers}, {_table})")
def maintain(
    wiring: Wired, lists: Lists, given: Given, state: Numbers, report: Numbers
) -> int:
    """Bring facts and both counters up to date; the counts of given facts are.

    Args:
        wiring: what changes set off.
        lists: room to work in.
        given: what changes first.
        state: where the update is; zeros at first, but for the patience.
        report: what was done, a line for each stratum; the first is for facts of none.

    Returns:
        `DONE`; `HAS_FRESH`, if facts without rows have to be given rows and counts,
        and to be made candidates, before the next call; `GAVE_UP` or `BELOW_ZERO`,
        when counts and the bits of both sets have to be restored.
    """
    lost = np.empty(wiring[0].size + 1, np.int64)
    gained = np.empty(wiring[0].size + 1, np.int64)
    while state[STRATUM] < report.shape[0]:
        stratum = state[STRATUM]
        line = report[stratum]
        if state[PHASE] == LOSE:
            ends = _change(lost, gained, wiring, lists, given, state, line)
            if ends != DONE:
                return ends
        ends = _insert(wiring, lists, given, state, line)
        if ends != DONE:
            return ends
        state[STRATUM] += 1
        state[PHASE] = LOSE
    return int64(DONE)
