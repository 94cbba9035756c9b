"""What follows a search of `kernels.equality_deletion`, for few facts, in one call.

What is proved takes the place of what was deleted, and given facts are brought into
their new normal form: see `evermat.maintenance.equality.deletion`,
`Deletion._propagate`, and `equality.update`, `EqualityUpdate._marks_of_changes`. It
works on the task of the search, in which `NEW` is now what names are equal after the
update.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.engines.embedded.kernels.changes import (
    ADDED,
    CHECKED,
    DELAYED,
    DELETED,
    DONE,
    HALF,
    IN_ADDED,
    IN_BATCH,
    IN_CANDIDATES,
    IN_CHECKED,
    IN_DELAYED,
    IN_DELETED,
    IN_DELTA,
    IN_OPEN,
    IN_TODO,
    PATIENCE,
    PROVED,
    part,
)
from evermat.engines.embedded.kernels.equality_search import (
    IN_ALONE,
    IN_BEHIND,
    IN_EXPLORED,
    IN_MENTIONED,
    IN_NODES,
    IN_OTHERS,
    IN_PROVED,
    IN_SHARED,
    IN_STILL,
    SEEN,
    WITHDRAWN,
    how_it_stands,
)
from evermat.engines.embedded.kernels.equality_steps import (
    NEW,
    NONE,
    NUMBER_LISTED,
    OLD,
    ROOM_OF_LIST,
    SAME,
    clear_list,
    give_up,
    has,
    image_of,
    is_given,
    is_implied,
    key_at,
    link_of,
    list_given,
    list_mentioning,
    name_of,
    next_of,
    node_of,
    note_fresh,
    others_of,
    put,
    put_once,
    read_names,
    room_for_names,
    seek,
    set_bit,
    set_size,
    size_of,
    status_of,
)
from evermat.engines.embedded.kernels.keys import int64, kernel
from evermat.engines.embedded.kernels.raw import read_number, read_row, write_number
from evermat.engines.embedded.relation import EXPLICIT, MATERIALISED

if TYPE_CHECKING:
    import numpy as np

IS_OLD, IS_NEW, IS_STILL = CHECKED, PROVED, DELAYED
"""Status bits that the search has cleared: facts that stood for affected given facts,
facts that stand for them, and those of the former that stand for others."""

IN_AFFECTED, IN_OLD, IN_NEW, IN_TOUCHED = IN_MENTIONED, IN_TODO, IN_OPEN, IN_BATCH
IN_WITHDRAWN, IN_GIVEN, IN_CLEARED = IN_CHECKED, IN_DELTA, IN_DELAYED
IN_IMPLIED, IN_NOT_IMPLIED, IN_ABOUT = IN_CANDIDATES, IN_EXPLORED, IN_NODES
"""Lists that the search does not need any more."""


@part
def _add(key: np.uint64, task: int) -> None:
    """Add a fact unless it holds."""
    if not status_of(key, task) & MATERIALISED or has(DELETED, key, task):
        put_once(IN_ADDED, key, ADDED, task)


@part
def _add_nodes(node: np.uint64, task: int) -> None:
    """Have nodes for cliques of two and more that are left of a clique."""
    first = name_of(node, task)
    one = first
    while True:
        if link_of(one, NEW, task) == 0 and others_of(one, NEW, task) != 0:
            found = node_of(one, task)
            if found == NONE:
                note_fresh(SAME, room_for_names(0, task), task)
            else:
                _add(found, task)
        one = next_of(one, OLD, task)
        if one == first:
            break


@part
def _propagate(task: int) -> None:
    """Put what is proved in the place of what was deleted (Algorithm 2)."""
    for i in range(size_of(IN_DELETED, task)):
        node = key_at(IN_DELETED, i, task)
        if int64(node >> HALF) == SAME:
            _add_nodes(node, task)
    ids = room_for_names(0, task)
    for i in range(size_of(IN_PROVED, task)):
        key = key_at(IN_PROVED, i, task)
        image = image_of(key, NEW, ids, task)
        if image == NONE:
            note_fresh(int64(key >> HALF), ids, task)
        else:
            _add(image, task)


@part
def _seek_moved(node: np.uint64, sought: int, task: int) -> int:
    """Look for the names of a clique that something else stands for now.

    Returns how many names are looked for then.
    """
    first = name_of(node, task)
    one = next_of(first, OLD, task)
    while one != first:
        if link_of(one, OLD, task) != link_of(one, NEW, task):
            sought = seek(one, sought, task)
        one = next_of(one, OLD, task)
    return sought


@part
def _list_affected(task: int) -> None:
    """Given facts that go, or that mention a name for which something else stands."""
    for i in range(size_of(IN_SHARED, task)):
        put_once(IN_AFFECTED, key_at(IN_SHARED, i, task), SEEN, task)
    sought = int64(0)
    for i in range(size_of(IN_DELETED, task)):
        node = key_at(IN_DELETED, i, task)
        if int64(node >> HALF) == SAME:
            sought = _seek_moved(node, sought, task)
    list_mentioning(sought, EXPLICIT, -1, SEEN, IN_AFFECTED, task)
    clear_list(IN_AFFECTED, SEEN, task)


@part
def _list_about(task: int) -> None:
    """Facts that held about cliques that fall apart: they stand for others now.

    If they are too many, the list is said to have -1 of them.
    """
    patience = read_number(task, PATIENCE)
    sought = int64(0)
    for i in range(size_of(IN_DELETED, task)):
        node = key_at(IN_DELETED, i, task)
        # What stood for it takes the place of names that something else stands for.
        if int64(node >> HALF) == SAME and _seek_moved(node, sought, task) > sought:
            sought = seek(name_of(node, task), sought, task)
    list_mentioning(sought, MATERIALISED, -1, SEEN, IN_ABOUT, task)
    if read_number(task, PATIENCE) < 0:
        set_size(IN_ABOUT, -1, task)
        write_number(task, PATIENCE, patience)


@part
def _rewrite(task: int) -> None:
    """Find what stood for affected facts, and what stands for them."""
    ids = room_for_names(0, task)
    for i in range(size_of(IN_AFFECTED, task)):
        key = key_at(IN_AFFECTED, i, task)
        if is_implied(key, task):
            continue
        image = image_of(key, OLD, ids, task)
        if image == NONE:
            give_up(task)
            return
        put_once(IN_OLD, image, IS_OLD, task)
        if has(WITHDRAWN, key, task):
            continue
        image = image_of(key, NEW, ids, task)
        if image == NONE:
            note_fresh(int64(key >> HALF), ids, task)
        else:
            put_once(IN_NEW, image, IS_NEW, task)


@part
def _is_split(key: np.uint64, task: int) -> bool:
    """Whether a fact mentions a name that had others which it has no more."""
    ids = room_for_names(0, task)
    for at in range(read_names(key, ids, task)):
        name = int64(ids[at])
        if others_of(name, OLD, task) != others_of(name, NEW, task):
            return True
    return False


@part
def _compare(is_changed: bool, task: int) -> None:  # noqa: FBT001  kernels have no keywords
    """Find out behind which facts nothing is given any more, and behind which now."""
    room = read_number(task, ROOM_OF_LIST)
    still = read_number(task, NUMBER_LISTED) + 4 * IN_STILL * room
    for i in range(size_of(IN_OLD, task)):
        key = key_at(IN_OLD, i, task)
        if has(IS_NEW, key, task):
            continue
        if i < size_of(IN_BEHIND, task) and not (is_changed and _is_split(key, task)):
            # The search knows it, and has asked in the same order.
            count = int64(read_row(still, i))
        else:
            count = list_given(key, WITHDRAWN, -1, NEW, task)
        if count > 0:
            set_bit(IS_STILL, key, task)
        else:
            put(IN_WITHDRAWN, key, task)
    held = EXPLICIT | MATERIALISED
    for i in range(size_of(IN_NEW, task)):
        key = key_at(IN_NEW, i, task)
        if status_of(key, task) & held != held:
            put(IN_GIVEN, key, task)


@part
def _mark(which: int, task: int) -> None:
    """Find out how the facts of a list are explicit from now on."""
    for i in range(size_of(which, task)):
        key = key_at(which, i, task)
        if not put_once(IN_TOUCHED, key, SEEN, task):
            continue
        is_itself = is_given(key, task) and not has(WITHDRAWN, key, task)
        stands_for_any = has(IS_NEW, key, task) or has(IS_STILL, key, task)
        will_be_implied = stands_for_any and not is_itself
        if not stands_for_any and not is_itself:
            put(IN_CLEARED, key, task)
        if is_implied(key, task) != will_be_implied:
            put(IN_IMPLIED if will_be_implied else IN_NOT_IMPLIED, key, task)


@kernel("int64(int64, boolean)")
def mark_given(task: int, is_changed: bool) -> int:  # noqa: FBT001  kernels have no keywords
    """Add what is proved, and list how explicit facts change.

    Args:
        task: the address of all that it works on.
        is_changed: whether names are equal to others than before.

    Returns:
        `DONE`; `HAS_FRESH`, if facts need rows before another try; or `GAVE_UP`. In
        these cases nothing has changed.
    """
    for which in (
        IN_ADDED,
        IN_AFFECTED,
        IN_OLD,
        IN_NEW,
        IN_TOUCHED,
        IN_WITHDRAWN,
        IN_GIVEN,
        IN_CLEARED,
        IN_IMPLIED,
        IN_NOT_IMPLIED,
        IN_ABOUT,
    ):
        set_size(which, 0, task)
    for i in range(size_of(IN_SHARED, task)):
        set_bit(WITHDRAWN, key_at(IN_SHARED, i, task), task)
    _propagate(task)
    _list_affected(task)
    _rewrite(task)
    if how_it_stands(task) == DONE:
        _compare(is_changed, task)
        _mark(IN_SHARED, task)
        _mark(IN_OLD, task)
        _mark(IN_NEW, task)
        for which in (IN_ALONE, IN_OTHERS):
            for i in range(size_of(which, task)):
                put(IN_WITHDRAWN, key_at(which, i, task), task)
                put(IN_CLEARED, key_at(which, i, task), task)
    for which, bit in (
        (IN_SHARED, WITHDRAWN),
        (IN_OLD, IS_OLD),
        (IN_OLD, IS_STILL),
        (IN_NEW, IS_NEW),
        (IN_TOUCHED, SEEN),
    ):
        clear_list(which, bit, task)
    ends = how_it_stands(task)
    if ends != DONE:
        clear_list(IN_ADDED, ADDED, task)
    elif is_changed:
        _list_about(task)
    return ends
