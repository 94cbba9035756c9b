"""Deferral of signals until nothing is half done.

Python runs signal handlers between any two instructions of the main thread, and an
exception of a handler, such as `KeyboardInterrupt`, is raised there: in the middle of a
commit, of a rollback, or of a call into compiled code. No `finally` helps against that,
as it can be interrupted itself.

Inside `deferred()`, handlers run when the signal arrives, as always, but their
exceptions are kept until the work reaches a point from which it can be undone
(`check`), or is done. So an update either happened or did not, whatever signals arrive.
`allowed()` lets signals through again inside such a block, while users' data is read:
that may take forever, and nothing has changed yet.
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
"""Signals that cannot be handled, or that are caused by the current instruction."""

_SIGNALS = tuple(
    sorted(
        int(each)
        for each in signal.valid_signals()
        if getattr(each, "name", "") not in _OTHERS
    )
)

# The public function also converts the result to enum members, which takes twenty times
# as long, and every call of a knowledge base queries all signals.
_handler_of: Callable[[int], object] = getattr(
    sys.modules.get("_signal"), "getsignal", signal.getsignal
)


class _Pending:
    """Pending exceptions of handlers; a singleton, as there is one main thread.

    Attributes:
        depth: the nesting depth of deferring blocks; 0 where signals get through.
        raised: the exception of the first handler that raised one.
        is_answered: whether `check` has raised it already.
        masks: the number of blocks in which `check` defers everything.
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
    """The exception raised by `check` or `allowed` in a thread's outermost block."""

    error: BaseException | None = None


_timely = _Timely()


class _Deferring:
    """Replaces the handler of a signal."""

    __slots__ = ("handler",)

    def __init__(self, handler: Handler) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Run the handler; keep its exception if a block is deferring."""
        if not _pending.depth:
            self.handler(number, frame)
            return
        try:
            self.handler(number, frame)
        except BaseException as error:  # noqa: BLE001  a handler may raise anything
            if _pending.raised is None:
                _pending.raised = error


def _replace_handlers() -> None:
    """Wrap the handlers that are Python functions.

    A handler that is already wrapped was left behind when a signal interrupted the
    restoring of handlers; it has let signals through since.
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
    """A block that signals do not interrupt; see the module's docstring.

    The exception of a handler is raised by `check`, or at the end of the outermost
    block. Threads other than the main one run no handlers, and nothing is deferred for
    them.
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
        # From here on signals get through, and their exceptions are raised here.
        _pending.depth = self._outer
        if self._outer:
            return
        raised = _pending.raised
        _pending.raised = None
        _put_back_handlers()
        if raised is not None and raised is not error:
            raise raised


class allowed:  # noqa: N801  read like a function
    """A block inside `deferred()` that signals may interrupt, as other errors may.

    Nothing that matters may be changed in it. A signal may arrive before the end of the
    block is recorded, so the enclosing block does not rely on that.
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
    """Raise the exception of a handler, at a point from which the work can be undone.

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
    """Return whether an error came from `check` or `allowed`: nothing is half done."""
    return error is _timely.error


@contextmanager
def masked() -> Iterator[None]:
    """Defer everything in a block that must be completed, even in `check`."""
    _pending.masks += 1
    try:
        yield
    finally:
        _pending.masks -= 1


def seal() -> None:
    """Defer everything from now on, because the work can no longer be undone."""
    _pending.is_sealed = current_thread() is main_thread()


def unseal() -> None:
    """Let `check` raise the exceptions of handlers again."""
    _pending.is_sealed = False
