"""Compilation of rules to queries: full, delta, head-bound and backward.

All algorithms are built on one operator, written in the papers as Π⟦Iᵖ, Iⁿ : P, N⟧: all
rule instances whose positive atoms hold in Iᵖ, whose negated atoms fail in Iⁿ, and that
touch the change, with a positive atom in P or a negated atom in N. The result is a
multiset, so each instance must be found exactly once. A rule is therefore split by the
*first* position that changed:

- for each positive atom i: atom i in P, the atoms before it in Iᵖ ∖ P, those after it
  in Iᵖ, and every negated atom absent from Iⁿ;
- for each negated atom k: all positive atoms in Iᵖ ∖ P, atom k in N, the negated atoms
  before it absent from Iⁿ ∪ N, those after it absent from Iⁿ.

`compile_rules` does the split once for each set of rules; an engine then runs only
those queries whose changed relation has a change.

**Folding.** Rules that differ only in the constants of their atoms, such as the
subclass axioms of an ontology, become one query joined with a table of the constants.
An instance of the query is a row of that table, which identifies the rule, together
with an instance of this rule, so folding preserves counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from evermat.algebra import (
    Aggregate,
    Apply,
    Column,
    Compute,
    InlineRows,
    Pattern,
    Query,
    QuerySet,
    Region,
    Require,
    Role,
    Views,
)
from evermat.lang.syntax import Assignment, Condition, Term, Variable
from evermat.runtime import collection_paused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evermat.algebra import Counts, Engine, Expression, Facts, Operand, SettledFacts
    from evermat.lang import syntax
    from evermat.lang.strata import Shape, Stratification, Stratum
    from evermat.lang.syntax import Atom, Rule
    from evermat.values import Constant


_Family = dict[tuple["Constant", ...], "Rule"]
"""Rules that differ in their constants only, keyed by these constants."""


@dataclass(frozen=True, eq=False)
class RuleSet:
    """Rules and the queries that evaluate them; each kind is built on first use.

    Attributes:
        rules: normal rules, each with one head.
        is_local: whether a positive atom of a rule reads the current stratum.
    """

    rules: tuple[Rule, ...]
    is_local: Callable[[Rule, Atom], bool]

    @cached_property
    def full(self) -> QuerySet:
        """The queries for all instances: one for each rule or family of rules."""
        with collection_paused():
            families = self.families.items()
            return QuerySet(tuple(_family_query(*family) for family in families))

    @cached_property
    def families(self) -> dict[_RuleShape, _Family]:
        """The rules, grouped by shape: rules that differ only in constants of atoms."""
        families: dict[_RuleShape, _Family] = {}
        with collection_paused():
            for rule in self.rules:
                reader = _RuleReader(rule, self.is_local)
                # A program is a set of rules: duplicates count once.
                family = families.setdefault(reader.shape, {})
                family.setdefault(reader.constants, rule)
        return families

    def without(self, unwanted: frozenset[Rule]) -> RuleSet:
        """Return the set without some rules; families of the others are reused."""
        rules = tuple(rule for rule in self.rules if rule not in unwanted)
        others = RuleSet(rules, self.is_local)
        if "families" in self.__dict__:
            families = _without(self.families, unwanted)
            # Rules that differ only in their variables have a single entry in
            # `families`.
            if sum(map(len, families.values())) == len(rules):
                others.__dict__["families"] = families
        return others

    @cached_property
    def delta(self) -> QuerySet:
        """The queries for instances that touch a change, each found exactly once."""
        return self._each(_by_change)

    @property
    def delta_queries(self) -> QuerySet | None:
        """The same queries, or None without rules: nothing is built then."""
        return self.delta if self.rules else None

    @cached_property
    def rederive(self) -> QuerySet:
        """The queries for instances whose head is one of the changed facts."""
        return self._each(_head_bound)

    @cached_property
    def backward(self) -> QuerySet:
        """The queries for the local body facts of instances with a changed head."""
        return self._each(_backward)

    def _each(self, split: Callable[[Query], Iterable[Query]]) -> QuerySet:
        return QuerySet(tuple(part for q in self.full.queries for part in split(q)))


def compile_rules(
    rules: Iterable[Rule], is_local: Callable[[Rule, Atom], bool]
) -> RuleSet:
    """Return the queries for a set of normal rules."""
    return RuleSet(tuple(rules), is_local)


@dataclass(frozen=True, slots=True, eq=False)
class CompiledAggregate:
    """An aggregate rule and the engine operations that evaluate it."""

    rule: Rule
    aggregate: Aggregate


@dataclass(frozen=True, eq=False)
class StratumPlan:
    """One stratum, ready to run.

    Attributes:
        region: the facts that the rules of the stratum can derive.
        rules: the recursive and the nonrecursive rules together.
        aggregates: aggregates that are computed before the rules are applied.
        monotone: aggregates that are computed together with the rules.
    """

    index: int
    region: Region
    nonrecursive: RuleSet
    recursive: RuleSet
    rules: RuleSet
    aggregates: tuple[CompiledAggregate, ...] = ()
    monotone: tuple[CompiledAggregate, ...] = ()


def plan_strata(stratification: Stratification) -> tuple[StratumPlan, ...]:
    """Return the plans of all strata, in evaluation order."""
    return tuple(plan_stratum(stratum) for stratum in stratification.strata)


def plan_stratum(stratum: Stratum) -> StratumPlan:
    """Return the plan of a stratum."""
    return StratumPlan(
        index=stratum.index,
        region=region_of(stratum.shapes),
        nonrecursive=compile_rules(stratum.nonrecursive_rules, stratum.is_local),
        recursive=compile_rules(stratum.recursive_rules, stratum.is_local),
        rules=compile_rules(stratum.rules, stratum.is_local),
        aggregates=tuple(map(compile_aggregate, stratum.aggregate_rules)),
        monotone=tuple(map(compile_aggregate, stratum.monotone_rules)),
    )


def compile_aggregate(rule: Rule) -> CompiledAggregate:
    """Compile an aggregate rule."""
    (element,) = rule.aggregations()
    (atom,) = element.atoms()
    columns = {
        argument.name: at
        for at, argument in enumerate(atom.arguments)
        if isinstance(argument, Variable)
    }
    head = [a.name for a in rule.head.arguments if isinstance(a, Variable)]
    (value,) = element.values
    if not isinstance(value, Variable):
        message = "an aggregate rule has only variables"
        raise TypeError(message)
    aggregate = Aggregate(
        function=element.function,
        members=atom.predicate,
        arity=atom.arity,
        group=tuple(columns[name] for name in head[: head.index(element.target.name)]),
        value=columns[value.name],
        values=rule.head.predicate,
        label=str(rule.written),
    )
    return CompiledAggregate(rule, aggregate)


def region_of(shapes: Iterable[Shape]) -> Region:
    """Return the region of the facts that match one of the shapes."""
    relations: set[str] = set()
    patterns: list[Pattern] = []
    for shape in shapes:
        if not shape.constants:
            relations.add(shape.predicate)
            continue
        fixed = dict(shape.constants)
        operands = tuple(fixed.get(at, Column(at)) for at in range(shape.arity))
        patterns.append(Pattern(shape.predicate, operands))
    # A shape without constants subsumes narrower ones of the same relation.
    narrow = tuple(p for p in patterns if p.relation not in relations)
    return Region(frozenset(relations), narrow)


# ------------------------------------------------------------------- evaluation


def derive(  # noqa: PLR0913  the six arguments of the papers' operator
    engine: Engine,
    queries: QuerySet,
    *,
    positive: Facts,
    negative: Facts,
    delta_positive: SettledFacts | None = None,
    delta_negative: SettledFacts | None = None,
    local: Facts | None = None,
) -> SettledFacts:
    """Π⟦positive, negative : delta_positive, delta_negative⟧ as a set."""
    views = Views(positive, negative, delta_positive, delta_negative, local)
    return engine.derive(queries, views)


def derive_counts(  # noqa: PLR0913  the six arguments of the papers' operator
    engine: Engine,
    queries: QuerySet,
    *,
    positive: Facts,
    negative: Facts,
    delta_positive: SettledFacts | None = None,
    delta_negative: SettledFacts | None = None,
    local: Facts | None = None,
) -> Counts:
    """Π⟦positive, negative : delta_positive, delta_negative⟧ as a multiset."""
    views = Views(positive, negative, delta_positive, delta_negative, local)
    return engine.derive_counts(queries, views)


# --------------------------------------------------------- ways to split a query


def _by_change(query: Query) -> Iterator[Query]:
    """Split by the first changed position; see the module's docstring."""
    unchanged = tuple(replace(p, role=Role.UNCHANGED) for p in query.positive)
    for i, pattern in enumerate(query.positive):
        changed = replace(pattern, role=Role.CHANGED)
        yield replace(
            query, positive=(*unchanged[:i], changed, *query.positive[i + 1 :])
        )
    before = tuple(replace(p, role=Role.ABSENT_BEFORE) for p in query.negative)
    for k, pattern in enumerate(query.negative):
        changed = replace(pattern, role=Role.CHANGED_ABSENT)
        yield _binding(
            query,
            positive=(*unchanged, changed),
            negative=before[:k] + query.negative[k + 1 :],
        )


