"""Compiled loops over cliques of equal constants: union–find on arrays of ids.

The members of a clique form a ring: each has a next one. So two cliques become one by
exchanging two places in their rings, and all that happens to a clique costs no more
than a walk around it, however many other constants there are.

Arrays hold how an id *differs* from its parent and from the next member, as `id ^ x`
(`links`, `ring`), and how many *others* its clique has. So arrays of zeros, which the
system gives away for nothing, say that all constants are different.

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
    """0 for a constant that is a value, or whose clique has an integer; else 1."""
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
    """Whether a constant comes before another: by its kind, then by its text.

    The order of UTF-8 bytes is that of code points. It does not depend on ids, which
    are given out in the order in which constants arrive.
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
    """Unite pairs of constants; returns the first pair of two values, or -1.

    The smaller rank represents the clique, then the constant that comes first.
    Afterwards links may lead to the representative by a detour, until `label`.

    Constants are given by their kinds and by the addresses of their texts, which are
    one after the other, and of where these end; ranks are 0 for kinds of values, else
    1; `valued` are constants whose clique an integer represents, in order.
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
    """Replace ids by their representatives, along detours, too."""
    for at in range(ids.size):
        one = ids[at]
        while links[one] != 0:
            one ^= links[one]
        ids[at] = one
    return ids.size


@kernel(int64(_ids, _ids, _rows, _ids))
def label(links: Ids, ring: Ids, others: Rows, roots: Ids) -> int:
    """Tell all members of some cliques their representative and their number.

    Returns the number of all these members.
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
    """Write down the members of cliques, one clique after the other.

    Args:
        ring: how each constant differs from the next member of its clique.
        sizes: how many members are to be written for each id.
        ids: what stands for each clique, and is written first.
        roots: a member of its ring, which may be the same.
        alone: whether the id is no member of the ring.
        members: what is written.
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
    """Have some places of three arrays as they are in others; zeros if these are none.

    The latter have as many elements otherwise.
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
    """The ids with other links in one array than in another, in order, each once.

    Links of ids beyond an array lead nowhere. Returns how many ids there are.
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
    """Mark rows with a constant that something else stands for; returns how many."""
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
    """The rows at the places of some ranges; returns how many."""
    n = 0
    for at in range(first.size):
        for place in range(first[at], last[at]):
            found[n] = rows[place]
            n += 1
    return n


MOST = 1 << 40
"""Combinations of members are counted up to here."""


@kernel(int64(_table, _rows, _rows, _sizes))
def weigh(table: Ids, others: Rows, rows: Rows, weights: Sizes) -> int:
    """Count the combinations of members that rows stand for; returns their sum."""
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
    """Write down all rows that some rows of representatives stand for.

    The members of the last column change fastest.
    """
    arity = table.shape[0]
    place = 0
    for at in range(rows.size):
        for column in range(arity):
            found[column, place] = table[column, rows[at]]
        place += 1
        for _ in range(weights[at] - 1):
            is_full = True  # the column behind has come around
            for column in range(arity - 1, -1, -1):
                one = found[column, place - 1]
                if is_full and one < ring.size:
                    one ^= ring[one]
                    is_full = one == table[column, rows[at]]
                found[column, place] = one
            place += 1
    return place
