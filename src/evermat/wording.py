"""Numbers with nouns and close names, for messages."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 fact`, `2,000 facts`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


# -------------------------------------------------------------------------- close names


def did_you_mean(
    name: str, known: Iterable[str], *, before: str = "", after: str = ""
) -> str | None:
    """A query that names the closest known name, if one is close.

    Args:
        name: what was written.
        known: what could have been meant.
        before: shown in front of the name, such as the sign of a directive.
        after: shown behind the name, such as the colon of a prefix.
    """
    candidates = [other for other in known if other != name]
    matches = get_close_matches(name, candidates, n=1, cutoff=0.7)
    return f"did you mean `{before}{matches[0]}{after}`?" if matches else None