def _head_bound(query: Query) -> Iterator[Query]:
    head = replace(query.head, role=Role.CHANGED)
    yield _binding(query, positive=(head, *query.positive), negative=query.negative)


def _backward(query: Query) -> Iterator[Query]:
    for bound in _head_bound(query):
        for pattern in query.positive:
            if pattern.local:
                yield replace(bound, head=replace(pattern, local=False))


def _binding(
    query: Query, *, positive: tuple[Pattern, ...], negative: tuple[Pattern, ...]
) -> Query:
    """Replace the patterns of a query, which may now bind columns it computed.

    A function cannot be inverted, so a computation whose target is bound becomes a
    check.
    """
    bound = {
        operand
        for pattern in positive
        for operand in pattern.operands
        if isinstance(operand, Column)
    }
    computations = tuple(
        Require(Apply("=", (step.target, step.expression)))
        if isinstance(step, Compute) and step.target in bound
        else step
        for step in query.computations
    )
    return replace(
        query, positive=positive, negative=negative, computations=computations
    )


# ---------------------------------------------------------------------- folding


@dataclass(frozen=True, slots=True)
class _AtomShape:
    """An atom with its variables numbered and its constants omitted (`None`)."""

    relation: str
    columns: tuple[int | None, ...]
    local: bool = False


