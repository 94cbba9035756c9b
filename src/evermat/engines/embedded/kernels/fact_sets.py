"""Small fact sets as one array of row ids, divided into a segment for each relation.

One call handles all relations of a set. A *line* of the segment table describes one
segment: the address of the layout of the relation, and the half-open range of its
rows. In results, a fourth number names the input segment that the rows come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.engines.embedded.kernels.keys import int32, int64, kernel, uint16
from evermat.engines.embedded.kernels.layout import (
    COUNTERS,
    STATUS,
    prefetch,
    read_number,
    read_row,
    read_status,
    write_row,
    write_status,
)

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Rows
    from evermat.engines.embedded.kernels.layout import Numbers

RELATION, LOW, HIGH, ORIGIN = range(4)

_lines = "int64[:, ::1]"
_COUNT = 4


@kernel(f"void({_lines}, int32[::1], int64, boolean, int64, int64[::1])")
def mark(
    lines: Numbers,
    rows: Rows,
    bit: int,
    present: bool,  # noqa: FBT001  kernels have no keywords
    zeros: int,
    changed: Numbers,
) -> None:
    """Set or clear a status bit of all rows, and clear the bits `zeros`.

    `changed` receives, for each segment, the number of rows whose bit has changed.
    """
    for line in range(lines.shape[0]):
        status = read_number(lines[line, RELATION], STATUS)
        changed[line] = 0
        for i in range(lines[line, LOW], lines[line, HIGH]):
            row = int64(rows[i])
            old = read_status(status, row)
            changed[line] += ((old & bit) != 0) != present
            new = old | bit if present else old & ~bit
            write_status(status, row, uint16(new & ~zeros))


@kernel(f"void({_lines}, int32[::1])")
def forget_counts(lines: Numbers, rows: Rows) -> None:
    """Set both counters of all rows to zero; write only where they are not."""
    for line in range(lines.shape[0]):
        for which in range(2):
            counter = read_number(lines[line, RELATION], COUNTERS + which)
            if counter == 0:
                continue
            # The branch below is unpredictable and waits for memory: fetch it early.
            for i in range(lines[line, LOW], lines[line, HIGH]):
                prefetch(counter + _COUNT * int64(rows[i]))
            for i in range(lines[line, LOW], lines[line, HIGH]):
                if read_row(counter, int64(rows[i])) != 0:
                    write_row(counter, int64(rows[i]), int32(0))


@kernel(f"int64({_lines}, int64, int64, int64, {_lines}, int64)")
def keep_line(
    lines: Numbers, line: int, low: int, high: int, kept_lines: Numbers, at: int
) -> int:
    """Write a result segment unless it is empty; return how many were written."""
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
    """Keep rows whose status is visible, or those whose status is not.

    Returns the number of segments that are left.
    """
    found = int64(0)
    size = int64(0)
    for line in range(lines.shape[0]):
        status = read_number(lines[line, RELATION], STATUS)
        start = size
        for i in range(lines[line, LOW], lines[line, HIGH]):
            kept[size] = rows[i]
            size += (visible[read_status(status, int64(rows[i]))] != 0) == present
        found += keep_line(lines, line, start, size, kept_lines, found)
    return found


@kernel(f"int64({_lines}, int32[::1], int64, boolean, int32[::1], {_lines})")
def choose_counted(
    lines: Numbers,
    rows: Rows,
    which: int,
    positive: bool,  # noqa: FBT001  kernels have no keywords
    kept: Rows,
    kept_lines: Numbers,
) -> int:
    """Keep rows whose counter is positive, or those whose counter is not.

    Returns the number of segments that are left.
    """
    found = int64(0)
    size = int64(0)
    for line in range(lines.shape[0]):
        counter = read_number(lines[line, RELATION], COUNTERS + which)
        start = size
        for i in range(lines[line, LOW], lines[line, HIGH]):
            kept[size] = rows[i]
            counted = counter != 0 and read_row(counter, int64(rows[i])) > 0
            size += counted == positive
        found += keep_line(lines, line, start, size, kept_lines, found)
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
    """Add counts to a counter or subtract them; return the least result, at most 0.

    `old` receives the previous counts, `last` the greatest row of each segment.
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


@kernel(
    f"int64({_lines}, int32[::1], {_lines}, int32[::1], {_lines}, uint16, "
    f"int32[::1], {_lines})"
)
def unite(
    left_lines: Numbers,
    left: Rows,
    right_lines: Numbers,
    right: Rows,
    pairs: Numbers,
    bit: int,
    found: Rows,
    found_lines: Numbers,
) -> int:
    """Unite two sets; return the number of rows.

    A status bit marks the rows of the first set, so that rows of both are kept once.

    Args:
        left_lines: the segments of the first set.
        left: its rows.
        right_lines: the segments of the second set.
        right: its rows.
        pairs: for each relation, its segment in either set, or -1.
        bit: a status bit that no row has; it is cleared again.
        found: receives the rows.
        found_lines: receives the segment of each relation.
    """
    size = int64(0)
    for at in range(pairs.shape[0]):
        one, other = pairs[at, 0], pairs[at, 1]
        lines = left_lines[one] if one >= 0 else right_lines[other]
        status = read_number(lines[RELATION], STATUS)
        start = size
        if one >= 0:
            for i in range(left_lines[one, LOW], left_lines[one, HIGH]):
                found[size] = left[i]
                size += 1
        middle = size
        if other >= 0:
            for i in range(start, middle):
                row = int64(found[i])
                write_status(status, row, uint16(read_status(status, row) | bit))
            for i in range(right_lines[other, LOW], right_lines[other, HIGH]):
                found[size] = right[i]
                size += (read_status(status, int64(right[i])) & bit) == 0
            for i in range(start, middle):
                row = int64(found[i])
                write_status(status, row, uint16(read_status(status, row) & ~bit))
        found_lines[at, RELATION] = lines[RELATION]
        found_lines[at, LOW] = start
        found_lines[at, HIGH] = size
    return size
