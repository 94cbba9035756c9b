"""Settings of the C library's allocator for freed memory.

Each round allocates arrays and frees them, and the next round allocates others of about
that size. If the library returns freed memory to the system at once, the system clears
every page before handing it out again, which can take as long as the work itself. If
the library keeps all of it, a large array may not fit into any free piece. So it keeps
some, and returns what it has kept before large arrays are allocated.

This applies to glibc, the library of most Linux systems; others are left alone.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

KEPT = 1 << 29
"""Bytes at the end of the heap that are kept for reuse."""

LARGE = 1 << 27
"""Size in bytes of arrays before which kept memory is returned."""

_MAPPED = 1 << 25
"""Arrays of this many bytes are never on the heap. The library would choose this limit
dynamically, but stops doing so once any setting is made.
"""

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Constants of `malloc.h`."""

SETTINGS = (
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_ARENA_MAX",
    "GLIBC_TUNABLES",
)
"""Environment variables by which users configure the library themselves."""


@cache
def _library() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") else None


@cache
def keep_freed() -> None:
    """Keep freed memory for reuse, unless users have configured the library."""
    library = _library()
    if library is not None and not any(name in os.environ for name in SETTINGS):
        library.mallopt(_TRIM_THRESHOLD, KEPT)
        library.mallopt(_MMAP_THRESHOLD, _MAPPED)
        # One heap for all threads, because the settings apply to the main heap only.
        library.mallopt(_ARENA_MAX, 1)


def make_room(size: int) -> None:
    """Return kept memory to the system before an array of `size` bytes is allocated."""
    library = _library()
    if size >= LARGE and library is not None:
        library.malloc_trim(0)
