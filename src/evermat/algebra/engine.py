"""The methods of an engine, and what goes in and out of them beside sets and queries.

What they must fulfil together is the contract in `evermat.algebra`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from evermat.algebra.closures import Closure
    from evermat.algebra.facts import (
        Counters,
        Counts,
        Facts,
        GrowingFacts,
        SettledFacts,
        StoredFacts,
    )
    from evermat.algebra.proving import ProofSearch, ProofWork
    from evermat.algebra.queries import Pattern, Query, QuerySet, Views
    from evermat.algebra.saturation import OnRounds, Saturation


class Monitor(Protocol):
    """Is told about work in progress, and may stop it by raising."""

    def working(self, label: str, matches: int) -> None:
        """`matches` more rule instances were found by the rule called `label`."""

    def writing(self, label: str, facts: int) -> None:
        """The closure called `label` is about to write at least so many new facts."""


class Snapshot(Protocol):
    """Facts as they were at one moment, whatever happens to the engine later."""

    def relations(self) -> Mapping[str, int]:
        """The number of facts of each relation that has any."""

    def read(self, relation: str) -> pa.Table:
        """The rows of a relation, as columns of terms (`evermat.columns.TERM`)."""


STORED_NUMBERS = ("holds", "given", "c_nr", "c_r")
"""What an engine stores about a fact: whether it holds and whether it was given, as 0
or 1, and its two counts."""


class StoredChange(Protocol):
    """By how much the stored numbers of facts change; what does not is left out.

    Changes are summed, fact by fact: all changes since an engine was empty add up to
    what it stores.
    """

    def relations(self) -> Mapping[str, int]:
        """The number of rows of each relation that has any."""

    def read(self, relation: str) -> pa.Table:
        """The facts as columns of terms, then a column for each of the numbers."""


Journal = Callable[[StoredChange], None]


class Captured(Protocol):
    """A closure as it was at one moment, held by the facts that it starts from."""

    def minus(self, other: Captured | None) -> Snapshot:
        """What the closure has and another one, of the same relation, has not.

        Nothing is worked out before the snapshot is read; sizes are counted without
        writing the facts out.
        """


class Engine(Protocol):
    """Keeps facts and counters, and evaluates queries over views.

    Tables that go in and out are Arrow tables, one column per argument, in any column
    type that `evermat.columns` knows; the order of columns counts, their names do not.
    """

    name: str
    monitor: Monitor | None
    matches: int
    """How many rule instances were found since the engine was made."""
    journal: Journal | None
    """Is told what `commit` and `adopt` are about to change. Where it raises, they do
    so too, and nothing has changed."""
    is_torn: bool
    """Whether facts may be half changed. `commit`, `adopt` and `rollback` make it true
    before their first step that cannot be undone. `rollback` makes it false again;
    after the others the caller does so, when all that belongs to the update is done,
    or `begin`. Whoever finds it true at another time knows that an error came out of
    the middle, and that nothing in the engine can be trusted."""

    # -- relations

    def declare(self, relation: str, arity: int) -> None:
        """Make a relation known; declaring it again with the same arity is fine."""

    def relations(self) -> Mapping[str, int]:
        """The arity of every known relation."""

    # -- sets

    @property
    def materialised(self) -> StoredFacts:
        """All facts that held when the update began."""

    @property
    def explicit(self) -> StoredFacts:
        """The facts that were given, when the update began."""

    def growing(self) -> GrowingFacts:
        """A new, empty, growing set, good until the end of the transaction."""

    def no_facts(self) -> SettledFacts:
        """The empty set."""

    def settle(self, facts: Facts) -> SettledFacts:
        """Work out a view. The round boundary: an engine may compact or checkpoint."""

    def size(self, facts: Facts, relation: str) -> int:
        """How many facts of a relation a view has; stored sets are allowed here."""

    # -- rules

    def derive(self, queries: QuerySet, views: Views) -> SettledFacts:
        """The facts that the queries yield, each once."""

    def derive_counts(self, queries: QuerySet, views: Views) -> Counts:
        """The facts that the queries yield, with the number of matches of each."""

    def saturate(self, task: Saturation, on_rounds: OnRounds) -> None:
        """Apply rules until no candidate is admitted any more: see `saturation`.

        Unless the task is watched, several rounds may be told at once.
        """

    def prove(
        self,
        search: ProofSearch,
        facts: SettledFacts,
        work: ProofWork,
        on_rounds: OnRounds,
    ) -> SettledFacts:
        """Search for derivations of facts; returns those that have none: see `proving`.

        Unless the search is watched, several rounds may be told at once.
        """

    def answer(self, query: Query, views: Views) -> pa.Table:
        """The distinct rows a single query yields; its head need not be declared."""

    def explain(self, query: Query, views: Views) -> list[str]:
        """The steps by which a query would be run, a line each."""

    # -- counters

    @property
    def nonrecursive_counts(self) -> Counters:
        """How often each fact was given or derived by nonrecursive rules."""

    @property
    def recursive_counts(self) -> Counters:
        """How often each fact was derived by recursive rules."""

    def once(self, facts: SettledFacts) -> Counts:
        """The multiset that holds each of the facts once."""

    # -- closures

    def counted(self, pattern: Pattern) -> SettledFacts:
        """The facts of a pattern of which one of the two counts is above zero."""

    def external(
        self, pattern: Pattern, facts: Facts, *, certain: bool = False
    ) -> Facts:
        """The facts of a pattern in a view that have a count above zero.

        For `close` and `close_among`, in the transaction at work: an engine may find
        them out only as far as these have to know.

        Args:
            pattern: the facts that a closure is about.
            facts: a view; stored sets are allowed.
            certain: whether only nonrecursive counts are looked at.
        """

    def close(
        self,
        closure: Closure,
        facts: Facts,
        *,
        without: Facts | None = None,
        through: SettledFacts | None = None,
        only: Pattern | None = None,
    ) -> SettledFacts:
        """The closure of facts, without the closure of other facts.

        Both views are read for external facts and for edges; stored sets are allowed.
        If `through` is given, only facts with a path through one of its facts are
        needed, and whether others are among them is left open. If `only` is given,
        just those facts are wanted that have its constants.
        """

    def close_among(
        self, closure: Closure, facts: Facts, candidates: Facts
    ) -> SettledFacts:
        """Those of the candidates that the closure of facts has."""

    def capture(self, closure: Closure, facts: Facts) -> Captured:
        """The closure of facts, to be read when the facts have long changed."""

    def capture_both(
        self, closure: Closure, before: Facts, after: Facts, *changes: SettledFacts
    ) -> tuple[Captured, Captured]:
        """The closures of two views, to be compared with each other and nothing else.

        An engine need only remember facts that pairs can differ by.

        Args:
            closure: the closure of both.
            before: the facts before a change.
            after: the facts after it.
            changes: the facts that only `before` has, and those that only `after` has.
        """

    # -- data in and out

    def intern(self, relation: str, table: pa.Table) -> SettledFacts:
        """The rows as facts of a relation, whether they hold or not."""

    def find(self, relation: str, table: pa.Table) -> SettledFacts:
        """Those of the rows that are known facts of a relation."""

    def snapshot(self, facts: Facts) -> Snapshot:
        """A copy that outlives the transaction; stored sets are allowed here."""

    def read_counts(self, relation: str, also: Facts | None = None) -> pa.Table:
        """The materialised rows of a relation and their `c_nr` and `c_r`.

        The rows of `also` are read too, whether they are materialised or not.
        """

    # -- transactions

    def begin(self) -> None:
        """Start a transaction; there is at most one at a time."""

    def commit(
        self, *, deleted: Facts, added: Facts, withdrawn: Facts, given: Facts
    ) -> None:
        """End the transaction.

        The facts are then `(materialised - deleted) | added`, the given ones
        `(explicit - withdrawn) | given`. Facts that are in none of them are forgotten.
        """

    def rollback(self) -> None:
        """End the transaction as if it had not been; nothing if a commit was begun."""

    def recover(self) -> None:
        """Rebuild what the stored facts do not need: not in a transaction.

        An error that nobody foresaw, such as a lack of memory, may have come out of the
        middle of anything, and leave an index half built. It takes as long as building
        all indexes anew.
        """

    def fresh(self) -> Engine:
        """An empty engine for the same constants, to materialise into."""

    def load(self, facts: Iterable[tuple[str, pa.Table]]) -> None:
        """Make rows given and materialised, each with a nonrecursive count of one."""

    def extend(self, facts: SettledFacts) -> None:
        """Add facts to the materialised ones directly: for fresh engines."""

    def reinstate(self, facts: Iterable[tuple[str, pa.Table]]) -> None:
        """Take up what another engine stored: for engines without facts.

        Args:
            facts: relations, each once, with tables like those of `StoredChange`.
        """

    def copy_explicit(self, target: Engine, *, without: Facts, also: Facts) -> None:
        """Load the given facts, without some and with others, into a fresh engine."""

    def adopt(self, other: Engine) -> tuple[Snapshot, Snapshot]:
        """Take over the contents of a fresh engine; return what left and what came."""

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """For each relation: facts, given facts, bytes, indexes."""
