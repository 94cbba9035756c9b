"""Loading, asking and looking inside."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Literal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from evermat import (
    IRI,
    BlankNode,
    Budget,
    BudgetExceededError,
    EvermatError,
    KnowledgeBase,
    LangString,
    TypedLiteral,
)
from evermat.engines import make_engine
from evermat.kb.inputs import FactTypeError
from evermat.kb.queries import NoCountersError
from evermat.kb.requests import RequestError
from evermat.lang.catalogue import ArityClashError, UnknownPredicateError
from evermat.maintenance.counting import CountersSettingError

if TYPE_CHECKING:
    from pathlib import Path

    from evermat.maintenance.limits import Step

REACH = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""
EDGES = [("a", "b"), ("b", "c"), ("c", "d")]
REACHED = {("a", "b"), ("b", "c"), ("c", "d"), ("a", "c"), ("b", "d"), ("a", "d")}


def test_oracle_load_materialises(engine_name: str) -> None:
    kb = KnowledgeBase(REACH, engine=engine_name)
    change = kb.load({"edge": EDGES})
    assert set(kb.facts("reach")) == REACHED
    assert set(change.added("reach")) == REACHED
    assert kb.count("reach") == len(REACHED)


def test_first_load_is_a_materialisation_whatever_the_algorithm() -> None:
    kb = KnowledgeBase(REACH, engine="reference", algorithm="dred")
    assert kb.load({"edge": EDGES}).report.algorithm == "remat"
    assert kb.delete("edge", [("a", "b")]).report.algorithm == "dred"


def test_facts_in_the_text_are_explicit(engine_name: str) -> None:
    kb = KnowledgeBase("p(a) . p(b) . q(?x) :- p(?x) . q(z) .", engine=engine_name)
    assert set(kb.facts("p", "explicit")) == {("a",), ("b",)}
    assert set(kb.facts("q", "explicit")) == {("z",)}
    assert set(kb.facts("q", "derived")) == {("a",), ("b",)}
    kb.delete("p", [("a",)])
    assert set(kb.facts("q")) == {("b",), ("z",)}


def test_facts_without_arguments(engine_name: str) -> None:
    kb = KnowledgeBase("alarm :- smoke, not drill .", engine=engine_name)
    kb.insert("smoke", [()])
    assert kb.contains("alarm", ())
    assert kb.facts("alarm").to_list() == [()]
    change = kb.insert("drill", [()])
    assert change.removed("alarm").to_list() == [()]
    assert change.removed("alarm", "explicit").to_list() == []
    assert change.removed("alarm", "derived").to_list() == [()]
    assert kb.count("alarm") == 0


def test_an_engine_object_can_be_given() -> None:
    kb = KnowledgeBase(REACH, engine=make_engine("reference"))
    assert kb.engine == "reference"


def test_all_kinds_of_values_come_back(engine_name: str) -> None:
    values = [
        ("text",),
        (7,),
        (2**80,),
        (-1.5,),
        (Decimal("0.10"),),
        (True,),
        (IRI("http://example.org/a"),),
        (BlankNode("b"),),
        (LangString("chat", "fr"),),
        (TypedLiteral("P1D", "http://www.w3.org/2001/XMLSchema#duration"),),
    ]
    kb = KnowledgeBase("copy(?x) :- given(?x) .", engine=engine_name)
    kb.insert("given", values)
    back = kb.facts("copy").to_list()
    assert {(type(value), value) for (value,) in back} == {
        (type(value), value) for (value,) in values
    }


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame({"x": ["a", "b"], "y": [1, 2]}),
        pl.DataFrame({"x": ["a", "b"], "y": [1, 2]}),
        pa.table({"x": ["a", "b"], "y": [1, 2]}),
        {"x": ["a", "b"], "y": [1, 2]},
        [("a", 1), ("b", 2)],
        (row for row in [["a", 1], ["b", 2]]),
    ],
    ids=["pandas", "polars", "arrow", "columns", "tuples", "generator"],
)
def test_rows_of_every_form(rows: object) -> None:
    kb = KnowledgeBase(engine="reference")
    kb.insert("p", rows)
    assert set(kb.facts("p")) == {("a", 1), ("b", 2)}


def test_files_are_paths(tmp_path: Path) -> None:
    (tmp_path / "edge.csv").write_text("a,b\nb,c\n")
    kb = KnowledgeBase(REACH, engine="reference")
    kb.load({"edge": tmp_path / "edge.csv"})
    assert kb.contains("reach", ("a", "c"))
    kb.delete("edge", tmp_path / "edge.csv")
    assert kb.count("reach") == 0


def test_declared_names_and_types_read_files(tmp_path: Path) -> None:
    (tmp_path / "age.csv").write_text("who,years\nann,007\n")
    kb = KnowledgeBase(
        "@declare age(who: string, years: integer) .", engine="reference"
    )
    kb.load({"age": tmp_path / "age.csv"})
    assert kb.facts("age").to_list() == [("ann", 7)]
    assert kb.facts("age").columns == ("who", "years")


def test_rdf_files_become_triples(tmp_path: Path) -> None:
    file = tmp_path / "data.ttl"
    file.write_text("@prefix : <http://e.org/> . :a :knows :b . :b :knows :c .")
    rules = """
        @prefix : <http://e.org/> .
        [?x, :reaches, ?y] :- [?x, :knows, ?y] .
        [?x, :reaches, ?z] :- [?x, :reaches, ?y], [?y, :knows, ?z] .
    """
    kb = KnowledgeBase(rules, engine="reference")
    kb.load(rdf=file)
    result = kb.query("[:a, :reaches, ?who]")
    assert set(result) == {(IRI("http://e.org/b"),), (IRI("http://e.org/c"),)}
    assert kb.facts("triple").columns == ("subject", "predicate", "object")


def test_counters_are_exact(engine_name: str) -> None:
    kb = KnowledgeBase(REACH, engine=engine_name)
    kb.load({"edge": [*EDGES, ("a", "c")], "reach": [("a", "b")]})
    result = kb.counters("reach")
    assert result.columns[-2:] == ("c_nr", "c_r")
    counts = {(row[0], row[1]): (row[2], row[3]) for row in result}
    assert counts[("a", "b")] == (2, 0)
    assert counts[("a", "c")] == (1, 1)
    assert counts[("a", "d")] == (0, 1)


@pytest.mark.parametrize(
    "rules", ["p(?x, ?y) :- q(?x, ?y), 1 > 2 .", "@declare p(any, any) ."]
)
def test_counters_of_no_facts_are_empty(rules: str, engine_name: str) -> None:
    result = KnowledgeBase(rules, engine=engine_name).counters("p")
    assert result.columns[-2:] == ("c_nr", "c_r")
    assert result.to_list() == []
    assert result.to_arrow().column_names == list(result.columns)


def test_one_counter_alone(engine_name: str) -> None:
    kb = KnowledgeBase(REACH, engine=engine_name, counters="nonrecursive")
    kb.load({"edge": [("a", "b"), ("b", "c"), ("a", "c")]})
    result = kb.counters("reach")
    assert result.columns == ("x", "y", "c_nr")
    assert set(result) == {("a", "b", 1), ("b", "c", 1), ("a", "c", 1)}
    assert kb.delete("edge", [("a", "c")]).report.algorithm == "bf-c"
    assert set(kb.counters("reach")) == {("a", "b", 1), ("b", "c", 1), ("a", "c", 0)}


@pytest.mark.parametrize("setting", ["recursive", "both", None, 1, 0])
def test_other_settings_of_counters_are_refused(setting: object) -> None:
    with pytest.raises(CountersSettingError, match="is not known"):
        KnowledgeBase(engine="reference", counters=setting)  # type: ignore[arg-type]


def test_without_counters_there_are_none_to_read() -> None:
    kb = KnowledgeBase("p(a) .", engine="reference", counters=False)
    with pytest.raises(NoCountersError, match="keeps no counters"):
        kb.counters("p")


def test_a_budget_stops_endless_rules_and_changes_nothing(engine_name: str) -> None:
    kb = KnowledgeBase(
        "n(?y) :- n(?x), ?y = ?x + 1 .",
        engine=engine_name,
        budget=Budget(rounds=20),
    )
    with pytest.raises(BudgetExceededError, match="20 rounds") as caught:
        kb.insert("n", [(0,)])
    assert "n(?y) :- n(?x)" in str(caught.value)
    assert kb.count("n") == 0
    assert not kb.contains("n", (0,))


def test_progress_is_told_about_every_round() -> None:
    steps: list[Step] = []
    kb = KnowledgeBase(REACH, engine="reference", modules=False, progress=steps.append)
    kb.load({"edge": EDGES})
    assert [step.round for step in steps] == list(range(1, len(steps) + 1))
    assert steps[-1].total_facts == len(REACHED)


def test_materialise_changes_nothing_that_is_up_to_date(engine_name: str) -> None:
    kb = KnowledgeBase(REACH, engine=engine_name)
    kb.load({"edge": EDGES})
    assert kb.materialise().is_empty()
    assert set(kb.facts("reach")) == REACHED


def test_inside_views(engine_name: str) -> None:
    rules = REACH + "end(?x) :- reach(_, ?x), not edge(?x, _) ."
    kb = KnowledgeBase(rules, engine=engine_name)
    kb.load({"edge": EDGES})
    stats = kb.stats()
    assert stats["predicates"]["edge"]["explicit"] == len(EDGES)
    assert stats["facts"] == len(EDGES) + len(REACHED) + 1
    assert kb.predicates == {"edge": 2, "end": 1, "reach": 2}
    assert "reach(?x, ?z)" in kb.explain_plan()
    assert str(kb.rules[0]) == "reach(?x, ?y) :- edge(?x, ?y) ."
    assert repr(kb) == f"<KnowledgeBase on {engine_name}: 3 rules, 10 facts>"


def test_unknown_predicates_are_refused_with_near_names() -> None:
    kb = KnowledgeBase(REACH, engine="reference")
    for ask in (kb.facts, kb.count, kb.counters):
        with pytest.raises(UnknownPredicateError, match="did you mean `reach`"):
            ask("raech")


@pytest.mark.parametrize("rows", [[("a",)], [("a", "b"), ("a", "b", "c")]])
def test_rows_of_another_width_change_nothing(rows: list[object]) -> None:
    kb = KnowledgeBase(REACH, engine="reference")
    with pytest.raises(ArityClashError, match="`edge` has 2 arguments, in row"):
        kb.insert("edge", rows)
    with pytest.raises(ArityClashError, match="`edge` has 2 arguments, here"):
        kb.insert("edge", pa.table({"x": ["a"]}))
    assert kb.count("edge") == 0


def test_contains_checks_the_width() -> None:
    kb = KnowledgeBase(REACH, engine="reference")
    with pytest.raises(ArityClashError):
        kb.contains("edge", ("a",))


def test_values_of_another_type_than_declared_change_nothing() -> None:
    kb = KnowledgeBase("@declare age(string, integer) .", engine="reference")
    with pytest.raises(FactTypeError, match=r'"old" in row 2 of `age`'):
        kb.insert("age", [("ann", 7), ("bob", "old")])
    assert kb.count("age") == 0


def test_an_empty_list_is_no_rows(engine_name: str) -> None:
    kb = KnowledgeBase(REACH, engine=engine_name)
    assert kb.insert("edge", []).is_empty()
    assert kb.insert("new", []).is_empty()
    assert "new" not in kb.predicates


def test_invalid_rules_are_refused() -> None:
    with pytest.raises(EvermatError, match="EM201"):
        KnowledgeBase("p(?x, ?y) :- q(?x) .")
    with pytest.raises(EvermatError, match="EM301"):
        KnowledgeBase("p(?x) :- q(?x), not p(?x) .")


def test_plans_say_which_rules_modules_take(engine_name: str) -> None:
    kb = KnowledgeBase(REACH, engine=engine_name)
    told = kb.explain_plan()
    assert "by a module\n    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) ." in told
    assert told.count("reach(?x, ?z) :-") == 1
    kb = KnowledgeBase(REACH, engine=engine_name, modules=False)
    assert "module" not in kb.explain_plan()


def test_a_session_of_spark_is_for_the_engine_of_that_name() -> None:
    with pytest.raises(RequestError, match="not for `reference`"):
        KnowledgeBase(engine="reference", spark=object())  # type: ignore[arg-type]


def test_rules_and_transactions_can_be_read_in_a_console() -> None:
    kb = KnowledgeBase("p(?x) :- q(?x), not r(?x) .", engine="reference")
    assert repr(kb.rules) == "(<Rule p(?x) :- q(?x), not r(?x) .>,)"
    with kb.transaction() as transaction:
        assert repr(transaction) == "<Transaction that is open>"
    assert repr(transaction) == "<Transaction that has been committed>"


def test_unknown_engines_and_algorithms_are_refused() -> None:
    with pytest.raises(EvermatError, match="no engine"):
        KnowledgeBase(engine="quick")
    with pytest.raises(EvermatError, match="no algorithm `quick`"):
        KnowledgeBase(engine="reference", algorithm="quick")
    with pytest.raises(EvermatError, match="recursive"):
        KnowledgeBase(REACH, engine="reference", algorithm="counting")
    with pytest.raises(EvermatError, match="reads counters of all derivations"):
        KnowledgeBase(engine="reference", algorithm="dred-c", counters=False)
    with pytest.raises(EvermatError, match="only those of nonrecursive derivations"):
        KnowledgeBase(engine="reference", algorithm="dred-c", counters="nonrecursive")
    with pytest.raises(EvermatError, match="`counters='nonrecursive'` or"):
        KnowledgeBase(engine="reference", algorithm="bf-c", counters=False)


def test_relative_iris_need_a_base(tmp_path: Path, engine_name: str) -> None:
    file = tmp_path / "data.ttl"
    file.write_text("<a> <b> <c> .")
    kb = KnowledgeBase(engine=engine_name)
    kb.load(rdf=file, base="http://example.org/")
    iris = tuple(IRI(f"http://example.org/{name}") for name in "abc")
    assert kb.facts("triple").to_list() == [iris]


def test_what_a_question_finds_can_be_deleted(engine_name: str) -> None:
    kb = KnowledgeBase(engine=engine_name)
    iri = IRI("http://example.org/a")
    kb.insert("p", [(iri, 1), (iri.text, 1), ("b", 2)])
    one = kb.query("p(?x, ?n), ?n = 1")
    assert len(one) == 2
    assert set(kb.delete("p", one).removed("p")) == {(iri, 1), (iri.text, 1)}
    assert kb.count("p") == 1


@pytest.mark.parametrize("equality", ["off", "rewrite"])
def test_a_declared_predicate_without_facts_can_be_deleted_from(
    engine_name: str, equality: Literal["off", "rewrite"]
) -> None:
    kb = KnowledgeBase(
        "@declare edge(from: any, to: any) . @declare flag() .",
        engine=engine_name,
        equality=equality,
    )
    change = kb.update(delete={"edge": [(1, 2), (3, 4)], "flag": [()]})
    assert change.is_empty()
    assert change.report.ignored.deletions == 3
    with pytest.raises(UnknownPredicateError, match="`egde`"):
        kb.delete("egde", [(1, 2)])
    kb.insert("edge", [(1, 2)])
    assert kb.facts("edge").to_list() == [(1, 2)]
