"""Compiled loops over few rows of many relations, all of them in one call.

Rows of one relation follow those of another. A *line* says where those of a relation
are: the address of its layout, the first place and the last. Where lines come out, a
fourth number tells which of the lines that went in they come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels import int32, int64, kernel, uint16
from evermat.engines.embedded.layout import COUNTERS, STATUS
from evermat.engines.embedded.raw import (
    read_number,
    read_row,
    read_status,
    write_row,
    write_status,
)

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Rows
    from evermat.engines.embedded.layout import Numbers

RELATION, LOW, HIGH, ORIGIN = range(4)

_lines = "int64[:, ::1]"


@kernel(f"void({_lines}, int32[::1], int64, boolean, int64[::1])")
def mark(
    lines: Numbers,
    rows: Rows,
    bit: int,
    present: bool,  # noqa: FBT001  kernels have no keywords
    changed: Numbers,
) -> None:
    """Set a status bit of rows, or clear it; for how many of each line it changes."""
    for line in range(lines.shape[0]):
        status = read_number(lines[line, RELATION], STATUS)
        changed[line] = 0
        for i in range(lines[line, LOW], lines[line, HIGH]):
            row = int64(rows[i])
            old = read_status(status, row)
            changed[line] += ((old & bit) != 0) != present
            new = old | bit if present else old & ~bit
            write_status(status, row, uint16(new))


@kernel(f"void({_lines}, int32[::1])")
def forget_counts(lines: Numbers, rows: Rows) -> None:
    """Make both counts of rows zero; memory that was never written to stays so."""
    for line in range(lines.shape[0]):
        for which in range(2):
            counter = read_number(lines[line, RELATION], COUNTERS + which)
            if counter != 0:
                for i in range(lines[line, LOW], lines[line, HIGH]):
                    if read_row(counter, int64(rows[i])) != 0:
                        write_row(counter, int64(rows[i]), int32(0))


@kernel(f"int64({_lines}, int64, int64, int64, {_lines}, int64)")
def _keep_line(
    lines: Numbers, line: int, low: int, high: int, kept_lines: Numbers, at: int
) -> int:
    """Write down where the rows are that are left of a line; zero if there are none."""
    if low == high:
        return 0
    kept_lines[at, RELATION] = lines[line, RELATION]
    kept_lines[at, LOW] = low
    kept_lines[at, HIGH] = high
    kept_lines[at, ORIGIN] = line
    return 1


@kernel(f"int64({_lines}, int32[::1], uint8[::1], boolean, int32[::1], {_lines})")
def choose(
    lines: Numbers,
    rows: Rows,
    visible: Flags,
    present: bool,  # noqa: FBT001  kernels have no keywords
    kept: Rows,
    kept_lines: Numbers,
) -> int:
    """Keep the rows whose status is visible, or is not; how many lines are left."""
    found = int64(0)
    size = int64(0)
    for line in range(lines.shape[0]):
        status = read_number(lines[line, RELATION], STATUS)
        start = size
        for i in range(lines[line, LOW], lines[line, HIGH]):
            kept[size] = rows[i]
            size += (visible[read_status(status, int64(rows[i]))] != 0) == present
        found += _keep_line(lines, line, start, size, kept_lines, found)
    return found


@kernel(
    f"int64({_lines}, int32[::1], {_lines}, int32[::1], int64[::1], int64, "
    f"int32[::1], {_lines})"
)
def unite(
    lines: Numbers,
    rows: Rows,
    other_lines: Numbers,
    other_rows: Rows,
    twins: Numbers,
    bit: int,
    both: Rows,
    both_lines: Numbers,
) -> int:
    """Put rows of two lots together, each once; how many there are.

    Args:
        lines: one lot.
        rows: its rows.
        other_lines: the other lot.
        other_rows: its rows.
        twins: for each line of the other lot the line of the first one with the same
            relation, or one of those after the last, in order.
        bit: a status bit that no row has, nor has afterwards.
        both: is given the rows.
        both_lines: is given a line for each relation; their origins mean nothing.
    """
    partner = np.full(both_lines.shape[0], -1, np.int64)
    for line in range(twins.size):
        partner[twins[line]] = line
    size = int64(0)
    for line in range(both_lines.shape[0]):
        start = size
        other = partner[line]
        is_shared = line < lines.shape[0] and other >= 0
        relation = (
            lines[line, RELATION]
            if line < lines.shape[0]
            else other_lines[other, RELATION]
        )
        status = read_number(relation, STATUS)
        if line < lines.shape[0]:
            for i in range(lines[line, LOW], lines[line, HIGH]):
                both[size] = rows[i]
                size += 1
                if is_shared:
                    row = int64(rows[i])
                    write_status(status, row, uint16(read_status(status, row) | bit))
        middle = size
        if other >= 0:
            for i in range(other_lines[other, LOW], other_lines[other, HIGH]):
                both[size] = other_rows[i]
                if not is_shared:
                    size += 1
                else:
                    known = read_status(status, int64(other_rows[i])) & bit
                    size += known == 0
        if is_shared:
            for i in range(start, middle):
                row = int64(both[i])
                write_status(status, row, uint16(read_status(status, row) & ~bit))
        both_lines[line, RELATION] = relation
        both_lines[line, LOW] = start
        both_lines[line, HIGH] = size
        both_lines[line, ORIGIN] = line
    return size


@kernel(f"int64({_lines}, int32[::1], int64, boolean, int32[::1], {_lines})")
def choose_counted(
    lines: Numbers,
    rows: Rows,
    which: int,
    positive: bool,  # noqa: FBT001  kernels have no keywords
    kept: Rows,
    kept_lines: Numbers,
) -> int:
    """Keep the rows whose count is above zero, or is not; how many lines are left."""
    found = int64(0)
    size = int64(0)
    for line in range(lines.shape[0]):
        counter = read_number(lines[line, RELATION], COUNTERS + which)
        start = size
        for i in range(lines[line, LOW], lines[line, HIGH]):
            kept[size] = rows[i]
            counted = counter != 0 and read_row(counter, int64(rows[i])) > 0
            size += counted == positive
        found += _keep_line(lines, line, start, size, kept_lines, found)
    return found


@kernel(
    f"int64({_lines}, int32[::1], int32[::1], int64, int64, int32[::1], int64[::1])"
)
def change_counts(
    lines: Numbers,
    rows: Rows,
    counts: Rows,
    which: int,
    sign: int,
    old: Rows,
    last: Numbers,
) -> int:
    """Add counts, or subtract them; the smallest result, or zero.

    `old` is given the counts as they were, `last` the greatest row of each line.
    """
    least = int64(0)
    for line in range(lines.shape[0]):
        counter = read_number(lines[line, RELATION], COUNTERS + which)
        greatest = int64(0)
        for i in range(lines[line, LOW], lines[line, HIGH]):
            row = int64(rows[i])
            greatest = max(greatest, row)
            before = read_row(counter, row)
            old[i] = before
            after = int64(before) + sign * int64(counts[i])
            write_row(counter, row, after)
            least = min(least, after)
        last[line] = greatest
    return least
