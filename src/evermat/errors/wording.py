"""Wording of messages: numbers with nouns, and suggestions of similar names."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 fact`, `2,000 facts`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


# -------------------------------------------------------------------------- close names


def did_you_mean(
    name: str, known: Iterable[str], *, before: str = "", after: str = ""
) -> str | None:
    """Return a question that suggests the closest known name, if one is close.

    Args:
        name: the name as written.
        known: the names to suggest.
        before: shown before the name, such as the sign of a directive.
        after: shown after the name, such as the colon of a prefix.
    """
    candidates = [other for other in known if other != name]
    matches = get_close_matches(name, candidates, n=1, cutoff=0.7)
    return f"did you mean `{before}{matches[0]}{after}`?" if matches else None
