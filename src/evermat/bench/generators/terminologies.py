"""A synthetic terminology, classified by the completion rules of the logic EL.

Concepts form a hierarchy in which each has one or two parents a little above it, as in
medical terminologies. Some are defined: by a conjunction of two others (`conj`), or as
what has a role to something (`some`). Concepts have roles to others (`has`), roles have
parents (`subrole`) and chains (`chain`).

Six rules classify: `sub` are subclass pairs, `role` are triples of what has which role
to what. The first of them says that `sub` is transitive; three of the others derive
pairs and triples from what the closure has, so that it is fed in every round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evermat.bench.problem import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

RULES = """
    sub(?x, ?y) :- told(?x, ?y) .
    sub(?x, ?z) :- sub(?x, ?y), sub(?y, ?z) .
    sub(?x, ?c) :- sub(?x, ?a), conj(?a, ?b, ?c), sub(?x, ?b) .
    role(?x, ?r, ?y) :- sub(?x, ?z), has(?z, ?r, ?y) .
    sub(?x, ?z) :- role(?x, ?r, ?y), some(?r, ?w, ?z), sub(?y, ?w) .
    role(?x, ?s, ?y) :- role(?x, ?r, ?y), subrole(?r, ?s) .
    role(?x, ?t, ?z) :- role(?x, ?r, ?y), chain(?r, ?s, ?t), role(?y, ?s, ?z) .
"""

_ROLES = 20
_TWO_PARENTS = 0.4
_NEARNESS = 4
"""Parents have about half the number of a concept: paths are logarithmic in length."""

_TOP = 20
"""One concept in so many is at the top: definitions by roles are found there."""


def terminology(concepts: int, seed: int = 1) -> Problem:
    """A terminology of so many concepts, which come after those above them."""
    random = np.random.default_rng(seed)
    # Parents have smaller numbers, so that there are no cycles.
    every = np.arange(1, concepts)
    first = _above(random, every)
    second = every[random.random(every.size) < _TWO_PARENTS]
    told = _pairs([every, second], [first, _above(random, second)])
    return Problem(
        RULES,
        {
            "told": told,
            "conj": _defined_by_two(random, concepts),
            "has": _with_roles(random, concepts),
            "some": _defined_by_roles(random, concepts),
            "subrole": _pairs([np.arange(1, _ROLES)], [np.arange(1, _ROLES) // 3]),
            "chain": _table(np.array([1, 4]), np.array([2, 4]), np.array([3, 4])),
        },
    )


def _above(
    random: np.random.Generator, concepts: NDArray[np.int64]
) -> NDArray[np.int64]:
    share = random.beta(_NEARNESS, _NEARNESS, concepts.size)
    above: NDArray[np.int64] = (concepts * share).astype(np.int64)
    return np.minimum(above, concepts - 1)


def _defined_by_two(random: np.random.Generator, concepts: int) -> pa.Table:
    """What is below two concepts is below a third one, which lies above both."""
    size = concepts // _TOP
    one = random.integers(1, concepts, size)
    other = _above(random, one)
    return _table(one, other, _above(random, np.minimum(one, other)))


def _with_roles(random: np.random.Generator, concepts: int) -> pa.Table:
    size = concepts // 3
    return _table(
        random.integers(concepts // _TOP, concepts, size),
        random.integers(0, _ROLES, size),
        random.integers(0, concepts, size),
    )


def _defined_by_roles(random: np.random.Generator, concepts: int) -> pa.Table:
    """What has a role to something is below a concept at the top."""
    size = concepts // _TOP
    return _table(
        random.integers(0, _ROLES, size),
        random.integers(0, concepts, size),
        random.integers(0, max(1, concepts // _TOP), size),
    )


def _pairs(
    sources: list[NDArray[np.int64]], targets: list[NDArray[np.int64]]
) -> pa.Table:
    return _table(np.concatenate(sources), np.concatenate(targets))


def _table(*columns: NDArray[np.int64]) -> pa.Table:
    """The rows of some columns, each once."""
    rows = np.unique(np.stack(columns), axis=1)
    return pa.table({str(at): column for at, column in enumerate(rows)})
