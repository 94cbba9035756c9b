"""A line on the terminal that tells how far a run has come."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.status import Status

    from evermat.maintenance.limits import Step

_INTERVAL = 0.1
"""Seconds between two redraws; rounds can be much shorter."""


class ProgressLine:
    """Called by a run after each round; shows itself only on a terminal."""

    def __init__(self) -> None:
        self._status: Status | None = None
        self._task = ""
        self._next = 0.0

    def __call__(self, step: Step) -> None:
        """Show where the run is."""
        now = perf_counter()
        if self._status is None or now < self._next:
            return
        self._next = now + _INTERVAL
        self._status.update(
            f"{self._task}: stratum {step.stratum}, {step.phase} round {step.round}, "
            f"{step.total_facts:,} new facts"
        )

    @contextmanager
    def during(self, task: str) -> Iterator[None]:
        """Show the line while a task lasts."""
        if not sys.stderr.isatty():
            yield
            return
        from rich.console import Console

        self._task = task
        with Console(stderr=True).status(task) as status:
            self._status = status
            try:
                yield
            finally:
                self._status = None
