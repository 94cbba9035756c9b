"""Stratification: dependencies of rules, and the order in which to evaluate them.

Dependencies are between *shapes* of atoms rather than between predicates: a triple atom
with a constant predicate has its own shape, and so has `[?x, a, :C]` for each class.
Otherwise every rule about triples would depend on every other one.

- Head shapes that overlap, such as `[?x, a, :C]` and `[?x, ?p, ?y]`, derive the same
  facts, so they are in one component.
- A body shape depends on all head shapes that it overlaps.

A *stratum* consists of all components at the same depth. Components of one stratum do
not depend on each other, so 20,000 independent rules form one stratum.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from evermat.errors import Label, StratificationError, raise_all
from evermat.lang.aggregates import aggregated_by, is_aggregate_rule
from evermat.lang.lexer import RDF_TYPE
from evermat.lang.monotone import why_not_monotone
from evermat.lang.syntax import TRIPLE, Atom, Term, is_auxiliary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from evermat.errors import ProgramError, Span
    from evermat.lang.syntax import Rule
    from evermat.values import Constant


# -------------------------------------------------------- strongly connected components


def strong_components(edges: list[list[int]]) -> list[int]:  # noqa: C901  one loop, as published
    """Return the strongly connected component of each node, by Tarjan's algorithm.

    Components are numbered so that edges lead to the same or a lower number. The
    recursion uses an explicit stack, because chains may be long.
    """
    unseen = -1
    order = [unseen] * len(edges)
    low = [0] * len(edges)
    component = [unseen] * len(edges)
    stack: list[int] = []
    count = component_count = 0
    for root in range(len(edges)):
        if order[root] != unseen:
            continue
        work = [(root, iter(edges[root]))]
        order[root] = low[root] = count
        count += 1
        stack.append(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if order[target] == unseen:
                    order[target] = low[target] = count
                    count += 1
                    stack.append(target)
                    work.append((target, iter(edges[target])))
                    break
                if component[target] == unseen:
                    low[node] = min(low[node], order[target])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == order[node]:
                    member = unseen
                    while member != node:
                        member = stack.pop()
                        component[member] = component_count
                    component_count += 1
    return component


# ---------------------------------------------------------------------- shapes of atoms
#
# A triple atom with a constant predicate or class has a shape of its own.


_TRIPLE_ARITY = 3


@dataclass(frozen=True, slots=True)
class Shape:
    """A predicate, and for triples the constants that identify their subject matter.

    Attributes:
        constants: positions and constants, for triples only: the predicate (position
            1) if it is constant, and the class (position 2) if it is constant too and
            the predicate is `rdf:type`.
    """

    predicate: str
    arity: int
    constants: tuple[tuple[int, Constant], ...] = ()

    def __str__(self) -> str:
        if self.predicate != TRIPLE or not self.constants:
            return self.predicate
        parts = ["?s", "?p", "?o"]
        for position, constant in self.constants:
            parts[position] = "a" if constant == RDF_TYPE else str(constant)
        return f"[{', '.join(parts)}]"


def shape_of(atom: Atom) -> Shape:
    """Return the shape of an atom."""
    arguments = atom.arguments
    if atom.predicate != TRIPLE or len(arguments) != _TRIPLE_ARITY:
        return Shape(atom.predicate, len(arguments))
    _, relation, value = arguments
    if not isinstance(relation, Term):
        return Shape(TRIPLE, _TRIPLE_ARITY)
    constants = ((1, relation.constant),)
    if relation.constant == RDF_TYPE and isinstance(value, Term):
        return Shape(TRIPLE, _TRIPLE_ARITY, (*constants, (2, value.constant)))
    return Shape(TRIPLE, _TRIPLE_ARITY, constants)


class ShapeTable:
    """Numbers the shapes of many atoms without creating an object for each."""

    def __init__(self) -> None:
        self.shapes: list[Shape] = []
        self._numbers: dict[object, int] = {}

    def number(self, atom: Atom) -> int:
        """Return the number of an atom's shape, from 0 in order of appearance."""
        key = _quick_key(atom)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.shapes)
            self.shapes.append(shape_of(atom))
        return number

    def find(self, atom: Atom) -> int | None:
        """Return the number of an atom's shape, None if it has none yet."""
        return self._numbers.get(_quick_key(atom))


