"""Unpacked sizes of the pages of a Parquet file, read from the headers of the pages.

The footer declares the unpacked size of columns, but a malicious file may declare
something else in the headers of its pages, for which Arrow allocates memory. So both
are read here, and nothing else: no page is unpacked.

Footer and headers are in the compact protocol of Apache Thrift. The numbers of fields
are those of `parquet.thrift`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Read = Callable[[int, int], bytes]
    """Reads bytes of a file, given an offset and the largest number."""

Fields = dict[int, Any]
"""The fields of a Thrift structure, by number."""

_TAIL = struct.Struct("<I4s")
_MAGIC = b"PAR1"
_SCHEMA, _ROW_GROUPS = 2, 4
_REPETITION, _NAME = 3, 4
_LIST = 2
_COLUMNS, _ROWS = 1, 3
_META_DATA = 3
_PATH, _VALUES, _PACKED, _DATA_PAGES, _DICTIONARY = 3, 5, 7, 9, 11
_UNPACKED_PAGE, _PACKED_PAGE = 2, 3
_DATA_HEADERS = 5, 8
"""Headers of data pages of the first and of the second version."""

_HEADER_SIZES = 1 << 8, 1 << 14, 1 << 24
"""Sizes to read: a header is seldom longer than the first, except for statistics."""

_DEEPEST = 16
"""Nesting limit of structures; the format needs half of it."""


def unpacked_pages(read: Read, size: int) -> Iterator[int]:
    """Yield for each page its unpacked bytes, or its number of values if that is more.

    Args:
        read: reads bytes of the file.
        size: the number of bytes.

    Raises:
        ValueError: footer or headers are damaged, or columns share pages.
    """
    footer = _footer(read, size)
    groups = footer.get(_ROW_GROUPS, [])
    chunks = [(each[_META_DATA], group) for group in groups for each in group[_COLUMNS]]
    if sum(chunk[_PACKED] for chunk, _ in chunks) > size:
        raise ValueError("columns share pages, or lie outside of the file")
    lists = {each[_NAME] for each in footer[_SCHEMA] if each.get(_REPETITION) == _LIST}
    for chunk, group in chunks:
        # A longer path belongs to a list or a structure.
        is_plain = len(chunk[_PATH]) == 1 and chunk[_PATH][0] not in lists
        if is_plain and chunk[_VALUES] != group[_ROWS]:
            raise ValueError("a column has another number of values than of rows")
        yield from _pages_of(chunk, read)


def _footer(read: Read, size: int) -> Fields:
    tail = read(size - _TAIL.size, _TAIL.size) if size > _TAIL.size else b""
    if len(tail) < _TAIL.size:
        raise ValueError("the file has no footer")
    length, magic = _TAIL.unpack(tail)
    start = size - _TAIL.size - length
    if magic != _MAGIC or start < 0:
        raise ValueError("the file has no footer")
    return _parsed(read(start, length))[0]


def _pages_of(chunk: Fields, read: Read) -> Iterator[int]:
    """Yield the pages of a column, until all of its declared values are covered."""
    at = chunk[_DATA_PAGES]
    if 0 < chunk.get(_DICTIONARY, 0) < at:
        at = chunk[_DICTIONARY]
    end, missing = at + chunk[_PACKED], chunk[_VALUES]
    while missing > 0 and at < end:
        header, length = _header(read, at)
        packed, unpacked = header[_PACKED_PAGE], header[_UNPACKED_PAGE]
        if packed < 0 or unpacked < 0:
            raise ValueError("the size of a page is negative")
        values = 0
        for number in _DATA_HEADERS:
            if number in header:
                values = header[number][1]
        missing -= values
        yield max(unpacked, values)
        at += length + packed
    if missing > 0:
        raise ValueError("a column has fewer values than it should have")


def _header(read: Read, at: int) -> tuple[Fields, int]:
    """Return the header of a page, and its length."""
    for size in _HEADER_SIZES:
        data = read(at, size)
        try:
            return _parsed(data)
        except IndexError:
            if len(data) < size:
                break
    raise ValueError("the header of a page is damaged")


# ----------------------------------------------------------------------------- Thrift


def _parsed(data: bytes) -> tuple[Fields, int]:
    """Parse a structure; return it and its length in bytes.

    Raises:
        IndexError: the data end before it does.
        ValueError: it is not a Thrift structure.
    """
    reader = _Reader(data)
    return reader.structure(), reader.at


_TRUE, _FALSE = 1, 2
_MANY = 15
"""The first byte of a list has its length, unless it is at least this."""

_MORE = 128
"""The bit that marks the continuation of a number."""

_LONGEST_NUMBER = 70
"""Bits in ten bytes with seven bits each."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def structure(self, depth: int = 0) -> Fields:
        """Parse the fields of a structure."""
        if depth > _DEEPEST:
            raise ValueError("structures are nested too deeply")
        found: Fields = {}
        number = 0
        while kind := self._byte():
            step = kind >> 4
            number = number + step if step else self._integer()
            found[number] = self._value(kind & 15, depth)
        return found

    def _value(self, kind: int, depth: int) -> object:
        match kind:
            case 1 | 2:
                return kind == _TRUE
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 7:  # a floating-point number, which the format does not need
                return self._bytes(8)
            case 8:
                return self._bytes(self._number())
            case 9 | 10:
                return self._list(depth)
            case 12:
                return self.structure(depth + 1)
            case _:  # maps are not needed either
                raise ValueError(f"there are no values of kind {kind}")

    def _list(self, depth: int) -> list[object]:
        kind = self._byte()
        size, kind = kind >> 4, kind & 15
        if size == _MANY:
            size = self._number()
        # Each takes at least a byte: a list that is too long ends with an `IndexError`.
        return [self._member(kind, depth) for _ in range(size)]

    def _member(self, kind: int, depth: int) -> object:
        # A Boolean is in the type of its field; in lists it has a byte of its own.
        is_truth = kind in {_TRUE, _FALSE}
        return self._byte() if is_truth else self._value(kind, depth)

    def _bytes(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            raise IndexError
        found = self.data[self.at : end]
        self.at = end
        return found

    def _integer(self) -> int:
        number = self._number()
        return (number >> 1) ^ -(number & 1)

    def _number(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & ~_MORE) << shift
            if not byte & _MORE:
                return number
            shift += 7
            if shift >= _LONGEST_NUMBER:
                raise ValueError("a number is too long")

    def _byte(self) -> int:
        byte = self.data[self.at]
        self.at += 1
        return byte
