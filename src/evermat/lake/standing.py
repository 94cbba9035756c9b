"""Changes of all facts, where a state holds facts that stand for others.

A version may change what a fact stands for, and not the fact itself. So where cliques
change, the facts that mention them are read from both versions, and what they stood for
is compared with what they stand for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import STORED_NUMBERS
from evermat.engines import make_engine
from evermat.lake.layout import arguments, width_of
from evermat.lake.merging import stacked_facts, summed_facts
from evermat.lake.rows import decoded, split_by_relation
from evermat.results.equality_changes import Gone, Side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from evermat.algebra.abilities import EqualityEngine, Representatives
    from evermat.engines.spark.dictionary import Dictionary

    Read = Callable[[], pa.Table]


class Standing:
    """What stands for equal constants, from version to version.

    Attributes:
        pairs: constants and what stands for them, at the version that was reached.
    """

    def __init__(
        self, pairs: pa.Table, dictionary: Dictionary, arities: Mapping[str, int]
    ) -> None:
        self.pairs = pairs
        self._dictionary = dictionary
        self._arities = arities

    def next(
        self, changed: pa.Table, moved: pa.Table | None, facts: tuple[Read, Read]
    ) -> Iterator[tuple[str, pa.Table]]:
        """Go on to the next version: by predicate what came and left with it.

        Args:
            changed: facts that begin or cease to hold.
            moved: how pairs change; None if they stay.
            facts: read all facts of the version before, and of this one.
        """
        left = changed.filter(pc.less(changed["holds"], 0))
        came = changed.filter(pc.greater(changed["holds"], 0))
        before = after = self.pairs
        if moved is not None:
            self.pairs = after = summed_facts([before, moved])
            ids = _ids(moved)
            old, new = (read() for read in facts)
            left, came = _with(left, old, ids), _with(came, new, ids)
        was, now = self._side(left, before), self._side(came, after)
        for name in sorted(was.names | now.names):
            for holds, gone in ((-1, Gone(was, now)), (1, Gone(now, was))):
                found = gone.read(name)
                if found.num_rows:
                    yield name, _numbered(found, holds)

    def _side(self, facts: pa.Table, pairs: pa.Table) -> Side:
        rows = _Rows(facts, self._dictionary, self._arities)
        return Side([rows], self._cliques(pairs), self._arities)

    def _cliques(self, pairs: pa.Table) -> Representatives:
        cliques = cast("EqualityEngine", make_engine("embedded")).representatives()
        cliques.take_up(decoded(pairs, self._dictionary, 2).select([0, 1]))
        return cliques


class _Rows:
    """Rows of the table as facts; a `Snapshot`."""

    def __init__(
        self, facts: pa.Table, dictionary: Dictionary, arities: Mapping[str, int]
    ) -> None:
        self._rows = dict(split_by_relation(facts))
        self._dictionary = dictionary
        self._arities = arities

    def relations(self) -> Mapping[str, int]:
        """The number of facts of each relation that has any."""
        return {name: rows.num_rows for name, rows in self._rows.items()}

    def read(self, relation: str) -> pa.Table:
        """The facts of a relation."""
        arity = self._arities[relation]
        table = decoded(self._rows[relation], self._dictionary, arity)
        return table.select(range(arity))


def _ids(moved: pa.Table) -> pa.Array:
    """Constants of cliques that change, and all that stood or stands for them."""
    return pa.array(np.union1d(moved["c0"].to_numpy(), moved["c1"].to_numpy()))


def _with(some: pa.Table, facts: pa.Table, ids: pa.Array) -> pa.Table:
    """Some facts, and all that mention one of some constants, each once."""
    facts = facts.filter(_mentioning(facts, ids))
    others = some.filter(pc.invert(_mentioning(some, ids)))
    return stacked_facts([others, facts])


def _mentioning(facts: pa.Table, ids: pa.Array) -> pa.ChunkedArray:
    found = pa.chunked_array([pa.array(np.zeros(facts.num_rows, np.bool_))])
    for name in arguments(width_of(facts.column_names)):
        found = pc.or_(found, pc.is_in(facts[name], value_set=ids))
    return found


def _numbered(facts: pa.Table, holds: int) -> pa.Table:
    """Facts with numbers, of which only the first says something."""
    for name in STORED_NUMBERS:
        value = holds if name == STORED_NUMBERS[0] else 0
        numbers = pa.array(np.full(facts.num_rows, value, np.int64))
        facts = facts.append_column(name, numbers)
    return facts
