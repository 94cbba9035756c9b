"""Three ways to show things: tables on a terminal, plain lines in a pipe, JSON.

Results go to standard output; progress and errors go to standard error, so that a pipe
carries nothing but results.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evermat.values import term_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evermat.result import Result
    from evermat.values import Constant

Cell = str | int | float


@dataclass
class Output:
    """Shows what a command has to say, in the form that fits.

    Attributes:
        is_json: one JSON document at the end, and nothing before it.
        document: what that document will hold.
    """

    is_json: bool = False
    document: dict[str, object] = field(default_factory=dict)

    @property
    def is_terminal(self) -> bool:
        """Whether somebody is looking at a screen."""
        return not self.is_json and sys.stdout.isatty()

    def say(self, line: str) -> None:
        """A line of text, left out of JSON."""
        if not self.is_json:
            print(line, flush=True)  # noqa: T201  this is where we print

    def heading(self, text: str) -> None:
        """A line that stands above others, left out of JSON."""
        if self.is_terminal:
            from rich.console import Console
            from rich.text import Text

            Console().print(Text(f"\n{text}", style="bold"))
        else:
            self.say(text)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        """A table, left out of JSON; numbers are set to the right."""
        if self.is_terminal:
            _rich_table(columns, list(rows))
        elif not self.is_json:
            lines = [columns, *([_plain(cell) for cell in row] for row in rows)]
            print("\n".join("\t".join(line) for line in lines), flush=True)  # noqa: T201

    def finish(self) -> None:
        """Print the document, if JSON was asked for."""
        if self.is_json:
            print(json.dumps(self.document, indent=2, ensure_ascii=False))  # noqa: T201


def cell(value: Constant) -> str:
    """A constant for people: strings without quotes, everything else as written."""
    text = term_text(value.kind, value.text)
    return value.text if text.startswith('"') and text.endswith('"') else text


def rows_of(result: Result, limit: int | None = None) -> list[list[Cell]]:
    """The first rows of a result, for a table."""
    rows: list[list[Cell]] = []
    for row in result.constants():
        if limit is not None and len(rows) >= limit:
            break
        rows.append([cell(value) for value in row])
    return rows


def json_rows(result: Result, limit: int | None = None) -> list[list[object]]:
    """The first rows of a result as JSON values; terms of RDF in term syntax."""
    rows: list[list[object]] = []
    for row in result.constants():
        if limit is not None and len(rows) >= limit:
            break
        rows.append([_json_value(value) for value in row])
    return rows


def seconds(value: float) -> str:
    """A time as people say it."""
    if value < 0.0995:  # noqa: PLR2004  below a tenth of a second
        return f"{value * 1000:.1f} ms"
    return f"{value:.2f} s"


def count(number: int, noun: str) -> str:
    """A number with its noun: `1 fact`, `2,000 facts`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def sizes(changed: Mapping[str, tuple[int, int]]) -> list[list[Cell]]:
    """The rows of a table of changes: predicate, came, left."""
    return [[name, came, left] for name, (came, left) in changed.items()]


def _plain(value: Cell) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def _json_value(value: Constant) -> object:
    python = value.value
    if isinstance(python, str | int | bool):
        return python
    if isinstance(python, float) and abs(python) < float("inf"):
        return python
    return term_text(value.kind, value.text)


def _rich_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    for position, name in enumerate(columns):
        numeric = bool(rows) and all(
            isinstance(row[position], int | float) for row in rows
        )
        table.add_column(name, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(Text(_pretty(value)) for value in row))
    Console().print(table)


def _pretty(value: Cell) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return seconds(value) if isinstance(value, float) else value
