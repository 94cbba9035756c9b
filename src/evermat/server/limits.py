"""What a request may use: time, rows, memory, and bytes of its body."""

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
    """What every request may use.

    Attributes:
        seconds: from the arrival of a request to its answer.
        rows: of an answer, and of pages of facts.
        memory_bytes: by how much the process may grow while a query is answered.
        instances: matches that a query may look at.
        body_bytes: of a body.
    """

    seconds: float = 30.0
    rows: int = 100_000
    memory_bytes: int = 1 << 30
    instances: int = 200_000_000
    body_bytes: int = 64 << 20


class CostLimit:
    """The time that a request has left, and whether anybody still waits for it.

    Attributes:
        gone: is set when the client has closed the connection.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.gone = Event()
        self._end = monotonic() + limits.seconds

    @property
    def seconds_left(self) -> float:
        """Seconds until the request has used up its time."""
        return max(0.0, self._end - monotonic())

    @contextmanager
    def turn(self, kb: KnowledgeBase) -> Iterator[None]:
        """A block in which this request alone asks a knowledge base, within limits."""
        if not kb.turn.acquire(timeout=self.seconds_left):
            raise self.busy()
        try:
            with kb.watched(_Watch(self)):
                yield
        finally:
            kb.turn.release()

    def busy(self) -> BusyError:
        """The error for a request whose time was up before its turn came."""
        return BusyError(
            f"the turn of this request did not come within {self.limits.seconds:g} "
            "seconds",
            help="try again later",
        )


class _Watch(Watch):
    """Stops a query that passes a limit, or that nobody waits for any more."""

    def __init__(self, patience: CostLimit) -> None:
        limits = patience.limits
        super().__init__(
            Budget(
                seconds=patience.seconds_left,
                instances=limits.instances,
                memory_bytes=resident_memory() + limits.memory_bytes,
            )
        )
        self._gone = patience.gone

    def working(self, label: str, matches: int) -> None:
        """Take note of matches, and stop if a limit is passed."""
        if self._gone.is_set():
            raise ClientGoneError("the client has closed the connection")
        super().working(label, matches)
