"""What a server serves: a knowledge base, its versions, and the work of requests."""

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
    """An update that was made, and the version that it made."""

    version: int
    changes: tuple[Change, ...]


class Service:
    """A knowledge base that many ask and some change.

    Attributes:
        name: what it is called.
        limits: what a request may use.
        history: the versions.
        metrics: what is counted.
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
        """A view of the facts that stays as it is until the block ends."""
        return self.replicas.reading()

    # ----------------------------------------------------------------- changing

    def plan(
        self, work: Callable[[KnowledgeBase], Answer], patience: CostLimit
    ) -> Answer:
        """Work that leaves everything as it is, such as a dry run."""

        def carried_out(kb: KnowledgeBase) -> Answer:
            with allowing_none():
                return work(kb)

        return _awaited(self.replicas.plan(carried_out), patience)

    def update(
        self,
        arguments: Callable[[KnowledgeBase], Mapping[str, object]],
        patience: CostLimit,
        *,
        title: str = "",
        expected: int | None = None,
        restored: int | None = None,
    ) -> Updated:
        """Make an update.

        Args:
            arguments: gives what is asked of `kb.update`.
            patience: the time that the request has to wait for its turn.
            title: what the update is called in the list of versions.
            expected: the version that it is for; None if it is for any.
            restored: the version that it goes back to, if it does.
        """

        def work(kb: KnowledgeBase) -> list[Step]:
            before = kb.rules
            asked: Any = arguments(kb)
            change = kb.update(**asked)
            return [Step(change, before, kb.rules, asked.get("add_rules"))]

        return self.change(
            work, patience, title=title, expected=expected, restored=restored
        )

    def change(
        self,
        work: Callable[[KnowledgeBase], Sequence[Step]],
        patience: CostLimit,
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

        version, steps = _awaited(self.replicas.change(checked, note), patience)
        for each in tuple(self._listeners):
            each()
        return Updated(version, tuple(step.change for step in steps))

    def close(self) -> None:
        """Finish what is under way."""
        self.replicas.close()

    # ---------------------------------------------------------------- listening

    def listen(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Have a function called after each update; call what is returned to end it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)


def _awaited(future: Future[Answer], patience: CostLimit) -> Answer:
    """What a future brings, if its turn comes in time; work that began is finished."""
    try:
        return future.result(patience.seconds_left)
    except FutureTimeoutError:
        if future.cancel():
            raise patience.busy() from None
        return future.result()
