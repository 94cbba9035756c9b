"""Union–find over constant ids, with the members of each clique in a ring.

The members of a clique form a circular list. Two cliques are united by swapping two
successors in their rings, and an operation on a clique costs no more than a walk around
its ring, however many other constants there are.

`links` stores the difference `id ^ parent`, `ring` the difference `id ^ successor`, and
`others` the number of other members. Arrays of zeros, which the operating system
provides without touching memory, therefore mean that all constants are different.

Ids from FIRST_INTEGER on are integers, which have no place in the arrays; see
`evermat.engines.embedded.union_find`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.keys import (
    _flags,
    _ids,
    _rows,
    _table,
    _void,
    inner_kernel,
    int64,
    kernel,
    uint8,
)
from evermat.engines.embedded.kernels.layout import read_byte, read_number

if TYPE_CHECKING:
    import numpy.typing as npt

    from evermat.engines.embedded.arrays import Flags, Ids, Rows

    Sizes = npt.NDArray[np.int64]

_sizes = int64[::1]

FIRST_INTEGER = np.uint32(0x8000_0000)


@kernel(uint8(_flags, _flags, _ids, int64))
def _rank(kinds: Flags, ranks: Flags, valued: Ids, one: int) -> int:
    """Return 0 for a value, or if the clique has an integer; 1 otherwise."""
    low, high = 0, valued.size
    while low < high:
        middle = (low + high) // 2
        if valued[middle] < one:
            low = middle + 1
        else:
            high = middle
    if low < valued.size and valued[low] == one:
        return 0
    return int(ranks[kinds[one]])


@inner_kernel(uint8(_flags, int64, int64, int64, int64))
def _precedes(kinds: Flags, texts: int, ends: int, one: int, other: int) -> int:
    """Return whether a constant precedes another, by kind and then by its string.

    UTF-8 bytes have the order of code points. The order does not depend on ids, which
    are assigned as constants arrive.
    """
    if kinds[one] != kinds[other]:
        return uint8(kinds[one] < kinds[other])
    first, second = read_number(ends, one), read_number(ends, other)
    size = read_number(ends, one + 1) - first
    other_size = read_number(ends, other + 1) - second
    for at in range(min(size, other_size)):
        left, right = read_byte(texts + first + at), read_byte(texts + second + at)
        if left != right:
            return uint8(left < right)
    return uint8(size < other_size)


@kernel(int64(_ids, _ids, _flags, _flags, int64, int64, _ids, _ids, _ids))
def unite(
    links: Ids,
    ring: Ids,
    kinds: Flags,
    ranks: Flags,
    texts: int,
    ends: int,
    valued: Ids,
    left: Ids,
    right: Ids,
) -> int:
    """Unite pairs of constants; return the first pair of two values, or -1.

    The member of the smaller rank becomes the representative, and among equal ranks the
    one that precedes the other. Links may reach the representative in several steps
    until `label` is called.

    Args:
        links: `id ^ parent` for each constant.
        ring: `id ^ successor` for each constant.
        kinds: the kind of each constant.
        ranks: 0 for kinds of values, 1 for other kinds.
        texts: the address of the strings of all constants, one after the other.
        ends: the address of the offsets at which the strings begin and end.
        valued: the constants whose clique is represented by an integer, in order.
        left: the first constant of each pair.
        right: the second constant of each pair.
    """
    for at in range(left.size):
        a, b = left[at], right[at]
        while links[a] != 0:
            links[a] ^= links[a ^ links[a]]
            a ^= links[a]
        while links[b] != 0:
            links[b] ^= links[b ^ links[b]]
            b ^= links[b]
        if a == b:
            continue
        rank_a = _rank(kinds, ranks, valued, a)
        rank_b = _rank(kinds, ranks, valued, b)
        if rank_a == 0 and rank_b == 0:
            return at
        if rank_a < rank_b or (
            rank_a == rank_b and _precedes(kinds, texts, ends, a, b)
        ):
            links[b] = a ^ b
        else:
            links[a] = a ^ b
        after_a, after_b = a ^ ring[a], b ^ ring[b]
        ring[a], ring[b] = a ^ after_b, b ^ after_a
    return -1


@kernel(int64(_ids, _ids))
def find_roots(links: Ids, ids: Ids) -> int:
    """Replace ids by their representatives, following links of several steps."""
    for at in range(ids.size):
        one = ids[at]
        while links[one] != 0:
            one ^= links[one]
        ids[at] = one
    return ids.size


@kernel(int64(_ids, _ids, _rows, _ids))
def label(links: Ids, ring: Ids, others: Rows, roots: Ids) -> int:
    """Link all members of some cliques directly to the root, and set their sizes.

    Returns the total number of members.
    """
    total = 0
    for at in range(roots.size):
        root = roots[at]
        size = 1
        member = root ^ ring[root]
        while member != root:
            links[member] = member ^ root
            size += 1
            member ^= ring[member]
        total += size
        for _ in range(size):
            others[member] = size - 1
            member ^= ring[member]
    return total


@kernel(int64(_ids, _rows, _ids, _ids, _flags, _ids))
def list_members(
    ring: Ids, sizes: Rows, ids: Ids, roots: Ids, alone: Flags, members: Ids
) -> int:
    """List the members of cliques, one clique after the other; return their number.

    Args:
        ring: `id ^ successor` for each constant.
        sizes: the number of members to write for each id.
        ids: the representative of each clique, which is written first.
        roots: a member of its ring, possibly the representative itself.
        alone: whether the representative is not in the ring.
        members: receives the members.
    """
    place = 0
    for at in range(ids.size):
        member = roots[at]
        size = sizes[at]
        if alone[at]:
            members[place] = ids[at]
            place += 1
            size -= 1
        for _ in range(size):
            members[place] = member
            member ^= ring[member]
            place += 1
    return place


@kernel(_void(_ids, _ids, _ids, _rows, _ids, _ids, _rows))
def copy_places(
    places: Ids,
    links: Ids,
    ring: Ids,
    others: Rows,
    from_links: Ids,
    from_ring: Ids,
    from_others: Rows,
) -> None:
    """Copy some elements of three arrays from three others of the same size.

    If those are empty, the elements become zero.
    """
    for one in places:
        if from_links.size == 0:
            links[one] = 0
            ring[one] = 0
            others[one] = 0
        else:
            links[one] = from_links[one]
            ring[one] = from_ring[one]
            others[one] = from_others[one]


@kernel(int64(_ids, _ids, _ids, _ids))
def list_different(ids: Ids, mine: Ids, theirs: Ids, found: Ids) -> int:
    """List the ids whose links differ between two arrays, sorted and distinct.

    Ids beyond the end of an array have no link. Returns the number of ids found.
    """
    size = 0
    for one in ids:
        left = mine[one] if one < mine.size else np.uint32(0)
        right = theirs[one] if one < theirs.size else np.uint32(0)
        found[size] = one
        size += left != right
    found[:size].sort()
    kept = 0
    for i in range(size):
        if i == 0 or found[i] != found[i - 1]:
            found[kept] = found[i]
            kept += 1
    return kept


@kernel(int64(_table, _ids, _rows, _flags))
def mark_moved(table: Ids, links: Ids, rows: Rows, moved: Flags) -> int:
    """Mark rows with a constant that is not a representative; return their number."""
    total = 0
    for at in range(rows.size):
        row = rows[at]
        moved[at] = 0
        for column in range(table.shape[0]):
            one = table[column, row]
            if one < links.size and links[one] != 0:
                moved[at] = 1
                total += 1
                break
    return total


@kernel(int64(_rows, _rows, _rows, _rows))
def list_ranges(first: Rows, last: Rows, rows: Rows, found: Rows) -> int:
    """List the rows in some ranges of positions; return their number."""
    n = 0
    for at in range(first.size):
        for place in range(first[at], last[at]):
            found[n] = rows[place]
            n += 1
    return n


MOST = 1 << 40
"""Numbers of combinations are capped here, so that they cannot overflow."""


@kernel(int64(_table, _rows, _rows, _sizes))
def weigh(table: Ids, others: Rows, rows: Rows, weights: Sizes) -> int:
    """Count the combinations of members that each row represents; return the sum."""
    total = 0
    for at in range(rows.size):
        weight = 1
        for column in range(table.shape[0]):
            one = table[column, rows[at]]
            if one < others.size:
                weight = min(weight * (others[one] + 1), MOST)
        weights[at] = weight
        total += weight
    return total


@kernel(int64(_table, _ids, _rows, _sizes, _table))
def combine(table: Ids, ring: Ids, rows: Rows, weights: Sizes, found: Ids) -> int:
    """List all rows that some rows of representatives represent; return their number.

    The members of the last column change fastest.
    """
    arity = table.shape[0]
    place = 0
    for at in range(rows.size):
        for column in range(arity):
            found[column, place] = table[column, rows[at]]
        place += 1
        for _ in range(weights[at] - 1):
            is_full = True  # the column to the right has wrapped around
            for column in range(arity - 1, -1, -1):
                one = found[column, place - 1]
                if is_full and one < ring.size:
                    one ^= ring[one]
                    is_full = one == table[column, rows[at]]
                found[column, place] = one
            place += 1
    return place
