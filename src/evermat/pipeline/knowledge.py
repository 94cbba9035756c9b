"""The knowledge base of a pipeline, on the engine that the configuration names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.api import KnowledgeBase
from evermat.engines.spark.engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from evermat.maintenance.watch import Progress
    from evermat.pipeline.config import Config


def open_knowledge_base(
    config: Config, spark: SparkSession | None, progress: Progress | None = None
) -> KnowledgeBase:
    """The knowledge base in the state of a pipeline, or an empty one."""
    engine = config.engine.name if spark is None else SparkEngine(spark)
    return KnowledgeBase(
        engine=engine, algorithm=config.engine.algorithm, progress=progress
    )


def version_of(kb: KnowledgeBase) -> int:
    """The version of the state; without one, the first."""
    return getattr(kb, "version", None) or 1
