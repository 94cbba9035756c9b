"""Planted bugs in modules that the random tests must find; see docs/testing.md.

The first two undo corrections of the paper's algorithm. There is none for the third:
what is external is told by exact counts, so that nothing in the code could forget it.
"""

# ruff: noqa: SLF001  mutants are made in private functions

from __future__ import annotations

from itertools import chain

import pytest

from closure_scenarios import closure_scenario, lost_loops, lost_start, second_paths
from evermat.engines import make_engine
from evermat.engines.embedded import closure_index, closure_search
from evermat.maintenance import lazy_closures, modular
from evermat.maintenance.lazy_closures import LazyClosureReader
from evermat.maintenance.modules import ClosureModule
from planting import Mutant, plant
from tracked import Tracked

EXAMPLES = 400
"""Scenarios that are tried; most mutants fall within the first fifty."""
FIRST = (5001, 5007, 5027, 5036, 5010, 5008, 5257)
"""Scenarios that are known to show mutants, and are tried before the others."""

MUTANTS = (
    Mutant(
        "facts that lost one of two nonrecursive derivations are deleted",
        modular.overdelete,
        lambda engine, candidates, run: engine.nonrecursive_counts.zero(
            candidates & run.remaining
        ),
        lambda engine, candidates, run: engine.settle(candidates & run.remaining),
        algorithm="dred-c",
    ),
    Mutant(
        "what certain facts lead to is overdeleted",
        ClosureModule.delete,
        lambda self, stage: self._certain(stage) | self._edges(stage.positive),
        lambda self, stage: self._edges(stage.positive),
        algorithm="dred-c",
    ),
    Mutant(
        "loops of overdeleted facts stay",
        ClosureModule.delete,
        lambda self: not self.closure.loops,
        lambda: True,
        algorithm="dred-c",
    ),
    Mutant(
        "paths that lose a fact here and an edge there are missed",
        ClosureModule.delete,
        lambda stage: stage.before,
        lambda stage: stage.positive,
        algorithm="dred-c",
    ),
    Mutant(
        "edges that are lost below take no paths along",
        modular.losses,
        lambda module, stage, changes: module.diff(stage, changes.lost, changes.gained),
        lambda engine: engine.no_facts(),
        algorithm="dred-c",
    ),
    Mutant(
        "edges that come below make no paths",
        modular.gains,
        lambda module, stage, changes: module.diff(stage, changes.gained, changes.lost),
        lambda engine: engine.no_facts(),
        algorithm="dred-c",
    ),
    Mutant(
        "modules bring nothing back",
        modular.rederive,
        lambda stage, deleted, stratum: (
            module.rederive(stage, deleted) for module in stratum.modules
        ),
        lambda engine, stratum: (engine.no_facts() for _ in stratum.modules),
        algorithm="dred-c",
    ),
    Mutant(
        "a module that is new derives nothing from what there is",
        modular.gains,
        lambda module, stratum: module in stratum.new_modules,
        lambda: False,
        algorithm="dred-c",
    ),
    Mutant(
        "modules hear nothing of ordinary rules when they materialise",
        modular._take_turns,
        lambda from_others, engine, others, own: from_others(engine, others, own),
        lambda engine, own: [engine.no_facts()] * len(own),
        algorithm="remat",
    ),
    Mutant(
        "B/F^c-MOD does not follow deleted facts through modules",
        modular.delete_unproved,
        lambda stage, delta, stratum: [
            module.delete(stage, delta) for module in stratum.modules
        ],
        lambda delta: [delta],
        algorithm="bf-c",
    ),
    Mutant(
        "B/F^c-MOD lowers recursive counts twice",
        modular.maintain_searching,
        lambda: False,
        lambda: True,
        algorithm="bf-c",
    ),
    Mutant(
        "B/F^c-MOD takes external facts for proved",
        ClosureModule.prove,
        lambda self, stage: self._certain(stage),
        lambda self, stage: self._external(stage),
        algorithm="bf-c",
    ),
    Mutant(
        "B/F^c-MOD looks into no external facts",
        ClosureModule.bodies,
        lambda engine, external: engine.nonrecursive_counts.zero(external),
        lambda engine: engine.no_facts(),
        algorithm="bf-c",
    ),
    Mutant(
        "a component is not split where a fact was that held it together",
        closure_search.Search._ends,
        lambda self, seeds, LESS: self._needed(seeds, LESS, is_edge=False),  # noqa: N803
        lambda self, seeds, ALL: self._needed(seeds, ALL, is_edge=False),  # noqa: N803
        algorithm="dred-c",
    ),
    Mutant(
        "facts without a count stay in the graph of a closure",
        closure_search.ClosureIndexes._part,
        lambda _NEEDS, which: _NEEDS[which],  # noqa: N803
        lambda _NEEDS: _NEEDS[None],  # noqa: N803
        algorithm="dred-c",
    ),
    Mutant(
        "facts that get a count do not come into the graph of a closure",
        closure_index.ClosureIndex.catch_up,
        lambda each: each.missing(),
        lambda self, each: each.missing() if self._built < 0 else each.rows[:0],
        algorithm="dred-c",
    ),
    Mutant(
        "changes of lazy closures are not reported",
        lazy_closures.compare_lazy,
        lambda was, now, changes, _reads: (
            was == now and changes is not None and (not _reads(was, changes))
        ),
        lambda was, now: was == now,
        algorithm="dred-c",
    ),
    Mutant(
        "lazy closures report what left as what came",
        lazy_closures.with_lazy_changes,
        lambda both: both.new.minus(both.old),
        lambda both: both.old.minus(both.new),
        algorithm="dred-c",
    ),
    Mutant(
        "instances of lazy closures are not counted",
        LazyClosureReader.counts,
        lambda held, written: (*held, *written),
        lambda written: written,
        algorithm="dred-c",
    ),
)


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
    numbers = chain(FIRST, range(5000, 5000 + examples))
    stories = (closure_scenario(number, change_rules=True) for number in numbers)
    for story in chain([second_paths(), lost_start(), lost_loops()], stories):
        tracked = Tracked(make_engine("embedded"), modules=True)
        try:
            tracked.load(story.rules, story.facts)
            for update in story.updates:
                tracked.apply(update, algorithm)
        except Exception:  # noqa: BLE001  any failure is a finding
            return True
    return False
