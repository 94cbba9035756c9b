"""The suite `maintain`: every algorithm on every update, in units of `remat`.

Each algorithm runs in a process of its own: it materialises, then deletes a sample of
facts and inserts it again, several times. All algorithms get the same samples, and must
report the same numbers of removed and added facts.

Processes differ by more than the compared algorithms, in the placement of memory and in
other work on the machine. So algorithms that are close to the best one, and the unit of
comparison, are measured in several processes in turn, and the median counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from evermat.bench.processes import (
    Measured,
    Options,
    Status,
    ending,
    measure,
    prepared,
    say,
)
from evermat.bench.report import Table, count_text, ratio_text, seconds_text, verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evermat.bench.processes import Record


STEPS = ("delete", "insert")

LARGE = ("universities", "sspe", "dag-nonlinear", "points-to")
"""Workloads of which large parts are deleted."""

SHARES = (2, 25, 50)
"""The sizes of the parts, in percent."""

REMAT = "remat"
AUTO = "auto"
ALGORITHMS = (REMAT, "counting", "fp", "dred", "dred-c", "bf", "bf-c", AUTO)

AUTO_LIMIT = 1.25
REMAT_SAMPLES = 3
"""Rematerialising costs the same each time; more samples would only take longer."""

NEAR = 1.5
"""Algorithms that took at most this many times the best time are measured again."""

COUNTED = (*LARGE, "dag-linear")
"""The workloads that are materialised with counters and without."""


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of update on a workload.

    Attributes:
        name: its name on the command line.
        title: its title in tables.
        workload: a name of `evermat.bench.workloads`.
        scale: the scale of the workload.
        update: `count` or `share` of the facts to sample, the number of `samples`, and
            optionally the `only` predicate to take them from; or `rows`, the predicate
            whose second half is deleted, `samples` times.
        is_typical: whether the median of the samples counts instead of the mean.
    """

    name: str
    title: str
    workload: str
    update: Mapping[str, Any]
    scale: float = 1.0
    is_typical: bool = False


def _large(workload: str, percent: int) -> Case:
    return Case(
        name=f"{workload}-{percent}pc",
        title=f"{workload}: {percent} % of the facts",
        workload=workload,
        update={"share": percent / 100, "samples": 3},
        is_typical=True,
    )


CASES = (
    Case(
        name="example-1-20k",
        title="Example 1, n = 20k: all R(aᵢ, cᵢ)",
        workload="example-1",
        scale=0.2,
        update={"rows": "r", "samples": 5},
        is_typical=True,
    ),
    Case(
        name="example-1-25k",
        title="Example 1, n = 25k: all R(aᵢ, cᵢ)",
        workload="example-1",
        scale=0.25,
        update={"rows": "r", "samples": 5},
        is_typical=True,
    ),
    Case(
        name="example-1-100k",
        title="Example 1, n = 100k: all R(aᵢ, cᵢ)",
        workload="example-1",
        update={"rows": "r", "samples": 5},
        is_typical=True,
    ),
    Case(
        name="sspe",
        title="SSPE: 1000 edges",
        workload="sspe",
        update={"count": 1000, "samples": 10},
    ),
    Case(
        name="universities-50",
        title="50 universities: 1000 facts",
        workload="universities-50",
        update={"count": 1000, "samples": 10},
    ),
    Case(
        name="one-of-1m",
        title="5 universities (1 M facts): one fact",
        workload="universities",
        scale=0.5,
        update={"count": 1, "samples": 100},
        is_typical=True,
    ),
    Case(
        name="one-of-10m",
        title="50 universities (10 M facts): one fact",
        workload="universities-50",
        update={"count": 1, "samples": 100},
        is_typical=True,
    ),
    *(_large(workload, share) for workload in LARGE for share in SHARES),
)


COUNTERS = "counters"
"""The name of the measurement of the cost of counters."""

NAMES = (*(case.name for case in CASES), COUNTERS)
"""All names that are accepted on the command line."""


@dataclass(frozen=True, slots=True)
class Row:
    """One algorithm on one case, deleting and inserting."""

    case: str
    algorithm: str
    status: str
    ending: str
    facts: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    chosen: dict[str, str] = field(default_factory=dict)
    removed: float | None = None
    peak_megabytes: float | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """All rows of a run, and disagreements between algorithms.

    Attributes:
        counters: the cost of counters for each workload: the time to materialise with
            counters in units of the time without.
    """

    rows: tuple[Row, ...]
    disagreements: tuple[str, ...]
    counters: dict[str, float] = field(default_factory=dict)

    def of(self, case: str) -> dict[str, Row]:
        """Return the rows of a case by algorithm."""
        return {row.algorithm: row for row in self.rows if row.case == case}