def _quick_key(atom: Atom) -> object:
    """Return a key that identifies the shape of an atom; faster than a shape."""
    arguments = atom.arguments
    if atom.predicate != TRIPLE or len(arguments) != _TRIPLE_ARITY:
        return atom.predicate, len(arguments)
    _, relation, value = arguments
    if not isinstance(relation, Term):
        return None
    name, kind = relation.constant.text, relation.constant.kind
    if name == RDF_TYPE.text and kind is RDF_TYPE.kind and isinstance(value, Term):
        return value.constant.kind, value.constant.text, "class"
    return kind, name


class Overlaps:
    """Finds the head shapes that a shape overlaps, without comparing all pairs.

    Args:
        shapes: all shapes, heads first.
        head_count: the number of head shapes among them.
    """

    def __init__(self, shapes: Sequence[Shape], head_count: int) -> None:
        self._shapes = shapes
        self._triples: list[int] = []
        self._everything: list[int] = []
        self._by_relation: dict[Constant, list[int]] = {}
        self._any_class: list[int] = []
        for number, shape in enumerate(shapes[:head_count]):
            if is_triple(shape):
                self._add(number, shape)

    def _add(self, number: int, shape: Shape) -> None:
        self._triples.append(number)
        if not shape.constants:
            self._everything.append(number)
            return
        relation = shape.constants[0][1]
        self._by_relation.setdefault(relation, []).append(number)
        if len(shape.constants) == 1 and relation == RDF_TYPE:
            self._any_class.append(number)

    def of(self, number: int) -> list[int]:
        """Return the *other* head shapes that share a possible fact with a shape."""
        shape = self._shapes[number]
        if not is_triple(shape):
            return []
        if not shape.constants:
            found = self._triples
        elif len(shape.constants) == 1:
            same_relation = self._by_relation.get(shape.constants[0][1], [])
            found = same_relation + self._everything
        else:
            found = self._any_class + self._everything
        return [head for head in found if head != number]


def share_facts(one: Shape, other: Shape) -> bool:
    """Return whether a fact can have both shapes."""
    if (one.predicate, one.arity) != (other.predicate, other.arity):
        return False
    fixed = dict(other.constants)
    return all(fixed.get(at, value) == value for at, value in one.constants)


def is_triple(shape: Shape) -> bool:
    """Return whether a shape is one of triples: only those overlap with others."""
    return shape.predicate == TRIPLE and shape.arity == _TRIPLE_ARITY


# ----------------------------------------------------------- recursion through negation


@dataclass(frozen=True, slots=True)
class _Step:
    """A dependency between shapes, because of an atom, or because they overlap."""

    source: Shape
    target: Shape
    is_negative: bool = False
    span: Span | None = None
    function: str = ""


def recursion_through_negation(
    rules: Sequence[Rule], components: Mapping[Shape, int]
) -> list[StratificationError]:
    """Return an error for each component in which a shape depends on its own negation.

    The same applies to an aggregate of itself, unless the component is monotone.
    """
    offending: dict[int, _Step] = {}
    groups = _group_shapes(rules)
    for rule in rules:
        source = shape_of(rule.head)
        for step in _negative_steps(rule, source, groups):
            if components[step.target] == components[source]:
                known = offending.setdefault(components[source], step)
                if _severity(step) > _severity(known):
                    offending[components[source]] = step
    reasons: dict[int, str] = {}
    for component in [at for at, step in offending.items() if step.function]:
        reason: str | None
        if offending[component].is_negative:
            function = offending[component].function
            reason = f"`{function}` of an empty group is 0, until it has members"
        else:
            reason = _why_not_monotone(rules, components, component)
        if reason is None:
            del offending[component]
        else:
            reasons[component] = reason
    names = _names_in_text(rules) if offending else {}
    return [
        _error(
            _cycle(step, _steps(rules, components, component)),
            names,
            reasons.get(component),
        )
        for component, step in offending.items()
    ]


def _severity(step: _Step) -> int:
    """Return how certainly a cycle through a step is refused."""
    return 2 * (not step.function) + step.is_negative


def _why_not_monotone(
    rules: Sequence[Rule], components: Mapping[Shape, int], component: int
) -> str | None:
    """Return why a component with aggregates of itself is not monotone, or None."""

    def is_local(atom: Atom) -> bool:
        return components.get(shape_of(atom)) == component

    own = [rule for rule in rules if is_local(rule.head)]
    return why_not_monotone(own, is_local)


