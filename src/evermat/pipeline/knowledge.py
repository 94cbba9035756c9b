"""The knowledge base of a pipeline, on the engine that the configuration names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.api import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from evermat.lake import Version
    from evermat.lake.table import StateTable
    from evermat.maintenance.limits import Progress
    from evermat.pipeline.config import Config


def open_knowledge_base(
    config: Config, spark: SparkSession | None, progress: Progress | None = None
) -> KnowledgeBase:
    """The knowledge base in the state of a pipeline, or an empty one.

    Without a [state], everything is in memory and begins anew each time.
    """
    engine = config.engine
    if config.state is not None and state_versions(config):
        return KnowledgeBase.open(
            config.state,
            engine=engine.name,
            algorithm=engine.algorithm,
            spark=spark,
            progress=progress,
            storage_options=_options(config),
        )
    return KnowledgeBase(
        engine=engine.name,
        algorithm=engine.algorithm,
        equality=engine.equality,
        spark=spark,
        progress=progress,
        state=config.state,
        storage_options=_options(config),
    )


def _options(config: Config) -> dict[str, str] | None:
    return dict(config.state_options) or None


def state_versions(config: Config) -> list[Version]:
    """The versions of the state, the oldest first; none if there is no state."""
    if config.state is None:
        return []
    history, table = _lake()
    options = _options(config)
    if table.open(config.state, options=options) is None:
        return []
    return history(config.state, storage_options=options)


def _lake() -> tuple[Callable[..., list[Version]], type[StateTable]]:
    """What looks at states; it needs a library that not everybody has."""
    from evermat.lake import history  # noqa: PLC0415
    from evermat.lake.table import StateTable  # noqa: PLC0415

    return history, StateTable


def version_of(kb: KnowledgeBase) -> int:
    """The version of the state; without one, every run makes the first."""
    return 1 if kb.version is None else kb.version
