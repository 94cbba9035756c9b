"""Checks of JSON lines before they are parsed.

Arrow aborts the process on deeply nested values, and allocates a full-length column for
every name: many lines with different names would exhaust any memory.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import TYPE_CHECKING

from evermat.io.delimited import require_width
from evermat.runtime.input_limits import (
    ALWAYS_ALLOWED,
    NestingError,
    UnpackedSizeError,
    input_limits,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.io.files import DataFile

_SIGN = re.compile(rb'"(?:[^"\\]|\\.)*"?|([\[{])|([\]}])', re.DOTALL)
_NAME = re.compile(rb'("(?:[^"\\]|\\.)*")\s*(:?)', re.DOTALL)


def require_plain_json(file: DataFile, data: pa.Buffer) -> None:
    """Reject lines that are nested too deeply, or that have far too many columns.

    Raises:
        NestingError: they are nested too deeply.
        WidthError, UnpackedSizeError: they have too many columns.
    """
    text = data.to_pybytes()
    limit = input_limits().nesting
    if not _is_flat(text) and _depth(text) > limit:
        raise NestingError(f"`{file.path.name}` is nested too deeply", "nesting")
    if not _has_same_names(text):
        _require_names(file, text)


def _is_flat(text: bytes) -> bool:
    """Return whether every object certainly ends in its line, without nesting."""
    return (
        b"[" not in text
        and text.startswith(b"{")
        and text.count(b"{") == text.count(b"}\n{") + 1
    )


def _lines(text: bytes) -> int:
    return text.count(b"\n") + (not text.endswith(b"\n"))


def _depth(text: bytes) -> int:
    """Return the nesting depth of values."""
    signs = _SIGN.finditer(text)
    steps = (1 if each[1] else -1 for each in signs if each[1] or each[2])
    return max(accumulate(steps), default=0)


def _has_same_names(text: bytes) -> bool:
    """Return whether all lines certainly have exactly the names of the first one."""
    try:
        first = json.loads(text.partition(b"\n")[0])
        if not isinstance(first, dict) or not 0 < len(first) <= _FEW:
            return False
        # Unpaired surrogates, which `json` accepts, cannot be encoded.
        names = [json.dumps(name, ensure_ascii=False).encode() + b":" for name in first]
    except (ValueError, RecursionError):
        return False
    count = _lines(text)
    return text.count(b'":') == count * len(names) and all(
        text.count(name) == count for name in names
    )


_FEW = 64
"""Number of names that are searched for in the text one by one."""


def _require_names(file: DataFile, text: bytes) -> None:
    names: set[bytes] = set()
    count = 0
    for found in _NAME.finditer(text):
        if found[2]:
            count += 1
            names.add(found[1])
    require_width(file, len(names))
    cells = len(names) * _lines(text)
    if cells > max(ALWAYS_ALLOWED, count * input_limits().unpacked_ratio):
        message = f"the lines of `{file.path.name}` have {len(names):,} different names"
        raise UnpackedSizeError(message, "unpacked_ratio")
