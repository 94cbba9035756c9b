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
    directory_entry,
    fetch_keys,
    find_row,
    key_of,
    part_of_run,
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
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Rows
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


@inner_kernel("uint64(int64, uint32[::1], uint32[::1])")
def _goal(record: int, values: Ids, ids: Ids) -> np.uint64:
    """The key that a record looks for; `ids` is given what it is made of."""
    size = read_number(record, KEY_SIZE)
    for at in range(size):
        ids[at] = values[read_number(record, OPERANDS + at)]
    return key_of(ids, 0, size)


@inner_kernel("int64(int64, uint64, uint32[::1], int64)")
def _find_fact(record: int, goal: np.uint64, ids: Ids, start: int) -> int:
    """The row of the fact that a record is about, or -1."""
    relation = read_number(record, RELATION)
    index = read_number(record, INDEX)
    size = read_number(record, KEY_SIZE)
    return find_row(relation, index, size, goal, ids, start)


@inner_kernel("boolean(int64, int64, uint8[::1])")
def _is_seen(record: int, row: int, visible: Flags) -> bool:
    seen_by = read_number(record, SEEN_BY)
    if seen_by == 0:
        return True
    status = read_number(read_number(record, RELATION), STATUS)
    return bool(visible[read_status(status, row)] & seen_by)


@inner_kernel("boolean(int64, int64, uint64, uint32[::1])")
def _take(record: int, row: int, key: np.uint64, values: Ids) -> bool:
    """Take values from a row; whether it has those that it must have."""
    relation = read_number(record, RELATION)
    table = read_number(relation, TABLE)
    room = read_number(relation, ROOM)
    at = OPERANDS + read_number(record, KEY_SIZE)
    for _ in range(read_number(record, BINDS)):
        position = read_number(record, at)
        if position == IN_KEY:
            values[read_number(record, at + 1)] = uint32(key & _LOWER)
        else:
            values[read_number(record, at + 1)] = read_id(table, position * room + row)
        at += 2
    for _ in range(read_number(record, CHECKS)):
        value = read_id(table, read_number(record, at) * room + row)
        if value != values[read_number(record, at + 1)]:
            return False
        at += 2
    return True


@inner_kernel("boolean(int64, int64, uint8[::1], uint32[::1], uint32[::1])")
def _passes(step: int, kind: int, visible: Flags, values: Ids, ids: Ids) -> bool:
    """Whether a test is passed; `ids` is room."""
    if kind >= AGREE:
        left = values[read_number(step, OPERANDS)]
        right = values[read_number(step, OPERANDS + 1)]
        return bool((left == right) == (kind == AGREE))
    row = _find_fact(step, _goal(step, values, ids), ids, 0)
    there = row >= 0 and _is_seen(step, row, visible)
    return bool(there == (kind == REQUIRE))


# ------------------------------------------------------------------------ all steps


@kernel(
    "void(int64, int64, int64, int64, int32[::1], uint8[::1], uint32[::1], int64[::1])"
)
def _warm_up(
    scan: int,
    step: int,
    low: int,
    high: int,
    rows: Rows,
    proved: Flags,
    values: Ids,
    entries: Numbers,
) -> None:
    """Fetch what the first steps for some rows, unless proved, are likely to read.

    Relations are larger than the cache. What is fetched for many rows comes at once,
    and what a step reads for one row after the other does not.
    """
    is_proof = proved.size > 0
    relation = read_number(scan, RELATION)
    table = read_number(relation, TABLE)
    room = read_number(relation, ROOM)
    at = OPERANDS + read_number(scan, KEY_SIZE)
    for _ in range(read_number(scan, BINDS) + read_number(scan, CHECKS)):
        column = table + _ROW * room * read_number(scan, at)
        for i in range(low, high):
            if not (is_proof and proved[i]):
                prefetch(column + _ROW * int64(rows[i]))
        at += 2
    if read_number(step, KIND) >= AGREE:
        return
    ids = np.empty(MOST_SLOTS, np.uint32)
    index = read_number(step, INDEX)
    for i in range(low, high):
        entries[i - low] = 0
        if is_proof and proved[i]:
            continue
        if _take(scan, int64(rows[i]), uint64(0), values):
            entries[i - low] = directory_entry(index, _goal(step, values, ids))
            prefetch(entries[i - low])
    for i in range(low, high):
        if entries[i - low] > 0:
            fetch_keys(index, entries[i - low])


@kernel(
    "UniTuple(int64, 2)(int64, int64, int64, uint64, uint32[::1], uint64[::1], "
    "uint32[::1], int64, int64)"
)
def _find_heads(
    head: int,
    low: int,
    high: int,
    target: np.uint64,
    ids: Ids,
    found: Keys,
    fresh: Ids,
    known: int,
    written: int,
) -> tuple[int, int]:
    """Look for the rows of heads; `found` and `fresh` have room for all of them."""
    size = read_number(head, KEY_SIZE)
    index = read_number(head, INDEX)
    status = read_number(read_number(head, RELATION), STATUS)
    entries = np.empty(BLOCK, np.int64)
    for i in range(low, high):
        entries[i - low] = directory_entry(index, key_of(ids, size * i, size))
        prefetch(entries[i - low])
    for i in range(low, high):
        if entries[i - low] > 0:
            fetch_keys(index, entries[i - low])
    for i in range(low, high):
        row = _find_fact(head, key_of(ids, size * i, size), ids, size * i)
        if row >= 0:
            found[known] = (target << _HALF) | uint64(row)
            known += 1
            prefetch(status + _STATUS * row)
        else:
            fresh[written] = uint32(target)
            for a in range(size):
                fresh[written + 1 + a] = ids[size * i + a]
            written += size + 1
    return known, written


