"""The suite `spark`: the Spark engine, plain loops, and Spark's own recursion.

Every measurement has a process and a session of its own, on two cores, with one
gigabyte for the executor. The engine is measured with its defaults, which keep small
facts on the driver, and with all facts distributed, as they are on a cluster. The
baselines are written as a user would write them by hand; they keep no counters and cut
their plans by local checkpoints, while the engine counts and writes reliable ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evermat.bench.orders import jobs_table, measure_jobs
from evermat.bench.processes import Status, ending, measure, say
from evermat.bench.report import (
    Table,
    count_text,
    megabytes_text,
    seconds_text,
)

if TYPE_CHECKING:
    from evermat.bench.processes import Measured, Options, Record

NAMES = ("orders", "dag", "lubm", "folded", "tiny", "growth")
PUBLISH = "from N-Triples to Parquet"
"""The step of the universities."""
GROWTH = (0.125, 0.25, 0.5, 1.0, 4.0)
"""Shares of the universities at which time and shuffled bytes are compared.

The last one does not fit into the memory of the executor.
"""
GROWTH_SMALL = 20_000
"""Facts that stay on the driver there; with the default, some of the smaller ones
would.
"""

CLOSURE_GAIN = 3
LUBM_GAIN = 5
UPDATE_GAIN = 5
JOBS_PER_ROUND = 3
FOLDED_RATIO = 1.5
ROUND_SECONDS = 0.4
EVEN = 1.25
"""Ratio that is within the noise of single runs."""
MEGABYTE = 1e6
BASELINE_LIMIT = 120.0
"""Seconds after which a baseline is stopped, unless goals are still undecided then."""
START = 30.0
"""Upper bound of the seconds to start Spark and to generate the data."""
BASELINES = frozenset({"loop", "recursive"})
_DONE_BEFORE = (
    "Everything that is compared has been done once before: facts were loaded, and as "
    "many other facts were deleted first and put back."
)


_GROWTH_NOTE = (
    "Time for growth is time, in units of the first, for data, likewise. The goal for "
    "shuffled bytes is about 1× to 8×: beyond a million constants, they are a table on "
    "the cluster, which rows are joined with to be published."
)


@dataclass(slots=True)
class Found:
    """All records, by the name of the measurement.

    Attributes:
        endings: the text in tables for measurements without a figure.
        limits: the seconds after which measurements were stopped.
    """

    records: dict[str, list[Record]] = field(default_factory=dict)
    endings: dict[str, str] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)

    def step(self, name: str, step: str) -> Record | None:
        """Return the record of a step, or None."""
        for record in self.records.get(name, []):
            if record["step"] == step:
                return record
        return None


def run(options: Options) -> Found:
    """Measure everything that is selected."""
    found = Found()
    plan: list[tuple[str, str, dict[str, object]]] = []
    if options.wants("dag"):
        ways = ["evermat", "spread"]
        ways += ["loop", "recursive"] if options.peers else []
        plan += [("dag", f"dag {by}", {"by": by}) for by in ways]
    if options.wants("lubm"):
        ways = ["evermat", "spread", *(["loop"] if options.peers else [])]
        plan += [("lubm", f"lubm {by}", {"by": by, "updates": True}) for by in ways]
    for name in ("folded", "tiny"):
        if options.wants(name):
            plan.append((name, name, {}))
    if options.wants("growth"):
        plan += [
            (
                "lubm",
                f"growth {share}",
                {"by": "spread", "updates": False, "x": share, "small": GROWTH_SMALL},
            )
            for share in GROWTH
        ]
    if options.wants("orders"):
        found.records["orders"] = measure_jobs(options)
    for part, name, more in plan:
        _measure(found, part, name, options, more)
    return found


def _measure(
    found: Found, part: str, name: str, options: Options, more: dict[str, object]
) -> None:
    share = more.pop("x", 1.0)
    scale = options.scale * float(str(share))
    task = {"task": "spark", "part": part, "scale": scale, **more}
    say(f"spark: {name}")
    limit = options.time_limit
    if more.get("by") in BASELINES:
        limit = min(limit, _baseline_limit(found, part))
    measured: Measured = measure(task, time_limit=limit + START)
    found.records[name] = measured.of("step")
    found.endings[name] = ending(measured, limit)
    if measured.status is Status.TIME_LIMIT:
        found.limits[name] = limit
    if measured.message:
        say(f"spark: {name}: {measured.message}")


def _baseline_limit(found: Found, part: str) -> float:
    """Return the seconds after which a baseline's exact time is irrelevant."""
    step, goal = {"dag": ("closure", CLOSURE_GAIN), "lubm": (PUBLISH, LUBM_GAIN)}[part]
    own = [found.step(f"{part} {by}", step) for by in ("evermat", "spread")]
    decided = [goal * record["seconds"] for record in own if record is not None]
    return float(max([BASELINE_LIMIT, *decided]))


