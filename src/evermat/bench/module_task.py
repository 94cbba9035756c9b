"""What a measuring process of the suite `modules` does."""

from __future__ import annotations

import gc
from time import process_time
from typing import TYPE_CHECKING, Any

from evermat.api import KnowledgeBase
from evermat.bench.generators import updates
from evermat.bench.modules import SLOW_SAMPLES, SMALL_SAMPLES, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
    gc.collect()
    start = process_time()
    base.load(problem.facts)
    tell("step", step="materialise", seconds=process_time() - start)
    start = process_time()
    facts = base.facts(workload.closure)
    seconds = process_time() - start
    sizes = {"facts": base.stats()["facts"], "closure": len(facts)}
    tell("step", step="read", seconds=seconds, sizes=sizes)
    del facts
    for number in range(SMALL_SAMPLES if modules else SLOW_SAMPLES):
        rows = _sample(problem, workload, workload.small, number)
        for step, change in (("deletion", base.delete), ("insertion", base.insert)):
            gc.collect()
            start = process_time()
            change(workload.source, rows[workload.source])
            tell("step", step=f"small {step}", seconds=process_time() - start)
    size = problem.facts[workload.source].num_rows
    rows = _sample(problem, workload, round(_LARGE_SHARE * size), SMALL_SAMPLES)
    start = process_time()
    base.delete(workload.source, rows[workload.source])
    tell("step", step="large deletion", seconds=process_time() - start)


def _sample(
    problem: Problem, workload: Workload, count: int, seed: int
) -> Mapping[str, pa.Table]:
    size = problem.facts[workload.source].num_rows
    count = max(1, min(count, size // 2))
    return updates.sample(problem, count, seed=seed, only=workload.source)
