"""The methods of an engine, and what goes in and out of them beside sets and queries.

What they must fulfil together is the contract in `evermat.algebra`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from evermat.algebra.equality import NoRewritingError
from evermat.algebra.facts import EngineUseError
from evermat.algebra.fixpoint import prove, saturate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
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
    """Is called while work is in progress, and may stop it by raising."""

    def working(self, label: str, matches: int) -> None:
        """`matches` more rule instances were found by the rule called `label`."""

    def writing(self, label: str, facts: int) -> None:
        """The closure called `label` is about to write at least `facts` new facts."""


class Snapshot(Protocol):
    """Facts as they were at one moment, whatever happens to the engine later."""

    def relations(self) -> Mapping[str, int]:
        """The number of facts of each relation that has any."""

    def read(self, relation: str) -> pa.Table:
        """The rows of a relation, as columns of terms (`evermat.columns.TERM`)."""


STORED_NUMBERS = ("holds", "given", "c_nr", "c_r")
"""What an engine stores about a fact: whether it holds and whether it is explicit, as 0
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


class ClosureSnapshot(Protocol):
    """A closure as it was at one moment, stored as the facts that it starts from."""

    def minus(self, other: ClosureSnapshot | None) -> Snapshot:
        """What the closure has and another one, of the same relation, has not.

        Nothing is worked out before the snapshot is read; sizes are counted without
        writing the facts out.
        """


class StagedRows(Protocol):
    """Rows of a relation that are not in this process.

    Attributes:
        num_columns: how many columns they have.
        num_rows: how many there are; some may be there twice.
        kinds: for each column the kinds that it holds, with a constant of each.
    """

    num_columns: int
    num_rows: int
    kinds: Sequence[Mapping[Kind, Constant]]

    def mentions(self, column: int, constant: Constant) -> bool:
        """Whether a constant occurs in a column."""


class DistantRows(Protocol):
    """Rows of a relation or answers that are not in this process.

    Attributes:
        num_columns: how many columns they have.
        num_rows: how many there are.
    """

    num_columns: int

    @property
    def columns(self) -> list[str]:
        """What the columns are called."""

    @property
    def num_rows(self) -> int:
        """How many rows there are."""

    def read(self, limit: int | None = None) -> pa.Table:
        """The rows in this process, or some of them, as columns of terms."""

    def in_parts(self, names: Sequence[str]) -> AbstractContextManager[TableParts]:
        """The same in parts of which not all are in this process at a time."""

    def split(self, other: Self, *, common: bool) -> DistantRows:
        """The rows that others have as well, or those that they have not."""

    def frame(self, names: Sequence[str], session: Any) -> Any:  # noqa: ANN401  of Spark
        """The rows as a frame of Spark, with plain types."""

    def terms(self) -> Any:  # noqa: ANN401  a frame of Spark
        """The same, with a struct of kind and text for each value."""


class ChangeQueries(Protocol):
    """Rules, as queries that read a change; see `algebra.compile.RuleSet`."""

    @property
    def rules(self) -> Sequence[object]:
        """The rules."""

    @property
    def delta(self) -> QuerySet:
        """The instances that touch a change, each exactly once."""

    @property
    def backward(self) -> QuerySet:
        """For the instances whose head is a changed fact: their local body facts."""


class PlannedStratum(Protocol):
    """A stratum of rules; see `algebra.compile.StratumPlan`."""

    @property
    def nonrecursive(self) -> ChangeQueries:
        """Rules that read other strata only."""

    @property
    def recursive(self) -> ChangeQueries:
        """The others, unless modules have them."""

    @property
    def rule_count(self) -> int:
        """How many rules these are."""


