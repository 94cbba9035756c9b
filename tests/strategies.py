"""Random programs, facts and sequences of updates.

What textbook examples leave out is where algorithms are wrong, so all of this is mixed:
explicit facts on derived predicates, nonlinear and mutual recursion, repeated
variables, constants and wildcards, negation over strata (also with variables of its
own), comparisons and sums, triples with constant and with variable predicates, arities
from 0 to 4, several heads, families of rules that differ only in constants, updates
that delete and insert the same fact or nothing at all, and changes of the rules.

Everything drawn is valid: rules are safe and stratified, and sums are guarded, so that
every program has a finite model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from hypothesis import strategies as st

import oracle
from evermat.lang import syntax
from evermat.lang.syntax import (
    AGGREGATE_FUNCTIONS,
    ANONYMOUS,
    TRIPLE,
    Aggregation,
    Atom,
    BodyElement,
    Call,
    Condition,
    Expression,
    Negation,
    Rule,
    Term,
    Variable,
    atom_variables,
)
from evermat.values import IRI, Constant, constant
from oracle import Fact

if TYPE_CHECKING:
    from collections.abc import Iterator

ARITIES = {
    "go": 0,
    "a": 1,
    "b": 1,
    "n": 1,
    "e": 2,
    "f": 2,
    "r": 2,
    "s": 2,
    "m": 2,
    "t": 3,
    "w": 4,
    TRIPLE: 3,
}
"""The predicates. None is only for input: all may be given and derived."""

_NUMBERS = [constant(value) for value in (1, 2, 3)]
_NAMES = [constant(value) for value in ("x", "y", "1")]
_VALUES = _NAMES + _NUMBERS
_PROPERTIES = [constant(IRI("http://e.org/" + name)) for name in ("p", "q", "s")]
_TYPE = constant(IRI(oracle.RDF_TYPE))
_CLASSES = [constant(IRI("http://e.org/" + name)) for name in ("C", "D")]
_VARIABLES = [Variable(name) for name in "xyz"]
_LIMIT = 5
"""Sums stop here: `?n = ?x + 1` stands only behind `?x < 5`."""


@dataclass(frozen=True)
class Update:
    """A transaction; a fact that is deleted and inserted ends up inserted."""

    delete: frozenset[Fact] = frozenset()
    insert: frozenset[Fact] = frozenset()
    remove_rules: tuple[Rule, ...] = ()
    add_rules: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """A program with its facts, and what happens to it."""

    rules: tuple[Rule, ...]
    facts: frozenset[Fact]
    updates: tuple[Update, ...] = field(default=())


# ------------------------------------------------------------------------ facts


def _constants_at(predicate: str, position: int) -> list[Constant]:
    if predicate == TRIPLE and position == 1:
        return [*_PROPERTIES, _TYPE]
    if predicate == TRIPLE and position == 2:
        return [*_CLASSES, *_NAMES[:2]]
    if predicate == "n":
        return _NUMBERS
    # Few values for wide predicates, or their joins grow out of hand.
    return _VALUES[2:4] if predicate == "w" else _VALUES[:4]


@cache
def _facts_of(predicate: str) -> st.SearchStrategy[Fact]:
    columns = [_constants_at(predicate, at) for at in range(ARITIES[predicate])]
    return st.sampled_from([(predicate, row) for row in product(*columns)])


@cache
def facts(predicates: tuple[str, ...] = tuple(ARITIES)) -> st.SearchStrategy[Fact]:
    """A fact of any of the predicates."""
    return st.sampled_from(predicates).flatmap(_facts_of)


# ------------------------------------------------------------------------ rules

_PREDICATES = st.sampled_from(list(ARITIES))
_TENTHS = st.integers(0, 9)


def _is_property(predicate: str, position: int) -> bool:
    return predicate == TRIPLE and position == 1


@cache
def _body_arguments(
    predicate: str, position: int, wildcards: int
) -> st.SearchStrategy[Expression]:
    """Mostly variables, some constants, a few wildcards, as twelfths."""
    # The predicate of a triple is a constant more often than not.
    constants = 8 if _is_property(predicate, position) else 2
    values: list[Expression] = [
        Term(each) for each in _constants_at(predicate, position)
    ]
    chosen = [values[at % len(values)] for at in range(constants)]
    chosen += [Variable(ANONYMOUS)] * wildcards
    chosen += [_VARIABLES[at % 3] for at in range(12 - len(chosen))]
    return st.sampled_from(chosen)


@cache
def _constant_terms(predicate: str, position: int) -> st.SearchStrategy[Term]:
    return st.sampled_from([Term(each) for each in _constants_at(predicate, position)])


@st.composite
def atoms(draw: st.DrawFn, wildcards: int = 1) -> Atom:
    """A body atom."""
    predicate = draw(_PREDICATES)
    arguments = [
        draw(_body_arguments(predicate, position, wildcards))
        for position in range(ARITIES[predicate])
    ]
    return Atom(predicate, tuple(arguments))


def _named(atom: Atom) -> list[Variable]:
    return [each for each in atom_variables(atom) if each.name != ANONYMOUS]


@st.composite
def _heads(draw: st.DrawFn, bound: list[Variable]) -> Atom:
    predicate = draw(_PREDICATES)
    arguments: list[Expression] = []
    for position in range(ARITIES[predicate]):
        constants = 8 if _is_property(predicate, position) else 1
        if not bound or draw(_TENTHS) < constants:
            arguments.append(draw(_constant_terms(predicate, position)))
        else:
            arguments.append(draw(st.sampled_from(bound)))
    return Atom(predicate, tuple(arguments))


@st.composite
def _negations(draw: st.DrawFn, bound: list[Variable], own: Variable) -> Negation:
    """A negated atom; `own` occurs in no other place of the rule, as a wildcard."""
    atom = draw(atoms(wildcards=2))
    usable = [*bound, *bound, *bound, own]
    arguments: list[Expression] = [
        draw(st.sampled_from(usable))
        if isinstance(each, Variable) and each.name != ANONYMOUS
        else each
        for each in atom.arguments
    ]
    return Negation(Atom(atom.predicate, tuple(arguments)))


@st.composite
def _conditions(draw: st.DrawFn, bound: list[Variable]) -> Condition:
    function = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
    left = draw(st.sampled_from(bound))
    right: Expression = draw(
        st.one_of(st.sampled_from(bound), st.sampled_from(_VALUES).map(Term))
    )
    return Condition(Call(function, (left, right)))


def _guarded_sum(draw: st.DrawFn, bound: list[Variable]) -> list[Condition]:
    """`?v < 5, ?sum = ?v + n`: only numbers pass the guard, so there is a sum."""
    source = draw(st.sampled_from(bound))
    step = Term(draw(st.sampled_from(_NUMBERS[:2])))
    return [
        Condition(Call("<", (source, Term(constant(_LIMIT))))),
        Condition(Call("=", (Variable("sum"), Call("+", (source, step))))),
    ]


@st.composite
def _aggregations(draw: st.DrawFn, bound: list[Variable]) -> list[Aggregation]:
    """One or two aggregates; only numbers are summed up or compared."""
    found = []
    for number in range(draw(st.sampled_from([1, 1, 1, 2]))):
        function = draw(st.sampled_from(AGGREGATE_FUNCTIONS))
        names = [*bound, *bound, *(Variable(f"in{at}") for at in range(3))]
        inner: list[BodyElement] = [
            Atom(atom.predicate, tuple(
                draw(st.sampled_from(names))
                if isinstance(each, Variable) and each.name != ANONYMOUS else each
                for each in atom.arguments
            ))
            for atom in draw(st.lists(atoms(), min_size=1, max_size=2))
            if atom.predicate != "w"
        ] or [Atom("n", (Variable("in0"),))]  # fmt: skip
        there = list(dict.fromkeys(
            variable for atom in inner if isinstance(atom, Atom)
            for variable in _named(atom)
        ))  # fmt: skip
        if not there:
            continue
        values = draw(st.lists(st.sampled_from(there), min_size=1, max_size=3))
        first: Expression = values[0]
        if function in {"sum", "avg", "min", "max"}:
            guard = Term(constant(_LIMIT))
            inner.append(Condition(Call("<", (values[0], guard))))
            if function == "sum" and draw(st.booleans()):
                first = Call("*", (first, Term(draw(st.sampled_from(_SCALES)))))
        if draw(st.integers(0, 3)) == 0:
            inner.append(draw(_negations(there, Variable("own_inside"))))
        target = Variable(f"value{number}")
        found.append(Aggregation(target, function, (first, *values[1:]), tuple(inner)))
    return found


_SCALES = [constant(-2), constant(Decimal("0.5")), constant(0.25)]


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """A safe rule, not yet known to be stratified with others."""
    positive = draw(st.lists(atoms(), min_size=0, max_size=3))
    if sum(atom.predicate == "w" for atom in positive) > 1:
        positive = [atom for atom in positive if atom.predicate != "w"]
    bound = list(dict.fromkeys(v for atom in positive for v in _named(atom)))
    body: list[BodyElement] = list(positive)
    if bound and draw(st.integers(0, 4)) == 0:
        body.append(draw(_conditions(bound)))
    sums = _guarded_sum(draw, bound) if bound and draw(st.integers(0, 4)) == 0 else []
    if sums:
        bound = [*bound, Variable("sum")]
    aggregations = draw(_aggregations(bound)) if draw(st.integers(0, 5)) == 0 else []
    bound = [*bound, *(each.target for each in aggregations)]
    count = draw(st.sampled_from([0, 0, 0, 1, 1, 2]))
    body += [draw(_negations(bound, Variable(f"own{n}"))) for n in range(count)]
    body = draw(st.permutations(body)) if draw(st.booleans()) else body
    place = draw(st.integers(0, len(body)))
    body[place:place] = [*aggregations, *sums]
    heads = draw(st.sampled_from([1, 1, 1, 1, 2]))
    return Rule(tuple(draw(_heads(bound)) for _ in range(heads)), tuple(body))


def _typical() -> Iterator[Rule]:
    """Rules that meet: by chance, too few programs have long derivations."""
    x, y, z = _VARIABLES
    total = Variable("sum")
    p, q = (Term(each) for each in _PROPERTIES[:2])
    a, b, n, e, r, s = (syntax.predicate(name) for name in "abners")
    triple = syntax.predicate(TRIPLE)
    guard = Condition(Call("<", (x, Term(constant(_LIMIT)))))
    following = Condition(Call("=", (total, Call("+", (x, Term(_NUMBERS[0]))))))

    def rule(head: Atom, *body: BodyElement) -> Rule:
        return Rule((head,), body)

    yield rule(r(x, z), r(x, y), r(y, z))
    yield rule(r(x, z), r(x, y), e(y, z))
    yield rule(r(x, y), e(x, y))
    yield rule(s(x, z), r(x, y), s(y, z))
    yield rule(r(x, z), s(x, y), r(y, z))
    yield rule(s(y, x), s(x, y))
    yield rule(a(y), a(x), e(x, y))
    yield rule(triple(x, p, z), triple(x, p, y), triple(y, p, z))
    yield rule(triple(x, q, y), triple(x, p, y))
    yield rule(triple(y, p, x), triple(x, q, y))
    yield rule(s(x, y), e(x, y), Negation(r(y, x)), Negation(a(y)))
    yield rule(a(x), r(x, y), Negation(e(x, x)), Negation(e(y, x)))
    yield rule(b(x), r(x, Variable(ANONYMOUS)), Negation(s(x, Variable(ANONYMOUS))))
    yield rule(n(total), n(x), guard, following)
    yield rule(r(x, total), n(x), guard, following)
    yield rule(b(x), n(x), guard, following, Negation(r(x, total)))
    number, count = Variable("number"), Variable("count")
    small = Condition(Call("<", (number, Term(constant(_LIMIT)))))
    yield rule(r(x, count), a(x), Aggregation(count, "count", (y,), (e(x, y),)))
    yield rule(r(x, count), Aggregation(count, "count", (y,), (r(x, y),)))
    summed = Aggregation(count, "sum", (number, y), (e(y, number), small))
    yield rule(n(count), summed)
    least = Aggregation(count, "min", (number,), (s(x, number), small))
    yield rule(s(count, x), r(x, y), least)


_TYPICAL = list(_typical())


@st.composite
def families(draw: st.DrawFn) -> list[Rule]:
    """Rules that are the same but for constants in their atoms."""
    rule = draw(rules())
    others = draw(st.integers(1, 3))
    return [rule, *(_with_constants(draw, rule) for _ in range(others))]


def _with_constants(draw: st.DrawFn, rule: Rule) -> Rule:
    def other(atom: Atom) -> Atom:
        arguments: list[Expression] = [
            draw(_constant_terms(atom.predicate, position))
            if isinstance(argument, Term)
            else argument
            for position, argument in enumerate(atom.arguments)
        ]
        return Atom(atom.predicate, tuple(arguments))

    body: list[BodyElement] = []
    for element in rule.body:
        match element:
            case Atom():
                body.append(other(element))
            case Negation(atom=atom):
                body.append(Negation(other(atom)))
            case Condition() | Aggregation():
                body.append(element)
            case _:
                raise TypeError(element)
    return Rule(tuple(other(head) for head in rule.heads), tuple(body))


def admissible(chosen: list[Rule], candidate: Rule) -> bool:
    """Whether a rule can join others: stratified with them, and none of them again."""
    known = set(oracle.distinct(chosen))
    parts = list(oracle.split(candidate))
    fresh = not known.intersection(parts) and len(set(parts)) == len(parts)
    return fresh and oracle.is_stratified([*chosen, candidate])


@st.composite
def programs(
    draw: st.DrawFn, max_rules: int = 7, *, aggregates: bool = True
) -> tuple[Rule, ...]:
    """Stratified programs."""
    core = draw(st.lists(st.sampled_from(_TYPICAL), max_size=5))
    single = rules().map(lambda rule: [rule])
    groups = st.one_of(single, single, families())
    pool = [core, *draw(st.lists(groups, max_size=max_rules))]
    chosen: list[Rule] = []
    for rule in (rule for group in pool for rule in group):
        if rule.has_aggregates and not aggregates:
            continue
        if len(chosen) < max_rules and admissible(chosen, rule):
            chosen.append(rule)
    return tuple(chosen)


# -------------------------------------------------------------------- scenarios


@st.composite
def scenarios(
    draw: st.DrawFn,
    *,
    max_updates: int = 3,
    change_rules: bool = False,
    aggregates: bool = True,
) -> Scenario:
    """A program, facts, and updates that mostly touch what is there."""
    program = draw(programs(aggregates=aggregates))
    useful = _predicates_of(program)
    given = draw(_fact_sets(useful, draw(st.sampled_from([2, 10, 20]))))
    present, current = set(given), list(program)
    updates = []
    for _ in range(draw(st.integers(1, max_updates))):
        update = _draw_update(draw, present, useful)
        if change_rules:
            pool = programs(max_rules=3, aggregates=aggregates)
            update = _draw_rule_change(draw, update, current, pool)
        present = (present - update.delete) | update.insert
        updates.append(update)
    return Scenario(program, frozenset(given), tuple(updates))


def _predicates_of(program: tuple[Rule, ...]) -> tuple[str, ...]:
    """The predicates of bodies, twice for positive atoms; all, if there are none."""
    positive = [a.predicate for rule in program for a in rule.positive_atoms()]
    negated = [a.predicate for rule in program for a in rule.negated_atoms()]
    return (*positive, *positive, *negated, "e", "r") if positive else tuple(ARITIES)


def _fact_sets(predicates: tuple[str, ...], size: int) -> st.SearchStrategy[set[Fact]]:
    useful = facts(predicates)
    return st.lists(st.one_of(useful, useful, facts()), min_size=size).map(set)


def _draw_update(
    draw: st.DrawFn, present: set[Fact], predicates: tuple[str, ...]
) -> Update:
    there = sorted(present, key=repr)
    new = facts(predicates)
    known = st.sampled_from(there) if there else new
    # Facts that are not given are asked to be deleted, and given ones inserted, too.
    delete = draw(st.frozensets(st.one_of(known, known, known, new), max_size=4))
    insert = draw(st.frozensets(st.one_of(new, new, facts(), known), max_size=4))
    if delete and draw(st.integers(0, 3)) == 0:
        insert |= {draw(st.sampled_from(sorted(delete, key=repr)))}
    return Update(delete, insert)


def _draw_rule_change(
    draw: st.DrawFn,
    update: Update,
    current: list[Rule],
    pool: st.SearchStrategy[tuple[Rule, ...]],
) -> Update:
    """Add and remove rules; `current` is brought up to date."""
    removed = [rule for rule in current if draw(st.integers(0, 4)) == 0]
    for rule in removed:
        current.remove(rule)
    added = []
    for candidate in draw(pool):
        # A rule may come back in the transaction that removes it; that is tested by
        # hand, because its meaning is a matter of taste.
        if candidate not in removed and admissible([*current, *removed], candidate):
            current.append(candidate)
            added.append(candidate)
    return Update(update.delete, update.insert, tuple(removed), tuple(added))
