"""Planted bugs in modules that the random tests must find; see docs/testing.md.

The first two undo corrections of the paper's algorithm. There is none for the third:
what is external is told by exact counts, so that nothing in the code could forget it.
"""

from __future__ import annotations

from itertools import chain

import pytest

from closure_scenarios import closure_scenario, lost_loops, lost_start, second_paths
from evermat.engines import make_engine
from mutants import Mutant, plant
from tracked import Tracked

EXAMPLES = 400
"""Scenarios that are tried; most mutants fall within the first fifty."""

MUTANTS = (
    Mutant(
        "facts that lost one of two nonrecursive derivations are deleted",
        "modular",
        "lost = engine.nonrecursive_counts.zero(candidates & run.remaining)",
        "lost = engine.settle(candidates & run.remaining)",
        "dred-c",
    ),
    Mutant(
        "what certain facts lead to is overdeleted",
        "closures",
        "without=self._certain(stage, external) | self._edges(stage.positive),",
        "without=self._edges(stage.positive),",
        "dred-c",
    ),
    Mutant(
        "loops of overdeleted facts stay",
        "closures",
        "through=None if self.closure.loops else gone,",
        "through=gone,",
        "dred-c",
    ),
    Mutant(
        "paths that lose a fact here and an edge there are missed",
        "closures",
        "external | gone | self._edges(stage.before)",
        "external | gone | self._edges(stage.positive)",
        "dred-c",
    ),
    Mutant(
        "edges that are lost below take no paths along",
        "modular",
        "            module.diff(stage, changes.lost, changes.gained)\n",
        "            engine.no_facts()\n",
        "dred-c",
    ),
    Mutant(
        "edges that come below make no paths",
        "modular",
        "derived.append(module.diff(stage, changes.gained, changes.lost))",
        "derived.append(engine.no_facts())",
        "dred-c",
    ),
    Mutant(
        "modules bring nothing back",
        "modular",
        "*(module.rederive(stage, deleted) for module in stratum.modules),",
        "*(engine.no_facts() for _ in stratum.modules),",
        "dred-c",
    ),
    Mutant(
        "a module that is new derives nothing from what there is",
        "modular",
        "if module in stratum.new_modules:",
        "if False:",
        "dred-c",
    ),
    Mutant(
        "modules hear nothing of ordinary rules when they materialise",
        "modular_materialise",
        "inputs = from_others(engine, others, own)",
        "inputs = [engine.no_facts()] * len(own)",
        "remat",
    ),
    Mutant(
        "B/F^c-MOD does not follow deleted facts through modules",
        "modular",
        "following = [module.delete(stage, delta) for module in stratum.modules]",
        "following = [delta]",
        "bf-c",
    ),
    Mutant(
        "B/F^c-MOD lowers recursive counts twice",
        "modular",
        "is_final=False",
        "is_final=True",
        "bf-c",
    ),
    Mutant(
        "B/F^c-MOD takes external facts for proved",
        "closures",
        "sure: Facts = self._certain(stage, self._external(stage, stage.positive))",
        "sure: Facts = self._external(stage, stage.positive)",
        "bf-c",
    ),
    Mutant(
        "B/F^c-MOD looks into no external facts",
        "closures",
        "return engine.nonrecursive_counts.zero(self._external(stage, stage.positive))",
        "return engine.no_facts()",
        "bf-c",
    ),
    Mutant(
        "changes of held closures are not reported",
        "holding",
        "if was == now and changed is not None and not _reads(was, changed):",
        "if was == now:",
        "dred-c",
    ),
    Mutant(
        "held closures report what left as what came",
        "holding",
        "{each: both.new.minus(both.old) for each, both in captures.items()}",
        "{each: both.old.minus(both.new) for each, both in captures.items()}",
        "dred-c",
    ),
    Mutant(
        "instances of held closures are not counted",
        "holding",
        "for each in (*held, *written):",
        "for each in written:",
        "dred-c",
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert is_found(mutant.algorithm)


def test_without_a_bug_nothing_is_found() -> None:
    assert not is_found("bf-c", examples=10)


def is_found(algorithm: str, examples: int = EXAMPLES) -> bool:
    """Whether random scenarios show a difference to the oracle, or an error.

    The reference engine would not do: it overdeletes all that is not certain.
    """
    stories = (closure_scenario(5000 + n, change_rules=True) for n in range(examples))
    for story in chain([second_paths(), lost_start(), lost_loops()], stories):
        tracked = Tracked(make_engine("embedded"), modules=True)
        try:
            tracked.load(story.rules, story.facts)
            for update in story.updates:
                tracked.apply(update, algorithm)
        except Exception:  # noqa: BLE001  any failure is a finding
            return True
    return False
