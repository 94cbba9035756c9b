"""Transactions, undo, serialised calls, and the error for a lack of memory.

Even a query changes an engine: it builds indexes, and evaluates the facts below a `not`
in a transaction that is rolled back. Calls from several threads therefore wait for each
other, and signals are delayed until a call is complete or can be undone
(`evermat.runtime.interrupts`).

A `Transaction` collects several changes and applies them together, or not at all.
`Undoing` stores the request that undoes the last update.
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
"""The size in Arrow's message about a failed allocation."""


class OutOfMemoryError(EvermatError, MemoryError):
    """A call needs more memory than is available; it has changed nothing.

    Attributes:
        needed: the size of the allocation that failed, in bytes, if known.
        held: the memory of the process at that time, in bytes.
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
    """Convert a lack of memory in the block to an `OutOfMemoryError`."""
    try:
        yield
    except EvermatError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(_needed(error), resident_memory()) from error


def _needed(error: MemoryError) -> int | None:
    """Return the size in bytes of the array that could not be allocated."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is not None and dtype is not None:
        return int(math.prod(shape) * dtype.itemsize)
    found = _IN_WORDS.search(str(error))
    return int(found[1]) if found else None


def _amount(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:  # noqa: PLR2004  the factor between units
            return f"{size:,.0f} {unit}"
        size /= 1024
    return f"{size:,.1f} GiB"


# ------------------------------------------------------------------------------ locking


Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class TornError(EvermatError, RuntimeError):
    """The knowledge base is torn: an update could neither be completed nor undone."""

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
    """An object whose methods exclude each other."""

    @property
    def turn(self) -> AbstractContextManager[object]:
        """A reentrant lock."""

    def _require_intact(self) -> None:
        """Refuse calls after an update that could neither be completed nor undone."""

    def _recover(self) -> None:
        """Rebuild structures that an unexpected error may have left half built."""


Locked = TypeVar("Locked", bound=Serialised)


def serialised(
    method: Callable[Concatenate[Locked, Arguments], Answer],
) -> Callable[Concatenate[Locked, Arguments], Answer]:
    """Make a method wait until those of other threads have returned."""

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
"""The most facts of an update that can be undone; more may need much memory."""


class NothingToUndoError(EvermatError, RuntimeError):
    """There is no update to undo."""

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
    """Return the request that undoes an update between two sets of rules."""
    inserted, deleted = change.explicit_sizes
    return Request(
        insert={name: [change.deleted(name)] for name in deleted},
        delete={name: [change.inserted(name)] for name in inserted},
        add_rules=[*missing_rules(before, after)],
        remove_rules=[*missing_rules(after, before)],
    )


class Undoing:
    """Stores the last update, in order to undo it."""

    def __init__(self) -> None:
        self._inverse: Callable[[], Request] | None = None
        self._is_too_large = False

    def note(
        self, change: Change, before: Iterable[Rule], after: Iterable[Rule]
    ) -> None:
        """Record an update, with the rules before and after it."""
        self._inverse, self._is_too_large = None, False
        if change.explicit_size > MOST_FACTS:
            self._is_too_large = True
            return
        self._inverse = lambda: inverse(change, before, after)

    def last(self) -> Request:
        """Return the request that undoes the last update.

        Raises:
            NothingToUndoError: there is none, or it is too large.
        """
        if self._inverse is None:
            raise NothingToUndoError(is_too_large=self._is_too_large)
        return self._inverse()

    def forget(self) -> None:
        """Discard the recorded update, which can no longer be undone."""
        self._inverse, self._is_too_large = None, False


def missing_rules(some: Iterable[Rule], others: Iterable[Rule]) -> list[Rule]:
    """Return the rules that are not among others, up to renaming of variables."""
    known = {rule_key(rule) for rule in others}
    return [rule for rule in some if rule_key(rule) not in known]


# -------------------------------------------------------------------------- transaction


class TransactionError(EvermatError, RuntimeError):
    """A transaction was used before it began, after it ended, or inside another."""

    code: ClassVar[str] = "EM553"


class _Stage(Enum):
    WAITING = "has not begun"
    OPEN = "is open"
    COMMITTING = "is being committed"
    COMMITTED = "has been committed"
    ROLLED_BACK = "has been rolled back"


class Slot:
    """The slot for the only transaction that a knowledge base may have open.

    It is free again when the transaction has ended or was garbage collected: an
    interrupt may arrive before a `with` block is entered.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._last: ref[Transaction] | None = None

    def require_free(self) -> None:
        """Refuse other work while a transaction is open."""
        last = None if self._last is None else self._last()
        if last is not None and last.is_under_way:
            raise _is_open()

    def take(self, transaction: Transaction) -> None:
        """Begin a transaction; if several threads try, one succeeds."""
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

    Deletions are applied before insertions, regardless of the order of the calls, so a
    fact that is both deleted and inserted stays. An exception inside the block, or one
    raised by the update itself, leaves the knowledge base unchanged.

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
        """Prepare a transaction; use `kb.transaction()` instead.

        Args:
            slot: occupied while the transaction is open.
            apply: carries out a request.
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
        """Insert facts on commit."""
        self._require_open()
        self._request.insert.setdefault(predicate, []).append(rows)

    def replace(self, predicate: str, rows: object) -> None:
        """Replace the explicit facts of a predicate by rows on commit."""
        self._require_open()
        self._request.replace.setdefault(predicate, []).append(rows)

    def delete(self, predicate: str, rows: object) -> None:
        """Delete explicit facts on commit."""
        self._require_open()
        self._request.delete.setdefault(predicate, []).append(rows)

    def add_rules(self, rules: RuleInput | Iterable[RuleInput]) -> None:
        """Add rules on commit; facts among them are inserted."""
        self._require_open()
        self._request.add_rules.extend(listed(rules))

    def remove_rules(self, rules: RuleInput | Iterable[RuleInput]) -> None:
        """Remove rules on commit; facts among them are deleted."""
        self._require_open()
        self._request.remove_rules.extend(listed(rules))

    def commit(self) -> Change:
        """Apply all changes now."""
        self._require_open()
        with deferred():
            self._stage = _Stage.COMMITTING
            try:
                self._change = self._apply(self._request)
                self._stage = _Stage.COMMITTED
            finally:
                # A transaction ends with its commit; a failed one has changed nothing.
                if self._stage is _Stage.COMMITTING:
                    self._stage = _Stage.ROLLED_BACK
            return self._change

    def rollback(self) -> None:
        """Discard all changes."""
        self._require_open()
        self._stage = _Stage.ROLLED_BACK

    @property
    def is_under_way(self) -> bool:
        """Whether other changes of the knowledge base must be refused."""
        return self._stage in {_Stage.OPEN, _Stage.COMMITTING}

    def open(self) -> None:
        """Begin the transaction; called by the slot."""
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
