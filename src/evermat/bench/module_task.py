"""What a measuring process of the suite `modules` does."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from evermat.api import KnowledgeBase
from evermat.bench.generators import updates
from evermat.bench.modules import SLOW_SAMPLES, SMALL_SAMPLES, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from evermat.bench.modules import Workload
    from evermat.bench.problem import Problem

_WARM_SCALE = 0.0005
_LARGE_SHARE = 0.25


def measure_modules(task: dict[str, Any], tell: Callable[..., None]) -> None:
    """Run one workload: materialise, read, small updates, a large deletion."""
    workload = next(each for each in WORKLOADS if each.name == task["workload"])
    _run(workload, _WARM_SCALE, task["modules"], lambda *_, **__: None)
    _run(workload, task["scale"], task["modules"], tell)


def _run(
    workload: Workload,
    scale: float,
    modules: bool,  # noqa: FBT001  as the task says
    tell: Callable[..., None],
) -> None:
    problem = workload.make(scale)
    base = KnowledgeBase(problem.rules + workload.reader, modules=modules)
    clock = _Clock(tell)
    with clock.step("materialise"):
        base.load(problem.facts)
    with clock.step("read"):
        facts = base.facts(workload.closure)
    tell("sizes", facts=base.stats()["facts"], closure=len(facts))
    del facts
    size = problem.facts[workload.source].num_rows
    for number in range(SMALL_SAMPLES if modules else SLOW_SAMPLES):
        rows = _sample(problem, workload, workload.small, number)
        with clock.step("small deletion"):
            change = base.delete(workload.source, rows[workload.source])
        with clock.step("small deletion, read"):
            change.removed(workload.closure)
        with clock.step("small insertion"):
            change = base.insert(workload.source, rows[workload.source])
        with clock.step("small insertion, read"):
            change.added(workload.closure)
    rows = _sample(problem, workload, round(_LARGE_SHARE * size), SMALL_SAMPLES)
    with clock.step("large deletion"):
        change = base.delete(workload.source, rows[workload.source])
    with clock.step("large deletion, read"):
        change.removed(workload.closure)


class _Clock:
    """Tells how long steps take."""

    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell = tell

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure a block."""
        gc.collect()
        start = perf_counter()
        yield
        self._tell("step", step=name, seconds=perf_counter() - start)


def _sample(
    problem: Problem, workload: Workload, count: int, seed: int
) -> Mapping[str, pa.Table]:
    size = problem.facts[workload.source].num_rows
    count = max(1, min(count, size // 2))
    return updates.sample(problem, count, seed=seed, only=workload.source)
