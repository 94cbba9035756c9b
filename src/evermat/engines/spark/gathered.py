"""All facts in one place: the embedded engine on the driver, as long as it has room.

A job on Spark takes a tenth of a second and more, however few facts there are, and
shuffling what one process can hold takes longer than looking it up there. A *scale*
weighs what an update needs: facts by number, and work by matches of rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.engines.embedded.engine import EmbeddedEngine

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
    from evermat.engines.embedded.settled import RowCounts, Settled

MATCHES_PER_FACT = 40
"""Matches of one update, for each fact there is room for, that one process may do.

It does some twenty million in a second: five million facts are ten seconds at most.
"""


class OutgrownError(Exception):
    """There is no room for an update. A signal between our own parts."""


class Scale:
    """Weighs an update, while somebody is ready to move the facts elsewhere.

    Attributes:
        limit: how many facts there is room for.
        is_watched: whether outgrowing the room is an error.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.is_watched = False
        self._matches = 0

    def start(self) -> None:
        """Watch an update that begins."""
        self.is_watched, self._matches = True, 0

    def weigh(self, facts: int) -> None:
        """Refuse more facts than there is room for."""
        if self.is_watched and facts > self.limit:
            raise OutgrownError

    def worked(self, matches: int) -> None:
        """Refuse more work than one process should do."""
        self._matches += matches
        if self.is_watched and self._matches > self.limit * MATCHES_PER_FACT:
            raise OutgrownError


class Weighing:
    """A monitor that has matches weighed, and passes them on."""

    def __init__(self, scale: Scale, monitor: Monitor | None) -> None:
        self._scale = scale
        self.monitor = monitor

    def working(self, label: str, matches: int) -> None:
        """Take note of matches."""
        if self.monitor is not None:
            self.monitor.working(label, matches)
        self._scale.worked(matches)

    def writing(self, label: str, facts: int) -> None:
        """Pass it on; the facts are weighed when they are there."""
        if self.monitor is not None:
            self.monitor.writing(label, facts)


class GatheredEngine(EmbeddedEngine):
    """The embedded engine, on a scale."""

    def __init__(self, scale: Scale, model: EmbeddedEngine | None = None) -> None:
        super().__init__(None if model is None else model.inline)
        self._scale = scale
        self.monitor = Weighing(scale, None)

    def fresh(self) -> GatheredEngine:
        """An empty engine for the same constants."""
        engine = GatheredEngine(self._scale, self)
        for name, arity in self.relations().items():
            engine.declare(name, arity)
        return engine

    def row_count(self) -> int:
        """How many facts there are, those of the update under way included."""
        return sum(each.count for each in self.store.relations.values())

    def load(self, facts: Iterable[tuple[str, pa.Table]]) -> None:
        """Make rows given and materialised, each with a nonrecursive count of one."""
        tables = list(facts)
        self._scale.weigh(sum(table.num_rows for _, table in tables))
        super().load(tables)

    def intern(self, relation: str, table: pa.Table) -> Settled:
        """The rows as facts of a relation, whether they hold or not."""
        self._scale.weigh(self.row_count() + table.num_rows)
        return super().intern(relation, table)

    def intern_all(self, tables: Mapping[str, pa.Table]) -> Settled:
        """The rows as facts of relations, whether they hold or not."""
        rows = sum(table.num_rows for table in tables.values())
        self._scale.weigh(self.row_count() + rows)
        return super().intern_all(tables)

    def derive(self, queries: QuerySet, views: Views) -> Settled:
        """The facts that the queries yield, each once."""
        found = super().derive(queries, views)
        self._scale.weigh(self.row_count())
        return found

    def derive_counts(self, queries: QuerySet, views: Views) -> RowCounts:
        """The facts that the queries yield, with the number of matches of each."""
        found = super().derive_counts(queries, views)
        self._scale.weigh(self.row_count())
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
        self._scale.weigh(self.row_count())
        return found
