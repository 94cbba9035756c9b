"""Shapes of atoms: a triple atom with a constant predicate or class is its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.lang.syntax import TRIPLE, Atom, Term
from evermat.lang.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evermat.values import Constant

_TRIPLE_ARITY = 3


@dataclass(frozen=True, slots=True)
class Shape:
    """A predicate, and for triples the constants that tell what they are about.

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
    """The shape of an atom."""
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
    """Numbers the shapes of many atoms, making few objects on the way."""

    def __init__(self) -> None:
        self.shapes: list[Shape] = []
        self._numbers: dict[object, int] = {}

    def number(self, atom: Atom) -> int:
        """The number of an atom's shape, from 0 in order of appearance."""
        key = _quick_key(atom)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.shapes)
            self.shapes.append(shape_of(atom))
        return number

    def find(self, atom: Atom) -> int | None:
        """The number of an atom's shape, None if it has none yet."""
        return self._numbers.get(_quick_key(atom))


def _quick_key(atom: Atom) -> object:
    """Equal for two atoms exactly when their shapes are; quicker than a shape."""
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
        head_count: how many of them are shapes of heads.
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
        """The *other* head shapes that share a possible fact with a shape."""
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
    """Whether a fact can have both shapes."""
    if (one.predicate, one.arity) != (other.predicate, other.arity):
        return False
    fixed = dict(other.constants)
    return all(fixed.get(at, value) == value for at, value in one.constants)


def is_triple(shape: Shape) -> bool:
    """Whether a shape is one of triples: only those overlap with others."""
    return shape.predicate == TRIPLE and shape.arity == _TRIPLE_ARITY
