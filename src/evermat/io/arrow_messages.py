"""Announced sizes: what the messages of Arrow files and streams claim to unpack to.

The buffers of a record batch may be compressed, each by itself, and begin with the
number of bytes that they unpack to. Arrow allocates that many before it reads the data,
and pyarrow neither limits that nor exposes the buffers. So the numbers are read here,
from the same metadata that Arrow reads: a FlatBuffers message, of which only the few
fields on the path to the buffers are decoded.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

_FILE = b"ARROW1"
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
# The numbers of fields in Arrow's schemas `Message.fbs` and `File.fbs`.
_HEADER_TYPE, _HEADER, _CUSTOM = 1, 2, 4
_BUFFERS, _COMPRESSION = 2, 3
_DATA = 1
_DICTIONARIES, _RECORD_BATCHES = 2, 3
_FIRST_COMPRESSION = b"ARROW:experimental_compression"
"""The key with which Arrow 0.17 marks compressed buffers."""
_LENGTH = struct.Struct("<q")
_BUFFER = struct.Struct("<qq")
_BLOCK = struct.Struct("<qi4xq")


def announced_bytes(data: pa.Buffer) -> int:
    """Return the bytes that the compressed buffers of a file claim to unpack to.

    Raises:
        pa.ArrowException: the messages cannot be read.
        ValueError: they point outside of the data.
    """
    try:
        return sum(map(_announced_by, _messages(data)))
    except struct.error as error:
        message = "its metadata points outside of the file"
        raise ValueError(message) from error
    except EOFError as error:
        message = "a block of it is empty"
        raise ValueError(message) from error


def _messages(data: pa.Buffer) -> Iterator[pa.ipc.Message]:
    """Yield the batches, where Arrow's reader will look for them."""
    if bytes(data[: len(_FILE)]) != _FILE:
        yield from pa.ipc.MessageReader.open_stream(pa.BufferReader(data))
        return
    # The file ends with the footer, its length and the magic bytes.
    end = data.size - len(_FILE) - 4
    (length,) = struct.unpack_from("<i", data, end)
    if not 0 < length <= end:
        message = "its footer is longer than the file"
        raise ValueError(message)
    footer = _Table.root(data[end - length : end])
    for field in (_DICTIONARIES, _RECORD_BATCHES):
        for offset, metadata, body in footer.structs(field, _BLOCK):
            if min(offset, metadata, body) < 0:
                message = "a block of it has a negative length"
                raise ValueError(message)
            block = data[offset : offset + metadata + body]
            yield pa.ipc.read_message(pa.BufferReader(block))


def _announced_by(message: pa.ipc.Message) -> int:
    header = _Table.root(message.metadata)
    custom = bytes(message.metadata) if header.place(_CUSTOM) else b""
    kind, batch = header.byte(_HEADER_TYPE), header.table(_HEADER)
    if batch is not None and kind == _DICTIONARY_BATCH:
        batch = batch.table(_DATA)
    elif kind != _RECORD_BATCH:
        return 0
    if batch is None or message.body is None:
        return 0
    if batch.table(_COMPRESSION) is None and _FIRST_COMPRESSION not in custom:
        return 0
    body, announced = message.body, 0
    for offset, length in batch.structs(_BUFFERS, _BUFFER):
        if length < _LENGTH.size or offset < 0:
            continue  # empty, or refused by Arrow
        (size,) = _LENGTH.unpack_from(body, offset)
        # A buffer that compression does not shrink is stored as is, with length -1.
        announced += max(size, length)
    return announced


class _Table:
    """A FlatBuffers table."""

    def __init__(self, data: pa.Buffer, start: int) -> None:
        self._data = data
        self._start = start
        (back,) = struct.unpack_from("<i", data, start)
        self._fields = start - back
        (self._size,) = struct.unpack_from("<H", data, self._fields)

    @classmethod
    def root(cls, data: pa.Buffer) -> _Table:
        return cls(data, *struct.unpack_from("<I", data, 0))

    def place(self, field: int) -> int:
        """Return the offset of a field's value; 0 if it has none."""
        entry = 4 + 2 * field
        if entry + 2 > self._size:
            return 0
        (offset,) = struct.unpack_from("<H", self._data, self._fields + entry)
        return self._start + offset if offset else 0

    def byte(self, field: int) -> int:
        place = self.place(field)
        return self._data[place] if place else 0

    def table(self, field: int) -> _Table | None:
        place = self.place(field)
        return _Table(self._data, self._target(place)) if place else None

    def structs(self, field: int, form: struct.Struct) -> Iterator[tuple[int, ...]]:
        """Yield the elements of a vector of structs."""
        place = self.place(field)
        if not place:
            return
        start = self._target(place)
        (count,) = struct.unpack_from("<I", self._data, start)
        for number in range(count):
            yield form.unpack_from(self._data, start + 4 + number * form.size)

    def _target(self, place: int) -> int:
        (offset,) = struct.unpack_from("<I", self._data, place)
        return place + int(offset)
