"""Explanations of aggregates: the group, its size, and what matters in it."""

from __future__ import annotations

import pytest

from evermat import KnowledgeBase

RULES = """
    total(?x, ?n) :- part(?x),
        ?n = sum{ ?q * ?k, ?w : needs(?x, ?w, ?q), price(?w, ?k) } .
    dear(?x) :- total(?x, ?n), ?n > 20 .
    way(?y, 0) :- start(?y) .
    way(?y, ?c + ?w) :- far(?x, ?c), road(?x, ?y, ?w) .
    far(?y, ?c) :- ?c = min{ ?d : way(?y, ?d) } .
"""
FACTS = {
    "part": [("bike",), ("bolt",)],
    "needs": [("bike", "wheel", 2), ("bike", "bell", 1)],
    "price": [("wheel", 5), ("bell", 3)],
    "start": [("a",)],
    "road": [("a", "b", 4), ("a", "c", 1), ("c", "b", 2), ("b", "a", 1)],
}


@pytest.fixture
def kb(engine_name: str) -> KnowledgeBase:
    kb = KnowledgeBase(RULES, engine=engine_name)
    kb.load(FACTS)
    return kb


def test_a_sum_is_explained_by_its_members(kb: KnowledgeBase) -> None:
    explanation = kb.explain("total(bike, 13)")
    text = str(explanation)
    assert 'sum{ ?q * ?k, ?w : needs("bike", ?w, ?q), price(?w, ?k) } = 13' in text
    assert "of 2 members" in text
    assert 'price("wheel", 5)   explicit' in text
    assert "~" not in text
    assert "~" not in explanation.to_json()
    assert explanation.height == 3


def test_an_empty_sum_is_explained(kb: KnowledgeBase) -> None:
    text = str(kb.explain("total(bolt, 0)"))
    assert '?x = "bolt", ?n = 0' in text


def test_a_minimum_is_explained_by_one_member(kb: KnowledgeBase) -> None:
    text = str(kb.explain("far(b, 3)"))
    assert 'min{ ?d : way("b", ?d) } = 3\n      of 2 members, 1 of them shown' in text
    assert 'road("c", "b", 2)   explicit' in text
    assert 'road("a", "b", 4)' not in text


def test_why_not_tells_the_value_and_what_is_missing(kb: KnowledgeBase) -> None:
    text = str(kb.explain("total(bike, 20)"))
    assert "} = 13, not 20: 7 too little" in text
    text = str(kb.explain("dear(bike)"))
    assert "it is not so that 13 > 20: 7 too little" in text


def test_empty_groups_are_told(kb: KnowledgeBase) -> None:
    found = kb.explain("total(bolt, 0)")
    text = 'sum{ ?q * ?k, ?w : needs("bolt", ?w, ?q)'
    assert text in str(found)
    assert "} = 0, of no members" in str(found)
    assert "sum{ ?q * ?k, ?w : needs(" in found.to_json()
