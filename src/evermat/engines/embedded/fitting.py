"""Rows that have the constants of a pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.engines.embedded.arrays import Rows
    from evermat.engines.embedded.relation import Relation


@dataclass(frozen=True, slots=True, eq=False)
class Fitting:
    """Chooses rows of a relation by their ids at some positions."""

    relation: Relation
    constants: Mapping[int, int]

    def __call__(self, rows: Rows) -> Rows:
        """Those of some rows that have the ids."""
        table = self.relation.table
        for at, wanted in self.constants.items():
            rows = rows[table[at, rows] == wanted]
        return rows
