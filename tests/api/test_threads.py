"""Calls from several threads wait for each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import sleep

import pytest

import evermat
from evermat.kb.transaction import TransactionError

NODES = 20
RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""


def test_questions_and_updates_wait_for_each_other(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(RULES, engine=engine_name)
    kb.insert("edge", [(at, at + 1) for at in range(NODES)])
    before = set(kb.facts("reach"))
    after = before | {(-1, at) for at in range(NODES + 1)}

    def change(_: int) -> int:
        added = len(kb.insert("edge", [(-1, 0)]).added("reach"))
        return added + len(kb.delete("edge", [(-1, 0)]).removed("reach"))

    def ask(_: int) -> bool:
        with kb.turn:
            found = set(kb.query("reach(?x, ?y)"))
            ends = set(kb.query("reach(?x, ?y), not edge(?y, _)"))
        return found in (before, after) and ends == {f for f in found if f[1] == NODES}

    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(ask, at) for at in range(20)]
        changed = threads.map(change, range(5))
        assert all(found in {0, NODES + 1, 2 * NODES + 2} for found in changed)
        assert all(each.result() for each in asked)
    assert set(kb.facts("reach")) == before


def test_a_transaction_that_waits_to_be_committed_is_open(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(RULES, engine=engine_name)
    collected = Event()

    def commit() -> evermat.Change:
        with kb.transaction() as transaction:
            transaction.insert("edge", [(1, 2)])
            collected.set()
        return transaction.change

    with ThreadPoolExecutor(1) as threads:
        with kb.turn:
            committed = threads.submit(commit)
            assert collected.wait(60)
            for _ in range(20):
                with pytest.raises(TransactionError, match="a transaction is open"):
                    kb.transaction().__enter__()
                sleep(0.01)
        assert committed.result().sizes == {"edge": (1, 0), "reach": (1, 0)}
    kb.insert("edge", [(2, 3)])
