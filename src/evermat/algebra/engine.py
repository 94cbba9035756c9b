"""The engine protocol, and the protocols of its arguments and results.

The contract that the methods fulfil together is stated in `evermat.algebra`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from evermat.algebra.equality import NoRewritingError
from evermat.algebra.facts import EngineUseError
from evermat.algebra.fixpoint import prove, saturate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from evermat.algebra.aggregates import Aggregate, Regrouped
    from evermat.algebra.equality import Representatives
    from evermat.algebra.facts import (
        Counters,
        Counts,
        Facts,
        GrowingFacts,
        SettledFacts,
        StoredFacts,
    )
    from evermat.algebra.fixpoint import OnRounds, ProofSearch, ProofWork, Saturation
    from evermat.algebra.queries import Closure, Pattern, Query, QuerySet, Views
    from evermat.columns import TableParts
    from evermat.values import Constant, Kind

Found = TypeVar("Found")


class Monitor(Protocol):
    """Callbacks for work in progress, which may stop it by raising an exception."""

    def working(self, label: str, matches: int) -> None:
        """Called after the rule `label` has matched `matches` more instances."""

    def writing(self, label: str, facts: int) -> None:
        """Called before the closure `label` writes at least `facts` new facts."""


class Snapshot(Protocol):
    """Facts as of one moment, unaffected by later changes of the engine."""

    def relations(self) -> Mapping[str, int]:
        """Return the number of facts of each nonempty relation."""

    def read(self, relation: str) -> pa.Table:
        """Return a relation's rows as columns of terms (`evermat.columns.TERM`)."""


STORED_NUMBERS = ("holds", "given", "c_nr", "c_r")
"""The numbers that an engine stores for a fact: whether it holds and whether it is
explicit, as 0 or 1, and its two counters."""


class StoredChange(Protocol):
    """Differences of the stored numbers of facts; unchanged facts are left out.

    Changes are summed, fact by fact: all changes since an engine was empty add up to
    the stored numbers.
    """

    def relations(self) -> Mapping[str, int]:
        """Return the number of rows of each nonempty relation."""

    def read(self, relation: str) -> pa.Table:
        """Return columns of terms for the facts, and a column for each number."""


Journal = Callable[[StoredChange], None]


class ClosureSnapshot(Protocol):
    """A closure as of one moment, stored as its external facts."""

    def minus(self, other: ClosureSnapshot | None) -> Snapshot:
        """Return the facts of this closure that another of the same relation lacks.

        The difference is evaluated when the snapshot is read; sizes are counted without
        writing the facts out.
        """


class StagedRows(Protocol):
    """Rows of a relation that are outside this process.

    Attributes:
        num_columns: the number of columns.
        num_rows: the number of rows, duplicates included.
        kinds: for each column, the kinds of its constants, with an example of each.
    """

    num_columns: int
    num_rows: int
    kinds: Sequence[Mapping[Kind, Constant]]

    def mentions(self, column: int, constant: Constant) -> bool:
        """Return whether a constant occurs in a column."""


class DistantRows(Protocol):
    """Rows of a relation or answers that are outside this process.

    Attributes:
        num_columns: the number of columns.
        num_rows: the number of rows.
    """

    num_columns: int

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""

    @property
    def num_rows(self) -> int:
        """The number of rows."""

    def read(self, limit: int | None = None) -> pa.Table:
        """Bring the rows, or some of them, into this process, as columns of terms."""

    def in_parts(self, names: Sequence[str]) -> AbstractContextManager[TableParts]:
        """Return the rows in parts, not all of which are in this process at a time."""

    def split(self, other: Self, *, common: bool) -> DistantRows:
        """Return the rows that `other` has as well, or those that it lacks."""

    def frame(self, names: Sequence[str], session: Any) -> Any:  # noqa: ANN401  of Spark
        """Return the rows as a Spark data frame, with plain types."""

    def terms(self) -> Any:  # noqa: ANN401  a frame of Spark
        """Return the same, with a struct of kind and string for each value."""


