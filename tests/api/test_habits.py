"""Habits of Python and data people: indexing, frames, parameters, copies, undo."""

from __future__ import annotations

import asyncio
import logging
from threading import Thread

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from evermat import EvermatError, KnowledgeBase
from evermat.kb.transaction import NothingToUndoError

REACH = """
    reach(?from, ?to) :- edge(?from, ?to) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""
EDGES = [("a", "b"), ("b", "c"), ("c", "d")]


@pytest.fixture
def kb(engine_name: str) -> KnowledgeBase:
    kb = KnowledgeBase(REACH, engine=engine_name)
    kb.load({"edge": EDGES})
    return kb


def everything(kb: KnowledgeBase) -> dict[str, set[tuple[object, ...]]]:
    found: dict[str, set[tuple[object, ...]]] = {}
    for name in kb:
        found[name] = set(kb[name])
        found[f"explicit {name}"] = set(kb.facts(name, "explicit"))
    return found


# ------------------------------------------------------------------------- results


def test_rows_are_indexed_and_sliced(kb: KnowledgeBase) -> None:
    rows = kb["reach"].sort()
    assert rows.to_list() == sorted(rows.to_list())
    assert rows[0] == ("a", "b")
    assert rows[-1] == ("c", "d")
    assert rows[1:3].to_list() == [("a", "c"), ("a", "d")]
    assert rows[::-2].to_list() == [("c", "d"), ("b", "c"), ("a", "c")]
    assert rows[:2].to_list() == [("a", "b"), ("a", "c")]
    with pytest.raises(IndexError):
        rows[6]


def test_rows_are_sorted_by_value(engine_name: str) -> None:
    kb = KnowledgeBase(engine=engine_name)
    kb.insert("age", [("bob", 9), ("ann", 10), ("cem", -1)])
    by_age = kb.query("age(?who, ?years)").sort("years", descending=True)
    assert [row[1] for row in by_age] == [10, 9, -1]
    with pytest.raises(EvermatError, match=r"EM565.*no column `age`"):
        by_age.sort("age")
    assert kb.query("age(ann, 10)").sort().to_list() == [()]


def test_libraries_read_results_and_changes_as_arrow(kb: KnowledgeBase) -> None:
    result = kb["reach"]
    assert set(pl.DataFrame(result).rows()) == set(result)
    assert pa.table(result).num_rows == 6
    relation = duckdb.sql("from result")
    assert relation is not None
    assert set(relation.fetchall()) == set(result)
    change = kb.update(delete={"edge": [("c", "d")]}, insert={"flag": [()]})
    table = pa.table(change)
    assert sorted(map(tuple, (row.values() for row in table.to_pylist()))) == [
        ("edge", "removed", 'edge("c", "d")'),
        ("flag", "added", "flag()"),
        ("reach", "removed", 'reach("a", "d")'),
        ("reach", "removed", 'reach("b", "d")'),
        ("reach", "removed", 'reach("c", "d")'),
    ]
    nothing = kb.insert("edge", [("a", "b")])
    assert nothing.to_arrow().num_rows == 0


def test_columns_are_called_like_variables_of_the_first_head(
    kb: KnowledgeBase,
) -> None:
    assert kb["reach"].columns == ("from", "to")
    assert kb["edge"].columns == ("c1", "c2")
    change = kb.update(
        add_rules="loop(?x, ?x) :- reach(?x, ?x) . loop(?one, ?other) :- "
        "reach(?one, ?other), reach(?other, ?one) . same(?x, ?x) :- edge(?x, _) ."
    )
    assert kb["loop"].columns == ("one", "other")
    assert change.added("same").columns == ("c1", "c2")
    kb.update(add_rules="@declare reach(start: any, end: any) .")
    assert kb["reach"].columns == ("start", "end")


# --------------------------------------------------------------- the knowledge base


def test_a_knowledge_base_is_a_collection_of_predicates(kb: KnowledgeBase) -> None:
    assert list(kb) == ["edge", "reach"]
    assert "reach" in kb
    assert "raech" not in kb
    assert len(kb) == 9
    assert KnowledgeBase(engine="reference")  # though it has no facts
    with pytest.raises(EvermatError, match="EM251"):
        kb["raech"]


def test_parameters_are_values_not_text(kb: KnowledgeBase) -> None:
    assert set(kb.query("reach(?x, $y)", y="c")) == {("a",), ("b",)}
    assert len(kb.query("reach(?x, $y)", y="c'), edge(?x, ?z")) == 0
    kb.insert("age", [("ann", 7), ("bob", 9)])
    assert kb.query("age(?who, ?n), ?n > $n", n=8).to_list() == [("bob", 9)]
    assert kb.query("reach($a, $b)", a="a", b="d").to_list() == [()]
    with pytest.raises(EvermatError, match=r"EM101.*`\$y` has no value"):
        kb.query("reach(?x, $y)")
    with pytest.raises(EvermatError, match=r"EM107.*no parameter `\$z`"):
        kb.query("reach(?x, ?y)", z=1)
    with pytest.raises(EvermatError, match=r"`\$x` has no value"):
        kb.update(add_rules="p($x) :- reach($x, _) .")


def test_limits_give_the_first_rows(kb: KnowledgeBase) -> None:
    assert len(kb.query("reach(?x, ?y)", limit=2)) == 2
    assert len(kb.facts("reach", limit=0)) == 0
    assert len(kb.facts("reach", limit=100)) == 6
    with pytest.raises(EvermatError, match="EM567"):
        kb.query("reach(?x, ?y)", limit=-1)


@pytest.mark.parametrize("equality", ["off", "rewrite", "axioms"])
def test_copies_go_their_own_way(engine_name: str, equality: str) -> None:
    kb = KnowledgeBase(
        "@prefix : <http://e.org/> . @declare edge(from: any, to: any) . :p(1) ."
        + REACH,
        engine=engine_name,
        equality=equality,  # type: ignore[arg-type]
    )
    kb.load({"edge": EDGES, "reach": [("q", "r")]})
    if equality != "off":
        kb.insert("same_as", [("a", "x")])
    before = everything(kb)
    other = kb.copy()
    assert everything(other) == before
    assert other.rules == kb.rules
    assert other["edge"].columns == ("from", "to")
    assert other.query(":p(?x)").to_list() == [(1,)]
    other.delete("edge", [("a", "b")])
    assert everything(kb) == before


# -------------------------------------------------------------------------- changes


@pytest.mark.parametrize("equality", ["off", "rewrite"])
def test_a_replacement_is_all_that_is_explicit(engine_name: str, equality: str) -> None:
    kb = KnowledgeBase(REACH, engine=engine_name, equality=equality)  # type: ignore[arg-type]
    kb.load({"edge": EDGES, "reach": [("a", "z")], "other": [(1,)]})
    tonight = [("a", "b"), ("b", "d")]
    planned = kb.plan(replace={"edge": tonight})
    change = kb.replace("edge", tonight)
    assert repr(change) == repr(planned).replace("Planned change", "Change")
    assert set(change.deleted("edge")) == {("b", "c"), ("c", "d")}
    assert set(change.inserted("edge")) == {("b", "d")}
    assert change.report.ignored.insertions == 1
    assert change.report.ignored.deletions == 0
    scratch = KnowledgeBase(REACH, engine="reference")
    scratch.load({"edge": tonight, "reach": [("a", "z")], "other": [(1,)]})
    assert everything(kb) == everything(scratch)
    assert kb.replace("edge", tonight).is_empty()
    assert set(kb.replace("edge", []).removed("edge")) == set(tonight)
    with kb.transaction() as tx:
        tx.replace("reach", [("a", "y")])
        tx.insert("edge", [("y", "w")])
    assert set(kb["reach"]) == {("a", "y"), ("a", "w"), ("y", "w")}


def test_what_cannot_be_replaced_changes_nothing(kb: KnowledgeBase) -> None:
    before = everything(kb)
    with pytest.raises(EvermatError, match="EM251"):
        kb.replace("egde", [])
    with pytest.raises(EvermatError, match="EM557"):
        kb.update(replace={"edge": []}, delete={"edge": EDGES})
    with pytest.raises(EvermatError, match="EM250"):
        kb.replace("edge", [("a",)])
    assert everything(kb) == before


def test_facts_of_no_columns_and_of_no_rule_are_replaced(engine_name: str) -> None:
    kb = KnowledgeBase(
        "on() :- switch() . @declare light(x: any) .", engine=engine_name
    )
    assert repr(kb.replace("switch", [()])) == "<Change on +1, switch +1>"
    assert repr(kb.replace("switch", [])) == "<Change on -1, switch -1>"
    assert repr(kb.replace("light", [])) == "<Change nothing>"
    assert repr(kb.replace("new", [(1,), (1,)])) == "<Change new +1>"


@pytest.mark.parametrize("equality", ["off", "rewrite"])
def test_the_last_update_is_undone(engine_name: str, equality: str) -> None:
    kb = KnowledgeBase(REACH, engine=engine_name, equality=equality)  # type: ignore[arg-type]
    kb.load({"edge": EDGES, "reach": [("a", "b")]})
    before, rules = everything(kb), set(map(str, kb.rules))
    kb.update(
        delete={"edge": [("a", "b")], "reach": [("a", "b")]},
        insert={"edge": [("x", "y"), ("b", "c")]},
        add_rules="p(?x) :- reach(?x, _) .",
        remove_rules="reach(?u, ?v) :- edge(?u, ?v) .",
    )
    kb.undo()
    left = {name: facts for name, facts in everything(kb).items() if facts}
    assert left == before
    assert set(map(str, kb.rules)) == rules
    with pytest.raises(NothingToUndoError, match="no update to undo"):
        kb.undo()
    if equality == "rewrite":
        kb.insert("same_as", [("a", "x")])
        before = everything(kb)
        kb.delete("same_as", [("a", "x")])
        kb.undo()
        assert everything(kb) == before


def test_a_failed_update_leaves_the_one_before_to_be_undone(kb: KnowledgeBase) -> None:
    kb.insert("edge", [("d", "e")])
    with pytest.raises(EvermatError):
        kb.insert("edge", [("d",)])
    assert set(kb.undo().removed("edge")) == {("d", "e")}


def test_large_updates_are_not_remembered(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evermat.kb.transaction.MOST_FACTS", 1)
    kb.insert("edge", [("d", "e"), ("e", "f")])
    with pytest.raises(NothingToUndoError, match="too large"):
        kb.undo()


# -------------------------------------------------------------------- subscriptions


def test_subscribers_are_told_after_each_commit(kb: KnowledgeBase) -> None:
    seen: list[object] = []
    every: list[object] = []
    subscription = kb.subscribe(
        "reach", lambda change: seen.append((len(kb["reach"]), repr(change)))
    )
    kb.subscribe(callback=every.append)
    kb.insert("edge", [("d", "e")])
    kb.insert("edge", [("d", "e")])  # changes nothing
    kb.insert("other", [(1,)])  # nor anything about `reach`
    kb.plan(delete={"edge": EDGES})
    kb.undo()
    with kb.transaction() as tx:
        tx.delete("edge", [("c", "d"), ("d", "e")])
    assert seen == [
        (10, "<Change edge +1, reach +4>"),
        (3, "<Change edge -2, reach -7>"),
    ]
    assert len(every) == 4
    subscription.cancel()
    kb.insert("edge", [("d", "e")])
    assert len(seen) == 2
    with pytest.raises(EvermatError, match="EM251"):
        kb.subscribe("raech")


def test_a_failing_subscriber_undoes_nothing_and_is_logged(
    kb: KnowledgeBase, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(change: object) -> None:
        raise ZeroDivisionError(repr(change))

    told: list[object] = []
    kb.subscribe("edge", fail)
    kb.subscribe("edge", told.append)
    with caplog.at_level(logging.ERROR, "evermat"):
        kb.insert("edge", [("d", "e")])
    assert kb.contains("edge", ("d", "e"))
    assert len(told) == 1
    assert "a subscriber to `edge` failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_updates_of_subscribers_are_told_in_order(kb: KnowledgeBase) -> None:
    order: list[str] = []

    def go_on(change: object) -> None:
        order.append(f"first {change!r}")
        if not kb.contains("edge", ("e", "f")):
            kb.insert("edge", [("e", "f")])

    kb.subscribe("edge", go_on)
    kb.subscribe("edge", lambda change: order.append(f"second {change!r}"))
    kb.update(insert={"edge": [("y", "z")]})
    changes = ["<Change edge +1, reach +1>"] * 2
    assert order == [f"{who} {each}" for each in changes for who in ("first", "second")]


def test_changes_are_awaited(kb: KnowledgeBase) -> None:
    def insert() -> None:
        for number in range(3):
            kb.insert("edge", [(f"n{number}", "a")])

    async def changes() -> list[str]:
        seen = []
        with kb.subscribe("reach") as subscription:
            thread = Thread(target=insert)
            thread.start()
            async for change in subscription:
                seen.append(repr(change))
                if len(seen) == 3:
                    subscription.cancel()
            thread.join()
        return seen

    assert asyncio.run(changes()) == ["<Change edge +1, reach +4>"] * 3
