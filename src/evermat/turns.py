"""Calls from several threads that take turns.

Even a question may leave its mark on an engine while it is answered: indexes are built,
and what is below a `not` is worked out in a transaction that is rolled back.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class TakesTurns(Protocol):
    """An object with methods that wait for each other."""

    @property
    def turn(self) -> AbstractContextManager[object]:
        """A lock that the thread which holds it can take again."""


Self = TypeVar("Self", bound=TakesTurns)


def in_turn(
    method: Callable[Concatenate[Self, Arguments], Answer],
) -> Callable[Concatenate[Self, Arguments], Answer]:
    """A method that begins when those of other threads have ended."""

    @wraps(method)
    def call(
        self: Self, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Answer:
        with self.turn:
            return method(self, *args, **kwargs)

    return call
