"""Where the entries of a TOML text stand, for errors that point at them.

The parser of the standard library forgets places. This finds them again by reading
lines: headers of tables, and the keys below them. An entry in an inline table that
goes over several lines is found at the key of that table.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evermat.errors import Label, Source, Span

if TYPE_CHECKING:
    import tomllib
    from collections.abc import Iterator

Step = str | int
Route = tuple[Step, ...]

_HEADER = re.compile(r"^\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*((?:"[^"]*"|'[^']*'|[\w\-]+)(?:\s*\.\s*[\w\-]+)*)\s*=""")
_PART = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w\-]+)\s*""")


class Places:
    """The places of the entries of a TOML text."""

    def __init__(self, name: str, text: str) -> None:
        self._source = Source(name, text)
        self._known: dict[Route, tuple[int, int]] = {}
        for route, start, end in _entries(text):
            self._known.setdefault(route, (start, end))

    def label(self, route: Route, remark: str = "") -> Label:
        """A label for an entry, or for the nearest thing around it that has a place."""
        for length in range(len(route), 0, -1):
            place = self._known.get(route[:length])
            if place is not None:
                start, end = self._narrowed(place, route[length:])
                return Label(Span(self._source, start, end), remark)
        return Label(Span(self._source, 0, 1), remark)

    def _narrowed(self, place: tuple[int, int], rest: Route) -> tuple[int, int]:
        """The name of an entry of an inline table, if it is on the same line."""
        text = self._source.text
        stop = text.find("\n", place[1])
        line_end = len(text) if stop < 0 else stop
        for step in reversed(rest):
            found = re.compile(rf"(?<![\w\-]){re.escape(str(step))}(?![\w\-])").search(
                text, place[1], line_end
            )
            if found is not None and isinstance(step, str):
                return found.span()
        return place


def toml_error(name: str, text: str, error: tomllib.TOMLDecodeError) -> Label | None:
    """The place that the parser speaks of."""
    found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
    if found is None:
        return None
    lines = text.split("\n")
    line, column = int(found[1]), int(found[2])
    start = sum(len(each) + 1 for each in lines[: line - 1]) + column - 1
    return Label(Span(Source(name, text), start, start + 1))


def _entries(text: str) -> Iterator[tuple[Route, int, int]]:
    counts: dict[Route, int] = {}
    table: Route = ()
    offset = 0
    for line in text.split("\n"):
        header = _HEADER.match(line)
        key = _KEY.match(line)
        if header and not key:
            is_list = header[1] == "[["
            table = _opened(_parts(header[2]), counts, is_list=is_list)
            yield table, offset + header.start(1), offset + len(line.rstrip())
            if is_list:
                yield table[:-1], offset + header.start(1), offset + len(line.rstrip())
        elif key:
            route = (*table, *_parts(key[1]))
            yield route, offset + key.start(1), offset + key.end(1)
        offset += len(line) + 1


def _parts(text: str) -> list[str]:
    return [part[1].strip("\"'") for part in _PART.finditer(text)]


def _opened(parts: list[str], counts: dict[Route, int], *, is_list: bool) -> Route:
    """The route of a header; `[[a]]` begins the next element, `[a.b]` is in it."""
    route: Route = ()
    for at, part in enumerate(parts):
        route = (*route, part)
        is_last = at == len(parts) - 1
        if is_last and is_list:
            counts[route] = counts.get(route, -1) + 1
        if route in counts:
            route = (*route, counts[route])
    return route