# ---------------------------------------------------------------------- measuring


def run(options: Options) -> Results:
    """Measure the whole suite."""
    rows: list[Row] = []
    disagreements: list[str] = []
    for case in CASES:
        if options.wants(case.name):
            measured = _measure_case(case, options)
            rows += [_row(case, *pair, options) for pair in measured.items()]
            disagreements += find_disagreements(case, measured)
    counters = _measure_counters(options) if options.wants(COUNTERS) else {}
    return Results(tuple(rows), tuple(disagreements), counters)


def _measure_counters(options: Options) -> dict[str, float]:
    """Measure the cost of counting derivations at materialisation, by workload."""
    found = {}
    for workload in COUNTED:
        times: dict[bool, list[float]] = {True: [], False: []}
        with prepared(workload, options.scale) as folders:
            for _ in range(options.repeat):
                for counters in times:
                    times[counters] += _seconds(folders, options, counters=counters)
        if all(times.values()):
            found[workload] = median(times[True]) / median(times[False])
            say(f"{workload}: counters cost {found[workload]:.2f}×")
    return found


def _seconds(
    folders: Mapping[str, str], options: Options, *, counters: bool
) -> list[float]:
    task = {"task": "materialise", "counters": counters, "repeat": options.repeat}
    measured = measure({**task, **folders}, time_limit=options.time_limit)
    return [record["seconds"] for record in measured.of("materialised")]


def _measure_case(case: Case, options: Options) -> dict[str, list[Measured]]:
    """Measure each algorithm, in one process or more."""
    measured: dict[str, list[Measured]] = {name: [] for name in ALGORITHMS}
    with prepared(case.workload, case.scale * options.scale) as folders:
        for turn in range(options.repeat):
            chosen = _near_the_best(case, measured) if turn else ALGORITHMS
            for algorithm in chosen:
                found = _measure(case, algorithm, folders, options)
                _say(case, algorithm, found, options)
                measured[algorithm].append(found)
    return measured


def _measure(
    case: Case, algorithm: str, folders: Mapping[str, str], options: Options
) -> Measured:
    update = dict(case.update)
    if algorithm == REMAT:
        update["samples"] = min(update["samples"], REMAT_SAMPLES)
    task = {
        "task": "maintain",
        "algorithm": algorithm,
        "update": update,
        "seconds": options.time_limit / 2,
    }
    return measure({**task, **folders}, time_limit=options.time_limit)


def _near_the_best(case: Case, measured: Mapping[str, list[Measured]]) -> list[str]:
    """Return the algorithms that may be the best in some step, and the unit."""
    near = {REMAT, AUTO}
    for step in STEPS:
        times = {
            name: time
            for name, found in measured.items()
            if (time := _time(case, found, step)) is not None
        }
        limit = NEAR * min(times.values(), default=0.0)
        near |= {name for name, time in times.items() if time <= limit}
    done = {name for name in near if measured[name][0].status is Status.DONE}
    return [name for name in ALGORITHMS if name in done]


def _time(case: Case, measured: Iterable[Measured], step: str) -> float | None:
    """Return the seconds for a step: the median over processes."""
    times = [_typical(case, each.of("updated"), step) for each in measured]
    known = [time for time in times if time is not None]
    return median(known) if known else None


def _say(case: Case, algorithm: str, measured: Measured, options: Options) -> None:
    times = [
        f"{step} {seconds_text(_typical(case, measured.of('updated'), step))}"
        for step in STEPS
    ]
    is_done = measured.status is Status.DONE
    result = ", ".join(times) if is_done else ending(measured, options.time_limit)
    say(f"{case.name}, {algorithm}: {result}")
    if measured.status is Status.FAILED:
        say(f"  {measured.message}")


def _typical(case: Case, records: list[Record], step: str) -> float | None:
    times = [record["seconds"] for record in records if record["step"] == step]
    if not times:
        return None
    return median(times) if case.is_typical else fmean(times)


