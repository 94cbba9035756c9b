"""Views as bits and set operations, and the statuses they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.engines.embedded.arrays import Flags, Mask, Status

Code = int | tuple[str, "Code", "Code"]
"""A view in one relation: a status bit, or a set operation on two codes."""

STATUSES = np.arange(1 << 16, dtype=np.uint16)
"""All there can be."""


def mark_visible(codes: Mapping[int, Code]) -> Flags:
    """For every possible status the numbers of the views that have rows with it.

    Args:
        codes: views by number, which is one bit.
    """
    # Bits above all those that are mentioned do not matter: what is seen recurs.
    statuses = STATUSES[: 1 << max(map(_width, codes.values()))]
    seen = np.zeros(statuses.size, np.uint8)
    for number, code in codes.items():
        seen |= _evaluate(code, statuses) * np.uint8(number)
    return np.tile(seen, STATUSES.size // statuses.size)


def _width(code: Code) -> int:
    """How many of the lowest bits of a status tell whether it is in a set."""
    if isinstance(code, int):
        return code.bit_length()
    return max(_width(code[1]), _width(code[2]))


def _evaluate(code: Code, statuses: Status) -> Mask:
    """Which statuses are in the set that a code describes."""
    if isinstance(code, int):
        return (statuses & code).astype(np.bool_)
    word, left, right = code
    a, b = _evaluate(left, statuses), _evaluate(right, statuses)
    if word == "|":
        return a | b
    return a & b if word == "&" else a & ~b
