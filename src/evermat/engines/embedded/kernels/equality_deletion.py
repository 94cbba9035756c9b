"""B/F^≈ for few facts: what a deletion leaves of facts and cliques, in one call.

See `evermat.maintenance.equality.deletion` and `equality.explicit` for the algorithm:
functions here follow the methods there. What is different:

- sets are status bits, and lists by which these bits are cleared;
- equalities that are proved are pairs of names, and no facts that need rows;
- whether a fact is proved is asked for one fact at a time.

A fact that is proved under a name that it never had needs a row. Then the call undoes
what it did, rows are given, and another call begins anew: that happens seldom, and what
was found out so far took microseconds.
"""

from __future__ import annotations

import numpy as np

from evermat.engines.embedded.kernels.changes import (
    CHECKED,
    DELAYED,
    DELETED,
    DONE,
    FRESH,
    GAVE_UP,
    HALF,
    IN_BATCH,
    IN_CANDIDATES,
    IN_CHECKED,
    IN_DELAYED,
    IN_DELETED,
    IN_FOUND,
    IN_OPEN,
    MATCHES,
    PROVED,
    part,
)
from evermat.engines.embedded.kernels.equality_backward import (
    ask,
    check,
    copy,
)
from evermat.engines.embedded.kernels.equality_search import (
    CHECKING,
    CHECKING_ALONE,
    CROWDED,
    DOUBTFUL,
    EXPLORED,
    IMAGED,
    IN_ALONE,
    IN_BEHIND,
    IN_CROWD,
    IN_CROWDED,
    IN_DELAYED_IMAGES,
    IN_DOUBTFUL,
    IN_EXPLORED,
    IN_IMAGED,
    IN_MENTIONED,
    IN_OTHERS,
    IN_PROVED,
    IN_REST,
    IN_SAFE,
    IN_SHARED,
    IN_STILL,
    IN_WHOLE,
    SEEN,
    SEES_REMAINING,
    STARTS,
    WHOLE,
    WITHDRAWN,
    add_to,
    derive_listed,
    how_it_stands,
    is_derivable,
    traits_of,
)
from evermat.engines.embedded.kernels.equality_steps import (
    COMPONENT,
    FORWARDS,
    GROWN,
    IS_DERIVABLE,
    IS_READ_ALONE,
    LINKS,
    NEW,
    NONE,
    NUMBER_LISTED,
    OLD,
    OTHERS,
    RING,
    ROOM_OF_LIST,
    ROUNDS,
    RULES,
    SAME,
    UNITED,
    WITHDRAWAL_COUNT,
    WITHDRAWALS,
    clear_list,
    fetch_names,
    give_up,
    has,
    image_of,
    is_shared,
    key_at,
    list_given,
    list_mentioning,
    name_at,
    name_of,
    next_of,
    put,
    put_once,
    room_for_names,
    seek,
    set_key,
    set_size,
    size_of,
)
from evermat.engines.embedded.kernels.instructions import BLOCK
from evermat.engines.embedded.kernels.keys import int64, kernel
from evermat.engines.embedded.kernels.raw import (
    read_key,
    read_number,
    write_id,
    write_row,
)
from evermat.engines.embedded.relation import MATERIALISED

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
    add_to(FORWARDS, read_number(task, MATCHES) - before, task)
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
    add_to(ROUNDS, int64(is_any), task)
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
    copy(IN_CANDIDATES, IN_SAFE, task)
    set_size(IN_CANDIDATES, 0, task)
    told = int64(0)
    for i in range(size_of(IN_MENTIONED, task)):
        key = key_at(IN_MENTIONED, i, task)
        if is_derivable(key, task):
            put(IN_SAFE, key, task)
        else:
            set_key(IN_MENTIONED, told, key, task)
            told += 1
    set_size(IN_MENTIONED, told, task)
    ends = ask(IN_MENTIONED, task)
    if ends != DONE:
        return ends
    copy(IN_SAFE, IN_CANDIDATES, task)
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
        ends = check(task)
        if ends != DONE or size_of(IN_OPEN, task) == 0:
            return ends
        add_to(ROUNDS, 1, task)
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
    """Deal with told facts behind which given ones go; see `equality.explicit`.

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
        traits = traits_of(key, task)
        if traits & IS_DERIVABLE or (count > 0 and traits & IS_READ_ALONE):
            put(IN_CANDIDATES, key, task)
        elif count > 0:
            put(IN_SAFE, key, task)
        else:
            put(IN_CROWD if has(CROWDED, key, task) else IN_REST, key, task)
    for i in range(size_of(IN_ALONE, task)):
        key = key_at(IN_ALONE, i, task)
        put(IN_CANDIDATES if is_derivable(key, task) else IN_REST, key, task)
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
