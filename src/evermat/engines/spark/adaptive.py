"""The engine named `spark`: facts on the driver if they fit, otherwise distributed.

The size of sources and states is known before they are loaded, and facts that do not
fit are distributed from the first one on. If an update outgrows the driver
nevertheless, it is undone, the facts are moved to the cluster (`engine`), and the
update is repeated there. They stay there, because moving back and forth would cost more
than it gains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from evermat.engines.embedded.store import Store, replaced
from evermat.engines.spark.blocks import Cluster
from evermat.engines.spark.driver_engine import DriverEngine, Scale, Weighing
from evermat.engines.spark.engine import SparkEngine
from evermat.engines.spark.limits import OutgrownError, limits_of
from evermat.engines.spark.session import find_session
from evermat.engines.spark.staging import stage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from evermat.algebra import Engine, Facts, Journal, Monitor, Snapshot
    from evermat.algebra.equality import Representatives
    from evermat.engines.spark.session import SessionToCome
    from evermat.engines.spark.staging import StagedRows

    Found = TypeVar("Found")


class AdaptiveEngine:
    """An engine that keeps its facts on the driver, or on the cluster if they are many.

    All methods that are not defined here are those of the engine that has the facts:
    see `evermat.algebra.Engine`.

    Args:
        session: a Spark session, or one to come; by default the active one, or a new
            local one.
        driver_facts: facts up to which all are on the driver, by default as many as
            there is memory for; 0 to distribute them always.
        small: facts up to which a set of distributed facts is on the driver.

    Attributes:
        cluster: the cluster of distributed facts.
    """

    name = "spark"
    takes_frames = True

    def __init__(
        self,
        session: SparkSession | SessionToCome | None = None,
        *,
        driver_facts: int | None = None,
        small: int | None = None,
    ) -> None:
        session = find_session() if session is None else session
        limits = limits_of(session, driver_facts=driver_facts, small=small)
        self.cluster = Cluster(session, limits)
        self._scale = Scale(limits.driver_facts)
        self._facts: SparkEngine | DriverEngine
        if limits.driver_facts:
            self._facts = DriverEngine(self._scale)
        else:
            self._facts = SparkEngine.on(self.cluster)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  all there may be
        return getattr(self._facts, name)

    @property
    def is_on_driver(self) -> bool:
        """Whether all facts are on the driver."""
        return isinstance(self._facts, DriverEngine)

    @property
    def place(self) -> str:
        """The place of the facts, in words."""
        if not isinstance(self._facts, DriverEngine):
            return self._facts.place
        known, limit = self._facts.row_count(), self._scale.limit
        return f"driver: {known:,} facts, with room for {limit:,}"

    # ---------------------------------------------------------------------- moving

    def with_room(self, work: Callable[[], Found]) -> Found:
        """Run an update; if it outgrows the driver, move the facts and repeat it.

        An update that fails must leave the engine unchanged.
        """
        if not self.is_on_driver or self._scale.is_watched:
            return work()
        self._scale.is_watched = True
        try:
            return work()
        except OutgrownError:
            self.spread()
        finally:
            self._scale.is_watched = False
        return work()

    def make_room(self, facts: int) -> None:
        """Distribute the facts if `facts` more do not fit; not in a transaction."""
        here = self._facts
        if (
            isinstance(here, DriverEngine)
            and here.row_count() + facts > self._scale.limit
        ):
            self.spread()

    def spread(self) -> None:
        """Move the facts to the cluster; not in a transaction."""
        here = self._facts
        if not isinstance(here, DriverEngine):
            return
        spread = SparkEngine.on(self.cluster)
        for relation, arity in here.relations().items():
            spread.declare(relation, arity)
        dictionary = here.inline.dictionary
        facts = replaced(Store(dictionary), here.store, dictionary)
        spread.reinstate((name, facts.read(name)) for name in facts.relations())
        spread.matches, spread.journal = here.matches, here.journal
        spread.monitor = self.monitor
        self._facts = spread

    def stage(self, parts: Sequence[object], name: str) -> pa.Table | StagedRows:
        """Return rows of a relation, distributing the facts if they do not fit.

        Not in a transaction.
        """
        staged = stage(self.cluster, parts, name)
        self.make_room(staged.num_rows)
        return staged.table() if self.is_on_driver else staged

    # -------------------------------------------------------- what both have their own

    @property
    def monitor(self) -> Monitor | None:
        """The receiver of the matches of rules."""
        monitor = self._facts.monitor
        return monitor.monitor if isinstance(monitor, Weighing) else monitor

    @monitor.setter
    def monitor(self, monitor: Monitor | None) -> None:
        facts = self._facts
        if isinstance(facts, DriverEngine):
            monitor = Weighing(facts, monitor)
        facts.monitor = monitor

    @property
    def is_torn(self) -> bool:
        """Whether facts may be partially changed."""
        return self._facts.is_torn

    @is_torn.setter
    def is_torn(self, is_torn: bool) -> None:
        self._facts.is_torn = is_torn

    @property
    def journal(self) -> Journal | None:
        """The receiver of changes before they are made."""
        return self._facts.journal

    @journal.setter
    def journal(self, journal: Journal | None) -> None:
        self._facts.journal = journal

    def fresh(self) -> Engine:
        """Return an empty engine for the same constants, to materialise into."""
        engine = type(self).__new__(type(self))
        engine.cluster, engine._scale = self.cluster, self._scale  # noqa: SLF001
        engine._facts = self._facts.fresh()  # noqa: SLF001  it is our own
        return cast("Engine", engine)

    def copy_explicit(self, target: Engine, *, without: Facts, also: Facts) -> None:
        """Load explicit facts, without some and with others, into a fresh engine."""
        self._facts.copy_explicit(_facts_of(target), without=without, also=also)

    def adopt(self, other: Engine) -> tuple[Snapshot, Snapshot]:
        """Take over the contents of a fresh engine; return removed and added facts."""
        return self._facts.adopt(_facts_of(other))

    def representatives(self) -> Representatives:
        """Return cliques of equal constants; they require distributed facts."""
        self.spread()
        return cast("SparkEngine", self._facts).representatives()


def _facts_of(engine: Engine) -> Engine:
    return cast("Engine", cast("AdaptiveEngine", engine)._facts)  # noqa: SLF001
