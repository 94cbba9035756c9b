"""The suite `equality`: rewriting against axioms, maintenance against rematerialising.

Each workload is generated, loaded and updated in this process, after a tiny sibling has
been run once. Times are processor times, and the minimum of repeated measurements,
because other work on the machine and on its host can only add to them. The columns of
times are the four ways of the paper's Table 1, and `auto`; the axioms are left out
where they would take too long. Slow steps are measured once.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from itertools import chain
from statistics import fmean
from time import process_time
from typing import TYPE_CHECKING

from evermat.api import KnowledgeBase
from evermat.bench.generators.equalities import (
    one_clique,
    ontology_equalities,
    small_cliques,
    university_equalities,
)
from evermat.bench.generators.problem import sample
from evermat.bench.processes import say
from evermat.bench.report import Table, count_text, ratio_text, seconds_text, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from evermat.bench.generators.problem import Problem
    from evermat.bench.processes import Options
    from evermat.kb.equality import Equality


UNIVERSITIES = "universities"
ONE_CLIQUE = "one-clique"
SMALL_CLIQUES = "small-cliques"
ONTOLOGY = "ontology"

_WARM = 0.01
_LONG = 5.0
"""Seconds of loading after which it is not repeated."""
_SAMPLES = 9
"""Number of samples of facts: some affect cliques, and others do not."""
_WARM_UPS = 6
_ROUNDS = 5
"""Number of knowledge bases on which short steps are measured in turn, because other
work on the machine varies.
"""
_SHORT = 1.0
"""Seconds of loading up to which steps count as short."""
_ThereAndBack = tuple[list[float], list[float]]
_WAYS: tuple[tuple[Equality, str], ...] = (
    ("rewrite", "bf"),
    ("rewrite", "auto"),
    ("rewrite", "remat"),
    ("axioms", "bf"),
    ("axioms", "remat"),
)


@dataclass(frozen=True, slots=True)
class Workload:
    """A problem and the updates to measure on it.

    Attributes:
        name: its name on the command line.
        title: its title in tables.
        make: the generator, from a scale.
        updates: the numbers of facts to delete, and the predicate to take them from.
        axioms: the largest scale at which the axioms are measured, too.
    """

    name: str
    title: str
    make: Callable[[float], Problem]
    updates: tuple[tuple[int, str | None], ...]
    axioms: float = 0.0


def _universities_at(scale: float) -> Problem:
    if scale >= 1:
        return university_equalities(round(5 * scale))
    return university_equalities(1, departments=max(1.0, 100 * scale))


WORKLOADS = (
    Workload(
        UNIVERSITIES,
        "universities with equality",
        _universities_at,
        ((100, None), (5000, None)),
        axioms=1.0,
    ),
    Workload(
        ONE_CLIQUE,
        "one clique of 2,000 names, 1 M facts",
        lambda scale: one_clique(
            max(3, round(2000 * scale)), max(10, round(1e6 * scale))
        ),
        ((1, "same_as"), (10**9, "same_as")),
        axioms=0.01,
    ),
    Workload(
        SMALL_CLIQUES,
        "200 k cliques of 2 to 5 names, 5 M facts",
        lambda scale: small_cliques(
            max(3, round(2e5 * scale)), max(10, round(5e6 * scale))
        ),
        ((1000, "same_as"), (1000, "knows")),
        axioms=0.01,
    ),
    Workload(
        ONTOLOGY,
        "100 k rules, most of them idle",
        lambda scale: ontology_equalities(
            max(500, round(1e5 * scale)), max(100, round(2e5 * scale))
        ),
        ((100, None), (1000, None)),
    ),
)
NAMES = tuple(workload.name for workload in WORKLOADS)


@dataclass(slots=True)
class Found:
    """The figures of all workloads, by name."""

    workloads: dict[str, Measured] = field(default_factory=dict)


def run(options: Options) -> Found:
    """Measure all selected workloads."""
    found = Found()
    for workload in WORKLOADS:
        if options.wants(workload.name):
            say(f"{workload.name}: generating")
            _measure(workload, workload.make(_WARM * options.scale), options, 1)
            problem = workload.make(options.scale)
            measured = _measure(workload, problem, options, options.repeat)
            found.workloads[workload.name] = measured
    return found


def _measure(
    workload: Workload, problem: Problem, options: Options, repeat: int
) -> Measured:
    measured = Measured(problem.size)
    modes: list[Equality] = ["rewrite", "off"]
    if options.scale <= workload.axioms:
        modes.append("axioms")
    times: dict[Equality, list[float]] = {mode: [] for mode in modes}
    # In turn, because the first loads of a process wait for memory, and later ones are
    # affected by earlier ones.
    for _ in range(repeat):
        for mode in modes:
            if sum(times[mode]) < _LONG:
                say(f"{workload.name}: {problem.size:,} facts, {mode}")
                times[mode].append(_load(problem, mode)[0])
    for mode in modes:
        measured.load[mode] = min(times[mode])
        rounds = _ROUNDS if measured.load[mode] < _SHORT else 1
        found = [_measure_once(workload, problem, mode) for _ in range(rounds)]
        measured.facts[mode] = found[0].facts
        measured.materialise[mode] = min(chain(*(one.materialise for one in found)))
        for label, ways in found[0].updates.items():
            there = measured.updates.setdefault(label, {})
            back = measured.restored.setdefault(label, {})
            for way in ways:
                seconds = [one.updates[label][way] for one in found]
                there[f"{mode} {way}"] = _average(pairs[0] for pairs in seconds)
                back[f"{mode} {way}"] = _average(pairs[1] for pairs in seconds)
    return measured


def _average(seconds: Iterable[Sequence[float]]) -> float:
    """Return the mean over samples of the minimum over rounds."""
    return fmean(map(min, zip(*seconds, strict=True)))


@dataclass(slots=True)
class _Round:
    """The measurements of one knowledge base.

    Attributes:
        facts: its number of facts.
        materialise: seconds to materialise them, several times.
        updates: seconds to delete and to insert facts, for each sample, by the number
            of facts and by algorithm.
    """

    facts: int
    materialise: list[float] = field(default_factory=list)
    updates: dict[str, dict[str, _ThereAndBack]] = field(default_factory=dict)


def _measure_once(workload: Workload, problem: Problem, mode: Equality) -> _Round:
    base = _load(problem, mode)[1]
    found = _Round(base.stats()["facts"])
    while len(found.materialise) < _ROUNDS and sum(found.materialise) < _LONG:
        start = process_time()
        base.update(algorithm="remat")
        found.materialise.append(process_time() - start)
    if mode != "off":
        _measure_updates(workload, problem, base, mode, found)
    return found


def _load(problem: Problem, mode: Equality) -> tuple[float, KnowledgeBase]:
    """Load and materialise all facts; return the seconds and the knowledge base."""
    base = KnowledgeBase(problem.rules, equality=mode, counters=False)
    gc.collect()
    start = process_time()
    base.load(problem.facts)
    return process_time() - start, base


def _measure_updates(
    workload: Workload,
    problem: Problem,
    base: KnowledgeBase,
    mode: Equality,
    found: _Round,
) -> None:
    for count, only in workload.updates:
        # Drawing a sample scans all facts, and evicts everything from the caches.
        samples = [
            sample(problem, count, seed=seed, only=only)
            for seed in range(_WARM_UPS + _SAMPLES)
        ]
        size = sum(table.num_rows for table in samples[0].values())
        label = f"{size:,} {only or 'facts'}"
        ways = found.updates.setdefault(label, {})
        for its_mode, algorithm in _WAYS:
            if its_mode == mode:
                ways[algorithm] = _there_and_back(base, samples, algorithm)


def _there_and_back(
    base: KnowledgeBase, samples: Sequence[Mapping[str, pa.Table]], algorithm: str
) -> _ThereAndBack:
    """Return the seconds to delete and to insert the facts of each measured sample.

    The first samples are not measured, because they fill caches: code is loaded, and
    the first clique that is split has its names indexed.
    """
    other = "bf" if algorithm == "remat" else algorithm
    count = len(samples) - _WARM_UPS
    if algorithm == "remat":
        # Rematerialising costs the same each time; more samples would only take longer.
        samples, count = samples[:2], 2
    there, back = [], []
    gc.collect()
    gc.freeze()
    for rows in samples:
        gc.collect()
        start = process_time()
        base.update(delete=rows, algorithm=algorithm)
        middle = process_time()
        base.update(insert=rows, algorithm=other)
        there.append(middle - start)
        back.append(process_time() - middle)
    gc.unfreeze()
    return there[-count:], back[-count:]


# ------------------------------------------------------------------------- tables


def tables(found: Found, options: Options) -> list[Table]:
    """Return the figures as tables."""
    del options
    titles = {workload.name: workload.title for workload in WORKLOADS}
    loading = tuple(
        (
            titles[name],
            count_text(measured.explicit),
            count_text(measured.facts["rewrite"]),
            seconds_text(measured.load["rewrite"]),
            seconds_text(measured.load["off"]),
            ratio_text(measured.load["rewrite"], measured.load["off"]),
            seconds_text(measured.load.get("axioms")),
            seconds_text(measured.materialise["rewrite"]),
        )
        for name, measured in found.workloads.items()
    )
    deleting = tuple(
        (
            titles[name],
            label,
            *(seconds_text(times.get(f"{mode} {way}")) for mode, way in _WAYS),
            ratio_text(times["rewrite remat"], times["rewrite bf"]),
        )
        for name, measured in found.workloads.items()
        for label, times in measured.updates.items()
    )
    ways = tuple(f"{mode}, {way}" for mode, way in _WAYS)
    return [
        Table(
            "Loading and materialising with equality",
            (
                "workload",
                "explicit",
                "stored",
                "rewrite",
                "off",
                "rewrite / off",
                "axioms",
                "rewrite, facts read before",
            ),
            loading,
        ),
        Table(
            "Deleting facts with equality",
            ("workload", "deleted", *ways, "remat / bf"),
            deleting,
        ),
        goal_table(found.workloads),
    ]


# ---------------------------------------------------------------------- equality goals

# Goals of equality, computed from the figures of a run.
#
# Each goal is a ratio of two measured times, a time or a speed, with its limit. A goal
# whose workload was not run has no figure.


Line = tuple[str, str, str, str]


@dataclass(slots=True)
class Measured:
    """The figures of one workload.

    Attributes:
        explicit, facts: sizes; the latter in representatives.
        load: seconds to read facts and to materialise them, by mode.
        materialise: seconds for the latter alone, by mode.
        updates: seconds to delete facts, by their number and by mode and algorithm.
        restored: seconds to insert them again, likewise.
    """

    explicit: int
    facts: dict[str, int] = field(default_factory=dict)
    load: dict[str, float] = field(default_factory=dict)
    materialise: dict[str, float] = field(default_factory=dict)
    updates: dict[str, dict[str, float]] = field(default_factory=dict)
    restored: dict[str, dict[str, float]] = field(default_factory=dict)


def goal_table(found: Mapping[str, Measured]) -> Table:
    """Return all goals with their figures."""
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
    speed = measured.explicit / measured.materialise["rewrite"]
    equalities = next(iter(measured.updates.values()))["rewrite bf"]
    return [
        (
            "small cliques: explicit facts materialised in a second",
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
