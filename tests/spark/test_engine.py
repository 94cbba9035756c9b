"""What is special about the Spark engine: where sets live, and how plans are made.

`make test-spark` runs these tests twice: with sets on the driver, as small sets are,
and with EVERMAT_SPARK_SMALL=2, so that almost all of them are on the cluster.
"""

from __future__ import annotations

import gc
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import evermat
from engine_facts import facts_of, make_facts, stored_counts, tables
from evermat.algebra import (
    Apply,
    Column,
    Compute,
    InlineRows,
    Pattern,
    Query,
    QuerySet,
    Region,
    Role,
    Views,
)
from evermat.algebra.queries import EvaluationError
from evermat.engines import make_engine
from evermat.engines.spark.journal import HOLDS, Difference, set_parts
from evermat.engines.spark.rows import block_rows
from evermat.engines.spark.sets import FEW_LEVELS
from evermat.values import IRI, constant

if TYPE_CHECKING:
    from evermat.engines.spark.engine import SparkEngine

pytestmark = pytest.mark.spark

X, Y, Z = Column(0), Column(1), Column(2)
REACH = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""


@pytest.fixture
def spark() -> SparkEngine:
    engine: SparkEngine = make_engine("spark")  # type: ignore[assignment]
    return engine


def edges(count: int) -> set[tuple[int, int]]:
    return {(number, number + 1) for number in range(count)}


def test_a_large_set_is_on_the_cluster_and_a_small_one_on_the_driver(
    spark: SparkEngine,
) -> None:
    spark.cluster.small = 5
    few = spark.intern("e", pa.table({"x": [1, 2], "y": [2, 3]}))
    many = spark.intern("e", pa.table({"x": range(9), "y": range(9)}))
    assert few.block.table is not None
    assert many.block.table is None
    assert (few.size(), many.size()) == (2, 9)
    left = spark.settle(many - few)
    assert left.size() == 9
    both = spark.settle(many & spark.intern("e", pa.table({"x": [1], "y": [1]})))
    assert both.block.table is not None
    assert facts_of(spark, both) == make_facts(e=[(1, 1)])


def test_facts_leave_a_level_and_come_back(spark: SparkEngine) -> None:
    spark.cluster.small = 2
    facts = make_facts(e=edges(30))
    spark.load(tables(facts))
    assert spark.materialised.heap.contents.levels
    gone = make_facts(e=[(3, 4), (4, 5)])
    for _ in range(2):
        spark.begin()
        rows = spark.intern("e", pa.table({"x": [3, 4], "y": [4, 5]}))
        nothing = spark.no_facts()
        spark.commit(
            deleted=rows, added=nothing, explicit_removed=rows, explicit_added=nothing
        )
        assert facts_of(spark, spark.materialised) == facts - gone
        assert spark.size(spark.materialised, "e") == 28
        spark.begin()
        spark.nonrecursive_counts.add(spark.once(rows))
        spark.commit(
            deleted=nothing, added=rows, explicit_removed=nothing, explicit_added=rows
        )
        assert facts_of(spark, spark.materialised) == facts
        assert set(stored_counts(spark).values()) == {(1, 0)}


def test_regions_have_narrow_facts_and_wide_ones(spark: SparkEngine) -> None:
    spark.cluster.small = 2
    spark.declare("wide", 3)
    shape = Pattern("wide", (X, constant("p"), constant("q")))
    region = Region(frozenset({"e"}), (shape,))
    narrow = spark.intern("e", pa.table({"x": range(9), "y": range(9)}))
    assert facts_of(spark, spark.settle(narrow.within(region))) == make_facts(
        e=[(number, number) for number in range(9)]
    )
    wide = [(number, "p", word) for number in range(9) for word in "qr"]
    spark.load(tables(make_facts(wide=wide, e=edges(9))))
    inside = [row for row in wide if row[2] == "q"]
    assert facts_of(spark, spark.materialised.within(region)) == make_facts(
        wide=inside, e=edges(9)
    )


@pytest.mark.parametrize("small", [2, 100])
def test_views_of_changes_are_given_back(spark: SparkEngine, small: int) -> None:
    spark.cluster.small = small
    few = spark.intern("e", pa.table({"x": [1], "y": [2]}))
    more = spark.intern("e", pa.table({"x": range(9), "y": range(9)}))
    parts = list(set_parts(HOLDS, 1, [block_rows(each.block) for each in (few, more)]))
    catalog = spark.cluster.session.catalog
    gc.collect()
    spark.cluster.clean()
    before = len(catalog.listTables())
    change = Difference(spark.cluster, spark.relations(), parts)
    assert change.frame().count() == 10
    del change
    gc.collect()
    spark.cluster.clean()
    assert len(catalog.listTables()) == before


