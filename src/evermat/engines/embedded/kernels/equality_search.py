"""What a search for facts that no longer hold works with: status bits, lists, rules.

`kernels.equality_deletion` begins such a search, and tells what it is about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels.changes import (
    CHANGED,
    DONE,
    FRESH,
    GAVE_UP,
    HALF,
    HAS_FRESH,
    IN_OLD_COUNTS,
    IN_ROWS,
    LISTS,
    NUMBER_LISTS,
    PATIENCE,
    STATE_SIZE,
    derive,
    group_rows,
    mark_keys,
    part,
)
from evermat.engines.embedded.kernels.equality_steps import (
    ALL_LISTS,
    BIT_COUNT,
    BITS,
    COMPONENT,
    FRESH_IDS,
    IS_DERIVABLE,
    LISTED,
    MORE_LISTS,
    NUMBER_LISTED,
    ROOM_OF_LIST,
    RULES,
    SEEN_BY,
    TRAITS,
)
from evermat.engines.embedded.kernels.keys import int64, kernel
from evermat.engines.embedded.kernels.raw import (
    flag_lines_at,
    ids_at,
    key_lines_at,
    number_lines_at,
    numbers_at,
    read_number,
    row_lines_at,
    write_number,
)

if TYPE_CHECKING:
    from evermat.engines.embedded.kernels.changes import Given, Lists, Wired
    from evermat.engines.embedded.kernels.layout import Numbers

DOUBTFUL, EXPLORED, IMAGED, WHOLE, CROWDED, SEEN, WITHDRAWN = range(7, BIT_COUNT)
"""Status bits beside those of `kernels.changes`. Facts are *crowded* if two given facts
go that are behind them, and *seen* for a moment."""

CHECKING, CHECKING_ALONE, BACKWARD, PROVING = range(4)
"""Slots of queries; see `evermat.maintenance.equality.rules`."""

SEES_REMAINING, SEES_POSSIBLE, SEES_PROVED, SIGHTS = range(4)
"""What queries may see."""

STATUSES = 1 << 16

RELATIONS, HOLDERS, STARTS, SLOTS, ENTRIES, ENTRY_COUNT = range(6)
PROGRAMS, PROGRAM_COUNT, WORK, RECURSIVE, RULES_SIZE = range(6, 11)
"""The rules of a task: where the arrays of `kernels_changes.Wired` are, and how long
they are; the first two have as many elements as the component has relations."""

(
    IN_DELAYED_IMAGES,
    IN_EXPLORED,
    IN_PROVED,
    IN_IMAGED,
    IN_WHOLE,
    IN_DOUBTFUL,
    IN_CROWDED,
    IN_ASKED,
    IN_NODES,
    IN_MENTIONED,
    IN_CROWD,
    IN_REST,
    IN_SHARED,
    IN_ALONE,
    IN_OTHERS,
    IN_BEHIND,
    IN_LOSING,
    IN_SAFE,
) = range(LISTS, LISTS + MORE_LISTS)
"""Lists beside those of `kernels.changes`. Given facts that go are divided: those with
a constant that is equal to another, those of the component that are alone, and others.
Behind the facts of `IN_BEHIND` given facts go; `IN_STILL` is how many stay."""

IN_STILL = IN_OLD_COUNTS


@part
def how_it_stands(task: int) -> int:
    """`DONE` if a call can go on, or how it ends."""
    if read_number(task, PATIENCE) < 0:
        return int64(GAVE_UP)
    return int64(HAS_FRESH if read_number(task, FRESH) > 0 else DONE)


@part
def add_to(at: int, amount: int, task: int) -> None:
    """Raise a number of a task."""
    write_number(task, at, read_number(task, at) + amount)


@part
def is_derivable(key: np.uint64, task: int) -> bool:
    """Whether rules derive facts of the relation."""
    return (traits_of(key, task) & IS_DERIVABLE) != 0


@part
def traits_of(key: np.uint64, task: int) -> int:
    """What `kernels.equality_steps` knows about the relation of a fact."""
    return read_number(read_number(task, TRAITS), int64(key >> HALF))


@part
def derive_from(
    source: int,
    size: int,
    slot: int,
    seen: int,
    wiring: Wired,
    lists: Lists,
    given: Given,
    state: Numbers,
) -> int:
    """Run queries of a slot that read the facts of a list as changed ones.

    Returns how many facts were found, or -1: there was no room.
    """
    relations = wiring[0]
    keys, numbers = lists[0], lists[1]
    changed = given[0][CHANGED]
    starts = np.empty(relations.size + 1, np.int64)
    nothing = np.zeros(relations.size + 1, np.int64)
    group_rows(keys[source], size, 0, starts, numbers[IN_ROWS])
    mark_keys(relations, keys[source], size, changed, 0, 0)
    rows, visible = numbers[IN_ROWS], given[1][seen]
    found = derive(slot, rows, starts, nothing, visible, wiring, lists, state)
    mark_keys(relations, keys[source], size, 0, changed, 0)
    return found


@kernel("int64(int64, int64, int64, int64, int64)")
def derive_listed(which: int, size: int, slot: int, seen: int, task: int) -> int:
    """Run queries of the component that read the first facts of a list as changed ones.

    Returns how many facts were found, or -1: there was no room.
    """
    rules = read_number(task, RULES)
    component = read_number(task, COMPONENT)
    programs = read_number(rules, PROGRAM_COUNT)
    wiring = (
        numbers_at(read_number(rules, RELATIONS), component),
        numbers_at(read_number(rules, HOLDERS), component),
        numbers_at(read_number(rules, STARTS), read_number(rules, SLOTS)),
        number_lines_at(
            read_number(rules, ENTRIES), read_number(rules, ENTRY_COUNT), 3
        ),
        number_lines_at(read_number(rules, PROGRAMS), programs, 2),
        number_lines_at(read_number(rules, WORK), programs, 2),
        numbers_at(read_number(rules, RECURSIVE), 1),
    )
    room = read_number(task, ROOM_OF_LIST)
    nothing = number_lines_at(task, 0, 0)
    lists = (
        key_lines_at(read_number(task, LISTED), ALL_LISTS, room),
        row_lines_at(read_number(task, NUMBER_LISTED), NUMBER_LISTS, room),
        ids_at(read_number(task, FRESH_IDS), room),
        nothing,
        nothing,
    )
    no_keys = lists[0][0, :0]
    given = (
        numbers_at(task + 8 * BITS, BIT_COUNT),
        flag_lines_at(read_number(task, SEEN_BY), SIGHTS, STATUSES),
        no_keys,
        no_keys,
    )
    state = numbers_at(task, STATE_SIZE)
    return derive_from(which, size, slot, seen, wiring, lists, given, state)
