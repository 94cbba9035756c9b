"""Backward chaining of a search for facts that no longer hold.

A fact in doubt is asked for what it could be derived from, and that again. See
`kernels.equality_deletion`, and `check` of `evermat.maintenance.equality.deletion`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.engines.embedded.kernels.changes import (
    CHECKED,
    DELETED,
    DONE,
    FRESH,
    GAVE_UP,
    HALF,
    IN_BATCH,
    IN_CHECKED,
    IN_FOUND,
    IN_OPEN,
    IN_TODO,
    MATCHES,
    PROVED,
    part,
)
from evermat.engines.embedded.kernels.equality_forward import saturate
from evermat.engines.embedded.kernels.equality_search import (
    BACKWARD,
    EXPLORED,
    IMAGED,
    IN_ASKED,
    IN_EXPLORED,
    IN_MENTIONED,
    IN_REST,
    SEEN,
    SEES_POSSIBLE,
    WHOLE,
    add_to,
    derive_listed,
    how_it_stands,
    is_derivable,
)
from evermat.engines.embedded.kernels.equality_steps import (
    BACKWARDS,
    GAINS,
    NEW,
    NONE,
    OLD,
    SAME,
    clear_list,
    has,
    image_of,
    key_at,
    list_mentioning,
    name_of,
    next_of,
    node_of,
    others_of,
    put,
    put_once,
    read_names,
    room_for_names,
    seek,
    set_key,
    set_size,
    size_of,
    status_of,
)
from evermat.engines.embedded.kernels.keys import int64
from evermat.engines.embedded.kernels.raw import read_number
from evermat.engines.embedded.relation import EXPLICIT, MATERIALISED

if TYPE_CHECKING:
    import numpy as np


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
def ask(which: int, task: int) -> int:
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
    ends = saturate(task)
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
    add_to(BACKWARDS, read_number(task, MATCHES) - before, task)
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
        if not has(IMAGED, key, task) and not is_derivable(key, task):
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
    copy(IN_REST, IN_TODO, task)
    return how_it_stands(task)


@part
def copy(source: int, target: int, task: int) -> None:
    """Have one list as another one is."""
    size = size_of(source, task)
    for i in range(size):
        set_key(target, i, key_at(source, i, task), task)
    set_size(target, size, task)


@part
def check(task: int) -> int:
    """Look for proofs of the batch; those without stay open (Algorithm 4).

    Returns how the call ends, or `DONE`.
    """
    copy(IN_BATCH, IN_OPEN, task)
    _keep_open(IN_OPEN, task)
    set_size(IN_TODO, 0, task)
    for i in range(size_of(IN_OPEN, task)):
        key = key_at(IN_OPEN, i, task)
        if not has(EXPLORED, key, task):
            put(IN_TODO, key, task)
    while size_of(IN_TODO, task) > 0:
        ends = ask(IN_TODO, task)
        if ends != DONE or size_of(IN_OPEN, task) == 0:
            return ends
        _find_hints(task)
        ends = ask(IN_MENTIONED, task)
        if ends != DONE or size_of(IN_OPEN, task) == 0:
            return ends
        _keep_open(IN_TODO, task)
        ends = _find_reasons(task)
        if ends != DONE:
            return ends
    return int64(DONE)
