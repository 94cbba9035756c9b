"""The task of a measuring process of the suite `spark`."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

from evermat.api import KnowledgeBase
from evermat.bench.generators.graphs import linear_closure
from evermat.bench.generators.ontologies import ontology_rules
from evermat.bench.generators.problem import sample
from evermat.bench.generators.universities import (
    triple_rules,
    triples,
    universities,
    write_triples,
)
from evermat.bench.spark import PUBLISH
from evermat.engines import make_engine
from evermat.engines.spark.session import LOCAL_SETTINGS
from evermat.lang.lexer import RDF_TYPE
from evermat.lang.normalise import normalise
from evermat.lang.parser import parse_program
from evermat.lang.syntax import TRIPLE, Term, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from evermat.bench.generators.problem import Problem
    from evermat.lang.syntax import Atom, Rule


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
    """Start the workers and load their libraries, as every program does once."""
    for spread in (False, True):
        rules = linear_closure(3, 2).rules
        base = _base(session, rules, spread=spread, small=1 if spread else None)
        base.load(linear_closure(40, 80).facts)


def _base(
    session: SparkSession, rules: str, *, spread: bool = False, small: int | None = None
) -> KnowledgeBase:
    """Return a knowledge base without modules, which the baselines do not have either.

    Args:
        session: the session of distributed facts.
        rules: the program.
        spread: whether to distribute all facts from the first one on.
        small: the size up to which a distributed set is kept on the driver.
    """
    driver_facts = 0 if spread else None
    engine = make_engine(
        "spark", session=session, driver_facts=driver_facts, small=small
    )
    return KnowledgeBase(rules, engine=engine, modules=False)


# ------------------------------------------------------------------------- closure


def _dag(session: SparkSession, meter: Meter, task: dict[str, Any]) -> None:
    side = sqrt(task["scale"])
    problem = linear_closure(max(3, round(2_000 * side)), max(2, round(20_000 * side)))
    edges = problem.facts["edge"]
    with meter.step("closure") as record:
        match task["by"]:
            case "evermat" | "spread":
                base = _base(session, problem.rules, spread=task["by"] == "spread")
                base.load(problem.facts)
                record["facts"] = base.count("reach")
            case "loop":
                record["facts"] = closure_by_loop(session, edges)
            case _:
                record["facts"] = closure_by_recursion(session, edges)


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
            with meter.step(PUBLISH) as record:
                record["facts"], record["rounds"] = materialise_by_loop(
                    session, problem.rules, files, published
                )
            return
        spread = task["by"] == "spread"
        with meter.step(PUBLISH) as record:
            small = task.get("small")
            base = _base(session, triple_rules(), spread=spread, small=small)
            report = base.load(rdf=files).report
            base.facts(TRIPLE).write(published)
            record["facts"], record["rounds"] = base.stats()["facts"], report.rounds
        if task["updates"]:
            _update(base, meter, problem, _updated(task["scale"]))


def _update(base: KnowledgeBase, meter: Meter, problem: Problem, count: int) -> None:
    # The first deletion compiles its stages, as loading did for rematerialisation: only
    # after that are the two comparable.
    others = triples(sample(problem, count, seed=2))
    with meter.step("first delete") as record:
        report = base.delete(TRIPLE, others).report
        record["rounds"], record["algorithm"] = report.rounds, report.algorithm
    base.insert(TRIPLE, others)
    rows = triples(sample(problem, count, seed=1))
    with meter.step("delete") as record:
        report = base.delete(TRIPLE, rows).report
        record["rounds"], record["algorithm"] = report.rounds, report.algorithm
    with meter.step("reinsert") as record:
        report = base.insert(TRIPLE, rows).report
        record["rounds"], record["algorithm"] = report.rounds, report.algorithm
    with meter.step("rematerialise") as record:
        report = base.materialise().report
        record["rounds"], record["algorithm"] = report.rounds, report.algorithm


# ------------------------------------------------------------------ rules and rounds


def _folded(session: SparkSession, meter: Meter, task: dict[str, Any]) -> None:
    size = max(100, round(FOLDED_TRIPLES * task["scale"]))
    for spread in (False, True):
        for rules in (100, 1000):
            problem = ontology_rules(rules, size)
            base = _base(session, problem.rules, spread=spread)
            with meter.step("folded", rules=rules, spread=spread) as record:
                report = base.load(problem.facts).report
                record["rounds"], record["facts"] = report.rounds, base.stats()["facts"]


def _tiny(session: SparkSession, meter: Meter, task: dict[str, Any]) -> None:
    del task  # tiny data are tiny at every scale
    facts = {
        "edge": [(number, number + 1) for number in range(CHAIN)],
        "node": [(number,) for number in range(CHAIN + 1)],
        "stop": [(0,)],
    }
    for name, spread, small in (
        ("on the driver", False, None),
        ("spread, small sets on the driver", True, None),
        ("spread, all on the cluster", True, 0),
    ):
        base = _base(session, CHAIN_RULES, spread=spread, small=small)
        with meter.step(name) as record:
            record["rounds"] = base.load(facts).report.rounds


_PARTS: dict[str, Callable[[SparkSession, Meter, dict[str, Any]], None]] = {
    "dag": _dag,
    "lubm": _lubm,
    "folded": _folded,
    "tiny": _tiny,
}


# --------------------------------------------------------------------- spark baselines

# Baselines written by hand: loops over data frames, and Spark's own recursion.


_LINE = r"^(\\S+) (\\S+) (.*) \\.$"
"""A line of N-Triples, as a string in SQL."""

RECURSION = """
    WITH RECURSIVE reach(source, target) AS (
        SELECT source, target FROM edge
        UNION ALL
        SELECT reach.source, edge.target
        FROM reach JOIN edge ON reach.target = edge.source
    )
    SELECT count(*) AS n FROM (SELECT DISTINCT * FROM reach)
