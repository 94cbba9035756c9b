"""Transactions: all or nothing, one at a time."""

from __future__ import annotations

import pytest

from evermat import EvermatError, KnowledgeBase
from evermat.kb.transaction import TransactionError

RULES = "p(?x) :- q(?x), not r(?x) ."


@pytest.fixture
def kb() -> KnowledgeBase:
    return KnowledgeBase(RULES, engine="reference")


def test_everything_is_applied_at_the_end(kb: KnowledgeBase) -> None:
    with kb.transaction() as tx:
        tx.insert("q", [("a",)])
        tx.insert("q", [("b",), (3,)])
        tx.delete("r", [("z",)])
        tx.add_rules("s(?x) :- p(?x) .")
        tx.add_rules(["t(?x) :- s(?x) .", "q(c) ."])
        assert kb.count("p") == 0
    assert set(kb.facts("t")) == {("a",), ("b",), ("c",), (3,)}
    assert tx.change.predicates == ("p", "q", "s", "t")


def test_an_exception_rolls_back(kb: KnowledgeBase) -> None:
    with pytest.raises(ZeroDivisionError), kb.transaction() as tx:  # noqa: PT012
        tx.insert("q", [("a",)])
        _ = 1 / 0
    assert kb.count("q") == 0
    kb.insert("q", [("b",)])
    assert set(kb.facts("p")) == {("b",)}


def test_a_failing_update_rolls_back_and_frees_the_place(kb: KnowledgeBase) -> None:
    with pytest.raises(EvermatError, match="EM250"), kb.transaction() as tx:  # noqa: PT012
        tx.insert("q", [("a",)])
        tx.insert("r", [("a", "b")])
    assert kb.count("q") == 0
    with kb.transaction() as tx:
        tx.insert("q", [("a",)])
    assert kb.count("p") == 1


def test_it_can_be_ended_inside(kb: KnowledgeBase) -> None:
    with kb.transaction() as tx:
        tx.insert("q", [("a",)])
        tx.rollback()
    assert kb.count("q") == 0
    with kb.transaction() as tx:
        tx.insert("q", [("a",)])
        assert tx.commit().predicates == ("p", "q")
    assert kb.count("q") == 1


def test_the_algorithm_can_be_chosen(kb: KnowledgeBase) -> None:
    kb.insert("q", [("a",)])
    with kb.transaction(algorithm="bf") as tx:
        tx.delete("q", [("a",)])
    assert tx.change.report.algorithm == "bf"


def test_there_is_one_at_a_time(kb: KnowledgeBase) -> None:
    with kb.transaction() as tx:
        with pytest.raises(TransactionError, match="a transaction is open"):
            kb.insert("q", [("a",)])
        with pytest.raises(TransactionError, match="a transaction is open"):
            kb.plan()
        with (
            pytest.raises(TransactionError, match="at most one transaction"),
            kb.transaction(),
        ):
            pass
        tx.insert("q", [("b",)])
    assert set(kb.facts("q")) == {("b",)}


def test_use_outside_its_time_is_refused(kb: KnowledgeBase) -> None:
    tx = kb.transaction()
    with pytest.raises(TransactionError, match="has not begun"):
        tx.insert("q", [("a",)])
    with pytest.raises(TransactionError, match="there is no change"):
        _ = tx.change
    with tx:
        pass
    with pytest.raises(TransactionError, match="has been committed"):
        tx.delete("q", [("a",)])
    with pytest.raises(TransactionError, match="cannot begin again"), tx:
        pass
    other = kb.transaction()
    with other:
        other.rollback()
    with pytest.raises(TransactionError, match="has been rolled back"):
        other.commit()
