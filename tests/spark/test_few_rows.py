"""Plans that read few rows: one stage of one task, and nothing is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from evermat.engines import make_engine
from evermat.engines.spark import blocks, row_keys
from evermat.engines.spark.session import FOR_FEW_ROWS

if TYPE_CHECKING:
    from evermat.engines.spark.blocks import Block
    from evermat.engines.spark.engine import SparkEngine

pytestmark = pytest.mark.spark

JOIN = (
    "SELECT /*+ SHUFFLE_HASH(r) */ l.tag, l.c0, r.c1 FROM {0} l JOIN {0} r "
    "ON l.c1 = r.c0"
)


@pytest.fixture
def engine() -> SparkEngine:
    return make_engine("spark")  # type: ignore[return-value]


def written(engine: SparkEngine, sql: str | None = None) -> Block:
    cluster = engine.cluster
    if sql is None:
        numbers = list(range(20))
        table = pa.table({"tag": [0] * 20, "c0": numbers, "c1": numbers})
        sql = f"SELECT * FROM {cluster.register_table(table)}"  # noqa: S608
    return cluster.checkpoint(sql, 2, {0})


def plan_of(engine: SparkEngine, sql: str) -> str:
    explained = engine.cluster.session.sql(f"EXPLAIN {sql}").collect()
    return str(explained[0][0])


def test_few_rows_are_not_shuffled_although_nobody_read_them(
    engine: SparkEngine,
) -> None:
    block = written(engine)
    block = written(engine, JOIN.format(block.view))
    with engine.cluster.for_few_rows():
        assert "Exchange" not in plan_of(engine, JOIN.format(block.view))
    assert block.size == 20


def test_settings_for_few_rows_do_not_stay(engine: SparkEngine) -> None:
    session = engine.cluster.session
    before = {name: session.conf.get(name) for name in FOR_FEW_ROWS}
    block = written(engine)
    engine.cluster.collect(f"TABLE {block.view}")
    with pytest.raises(RuntimeError), engine.cluster.for_few_rows():
        raise RuntimeError
    assert {name: session.conf.get(name) for name in FOR_FEW_ROWS} == before


@pytest.mark.parametrize("most_listed", [0, 100])
def test_keys_are_found_however_they_are_sent(
    engine: SparkEngine, monkeypatch: pytest.MonkeyPatch, most_listed: int
) -> None:
    monkeypatch.setattr(row_keys, "MOST_LISTED", most_listed)
    monkeypatch.setattr(blocks, "FEW_ROWS", most_listed)
    block = written(engine)
    keys = pa.array([3, 7, 50], pa.int64()).to_numpy()
    sql = f"SELECT *, c0 AS key FROM {block.view}"  # noqa: S608
    found = row_keys.fetch(engine.cluster, sql, ["c0"], keys)
    assert sorted(found["c0"].to_pylist()) == [3, 7]
    assert row_keys.fetch(engine.cluster, sql, ["c0"], keys, most=1).num_rows == 1
