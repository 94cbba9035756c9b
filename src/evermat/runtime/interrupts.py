"""Signals that wait until nothing is half done.

Python runs the handlers of signals between any two instructions of the main thread, and
what a handler raises, such as `KeyboardInterrupt`, comes out there: in the middle of a
commit, of a rollback, or of a call into compiled code. No `finally` helps against that,
as it can be interrupted itself.

Inside `deferred()`, handlers run when the signal comes, as ever, but what they raise is
kept until the work reaches a point from which it can be undone (`check`), or is done.
So an update either happened or did not, whatever signals come. `allowed()` lets signals
through again inside of that, where data of users is read: that may take for ever, and
nothing has changed yet.
"""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from threading import current_thread, local, main_thread
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, TracebackType

    Handler = Callable[[int, FrameType | None], object]

_OTHERS = {"SIGKILL", "SIGSTOP", "SIGSEGV", "SIGFPE", "SIGBUS", "SIGILL"}
"""Signals that cannot be handled, or that tell of the instruction at work."""

_SIGNALS = tuple(
    sorted(
        int(each)
        for each in signal.valid_signals()
        if getattr(each, "name", "") not in _OTHERS
    )
)

# What the public function does beside this, for people who look at constants, takes
# twenty times as long, and every call of a knowledge base asks for all signals.
_handler_of: Callable[[int], object] = getattr(
    sys.modules.get("_signal"), "getsignal", signal.getsignal
)


class _Pending:
    """What handlers have raised; there is one main thread, so there is one of these.

    Attributes:
        depth: how many blocks wait for each other to end, 0 where signals get through.
        raised: what the first handler that raised something raised.
        is_answered: whether `check` has raised it already.
        masks: how many blocks there are in which `check` lets everything wait.
        is_sealed: whether it does so until further notice.
    """

    __slots__ = ("depth", "is_answered", "is_sealed", "masks", "raised")

    def __init__(self) -> None:
        self.depth = 0
        self.raised: BaseException | None = None
        self.is_answered = False
        self.masks = 0
        self.is_sealed = False


_pending = _Pending()


class _Timely(local):
    """What `check` or `allowed` raised in a thread, until the outermost block ends."""

    error: BaseException | None = None


_timely = _Timely()


class _Deferring:
    """Stands in for the handler of a signal."""

    __slots__ = ("handler",)

    def __init__(self, handler: Handler) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Run the handler; keep what it raises, unless nothing is under way."""
        if not _pending.depth:
            self.handler(number, frame)
            return
        try:
            self.handler(number, frame)
        except BaseException as error:  # noqa: BLE001  a handler may raise anything
            if _pending.raised is None:
                _pending.raised = error


def _replace_handlers() -> None:
    """Put our own handlers in the place of those that are Python functions.

    One that is ours already was left behind by a signal that came while handlers were
    put back; it has let signals through since.
    """
    for number in _SIGNALS:
        handler = _handler_of(number)
        if callable(handler) and not isinstance(handler, _Deferring):
            signal.signal(number, _Deferring(handler))


def _put_back_handlers() -> None:
    for number in _SIGNALS:
        handler = _handler_of(number)
        if isinstance(handler, _Deferring):
            signal.signal(number, handler.handler)


class deferred:  # noqa: N801  read like a function
    """A block that signals do not break off; see above.

    What a handler raised is raised by `check`, or when the outermost block ends. Other
    threads than the main one run no handlers, and nothing is deferred for them.
    """

    __slots__ = ("_outer",)

    def __enter__(self) -> Self:
        self._outer = _pending.depth
        if current_thread() is not main_thread():
            return self
        if not self._outer:
            _pending.raised, _pending.is_answered = None, False
            _pending.masks, _pending.is_sealed = 0, False
            _replace_handlers()
        _pending.depth = self._outer + 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _timely.error = None
        if current_thread() is not main_thread():
            return
        # From here on signals get through, and what they raise comes out of here.
        _pending.depth = self._outer
        if self._outer:
            return
        raised = _pending.raised
        _pending.raised = None
        _put_back_handlers()
        if raised is not None and raised is not error:
            raise raised


class allowed:  # noqa: N801  read like a function
    """Inside of `deferred()`, a block that signals may break off, as other errors may.

    Nothing that matters may be changed in it. A signal may come before the end of the
    block is noted, so the block outside of it does not rely on that.
    """

    __slots__ = ("_outer",)

    def __enter__(self) -> Self:
        check()
        self._outer = _pending.depth
        if current_thread() is main_thread():
            _pending.depth = 0
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if current_thread() is main_thread():
            _pending.depth = self._outer
        _timely.error = error


def check() -> None:
    """Raise what a handler raised, at a point from which the work can be undone.

    It costs next to nothing, and is called between blocks of rows, so that an interrupt
    is answered soon.
    """
    if _pending.raised is None:
        return
    if _pending.is_answered or not _pending.depth:
        return
    if _pending.masks or _pending.is_sealed:
        return
    if current_thread() is main_thread():
        _pending.is_answered = True
        _timely.error = _pending.raised
        raise _pending.raised


def came_in_time(error: BaseException) -> bool:
    """Whether an error came from `check` or `allowed`: nothing can be half done."""
    return error is _timely.error


@contextmanager
def masked() -> Iterator[None]:
    """A block that is carried through to its end: `check` lets everything wait."""
    _pending.masks += 1
    try:
        yield
    finally:
        _pending.masks -= 1


def seal() -> None:
    """Let everything wait from now on: what is done cannot be undone any more."""
    _pending.is_sealed = current_thread() is main_thread()


def unseal() -> None:
    """Let `check` raise again what handlers raise."""
    _pending.is_sealed = False
