"""What the C library does with memory that was freed.

Rounds make arrays and drop them, and the next round makes others of about that size.
If the library returns freed memory to the system at once, the system clears every page
again before it hands it out, which can take as long as the work on it. If the library
keeps it, the pieces lie about when one array needs more than any of them has. So it is
told to keep some, and to return what it has kept before large arrays are made.

This is for the library of most Linux systems; others do as they please.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

KEPT = 1 << 29
"""Bytes at the end of the heap that are kept for later use."""

LARGE = 1 << 27
"""Bytes of an array that is worth returning what is kept."""

_MAPPED = 1 << 25
"""Arrays of so many bytes are never on the heap. It is what the library would settle
for by itself, but does not any more once it is told anything."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Names of `malloc.h`."""

SETTINGS = (
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_ARENA_MAX",
    "GLIBC_TUNABLES",
)
"""Variables by which users tell the library themselves."""


@cache
def _library() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") else None


@cache
def keep_freed() -> None:
    """Have freed memory kept for later use, unless users decided about it."""
    library = _library()
    if library is not None and not any(name in os.environ for name in SETTINGS):
        library.mallopt(_TRIM_THRESHOLD, KEPT)
        library.mallopt(_MMAP_THRESHOLD, _MAPPED)
        # One heap for all threads: it keeps nothing of the others that it makes.
        library.mallopt(_ARENA_MAX, 1)


def make_room(size: int) -> None:
    """Return what is kept to the system before an array of so many bytes is made."""
    library = _library()
    if size >= LARGE and library is not None:
        library.malloc_trim(0)
