"""Writes columns of strings as lines, without a Python object per line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS_AT_ONCE = 1 << 16
"""Rows to write at once; more would only take more memory."""


def text_block(columns: Sequence[pa.Array], *, between: str, end: str) -> pa.Buffer:
    """Join columns of strings to lines, with `between` columns and `end` after rows."""
    lines = pc.binary_join_element_wise(*columns, between)
    lines = pc.binary_join_element_wise(lines, end, "")
    # The strings of an Arrow column are contiguous in one buffer.
    _, offsets, data = lines.buffers()
    if data is None:
        return pa.py_buffer(b"")
    ends = pa.Array.from_buffers(
        pa.int32(), len(lines) + 1, [None, offsets], offset=lines.offset
    )
    first, last = ends[0].as_py(), ends[-1].as_py()
    return data.slice(first, last - first)
