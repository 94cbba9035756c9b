"""The steps of a run: named, timed, and told to whoever watches."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from evermat.pipeline.problems import naming

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class Step:
    """A step that has begun.

    Attributes:
        note: what came of it, in a few words.
    """

    name: str
    note: str = ""
    seconds: float = 0.0


class Watcher(Protocol):
    """Is told how a run is getting on."""

    def begin(self, step: Step) -> None:
        """A step begins."""

    def end(self, step: Step) -> None:
        """A step is done; its note and its time are known."""

    def fail(self, step: Step) -> None:
        """A step has failed."""

    def tell(self, news: str) -> None:
        """Something happened within a step."""


class Silent:
    """Watches without a word."""

    def begin(self, step: Step) -> None:
        """Say nothing."""

    def end(self, step: Step) -> None:
        """Say nothing."""

    def fail(self, step: Step) -> None:
        """Say nothing."""

    def tell(self, news: str) -> None:
        """Say nothing."""


@dataclass(slots=True)
class Steps:
    """All steps of a run, in order."""

    watcher: Watcher
    done: list[Step] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Carry out a step; an error in it carries its name."""
        step = Step(name)
        start = perf_counter()
        self.watcher.begin(step)
        self.done.append(step)
        try:
            with naming(name):
                yield step
        except BaseException:
            step.seconds = perf_counter() - start
            self.watcher.fail(step)
            raise
        step.seconds = perf_counter() - start
        self.watcher.end(step)
