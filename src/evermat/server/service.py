"""The service of a server: a knowledge base, its versions, and the work of requests."""

from __future__ import annotations

from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from evermat.runtime.input_limits import allowing_none
from evermat.server.errors import VersionConflictError
from evermat.server.history import History
from evermat.server.limits import Limits
from evermat.server.metrics import Metrics
from evermat.server.replicas import Replicas, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

    from evermat.api import KnowledgeBase
    from evermat.results.change import Change
    from evermat.server.limits import CostLimit
    from evermat.server.replicas import View

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Updated:
    """An update that was made, and its version."""

    version: int
    changes: tuple[Change, ...]


class Service:
    """A knowledge base with many readers and some writers.

    Attributes:
        name: its name.
        limits: the limits of requests.
        history: the versions.
        metrics: the metrics.
    """

    def __init__(
        self, kb: KnowledgeBase, *, name: str = "evermat", limits: Limits | None = None
    ) -> None:
        first = kb.version or 0
        self.name = name
        self.limits = limits or Limits()
        self.state = kb.state
        self.started = datetime.now(UTC)
        self.history = History(kb.state, first)
        self.replicas = Replicas(kb, first)
        self.metrics = Metrics(self.replicas)
        self._listeners: list[Callable[[], object]] = []

    # ------------------------------------------------------------------ reading

    def reading(self) -> AbstractContextManager[View]:
        """Return a view of the facts that does not change in a block."""
        return self.replicas.reading()

    # ----------------------------------------------------------------- changing

    def plan(
        self, work: Callable[[KnowledgeBase], Answer], cost_limit: CostLimit
    ) -> Answer:
        """Do work that changes nothing in the end, such as a dry run."""

        def carried_out(kb: KnowledgeBase) -> Answer:
            with allowing_none():
                return work(kb)

        return _awaited(self.replicas.plan(carried_out), cost_limit)

    def update(
        self,
        arguments: Callable[[KnowledgeBase], Mapping[str, object]],
        cost_limit: CostLimit,
        *,
        title: str = "",
        expected: int | None = None,
        restored: int | None = None,
    ) -> Updated:
        """Make an update.

        Args:
            arguments: returns the arguments of `kb.update`.
            cost_limit: the time that the request may wait for its turn.
            title: the title of the update in the list of versions.
            expected: the version that it is for; None if it is for any.
            restored: the version that it restores, if it does.
        """

        def work(kb: KnowledgeBase) -> list[Step]:
            before = kb.rules
            asked: Any = arguments(kb)
            change = kb.update(**asked)
            return [Step(change, before, kb.rules, asked.get("add_rules"))]

        return self.change(
            work, cost_limit, title=title, expected=expected, restored=restored
        )

    def change(
        self,
        work: Callable[[KnowledgeBase], Sequence[Step]],
        cost_limit: CostLimit,
        *,
        title: str = "",
        expected: int | None = None,
        restored: int | None = None,
    ) -> Updated:
        """Make an update in one or several steps."""

        def checked(kb: KnowledgeBase) -> Sequence[Step]:
            if expected not in (None, self.history.latest):
                raise VersionConflictError(
                    f"the facts are at version {self.history.latest}, "
                    f"and the update is for version {expected}",
                    help="look at what has changed since, and send it again",
                )
            with allowing_none():
                return work(kb)

        def note(kb: KnowledgeBase, step: Step) -> int:
            return self.history.note(kb, step, title, restored)

        version, steps = _awaited(self.replicas.change(checked, note), cost_limit)
        for each in tuple(self._listeners):
            each()
        return Updated(version, tuple(step.change for step in steps))

    def close(self) -> None:
        """Finish the running updates."""
        self.replicas.close()

    # ---------------------------------------------------------------- listening

    def listen(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call a function after each update, until the returned one is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)


def _awaited(future: Future[Answer], cost_limit: CostLimit) -> Answer:
    """Wait for a result, if its turn comes in time; work that has begun is finished."""
    try:
        return future.result(cost_limit.seconds_left)
    except FutureTimeoutError:
        if future.cancel():
            raise cost_limit.busy() from None
        return future.result()
