"""Columns of texts as lines, without a Python object per line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS_AT_ONCE = 1 << 16
"""How many rows to write at once; more would only need more memory."""


def text_block(columns: Sequence[pa.Array], *, between: str, end: str) -> pa.Buffer:
    """The rows of columns of texts: `between` between texts and `end` after rows."""
    lines = pc.binary_join_element_wise(*columns, between)
    lines = pc.binary_join_element_wise(lines, end, "")
    # The texts of an Arrow column lie behind each other in one buffer.
    _, offsets, data = lines.buffers()
    if data is None:
        return pa.py_buffer(b"")
    ends = pa.Array.from_buffers(
        pa.int32(), len(lines) + 1, [None, offsets], offset=lines.offset
    )
    first, last = ends[0].as_py(), ends[-1].as_py()
    return data.slice(first, last - first)
