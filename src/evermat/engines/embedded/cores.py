"""The threads that share large work, one for each core that this process may use."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ALONE = 1 << 16
"""Up to this many elements, dividing them among cores costs more than it saves."""


@cache
def core_count() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def workers() -> ThreadPoolExecutor:
    """The threads; they wait when there is nothing to do."""
    return ThreadPoolExecutor(core_count(), thread_name_prefix="evermat")


def in_slices(size: int, work: Callable[[slice], int]) -> int:
    """Call `work` for slices that make up `size` elements, and add up the results."""
    if size <= ALONE or core_count() == 1:
        return work(slice(0, size))
    step = -(-size // core_count())
    slices = [slice(low, min(low + step, size)) for low in range(0, size, step)]
    return sum(workers().map(work, slices))
