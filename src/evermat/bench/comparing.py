"""Compares two runs of a suite: which figures became worse, beyond noise.

Machines differ, and vary over time: if all figures of a run are 1.4 times those of
another, none of them is significant. The typical ratio of all figures is therefore
factored out first, and a figure has changed if its own ratio deviates from that by more
than four times the typical spread, and by more than a fifth. If a figure was measured
several times, the ranges must not overlap either; if it was measured once, it must have
changed by half.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from statistics import median
from typing import TYPE_CHECKING, Any

from evermat.bench.report import Table, seconds_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LEAST = 1.2
"""Changes below this factor are never reported."""
SHORTEST = 0.0002
"""Seconds below which a figure is dominated by the cost of reading a clock."""
_ONCE = 1.5
"""Smallest significant change of a figure that was measured once."""
_SPREADS = 4.0
_TO_DEVIATION = 1.4826
"""Factor from the median absolute deviation to the standard deviation."""

_NAMING = ("suite", "case", "workload", "system", "algorithm", "way", "update", "row")
"""Fields that identify a record, besides those with numbers in them."""
_ALSO = ("scale", "count", "factor", "event", "step", "modules", "name")


@dataclass(frozen=True, slots=True)
class Figure:
    """A time, with its minimum and maximum."""

    seconds: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Changes of the figures that both runs have.

    Attributes:
        machine: the typical ratio, of the second run to the first.
        spread: the deviation of ratios from that, as a factor.
        slower, faster: names with ratios, worst first.
        missing, new: names that only one run has.
        same: the number of figures that differ by noise.
    """

    machine: float
    spread: float
    slower: tuple[tuple[str, Figure, Figure, float], ...]
    faster: tuple[tuple[str, Figure, Figure, float], ...]
    missing: tuple[str, ...]
    new: tuple[str, ...]
    same: int


def compare(first: Mapping[str, Any], second: Mapping[str, Any]) -> Comparison:
    """Compare the figures of two files written with `--json`.

    Raises:
        ValueError: they have no figures in common.
    """
    before, after = dict(figures_of(first)), dict(figures_of(second))
    common = {
        name: log(after[name].seconds / before[name].seconds)
        for name in before
        if name in after
        and max(before[name].seconds, after[name].seconds) >= SHORTEST
        and min(before[name].seconds, after[name].seconds) > 0
    }
    if not common:
        message = "the two runs have no figures in common"
        raise ValueError(message)
    machine = median(common.values())
    spread = _TO_DEVIATION * median(abs(each - machine) for each in common.values())
    limit = _SPREADS * spread
    changed = {
        name: each - machine
        for name, each in common.items()
        if abs(each - machine) > max(limit, _least(before[name], after[name]))
        and _are_apart(before[name], after[name], exp(machine), each > machine)
    }
    rows = [
        (name, before[name], after[name], exp(ratio))
        for name, ratio in sorted(changed.items(), key=lambda pair: -abs(pair[1]))
    ]
    return Comparison(
        exp(machine),
        exp(spread),
        tuple(row for row in rows if row[3] > 1),
        tuple(row for row in rows if row[3] < 1),
        tuple(sorted(before.keys() - after.keys())),
        tuple(sorted(after.keys() - before.keys())),
        len(common) - len(changed),
    )


def _least(one: Figure, other: Figure) -> float:
    """Return the smallest significant change of a figure, as a logarithm."""
    is_single = one.least == one.most or other.least == other.most
    return log(_ONCE if is_single else LEAST)


def _are_apart(one: Figure, other: Figure, machine: float, is_slower: bool) -> bool:  # noqa: FBT001  a direction
    """Return whether the ranges do not overlap, corrected for the machine."""
    if is_slower:
        return other.least > one.most * machine
    return other.most < one.least * machine


def figures_of(content: Any) -> Iterator[tuple[str, Figure]]:  # noqa: ANN401  JSON
    """Yield all times in the output of a suite, with descriptive names."""
    gathered: dict[str, list[Figure]] = {}
    for name, figure in _walk(content, ()):
        gathered.setdefault(name, []).append(figure)
    for name, figures in gathered.items():
        yield (
            name,
            Figure(
                median(each.seconds for each in figures),
                min(each.least for each in figures),
                max(each.most for each in figures),
            ),
        )


def _walk(content: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Figure]]:  # noqa: ANN401  JSON
    if isinstance(content, list):
        for each in content:
            yield from _walk(each, path)
    if not isinstance(content, dict):
        return
    named = (*_NAMING, *_ALSO)
    here = (*path, *(str(content[n]) for n in named if _is_name(content, n)))
    yield from _own_figures(content, here)
    for name, value in content.items():
        if name not in {"machine", "options", "seconds"}:
            yield from _walk(value, (*here, *_key(name)))


def _own_figures(
    content: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[str, Figure]]:
    """Yield the times of one record: one, or one for each step."""
    seconds = content.get("seconds")
    if isinstance(seconds, int | float):
        least, most = content.get("best", seconds), content.get("worst", seconds)
        yield " · ".join(path), Figure(float(seconds), float(least), float(most))
    elif isinstance(seconds, dict):
        for step, time in seconds.items():
            figure = Figure(float(time), float(time), float(time))
            yield " · ".join((*path, step)), figure


def _is_name(content: Mapping[str, Any], name: str) -> bool:
    if name == "algorithm" and "way" in content:
        return False  # the chosen algorithm may differ between runs
    return isinstance(content.get(name), str | int | float)


_HOLDERS = frozenset({"rows", "tables", "workloads", "steps"})


def _key(name: str) -> tuple[str, ...]:
    """Return a part of a name; keys that only contain records are skipped."""
    return () if name in _HOLDERS else (name,)


# -------------------------------------------------------------------------- tables


def tables(found: Comparison) -> list[Table]:
    """Return a comparison as tables."""
    rows = [
        (
            name,
            seconds_text(before.seconds),
            seconds_text(after.seconds),
            f"{ratio:.2f}×",
            "slower" if ratio > 1 else "faster",
        )
        for name, before, after, ratio in (*found.slower, *found.faster)
    ]
    typical = (
        f"{found.same:,} figures differ by noise. Typically the second run takes "
        f"{found.machine:.2f}× as long (taken out of the ratios), give or take a "
        f"factor of {found.spread:.2f}."
    )
    notes = [typical]
    for names, text in ((found.missing, "first"), (found.new, "second")):
        if names:
            shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")  # noqa: PLR2004  a few
            notes.append(f"{len(names):,} figures are in the {text} run only: {shown}")
    header = ("figure", "before", "after", "ratio", "")
    return [Table("What changed", header, tuple(rows), tuple(notes))]
