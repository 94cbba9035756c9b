"""Counts and durations for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from evermat.maintenance.limits import resident_memory

if TYPE_CHECKING:
    from evermat.server.replicas import Replicas

MEDIA_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """The metrics of a server.

    Attributes:
        requests: by path, method and status.
        seconds: from the arrival of a request to its answer, by path.
        changed: facts that updates added and removed.
    """

    def __init__(self, replicas: Replicas) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "evermat_requests",
            "Requests that were answered",
            ["path", "method", "status"],
            registry=self._registry,
        )
        self.seconds = Histogram(
            "evermat_request_seconds",
            "Time to the answer",
            ["path"],
            registry=self._registry,
        )
        self.changed = Counter(
            "evermat_changed_facts",
            "Facts that updates added and removed",
            ["sign"],
            registry=self._registry,
        )
        self.facts = Gauge(
            "evermat_facts", "Facts that hold", ["predicate"], registry=self._registry
        )
        self.subscribers = Gauge(
            "evermat_subscribers", "Readers of the feed", registry=self._registry
        )
        version = Gauge(
            "evermat_version", "Version of the facts", registry=self._registry
        )
        version.set_function(lambda: replicas.version)
        writable = Gauge(
            "evermat_writable", "Whether updates are possible", registry=self._registry
        )
        writable.set_function(lambda: replicas.is_writable)
        memory = Gauge(
            "evermat_resident_memory_bytes",
            "Memory of the process",
            registry=self._registry,
        )
        memory.set_function(resident_memory)

    def text(self, sizes: dict[str, int]) -> bytes:
        """Return the page that Prometheus reads, with the sizes of predicates."""
        self.facts.clear()
        for name, size in sizes.items():
            self.facts.labels(name).set(size)
        return generate_latest(self._registry)
