"""Which rows lie in a region, by the constants they have."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from evermat.engines.embedded.arrays import in_sorted
from evermat.engines.embedded.index import WIDEST_EXACT_KEY, make_keys
from evermat.values import Constant

if TYPE_CHECKING:
    from evermat.algebra import Region
    from evermat.engines.embedded.arrays import Keys, Mask, Rows
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.relation import Relation

Part = tuple[tuple[int, ...], "Keys"]
"""Positions, and sorted keys of the constants that may stand there."""

Shapes = list[list[Part]]
"""A row that fits all parts of one of them has a shape."""


class Regions:
    """Tests rows against regions.

    A region can have a shape for every class of an ontology, so what it says of a
    relation is worked out once.
    """

    def __init__(self, relations: dict[str, Relation], dictionary: Dictionary) -> None:
        self._relations = relations
        self._dictionary = dictionary
        self._known: WeakKeyDictionary[Region, dict[str, Shapes]] = WeakKeyDictionary()

    def test(self, region: Region, name: str, rows: Rows) -> Mask:
        """Which of some rows of a relation lie in a region."""
        if name in region.relations:
            return np.ones(rows.size, np.bool_)
        inside = np.zeros(rows.size, np.bool_)
        table = self._relations[name].table
        for parts in self._shapes(region, name):
            fits = np.ones(rows.size, np.bool_)
            for positions, wanted in parts:
                columns = [table[at].take(rows) for at in positions]
                found = np.array(columns, np.uint32).reshape(len(positions), rows.size)
                fits &= in_sorted(make_keys(found), wanted)
            inside |= fits
        return inside

    def _shapes(self, region: Region, name: str) -> Shapes:
        by_name = self._known.setdefault(region, {})
        if name not in by_name:
            by_name[name] = self._pack(region, name)
        return by_name[name]

    def _pack(self, region: Region, name: str) -> Shapes:
        """The shapes that a relation has in a region.

        Those with constants at the same positions are tested together, unless the
        constants are more than fit into a key.
        """
        shapes = [shape.operands for shape in region.shapes if shape.relation == name]
        self._dictionary.remember(
            operand
            for operands in shapes
            for operand in operands
            if isinstance(operand, Constant)
        )
        together: dict[tuple[int, ...], list[list[int]]] = {}
        packed: Shapes = []
        for operands in shapes:
            fixed = {
                at: self._dictionary.id_of(operand)
                for at, operand in enumerate(operands)
                if isinstance(operand, Constant)
            }
            if len(fixed) > WIDEST_EXACT_KEY:
                packed.append([_part((at,), [[id_]]) for at, id_ in fixed.items()])
            else:
                together.setdefault(tuple(fixed), []).append([*fixed.values()])
        return [*packed, *([_part(*each)] for each in together.items())]


def _part(positions: tuple[int, ...], rows: list[list[int]]) -> Part:
    return positions, np.sort(make_keys(np.array(rows, np.uint32).T))
