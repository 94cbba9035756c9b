"""The suite `materialise`: from explicit facts to all facts, against peers.

Each workload is run with counters and without them; some workloads at a quarter, half
and the full size, to see how time grows with the number of rule instances; and clingo
and DuckDB on the same facts. The cost of starting up is measured last.

Compared systems are measured in several processes in turn.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.bench.processes import (
    Measured,
    Options,
    Status,
    ending,
    measure,
    median,
    prepared,
    say,
    script_seconds,
)
from evermat.bench.report import (
    Table,
    count_text,
    megabytes_text,
    ratio_text,
    seconds_text,
    verdict,
)
from evermat.bench.workloads import GROWTH, MATERIALISE, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator

WITH_COUNTERS = "evermat"
WITHOUT_COUNTERS = "evermat without counters"

PROCESSES = 3
"""Processes differ in the placement of memory; compared systems take turns."""

GROWTH_SCALES = (0.25, 0.5, 1.0)
GROWTH_TOLERANCE = 1.2
COUNTER_LIMIT = 1.25
FOLDING_LIMIT = 3.0
IMPORT_LIMIT = 0.3
EXAMPLE_LIMIT = 2.0

_IMPORT = "import evermat"
_EXAMPLE = """
import evermat

kb = evermat.KnowledgeBase('''
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
''')
kb.insert("edge", [("a", "b"), ("b", "c")])
kb.delete("edge", [("a", "b")]).removed("reach").to_list()
kb.query("reach(?x, 'c')").to_list()
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One system on one workload at one scale.

    Times are medians over processes, each the median of the repetitions there; the peak
    of memory is the largest one.
    """

    workload: str
    scale: float
    system: str
    status: str
    ending: str
    explicit: int | None = None
    facts: int | None = None
    instances: int | None = None
    seconds: float | None = None
    first_seconds: float | None = None
    rule_seconds: float | None = None
    load_seconds: float | None = None
    peak_megabytes: float | None = None
    message: str = ""

    @property
    def total(self) -> float | None:
        """The time to read and compile rules, load facts and materialise."""
        parts = (self.rule_seconds, self.load_seconds, self.seconds)
        return None if self.seconds is None else sum(part or 0.0 for part in parts)


@dataclass(frozen=True, slots=True)
class Start:
    """The time to import the package and to run the README's example."""

    import_seconds: float | None
    example_seconds: float | None


@dataclass(frozen=True, slots=True)
class Results:
    """All rows of a run, and the start-up times."""

    rows: tuple[Row, ...]
    start: Start

    def find(self, workload: str, scale: float, system: str) -> Row | None:
        """Return the row of a system, or None."""
        for row in self.rows:
            if (row.workload, row.scale, row.system) == (workload, scale, system):
                return row
        return None


# ---------------------------------------------------------------------- measuring


def run(options: Options) -> Results:
    """Measure the whole suite."""
    rows: list[Row] = []
    for name in MATERIALISE:
        if options.wants(name):
            rows += _measure_workload(name, options)
    return Results(tuple(rows), _measure_start(options))


def _measure_workload(name: str, options: Options) -> Iterator[Row]:
    factors = GROWTH_SCALES if name in GROWTH else (1.0,)
    with ExitStack() as stack:
        folders = {
            factor * options.scale: stack.enter_context(
                prepared(name, factor * options.scale)
            )
            for factor in factors
        }
        own = {(scale, WITH_COUNTERS): list[Measured]() for scale in folders}
        own[options.scale, WITHOUT_COUNTERS] = []
        for _ in range(PROCESSES):
            for (scale, system), measured in own.items():
                task = {
                    "task": "materialise",
                    "counters": system == WITH_COUNTERS,
                    "repeat": options.repeat,
                    **folders[scale],
                }
                measured.append(measure(task, time_limit=options.time_limit))
                _say(name, scale, system, measured[-1], options)
        for (scale, system), measured in own.items():
            yield _row(name, scale, system, measured, options)
        if options.peers:
            for peer in WORKLOADS[name].peers:
                task = {"task": "peer", "peer": peer, **folders[options.scale]}
                found = measure(task, time_limit=options.time_limit)
                _say(name, options.scale, peer, found, options)
                yield _row(name, options.scale, peer, [found], options)


