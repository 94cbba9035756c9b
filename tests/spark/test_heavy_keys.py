"""Joins with a heavy key: the same answers, and no task gets everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from engine_facts import facts_of
from evermat.algebra import Column, Pattern, Query, QuerySet, Views
from evermat.engines import make_engine

if TYPE_CHECKING:
    from evermat.engines.spark.engine import SparkEngine

pytestmark = pytest.mark.spark

HEAVY, ROWS, KEYS = 7, 3000, 200
X, K, Y = Column(0), Column(1), Column(2)
LINKS = [(x, HEAVY if x % 10 else x % KEYS) for x in range(ROWS)]
LABELS = [(k, k + 10**6) for k in range(KEYS)]


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> SparkEngine:
    """An engine for which a hundred rows are many."""
    for name in ("BROADCAST", "SMALL_CHANGE", "FEW", "FEW_ROWS"):
        monkeypatch.setattr(f"evermat.engines.spark.queries.{name}", 10)
    monkeypatch.setattr("evermat.engines.spark.blocks.FEW_ROWS", 10)
    monkeypatch.setattr("evermat.engines.spark.heavy_keys.MANY", 100)
    engine: SparkEngine = make_engine("spark")  # type: ignore[assignment]
    engine.cluster.small = 50
    for name, rows in (("link", LINKS), ("label", LABELS)):
        columns = list(zip(*rows, strict=True))
        engine.load([(name, pa.table({"a": columns[0], "b": columns[1]}))])
    return engine


@pytest.mark.parametrize("turned", [False, True])
def test_rows_of_a_heavy_key_stay_where_they_are(
    spark: SparkEngine, *, turned: bool
) -> None:
    patterns = (Pattern("link", (X, K)), Pattern("label", (K, Y)))
    query = Query(
        Pattern("out", (X, Y)),
        patterns[::-1] if turned else patterns,
        column_count=3,
    )
    views = Views(spark.materialised, spark.materialised)
    assert any("heavy keys apart" in step for step in spark.explain(query, views))
    ((_, plan),) = spark._evaluation.plan([query], views)  # noqa: SLF001
    shares = spark.cluster.collect(
        f"SELECT spark_partition_id() AS task, count(1) AS n FROM ({plan.sql}) "  # noqa: S608
        f"GROUP BY task"
    )["n"].to_pylist()
    assert sum(shares) == ROWS
    assert max(shares) < 0.75 * ROWS
    found = facts_of(spark, spark.derive(QuerySet((query,)), views))
    assert {tuple(c.value for c in row) for _, row in found} == {
        (x, k + 10**6) for x, k in LINKS
    }
