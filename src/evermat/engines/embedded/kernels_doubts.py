"""B/F^≈ for few facts: what a deletion leaves of facts and cliques, in one call.

See `evermat.maintenance.equality` and `equality_told` for the algorithm: functions here
follow the methods there. What is different:

- sets are status bits, and lists by which these bits are cleared;
- equalities that are proved are pairs of names, and no facts that need rows;
- whether a fact is proved is asked for one fact at a time.

A fact that is proved under a name that it never had needs a row. Then the call undoes
what it did, rows are given, and another call begins anew: that happens seldom, and what
was found out so far took microseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.kernels import int64, kernel
from evermat.engines.embedded.kernels_changes import (
    CHECKED,
    DELAYED,
    DELETED,
    DONE,
    FRESH,
    GAVE_UP,
    HALF,
    HAS_FRESH,
    IN_BATCH,
    IN_CANDIDATES,
    IN_CHECKED,
    IN_DELAYED,
    IN_DELETED,
    IN_DELTA,
    IN_FOUND,
    IN_OLD_COUNTS,
    IN_OPEN,
    IN_TODO,
    LISTS,
    MATCHES,
    NUMBER_LISTS,
    PATIENCE,
    PROVED,
    STATE_SIZE,
    part,
)
from evermat.engines.embedded.kernels_cliques import label, unite
from evermat.engines.embedded.kernels_names import (
    ALL_LISTS,
    ARE_PROVED,
    BACKWARDS,
    BIT_COUNT,
    BITS,
    COMPONENT,
    CONSTANT_COUNT,
    CONSTANTS,
    FORWARDS,
    FRESH_IDS,
    GAINS,
    GROWN,
    IS_DERIVABLE,
    IS_READ_ALONE,
    KINDS,
    LATER_LEFT,
    LATER_PAIRS,
    LATER_RIGHT,
    LEFT,
    LINKS,
    LISTED,
    MORE_LISTS,
    NAMED,
    NAMES,
    NEW,
    NONE,
    NUMBER_LISTED,
    OLD,
    OTHERS,
    PAIRS,
    RANKS,
    RIGHT,
    RING,
    ROOM_OF_LIST,
    ROUNDS,
    RULES,
    SAME,
    SEEN_BY,
    TRAITS,
    UNITED,
    WITHDRAWAL_COUNT,
    WITHDRAWALS,
    clear_bit,
    clear_list,
    fetch_names,
    give_up,
    has,
    image_of,
    is_shared,
    key_at,
    link_of,
    list_given,
    list_mentioning,
    name_at,
    name_of,
    next_of,
    node_of,
    note_fresh,
    others_of,
    put,
    put_name,
    put_once,
    read_names,
    relation_of,
    room_for_names,
    seek,
    set_bit,
    set_key,
    set_size,
    size_of,
    spend,
    status_of,
)
from evermat.engines.embedded.kernels_proofs import derive_from
from evermat.engines.embedded.kernels_steps import BLOCK
from evermat.engines.embedded.layout import ARITY
from evermat.engines.embedded.raw import (
    flag_lines_at,
    flags_at,
    ids_at,
    key_lines_at,
    number_lines_at,
    numbers_at,
    read_id,
    read_key,
    read_number,
    row_lines_at,
    rows_at,
    write_id,
    write_number,
    write_row,
)
from evermat.engines.embedded.relation import EXPLICIT, MATERIALISED

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids

DOUBTFUL, EXPLORED, IMAGED, WHOLE, CROWDED, SEEN, WITHDRAWN = range(7, BIT_COUNT)
"""Status bits beside those of `kernels_changes`. Facts are *crowded* if two given facts
go that are behind them, and *seen* for a moment."""

CHECKING, CHECKING_ALONE, BACKWARD, PROVING = range(4)
"""Slots of queries; see `evermat.maintenance.equality_rules`."""

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
"""Lists beside those of `kernels_changes`. Given facts that go are divided: those with
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
def _add_to(at: int, amount: int, task: int) -> None:
    write_number(task, at, read_number(task, at) + amount)


