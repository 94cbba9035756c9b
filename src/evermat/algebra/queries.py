"""Queries, what their patterns read, regions, closures, and evaluation errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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


# ----------------------------------------------------------------------------- closures


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


# -------------------------------------------------------------------- evaluation errors


class EvaluationError(EvermatError, ArithmeticError):
    """A computation in a rule failed: division by zero, overflow, a wrong type."""

    code: ClassVar[str] = "EM601"

    def name_facts(
        self, patterns: Iterable[Pattern], binding: Mapping[int, Constant]
    ) -> None:
        """Say to which facts the rule was applied; values not at hand are `_`."""
        facts = [_instance_text(pattern, binding) for pattern in patterns]
        if facts:
            self.message += f"; the rule was applied to {', '.join(facts)}"


def evaluation_error(
    label: str, expression: Expression, binding: Mapping[int, Constant], reason: str
) -> EvaluationError:
    """The error for an expression that has no value, the same on every engine.

    Args:
        label: the rule.
        expression: what was to be computed.
        binding: the values of the columns, by their index.
        reason: what went wrong.
    """
    return EvaluationError(
        f"cannot compute `{expression_text(expression, binding)}`: {reason}",
        reason=f"every computation in a rule must have a value: {label}",
        help="add a condition to the rule that keeps such values out",
    )


def expression_text(expression: Expression, binding: Mapping[int, Constant]) -> str:
    """An expression with its columns replaced by their values."""
    match expression:
        case Constant():
            return str(expression)
        case Column(index=index):
            return str(binding.get(index, f"?{index}"))
        case Apply(function=function, arguments=arguments):
            texts = [expression_text(argument, binding) for argument in arguments]
            if not _is_infix(expression):
                return f"{function}({', '.join(texts)})"
            # Brackets around every operation inside another: readers need not know
            # which of them binds more tightly.
            return f" {function} ".join(
                f"({text})" if _is_infix(argument) else text
                for argument, text in zip(arguments, texts, strict=True)
            )


def _instance_text(pattern: Pattern, binding: Mapping[int, Constant]) -> str:
    values = (
        operand if isinstance(operand, Constant) else binding.get(operand.index, "_")
        for operand in pattern.operands
    )
    return f"{pattern.relation}({', '.join(map(str, values))})"


def _is_infix(expression: Expression) -> bool:
    return (
        isinstance(expression, Apply)
        and len(expression.arguments) > 1
        and not expression.function.isidentifier()
    )
