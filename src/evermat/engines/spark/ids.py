"""Constants as 64-bit ids that can be computed anywhere, without communication.

An integer between -2**62 and 2**62 is its own id, so that Spark adds and compares ids.
Every other constant has an id of at least 2**62, taken from a digest of its kind and
its text. Driver, Python workers and Spark's SQL functions compute the same id, so
encoding needs neither a join nor a lock. The dictionary detects and rejects two
constants with the same digest.
"""

from __future__ import annotations

from hashlib import md5
from typing import TYPE_CHECKING

from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

FIRST_DIGEST = 1 << 62
"""The smallest id that is not an integer itself."""
SMALLEST = -(1 << 62)
"""The smallest integer that is its own id."""

_MASK = FIRST_DIGEST - 1
_DIGITS = len(str(SMALLEST))
"""Largest length of the text of a small integer, including the sign."""


def is_small(number: int) -> bool:
    """Return whether an integer is its own id."""
    return SMALLEST <= number < FIRST_DIGEST


def id_of(kind: int, text: str) -> int:
    """Return the id of a constant."""
    if kind == Kind.INTEGER and len(text) <= _DIGITS:
        number = int(text)
        if is_small(number):
            return number
    # Spark: conv(substr(md5(concat(char(kind), text)), 1, 16), 16, -10), then masked.
    digest = md5(f"{chr(kind)}{text}".encode(), usedforsecurity=False).digest()
    return (int.from_bytes(digest[:8]) & _MASK) | FIRST_DIGEST


def constant_id(constant: Constant) -> int:
    """Return the id of a constant."""
    return id_of(constant.kind, constant.text)


def ids_of(kinds: Sequence[int], texts: Sequence[str]) -> list[int]:
    """Return the ids of many constants."""
    return list(map(id_of, kinds, texts))


def small_constant(id_: int) -> Constant:
    """Return the constant of an id below `FIRST_DIGEST`."""
    return Constant(Kind.INTEGER, str(id_))
