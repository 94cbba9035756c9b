"""The fuzzer finds bugs that are planted; see docs/testing.md.

`python tests/fuzz.py --planted` searches for each of them from scratch. Here it is only
asked to play a scenario that is known to show the bug. Where generators have changed,
the search tells the name of another one.
"""

from __future__ import annotations

import pytest

from fuzz import ENGINES, Fuzzer, smaller
from planted_bugs import BUGS
from tracked import ALGORITHMS

SHOWN_BY = {}


@pytest.fixture
def fuzzer() -> Fuzzer:
    return Fuzzer(ENGINES, ALGORITHMS)


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bug_is_found(
    bug: str, fuzzer: Fuzzer, monkeypatch: pytest.MonkeyPatch
) -> None:
    BUGS[bug].plant(monkeypatch)
    assert fuzzer.replay(SHOWN_BY[bug]) is not None


@pytest.mark.parametrize("name", sorted(set(SHOWN_BY.values())))
def test_without_a_bug_nothing_is_found(name: str, fuzzer: Fuzzer) -> None:
    assert fuzzer.replay(name) is None


def test_a_failing_scenario_is_made_smaller(
    fuzzer: Fuzzer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug = "C_nr is counted down once for several instances"
    BUGS[bug].plant(monkeypatch)
    found = fuzzer.replay(SHOWN_BY[bug])
    assert found is not None
    assert found.scenario is not None
    assert found.way is not None
    less = smaller(found.scenario, found.way.fails)
    assert found.way.fails(less)
    assert len(less.facts) < len(found.scenario.facts)
