"""A file of arrays that is mapped into memory, so that opening it copies nothing.

The mapping is private: arrays may be written to, and the file does not change. Arrays
can have spare capacity, which is a hole in the file and takes no disk space. The
description of all arrays is at the end of the file; it and each array have a checksum,
which is verified when the file is opened.
"""

from __future__ import annotations

import json
import mmap
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from evermat.engines.embedded.kernels.strings import checksum

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    Array = npt.NDArray[Any]

_WORD = 8
_ALIGNED = 64
_END = 24
"""Bytes at the end: the length of the description, its checksum, and a magic number."""
_MARK = b"evermat1"


class DamagedFileError(Exception):
    """A file that was changed after it was written, or is of another version."""


class ArrayWriter:
    """Writes arrays to a new file, which is complete once `finish` has returned.

    Attributes:
        values: other JSON values, which are written at the end.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")
        self._place = 0
        self._arrays: dict[str, dict[str, object]] = {}
        self.values: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def put(self, name: str, array: Array, room: int | None = None) -> None:
        """Write an array.

        Args:
            name: the name by which it is read.
            array: one-dimensional, or two-dimensional and written row by row.
            room: the capacity of each row when it is read again.
        """
        room = array.shape[-1] if room is None else max(room, array.shape[-1])
        rows = array.reshape(-1, array.shape[-1]) if array.size else ()
        self._arrays[name] = {
            "type": array.dtype.str,
            "shape": list(array.shape),
            "room": room,
            "place": self._place,
            "sums": [_sum(row) for row in rows],
        }
        for row in rows:
            self._file.seek(self._place)
            self._file.write(np.ascontiguousarray(row).data)
            self._place += room * array.itemsize
        if not array.size:
            self._place += prod(array.shape[:-1]) * room * array.itemsize
        self._place = -(-self._place // _ALIGNED) * _ALIGNED

    def finish(self) -> None:
        """Write the description of all arrays."""
        text = json.dumps({"arrays": self._arrays, "values": self.values}).encode()
        self._file.seek(self._place)
        self._file.write(text)
        sums = np.array([len(text), _sum(np.frombuffer(text, np.uint8))], np.uint64)
        self._file.write(sums.tobytes() + _MARK)
        self._file.flush()


class MappedArrays:
    """The arrays of a file.

    Attributes:
        values: the other values in the file.
    """

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self._memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            self._arrays, self.values = self._described()
        except (OSError, ValueError, KeyError, TypeError) as error:
            message = f"`{path}`: {error}"
            raise DamagedFileError(message) from error

    def _described(self) -> tuple[Mapping[str, Any], dict[str, Any]]:
        end = self._memory[-_END:]
        length, expected = np.frombuffer(end, np.uint64, 2).tolist()
        text = self._memory[-_END - length : -_END]
        is_right = end[-len(_MARK) :] == _MARK and len(text) == length
        if not is_right or _sum(np.frombuffer(text, np.uint8)) != expected:
            message = "the end is not what was written"
            raise ValueError(message)
        described = json.loads(text)
        return described["arrays"], described["values"]

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def verify(self) -> None:
        """Raise an error if the file was changed after it was written.

        Raises:
            DamagedFileError: an array has another checksum.
        """
        for name, about in self._arrays.items():
            array = self.used(name)
            rows = array.reshape(-1, array.shape[-1]) if array.size else ()
            if [_sum(row) for row in rows] != about["sums"]:
                message = f"`{name}` changed after it was written"
                raise DamagedFileError(message)

    def get(self, name: str) -> Array:
        """Return an array, with its spare capacity."""
        about = self._arrays[name]
        shape = (*about["shape"][:-1], about["room"])
        try:
            kind = np.dtype(about["type"])
            if not prod(shape):
                return np.empty(shape, kind)
            found = np.frombuffer(self._memory, kind, prod(shape), about["place"])
        except ValueError as error:
            raise DamagedFileError(str(error)) from error
        return found.reshape(shape)

    def used(self, name: str) -> Array:
        """Return an array without spare capacity."""
        return self.get(name)[..., : self._arrays[name]["shape"][-1]]


def _sum(array: Array) -> int:
    """Return the checksum of a one-dimensional array."""
    data = np.ascontiguousarray(array)
    words, rest = divmod(data.nbytes, _WORD)
    last = np.zeros(2 * _WORD, np.uint8)
    last[:rest] = data.view(np.uint8)[words * _WORD :]
    last[_WORD] = rest
    first = int(checksum(data.ctypes.data, words))
    return first ^ int(checksum(last.ctypes.data, 2))
