"""Which rules depend on which, and in what order they can be worked out.

Dependencies are between *shapes* of atoms rather than between predicates: a triple atom
with a constant predicate is a shape of its own, and so is `[?x, a, :C]` for each class.
Otherwise every rule about triples would depend on every other one.

- Head shapes that overlap, such as `[?x, a, :C]` and `[?x, ?p, ?y]`, derive the same
  facts, so they are put into one component.
- A body shape depends on all head shapes that it overlaps.

A *stratum* holds all components at the same depth. Components of one stratum do not
depend on each other, so that 20,000 independent rules give one stratum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from evermat.errors import raise_all
from evermat.lang.components import strong_components
from evermat.lang.cycles import recursion_through_negation
from evermat.lang.shapes import Overlaps, Shape, ShapeTable, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evermat.errors import ProgramError
    from evermat.lang.syntax import Atom, Rule

__all__ = ["Shape", "Stratification", "Stratum", "shape_of", "stratify"]


@dataclass(frozen=True, eq=False)
class Components:
    """The strongly connected component of each shape, by number."""

    table: ShapeTable
    numbers: list[int]

    def of(self, atom: Atom) -> int | None:
        """The component of an atom's shape, None if no rule mentions the shape."""
        number = self.table.find(atom)
        return None if number is None else self.numbers[number]


@dataclass(frozen=True, eq=False)
class Stratum:
    """Rules that are worked out together.

    Attributes:
        index: from 0; a stratum depends on those before it only.
        recursive_rules: rules with a positive body atom in their head's component.
        nonrecursive_rules: the others.
        shapes: the shapes of the facts that the rules derive.
        components: the components of the whole program.
    """

    index: int
    recursive_rules: tuple[Rule, ...]
    nonrecursive_rules: tuple[Rule, ...]
    shapes: tuple[Shape, ...]
    components: Components

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules of the stratum."""
        return self.nonrecursive_rules + self.recursive_rules

    def is_local(self, rule: Rule, atom: Atom) -> bool:
        """Whether a positive atom of a rule lies in the component of its head.

        A local atom may also match facts of other strata: `[?x, ?p, ?y]` does.
        """
        return self.components.of(atom) == self.components.of(rule.head)


@dataclass(frozen=True, eq=False)
class Stratification:
    """The strata of a program, in the order in which they must be worked out."""

    strata: tuple[Stratum, ...]

    @cached_property
    def recursive_rules(self) -> tuple[Rule, ...]:
        """The recursive rules of all strata."""
        return tuple(
            rule for stratum in self.strata for rule in stratum.recursive_rules
        )


def stratify(rules: Sequence[Rule]) -> Stratification:
    """Put normal rules into strata.

    Raises:
        StratificationError: if a predicate depends on its own negation.
    """
    graph = _Graph(rules)
    component = strong_components(graph.edges)
    if graph.has_negative_edge_within(component):
        components = dict(zip(graph.shapes, component, strict=True))
        problems: list[ProgramError] = []
        problems += recursion_through_negation(rules, components)
        raise_all(problems)
    levels = graph.levels(component)
    depth = max(levels, default=-1) + 1
    drafts = [_Draft() for _ in range(depth)]
    for rule, edges in zip(rules, graph.rules, strict=True):
        home = component[edges.head]
        draft = drafts[levels[home]]
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
            )
            for index, draft in enumerate(drafts)
        )
    )


@dataclass
class _Draft:
    """A stratum in the making."""

    recursive: list[Rule] = field(default_factory=list)
    nonrecursive: list[Rule] = field(default_factory=list)
    shapes: dict[int, Shape] = field(default_factory=dict)


class _RuleEdges(NamedTuple):
    """A rule as numbers of shapes."""

    head: int
    positive: list[int]
    negative: list[int]


class _Graph:
    """Shapes by number, with edges from a shape to what it depends on."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        table = self.table = ShapeTable()
        heads = [table.number(rule.head) for rule in rules]
        head_count = len(table.shapes)
        self.rules = [
            _RuleEdges(
                head,
                [table.number(atom) for atom in rule.positive_atoms()],
                [table.number(atom) for atom in rule.negated_atoms()],
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
        """Whether a rule has a negated atom in its head's component."""
        return any(
            component[atom] == component[edges.head]
            for edges in self.rules
            for atom in edges.negative
        )

    def levels(self, component: list[int]) -> list[int]:
        """The depth of each component; -1 where no rule derives anything."""
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


def rules_behind(
    rules: Sequence[Rule], predicate: str
) -> tuple[tuple[Rule, ...], tuple[Shape, ...]]:
    """The rules that a predicate depends on, and the shapes that these speak of.

    Args:
        rules: normal rules.
        predicate: one that is no triple, such as that of equality.
    """
    graph = _Graph(rules)
    waiting = [n for n, each in enumerate(graph.shapes) if each.predicate == predicate]
    reached = set(waiting)
    while waiting:
        for target in graph.edges[waiting.pop()]:
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    behind = tuple(
        rule
        for rule, edges in zip(rules, graph.rules, strict=True)
        if edges.head in reached
    )
    return behind, tuple(graph.shapes[number] for number in sorted(reached))
