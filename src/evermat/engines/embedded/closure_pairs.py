"""Pairs of ids, and what a closure is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evermat.algebra import ClosureKind
from evermat.engines.embedded.index import make_keys
from evermat.engines.embedded.kernels import keys as kernels
from evermat.engines.embedded.kernels import rows as kernels_rows

if TYPE_CHECKING:
    from evermat.algebra import Closure
    from evermat.engines.embedded.arrays import Ids, Keys


class Pairs(NamedTuple):
    """Pairs of ids, by column."""

    sources: Ids
    targets: Ids

    @property
    def size(self) -> int:
        """How many there are."""
        return self.sources.size

    def flipped(self) -> Pairs:
        """The pairs the other way round."""
        return Pairs(self.targets, self.sources)

    def keys(self) -> Keys:
        """The pairs as sorted keys."""
        keys = make_keys(np.stack(self)) if self.size else np.empty(0, np.uint64)
        return kernels.sort_keys(keys, np.empty_like(keys))


NO_PAIRS = Pairs(np.empty(0, np.uint32), np.empty(0, np.uint32))


class Paths(NamedTuple):
    """What a closure is made of: its pairs are a seed and any number of edges."""

    seeds: Pairs
    edges: Pairs


NO_PATHS = Paths(NO_PAIRS, NO_PAIRS)


def joined(*parts: Pairs) -> Pairs:
    """All pairs of several lists."""
    return Pairs(
        np.concatenate([part.sources for part in parts]),
        np.concatenate([part.targets for part in parts]),
    )


def paths_of(closure: Closure, external: Pairs, edges: Pairs) -> Paths:
    """What a closure is made of; if it walks backwards, all pairs are flipped."""
    match closure.kind:
        case ClosureKind.PLAIN:
            return Paths(external, NO_PAIRS)
        case ClosureKind.TRANSITIVE:
            loops = [Pairs(external[at], external[at]) for at in closure.loops]
            seeds = joined(external, *loops) if loops else external
            return Paths(seeds, seeds)
        case ClosureKind.SYMMETRIC:
            both = joined(external, external.flipped())
            return Paths(both, both)
        case ClosureKind.LEFT_LINEAR:
            return Paths(external, edges)
        case ClosureKind.RIGHT_LINEAR:
            return Paths(external.flipped(), edges.flipped())


def pairs_of(keys: Keys) -> Pairs:
    """Keys as pairs."""
    pairs = Pairs(np.empty(keys.size, np.uint32), np.empty(keys.size, np.uint32))
    kernels_rows.split_keys(keys, *pairs)
    return pairs


def only_in(left: Pairs, right: Pairs) -> Pairs:
    """The pairs of the left side that the right side does not have."""
    if left is right:
        return NO_PAIRS
    keys, others = left.keys(), right.keys()
    found = np.full(keys.size, -1, np.int32)
    kernels.find_sorted(keys, others, np.arange(others.size, dtype=np.int32), found)
    return pairs_of(keys[found < 0])
