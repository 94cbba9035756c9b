"""Rules over facts that are all on the driver, run by the embedded engine.

A Spark job takes a tenth of a second or more, however few facts there are. Small sets
are on the driver anyway, and the embedded engine joins them in milliseconds. It has ids
of its own, so ids are translated in both directions; facts of a block are transferred
once, as long as the block lives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from evermat.algebra import Column, Pattern, Role, Views
from evermat.engines.embedded.batch import InlineTables
from evermat.engines.embedded.dedup import intern_rows
from evermat.engines.embedded.dictionary import (
    FIRST_INTEGER,
    INTEGER_ZERO,
    LARGEST,
    SMALLEST,
    Dictionary,
)
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.engines.embedded.fact_sets import Settled as Rows
from evermat.engines.spark.blocks import local_block, spread, width_of
from evermat.engines.spark.nearby import MOST_CHANGES, Nearby, NotNearError, walk
from evermat.engines.spark.reading import Reader
from evermat.engines.spark.row_tables import appended, key_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from evermat.algebra import Monitor, Query, QuerySet
    from evermat.engines.embedded.fact_sets import RowCounts
    from evermat.engines.spark.blocks import Block, Cluster
    from evermat.engines.spark.nearby import NearReader

    Ids = npt.NDArray[np.int64]
    Codes = npt.NDArray[np.uint32]

MOST_ROWS = 2_000_000
"""Transferred facts, beyond which the engine is emptied."""
MOST_MATCHES = 10_000_000
"""Matches of one call, beyond which the cluster is faster."""
_SETS = {
    Role.ALL: (Role.ALL,),
    Role.UNCHANGED: (Role.ALL, Role.CHANGED),
    Role.CHANGED: (Role.CHANGED,),
    Role.ABSENT: (Role.ABSENT,),
    Role.ABSENT_BEFORE: (Role.ABSENT, Role.CHANGED_ABSENT),
    Role.CHANGED_ABSENT: (Role.CHANGED_ABSENT,),
}
"""The sets of each role's view, by the role that reads just them."""
_NOTHING = np.iinfo(np.int64).min
"""The id of no constant."""


class _TooManyMatches(Exception):  # noqa: N818  an internal signal
    pass


class _Tally:
    """Counts the matches of each rule, and forwards them."""

    def __init__(self, monitor: Monitor | None) -> None:
        self._monitor = monitor
        self._total = 0
        self.matches: dict[str, int] = {}

    def working(self, label: str, matches: int) -> None:
        """Record matches."""
        self.matches[label] = self.matches.get(label, 0) + matches
        self._total += matches
        if self._monitor is not None:
            self._monitor.working(label, matches)
        elif self._total > MOST_MATCHES:
            raise _TooManyMatches

    def writing(self, label: str, facts: int) -> None:
        """Forward the call."""
        if self._monitor is not None:
            self._monitor.writing(label, facts)


