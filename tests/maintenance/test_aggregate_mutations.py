"""Planted bugs of aggregates that random programs must find; see docs/testing.md."""

# ruff: noqa: SLF001  mutants are made in private functions

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aggregate_scenarios import monotone_scenario, scenario
from evermat.algebra.aggregates import AggregatesByGroup
from evermat.algebra.totals import Total
from evermat.engines import make_engine
from evermat.engines.embedded.aggregates import Aggregator
from evermat.lang.aggregates import Members, Value
from evermat.maintenance import monotone
from planting import Mutant, plant
from tracked import ALGORITHMS, Tracked

if TYPE_CHECKING:
    from collections.abc import Callable

    from strategies import Scenario

EXAMPLES = 60

MUTANTS = (
    Mutant(
        "groups of members that came are forgotten",
        AggregatesByGroup.aggregate_changes,
        lambda each, facts: each.members in facts.relations(),
        lambda facts, changes: facts is changes[0],
    ),
    Mutant(
        "results are worked out from the old members",
        AggregatesByGroup.aggregate_changes,
        lambda results_of, self, each, after, groups: results_of(
            self, each, after, groups
        ),
        lambda results_of, self, each, before, groups: results_of(
            self, each, before, groups
        ),
    ),
    Mutant(
        "tuples that differ in other columns count twice",
        Members._direct,
        lambda columns, tuple_, group: columns.keys() != tuple_ | set(group),
        lambda: False,
    ),
    Mutant(
        "empty groups have no value",
        Value.__init__,
        lambda self, bound: bound.issuperset(self._group),
        lambda: False,
    ),
    Mutant(
        "a number that goes is added",
        Total._with,
        lambda sign: sign > 0,
        lambda: True,
        algorithm="embedded",
    ),
    Mutant(
        "a minimum that is gone stays",
        Aggregator._next,
        lambda self, aggregate, group, after: self._members(aggregate, group, after),
        lambda self, aggregate, group: self._members(
            aggregate, group, self._engine.materialised
        ),
        algorithm="embedded",
    ),
    Mutant(
        "sums start from nothing",
        Aggregator._by_difference,
        lambda old: old >= 0,
        lambda old: old < -1,
        algorithm="embedded",
    ),
)

RECURSIVE = (
    Mutant(
        "a stale minimum keeps itself alive",
        monotone._Work.overdelete,
        lambda engine, found, run: engine.settle(found & run.remaining),
        lambda engine: engine.no_facts(),
    ),
    Mutant(
        "groups that lost their result get none",
        monotone._Work._results_anew,
        lambda lost, each: each.values in lost,
        lambda: False,
    ),
    Mutant(
        "what was derived from a worse result stays counted",
        monotone._Work._round,
        lambda self, lost: self._again.subtract(lost),
    ),
    Mutant(
        "worse results stay beside better ones",
        monotone._Work._round,
        lambda engine, dead, removed: engine.settle(dead | removed),
        lambda dead: dead,
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert is_found(scenario, mutant.algorithm or "reference")


@pytest.mark.parametrize("mutant", RECURSIVE, ids=lambda mutant: mutant.name)
def test_planted_bug_in_recursion_is_found(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(mutant, monkeypatch)
    assert is_found(monotone_scenario, "reference")


def test_without_a_bug_nothing_is_found() -> None:
    assert not is_found(scenario, "reference", 10)
    assert not is_found(monotone_scenario, "reference", 10)


def is_found(
    story_of: Callable[[int], Scenario], engine: str, examples: int = EXAMPLES
) -> bool:
    """Whether random scenarios show a difference to the oracle, or an error."""
    for number in range(examples):
        story = story_of(number)
        tracked = Tracked(make_engine(engine))
        try:
            tracked.load(story.rules, story.facts)
            for at, update in enumerate(story.updates):
                tracked.apply(update, ALGORITHMS[(number + at) % len(ALGORITHMS)])
        except Exception:  # noqa: BLE001  any failure is a finding
            return True
    return False
