"""Sorted orders of large groups, for finding the least or greatest member."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from evermat.algebra import Aggregate, Facts
    from evermat.engines.embedded.arrays import Rows
    from evermat.engines.embedded.engine import EmbeddedEngine
    from evermat.engines.embedded.relation import Relation

    Integers = npt.NDArray[np.int64]


class GroupOrder:
    """The members of a large group in sorted order, for finding the next least one.

    The initial members are in an array with a cursor; members added later are on a
    heap. Members that no longer hold are skipped.
    """

    def __init__(
        self,
        engine: EmbeddedEngine,
        aggregate: Aggregate,
        relation: Relation,
        rows: Rows,
        numbers: Integers,
    ) -> None:
        self._engine = engine
        self._relation = relation
        self._column = aggregate.value
        self._sign = 1 if aggregate.function == "min" else -1
        self.numbering = relation.numbering
        self._rows = rows[np.argsort(self._sign * numbers, kind="stable")]
        self._at = 0
        self._later: list[tuple[int, int]] = []

    def add(self, row: int, id_: int) -> None:
        """Add a member."""
        heappush(self._later, (self._sign * id_, row))

    def first(self, facts: Facts) -> int | None:
        """Return the id of the least member that holds."""
        ids = self._relation.table[self._column]
        found = []
        while self._at < self._rows.size:
            row = int(self._rows[self._at])
            if self._holds(facts, row):
                found.append(int(ids[row]))
                break
            self._at += 1
        while self._later:
            _, row = self._later[0]
            if self._holds(facts, row):
                found.append(int(ids[row]))
                break
            heappop(self._later)
        if not found:
            return None
        return min(found) if self._sign > 0 else max(found)

    def _holds(self, facts: Facts, row: int) -> bool:
        rows = np.array([row], np.int32)
        name = self._relation.name
        return bool(self._engine.store.sets.test(facts, name, rows)[0])
