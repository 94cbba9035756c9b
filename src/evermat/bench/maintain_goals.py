"""What maintenance has to reach, worked out from the figures of a run.

Each goal is a ratio of two measured times, or a time, with the limit it must keep. A
goal whose cases were not run, or did not end in time, has no figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.bench.report import Table, ratio_text, seconds_text, verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Times = dict[tuple[str, str, str], float]
"""Seconds by case, algorithm and step, of the measurements that came to their end."""

STEPS = ("delete", "insert")

LARGE = ("universities", "sspe", "dag-nonlinear", "points-to")
"""Workloads of which large parts are deleted."""

SHARES = (2, 25, 50)
"""How large the parts are, in percent."""

Line = tuple[str, str, str, str]


def goal_table(times: Times, counters: Mapping[str, float]) -> Table:
    """All goals with what was measured.

    Args:
        times: of updates.
        counters: what counting costs at materialisation, by workload.
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
            _worst(times, _large_cases(), "remat"),
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


def _worst(times: Times, cases: Iterable[str], unit: str) -> float | None:
    """The largest ratio of `auto` to another algorithm, when deleting."""
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
