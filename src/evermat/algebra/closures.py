"""Closures of facts under paths, which engines work out without rules."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evermat.algebra.queries import Pattern


class ClosureKind(Enum):
    """Which facts follow; X are the *external* facts that a closure starts from.

    | kind         | the facts are                                                     |
    | ------------ | ----------------------------------------------------------------- |
    | PLAIN        | X                                                                 |
    | TRANSITIVE   | paths of one or more facts of X                                   |
    | SYMMETRIC    | the same, where facts of X can be walked both ways                |
    | LEFT_LINEAR  | a fact of X, then any number of steps along edges                 |
    | RIGHT_LINEAR | any number of steps along edges, then a fact of X                 |
    """

    PLAIN = auto()
    TRANSITIVE = auto()
    SYMMETRIC = auto()
    LEFT_LINEAR = auto()
    RIGHT_LINEAR = auto()


@dataclass(frozen=True, slots=True)
class Closure:
    """A closure of facts under paths.

    Attributes:
        pattern: the facts, with constants, `Column(0)` at the position where a step
            begins and `Column(1)` where it ends; each of the two occurs once.
        edges: for the linear kinds, the facts that steps go along, likewise.
        loops: for the transitive kind, the columns (0, 1) whose constants also get a
            fact that leads from them to themselves.
    """

    kind: ClosureKind
    pattern: Pattern
    edges: Pattern | None = None
    loops: frozenset[int] = frozenset()

    @property
    def label(self) -> str:
        """What it is called in messages, beside rules."""
        return f"closure of {self.pattern.relation}"
