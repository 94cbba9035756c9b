"""Facilities of the process: garbage collection, interrupts, and input limits.

Python's garbage collector traverses all young objects whenever enough new ones have
been allocated. While a large program is read, hardly any of them is garbage, and the
traversals take as long as the work itself; `collection_paused` disables them.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def collection_paused() -> Iterator[None]:
    """Disable the cyclic garbage collector; also a decorator."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
