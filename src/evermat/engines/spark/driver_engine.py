"""All facts on the driver: the embedded engine, as long as it has room.

A job on Spark takes a tenth of a second and more, however few facts there are, and
shuffling what one process can hold takes longer than looking it up there. Whether the
facts fit is decided before they are loaded; a *scale* is for what nobody could foresee.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.engines.spark.limits import OutgrownError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from evermat.algebra import (
        Closure,
        Facts,
        Monitor,
        Pattern,
        QuerySet,
        SettledFacts,
        Views,
    )
    from evermat.engines.embedded.fact_sets import RowCounts, Settled


class Scale:
    """Weighs an update, while somebody is ready to do it elsewhere.

    Attributes:
        limit: how many facts there is room for.
        is_watched: whether outgrowing the room is an error.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.is_watched = False

    def weigh(self, facts: int) -> None:
        """Refuse more facts than there is room for."""
        if self.is_watched and facts > self.limit:
            raise OutgrownError


class Weighing:
    """A monitor that has facts weighed while rules are at work, and passes news on."""

    def __init__(self, engine: DriverEngine, monitor: Monitor | None) -> None:
        self._engine = engine
        self.monitor = monitor

    def working(self, label: str, matches: int) -> None:
        """Pass matches on; what they gave may be there already."""
        if self.monitor is not None:
            self.monitor.working(label, matches)
        self._engine.weigh()

    def writing(self, label: str, facts: int) -> None:
        """Weigh what a closure is about to write."""
        if self.monitor is not None:
            self.monitor.writing(label, facts)
        self._engine.weigh(facts)


def driver_engine(limit: int | None) -> DriverEngine:
    """An engine that raises `OutgrownError` beyond a limit, if there is one."""
    scale = Scale(limit or 0)
    scale.is_watched = limit is not None
    return DriverEngine(scale)


class DriverEngine(EmbeddedEngine):
    """The embedded engine, on a scale."""

    def __init__(self, scale: Scale, model: EmbeddedEngine | None = None) -> None:
        super().__init__(None if model is None else model.inline)
        self._scale = scale
        self.monitor = Weighing(self, None)

    def fresh(self) -> DriverEngine:
        """An empty engine for the same constants."""
        engine = DriverEngine(self._scale, self)
        for name, arity in self.relations().items():
            engine.declare(name, arity)
        return engine

    def row_count(self) -> int:
        """How many facts there are, those of the update under way included."""
        return sum(each.count for each in self.store.relations.values())

    def weigh(self, more: int = 0) -> None:
        """Weigh what there is, and so many facts more."""
        if self._scale.is_watched:
            self._scale.weigh(self.row_count() + more)

    def load(self, facts: Iterable[tuple[str, pa.Table]]) -> None:
        """Make rows given and materialised, each with a nonrecursive count of one."""
        tables = list(facts)
        self._scale.weigh(sum(table.num_rows for _, table in tables))
        super().load(tables)

    def intern(self, relation: str, table: pa.Table) -> Settled:
        """The rows as facts of a relation, whether they hold or not."""
        self.weigh(table.num_rows)
        return super().intern(relation, table)

    def intern_all(self, tables: Mapping[str, pa.Table]) -> Settled:
        """The rows as facts of relations, whether they hold or not."""
        rows = sum(table.num_rows for table in tables.values())
        self.weigh(rows)
        return super().intern_all(tables)

    def derive(self, queries: QuerySet, views: Views) -> Settled:
        """The facts that the queries yield, each once."""
        found = super().derive(queries, views)
        self.weigh()
        return found

    def derive_counts(self, queries: QuerySet, views: Views) -> RowCounts:
        """The facts that the queries yield, with the number of matches of each."""
        found = super().derive_counts(queries, views)
        self.weigh()
        return found

    def close(
        self,
        closure: Closure,
        facts: Facts,
        *,
        without: Facts | None = None,
        through: SettledFacts | None = None,
        only: Pattern | None = None,
    ) -> Settled:
        """The closure of facts, without the closure of other facts."""
        found = super().close(
            closure, facts, without=without, through=through, only=only
        )
        self.weigh()
        return found
