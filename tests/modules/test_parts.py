"""Strata are divided, so that modules and rules that do not feed them go their ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

import evermat
from evermat.maintenance.modules import find_modules
from evermat.maintenance.rules import RuleBook, compile_book, no_modules

if TYPE_CHECKING:
    from evermat.maintenance.rules import CompiledRules

CLOSURE = "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) . r(?x, ?y) :- e(?x, ?y) . "
FED = "s(?x, ?z) :- s(?x, ?y), s(?y, ?z) . s(?x, ?y) :- s(?x, ?z), f(?z, ?y) . "
OTHERS = "c(?x) :- d(?x) . d(?x) :- p(?x, ?y), c(?y) . d(?x) :- g(?x) . "
COUNTS = "few(?x, ?n) :- p(?x, ?w), ?n = count{ ?y : p(?x, ?y) } . "


def compiled(text: str, *, modules: bool = True) -> CompiledRules:
    rules = evermat.KnowledgeBase(text, equality="off").rules
    book, _ = RuleBook().change(remove=(), add=rules)
    return compile_book(book, find_modules if modules else no_modules)


def test_modules_stand_apart_from_rules_that_do_not_feed_them() -> None:
    plans = compiled(CLOSURE + FED + OTHERS).plans
    shown = [
        (len(plan.modules), len(plan.recursive.rules), len(plan.nonrecursive.rules))
        for plan in plans
    ]
    assert shown == [(0, 2, 1), (1, 0, 1), (1, 1, 0)]
    assert [plan.index for plan in plans] == [0, 1, 2]
    # Each fact is derived in one of them.
    names = [plan.region.names for plan in plans]
    assert names == [{"c", "d"}, {"r"}, {"s"}]


def test_strata_are_divided_only_where_it_matters() -> None:
    assert len(compiled(CLOSURE).plans) == 1
    assert len(compiled(FED + "w(?x) :- g(?x) .").plans) == 1
    assert len(compiled(CLOSURE + OTHERS, modules=False).plans) == 1
    assert len(compiled(CLOSURE + OTHERS).all_plans) == 1


def test_divided_strata_keep_facts_and_counters_exact(engine_name: str) -> None:
    """A closure that other rules of its depth do not feed deletes what has to go."""
    text = CLOSURE + FED + OTHERS + COUNTS + "seen(?x) :- r(?x, 3), c(?x) . "
    text += "s(?x, ?y) :- s(?x, ?z), r(?z, ?y), ?n = count{ ?w : p(?x, ?w) }, ?n > 0 ."
    facts: dict[str, list[tuple[int, ...]]] = {
        "e": [(i, (i * 3 + j) % 17) for i in range(17) for j in (1, 4)],
        "s": [(i, i + 1) for i in range(8)],
        "f": [(i, i + 5) for i in range(8)],
        "p": [(i, (i + 1) % 17) for i in range(17)],
        "g": [(4,), (9,)],
    }
    gone: dict[str, list[tuple[int, ...]]] = {
        "e": facts["e"][:9],
        "s": facts["s"][3:5],
        "f": facts["f"][1:4],
        "g": [(4,)],
        "p": [(7, 8)],
    }
    left = {
        name: [row for row in rows if row not in gone[name]]
        for name, rows in facts.items()
    }
    base = evermat.KnowledgeBase(text, engine=engine_name)
    base.load(facts)
    fresh = evermat.KnowledgeBase(text, engine=engine_name)
    fresh.load(left)
    report = base.update(delete=gone, algorithm="dred-c").report
    for name in ("r", "s", "c", "d", "few", "seen"):
        assert set(base.facts(name)) == set(fresh.facts(name))
        if name != "few":
            assert set(base.counters(name)) == set(fresh.counters(name))
    back = base.update(insert=gone, algorithm="dred-c").report
    assert (back.added, back.removed) == (report.removed, report.added)
