"""Output in three forms: tables on a terminal, plain lines in a pipe, JSON.

Results go to standard output; progress and errors go to standard error, so that a pipe
contains only results. Tables are as wide as necessary: nothing is left out.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

import pyarrow.compute as pc
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evermat.columns import (
    as_terms,
    constants,
    kinds_in,
    shown_texts,
    term_texts,
    values,
)
from evermat.errors import EvermatError, ProgramError
from evermat.errors.wording import counted
from evermat.io.lines import ROWS_AT_ONCE, text_block
from evermat.values import Kind, term_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    import pyarrow as pa
    from rich.status import Status

    from evermat.lang.printer import Printer
    from evermat.maintenance.limits import Step
    from evermat.results.result import Result
    from evermat.values import Constant


Cell = str | int | float
T = TypeVar("T")

_ROWS_ON_SCREEN = 100


@dataclass
class Output:
    """Prints the output of a command, in the appropriate form.

    Attributes:
        is_json: whether to print one JSON document at the end, and nothing before it.
        document: the contents of that document.
        has_terms: whether values are shown as terms, with strings in quotes.
    """

    is_json: bool = False
    has_terms: bool = False
    document: dict[str, object] = field(default_factory=dict)

    @property
    def is_terminal(self) -> bool:
        """Whether output goes to a terminal."""
        return not self.is_json and sys.stdout.isatty()

    def say(self, line: str) -> None:
        """Print a line of text, except as JSON."""
        if not self.is_json:
            print(line, flush=True)  # noqa: T201  this is where we print

    def heading(self, text: str) -> None:
        """Print a heading, except as JSON."""
        if self.is_terminal:
            from rich.console import Console
            from rich.text import Text

            Console().print(Text(f"\n{text}", style="bold"))
        else:
            self.say(text)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        """Print a table, except as JSON; numbers are right-aligned."""
        if self.is_terminal:
            _draw(columns, list(rows))
        elif not self.is_json:
            lines = [columns, *([_plain(cell) for cell in row] for row in rows)]
            print("\n".join("\t".join(line) for line in lines), flush=True)  # noqa: T201

    def result(self, result: Result, limit: int | None) -> None:
        """Print the rows of a result, at most `limit`; never many on a terminal."""
        if self.is_json:
            self.document["columns"] = list(result.columns)
            self.document["rows"] = json_rows(result, limit)
            self.document["count"] = len(result)
        elif not result.columns:
            self.say("yes" if len(result) else "no")
        elif self.is_terminal:
            shown = min(_ROWS_ON_SCREEN if limit is None else limit, len(result))
            printer = result.printer
            rows: list[tuple[str, ...]] = _rows(
                result, shown, lambda column: self._listed_texts(column, printer)
            )
            self.table(result.columns, rows)
            rest = "" if shown == len(result) else f", {shown:,} of them shown"
            self.say(counted(len(result), "row") + rest)
        else:
            _print_rows(result, limit, self._texts)

    @property
    def _texts(self) -> Callable[[pa.ChunkedArray], pa.Array]:
        """Return the function that formats the values of a column."""
        return term_texts if self.has_terms else shown_texts

    def _listed_texts(self, column: pa.ChunkedArray, printer: Printer) -> list[str]:
        """Return the values for a terminal: IRIs with prefixes, nothing for nulls."""
        texts: list[str | None] = self._texts(column).to_pylist()
        found: Iterable[Constant | None] = constants(column)
        return [
            printer.shortened(each.text) or text or ""
            if each is not None and each.kind is Kind.IRI
            else text or ""
            for each, text in zip(found, texts, strict=True)
        ]

    def finish(self) -> None:
        """Print the document, if JSON was requested."""
        if self.is_json:
            # Without indentation, writing and reading it is many times faster.
            indent = 2 if sys.stdout.isatty() else None
            print(json.dumps(self.document, indent=indent, ensure_ascii=False))  # noqa: T201


def json_rows(result: Result, limit: int | None = None) -> list[tuple[object, ...]]:
    """Return the first rows of a result as JSON values; RDF terms in term syntax."""
    return _rows(result, limit, _json_values)


def _rows(
    result: Result, limit: int | None, convert: Callable[[pa.ChunkedArray], list[T]]
) -> list[tuple[T, ...]]:
    table = result.first(limit).to_terms()
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*map(convert, table.columns), strict=True))


def seconds(value: float) -> str:
    """Format a time."""
    if value < 0.0995:  # noqa: PLR2004  below a tenth of a second
        return f"{value * 1000:.1f} ms"
    return f"{value:.2f} s"


def sizes(changed: Mapping[str, tuple[int, int]]) -> list[list[Cell]]:
    """Return the rows of a table of changes: predicate, added, removed."""
    return [[name, added, removed] for name, (added, removed) in changed.items()]


def _print_rows(
    result: Result, limit: int | None, texts: Callable[[pa.ChunkedArray], pa.Array]
) -> None:
    print("\t".join(result.columns))  # noqa: T201
    table = result.first(limit).to_terms()
    for start in range(0, table.num_rows, ROWS_AT_ONCE):
        columns = table.slice(start, ROWS_AT_ONCE).columns
        shown = [pc.fill_null(texts(column), "") for column in columns]
        lines = text_block(shown, between="\t", end="\n")
        print(lines.to_pybytes().decode(), end="")  # noqa: T201


def _plain(value: Cell) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def _json_values(column: pa.ChunkedArray) -> list[object]:
    if column.null_count:  # only results of SPARQL have nulls
        given: Iterable[Constant | None] = constants(column)
        return [None if each is None else _json_value(each) for each in given]
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
    from evermat.cli.output import draw_table

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


# ------------------------------------------------------------------------------- screen


_READABLE = 12
"""A narrower column is hard to read, if its values are longer than that."""

_SPACE = 3
"""Width of a column besides its text."""


def draw_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: AbstractSet[int]
) -> None:
    """Draw a table; long values are folded.

    If the screen is too narrow for that, each row becomes a list of names and values.

    Args:
        columns: the names of the columns.
        rows: their values.
        numeric: the columns that are right-aligned, and never folded.
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
    """Return the width of the narrowest readable table."""
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


