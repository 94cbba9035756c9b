"""Tables for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def html_table(
    title: str, names: Sequence[str], rows: Iterable[Sequence[object]], rest: str = ""
) -> str:
    """A table under a title; `rest` tells what it does not show."""
    lines = [f"<p>{escape(title)}</p>", "<table>"]
    lines += [_row("th", names)] * bool(names)
    lines += [_row("td", row) for row in rows]
    lines += ["</table>", *[f"<p>{escape(rest)}</p>"] * bool(rest)]
    return "\n".join(lines)


def _row(tag: str, cells: Sequence[object]) -> str:
    inner = "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"
