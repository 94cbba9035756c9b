"""Forward chaining of a search for facts that no longer hold.

What is proved is followed by rules, and equalities that are proved unite names. See
`kernels.equality_deletion`, and `saturate` of `evermat.maintenance.equality.deletion`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.changes import (
    CHECKED,
    DELAYED,
    DONE,
    FRESH,
    GAVE_UP,
    HALF,
    IN_CANDIDATES,
    IN_DELAYED,
    IN_DELTA,
    IN_FOUND,
    MATCHES,
    PATIENCE,
    PROVED,
    part,
)
from evermat.engines.embedded.kernels.cliques import label, unite
from evermat.engines.embedded.kernels.equality_search import (
    IMAGED,
    IN_ASKED,
    IN_DELAYED_IMAGES,
    IN_IMAGED,
    IN_NODES,
    IN_PROVED,
    IN_WHOLE,
    PROVING,
    SEEN,
    SEES_PROVED,
    WHOLE,
    WITHDRAWN,
    add_to,
    derive_listed,
    how_it_stands,
)
from evermat.engines.embedded.kernels.equality_steps import (
    ARE_PROVED,
    CONSTANT_COUNT,
    CONSTANTS,
    ENDS,
    FORWARDS,
    FRESH_IDS,
    GAINS,
    GROWN,
    KINDS,
    LATER_LEFT,
    LATER_PAIRS,
    LATER_RIGHT,
    LEFT,
    LINKS,
    NAMED,
    NAMES,
    NEW,
    NONE,
    OLD,
    OTHERS,
    PAIRS,
    RANKS,
    RIGHT,
    RING,
    ROOM_OF_LIST,
    ROUNDS,
    SAME,
    TEXTS,
    UNITED,
    clear_bit,
    clear_list,
    give_up,
    has,
    image_of,
    key_at,
    link_of,
    list_given,
    name_at,
    name_of,
    next_of,
    node_of,
    note_fresh,
    put,
    put_name,
    put_once,
    read_names,
    relation_of,
    room_for_names,
    set_bit,
    set_key,
    set_size,
    size_of,
    spend,
)
from evermat.engines.embedded.kernels.keys import int64
from evermat.engines.embedded.kernels.layout import ARITY
from evermat.engines.embedded.kernels.raw import (
    flags_at,
    ids_at,
    read_id,
    read_number,
    rows_at,
    write_id,
    write_number,
)

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids


@part
def _put_pair(left: int, right: int, task: int) -> None:
    """Put down that two names are equal."""
    size = read_number(task, PAIRS)
    put_name(LEFT, size, left, task)
    put_name(RIGHT, size, right, task)
    if read_number(task, PATIENCE) >= 0:
        write_number(task, PAIRS, size + 1)


@part
def _sort_pairs(start: int, found: int, task: int) -> None:
    """Divide what rules derive into facts to be proved and pairs of equal names.

    Pairs need no row: those among facts without one are taken out.
    """
    ids = room_for_names(0, task)
    for i in range(found):
        key = key_at(IN_FOUND, i, task)
        if int64(key >> HALF) != SAME:
            put(IN_CANDIDATES, key, task)
        else:
            read_names(key, ids, task)
            _put_pair(int64(ids[0]), int64(ids[1]), task)
    fresh = read_number(task, FRESH_IDS)
    place = start
    kept = start
    while place < read_number(task, FRESH):
        number = int64(read_id(fresh, place))
        if number == SAME:
            left, right = read_id(fresh, place + 1), read_id(fresh, place + 2)
            _put_pair(int64(left), int64(right), task)
            place += 3
            continue
        key = np.uint64(number) << HALF
        for _ in range(read_number(relation_of(key, task), ARITY) + 1):
            write_id(fresh, kept, read_id(fresh, place))
            place += 1
            kept += 1
    write_number(task, FRESH, kept)


@part
def _find_sure(task: int) -> None:
    """Given facts behind those that are asked about, and what was proved before."""
    for i in range(size_of(IN_ASKED, task)):
        key = key_at(IN_ASKED, i, task)
        set_bit(SEEN, key, task)
        # Nodes of cliques are not given: equalities are, and rules derive nodes.
        if int64(key >> HALF) != SAME:
            if has(DELAYED, key, task):
                put(IN_CANDIDATES, key, task)
            list_given(key, WITHDRAWN, IN_CANDIDATES, OLD, task)
    ids = room_for_names(0, task)
    for i in range(size_of(IN_DELAYED_IMAGES, task)):
        key = key_at(IN_DELAYED_IMAGES, i, task)
        if has(SEEN, image_of(key, OLD, ids, task), task):
            put(IN_CANDIDATES, key, task)
    for i in range(read_number(task, LATER_PAIRS)):
        left = name_at(LATER_LEFT, i, task)
        if has(SEEN, node_of(left ^ link_of(left, OLD, task), task), task):
            _put_pair(left, name_at(LATER_RIGHT, i, task), task)
    clear_list(IN_ASKED, SEEN, task)


@part
def _choose_pairs(task: int) -> int:
    """Keep pairs whose clique was asked about; how many. The others wait.

    The nodes of these cliques are put on a list.
    """
    kept = int64(0)
    set_size(IN_NODES, 0, task)
    for i in range(read_number(task, PAIRS)):
        left, right = name_at(LEFT, i, task), name_at(RIGHT, i, task)
        name = left ^ link_of(left, OLD, task)
        node = node_of(name, task)
        if node == NONE or right ^ link_of(right, OLD, task) != name:
            # They were not equal before, so they cannot be now.
            give_up(task)
            break
        if has(CHECKED, node, task):
            put_name(LEFT, kept, left, task)
            put_name(RIGHT, kept, right, task)
            kept += 1
            put_once(IN_NODES, node, SEEN, task)
        else:
            later = read_number(task, LATER_PAIRS)
            put_name(LATER_LEFT, later, left, task)
            put_name(LATER_RIGHT, later, right, task)
            if read_number(task, PATIENCE) < 0:
                break
            write_number(task, LATER_PAIRS, later + 1)
    clear_list(IN_NODES, SEEN, task)
    write_number(task, PAIRS, int64(0))
    return kept


@part
def _names_at(which: int, size: int, task: int) -> Ids:
    """The first names of a list."""
    start = read_number(task, NAMED) + 4 * which * read_number(task, ROOM_OF_LIST)
    return ids_at(start, size)


@part
def _unite(count: int, task: int) -> bool:
    """Unite the first pairs of names; whether any of them were not equal before."""
    size = read_number(task, NEW + NAMES)
    links = ids_at(read_number(task, NEW + LINKS), size)
    ring = ids_at(read_number(task, NEW + RING), size)
    others = rows_at(read_number(task, NEW + OTHERS), size)
    before = read_number(task, UNITED)
    grown = before
    for i in range(count):
        left, right = name_at(LEFT, i, task), name_at(RIGHT, i, task)
        if left ^ link_of(left, NEW, task) != right ^ link_of(right, NEW, task):
            put_name(GROWN, grown, left, task)
            if read_number(task, PATIENCE) < 0:
                return False
            grown += 1
    if grown == before:
        return False
    write_number(task, UNITED, grown)
    kinds = flags_at(read_number(task, KINDS), size)
    ranks = flags_at(read_number(task, RANKS), 256)
    left_ones, right_ones = _names_at(LEFT, count, task), _names_at(RIGHT, count, task)
    nobody = left_ones[:0]
    texts, ends = read_number(task, TEXTS), read_number(task, ENDS)
    one = unite(links, ring, kinds, ranks, texts, ends, nobody, left_ones, right_ones)
    if one >= 0:
        give_up(task)
    roots = _names_at(GROWN, grown, task)[before:].copy()
    for i in range(roots.size):
        while links[roots[i]] != 0:
            roots[i] ^= links[roots[i]]
    roots.sort()
    for i in range(roots.size):
        if i == 0 or roots[i] != roots[i - 1]:
            spend(label(links, ring, others, roots[i : i + 1]), task)
    return True


@part
def _is_whole(node: np.uint64, task: int) -> bool:
    """Whether all members of a clique are proved to be equal."""
    first = name_of(node, task)
    proved = first ^ link_of(first, NEW, task)
    one = next_of(first, OLD, task)
    while one != first:
        if one ^ link_of(one, NEW, task) != proved:
            return False
        one = next_of(one, OLD, task)
    return True


@part
def _mentions_loser(key: np.uint64, task: int) -> bool:
    """Whether a fact mentions a name that something else is proved to stand for."""
    ids = room_for_names(0, task)
    for at in range(read_names(key, ids, task)):
        if link_of(int64(ids[at]), NEW, task) != 0:
            return True
    return False


@part
def _merge(task: int) -> int:
    """Make names equal that are proved to be; how many pairs of them.

    Proved facts that mention a name which stands for nothing any more have to be proved
    again, under another name.
    """
    count = _choose_pairs(task)
    if read_number(task, PATIENCE) < 0 or not _unite(count, task):
        return count
    for i in range(size_of(IN_NODES, task)):
        node = key_at(IN_NODES, i, task)
        if _is_whole(node, task):
            put_once(IN_WHOLE, node, WHOLE, task)
    for i in range(read_number(task, CONSTANT_COUNT)):
        constant = int64(read_id(read_number(task, CONSTANTS), i))
        if link_of(constant, NEW, task) != 0:
            # Rules would change.
            give_up(task)
    kept = int64(0)
    proved = size_of(IN_PROVED, task)
    for i in range(proved):
        key = key_at(IN_PROVED, i, task)
        if _mentions_loser(key, task):
            clear_bit(PROVED, key, task)
            put(IN_CANDIDATES, key, task)
        else:
            set_key(IN_PROVED, kept, key, task)
            kept += 1
    set_size(IN_PROVED, kept, task)
    spend(proved, task)
    return count


@part
def _admit(task: int) -> int:
    """Prove candidates that were asked about; how many. The others wait."""
    ids = room_for_names(0, task)
    size = int64(0)
    for i in range(size_of(IN_CANDIDATES, task)):
        candidate = key_at(IN_CANDIDATES, i, task)
        key = image_of(candidate, NEW, ids, task)
        if key == NONE:
            note_fresh(int64(candidate >> HALF), ids, task)
            continue
        if has(PROVED, key, task):
            continue
        image = image_of(key, OLD, ids, task)
        if image == NONE:
            # It did not hold before, so it cannot now.
            give_up(task)
            break
        if has(CHECKED, image, task):
            put_once(IN_PROVED, key, PROVED, task)
            put_once(IN_IMAGED, image, IMAGED, task)
            set_key(IN_DELTA, size, key, task)
            size += 1
        else:
            early = IN_DELAYED if image == key else IN_DELAYED_IMAGES
            put_once(early, key, DELAYED, task)
    set_size(IN_CANDIDATES, 0, task)
    return size


@part
def saturate(task: int) -> int:
    """Prove what follows from given facts by way of checked facts (Algorithm 5).

    The facts that are asked about are on a list. Returns how the call ends, or `DONE`.
    """
    _find_sure(task)
    while True:
        pairs = _merge(task)
        size = _admit(task)
        add_to(GAINS, pairs + size, task)
        ends = how_it_stands(task)
        if ends != DONE or size == 0:
            return ends
        add_to(ARE_PROVED, size, task)
        add_to(ROUNDS, 1, task)
        start, before = read_number(task, FRESH), read_number(task, MATCHES)
        found = derive_listed(IN_DELTA, size, PROVING, SEES_PROVED, task)
        add_to(FORWARDS, read_number(task, MATCHES) - before, task)
        if found < 0:
            return int64(GAVE_UP)
        _sort_pairs(start, found, task)