@part
def _is_derivable(key: np.uint64, task: int) -> bool:
    return (_traits_of(key, task) & IS_DERIVABLE) != 0


@part
def _traits_of(key: np.uint64, task: int) -> int:
    return read_number(read_number(task, TRAITS), int64(key >> HALF))


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


# ------------------------------------------------------------------- forward chaining


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
    if unite(links, ring, kinds, ranks, nobody, left_ones, right_ones) >= 0:
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
def _saturate(task: int) -> int:
    """Prove what follows from given facts by way of checked facts (Algorithm 5).

    The facts that are asked about are on a list. Returns how the call ends, or `DONE`.
    """
    _find_sure(task)
    while True:
        pairs = _merge(task)
        size = _admit(task)
        _add_to(GAINS, pairs + size, task)
        ends = how_it_stands(task)
        if ends != DONE or size == 0:
            return ends
        _add_to(ARE_PROVED, size, task)
        _add_to(ROUNDS, 1, task)
        start, before = read_number(task, FRESH), read_number(task, MATCHES)
        found = derive_listed(IN_DELTA, size, PROVING, SEES_PROVED, task)
        _add_to(FORWARDS, read_number(task, MATCHES) - before, task)
        if found < 0:
            return int64(GAVE_UP)
        _sort_pairs(start, found, task)


# ------------------------------------------------------------------ backward chaining


@part
def _is_proved(key: np.uint64, task: int) -> bool:
    """Whether a fact is proved, with whole cliques."""
    ids = room_for_names(1, task)
    if not has(WHOLE, key, task):
        image = image_of(key, NEW, ids, task)
        if image == NONE or not has(PROVED, image, task):
            return False
    for at in range(read_names(key, ids, task)):
        if others_of(int64(ids[at]), OLD, task) != 0:
            node = node_of(int64(ids[at]), task)
            if node == NONE or not has(WHOLE, node, task):
                return False
    return True


@part
def _keep_open(which: int, task: int) -> None:
    """Keep those facts of a list that have no proof so far."""
    if read_number(task, GAINS) == 0:
        return
    kept = int64(0)
    for i in range(size_of(which, task)):
        key = key_at(which, i, task)
        if not _is_proved(key, task):
            set_key(which, kept, key, task)
            kept += 1
    set_size(which, kept, task)


@part
def _ask(which: int, task: int) -> int:
    """Check the facts of a list; keeps those open that wait for a proof.

    Returns how the call ends, or `DONE`.
    """
    set_size(IN_ASKED, 0, task)
    for i in range(size_of(which, task)):
        key = key_at(which, i, task)
        if put_once(IN_CHECKED, key, CHECKED, task):
            put(IN_ASKED, key, task)
    if size_of(IN_ASKED, task) == 0:
        return how_it_stands(task)
    before = read_number(task, GAINS)
    ends = _saturate(task)
    if ends == DONE and read_number(task, GAINS) > before:
        _keep_open(IN_OPEN, task)
    return ends


@part
def _find_hints(task: int) -> None:
    """Facts that are likely to prove cliques among the facts to be looked into.

    Something must say that another name is equal to the one that represents it, and
    often that is a given fact about the other name.
    """
    set_size(IN_MENTIONED, 0, task)
    sought = int64(0)
    for i in range(size_of(IN_TODO, task)):
        node = key_at(IN_TODO, i, task)
        if int64(node >> HALF) != SAME or has(WHOLE, node, task):
            continue
        first = name_of(node, task)
        one = next_of(first, OLD, task)
        while one != first:
            sought = seek(one, sought, task)
            one = next_of(one, OLD, task)
    list_mentioning(sought, EXPLICIT, -1, SEEN, IN_MENTIONED, task)
    ids = room_for_names(0, task)
    kept = int64(0)
    for i in range(size_of(IN_MENTIONED, task)):
        image = image_of(key_at(IN_MENTIONED, i, task), OLD, ids, task)
        if image == NONE or has(DELETED, image, task):
            continue
        if status_of(image, task) & MATERIALISED:
            set_key(IN_MENTIONED, kept, image, task)
            kept += 1
    set_size(IN_MENTIONED, kept, task)