class PlannedStrata(Protocol):
    """The strata of a program, in order."""

    @property
    def strata(self) -> Sequence[PlannedStratum]:
        """In order."""


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
    """Is called with what `commit` and `adopt` are about to change. Where it raises,
    they do so too, and nothing has changed."""
    is_torn: bool
    """Whether facts may be half changed. `commit`, `adopt` and `rollback` make it true
    before their first step that cannot be undone. `rollback` makes it false again;
    after the others the caller does so, when all that belongs to the update is done,
    or `begin`. A caller that finds it true at another time knows that an error came out
    of the middle, and that nothing in the engine can be trusted."""

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
        """The explicit facts when the update began."""

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
        """Apply rules until no candidate is admitted any more: see `fixpoint`.

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
        """Search for derivations of facts; return those without: see `fixpoint`.

        Unless the search is watched, several rounds may be reported together.
        """
        return prove(self, search, facts, work, on_rounds)

    def answer(self, query: Query, views: Views) -> pa.Table:
        """The distinct rows a single query yields; its head need not be declared."""

    def explain(self, query: Query, views: Views) -> list[str]:
        """The steps by which a query would be run, a line each."""

    # -- aggregates

    def aggregate(self, aggregate: Aggregate, facts: Facts) -> SettledFacts:
        """The results for all groups of members in a view: see `aggregates`."""

    def aggregate_again(
        self, aggregate: Aggregate, results: SettledFacts, facts: Facts
    ) -> SettledFacts:
        """The results for the groups that some results are of, whoever had them."""

    def aggregate_changes(
        self,
        aggregate: Aggregate,
        changes: Sequence[SettledFacts],
        before: Facts,
        after: Facts,
    ) -> Regrouped:
        """What a change means for the results: see `aggregates`.

        Args:
            aggregate: what is worked out.
            changes: facts among which those are that `before` has and `after` has not,
                and those that only `after` has.
            before: the facts before the change, results included.
            after: the facts after it; of the results nothing is read.
        """

    # -- counters

    @property
    def nonrecursive_counts(self) -> Counters:
        """How often each fact was inserted or derived by nonrecursive rules."""

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

    def snapshot_closure(self, closure: Closure, facts: Facts) -> ClosureSnapshot:
        """The closure of facts, to be read when the facts have long changed."""

    def snapshot_closures(
        self, closure: Closure, before: Facts, after: Facts, *changes: SettledFacts
    ) -> tuple[ClosureSnapshot, ClosureSnapshot]:
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
        self,
        *,
        deleted: Facts,
        added: Facts,
        explicit_removed: Facts,
        explicit_added: Facts,
    ) -> None:
        """End the transaction.

        The facts are then `(materialised - deleted) | added`, the explicit ones
        `(explicit - explicit_removed) | explicit_added`. Facts that are in none of them
        are forgotten.
        """

    def rollback(self) -> None:
        """End the transaction as if it had not been; nothing if a commit was begun."""

    def recover(self) -> None:
        """Rebuild what the stored facts do not need: not in a transaction.

        An unforeseen error, such as a lack of memory, may have come out of the
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
        """Load explicit facts into a fresh engine, without some and with others."""

    def adopt(self, other: Engine) -> tuple[Snapshot, Snapshot]:
        """Take over the facts of a fresh engine; return what was removed and added."""

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """For each relation: facts, explicit facts, bytes, indexes."""

    # -- equality: one constant represents all that are equal to it

    def representatives(self) -> Representatives:
        """Cliques of equal constants, none of them with two members yet.

        An engine that leaves this out has none of the other operators on equality.
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
            representatives: is changed.
            equalities: facts of one binary relation.
            lost: the unary relation of the facts that are returned.
            values: the kinds of constants that are never equal to each other.

        Returns:
            The constants that stood for a clique and do so no longer.

        Raises:
            UnequalValuesError: two values would be equal; the cliques may have changed.
        """

    def restore(
        self,
        representatives: Representatives,
        members: SettledFacts,
        source: Representatives,
    ) -> None:
        """Take the second constants of binary facts to be what `source` says."""

    def members(
        self, nodes: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """For each fact `r(c, c)` the facts `r(c, d)` with d in the clique of c."""

    def moved(
        self, before: Representatives, after: Representatives, relation: str
    ) -> SettledFacts:
        """The constants whose representative differs, as facts of a unary relation."""

    def rewrite(
        self, facts: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """The facts with every constant replaced by its representative."""

    def rewritten_into(
        self, facts: SettledFacts, representatives: Representatives, target: Facts
    ) -> SettledFacts:
        """Those of the facts that `rewrite` takes to a fact of a view."""

    def mentioning(self, marks: SettledFacts, facts: Facts) -> SettledFacts:
        """The facts of a view with a constant that begins one of the marks, anywhere.

        They are looked up by their constants; stored sets are allowed here.
        Settled sets are walked through.
        """

    def about_moved(
        self, before: Representatives, after: Representatives, facts: Facts
    ) -> SettledFacts:
        """The facts of a view about constants whose representative differs.

        They mention such a constant, or what stands for it before or after. The facts
        of the view mention only constants that stand for themselves before.
        """

    def nodes_of(
        self, facts: SettledFacts, representatives: Representatives, relation: str
    ) -> SettledFacts:
        """A fact `relation(c, c)` for each clique of two and more that facts mention.

        Args:
            facts: facts of representatives.
            representatives: which constants are equal.
            relation: a binary relation.
        """

    def normalise(self, representatives: Representatives) -> SettledFacts:
        """Replace explicit facts by their representatives, which then hold instead.

        For a fresh engine outside of a transaction, with explicit facts and nothing
        else.

        Returns:
            The facts that are explicit now and were not given themselves.
        """

    def marked(self) -> SettledFacts:
        """The explicit facts whose recursive count is above zero."""

    def preimages(
        self, facts: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """The explicit facts that `rewrite` takes to one of the facts.

        They are looked up among the explicit facts of the cliques; the product of the
        cliques, which can be huge, is not walked through.
        """

    def expanded_count(self, relation: str, representatives: Representatives) -> int:
        """How many facts the materialised facts of a relation stand for."""

    def shared(
        self, facts: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """All facts with a constant that is equal to another, and maybe more."""
        del representatives
        return facts

    # -- what an engine may do better than its default

    @property
    def place(self) -> str:
        """Where the facts are, as reports say it."""
        return "in this process"

    def derivable(
        self, rules: Sequence[QuerySet], views: Views, explicit: Facts
    ) -> SettledFacts:
        """Those of the changed facts that are explicit, or that a query yields.

        An engine may stop looking at a fact as soon as it has a derivation.

        Args:
            rules: queries that yield facts which they read as changed ones.
            views: what they read.
            explicit: facts that need no derivation.
        """
        changed = views.delta_positive
        total: Facts = self.no_facts() if changed is None else changed & explicit
        for queries in rules:
            total |= self.derive(queries, views)
        return self.settle(total)

    def part(self, facts: SettledFacts, parts: int) -> SettledFacts | None:
        """A sample: one of `parts` parts of the facts, each about as large and mixed.

        None if the engine cannot pick some of many facts.
        """
        del facts, parts
        return None

    def fixpoint(self, queries: QuerySet) -> tuple[Counts, SettledFacts] | None:
        """Apply recursive rules to the materialised facts until nothing is new.

        Args:
            queries: one for each rule, with role ALL; local patterns see what the
                rules derive.

        Returns:
            What the rules derive, with the number of matches over all rounds, and the
            facts that were not materialised before. None if these rules have to be
            applied round by round.
        """
        del queries
        return None

    def prepare_updates(self, strata: PlannedStrata) -> None:
        """Build indexes for updates, if that costs little beside the first facts."""
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
    """Whether there is a `stage`; without one, frames are read into tables first."""

    def stage(self, parts: Sequence[object], name: str) -> pa.Table | StagedRows:
        """Frames and tables of one relation, checked for nulls.

        `intern` and `find` take what it returns. Not in a transaction: facts may have
        to be moved to make room.
        """
        del parts
        raise EngineUseError(f"`{self.name}` reads no frames into `{name}`")

    def answer_distant(self, query: Query, views: Views) -> pa.Table | DistantRows:
        """Like `answer`; many rows may stay where they are."""
        return self.answer(query, views)

    def with_room(self, work: Callable[[], Found]) -> Found:
        """Do an update, perhaps twice: after failing for want of room, with more.

        An update that fails must leave the engine as it was.
        """
        return work()

    def explain_layout(self) -> list[str]:
        """Where facts are, and how they are divided, a line each."""
        return []

    def explain_recursion(self, recursive: QuerySet) -> list[str]:
        """How the recursive rules of a stratum are run, a line each."""
        del recursive
        return []
