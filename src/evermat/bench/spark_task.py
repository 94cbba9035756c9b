"""What a measuring process of the suite `spark` does."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from evermat.api import KnowledgeBase
from evermat.bench import spark_baselines as baselines
from evermat.bench.generators import updates
from evermat.bench.generators.graphs import linear_closure
from evermat.bench.generators.ontologies import ontology_rules
from evermat.bench.generators.universities import universities
from evermat.bench.generators.university_triples import (
    triple_rules,
    triples,
    write_triples,
)
from evermat.bench.spark import PUBLISH
from evermat.bench.spark_meter import Meter, start_session
from evermat.engines import make_engine
from evermat.lang.syntax import TRIPLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from evermat.bench.problem import Problem

UNIVERSITIES = 10
UPDATED = 1000
CHAIN = 10
"""Edges of the chain on which the fixed cost of a round is measured."""
FOLDED_TRIPLES = 100_000

CHAIN_RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- edge(?x, ?y), reach(?y, ?z), node(?x), node(?z) .
    far(?x, ?z) :- reach(?x, ?y), edge(?y, ?z), not edge(?x, ?z) .
    reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z), stop(?x) .
"""


def measure_spark(task: dict[str, Any], tell: Callable[..., None]) -> None:
    """Run one part of the suite in a session of its own."""
    session = start_session()
    meter = Meter(session, tell)
    _warm_up(session)
    _PARTS[task["part"]](session, meter, task)
    session.stop()


def _warm_up(session: SparkSession) -> None:
    """Start the workers and load what they need, as every program does once."""
    for spread in (False, True):
        rules = linear_closure(3, 2).rules
        base = _base(session, rules, spread=spread, small=1 if spread else None)
        base.load(linear_closure(40, 80).facts)


def _base(
    session: SparkSession, rules: str, *, spread: bool = False, small: int | None = None
) -> KnowledgeBase:
    """A knowledge base without modules, which the other ways do not have either.

    Args:
        session: where facts are spread.
        rules: the program.
        spread: spread all facts from the first one on.
        small: facts up to which a set of spread facts is on the driver.
    """
    gathered = 0 if spread else None
    engine = make_engine("spark", session=session, gathered=gathered, small=small)
    return KnowledgeBase(rules, engine=engine, modules=False)


# ------------------------------------------------------------------------- closure


def _dag(session: SparkSession, meter: Meter, task: dict[str, Any]) -> None:
    side = sqrt(task["scale"])
    problem = linear_closure(max(3, round(2_000 * side)), max(2, round(20_000 * side)))
    edges = problem.facts["edge"]
    with meter.step("closure") as told:
        match task["by"]:
            case "evermat" | "spread":
                base = _base(session, problem.rules, spread=task["by"] == "spread")
                base.load(problem.facts)
                told["facts"] = base.count("reach")
            case "loop":
                told["facts"] = baselines.closure_by_loop(session, edges)
            case _:
                told["facts"] = baselines.closure_by_recursion(session, edges)


# --------------------------------------------------------------------- universities


def _universities(scale: float) -> Problem:
    if scale >= 1:
        return universities(round(UNIVERSITIES * scale))
    return universities(1, departments=max(1, 20 * UNIVERSITIES * scale))


def _updated(scale: float) -> int:
    return max(1, round(UPDATED * min(1.0, scale)))


def _lubm(session: SparkSession, meter: Meter, task: dict[str, Any]) -> None:
    problem = _universities(task["scale"])
    with TemporaryDirectory(prefix="evermat-bench-") as folder:
        files = write_triples(problem, Path(folder))
        published = Path(folder, "published.parquet")
        if task["by"] == "loop":
            with meter.step(PUBLISH) as told:
                told["facts"], told["rounds"] = baselines.materialise_by_loop(
                    session, problem.rules, files, published
                )
            return
        spread = task["by"] == "spread"
        with meter.step(PUBLISH) as told:
            small = task.get("small")
            base = _base(session, triple_rules(), spread=spread, small=small)
            report = base.load(rdf=files).report
            base.facts(TRIPLE).write(published)
            told["facts"], told["rounds"] = base.stats()["facts"], report.rounds
        if task["updates"]:
            _update(base, meter, problem, _updated(task["scale"]))


def _update(base: KnowledgeBase, meter: Meter, problem: Problem, count: int) -> None:
    # The first deletion has Spark compile what it needs, as loading did for starting
    # again: only then is one compared with the other.
    others = triples(updates.sample(problem, count, seed=2))
    with meter.step("first delete") as told:
        report = base.delete(TRIPLE, others).report
        told["rounds"], told["algorithm"] = report.rounds, report.algorithm
    base.insert(TRIPLE, others)
    rows = triples(updates.sample(problem, count, seed=1))
    with meter.step("delete") as told:
        report = base.delete(TRIPLE, rows).report
        told["rounds"], told["algorithm"] = report.rounds, report.algorithm
    with meter.step("reinsert") as told:
        report = base.insert(TRIPLE, rows).report
        told["rounds"], told["algorithm"] = report.rounds, report.algorithm
    with meter.step("rematerialise") as told:
        report = base.materialise().report
        told["rounds"], told["algorithm"] = report.rounds, report.algorithm


# ------------------------------------------------------------------ rules and rounds


def _folded(session: SparkSession, meter: Meter, task: dict[str, Any]) -> None:
    size = max(100, round(FOLDED_TRIPLES * task["scale"]))
    for spread in (False, True):
        for rules in (100, 1000):
            problem = ontology_rules(rules, size)
            base = _base(session, problem.rules, spread=spread)
            with meter.step("folded", rules=rules, spread=spread) as told:
                report = base.load(problem.facts).report
                told["rounds"], told["facts"] = report.rounds, base.stats()["facts"]


def _tiny(session: SparkSession, meter: Meter, task: dict[str, Any]) -> None:
    del task  # tiny data are tiny at every scale
    facts = {
        "edge": [(number, number + 1) for number in range(CHAIN)],
        "node": [(number,) for number in range(CHAIN + 1)],
        "stop": [(0,)],
    }
    for name, spread, small in (
        ("gathered", False, None),
        ("spread, small sets on the driver", True, None),
        ("spread, all on the cluster", True, 0),
    ):
        base = _base(session, CHAIN_RULES, spread=spread, small=small)
        with meter.step(name) as told:
            told["rounds"] = base.load(facts).report.rounds


_PARTS: dict[str, Callable[[SparkSession, Meter, dict[str, Any]], None]] = {
    "dag": _dag,
    "lubm": _lubm,
    "folded": _folded,
    "tiny": _tiny,
}
