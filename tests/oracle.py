"""What must hold, computed from scratch in the plainest way.

The oracle shares nothing with the package but the syntax trees; functions are those of
`oracle_functions`. It reads rules as users write them (wildcards, several heads,
expressions in atoms), finds its own strata, applies rules naively until nothing is new,
and counts instances at the end. It is far too slow for anything but tests.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import oracle_aggregates
import oracle_functions
from evermat.lang.syntax import (
    ANONYMOUS,
    TRIPLE,
    Aggregation,
    Assignment,
    Atom,
    BodyElement,
    Call,
    Condition,
    Expression,
    Negation,
    Rule,
    Term,
    Variable,
    expression_variables,
)
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

Row = tuple[Constant, ...]
Fact = tuple[str, Row]
Binding = dict[str, Constant]
Grouped = dict[str, list[Row]]

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


class NotStratifiedError(Exception):
    """The program negates through recursion."""


class TooLargeError(Exception):
    """The program derives more than a test wants to wait for."""


@dataclass
class Model:
    """The facts that hold, and how often each was derived."""

    facts: set[Fact]
    nonrecursive: Counter[Fact] = field(default_factory=Counter)
    recursive: Counter[Fact] = field(default_factory=Counter)

    def rows(self, predicate: str) -> set[Row]:
        return {row for name, row in self.facts if name == predicate}


def materialise(
    rules: Iterable[Rule], explicit: Iterable[Fact], *, limit: int = 100_000
) -> Model:
    """The model of a program over explicit facts, with both counters."""
    plain = distinct(rules)
    program = Program(plain, may_aggregate_itself=True)
    given = set(explicit)
    model = Model(set(given))
    for stratum in program.strata():
        if any(program.aggregates_itself(rule) for rule in stratum):
            _climb(stratum, model, given, limit)
            continue
        while True:
            derived = {
                found.head
                for rule in stratum
                for found in instances(rule, model.facts, model.facts, limit=limit)
            }
            if derived <= model.facts:
                break
            model.facts |= derived
    model.nonrecursive.update(given)
    for rule in program.rules:
        counter = model.recursive if program.is_recursive(rule) else model.nonrecursive
        found = instances(rule, model.facts, model.facts, limit=limit)
        counter.update(each.head for each in found)
    return model


def _climb(stratum: Sequence[Rule], model: Model, given: set[Fact], limit: int) -> None:
    """Go from nothing to the least fixpoint of monotone rules with aggregates.

    What was derived by worse results of aggregates is not there any more in the end.
    """
    heads = {shape_of(rule.head)[0] for rule in stratum}
    below = {fact for fact in model.facts if fact[0] not in heads}
    below |= {fact for fact in given if fact[0] in heads}
    found = set(below)
    for _ in range(1000):
        derived = {
            each.head
            for rule in stratum
            for each in instances(rule, found, found, limit=limit)
        }
        if below | derived == found:
            model.facts = found
            return
        found = below | derived
    raise TooLargeError


# -------------------------------------------------------------------- instances


@dataclass(frozen=True)
class Instance:
    """A rule with values for its variables: the facts it speaks of."""

    head: Fact
    positive: tuple[Fact, ...]
    negative: tuple[Fact, ...]


def instances(
    rule: Rule,
    positive: AbstractSet[Fact],
    negative: AbstractSet[Fact],
    *,
    limit: int = 100_000,
) -> Iterator[Instance]:
    """The instances whose positive atoms hold in one set and negated in no other.

    A negated atom with variables of its own has no single fact: its instances are left
    out of `Instance.negative`.
    """
    atoms = list(rule.positive_atoms())
    rest = [element for element in rule.body if not isinstance(element, Atom)]
    private = _private_variables(rule)
    absent = [a for a in rule.negated_atoms() if not _variables_of(a) & private]
    excluded = _grouped(negative)
    outside = oracle_aggregates.names_outside(rule)
    bound = oracle_aggregates.names_bound_outside(rule)
    steps = Steps(limit)
    for binding in _join(atoms, {}, _grouped(positive), steps):
        world = World(excluded, private, outside, bound, steps)
        for complete in _finish(rest, binding, world):
            yield Instance(
                _ground(rule.head, complete),
                tuple(_ground(atom, complete) for atom in atoms),
                tuple(_ground(atom, complete) for atom in absent),
            )


@dataclass
class Steps:
    """How many more rows may be looked at."""

    left: int

    def take(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooLargeError


def _grouped(facts: AbstractSet[Fact]) -> Grouped:
    rows: Grouped = {}
    for name, row in facts:
        rows.setdefault(name, []).append(row)
    return rows


def _join(
    atoms: Sequence[Atom], binding: Binding, rows: Grouped, steps: Steps
) -> Iterator[Binding]:
    if not atoms:
        yield binding
        return
    first, *others = atoms
    for row in rows.get(first.predicate, ()):
        steps.take()
        extended = _unify(first.arguments, row, binding)
        if extended is not None:
            yield from _join(others, extended, rows, steps)


def _unify(
    arguments: Sequence[Expression], row: Row, binding: Binding
) -> Binding | None:
    extended = dict(binding)
    for argument, value in zip(arguments, row, strict=True):
        match argument:
            case Term(constant=constant) if constant != value:
                return None
            case Variable(name=name) if extended.setdefault(name, value) != value:
                return None
            case _:
                pass
    return extended


@dataclass(frozen=True)
class World:
    """What the parts of a body are tested against.

    Attributes:
        rows: the facts that negated atoms and aggregates read.
        private: variables of single negated atoms.
        outside: variables that occur outside of aggregates.
        bound: variables that something else than an aggregate binds.
    """

    rows: Grouped
    private: AbstractSet[str]
    outside: AbstractSet[str]
    bound: AbstractSet[str]
    steps: Steps


def _finish(
    elements: Sequence[object], binding: Binding, world: World
) -> Iterator[Binding]:
    """Compute and test until nothing is left."""
    binding = dict(binding)
    waiting = list(elements)
    while waiting:
        ready = next(
            (each for each in waiting if _is_ready(each, binding, world.private)), None
        )
        if ready is None:
            chosen = _next_aggregation(waiting, binding)
            waiting.remove(chosen)
            for extended in _aggregate(chosen, binding, world):
                yield from _finish(waiting, extended, world)
            return
        waiting.remove(ready)
        if not _passes(ready, binding, world.rows):
            return
    yield binding


def _next_aggregation(waiting: Sequence[object], binding: Binding) -> Aggregation:
    """An aggregate, rather one that need not wait for the value of another."""
    found = [each for each in waiting if isinstance(each, Aggregation)]
    targets = {each.target.name for each in found} - binding.keys()
    for each in found:
        others = targets - {each.target.name}
        if not others & oracle_aggregates.names_inside(each):
            return each
    return found[0]


def _aggregate(
    element: Aggregation, binding: Binding, world: World
) -> Iterator[Binding]:
    """The binding with the value of each group that it leaves open."""
    names = oracle_aggregates.names_inside(element)
    group = sorted(names & world.outside)
    inner = [*element.body]
    atoms = [each for each in inner if isinstance(each, Atom)]
    rest = [each for each in inner if not isinstance(each, Atom)]
    local = Rule((Atom("", element.values),), element.body)
    private = _private_variables(local) - set(group)
    bound = {name: binding[name] for name in group if name in binding}
    scope = World(
        world.rows,
        private,
        oracle_aggregates.names_outside(local) | set(group),
        oracle_aggregates.names_bound_outside(local),
        world.steps,
    )
    tuples: dict[Row, set[Row]] = {}
    for found in _join(atoms, bound, world.rows, world.steps):
        for complete in _finish(rest, found, scope):
            key = tuple(complete[name] for name in group)
            row = tuple(_value(each, complete) for each in element.values)
            tuples.setdefault(key, set()).add(row)
    if not tuples and bound.keys() >= set(group) and world.bound >= set(group):
        tuples = {tuple(bound[name] for name in group): set()}
    for key, rows in tuples.items():
        value = oracle_aggregates.evaluate(element.function, rows)
        extended = binding | dict(zip(group, key, strict=True))
        if value is not None and _equate(element.target, value, extended):
            yield extended


def _is_ready(element: object, binding: Binding, private: AbstractSet[str]) -> bool:
    match element:
        case Aggregation():
            return False
        case Negation(atom=atom):
            return _variables_of(atom) - private <= binding.keys()
        case Assignment(expression=expression):
            return _is_bound(expression, binding)
        case Condition(expression=Call(function="=", arguments=(left, right))):
            if isinstance(left, Variable) or isinstance(right, Variable):
                return _is_bound(left, binding) or _is_bound(right, binding)
            return _is_bound(left, binding) and _is_bound(right, binding)
        case Condition(expression=expression):
            return _is_bound(expression, binding)
    raise TypeError(element)


def _passes(element: object, binding: Binding, negative: Grouped) -> bool:
    match element:
        case Negation(atom=atom):
            return all(
                _unify(atom.arguments, row, binding) is None
                for row in negative.get(atom.predicate, ())
            )
        case Assignment(variable=variable, expression=expression):
            return _equate(variable, _value(expression, binding), binding)
        case Condition(expression=Call(function="=", arguments=(left, right))):
            if _is_bound(left, binding):
                return _equate(right, _value(left, binding), binding)
            return _equate(left, _value(right, binding), binding)
        case Condition(expression=expression):
            return _value(expression, binding).text == "true"
    raise TypeError(element)


def _equate(expression: Expression, value: Constant, binding: Binding) -> bool:
    if isinstance(expression, Variable):
        return binding.setdefault(expression.name, value) == value
    return _value(expression, binding) == value


def _value(expression: Expression, binding: Binding) -> Constant:
    match expression:
        case Variable(name=name):
            return binding[name]
        case Term(constant=constant):
            return constant
        case Call(function=function, arguments=arguments):
            values = [_value(argument, binding) for argument in arguments]
            return oracle_functions.evaluate(function, *values)


def _is_bound(expression: Expression, binding: Binding) -> bool:
    return all(each.name in binding for each in expression_variables(expression))


def _ground(atom: Atom, binding: Binding) -> Fact:
    return atom.predicate, tuple(_value(each, binding) for each in atom.arguments)


def _variables_of(atom: Atom) -> set[str]:
    return {
        variable.name
        for argument in atom.arguments
        for variable in expression_variables(argument)
    }


def _private_variables(rule: Rule) -> set[str]:
    """The variables that occur in one negated atom and nowhere else."""
    places: Counter[str] = Counter()
    for atom in (*rule.heads, *rule.positive_atoms(), *rule.negated_atoms()):
        places.update(_variables_of(atom))
    for element in rule.body:
        if isinstance(element, Aggregation):
            places.update(oracle_aggregates.names_inside(element))
            places[element.target.name] += 1
        elif isinstance(element, Condition | Assignment):
            names = {v.name for v in expression_variables(element.expression)}
            if isinstance(element, Assignment):
                names.add(element.variable.name)
            places.update(names)
    negated = {name for atom in rule.negated_atoms() for name in _variables_of(atom)}
    return {name for name in negated if places[name] == 1}


# -------------------------------------------------------- rules in a plainer form


def distinct(rules: Iterable[Rule]) -> list[Rule]:
    """Rules with one head each, no wildcards, plain atoms, and none of them twice."""
    return list(dict.fromkeys(plain for rule in rules for plain in split(rule)))


def split(rule: Rule) -> Iterator[Rule]:
    """One rule for each head, variables renamed in order of occurrence."""
    for head in rule.heads:
        yield _Plain().rule(head, rule)


class _Plain:
    """Renames variables, and moves expressions out of body atoms."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._fresh = count()

    def rule(self, head: Atom, rule: Rule) -> Rule:
        body = self._body(rule.body)
        arguments = tuple(self._renamed(each) for each in head.arguments)
        # What stands there twice is one condition, and two such rules are one rule.
        return Rule((Atom(head.predicate, arguments),), tuple(dict.fromkeys(body)))

    def _body(self, elements: Sequence[BodyElement]) -> list[BodyElement]:
        body: list[BodyElement] = []
        for element in elements:
            match element:
                case Aggregation(target=target, function=function, values=values):
                    inner = tuple(self._body(element.body))
                    renamed = tuple(self._renamed(each) for each in values)
                    name = self._name(target)
                    body.append(Aggregation(name, function, renamed, inner))
                case Atom():
                    atom, conditions = self._flat(element)
                    body += [atom, *conditions]
                case Negation(atom=inner):
                    atom, conditions = self._flat(inner)
                    body += [*conditions, Negation(atom)]
                case Condition(expression=call):
                    arguments = tuple(self._renamed(each) for each in call.arguments)
                    body.append(Condition(Call(call.function, arguments)))
                case Assignment(variable=variable, expression=value):
                    name = self._name(variable)
                    body.append(Assignment(name, self._renamed(value)))
        return body

    def _flat(self, atom: Atom) -> tuple[Atom, list[Condition]]:
        arguments: list[Expression] = []
        conditions: list[Condition] = []
        for argument in atom.arguments:
            renamed = self._renamed(argument)
            if isinstance(renamed, Call):
                fresh = Variable(f"v{next(self._fresh)}")
                conditions.append(Condition(Call("=", (fresh, renamed))))
                renamed = fresh
            arguments.append(renamed)
        return Atom(atom.predicate, tuple(arguments)), conditions

    def _renamed(self, expression: Expression) -> Expression:
        match expression:
            case Variable():
                return self._name(expression)
            case Call(function=function, arguments=arguments):
                return Call(function, tuple(self._renamed(each) for each in arguments))
            case Term():
                return expression

    def _name(self, variable: Variable) -> Variable:
        if variable.name == ANONYMOUS:
            return Variable(f"v{next(self._fresh)}")
        if variable.name not in self._names:
            self._names[variable.name] = f"v{next(self._fresh)}"
        return Variable(self._names[variable.name])


