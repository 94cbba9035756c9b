"""What some engines can do beyond the algebra, and how to ask them.

No algorithm needs any of it: an engine that can rewrite equal constants, take frames
where they are, run rules to their end by itself or move its facts offers it, and those
who want it ask first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeGuard, TypeVar, cast

from evermat.algebra import Engine
from evermat.errors import EvermatError
from evermat.values import NUMERIC_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    import pyarrow as pa

    from evermat.algebra import (
        Counts,
        Facts,
        GrowingFacts,
        QuerySet,
        Region,
        SettledFacts,
        Views,
    )
    from evermat.values import Constant, Kind

Found = TypeVar("Found")


class UnequalValuesError(EvermatError, ValueError):
    """Two different values turned out to be equal, which no value ever is.

    Attributes:
        left, right: the values.
        derivation: facts from which that follows in one step.
        given: given facts from which it follows, by predicate, if they were looked for.
        explanation: the proof, an `evermat.explain.explanation.Explanation`, if there
            is one; `proof` is its text.
    """

    code: ClassVar[str] = "EM606"

    def __init__(
        self,
        left: Constant,
        right: Constant,
        derivation: Sequence[str] = (),
        given: Mapping[str, pa.Table] | None = None,
    ) -> None:
        left, right = sorted((left, right), key=str)
        self.left = left
        self.right = right
        self.derivation = tuple(derivation)
        self.given = given
        self.explanation: object | None = None
        self.proof: tuple[str, ...] = ()
        because = f", because {'; '.join(derivation)}" if derivation else ""
        super().__init__(
            f"the facts are contradictory: {left} and {right} would be equal{because}",
            law="names can be equal, two different values never are",
            help=_advice(left, right),
        )

    def render(self) -> str:
        """The full text, the proof after what is wrong."""
        first, *others = super().render().splitlines()
        return "\n".join([first, *(f"  {line}" for line in self.proof), *others])


def _advice(left: Constant, right: Constant) -> str:
    """What can be done about two values that would be equal."""
    if not {left.kind, right.kind} <= NUMERIC_KINDS:
        return "correct the facts or the rules that make them equal"
    return (
        "correct the facts or the rules that make them equal; numbers that identify "
        "things must be names: strings (`frame['id'].astype(str)`, or `@declare p(id: "
        "string) .` for a file), or IRIs where there are triples"
    )


class Representatives(Protocol):
    """Which constants are equal, and what stands for them.

    Each clique of equal constants has one that stands for it, a value if there is one.

    A constant that nothing was said about stands for itself. Engines for the same
    constants can exchange these objects.
    """

    def copy(self) -> Representatives:
        """The same cliques, to be changed on their own."""

    def is_identity(self) -> bool:
        """Whether no two constants are equal."""

    def replaced(self, constants: Sequence[Constant]) -> dict[Constant, Constant]:
        """Those of the constants that something else stands for, and what does.

        A caller that asks for the same sequence again is answered faster.
        """

    def cliques(self) -> pa.Table:
        """The members of cliques of two and more, beside their representative."""

    def take_up(self, table: pa.Table) -> None:
        """Have constants stand for others: where no two were equal so far.

        Args:
            table: constants that do not stand for themselves, and what does.
        """

    def normalised(self, table: pa.Table) -> pa.Table:
        """A table with every constant replaced by its representative."""

    def expanded(self, table: pa.Table, names: Collection[int] = ()) -> pa.Table:
        """All rows that the rows of a table of term columns stand for.

        Args:
            table: constants that represent their cliques.
            names: the columns of constants that stand for themselves only.
        """

    def expanded_size(self, table: pa.Table) -> int:
        """How many rows `expanded` would have; the cliques are not multiplied out."""


class EqualityEngine(Engine, Protocol):
    """An engine that can let one constant stand for all that are equal to it."""

    def representatives(self) -> Representatives:
        """Cliques of equal constants, none of them with two members yet."""

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
        """Let the representatives of given facts hold, and be explicit, in their place.

        For a fresh engine outside of a transaction, with given facts and nothing else.

        Returns:
            The facts that are explicit now and were not given themselves.
        """

    def marked(self) -> SettledFacts:
        """The explicit facts whose recursive count is above zero."""

    def originals(
        self, facts: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """The explicit facts that `rewrite` takes to one of the facts.

        They are looked up among the explicit facts of the cliques; the product of the
        cliques, which can be huge, is not walked through.
        """

    def expanded_count(self, relation: str, representatives: Representatives) -> int:
        """How many facts the materialised facts of a relation stand for."""


def can_rewrite(engine: Engine) -> TypeGuard[EqualityEngine]:
    """Whether an engine keeps representatives of equal constants."""
    return hasattr(engine, "representatives")


class SharingEngine(EqualityEngine, Protocol):
    """An engine that quickly finds the facts that equality matters to."""

    def shared(
        self, facts: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """All facts with a constant that is equal to another, and maybe more."""


def can_tell_shared(engine: EqualityEngine) -> TypeGuard[SharingEngine]:
    """Whether an engine quickly finds the facts that equality matters to."""
    return hasattr(engine, "shared")


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


class StagingEngine(Engine, Protocol):
    """An engine that takes frames without having them in this process.

    Where other engines take tables, it takes what `stage` gives as well.
    """

    def stage(self, parts: Sequence[object], name: str) -> pa.Table | StagedRows:
        """Frames and tables of one relation, checked for values that are missing.

        Not in a transaction: facts may have to be moved to make room.
        """


def can_stage(engine: Engine) -> TypeGuard[StagingEngine]:
    """Whether an engine takes frames where they are."""
    return hasattr(engine, "stage")


class FixpointEngine(Engine, Protocol):
    """An engine that can apply some sets of rules until nothing new follows."""

    def fixpoint(self, queries: QuerySet) -> tuple[Counts, SettledFacts] | None:
        """Apply recursive rules to the materialised facts again and again.

        Args:
            queries: one for each rule, with role ALL; local patterns see what the
                rules derive.

        Returns:
            What the rules derive, with the number of matches over all rounds, and the
            facts that were not materialised before. None if these rules have to be
            applied round by round.
        """


def has_fixpoints(engine: Engine) -> TypeGuard[FixpointEngine]:
    """Whether an engine can apply some sets of rules until nothing new follows."""
    return hasattr(engine, "fixpoint")


class ManyReadingEngine(Engine, Protocol):
    """An engine that reads rows of several relations faster together than in turn."""

    def intern_all(self, tables: Mapping[str, pa.Table]) -> SettledFacts:
        """Like `intern`, for the rows of several relations."""

    def find_all(self, tables: Mapping[str, pa.Table]) -> SettledFacts:
        """Like `find`, for the rows of several relations."""


def reads_many(engine: Engine) -> TypeGuard[ManyReadingEngine]:
    """Whether an engine reads rows of several relations together."""
    return hasattr(engine, "find_all")


class ChangeQueries(Protocol):
    """Rules, as queries that read a change; see `rule_plans.RuleSet`."""

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
    """A stratum of rules; see `maintenance.strata`."""

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


class PreparingEngine(Engine, Protocol):
    """An engine that can make indexes for updates before the first of them."""

    def get_ready(self, strata: PlannedStrata) -> None:
        """Make what updates will need, if that costs little beside the first facts."""


def can_prepare(engine: Engine) -> TypeGuard[PreparingEngine]:
    """Whether an engine can make indexes for updates before the first of them."""
    return hasattr(engine, "get_ready")


class ComponentRules(Protocol):
    """The rules that equality depends on; see `maintenance.equality_rules`."""

    @property
    def same(self) -> str:
        """The relation of the nodes that stand for cliques."""

    @property
    def checking(self) -> ChangeQueries:
        """The rules over facts in which all equal constants are merged."""

    @property
    def checking_alone(self) -> ChangeQueries:
        """Those of them that matter to a fact behind which one fact was given."""

    @property
    def proving(self) -> ChangeQueries:
        """The rules where no constants are merged; they may find new equalities."""

    @property
    def region(self) -> Region:
        """The facts that the rules speak of."""

    @property
    def derivable(self) -> Region:
        """The facts that the rules can derive."""

    @property
    def read_alone(self) -> Region:
        """The facts that matter to rules one by one."""

    @property
    def constants(self) -> Sequence[Constant]:
        """The constants of all rules of the program."""


@dataclass(frozen=True, slots=True, eq=False)
class Withdrawal:
    """What comes of given facts that go, where constants are equal.

    Attributes:
        representatives: those after it.
        about_moved: what `about_moved` finds among the materialised facts, unless that
            is to be asked.
        withdrawn, given: representatives of given facts that go and that come.
        cleared, set: facts that cease to be explicit in the engine, and that become so.
        implied, not_implied: explicit facts that are not given themselves, from now on
            and no longer.
        rounds, forward_instances, backward_instances, proved, deleted, added: what was
            done in the component; see `maintenance.updates.StratumReport`.
    """

    representatives: Representatives
    about_moved: SettledFacts | None
    withdrawn: SettledFacts
    given: SettledFacts
    cleared: SettledFacts
    set: SettledFacts
    implied: SettledFacts
    not_implied: SettledFacts
    rounds: int
    forward_instances: int
    backward_instances: int
    proved: int
    deleted: int
    added: int


class WithdrawingEngine(EqualityEngine, Protocol):
    """An engine that carries out some deletions by itself where constants are equal."""

    def withdraw(
        self,
        rules: ComponentRules,
        deletions: SettledFacts,
        representatives: Representatives,
        sets: tuple[GrowingFacts, GrowingFacts],
        values: frozenset[Kind],
    ) -> Withdrawal | None:
        """Bring the component of equality up to date, and the form of given facts.

        Args:
            rules: those of the component.
            deletions: given facts that go, as they were given.
            representatives: which constants are equal before.
            sets: are given the facts that are deleted and added; both are empty.
            values: the kinds of constants that are never equal to each other.

        Returns:
            None if it has to be carried out step by step; then nothing has changed.
        """


def can_withdraw(engine: Engine) -> TypeGuard[WithdrawingEngine]:
    """Whether an engine carries out deletions by itself where constants are equal."""
    return hasattr(engine, "withdraw")


class DividingEngine(Engine, Protocol):
    """An engine that can pick some of many facts."""

    def part(self, facts: SettledFacts, parts: int) -> SettledFacts:
        """One of so many parts of the facts, each about as large and as mixed."""


def can_divide(engine: Engine) -> TypeGuard[DividingEngine]:
    """Whether an engine can pick some of many facts."""
    return hasattr(engine, "part")


class ProvingEngine(Engine, Protocol):
    """An engine that can stop looking at a fact as soon as it has a derivation."""

    def derivable(self, queries: QuerySet, views: Views) -> SettledFacts:
        """Those of the changed facts that a query yields.

        Args:
            queries: each yields facts that it reads as changed ones.
            views: what they read.
        """


def can_prove(engine: Engine) -> TypeGuard[ProvingEngine]:
    """Whether an engine stops looking at a fact that has a derivation."""
    return hasattr(engine, "derivable")


class ExplainingEngine(Engine, Protocol):
    """An engine that has more to say than how it joins."""

    def explain_layout(self) -> list[str]:
        """Where facts are, and how they are divided."""

    def explain_recursion(self, recursive: QuerySet) -> list[str]:
        """How the recursive rules of a stratum are run."""


def can_explain(engine: Engine) -> TypeGuard[ExplainingEngine]:
    """Whether an engine has more to say than how it joins."""
    return hasattr(engine, "explain_layout")


class RoomyEngine(Engine, Protocol):
    """An engine that moves its facts when an update outgrows the place they are in."""

    place: str
    """Where the facts are, in words."""

    def with_room(self, work: Callable[[], Found]) -> Found:
        """Do an update, perhaps twice: after failing for want of room, with more."""


def with_room(engine: Engine, work: Callable[[], Found]) -> Found:
    """Do an update of an engine, which must leave it as it was where it fails."""
    if hasattr(engine, "with_room"):
        return cast("RoomyEngine", engine).with_room(work)
    return work()


def place_of(engine: Engine) -> str:
    """Where an engine has its facts, in words."""
    return str(getattr(engine, "place", "in this process"))
