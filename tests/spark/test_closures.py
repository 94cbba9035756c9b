"""Closures and components where there are too many facts for the driver."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

import evermat
from engine_facts import facts_in, facts_of, interned, make_facts
from evermat.algebra import Closure, ClosureKind, Column, Pattern
from evermat.engines import make_engine
from evermat.engines.spark.rows import block_rows
from evermat.engines.spark.spreading import stars
from evermat.values import constant

if TYPE_CHECKING:
    from evermat.algebra import Engine
    from evermat.engines.spark.engine import SparkEngine

pytestmark = pytest.mark.spark

TRIPLES = Pattern("t", (Column(1), constant("k"), Column(0)))
EDGES = Pattern("e", (Column(0), Column(1)))
CLOSURES = {
    "transitive": Closure(ClosureKind.TRANSITIVE, TRIPLES, None, frozenset({0})),
    "symmetric": Closure(ClosureKind.SYMMETRIC, TRIPLES),
    "left linear": Closure(ClosureKind.LEFT_LINEAR, TRIPLES, EDGES),
    "right linear": Closure(ClosureKind.RIGHT_LINEAR, TRIPLES, EDGES),
}


@pytest.fixture
def spark() -> SparkEngine:
    engine: SparkEngine = make_engine("spark")  # type: ignore[assignment]
    return engine


@pytest.mark.parametrize("name", CLOSURES)
def test_agree_the_cluster_closes_as_the_driver_does(
    name: str, spark: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    closure = CLOSURES[name]
    external = {(2, 1), (3, 2), (1, 1), (5, 4), (9, 9)}
    every = make_facts(
        t=[(b, "k", a) for b, a in external] + [(7, "other", 8)],
        e=[(1, 6), (6, 7), (4, 1), (7, 4)],
    )
    less = make_facts(t=[(2, "k", 1), (3, "k", 2)], e=[(1, 6), (6, 7)])
    some = make_facts(t=[(3, "k", 1), (3, "k", 4), (6, "k", 1), (1, "k", 9)])
    only = Pattern("t", (Column(0), constant("k"), constant(1)))

    def answers(engine: Engine) -> list[object]:
        for relation, arity in (("t", 3), ("e", 2)):
            engine.declare(relation, arity)
        facts, fewer = interned(engine, every), interned(engine, less)
        among = engine.close_among(closure, facts, interned(engine, some))
        found: list[object] = [facts_of(engine, among)]
        before, after = (
            engine.snapshot_closure(closure, each) for each in (fewer, facts)
        )
        found.append(facts_in(after.minus(before)))
        if closure.kind is not ClosureKind.SYMMETRIC:  # components take many jobs
            found.append(facts_of(engine, engine.close(closure, facts)))
            found.append(facts_of(engine, engine.close(closure, facts, only=only)))
        return found

    expected = answers(make_engine("reference"))
    assert answers(spark) == expected
    monkeypatch.setattr("evermat.engines.spark.closure_snapshots.ON_DRIVER", 0)
    assert answers(spark) == expected


def test_closures_too_large_to_be_written_by_the_driver_go_to_the_cluster(
    spark: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evermat.engines.spark.closures.MOST_PAIRS", 3)
    spark.declare("e", 2)
    facts = interned(spark, make_facts(e=[(1, 2), (2, 3), (3, 4)]))
    closed = spark.close(Closure(ClosureKind.TRANSITIVE, EDGES), facts)
    assert closed.size() == 6


def test_components_become_stars_around_their_smallest_id(spark: SparkEngine) -> None:
    random = Random(7)  # noqa: S311  tests are to be repeatable
    nodes = list(range(40))
    pairs = {(random.choice(nodes), random.choice(nodes)) for _ in range(25)}
    pairs |= {(100 + at, 101 + at) for at in range(9)}
    smallest = {node: node for pair in pairs for node in pair}
    for _ in smallest:
        for one, other in pairs:
            least = min(smallest[one], smallest[other])
            smallest[one] = smallest[other] = least
    block = stars(block_rows(interned(spark, make_facts(e=pairs)).block))  # type: ignore[attr-defined]
    rows = spark.cluster.collect(f"SELECT c0, c1 FROM {block.view}").to_pylist()  # noqa: S608
    found = {(row["c0"], row["c1"]) for row in rows}
    assert found == {(a, b) for a, b in smallest.items() if a != b}


def test_a_held_closure_is_counted_without_a_job(spark: SparkEngine) -> None:
    spark.cluster.small = 1_000
    rules = """
        reach(?x, ?y) :- edge(?x, ?y) .
        reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
    """
    kb = evermat.KnowledgeBase(rules, engine=spark)
    change = kb.insert("edge", [(at, (at + 1) % 300) for at in range(300)])
    jobs = spark.cluster.jobs
    assert kb.count("reach") == 90_000
    assert change.sizes["reach"] == (90_000, 0)
    assert spark.cluster.jobs == jobs
