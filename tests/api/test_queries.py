"""Questions: conjunctions with negation, built-ins and constants."""

from __future__ import annotations

import pytest

from evermat import EvermatError, KnowledgeBase
from evermat.lang.catalogue import ArityClashError, UnknownPredicateError

FACTS = {
    "edge": [("a", "b"), ("b", "c"), ("c", "c")],
    "weight": [("a", 1), ("b", 5), ("c", 9)],
    "blocked": [("b",)],
}


@pytest.fixture
def kb(engine_name: str) -> KnowledgeBase:
    kb = KnowledgeBase(engine=engine_name)
    kb.load(FACTS)
    return kb


@pytest.mark.parametrize(
    ("question", "columns", "rows"),
    [
        ("edge(?x, ?y)", ("x", "y"), {("a", "b"), ("b", "c"), ("c", "c")}),
        ("edge(?y, ?x) .", ("y", "x"), {("a", "b"), ("b", "c"), ("c", "c")}),
        ("edge(?x, 'c')", ("x",), {("b",), ("c",)}),
        ("edge(?x, ?x)", ("x",), {("c",)}),
        ("edge(_, ?x)", ("x",), {("b",), ("c",)}),
        ("edge(?x, ?y), edge(?y, ?z)", ("x", "y", "z"),
         {("a", "b", "c"), ("b", "c", "c"), ("c", "c", "c")}),
        ("weight(?x, ?n), ?n > 3", ("x", "n"), {("b", 5), ("c", 9)}),
        ("weight(?x, ?n), ?n > 3, not blocked(?x)", ("x", "n"), {("c", 9)}),
        ("weight(?x, ?n), ?m = ?n * 2 + 1", ("x", "n", "m"),
         {("a", 1, 3), ("b", 5, 11), ("c", 9, 19)}),
        ("weight(?x, _), not edge(?x, ?anything)", ("x",), set()),
        ("weight(?x, _), not edge(?other, ?x)", ("x",), {("a",)}),
        ("weight(?x, _), not edge(_, ?x), not blocked(?x)", ("x",), {("a",)}),
        ("edge(?x, 'c'), 1 > 2", ("x",), set()),
        ("edge(?x, 'c'), 1 < 2", ("x",), {("b",), ("c",)}),
        ("edge(?x, 'c'), not edge(_, ?x), 1 > 2", ("x",), set()),
        ("edge(a, b), 1 > 2", (), set()),
    ],
)  # fmt: skip
def test_answers(
    kb: KnowledgeBase, question: str, columns: tuple[str, ...], rows: set[object]
) -> None:
    result = kb.query(question)
    assert result.columns == columns
    assert set(result) == rows
    assert len(result) == len(rows)


def test_a_question_without_variables_has_one_row_or_none(kb: KnowledgeBase) -> None:
    assert kb.query("edge(a, b)").to_list() == [()]
    assert kb.query("edge(b, a)").to_list() == []
    assert kb.query("edge(a, _), not blocked(a)").to_list() == [()]
    assert kb.query("not edge(b, a)").to_list() == [()]


def test_asking_leaves_no_traces(kb: KnowledgeBase) -> None:
    before = kb.stats()["predicates"]
    kb.query("weight(?x, _), not edge(_, ?x)")
    assert set(kb.stats()["predicates"]) == set(before)
    change = kb.insert("edge", [("c", "a")])
    assert change.predicates == ("edge",)
    assert set(kb.query("weight(?x, _), not edge(_, ?x)")) == set()


def test_prefixes_of_the_program_are_known() -> None:
    kb = KnowledgeBase(
        "@prefix ex: <http://e.org/> . p(ex:a) . p(b) .", engine="reference"
    )
    assert len(kb.query("p(ex:a)")) == 1


def test_unknown_predicates_are_shown_with_near_names(kb: KnowledgeBase) -> None:
    with pytest.raises(UnknownPredicateError, match="did you mean `edge`") as caught:
        kb.query("edge(?x, ?y), not egde(?y, ?x)")
    assert "^^^^" in str(caught.value)


def test_questions_with_mistakes_are_refused(kb: KnowledgeBase) -> None:
    with pytest.raises(ArityClashError, match="`edge` has 2 arguments"):
        kb.query("edge(?x)")
    with pytest.raises(EvermatError, match="EM201"):
        kb.query("edge(?x, ?y), ?n > 3")
    with pytest.raises(SyntaxError, match="EM101"):
        kb.query("edge(?x, ?y")
    with pytest.raises(EvermatError, match="EM203"):
        kb.query("edge(?x, ?y), ?z = frobnicate(?x)")


def test_mistakes_are_shown_where_they_are(kb: KnowledgeBase) -> None:
    with pytest.raises(EvermatError) as caught:
        kb.query("edge(?x, ?y), ?n > 3")
    assert str(caught.value).splitlines()[1] == " --> <query>:1:15"
    with pytest.raises(
        ArithmeticError, match=r"weight\(\?x, \?n\), \?m = 1 / \(\?n - 1\)"
    ):
        kb.query("weight(?x, ?n), ?m = 1 / (?n - 1)")


def test_declared_types_are_checked() -> None:
    kb = KnowledgeBase("@declare age(string, integer) .", engine="reference")
    with pytest.raises(TypeError, match="EM401"):
        kb.query("age(?who, ?years), ?years + ?who > 3")