@dataclass(frozen=True, slots=True)
class _RuleShape:
    """The common part of the rules of a family."""

    head: _AtomShape
    positive: tuple[_AtomShape, ...]
    negative: tuple[_AtomShape, ...]
    computations: tuple[Compute | Require, ...]
    variable_count: int


def variables_of(rule: Rule) -> tuple[str, ...]:
    """Return the variables of a normal rule, in the order of its query's columns."""
    return _RuleReader(rule, lambda _rule, _atom: False).variables


class _RuleReader:
    """Splits one rule into its shape and its constants.

    The constants are in the order positive atoms, negated atoms, head.
    """

    def __init__(self, rule: Rule, is_local: Callable[[Rule, Atom], bool]) -> None:
        self._numbers: dict[str, int] = {}
        self._constants: list[Constant] = []
        positive = tuple(
            self._atom(atom, local=is_local(rule, atom))
            for atom in rule.positive_atoms()
        )
        negative = tuple(self._atom(atom) for atom in rule.negated_atoms())
        computations = tuple(self._computations(rule))
        head = self._atom(rule.head)
        self.shape = _RuleShape(
            head, positive, negative, computations, len(self._numbers)
        )
        self.constants = tuple(self._constants)
        self.variables = tuple(self._numbers)

    def _computations(self, rule: Rule) -> Iterator[Compute | Require]:
        for element in rule.body:
            match element:
                case Condition(expression=expression):
                    yield Require(self._call(expression))
                case Assignment(variable=variable, expression=value):
                    yield Compute(self._column(variable), self._expression(value))
                case _:
                    pass

    def _column(self, variable: Variable) -> Column:
        return Column(self._numbers.setdefault(variable.name, len(self._numbers)))

    def _atom(self, atom: Atom, *, local: bool = False) -> _AtomShape:
        columns: list[int | None] = []
        for argument in atom.arguments:
            if isinstance(argument, Variable):
                columns.append(self._column(argument).index)
            elif isinstance(argument, Term):
                columns.append(None)
                self._constants.append(argument.constant)
            else:
                message = "normal rules have no expressions inside atoms"
                raise TypeError(message)
        return _AtomShape(atom.predicate, tuple(columns), local)

    def _expression(self, expression: syntax.Expression) -> Expression:
        match expression:
            case Variable():
                return self._column(expression)
            case Term(constant=constant):
                return constant
            case _:
                return self._call(expression)

    def _call(self, call: syntax.Call) -> Apply:
        arguments = tuple(self._expression(argument) for argument in call.arguments)
        return Apply(call.function, arguments)


