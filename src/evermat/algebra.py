"""The algebra that algorithms are written in, and the contract an engine fulfils.

This is the one file an engine author must read. Algorithms (`evermat.maintenance`)
are programs over it; an engine (`evermat.engines.*`) runs them on Python sets, on
columns or on Spark. Algorithms never see an array, engines never see datalog.

**Facts.** A *fact* is a relation name and a row of constants. `Facts` stands for a set
of facts over all relations. There are three sorts of sets:

- *stored* sets: `engine.materialised` and `engine.explicit`, possibly huge;
- *growing* sets (`engine.growing()`): what an update accumulates, such as the deleted
  facts; they change in place, and everything built from them sees the change;
- *settled* sets: fixed and small, the results of `derive`, `settle` and `intern`.

`a | b`, `a - b`, `a & b` and `a.within(region)` build *views*. A view costs nothing, is
never copied, and always means the current contents of its parts. `settle` turns a view
into a settled set; the work must follow the settled and growing parts of the view, so
`settle(candidates - deleted)` is fine, and settling a whole stored set is refused.

**Queries.** A `Query` is one select-project-join block: a head, patterns that must
match, patterns that must not, computations, and inline rows. Each pattern has a *role*
that says which view it reads, which is how one rule is split by the position that
changed. A query yields a multiset: one head fact for each match.

Contract of an engine, each point with a test in `tests/algebra`:

1. Sets have set semantics; counts are exact: each match of a query is counted once.
2. `derive(queries, views)` are the facts of `derive_counts(queries, views)`.
3. Views are by reference: a growing set that changed has changed in every view.
4. Settled sets never change, whatever happens to the sets they came from.
5. A failed call raises and leaves the engine usable; between `begin` and `commit`,
   `rollback` restores facts, explicit facts and counters.
6. What a journal is told adds up to what is stored, and `reinstate` brings it back.
7. Order never matters, neither of rows nor of queries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeGuard

from evermat.errors import EvermatError
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa


# ---------------------------------------------------------------- sets of facts


class Facts:
    """A set of facts, as an expression; see the module's docstring."""

    __slots__ = ()

    def __or__(self, other: Facts) -> Facts:
        return Union(self, other)

    def __sub__(self, other: Facts) -> Facts:
        return Difference(self, other)

    def __and__(self, other: Facts) -> Facts:
        return Intersection(self, other)

    def within(self, region: Region) -> Facts:
        """Those of the facts that lie in a region."""
        return Within(self, region)

    def __bool__(self) -> bool:
        message = "a set of facts has no truth value; call is_empty() on a settled set"
        raise TypeError(message)


@dataclass(frozen=True, slots=True, eq=False)
class Union(Facts):
    """Facts of either side."""

    left: Facts
    right: Facts


@dataclass(frozen=True, slots=True, eq=False)
class Difference(Facts):
    """Facts of the left side that the right side does not have."""

    left: Facts
    right: Facts


@dataclass(frozen=True, slots=True, eq=False)
class Intersection(Facts):
    """Facts of both sides."""

    left: Facts
    right: Facts


@dataclass(frozen=True, slots=True, eq=False)
class Within(Facts):
    """Facts of a set that lie in a region."""

    facts: Facts
    region: Region


class StoredFacts(Facts):
    """A set the engine keeps between updates. Engines subclass it."""

    __slots__ = ()


class GrowingFacts(Facts):
    """A set that an update accumulates. Engines subclass it."""

    __slots__ = ()

    def add(self, facts: Facts) -> None:
        """Add facts; what is already there is no error."""
        raise NotImplementedError

    def discard(self, facts: Facts) -> None:
        """Take facts out; what is not there is no error."""
        raise NotImplementedError


class SettledFacts(Facts):
    """A fixed set. Engines subclass it."""

    __slots__ = ()

    def is_empty(self) -> bool:
        """Whether the set has no facts. Free: settling has found out."""
        raise NotImplementedError

    def size(self) -> int:
        """The number of facts. Free, like `is_empty`."""
        raise NotImplementedError

    def relations(self) -> frozenset[str]:
        """The relations that have facts in the set. Free, like `is_empty`."""
        raise NotImplementedError


class Counts:
    """A multiset of facts: how often each was derived. Engines subclass it."""

    __slots__ = ()

    @property
    def facts(self) -> SettledFacts:
        """The facts, each once."""
        raise NotImplementedError


class Counters(Protocol):
    """A number for each fact, zero where nothing was said."""

    def add(self, counts: Counts) -> None:
        """Raise the numbers by the counts."""

    def subtract(self, counts: Counts) -> None:
        """Lower the numbers by the counts; never below zero, which is an error."""

    def positive(self, facts: Facts) -> SettledFacts:
        """Those of the facts whose number is above zero."""

    def zero(self, facts: Facts) -> SettledFacts:
        """Those of the facts whose number is zero."""


# ---------------------------------------------------------------------- queries