def _row(
    case: Case, algorithm: str, processes: list[Measured], options: Options
) -> Row:
    measured = _worst(processes)
    updates = measured.of("updated")
    seconds = {step: _time(case, processes, step) for step in STEPS}
    loaded = measured.of("loaded")
    removed = [record["removed"] for record in updates if record["step"] == "delete"]
    finished = measured.of("finished")
    return Row(
        case=case.name,
        algorithm=algorithm,
        status=str(measured.status),
        ending=ending(measured, options.time_limit),
        facts=loaded[0]["facts"] if loaded else None,
        seconds={step: time for step, time in seconds.items() if time is not None},
        chosen={record["step"]: record["algorithm"] for record in updates},
        removed=fmean(removed) if removed else None,
        peak_megabytes=finished[0]["peak_megabytes"] if finished else None,
        message=measured.message,
    )


def _worst(processes: list[Measured]) -> Measured:
    """Return a process that did not finish, if there is one, or else the first."""
    failed = [each for each in processes if each.status is not Status.DONE]
    return (failed or processes)[0]


def find_disagreements(
    case: Case, measured: Mapping[str, Iterable[Measured]]
) -> Iterable[str]:
    """Yield samples for which two algorithms report different changes."""
    seen: dict[tuple[int, str], tuple[int, int]] = {}
    records = (
        (algorithm, record)
        for algorithm, processes in measured.items()
        for process in processes
        for record in process.of("updated")
    )
    for algorithm, record in records:
        update = (record["sample"], record["step"])
        change = (record["removed"], record["added"])
        if seen.setdefault(update, change) != change:
            yield (
                f"{case.name}: {algorithm} reports -{change[0]} +{change[1]} at "
                f"sample {update[0]}, {update[1]}; others "
                f"-{seen[update][0]} +{seen[update][1]}"
            )


# ------------------------------------------------------------------------- tables


def tables(results: Results, options: Options) -> list[Table]:
    """Return the results as tables."""
    times = {
        (row.case, row.algorithm, step): seconds
        for row in results.rows
        for step, seconds in row.seconds.items()
        if _counts(row)
    }
    return [
        *(_table(results, options, step) for step in STEPS),
        goal_table(times, results.counters),
    ]


def _table(results: Results, options: Options, step: str) -> Table:
    lines = []
    for case in CASES:
        rows = results.of(case.name)
        if rows:
            lines.append(_line(case, rows, step))
    header = (
        *("update", "facts", "change", *ALGORITHMS),
        *("auto took", "remat / auto", "auto / best", f"≤ {AUTO_LIMIT:g}"),
    )
    titles = {"delete": "Deleting", "insert": "Putting back what was deleted"}
    note = (
        "Mean over the samples; for single facts, shares and Example 1 the median. "
        f"What took at most {NEAR:g} times as long as the best, and `remat`, was "
        f"measured in {options.repeat} processes: the median of them. "
        "`n/a`: the algorithm refuses the program. No sample is begun after "
        f"{options.time_limit / 2:.0f} s, and an algorithm is stopped after "
        f"{options.time_limit:.0f} s; in brackets, what it did up to there."
    )
    notes = (note, *results.disagreements)
    return Table(titles[step], header, tuple(lines), notes)


def _line(case: Case, rows: Mapping[str, Row], step: str) -> tuple[str, ...]:
    times = {name: row.seconds[step] for name, row in rows.items() if _counts(row)}
    auto = times.get(AUTO)
    best = min(times.values()) if times else None
    relative = auto / best if auto and best else None
    any_row = next(iter(rows.values()))
    cells = [case.title, count_text(any_row.facts), count_text(any_row.removed)]
    for name in ALGORITHMS:
        row = rows[name]
        is_stopped = row.status == Status.TIME_LIMIT
        cell = seconds_text(row.seconds[step]) if row.seconds.get(step) else row.ending
        cells.append(f"({cell})" if is_stopped and row.seconds.get(step) else cell)
    cells.append(rows[AUTO].chosen.get(step, "–"))
    cells.append(ratio_text(times.get(REMAT), auto))
    cells += [ratio_text(relative, 1.0), verdict(relative, AUTO_LIMIT)]
    return tuple(cells)


def _counts(row: Row) -> bool:
    """Return whether a row has both times: a stopped run lacks samples."""
    return row.status == Status.DONE and all(step in row.seconds for step in STEPS)