"""


def closure_by_loop(session: SparkSession, edges: pa.Table) -> int:
    """Extend paths by one edge per round, until there is no new pair."""
    edge = session.createDataFrame(edges).localCheckpoint()
    step = session.createDataFrame(edges.rename_columns(["target", "end"]))
    reach = delta = edge
    while not delta.isEmpty():
        found = delta.join(step, "target").selectExpr("source", "end AS target")
        delta = (
            found.distinct()
            .join(reach, ["source", "target"], "left_anti")
            .localCheckpoint()
        )
        reach = reach.union(delta).localCheckpoint()
    return reach.count()


def closure_by_recursion(session: SparkSession, edges: pa.Table) -> int:
    """Use `WITH RECURSIVE`, which keeps duplicates: Spark has no other mode so far."""
    session.createDataFrame(edges).createOrReplaceTempView("edge")
    return int(session.sql(RECURSION).collect()[0]["n"])


def materialise_by_loop(
    session: SparkSession, text: str, files: Sequence[Path], published: Path
) -> tuple[int, int]:
    """Evaluate all rules in one union per round, over one frame of all facts.

    The frame has the name of the predicate as `p` and two columns for arguments.
    Negation and built-ins are not supported, as they are not needed here.

    Returns:
        The number of facts, and the number of rounds.
    """
    rules = normalise(parse_program(text).rules)
    facts = _read_triples(session, files).localCheckpoint()
    delta, rounds = facts, 0
    while not delta.isEmpty():
        rounds += 1
        parts = [
            _matches(rule, place, delta, facts)
            for rule in rules
            for place in range(len(list(rule.positive_atoms())))
        ]
        found = reduce(lambda left, right: left.union(right), parts)
        delta = (
            found.distinct()
            .join(facts, ["p", "a0", "a1"], "left_anti")
            .localCheckpoint()
        )
        facts = facts.union(delta).localCheckpoint()
    facts.write.partitionBy("p").parquet(str(published))
    return facts.count(), rounds


def _read_triples(session: SparkSession, files: Sequence[Path]) -> DataFrame:
    """Read N-Triples as facts: types are classes, the rest are properties."""
    lines = session.read.text([str(file) for file in files])
    parts = [f"regexp_extract(value, '{_LINE}', {group})" for group in (1, 2, 3)]
    triples = lines.selectExpr(
        *(f"{e} AS {n}" for e, n in zip(parts, "spo", strict=True))
    )
    is_type = f"p = '<{RDF_TYPE.text}>'"
    name = f"regexp_extract(if({is_type}, o, p), '([^/>]+)>$', 1)"
    return triples.selectExpr(
        f"{name} AS p", "s AS a0", f"if({is_type}, '', o) AS a1"
    ).distinct()


def _matches(rule: Rule, place: int, delta: DataFrame, facts: DataFrame) -> DataFrame:
    """Return the facts that a rule derives if one of its atoms reads new facts."""
    frames = [
        _atom(atom, delta if at == place else facts)
        for at, atom in enumerate(rule.positive_atoms())
    ]
    joined = frames[0]
    for frame in frames[1:]:
        shared = [name for name in frame.columns if name in joined.columns]
        joined = joined.join(frame, shared) if shared else joined.crossJoin(frame)
    values = [_value(argument) for argument in rule.head.arguments]
    values += ["''"] * (2 - len(values))
    return joined.selectExpr(
        f"'{rule.head.predicate}' AS p", f"{values[0]} AS a0", f"{values[1]} AS a1"
    )


def _atom(atom: Atom, frame: DataFrame) -> DataFrame:
    chosen = frame.where(f"p = '{atom.predicate}'")
    columns: dict[str, str] = {}
    for at, argument in enumerate(atom.arguments):
        if isinstance(argument, Variable) and argument.name not in columns:
            columns[argument.name] = f"a{at}"
        else:
            value = _value(argument)
            known = columns.get(value.strip("`")[1:])
            chosen = chosen.where(f"a{at} = {known or value}")
    return chosen.selectExpr(*(f"{at} AS `v{name}`" for name, at in columns.items()))


def _value(argument: object) -> str:
    if isinstance(argument, Variable):
        return f"`v{argument.name}`"
    if isinstance(argument, Term):
        return f"'{argument.constant.text}'"
    message = f"`{argument}` is no plain argument"
    raise TypeError(message)


# ------------------------------------------------------------------------- spark meter

# Spark's figures about its own work: jobs, bytes shuffled, memory.
#
# They are read from the address of its web interface; nothing is added to the session
# that could slow it down.


MASTER = "local[2]"
MEMORY = "1g"
"""The memory of an executor, which is the driver of a local session."""

SETTINGS = {
    **LOCAL_SETTINGS,
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.ui.retainedJobs": "1000000",
    "spark.ui.retainedStages": "1000000",
    "spark.driver.memory": MEMORY,
    "spark.pyspark.python": sys.executable,
    "spark.sql.cteRecursionLevelLimit": "1000",
    "spark.sql.cteRecursionRowLimit": "-1",
}


def start_session() -> SparkSession:
    """Start a session on two cores with executors of a gigabyte."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  slow, and optional

    builder = SparkSession.builder.master(MASTER).appName("evermat bench")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@dataclass(frozen=True, slots=True)
