"""Planted bugs in the search for proofs, which must be found; see docs/testing.md."""

# ruff: noqa: SLF001  mutants are made in private functions

from __future__ import annotations

import pytest

from closure_scenarios import closure_scenario
from evermat.explain.proofs import Ordered, Prover, _PremiseFacts
from evermat.explain.search import Search
from planting import Mutant, plant
from proof_checker import go, paths, play
from skeletons import scenario as hard_scenario

EXAMPLES = 5
"""Scenarios of each sort that are tried."""

MUTANTS = (
    Mutant(
        "a premise may be as high as what it proves",
        Prover._extract,
        lambda lower, heights, height: lower.discard(heights[height - 1]),
    ),
    Mutant(
        "what a failed attempt has proved is not forgotten",
        Search._attempt,
        lambda self, facts: self._proved.discard(facts),
    ),
    Mutant(
        "values count before the order of rules",
        Ordered.key,
        lambda self, instance, constant_order: (
            self.rank(instance.rule),
            *map(constant_order, instance.values),
        ),
        lambda constant_order, instance, self: (
            *map(constant_order, instance.values),
            self.rank(instance.rule),
        ),
    ),
    Mutant(
        "of a lazy closure, only what a first atom reads is seen",
        _PremiseFacts.announce,
        lambda patterns: list(dict.fromkeys(patterns)),
        lambda patterns: list(dict.fromkeys(patterns))[:1],
    ),
    Mutant(
        "facts that follow from nothing new are proved",
        Search._prove,
        lambda found, open_facts: found & open_facts,
        lambda open_facts, engine: open_facts & engine.materialised,
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