# ------------------------------------------------------------------------- tables


def tables(found: Found, options: Options) -> list[Table]:
    """Return the figures, with the goals."""
    made = []
    if options.wants("orders"):
        made.append(jobs_table(found.records["orders"]))
    if options.wants("dag"):
        made.append(_closure_table(found))
    if options.wants("lubm"):
        made += [_lubm_table(found), _update_table(found)]
    if options.wants("folded") or options.wants("tiny"):
        made.append(_round_table(found))
    if options.wants("growth"):
        made.append(_growth_table(found))
    return made


def _figures(found: Found, name: str, step: str) -> tuple[str, ...]:
    record = found.step(name, step)
    if record is None:
        return (found.endings.get(name, "–"), "–", "–", "–")
    return (
        seconds_text(record["seconds"]),
        count_text(record.get("facts")),
        str(record["jobs"]),
        megabytes_text(record["shuffled"] / MEGABYTE),
    )


def _gain(found: Found, slow: str, fast: str, step: str, goal: float) -> str:
    """Return the speed-up, and whether it reaches the goal."""
    one, other = found.step(slow, step), found.step(fast, step)
    if other is None:
        return "–"
    if one is not None:
        return _reached(one["seconds"] / other["seconds"], goal)
    if slow not in found.limits:
        return f"does not finish: {found.endings.get(slow, '–')}"
    # A measurement that was stopped takes longer than its limit.
    ratio = found.limits[slow] / other["seconds"]
    return f"more than {_reached(ratio, goal)}" if ratio >= goal else "not known"


def _reached(ratio: float, goal: float) -> str:
    return f"{ratio:.1f}× ({'yes' if ratio >= goal else 'no'}: ≥ {goal:g}×)"


def _within(value: float | None, limit: float, unit: str = "") -> str:
    if value is None:
        return "–"
    return f"{value:.2f}{unit} ({'yes' if value <= limit else 'no'}: ≤ {limit:g}{unit})"


TITLES = {
    "evermat": "Evermat, with counters",
    "spread": "the same, all facts distributed",
    "loop": "plain loop",
    "recursive": "`WITH RECURSIVE`",
}


def _closure_table(found: Found) -> Table:
    rows = []
    for by, title in TITLES.items():
        name, gains = f"dag {by}", ["–", "–"]
        if name not in found.records:
            continue
        if by in BASELINES:
            gains = [
                _gain(found, name, f"dag {fast}", "closure", CLOSURE_GAIN)
                for fast in ("evermat", "spread")
            ]
        rows.append((title, *_figures(found, name, "closure"), *gains))
    return Table(
        "Closure of a random DAG, 2k nodes and 20k edges",
        (
            *("closure", "time", "facts", "jobs", "shuffled"),
            *("Evermat is faster", "and spread"),
        ),
        tuple(rows),
    )


def _lubm_table(found: Found) -> Table:
    rows = []
    for by in ("evermat", "spread", "loop"):
        name, gains, per_round = f"lubm {by}", ["–", "–"], "–"
        if name not in found.records:
            continue
        record = found.step(name, PUBLISH)
        if by in BASELINES:
            gains = [
                _gain(found, name, f"lubm {fast}", PUBLISH, LUBM_GAIN)
                for fast in ("evermat", "spread")
            ]
        elif record is not None:
            jobs = record["jobs"] / max(1, record["rounds"])
            per_round = _within(jobs, JOBS_PER_ROUND)
        rows.append((TITLES[by], *_figures(found, name, PUBLISH), per_round, *gains))
    return Table(
        "Ten universities, about 100 rules, from N-Triples to Parquet",
        (
            *("materialise", "time", "facts", "jobs", "shuffled"),
            *("jobs a round", "Evermat is faster", "and spread"),
        ),
        tuple(rows),
        ("Jobs include loading and publishing.",),
    )


