"""Places in files, for errors that point at them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evermat.errors import EvermatError, Label, Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SHOWN_CHARACTERS = 400


class MalformedFileError(EvermatError, ValueError):
    """A file that violates its format at a known place."""

    code = "EM714"


class NotUnicodeError(EvermatError, ValueError):
    """A text file that is not in UTF-8."""

    code = "EM715"


def label_at(
    path: Path, line: int, column: int, *, text: str, length: int = 1, remark: str = ""
) -> Label:
    """Return a label for a place in a file of which only one line is available."""
    # Empty lines before it produce the right line number.
    source = Source(str(path), "\n" * (line - 1) + text[:_SHOWN_CHARACTERS])
    start = line - 1 + min(column, _SHOWN_CHARACTERS) - 1
    return Label(Span(source, start, start + max(1, length)), remark)


def label_between(
    path: Path, contents: str, start: int, end: int, remark: str = ""
) -> Label:
    """Return a label for a span of a file whose text is available."""
    line = contents.count("\n", 0, start) + 1
    begin = contents.rfind("\n", 0, start) + 1
    stop = contents.find("\n", start)
    text = contents[begin:] if stop < 0 else contents[begin:stop]
    return label_at(
        path, line, start - begin + 1, text=text, length=end - start, remark=remark
    )


def decoded(path: Path, data: bytes) -> str:
    """Decode a file in UTF-8, without byte order mark.

    Raises:
        NotUnicodeError: with the line and column of the first wrong byte.
    """
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        raise NotUnicodeError(
            f"`{path.name}` is in UTF-16", help="convert it to UTF-8 first"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = data.rfind(b"\n", 0, error.start) + 1
        line = data.count(b"\n", 0, error.start) + 1
        before = data[start : error.start].decode("utf-8", "replace")
        stop = data.find(b"\n", error.start)
        rest = data[error.start : None if stop < 0 else stop]
        label = label_at(
            path,
            line,
            len(before) + 1,
            text=before + rest.decode("utf-8", "replace"),
            remark=f"byte 0x{data[error.start]:02x}",
        )
        raise NotUnicodeError(
            f"`{path.name}` is not in UTF-8",
            labels=(label,),
            help="convert it to UTF-8 first",
        ) from None


def records(
    text: str, delimiter: str, *, quoting: bool
) -> Iterator[list[tuple[int, int]]]:
    """Yield the records of a delimited text, each as the spans of its fields.

    Empty lines are skipped, as by the fast reader.
    """
    ends = rf"[^{re.escape(delimiter)}\r\n]*"
    field = re.compile(rf'"(?:[^"]|"")*(?:"{ends}|\Z)|{ends}' if quoting else ends)
    position = 0
    fields: list[tuple[int, int]] = []
    while position < len(text):
        match = field.match(text, position)
        assert match is not None  # noqa: S101  an empty field always matches
        fields.append(match.span())
        position = match.end()
        if text.startswith(delimiter, position):
            position += len(delimiter)
            if position == len(text):
                fields.append((position, position))
            continue
        position += 2 if text.startswith("\r\n", position) else 1
        if len(fields) > 1 or fields[0][0] != fields[0][1]:
            yield fields
        fields = []
    if fields:
        yield fields
