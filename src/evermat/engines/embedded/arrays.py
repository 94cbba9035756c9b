"""Types and helpers for arrays, and a pool of memory for large ones.

The system clears memory before handing it out, and a virtual machine may have to get it
from its host first, which takes twenty times as long as clearing it. So the memory of
large arrays is not returned to the system when they are freed, but kept for others. It
is returned when a process would otherwise need more memory than it ever did.

Arrays can have spare capacity at their end: pages that are never written to cost
nothing.

The pool works on Linux; elsewhere, NumPy allocates memory each time.
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
"""The sets that each row of a relation is in, one bit per set."""

Places = npt.NDArray[np.int64]
"""Offsets into a string buffer, and other numbers."""

Flags = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

NO_FACTS: Ids = np.empty((0, 0), np.uint32)
NO_FLAGS: Flags = np.empty(0, np.uint8)
NO_KEYS: Keys = np.empty(0, np.uint64)
NO_ROWS: Rows = np.empty(0, np.int32)


def in_sorted(values: Rows | Keys, sorted_values: Rows | Keys) -> Mask:
    """Return which values occur in a sorted array."""
    if not sorted_values.size:
        return np.zeros(values.size, np.bool_)
    places = np.searchsorted(sorted_values, values)
    places[places == sorted_values.size] = 0
    mask: Mask = sorted_values[places] == values
    return mask


def sum_of_products(factors: Places) -> int:
    """Return the sum of the products of columns, as an integer of any size."""
    greatest = prod(int(row.max(initial=0)) for row in factors)
    if greatest * factors.shape[1] >= 1 << 63:
        factors = factors.astype(object)
    return int(factors.prod(axis=0).sum())


_T = TypeVar("_T", bound=np.generic)

LARGE = 1 << 22
"""Size in bytes from which an array's memory is pooled; smaller ones are on the heap.
"""

MOST_KEPT = 1 << 30
"""Largest size of the pool, in bytes."""

SHARE_KEPT = 16
"""Largest share of the machine's memory in the pool: one byte in this many."""

WASTE = 4
"""Factor by which pooled memory may be larger than requested."""

SPARE = 32
"""The pool leaves one in this many bytes of a process's peak unused, because arrays can
grow into their spare capacity at any time.
"""

_STATUS = Path("/proc/self/statm")
"""The process's memory in pages; the second number is the resident set."""


class _Kept(NamedTuple):
    """Memory, and how many bytes of it were ever written to."""

    memory: mmap.mmap
    written: int


class KeptMemory:
    """A pool of the memory of freed large arrays, the most recently freed last.

    Args:
        most: the largest size of the pool, in bytes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        # Reentrant, because the garbage collector may free arrays at any time.
        self._lock = threading.RLock()
        self._kept: list[_Kept] = []

    @property
    def size(self) -> int:
        """The size of the pool in bytes, without those that were never written to."""
        return sum(kept.written for kept in self._kept)

    def take(self, size: int, used: int) -> mmap.mmap:
        """Return uninitialised memory.

        Args:
            size: the smallest size in bytes.
            used: how many of the bytes will be written to soon.
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
        """Add memory to the pool."""
        written = _written(memory)
        with self._lock:
            self._kept.append(_Kept(memory, written))
            self._return(self.size - self._most)

    def _return(self, size: int) -> None:
        """Return `size` bytes to the system, the least recently freed ones first."""
        while size > 0 and self._kept:
            size -= self._kept.pop(0).written


@cache
def kept_memory() -> KeptMemory:
    """Return the pool of this process."""
    machine = os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE
    return KeptMemory(min(MOST_KEPT, machine // SHARE_KEPT))


def empty(
    shape: int | tuple[int, ...], kind: type[_T], room: int = 1
) -> npt.NDArray[_T]:
    """Return an uninitialised array.

    Args:
        shape: its shape.
        kind: the type of its elements.
        room: one in this many elements will be written to soon.
    """
    count = shape if isinstance(shape, int) else prod(shape)
    size = count * np.dtype(kind).itemsize
    if size < LARGE or not sys.platform.startswith("linux"):
        return np.empty(shape, kind)
    kept = kept_memory()
    memory = kept.take(size, size // room)
    array: npt.NDArray[_T] = np.frombuffer(memory, kind, count)
    # Every view of the array refers to it, so it is freed last.
    weakref.finalize(array, kept.keep, memory).atexit = False
    return array.reshape(shape)


def fitted(array: npt.NDArray[_T], size: int) -> npt.NDArray[_T]:
    """Return the first elements; a copy if most of the memory would be wasted."""
    return array[:size].copy() if size < array.size // 2 else array[:size]


def _length(kept: _Kept) -> int:
    return len(kept.memory)


def _mapped(size: int, *, has_room: bool) -> mmap.mmap:
    """Allocate new memory from the system.

    Its size is a power of two, so that arrays of one round fit the next one. Arrays
    with spare capacity would keep the pages that others have written, and should get
    their own memory back: their size is rounded to one of four steps between powers of
    two.
    """
    step = 1 << max(0, (size - 1).bit_length() - (3 if has_room else 0))
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    memory = mmap.mmap(-1, -(-size // step) * step, flags=flags)
    # Huge pages: the system hands out 512 times fewer of them.
    memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def _growth() -> int:
    """Return the bytes that this process may grow by; negative if it is too large."""
    import resource  # noqa: PLC0415  not on every system

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with _STATUS.open("rb", buffering=0) as status:
        pages = int(status.read().split()[1])
    return most - most // SPARE - pages * mmap.PAGESIZE


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _written(memory: mmap.mmap) -> int:
    """Return the number of bytes of memory that were ever written to."""
    pages = np.empty(-(-len(memory) // mmap.PAGESIZE), np.uint8)
    _library().mincore(
        ctypes.c_void_p(np.frombuffer(memory, np.uint8).ctypes.data),
        ctypes.c_size_t(len(memory)),
        ctypes.c_void_p(pages.ctypes.data),
    )
    return int(np.count_nonzero(pages & 1)) * mmap.PAGESIZE
