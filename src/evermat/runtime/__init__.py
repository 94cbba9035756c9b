"""What concerns the process: garbage, interrupts, limits on files and input.

Python's garbage collector walks through all young objects whenever enough new ones have
been made. While a large program is read, hardly any of them is garbage, and the walks
take as long as the work itself; `collection_paused` keeps it out of the way.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def collection_paused() -> Iterator[None]:
    """Collect no cycles for a while; also a decorator."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