@part
def _is_possible(key: np.uint64, task: int) -> bool:
    """Whether a fact held before and is not disproved, not for all names at least."""
    if not status_of(key, task) & MATERIALISED:
        return False
    return not has(DELETED, key, task) or has(IMAGED, key, task)


@part
def _find_reasons(task: int) -> int:
    """Facts that could prove those to be looked into, which are explored with that.

    They are looked into next. Returns how the call ends, or `DONE`.
    """
    unproved = size_of(IN_TODO, task)
    if unproved == 0:
        return int64(DONE)
    for i in range(unproved):
        put_once(IN_EXPLORED, key_at(IN_TODO, i, task), EXPLORED, task)
    before = read_number(task, MATCHES)
    found = derive_listed(IN_TODO, unproved, BACKWARD, SEES_POSSIBLE, task)
    _add_to(BACKWARDS, read_number(task, MATCHES) - before, task)
    if found < 0 or read_number(task, FRESH) > 0:
        return int64(GAVE_UP)
    set_size(IN_REST, 0, task)
    for i in range(found):
        key = key_at(IN_FOUND, i, task)
        if not has(EXPLORED, key, task):
            put_once(IN_REST, key, SEEN, task)
    # Other names help to prove a fact only if it may hold for some of them. Cliques of
    # one constant have no node, so there is nothing to ask about them.
    ids = room_for_names(1, task)
    for i in range(unproved):
        key = key_at(IN_TODO, i, task)
        if not has(IMAGED, key, task) and not _is_derivable(key, task):
            continue
        for at in range(read_names(key, ids, task)):
            if others_of(int64(ids[at]), OLD, task) == 0:
                continue
            node = node_of(int64(ids[at]), task)
            if node == NONE or has(EXPLORED, node, task):
                continue
            if _is_possible(node, task):
                put_once(IN_REST, node, SEEN, task)
    clear_list(IN_REST, SEEN, task)
    _copy(IN_REST, IN_TODO, task)
    return how_it_stands(task)


@part
def _copy(source: int, target: int, task: int) -> None:
    """Have one list as another one is."""
    size = size_of(source, task)
    for i in range(size):
        set_key(target, i, key_at(source, i, task), task)
    set_size(target, size, task)


@part
def _check(task: int) -> int:
    """Look for proofs of the batch; those without stay open (Algorithm 4).

    Returns how the call ends, or `DONE`.
    """
    _copy(IN_BATCH, IN_OPEN, task)
    _keep_open(IN_OPEN, task)
    set_size(IN_TODO, 0, task)
    for i in range(size_of(IN_OPEN, task)):
        key = key_at(IN_OPEN, i, task)
        if not has(EXPLORED, key, task):
            put(IN_TODO, key, task)
    while size_of(IN_TODO, task) > 0:
        ends = _ask(IN_TODO, task)
        if ends != DONE or size_of(IN_OPEN, task) == 0:
            return ends
        _find_hints(task)
        ends = _ask(IN_MENTIONED, task)
        if ends != DONE or size_of(IN_OPEN, task) == 0:
            return ends
        _keep_open(IN_TODO, task)
        ends = _find_reasons(task)
        if ends != DONE:
            return ends
    return int64(DONE)


# ------------------------------------------------------------------------- deletion


@part
def _follow(which: int, slot: int, task: int) -> bool:
    """Make candidates of what rules derive from the facts of a list, and others.

    Returns whether there was room.
    """
    size = size_of(which, task)
    starts = read_number(read_number(task, RULES), STARTS)
    if size == 0 or read_number(starts, 2 * slot) == read_number(starts, 2 * slot + 1):
        return True
    before = read_number(task, MATCHES)
    found = derive_listed(which, size, slot, SEES_REMAINING, task)
    _add_to(FORWARDS, read_number(task, MATCHES) - before, task)
    if found < 0 or read_number(task, FRESH) > 0:
        return False
    for i in range(found):
        put(IN_CANDIDATES, key_at(IN_FOUND, i, task), task)
    return True