# ----------------------------------------------------------------------------- problems


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether a command line requests a JSON document."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def problem_document(problem: EvermatError) -> dict[str, object]:
    """Return a description of a problem, its place, and advice."""
    span = problem.span
    return {
        "code": problem.code,
        "message": problem.message,
        "file": None if span is None else span.source.name,
        "line": None if span is None else span.line,
        "column": None if span is None else span.column,
        "reason": problem.reason,
        "help": problem.help,
    }


def print_error(error: BaseException, message: str, exit_code: int) -> None:
    """Print the document of a command that failed.

    Args:
        error: the error; some are not Evermat's own, and have no code.
        message: a one-line description.
        exit_code: the exit code of the command.
    """
    document: dict[str, object] = {"code": None, "message": message}
    if isinstance(error, EvermatError):
        document = problem_document(error)
    if isinstance(error, ProgramError):
        document["problems"] = [problem_document(each) for each in error.problems]
    notes = [note.removeprefix(" = ") for note in getattr(error, "__notes__", ())]
    if notes:
        document["notes"] = notes
    document["exit_code"] = exit_code
    indent = 2 if sys.stdout.isatty() else None
    print(json.dumps({"error": document}, indent=indent, ensure_ascii=False))  # noqa: T201


# ----------------------------------------------------------------------------- progress


_INTERVAL = 0.1
"""Seconds between two redraws; rounds can be much shorter."""


class ProgressLine:
    """A progress callback, called after each round; visible only on a terminal."""

    def __init__(self) -> None:
        self._status: Status | None = None
        self._task = ""
        self._next = 0.0

    def __call__(self, step: Step) -> None:
        """Show the progress of the run."""
        now = perf_counter()
        if self._status is None or now < self._next:
            return
        self._next = now + _INTERVAL
        self._status.update(
            f"{self._task}: stratum {step.stratum}, {step.phase} round {step.round}, "
            f"{step.total_facts:,} new facts"
        )

    @contextmanager
    def during(self, task: str) -> Iterator[None]:
        """Show the line during a task."""
        if not sys.stderr.isatty():
            yield
            return
        from rich.console import Console

        self._task = task
        with Console(stderr=True).status(task) as status:
            self._status = status
            try:
                yield
            finally:
                self._status = None
