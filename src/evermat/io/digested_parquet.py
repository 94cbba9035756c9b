"""Parquet files in which every byte is covered by a digest.

A Parquet file is a sequence of row groups and a footer. The footer contains a digest of
each row group, and the digest of the footer is stored with the reference to the file.
So a reader of some row groups verifies what it reads, and reads nothing else. The
checksums of pages, which other readers verify, cover neither the headers of pages nor
the footer.

A file that was written without such a footer can be given one digest of all its bytes.
"""

from __future__ import annotations

import io
import json
from bisect import bisect_right
from hashlib import sha256
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Buffer

    Segment = tuple[int, str]
    """The end of a row group, and its digest."""

ROWS_IN_A_GROUP = 1 << 20
"""The largest row group, as in Arrow: each group has a dictionary of its own."""
_KEY = b"evermat.row_groups"
_OF_FOOTER, _OF_FILE = "footer:", "file:"
_MAGIC = b"PAR1"
_LENGTH_AND_MAGIC = 8
_FIRST_READ = 1 << 16
"""Bytes at the end of a file that are read first: nearly every footer is shorter."""
_BLOCK = 1 << 22


class DamagedParquetError(ValueError):
    """A file whose bytes differ from those that were written.

    Readers add the name of the file and advice.
    """


class DigestedWriter:
    """Writes a Parquet file, and digests it while writing.

    Args:
        sink: an Arrow stream, which is not closed.
        schema: the columns.
    """

    def __init__(self, sink: pa.NativeFile, schema: pa.Schema) -> None:
        self._sink = _DigestedSink(sink)
        self._segments: list[Segment] = []
        self._writer = pq.ParquetWriter(
            self._sink, schema, compression="zstd", write_page_checksum=True
        )

    @property
    def size(self) -> int:
        """The number of bytes written."""
        return self._sink.size

    def write(self, table: pa.Table) -> None:
        """Write rows as separate row groups."""
        for at in range(0, table.num_rows, ROWS_IN_A_GROUP):
            rows = table.slice(at, ROWS_IN_A_GROUP)
            self._writer.write_table(rows, row_group_size=rows.num_rows)
            self._segments.append((self._sink.size, self._sink.take_digest()))

    def close(self, notes: Mapping[bytes, str] | None = None) -> str:
        """Write the footer; return the digest by which the file is verified.

        Args:
            notes: what else the footer says.
        """
        if not self._segments:  # the magic bytes at the beginning
            self._segments.append((self._sink.size, self._sink.take_digest()))
        texts = {**(notes or {}), _KEY: json.dumps(self._segments)}
        self._writer.add_key_value_metadata(texts)
        self._writer.close()
        return _OF_FOOTER + self._sink.take_digest()


class _DigestedSink(io.RawIOBase):
    def __init__(self, sink: pa.NativeFile) -> None:
        super().__init__()
        self._sink = sink
        self._digest = sha256()
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        self._digest.update(data)
        self._sink.write(data)
        size = memoryview(data).nbytes
        self.size += size
        return size

    def tell(self) -> int:
        return self.size

    def take_digest(self) -> str:
        """Return the digest of what was written since it was last taken."""
        found = self._digest.hexdigest()
        self._digest = sha256()
        return found