@part
def _delete_list(which: int, task: int) -> None:
    for i in range(size_of(which, task)):
        put_once(IN_DELETED, key_at(which, i, task), DELETED, task)


@part
def _lose(task: int) -> bool:
    """Delete told facts; what may depend on them becomes candidates.

    They are on two lists: those with two given facts behind them, and the rest. Returns
    whether there was room.
    """
    is_any = size_of(IN_CROWD, task) + size_of(IN_REST, task) > 0
    _add_to(ROUNDS, int64(is_any), task)
    is_fine = _follow(IN_CROWD, CHECKING, task)
    is_fine = _follow(IN_REST, CHECKING_ALONE, task) and is_fine
    _delete_list(IN_CROWD, task)
    _delete_list(IN_REST, task)
    return is_fine


@part
def _split(task: int) -> int:
    """Break up facts about cliques that fall apart: those that are open.

    What has to be checked becomes candidates. Returns how the call ends, or `DONE`.
    """
    set_size(IN_MENTIONED, 0, task)
    sought = int64(0)
    for i in range(size_of(IN_OPEN, task)):
        node = key_at(IN_OPEN, i, task)
        if int64(node >> HALF) == SAME:
            sought = seek(name_of(node, task), sought, task)
    list_mentioning(sought, MATERIALISED, DELETED, SEEN, IN_MENTIONED, task)
    # What is to be checked waits until told facts are proved.
    _copy(IN_CANDIDATES, IN_SAFE, task)
    set_size(IN_CANDIDATES, 0, task)
    told = int64(0)
    for i in range(size_of(IN_MENTIONED, task)):
        key = key_at(IN_MENTIONED, i, task)
        if _is_derivable(key, task):
            put(IN_SAFE, key, task)
        else:
            set_key(IN_MENTIONED, told, key, task)
            told += 1
    set_size(IN_MENTIONED, told, task)
    ends = _ask(IN_MENTIONED, task)
    if ends != DONE:
        return ends
    _copy(IN_SAFE, IN_CANDIDATES, task)
    set_size(IN_CROWD, 0, task)
    set_size(IN_REST, 0, task)
    for i in range(told):
        key = key_at(IN_MENTIONED, i, task)
        count = list_given(key, -1, -1, OLD, task)
        put(IN_CROWD if count > 1 else IN_REST, key, task)
    if not _lose(task):
        return int64(GAVE_UP)
    return how_it_stands(task)


@part
def _delete(task: int) -> int:
    """Delete candidates that no longer hold (Algorithm 1, its loop)."""
    while True:
        set_size(IN_BATCH, 0, task)
        for i in range(size_of(IN_CANDIDATES, task)):
            key = key_at(IN_CANDIDATES, i, task)
            if has(DELETED, key, task):
                continue
            if put_once(IN_DOUBTFUL, key, DOUBTFUL, task):
                put(IN_BATCH, key, task)
        set_size(IN_CANDIDATES, 0, task)
        if size_of(IN_BATCH, task) == 0:
            return how_it_stands(task)
        ends = _check(task)
        if ends != DONE or size_of(IN_OPEN, task) == 0:
            return ends
        _add_to(ROUNDS, 1, task)
        if not _follow(IN_OPEN, CHECKING, task):
            return int64(GAVE_UP)
        _delete_list(IN_OPEN, task)
        ends = _split(task)
        if ends != DONE:
            return ends


# ----------------------------------------------------------------- where it all begins


