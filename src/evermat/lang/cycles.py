"""Recursion through negation: finding a cycle and telling it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.errors import Label, StratificationError
from evermat.lang.normalise import is_auxiliary
from evermat.lang.shapes import Overlaps, Shape, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evermat.errors import Span
    from evermat.lang.syntax import Rule


@dataclass(frozen=True, slots=True)
class _Step:
    """One shape needs another: because of an atom, or because they overlap."""

    source: Shape
    target: Shape
    is_negative: bool = False
    span: Span | None = None


def recursion_through_negation(
    rules: Sequence[Rule], components: Mapping[Shape, int]
) -> list[StratificationError]:
    """An error for each component in which a shape depends on its own negation."""
    offending: dict[int, _Step] = {}
    for rule in rules:
        source = shape_of(rule.head)
        for step in _negative_steps(rule, source):
            if components[step.target] == components[source]:
                offending.setdefault(components[source], step)
    names = _names_in_text(rules) if offending else {}
    return [
        _error(_cycle(step, _steps(rules, components, component)), names)
        for component, step in offending.items()
    ]


def _names_in_text(rules: Sequence[Rule]) -> dict[Shape, str]:
    """The words with which the program itself speaks of a shape."""
    names: dict[Shape, str] = {}
    for rule in rules:
        for atom in (rule.head, *rule.positive_atoms(), *rule.negated_atoms()):
            shape, span = shape_of(atom), atom.predicate_span
            if span is None or is_auxiliary(atom.predicate):
                names.setdefault(shape, str(shape))
            else:
                names.setdefault(shape, span.source.text[span.start : span.end])
    return names


def _negative_steps(rule: Rule, source: Shape) -> Iterator[_Step]:
    for atom in rule.negated_atoms():
        yield _Step(source, shape_of(atom), is_negative=True, span=atom.span)


def _steps(
    rules: Sequence[Rule], components: Mapping[Shape, int], component: int
) -> dict[Shape, list[_Step]]:
    """All steps within a component, by their source."""
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
        found += _negative_steps(rule, source)
        steps[source] += [step for step in found if step.target in steps]
    return steps


def _cycle(first: _Step, steps: Mapping[Shape, list[_Step]]) -> list[_Step]:
    """A shortest way from the end of the first step back to its beginning."""
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
    for step in cycle:
        if is_auxiliary(step.source.predicate):
            before = shown.pop()
            step = _Step(before.source, step.target, before.is_negative, before.span)  # noqa: PLW2901  the joined step takes its place
        shown.append(step)
    return shown


def _error(cycle: list[_Step], names: Mapping[Shape, str]) -> StratificationError:
    first = cycle[0]
    way = [names[first.source]]
    labels: list[Label] = []
    for step in cycle:
        source, target = names[step.source], names[step.target]
        way.append(f"not {target}" if step.is_negative else target)
        if step.span is not None and step.is_negative:
            remark = f"`{source}` needs `{target}` to be complete"
            labels.append(Label(step.span, remark))
        elif step.span is not None:
            labels.append(Label(step.span, f"`{source}` grows with `{target}`"))
    return StratificationError(
        f"recursion through negation: {' -> '.join(way)}",
        labels=tuple(labels),
        law="a predicate may not depend on its own negation",
        help=f"break the cycle, for example by deriving `{names[first.target]}` from "
        f"facts that do not use `{names[first.source]}`",
    )
