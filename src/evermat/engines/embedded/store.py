"""What an embedded engine holds: relations, the stored sets and the counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.counters import CounterColumn
from evermat.engines.embedded.relation import (
    EXPLICIT,
    MATERIALISED,
    NONRECURSIVE,
    RECURSIVE,
    Relation,
)
from evermat.engines.embedded.sets import Sets, Stored

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids
    from evermat.engines.embedded.dictionary import Dictionary


class Store:
    """Replaced as a whole when everything is materialised anew."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.relations: dict[str, Relation] = {}
        self.sets = Sets(self.relations, dictionary)
        self.materialised = Stored(MATERIALISED)
        self.explicit = Stored(EXPLICIT)
        self.counters = (
            CounterColumn(NONRECURSIVE, self.relations, self.sets),
            CounterColumn(RECURSIVE, self.relations, self.sets),
        )

    def missing_from(self, other: Store) -> dict[str, Ids]:
        """The materialised facts that another store does not have, by column."""
        tables: dict[str, Ids] = {}
        for name, relation in self.relations.items():
            rows = self.sets.stored_rows(self.materialised, name)
            table = relation.table[:, rows]
            twin = other.relations.get(name)
            if twin is not None and twin.count:
                found = twin.find(table)
                there = found >= 0
                there[there] = (twin.status[found[there]] & MATERIALISED) != 0
                table = table[:, np.logical_not(there)]
            if table.shape[1]:
                tables[name] = table
        return tables
