"""The update that can be undone, and the request that undoes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError
from evermat.kb.requests import Request
from evermat.lang.normalise import rule_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from evermat.lang.syntax import Rule
    from evermat.results.change import Change

MOST_FACTS = 1_000_000
"""The facts of larger updates are not remembered: they may need much memory."""


class NothingToUndoError(EvermatError, RuntimeError):
    """There is no update that could be undone."""

    code: ClassVar[str] = "EM566"

    def __init__(self, *, is_too_large: bool) -> None:
        super().__init__(
            "the last update is too large to be undone"
            if is_too_large
            else "there is no update to undo",
            law="the last update of this knowledge base can be undone, if it changed "
            f"at most {MOST_FACTS:,} explicit facts",
            help="make the opposite update; a state keeps its older versions, see "
            "`evermat store restore`",
        )


def inverse(
    change: Change, before: Iterable[Rule] = (), after: Iterable[Rule] = ()
) -> Request:
    """The request that undoes an update, given the rules before and after it."""
    given, withdrawn = change.explicit_sizes
    return Request(
        insert={name: [change.withdrawn(name)] for name in withdrawn},
        delete={name: [change.given(name)] for name in given},
        add_rules=[*_missing(before, after)],
        remove_rules=[*_missing(after, before)],
    )


class Undoing:
    """Remembers the last update."""

    def __init__(self) -> None:
        self._inverse: Callable[[], Request] | None = None
        self._is_too_large = False

    def note(
        self, change: Change, before: Iterable[Rule], after: Iterable[Rule]
    ) -> None:
        """Remember an update, with the rules before and after it."""
        self.forget()
        given, withdrawn = change.explicit_sizes
        if sum(given.values()) + sum(withdrawn.values()) > MOST_FACTS:
            self._is_too_large = True
            return
        self._inverse = lambda: inverse(change, before, after)

    def last(self) -> Request:
        """The request that undoes the last update.

        Raises:
            NothingToUndoError: there is none, or it is too large.
        """
        if self._inverse is None:
            raise NothingToUndoError(is_too_large=self._is_too_large)
        return self._inverse()

    def forget(self) -> None:
        """There is nothing to undo any more."""
        self._inverse, self._is_too_large = None, False


def _missing(some: Iterable[Rule], others: Iterable[Rule]) -> list[Rule]:
    """The rules that are not among others, whatever their variables are called."""
    known = {rule_key(rule) for rule in others}
    return [rule for rule in some if rule_key(rule) not in known]
