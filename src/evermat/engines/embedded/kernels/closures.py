"""The compiled loops of closures: components, reachability on bit sets, pairs.

Vocabulary: a *node* is a constant by its place among the constants of the graphs at
work, which are in order. A graph is given by *starts* and *targets*: the targets of
node `i` are `targets[starts[i]:starts[i + 1]]`. A *place* is the bit that a node has in
a row of bits, -1 for nodes that nobody asks about.

The pairs of a closure are `(s, t)` where a seed leads from `s` to some `y`, and edges
lead from `y` to `t` in any number of steps, none included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.keys import kernel

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Flags, Ids, Keys, Rows

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@kernel("void(uint32[::1], uint32, uint8[::1])")
def mark_ids(ids: Ids, least: int, seen: Flags) -> None:
    """Mark ids, counted from the least one."""
    for one in ids:
        seen[one - least] = 1


@kernel("void(uint32[::1], uint32, int32[::1], int32[::1])")
def look_up(ids: Ids, least: int, table: Rows, nodes: Rows) -> None:
    """The nodes of ids in a table from the least one on, -1 for what is not there."""
    for at in range(ids.size):
        place = np.int64(ids[at]) - np.int64(least)
        nodes[at] = table[place] if 0 <= place < table.size else -1


@kernel("int32[::1](int32[::1], int32[::1], int32, int32[::1])")
def group(sources: Rows, targets: Rows, count: int, grouped: Rows) -> Rows:
    """Where the targets of each source start in `grouped`, which gets all of them."""
    starts = np.zeros(count + 1, np.int32)
    for source in sources:
        starts[source + 1] += 1
    for node in range(count):
        starts[node + 1] += starts[node]
    free = starts[:count].copy()
    for at in range(sources.size):
        grouped[free[sources[at]]] = targets[at]
        free[sources[at]] += 1
    return starts


@kernel("int32(int32[::1], int32[::1], int32[::1])")
def components(starts: Rows, targets: Rows, component: Rows) -> int:
    """Number the strongly connected components (Tarjan's algorithm, without recursion).

    A component gets its number after all that it leads to. Returns how many there are.
    """
    nodes = starts.size - 1
    low = np.zeros(nodes, np.int32)
    following = starts[:nodes].copy()
    open_nodes = np.empty(nodes, np.int32)
    path = np.empty(nodes, np.int32)
    component[:] = -1
    opened = 0
    number = 0
    found = 0
    for root in range(nodes):
        if low[root] != 0:
            continue
        depth = 0
        path[0] = root
        found += 1
        low[root] = found
        open_nodes[opened] = root
        opened += 1
        # `low` is first the time at which a node was met; a node that no node met
        # earlier can be reached from closes a component.
        while depth >= 0:
            node = path[depth]
            if following[node] < starts[node + 1]:
                target = targets[following[node]]
                following[node] += 1
                if low[target] == 0:
                    depth += 1
                    path[depth] = target
                    found += 1
                    low[target] = found
                    open_nodes[opened] = target
                    opened += 1
                continue
            own = low[node]
            least = own
            for at in range(starts[node], starts[node + 1]):
                target = targets[at]
                if component[target] < 0 and low[target] < least:
                    least = low[target]
            depth -= 1
            if least < own:
                low[node] = least
                continue
            while True:
                opened -= 1
                member = open_nodes[opened]
                component[member] = number
                if member == node:
                    break
            number += 1
    return number


@kernel("int64(int32[::1], int32[::1], int32[::1], uint64[::1], uint8[::1])")
def links(
    sources: Rows, targets: Rows, component: Rows, keys: Keys, returns: Flags
) -> int:
    """The edges between components as keys, see `adjacency`; how many there are.

    Components with an edge inside are marked in `returns`.
    """
    n = 0
    for at in range(sources.size):
        first, second = component[sources[at]], component[targets[at]]
        if first == second:
            returns[first] = 1
        else:
            keys[n] = (np.uint64(first) << _HALF) | (_LOW - np.uint64(second))
            n += 1
    return n


@kernel("int32[::1](uint64[::1], int32, int32[::1])")
def adjacency(keys: Keys, count: int, targets: Rows) -> Rows:
    """Where the distinct targets of each source start, and in `targets` what they are.

    A key is a source and the complement of a target; the keys are in order, so the
    targets of a source are, the largest first.
    """
    starts = np.empty(count + 1, np.int32)
    source = 0
    n = 0
    for at in range(keys.size):
        if at > 0 and keys[at] == keys[at - 1]:
            continue
        mine = np.int64(keys[at] >> _HALF)
        while source <= mine:
            starts[source] = n
            source += 1
        targets[n] = np.int32(_LOW - (keys[at] & _LOW))
        n += 1
    while source <= count:
        starts[source] = n
        source += 1
    return starts


@kernel("void(int32[::1], int32[::1], uint8[::1])")
def mark_backwards(starts: Rows, targets: Rows, marks: Flags) -> None:
    """Mark every component that leads to a marked one."""
    for mine in range(starts.size - 1):
        if not marks[mine]:
            for at in range(starts[mine], starts[mine + 1]):
                if marks[targets[at]]:
                    marks[mine] = 1
                    break


@kernel("void(int32[::1], int32[::1], uint8[::1])")
def mark_forwards(starts: Rows, targets: Rows, marks: Flags) -> None:
    """Mark every component that a marked one leads to."""
    for mine in range(starts.size - 2, -1, -1):
        if marks[mine]:
            for at in range(starts[mine], starts[mine + 1]):
                marks[targets[at]] = 1


@kernel("int64(uint32[::1], int32[::1], int32[::1])")
def text_offsets(numbers: Ids, ends: Rows, offsets: Rows) -> int:
    """Where the text of each number begins if they are laid end to end; their length.

    `ends` has one entry more than there are texts, as Arrow has it.
    """
    total = 0
    for at in range(numbers.size):
        offsets[at] = total
        number = numbers[at]
        total += ends[number + 1] - ends[number]
    offsets[numbers.size] = total
    return total


@kernel("void(uint32[::1], int32[::1], uint8[::1], uint8[::1])")
def copy_texts(numbers: Ids, ends: Rows, texts: Flags, out: Flags) -> None:
    """The texts of numbers, laid end to end."""
    place = 0
    for number in numbers:
        for at in range(ends[number], ends[number + 1]):
            out[place] = texts[at]
            place += 1
