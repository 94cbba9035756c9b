"""Three ways to show things: tables on a terminal, plain lines in a pipe, JSON.

Results go to standard output; progress and errors go to standard error, so that a pipe
carries nothing but results.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from evermat.columns import (
    as_terms,
    constants,
    kinds_in,
    shown_texts,
    term_texts,
    values,
)
from evermat.io.lines import ROWS_AT_ONCE, text_block
from evermat.values import Kind, term_text
from evermat.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from evermat.results.result import Result
    from evermat.values import Constant

Cell = str | int | float
T = TypeVar("T")

_ROWS_ON_SCREEN = 100


@dataclass
class Output:
    """Shows what a command has to say, in the form that fits.

    Attributes:
        is_json: one JSON document at the end, and nothing before it.
        document: what that document will hold.
        has_terms: show values as terms, in quotes where they are strings.
    """

    is_json: bool = False
    has_terms: bool = False
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
            _draw(columns, list(rows))
        elif not self.is_json:
            lines = [columns, *([_plain(cell) for cell in row] for row in rows)]
            print("\n".join("\t".join(line) for line in lines), flush=True)  # noqa: T201

    def result(self, result: Result, limit: int | None) -> None:
        """The rows of a result, at most `limit`; on a terminal never very many."""
        if self.is_json:
            self.document["columns"] = list(result.columns)
            self.document["rows"] = json_rows(result, limit)
            self.document["count"] = len(result)
        elif not result.columns:
            self.say("yes" if len(result) else "no")
        elif self.is_terminal:
            shown = min(_ROWS_ON_SCREEN if limit is None else limit, len(result))
            rows: list[tuple[str, ...]] = _rows(result, shown, self._listed_texts)
            self.table(result.columns, rows)
            rest = "" if shown == len(result) else f", {shown:,} of them shown"
            self.say(counted(len(result), "row") + rest)
        else:
            _print_rows(result, limit, self._texts)

    @property
    def _texts(self) -> Callable[[pa.ChunkedArray], pa.Array]:
        """What shows the values of a column."""
        return term_texts if self.has_terms else shown_texts

    def _listed_texts(self, column: pa.ChunkedArray) -> list[str]:
        texts: list[str] = self._texts(column).to_pylist()
        return texts

    def finish(self) -> None:
        """Print the document, if JSON was asked for."""
        if self.is_json:
            # Without indentation it is written, and read, many times faster.
            indent = 2 if sys.stdout.isatty() else None
            print(json.dumps(self.document, indent=indent, ensure_ascii=False))  # noqa: T201


def json_rows(result: Result, limit: int | None = None) -> list[tuple[object, ...]]:
    """The first rows of a result as JSON values; terms of RDF in term syntax."""
    return _rows(result, limit, _json_values)


def _rows(
    result: Result, limit: int | None, convert: Callable[[pa.ChunkedArray], list[T]]
) -> list[tuple[T, ...]]:
    table = result.first(limit).to_terms()
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*map(convert, table.columns), strict=True))


def seconds(value: float) -> str:
    """A time as people say it."""
    if value < 0.0995:  # noqa: PLR2004  below a tenth of a second
        return f"{value * 1000:.1f} ms"
    return f"{value:.2f} s"


def sizes(changed: Mapping[str, tuple[int, int]]) -> list[list[Cell]]:
    """The rows of a table of changes: predicate, came, left."""
    return [[name, came, left] for name, (came, left) in changed.items()]


def _print_rows(
    result: Result, limit: int | None, texts: Callable[[pa.ChunkedArray], pa.Array]
) -> None:
    print("\t".join(result.columns))  # noqa: T201
    table = result.first(limit).to_terms()
    for start in range(0, table.num_rows, ROWS_AT_ONCE):
        columns = table.slice(start, ROWS_AT_ONCE).columns
        lines = text_block([*map(texts, columns)], between="\t", end="\n")
        print(lines.to_pybytes().decode(), end="")  # noqa: T201


def _plain(value: Cell) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def _json_values(column: pa.ChunkedArray) -> list[object]:
    if kinds_in(as_terms(column)) <= {Kind.STRING, Kind.INTEGER, Kind.BOOLEAN}:
        return list(values(column))
    return [_json_value(value) for value in constants(column)]


def _json_value(value: Constant) -> object:
    python = value.value
    if isinstance(python, str | int | bool):
        return python
    if isinstance(python, float) and abs(python) < float("inf"):
        return python
    return term_text(value.kind, value.text)


def _draw(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    from evermat.cli.screen import draw_table

    numeric = {
        at
        for at in range(len(columns))
        if rows and all(isinstance(row[at], int | float) for row in rows)
    }
    draw_table(columns, [[_pretty(cell) for cell in row] for row in rows], numeric)


def _pretty(value: Cell) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return seconds(value) if isinstance(value, float) else value
