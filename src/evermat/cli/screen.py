"""Tables on a terminal, of whatever width: nothing is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

_READABLE = 12
"""A column that is narrower is hard to read, if its texts are longer than that."""

_SPACE = 3
"""What a column takes besides its text."""


def draw_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: AbstractSet[int]
) -> None:
    """Draw a table; long texts are folded.

    Where the screen is too narrow for that, each row is a list of names and values.

    Args:
        columns: the names of the columns.
        rows: their texts.
        numeric: the columns that are set to the right, and never folded.
    """
    console = Console()
    if _least_width(columns, rows, numeric) > console.width:
        _draw_lists(console, columns, rows)
        return
    table = Table(box=SIMPLE_HEAD)
    for at, name in enumerate(columns):
        is_number = at in numeric
        table.add_column(
            Text(name),
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _least_width(
    columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: AbstractSet[int]
) -> int:
    """How wide a screen must be for a table that can be read."""
    width = 1
    for at, name in enumerate(columns):
        longest = max(cell_len(text) for text in (name, *(row[at] for row in rows)))
        width += _SPACE + (longest if at in numeric else min(longest, _READABLE))
    return width


def _draw_lists(
    console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    for row in rows:
        for name, text in zip(columns, row, strict=True):
            line = Text.assemble((name, "bold"), f": {text}")
            console.print(line, soft_wrap=True)  # so that it can be copied
        console.print()
