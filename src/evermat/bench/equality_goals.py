"""What equality has to reach, worked out from the figures of a run.

Each goal is a ratio of two measured times, a time or a speed, with the limit it must
keep. A goal whose workload was not run has no figure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evermat.bench.report import Table, count_text, ratio_text, seconds_text, verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

UNIVERSITIES = "universities"
ONE_CLIQUE = "one-clique"
SMALL_CLIQUES = "small-cliques"
ONTOLOGY = "ontology"

Line = tuple[str, str, str, str]


@dataclass(slots=True)
class Measured:
    """What was measured on one workload.

    Attributes:
        given, facts: sizes; the latter in representatives.
        load: seconds to read facts and to materialise them, by mode.
        materialise: seconds for the latter alone, by mode.
        updates: seconds to delete facts, by their number and by mode and algorithm.
        restored: seconds to insert them again, likewise.
    """

    given: int
    facts: dict[str, int] = field(default_factory=dict)
    load: dict[str, float] = field(default_factory=dict)
    materialise: dict[str, float] = field(default_factory=dict)
    updates: dict[str, dict[str, float]] = field(default_factory=dict)
    restored: dict[str, dict[str, float]] = field(default_factory=dict)


def goal_table(found: Mapping[str, Measured]) -> Table:
    """All goals with what was measured."""
    lines: list[Line] = []
    if UNIVERSITIES in found:
        lines += _universities(found[UNIVERSITIES])
    if ONE_CLIQUE in found:
        lines += _one_clique(found[ONE_CLIQUE])
    if SMALL_CLIQUES in found:
        lines += _small_cliques(found[SMALL_CLIQUES])
    if ONTOLOGY in found:
        lines += _ontology(found[ONTOLOGY])
    return Table(
        "Goals of equality", ("goal", "measured", "limit", "reached"), tuple(lines)
    )


def _universities(measured: Measured) -> list[Line]:
    few, many = measured.updates.values()
    against_axioms = [_over(times, "axioms bf", "rewrite bf") for times in (few, many)]
    known = [ratio for ratio in against_axioms if ratio is not None]
    return [
        _times_at_least(
            "universities, delete 100: bf over remat",
            _over(few, "rewrite remat", "rewrite bf"),
            100,
        ),
        _times_at_least(
            "universities, delete 5 k: bf over remat",
            _over(many, "rewrite remat", "rewrite bf"),
            30,
        ),
        _times_at_least(
            "universities: bf with rewriting over bf with axioms, at worst",
            min(known, default=None),
            5,
        ),
    ]


def _one_clique(measured: Measured) -> list[Line]:
    label = list(measured.updates)[-1]
    split = measured.updates[label]["rewrite bf"]
    built = measured.restored[label]["rewrite bf"]
    return [
        _times_at_most(
            "one clique: loading, in units of loading without equality",
            measured.load["rewrite"] / measured.load["off"],
            1.3,
        ),
        _times_at_most(
            "one clique: splitting it, in units of building it", split / built, 2
        ),
    ]


def _small_cliques(measured: Measured) -> list[Line]:
    speed = measured.given / measured.materialise["rewrite"]
    equalities = next(iter(measured.updates.values()))["rewrite bf"]
    return [
        (
            "small cliques: given facts materialised in a second",
            count_text(speed),
            f"≥ {count_text(3e6)}",
            verdict(3e6, speed),
        ),
        (
            "small cliques: delete 1000 equalities",
            seconds_text(equalities),
            f"≤ {seconds_text(1.0)}",
            verdict(equalities, 1.0),
        ),
    ]


def _ontology(measured: Measured) -> list[Line]:
    updates = list(measured.updates.values())
    ratios = [times["rewrite auto"] / times["rewrite remat"] for times in updates]
    return [
        _times_at_least(
            "ontology, delete 100: auto over remat",
            _over(updates[0], "rewrite remat", "rewrite auto"),
            20,
        ),
        _times_at_most(
            "ontology: auto, in units of remat, at worst", max(ratios), 1.15
        ),
    ]


def _over(times: Mapping[str, float], slow: str, fast: str) -> float | None:
    if slow not in times or not times.get(fast):
        return None
    return times[slow] / times[fast]


def _times_at_least(goal: str, ratio: float | None, least: float) -> Line:
    reached = verdict(least, ratio)
    return goal, ratio_text(ratio, 1.0), f"≥ {least:g}×", reached


def _times_at_most(goal: str, ratio: float | None, most: float) -> Line:
    return goal, ratio_text(ratio, 1.0), f"≤ {most:g}×", verdict(ratio, most)
