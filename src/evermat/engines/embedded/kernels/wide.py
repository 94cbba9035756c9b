"""Deduplicating facts of more than two columns: partition by hash, then bucket sort.

Here facts are stored row by row rather than by column, because they are moved as a
whole, and each of them then takes one access to memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.keys import KEY_BITS, int64, kernel, uint64

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids, Keys, Places, Rows


@kernel("void(uint64[::1], int64, int64[::1])")
def tally_pieces(hashes: Keys, bits: int, sizes: Places) -> None:
    """Count the facts of each piece; pieces are given by the upper bits of hashes."""
    shift = uint64(KEY_BITS - bits)
    for i in range(hashes.size):
        sizes[int64(hashes[i] >> shift)] += 1


@kernel(
    "void(uint64[::1], uint32[:, :], int32[::1], int64, int64[::1],"
    " uint64[::1], uint32[:, ::1], int32[::1])"
)
def move_facts(
    hashes: Keys,
    facts: Ids,
    times: Rows,
    bits: int,
    starts: Places,
    new_hashes: Keys,
    new_facts: Ids,
    new_times: Rows,
) -> None:
    """Scatter facts to their pieces; `starts` is the next position of each piece.

    Without `times`, each fact counts once. Counts are written unless `new_times` is
    empty.
    """
    shift = uint64(KEY_BITS - bits)
    for i in range(hashes.size):
        # Shifting by all 64 bits is undefined, so a single piece is a special case.
        piece = int64(hashes[i] >> shift) if bits > 0 else 0
        place = starts[piece]
        starts[piece] += 1
        new_hashes[place] = hashes[i]
        for column in range(facts.shape[1]):
            new_facts[place, column] = facts[i, column]
        if new_times.size > 0:
            new_times[place] = times[i] if times.size > 0 else 1


@kernel("int64(int64[::1], int64, uint64[::1], uint32[:, ::1], int32[::1], int32[::1])")
def count_pieces(
    bounds: Places, bits: int, hashes: Keys, facts: Ids, times: Rows, counts: Rows
) -> int:
    """Sort pieces by hash and count equal facts.

    Distinct facts and their hashes are written from the beginning of the first piece
    on, and their numbers of occurrences to `counts`. Hashes are evenly distributed:
    after a counting sort into about as many buckets as there are facts, insertion sort
    has little left to do. A piece fits in the cache.

    Returns:
        The number of distinct facts.
    """
    arity = facts.shape[1]
    most = 0
    for piece in range(bounds.size - 1):
        most = max(most, bounds[piece + 1] - bounds[piece])
    bucket_bits = 1
    while (1 << bucket_bits) < most:
        bucket_bits += 1
    starts = np.empty((1 << bucket_bits) + 1, np.int32)
    keys = np.empty(most, np.uint64)
    order = np.empty(most, np.int32)
    copies = np.empty((most, arity), np.uint32)
    left, right = uint64(bits), uint64(KEY_BITS - bucket_bits)
    m = bounds[0]
    for piece in range(bounds.size - 1):
        low = bounds[piece]
        size = bounds[piece + 1] - low
        starts[:] = 0
        for i in range(size):
            starts[int64((hashes[low + i] << left) >> right) + 1] += 1
        for bucket in range(1 << bucket_bits):
            starts[bucket + 1] += starts[bucket]
        for i in range(size):
            key = hashes[low + i]
            bucket = int64((key << left) >> right)
            keys[starts[bucket]] = key
            order[starts[bucket]] = i
            starts[bucket] += 1
            for column in range(arity):
                copies[i, column] = facts[low + i, column]
        for i in range(1, size):
            key = keys[i]
            if keys[i - 1] > key:
                row = order[i]
                j = i - 1
                while j >= 0 and keys[j] > key:
                    keys[j + 1] = keys[j]
                    order[j + 1] = order[j]
                    j -= 1
                keys[j + 1] = key
                order[j + 1] = row
        first = m  # the first distinct fact with this hash, nearly always the only one
        for i in range(size):
            source = order[i]
            if i > 0 and keys[i] != keys[i - 1]:
                first = m
            same = first
            while same < m:
                equal = True
                for column in range(arity):
                    if facts[same, column] != copies[source, column]:
                        equal = False
                        break
                if equal:
                    break
                same += 1
            if same == m:
                hashes[m] = keys[i]
                for column in range(arity):
                    facts[m, column] = copies[source, column]
                counts[m] = 0
                m += 1
            counts[same] += times[low + source] if times.size > 0 else 1
    return int64(m - bounds[0])


@kernel("void(int64, int64, int64, uint64[::1], uint32[:, ::1], int32[::1])")
def close_gap(
    start: int, size: int, goal: int, hashes: Keys, facts: Ids, counts: Rows
) -> None:
    """Move counted facts down, to the end of those before them."""
    for i in range(size):
        hashes[goal + i] = hashes[start + i]
        counts[goal + i] = counts[start + i]
        for column in range(facts.shape[1]):
            facts[goal + i, column] = facts[start + i, column]


@kernel("int64(uint32[:, :], uint32[:, ::1], int32[::1])")
def count_different(facts: Ids, table: Ids, rows: Rows) -> int:
    """Count the facts that differ from the rows of the table assigned to them."""
    different = 0
    for i in range(rows.size):
        if rows[i] >= 0:
            for column in range(facts.shape[1]):
                if facts[i, column] != table[column, rows[i]]:
                    different += 1
                    break
    return different


@kernel(
    "int64(uint64[::1], uint32[:, ::1], int32[::1], int64, uint64[::1], uint32[:, ::1])"
)
def number_new(
    hashes: Keys, facts: Ids, rows: Rows, first: int, new_hashes: Keys, table: Ids
) -> int:
    """Append facts without a row to a table, from row `first` on; return how many."""
    n = 0
    for i in range(rows.size):
        if rows[i] < 0:
            rows[i] = first + n
            new_hashes[n] = hashes[i]
            for column in range(facts.shape[1]):
                table[column, first + n] = facts[i, column]
            n += 1
    return n
