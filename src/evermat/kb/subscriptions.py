"""Subscriptions: whoever wants to know of changes is called after each commit.

Notifications are delivered in the order of the updates, one after the other, also where
a callback makes an update itself. A callback that fails is logged and undoes nothing:
the update has happened.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from evermat.results.change import Change

    Callback = Callable[[Change], object]

_LOG = logging.getLogger("evermat")


class Subscriptions:
    """The subscriptions to one knowledge base."""

    def __init__(self) -> None:
        self._all: list[Subscription] = []
        self._waiting: deque[Change] = deque()
        self._is_delivering = False

    def add(self, predicate: str | None, callback: Callback | None) -> Subscription:
        """Subscribe to changes of a predicate, or to all changes."""
        subscription = Subscription(self, predicate, callback)
        self._all.append(subscription)
        return subscription

    def remove(self, subscription: Subscription) -> None:
        """Notify a subscription no longer."""
        if subscription in self._all:
            self._all.remove(subscription)

    def notify(self, change: Change) -> None:
        """Deliver a change to all who subscribed to one of its predicates."""
        if not self._all:
            return
        self._waiting.append(change)
        if self._is_delivering:
            return  # by a callback: its caller delivers what waits
        self._is_delivering = True
        try:
            while self._waiting:
                waiting = self._waiting.popleft()
                for subscription in tuple(self._all):
                    subscription.deliver(waiting)
        finally:
            self._is_delivering = False


class Subscription:
    """Changes of a predicate, delivered to a callback or to `async for`.

    Leaving its `with` block, or `cancel()`, ends it.

    Attributes:
        predicate: the predicate; None stands for all of them.
    """

    def __init__(
        self,
        subscriptions: Subscriptions,
        predicate: str | None,
        callback: Callback | None,
    ) -> None:
        self.predicate = predicate
        self._subscriptions = subscriptions
        self._callback = callback
        self._waiting: deque[Change] = deque()
        self._awaited: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """End the subscription; changes that were not read yet can still be read."""
        self._is_cancelled = True
        self._subscriptions.remove(self)
        self._wake_up()

    def deliver(self, change: Change) -> None:
        """Pass a change on, if it concerns the predicate."""
        if self.predicate is None:
            if change.is_empty():
                return
        elif self.predicate not in change.sizes:
            return
        if self._callback is None:
            self._waiting.append(change)
            self._wake_up()
            return
        try:
            self._callback(change)
        except Exception:  # noqa: BLE001  of users, and the update has happened
            _LOG.exception("a subscriber to `%s` failed", self.predicate or "all")

    def _wake_up(self) -> None:
        if self._awaited is not None:
            loop, event = self._awaited
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        event = asyncio.Event()
        self._awaited = (asyncio.get_running_loop(), event)
        try:
            while not self._waiting:
                if self._is_cancelled:
                    raise StopAsyncIteration
                event.clear()
                if not self._waiting and not self._is_cancelled:
                    await event.wait()
            return self._waiting.popleft()
        finally:
            self._awaited = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cancel()
