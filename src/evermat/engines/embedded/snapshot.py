"""Copies of facts that outlive what happens to the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.engines.embedded.arrays import Ids
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.settled import Settled


class Copy:
    """Rows of ids by relation; the constants are looked up when they are read.

    Args:
        dictionary: the constants.
        tables: ids by relation, which never change.
        facts: for some of the relations the rows that are meant, if not all.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        tables: Mapping[str, Ids],
        facts: Settled | None = None,
    ) -> None:
        self._dictionary = dictionary
        self._tables = tables
        self._facts = facts

    def relations(self) -> Mapping[str, int]:
        """The number of facts of each relation that has any."""
        chosen = {} if self._facts is None else self._facts.sizes()
        if len(chosen) == len(self._tables):
            return chosen
        return {name: ids.shape[1] for name, ids in self._tables.items()} | chosen

    def read(self, relation: str) -> pa.Table:
        """The rows of a relation."""
        ids = self._tables.get(relation)
        if ids is None:
            return pa.table({})
        if self._facts is not None and relation in self._facts.rows:
            ids = ids[:, self._facts.rows[relation]]
        if ids.shape[0] == 0:
            # A table without columns still has a number of rows.
            return pa.table({"": pa.nulls(ids.shape[1])}).select([])
        columns = [self._dictionary.decode(column) for column in ids]
        return pa.table(columns, names=[str(at) for at in range(len(columns))])
