"""Rounds over few rows on the cluster: one task runs the rules."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from evermat import KnowledgeBase
from evermat.engines import make_engine
from evermat.engines.spark import blocks, evaluation, one_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from evermat.algebra import Engine

pytestmark = pytest.mark.spark

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z), node(?z) .
    near(?x, "next") :- edge(?x, ?y), stop(?y) .
    near(?x, "here") :- edge(?y, ?x), stop(?x) .
    near(?x, ?k) :- near(?y, ?k), edge(?x, ?y), ?x != 3 .
    far(?x, ?y, ?z) :- reach(?x, ?y), edge(?y, ?z), not edge(?x, ?z) .
    calm(?x) :- node(?x), not near(?x, "next") .
"""
DERIVED = ("reach", "near", "far", "calm")
NODES = 8
FEW = 100


@pytest.fixture(name="rounds", autouse=True)
def _rounds(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each round whether one task was to do it."""
    rounds: list[bool] = []

    def spy(*given: object) -> DataFrame | None:
        frame = one_task.round_in_one_task(*given)  # type: ignore[arg-type]
        rounds.append(frame is not None)
        return frame

    monkeypatch.setattr(one_task, "MOST_ROWS", blocks.FEW_ROWS)
    monkeypatch.setattr(evaluation, "round_in_one_task", spy)
    return rounds


def engine() -> Engine:
    return make_engine("spark", driver_facts=0, small=0)


def state(base: KnowledgeBase) -> dict[str, list[str]]:
    return {name: sorted(map(repr, base.counters(name))) for name in DERIVED}


def random_edges(random_: random.Random, count: int) -> set[tuple[int, int]]:
    return {(random_.randrange(NODES), random_.randrange(NODES)) for _ in range(count)}


# A quarter of a minute for the same rounds, with less work in them than those of B/F^c.
@pytest.mark.parametrize(
    "algorithm", [pytest.param("dred-c", marks=pytest.mark.slow), "bf-c"]
)
def test_as_on_the_reference_engine(algorithm: str, rounds: list[bool]) -> None:
    """Facts and counters are the same, from scratch and after an update."""
    random_ = random.Random(algorithm)  # noqa: S311  no secret
    edges = random_edges(random_, 9)
    facts = {
        "edge": sorted(edges),
        "node": [(node,) for node in range(NODES)],
        "stop": [(4,), (5,)],
    }
    one = KnowledgeBase(RULES, engine=engine(), modules=False)
    other = KnowledgeBase(RULES, engine="reference", modules=False)
    for base in (one, other):
        base.load(facts)
    assert state(one) == state(other)
    assert rounds
    assert all(rounds)
    gone = random_.sample(sorted(edges), 2)
    come = sorted(random_edges(random_, 2))
    for base in (one, other):
        base.update(delete={"edge": gone}, insert={"edge": come}, algorithm=algorithm)
    assert state(one) == state(other)


def test_many_rows_are_joined(
    rounds: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_task, "MOST_ROWS", FEW - 1)
    base = KnowledgeBase(RULES, engine=engine(), modules=False)
    base.load({"edge": [(at, at + 1) for at in range(FEW)]})
    assert rounds
    assert not any(rounds)
    assert base.count("reach") == FEW


def test_facts_without_arguments_are_joined(rounds: list[bool]) -> None:
    rules = "open(?x) :- door(?x), day() . day() :- sun(?x) ."
    base = KnowledgeBase(rules, engine=engine(), modules=False)
    base.load({"door": [(1,), (2,)], "sun": [(1,)]})
    assert base.facts("open").to_list() == [(1,), (2,)]
    assert not any(rounds)