def _names_in_text(rules: Sequence[Rule]) -> dict[Shape, str]:
    """Return the texts by which the program itself refers to a shape."""
    names: dict[Shape, str] = {}
    for rule in rules:
        for atom in rule.atoms():
            shape, span = shape_of(atom), atom.predicate_span
            if span is None or is_auxiliary(atom.predicate):
                names.setdefault(shape, str(shape))
            else:
                names.setdefault(shape, span.source.text[span.start : span.end])
    return names


def _group_shapes(rules: Sequence[Rule]) -> dict[Shape, str]:
    """Return the shapes of groups that have results, with the aggregate function.

    Rules for empty groups negate them.
    """
    found: dict[Shape, str] = {}
    for rule in rules:
        atoms = [each for each in rule.body if isinstance(each, Atom)]
        if len(atoms) == len(rule.body) == 1 and is_auxiliary(rule.head.predicate):
            function = aggregated_by(atoms[0].predicate)
            if function:
                found[shape_of(rule.head)] = function
    return found


def _negative_steps(
    rule: Rule, source: Shape, groups: Mapping[Shape, str]
) -> Iterator[_Step]:
    for atom in rule.negated_atoms():
        target = shape_of(atom)
        function = groups.get(target, "")
        yield _Step(source, target, is_negative=True, span=atom.span, function=function)
    for each in rule.aggregations():
        for atom in each.atoms():
            target = shape_of(atom)
            yield _Step(source, target, span=each.span, function=each.function)


def _steps(
    rules: Sequence[Rule], components: Mapping[Shape, int], component: int
) -> dict[Shape, list[_Step]]:
    """Return all steps within a component, by their source."""
    groups = _group_shapes(rules)
    heads = dict.fromkeys(shape_of(rule.head) for rule in rules)
    shapes = [*heads, *(shape for shape in components if shape not in heads)]
    overlaps = Overlaps(shapes, len(heads))
    steps: dict[Shape, list[_Step]] = {
        shape: [
            _Step(shape, shapes[other])
            for other in overlaps.of(number)
            if components[shapes[other]] == component
        ]
        for number, shape in enumerate(shapes)
        if components[shape] == component
    }
    for rule in rules:
        source = shape_of(rule.head)
        if components[source] != component:
            continue
        found = [
            _Step(source, shape_of(atom), span=atom.span)
            for atom in rule.positive_atoms()
        ]
        found += _negative_steps(rule, source, groups)
        steps[source] += [step for step in found if step.target in steps]
    return steps


def _cycle(first: _Step, steps: Mapping[Shape, list[_Step]]) -> list[_Step]:
    """Return a shortest path from the end of the first step back to its beginning."""
    came_by: dict[Shape, _Step | None] = {first.target: None}
    queue = deque([first.target])
    while first.source not in came_by:
        for step in steps[queue.popleft()]:
            if step.target not in came_by:
                came_by[step.target] = step
                queue.append(step.target)
    way: list[_Step] = []
    last = came_by[first.source]
    while last is not None:
        way.append(last)
        last = came_by[last.source]
    return _without_auxiliaries([first, *reversed(way)])


def _without_auxiliaries(cycle: list[_Step]) -> list[_Step]:
    """Join the step to an auxiliary predicate with the step that leaves it."""
    shown: list[_Step] = []
    while is_auxiliary(cycle[0].source.predicate):
        cycle = [cycle[-1], *cycle[:-1]]
    for step in cycle:
        if is_auxiliary(step.source.predicate):
            before = shown.pop()
            step = _Step(  # noqa: PLW2901  replaced by the joined step
                before.source,
                step.target,
                before.is_negative or step.is_negative,
                before.span or step.span,
                before.function or step.function,
            )
        shown.append(step)
    return shown


