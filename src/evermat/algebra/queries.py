"""Queries, what their patterns read, and regions, which patterns describe."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evermat.algebra.facts import Facts, SettledFacts


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


_NONE: frozenset[str] = frozenset()


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

    def reads(self, positive: frozenset[str], negative: frozenset[str]) -> bool:
        """Whether a query reads a change of relations, in one of the two ways."""
        changes = self.changes
        return not (
            changes.get(Role.CHANGED, _NONE).isdisjoint(positive)
            and changes.get(Role.CHANGED_ABSENT, _NONE).isdisjoint(negative)
        )

    def affected(self, views: Views) -> Iterator[Query]:
        """The queries that can yield anything: the change has what they read."""
        yield from self.by_change.get(None, ())
        for role, delta in (
            (Role.CHANGED, views.delta_positive),
            (Role.CHANGED_ABSENT, views.delta_negative),
        ):
            # In an order that is the same in every process, for the sake of debugging.
            for name in () if delta is None else sorted(delta.relations()):
                yield from self.by_change.get((role, name), ())


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

    @classmethod
    def of(cls, pattern: Pattern) -> Region:
        """The facts that have the constants of a pattern, whose columns differ."""
        if any(isinstance(operand, Constant) for operand in pattern.operands):
            return cls(shapes=(pattern,))
        return cls(frozenset({pattern.relation}))

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
