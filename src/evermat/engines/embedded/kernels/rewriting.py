"""Rewriting small fact sets by representatives, and finding preimages.

The *image* of a fact is its rewritten fact. One call handles all relations of a set,
which is divided into segments as in `kernels.fact_sets`; the arrays of
`kernels.cliques` say which constants are equal. To collect rows without duplicates,
rows are marked by a status bit that no row has, and it is cleared again at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.fact_sets import (
    HIGH,
    LOW,
    RELATION,
    keep_line,
)
from evermat.engines.embedded.kernels.keys import (
    inner_kernel,
    int32,
    int64,
    kernel,
    uint8,
    uint16,
    uint64,
)
from evermat.engines.embedded.kernels.layout import (
    ARITY,
    ARITY_OF_RUN,
    FIRST_RUN,
    KEYS,
    PRIMARY,
    ROOM,
    ROWS,
    RUNS,
    SIZE,
    STATUS,
    TABLE,
    read_id,
    read_key,
    read_number,
    read_row,
    read_status,
    write_status,
)
from evermat.engines.embedded.kernels.lookups import find_places, find_row, key_of
from evermat.engines.embedded.relation import EXPLICIT

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids, Rows
    from evermat.engines.embedded.kernels.layout import Numbers

UNKNOWN = -1
"""The result if an image has no row."""

TOO_MANY = -2
"""The result if there is no room."""

MOST_COMBINATIONS = 64
"""Up to this many combinations of members are tried for one fact."""

_HALF = np.uint64(32)
_WORD = 8
_lines = "int64[:, ::1]"


@kernel(f"int64({_lines})")
def _widest(lines: Numbers) -> int:
    """Return the greatest arity of the relations."""
    most = int64(1)
    for line in range(lines.shape[0]):
        most = max(most, read_number(lines[line, RELATION], ARITY))
    return most


@inner_kernel("int64(int64, uint32[::1])")
def _find(relation: int, ids: Ids) -> int:
    """Return the row of a fact, or -1."""
    arity = read_number(relation, ARITY)
    goal = key_of(ids, 0, arity)
    return find_row(relation, read_number(relation, PRIMARY), arity, goal, ids, 0)


@kernel("int64(int64, uint32[:, ::1], int32[::1])")
def find_rows(relation: int, table: Ids, found: Rows) -> int:
    """Find the rows of facts in a table by column; UNKNOWN if one of them has none."""
    arity = int64(table.shape[0])
    ids = np.empty(arity, np.uint32)
    for i in range(table.shape[1]):
        for at in range(arity):
            ids[at] = table[at, i]
        row = _find(relation, ids)
        if row < 0:
            return int64(UNKNOWN)
        found[i] = int32(row)
    return int64(table.shape[1])


@inner_kernel("int64(int64, int64, uint32[::1], uint32[::1])")
def _image(relation: int, row: int, links: Ids, ids: Ids) -> int:
    """Return the row of the image of a fact, maybe its own, or -1 if it has none."""
    table = read_number(relation, TABLE)
    room = read_number(relation, ROOM)
    is_other = False
    for at in range(read_number(relation, ARITY)):
        one = read_id(table, at * room + row)
        if one < links.size and links[one] != 0:
            one ^= links[one]
            is_other = True
        ids[at] = one
    return _find(relation, ids) if is_other else row


@inner_kernel("int64(int64, int64, int32[::1], int64, uint16)")
def _note(status: int, row: int, found: Rows, size: int, bit: int) -> int:
    """Append and mark a row unless it is marked already; return the new length."""
    old = read_status(status, row)
    if old & bit:
        return size
    write_status(status, row, uint16(old | bit))
    found[size] = int32(row)
    return size + 1


@kernel("void(int64, int32[::1], int64, int64, uint16)")
def _clear(status: int, rows: Rows, low: int, high: int, bit: int) -> None:
    for i in range(low, high):
        row = int64(rows[i])
        write_status(status, row, uint16(read_status(status, row) & ~bit))


@kernel(f"int64({_lines}, int32[::1], uint32[::1], uint16, int32[::1], {_lines})")
def rewrite(
    lines: Numbers, rows: Rows, links: Ids, bit: int, found: Rows, found_lines: Numbers
) -> int:
    """Rewrite facts, without duplicates; return the number of segments.

    Returns:
        The number of segments, 0 if all facts are their own images, or UNKNOWN if an
        image has no row.
    """
    ids = np.empty(_widest(lines), np.uint32)
    size = int64(0)
    others = int64(0)
    count = int64(0)
    for line in range(lines.shape[0]):
        relation = lines[line, RELATION]
        status = read_number(relation, STATUS)
        start = size
        is_known = True
        for i in range(lines[line, LOW], lines[line, HIGH]):
            row = int64(rows[i])
            image = _image(relation, row, links, ids)
            if image < 0:
                is_known = False
                break
            others += image != row
            size = _note(status, image, found, size, bit)
        _clear(status, found, start, size, bit)
        if not is_known:
            return int64(UNKNOWN)
        count += keep_line(lines, line, start, size, found_lines, count)
    return count if others > 0 else int64(0)


@kernel(f"int64({_lines}, int32[::1], uint32[::1], uint8[::1], int32[::1], {_lines})")
def choose_by_image(
    lines: Numbers,
    rows: Rows,
    links: Ids,
    visible: Flags,
    kept: Rows,
    kept_lines: Numbers,
) -> int:
    """Keep facts whose image has a visible status.

    Returns the number of segments that are left.
    """
    ids = np.empty(_widest(lines), np.uint32)
    size = int64(0)
    count = int64(0)
    for line in range(lines.shape[0]):
        relation = lines[line, RELATION]
        status = read_number(relation, STATUS)
        start = size
        for i in range(lines[line, LOW], lines[line, HIGH]):
            kept[size] = rows[i]
            image = _image(relation, int64(rows[i]), links, ids)
            if image >= 0:
                size += visible[read_status(status, image)] != 0
        count += keep_line(lines, line, start, size, kept_lines, count)
    return count


@kernel(f"int64({_lines}, int32[::1], int32[::1], int32[::1], {_lines})")
def choose_shared(
    lines: Numbers, rows: Rows, others: Rows, kept: Rows, kept_lines: Numbers
) -> int:
    """Keep facts with a constant that equals others; return the number of segments."""
    size = int64(0)
    count = int64(0)
    for line in range(lines.shape[0]):
        relation = lines[line, RELATION]
        table = read_number(relation, TABLE)
        room = read_number(relation, ROOM)
        arity = read_number(relation, ARITY)
        start = size
        for i in range(lines[line, LOW], lines[line, HIGH]):
            kept[size] = rows[i]
            for at in range(arity):
                one = read_id(table, at * room + int64(rows[i]))
                if one < others.size and others[one] != 0:
                    size += 1
                    break
        count += keep_line(lines, line, start, size, kept_lines, count)
    return count


@inner_kernel("boolean(uint32[::1], uint32)")
def _has(ids: Ids, one: int) -> bool:
    """Return whether an id is among sorted ids (binary search)."""
    low = int64(0)
    high = int64(ids.size)
    while low < high:
        middle = (low + high) >> 1
        if ids[middle] < one:
            low = middle + 1
        else:
            high = middle
    return low < ids.size and ids[low] == one


@kernel(f"int64({_lines}, int32[::1], uint32[::1], int32[::1], {_lines})")
def choose_mentioning(
    lines: Numbers, rows: Rows, ids: Ids, kept: Rows, kept_lines: Numbers
) -> int:
    """Keep facts with one of some sorted ids; return the number of segments."""
    size = int64(0)
    count = int64(0)
    for line in range(lines.shape[0]):
        relation = lines[line, RELATION]
        table = read_number(relation, TABLE)
        room = read_number(relation, ROOM)
        arity = read_number(relation, ARITY)
        start = size
        for i in range(lines[line, LOW], lines[line, HIGH]):
            kept[size] = rows[i]
            for at in range(arity):
                if _has(ids, read_id(table, at * room + int64(rows[i]))):
                    size += 1
                    break
        count += keep_line(lines, line, start, size, kept_lines, count)
    return count


@kernel(f"int64({_lines}, int32[::1], int32[::1], uint32[::1])")
def list_shared_ids(lines: Numbers, rows: Rows, others: Rows, found: Ids) -> int:
    """List the constants in facts that equal others, with duplicates.

    Returns their number, or TOO_MANY if they do not fit.
    """
    size = int64(0)
    for line in range(lines.shape[0]):
        relation = lines[line, RELATION]
        table = read_number(relation, TABLE)
        room = read_number(relation, ROOM)
        for at in range(read_number(relation, ARITY)):
            for i in range(lines[line, LOW], lines[line, HIGH]):
                one = read_id(table, at * room + int64(rows[i]))
                if one < others.size and others[one] != 0:
                    if size == found.size:
                        return int64(TOO_MANY)
                    found[size] = one
                    size += 1
    return size


@kernel(f"int64({_lines}, int32[::1], int32[::1], int64)")
def count_originals(lines: Numbers, rows: Rows, others: Rows, most: int) -> int:
    """Count the facts that are rewritten to some facts of representatives.

    Returns TOO_MANY if more than `most` are rewritten to one of them.
    """
    total = int64(0)
    for line in range(lines.shape[0]):
        relation = lines[line, RELATION]
        table = read_number(relation, TABLE)
        room = read_number(relation, ROOM)
        arity = read_number(relation, ARITY)
        for i in range(lines[line, LOW], lines[line, HIGH]):
            weight = int64(1)
            for at in range(arity):
                one = read_id(table, at * room + int64(rows[i]))
                if one < others.size:
                    weight *= int64(others[one]) + 1
                    if weight > most:
                        return int64(TOO_MANY)
            total += weight
    return total


@inner_kernel("boolean(int64, uint32[::1], uint32[::1], uint32[::1])")
def go_on(arity: int, ring: Ids, first: Ids, ids: Ids) -> bool:
    """Advance to the next equal fact; return False after the last one.

    The members of the last column change fastest.
    """
    for at in range(arity - 1, -1, -1):
        if ids[at] < ring.size:
            ids[at] ^= ring[ids[at]]
        if ids[at] != first[at]:
            return True
    return False


@kernel(f"int64({_lines}, int32[::1], uint32[::1], uint16, int32[::1], {_lines})")
def list_originals(
    lines: Numbers, rows: Rows, ring: Ids, bit: int, found: Rows, found_lines: Numbers
) -> int:
    """List the preimages of facts, each once; return the number of segments."""
    widest = _widest(lines)
    first = np.empty(widest, np.uint32)
    ids = np.empty(widest, np.uint32)
    size = int64(0)
    count = int64(0)
    for line in range(lines.shape[0]):
        relation = lines[line, RELATION]
        table = read_number(relation, TABLE)
        room = read_number(relation, ROOM)
        arity = read_number(relation, ARITY)
        status = read_number(relation, STATUS)
        start = size
        for i in range(lines[line, LOW], lines[line, HIGH]):
            row = int64(rows[i])
            for at in range(arity):
                first[at] = ids[at] = read_id(table, at * room + row)
            while True:
                if row >= 0 and read_status(status, row) & EXPLICIT:
                    size = _note(status, row, found, size, bit)
                if not go_on(arity, ring, first, ids):
                    break
                row = _find(relation, ids)
        _clear(status, found, start, size, bit)
        count += keep_line(lines, line, start, size, found_lines, count)
    return count


@kernel(f"int64({_lines}, uint32[::1], uint8[::1], uint16, int32[::1], {_lines})")
def list_mentioning(
    columns: Numbers,
    ids: Ids,
    visible: Flags,
    bit: int,
    found: Rows,
    found_lines: Numbers,
) -> int:
    """List all facts with a visible status and one of some ids, by index look-ups.

    Args:
        columns: for each column of a relation, the address of the relation, that of an
            index, and the number of the relation; columns of a relation are adjacent.
        ids: the ids, sorted.
        visible: for each status, whether it is visible.
        bit: a status bit that no row has.
        found: receives the rows.
        found_lines: receives the segment of each relation, and its number.

    Returns:
        The number of segments, or TOO_MANY.
    """
    least, greatest = uint64(ids[0]) << _HALF, (uint64(ids[-1]) + uint64(1)) << _HALF
    goals = np.empty(ids.size, np.uint64)
    every = np.empty(ids.size, np.uint32)
    firsts, lasts = np.empty(ids.size, np.int64), np.empty(ids.size, np.int64)
    room = np.empty(ids.size, np.int64)
    for i in range(ids.size):
        goals[i] = uint64(ids[i]) << _HALF
        every[i] = i
    size = int64(0)
    count = int64(0)
    start = int64(0)
    for column in range(columns.shape[0]):
        relation = columns[column, 0]
        index = columns[column, 1]
        status = read_number(relation, STATUS)
        run = index + _WORD * FIRST_RUN
        for _ in range(read_number(index, RUNS)):
            keys = read_number(run, KEYS)
            its_rows = read_number(run, ROWS)
            last = read_number(run, SIZE) - 1
            if read_key(keys, last) >= least and read_key(keys, 0) < greatest:
                find_places(run, uint8(1), goals, every, ids.size, firsts, lasts, room)
                for i in range(ids.size):
                    place = firsts[i]
                    end = lasts[i]
                    while place < end and read_key(keys, place) >> _HALF == ids[i]:
                        row = int64(read_row(its_rows, place))
                        place += 1
                        if visible[read_status(status, row)] == 0:
                            continue
                        if size == found.size:
                            _clear(status, found, start, size, bit)
                            return int64(TOO_MANY)
                        size = _note(status, row, found, size, bit)
            run += _WORD * ARITY_OF_RUN
        is_last = column + 1 == columns.shape[0]
        if is_last or columns[column + 1, 0] != relation:
            _clear(status, found, start, size, bit)
            if size > start:
                found_lines[count, RELATION] = relation
                found_lines[count, LOW] = start
                found_lines[count, HIGH] = size
                found_lines[count, 3] = columns[column, 2]
                count += 1
            start = size
    return count
