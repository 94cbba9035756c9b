"""What Spark says about its own work: jobs, bytes shuffled, memory.

It is asked over the address at which it shows its pages; nothing is added to the
session that could slow it down.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

from evermat.engines.spark.session import LOCAL_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

MASTER = "local[2]"
MEMORY = "1g"
"""The memory of an executor, which is the driver of a local session."""

SETTINGS = {
    **LOCAL_SETTINGS,
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.ui.retainedJobs": "1000000",
    "spark.ui.retainedStages": "1000000",
    "spark.driver.memory": MEMORY,
    "spark.pyspark.python": sys.executable,
    "spark.sql.cteRecursionLevelLimit": "1000",
    "spark.sql.cteRecursionRowLimit": "-1",
}


def start_session() -> SparkSession:
    """A session on two cores with executors of a gigabyte."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  slow, and optional

    builder = SparkSession.builder.master(MASTER).appName("evermat bench")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@dataclass(frozen=True, slots=True)
class Work:
    """What Spark has done since it was started."""

    jobs: int
    shuffled: int
    spilled: int
    peak_heap: int


class Meter:
    """Measures steps on a session."""

    def __init__(self, session: SparkSession, tell: Callable[..., None]) -> None:
        context = session.sparkContext
        self._address = (
            f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"
        )
        self._tell = tell

    def work(self) -> Work:
        """What has been done so far."""
        stages = self._ask("stages")
        executors = self._ask("executors")
        peaks = [each.get("peakMemoryMetrics", {}) for each in executors]
        return Work(
            jobs=len(self._ask("jobs")),
            shuffled=sum(stage["shuffleWriteBytes"] for stage in stages),
            spilled=sum(stage["diskBytesSpilled"] for stage in stages),
            peak_heap=max((each.get("JVMHeapMemory", 0) for each in peaks), default=0),
        )

    def _ask(self, what: str) -> list[dict[str, Any]]:
        with urlopen(f"{self._address}/{what}", timeout=60) as answer:  # noqa: S310
            found: list[dict[str, Any]] = json.load(answer)
        return found

    @contextmanager
    def step(self, name: str, **fields: object) -> Iterator[dict[str, object]]:
        """Measure a block; what is put into the dictionary is told as well."""
        more: dict[str, object] = dict(fields)
        before, start = self.work(), perf_counter()
        yield more
        seconds, after = perf_counter() - start, self.work()
        self._tell(
            "step",
            step=name,
            seconds=seconds,
            jobs=after.jobs - before.jobs,
            shuffled=after.shuffled - before.shuffled,
            spilled=after.spilled - before.spilled,
            peak_heap=after.peak_heap,
            **more,
        )
