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
from evermat.bench.spark_meter import Meter, start_session

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
    kb = KnowledgeBase(
        linear_closure(3, 2).rules, engine="spark", spark=session, modules=False
    )
    engine = kb._engine  # noqa: SLF001  the threshold is no setting of its own
    small, engine.cluster.small = engine.cluster.small, 1  # type: ignore[attr-defined]
    kb.load(linear_closure(40, 80).facts)
    engine.cluster.small = small  # type: ignore[attr-defined]


def _spark_base(session: SparkSession, rules: str) -> KnowledgeBase:
    return KnowledgeBase(rules, engine="spark", spark=session, modules=False)


# ------------------------------------------------------------------------- closure


def _dag(session: SparkSession, meter: Meter, task: dict[str, Any]) -> None:
    side = sqrt(task["scale"])
    problem = linear_closure(max(3, round(2_000 * side)), max(2, round(20_000 * side)))
    edges = problem.facts["edge"]
    with meter.step("closure") as told:
        match task["by"]:
            case "evermat":
                base = _spark_base(session, problem.rules)
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
        if task["by"] == "loop":
            with meter.step("materialise and publish") as told:
                facts = baselines.materialise_by_loop(session, problem)
                told["facts"] = facts.count()
                facts.write.partitionBy("p").parquet(str(Path(folder, "published")))
            return
        with meter.step("materialise and publish") as told:
            base = _spark_base(session, problem.rules)
            report = base.load(problem.facts).report
            told["facts"] = base.stats()["facts"]
            told["rounds"] = report.rounds
            for name in base.predicates:
                base.facts(name).write(Path(folder, f"{name}.parquet"))
        if not task["updates"]:
            return
        rows = updates.sample(problem, _updated(task["scale"]), seed=1)
        with meter.step("delete") as told:
            report = base.update(delete=rows).report
            told["rounds"], told["algorithm"] = report.rounds, report.algorithm
        with meter.step("reinsert") as told:
            report = base.update(insert=rows).report
            told["rounds"], told["algorithm"] = report.rounds, report.algorithm
        with meter.step("rematerialise") as told:
            told["rounds"] = base.materialise().report.rounds


# ------------------------------------------------------------------ rules and rounds


def _folded(session: SparkSession, meter: Meter, task: dict[str, Any]) -> None:
    triples = max(100, round(FOLDED_TRIPLES * task["scale"]))
    for rules in (100, 1000):
        problem = ontology_rules(rules, triples)
        with meter.step("folded", rules=rules) as told:
            base = _spark_base(session, problem.rules)
            report = base.load(problem.facts).report
            told["rounds"], told["facts"] = report.rounds, base.stats()["facts"]


def _tiny(session: SparkSession, meter: Meter, task: dict[str, Any]) -> None:
    del task  # tiny data are tiny at every scale
    facts = {
        "edge": [(number, number + 1) for number in range(CHAIN)],
        "node": [(number,) for number in range(CHAIN + 1)],
        "stop": [(0,)],
    }
    for name, small in (("on the driver", None), ("on the cluster", 0)):
        base = _spark_base(session, CHAIN_RULES)
        engine = base._engine  # noqa: SLF001  see above
        if small is not None:
            engine.cluster.small = small  # type: ignore[attr-defined]
        with meter.step(name) as told:
            told["rounds"] = base.load(facts).report.rounds


_PARTS: dict[str, Callable[[SparkSession, Meter, dict[str, Any]], None]] = {
    "dag": _dag,
    "lubm": _lubm,
    "folded": _folded,
    "tiny": _tiny,
}
