"""Calls that take turns and are not broken off in the middle.

Even a query may leave its mark on an engine while it is answered: indexes are built,
and what is below a `not` is worked out in a transaction that is rolled back. So calls
from several threads wait for each other, and signals wait until a call is done or can
be undone (`evermat.runtime.interrupts`).
"""

from __future__ import annotations

from functools import wraps
from typing import (
    TYPE_CHECKING,
    ClassVar,
    Concatenate,
    ParamSpec,
    Protocol,
    TypeVar,
)

from evermat.errors import EvermatError
from evermat.kb.out_of_memory import out_of_memory
from evermat.runtime.interrupts import came_in_time, deferred

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class TornError(EvermatError, RuntimeError):
    """A knowledge base with an update that could neither be ended nor undone."""

    code: ClassVar[str] = "EM612"

    def __init__(self, *, has_state: bool) -> None:
        way_out = (
            "open the state again; it has the update as a whole, or nothing of it"
            if has_state
            else "make the knowledge base again from its data"
        )
        super().__init__(
            "an update broke off where it could neither be ended nor undone",
            law="a knowledge base that may be half changed answers nothing",
            help=way_out,
        )


class TakesTurns(Protocol):
    """An object with methods that wait for each other."""

    @property
    def turn(self) -> AbstractContextManager[object]:
        """A lock that the thread which holds it can take again."""

    def _require_intact(self) -> None:
        """Refuse calls after an update that could neither be ended nor undone."""

    def _recover(self) -> None:
        """Put in order what an error that nobody foresaw may have left behind."""


Self = TypeVar("Self", bound=TakesTurns)


def in_turn(
    method: Callable[Concatenate[Self, Arguments], Answer],
) -> Callable[Concatenate[Self, Arguments], Answer]:
    """A method that begins when those of other threads have ended."""

    @wraps(method)
    def call(
        self: Self, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Answer:
        with self.turn, deferred(), out_of_memory():
            self._require_intact()
            try:
                return method(self, *args, **kwargs)
            except BaseException as error:
                if not isinstance(error, EvermatError) and not came_in_time(error):
                    self._recover()
                raise

    return call
