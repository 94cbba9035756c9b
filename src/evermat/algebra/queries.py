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
    """The view that a pattern reads; the names are explained at `Views`."""

    ALL = auto()
    UNCHANGED = auto()
    CHANGED = auto()
    ABSENT = auto()
    ABSENT_BEFORE = auto()
    CHANGED_ABSENT = auto()

    __hash__ = object.__hash__  # members are singletons, and looked up often


@dataclass(frozen=True, slots=True)
class Pattern:
    """Facts of a relation, restricted by constants and by equal columns.

    Attributes:
        local: whether the pattern matches facts of the current stratum, and reads
            `Views.local` instead of `Views.positive` if that is set.
    """

    relation: str
    operands: tuple[Operand, ...]
    role: Role = Role.ALL
    local: bool = False


@dataclass(frozen=True, slots=True)
class Compute:
    """Bind a column to the value of an expression over columns bound before."""

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
    patterns and inline rows that pass the negative patterns whose columns are bound and
    the computations before.

    Attributes:
        head: the facts that matches yield.
        positive: patterns that must match, with roles ALL, UNCHANGED or CHANGED, and
            patterns with role CHANGED_ABSENT, which are matched too.
        negative: patterns that must not match, roles ABSENT or ABSENT_BEFORE.
        computations: in an order in which the columns of each are bound before it.
        inline: parameters of folded rules.
        column_count: the number of columns.
        label: the text of the rule, for messages.
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
    """Queries that are run together, indexed by the relation whose change they read."""

    queries: tuple[Query, ...]
    by_change: Mapping[tuple[Role, str] | None, tuple[Query, ...]] = field(init=False)
    changes: Mapping[Role, frozenset[str]] = field(init=False)
    """For each role, the relations whose change is read."""

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
        """Return whether a query reads a change of these relations."""
        changes = self.changes
        return not (
            changes.get(Role.CHANGED, _NONE).isdisjoint(positive)
            and changes.get(Role.CHANGED_ABSENT, _NONE).isdisjoint(negative)
        )

    def affected(self, views: Views) -> Iterator[Query]:
        """Yield the queries whose changed relation has facts in the change."""
        yield from self.by_change.get(None, ())
        for role, delta in (
            (Role.CHANGED, views.delta_positive),
            (Role.CHANGED_ABSENT, views.delta_negative),
        ):
            # Sorted, so that the order is the same in every process when debugging.
            for name in () if delta is None else sorted(delta.relations()):
                yield from self.by_change.get((role, name), ())


@dataclass(frozen=True, slots=True, eq=False)
class Views:
    """The views that the patterns of a query read, by role.

    | role           | a pattern with this role …                                  |
    | -------------- | ----------------------------------------------------------- |
    | ALL            | matches facts of `positive`                                 |
    | UNCHANGED      | matches facts of `positive - delta_positive`                |
    | CHANGED        | matches facts of `delta_positive`                           |
    | ABSENT         | fails if the fact is in `negative`                          |
    | ABSENT_BEFORE  | fails if the fact is in `negative | delta_negative`         |
    | CHANGED_ABSENT | matches facts of `delta_negative`                           |

    If `local` is set, local patterns read it instead of `positive`.
    """

    positive: Facts
    negative: Facts
    delta_positive: SettledFacts | None = None
    delta_negative: SettledFacts | None = None
    local: Facts | None = None

    def read_by(self, pattern: Pattern) -> Facts | None:
        """Return the view that a pattern reads, by the table above, if there is one.

        A fact of this view makes a negative pattern fail.
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
    """A set of facts defined by relations and by constants in them.

    A fact lies in the region if its relation is one of `relations`, or if it matches
    one of `shapes`, which use constants and distinct columns only.

    Attributes:
        relations: the relations that belong to the region as a whole.
        shapes: the facts of other relations that belong to it.
        names: all relations with facts in the region.
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
        """Return the region of a pattern whose columns are distinct."""
        if any(isinstance(operand, Constant) for operand in pattern.operands):
            return cls(shapes=(pattern,))
        return cls(frozenset({pattern.relation}))

    def __or__(self, other: Region) -> Region:
        return Region(self.relations | other.relations, self.shapes + other.shapes)

    def touches(self, relation: str) -> bool:
        """Return whether facts of a relation can lie in the region."""
        return relation in self.names

    def contains(self, relation: str, row: Sequence[Constant]) -> bool:
        """Return whether a fact lies in the region."""
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
    """The definition of a closure; X are the *external* facts that it starts from.

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
        edges: for the linear kinds, the facts along which steps lead, likewise.
        loops: for the transitive kind, the columns (0, 1) whose constants also get a
            fact that leads from them to themselves.
    """

    kind: ClosureKind
    pattern: Pattern
    edges: Pattern | None = None
    loops: frozenset[int] = frozenset()

    @property
    def label(self) -> str:
        """The name of the closure in messages that mention rules."""
        return f"closure of {self.pattern.relation}"


# -------------------------------------------------------------------- evaluation errors


class EvaluationError(EvermatError, ArithmeticError):
    """A computation in a rule failed: division by zero, overflow, a wrong type."""

    code: ClassVar[str] = "EM601"

    def name_facts(
        self, patterns: Iterable[Pattern], binding: Mapping[int, Constant]
    ) -> None:
        """Record the facts that the rule was applied to; unknown values are `_`."""
        facts = [_instance_text(pattern, binding) for pattern in patterns]
        if facts:
            self.message += f"; the rule was applied to {', '.join(facts)}"


def evaluation_error(
    label: str, expression: Expression, binding: Mapping[int, Constant], reason: str
) -> EvaluationError:
    """Return the error for an expression without a value, the same on every engine.

    Args:
        label: the rule.
        expression: the expression that failed.
        binding: the values of the columns, by their index.
        reason: the reason of the failure.
    """
    return EvaluationError(
        f"cannot compute `{expression_text(expression, binding)}`: {reason}",
        reason=f"every computation in a rule must have a value: {label}",
        help="add a condition to the rule that keeps such values out",
    )


def expression_text(expression: Expression, binding: Mapping[int, Constant]) -> str:
    """Return the text of an expression with its columns replaced by their values."""
    match expression:
        case Constant():
            return str(expression)
        case Column(index=index):
            return str(binding.get(index, f"?{index}"))
        case Apply(function=function, arguments=arguments):
            texts = [expression_text(argument, binding) for argument in arguments]
            if not _is_infix(expression):
                return f"{function}({', '.join(texts)})"
            # Parenthesise every nested operation: readers need not know precedences.
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
