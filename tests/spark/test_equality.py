"""Equality by rewriting where facts and equalities are on the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import evermat
from engine_facts import facts_of, interned, make_facts, tables
from evermat.algebra.equality import UnequalValuesError
from evermat.engines import make_engine
from evermat.values import Kind, constant

if TYPE_CHECKING:
    from evermat.engines.spark.engine import SparkEngine

pytestmark = pytest.mark.spark

VALUES = frozenset(Kind) - {Kind.STRING}


@pytest.fixture
def spark() -> SparkEngine:
    """An engine with almost nothing on the driver."""
    engine: SparkEngine = make_engine("spark")  # type: ignore[assignment]
    engine.cluster.small = 1
    return engine


def test_many_equalities_are_contracted_on_the_cluster(spark: SparkEngine) -> None:
    names = [f"n{number:03}" for number in range(60)]
    pairs = pa.table({"x": names[:-2], "y": names[2:]})
    cliques = spark.representatives()
    lost = spark.merge(cliques, spark.intern("same", pairs), "lost", VALUES)
    assert lost.size() == 58
    found = cliques.replaced([constant(name) for name in names])
    assert {str(one) for one in found.values()} == {'"n000"', '"n001"'}
    more = pa.table({"x": ["n031", "n031"], "y": ["n006", "8"]})
    lost = spark.merge(cliques, spark.intern("same", more), "lost", VALUES)
    assert facts_of(spark, lost) == make_facts(lost=[("n000",), ("n001",)])


def test_contradictions_are_found_on_the_cluster(spark: SparkEngine) -> None:
    pairs = pa.table({"x": [f"n{at}" for at in range(50)], "y": range(50)})
    chain = pa.table({"x": ["n3"], "y": ["n4"]})
    cliques = spark.representatives()
    spark.merge(cliques, spark.intern("same", pairs), "lost", VALUES)
    with pytest.raises(UnequalValuesError, match="3 and 4"):
        spark.merge(cliques, spark.intern("same", chain), "lost", VALUES)


def test_facts_on_the_cluster_are_joined_with_the_map(spark: SparkEngine) -> None:
    facts = make_facts(
        p=[("a", "x"), ("b", "x"), ("c", "y"), (0, "a")], q=[("b",), ("c",), (0,)]
    )
    spark.load(tables(facts))
    assert spark.explicit.heap.contents.levels
    cliques = spark.representatives()
    same = make_facts(same=[("a", "b"), ("b", 0), ("x", 2)])
    spark.merge(cliques, interned(spark, same), "lost", VALUES)
    everything = interned(spark, facts)
    normal = make_facts(p=[(0, 2), ("c", "y"), (0, 0)], q=[(0,), ("c",)])
    assert facts_of(spark, spark.rewrite(everything, cliques)) == normal
    target = interned(spark, make_facts(p=[(0, 2), (0, 0)], q=[("c",)]))
    inside = make_facts(p=[("a", "x"), ("b", "x"), (0, "a")], q=[("c",)])
    for found in (
        spark.rewritten_into(everything, cliques, target),
        spark.preimages(target, cliques),
    ):
        assert facts_of(spark, found) == inside
    marks = interned(spark, make_facts(mark=[(0,), ("b",)]))
    mentioned = make_facts(p=[("b", "x"), (0, "a")], q=[("b",), (0,)])
    assert facts_of(spark, spark.mentioning(marks, spark.explicit)) == mentioned
    nodes = spark.nodes_of(interned(spark, normal), cliques, "same")
    assert facts_of(spark, nodes) == make_facts(same=[(0, 0), (2, 2)])
    spark.normalise(cliques)
    assert facts_of(spark, spark.materialised) == normal
    assert spark.expanded_count("p", cliques) == 3 * 2 + 1 + 3 * 3
    assert spark.expanded_count("q", cliques) == 4


@pytest.mark.slow
def test_agree_a_story_with_everything_on_the_cluster(spark: SparkEngine) -> None:
    rules = """
        ?y1 ≈ ?y2 :- r(?x, ?y1), r(?x, ?y2) .
        s(?x) :- r(?x, ?y), not blocked(?y) .
    """
    facts = {
        "r": [("a", "b"), ("a", "c"), ("c", "d"), ("b", "e")],
        "blocked": [("e",)],
    }
    kbs = [
        evermat.KnowledgeBase(rules, engine=engine) for engine in (spark, "embedded")
    ]
    for kb in kbs:
        kb.load(facts)
        kb.update(delete={"r": [("a", "c")]}, algorithm="bf")
    for predicate in ("r", "s", "same_as"):
        assert set(kbs[0].facts(predicate)) == set(kbs[1].facts(predicate))