def _error(
    cycle: list[_Step], names: Mapping[Shape, str], reason: str | None
) -> StratificationError:
    first = cycle[0]
    way = [names[first.source]]
    labels: list[Label] = []
    for step in cycle:
        source, target = names[step.source], names[step.target]
        inside = f"{step.function}{{{target}}}" if step.function else f"not {target}"
        needs_all = step.is_negative or bool(step.function)
        way.append(inside if needs_all else target)
        if step.span is not None and needs_all:
            remark = f"`{source}` needs `{target}` to be complete"
            labels.append(Label(step.span, remark))
        elif step.span is not None:
            labels.append(Label(step.span, f"`{source}` grows with `{target}`"))
    if reason is not None:
        return StratificationError(
            f"recursion through an aggregate: {' -> '.join(way)}",
            labels=tuple(labels),
            reason=f"an aggregate of itself must be monotone; {reason}",
            help="use `min` or `max` of what only decreases or increases, or compare a "
            "`sum` or `count` with `>` or `>=`; or break the cycle, for example by "
            f"deriving `{names[first.target]}` from facts that do not use "
            f"`{names[first.source]}`",
        )
    return StratificationError(
        f"recursion through negation: {' -> '.join(way)}",
        labels=tuple(labels),
        reason="a predicate may not depend on its own negation",
        help=f"break the cycle, for example by deriving `{names[first.target]}` from "
        f"facts that do not use `{names[first.source]}`",
    )


@dataclass(frozen=True, eq=False)
class Components:
    """The strongly connected component of each shape, by number."""

    table: ShapeTable
    numbers: list[int]

    def of(self, atom: Atom) -> int | None:
        """Return the component of an atom's shape, None if no rule mentions it."""
        number = self.table.find(atom)
        return None if number is None else self.numbers[number]


