"""Measures every algorithm on a user's own program, facts and updates.

Each way has a knowledge base of its own, which applies all updates in order. All must
have the same numbers of facts after each of them; disagreements are reported. Times are
processor times.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from time import process_time
from typing import TYPE_CHECKING, Any

from evermat.api import KnowledgeBase
from evermat.bench.processes import say
from evermat.bench.report import (
    Table,
    count_text,
    megabytes_text,
    ratio_text,
    seconds_text,
)
from evermat.engines import make_engine
from evermat.errors import EvermatError
from evermat.maintenance.algorithms import INCREMENTAL
from evermat.maintenance.counting import Kept
from evermat.maintenance.limits import Budget

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evermat.algebra import Engine
    from evermat.kb.inputs import RuleInput

WAYS = ("default", "remat", "counting", "dred", "dred-c", "bf", "bf-c", "fp")
"""Default settings, and each algorithm with the counters that it reads."""


@dataclass(frozen=True, slots=True)
class OwnUpdate:
    """An update by name, as arguments of `KnowledgeBase.update`."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One update in one way.

    Attributes:
        ending: why there is no time, or nothing.
    """

    update: str
    way: str
    seconds: float | None = None
    removed: int = 0
    added: int = 0
    facts: int = 0
    instances: int = 0
    algorithm: str = ""
    ending: str = ""


@dataclass(slots=True)
class Found:
    """All figures.

    Attributes:
        loading: for each way the seconds to load, facts and bytes.
        steps: the updates.
        disagreements: updates after which two ways have different numbers of facts.
    """

    loading: dict[str, dict[str, float]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)


def measure_own(
    rules: Sequence[RuleInput],
    facts: Mapping[str, Any],
    updates: Sequence[OwnUpdate],
    *,
    ways: Iterable[str] = WAYS,
    time_limit: float = 300.0,
) -> Found:
    """Apply the updates in every way.

    Args:
        rules: the program.
        facts: the facts to load, by predicate.
        updates: the changes after that, in order.
        ways: some of `WAYS`.
        time_limit: seconds for one update; a way that needs more is abandoned.

    Raises:
        EvermatError: the program or its facts are not valid.
    """
    found = Found()
    budget = Budget(seconds=time_limit)
    _loaded(rules, facts, "default", budget)  # loads what a first use needs
    for way in ways:
        say(f"{way} …")
        try:
            base, loading = _loaded(rules, facts, way, budget)
        except EvermatError as error:
            found.steps += [Step(each.name, way, ending="n/a") for each in updates]
            say(f"  {error.message}")
            continue
        found.loading[way] = loading
        found.steps += _gone_through(base, way, updates)
    found.disagreements = list(_disagreements(found.steps))
    return found


def _loaded(
    rules: Sequence[RuleInput], facts: Mapping[str, Any], way: str, budget: Budget
) -> tuple[KnowledgeBase, dict[str, float]]:
    times: list[float] = []
    while len(times) < _LOADS and sum(times) < _LONG:
        base, engine = _empty(rules, way, budget)
        gc.collect()
        start = process_time()
        base.load(facts)
        times.append(process_time() - start)
    return base, {
        "seconds": min(times),
        "facts": base.stats()["facts"],
        "bytes": sum(each["bytes"] for each in engine.statistics().values()),
    }


_LOADS = 3
_LONG = 1.0
"""Seconds of loading after which it is not repeated."""


def _empty(
    rules: Sequence[RuleInput], way: str, budget: Budget
) -> tuple[KnowledgeBase, Engine]:
    engine = make_engine("embedded")
    algorithm = INCREMENTAL.get(way)
    if way == "default":
        base = KnowledgeBase(rules, engine=engine, budget=budget)
    else:
        kept = Kept.NONE if algorithm is None else algorithm.needs
        base = KnowledgeBase(
            rules,
            engine=engine,
            modules=False,
            counters=kept.setting,
            algorithm=way,
            budget=budget,
        )
    return base, engine


def _gone_through(
    base: KnowledgeBase, way: str, updates: Sequence[OwnUpdate]
) -> list[Step]:
    steps: list[Step] = []
    algorithm = "auto" if way == "default" else way
    for at, update in enumerate(updates):
        gc.collect()
        start = process_time()
        try:
            change = base.update(**update.arguments, algorithm=algorithm)
        except EvermatError as error:
            say(f"  {update.name}: {error.message}")
            rest = [Step(each.name, way, ending="given up") for each in updates[at:]]
            return steps + rest
        report = change.report
        steps.append(
            Step(
                update.name,
                way,
                process_time() - start,
                report.removed,
                report.added,
                base.stats()["facts"],
                report.forward_instances + report.backward_instances,
                report.algorithm,
            )
        )
    return steps


def _disagreements(steps: Iterable[Step]) -> Iterable[str]:
    first: dict[str, Step] = {}
    for step in steps:
        if step.seconds is None:
            continue
        other = first.setdefault(step.update, step)
        if other.facts != step.facts:
            yield (
                f"after {step.update}, `{step.way}` has {step.facts:,} facts and "
                f"`{other.way}` {other.facts:,}"
            )


# -------------------------------------------------------------------------- tables

_LAZY = (
    "With default settings, closures that no rule reads are written out only when they "
    "are read."
)


def tables(found: Found) -> list[Table]:
    """Return the figures as tables."""
    ways = list(dict.fromkeys(step.way for step in found.steps))
    ways = ways or list(found.loading)
    loading = [
        (
            way,
            seconds_text(numbers["seconds"]),
            count_text(numbers["facts"]),
            megabytes_text(numbers["bytes"] / 1e6),
        )
        for way, numbers in found.loading.items()
    ]
    rows = []
    for name in dict.fromkeys(step.update for step in found.steps):
        mine = {step.way: step for step in found.steps if step.update == name}
        known = [s for s in mine.values() if s.seconds is not None]
        one = known[0] if known else None
        others = [s.seconds for s in known if s.way != "default"]
        default = mine["default"].seconds if "default" in mine else None
        rows.append(
            (
                name,
                "–" if one is None else f"-{one.removed:,} +{one.added:,}",
                *(_cell(mine.get(way)) for way in ways),
                ratio_text(default, min(filter(None, others), default=None)),
            )
        )
    return [
        Table(
            "Loading",
            ("way", "seconds", "facts", "memory of facts"),
            tuple(loading),
            (_LAZY,),
        ),
        Table(
            "Updates",
            ("update", "change", *ways, "default / best"),
            tuple(rows),
            tuple(found.disagreements) or ("All ways agree on the numbers of facts.",),
        ),
    ]


def _cell(step: Step | None) -> str:
    if step is None:
        return "–"
    return step.ending or seconds_text(step.seconds)
