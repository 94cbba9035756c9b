"""Tables of measurements: on a terminal, in a pipe, as Markdown, as JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PACKAGES = ("evermat", "numpy", "numba", "pyarrow", "clingo", "duckdb")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of strings; the first column names the row, the others are figures."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


# ------------------------------------------------------------------------ figures


def seconds_text(seconds: float | None) -> str:
    """Format a time with two or three significant digits."""
    if seconds is None:
        return "–"
    if seconds < 0.1:  # noqa: PLR2004  below this, milliseconds read better
        return f"{seconds * 1000:.2f} ms"
    if seconds < 10:  # noqa: PLR2004  above this, hundredths are noise
        return f"{seconds:.2f} s"
    return f"{seconds:.1f} s"


def count_text(count: float | None) -> str:
    """Format a number of facts: 980, 22.4 k, 1.35 M."""
    if count is None:
        return "–"
    for unit, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if count >= unit:
            return f"{count / unit:.3g}{letter}"
    return f"{count:.0f}"


_FEW = 10
"""Fewer megabytes are shown with a decimal place."""


def megabytes_text(megabytes: float | None) -> str:
    """Format a size of memory."""
    if megabytes is None:
        return "–"
    return f"{megabytes:.2g} MB" if megabytes < _FEW else f"{megabytes:,.0f} MB"


def ratio_text(part: float | None, unit: float | None) -> str:
    """Format a number as a multiple of a unit."""
    if part is None or not unit:
        return "–"
    ratio = part / unit
    return f"{ratio:.2f}×" if ratio < 10 else f"{ratio:,.0f}×"  # noqa: PLR2004


def verdict(value: float | None, limit: float | None) -> str:
    """Return whether a figure is within its limit, as a word."""
    if value is None or limit is None:
        return "–"
    return "yes" if value <= limit else "no"


# ------------------------------------------------------------------------- output


def show(table: Table, stream: TextIO | None = None) -> None:
    """Print a table: drawn on a terminal, in plain columns otherwise."""
    stream = sys.stdout if stream is None else stream
    if stream.isatty():
        _show_drawn(table, stream)
    else:
        stream.write(plain(table) + "\n")


def _show_drawn(table: Table, stream: TextIO) -> None:
    from rich.console import Console  # noqa: PLC0415  only terminals need it
    from rich.table import Table as DrawnTable  # noqa: PLC0415

    drawn = DrawnTable(title=table.title, title_justify="left")
    for number, name in enumerate(table.header):
        drawn.add_column(name, justify="right" if number else "left")
    for row in table.rows:
        drawn.add_row(*row)
    console = Console(file=stream)
    console.print(drawn)
    for note in table.notes:
        console.print(note, style="dim")


def plain(table: Table) -> str:
    """Format a table as columns separated by blanks."""
    grid = [table.header, *table.rows]
    widths = [max(len(row[place]) for row in grid) for place in range(len(grid[0]))]
    lines = [table.title, ""]
    for row in grid:
        first, *others = row
        cells = [first.ljust(widths[0])]
        cells += [
            cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([*lines, *table.notes, ""])


def markdown(table: Table) -> str:
    """Format a table for a document."""
    lines = [f"### {table.title}", "", _markdown_row(table.header)]
    lines.append(_markdown_row(("---", *["---:"] * (len(table.header) - 1))))
    lines += [_markdown_row(row) for row in table.rows]
    for note in table.notes:
        lines += ["", note]
    return "\n".join([*lines, ""])


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Write measurements as JSON."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def rewrite(path: Path, suite: str, text: str) -> None:
    """Replace the section of a document that belongs to a suite.

    The section lies between two comments, `<!-- bench NAME -->` and `<!-- end of bench
    NAME -->`, which stay.
    """
    begin, end = f"<!-- bench {suite} -->", f"<!-- end of bench {suite} -->"
    document = path.read_text(encoding="utf-8")
    head, found, rest = document.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        message = f"{path} has no part between `{begin}` and `{end}`"
        raise ValueError(message)
    path.write_text(f"{head}{begin}\n\n{text}\n{end}{tail}", encoding="utf-8")


# ------------------------------------------------------------------------ machine


def machine() -> dict[str, object]:
    """Return a description of the machine and the versions of packages."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gigabytes": _memory_gigabytes(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
    }


def machine_text() -> str:
    """Describe the machine in one sentence."""
    facts = machine()
    packages = ", ".join(
        f"{name} {_version(name)}" for name in _PACKAGES if _version(name)
    )
    return (
        f"Measured on {facts['processor']}, {facts['cores']} cores, "
        f"{facts['memory_gigabytes']} GB, {facts['system']}, "
        f"Python {facts['python']}; {packages}."
    )


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "an unnamed processor"


def _memory_gigabytes() -> int | None:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    return round(size / 1e9)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
