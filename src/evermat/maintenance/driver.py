"""What drivers have in common: one materialisation, and updates of it.

An update happens as a whole or not at all. There are two drivers: one holds facts as
they are, the other one fact for all that differ only in equal constants.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from evermat.algebra import Engine, EngineUseError
from evermat.maintenance.algorithms import AUTO, REMATERIALISE
from evermat.maintenance.choose import History
from evermat.maintenance.requests import Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from evermat.lang.syntax import Rule
    from evermat.maintenance.compiled_rules import RuleBook
    from evermat.maintenance.state import Outcome
    from evermat.maintenance.watch import Budget, Progress
    from evermat.rule_plans import StratumPlan


AnEngine = TypeVar("AnEngine", bound=Engine)


class Driver(ABC, Generic[AnEngine]):
    """Facts, rules and all that follows, on one engine.

    Attributes:
        engine: where the facts are. Only this object may change them.
        budget: limits of every single update.
        progress: is told about every round.
    """

    def __init__(
        self, engine: AnEngine, budget: Budget | None, progress: Progress | None
    ) -> None:
        self.engine = engine
        self.budget = budget
        self.progress = progress
        self._history = History()

    # -- what there is

    @property
    @abstractmethod
    def book(self) -> RuleBook:
        """The rules, as given and in normal form."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in normal form, auxiliary ones included."""
        return tuple(self.book.normal.values())

    @property
    def given_rules(self) -> tuple[Rule, ...]:
        """The rules as they were given, one head each."""
        return tuple(self.book.given.values())

    @property
    @abstractmethod
    def strata(self) -> tuple[StratumPlan, ...]:
        """The plans of the strata, in order."""

    @abstractmethod
    def require_algorithm(self, name: str) -> None:
        """Refuse an algorithm that does not exist or cannot work here.

        Raises:
            AlgorithmError: with the algorithms that can.
        """

    # -- changes

    def update(
        self,
        *,
        delete: Mapping[str, pa.Table] | None = None,
        insert: Mapping[str, pa.Table] | None = None,
        remove_rules: Iterable[Rule] = (),
        add_rules: Iterable[Rule] = (),
        algorithm: str = AUTO,
    ) -> Outcome:
        """Change facts and rules in one step, or nothing at all.

        A row that is both deleted and inserted is given afterwards.

        Args:
            delete: rows that are given no longer, by relation.
            insert: rows that are given from now on, by relation.
            remove_rules: rules of the program, up to names of variables.
            add_rules: new rules; those the program has already are ignored.
            algorithm: one of `evermat.maintenance.algorithms.NAMES`.

        Raises:
            EvermatError: the request cannot be carried out; nothing has changed.
        """
        request = Request(delete or {}, insert or {}, remove_rules, add_rules)
        return self._carry_out(request, algorithm, dry=False)

    def plan(
        self,
        *,
        delete: Mapping[str, pa.Table] | None = None,
        insert: Mapping[str, pa.Table] | None = None,
        remove_rules: Iterable[Rule] = (),
        add_rules: Iterable[Rule] = (),
        algorithm: str = AUTO,
    ) -> Outcome:
        """What `update` would do with the same arguments; nothing changes."""
        request = Request(delete or {}, insert or {}, remove_rules, add_rules)
        return self._carry_out(request, algorithm, dry=True)

    def rematerialise(self) -> Outcome:
        """Derive everything again from the given facts."""
        return self.update(algorithm=REMATERIALISE)

    @abstractmethod
    def _carry_out(self, request: Request, algorithm: str, *, dry: bool) -> Outcome:
        """Make an update, or only say what it would do."""

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A transaction of the engine, which ends inside; an error undoes it."""
        engine = self.engine
        engine.begin()
        try:
            yield
        except BaseException:
            with suppress(EngineUseError):  # the transaction may have ended already
                engine.rollback()
            raise
        finally:
            engine.monitor = None