# ---------------------------------------------------------------------- maintain goals

# Goals of maintenance, computed from the figures of a run.
#
# Each goal is a ratio of two measured times, or a time, with its limit. A goal whose
# cases were not run, or did not finish in time, has no figure.


Times = dict[tuple[str, str, str], float]
"""Seconds by case, algorithm and step, of the measurements that finished."""

Line = tuple[str, str, str, str]


def goal_table(times: Times, counters: Mapping[str, float]) -> Table:
    """Return all goals with their figures.

    Args:
        times: the times of updates.
        counters: the cost of counters at materialisation, by workload.
    """
    lines = [
        *_example_1(times),
        _at_most(
            "SSPE, 1000 edges: dred-c in units of remat",
            _ratio(times, ("sspe", "dred-c"), ("sspe", "remat"), "delete"),
            0.5,
        ),
        *_against_remat(times),
        *_single_facts(times),
        _at_most(
            "large deletions: auto in units of remat, at worst",
            _worst_case(times, _large_cases(), "remat"),
            1.15,
        ),
        _at_most(
            "counters at materialisation, in units of none, at worst",
            max(counters.values(), default=None),
            1.25,
        ),
        _at_most(
            "auto in units of the best algorithm, at worst",
            _worst_against_best(times),
            1.25,
        ),
    ]
    header = ("what", "measured", "goal", "reached")
    return Table("Goals", header, tuple(lines))


def _example_1(times: Times) -> Iterator[Line]:
    for name in ("dred-c", "bf-c"):
        large, small = ("example-1-100k", name), ("example-1-25k", name)
        growth = _ratio(times, large, small, "delete")
        yield _at_most(f"Example 1, n from 25k to 100k: {name} grows by", growth, 5.0)
        slow, quick = ("example-1-20k", "dred"), ("example-1-20k", name)
        gain = _ratio(times, slow, quick, "delete")
        yield _at_least(f"Example 1, n = 20k: dred in units of {name}", gain, 50.0)


def _against_remat(times: Times) -> Iterator[Line]:
    case = "universities-50"
    for step in STEPS:
        gain = _ratio(times, (case, "remat"), (case, "auto"), step)
        yield _at_least(
            f"50 universities, {step} 1000 facts: remat in units of auto", gain, 200.0
        )


def _single_facts(times: Times) -> Iterator[Line]:
    for step in STEPS:
        for case, size in (("one-of-1m", "1 M"), ("one-of-10m", "10 M")):
            seconds = times.get((case, "auto", step))
            shown = seconds_text(seconds)
            title = f"{step} one fact of {size}, by auto"
            yield title, shown, "≤ 5 ms", verdict(seconds, 0.005)
        growth = _ratio(times, ("one-of-10m", "auto"), ("one-of-1m", "auto"), step)
        yield _at_most(f"{step} one fact, 10 M facts in units of 1 M", growth, 1.3)


# --------------------------------------------------------------------- arithmetic


def _ratio(
    times: Times, above: tuple[str, str], below: tuple[str, str], step: str
) -> float | None:
    over, under = times.get((*above, step)), times.get((*below, step))
    return over / under if over and under else None


def _large_cases() -> Iterator[str]:
    return (f"{workload}-{share}pc" for workload in LARGE for share in SHARES)


def _worst_case(times: Times, cases: Iterable[str], unit: str) -> float | None:
    """Return the largest ratio of `auto` to another algorithm, for deletions."""
    ratios = [_ratio(times, (case, "auto"), (case, unit), "delete") for case in cases]
    return max((ratio for ratio in ratios if ratio is not None), default=None)


def _worst_against_best(times: Times) -> float | None:
    best: dict[tuple[str, str], float] = {}
    for (case, _, step), seconds in times.items():
        best[case, step] = min(seconds, best.get((case, step), seconds))
    ratios = [
        seconds / best[case, step]
        for (case, algorithm, step), seconds in times.items()
        if algorithm == "auto"
    ]
    return max(ratios, default=None)


def _at_most(title: str, value: float | None, limit: float) -> Line:
    return title, ratio_text(value, 1.0), f"≤ {limit:g}×", verdict(value, limit)


def _at_least(title: str, value: float | None, limit: float) -> Line:
    negated = None if value is None else -value
    return title, ratio_text(value, 1.0), f"≥ {limit:g}×", verdict(negated, -limit)
