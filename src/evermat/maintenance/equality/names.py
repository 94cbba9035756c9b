"""The names of cliques as facts, which rules with built-ins read.

`~name(r, n)` holds where `r` represents another constant `n`; see `evermat.lang.names`.
The facts change with the cliques, before the rules that equality does not depend on
are brought up to date.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra import (
    Apply,
    Column,
    Pattern,
    Query,
    QuerySet,
    Require,
    Role,
    Views,
)
from evermat.lang.equality import SAME
from evermat.lang.names import NAME
from evermat.maintenance.equality.state import MOVED

if TYPE_CHECKING:
    from evermat.algebra import SettledFacts
    from evermat.algebra.abilities import EqualityEngine, Representatives

_PAIR = (Column(0), Column(1))
_NAMES = QuerySet(
    (
        Query(
            head=Pattern(NAME, _PAIR),
            positive=(
                Pattern(SAME, _PAIR, Role.CHANGED),
                Pattern(MOVED, (Column(1),)),
            ),
            computations=(Require(Apply("!=", _PAIR)),),
            column_count=2,
            label="other names of representatives",
        ),
    )
)
_NODES = QuerySet(
    (
        Query(
            head=Pattern(SAME, (Column(0), Column(0))),
            positive=(Pattern(MOVED, (Column(0),), Role.CHANGED),),
            column_count=1,
            label="cliques of names",
        ),
    )
)


def all_names(engine: EqualityEngine, representatives: Representatives) -> SettledFacts:
    """The names of all cliques; in a transaction."""
    moved = engine.moved(engine.representatives(), representatives, MOVED)
    return names_of(engine, moved, representatives)


def names_of(
    engine: EqualityEngine, moved: SettledFacts, representatives: Representatives
) -> SettledFacts:
    """What represents some constants, if they do not represent themselves.

    Args:
        engine: in a transaction.
        moved: the constants, as facts of `~moved`.
        representatives: which constants are equal.
    """
    engine.declare(NAME, 2)
    engine.declare(SAME, 2)
    if moved.is_empty():
        return moved
    nodes = engine.derive(_NODES, Views(moved, moved, moved))
    nodes = engine.rewrite(nodes, representatives)
    pairs = engine.members(nodes, representatives)
    return engine.derive(_NAMES, Views(moved, moved, pairs))
