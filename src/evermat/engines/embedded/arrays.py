"""Names for the arrays of the embedded engine, and what is asked of them.

Large arrays, in memory that is used again.

The system clears memory before it hands it out, and on a virtual machine may have to
fetch it from its host first, which takes twenty times as long as clearing it. So memory
of large arrays is not returned when they are dropped, but kept for others. It is
returned when a process would otherwise need more memory than it ever did.

Arrays can have room for more at their end: what is never written to costs nothing.

This is for Linux; elsewhere, NumPy asks for memory each time.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
import weakref
from functools import cache
from math import prod
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.uint32]
"""Constants, as ids of the dictionary."""

Keys = npt.NDArray[np.uint64]
"""Two ids each, or hashes of more."""

Rows = npt.NDArray[np.int32]
"""Facts, as positions in their relation; also counts of facts."""

Status = npt.NDArray[np.uint16]
"""Which sets each row of a relation is in, a bit for each set."""

Places = npt.NDArray[np.int64]
"""Offsets into a text buffer, and other numbers."""

Flags = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

NO_FACTS: Ids = np.empty((0, 0), np.uint32)
NO_FLAGS: Flags = np.empty(0, np.uint8)
NO_KEYS: Keys = np.empty(0, np.uint64)
NO_ROWS: Rows = np.empty(0, np.int32)


def in_sorted(values: Rows | Keys, sorted_values: Rows | Keys) -> Mask:
    """Which values occur in a sorted array."""
    if not sorted_values.size:
        return np.zeros(values.size, np.bool_)
    places = np.searchsorted(sorted_values, values)
    places[places == sorted_values.size] = 0
    mask: Mask = sorted_values[places] == values
    return mask


def sum_of_products(factors: Places) -> int:
    """Multiply the elements of each column, and add it all up: of any size."""
    greatest = prod(int(row.max(initial=0)) for row in factors)
    if greatest * factors.shape[1] >= 1 << 63:
        factors = factors.astype(object)
    return int(factors.prod(axis=0).sum())


_T = TypeVar("_T", bound=np.generic)

LARGE = 1 << 22
"""Bytes of an array whose memory is kept; those of smaller ones are on the heap."""

MOST_KEPT = 1 << 30
"""Bytes that are kept, at most."""

SHARE_KEPT = 16
"""One in so many bytes of the machine is kept, at most."""

WASTE = 4
"""How many times as much memory an array may be given as it asks for."""

SPARE = 32
"""One in so many bytes that a process ever needed is not given to what is kept, as
nobody is asked when arrays grow into their room."""

_STATUS = Path("/proc/self/statm")
"""How many pages this process has; the second number is those in memory."""


class _Kept(NamedTuple):
    """Memory, and how many bytes of it were ever written to."""

    memory: mmap.mmap
    written: int


class KeptMemory:
    """The memory of large arrays that were dropped, what was dropped last at the end.

    Args:
        most: how many bytes are kept at most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        # One that a thread can pass again: it may drop arrays at any time.
        self._lock = threading.RLock()
        self._kept: list[_Kept] = []

    @property
    def size(self) -> int:
        """Bytes that are kept, without those that were never written to."""
        return sum(kept.written for kept in self._kept)

    def take(self, size: int, used: int) -> mmap.mmap:
        """Memory with anything in it.

        Args:
            size: at least so many bytes.
            used: how many of them will be written to soon.
        """
        with self._lock:
            fitting = [
                kept for kept in self._kept if size <= len(kept.memory) <= WASTE * size
            ]
            if fitting:
                best = min(fitting, key=_length)
                self._kept.remove(best)
                self._return(-_growth())
                return best.memory
            self._return(used - _growth())
            try:
                return _mapped(size, has_room=used < size)
            except OSError:
                self._kept.clear()
        try:
            return _mapped(size, has_room=used < size)
        except OSError as error:
            raise MemoryError(f"no memory for {size:,} bytes") from error

    def keep(self, memory: mmap.mmap) -> None:
        """Keep memory for later arrays."""
        written = _written(memory)
        with self._lock:
            self._kept.append(_Kept(memory, written))
            self._return(self.size - self._most)

    def _return(self, size: int) -> None:
        """Return so many bytes to the system, those kept for longest first."""
        while size > 0 and self._kept:
            size -= self._kept.pop(0).written


@cache
def kept_memory() -> KeptMemory:
    """What this process keeps."""
    machine = os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE
    return KeptMemory(min(MOST_KEPT, machine // SHARE_KEPT))


def empty(
    shape: int | tuple[int, ...], kind: type[_T], room: int = 1
) -> npt.NDArray[_T]:
    """An array with anything in it.

    Args:
        shape: how many elements it has.
        kind: of elements.
        room: one in so many of them will be written to soon.
    """
    count = shape if isinstance(shape, int) else prod(shape)
    size = count * np.dtype(kind).itemsize
    if size < LARGE or not sys.platform.startswith("linux"):
        return np.empty(shape, kind)
    kept = kept_memory()
    memory = kept.take(size, size // room)
    array: npt.NDArray[_T] = np.frombuffer(memory, kind, count)
    # Whatever is made of the array holds it, so that it is dropped last.
    weakref.finalize(array, kept.keep, memory).atexit = False
    return array.reshape(shape)


def fitted(array: npt.NDArray[_T], size: int) -> npt.NDArray[_T]:
    """The first elements; a copy where most of the memory would be held for nothing."""
    return array[:size].copy() if size < array.size // 2 else array[:size]


def _length(kept: _Kept) -> int:
    return len(kept.memory)


def _mapped(size: int, *, has_room: bool) -> mmap.mmap:
    """Memory that was not used before.

    It is a power of two, so that arrays of a round serve others of the next one. Arrays
    with room would hold what others have written there for long, and should come back
    to where they were: theirs is rounded to one of four between powers of two.
    """
    step = 1 << max(0, (size - 1).bit_length() - (3 if has_room else 0))
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    memory = mmap.mmap(-1, -(-size // step) * step, flags=flags)
    # Huge pages: there are 512 times fewer to ask the system for.
    memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def _growth() -> int:
    """How many bytes this process may grow by; below zero if it should not have."""
    import resource  # noqa: PLC0415  not on every system

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with _STATUS.open("rb", buffering=0) as status:
        pages = int(status.read().split()[1])
    return most - most // SPARE - pages * mmap.PAGESIZE


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _written(memory: mmap.mmap) -> int:
    """How many bytes of memory were ever written to."""
    pages = np.empty(-(-len(memory) // mmap.PAGESIZE), np.uint8)
    _library().mincore(
        ctypes.c_void_p(np.frombuffer(memory, np.uint8).ctypes.data),
        ctypes.c_size_t(len(memory)),
        ctypes.c_void_p(pages.ctypes.data),
    )
    return int(np.count_nonzero(pages & 1)) * mmap.PAGESIZE
