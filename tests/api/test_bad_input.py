"""Whatever is wrong with a request: a clear error, and nothing has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from evermat import Budget, EvermatError, KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""


@pytest.fixture
def kb(engine_name: str) -> KnowledgeBase:
    kb = KnowledgeBase(RULES, engine=engine_name, budget=Budget(rounds=30))
    kb.load({"edge": [("a", "b"), ("b", "c")]})
    return kb


def everything(kb: KnowledgeBase) -> object:
    """All that can be seen of a knowledge base."""
    facts = {
        (name, sort): sorted(map(str, kb.facts(name, sort).constants()))
        for name in kb.predicates
        for sort in ("all", "explicit")
    }
    counters = sorted(map(str, kb.counters("reach").constants()))
    return kb.predicates, list(map(str, kb.rules)), facts, counters


def refused(kb: KnowledgeBase, action: Callable[[], object]) -> str:
    """The text of the error that an action gives; nothing has changed then."""
    before = everything(kb)
    with pytest.raises(EvermatError) as caught:
        action()
    assert everything(kb) == before
    kb.insert("edge", [("c", "d")])  # it is usable still
    assert kb.contains("reach", ("a", "d"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("p(?x, ?y) :- edge(?x, _) .", "EM201"),
        ("p(?x) :- edge(?x, _), not q(?x) . q(?x) :- p(?x) .", "EM301"),
        ("edge(?x, ?x) :- edge(?x, _), not reach(?x, ?x) .", "EM301"),
        ("p(?y) :- edge(?x, _), ?y = length(3) .", "EM401"),
        ("p(?x) :- edge(?x _) .", "EM101"),
        ("p(?x) :- edge(?x) .", "EM250"),
        ("p(?x) :- edge(?x, _), regex(?x, '(') .", "EM404"),
        ("p(?x) :- edge(?x, _), shout(?x) = 'A' .", "EM203"),
        ("p(?x) :- edge(?x, _), ?y = 1 / (length(?x) - 1), ?y > 0 .", "EM601"),
        ("p(?y) :- edge(?x, _), ?y = int(?x) .", "EM601"),
        ("p(0) . p(?y) :- p(?x), ?y = ?x + 1 .", "EM602"),
    ],
)
def test_rules_that_are_wrong(kb: KnowledgeBase, rules: str, message: str) -> None:
    text = refused(kb, lambda: kb.update(add_rules=rules))
    assert message in text
    if message in {"EM601", "EM602"}:
        assert "p(?" in text  # the rule is named


def test_a_computation_that_fails_names_the_rule_and_the_fact(
    kb: KnowledgeBase,
) -> None:
    rule = "share(?who, ?q) :- sale(?who, ?n, ?of), ?q = ?n / (?of - 2) ."
    sales = [("ann", 4, 1), ("bob", 7, 2), ("cem", 9, 5)]
    text = refused(kb, lambda: kb.update(insert={"sale": sales}, add_rules=rule))
    assert "`7 / (2 - 2)`" in text
    assert 'sale("bob", 7, 2)' in text
    assert rule in text


def test_places_in_texts_of_the_same_name_are_kept_apart(kb: KnowledgeBase) -> None:
    rule = "edge(?x, ?x) :- edge(?x, _), not reach(?x, ?x) ."
    text = refused(kb, lambda: kb.update(add_rules=rule))
    assert f"1 | {rule}" in text
    assert "2 |     reach(?x, ?y) :- edge(?x, ?y) ." in text


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a",)], "in row 1 it is given 1"),
        ([("a", "b"), ("a", "b", "c")], "in row 2 it is given 3"),
        ([("a", None)], "row 1 has no value in column `c2`"),
        ([("a", object())], "EM402"),
        ([("a", "\ud800")], "not Unicode"),
        (["ab"], "row 1 is not a tuple"),
        ("edge.csv", "Path('edge.csv')"),
        (7, "EM719"),
        (pd.DataFrame({"x": [1]}), "it is given 1"),
        (pd.DataFrame({"x": ["a", None], "y": ["b", "c"]}), "row 2 has no value"),
        (pl.DataFrame({"x": ["a", None], "y": ["b", "c"]}), "row 2 has no value"),
        (pa.table({"x": [[1]], "y": [2]}), "EM402"),
    ],
)
def test_rows_that_are_wrong(kb: KnowledgeBase, rows: object, message: str) -> None:
    assert message in refused(kb, lambda: kb.insert("edge", rows))
    assert message in refused(kb, lambda: kb.delete("edge", rows))


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("edge.csv", b"a,b\nc,d,e\n", "edge.csv:2:5"),
        ("edge.csv", b"a,b,c\n", "edge.csv:1:5"),
        ("edge.csv", b'a,b\n"c,d\n', "this quote is never closed"),
        ("edge.csv", b"a,b\nc,\xff\n", "edge.csv:2:3"),
        ("edge.csv.gz", b"a,b\n", "EM713"),
        ("edge.parquet", b"PAR1", "EM713"),
        ("edge.jsonl", b'{"a": 1, "b": 2}\n{"a": 1\n', "edge.jsonl:2:8"),
        ("edge.xyz", b"a,b\n", "EM712"),
        ("data.ttl", b"<http://a.b/c> <http://a.b/d> .\n", "data.ttl:1:"),
        ("data.nt", b'<http://a.b/c> <http://a.b/d> "x\n', "data.nt:1:"),
        ("data.rdf", b"<rdf>\n</rdg>", "data.rdf:2:"),
    ],
)
def test_files_that_are_wrong(
    kb: KnowledgeBase, tmp_path: Path, name: str, contents: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(contents)
    if name.startswith("data"):
        assert message in refused(kb, lambda: kb.load(rdf=path))
    else:
        assert message in refused(kb, lambda: kb.insert("edge", path))


def test_files_that_are_not_there(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("a,b\n")
    missing = tmp_path / "edge.csv"
    assert "edges.csv" in refused(kb, lambda: kb.insert("edge", missing))
    assert "EM711" in refused(kb, lambda: kb.load(rdf=tmp_path / "data.ttl"))
    rules = tmp_path / "rules.dl"
    assert "EM552" in refused(kb, lambda: kb.update(add_rules=rules))


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"delete": {"egde": [("a", "b")]}}, "did you mean `edge`?"),
        ({"remove_rules": "reach(?x, ?y) :- edge(?y, ?x) ."}, "did you mean"),
        ({"insert": {"edge": [("x", "y")]}, "algorithm": "dredd"}, "dred-c"),
        ({"insert": {"edge": [("x", "y")]}, "algorithm": "counting"}, "reach(?x, ?z)"),
        ({"insert": {"~p": [("x",)]}}, "EM253"),
        ({"insert": [("x", "y")]}, "EM557"),
        ({"add_rules": 7}, "EM551"),
        ({"add_rules": "rules.dl"}, "Path('rules.dl')"),
        # What is right in a request does not happen either.
        (
            {"insert": {"edge": [("x", "y")]}, "delete": {"edge": [("a",)]}},
            "EM250",
        ),
        (
            {"insert": {"edge": [("x", "y")]}, "add_rules": "p(?x) :- q() ."},
            "EM201",
        ),
    ],
)
def test_requests_that_are_wrong(
    kb: KnowledgeBase, request_: dict[str, object], message: str
) -> None:
    assert message in refused(kb, lambda: kb.update(**request_))  # type: ignore[arg-type]
    assert message in refused(kb, lambda: kb.plan(**request_))  # type: ignore[arg-type]


def test_a_row_is_not_a_text(kb: KnowledgeBase) -> None:
    assert "EM402" in refused(kb, lambda: kb.contains("edge", "ab"))
    assert "EM250" in refused(kb, lambda: kb.contains("edge", ("a",)))


def test_what_is_there_and_what_is_not_are_counted(kb: KnowledgeBase) -> None:
    before = everything(kb)
    change = kb.update(insert={"edge": [("a", "b")]}, delete={"edge": [("z", "z")]})
    assert change.is_empty()
    assert change.report.ignored.insertions == 1
    assert change.report.ignored.deletions == 1
    assert everything(kb) == before
