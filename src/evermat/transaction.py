"""Several changes as one: collected first, applied together, or not at all."""

from __future__ import annotations

from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Self

from evermat.errors import EvermatError
from evermat.rule_inputs import listed
from evermat.update_requests import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from evermat.change import Change
    from evermat.rule_inputs import RuleInput


class TransactionError(EvermatError, RuntimeError):
    """A transaction used before it began, after it ended, or inside another."""

    code: ClassVar[str] = "EM553"


class _Stage(Enum):
    WAITING = "has not begun"
    OPEN = "is open"
    COMMITTED = "has been committed"
    ROLLED_BACK = "has been rolled back"


class Slot:
    """The place for the one transaction that a knowledge base may have open."""

    def __init__(self) -> None:
        self._holder = Lock()

    def require_free(self) -> None:
        """Refuse work that would get between the steps of an open transaction."""
        if self._holder.locked():
            raise _is_open()

    def take(self) -> None:
        """Begin a transaction; of several threads that try, one does."""
        if not self._holder.acquire(blocking=False):
            raise _is_open()

    def give_back(self) -> None:
        """Let others change the knowledge base."""
        self._holder.release()


def _is_open() -> TransactionError:
    return TransactionError(
        "a transaction is open",
        law="a knowledge base has at most one transaction at a time, and changes only "
        "through it while it is open",
        help="use the open transaction, or end it first",
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
            apply: carries out what was asked for, and gives the slot back.
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
        # Whatever happens, the transaction is over: a failed one has changed nothing.
        self._stage = _Stage.ROLLED_BACK
        self._change = self._apply(self._request)
        self._stage = _Stage.COMMITTED
        return self._change

    def rollback(self) -> None:
        """Forget everything that was asked for."""
        self._require_open()
        self._stage = _Stage.ROLLED_BACK
        self._slot.give_back()

    def __enter__(self) -> Self:
        if self._stage is not _Stage.WAITING:
            raise TransactionError(
                f"the transaction {self._stage.value} and cannot begin again",
                help="ask for a new one with `kb.transaction()`",
            )
        self._slot.take()
        self._stage = _Stage.OPEN
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
