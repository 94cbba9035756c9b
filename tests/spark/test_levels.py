"""What Spark knows about written rows: where they are, how they are divided."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine_facts import facts_of, make_facts, tables
from evermat.algebra import Column, Pattern, Query, QuerySet, Role, Views
from evermat.engines import make_engine
from evermat.engines.spark import blocks
from evermat.engines.spark.checkpoint_place import require_place
from evermat.engines.spark.rows import block_rows, concatenated, repartitioned
from evermat.engines.spark.session import written_down
from evermat.engines.spark.sets import FEW_TINY_LEVELS

if TYPE_CHECKING:
    from evermat.engines.spark.blocks import Block
    from evermat.engines.spark.engine import SparkEngine

pytestmark = pytest.mark.spark


@pytest.fixture
def spark() -> SparkEngine:
    engine: SparkEngine = make_engine("spark")  # type: ignore[assignment]
    return engine


def plan_of(spark: SparkEngine, sql: str) -> str:
    """Spark's plan for a query, without what is below the cache."""
    plan = str(spark.cluster.session.sql(f"EXPLAIN {sql}").collect()[0][0])
    return "\n".join(line for line in plan.splitlines() if "ExistingRDD" not in line)


def written(spark: SparkEngine, start: int) -> Block:
    """Rows that are divided by all columns."""
    rows = f"SELECT id % 3 AS tag, id AS c0 FROM range({start}, {start + 20})"  # noqa: S608
    sql = f"SELECT * FROM ({rows}) DISTRIBUTE BY tag, c0"  # noqa: S608
    return spark.cluster.checkpoint(sql, 1, range(3))


def test_rows_that_a_plan_names_twice_are_read_from_the_cache(
    spark: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "FEW_ROWS", -1)
    view = written(spark, 0).view
    sides = (f"(SELECT tag FROM {view} WHERE c0 = {number})" for number in (1, 2))  # noqa: S608
    plan = plan_of(spark, f"SELECT * FROM {' JOIN '.join(sides)} USING (tag)")  # noqa: S608
    assert plan.count("InMemoryTableScan") == 2


def test_rows_that_are_divided_alike_are_merged_where_they_are(
    spark: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [block_rows(written(spark, start)) for start in (0, 20, 40)]
    asked: list[str] = []
    checkpoint = spark.cluster.checkpoint

    def remember(sql: str, *more: object) -> Block:
        asked.append(sql)
        return checkpoint(sql, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(spark.cluster, "checkpoint", remember)
    assert repartitioned(concatenated(parts)).size == 60
    assert "Exchange" not in plan_of(spark, asked[0])


def test_what_rules_derive_stays_divided(spark: SparkEngine) -> None:
    spark.cluster.small = 0
    spark.load(tables(make_facts(e=[(n, n + 1) for n in range(8)], p=[(1, 2)])))
    x, y = Column(0), Column(1)
    queries = QuerySet(
        (
            Query(Pattern("p", (x, y)), (Pattern("e", (x, y), Role.ALL),)),
            Query(Pattern("q", (y, x)), (Pattern("e", (x, y), Role.ALL),)),
        )
    )
    counts = spark.derive_counts(queries, Views(spark.materialised, spark.materialised))
    new = spark.settle(counts.facts - spark.materialised)
    assert new.size() == 15
    keys = "tag, c0, c1"
    sql = f"SELECT {keys} FROM {new.block.view} GROUP BY {keys}"  # noqa: S608
    assert "Exchange" not in plan_of(spark, sql)


def test_tiny_levels_are_merged_when_there_are_a_dozen(spark: SparkEngine) -> None:
    spark.cluster.small = 0
    for number in range(FEW_TINY_LEVELS + 1):
        assert len(spark.materialised.heap.contents.levels) == number
        spark.load(tables(make_facts(e=[(number, number)])))
    assert len(spark.materialised.heap.contents.levels) == 1
    facts = make_facts(e=[(number, number) for number in range(FEW_TINY_LEVELS + 1)])
    assert facts_of(spark, spark.materialised) == facts


@pytest.mark.parametrize(
    ("master", "files"),
    [
        ("local", 0),
        ("local[*]", 0),
        ("local[2,3]", 0),
        ("local-cluster[2,1,1024]", 1),
        ("spark://localhost:7077", 1),
        ("yarn", 1),
    ],
)
def test_files_are_for_all_only_where_executors_can_be_lost(
    spark: SparkEngine, monkeypatch: pytest.MonkeyPatch, master: str, files: int
) -> None:
    frame = spark.cluster.session.range(5)
    context = frame.sparkSession.sparkContext
    place = require_place(frame.sparkSession, is_local=True)
    folder = Path(place.removeprefix("file:"))
    before = set(folder.iterdir())
    monkeypatch.setattr(context, "master", master)
    kept = written_down(frame)
    assert kept.count() == 5
    assert len(set(folder.iterdir()) - before) == files


def test_new_relations_are_not_compared_with_others(spark: SparkEngine) -> None:
    spark.cluster.small = 0
    spark.load(tables(make_facts(e=[(1, 2), (2, 3)])))
    before = spark.cluster.jobs
    spark.load(tables(make_facts(p=[(1,), (2,)])))
    # One job writes them; nothing has to be asked, as there is no such fact so far.
    assert spark.cluster.jobs == before + 1
    facts = make_facts(e=[(1, 2), (2, 3)], p=[(1,), (2,)])
    assert facts_of(spark, spark.materialised) == facts