class DigestedFile:
    """A Parquet file whose row groups are verified when they are read.

    Args:
        stream: the file, open for random access.
        digest: the result of `DigestedWriter.close` or `digest_of_file`; without it,
            only the checksums of pages are verified.
        size: the expected number of bytes, if known.

    Attributes:
        parquet: the reader of row groups, best used in order.

    Raises:
        DamagedParquetError: the bytes are not those that were digested.
    """

    def __init__(
        self, stream: pa.NativeFile, digest: str | None, size: int | None = None
    ) -> None:
        if size is not None and size != stream.size():
            message = f"it has {stream.size()} bytes and not {size}"
            raise DamagedParquetError(message)
        footer, start = _footer(stream)
        self._body: _VerifiedBody | None = None
        if digest is None:
            metadata = pq.read_metadata(pa.BufferReader(footer))
        elif digest.startswith(_OF_FOOTER):
            _require_same(_OF_FOOTER + sha256(footer).hexdigest(), digest, "its footer")
            metadata = pq.read_metadata(pa.BufferReader(footer))
            segments = json.loads(metadata.metadata[_KEY])
            self._body = _VerifiedBody(stream, segments, start)
        else:
            _require_same(digest_of_file(stream), digest, "its contents")
            metadata = pq.read_metadata(pa.BufferReader(footer))
        self.parquet = pq.ParquetFile(
            stream if self._body is None else self._body,
            metadata=metadata,
            page_checksum_verification=True,
        )

    def read(self) -> pa.Table:
        """Return all rows."""
        file = self.parquet
        groups = [file.read_row_group(at) for at in range(file.num_row_groups)]
        return pa.concat_tables(groups) if groups else file.read()

    def verify(self) -> None:
        """Read and verify all bytes; a file without a digest is decoded for that."""
        if self._body is None:
            self.read()
        else:
            self._body.verify()


class _VerifiedBody(io.RawIOBase):
    """The file before the footer, verified row group by row group."""

    def __init__(
        self, stream: pa.NativeFile, segments: Sequence[Segment], size: int
    ) -> None:
        super().__init__()
        self._stream = stream
        self._ends = [end for end, _ in segments]
        self._digests = [digest for _, digest in segments]
        _require_same(self._ends[-1], size, "the length of its row groups")
        self._at = 0
        # Arrow reads a row group at once, or its columns one after the other.
        self._loaded: tuple[int, bytes] = (-1, b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._ends[-1]}
        self._at = origin[whence] + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._ends[-1]
        if size >= 0:
            end = min(end, self._at + size)
        found = []
        while self._at < end:
            number = bisect_right(self._ends, self._at)
            start = self._start(number)
            piece = self._segment(number)[self._at - start : end - start]
            found.append(piece)
            self._at += len(piece)
        return found[0] if len(found) == 1 else b"".join(found)

    def verify(self) -> None:
        for number in range(len(self._ends)):
            self._segment(number)

    def _start(self, number: int) -> int:
        return self._ends[number - 1] if number else 0

    def _segment(self, number: int) -> bytes:
        if self._loaded[0] != number:
            start = self._start(number)
            data = _read_at(self._stream, start, self._ends[number] - start)
            _require_same(
                sha256(data).hexdigest(), self._digests[number], f"row group {number}"
            )
            self._loaded = (number, data)
        return self._loaded[1]


def digest_of_file(stream: pa.NativeFile) -> str:
    """Return a digest of all bytes of a file."""
    digest = sha256()
    stream.seek(0)
    while block := stream.read(_BLOCK):
        digest.update(block)
    return _OF_FILE + digest.hexdigest()


def _footer(stream: pa.NativeFile) -> tuple[bytes, int]:
    """Return the footer with the magic bytes after it, and its offset."""
    size = stream.size()
    read = min(size, _FIRST_READ)
    end = _read_at(stream, size - read, read)
    if len(end) < _LENGTH_AND_MAGIC or not end.endswith(_MAGIC):
        message = "it does not end as a Parquet file does"
        raise DamagedParquetError(message)
    length = int.from_bytes(end[-_LENGTH_AND_MAGIC:-4], "little") + _LENGTH_AND_MAGIC
    if length > size:
        message = "its footer is longer than the file"
        raise DamagedParquetError(message)
    if length > read:
        end = _read_at(stream, size - length, length)
    return end[-length:], size - length


def _read_at(stream: pa.NativeFile, start: int, size: int) -> bytes:
    stream.seek(start)
    data: bytes = stream.read(size)
    return data


def _require_same(found: object, expected: object, what: str) -> None:
    if found != expected:
        message = f"{what} changed after the file was written"
        raise DamagedParquetError(message)
