"""Transactions, calls that take turns, and the update that can be undone.

Calls for which there is not enough memory.

Calls that take turns and are not broken off in the middle.

Even a query may leave its mark on an engine while it is answered: indexes are built,
and what is below a `not` is worked out in a transaction that is rolled back. So calls
from several threads wait for each other, and signals wait until a call is done or can
be undone (`evermat.runtime.interrupts`).

The update that can be undone, and the request that undoes it.

Several changes as one: collected first, applied together, or not at all.
"""

from __future__ import annotations

import math
import re
from contextlib import contextmanager
from enum import Enum
from functools import wraps
from threading import Lock
from typing import (
    TYPE_CHECKING,
    ClassVar,
    Concatenate,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
)
from weakref import ref

from evermat.errors import EvermatError
from evermat.kb.inputs import listed
from evermat.kb.requests import Request
from evermat.lang.syntax import rule_key
from evermat.maintenance.limits import resident_memory
from evermat.runtime.interrupts import came_in_time, deferred

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from types import TracebackType

    from evermat.kb.inputs import RuleInput
    from evermat.lang.syntax import Rule
    from evermat.results.change import Change


_IN_WORDS = re.compile(r"of size (\d+)")
"""How Arrow says what it has not got."""


class OutOfMemoryError(EvermatError, MemoryError):
    """A call that needs more memory than there is; everything is as it was before.

    Attributes:
        needed: bytes that could not be had in one piece, if that is known.
        held: bytes that the process held when it failed.
    """

    code: ClassVar[str] = "EM611"

    def __init__(self, needed: int | None, held: int) -> None:
        self.needed = needed
        self.held = held
        piece = "more" if needed is None else f"{_amount(needed)} more in one piece"
        super().__init__(
            f"there is not enough memory: {piece} would be needed, where the process "
            f"holds {_amount(held)}",
            reason="what does not fit changes nothing",
            help="allow the process more memory, divide the update, or limit what "
            "rules derive with a budget (`memory_bytes`)",
        )


@contextmanager
def out_of_memory() -> Iterator[None]:
    """Raise an `OutOfMemoryError` for a lack of memory in the block."""
    try:
        yield
    except EvermatError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(_needed(error), resident_memory()) from error


def _needed(error: MemoryError) -> int | None:
    """The bytes of the array that could not be made."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is not None and dtype is not None:
        return int(math.prod(shape) * dtype.itemsize)
    found = _IN_WORDS.search(str(error))
    return int(found[1]) if found else None


def _amount(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:  # noqa: PLR2004  what units are apart
            return f"{size:,.0f} {unit}"
        size /= 1024
    return f"{size:,.1f} GiB"


# ------------------------------------------------------------------------------ locking


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
            reason="a knowledge base that may be half changed answers nothing",
            help=way_out,
        )


class Serialised(Protocol):
    """An object with methods that wait for each other."""

    @property
    def turn(self) -> AbstractContextManager[object]:
        """A lock that the thread which holds it can take again."""

    def _require_intact(self) -> None:
        """Refuse calls after an update that could neither be ended nor undone."""

    def _recover(self) -> None:
        """Rebuild what an unforeseen error may have left half built."""


Locked = TypeVar("Locked", bound=Serialised)


def serialised(
    method: Callable[Concatenate[Locked, Arguments], Answer],
) -> Callable[Concatenate[Locked, Arguments], Answer]:
    """A method that begins when those of other threads have ended."""

    @wraps(method)
    def call(
        self: Locked, /, *args: Arguments.args, **kwargs: Arguments.kwargs
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


# --------------------------------------------------------------------------------- undo


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
            reason="the last update of this knowledge base can be undone, if it "
            f"changed at most {MOST_FACTS:,} explicit facts",
            help="make the opposite update; a state keeps its older versions, see "
            "`evermat store restore`",
        )


def inverse(
    change: Change, before: Iterable[Rule] = (), after: Iterable[Rule] = ()
) -> Request:
    """The request that undoes an update, given the rules before and after it."""
    inserted, deleted = change.explicit_sizes
    return Request(
        insert={name: [change.deleted(name)] for name in deleted},
        delete={name: [change.inserted(name)] for name in inserted},
        add_rules=[*missing_rules(before, after)],
        remove_rules=[*missing_rules(after, before)],
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
        self._inverse, self._is_too_large = None, False
        if change.explicit_size > MOST_FACTS:
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


def missing_rules(some: Iterable[Rule], others: Iterable[Rule]) -> list[Rule]:
    """The rules that are not among others, whatever their variables are called."""
    known = {rule_key(rule) for rule in others}
    return [rule for rule in some if rule_key(rule) not in known]


# -------------------------------------------------------------------------- transaction


class TransactionError(EvermatError, RuntimeError):
    """A transaction used before it began, after it ended, or inside another."""

    code: ClassVar[str] = "EM553"


class _Stage(Enum):
    WAITING = "has not begun"
    OPEN = "is open"
    COMMITTING = "is being committed"
    COMMITTED = "has been committed"
    ROLLED_BACK = "has been rolled back"


class Slot:
    """The place for the one transaction that a knowledge base may have open.

    It is free again when the transaction has ended, or is garbage: an
    interrupt may come before a `with` block is entered.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._last: ref[Transaction] | None = None

    def require_free(self) -> None:
        """Refuse work that would get between the steps of an open transaction."""
        last = None if self._last is None else self._last()
        if last is not None and last.is_under_way:
            raise _is_open()

    def take(self, transaction: Transaction) -> None:
        """Begin a transaction; of several threads that try, one does."""
        with self._lock:
            self.require_free()
            self._last = ref(transaction)
            transaction.open()


