"""Facts as keys for compiled code: the number of a relation, and a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.arrays import NO_KEYS
from evermat.engines.embedded.flat import Flat
from evermat.engines.embedded.kernels.changes import join_keys, split_keys
from evermat.engines.embedded.settled import Settled

if TYPE_CHECKING:
    from collections.abc import Collection

    from evermat.engines.embedded.arrays import Keys
    from evermat.engines.embedded.store import Store
    from evermat.engines.embedded.triggers import Wires


def keys_of(
    facts: Settled, store: Store, wires: Wires, only: Collection[str] | None = None
) -> Keys:
    """The keys of facts, if need be of some relations only."""
    if facts.is_empty():
        return NO_KEYS
    flat = facts.flat(store.relations)
    names, lines, size = flat.names, flat.lines, flat.rows.size
    if only is not None:
        wanted = [at for at, name in enumerate(names) if name in only]
        if len(wanted) < len(names):
            names, lines = [names[at] for at in wanted], flat.lines[wanted]
            size = int((lines[:, 2] - lines[:, 1]).sum())
    numbers = np.array([wires.numbers[name] for name in names], np.int64)
    keys: Keys = np.empty(size, np.uint64)
    join_keys(lines, flat.rows, numbers, keys)
    return keys


def facts_of(keys: Keys, wires: Wires) -> Settled:
    """The facts of keys."""
    if not keys.size:
        return Settled({})
    rows = np.empty(keys.size, np.int32)
    names = wires.names
    lines = np.empty((len(names), 4), np.int64)
    lines = lines[: split_keys(wires.arrays[0], keys, rows, lines)]
    return Settled(Flat([names[at] for at in lines[:, 3].tolist()], rows, lines))
