"""A feed of changes: server-sent events, one for each version.

A client that was disconnected continues where it was: it names the last version that it
knows, in the header `Last-Event-ID`, as browsers do automatically, or as `since`.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import anyio.to_thread

from evermat.errors import EvermatError
from evermat.server.endpoints import difference_document
from evermat.server.errors import BusyError, document_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from evermat.server.history import Difference
    from evermat.server.service import Service

MOST_READERS = 500
_QUIET = 15.0
"""Seconds after which a comment is sent to keep the connection open."""


class Feed:
    """Sends changes to all clients that follow them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._readers = 0

    def open(self, since: int | None, predicate: str | None) -> AsyncIterator[bytes]:
        """Return the events after a version, by default the current one.

        Raises:
            EvermatError: there is no such version, or it is too old; there is no such
                predicate; or there are too many followers.
        """
        service = self._service
        if self._readers >= MOST_READERS:
            raise BusyError(f"{MOST_READERS} clients follow the changes already")
        if predicate is not None:
            with service.reading() as view:
                view.kb.catalogue.require(predicate)
        version = service.replicas.version if since is None else since
        found = service.history.since(version)
        first = next(found, None)  # raises what is wrong with the version
        del first
        return self._events(version, predicate)

    async def _events(
        self, version: int, predicate: str | None
    ) -> AsyncIterator[bytes]:
        woken = asyncio.Event()
        loop = asyncio.get_running_loop()
        forget = self._service.listen(lambda: loop.call_soon_threadsafe(woken.set))
        self._readers += 1
        self._service.metrics.subscribers.inc()
        try:
            yield f"retry: 2000\nid: {version}\nevent: hello\ndata: {{}}\n\n".encode()
            while True:
                woken.clear()
                for each in await anyio.to_thread.run_sync(self._after, version):
                    version = each.number
                    yield _event(each, predicate)
                try:
                    await asyncio.wait_for(woken.wait(), _QUIET)
                except TimeoutError:
                    yield b": still here\n\n"
        except EvermatError as error:
            data = json.dumps(document_of(error))
            yield f"event: gone\ndata: {data}\n\n".encode()
        finally:
            forget()
            self._readers -= 1
            self._service.metrics.subscribers.dec()

    def _after(self, version: int) -> list[Difference]:
        return list(self._service.history.since(version))


def _event(difference: Difference, predicate: str | None) -> bytes:
    """Return a change as an event, which is empty for other predicates."""
    document = difference_document(difference, predicate=predicate)
    is_of_interest = predicate is None or document["added"] or document["removed"]
    data = json.dumps(document, ensure_ascii=False)
    name = "change" if is_of_interest else "other"
    data = data if is_of_interest else "{}"
    return f"id: {difference.number}\nevent: {name}\ndata: {data}\n\n".encode()
