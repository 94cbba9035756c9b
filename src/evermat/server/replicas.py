"""Two copies of a knowledge base, so that readers never wait for an update.

A knowledge base answers one call at a time, and an update is one call. So there are two
of them with the same facts. Between updates, all readers use the second one:

1. the first is updated, and its state, if it has one, is written; readers continue with
   the second, which has the previous version;
2. from then on readers are directed to the first, which has the new version: the update
   is done, and the caller is notified;
3. when the last reader has left the second, it gets the same change, and readers return
   to it.

A reader keeps the copy that it began with until it is done, and a copy is never changed
while it is read. So a request reads one version, however many queries it makes, and a
caller that was notified of an update sees it. The price is twice the memory, and twice
the work of an update.

All updates are made by one thread, in the order of their arrival.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, Semaphore
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from evermat.kb.transaction import TornError, missing_rules
from evermat.server.errors import BusyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from evermat.api import KnowledgeBase
    from evermat.lang.syntax import Program, Rule
    from evermat.results.change import Change

_LOG = logging.getLogger("evermat.server")
_MOST_WAITING = 64
"""Updates that may wait for their turn; more are rejected at once."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Step:
    """A change that was made, in a form that can be repeated.

    Attributes:
        change: the changes of facts.
        before: the rules before it.
        after: the rules after it.
        added: what was added to the program, declarations included.
    """

    change: Change
    before: tuple[Rule, ...] = ()
    after: tuple[Rule, ...] = ()
    added: Program | list[Rule] | None = None

    def repeat(self, kb: KnowledgeBase) -> Change:
        """Make the same change to another knowledge base."""
        inserted, deleted = self.change.explicit_sizes
        return kb.update(
            insert={name: self.change.inserted(name) for name in inserted},
            delete={name: self.change.deleted(name) for name in deleted},
            add_rules=self.added,
            remove_rules=missing_rules(self.before, self.after),
        )


class View(NamedTuple):
    """A knowledge base that does not change while it is read, and its version."""

    kb: KnowledgeBase
    version: int


@dataclass(slots=True, eq=False)
class _Copy:
    """A copy of the knowledge base, and the number of requests that read it."""

    kb: KnowledgeBase
    readers: int = 0


@dataclass(slots=True, eq=False)
class _Published:
    """The copy and the version for new readers."""

    copy: _Copy
    version: int
    changed: Condition = field(default_factory=Condition)


class Replicas:
    """A knowledge base that one thread changes while many others read it.

    Args:
        kb: the knowledge base; from now on it is changed through this object only.
        version: its version.
    """

    def __init__(self, kb: KnowledgeBase, version: int) -> None:
        self._first = _Copy(kb)
        self._second: _Copy | None = _Copy(kb.copy())
        self._published = _Published(self._second, version)
        self._is_intact = True
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="evermat-writer")
        self._places = Semaphore(_MOST_WAITING)

    @property
    def version(self) -> int:
        """The version for new readers."""
        return self._published.version

    @property
    def is_writable(self) -> bool:
        """Whether updates are possible: none was interrupted half done."""
        return self._is_intact

    @contextmanager
    def reading(self) -> Iterator[View]:
        """Yield a view that does not change in the block."""
        with self._published.changed:
            copy, version = self._published.copy, self._published.version
            copy.readers += 1
        try:
            yield View(copy.kb, version)
        finally:
            with self._published.changed:
                copy.readers -= 1
                self._published.changed.notify_all()

    # ----------------------------------------------------------------- changes

    def plan(self, work: Callable[[KnowledgeBase], Answer]) -> Future[Answer]:
        """Do work that changes nothing in the end, without blocking readers."""

        def carried_out() -> Answer:
            self._return_readers()
            return work(self._first.kb)

        return self._submit(carried_out)

    def change(
        self,
        work: Callable[[KnowledgeBase], Sequence[Step]],
        note: Callable[[KnowledgeBase, Step], int],
    ) -> Future[tuple[int, Sequence[Step]]]:
        """Make an update; the result is available when readers can see the update.

        Args:
            work: makes the update, in steps.
            note: receives each step, and returns its version.
        """
        done: Future[tuple[int, Sequence[Step]]] = Future()

        def carried_out() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                self._return_readers()
                steps = work(self._first.kb)
                version = self._published.version
                for each in steps:
                    version = note(self._first.kb, each)
                self._publish(self._first, version)
            except BaseException as error:  # noqa: BLE001  passed on to the caller
                self._look_at_damage()
                done.set_exception(error)
                return
            done.set_result((version, steps))
            self._repeat(steps)

        self._submit(carried_out)
        return done

    def close(self) -> None:
        """Finish the running updates, and accept no others."""
        self._writer.shutdown(wait=True, cancel_futures=True)

    def _look_at_damage(self) -> None:
        """Check after a failed update whether the knowledge base is intact."""
        try:
            self._first.kb.stats()
        except TornError:
            self._is_intact = False

    def _submit(self, work: Callable[[], Answer]) -> Future[Answer]:
        if not self._places.acquire(blocking=False):
            raise BusyError(
                f"{_MOST_WAITING} updates are waiting already",
                help="try again later, or put several changes into one update",
            )
        future = self._writer.submit(work)
        future.add_done_callback(lambda _: self._places.release())
        return future

    def _publish(self, copy: _Copy, version: int) -> None:
        """Direct new readers to a copy."""
        with self._published.changed:
            self._published.copy, self._published.version = copy, version

    def _drain(self, copy: _Copy) -> None:
        """Wait until a copy has no readers."""
        with self._published.changed:
            self._published.changed.wait_for(lambda: not copy.readers)

    def _return_readers(self) -> None:
        """Move readers away from the first copy, which is about to change."""
        if self._second is None:
            self._second = _Copy(self._first.kb.copy())
        self._publish(self._second, self._published.version)
        self._drain(self._first)

    def _repeat(self, steps: Sequence[Step]) -> None:
        """Repeat an update on the second copy; readers use the first one meanwhile."""
        copy = self._second
        if copy is None:
            return
        self._drain(copy)
        try:
            are_alike = all(_is_repeated(each, copy.kb) for each in steps)
        except Exception:  # noqa: BLE001  whatever it is, readers have the first copy
            _LOG.exception("an update could not be repeated")
            are_alike = False
        # If they differ, readers stay with the first; the next update copies it.
        self._second = copy if are_alike else None
        if are_alike:
            self._publish(copy, self._published.version)


def _is_repeated(step: Step, kb: KnowledgeBase) -> bool:
    """Repeat a change, and return whether it has the same effect."""
    return step.repeat(kb).explicit_sizes == step.change.explicit_sizes
