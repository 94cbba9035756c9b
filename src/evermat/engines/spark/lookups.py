"""What is stored about a few facts, asked for in one job.

An update asks of the facts it has just derived whether they hold, whether they were
given, and how often they were counted. All of it is on the cluster, in levels that do
not change while the update lasts. Sources that are asked one after the other share one
job: the first question about a fact fetches the answers of all of them. What was
answered once is answered by the driver from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.engines.spark.blocks import (
    appended,
    common,
    key_columns,
    key_names,
    summed,
    without,
)
from evermat.engines.spark.row_keys import (
    listed_values,
    whole_key_sql,
    whole_keys,
)

if TYPE_CHECKING:
    from evermat.engines.spark.blocks import Cluster


class Source(Protocol):
    """Something that is stored on the cluster for facts."""

    def stored_levels(self) -> tuple[object, ...]:
        """What it is made of; the same objects as long as it is the same."""

    def stored_width(self) -> int:
        """How many columns its facts have at most."""

    def stored_queries(self, width: int, tags: frozenset[int]) -> list[str]:
        """Queries for facts of some relations, and a number `n` for each."""


class Lookups:
    """Remembers what was fetched from several sources, until one of them changes."""

    def __init__(self, cluster: Cluster, sources: tuple[Source, ...]) -> None:
        self._cluster = cluster
        self._sources = sources
        self._moment: tuple[tuple[object, ...], ...] | None = None
        self._asked = _nothing()
        self._found: list[pa.Table] = []

    def find(self, source: Source, facts: pa.Table) -> pa.Table:
        """Those of the facts that a source has, with their numbers."""
        moment = tuple(each.stored_levels() for each in self._sources)
        if moment != self._moment:
            self._moment, self._asked = moment, _nothing()
            self._found = [_nothing(numbers=True) for _ in self._sources]
        keys = facts.select(key_names(facts))
        unknown = without(keys, self._asked)
        if unknown.num_rows:
            self._fetch(unknown)
        place = next(at for at, each in enumerate(self._sources) if each is source)
        return common(self._found[place], keys)

    def _fetch(self, facts: pa.Table) -> None:
        tags = frozenset(pc.unique(facts["tag"]).to_pylist())
        width = max(each.stored_width() for each in self._sources)
        width = max(width, len(facts.column_names) - 1)
        facts = appended([facts, _nothing(width=width)])
        keys = key_columns(width)
        # Triples are sorted by property and object: scans skip what is far from them.
        sorted_by = ((name, facts[name].to_numpy()) for name in keys[2:])
        where = " AND ".join(listed_values(sorted_by)) or "true"
        parts = [
            f"SELECT {place} AS source, {', '.join(keys)}, n FROM ({query}) "  # noqa: S608
            f"WHERE {where}"
            for place, source in enumerate(self._sources)
            for query in source.stored_queries(width, tags)
        ]
        if parts:
            numbers = np.unique(whole_keys(facts, width))
            wanted = self._cluster.register_table(pa.table({"key": numbers}))
            fetched = self._cluster.collect(
                f"SELECT /*+ BROADCAST(r) */ source, {', '.join(keys)}, n "  # noqa: S608
                f"FROM (SELECT *, {whole_key_sql(width)} AS key "
                f"FROM ({' UNION ALL '.join(parts)})) l "
                f"LEFT SEMI JOIN {wanted} r ON l.key = r.key"
            )
            self._cluster.waste.append((wanted, None))
            fetched = common(fetched, facts)
            for place in range(len(self._sources)):
                mine = fetched.filter(pc.equal(fetched["source"], place))
                new = summed(mine.drop_columns(["source"]))
                self._found[place] = appended([self._found[place], new])
        self._asked = appended([self._asked, facts])


def _nothing(*, width: int = 1, numbers: bool = False) -> pa.Table:
    names = [*key_columns(width), *(["n"] if numbers else [])]
    return pa.table({name: pa.array([], pa.int64()) for name in names})
