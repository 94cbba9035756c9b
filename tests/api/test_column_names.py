"""Data with named columns: by name where names are declared, else by position."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from evermat import KnowledgeBase, Program
from evermat.columns import ColumnNamesError, SwappedColumnsWarning
from evermat.columns.names import order_of, say_nothing
from evermat.lang.catalogue import ArityClashError
from evermat.lang.syntax import Declaration

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DECLARED = "@declare person(name: string, age: integer) ."
RULE = "adult(?name) :- person(?name, ?age), ?age > 17 ."
ANN = ("ann", 30)
SWAPPED = {"age": [30], "name": ["ann"]}
Aged = namedtuple("Aged", ["age", "name"])  # noqa: PYI024  as users have them
Dated = namedtuple("Dated", ["name", "years"])  # noqa: PYI024  as users have them
on_both = pytest.mark.parametrize("engine", ["embedded", "reference"])

NAMED: list[Callable[[], Any]] = [
    lambda: pd.DataFrame(SWAPPED),
    lambda: pd.DataFrame(SWAPPED).itertuples(index=False),
    lambda: pl.DataFrame(SWAPPED),
    lambda: pl.DataFrame(SWAPPED).lazy(),
    lambda: pa.table(SWAPPED),
    lambda: pa.table(SWAPPED).to_batches()[0],
    lambda: pa.table(SWAPPED).to_reader(),
    lambda: [pa.table(SWAPPED), pa.table({"name": ["ann"], "age": [30]})],
    lambda: SWAPPED,
    lambda: [{"age": 30, "name": "ann"}],
    lambda: [Aged(30, "ann")],
    lambda: pd.DataFrame({"Age": [30], " NAME ": ["ann"]}),
]
NAMELESS: list[Callable[[], Any]] = [
    lambda: [ANN],
    lambda: pd.DataFrame([ANN]),
    lambda: pl.DataFrame([ANN], orient="row"),
    lambda: pa.table({"c1": ["ann"], "c2": [30]}),
    lambda: pa.table({"f0": ["ann"], "f1": [30]}),
    lambda: pa.table({"_1": ["ann"], "_2": [30]}),
    lambda: pa.table({"x": ["ann"], "y": [30]}),
]


@on_both
@pytest.mark.parametrize("given", [*NAMED, *NAMELESS])
def test_columns_go_where_they_are_declared(
    given: Callable[[], Any], engine: str
) -> None:
    kb = KnowledgeBase([DECLARED, RULE], engine=engine)
    kb.insert("person", given())
    assert kb.facts("person").to_list() == [ANN]
    assert kb.facts("adult").to_list() == [("ann",)]
    assert kb.plan(delete={"person": given()}).total == (0, 2)
    kb.update(delete={"person": given()})
    with kb.transaction() as transaction:
        transaction.insert("person", given())
        transaction.insert("person", [("bob", 7)])
    assert set(kb.facts("person")) == {ANN, ("bob", 7)}
    kb.delete("person", given())
    assert kb.facts("person").to_list() == [("bob", 7)]
    assert kb.load({"person": given()}).sizes == {"adult": (1, 0), "person": (1, 0)}


def test_names_that_are_declared_with_the_data_count() -> None:
    kb = KnowledgeBase()
    kb.update(add_rules=DECLARED, insert={"person": pa.table(SWAPPED)})
    assert kb.contains("person", ANN)


def test_names_may_be_declared_without_types() -> None:
    names = Declaration("person", 2, column_names=("name", "age"))
    kb = KnowledgeBase(Program(declarations=(names,)))
    kb.insert("person", pa.table(SWAPPED))
    assert kb.facts("person").to_list() == [ANN]


def test_tuples_go_by_position_whatever_the_columns_are_called() -> None:
    kb = KnowledgeBase("@declare p(c2: string, c1: integer) .")
    kb.insert("p", [ANN])
    assert kb.facts("p").to_list() == [ANN]


@on_both
@pytest.mark.parametrize(
    "given",
    [
        pd.DataFrame({"years": [30], "name": ["ann"]}),
        {"name": ["ann"], "age": [30], "city": ["Rome"]},
        [{"name": "ann", "years": 30}],
        [Dated("ann", 30)],
        pl.DataFrame({"name": ["ann"], "Age": [30], "age": [30]}),
        pa.table([["ann"], [30]], names=["name", "name"]),
    ],
    ids=lambda given: type(given).__name__,
)
def test_other_names_are_refused_and_nothing_changes(
    given: object, engine: str
) -> None:
    kb = KnowledgeBase(DECLARED, engine=engine)
    kb.insert("person", [("bob", 7)])
    for change in (kb.insert, kb.delete):
        with pytest.raises(ColumnNamesError, match="those declared are `name`, `age`"):
            change("person", given)
    assert kb.facts("person").to_list() == [("bob", 7)]


def test_the_error_shows_both_lists_and_the_way_out() -> None:
    kb = KnowledgeBase(DECLARED)
    with pytest.raises(ColumnNamesError) as caught:
        kb.insert("person", pa.table({"years": [30], "name": ["ann"]}))
    assert str(caught.value).splitlines()[0] == (
        "ColumnNamesError [EM704]: the data for `person` has the columns `years`, "
        "`name`, and those declared are `name`, `age`"
    )
    assert "give tuples, which go by position" in str(caught.value)
    assert caught.value.declared == ("name", "age")


def test_nameless_data_of_another_width_is_told_its_arity() -> None:
    kb = KnowledgeBase(DECLARED)
    with pytest.raises(ArityClashError, match="has 2 arguments, here it is given 3"):
        kb.insert("person", pd.DataFrame([("ann", 30, 1)]))


@on_both
@pytest.mark.parametrize("rules", [DECLARED, ""])
def test_what_comes_out_goes_in_again(rules: str, engine: str) -> None:
    kb = KnowledgeBase([rules, RULE], engine=engine)
    kb.insert("person", [ANN, ("bob", 7)])
    facts, asked = kb.facts("person"), kb.query("person(?x, ?y)")
    for found in (facts, asked):
        for given in (found, found.to_arrow(), found.to_terms(), found.to_pandas()):
            assert kb.insert("person", given).is_empty()
        assert kb.insert("person", found.to_polars()).is_empty()
    assert kb.insert("person", kb.query("person(?who, ?years)")).is_empty()
    assert kb.delete("person", kb.query("person(?who, ?y), ?y < 18")).total == (0, 1)


@on_both
def test_answers_go_by_name_if_they_have_the_declared_names(engine: str) -> None:
    kb = KnowledgeBase([DECLARED, "old(30, ann) ."], engine=engine)
    kb.insert("person", kb.query("old(?age, ?name)"))
    assert kb.facts("person").to_list() == [ANN]
    with pytest.raises(ColumnNamesError):
        kb.insert("person", kb.query("old(?age, ?x)"))


def test_facts_of_a_predicate_are_in_its_order_though_it_is_declared_anew() -> None:
    kb = KnowledgeBase("@declare p(a: any, b: any) . p(1, 2) .")
    kb.update(add_rules="@declare p(b: any, a: any) .", delete={"p": kb.facts("p")})
    assert kb.count("p") == 0


@on_both
def test_single_facts_are_asked_for_by_name(engine: str) -> None:
    kb = KnowledgeBase([DECLARED, RULE], engine=engine)
    kb.insert("person", [ANN])
    row = {"age": 30, "name": "ann"}
    assert kb.contains("person", row)
    assert kb.contains("person", Aged(30, "ann"))
    assert kb.explain("person", row).holds
    with pytest.raises(ColumnNamesError):
        kb.contains("person", {"years": 30, "name": "ann"})


def test_triples_have_names_too() -> None:
    for names in (("object", "subject", "predicate"), ("o", "s", "p")):
        kb = KnowledgeBase()
        kb.insert("triple", pa.table([["c"], ["a"], ["b"]], names=names))
        assert kb.facts("triple").to_list() == [("a", "b", "c")]


@on_both
def test_columns_in_another_order_than_before_are_warned_of(engine: str) -> None:
    kb = KnowledgeBase(engine=engine)
    kb.insert("person", pa.table({"name": ["ann"], "age": [30]}))
    kb.insert("person", pa.table({"name": ["bob"], "age": [7]}))
    with pytest.warns(SwappedColumnsWarning, match="other data for it has `name`"):
        kb.insert("person", pd.DataFrame(SWAPPED))
    with (
        pytest.warns(SwappedColumnsWarning, match="@declare person.name: any, age"),
        kb.transaction() as transaction,
    ):
        transaction.delete("person", SWAPPED)
    assert set(kb.facts("person")) == {ANN, ("bob", 7)}


@on_both
def test_columns_in_another_order_than_in_rules_are_warned_of(engine: str) -> None:
    kb = KnowledgeBase(RULE, engine=engine)
    with pytest.warns(SwappedColumnsWarning, match="rules have the variables `name`"):
        kb.insert("person", pd.DataFrame(SWAPPED))
    fine = KnowledgeBase([RULE, "person(?age, ?name) :- born(?name, ?age) ."])
    fine.insert("person", pd.DataFrame(SWAPPED))


def test_a_warning_that_is_made_an_error_changes_nothing() -> None:
    kb = KnowledgeBase(RULE)
    with pytest.raises(SwappedColumnsWarning):
        kb.insert("person", pd.DataFrame(SWAPPED))
    assert not kb.count("person")


def test_a_warning_is_given_where_the_caller_is() -> None:
    kb = KnowledgeBase(RULE)
    with pytest.warns(SwappedColumnsWarning) as found:
        kb.insert("person", SWAPPED)
    assert found[0].filename == __file__


def test_a_state_takes_frames_by_name(tmp_path: Path) -> None:
    KnowledgeBase([DECLARED, RULE], state=tmp_path).insert("person", SWAPPED)
    kb = KnowledgeBase.open(tmp_path)
    kb.insert("person", pa.table({"age": [7], "name": ["bob"]}))
    assert set(KnowledgeBase.open(tmp_path).facts("person")) == {ANN, ("bob", 7)}


@pytest.mark.parametrize(
    ("found", "wanted", "order"),
    [
        (["b", "a"], ["a", "b"], [1, 0]),
        (["B", "a"], ["a", "b"], [1, 0]),
        (["b", "B"], ["B", "b"], [1, 0]),
        (["B", "b"], ["a", "b"], None),
        (["a", "a"], ["a", "b"], None),
        (["a"], ["a", "b"], None),
    ],
)
def test_order_of_names(
    found: list[str], wanted: list[str], order: list[int] | None
) -> None:
    assert order_of(found, wanted) == order


def test_names_that_say_nothing() -> None:
    for nothing in ("0", "c1", "column_1", "column0", "_c0", "x", "Unnamed: 0", ""):
        assert say_nothing((nothing,)), nothing
    for something in ("id", "name", "from", "column", "c_nr", "x_position"):
        assert not say_nothing((something,)), something