def _without(
    families: dict[_RuleShape, _Family], unwanted: frozenset[Rule]
) -> dict[_RuleShape, _Family]:
    found = {}
    for shape, family in families.items():
        kept = {key: rule for key, rule in family.items() if rule not in unwanted}
        if kept:
            found[shape] = kept
    return found


def query_of(rule: Rule, label: str | None = None) -> Query:
    """Return a query for all instances of a normal rule, `label` in messages."""
    reader = _RuleReader(rule, lambda _rule, _atom: False)
    return _family_query(reader.shape, {reader.constants: rule}, label)


def _family_query(
    shape: _RuleShape, family: _Family, label: str | None = None
) -> Query:
    """Build one query for all rules of a family."""
    operands, inline = _parameters(tuple(family), shape.variable_count)
    places = iter(operands)

    def pattern(atom: _AtomShape, role: Role) -> Pattern:
        filled = tuple(
            next(places) if column is None else Column(column)
            for column in atom.columns
        )
        return Pattern(atom.relation, filled, role, atom.local)

    # `places` is consumed in the order in which the reader collected the constants.
    positive = tuple(pattern(atom, Role.ALL) for atom in shape.positive)
    negative = tuple(pattern(atom, Role.ABSENT) for atom in shape.negative)
    return Query(
        head=pattern(shape.head, Role.ALL),
        positive=positive,
        negative=negative,
        computations=shape.computations,
        inline=inline,
        column_count=shape.variable_count + (len(inline.columns) if inline else 0),
        label=label or _label(list(family.values())),
    )


def _parameters(
    rows: tuple[tuple[Constant, ...], ...], variable_count: int
) -> tuple[list[Operand], InlineRows | None]:
    """Return the operands for the constants, and the table that parametrises them.

    A constant that all rules share stays a constant. Places that agree in every rule,
    such as the three of `[?x, :p, ?z] :- [?x, :p, ?y], [?y, :p, ?z]`, share a column.
    """
    if len(rows) == 1:
        return list(rows[0]), None
    columns: dict[tuple[Constant, ...], Column] = {}
    operands: list[Operand] = []
    for values in zip(*rows, strict=True):
        if all(value == values[0] for value in values):
            operands.append(values[0])
            continue
        new = Column(variable_count + len(columns))
        operands.append(columns.setdefault(values, new))
    inline = InlineRows(
        columns=tuple(columns.values()), rows=tuple(zip(*columns, strict=True))
    )
    return operands, inline


def _label(family: Sequence[Rule]) -> str:
    first = family[0].written
    if len(family) == 1:
        return str(first)
    others = len(family) - 1
    return f"{first} (and {others} {'rule' if others == 1 else 'rules'} like it)"