@dataclass(frozen=True, slots=True)
class Column:
    """A variable of a query, by number."""

    index: int


Operand = Column | Constant


@dataclass(frozen=True, slots=True)
class Apply:
    """A function of `evermat.functions` applied to expressions."""

    function: str
    arguments: tuple[Expression, ...]


Expression = Column | Constant | Apply


class Role(Enum):
    """Which view a pattern reads; the names are explained at `Views`."""

    ALL = auto()
    UNCHANGED = auto()
    CHANGED = auto()
    ABSENT = auto()
    ABSENT_BEFORE = auto()
    CHANGED_ABSENT = auto()

    __hash__ = object.__hash__  # there is one of each, and they are looked up often


@dataclass(frozen=True, slots=True)
class Pattern:
    """Facts of a relation, by constants and by equal columns.

    Attributes:
        local: the pattern speaks of facts of the stratum at work, and reads
            `Views.local` instead of `Views.positive` where that is given.
    """

    relation: str
    operands: tuple[Operand, ...]
    role: Role = Role.ALL
    local: bool = False


@dataclass(frozen=True, slots=True)
class Compute:
    """Give a column the value of an expression over columns bound before."""

    target: Column
    expression: Expression


@dataclass(frozen=True, slots=True)
class Require:
    """Keep only matches for which an expression is true."""

    expression: Apply


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class InlineRows:
    """Distinct rows of constants joined like a relation: parameters of folded rules."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Constant, ...], ...]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Query:
    """One select-project-join block; identical objects may share a cached plan.

    Every column of the head, of a negative pattern and of a computation's expression
    is bound by a positive pattern, a changed negative one, inline rows or an earlier
    computation. The target of a computation is bound by nothing else.

    Computations may fail, so it matters when they run: for matches of all positive
    patterns and inline rows, that pass the negative patterns whose columns are bound,
    and that pass the computations before.

    Attributes:
        head: the facts that matches yield.
        positive: patterns that must match, with roles ALL, UNCHANGED or CHANGED, and
            patterns with role CHANGED_ABSENT, which are matched too.
        negative: patterns that must not match, roles ABSENT or ABSENT_BEFORE.
        computations: in an order in which each has what it needs.
        inline: parameters of folded rules.
        column_count: how many columns there are.
        label: the rule, as text for messages.
    """

    head: Pattern
    positive: tuple[Pattern, ...] = ()
    negative: tuple[Pattern, ...] = ()
    computations: tuple[Compute | Require, ...] = ()
    inline: InlineRows | None = None
    column_count: int = 0
    label: str = ""

    @property
    def changed(self) -> Pattern | None:
        """The pattern that reads the change, if the query has one."""
        for pattern in self.positive:
            if pattern.role in {Role.CHANGED, Role.CHANGED_ABSENT}:
                return pattern
        return None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class QuerySet:
    """Queries that are run together, found by the relation whose change they read."""

    queries: tuple[Query, ...]
    by_change: Mapping[tuple[Role, str] | None, tuple[Query, ...]] = field(init=False)
    changes: Mapping[Role, frozenset[str]] = field(init=False)
    """For each role the relations whose change is read."""

    def __post_init__(self) -> None:
        groups: dict[tuple[Role, str] | None, list[Query]] = {}
        for query in self.queries:
            changed = query.changed
            key = None if changed is None else (changed.role, changed.relation)
            groups.setdefault(key, []).append(query)
        by_change = {key: tuple(group) for key, group in groups.items()}
        object.__setattr__(self, "by_change", by_change)
        changes: dict[Role, set[str]] = {}
        for key in groups:
            if key is not None:
                changes.setdefault(key[0], set()).add(key[1])
        frozen = {role: frozenset(names) for role, names in changes.items()}
        object.__setattr__(self, "changes", frozen)


@dataclass(frozen=True, slots=True, eq=False)
class Views:
    """What the patterns of a query read, by role.

    | role           | a pattern with this role …                                  |
    | -------------- | ----------------------------------------------------------- |
    | ALL            | matches facts of `positive`                                 |
    | UNCHANGED      | matches facts of `positive - delta_positive`                |
    | CHANGED        | matches facts of `delta_positive`                           |
    | ABSENT         | fails if the fact is in `negative`                          |
    | ABSENT_BEFORE  | fails if the fact is in `negative | delta_negative`         |
    | CHANGED_ABSENT | matches facts of `delta_negative`                           |

    Where `local` is given, local patterns read it instead of `positive`.
    """

    positive: Facts
    negative: Facts
    delta_positive: SettledFacts | None = None
    delta_negative: SettledFacts | None = None
    local: Facts | None = None

    def read_by(self, pattern: Pattern) -> Facts | None:
        """The facts that a pattern reads, by the table above; None if there are none.

        For a negative pattern these are the facts that must not be there.
        """
        positive = self.positive
        if pattern.local and self.local is not None:
            positive = self.local
        match pattern.role:
            case Role.UNCHANGED if self.delta_positive is not None:
                return positive - self.delta_positive
            case Role.ALL | Role.UNCHANGED:
                return positive
            case Role.CHANGED:
                return self.delta_positive
            case Role.ABSENT_BEFORE if self.delta_negative is not None:
                return self.negative | self.delta_negative
            case Role.ABSENT | Role.ABSENT_BEFORE:
                return self.negative
            case Role.CHANGED_ABSENT:
                return self.delta_negative


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Region:
    """A set of facts that a description decides: relations, and constants in them.

    A fact lies in the region if its relation is one of `relations`, or if it matches
    one of `shapes`, which use constants and distinct columns only.

    Attributes:
        relations: those that lie in the region as a whole.
        shapes: the facts of other relations that do.
        names: all relations of which facts can lie in the region.
    """

    relations: frozenset[str] = frozenset()
    shapes: tuple[Pattern, ...] = ()
    names: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # A region can have a shape for every class of an ontology.
        names = self.relations | {shape.relation for shape in self.shapes}
        object.__setattr__(self, "names", names)

    def __or__(self, other: Region) -> Region:
        return Region(self.relations | other.relations, self.shapes + other.shapes)

    def touches(self, relation: str) -> bool:
        """Whether any fact of a relation can lie in the region."""
        return relation in self.names

    def contains(self, relation: str, row: Sequence[Constant]) -> bool:
        """Whether a fact lies in the region."""
        if relation in self.relations:
            return True
        return any(_fits(shape, relation, row) for shape in self.shapes)


def _fits(shape: Pattern, relation: str, row: Sequence[Constant]) -> bool:
    return shape.relation == relation and all(
        operand == value
        for operand, value in zip(shape.operands, row, strict=True)
        if isinstance(operand, Constant)
    )


# --------------------------------------------------------------------- closures


class ClosureKind(Enum):
    """Which facts follow; X are the *external* facts that a closure starts from.

    | kind         | the facts are                                                     |
    | ------------ | ----------------------------------------------------------------- |
    | PLAIN        | X                                                                 |
    | TRANSITIVE   | paths of one or more facts of X                                   |
    | SYMMETRIC    | the same, where facts of X can be walked both ways                |
    | LEFT_LINEAR  | a fact of X, then any number of steps along edges                 |
    | RIGHT_LINEAR | any number of steps along edges, then a fact of X                 |
    """

    PLAIN = auto()
    TRANSITIVE = auto()
    SYMMETRIC = auto()
    LEFT_LINEAR = auto()
    RIGHT_LINEAR = auto()


@dataclass(frozen=True, slots=True)
class Closure:
    """A closure of facts under paths.

    Attributes:
        pattern: the facts, with constants, `Column(0)` at the position where a step
            begins and `Column(1)` where it ends; each of the two occurs once.
        edges: for the linear kinds, the facts that steps go along, likewise.
        loops: for the transitive kind, the columns (0, 1) whose constants also get a
            fact that leads from them to themselves.
    """

    kind: ClosureKind
    pattern: Pattern
    edges: Pattern | None = None
    loops: frozenset[int] = frozenset()

    @property
    def label(self) -> str:
        """What it is called in messages, beside rules."""
        return f"closure of {self.pattern.relation}"


# ---------------------------------------------------------------------- engines


class EngineUseError(EvermatError, RuntimeError):
    """A call that an engine must refuse: it would break or be far too costly."""

    code: ClassVar[str] = "EM603"


def is_bounded(facts: Facts) -> bool:
    """Whether working out a view follows its settled and growing parts.

    Such a view may be settled, added to a growing set, or asked about in counters.
    """
    match facts:
        case SettledFacts() | GrowingFacts():
            return True
        case Union(left=left, right=right):
            return is_bounded(left) and is_bounded(right)
        case Intersection(left=left, right=right):
            return is_bounded(left) or is_bounded(right)
        case Difference(left=inner) | Within(facts=inner):
            return is_bounded(inner)
        case _:
            return False


def require_bounded(facts: Facts) -> None:
    """Refuse to work out a view that would walk through a stored set."""
    if not is_bounded(facts):
        raise EngineUseError(
            "a view of a stored set cannot be settled",
            law="the work must follow the settled and growing parts of a view",
            help="intersect it with a settled or growing set, or take a snapshot",
        )


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
        """End the transaction as if it had not been."""

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


class ExplainingEngine(Engine, Protocol):
    """An engine that has more to say than how it joins."""

    def explain_layout(self) -> list[str]:
        """Where facts are, and how they are divided."""

    def explain_recursion(self, recursive: QuerySet) -> list[str]:
        """How the recursive rules of a stratum are run."""


def can_explain(engine: Engine) -> TypeGuard[ExplainingEngine]:
    """Whether an engine has more to say than how it joins."""
    return hasattr(engine, "explain_layout")
