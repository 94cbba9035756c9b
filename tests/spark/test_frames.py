"""Frames of Spark in and out, without their rows on the driver; the dictionary."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import evermat
from collected import count_collected
from evermat.columns import ColumnNamesError, SwappedColumnsWarning, term_table
from evermat.engines.spark import dictionary
from evermat.engines.spark.adaptive import AdaptiveEngine
from evermat.engines.spark.dictionary import DigestCollisionError
from evermat.engines.spark.engine import SparkEngine
from evermat.values import IRI, constant

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support"),
]

RULES = """
    two(?x, ?z) :- edge(?x, ?y), edge(?y, ?z) .
    named(?x) :- edge(?x, "n3") .
"""
PAIRS = [(f"n{at}", f"n{at + 1}") for at in range(30)]


def engine(*, small: int = 3, limit: int = 3) -> SparkEngine:
    """An engine with next to everything on the cluster, constants too."""
    made = SparkEngine()
    made.cluster.small = small
    made.cluster.dictionary.limit = limit
    return made


@pytest.fixture
def session() -> SparkSession:
    own: SparkSession = SparkEngine().cluster.session
    return own


def frame(session: SparkSession, rows: list[Any], schema: str) -> DataFrame:
    return session.createDataFrame(rows, schema)


def test_rows_behind_an_empty_chunk_are_not_lost(session: SparkSession) -> None:
    one, two = pa.table({"x": ["a"]}), pa.table({"x": ["b"]})
    table = pa.concat_tables([one, one.slice(0, 0), two])
    cluster = SparkEngine().cluster
    view = cluster.register_table(table)
    assert cluster.collect(f"TABLE {view}")["x"].to_pylist() == ["a", "b"]
    result = evermat.Result(term_table(table), ("x",))
    assert [row.x for row in result.to_spark(session).collect()] == ["a", "b"]


def test_a_large_frame_goes_in_and_out_without_the_driver(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected = count_collected(monkeypatch)
    numbers = session.range(2000).selectExpr("id AS x", "concat('n', id) AS y")
    kb = evermat.KnowledgeBase(
        "back(?y, ?x) :- edge(?x, ?y) .", engine=engine(small=50, limit=50)
    )
    change = kb.load({"edge": numbers})
    assert change.sizes == {"back": (2000, 0), "edge": (2000, 0)}
    out = kb.facts("back").to_spark(session)
    assert [kind for _, kind in out.dtypes] == ["string", "bigint"]
    assert out.toDF("y", "x").where("y = concat('n', x)").count() == 2000
    assert max(collected) <= 50


def test_the_first_rows_of_many_are_fetched_alone(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected = count_collected(monkeypatch)
    numbers = session.range(400).selectExpr("id AS x", "id + 1 AS y")
    rules = "back(?y, ?x) :- edge(?x, ?y) ."
    kb = evermat.KnowledgeBase(rules, engine=engine(small=50, limit=50))
    change = kb.load({"edge": numbers})
    for some in (kb.query("back(?x, ?y)"), change.added("back", "derived")):
        assert len(some) == 400
        first = set(some.first(7))
        assert len(first) == 7
        assert first <= {(number + 1, number) for number in range(400)}
    assert max(collected) <= 50


@pytest.mark.slow
def test_updates_with_frames_are_those_with_rows(session: SparkSession) -> None:
    kb = evermat.KnowledgeBase(RULES, engine=engine())
    twin = evermat.KnowledgeBase(RULES)
    schema = "x string, y string"
    kb.load({"edge": frame(session, PAIRS, schema)})
    twin.load({"edge": PAIRS})
    more, less = [("n30", "n0"), ("a", "n3")], PAIRS[5:9]
    changes = [
        each.update(insert={"edge": rows(more)}, delete={"edge": rows(less)})
        for each, rows in (
            (kb, lambda some: frame(session, some, schema)),
            (twin, lambda some: some),
        )
    ]
    for name in twin.predicates:
        assert set(kb.facts(name)) == set(twin.facts(name))
        for sort in ("all", "explicit", "derived"):
            found, expected = (set(each.added(name, sort)) for each in changes)
            assert found == expected
    # What the driver brings is compared with what is on the cluster.
    assert kb.insert("edge", [("n1", "n9")]).sizes == {"edge": (1, 0), "two": (2, 0)}
    assert set(kb.query("edge(?x, 'n9')")) == {("n1",)}
    assert len(kb.facts("edge", "explicit")) == 29


def test_all_types_come_out_as_they_went_in(session: SparkSession) -> None:
    day = datetime.date(2024, 2, 29)
    moment = datetime.datetime(2024, 2, 29, 12, 30)  # noqa: DTZ001  without a zone
    columns = {
        "i int": [1, -2, 3, 4, 5],
        "l bigint": [2**62, -(2**63), 0, 7, 2**63 - 1],
        "s string": ["", "ä\x00b", "1", "n", "<x>"],
        "d double": [0.5, -0.0, 1e300, 2.0, float("inf")],
        "b boolean": [True, False, True, False, True],
        "m decimal(20,3)": [
            Decimal("1.500"),
            Decimal(2),
            Decimal(3),
            Decimal(4),
            Decimal("-0.001"),
        ],
        "t date": [day + datetime.timedelta(days) for days in range(5)],
        "z timestamp_ntz": [moment + datetime.timedelta(days) for days in range(5)],
    }
    rows = list(zip(*columns.values(), strict=True))
    kb = evermat.KnowledgeBase(engine=engine())
    kb.load({"p": frame(session, rows, ", ".join(columns))})
    twin = evermat.KnowledgeBase()
    twin.load({"p": kb.facts("p").to_terms()})
    expected = twin.facts("p").to_arrow()
    found = kb.facts("p").to_spark(session)
    assert [kind for _, kind in found.dtypes] == [
        *("bigint", "bigint", "string", "double", "boolean"),
        *("decimal(38,3)", "date", "timestamp_ntz"),
    ]
    assert {tuple(row) for row in found.collect()} == {
        tuple(row.values()) for row in expected.to_pylist()
    }


def test_a_column_of_mixed_terms_is_written_in_their_syntax(
    session: SparkSession,
) -> None:
    kb = evermat.KnowledgeBase(engine=engine())
    rows = [(IRI(f"http://x/{at}"), at) for at in range(6)]
    kb.load({"p": [*rows, (1, "one"), (2, 2.5)]})
    found = kb.facts("p").to_spark(session)
    expected = evermat.KnowledgeBase()
    expected.load({"p": [*rows, (1, "one"), (2, 2.5)]})
    assert {tuple(row) for row in found.collect()} == {
        tuple(row.values()) for row in expected.facts("p").to_arrow().to_pylist()
    }


def test_what_is_wrong_with_a_frame_is_said_and_changes_nothing(
    session: SparkSession,
) -> None:
    kb = evermat.KnowledgeBase(
        "@declare edge(string, string) .\n" + RULES, engine=engine()
    )
    kb.load({"edge": frame(session, PAIRS, "x string, y string")})
    before = kb.count("edge"), kb.count("two")
    for rows, schema, words in (
        ([("a", None)], "x string, y string", "a row has no value in column `y`"),
        ([("a",)], "x string", "`edge` has 2 arguments"),
        ([("a", 1)], "x string, y int", "1 of `edge` is not of type `string`"),
        ([("a", ["b"])], "x string, y array<string>", "cannot be stored"),
    ):
        with pytest.raises(evermat.EvermatError, match=words):
            kb.insert("edge", frame(session, rows, schema))
    assert (kb.count("edge"), kb.count("two")) == before


def test_columns_of_frames_go_where_they_are_declared(session: SparkSession) -> None:
    rules = "@declare person(name: string, age: int) ."
    kb = evermat.KnowledgeBase(rules, engine=engine())
    some = [(at, f"n{at}") for at in range(6)]
    swapped = frame(session, some, "AGE int, `name` string")
    kb.insert("person", swapped)
    people = {(name, age) for age, name in some}
    assert set(kb.facts("person")) == people
    for given in (swapped, swapped.collect()):  # on another engine
        twin = evermat.KnowledgeBase(rules)
        twin.insert("person", given)
        assert set(twin.facts("person")) == people
    with pytest.raises(ColumnNamesError, match="`years`, `name`, and those declared"):
        kb.insert("person", frame(session, some, "years int, name string"))


@pytest.mark.slow
def test_answers_on_the_cluster_go_where_they_are_declared() -> None:
    rules = "@declare person(name: string, age: int) ."
    kb = evermat.KnowledgeBase(rules, engine=engine())
    kb.insert("person", [(f"n{at}", at) for at in range(6)])
    answers = kb.query("?age < 5, person(?name, ?age)")
    assert answers.columns == ("age", "name")
    assert answers.distant is not None
    assert kb.delete("person", answers).total == (0, 5)


def test_columns_of_frames_that_seem_swapped_are_warned_of(
    session: SparkSession,
) -> None:
    kb = evermat.KnowledgeBase("a(?name) :- person(?name, ?age) .", engine=engine())
    swapped = frame(session, [(1, "n")], "age int, name string")
    with pytest.raises(SwappedColumnsWarning, match="rules have the variables `name`"):
        kb.insert("person", swapped)


@pytest.mark.parametrize("limit", [3, pytest.param(1000, marks=pytest.mark.slow)])
def test_two_constants_with_one_digest_are_refused(
    session: SparkSession, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = evermat.KnowledgeBase(RULES, engine=engine(limit=limit))
    kb.load({"edge": frame(session, PAIRS, "x string, y string")})
    taken, fake = dictionary.constant_id(constant("n4")), "looks like n4"
    honest = dictionary.id_of

    def bent(kind: int, text: str) -> int:
        return taken if text == fake else honest(kind, text)

    monkeypatch.setattr(dictionary, "id_of", bent)
    with pytest.raises(DigestCollisionError, match="looks like n4"):
        kb.insert("edge", [("x", fake)])
    monkeypatch.undo()
    assert kb.insert("edge", [("x", "n4")]).sizes == {"edge": (1, 0), "two": (1, 0)}


def test_constants_that_clash_on_the_cluster_are_refused() -> None:
    made = engine()
    terms = made.cluster.terms
    big = dictionary.FIRST_DIGEST
    terms.add(f"SELECT {big}L AS id, 1 AS kind, 'a' AS text")
    terms.add(f"SELECT {big}L AS id, 1 AS kind, 'a' AS text")
    assert len(terms) == 1
    with pytest.raises(DigestCollisionError):
        terms.add(f"SELECT {big}L AS id, 1 AS kind, 'b' AS text")
    with pytest.raises(DigestCollisionError):
        terms.add(
            f"SELECT {big + 1}L AS id, 1 AS kind, 'b' AS text UNION ALL "
            f"SELECT {big + 1}L AS id, 1 AS kind, 'c' AS text"
        )
    assert len(terms) == 1


@pytest.mark.slow
def test_a_state_keeps_the_constants_of_the_cluster(
    session: SparkSession, tmp_path: Path
) -> None:
    kb = evermat.KnowledgeBase(RULES, engine=engine(), state=tmp_path)
    kb.load({"edge": frame(session, PAIRS, "x string, y string")})
    kb.insert("edge", [("new", "n0")])
    twin = evermat.KnowledgeBase(RULES)
    twin.load({"edge": [*PAIRS, ("new", "n0")]})
    for opened in (
        evermat.KnowledgeBase.open(tmp_path),
        evermat.KnowledgeBase.open(tmp_path, engine=engine()),
    ):
        for name in twin.predicates:
            assert set(opened.counters(name)) == set(twin.counters(name))
    opened.delete("edge", frame(session, PAIRS[:3], "x string, y string"))
    twin.delete("edge", PAIRS[:3])
    last = evermat.KnowledgeBase.open(tmp_path)
    assert set(last.facts("two")) == set(twin.facts("two"))


@pytest.mark.slow
def test_frames_are_on_the_driver_while_they_fit_and_distributed_otherwise(
    session: SparkSession,
) -> None:
    for limit, is_on_driver in ((1000, True), (40, False)):
        made = AdaptiveEngine(driver_facts=limit, small=3)
        kb = evermat.KnowledgeBase(RULES, engine=made)
        twin = evermat.KnowledgeBase(RULES)
        kb.load({"edge": frame(session, PAIRS[:5], "x string, y string")})
        assert made.is_on_driver
        kb.update(insert={"edge": frame(session, PAIRS, "x string, y string")})
        twin.insert("edge", PAIRS)
        assert made.is_on_driver == is_on_driver
        for name in twin.predicates:
            assert set(kb.counters(name)) == set(twin.counters(name))


@pytest.mark.slow
def test_results_of_one_knowledge_base_are_facts_of_another() -> None:
    kb, other = (evermat.KnowledgeBase(engine=engine()) for _ in range(2))
    kb.load({"edge": PAIRS})
    other.load({"first": [("x", "n1")], "edge": kb.facts("edge")})
    assert set(other.facts("edge")) == set(PAIRS)
    assert other.delete("edge", kb.facts("edge")).sizes == {"edge": (0, 30)}


def test_facts_of_one_predicate_are_given_to_another() -> None:
    """They need not be decoded and encoded again."""
    kb = evermat.KnowledgeBase(engine=engine())
    kb.load({"edge": PAIRS})
    kb.insert("copy", kb.facts("edge"))
    assert set(kb.facts("copy")) == set(PAIRS)
    assert kb.delete("edge", kb.facts("copy")).sizes == {"edge": (0, 30)}
