"""`format("evermat")`: states are read, followed and written to by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import evermat

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    from evermat.engines.spark.session import find_session  # noqa: PLC0415  slow
    from evermat.pipeline.data_source import register  # noqa: PLC0415  needs PySpark

    session = find_session().newSession()
    register(session)
    # Spark looks for data sources in the active session, which this makes it.
    session.createDataFrame([], "x int")
    return session


@pytest.fixture
def state(tmp_path: Path) -> str:
    kb = evermat.KnowledgeBase(RULES, state=tmp_path / "state")
    kb.load({"edge": [("a", 1), (1, 2)]})
    return str(tmp_path / "state")


def held(state: str, predicate: str = "reach") -> set[tuple[Any, ...]]:
    return set(evermat.KnowledgeBase.open(state).facts(predicate))


def test_facts_answers_and_versions_are_read(spark: SparkSession, state: str) -> None:
    kb = evermat.KnowledgeBase.open(state)
    version = str(kb.version)
    kb.insert("edge", [(2, 3)])
    read = spark.read.format("evermat")
    answers = read.option("query", "reach(1, ?y)").load(state)
    assert answers.columns == ["y"]
    assert sorted(row["y"] for row in answers.collect()) == [2, 3]
    assert answers.where("y > 2").count() == 1
    old = spark.read.format("evermat").option("version", version)
    assert old.option("query", "reach(1, ?y)").load(state).count() == 1
    feed = spark.read.format("evermat").option("since", version).load(state)
    rows = {(r["sign"], r["predicate"], tuple(r["values"])) for r in feed.collect()}
    assert ("+", "edge", ("2", "3")) in rows
    assert len(rows) == 4


def test_rows_are_written_in_one_commit(spark: SparkSession, state: str) -> None:
    version = evermat.KnowledgeBase.open(state).version
    assert version is not None
    rows = spark.createDataFrame([(2, 3), (3, 4), (4, 5)], "x int, y int")
    rows = rows.repartition(3)
    write = rows.write.format("evermat").option("predicate", "edge")
    write.mode("append").save(state)
    assert (1, 5) in held(state)
    assert evermat.KnowledgeBase.open(state).version == version + 1
    gone = spark.createDataFrame([(2, 3)], "x int, y int").write.format("evermat")
    gone.option("predicate", "edge").option("action", "delete").mode("append").save(
        state
    )
    assert held(state) == {("a", 1), ("a", 2), (1, 2), (3, 4), (3, 5), (4, 5)}
    whole = spark.createDataFrame([(7, 8)], "x int, y int").write.format("evermat")
    whole.option("predicate", "edge").mode("overwrite").save(state)
    assert held(state) == {(7, 8)}


def test_one_state_follows_another_exactly_once(
    spark: SparkSession, state: str, tmp_path: Path
) -> None:
    copy = str(tmp_path / "copy")
    evermat.KnowledgeBase(RULES, state=copy)

    def follow(checkpoint: str) -> None:
        changes = spark.readStream.format("evermat").option("since", "0")
        stream = (
            changes.option("only", "edge").load(state).writeStream.format("evermat")
        )
        stream.option("app_id", "copy").option(
            "checkpointLocation", str(tmp_path / checkpoint)
        ).trigger(availableNow=True).start(copy).awaitTermination()

    follow("checkpoint")
    assert held(copy) == held(state)
    kb = evermat.KnowledgeBase.open(state)
    kb.update(insert={"edge": [(2, "z")]}, delete={"edge": [("a", 1)]})
    follow("checkpoint")
    assert held(copy) == held(state) == {(1, 2), (1, "z"), (2, "z")}
    version = evermat.KnowledgeBase.open(copy).version
    # The stream begins anew and delivers again what the state has seen.
    follow("lost")
    assert evermat.KnowledgeBase.open(copy).version == version
    assert held(copy) == held(state)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"predicate": "p", "query": "p(?x)"}, "leave one of them out"),
        ({"version": "new"}, "it is a version"),
        ({"predicate": "reached"}, "did you mean `reach`"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    spark: SparkSession, state: str, options: dict[str, str], error: str
) -> None:
    with pytest.raises(Exception, match=error):
        spark.read.format("evermat").options(**options).load(state).collect()


def test_rows_of_nothing_and_streams_without_a_name_are_refused(
    spark: SparkSession, state: str, tmp_path: Path
) -> None:
    rows = spark.createDataFrame([(1, 2)], "x int, y int")
    with pytest.raises(Exception, match="what facts rows become"):
        rows.write.format("evermat").mode("append").save(state)
    with pytest.raises(Exception, match="there is no state"):
        rows.write.format("evermat").option("predicate", "edge").mode("append").save(
            str(tmp_path / "nothing")
        )
    stream = spark.readStream.format("evermat").load(state).writeStream
    stream = stream.format("evermat").option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(Exception, match="has no `app_id`"):
        stream.start(state).awaitTermination()
