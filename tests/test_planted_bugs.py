"""The fuzzer finds bugs that are planted; see docs/testing.md.

`python tests/fuzz.py --planted` searches for each of them from scratch. Here it is only
asked to play a scenario that is known to show the bug. Where generators have changed,
the search tells the name of another one.
"""

from __future__ import annotations

import pytest

import shared_supports
from fuzz import ENGINES, Fuzzer, smaller
from planted_bugs import BUGS
from strategies import Scenario
from tracked import ALGORITHMS

SHOWN_BY = {
    "products between 2^31 and 2^33 overflow": "numbers 16",
    "sums overflow where integers are no longer ids": "numbers 9",
    "large integers are compared as doubles": "more numbers 41",
    "C_nr is counted down once for several instances": "shared supports 1",
    "C_nr is counted down once for several instances, compiled": "shared supports 27",
    "C_r is counted down once for several instances": "shared supports 13",
    "C_r is counted down once for several instances, compiled": "shared supports 70",
    "a negated change is skipped beside a positive one": "shared supports 18",
    "counters of compiled rounds are not undone": "shared supports 59",
    "the last change of a counter is not undone": "shared supports 1",
    "relations of an undone update stay": "shared supports 18",
    "a row stays marked after its transaction": "shared supports 13",
    "an index misses a row that was appended": "closures 0",
    "an index misses a row after compaction": "hard 42",
    "facts of a constant keep its former representative": "hard equality 24",
}
"""Scenarios that show a bug in every process. There is none for a constant that is
split off: which one is overlooked depends on the order of sets."""


@pytest.fixture
def fuzzer() -> Fuzzer:
    return Fuzzer(ENGINES, ALGORITHMS)


@pytest.mark.parametrize("bug", SHOWN_BY)
def test_planted_bug_is_found(
    bug: str, fuzzer: Fuzzer, monkeypatch: pytest.MonkeyPatch
) -> None:
    BUGS[bug].plant(monkeypatch)
    assert fuzzer.replay(SHOWN_BY[bug]) is not None


@pytest.mark.parametrize("name", sorted(set(SHOWN_BY.values())))
def test_without_a_bug_nothing_is_found(name: str, fuzzer: Fuzzer) -> None:
    assert fuzzer.replay(name) is None


def test_a_failing_scenario_is_made_smaller() -> None:
    whole = shared_supports.scenario(1)
    needed = min(whole.facts, key=repr)
    less = smaller(whole, lambda scenario: needed in scenario.facts)
    assert less == Scenario((), frozenset({needed}))
