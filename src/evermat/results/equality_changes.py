"""Changes in terms of all facts, where the engine holds representatives only.

A fact of the engine stands for all facts that differ from it in equal constants. An
update may change which ones: then the facts that it stood for before are compared with
those that facts stand for now, when somebody asks.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import joined_tables, rows_without, table_of_rows, term_table
from evermat.lang.equality import OWL_SAME_AS
from evermat.lang.normalise import is_auxiliary
from evermat.lang.syntax import SAME_AS, TRIPLE
from evermat.results.change import read_relation, row_keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evermat.algebra import Snapshot
    from evermat.algebra.abilities import Representatives
    from evermat.maintenance.updates import Outcome


def expanded_outcome(outcome: Outcome, arities: Mapping[str, int]) -> Outcome:
    """An outcome whose changes are about all facts.

    Args:
        outcome: changes of representatives.
        arities: the predicates that can be asked about.
    """
    change = outcome.cliques
    if change is None:
        return outcome
    stayed = () if change.stayed is None else (change.stayed,)
    old = Side((change.lost, *stayed), change.before, arities)
    new = Side((change.gained, *stayed), change.after, arities)
    return replace(outcome, removed=Gone(old, new), added=Gone(new, old))


class Side:
    """Facts of representatives at one moment, and what they stand for.

    Equalities between different constants are told in `same_as` and as triples, if
    somebody can ask about these; that a constant is equal to itself is not told.

    Args:
        facts: the facts, in parts that have none in common.
        representatives: which constants are equal.
        arities: the predicates that can be asked about.
    """

    def __init__(
        self,
        facts: Sequence[Snapshot],
        representatives: Representatives,
        arities: Mapping[str, int],
    ) -> None:
        self.facts = facts
        self.representatives = representatives
        self.arities = arities
        self._tables: dict[str, pa.Table] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """The predicates that have facts."""
        every = chain.from_iterable(part.relations() for part in self.facts)
        names = {name for name in every if not is_auxiliary(name)}
        if not self.representatives.is_identity():
            names |= {SAME_AS, TRIPLE} & self.arities.keys()
        return frozenset(names)

    def size(self, name: str) -> int:
        """How many facts of a predicate there are."""
        if name in {SAME_AS, TRIPLE}:
            return int(self.table(name).num_rows)
        return self.representatives.expanded_size(self._normal(name))

    def _normal(self, name: str) -> pa.Table:
        arity = self.arities[name]
        return joined_tables([read_relation(part, name, arity) for part in self.facts])

    def table(self, name: str) -> pa.Table:
        """All facts of a predicate."""
        if name not in self._tables:
            table = self.representatives.expanded(_plain(name, self._normal(name)))
            if name in {SAME_AS, TRIPLE}:
                both = (table, self._equalities(name))
                table = joined_tables([term_table(each) for each in both])
            self._tables[name] = table
        return self._tables[name]

    def _equalities(self, name: str) -> pa.Table:
        cliques = self.representatives.cliques()
        is_head = pc.equal(row_keys(cliques.select([0])), row_keys(cliques.select([1])))
        heads = cliques.filter(is_head)
        pairs = self.representatives.expanded(heads)
        same = pc.equal(row_keys(pairs.select([0])), row_keys(pairs.select([1])))
        pairs = pairs.filter(pc.invert(same))
        if name == SAME_AS:
            return pairs
        middle = table_of_rows([(OWL_SAME_AS,)] * pairs.num_rows, 1).column(0)
        return pa.table(
            [pairs.column(0), middle, pairs.column(1)], names=["0", "1", "2"]
        )


class Gone:
    """Facts of one moment that are not there at another; a `Snapshot`."""

    def __init__(self, there: Side, missing: Side) -> None:
        self._there = there
        self._missing = missing
        self._tables: dict[str, pa.Table] = {}

    @cached_property
    def _sizes(self) -> Mapping[str, int]:
        there, missing = self._there, self._missing
        sizes = {
            name: there.size(name)
            if name not in missing.names
            else self.read(name).num_rows
            for name in sorted(there.names)
        }
        return {name: size for name, size in sizes.items() if size}

    def relations(self) -> Mapping[str, int]:
        """The number of facts of each predicate that has any."""
        return self._sizes

    def read(self, relation: str) -> pa.Table:
        """The facts of a predicate."""
        if relation not in self._tables:
            self._tables[relation] = self._difference(relation)
        return self._tables[relation]

    def _difference(self, name: str) -> pa.Table:
        table = self._there.table(name)
        if name not in self._missing.names or not table.num_rows:
            return table
        other = self._missing.table(name)
        if not table.num_columns:
            return table.slice(0, max(0, table.num_rows - other.num_rows))
        is_there = pc.is_in(row_keys(table), value_set=row_keys(other))
        return table.filter(pc.invert(is_there))


def _plain(name: str, table: pa.Table) -> pa.Table:
    """A table without equalities, which are told on their own."""
    if name == SAME_AS:
        return table.slice(0, 0)
    return rows_without(table, [{1: OWL_SAME_AS}]) if name == TRIPLE else table