class DriverEvaluation:
    """Evaluates queries whose sources are all on the driver."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nearby = Nearby(cluster)
        self._not_near: WeakKeyDictionary[QuerySet, int] = WeakKeyDictionary()
        """The sizes of changes for which too many rows had to be looked up."""
        self._start()

    def _start(self) -> None:
        dictionary = Dictionary()
        self._codes = Translation(self._cluster, dictionary)
        self._engine = EmbeddedEngine(InlineTables(dictionary))
        self._handed: WeakKeyDictionary[Block, dict[str, npt.NDArray[np.int32]]]
        self._handed = WeakKeyDictionary()

    def run(
        self, queries: QuerySet, views: Views, monitor: Monitor | None
    ) -> tuple[Block, dict[str, int]] | None:
        """Return the facts with their counts, and the matches of each rule.

        None if some data are not on the driver, or if there are too many matches.
        """
        affected = tuple(queries.affected(views))
        here = self._views(affected, views, Reader(self._cluster, views))
        if here is None:
            here = self._near_views(queries, affected, views)
        if here is None:
            return None
        tally = _Tally(monitor)
        self._engine.monitor = tally
        try:
            counts = self._engine.derive_counts(queries, here)
        except _TooManyMatches:
            return None
        finally:
            self._engine.monitor = None
        return self._block(counts), tally.matches

    def answer(self, query: Query, views: Views) -> pa.Table | None:
        """Return the distinct rows of a query; None if it is not for the driver."""
        here = self._views((query,), views, Reader(self._cluster, views))
        return None if here is None else self._engine.answer(query, here)

    # ----------------------------------------------------------------- on the way in

    def _near_views(
        self, queries: QuerySet, affected: tuple[Query, ...], views: Views
    ) -> Views | None:
        """Return the data that queries read near a change, if they are few."""
        changes = (views.delta_positive, views.delta_negative)
        size = sum(change.size() for change in changes if change is not None)
        if size > min(MOST_CHANGES, self._not_near.get(queries, MOST_CHANGES + 1) - 1):
            return None
        try:
            reader = walk(self._nearby, affected, views)
            return self._views(affected, views, reader)
        except NotNearError:
            self._not_near[queries] = size
            return None

    def forget(self, queries: QuerySet) -> None:
        """Discard cached data of queries that will not be run again."""
        self._not_near.pop(queries, None)

    def _views(
        self, queries: tuple[Query, ...], views: Views, reader: Reader | NearReader
    ) -> Views | None:
        """Return the data that queries read, as sets of the embedded engine."""
        read: dict[tuple[Role, bool], dict[str, Block]] = {}
        arities: dict[str, int] = {}
        for pattern in patterns_read(queries, views):
            source = reader.source(pattern)
            parts = read.setdefault((pattern.role, pattern.local), {})
            arities[pattern.relation] = len(pattern.operands)
            if source.bound:
                block = source.rows.block
                if block is None or block.table is None:
                    return None
                parts[pattern.relation] = block
        self._prepare(queries, arities)

        def facts(role: Role, *, local: bool = False) -> Rows:
            blocks = read.get((role, local), {})
            return Rows(
                {name: self._rows(block, name) for name, block in blocks.items()}
            )

        return Views(
            positive=facts(Role.ALL),
            negative=facts(Role.ABSENT),
            delta_positive=(
                None if views.delta_positive is None else facts(Role.CHANGED)
            ),
            delta_negative=(
                None if views.delta_negative is None else facts(Role.CHANGED_ABSENT)
            ),
            local=None if views.local is None else facts(Role.ALL, local=True),
        )

    def _prepare(self, queries: tuple[Query, ...], arities: dict[str, int]) -> None:
        heads = {each.head.relation: len(each.head.operands) for each in queries}
        wanted = {**heads, **arities}
        known = self._engine.relations()
        if self._row_count() > MOST_ROWS or any(
            known.get(name, arity) != arity for name, arity in wanted.items()
        ):
            self._start()
        for name, arity in wanted.items():
            self._engine.declare(name, arity)

    def _row_count(self) -> int:
        return sum(each.count for each in self._engine.store.relations.values())

    def _rows(self, block: Block, name: str) -> npt.NDArray[np.int32]:
        """Return the rows of a relation in a block, which are transferred once."""
        handed = self._handed.setdefault(block, {})
        if name not in handed:
            relation = self._engine.store.relations[name]
            table = cast("pa.Table", block.table)
            mine = table["tag"].to_numpy() == self._cluster.tag(name)
            codes = np.zeros((relation.arity, int(mine.sum())), np.uint32)
            for at in range(relation.arity):
                codes[at] = self._codes.codes(table[f"c{at}"].to_numpy()[mine])
            handed[name] = intern_rows(relation, codes)
        return handed[name]

    # ---------------------------------------------------------------- on the way out

    def _block(self, counts: RowCounts) -> Block:
        tables = []
        for name, rows, derived in counts.parts():
            relation = self._engine.store.relations[name]
            columns = [
                pa.array(self._codes.ids(codes)) for codes in relation.table[:, rows]
            ]
            zeros = np.zeros(rows.size, np.int64)
            columns = columns or [pa.array(zeros)]
            tags = pa.array(zeros + self._cluster.tag(name))
            numbers = pa.array(derived.astype(np.int64))
            names = [*key_columns(width_of(relation.arity)), "n"]
            tables.append(pa.table([tags, *columns, numbers], names=names))
        if not tables:
            nothing = pa.array([], pa.int64())
            tables = [pa.table([nothing] * 3, names=[*key_columns(1), "n"])]
        block = local_block(self._cluster, appended(tables))
        return block if block.size <= self._cluster.small else spread(block)


def patterns_read(queries: tuple[Query, ...], views: Views) -> Iterator[Pattern]:
    """Yield one pattern for each relation and each set that it is read from."""
    wanted: dict[tuple[str, int, Role, bool], None] = {}
    for query in queries:
        for pattern in (*query.positive, *query.negative):
            local = pattern.local and views.local is not None
            for role in _SETS[pattern.role]:
                key = (pattern.relation, len(pattern.operands), role)
                wanted[*key, local and role is Role.ALL] = None
    for relation, arity, role, local in wanted:
        columns = tuple(Column(at) for at in range(arity))
        yield Pattern(relation, columns, role, local)


class Translation:
    """Translates ids of this engine to those of the embedded one, and back."""

    def __init__(self, cluster: Cluster, dictionary: Dictionary) -> None:
        self._cluster = cluster
        self._dictionary = dictionary
        self._ids = np.empty(0, np.int64)
        """Known ids in order, and in parallel their ids in the embedded engine."""
        self._names = np.empty(0, np.uint32)
        self._back = np.empty(0, np.int64)
        """This engine's id for each string id of the embedded engine, if known."""

    def codes(self, ids: Ids) -> Codes:
        """Translate ids to those of the embedded engine."""
        codes = (ids + INTEGER_ZERO).astype(np.uint32)
        others = np.flatnonzero((ids < SMALLEST) | (ids > LARGEST))
        if others.size:
            distinct, inverse = np.unique(ids[others], return_inverse=True)
            codes[others] = self._look_up(distinct)[inverse]
        return codes

    def _look_up(self, distinct: Ids) -> Codes:
        places = np.searchsorted(self._ids, distinct)
        known = np.zeros(distinct.size, np.bool_)
        inside = places < self._ids.size
        known[inside] = self._ids[places[inside]] == distinct[inside]
        if not known.all():
            unknown = distinct[~known]
            terms = self._cluster.dictionary.decode(pa.array(unknown))
            self._add(unknown, self._dictionary.encode(terms))
            places = np.searchsorted(self._ids, distinct)
        return self._names[places]

    def ids(self, codes: Codes) -> Ids:
        """Translate ids of the embedded engine to those of this engine."""
        ids = codes.astype(np.int64) - INTEGER_ZERO
        texts = np.flatnonzero(codes < FIRST_INTEGER)
        if texts.size:
            wanted = codes[texts]
            self._make_room(int(wanted.max()))
            distinct = np.unique(wanted)
            unknown = distinct[self._back[distinct] == _NOTHING]
            if unknown.size:
                terms = self._dictionary.decode(unknown)
                new = self._cluster.dictionary.encode(terms).to_numpy()
                self._add(new, unknown)
            ids[texts] = self._back[wanted]
        return ids

    def _add(self, ids: Ids, codes: Codes) -> None:
        every = np.concatenate([self._ids, ids])
        order = np.argsort(every, kind="stable")
        self._ids = every[order]
        self._names = np.concatenate([self._names, codes])[order]
        texts = codes < FIRST_INTEGER
        if texts.any():
            self._make_room(int(codes[texts].max()))
            self._back[codes[texts]] = ids[texts]

    def _make_room(self, largest: int) -> None:
        if largest >= self._back.size:
            size = max(2 * self._back.size, largest + 1)
            room = np.full(size, _NOTHING, np.int64)
            room[: self._back.size] = self._back
            self._back = room
