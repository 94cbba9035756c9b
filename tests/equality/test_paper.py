"""Section 3.1 of the paper on B/F^≈, step by step: a deletion makes the facts grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import evermat

if TYPE_CHECKING:
    from evermat.kb.equality import Equality

BIJECTIVE = """
    ?y1 ≈ ?y2 :- r(?y1, ?x), r(?y2, ?x) .
    ?y1 ≈ ?y2 :- r(?x, ?y1), r(?x, ?y2) .
"""
EDGES = [("a", "b"), ("c", "d"), ("a", "d")]


def example(engine: str, equality: Equality = "rewrite") -> evermat.KnowledgeBase:
    kb = evermat.KnowledgeBase(BIJECTIVE, engine=engine, equality=equality)
    kb.insert("r", EDGES)
    return kb


def raw(kb: evermat.KnowledgeBase) -> set[tuple[object, ...]]:
    return set(kb.query("r(?x, ?y)", raw=True))


def test_paper_rewriting_stores_one_fact_for_four(engine_name: str) -> None:
    kb = example(engine_name)
    assert raw(kb) == {("a", "b")}
    assert set(kb.facts("r")) == {(x, y) for x in "ac" for y in "bd"}
    assert kb.count("r") == 4
    assert set(kb.representatives()) == {
        ("a", "a"),
        ("c", "a"),
        ("b", "b"),
        ("d", "b"),
    }


def test_paper_a_deletion_makes_the_stored_facts_grow(engine_name: str) -> None:
    kb = example(engine_name)
    change = kb.update(delete={"r": [("a", "d")]}, algorithm="bf")
    assert raw(kb) == {("a", "b"), ("c", "d")}
    assert len(kb.representatives()) == 0
    assert set(change.removed("r")) == {("a", "d"), ("c", "b")}
    assert change.added("r").to_list() == []
    assert set(change.removed("same_as")) == {
        ("a", "c"),
        ("c", "a"),
        ("b", "d"),
        ("d", "b"),
    }
    assert change.report.algorithm == "bf"


def test_paper_inserting_again_merges_again(engine_name: str) -> None:
    kb = example(engine_name)
    kb.update(delete={"r": [("a", "d")]}, algorithm="bf")
    kb.update(insert={"r": [("a", "d")]}, algorithm="bf")
    assert raw(kb) == {("a", "b")}
    assert kb.count("same_as") == 8


def test_paper_deleting_a_redundant_fact_splits_nothing(engine_name: str) -> None:
    kb = example(engine_name)
    kb.insert("r", [("c", "b")])
    change = kb.update(delete={"r": [("a", "d")]}, algorithm="bf")
    assert change.is_empty()
    assert raw(kb) == {("a", "b")}
    assert set(kb.facts("r", "explicit")) == {("a", "b"), ("c", "d"), ("c", "b")}


@pytest.mark.parametrize("algorithm", ["remat", "bf", "dred"])
def test_agree_axioms_and_rewriting(algorithm: str, engine_name: str) -> None:
    rewritten = example(engine_name)
    axioms = example(engine_name, "axioms")
    assert len(axioms.rules) == 2
    for delete in ([("a", "d")], [("a", "b")]):
        for kb in (rewritten, axioms):
            kb.update(delete={"r": delete}, algorithm=algorithm)
        for predicate in ("r", "same_as"):
            assert set(rewritten.facts(predicate)) == set(axioms.facts(predicate))
            assert rewritten.count(predicate) == axioms.count(predicate)
