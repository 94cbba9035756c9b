"""Several changes as one: collected first, applied together, or not at all."""

from __future__ import annotations

from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Self
from weakref import ref

from evermat.errors import EvermatError
from evermat.kb.requests import Request
from evermat.kb.rule_inputs import listed
from evermat.runtime.interrupts import deferred

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from evermat.kb.rule_inputs import RuleInput
    from evermat.results.change import Change


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

    It is free again when the transaction has ended, or when nobody has it any more: an
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
        law="a knowledge base has at most one transaction at a time, and changes only "
        "through it while it is open",
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
        """Ask for facts to be given."""
        self._require_open()
        self._request.insert.setdefault(predicate, []).append(rows)

    def replace(self, predicate: str, rows: object) -> None:
        """Ask for rows to be all that is explicit of a predicate."""
        self._require_open()
        self._request.replace.setdefault(predicate, []).append(rows)

    def delete(self, predicate: str, rows: object) -> None:
        """Ask for given facts to be withdrawn."""
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
