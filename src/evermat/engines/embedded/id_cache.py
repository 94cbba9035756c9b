"""The ids of long sequences of constants, so that they are looked up once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evermat.values import Constant

Ids = TypeVar("Ids")

FEW_CONSTANTS = 64
"""So many are looked up each time, such as those of a question."""

MOST_SEQUENCES = 8
"""How many sequences are remembered: the constants of all rules, for instance."""


class RememberedIds(Generic[Ids]):
    """Knows sequences by what they are, not by what is in them.

    Args:
        encode: looks ids up.
    """

    def __init__(self, encode: Callable[[Sequence[Constant]], Ids]) -> None:
        self._encode = encode
        self._known: dict[int, tuple[Sequence[Constant], Ids]] = {}

    def of(self, constants: Sequence[Constant]) -> Ids:
        """The ids of constants, in order."""
        known = self._known.get(id(constants))
        if known is not None:
            return known[1]
        ids = self._encode(constants)
        if len(constants) > FEW_CONSTANTS:
            if len(self._known) >= MOST_SEQUENCES:
                self._known.clear()
            # The sequence is kept, so that nothing else can have its address.
            self._known[id(constants)] = (constants, ids)
        return ids