def _is_open() -> TransactionError:
    return TransactionError(
        "a transaction is open",
        reason="a knowledge base has at most one transaction at a time, and changes "
        "only through it while it is open",
        help="use the open transaction, or end it first: by leaving its `with` block, "
        "or with `rollback()`",
    )


class Transaction:
    """Collects changes; leaving the `with` block applies them as one update.

    Deletions are applied before insertions, in whatever order they were asked for, so
    that a fact which is deleted and inserted stays. An exception inside the block, or
    one raised by the update itself, leaves the knowledge base as it was.

    Attributes:
        change: what the update changed, once it is committed.

    >>> import evermat
    >>> kb = evermat.KnowledgeBase("reach(?x, ?y) :- edge(?x, ?y) .")
    >>> with kb.transaction() as tx:
    ...     tx.insert("edge", [("a", "b")])
    ...     tx.add_rules("reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) .")
    >>> tx.change
    <Change edge +1, reach +1>
    """

    def __init__(self, slot: Slot, apply: Callable[[Request], Change]) -> None:
        """Prepare a transaction; `kb.transaction()` is the way to get one.

        Args:
            slot: is taken while the transaction is open.
            apply: carries out what was asked for.
        """
        self._slot = slot
        self._apply = apply
        self._stage = _Stage.WAITING
        self._request = Request()
        self._change: Change | None = None

    def __repr__(self) -> str:
        return f"<Transaction that {self._stage.value}>"

    @property
    def change(self) -> Change:
        """What the committed update changed."""
        if self._change is None:
            raise TransactionError(
                f"there is no change: the transaction {self._stage.value}",
                help="read `change` after the `with` block",
            )
        return self._change

    def insert(self, predicate: str, rows: object) -> None:
        """Ask for facts to be inserted."""
        self._require_open()
        self._request.insert.setdefault(predicate, []).append(rows)

    def replace(self, predicate: str, rows: object) -> None:
        """Ask for rows to be all that is explicit of a predicate."""
        self._require_open()
        self._request.replace.setdefault(predicate, []).append(rows)

    def delete(self, predicate: str, rows: object) -> None:
        """Ask for explicit facts to be deleted."""
        self._require_open()
        self._request.delete.setdefault(predicate, []).append(rows)

    def add_rules(self, rules: RuleInput | Iterable[RuleInput]) -> None:
        """Ask for rules to be added; facts among them are inserted."""
        self._require_open()
        self._request.add_rules.extend(listed(rules))

    def remove_rules(self, rules: RuleInput | Iterable[RuleInput]) -> None:
        """Ask for rules to be removed; facts among them are deleted."""
        self._require_open()
        self._request.remove_rules.extend(listed(rules))

    def commit(self) -> Change:
        """Apply everything now."""
        self._require_open()
        with deferred():
            self._stage = _Stage.COMMITTING
            try:
                self._change = self._apply(self._request)
                self._stage = _Stage.COMMITTED
            finally:
                # Whatever happens, it is over: a failed one has changed nothing.
                if self._stage is _Stage.COMMITTING:
                    self._stage = _Stage.ROLLED_BACK
            return self._change

    def rollback(self) -> None:
        """Forget everything that was asked for."""
        self._require_open()
        self._stage = _Stage.ROLLED_BACK

    @property
    def is_under_way(self) -> bool:
        """Whether the knowledge base must not be changed by others."""
        return self._stage in {_Stage.OPEN, _Stage.COMMITTING}

    def open(self) -> None:
        """Begin: called by the slot, which has one transaction at a time."""
        self._stage = _Stage.OPEN

    def __enter__(self) -> Self:
        if self._stage is not _Stage.WAITING:
            raise TransactionError(
                f"the transaction {self._stage.value} and cannot begin again",
                help="ask for a new one with `kb.transaction()`",
            )
        self._slot.take(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._stage is not _Stage.OPEN:
            return
        if kind is None:
            self.commit()
        else:
            self.rollback()

    def _require_open(self) -> None:
        if self._stage is not _Stage.OPEN:
            raise TransactionError(
                f"the transaction {self._stage.value}",
                help="use it inside `with kb.transaction() as tx:`",
            )
