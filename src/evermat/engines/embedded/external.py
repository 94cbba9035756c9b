"""The facts that closures start from, and how a view's rows belong to a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.algebra import (
    Column,
    Difference,
    Facts,
    Intersection,
    SettledFacts,
    Union,
    Within,
)
from evermat.engines.embedded.fact_sets import Growing, Stored

if TYPE_CHECKING:
    from evermat.algebra import Pattern, Region


@dataclass(frozen=True, slots=True, eq=False)
class External(Facts):
    """The facts of a pattern in a view that have a count, worked out when read.

    Attributes:
        is_certain: whether only nonrecursive counts are looked at.
    """

    pattern: Pattern
    facts: Facts
    is_certain: bool


Term = tuple[Facts, bool | None]
"""A view, and which of its facts are meant: those with a nonrecursive count (True),
with any count (False), or all."""


def terms_of(facts: Facts, pattern: Pattern) -> list[Term] | None:
    """A view of the facts of a pattern, as a union; None if it is too complicated."""
    match facts:
        case Union(left=left, right=right):
            first, second = terms_of(left, pattern), terms_of(right, pattern)
            return None if first is None or second is None else first + second
        case External():
            if facts.pattern.relation != pattern.relation:
                return []
            is_same = facts.pattern == pattern
            return [(facts.facts, facts.is_certain)] if is_same else None
        case Within(facts=inner, region=region):
            lies_within = _lies_within(pattern, region)
            if lies_within is None or not lies_within:
                return None if lies_within is None else []
            return terms_of(inner, pattern)
        case SettledFacts():
            is_there = pattern.relation in facts.relations()
            return [(facts, None)] if is_there else []
        case _:
            return [(facts, None)] if _is_simple(facts) else None


def _is_simple(facts: Facts) -> bool:
    """Whether status bits tell what is in a view."""
    match facts:
        case Growing() | Stored() | SettledFacts():
            return True
        case Union() | Intersection() | Difference():
            return _is_simple(facts.left) and _is_simple(facts.right)
        case _:
            return False


def _lies_within(pattern: Pattern, region: Region) -> bool | None:
    """Whether all facts of a pattern lie in a region, or none; None if some may."""
    if pattern.relation in region.relations:
        return True
    shapes = [shape for shape in region.shapes if shape.relation == pattern.relation]
    if any(
        _constants(shape).items() <= _constants(pattern).items() for shape in shapes
    ):
        return True
    own = _constants(pattern)
    is_outside = all(
        any(own.get(at, value) != value for at, value in _constants(shape).items())
        for shape in shapes
    )
    return False if is_outside else None


def _constants(pattern: Pattern) -> dict[int, object]:
    return {
        at: operand
        for at, operand in enumerate(pattern.operands)
        if not isinstance(operand, Column)
    }
