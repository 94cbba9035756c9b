"""A pool of threads that share large work, one for each core of this process."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from evermat.engines.embedded.arrays import empty, fitted
from evermat.runtime.interrupts import check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    import numpy.typing as npt

    from evermat.engines.embedded.arrays import Rows

_T = TypeVar("_T")
_E = TypeVar("_E", bound=np.generic)

ALONE = 1 << 16
"""Up to this many elements, sharing them among cores costs more than it saves."""


@cache
def core_count() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def workers() -> ThreadPoolExecutor:
    """Return the thread pool."""
    return ThreadPoolExecutor(core_count(), thread_name_prefix="evermat")


def together(jobs: Sequence[Callable[[], _T]]) -> list[_T]:
    """Run jobs in parallel, the first one on this thread, and return their results.

    An interrupt is answered before they begin.

    Waking an idle core can take longer than a job. So jobs that no core has started
    when the first job is done are run on this thread as well.
    """
    check()
    others: list[tuple[Callable[[], _T], Future[_T]]] = []
    try:
        for job in jobs[1:]:
            others.append((job, workers().submit(job)))  # noqa: PERF401  may break off
        results = [jobs[0]()]
        for job, promise in reversed(others):
            results.append(job() if promise.cancel() else promise.result())
    except BaseException:
        # They work on the same arrays, which are about to be restored.
        wait([promise for _, promise in others if not promise.cancel()])
        raise
    results[1:] = reversed(results[1:])
    return results


def in_slices(size: int, work: Callable[[slice], int]) -> int:
    """Call `work` for slices that cover `size` elements, and add up the results."""
    if size <= ALONE:
        check()
        return work(slice(0, size))
    return sum(together([partial(work, part) for part in slices_of(size)]))


def slices_of(size: int) -> list[slice]:
    """Return a slice for each core, or one for all elements if there are few."""
    if size <= ALONE or core_count() == 1:
        return [slice(0, size)]
    step = -(-size // core_count())
    return [slice(low, min(low + step, size)) for low in range(0, size, step)]


def within(
    pieces: Iterable[npt.NDArray[_E]], part: slice
) -> Iterator[tuple[npt.NDArray[_E], slice]]:
    """Yield the parts of pieces in a slice of them all, with their places."""
    start = 0
    for piece in pieces:
        low, high = max(part.start - start, 0), min(part.stop - start, piece.size)
        if low < high:
            yield piece[low:high], slice(start + low, start + high)
        start += piece.size


def chosen_rows(size: int, choose: Callable[[slice, Rows], int]) -> Rows:
    """Return the rows that are chosen among `size` elements, in order.

    Args:
        size: the number of elements.
        choose: is called for slices that cover all elements, each with an output array
            of the same size; writes the chosen rows to it and returns their number.
    """
    found = empty(size, np.int32)
    sizes: dict[int, int] = {}

    def work(part: slice) -> int:
        count = choose(part, found[part])
        sizes[part.start] = count
        return count

    total = in_slices(size, work)
    end = 0
    for start, count in sorted(sizes.items()):
        if start > end:
            found[end : end + count] = found[start : start + count]
        end += count
    return fitted(found, total)


def equal_shares(ends: npt.NDArray[np.int64], cores: int) -> list[slice]:
    """Return nonempty slices of elements with about equal shares of some load.

    Args:
        ends: the cumulative load of the elements.
        cores: the number of slices, at most.
    """
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, cores) // cores)
    bounds = [0, *(int(cut) for cut in cuts), ends.size]
    return [slice(*pair) for pair in pairwise(bounds) if pair[0] < pair[1]]


def for_each(elements: Iterable[_T], work: Callable[[_T], None]) -> None:
    """Call `work` for each element, on several cores if there are several."""
    jobs = [partial(work, element) for element in elements]
    if jobs:
        together(jobs)


def in_shares(ends: npt.NDArray[np.int64], work: Callable[[slice], None]) -> None:
    """Call `work` for slices of elements that have equal shares of some load.

    Args:
        ends: the cumulative load of the elements.
        work: is called with slices that cover all elements.
    """
    if not ends.size or ends[-1] <= ALONE:
        work(slice(0, ends.size))
    else:
        for_each(equal_shares(ends, core_count()), work)
