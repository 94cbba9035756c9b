"""Aggregates and all around updates: states, dry runs, budgets, queries."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from evermat import Budget, BudgetExceededError, EvermatError, KnowledgeBase

if TYPE_CHECKING:
    from pathlib import Path

RULES = """
    total(?x, ?n) :- part(?x), ?n = sum{ ?q * ?k, ?w :
        needs(?x, ?w, ?q), price(?w, ?k), not old(?w), ?q > 0, ?k > 0,
        ?w != "a rather long name of something that nobody has ordered in all years" } .
    mean(avg{ ?n, ?x : total(?x, ?n) }) :- part(_) .
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


def seen(kb: KnowledgeBase) -> list[set[tuple[object, ...]]]:
    return [set(kb.query(q)) for q in ("total(?x, ?n)", "far(?x, ?n)", "mean(?n)")]


BEFORE = [
    {("bike", 13), ("bolt", 0)},
    {("a", 0), ("b", 3), ("c", 1)},
    {(Decimal("6.5"),)},
]


def test_a_state_is_opened_with_its_aggregates(
    engine_name: str, tmp_path: Path
) -> None:
    kb = KnowledgeBase(RULES, state=tmp_path / "state", engine=engine_name)
    kb.load(FACTS)
    assert seen(kb) == BEFORE
    kb.delete("road", [("a", "c", 1)])
    again = KnowledgeBase.open(tmp_path / "state", engine=engine_name)
    assert seen(again)[1] == {("a", 0), ("b", 4)}
    again.insert("road", [("a", "c", 1)])
    assert seen(again) == BEFORE
    assert set(again.predicates) == {
        *FACTS,
        *("old", "total", "mean", "way", "far"),
    }


def test_dry_runs_foretell_and_change_nothing(engine_name: str) -> None:
    kb = KnowledgeBase(RULES, engine=engine_name)
    kb.load(FACTS)
    change = kb.plan(delete={"road": [("a", "c", 1)]})
    assert set(change.removed("far")) == {("b", 3), ("c", 1)}
    assert set(change.added("far")) == {("b", 4)}
    assert seen(kb) == BEFORE


def test_queries_have_aggregates(engine_name: str) -> None:
    kb = KnowledgeBase(RULES, engine=engine_name)
    kb.load(FACTS)
    assert set(kb.query("part(?x), ?n = count{ ?w : needs(?x, ?w, _) }")) == {
        ("bike", 2),
        ("bolt", 0),
    }
    assert len(kb.query("count{ ?x : part(?x) } > 2")) == 0
    assert len(kb.query("count{ ?x : part(?x) } > 1")) == 1


def test_budgets_hold_where_costs_get_better_and_better() -> None:
    kb = KnowledgeBase(RULES, budget=Budget(rounds=60))
    with pytest.raises(BudgetExceededError):
        kb.load({**FACTS, "road": [("a", "b", 1), ("b", "a", -2)]})
    assert kb.count("way") == 0


@pytest.mark.parametrize(
    ("rules", "facts", "message"),
    [
        ("s(sum{ ?v : p(?v) }) :- q .", {"p": [("x",)], "q": [()]}, "needs a number"),
        ("s(min{ ?v : p(?v) }) :- q .", {"p": [("x",), (1,)], "q": [()]}, "no order"),
        (
            """s(?x) :- sum{ ?v, ?y : h(?x, ?y, ?v) } > 5 .
            h(?x, ?y, ?v) :- p(?x, ?y, ?v) .
            h(?x, ?z, ?v) :- s(?y), p(?y, ?z, ?v), p(?x, ?y, _) .""",
            {"p": [("a", "b", -1)]},
            "is negative",
        ),
    ],
)
def test_values_without_a_result_are_refused(
    rules: str, facts: dict[str, list[tuple[object, ...]]], message: str
) -> None:
    kb = KnowledgeBase(rules)
    with pytest.raises(EvermatError, match=message) as caught:
        kb.load(facts)
    assert caught.value.code == "EM601"
    assert kb.count("p") == 0


@pytest.mark.parametrize("counters", [False, "nonrecursive"])
def test_recursion_needs_counters(counters: object) -> None:
    kb = KnowledgeBase(counters=counters)  # type: ignore[arg-type]  # one of two
    with pytest.raises(EvermatError, match="needs counters"):
        kb.update(add_rules=RULES)


def test_rewriting_is_refused_together_with_aggregates() -> None:
    kb = KnowledgeBase(RULES)
    kb.load(FACTS)
    with pytest.raises(EvermatError, match="rewriting"):
        kb.insert("same_as", [("bike", "bolt")])
    assert seen(kb) == BEFORE
