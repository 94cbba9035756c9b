"""Batched look-ups of the stored data of few facts.

An update needs to know of the facts it has just derived whether they are materialised,
whether they are explicit, and their counts. All of this is on the cluster, and much of
it in the same rows: explicit facts are the first level of the materialised facts and of
the counters, and facts that a round derived were written together with their counts. So
the first look-up of a fact fetches everything that was written about it. Rows on the
cluster never change, so the driver answers later look-ups from its cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.engines.spark.row_keys import (
    fetch,
    listed_values,
    whole_key_sql,
    whole_keys,
)
from evermat.engines.spark.row_tables import (
    NUMBERS,
    appended,
    common,
    distinct,
    key_columns,
    key_names,
    padded_keys,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evermat.engines.spark.blocks import Block, Cluster, Origin

MOST_KEPT = 1_000_000
"""Facts in the cache, beyond which it is emptied."""


class Source(Protocol):
    """Data about facts that are stored on the cluster."""

    def stored_blocks(self) -> list[Block]:
        """Return the blocks of the data."""


@dataclass(eq=False, slots=True)
class _Known:
    """The facts that were looked up in rows written together, and the results."""

    asked: pa.Table
    found: pa.Table


class Lookups:
    """Caches what was fetched about facts."""

    def __init__(self, cluster: Cluster, sources: tuple[Source, ...]) -> None:
        self._cluster = cluster
        self._sources = sources
        self._known: WeakKeyDictionary[Origin, _Known] = WeakKeyDictionary()
        self._nothing = _empty(key_columns(1))

    def find(self, blocks: list[Block], facts: pa.Table) -> list[pa.Table]:
        """Return, for each block on the cluster, the facts it has, with counts."""
        keys = facts.select(key_names(facts))
        if keys.num_rows:
            self._learn(blocks, keys)
        return [self._rows(block, keys) for block in blocks]

    def _rows(self, block: Block, keys: pa.Table) -> pa.Table:
        kept = block.kept_in
        known = None if kept is None else self._known.get(kept.origin)
        if kept is None or known is None or not keys.num_rows:
            return _empty([*key_columns(1), "n"])
        found = common(known.found, keys)
        if kept.number:
            found = found.filter(pc.not_equal(found[kept.number], 0))
            found = found.select(key_names(found)).append_column(
                "n", found[kept.number]
            )
        elif kept.only_new:
            found = found.filter(pc.invert(found["old"]))
        if kept.ones:
            ones = pa.array(np.ones(found.num_rows, np.int64))
            found = found.set_column(found.column_names.index("n"), "n", ones)
        return found.select([*key_names(found), "n"])

    def _learn(self, blocks: list[Block], facts: pa.Table) -> None:
        """Fetch everything about some facts that is not known yet."""
        every = [*blocks, *(b for each in self._sources for b in each.stored_blocks())]
        tags = frozenset(pc.unique(facts["tag"]).to_pylist())
        unknown: dict[Origin, pa.Table] = {}
        compared: dict[int, pa.Table] = {}
        for origin in _origins(every, tags):
            known = self._known.get(origin)
            if known is None or known.asked.num_rows > MOST_KEPT:
                others = ("n", "old") if origin.stored is None else NUMBERS
                found = _empty([*key_columns(origin.width), *others])
                known = self._known[origin] = _Known(self._nothing, found)
            # Most places were asked for the same facts, and share one table.
            asked = id(known.asked)
            if asked not in compared:
                compared[asked] = without(facts, known.asked)
            if compared[asked].num_rows:
                unknown[origin] = compared[asked]
        if unknown:
            self._fetch(unknown, tags)

    def _fetch(self, unknown: Mapping[Origin, pa.Table], tags: frozenset[int]) -> None:
        several = {id(table): table for table in unknown.values()}
        facts = next(iter(several.values()))
        if len(several) > 1:
            facts = distinct(appended(list(several.values())))
        by_plan = [origin for origin in unknown if origin.stored is None]
        fetched = self._collected(by_plan, facts, tags) if by_plan else self._nothing
        extended: dict[tuple[int, int], pa.Table] = {}
        for origin, asked in unknown.items():
            known = self._known[origin]
            if origin.stored is not None:
                mine = common(origin.stored.find_facts(asked), asked)
            else:
                number = str(by_plan.index(origin))
                mine = fetched.filter(pc.equal(fetched["source"], number))
                mine = common(mine.drop_columns(["source"]), asked)
            if mine.num_rows:
                known.found = appended([known.found, mine])
            both = id(known.asked), id(asked)
            if both not in extended:
                extended[both] = appended([known.asked, asked])
            known.asked = extended[both]

    def _collected(
        self, origins: list[Origin], facts: pa.Table, tags: frozenset[int]
    ) -> pa.Table:
        """Return the rows about facts, with the number of their place."""
        width = max(each.width for each in origins)
        width = max(width, len(facts.column_names) - 1)
        facts = appended([facts, _empty(key_columns(width))])
        scans = (_scan(number, each, width) for number, each in enumerate(origins))
        # Triples are sorted by property and object, so scans skip distant rows.
        sorted_by = ((name, facts[name].to_numpy()) for name in key_names(facts)[2:])
        conditions = [f"tag IN ({', '.join(f'{tag}L' for tag in sorted(tags))})"]
        conditions += listed_values(sorted_by)
        keyed = (
            f"SELECT *, {whole_key_sql(width)} AS key "  # noqa: S608
            f"FROM ({' UNION ALL '.join(scans)}) WHERE {' AND '.join(conditions)}"
        )
        names = ["source", *key_columns(width), "n", "old"]
        keys = np.unique(whole_keys(facts, width))
        return fetch(self._cluster, keyed, names, keys)


def _origins(blocks: Iterable[Block], tags: frozenset[int]) -> list[Origin]:
    """Return the places where rows of some relations may be, each once."""
    found: dict[Origin, None] = {}
    for block in blocks:
        if not tags.isdisjoint(block.sizes) and block.kept_in is not None:
            found[block.kept_in.origin] = None
    return list(found)


def _scan(number: int, origin: Origin, width: int) -> str:
    """Return the rows of a place, with its number."""
    names = padded_keys(origin.width, width)
    names.append("n" if "n" in origin.columns else "1L AS n")
    names.append("old" if "old" in origin.columns else "false AS old")
    # A string is not part of the code that Spark compiles for a scan, while a number
    # is: with a string, most scans share the code, which is compiled once.
    return f"SELECT '{number}' AS source, {', '.join(names)} FROM {origin.view}"  # noqa: S608


def _empty(names: list[str]) -> pa.Table:
    types = {"old": pa.bool_()}
    return pa.table({name: pa.array([], types.get(name, pa.int64())) for name in names})
