"""Measuring processes: each does one task, read from standard input as JSON.

Each result is a line of JSON on standard output, written immediately, so that a task
that is stopped at its time limit keeps its results. Before anything is timed, the same
program is run once on a tiny problem, which loads compiled kernels, so that a
measurement sees a warm system.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from evermat.bench.generators.problem import open_problem
from evermat.errors import EvermatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from evermat.bench.generators.problem import Problem
    from evermat.maintenance.update import Report


Task = dict[str, Any]
Record = dict[str, Any]


def tell(event: str, **fields: object) -> None:
    """Write one record."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


# ---------------------------------------------------------------------- generate


def generate(task: Task) -> None:
    """Generate a problem at several scales, and save each in its folder."""
    from evermat.bench.workloads import WORKLOADS  # noqa: PLC0415  loads NumPy

    workload = WORKLOADS[task["workload"]]
    for folder, scale in task["folders"].items():
        problem = workload.make(scale)
        problem.save(Path(folder))
        tell("generated", facts=problem.size)


# ------------------------------------------------------------------- materialise


def materialise(task: Task) -> None:
    """Load a problem and materialise it, several times."""
    from evermat.api import KnowledgeBase  # noqa: PLC0415  counted as set-up

    def run(folder: str) -> Record:
        problem = open_problem(Path(folder))
        gc.collect()
        start = perf_counter()
        # The time of rules is measured here; `modules` measures modules.
        base = KnowledgeBase(problem.rules, counters=task["counters"], modules=False)
        prepared = perf_counter()
        report = base.load(problem.facts).report
        loaded = perf_counter()
        seconds = seconds_on_rules(report)
        return {
            "explicit": problem.size,
            "facts": base.stats()["facts"],
            "instances": report.forward_instances,
            "rounds": report.rounds,
            "seconds": seconds,
            "rule_seconds": prepared - start,
            "load_seconds": loaded - prepared - seconds,
        }

    run(task["warm"])
    for _ in range(task["repeat"]):
        measured = run(task["folder"])
        tell("materialised", **measured, peak_megabytes=peak_megabytes())


def seconds_on_rules(report: Report) -> float:
    """Return the time spent on rules, without encoding and storing facts."""
    return sum(sum(stratum.seconds.values()) for stratum in report.strata)


def peer(task: Task) -> None:
    """Materialise a problem with a peer, once."""
    from evermat.bench import peers  # noqa: PLC0415  loads pyarrow

    run = {"clingo": peers.run_clingo, "duckdb": peers.run_duckdb}[task["peer"]]
    problem = open_problem(Path(task["folder"]))
    result = run(problem)
    tell(
        "materialised",
        explicit=problem.size,
        facts=result.facts,
        seconds=result.seconds,
        load_seconds=result.load_seconds,
        peak_megabytes=peak_megabytes(),
    )


# ---------------------------------------------------------------------- maintain


def maintain(task: Task) -> None:
    """Materialise a problem, then delete and reinsert facts by one algorithm.

    No further sample is started after the `seconds` of the task.
    """
    for _ in _maintained(task, task["warm"]):
        pass
    for record in _maintained(task, task["folder"]):
        tell(**record)
    tell("finished", peak_megabytes=peak_megabytes())


def _maintained(task: Task, folder: str) -> Iterator[Record]:
    from evermat.api import KnowledgeBase  # noqa: PLC0415  counted as set-up
    from evermat.maintenance.algorithms import INCREMENTAL  # noqa: PLC0415  likewise
    from evermat.maintenance.counting import Kept  # noqa: PLC0415  likewise

    problem = open_problem(Path(folder))
    # Drawing a sample scans all facts, and would evict everything from the caches
    # before an update.
    samples = list(_updates(task, problem))
    algorithm = INCREMENTAL.get(task["algorithm"])
    # Default settings; algorithms that read no counts are measured without them.
    counters = algorithm is None or algorithm.needs is not Kept.NONE
    base = KnowledgeBase(problem.rules, counters=counters)
    begin = perf_counter()
    base.load(problem.facts)
    seconds = perf_counter() - begin
    yield {"event": "loaded", "facts": base.stats()["facts"], "seconds": seconds}
    # Existing objects stay; the collections between updates need not scan them.
    gc.collect()
    gc.freeze()
    for number, rows in enumerate(samples):
        if number and perf_counter() - begin > task["seconds"]:
            return
        for step in ("delete", "insert"):
            gc.collect()
            start = perf_counter()
            try:
                change = base.update(
                    insert=rows if step == "insert" else None,
                    delete=rows if step == "delete" else None,
                    algorithm=task["algorithm"],
                )
            except EvermatError as error:
                yield {"event": "refused", "message": error.message}
                return
            seconds = perf_counter() - start
            update = {"event": "updated", "sample": number, "step": step}
            yield {**update, "seconds": seconds, **_costs(change.report)}


def _costs(report: Report) -> Record:
    return {
        "algorithm": report.algorithm,
        "reason": report.reason,
        "removed": report.removed,
        "added": report.added,
        "forward_instances": report.forward_instances,
        "backward_instances": report.backward_instances,
    }


def _updates(task: Task, problem: Problem) -> Iterator[Mapping[str, pa.Table]]:
    from evermat.bench.generators.problem import half, sample  # noqa: PLC0415

    plan = task["update"]
    if "rows" in plan:
        for _ in range(plan["samples"]):
            yield half(problem, plan["rows"])
        return
    count = plan["count"] if "count" in plan else round(plan["share"] * problem.size)
    for number in range(plan["samples"]):
        yield sample(problem, max(1, count), seed=number, only=plan.get("only"))


# ----------------------------------------------------------------------- modules


def modules(task: Task) -> None:
    """Run a workload with closures, with modules or without."""
    from evermat.bench.modules import measure_modules  # noqa: PLC0415  loads NumPy

    measure_modules(task, tell)


# ------------------------------------------------------------------------- papers


def paper(task: Task) -> None:
    """Measure one row of a table of a paper."""
    from evermat.bench.paper_task import measure_row  # noqa: PLC0415  loads NumPy

    measure_row(task, tell)


# ------------------------------------------------------------------------- spark


def spark(task: Task) -> None:
    """Run a part of the suite on Spark."""
    from evermat.bench.spark_task import measure_spark  # noqa: PLC0415  loads NumPy

    measure_spark(task, tell)


# ------------------------------------------------------------------------------ memory

# The peak memory of a process.


def peak_megabytes() -> float:
    """Return the largest resident size of this process, in units of 10⁶ bytes.

    Linux passes the figure of `getrusage` on from parent to child, so a small child of
    a large parent appears large; the kernel's own figure for the address space does not
    have this flaw, and is used where available.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    import resource  # noqa: PLC0415  not on every platform

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


# -------------------------------------------------------------------------- main


TASKS: dict[str, Callable[[Task], None]] = {
    "generate": generate,
    "materialise": materialise,
    "peer": peer,
    "maintain": maintain,
    "modules": modules,
    "spark": spark,
    "paper": paper,
}


def main() -> None:
    """Read a task and run it."""
    task = json.loads(sys.stdin.read())
    TASKS[task["task"]](task)


if __name__ == "__main__":
    main()
