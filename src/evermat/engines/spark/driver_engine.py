"""All facts on the driver: the embedded engine, as long as they fit.

A Spark job takes a tenth of a second or more, however few facts there are, and
shuffling data that fit in one process takes longer than looking them up there. Whether
the facts fit is estimated before they are loaded; a *scale* detects updates that exceed
the estimate.
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
    """Checks the size of an update that can be repeated on the cluster.

    Attributes:
        limit: the number of facts that fit.
        is_watched: whether exceeding the limit is an error.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.is_watched = False

    def weigh(self, facts: int) -> None:
        """Reject more facts than fit."""
        if self.is_watched and facts > self.limit:
            raise OutgrownError


class Weighing:
    """A monitor that checks the number of facts, and forwards its calls."""

    def __init__(self, engine: DriverEngine, monitor: Monitor | None) -> None:
        self._engine = engine
        self.monitor = monitor

    def working(self, label: str, matches: int) -> None:
        """Forward matches; their facts may exist already."""
        if self.monitor is not None:
            self.monitor.working(label, matches)
        self._engine.weigh()

    def writing(self, label: str, facts: int) -> None:
        """Check the size of a closure that is about to be written."""
        if self.monitor is not None:
            self.monitor.writing(label, facts)
        self._engine.weigh(facts)


def driver_engine(limit: int | None) -> DriverEngine:
    """Return an engine that raises `OutgrownError` beyond a limit, if there is one."""
    scale = Scale(limit or 0)
    scale.is_watched = limit is not None
    return DriverEngine(scale)


class DriverEngine(EmbeddedEngine):
    """The embedded engine, with a limit on its facts."""

    def __init__(self, scale: Scale, model: EmbeddedEngine | None = None) -> None:
        super().__init__(None if model is None else model.inline)
        self._scale = scale
        self.monitor = Weighing(self, None)

    def fresh(self) -> DriverEngine:
        """Return an empty engine for the same constants."""
        engine = DriverEngine(self._scale, self)
        for name, arity in self.relations().items():
            engine.declare(name, arity)
        return engine

    def row_count(self) -> int:
        """Return the number of facts, including those of the current update."""
        return sum(each.count for each in self.store.relations.values())

    def weigh(self, more: int = 0) -> None:
        """Check the number of facts, plus `more`."""
        if self._scale.is_watched:
            self._scale.weigh(self.row_count() + more)

    def load(self, facts: Iterable[tuple[str, pa.Table]]) -> None:
        """Make rows explicit and materialised, each with c_nr = 1."""
        tables = list(facts)
        self._scale.weigh(sum(table.num_rows for _, table in tables))
        super().load(tables)

    def intern(self, relation: str, table: pa.Table) -> Settled:
        """Return the rows as facts of a relation, whether they hold or not."""
        self.weigh(table.num_rows)
        return super().intern(relation, table)

    def intern_all(self, tables: Mapping[str, pa.Table]) -> Settled:
        """Return the rows as facts of relations, whether they hold or not."""
        rows = sum(table.num_rows for table in tables.values())
        self.weigh(rows)
        return super().intern_all(tables)

    def derive(self, queries: QuerySet, views: Views) -> Settled:
        """Return the facts that the queries derive, each once."""
        found = super().derive(queries, views)
        self.weigh()
        return found

    def derive_counts(self, queries: QuerySet, views: Views) -> RowCounts:
        """Return the facts that the queries derive, with the number of matches."""
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
        """Return the closure of facts, without the closure of other facts."""
        found = super().close(
            closure, facts, without=without, through=through, only=only
        )
        self.weigh()
        return found