class Work:
    """The work of Spark since it was started."""

    jobs: int
    shuffled: int
    spilled: int
    peak_heap: int


class Meter:
    """Measures steps on a session."""

    def __init__(self, session: SparkSession, tell: Callable[..., None]) -> None:
        context = session.sparkContext
        self._address = (
            f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"
        )
        self._tell = tell

    def work(self) -> Work:
        """Return the work done so far."""
        stages = self._ask("stages")
        executors = self._ask("executors")
        peaks = [each.get("peakMemoryMetrics", {}) for each in executors]
        return Work(
            jobs=len(self._ask("jobs")),
            shuffled=sum(stage["shuffleWriteBytes"] for stage in stages),
            spilled=sum(stage["diskBytesSpilled"] for stage in stages),
            peak_heap=max((each.get("JVMHeapMemory", 0) for each in peaks), default=0),
        )

    def _ask(self, what: str) -> list[dict[str, Any]]:
        with urlopen(f"{self._address}/{what}", timeout=60) as answer:  # noqa: S310
            found: list[dict[str, Any]] = json.load(answer)
        return found

    @contextmanager
    def step(self, name: str, **fields: object) -> Iterator[dict[str, object]]:
        """Measure a block; entries of the dictionary are reported as well."""
        more: dict[str, object] = dict(fields)
        before, start = self.work(), perf_counter()
        yield more
        seconds, after = perf_counter() - start, self.work()
        self._tell(
            "step",
            step=name,
            seconds=seconds,
            jobs=after.jobs - before.jobs,
            shuffled=after.shuffled - before.shuffled,
            spilled=after.spilled - before.spilled,
            peak_heap=after.peak_heap,
            **more,
        )