@part
def _sort_deletions(task: int) -> None:
    """Divide given facts that go, and find those that stood for them."""
    component = read_number(task, COMPONENT)
    deletions = read_number(task, WITHDRAWALS)
    count = read_number(task, WITHDRAWAL_COUNT)
    for i in range(count):
        if i % BLOCK == 0:
            fetch_names(deletions, i, min(i + BLOCK, count), task)
        key = read_key(deletions, i)
        if is_shared(key, task):
            put_once(IN_SHARED, key, WITHDRAWN, task)
        elif int64(key >> HALF) < component:
            put_once(IN_ALONE, key, WITHDRAWN, task)
        else:
            put(IN_OTHERS, key, task)
    ids = room_for_names(0, task)
    for i in range(size_of(IN_SHARED, task)):
        image = image_of(key_at(IN_SHARED, i, task), OLD, ids, task)
        if image == NONE:
            give_up(task)
        elif not put_once(IN_BEHIND, image, SEEN, task):
            put_once(IN_CROWDED, image, CROWDED, task)
    clear_list(IN_BEHIND, SEEN, task)


@part
def _withdraw(task: int) -> int:
    """Deal with told facts behind which given ones go; see `equality_told`.

    What has to be checked becomes candidates. Returns how the call ends, or `DONE`.
    """
    component = read_number(task, COMPONENT)
    room = read_number(task, ROOM_OF_LIST)
    still = read_number(task, NUMBER_LISTED) + 4 * IN_STILL * room
    for i in range(size_of(IN_BEHIND, task)):
        key = key_at(IN_BEHIND, i, task)
        count = list_given(key, WITHDRAWN, -1, OLD, task)
        write_row(still, i, np.int32(count))
        if int64(key >> HALF) >= component:
            continue
        traits = _traits_of(key, task)
        if traits & IS_DERIVABLE or (count > 0 and traits & IS_READ_ALONE):
            put(IN_CANDIDATES, key, task)
        elif count > 0:
            put(IN_SAFE, key, task)
        else:
            put(IN_CROWD if has(CROWDED, key, task) else IN_REST, key, task)
    for i in range(size_of(IN_ALONE, task)):
        key = key_at(IN_ALONE, i, task)
        put(IN_CANDIDATES if _is_derivable(key, task) else IN_REST, key, task)
    if not _follow(IN_SAFE, CHECKING, task) or not _lose(task):
        return int64(GAVE_UP)
    return how_it_stands(task)


@part
def _forget_names(task: int) -> None:
    """Have no names equal that were proved to be."""
    links = read_number(task, NEW + LINKS)
    ring = read_number(task, NEW + RING)
    others = read_number(task, NEW + OTHERS)
    for i in range(read_number(task, UNITED)):
        one = name_at(GROWN, i, task)
        while True:
            following = next_of(one, NEW, task)
            write_id(links, one, np.uint32(0))
            write_id(ring, one, np.uint32(0))
            write_row(others, one, np.int32(0))
            if following == one:
                break
            one = following


@kernel("int64(int64)")
def search_doubts(task: int) -> int:
    """Find out which facts no longer hold, and what is proved in their place.

    Args:
        task: the address of all that it works on.

    Returns:
        `DONE`, when facts that are deleted have their bit and are on a list, as are
        those that are proved; `HAS_FRESH`, if facts need rows before another try; or
        `GAVE_UP`. In these cases nothing has changed.
    """
    _sort_deletions(task)
    ends = how_it_stands(task)
    if ends == DONE:
        ends = _withdraw(task)
    if ends == DONE:
        ends = _delete(task)
    for which, bit in (
        (IN_SHARED, WITHDRAWN),
        (IN_ALONE, WITHDRAWN),
        (IN_CROWDED, CROWDED),
        (IN_DOUBTFUL, DOUBTFUL),
        (IN_CHECKED, CHECKED),
        (IN_EXPLORED, EXPLORED),
        (IN_PROVED, PROVED),
        (IN_IMAGED, IMAGED),
        (IN_WHOLE, WHOLE),
        (IN_DELAYED, DELAYED),
        (IN_DELAYED_IMAGES, DELAYED),
    ):
        clear_list(which, bit, task)
    if ends != DONE:
        clear_list(IN_DELETED, DELETED, task)
        _forget_names(task)
    return ends