# ----------------------------------------------------------------------- strata

Shape = tuple[str, Constant | None, Constant | None]
"""Predicate; for triples also the constant predicate, and the class of a type."""


def shape_of(atom: Atom) -> Shape:
    if atom.predicate != TRIPLE or atom.arity != 3:
        return (atom.predicate, None, None)
    middle, last = (
        argument.constant if isinstance(argument, Term) else None
        for argument in atom.arguments[1:]
    )
    is_type = middle == Constant(Kind.IRI, RDF_TYPE)
    return (TRIPLE, middle, last if is_type else None)


def overlap(left: Shape, right: Shape) -> bool:
    return left[0] == right[0] and all(
        a is None or b is None or a == b
        for a, b in zip(left[1:], right[1:], strict=True)
    )


class Program:
    """Plain rules with their dependencies."""

    def __init__(
        self, rules: Sequence[Rule], *, may_aggregate_itself: bool = False
    ) -> None:
        self.rules = rules
        heads = {shape_of(rule.head) for rule in rules}
        # Heads that overlap stand and fall together, and a body atom depends on all
        # heads that can derive it.
        shapes = heads | {shape_of(a) for r in rules for a in r.positive_atoms()}
        shapes |= {shape_of(a) for r in rules for a in _complete_atoms(r)}
        needs: dict[Shape, set[Shape]] = {
            shape: {head for head in heads if overlap(shape, head)} for shape in shapes
        }
        for rule in rules:
            for atom in (*rule.positive_atoms(), *_complete_atoms(rule)):
                needs[shape_of(rule.head)].add(shape_of(atom))
        self.reaches = {shape: _closure(needs, shape) for shape in shapes}
        for rule in rules:
            complete = (
                rule.negated_atoms() if may_aggregate_itself else _complete_atoms(rule)
            )
            for atom in complete:
                if shape_of(rule.head) in self.reaches[shape_of(atom)]:
                    raise NotStratifiedError

    def is_local(self, rule: Rule, atom: Atom) -> bool:
        """Whether a body atom depends on the rule's own head."""
        return shape_of(rule.head) in self.reaches[shape_of(atom)]

    def is_recursive(self, rule: Rule) -> bool:
        atoms = (*rule.positive_atoms(), *rule.aggregated_atoms())
        return any(self.is_local(rule, atom) for atom in atoms)

    def aggregates_itself(self, rule: Rule) -> bool:
        return any(self.is_local(rule, atom) for atom in rule.aggregated_atoms())

    def strata(self) -> list[list[Rule]]:
        """Rules of one component together, each after what it depends on."""
        groups: dict[frozenset[Shape], list[Rule]] = {}
        for rule in self.rules:
            head = shape_of(rule.head)
            component = {s for s in self.reaches[head] if head in self.reaches[s]}
            groups.setdefault(frozenset(component | {head}), []).append(rule)
        # What a component depends on, it reaches; so it reaches more shapes.
        return sorted(
            groups.values(),
            key=lambda group: len(self.reaches[shape_of(group[0].head)]),
        )


def _complete_atoms(rule: Rule) -> tuple[Atom, ...]:
    """The atoms of which all facts must be known: negated or aggregated."""
    return (*rule.negated_atoms(), *rule.aggregated_atoms())


def _closure(needs: dict[Shape, set[Shape]], start: Shape) -> set[Shape]:
    found: set[Shape] = set()
    waiting = list(needs[start])
    while waiting:
        shape = waiting.pop()
        if shape not in found:
            found.add(shape)
            waiting += needs[shape]
    return found


def is_stratified(rules: Iterable[Rule]) -> bool:
    try:
        Program(distinct(rules))
    except NotStratifiedError:
        return False
    return True