class ChangeQueries(Protocol):
    """Rules, as queries that read a change; see `algebra.compile.RuleSet`."""

    @property
    def rules(self) -> Sequence[object]:
        """The rules."""

    @property
    def delta(self) -> QuerySet:
        """The queries for instances that touch a change, each found exactly once."""

    @property
    def backward(self) -> QuerySet:
        """The queries for the local body facts of instances with a changed head."""


class PlannedStratum(Protocol):
    """A stratum of rules; see `algebra.compile.StratumPlan`."""

    @property
    def nonrecursive(self) -> ChangeQueries:
        """Rules that read other strata only."""

    @property
    def recursive(self) -> ChangeQueries:
        """The other rules, except those that modules evaluate."""

    @property
    def rule_count(self) -> int:
        """The number of rules."""


class PlannedStrata(Protocol):
    """The strata of a program, in order."""

    @property
    def strata(self) -> Sequence[PlannedStratum]:
        """The strata, in evaluation order."""


class Engine(Protocol):
    """Stores facts and counters, and evaluates queries over views.

    Input and output tables are Arrow tables with one column per argument, in any column
    type that `evermat.columns` supports; columns are identified by position, not name.
    """

    name: str
    monitor: Monitor | None
    matches: int
    """The number of rule instances matched since the engine was created."""
    journal: Journal | None
    """Receives the changes that `commit` and `adopt` are about to make. If it raises,
    so do they, and nothing has changed."""
    is_torn: bool
    """Whether facts may be half changed. `commit`, `adopt` and `rollback` set it before
    their first irreversible step. `rollback` clears it again; after the other two the
    caller clears it when the whole update is complete, or `begin` does. If it is set at
    any other time, an error interrupted such an operation, and the contents of the
    engine cannot be trusted."""

    # -- relations

    def declare(self, relation: str, arity: int) -> None:
        """Declare a relation; repeating it with the same arity is harmless."""

    def relations(self) -> Mapping[str, int]:
        """Return the arity of every declared relation."""

    # -- sets

    @property
    def materialised(self) -> StoredFacts:
        """The facts that held when the update began."""

    @property
    def explicit(self) -> StoredFacts:
        """The facts that were explicit when the update began."""

    def growing(self) -> GrowingFacts:
        """Create an empty growing set, valid until the end of the transaction."""

    def no_facts(self) -> SettledFacts:
        """Return the empty set."""

    def settle(self, facts: Facts) -> SettledFacts:
        """Evaluate a view. The round boundary: an engine may compact or checkpoint."""

    def size(self, facts: Facts, relation: str) -> int:
        """Count the facts of a relation in a view; stored sets are allowed."""

    # -- rules

    def derive(self, queries: QuerySet, views: Views) -> SettledFacts:
        """Return the facts that the queries yield, each once."""

    def derive_counts(self, queries: QuerySet, views: Views) -> Counts:
        """Return the facts that the queries yield, with their numbers of matches."""

    def saturate(self, task: Saturation, on_rounds: OnRounds) -> None:
        """Apply rules until no more candidates are admitted: see `fixpoint`.

        Unless the task is watched, several rounds may be reported together.
        """
        saturate(self, task, on_rounds)

    def prove(
        self,
        search: ProofSearch,
        facts: SettledFacts,
        work: ProofWork,
        on_rounds: OnRounds,
    ) -> SettledFacts:
        """Search for derivations of facts; return the facts without: see `fixpoint`.

        Unless the search is watched, several rounds may be reported together.
        """
        return prove(self, search, facts, work, on_rounds)

    def answer(self, query: Query, views: Views) -> pa.Table:
        """Return the distinct rows of a query, whose head need not be declared."""

    def explain(self, query: Query, views: Views) -> list[str]:
        """Describe the plan of a query, one step per line."""

    # -- aggregates

    def aggregate(self, aggregates: Sequence[Aggregate], facts: Facts) -> SettledFacts:
        """Return the results for all groups of members in a view: see `aggregates`."""

    def aggregate_again(
        self, aggregates: Sequence[Aggregate], results: SettledFacts, facts: Facts
    ) -> SettledFacts:
        """Return the results for the groups of some results, wherever from."""

    def aggregate_changes(
        self,
        aggregates: Sequence[Aggregate],
        changes: Sequence[SettledFacts],
        before: Facts,
        after: Facts,
    ) -> Regrouped:
        """Return the results that a change removes and adds: see `aggregates`.

        Args:
            aggregates: the aggregates to update.
            changes: supersets of the facts that only `before` has, and of those that
                only `after` has.
            before: the facts before the change, results included.
            after: the facts after it; results in it are not read.
        """

    # -- counters

    @property
    def nonrecursive_counts(self) -> Counters:
        """The number of insertions and nonrecursive derivations of each fact."""

    @property
    def recursive_counts(self) -> Counters:
        """The number of derivations of each fact by recursive rules."""

    def once(self, facts: SettledFacts) -> Counts:
        """Return the multiset that contains each of the facts once."""

    # -- closures

    def counted(self, pattern: Pattern) -> SettledFacts:
        """Return the facts of a pattern with at least one counter above zero."""

    def external(
        self, pattern: Pattern, facts: Facts, *, certain: bool = False
    ) -> Facts:
        """Return the facts of a pattern in a view that have a counter above zero.

        For `close` and `close_among` in the current transaction: an engine may evaluate
        the result lazily, as far as these need it.

        Args:
            pattern: the facts of the closure.
            facts: a view; stored sets are allowed.
            certain: whether only nonrecursive counters are considered.
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
        """Return the closure of facts, without the closure of other facts.

        Both views are read for external facts and for edges; stored sets are allowed.
        With `through`, only facts with a path through one of its facts are needed; the
        result may contain others. With `only`, the result is restricted to facts with
        its constants.
        """

    def close_among(
        self, closure: Closure, facts: Facts, candidates: Facts
    ) -> SettledFacts:
        """Return those of the candidates that belong to the closure of facts."""

    def snapshot_closure(self, closure: Closure, facts: Facts) -> ClosureSnapshot:
        """Capture the closure of facts, to be read after the facts have changed."""

    def snapshot_closures(
        self, closure: Closure, before: Facts, after: Facts, *changes: SettledFacts
    ) -> tuple[ClosureSnapshot, ClosureSnapshot]:
        """Capture the closures of two views, to be compared with each other only.

        An engine need only store the facts in which the two may differ.

        Args:
            closure: the closure of both.
            before: the facts before a change.
            after: the facts after it.
            changes: the facts that only `before` has, and those that only `after` has.
        """

    # -- data in and out

    def intern(self, relation: str, table: pa.Table) -> SettledFacts:
        """Return the rows as facts of a relation, whether they hold or not."""

    def find(self, relation: str, table: pa.Table) -> SettledFacts:
        """Return those of the rows that are known facts of a relation."""

    def snapshot(self, facts: Facts) -> Snapshot:
        """Copy facts so that they outlive the transaction; stored sets are allowed."""

    def read_counts(self, relation: str, also: Facts | None = None) -> pa.Table:
        """Return the materialised rows of a relation with their `c_nr` and `c_r`.

        The rows of `also` are included, whether they are materialised or not.
        """

    # -- transactions

    def begin(self) -> None:
        """Start a transaction; there is at most one at a time."""

    def commit(
        self,
        *,
        deleted: Facts,
        added: Facts,
        explicit_removed: Facts,
        explicit_added: Facts,
    ) -> None:
        """End the transaction.

        The facts are then `(materialised - deleted) | added`, the explicit ones
        `(explicit - explicit_removed) | explicit_added`. Facts in neither set are
        forgotten.
        """

    def rollback(self) -> None:
        """Undo the transaction; without effect after a commit has begun."""

    def recover(self) -> None:
        """Rebuild all indexes from the stored facts; not allowed in a transaction.

        After an unexpected error, such as a lack of memory, an index may be half built.
        The cost is that of building all indexes anew.
        """

    def fresh(self) -> Engine:
        """Create an empty engine over the same constants, to materialise into."""

    def load(self, facts: Iterable[tuple[str, pa.Table]]) -> None:
        """Make rows explicit and materialised, with a nonrecursive count of one."""

    def extend(self, facts: SettledFacts) -> None:
        """Add facts directly to the materialised ones: for fresh engines."""

    def reinstate(self, facts: Iterable[tuple[str, pa.Table]]) -> None:
        """Restore the contents that another engine stored: for engines without facts.

        Args:
            facts: relations, each once, with tables like those of `StoredChange`.
        """

    def copy_explicit(self, target: Engine, *, without: Facts, also: Facts) -> None:
        """Copy explicit facts into a fresh engine, without some and with others."""

    def adopt(self, other: Engine) -> tuple[Snapshot, Snapshot]:
        """Take over the facts of a fresh engine; return those removed and added."""

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Count the facts, explicit facts, bytes and indexes of each relation."""

    # -- equality: a representative replaces all constants that are equal to it

    def representatives(self) -> Representatives:
        """Create a set of cliques in which every constant is alone.

        An engine without this method has none of the other equality operators.
        """
        raise NoRewritingError(self.name)

    def merge(
        self,
        representatives: Representatives,
        equalities: SettledFacts,
        lost: str,
        values: frozenset[Kind],
    ) -> SettledFacts:
        """Make the two constants of each binary fact equal.

        Args:
            representatives: the cliques, changed in place.
            equalities: facts of one binary relation.
            lost: the unary relation of the facts that are returned.
            values: the kinds of constants that are never equal to each other.

        Returns:
            The constants that were representatives and no longer are.

        Raises:
            UnequalValuesError: two values would be equal; the cliques may have changed.
        """

    def restore(
        self,
        representatives: Representatives,
        members: SettledFacts,
        source: Representatives,
    ) -> None:
        """Set the representatives of the second constants of facts as in `source`."""

    def members(
        self, nodes: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """Return `r(c, d)` for each fact `r(c, c)` and each d in the clique of c."""

    def moved(
        self, before: Representatives, after: Representatives, relation: str
    ) -> SettledFacts:
        """Return the constants whose representative differs, as facts of `relation`."""

    def rewrite(
        self, facts: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """Return the facts with every constant replaced by its representative."""

    def rewritten_into(
        self, facts: SettledFacts, representatives: Representatives, target: Facts
    ) -> SettledFacts:
        """Return those of the facts whose rewritten fact is in a view."""

    def mentioning(self, marks: SettledFacts, facts: Facts) -> SettledFacts:
        """Return the facts of a view that mention the first constant of a mark.

        Facts of stored sets, which are allowed, are looked up by their constants;
        settled sets are scanned.
        """

    def about_moved(
        self, before: Representatives, after: Representatives, facts: Facts
    ) -> SettledFacts:
        """Return the facts of a view about constants whose representative differs.

        These mention such a constant, or its representative before or after. All
        constants in the facts of the view must be their own representatives in
        `before`.
        """

    def nodes_of(
        self, facts: SettledFacts, representatives: Representatives, relation: str
    ) -> SettledFacts:
        """Return `relation(c, c)` for each mentioned clique with at least two members.

        Args:
            facts: facts of representatives.
            representatives: the cliques of equal constants.
            relation: a binary relation.
        """

    def normalise(self, representatives: Representatives) -> SettledFacts:
        """Replace explicit facts by their rewritten facts, which then hold instead.

        For a fresh engine outside of a transaction that contains explicit facts only.

        Returns:
            The facts that have become explicit by rewriting.
        """

    def marked(self) -> SettledFacts:
        """Return the explicit facts whose recursive count is above zero."""

    def preimages(
        self, facts: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """Return the explicit facts that `rewrite` maps to one of the facts.

        They are looked up among the explicit facts of the cliques; the product of the
        cliques, which can be huge, is not enumerated.
        """

    def expanded_count(self, relation: str, representatives: Representatives) -> int:
        """Return the number of facts that the stored facts of a relation represent."""

    def shared(
        self, facts: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """Return a superset of the facts with a constant that is equal to another."""
        del representatives
        return facts

    # -- operators with a default that an engine may improve on

    @property
    def place(self) -> str:
        """Where the facts are stored, as shown in reports."""
        return "in this process"

    def derivable(
        self, rules: Sequence[QuerySet], views: Views, explicit: Facts
    ) -> SettledFacts:
        """Return those of the changed facts that are explicit or that a query yields.

        An engine may skip a fact as soon as it has a derivation.

        Args:
            rules: queries whose heads are bound to the changed facts.
            views: the views that they read.
            explicit: facts that need no derivation.
        """
        changed = views.delta_positive
        total: Facts = self.no_facts() if changed is None else changed & explicit
        for queries in rules:
            total |= self.derive(queries, views)
        return self.settle(total)

    def part(self, facts: SettledFacts, parts: int) -> SettledFacts | None:
        """Return a sample: one of `parts` parts of the facts of similar size and mix.

        None if the engine cannot sample.
        """
        del facts, parts
        return None

    def fixpoint(self, queries: QuerySet) -> tuple[Counts, SettledFacts] | None:
        """Apply recursive rules to the materialised facts up to the fixpoint.

        Args:
            queries: one for each rule, with role ALL; local patterns read the facts
                that the rules derive.

        Returns:
            The derived facts, with the number of matches over all rounds, and the facts
            that were not materialised before. None if these rules have to be applied
            round
            by round.
        """
        del queries
        return None

    def prepare_updates(self, strata: PlannedStrata) -> None:
        """Build indexes for updates, if that is cheap next to the first load."""
        del strata

    def intern_all(self, tables: Mapping[str, pa.Table]) -> SettledFacts:
        """Like `intern`, for the rows of several relations."""
        total: Facts = self.no_facts()
        for relation, table in tables.items():
            total |= self.intern(relation, table)
        return self.settle(total)

    def find_all(self, tables: Mapping[str, pa.Table]) -> SettledFacts:
        """Like `find`, for the rows of several relations."""
        total: Facts = self.no_facts()
        for relation, table in tables.items():
            total |= self.find(relation, table)
        return self.settle(total)

    takes_frames: bool = False
    """Whether `stage` is implemented; otherwise frames are first read into tables."""

    def stage(self, parts: Sequence[object], name: str) -> pa.Table | StagedRows:
        """Combine frames and tables of one relation, and check them for nulls.

        The result can be passed to `intern` and `find`. Not allowed in a transaction:
        facts may have to be moved to make space.
        """
        del parts
        raise EngineUseError(f"`{self.name}` reads no frames into `{name}`")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Allow interning and closing facts to read them, outside of a transaction."""
        self.begin()
        try:
            yield
        finally:
            self.rollback()

    def read_closure(
        self, closure: Closure, facts: Facts, only: Pattern
    ) -> pa.Table | None:
        """Like `close` with `only`, but return rows without storing facts.

        None if that is not cheaper, or not supported.
        """
        del closure, facts, only
        return None

    def answer_distant(self, query: Query, views: Views) -> pa.Table | DistantRows:
        """Like `answer`, but a large result may stay outside this process."""
        return self.answer(query, views)

    def with_room(self, work: Callable[[], Found]) -> Found:
        """Run an update, and again with more memory if it failed for lack of it.

        An update that fails must leave the engine unchanged.
        """
        return work()

    def explain_layout(self) -> list[str]:
        """Describe where facts are stored and how they are partitioned, in lines."""
        return []

    def explain_recursion(self, recursive: QuerySet) -> list[str]:
        """Describe how the recursive rules of a stratum are run, line by line."""
        del recursive
        return []
