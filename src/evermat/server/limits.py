"""Limits of requests: time, rows, memory, and bytes of the body."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING

from evermat.maintenance.limits import Budget, Watch, resident_memory
from evermat.server.errors import BusyError, ClientGoneError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.api import KnowledgeBase


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of every request.

    Attributes:
        seconds: from the arrival of a request to its answer.
        rows: of an answer, and of pages of facts.
        memory_bytes: by how much the process may grow during a query.
        instances: matches that a query may have.
        body_bytes: of a body.
    """

    seconds: float = 30.0
    rows: int = 100_000
    memory_bytes: int = 1 << 30
    instances: int = 200_000_000
    body_bytes: int = 64 << 20


class CostLimit:
    """The remaining time of a request, and whether its client is still connected.

    Attributes:
        gone: is set when the client has closed the connection.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.gone = Event()
        self._end = monotonic() + limits.seconds

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit of the request."""
        return max(0.0, self._end - monotonic())

    @contextmanager
    def turn(self, kb: KnowledgeBase) -> Iterator[None]:
        """Give this request exclusive use of a knowledge base, within limits."""
        if not kb.turn.acquire(timeout=self.seconds_left):
            raise self.busy()
        try:
            with kb.watched(_Watch(self)):
                yield
        finally:
            kb.turn.release()

    def busy(self) -> BusyError:
        """Return the error for a request whose time was up before its turn."""
        return BusyError(
            f"the turn of this request did not come within {self.limits.seconds:g} "
            "seconds",
            help="try again later",
        )


class _Watch(Watch):
    """Stops a query that exceeds a limit, or whose client has disconnected."""

    def __init__(self, cost_limit: CostLimit) -> None:
        limits = cost_limit.limits
        super().__init__(
            Budget(
                seconds=cost_limit.seconds_left,
                instances=limits.instances,
                memory_bytes=resident_memory() + limits.memory_bytes,
            )
        )
        self._gone = cost_limit.gone

    def working(self, label: str, matches: int) -> None:
        """Record matches, and stop if a limit is exceeded."""
        if self._gone.is_set():
            raise ClientGoneError("the client has closed the connection")
        super().working(label, matches)