def _say(
    name: str, scale: float, system: str, measured: Measured, options: Options
) -> None:
    records = measured.of("materialised")
    seconds = seconds_text(median(records, "seconds"))
    result = ending(measured, options.time_limit)
    say(f"{name} ×{scale:g}, {system}: {seconds if records else result}")
    if measured.message:
        say(f"  {measured.message}")


def _row(
    name: str,
    scale: float,
    system: str,
    processes: list[Measured],
    options: Options,
) -> Row:
    # A run that was stopped after its first sample still has a figure.
    records = [found for one in processes if (found := one.of("materialised"))]
    firsts = [first for first, *_ in records]
    any_first = firsts[0] if firsts else {}
    last = processes[-1]

    def typical(field: str) -> float | None:
        times = [{field: median(some, field)} for some in records]
        return median([time for time in times if time[field] is not None], field)

    return Row(
        workload=name,
        scale=scale,
        system=system,
        status=str(Status.DONE if records else last.status),
        ending=ending(last, options.time_limit),
        explicit=any_first.get("explicit"),
        facts=any_first.get("facts"),
        instances=any_first.get("instances"),
        seconds=typical("seconds"),
        first_seconds=median(firsts, "seconds"),
        rule_seconds=typical("rule_seconds"),
        load_seconds=typical("load_seconds"),
        peak_megabytes=max(
            (first["peak_megabytes"] for first in firsts if "peak_megabytes" in first),
            default=None,
        ),
        message=last.message,
    )


def _measure_start(options: Options) -> Start:
    return Start(_script_seconds(_IMPORT, options), _script_seconds(_EXAMPLE, options))


def _script_seconds(script: str, options: Options) -> float | None:
    # The first process may find nothing in the file system's caches.
    runs = [
        script_seconds(script, time_limit=options.time_limit)
        for _ in range(options.repeat + 1)
    ]
    times = [{"seconds": seconds} for seconds in runs[1:] if seconds is not None]
    return median(times, "seconds")


# ------------------------------------------------------------------------- tables


def tables(results: Results, options: Options) -> list[Table]:
    """Return the results as tables."""
    return [
        _main_table(results, options),
        _peer_table(results, options),
        _growth_table(results, options),
        _ratio_table(results, options),
    ]


def _main_table(results: Results, options: Options) -> Table:
    lines = []
    for name in MATERIALISE:
        row = results.find(name, options.scale, WITH_COUNTERS)
        if row is None:
            continue
        workload = WORKLOADS[name]
        goal = workload.reach_seconds
        wanted = "–" if goal is None else f"≤ {goal:g} s"
        if workload.reach_megabytes is not None:
            wanted += f", ≤ {workload.reach_megabytes:,.0f} MB"
        lines.append(
            (
                workload.title,
                count_text(row.explicit),
                count_text(row.facts),
                count_text(row.instances),
                seconds_text(row.rule_seconds),
                seconds_text(row.load_seconds),
                _time(row),
                seconds_text(row.first_seconds),
                megabytes_text(row.peak_megabytes),
                wanted,
                _reached(row, goal, workload.reach_megabytes),
            )
        )
    header = (
        *("workload", "explicit", "all facts", "rule instances", "rules", "loading"),
        *("materialising", "first time", "peak memory", "goal", "reached"),
    )
    note = (
        "Rules: reading, checking and compiling them. Loading: encoding and storing "
        "facts. Materialising starts from encoded facts and includes the counters; the "
        "first time in a process has to get its memory from the system. Peak memory is "
        "that of the whole process."
    )
    return Table("Materialisation", header, tuple(lines), (note,))


def _reached(row: Row, seconds: float | None, megabytes: float | None) -> str:
    verdicts = {verdict(row.seconds, seconds), verdict(row.peak_megabytes, megabytes)}
    if "no" in verdicts:
        return "no"
    return "yes" if "yes" in verdicts else "–"


