"""What drivers have in common: one materialisation, and updates of it.

An update happens as a whole or not at all. There are two drivers: one holds facts as
they are, the other one fact for all that differ only in equal constants.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from traceback import clear_frames
from typing import TYPE_CHECKING, Generic, TypeVar

from evermat.algebra import Engine, EngineUseError
from evermat.maintenance.algorithms import AUTO, REMATERIALISE
from evermat.maintenance.requests import Request
from evermat.maintenance.statistics import History

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa

    from evermat.algebra import StoredChange
    from evermat.algebra.compile import StratumPlan
    from evermat.lang.syntax import Rule
    from evermat.maintenance.limits import Budget, Progress
    from evermat.maintenance.rule_book import RuleBook
    from evermat.maintenance.updates import Outcome


AnEngine = TypeVar("AnEngine", bound=Engine)


@dataclass(frozen=True, slots=True, eq=False)
class NewRules:
    """The rules of a program that was changed.

    Attributes:
        given: as they were given, one head each.
        claimed: those in normal form whose instances modules do not count.
    """

    given: tuple[Rule, ...]
    claimed: frozenset[Rule] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class NewCliques:
    """Constants that something else stands for from now on, in tables of one column.

    Attributes:
        members: the constants.
        before, after: what stood for each of them, and what does.
    """

    members: pa.Table
    before: pa.Table
    after: pa.Table


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """What an update is about to change, besides the numbers of facts.

    Attributes:
        rules: the rules from now on; None if they stay.
        cliques: what stands for other constants; None if that stays.
    """

    rules: NewRules | None = None
    cliques: NewCliques | None = None


class Driver(ABC, Generic[AnEngine]):
    """Facts, rules and all that follows, on one engine.

    Attributes:
        engine: where the facts are. Only this object may change them.
        budget: limits of every single update.
        progress: is told about every round.
        journal: is told what an update changes before anything is changed; where it
            raises, the update fails.
    """

    def __init__(
        self, engine: AnEngine, budget: Budget | None, progress: Progress | None
    ) -> None:
        self.engine = engine
        self.budget = budget
        self.progress = progress
        self.journal: Callable[[StoredChange, Entry], None] | None = None
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
        replace: frozenset[str] = frozenset(),
        algorithm: str = AUTO,
    ) -> Outcome:
        """Change facts and rules in one step, or nothing at all.

        A row that is both deleted and inserted is given afterwards.

        Args:
            delete: rows that are given no longer, by relation.
            insert: rows that are given from now on, by relation.
            remove_rules: rules of the program, up to names of variables.
            add_rules: new rules; those the program has already are ignored.
            replace: relations in which nothing stays explicit but the inserted rows.
            algorithm: one of `evermat.maintenance.algorithms.NAMES`.

        Raises:
            EvermatError: the request cannot be carried out; nothing has changed.
        """
        request = Request(delete or {}, insert or {}, remove_rules, add_rules, replace)
        return self._carry_out(request, algorithm, dry=False)

    def plan(
        self,
        *,
        delete: Mapping[str, pa.Table] | None = None,
        insert: Mapping[str, pa.Table] | None = None,
        remove_rules: Iterable[Rule] = (),
        add_rules: Iterable[Rule] = (),
        replace: frozenset[str] = frozenset(),
        algorithm: str = AUTO,
    ) -> Outcome:
        """What `update` would do with the same arguments; nothing changes."""
        request = Request(delete or {}, insert or {}, remove_rules, add_rules, replace)
        return self._carry_out(request, algorithm, dry=True)

    def rematerialise(self) -> Outcome:
        """Derive everything again from the given facts."""
        return self.update(algorithm=REMATERIALISE)

    # -- what was kept elsewhere

    @abstractmethod
    def take_up(
        self, rules: Iterable[Rule], claimed: Iterable[str] | None = None
    ) -> None:
        """Get ready for facts that were kept elsewhere: for engines without facts.

        The engine then knows all relations of the rules, and can reinstate the facts.
        """

    @property
    def claimed(self) -> frozenset[Rule]:
        """The normal rules whose instances modules do not count."""
        return frozenset()

    # -- how they are made

    @abstractmethod
    def _carry_out(self, request: Request, algorithm: str, *, dry: bool) -> Outcome:
        """Make an update, or only say what it would do."""

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A transaction of the engine, which ends inside; an error undoes it."""
        engine = self.engine
        try:
            engine.begin()
            yield
        except BaseException as error:
            if isinstance(error, MemoryError):
                # What the work has held is needed for undoing it.
                clear_frames(error.__traceback__)
            with suppress(EngineUseError):  # the transaction may have ended already
                engine.rollback()
            raise
        finally:
            engine.monitor = None

    @contextmanager
    def _recorded(self, entry: Callable[[], Entry]) -> Iterator[None]:
        """Have the engine tell the journal what it is about to change."""
        journal, engine = self.journal, self.engine
        if journal is None:
            yield
            return
        added = entry()
        engine.journal = lambda change: journal(change, added)
        try:
            yield
        finally:
            engine.journal = None
