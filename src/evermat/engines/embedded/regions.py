"""Which rows lie in a region, by the constants they have."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from evermat.engines.embedded.arrays import in_sorted
from evermat.engines.embedded.index import HALF
from evermat.values import Constant

if TYPE_CHECKING:
    from evermat.algebra import Region
    from evermat.engines.embedded.arrays import Keys, Mask, Rows
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.relation import Relation

Shapes = list[tuple[tuple[int, ...], "Keys"]]
"""Positions, and sorted keys of the constants that may stand there."""


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
        for positions, wanted in self._shapes(region, name):
            key = np.zeros(rows.size, np.uint64)
            for position in positions:
                key = (key << HALF) | table[position, rows]
            inside |= in_sorted(key, wanted)
        return inside

    def _shapes(self, region: Region, name: str) -> Shapes:
        by_name = self._known.setdefault(region, {})
        if name not in by_name:
            by_name[name] = self._pack(region, name)
        return by_name[name]

    def _pack(self, region: Region, name: str) -> Shapes:
        groups: dict[tuple[int, ...], list[int]] = {}
        shapes = [shape for shape in region.shapes if shape.relation == name]
        self._dictionary.remember(
            operand
            for shape in shapes
            for operand in shape.operands
            if isinstance(operand, Constant)
        )
        for shape in shapes:
            packed = 0
            positions = []
            for position, operand in enumerate(shape.operands):
                if isinstance(operand, Constant):
                    positions.append(position)
                    packed = (packed << 32) | self._dictionary.id_of(operand)
            groups.setdefault(tuple(positions), []).append(packed)
        return [
            (positions, np.sort(np.array(keys, np.uint64)))
            for positions, keys in groups.items()
        ]
