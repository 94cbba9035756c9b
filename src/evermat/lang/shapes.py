"""Shapes of atoms: a triple atom with a constant predicate or class is its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.lang.syntax import TRIPLE, Atom, Term
from evermat.lang.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable

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


class HeadIndex:
    """Finds the head shapes that a shape overlaps, without comparing all pairs."""

    def __init__(self, heads: Iterable[Shape]) -> None:
        self._heads = set(heads)
        self._triples = [head for head in self._heads if is_triple(head)]
        self._by_relation: dict[Constant, list[Shape]] = {}
        for head in self._triples:
            if head.constants:
                relation = head.constants[0][1]
                self._by_relation.setdefault(relation, []).append(head)

    def overlapping(self, shape: Shape) -> list[Shape]:
        """The head shapes that share a possible fact with a shape."""
        if not is_triple(shape):
            return [shape] if shape in self._heads else []
        if not shape.constants:
            return self._triples
        wider = [Shape(TRIPLE, _TRIPLE_ARITY)]
        if len(shape.constants) == 1:
            same_relation = self._by_relation.get(shape.constants[0][1], [])
        else:
            same_relation = []
            wider += [Shape(TRIPLE, _TRIPLE_ARITY, shape.constants[:1]), shape]
        return same_relation + [head for head in wider if head in self._heads]


def is_triple(shape: Shape) -> bool:
    """Whether a shape is one of triples: only those overlap with others."""
    return shape.predicate == TRIPLE and shape.arity == _TRIPLE_ARITY
