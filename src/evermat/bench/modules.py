"""The suite `modules`: closures as modules, and the same rules without them.

Each workload is run with modules and without, in separate processes, on the same data
and the same updates: at full size, or where that would take hours without modules, at a
smaller one as well. Materialised facts and changes are also read, because lazy closures
must return their facts, too. Updates are compared with two materialisations, one before
anything is read and one including all reads.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import sqrt
from statistics import fmean, median
from time import process_time
from typing import TYPE_CHECKING, Any

from evermat.api import KnowledgeBase
from evermat.bench.generators.closures import (
    categories,
    cliques,
    museum_places,
    organisations,
    short_paths,
)
from evermat.bench.generators.graphs import nonlinear_closure
from evermat.bench.generators.ontologies import terminology
from evermat.bench.generators.problem import sample
from evermat.bench.processes import Options, Status, measure, say
from evermat.bench.report import Table, count_text, ratio_text, seconds_text, verdict
from evermat.bench.tasks import peak_megabytes
from evermat.maintenance.limits import resident_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from evermat.bench.generators.problem import Problem
    from evermat.bench.processes import Measured


SMALL_SAMPLES = 10
SLOW_SAMPLES = 2
"""Number of small updates without modules, which are slow and similar."""
UPDATES = ("small deletion", "small insertion", "large deletion")
STEPS = (
    "materialise",
    "read",
    *(step for update in UPDATES for step in (update, f"{update}, read")),
)
NOTE = (
    "Small updates are means of several samples, medians where they are of one fact. "
    "“Read” is what it takes to read the facts of the closure, or those of them that "
    "changed."
)


@dataclass(frozen=True, slots=True)
class Workload:
    """A problem with closures.

    Attributes:
        name: its name on the command line.
        title: its title in tables.
        make: the generator, from a scale.
        closure: the predicate that is read.
        source: the predicate that facts are deleted from.
        small: the number of facts in a small update.
        goals: for each step, seconds, or multiples of the materialisation (`"0.5×"`).
        gains: for each step, the required speed-up over running without modules.
        without: the scale at which the rules are also run without modules: 1 if they
            finish in minutes, 0 for not at all.
        reader: a rule that reads the closure, so that it is not lazy.
        bytes: the largest peak memory per fact of materialising.
        algorithms: those by which one fact is also deleted.
    """

    name: str
    title: str
    make: Callable[[float], Problem]
    closure: str
    source: str
    small: int = 1000
    goals: dict[str, float | str] = field(default_factory=dict)
    gains: dict[str, float] = field(default_factory=dict)
    without: float = 1.0
    reader: str = ""
    bytes: float | None = None
    algorithms: tuple[str, ...] = ()


def _dag(scale: float) -> Problem:
    side = sqrt(scale)
    return nonlinear_closure(
        max(3, round(10_000 * side)), max(2, round(100_000 * side))
    )


def _cliques(scale: float) -> Problem:
    nodes = max(3, round(700 * sqrt(scale)))
    return cliques(20, nodes, 2 * nodes)


def _categories(concepts: int, scale: float) -> Problem:
    return categories(max(20, round(concepts * scale)))


def _places(scale: float) -> Problem:
    return museum_places(
        max(40, round(8_000 * scale)), max(50, round(20_000 * scale)), 1_300
    )


def _organisations(scale: float) -> Problem:
    return organisations(max(100, round(20_000 * scale)))


def _classification(scale: float) -> Problem:
    return terminology(max(100, round(150_000 * scale)))


def _short_paths(scale: float) -> Problem:
    return short_paths(max(10, round(333_334 * scale)))


TIMES_MATERIALISING = {
    "small deletion": "0.5×",
    "small insertion": "0.3×",
    "large deletion": "1.0×",
}

WORKLOADS = (
    Workload(
        name="dag-r",
        title="DAG-R: 10k nodes, 100k edges",
        make=_dag,
        closure="reach",
        source="edge",
        goals={
            "materialise and read": 1.5,
            **TIMES_MATERIALISING,
        },
        without=0.02,
    ),
    Workload(
        name="dag-r-written",
        title="DAG-R, read by a rule",
        make=_dag,
        closure="reach",
        source="edge",
        goals={"materialise": 1.5, **TIMES_MATERIALISING},
        without=0,
        reader="seen(?y) :- reach(0, ?y) .",
    ),
    Workload(
        name="cliques",
        title="20 cliques of 700",
        make=_cliques,
        closure="same",
        source="same",
        small=100,
        goals={"materialise": 0.1, "read": 1.0, "small deletion": 0.1},
        without=0.05,
    ),
    Workload(
        name="categories",
        title="SKOS look-alike, 200k concepts",
        make=partial(_categories, 200_000),
        closure="broader_transitive",
        source="broader",
        gains={"materialise": 20},
    ),
    Workload(
        name="places",
        title="Claros look-alike: cliques and 1,300 rules",
        make=_places,
        closure="related",
        source="related",
        small=20,
        gains={"materialise": 5, "small deletion": 50},
    ),
    Workload(
        name="organisations",
        title="LUBM-LE look-alike: 1 TC, 2 STC",
        make=_organisations,
        closure="friend",
        source="same_town",
        small=20,
        gains={"materialise": 5, "small deletion": 50},
    ),
    Workload(
        name="short-paths",
        title="333 k paths of 4 nodes (1 M edges), one edge",
        make=_short_paths,
        closure="reach",
        source="edge",
        small=1,
        goals={"small deletion": 0.002, "small insertion": 0.002},
        without=0.1,
        reader="seen(?x) :- reach(?x, 3) .",
    ),
    Workload(
        name="clique-edges",
        title="20 cliques of 700, one edge",
        make=_cliques,
        closure="same",
        source="same",
        small=1,
        goals={"small deletion": 0.002, "small insertion": 0.002},
        without=0,
        reader="seen(?x) :- same(?x, 3) .",
    ),
    Workload(
        name="dag-edges",
        title="DAG-R: 10k nodes, 100k edges, one edge",
        make=_dag,
        closure="reach",
        source="edge",
        small=1,
        without=0.02,
        reader="seen(?y) :- reach(0, ?y) .",
    ),
    Workload(
        name="classification",
        title="terminology, classified by the rules of EL",
        make=_classification,
        closure="sub",
        source="stated",
        small=1,
        goals={"small deletion": 0.005, "small insertion": 0.005},
        gains={"materialise": 0.9},
        bytes=90,
        algorithms=("dred-c", "bf"),
    ),
)

NAMES = tuple(workload.name for workload in WORKLOADS)


@dataclass(frozen=True, slots=True)
class Row:
    """One workload, with modules or without, at one scale."""

    workload: str
    modules: bool
    scale: float
    status: str
    facts: int | None = None
    closure: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    bytes: float | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """All rows of a run."""

    rows: list[Row]


def run(options: Options) -> Figures:
    """Measure all selected workloads."""
    rows = []
    for workload in WORKLOADS:
        if not options.wants(workload.name):
            continue
        rows.append(_measure(workload, options.scale, options, modules=True))
        scale = options.scale * workload.without
        if workload.without not in {0, 1}:
            rows.append(_measure(workload, scale, options, modules=True))
        if workload.without:
            rows.append(_measure(workload, scale, options, modules=False))
    return Figures(rows)


def _measure(
    workload: Workload, scale: float, options: Options, *, modules: bool
) -> Row:
    side = "with modules" if modules else "without modules"
    say(f"{workload.name} at scale {scale:g}, {side} …")
    task: dict[str, Any] = {
        "task": "modules",
        "workload": workload.name,
        "scale": scale,
        "modules": modules,
    }
    measured = measure(task, time_limit=options.time_limit)
    return _row(workload, scale, measured, modules=modules)


def _row(workload: Workload, scale: float, measured: Measured, *, modules: bool) -> Row:
    times: dict[str, list[float]] = {}
    for record in measured.of("step"):
        times.setdefault(record["step"], []).append(record["seconds"])
    sizes: dict[str, Any] = next(iter(measured.of("sizes")), {})
    # The first update of a single fact builds the graph that all others use.
    average = median if workload.small == 1 else fmean
    seconds = {step: average(values) for step, values in times.items()}
    status = measured.status.value
    if measured.status is Status.FAILED:
        status = f"failed: {measured.message}"
    return Row(
        workload.name,
        modules,
        scale,
        status,
        sizes.get("facts"),
        sizes.get("closure"),
        seconds,
        sizes.get("bytes"),
    )


# --------------------------------------------------------------------------- tables


def tables(figures: Figures, options: Options) -> list[Table]:
    """Return all times, and the goals."""
    return [_times(figures, options), _goals(figures)]


def _times(figures: Figures, options: Options) -> Table:
    rows = []
    for row in figures.rows:
        title = _workload(row.workload).title
        ended = row.status == Status.DONE.value
        limit = f"> {options.time_limit:.0f} s" if "limit" in row.status else row.status
        cells = [
            seconds_text(row.seconds[step]) if step in row.seconds else limit
            for step in STEPS
        ]
        rows.append(
            (
                f"{title}, scale {row.scale:g}",
                "on" if row.modules else "off",
                count_text(row.closure),
                "–" if row.bytes is None else f"{row.bytes:.0f} B",
                *(cells if not ended else [c if c != "done" else "–" for c in cells]),
            )
        )
    return Table(
        title="Closures as modules",
        header=("workload", "modules", "closure", "peak a fact", *STEPS),
        rows=tuple(rows),
        notes=(NOTE, *_by_algorithm(figures)),
    )


def _by_algorithm(figures: Figures) -> Iterator[str]:
    """Return the cost of one fact by explicitly chosen algorithms."""
    for row in figures.rows:
        times = [
            f"{seconds_text(seconds)} by `{step.partition(', by ')[2]}`"
            for step, seconds in row.seconds.items()
            if ", by " in step
        ]
        if times:
            side = "on" if row.modules else "off"
            title = _workload(row.workload).title
            yield f"{title}, modules {side}: one fact is deleted in {', '.join(times)}."


def _goals(figures: Figures) -> Table:
    rows: list[tuple[str, ...]] = []
    for workload in WORKLOADS:
        mine = [row for row in figures.rows if row.workload == workload.name]
        for row in mine[:1]:
            for step, goal in workload.goals.items():
                rows += _goal(workload, row, step, goal)
            if workload.bytes is not None:
                rows.append(_memory_goal(workload.title, row.bytes, workload.bytes))
        slow = [row for row in mine if not row.modules]
        for off in slow:
            on = next(row for row in mine if row.modules and row.scale == off.scale)
            rows += [
                _gain(workload, on, off, step, wanted)
                for step, wanted in workload.gains.items()
            ]
    return Table(
        title="Closures as modules: goals",
        header=("workload", "step", "reach", "measured", "reached"),
        rows=tuple(rows),
    )


def _goal(
    workload: Workload, row: Row, step: str, goal: float | str
) -> list[tuple[str, ...]]:
    if not isinstance(goal, str):
        found = _sum(row, step.split(" and "))
        shown = seconds_text(found)
        reached = verdict(found, goal)
        return [(workload.title, step, f"≤ {goal:g} s", shown, reached)]
    limit = float(goal.removesuffix("×"))
    lines: list[tuple[str, ...]] = []
    for name, parts, unit_parts in (
        (step, [step], ["materialise"]),
        (f"{step} and reading", [step, f"{step}, read"], ["materialise", "read"]),
    ):
        found, unit = _sum(row, parts), _sum(row, unit_parts)
        ratio = found / unit if found is not None and unit else None
        reach = f"≤ {goal} {' and '.join(unit_parts)}"
        shown = ratio_text(found, unit)
        lines.append((workload.title, name, reach, shown, verdict(ratio, limit)))
    return lines


def _memory_goal(title: str, found: float | None, goal: float) -> tuple[str, ...]:
    shown = "–" if found is None else f"{found:.0f} bytes"
    reach = f"≤ {goal:g} bytes"
    return title, "peak memory a fact", reach, shown, verdict(found, goal)


def _sum(row: Row, steps: list[str]) -> float | None:
    """Return the seconds of several steps, None if one was not measured."""
    known = [row.seconds[step] for step in steps if step in row.seconds]
    return sum(known) if len(known) == len(steps) else None


def _gain(
    workload: Workload, on: Row, off: Row, step: str, wanted: float
) -> tuple[str, ...]:
    fast, slow = on.seconds.get(step), off.seconds.get(step)
    gain = slow / fast if fast and slow else None
    reached = "–" if gain is None else "yes" if gain >= wanted else "no"
    if slow is None and fast:
        reached = "yes, without modules it did not end"
    return (
        f"{workload.title}, scale {on.scale:g}",
        step,
        f"≥ {wanted:g}× over modules off",
        ratio_text(slow, fast),
        reached,
    )


def _workload(name: str) -> Workload:
    return next(workload for workload in WORKLOADS if workload.name == name)


# ------------------------------------------------------------------------- module task

# The task of a measuring process of the suite `modules`.


_WARM_SCALE = 0.0005
_NAMED_SAMPLES = 5
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
    is_single = workload.small == 1
    before = resident_memory()
    with clock.step("materialise"):
        base.load(problem.facts)
    peak = peak_megabytes() * 1e6 - before
    with clock.step("read"):
        facts = base.facts(workload.closure)
    known = base.stats()["facts"]
    tell("sizes", facts=known, closure=len(facts), bytes=peak / max(known, 1))
    del facts
    size = problem.facts[workload.source].num_rows
    for number in range(SMALL_SAMPLES if modules or is_single else SLOW_SAMPLES):
        rows = _sample(problem, workload, workload.small, number)
        # To collect garbage takes longer than a fact, and empties the caches for it.
        clock.collects = not is_single
        with clock.step("small deletion"):
            change = base.delete(workload.source, rows[workload.source])
        with clock.step("small deletion, read"):
            change.removed(workload.closure)
        with clock.step("small insertion"):
            change = base.insert(workload.source, rows[workload.source])
        with clock.step("small insertion, read"):
            change.added(workload.closure)
    clock.collects = True
    for algorithm in workload.algorithms:
        for number in range(_NAMED_SAMPLES):
            rows = _sample(problem, workload, workload.small, number)
            with clock.step(f"small deletion, by {algorithm}"):
                base.update(delete=rows, algorithm=algorithm)
            base.update(insert=rows, algorithm=algorithm)
    rows = _sample(problem, workload, round(_LARGE_SHARE * size), SMALL_SAMPLES)
    with clock.step("large deletion"):
        change = base.delete(workload.source, rows[workload.source])
    with clock.step("large deletion, read"):
        change.removed(workload.closure)


class _Clock:
    """Measures steps.

    Attributes:
        collects: whether garbage is collected before each step.
    """

    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell = tell
        self.collects = True

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure a block."""
        if self.collects:
            gc.collect()
        start = process_time()
        yield
        self._tell("step", step=name, seconds=process_time() - start)


def _sample(
    problem: Problem, workload: Workload, count: int, seed: int
) -> Mapping[str, pa.Table]:
    size = problem.facts[workload.source].num_rows
    count = max(1, min(count, size // 2))
    return sample(problem, count, seed=seed, only=workload.source)