@dataclass(frozen=True, eq=False)
class Stratum:
    """Rules that are evaluated together.

    Attributes:
        index: from 0; a stratum depends on those before it only.
        recursive_rules: rules with a positive body atom in their head's component.
        nonrecursive_rules: the others.
        shapes: the shapes of the facts that the rules derive.
        aggregate_rules: rules that consist of an aggregate; none of the others.
        monotone_rules: the same, for aggregates of facts that depend on them.
        components: the components of the whole program.
    """

    index: int
    recursive_rules: tuple[Rule, ...]
    nonrecursive_rules: tuple[Rule, ...]
    shapes: tuple[Shape, ...]
    components: Components
    aggregate_rules: tuple[Rule, ...] = ()
    monotone_rules: tuple[Rule, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules of the stratum except aggregate rules."""
        return self.nonrecursive_rules + self.recursive_rules

    def is_local(self, rule: Rule, atom: Atom) -> bool:
        """Return whether a positive atom of a rule lies in the component of its head.

        A local atom may also match facts of other strata: `[?x, ?p, ?y]` does.
        """
        return self.components.of(atom) == self.components.of(rule.head)

    def home(self, rule: Rule) -> int | None:
        """Return the component of the head of a rule."""
        return self.components.of(rule.head)

    def parts(self, homes: Sequence[AbstractSet[int | None]]) -> Iterator[Stratum]:
        """Divide the stratum: the rest first, then a part for each set of components.

        Components of a stratum do not depend on each other, so its parts can be
        evaluated one after the other. Aggregates stay with the rest.
        """
        apart = frozenset[int | None]().union(*homes)
        rest = [rule for rule in self.rules if self.home(rule) not in apart]
        if rest or self.aggregate_rules or self.monotone_rules:
            yield replace(
                self._part(rest),
                aggregate_rules=self.aggregate_rules,
                monotone_rules=self.monotone_rules,
            )
        for some in homes:
            yield self._part([rule for rule in self.rules if self.home(rule) in some])

    def _part(self, rules: Sequence[Rule]) -> Stratum:
        some = frozenset(rules)
        return Stratum(
            self.index,
            tuple(rule for rule in self.recursive_rules if rule in some),
            tuple(rule for rule in self.nonrecursive_rules if rule in some),
            tuple(dict.fromkeys(shape_of(rule.head) for rule in rules)),
            self.components,
        )


@dataclass(frozen=True, eq=False)
class Stratification:
    """The strata of a program, in the order of their evaluation."""

    strata: tuple[Stratum, ...]

    @cached_property
    def recursive_rules(self) -> tuple[Rule, ...]:
        """The recursive rules of all strata."""
        return tuple(
            rule for stratum in self.strata for rule in stratum.recursive_rules
        )


def stratify(rules: Sequence[Rule]) -> Stratification:
    """Assign normal rules to strata.

    Raises:
        StratificationError: if a predicate depends on its own negation.
    """
    graph = _Graph(rules)
    component = strong_components(graph.edges)
    if graph.has_negative_edge_within(component):
        components = dict(zip(graph.shapes, component, strict=True))
        problems: list[ProgramError] = []
        problems += recursion_through_negation(rules, components)
        if problems:
            raise_all(problems)
    levels = graph.levels(component)
    depth = max(levels, default=-1) + 1
    drafts = [_Draft() for _ in range(depth)]
    for rule, edges in zip(rules, graph.rules, strict=True):
        home = component[edges.head]
        draft = drafts[levels[home]]
        if is_aggregate_rule(rule):
            is_recursive = any(component[atom] == home for atom in edges.negative)
            (draft.monotone if is_recursive else draft.aggregates).append(rule)
            continue
        draft.shapes.setdefault(edges.head, graph.shapes[edges.head])
        is_recursive = any(component[atom] == home for atom in edges.positive)
        (draft.recursive if is_recursive else draft.nonrecursive).append(rule)
    return Stratification(
        tuple(
            Stratum(
                index,
                tuple(draft.recursive),
                tuple(draft.nonrecursive),
                tuple(draft.shapes.values()),
                Components(graph.table, component),
                tuple(draft.aggregates),
                tuple(draft.monotone),
            )
            for index, draft in enumerate(drafts)
        )
    )


@dataclass
class _Draft:
    """A stratum under construction."""

    recursive: list[Rule] = field(default_factory=list)
    nonrecursive: list[Rule] = field(default_factory=list)
    aggregates: list[Rule] = field(default_factory=list)
    monotone: list[Rule] = field(default_factory=list)
    shapes: dict[int, Shape] = field(default_factory=dict)


class _RuleEdges(NamedTuple):
    """A rule as numbers of shapes."""

    head: int
    positive: list[int]
    negative: list[int]


class _Graph:
    """Shapes by number, with edges from a shape to its dependencies."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        table = self.table = ShapeTable()
        heads = [table.number(rule.head) for rule in rules]
        head_count = len(table.shapes)
        self.rules = [
            _RuleEdges(
                head,
                [table.number(atom) for atom in rule.positive_atoms()],
                [
                    table.number(atom)
                    for atom in (*rule.negated_atoms(), *rule.aggregated_atoms())
                ],
            )
            for head, rule in zip(heads, rules, strict=True)
        ]
        self.shapes = table.shapes
        self.head_count = head_count
        self.edges: list[list[int]] = [[] for _ in self.shapes]
        for edges in self.rules:
            self.edges[edges.head] += edges.positive
            self.edges[edges.head] += edges.negative
        self._add_overlaps()

    def _add_overlaps(self) -> None:
        overlaps = Overlaps(self.shapes, self.head_count)
        for number, targets in enumerate(self.edges):
            targets.extend(overlaps.of(number))

    def has_negative_edge_within(self, component: list[int]) -> bool:
        """Return whether a rule has a negated atom in its head's component."""
        return any(
            component[atom] == component[edges.head]
            for edges in self.rules
            for atom in edges.negative
        )

    def levels(self, component: list[int]) -> list[int]:
        """Return the depth of each component; -1 for those that no rule derives."""
        count = max(component, default=-1) + 1
        members: list[list[int]] = [[] for _ in range(count)]
        for number, home in enumerate(component):
            members[home].append(number)
        levels: list[int] = []
        for home, numbers in enumerate(members):
            below = -1
            for number in numbers:
                for target in self.edges[number]:
                    if component[target] != home:
                        below = max(below, levels[component[target]])
            is_derived = any(number < self.head_count for number in numbers)
            levels.append(below + 1 if is_derived else below)
        return levels


def rules_needed_for(
    rules: Sequence[Rule], predicate: str
) -> tuple[tuple[Rule, ...], tuple[Shape, ...]]:
    """Return the rules that a predicate depends on, and the shapes in these rules.

    Args:
        rules: normal rules.
        predicate: a predicate other than `triple`, such as that of equality.
    """
    graph = _Graph(rules)
    waiting = [n for n, each in enumerate(graph.shapes) if each.predicate == predicate]
    reached = set(waiting)
    while waiting:
        for target in graph.edges[waiting.pop()]:
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    needed = tuple(
        rule
        for rule, edges in zip(rules, graph.rules, strict=True)
        if edges.head in reached
    )
    return needed, tuple(graph.shapes[number] for number in sorted(reached))
