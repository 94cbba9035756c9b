"""Facts are on the driver while they fit there, and distributed afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import evermat
from evermat.engines.spark.adaptive import AdaptiveEngine
from evermat.engines.spark.limits import SparkLimitError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) .
    label(?x, ?t) :- reach(?x, ?y), name(?y, ?n), ?t = concat(?n, "!"), not shut(?y) .
"""
NAMES = [(number, f"n{number}") for number in range(12)]
EDGES = [(number, number + 1) for number in range(5)]


def counters(kb: evermat.KnowledgeBase) -> dict[str, list[tuple[object, ...]]]:
    return {name: sorted(kb.counters(name), key=str) for name in kb.predicates}


def both(driver_facts: int) -> tuple[evermat.KnowledgeBase, evermat.KnowledgeBase]:
    engine = AdaptiveEngine(driver_facts=driver_facts, small=3)
    made = [
        evermat.KnowledgeBase(RULES, engine=each, modules=False)
        for each in (engine, "embedded")
    ]
    return made[0], made[1]


def is_on_driver(kb: evermat.KnowledgeBase) -> bool:
    return kb.stats()["place"].startswith("driver:")


def test_what_fits_is_on_driver_and_needs_no_job() -> None:
    kb, plain = both(driver_facts=1000)
    for each in (kb, plain):
        each.load({"edge": EDGES, "name": NAMES, "shut": [(3,)]})
        each.delete("edge", [(2, 3)])
        each.insert("edge", [(1, 4), (2**40, 3)])
        each.materialise()
    assert counters(kb) == counters(plain)
    assert is_on_driver(kb)
    assert "driver: " in kb.explain_plan()


def test_an_update_that_outgrows_the_driver_is_done_again_on_the_cluster() -> None:
    kb, plain = both(driver_facts=80)
    for each in (kb, plain):
        each.load({"edge": EDGES, "name": NAMES, "shut": [(3,)]})
    assert is_on_driver(kb)
    changes = [
        each.insert("edge", [(number, number + 1) for number in range(5, 11)])
        for each in (kb, plain)
    ]
    assert not is_on_driver(kb)
    assert "distributed over the cluster" in kb.explain_plan()
    assert changes[0].report.added == changes[1].report.added
    assert set(changes[0].added("label")) == set(changes[1].added("label"))
    assert counters(kb) == counters(plain)
    for each in (kb, plain):
        each.delete("edge", [(4, 5)])
    assert counters(kb) == counters(plain)


@pytest.mark.parametrize("limit", [10, 40])
def test_first_facts_that_do_not_fit_are_spread(limit: int) -> None:
    kb, plain = both(driver_facts=limit)
    for each in (kb, plain):
        each.load({"edge": EDGES, "name": NAMES})
    assert not is_on_driver(kb)
    assert counters(kb) == counters(plain)


def test_a_plan_may_spread_and_still_changes_nothing() -> None:
    kb, plain = both(driver_facts=80)
    more = [(number, number + 1) for number in range(5, 11)]
    for each in (kb, plain):
        each.load({"edge": EDGES, "name": NAMES})
    before = counters(kb)
    planned = [each.plan(insert={"edge": more}).report.added for each in (kb, plain)]
    assert planned[0] == planned[1]
    assert counters(kb) == before == counters(plain)


def test_equality_is_for_facts_that_are_spread() -> None:
    kb, plain = both(driver_facts=1000)
    for each in (kb, plain):
        each.load({"edge": EDGES, "name": NAMES})
        each.insert("same_as", [("a", "b")])
        each.insert("edge", [("a", "c"), ("d", "b")])
    assert set(kb.facts("reach")) == set(plain.facts("reach"))
    assert not is_on_driver(kb)


def test_a_state_goes_on_when_the_facts_move(tmp_path: Path) -> None:
    def opened(driver_facts: int) -> evermat.KnowledgeBase:
        engine = AdaptiveEngine(driver_facts=driver_facts, small=3)
        return evermat.KnowledgeBase(RULES, engine=engine, state=tmp_path)

    kb = opened(80)
    kb.load({"edge": EDGES, "name": NAMES})
    assert is_on_driver(kb)
    kb.insert("edge", [(number, number + 1) for number in range(5, 11)])
    kb.insert("name", [(20, "new"), (21, "newer")])
    assert not is_on_driver(kb)
    again, spread = opened(1000), opened(10)
    assert is_on_driver(again)
    assert not is_on_driver(spread)
    for each in (again, spread):
        assert counters(each) == counters(kb)


def test_limits_are_settings_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    session = AdaptiveEngine().cluster.session
    monkeypatch.setenv("EVERMAT_SPARK_DRIVER_FACTS", "70")
    assert AdaptiveEngine(session).is_on_driver
    session.conf.set("spark.evermat.driver_facts", "0")
    session.conf.set("spark.evermat.small", "17")
    engine = AdaptiveEngine(session)
    assert (engine.is_on_driver, engine.cluster.small) == (False, 17)
    session.conf.set("spark.evermat.driver_facts", "many")
    with pytest.raises(SparkLimitError, match=r"spark\.evermat\.driver_facts"):
        AdaptiveEngine(session)
    with pytest.raises(SparkLimitError, match="`driver_facts` is `-1`"):
        AdaptiveEngine(session, driver_facts=-1)