@kernel(
    "UniTuple(int64, 3)(int64[:, ::1], int32[::1], uint8[::1], uint8[::1], "
    "uint64[::1], uint32[::1], int64, int64[::1], int64)"
)
def match_programs(
    jobs: Numbers,
    rows: Rows,
    visible: Flags,
    proved: Flags,
    found: Keys,
    fresh: Ids,
    written: int,
    matches: Numbers,
    patience: int,
) -> tuple[int, int, int]:
    """Run all programs; see `run_programs`.

    Returns:
        The number of heads that have a row, which are not distinct yet, or `TOO_MUCH`;
        how much of `fresh` is used, where `written` is used already; and what is left
        of the patience.
    """
    is_proof = proved.size > 0
    values = np.empty(MOST_SLOTS, np.uint32)
    ids = np.empty(MOST_SLOTS, np.uint32)
    heads = np.empty(BLOCK * MOST_SLOTS, np.uint32)
    runs = np.empty(MOST_STEPS + 2, np.int64)
    places = np.empty(MOST_STEPS + 2, np.int64)
    ends = np.empty(MOST_STEPS + 2, np.int64)
    goals = np.empty(MOST_STEPS + 2, np.uint64)
    block = np.empty(BLOCK, np.int64)
    known = int64(0)
    for job in range(jobs.shape[0]):
        program = jobs[job, PROGRAM]
        steps = read_number(program, STEPS)
        at = FIRST_OFFSET + steps + 2
        for _ in range(read_number(program, CONSTANTS)):
            values[read_number(program, at)] = uint32(read_number(program, at + 1))
            at += 2
        scan = program + _WORD * read_number(program, FIRST_OFFSET)
        first = program + _WORD * read_number(program, FIRST_OFFSET + 1)
        head = program + _WORD * read_number(program, FIRST_OFFSET + steps + 1)
        arity = read_number(head, KEY_SIZE)
        target = uint64(jobs[job, TARGET])
        count = int64(0)
        waiting = int64(0)
        low, high = jobs[job, LOW], jobs[job, HIGH]
        for i in range(low, high):
            if (i - low) % BLOCK == 0:
                end = min(i + BLOCK, high)
                _warm_up(scan, first, i, end, rows, proved, values, block)
            if is_proof and proved[i]:
                continue
            if not _take(scan, int64(rows[i]), uint64(0), values):
                continue
            depth = int64(1)
            runs[1] = -1
            while depth > 0:
                if depth > steps:
                    count += 1
                    if is_proof:
                        proved[i] = 1
                        break
                    for a in range(arity):
                        heads[arity * waiting + a] = values[
                            read_number(head, OPERANDS + a)
                        ]
                    waiting += 1
                    if waiting == BLOCK:
                        if (
                            known + waiting > found.size
                            or written + (arity + 1) * waiting > fresh.size
                        ):
                            return int64(TOO_MUCH), written, patience
                        known, written = _find_heads(
                            head,
                            0,
                            waiting,
                            target,
                            heads,
                            found,
                            fresh,
                            known,
                            written,
                        )
                        waiting = int64(0)
                    depth -= 1
                    continue
                step = program + _WORD * read_number(program, FIRST_OFFSET + depth)
                kind = read_number(step, KIND)
                if kind >= REQUIRE:
                    # Passed at most once: whoever comes back goes further back.
                    is_new = runs[depth] < 0
                    runs[depth] = 0
                    if is_new and _passes(step, kind, visible, values, ids):
                        depth += 1
                        runs[depth] = -1
                        continue
                    depth -= 1
                    continue
                by_half = kind == BY_HALF
                if runs[depth] < 0:
                    goals[depth] = _goal(step, values, ids)
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
                            step, row, key, values
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
            head, 0, waiting, target, heads, found, fresh, known, written
        )
        matches[job] = count
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
    "uint64[::1], int32[::1], uint32[::1], int64[::1], int64[::1], int64)"
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
    matches: Numbers,
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
        matches: is given the number of matches of each job.
        ends: is given the place in `found` where each relation ends, and last of all
            how much of `fresh` is used.
        patience: how many rows may be looked at.

    Returns:
        The number of distinct heads that have a row; or `TOO_MUCH`, where there is no
        room for more or patience ran out. Then nothing has changed.
    """
    known, written, _ = match_programs(
        jobs, rows, visible, proved, found, fresh, int64(0), matches, patience
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
                head, 0, size, uint64(line), facts, found, fresh, known, written
            )
    return _count(known, written, found, spare, counts, ends)
