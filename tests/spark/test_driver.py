"""What stays on the driver, and what is asked of the cluster in one go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import evermat
from engine_facts import facts_of, make_facts, stored_counts, tables
from evermat.engines import make_engine

if TYPE_CHECKING:
    from evermat.engines.spark.engine import SparkEngine

pytestmark = pytest.mark.spark

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) .
    label(?x, ?t) :- reach(?x, ?y), name(?y, ?n), ?t = concat(?n, "!"), not shut(?y) .
"""


@pytest.fixture
def spark() -> SparkEngine:
    engine: SparkEngine = make_engine("spark")  # type: ignore[assignment]
    return engine


def test_small_programs_and_their_updates_need_no_job(spark: SparkEngine) -> None:
    spark.cluster.small = 1_000
    names = [(number, f"n{number}") for number in range(8)]
    found = {}
    for engine in (spark, "embedded"):
        kb = evermat.KnowledgeBase(RULES, engine=engine, modules=False)
        kb.load({"edge": [(n, n + 1) for n in range(7)], "name": names, "shut": [(3,)]})
        kb.delete("edge", [(2, 3)])
        kb.insert("edge", [(1, 4), (2**40, 3)])
        found[kb.engine] = {
            predicate: sorted(kb.counters(predicate), key=str)
            for predicate in kb.predicates
        }
        kb.query("label(?x, ?t)")
    assert found["spark"] == found["embedded"]
    assert spark.cluster.jobs == 0


def test_small_relations_stay_on_the_driver_beside_large_ones(
    spark: SparkEngine,
) -> None:
    spark.cluster.small = 10
    facts = make_facts(a=[(n,) for n in range(3)], b=[(n,) for n in range(9)])
    spark.load(tables(facts))
    contents = spark.materialised.heap.contents
    assert contents.local is not None
    assert set(contents.local.sizes) == {spark.cluster.tag("a")}
    assert facts_of(spark, spark.materialised) == facts
    assert set(stored_counts(spark).values()) == {(1, 0)}


def test_what_is_stored_about_a_few_facts_is_asked_once(
    spark: SparkEngine,
) -> None:
    spark.cluster.small = 4
    spark.load(tables(make_facts(e=[(n, n + 1) for n in range(20)])))
    rows = spark.intern("e", pa.table({"x": [3, 50], "y": [4, 51]}))
    before = spark.cluster.jobs
    held = spark.settle(rows & (spark.materialised | spark.explicit))
    new = spark.settle(rows - spark.materialised)
    counted = spark.nonrecursive_counts.positive(rows)
    zero = spark.recursive_counts.zero(rows)
    assert facts_of(spark, held) == facts_of(spark, counted) == make_facts(e=[(3, 4)])
    assert facts_of(spark, new) == make_facts(e=[(50, 51)])
    assert zero.size() == 2
    # Whether they hold, whether they were given, and both counts: all in one go.
    assert spark.cluster.jobs - before == 1
    assert spark.recursive_counts.positive(rows).is_empty()
    assert spark.settle(rows & spark.materialised).size() == 1
    assert spark.cluster.jobs - before == 1


def test_what_left_since_it_was_looked_up_is_not_found_again(
    spark: SparkEngine,
) -> None:
    spark.cluster.small = 4
    spark.load(tables(make_facts(e=[(n, n + 1) for n in range(20)])))
    rows = spark.find("e", pa.table({"x": [3, 5], "y": [4, 6]}))
    gone = spark.find("e", pa.table({"x": [3], "y": [4]}))
    none, before = spark.no_facts(), spark.cluster.jobs
    spark.begin()
    spark.nonrecursive_counts.subtract(spark.once(gone))
    spark.commit(deleted=gone, added=none, explicit_removed=gone, explicit_added=none)
    left = spark.settle(rows & (spark.materialised | spark.explicit))
    assert facts_of(spark, left) == make_facts(e=[(5, 6)])
    assert spark.nonrecursive_counts.positive(rows).size() == 1
    assert spark.cluster.jobs == before


def test_results_go_to_spark(spark: SparkEngine) -> None:
    kb = evermat.KnowledgeBase("p(1, 'a') . p(2, 'b') .", engine=spark)
    frame = kb.facts("p").to_spark(spark.cluster.session)
    assert sorted(map(tuple, frame.collect())) == [(1, "a"), (2, "b")]
