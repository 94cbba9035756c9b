"""Small changes of large facts: what lies near them is looked up, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import evermat
from evermat.engines import make_engine
from evermat.engines.spark import evaluation, nearby
from evermat.engines.spark.dictionary import constant_id
from evermat.values import constant

if TYPE_CHECKING:
    from evermat.engines.spark.engine import SparkEngine

pytestmark = pytest.mark.spark

RULES = """
    uncle(?x, ?z) :- parent(?x, ?y), brother(?y, ?z), not estranged(?x, ?z) .
    kin(?x, ?y) :- parent(?x, ?y) .
    kin(?x, ?z) :- kin(?x, ?y), kin(?y, ?z), living(?y) .
    elder(?x) :- uncle(?y, ?x), ?y > 3, open() .
    [?x, a, ?d] :- [?x, a, ?c], sub(?c, ?d) .
    [?x, :a, :old] :- [?x, :a, :person], elder(?x) .
    [?x, :a, :child] :- [?x, :a, :person], parent(?x, ?y) .
"""
SIZE = 24


@pytest.fixture
def spark() -> SparkEngine:
    engine: SparkEngine = make_engine("spark")  # type: ignore[assignment]
    engine.cluster.small = 6
    return engine


def facts() -> dict[str, list[tuple[object, ...]]]:
    numbers = range(SIZE)
    return {
        "parent": [(n, n // 2 + 1) for n in numbers],
        "brother": [(n, n + 1) for n in numbers if n % 3],
        "estranged": [(n, n // 2 + 2) for n in numbers if n % 5 == 0],
        "living": [(n,) for n in numbers if n % 4],
        "open": [()],
        "sub": [("c0", "c1"), ("c1", "c2")],
        "triple": [(n, "http://e.org/a", "http://e.org/person") for n in numbers],
    }


def test_updates_agree_wherever_facts_are(spark: SparkEngine) -> None:
    found = {}
    rules = "@prefix : <http://e.org/> . " + RULES
    for engine in (spark, "embedded"):
        kb = evermat.KnowledgeBase(rules, engine=engine, modules=False)
        kb.load(facts())
        states: list[object] = []
        for change in (
            {"delete": {"parent": [(5, 3), (9, 5)], "estranged": [(10, 7)]}},
            {
                "insert": {
                    "parent": [(5, 3)],
                    "brother": [(3, 9)],
                    "sub": [("c2", "c3")],
                }
            },
            {"delete": {"living": [(2,), (5,)], "open": [()]}},
            {
                "insert": {"open": [()], "living": [(2,)]},
                "delete": {"sub": [("c0", "c1")]},
            },
        ):
            states.append(kb.update(**change).sizes)  # noqa: PERF401  one by one
        names = ("uncle", "kin", "elder", "triple")
        states += [sorted(kb.counters(name), key=str) for name in names]
        found[kb.engine] = states
    assert found["spark"] == found["embedded"]


def test_what_was_looked_up_is_not_looked_up_again(spark: SparkEngine) -> None:
    kb = evermat.KnowledgeBase(
        "uncle(?x, ?z) :- parent(?x, ?y), brother(?y, ?z) .", engine=spark
    )
    kb.load({name: facts()[name] for name in ("parent", "brother")})
    kb.insert("parent", [(100, 4)])
    before = spark.cluster.jobs
    kb.insert("parent", [(101, 4)])
    again = spark.cluster.jobs - before
    kb.insert("parent", [(102, 5)])
    assert spark.cluster.jobs - before - again == again + 1
    assert {(100, 5), (101, 5), (102, 6)} <= set(kb.facts("uncle"))


def test_too_much_to_look_up_is_joined_on_the_cluster(
    spark: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearby, "MOST_ROWS", 3)
    kb = evermat.KnowledgeBase("p(?x, ?y) :- q(?x), r(?x, ?y) .", engine=spark)
    kb.load({"r": [(n % 2, n) for n in range(40)]})
    kb.insert("q", [(1,)])
    assert {y for _, y in kb.facts("p")} == set(range(1, 40, 2))
    kb.delete("q", [(1,)])
    assert not kb.count("p")


def test_few_rows_are_found_by_their_keys(spark: SparkEngine) -> None:
    rows = pa.table({"x": [2**61, -3, 7], "y": [5, -(2**61), 2**40]})
    spark.load([("e", pa.table({"x": range(30), "y": range(30)})), ("e", rows)])
    wanted = spark.intern("e", pa.table({"x": [-3, 7, 8], "y": [-(2**61), 2**40, 9]}))
    assert spark.settle(wanted & spark.materialised).size() == 2


def test_triples_are_counted_by_property_and_class(spark: SparkEngine) -> None:
    names = [f"http://e.org/{name}" for name in ("knows", "a", "person", "dog")]
    knows, type_, person, dog = (evermat.IRI(name) for name in names)
    rows: list[tuple[object, ...]] = [(n, knows, n + 1) for n in range(20)]
    rows += [(n, type_, dog if n % 4 == 0 else person) for n in range(20)]
    kb = evermat.KnowledgeBase(engine=spark)
    kb.load({"triple": rows})
    (level,) = spark.materialised.heap.contents.levels
    tag = spark.cluster.tag("triple")
    most = [
        level.block.most(tag, constant_id(constant(second)), third)
        for second, third in (
            (knows, None),
            (type_, None),
            (type_, constant_id(constant(dog))),
            (type_, constant_id(constant(person))),
            (dog, None),
        )
    ]
    assert most == [20, 20, 5, 15, 0]


def test_more_facts_than_expected_stay_on_the_cluster(
    spark: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "MOST_COLLECTED", 3)
    monkeypatch.setattr(evaluation, "FIRST_GUESS", 0.0)
    kb = evermat.KnowledgeBase("p(?x, ?z) :- q(?x, ?y), q(?y, ?z) .", engine=spark)
    kb.load({"q": [(n, n + 1) for n in range(20)]})
    assert kb.count("p") == 19
    assert spark.materialised.heap.contents.levels
