"""Small updates that are carried out as a whole end like those done step by step."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from evermat.engines.embedded import (
    at_once,
    engine,
    one_update,
    whole_updates,
    wiring,
)
from evermat.engines.embedded.engine import EmbeddedEngine
from mutants import Mutant, plant
from paper_examples import Example

if TYPE_CHECKING:
    from collections.abc import Iterable

Edge = tuple[int, int]

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
    back(?x, ?y) :- reach(?x, ?y), reach(?y, ?x) .
    path(?x, ?y, ?z) :- edge(?x, ?y), reach(?y, ?z) .
    free(?x) :- node(?x), not back(?x, ?x) .
    lonely(?x) :- free(?x), not edge(?x, ?x) .
    sure() :- reach(?x, ?y), lonely(?y) .
    twin(?x, ?y) :- edge(?z, ?x), edge(?z, ?y), ?x != ?y, ?z != 3 .
    via(?x, 1) :- path(?x, 3, ?y), lonely(?y) .
    via(?x, 2) :- path(?x, 4, ?y), lonely(?y) .
"""
DERIVED = ("reach", "back", "path", "free", "lonely", "sure", "twin", "via")
NODES = 12


def example(edges: set[Edge], rules: str = RULES) -> Example:
    nodes = [(node,) for node in range(NODES)]
    return Example(EmbeddedEngine(), rules, edge=sorted(edges), node=nodes)


def counts(some: Example) -> dict[str, object]:
    return {name: some.counts(name) for name in DERIVED}


def random_edges(random_: random.Random, count: int) -> set[Edge]:
    return {(random_.randrange(NODES), random_.randrange(NODES)) for _ in range(count)}


def play(seed: int, updates: int = 8) -> None:
    """Some updates by DRed^c, each compared with a new materialisation."""
    random_ = random.Random(seed)  # noqa: S311  no secret
    edges = random_edges(random_, 14)
    some = example(edges)
    for _ in range(updates):
        gone = set(random_.sample(sorted(edges), min(len(edges), 3)))
        come = random_edges(random_, 3)
        some.update(
            delete={"edge": sorted(gone)},
            insert={"edge": sorted(come)},
            algorithm="dred-c",
        )
        edges = (edges - gone) | come
        assert counts(some) == counts(example(edges))


@pytest.mark.parametrize("seed", range(8))
def test_as_from_scratch(seed: int, carried_out: list[bool]) -> None:
    play(seed)
    assert all(carried_out)


MUTANTS = (
    Mutant(
        "inline rows are looked up by what nobody knows",
        "embedded.plan",
        "at for at, column in enumerate(inline.columns) if column.index in self.bound",
        "at for at, _ in enumerate(inline.columns)",
        "dred-c",
    ),
    Mutant(
        "few inline rows are taken and none of their values kept",
        "embedded.plan",
        "needed |= {column.index for column in inline.columns}",
        "needed -= {column.index for column in inline.columns}",
        "dred-c",
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    with pytest.raises(Exception):  # noqa: B017, PT011  whatever goes wrong first
        play_all(range(30))


def play_all(seeds: Iterable[int]) -> None:
    for seed in seeds:
        play(seed)


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        *[("MOST_FACTS", value) for value in (1, 4, 16, 40, 100)],
        *[("MOST_ROUNDS", value) for value in (0, 1, 3, 6)],
        *[("PATIENCE_FOR_ALL", value) for value in (0, 30, 200)],
    ],
)
def test_what_is_given_up_leaves_no_trace(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch, carried_out: list[bool]
) -> None:
    monkeypatch.setattr(one_update, limit, value)
    monkeypatch.setattr(whole_updates, "LESS", 1)  # the next one is tried again
    for seed in range(3):
        play(seed)
    assert not all(carried_out)


def test_new_facts_make_relations_grow(carried_out: list[bool]) -> None:
    chain = {(i, i + 1) for i in range(5)}
    some = example(chain)
    for node in range(5, NODES - 1):
        some.update(insert={"edge": [(node, node + 1)]}, algorithm="dred-c")
        chain.add((node, node + 1))
        assert counts(some) == counts(example(chain))
    assert all(carried_out)