def test_many_additions_are_merged_into_few_levels(
    spark: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evermat.engines.spark.counters.MANY_LEVELS", 3)
    monkeypatch.setattr("evermat.engines.spark.sets.FEW_ROWS", 0)
    spark.cluster.small = 1
    for number in range(FEW_LEVELS + 2):
        column = [10 * number, 10 * number + 1]
        spark.load([("a", pa.table({"x": column}))])
    assert len(spark.materialised.heap.contents.levels) <= FEW_LEVELS
    assert spark.size(spark.materialised, "a") == 2 * FEW_LEVELS + 4
    assert set(stored_counts(spark).values()) == {(1, 0)}


def test_a_program_gives_the_same_on_the_cluster(spark: SparkEngine) -> None:
    spark.cluster.small = 3
    on_cluster = evermat.KnowledgeBase(REACH, engine=spark)
    embedded = evermat.KnowledgeBase(REACH)
    for kb in (on_cluster, embedded):
        kb.insert("edge", [*edges(6), (6, 2)])
        kb.delete("edge", [(3, 4)])
    assert set(on_cluster.facts("reach")) == set(embedded.facts("reach"))
    assert set(on_cluster.counters("reach")) == set(embedded.counters("reach"))


def test_the_number_of_jobs_does_not_depend_on_the_number_of_rules(
    spark: SparkEngine,
) -> None:
    queries = [
        Query(Pattern(f"p{n}", (X,)), (Pattern("e", (X, constant(n))),), column_count=1)
        for n in range(20)
    ]
    spark.load(tables(make_facts(e=edges(20))))
    views = Views(spark.materialised, spark.materialised)
    before = spark.cluster.jobs
    found = spark.derive(QuerySet(tuple(queries)), views)
    assert found.size() == 19
    assert spark.cluster.jobs - before <= 3


def test_computed_texts_are_constants_like_others(spark: SparkEngine) -> None:
    name = Compute(Y, Apply("concat", (X, constant("!"))))
    length = Compute(Z, Apply("length", (Y,)))
    query = Query(
        Pattern("s", (Y, Z)),
        (Pattern("n", (X,)),),
        computations=(name, length),
        column_count=3,
    )
    spark.load(tables(make_facts(n=[("ab",), ("c",)])))
    views = Views(spark.materialised, spark.materialised)
    found = spark.derive(QuerySet((query,)), views)
    assert facts_of(spark, found) == make_facts(s=[("ab!", 3), ("c!", 2)])


def test_questions_leave_no_functions_behind(spark: SparkEngine) -> None:
    spark.cluster.small = 2
    kb = evermat.KnowledgeBase(engine=spark)
    kb.insert("e", edges(9))
    catalog = spark.cluster.session.catalog
    assert len(kb.query('e(?x, ?y), ?z = concat("n", str(?x))')) == 9
    with pytest.raises(EvaluationError):
        kb.query("e(?x, ?y), ?z = 1 / (?x - 5)")
    names = {function.name for function in catalog.listFunctions()}
    assert not {name for name in names if name.startswith("evermat_")}


def test_sums_of_small_integers_become_exact_large_ones(spark: SparkEngine) -> None:
    query = Query(
        Pattern("s", (Y,)),
        (Pattern("n", (X,)),),
        computations=(Compute(Y, Apply("+", (X, X))),),
        column_count=2,
    )
    spark.load(tables(make_facts(n=[(2**61,), (5,), (1.5,)])))
    views = Views(spark.materialised, spark.materialised)
    found = spark.derive(QuerySet((query,)), views)
    assert facts_of(spark, found) == make_facts(s=[(2**62,), (10,), (3.0,)])


def test_a_failed_computation_leaves_the_engine_usable(spark: SparkEngine) -> None:
    kb = evermat.KnowledgeBase("q(?x, ?y) :- n(?x), ?y = 12 / ?x .", engine=spark)
    kb.insert("n", [(3,)])
    with pytest.raises(EvaluationError, match="12 / 0"):
        kb.insert("n", [(0,)])
    assert list(kb.facts("q")) == [(3, 4)]


def test_few_folded_rules_need_no_join(spark: SparkEngine) -> None:
    names = [constant(IRI(f"http://e.org/{n}")) for n in range(6)]
    inline = InlineRows((Y, Z), tuple(pairwise(names)))
    query = Query(
        Pattern("t", (X, Z)),
        (Pattern("t", (X, Y), Role.CHANGED),),
        inline=inline,
        column_count=3,
    )
    delta = spark.intern("t", pa.table({"x": [1, 2], "y": ["a", "b"]}))
    growing = spark.growing()
    for number in range(3):
        facts = make_facts(t=[(number, names[number].value)])
        growing.add(spark.intern("t", dict(tables(facts))["t"]))
    delta = spark.settle(growing)
    views = Views(spark.materialised, spark.materialised, delta)
    found = facts_of(spark, spark.derive(QuerySet((query,)), views))
    assert found == {("t", (constant(n), names[n + 1])) for n in range(3)}
    assert any("inline rows" in line for line in spark.explain(query, views))
    # Few rows are part of the plan: to broadcast them would be a job of its own.
    assert "Join" not in spark.explain_plan(query, views)