def _update_table(found: Found) -> Table:
    rows = []
    for by in ("evermat", "spread"):
        name = f"lubm {by}"
        again = found.step(name, "rematerialise")
        for step in ("first delete", "delete", "reinsert", "rematerialise"):
            record, gain = found.step(name, step), "–"
            title = step if by == "evermat" else f"{step}, all facts distributed"
            if record is None:
                rows.append((title, found.endings.get(name, "–"), *["–"] * 4))
                continue
            if again is not None and step in ("delete", "reinsert"):
                gain = _reached(again["seconds"] / record["seconds"], UPDATE_GAIN)
            figures = (str(record["jobs"]), str(record["rounds"]), record["algorithm"])
            rows.append((title, seconds_text(record["seconds"]), *figures, gain))
    return Table(
        "Ten universities, 1,000 facts deleted and reinserted",
        ("update", "time", "jobs", "rounds", "algorithm", "faster than from scratch"),
        tuple(rows),
        (_DONE_BEFORE,),
    )


def _round_table(found: Found) -> Table:
    rows = []
    folded = found.records.get("folded", [])
    for record in folded:
        few = next(each for each in folded if each["spread"] == record["spread"])
        ratio = "–"
        if record is not few:
            ratio = _within(record["seconds"] / few["seconds"], FOLDED_RATIO, "×")
        where = ", spread" if record["spread"] else ""
        rows.append(
            (f"{record['rules']:,} folded rules{where}", *_round(record), ratio)
        )
    for record in found.records.get("tiny", []):
        each = record["seconds"] / max(1, record["rounds"])
        goal = _within(each, ROUND_SECONDS, " s")
        rows.append((f"tiny data, {record['step']}", *_round(record), goal))
    for name in ("folded", "tiny"):
        ended = found.endings.get(name, "–")
        if ended != "–":
            rows.append((f"{name}, the rest", ended, "–", "–", "–"))
    return Table(
        "What rules and rounds cost",
        ("rounds", "time", "rounds", "jobs a round", "cost, and the goal"),
        tuple(rows),
        ("Folded rules are read before the clock starts; loading is part of rounds.",),
    )


def _round(record: Record) -> tuple[str, ...]:
    rounds = max(1, record["rounds"])
    each = f"{record['jobs'] / rounds:.1f}"
    return seconds_text(record["seconds"]), str(record["rounds"]), each


def _growth_table(found: Found) -> Table:
    rows = []
    first: Record | None = None
    for share in GROWTH:
        name = f"growth {share}"
        record = found.step(name, PUBLISH)
        if record is None:
            ended = found.endings.get(name, "–")
            rows.append((f"{share / GROWTH[0]:g}×", ended, *["–"] * 7))
            continue
        first = first or record
        size = record["facts"] / first["facts"]
        growth = record["seconds"] / first["seconds"] / size
        shuffled = record["shuffled"] / record["facts"]
        at_first = max(1.0, first["shuffled"] / first["facts"])
        compared = max(shuffled, 1.0) / at_first
        rows.append(
            (
                f"{share / GROWTH[0]:g}×",
                seconds_text(record["seconds"]),
                count_text(record["facts"]),
                _within(growth, EVEN),
                f"{shuffled:.0f} B",
                f"{compared:.2f}" if share > 1 else _within(compared, EVEN),
                megabytes_text(record["spilled"] / MEGABYTE),
                megabytes_text(record["peak_heap"] / MEGABYTE),
                seconds_text(record["seconds"] / record["facts"] * 1e6),
            )
        )
    return Table(
        "Growing data: universities, all facts distributed",
        (
            *("data", "time", "facts", "time for growth", "shuffled a fact"),
            *("compared with 1×", "spilled", "peak heap", "time a million"),
        ),
        tuple(rows),
        (_GROWTH_NOTE,),
    )
