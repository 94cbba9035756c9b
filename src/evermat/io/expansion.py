"""Expanded sizes of tables, without dictionaries, run lengths and views.

A column may refer to one long string a million times, in a file or in memory. Derived
facts contain the string each time, so the expanded size is limited too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.io.parquet_pages import unpacked_pages
from evermat.runtime.input_limits import ALWAYS_WRITTEN, is_moderate, require_unpacked

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow.parquet as arrow_parquet

    from evermat.io.parquet_pages import Read


def require_moderate_table(table: pa.Table, name: str, size: int) -> None:
    """Reject a table that is far larger than the file it was read from.

    Args:
        table: the table, which `validate()` accepts. For invalid strings, no time has
            been spent yet on checking each of them.
        name: the name of the file in messages.
        size: the bytes of the file.

    Raises:
        UnpackedSizeError: the table is too large.
    """
    require_unpacked(name, size, table.num_rows * table.num_columns)
    chunks = (chunk for column in table.columns for chunk in column.chunks)
    require_unpacked(name, size, sum(map(written_out, chunks)), ALWAYS_WRITTEN)


def written_out(values: pa.Array) -> int:
    """Estimate the bytes of an array without dictionaries, run lengths and views.

    >>> written_out(pa.array(["long text"] * 1000).dictionary_encode())
    9000
    """
    if isinstance(values, pa.ExtensionArray):
        return written_out(values.storage)
    types = pa.types
    if types.is_dictionary(values.type):
        return _named(values.dictionary, values.indices)
    if types.is_run_end_encoded(values.type):
        return _repeated(values)
    if types.is_string_view(values.type) or types.is_binary_view(values.type):
        return pc.sum(_lengths(values)).as_py() or 0
    if types.is_struct(values.type):
        return sum(map(written_out, values.flatten()))
    return int(values.nbytes)


def _named(dictionary: pa.Array, indices: pa.Array) -> int:
    if not len(dictionary):
        return 0
    lengths = _lengths(dictionary)
    longest = pc.max(lengths).as_py() or 0
    if longest * len(indices) <= ALWAYS_WRITTEN:
        return int(longest) * len(indices)
    return pc.sum(lengths.take(indices)).as_py() or 0


def _repeated(values: pa.RunEndEncodedArray) -> int:
    first, last = values.find_physical_offset(), values.find_physical_length()
    ends = values.run_ends.slice(first, last).to_numpy().astype(np.int64)
    ends = np.minimum(ends - values.offset, len(values))
    times = np.diff(ends, prepend=0)
    lengths = _lengths(values.values.slice(first, last))
    return int(times @ lengths.fill_null(0).to_numpy())


def _lengths(values: pa.Array) -> pa.Array:
    """Return the bytes of each value, as 64-bit integers."""
    types = pa.types
    if types.is_string_view(values.type) or types.is_binary_view(values.type):
        # Arrow has no function for this. Views have 16 bytes and begin with a length.
        views = np.frombuffer(values.buffers()[1] or b"", np.int32).reshape(-1, 4)
        views = views[values.offset : values.offset + len(values), 0]
        return pa.array(views.astype(np.int64), mask=~_is_valid(values))
    if any(has_offsets(values.type) for has_offsets in _WITH_OFFSETS):
        return pc.binary_length(values).cast(pa.int64())
    each = values.nbytes // max(len(values), 1) + 1
    return pa.repeat(pa.scalar(each, pa.int64()), len(values))


_WITH_OFFSETS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
)


def _is_valid(values: pa.Array) -> np.ndarray:
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False))


def require_moderate_parquet(
    open_file: Callable[[list[str]], arrow_parquet.ParquetFile],
    file: arrow_parquet.ParquetFile,
    name: str,
    size: int,
) -> None:
    """Reject a Parquet file that unpacks to far more than its size suggests.

    Only dictionaries and first pages are decoded, unless a dictionary has a very long
    string that many rows may refer to.

    Args:
        open_file: opens the file again, with some columns read as dictionaries.
        file: the file; its footer has been read.
        name: the name of the file in messages.
        size: its bytes.

    Raises:
        UnpackedSizeError: it unpacks to too much.
    """
    # Never access the metadata of a column: if it is damaged, pyarrow aborts the
    # process there, but raises an error when reading the column.
    metadata = file.metadata
    columns = [metadata.schema.column(at) for at in range(metadata.num_columns)]
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    unpacked = sum(group.total_byte_size for group in groups)
    # Runs of one value take no space in a file, and at least a byte each in memory.
    row = sum(max(column.length, 1) for column in columns)
    require_unpacked(name, size, max(unpacked, metadata.num_rows * row))
    texts = [each.path for each in columns if each.physical_type == "BYTE_ARRAY"]
    suspicious = [
        number
        for number, group in enumerate(groups)
        if texts and group.num_rows * group.total_byte_size > ALWAYS_WRITTEN
    ]
    if not suspicious:
        return
    file = open_file(texts)
    most = sum(groups[at].num_rows * _longest(file, at, texts) for at in suspicious)
    if is_moderate(size, most, ALWAYS_WRITTEN):
        return
    total = 0
    for batch in file.iter_batches(1 << 16, row_groups=suspicious, columns=texts):
        total += sum(map(written_out, batch.columns))
        require_unpacked(name, size, total, ALWAYS_WRITTEN)


def require_moderate_pages(read: Read, name: str, size: int) -> None:
    """Reject a Parquet file whose pages unpack to more than its footer declares.

    Args:
        read: reads bytes of the file.
        name: the name of the file in messages.
        size: its bytes.

    Raises:
        UnpackedSizeError: they unpack to too much.
        ValueError: the file is damaged.
    """
    unpacked = 0
    try:
        for page in unpacked_pages(read, size):
            unpacked += page
            require_unpacked(name, size, unpacked)
    except (LookupError, TypeError) as error:
        raise ValueError("footer or headers of pages lack what they need") from error


def _longest(file: arrow_parquet.ParquetFile, group: int, columns: list[str]) -> int:
    """Return the total bytes of the longest strings in the dictionaries of columns."""
    first = next(file.iter_batches(1, row_groups=[group], columns=columns), None)
    return 0 if first is None else sum(map(_longest_in, first.columns))


def _longest_in(values: pa.Array) -> int:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary
    elif not pa.types.is_struct(values.type):
        return 0
    if pa.types.is_struct(values.type):
        return sum(map(_longest_in, values.flatten()))
    return pc.max(_lengths(values)).as_py() or 0
