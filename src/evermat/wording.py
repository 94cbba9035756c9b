"""Words in messages."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 fact`, `2,000 facts`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