def _time(row: Row | None) -> str:
    if row is None:
        return "–"
    return row.ending if row.seconds is None else seconds_text(row.seconds)


def _peer_table(results: Results, options: Options) -> Table:
    lines = []
    for name in MATERIALISE:
        own = results.find(name, options.scale, WITH_COUNTERS)
        if own is None:
            continue
        bare = results.find(name, options.scale, WITHOUT_COUNTERS)
        line = [WORKLOADS[name].title, _time(own), _time(bare)]
        line.append(ratio_text(own.seconds, bare.seconds if bare else None))
        for peer in ("clingo", "duckdb"):
            row = results.find(name, options.scale, peer)
            line += [_time(row), ratio_text(row.seconds if row else None, own.seconds)]
            if row and row.facts and own.facts and row.facts != own.facts:
                line[-1] += " (other answer)"
        line.append(WORKLOADS[name].orientation or "–")
        lines.append(tuple(line))
    header = (
        *("workload", "evermat", "without counters", "ratio"),
        *("clingo", "ratio", "DuckDB", "ratio", "for orientation, elsewhere"),
    )
    note = (
        "All in one run, on the same facts, without loading. A ratio after a peer says "
        "how many times longer it takes than evermat with counters; the first ratio is "
        f"what counters cost, to be at most {COUNTER_LIMIT:g}×."
    )
    return Table("Counters and peers", header, tuple(lines), (note,))


def _growth_table(results: Results, options: Options) -> Table:
    lines = []
    for name in GROWTH:
        rows = [
            results.find(name, factor * options.scale, WITH_COUNTERS)
            for factor in GROWTH_SCALES
        ]
        first = rows[0]
        for factor, row in zip(GROWTH_SCALES, rows, strict=True):
            if row is None or first is None:
                continue
            growth, work = _growth(row, first)
            relative = growth / work if growth and work else None
            lines.append(
                (
                    f"{name} × {factor / GROWTH_SCALES[0]:g}",
                    count_text(row.instances),
                    _time(row),
                    ratio_text(work, 1.0),
                    ratio_text(growth, 1.0),
                    verdict(relative, GROWTH_TOLERANCE),
                )
            )
    header = (
        *("workload", "rule instances", "materialising"),
        *("more instances", "more time", "in step"),
    )
    note = (
        "From a quarter of the size to the full size. In step: time has grown by at "
        f"most {GROWTH_TOLERANCE:g} times the factor by which rule instances have."
    )
    return Table("Growth", header, tuple(lines), (note,))


def _growth(row: Row, first: Row) -> tuple[float | None, float | None]:
    """Return the factors by which time and rule instances have grown."""
    return (
        _quotient(row.seconds, first.seconds),
        _quotient(row.instances, first.instances),
    )


def _quotient(part: float | None, unit: float | None) -> float | None:
    return None if part is None or not unit else part / unit


def _ratio_table(results: Results, options: Options) -> Table:
    few = results.find("ontology-20", options.scale, WITH_COUNTERS)
    many = results.find("ontology-20k", options.scale, WITH_COUNTERS)
    folding = total = None
    if few and many:
        folding = _quotient(many.seconds, few.seconds)
        total = _quotient(many.total, few.total)
    start = results.start
    lines = (
        (
            "20,000 axioms against 20, same triples",
            ratio_text(folding, 1.0),
            f"≤ {FOLDING_LIMIT:g}×",
            verdict(folding, FOLDING_LIMIT),
        ),
        (
            "the same, with reading rules and loading facts",
            ratio_text(total, 1.0),
            "–",
            "–",
        ),
        (
            '`python -c "import evermat"`, interpreter included',
            seconds_text(start.import_seconds),
            f"≤ {IMPORT_LIMIT:g} s",
            verdict(start.import_seconds, IMPORT_LIMIT),
        ),
        (
            "the README's example in a new process, kernels compiled before",
            seconds_text(start.example_seconds),
            f"≤ {EXAMPLE_LIMIT:g} s",
            verdict(start.example_seconds, EXAMPLE_LIMIT),
        ),
    )
    return Table("Rules and start", ("what", "measured", "goal", "reached"), lines)
