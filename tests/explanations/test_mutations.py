"""Planted bugs in the search for proofs, which must be found; see docs/testing.md."""

from __future__ import annotations

import pytest

from closure_scenarios import closure_scenario
from mutants import Mutant, plant
from proof_checker import go, paths, play
from skeletons import scenario as hard_scenario

EXAMPLES = 5
"""Scenarios of each sort that are tried."""

MUTANTS = (
    Mutant(
        "a premise may be as high as what it proves",
        "explain",
        "            lower.discard(heights[height - 1])\n",
        "",
        "",
    ),
    Mutant(
        "what a failed attempt has proved is not forgotten",
        "proof_heights",
        "            self._proved.discard(facts)\n",
        "            pass\n",
        "",
    ),
    Mutant(
        "values count before the order of rules",
        "explain",
        "return self.rank(instance.rule), *map(constant_order, instance.values)",
        "return *map(constant_order, instance.values), self.rank(instance.rule)",
        "",
    ),
    Mutant(
        "of a held closure, only what a first atom reads is seen",
        "explain",
        "self._near = list(dict.fromkeys(patterns))",
        "self._near = list(dict.fromkeys(patterns))[:1]",
        "",
    ),
    Mutant(
        "facts that follow from nothing new are proved",
        "proof_heights",
        "return engine.settle(found & open_facts)",
        "return engine.settle(open_facts & engine.materialised)",
        "",
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bugs_are_found(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(mutant, monkeypatch)
    with pytest.raises(Exception):  # noqa: B017, PT011  wrong answers, or no answers
        play_many(monkeypatch)


def play_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(EXAMPLES):
        play(hard_scenario(seed), "reference", modules=True)
        scenario = closure_scenario(seed, change_rules=False, updates=1)
        play(scenario, "reference", modules=True)
    go(monkeypatch, "backwards")
    for seed in range(4):
        play(paths(seed), "reference", modules=True)
