"""Steps of compiled code that follow facts from name to name, where names are equal.

`kernels.equality_deletion` and `kernels.equality_marks` are made of them. Facts are
keys, as in `kernels.changes`. All that such a call works on is a *task*: an array of
numbers, which says where everything else is. So functions take one number instead of
dozens of arrays, which compiled code would take hold of and let go of at each of their
calls.

Facts that are found go on lists. A list that is full uses up the patience of the call,
which then gives up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.changes import (
    FRESH,
    HALF,
    LISTS,
    LOWER,
    PATIENCE,
    STATE_SIZE,
    part,
)
from evermat.engines.embedded.kernels.instructions import MOST_SLOTS
from evermat.engines.embedded.kernels.keys import int64, uint8, uint16, uint64
from evermat.engines.embedded.kernels.layout import (
    ARITY,
    ARITY_OF_RUN,
    COUNTERS,
    FIRST_RUN,
    PRIMARY,
    ROOM,
    ROWS,
    RUNS,
    STATUS,
)
from evermat.engines.embedded.kernels.layout import KEYS as KEYS_OF_RUN
from evermat.engines.embedded.kernels.layout import TABLE as TABLE_OF_RELATION
from evermat.engines.embedded.kernels.lookups import find_places, find_row, key_of
from evermat.engines.embedded.kernels.raw import (
    ids_at,
    prefetch,
    read_id,
    read_key,
    read_number,
    read_row,
    read_status,
    write_id,
    write_key,
    write_number,
    write_status,
)
from evermat.engines.embedded.kernels.rewriting import MOST_COMBINATIONS, go_on
from evermat.engines.embedded.relation import EXPLICIT, RECURSIVE

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids

# --------------------------------------------------------------------- what a task is

MORE_LISTS = 18
ALL_LISTS = LISTS + MORE_LISTS

SIZES = STATE_SIZE
"""A task begins with the state of `kernels.changes`. Then there are the sizes of lists,
and after them:"""

GAINS, PAIRS, LATER_PAIRS, UNITED, ROUNDS, FORWARDS, BACKWARDS, ARE_PROVED = range(
    SIZES + ALL_LISTS, SIZES + ALL_LISTS + 8
)
"""How often something was proved; how many pairs of names there are, and names of
cliques that grew; and what is reported."""

BITS, BIT_COUNT = ARE_PROVED + 1, 14
"""The status bits."""

(
    ADDRESSES,
    TRAITS,
    COLUMNS,
    COLUMN_COUNT,
    LISTED,
    ROOM_OF_LIST,
    NUMBER_LISTED,
    FRESH_IDS,
    NAMED,
    COMPONENT,
    RULES,
    SEEN_BY,
    WITHDRAWALS,
    WITHDRAWAL_COUNT,
    CONSTANTS,
    CONSTANT_COUNT,
    KINDS,
    RANKS,
    TEXTS,
    ENDS,
    SPARE_IDS,
    OLD,
) = range(BITS + BIT_COUNT, BITS + BIT_COUNT + 22)
"""Addresses of the addresses of relations, those of the component of equality first,
and of what is known of each; where names are looked up, as in
`kernels_images.list_mentioning`; lists of facts, of numbers, of constants of facts
without a row, and of names, with the room that each has; the number of relations of the
component; its rules (see `kernels.equality_search`) and what they may see; given facts
that go; constants of rules; the kind of each constant and the rank of each kind; the
texts of constants and where each ends; and room for the names of three facts."""

LINKS, RING, OTHERS, NAMES = range(4)
"""Which names are equal: the arrays of `kernels.cliques`, and how long they are. These
are of what was equal before; those that follow, of what is proved to be, or is."""

NEW = OLD + 4
TASK_SIZE = NEW + 4

LEFT, RIGHT, LATER_LEFT, LATER_RIGHT, GROWN, SOUGHT, LISTS_OF_NAMES = range(7)
"""Lists of names: pairs that are equal, pairs that nobody has asked about so far, a
name of each clique that grew, and names that are looked for."""

SAME = 0
"""The number of the relation of cliques."""

NONE = np.uint64(0xFFFFFFFFFFFFFFFF)
"""Stands for a fact that has no row."""

IS_DERIVABLE, IS_READ_ALONE = 1, 2
"""What is known of a relation; see `evermat.maintenance.equality.rules`."""

_WORD = 8
_ID = 4
_STATUS = 2


# --------------------------------------------------------------------------- lists


@part
def size_of(which: int, task: int) -> int:
    """How many facts are on a list."""
    return read_number(task, SIZES + which)


@part
def set_size(which: int, size: int, task: int) -> None:
    """Have only the first facts of a list."""
    write_number(task, SIZES + which, size)


@part
def key_at(which: int, place: int, task: int) -> np.uint64:
    """A fact of a list."""
    at = which * read_number(task, ROOM_OF_LIST) + place
    return read_key(read_number(task, LISTED), at)


@part
def set_key(which: int, place: int, key: np.uint64, task: int) -> None:
    """Put a fact in a place of a list."""
    at = which * read_number(task, ROOM_OF_LIST) + place
    write_key(read_number(task, LISTED), at, key)


@part
def give_up(task: int) -> None:
    """Use up all patience."""
    write_number(task, PATIENCE, int64(-1))


@part
def spend(amount: int, task: int) -> None:
    """Use up some patience."""
    write_number(task, PATIENCE, read_number(task, PATIENCE) - amount)


@part
def put(which: int, key: np.uint64, task: int) -> None:
    """Put a fact on a list."""
    size = size_of(which, task)
    if size == read_number(task, ROOM_OF_LIST):
        give_up(task)
    else:
        set_key(which, size, key, task)
        set_size(which, size + 1, task)


@part
def put_once(which: int, key: np.uint64, bit: int, task: int) -> bool:
    """Put a fact on a list unless it has a status bit, which it then has."""
    if has(bit, key, task):
        return False
    before = size_of(which, task)
    put(which, key, task)
    if size_of(which, task) > before:
        set_bit(bit, key, task)
    return True


@part
def clear_list(which: int, bit: int, task: int) -> None:
    """Take a status bit from the facts of a list."""
    for i in range(size_of(which, task)):
        clear_bit(bit, key_at(which, i, task), task)


@part
def name_at(which: int, place: int, task: int) -> int:
    """A name of a list of names."""
    at = which * read_number(task, ROOM_OF_LIST) + place
    return int64(read_id(read_number(task, NAMED), at))


@part
def put_name(which: int, size: int, name: int, task: int) -> None:
    """Put a name on a list of names, of which so many places are used."""
    if size == read_number(task, ROOM_OF_LIST):
        give_up(task)
    else:
        at = which * read_number(task, ROOM_OF_LIST) + size
        write_id(read_number(task, NAMED), at, np.uint32(name))


# --------------------------------------------------------------------------- facts


@part
def relation_of(key: np.uint64, task: int) -> int:
    """The address of the relation of a fact."""
    return read_number(read_number(task, ADDRESSES), int64(key >> HALF))


@part
def status_of(key: np.uint64, task: int) -> int:
    """The status of a fact."""
    status = read_number(relation_of(key, task), STATUS)
    return int64(read_status(status, int64(key & LOWER)))


@part
def has(bit: int, key: np.uint64, task: int) -> bool:
    """Whether a fact has a status bit."""
    return (status_of(key, task) & read_number(task, BITS + bit)) != 0


@part
def set_bit(bit: int, key: np.uint64, task: int) -> None:
    """Give a fact a status bit."""
    status = read_number(relation_of(key, task), STATUS)
    row = int64(key & LOWER)
    new = int64(read_status(status, row)) | read_number(task, BITS + bit)
    write_status(status, row, uint16(new))


@part
def clear_bit(bit: int, key: np.uint64, task: int) -> None:
    """Take a status bit from a fact."""
    status = read_number(relation_of(key, task), STATUS)
    row = int64(key & LOWER)
    new = int64(read_status(status, row)) & ~read_number(task, BITS + bit)
    write_status(status, row, uint16(new))


@part
def room_for_names(which: int, task: int) -> Ids:
    """Room for the names of a fact."""
    start = read_number(task, SPARE_IDS) + _ID * MOST_SLOTS * which
    return ids_at(start, MOST_SLOTS)


@part
def read_names(key: np.uint64, ids: Ids, task: int) -> int:
    """The constants of a fact; how many there are."""
    relation = relation_of(key, task)
    table = read_number(relation, TABLE_OF_RELATION)
    room = read_number(relation, ROOM)
    arity = read_number(relation, ARITY)
    row = int64(key & LOWER)
    for at in range(arity):
        ids[at] = read_id(table, at * room + row)
    return arity


@part
def find_fact(number: int, ids: Ids, arity: int, task: int) -> np.uint64:
    """A fact of a relation by its constants, or NONE."""
    relation = read_number(read_number(task, ADDRESSES), number)
    goal = key_of(ids, 0, arity)
    row = find_row(relation, read_number(relation, PRIMARY), arity, goal, ids, 0)
    if row < 0:
        return NONE
    return (uint64(number) << HALF) | uint64(row)


@part
def link_of(name: int, names: int, task: int) -> int:
    """How a name differs from what stands for it."""
    if name >= read_number(task, names + NAMES):
        return int64(0)
    return int64(read_id(read_number(task, names + LINKS), name))


@part
def others_of(name: int, names: int, task: int) -> int:
    """How many other names there are for the same."""
    if name >= read_number(task, names + NAMES):
        return int64(0)
    return int64(read_row(read_number(task, names + OTHERS), name))


@part
def next_of(name: int, names: int, task: int) -> int:
    """The next name for the same; for names that have others."""
    return name ^ int64(read_id(read_number(task, names + RING), name))


@part
def image_of(key: np.uint64, names: int, ids: Ids, task: int) -> np.uint64:
    """What stands for a fact, or NONE; `ids` is given its constants."""
    arity = read_names(key, ids, task)
    is_other = False
    for at in range(arity):
        link = link_of(int64(ids[at]), names, task)
        if link != 0:
            ids[at] ^= link
            is_other = True
    return find_fact(int64(key >> HALF), ids, arity, task) if is_other else key


@part
def node_of(name: int, task: int) -> np.uint64:
    """The node of the clique that a name stood for, or NONE."""
    ids = room_for_names(0, task)
    ids[0] = name
    ids[1] = name
    return find_fact(SAME, ids, 2, task)


@part
def name_of(node: np.uint64, task: int) -> int:
    """What stood for the clique of a node."""
    ids = room_for_names(0, task)
    read_names(node, ids, task)
    return int64(ids[0])


@part
def fetch_names(keys: int, low: int, high: int, task: int) -> None:
    """Have what is known of some facts at hand: what is read for many comes at once."""
    others = read_number(task, OLD + OTHERS)
    size = read_number(task, OLD + NAMES)
    for i in range(low, high):
        key = read_key(keys, i)
        relation = relation_of(key, task)
        row = int64(key & LOWER)
        prefetch(read_number(relation, STATUS) + _STATUS * row)
        table = read_number(relation, TABLE_OF_RELATION) + _ID * row
        room = _ID * read_number(relation, ROOM)
        for at in range(read_number(relation, ARITY)):
            prefetch(table + at * room)
    for i in range(low, high):
        key = read_key(keys, i)
        relation = relation_of(key, task)
        table = read_number(relation, TABLE_OF_RELATION)
        room = read_number(relation, ROOM)
        for at in range(read_number(relation, ARITY)):
            name = int64(read_id(table, at * room + int64(key & LOWER)))
            if name < size:
                prefetch(others + _ID * name)


@part
def is_shared(key: np.uint64, task: int) -> bool:
    """Whether a fact mentions a name that had others."""
    ids = room_for_names(0, task)
    for at in range(read_names(key, ids, task)):
        if others_of(int64(ids[at]), OLD, task) != 0:
            return True
    return False


@part
def note_fresh(number: int, ids: Ids, task: int) -> None:
    """Write down that a fact of a relation needs a row."""
    relation = read_number(read_number(task, ADDRESSES), number)
    arity = read_number(relation, ARITY)
    place = read_number(task, FRESH)
    if place + arity + 1 > read_number(task, ROOM_OF_LIST):
        give_up(task)
        return
    fresh = read_number(task, FRESH_IDS)
    write_id(fresh, place, np.uint32(number))
    for at in range(arity):
        write_id(fresh, place + 1 + at, ids[at])
    write_number(task, FRESH, place + 1 + arity)


@part
def is_implied(key: np.uint64, task: int) -> bool:
    """Whether an explicit fact was not given itself."""
    counter = read_number(relation_of(key, task), COUNTERS + RECURSIVE)
    return counter != 0 and read_row(counter, int64(key & LOWER)) > 0


@part
def is_given(key: np.uint64, task: int) -> bool:
    """Whether a fact was given itself."""
    return (status_of(key, task) & EXPLICIT) != 0 and not is_implied(key, task)


@part
def list_given(key: np.uint64, without: int, which: int, names: int, task: int) -> int:
    """Put given facts that a fact stands for on a list; how many there are.

    Those with some status bit are left out, unless it is negative. There is no list if
    `which` is negative.
    """
    first, ids = room_for_names(1, task), room_for_names(2, task)
    arity = read_names(key, first, task)
    weight = int64(1)
    for at in range(arity):
        ids[at] = first[at]
        weight *= others_of(int64(first[at]), names, task) + 1
        if weight > MOST_COMBINATIONS:
            give_up(task)
            return int64(0)
    spend(weight, task)
    size = read_number(task, names + NAMES)
    ring = ids_at(read_number(task, names + RING), size)
    count = int64(0)
    one = key
    while True:
        is_one = one != NONE and is_given(one, task)
        if is_one and (without < 0 or not has(without, one, task)):
            count += 1
            if which >= 0:
                put(which, one, task)
        if weight == 1 or not go_on(arity, ring, first, ids):
            return count
        one = find_fact(int64(key >> HALF), ids, arity, task)


@part
def seek(name: int, size: int, task: int) -> int:
    """Put a name on the list of those to be looked for; how many there are then."""
    put_name(SOUGHT, size, name, task)
    return size + 1


@part
def list_mentioning(
    sought: int, ones: int, zeros: int, seen: int, which: int, task: int
) -> None:
    """Put facts that mention one of the names that are sought on a list, each once.

    They have all of `ones` in their status, not the bit `zeros`, and have the bit
    `seen` until this is done.
    """
    if sought == 0 or read_number(task, PATIENCE) < 0:
        return
    columns = read_number(task, COLUMNS)
    without = read_number(task, BITS + zeros) if zeros >= 0 else int64(0)
    goals = np.empty(sought, np.uint64)
    every = np.empty(sought, np.uint32)
    firsts, lasts = np.empty(sought, np.int64), np.empty(sought, np.int64)
    room = np.empty(sought, np.int64)
    for i in range(sought):
        goals[i] = uint64(name_at(SOUGHT, i, task)) << HALF
        every[i] = i
    for column in range(read_number(task, COLUMN_COUNT)):
        status = read_number(read_number(columns, 3 * column), STATUS)
        index = read_number(columns, 3 * column + 1)
        number = uint64(read_number(columns, 3 * column + 2))
        run = index + _WORD * FIRST_RUN
        for _ in range(read_number(index, RUNS)):
            keys = read_number(run, KEYS_OF_RUN)
            rows = read_number(run, ROWS)
            find_places(run, uint8(1), goals, every, sought, firsts, lasts, room)
            for i in range(sought):
                place = firsts[i]
                while place < lasts[i] and read_key(keys, place) >> HALF == (
                    goals[i] >> HALF
                ):
                    row = int64(read_row(rows, place))
                    place += 1
                    spend(1, task)
                    its = int64(read_status(status, row))
                    if its & ones == ones and not its & without:
                        put_once(which, (number << HALF) | uint64(row), seen, task)
            if read_number(task, PATIENCE) < 0:
                break
            run += _WORD * ARITY_OF_RUN
    clear_list(which, seen, task)
