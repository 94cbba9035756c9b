"""Updates of folded rules, compiled, in batches and in turn, end as they must.

Facts, counters and changes are compared with the oracle after each update, and so are
reports, but for the search of B/F: depth first, it matches fewer instances.
"""

# ruff: noqa: SLF001  mutants are made in private functions

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from evermat.algebra import Column
from evermat.engines.embedded import backward, saturation, small_batch
from evermat.engines.embedded.bytecode import _Writer
from evermat.engines.embedded.engine import EmbeddedEngine
from folded_scenarios import scenario_of
from paper_examples import Example
from planting import Mutant, fails, plant
from tracked import Tracked

if TYPE_CHECKING:
    from types import ModuleType

    from evermat.maintenance.update import Report
    from strategies import Update

WITH_COUNTERS = ("bf", "bf-c", "dred-c", "dred")
WITHOUT_COUNTERS = ("bf", "bf", "dred")


def work_in(report: Report) -> list[tuple[int, ...]]:
    """What is reported, but for how proofs were searched for, and seconds."""
    is_search = report.algorithm in {"bf", "bf-c"}
    return [
        (
            stratum.index,
            0 if is_search else stratum.rounds,
            0 if is_search else stratum.forward_instances,
            stratum.overdeleted,
            stratum.rederived,
            stratum.inserted,
        )
        for stratum in report.strata
    ]


class Three:
    """The same facts, maintained in three ways."""

    def __init__(self, seed: int, *, counters: bool) -> None:
        scenario = scenario_of(seed)
        self.every = [Tracked(EmbeddedEngine(), counters=counters) for _ in range(3)]
        for each in self.every:
            each.load(scenario.rules, scenario.facts)

    def apply(self, update: Update, algorithm: str) -> bool:
        """Returns whether rounds were compiled, where they may be."""
        compiled = self.every[0].apply(update, algorithm).report
        batched = self._apart(1, update, algorithm, {saturation: "MOST_SEEDS"})
        in_turn = self._apart(
            2,
            update,
            algorithm,
            {saturation: "MOST_SEEDS", small_batch: "MOST_CHANGED"},
        )
        assert work_in(compiled) == work_in(batched) == work_in(in_turn)
        assert all(stratum.path != "compiled" for stratum in batched.strata)
        return any(stratum.path == "compiled" for stratum in compiled.strata)

    def _apart(
        self, at: int, update: Update, algorithm: str, limits: dict[ModuleType, str]
    ) -> Report:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(backward, "MOST_BATCH", -1)
            for module, limit in limits.items():
                patch.setattr(module, limit, -1)
            return self.every[at].apply(update, algorithm).report


def play(seed: int) -> list[bool]:
    """Some updates; returns for each whether rounds were compiled."""
    random_ = random.Random(seed)  # noqa: S311  no secret
    counters = random_.random() < 0.5
    three = Three(seed, counters=counters)
    choice = WITH_COUNTERS if counters else WITHOUT_COUNTERS
    return [
        three.apply(update, random_.choice(choice))
        for update in scenario_of(seed).updates
    ]


@pytest.mark.parametrize("first", range(0, 40, 8))
def test_all_ways_end_alike(first: int) -> None:
    assert any(done for seed in range(first, first + 8) for done in play(seed))


def test_what_is_matched_backwards() -> None:
    """One derivation is enough; queries run in turn match all three at once."""
    rules = """
        via(?x, 1) :- path(?x, 3, ?y), lonely(?y) .
        via(?x, 2) :- path(?x, 4, ?y), lonely(?y) .
    """
    told = []
    for most in (small_batch.MOST_CHANGED, -1):
        some = Example(
            EmbeddedEngine(),
            rules,
            counters=False,
            path=[(0, 3, y) for y in range(4)],
            lonely=[(y,) for y in range(4)],
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(small_batch, "MOST_CHANGED", most)
            outcome = some.update(delete={"path": [(0, 3, 0)]}, algorithm="bf")
        assert some.rows("via") == {(0, 1)}
        told.append(outcome.report.backward_instances)
    assert told == [1, 3]


MUTANTS = (
    Mutant(
        "a variable that occurs twice is not compared",
        _Writer._free,
        lambda operand, slot, binds: isinstance(operand, Column) and slot not in binds,
        lambda operand: isinstance(operand, Column),
        "bf",
    ),
    Mutant(
        "wide keys are taken at their word",
        _Writer._record,
        lambda key, slots: len(key) == len(slots),
        lambda key: key,
        "bf",
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert any(fails(game, seed) for seed in range(40))


def game(seed: int) -> None:
    play(seed)
