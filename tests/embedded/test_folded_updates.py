"""Updates of folded rules, as a whole, in steps and in turn, end as they must.

Facts, counters and changes are compared with the oracle after each update. Reports of
the first two are the same. Where queries are run in turn, all derivations of a fact by
a rule are matched before it is known that there is one, so only that number differs.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from evermat.engines.embedded import at_once, whole_updates
from evermat.engines.embedded.engine import EmbeddedEngine
from folded_scenarios import scenario_of
from mutants import Mutant, fails, plant
from paper_examples import Example
from tracked import Tracked

if TYPE_CHECKING:
    from evermat.maintenance.updates import Report, StratumReport
    from strategies import Update

WITH_COUNTERS = ("bf", "bf-c", "dred-c", "dred")
WITHOUT_COUNTERS = ("bf", "bf", "dred")


def work_in(stratum: StratumReport) -> tuple[int, ...]:
    """All that is reported but what was searched for, and seconds."""
    return (
        stratum.index,
        stratum.rounds,
        stratum.forward_instances,
        stratum.overdeleted,
        stratum.rederived,
        stratum.proved,
        stratum.inserted,
    )


def searched(report: Report) -> list[int]:
    return [stratum.backward_instances for stratum in report.strata]


class Three:
    """The same facts, maintained in three ways."""

    def __init__(self, seed: int, *, counters: bool) -> None:
        scenario = scenario_of(seed)
        self.every = [Tracked(EmbeddedEngine(), counters=counters) for _ in range(3)]
        for each in self.every:
            each.load(scenario.rules, scenario.facts)
        self.carried_out: list[bool] = []

    def apply(self, update: Update, algorithm: str) -> None:
        whole, steps, in_turn = (
            self._as_a_whole(update, algorithm),
            self._in_steps(update, algorithm),
            self._in_turn(update, algorithm),
        )
        assert [*map(work_in, whole.strata)] == [*map(work_in, steps.strata)]
        assert searched(whole) == searched(steps)
        assert [*map(work_in, whole.strata)] == [*map(work_in, in_turn.strata)]
        for few, all_ in zip(searched(whole), searched(in_turn), strict=True):
            assert few <= all_

    def _as_a_whole(self, update: Update, algorithm: str) -> Report:
        run = whole_updates.WholeUpdates.run

        def spy(self_: whole_updates.WholeUpdates, *given: object) -> object:
            done = run(self_, *given)  # type: ignore[arg-type]
            self.carried_out.append(done is not None)
            return done

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(whole_updates.WholeUpdates, "run", spy)
            return self.every[0].apply(update, algorithm).report

    def _in_steps(self, update: Update, algorithm: str) -> Report:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(whole_updates.WholeUpdates, "run", lambda *_: None)
            return self.every[1].apply(update, algorithm).report

    def _in_turn(self, update: Update, algorithm: str) -> Report:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(at_once, "MOST_CHANGED", -1)
            return self.every[2].apply(update, algorithm).report


def play(seed: int) -> list[bool]:
    """Some updates; returns for each that might whether it was one call."""
    random_ = random.Random(seed)  # noqa: S311  no secret
    counters = random_.random() < 0.5
    three = Three(seed, counters=counters)
    for update in scenario_of(seed).updates:
        choice = WITH_COUNTERS if counters else WITHOUT_COUNTERS
        three.apply(update, random_.choice(choice))
    return three.carried_out


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
    for most in (at_once.MOST_CHANGED, -1):
        some = Example(
            EmbeddedEngine(),
            rules,
            counters=False,
            path=[(0, 3, y) for y in range(4)],
            lonely=[(y,) for y in range(4)],
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(at_once, "MOST_CHANGED", most)
            outcome = some.update(delete={"path": [(0, 3, 0)]}, algorithm="bf")
        assert some.rows("via") == {(0, 1)}
        told.append(outcome.report.backward_instances)
    assert told == [1, 3]


MUTANTS = (
    Mutant(
        "a variable that occurs twice is not compared",
        "embedded.programs",
        "if isinstance(operand, Column) and slot not in binds:",
        "if isinstance(operand, Column):",
        "bf",
    ),
    Mutant(
        "wide keys are taken at their word",
        "embedded.programs",
        "if len(key) == len(slots):",
        "if key:",
        "bf",
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert any(fails(game, seed) for seed in range(40))


def game(seed: int) -> None:
    play(seed)