def test_dry_run_changes_nothing(carried_out: list[bool]) -> None:
    some = example({(1, 2), (2, 3), (3, 1), (3, 4)})
    before = counts(some)
    outcome = some.plan(
        delete={"edge": [(2, 3)]}, insert={"edge": [(4, 5)]}, algorithm="dred-c"
    )
    assert outcome.report.removed
    assert outcome.report.added
    assert counts(some) == before
    assert all(carried_out)


def test_rules_without_a_program(carried_out: list[bool]) -> None:
    rules = RULES + "sum(?x, ?n) :- node(?x), ?n = ?x + 1 ."
    some = example({(1, 2), (2, 3)}, rules)
    # Edges reach no such rule, nodes do, also when both change together.
    both: dict[str, list[tuple[object, ...]]] = {"edge": [(3, 4)], "node": [(20,)]}
    some.update(insert=both, algorithm="dred-c")
    some.update(insert={"edge": [(4, 1)]}, algorithm="dred-c")
    some.update(delete=both, algorithm="dred-c")
    assert carried_out == [False, True, False]
    assert counts(some) == counts(example({(1, 2), (2, 3), (4, 1)}))
    assert some.rows("sum") == {(node, node + 1) for node in range(NODES)}


def test_plans_are_made_beforehand_for_many_facts(
    monkeypatch: pytest.MonkeyPatch, carried_out: list[bool]
) -> None:
    monkeypatch.setattr(wiring, "FACTS_PER_RULE", 0)
    monkeypatch.setattr(wiring, "MOST_DERIVED", 100)
    reached = []
    add = wiring.Wiring._add  # noqa: SLF001  what is asked about

    def spy(self: wiring.Wiring, found: wiring.Reached) -> None:
        reached.append(set(found))
        add(self, found)

    monkeypatch.setattr(wiring.Wiring, "_add", spy)
    some = example({(1, 2), (2, 3)})
    known = set().union(*reached)
    assert known >= {"edge", "node", *DERIVED}
    some.update(delete={"edge": [(1, 2)]}, algorithm="dred-c")
    assert set().union(*reached) == known
    assert carried_out == [True]


def test_no_plans_are_made_beforehand_where_most_facts_are_derived(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wiring, "FACTS_PER_RULE", 0)
    monkeypatch.setattr(wiring, "MOST_DERIVED", 1)
    monkeypatch.setattr(wiring.Wiring, "_add", lambda *_: pytest.fail("a plan"))
    example({(1, 2), (2, 3)})


def test_reports(carried_out: list[bool]) -> None:
    edges = {(1, 2), (2, 3), (3, 4), (1, 3)}
    change = {"delete": {"edge": [(1, 2), (2, 3)]}, "insert": {"edge": [(4, 1)]}}
    some = example(edges)
    whole = some.update(**change, algorithm="dred-c").report
    assert carried_out == [True]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(at_once, "MOST_CHANGED", -1)
        steps = example(edges).update(**change, algorithm="dred-c").report
    for one, other in zip(whole.strata, steps.strata, strict=True):
        assert one.index == other.index
        assert one.rounds == other.rounds
        assert one.forward_instances == other.forward_instances
        assert (one.overdeleted, one.rederived, one.inserted) == (
            other.overdeleted,
            other.rederived,
            other.inserted,
        )
        assert sum(one.seconds.values()) <= whole.seconds


def test_code_is_loaded_when_there_are_many_updates(
    monkeypatch: pytest.MonkeyPatch, carried_out: list[bool]
) -> None:
    monkeypatch.setattr(engine, "WHOLE_UPDATES", "a module that nobody has loaded")
    monkeypatch.setattr(engine, "STEPWISE_UPDATES", 2)
    some = example({(1, 2), (2, 3)})
    for _ in range(2):
        some.update(delete={"edge": [(1, 2)]}, algorithm="dred-c")
        some.update(insert={"edge": [(1, 2)]}, algorithm="dred-c")
    assert carried_out == [True, True]
    assert counts(some) == counts(example({(1, 2), (2, 3)}))
