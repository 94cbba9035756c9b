"""Unpacks compressed files piece by piece, within limits on the output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import pyarrow as pa

from evermat.runtime.input_limits import require_unpacked

if TYPE_CHECKING:
    from types import TracebackType

_PIECE = 1 << 22


class UnpackingStream:
    """The unpacked bytes of a stream, as long as they are within the limits.

    A decompression bomb is rejected when its output exceeds the limits, and is never in
    memory as a whole.
    """

    def __init__(self, packed: pa.NativeFile, compression: str, name: str) -> None:
        """Unpack a stream.

        Args:
            packed: the compressed bytes.
            compression: the name of the compression in Arrow.
            name: the name of the file in messages.
        """
        self._packed = packed
        self._stream = pa.CompressedInputStream(packed, compression)
        self._name = name
        self._unpacked = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, at most `size`; all remaining bytes by default.

        Raises:
            UnpackedSizeError: there are too many.
        """
        if size < 0:
            return bytes(self._rest().to_pybytes())
        data: bytes = self._stream.read(size)
        self._unpacked += len(data)
        require_unpacked(self._name, self._packed.tell(), self._unpacked)
        return data

    def read_buffer(self) -> pa.Buffer:
        """Return the remaining bytes, as an Arrow buffer."""
        return self._rest()

    def _rest(self) -> pa.Buffer:
        sink = pa.BufferOutputStream()
        while piece := self.read(_PIECE):
            sink.write(piece)
        return sink.getvalue()
