"""A served knowledge base, asked without a network."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from time import sleep
from typing import TYPE_CHECKING

import uvicorn
from starlette.testclient import TestClient

from evermat import KnowledgeBase
from evermat.server.access import Access, access_for
from evermat.server.app import application
from evermat.server.service import Service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.server.limits import Limits

RULES = """
@prefix : <http://example.org/> .
@declare edge(from: string, to: string) .
reach(?x, ?y) :- edge(?x, ?y) .
reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
lonely(?x) :- person(?x), not reach(?x, _) .
"""


def paths(engine: str = "reference", state: str | None = None) -> KnowledgeBase:
    """Who is reached from whom: a to b to c, and two people."""
    kb = KnowledgeBase(RULES, engine=engine, state=state)
    kb.load({"edge": [("a", "b"), ("b", "c")], "person": [("a",), ("d",)]})
    return kb


@contextmanager
def client_of(
    kb: KnowledgeBase, *, access: Access | None = None, limits: Limits | None = None
) -> Iterator[TestClient]:
    """Asks a server of a knowledge base."""
    access = access or access_for("127.0.0.1", frozenset(), None)
    app = application(Service(kb, name="paths", limits=limits), access)
    with TestClient(
        app, base_url="http://localhost", raise_server_exceptions=False
    ) as client:
        yield client


@contextmanager
def running(kb: KnowledgeBase, name: str = "paths") -> Iterator[str]:
    """A server on loopback; gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    access = access_for("127.0.0.1", frozenset(), None)
    app = application(Service(kb, name=name), access)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        while not server.started:
            sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
