"""`auto`: what it chooses, and that a wrong guess costs time but never correctness."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evermat.maintenance import dred_counting, materialisation
from evermat.maintenance.choose import (
    Choice,
    History,
    Situation,
    choose,
    restart_price,
)
from evermat.maintenance.watch import OutOfPatience, Patience, Watch
from paper_examples import REACHABILITY, Example, values

if TYPE_CHECKING:
    from evermat.algebra import Engine

PLAIN = Situation(
    withdrawn=0, given=0, changes_rules=False, is_recursive=True, has_counters=True
)

# Some two instances per given fact, as ontologies have them.
SHALLOW = History(given=1_000_000, facts=1_500_000).loaded(2_000_000, deriving=0.7)

# Thousands of instances per given fact, as program analyses have them.
DEEP = History(given=10_000, facts=1_000_000).loaded(50_000_000, deriving=3.3)


def name(situation: Situation, history: History) -> str:
    return choose(situation, history).algorithm


def test_counting_without_recursion() -> None:
    situation = replace(PLAIN, withdrawn=10, is_recursive=False)
    assert name(situation, SHALLOW) == "counting"


def test_no_counters() -> None:
    assert name(replace(PLAIN, withdrawn=10, has_counters=False), SHALLOW) == "fp"


@pytest.mark.parametrize("history", [SHALLOW, DEEP])
def test_small_updates_are_maintained(history: History) -> None:
    assert name(replace(PLAIN, withdrawn=1, given=1), history) == "dred-c"
    assert name(replace(PLAIN, changes_rules=True), history) == "dred-c"
    assert name(PLAIN, history) == "dred-c"


@pytest.mark.parametrize("history", [SHALLOW, DEEP])
def test_insertions_are_maintained_unless_most_is_new(history: History) -> None:
    few = replace(PLAIN, given=history.given // 2)
    assert name(few, history) == "dred-c"
    assert name(replace(PLAIN, given=3 * history.given), history) == "remat"


def test_large_deletions_depend_on_how_far_they_reach() -> None:
    quarter = replace(PLAIN, withdrawn=SHALLOW.given // 4)
    assert name(quarter, SHALLOW) == "dred-c"
    quarter = replace(PLAIN, withdrawn=DEEP.given // 4)
    choice = choose(quarter, DEEP)
    assert choice.algorithm == "remat"
    assert "expected" in choice.reason


def test_experience_beats_assumptions() -> None:
    large = replace(PLAIN, withdrawn=2_000)
    assert name(large, DEEP) == "remat"
    experienced = DEEP.maintained(withdrawn=2_000, instances=100_000, seconds=0.01)
    assert name(large, experienced) == "dred-c"
    small = replace(PLAIN, withdrawn=20)
    assert name(small, DEEP) == "dred-c"
    disappointed = DEEP.gave_up(withdrawn=20, instances=40_000_000)
    assert name(small, disappointed) == "remat"
    # What was learnt from twenty facts does not speak against a single one.
    assert name(replace(PLAIN, withdrawn=1), disappointed) == "dred-c"


def test_what_might_be_cheaper_is_tried_once() -> None:
    doubtful = replace(PLAIN, withdrawn=200)
    choice = choose(doubtful, DEEP)
    assert choice.algorithm == "dred-c"
    assert choice.patience is not None
    # Deleting may cost half of what starting again would: the rest costs no more.
    assert choice.patience.seconds < restart_price(200, DEEP) / 2
    disappointed = DEEP.gave_up(
        withdrawn=200, instances=round(choice.patience.instances)
    )
    assert name(doubtful, disappointed) == "remat"


def test_insertions_tell_nothing_about_the_price_of_deletions() -> None:
    slow = DEEP.maintained(withdrawn=0, instances=1_000_000, seconds=100.0)
    assert slow.speed == DEEP.speed


def test_attempts_are_given_up_only_while_deleting() -> None:
    watch = Watch(patience=Patience(instances=10, seconds=0.0))
    watch.phase = "insert"
    watch.working("rule", 100)
    watch.phase = "overdelete"
    with pytest.raises(OutOfPatience):
        watch.working("rule", 100)


def test_nothing_was_derived_so_far() -> None:
    facts_only = History(given=100, facts=100)
    assert name(replace(PLAIN, changes_rules=True), facts_only) == "remat"
    assert name(replace(PLAIN, withdrawn=5), facts_only) == "dred-c"


def test_attempt_that_is_given_up(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def impatient(situation: Situation, history: History) -> Choice:
        del situation, history
        return Choice("dred-c", "", Patience(instances=0, seconds=0.0))

    chain = [(i, i + 1) for i in range(30)]
    example = Example(engine, REACHABILITY, edge=chain)
    monkeypatch.setattr(materialisation, "choose", impatient)
    # What an engine does all by itself is over before patience can run out.
    monkeypatch.setattr(dred_counting, "is_carried_out", lambda _: False)
    outcome = example.update(
        delete={"edge": [(14, 15)]}, insert={"new": [(1, 2)]}, algorithm="auto"
    )
    assert outcome.report.algorithm == "remat"
    assert "`dred-c` was given up after" in outcome.report.reason
    assert len(values(outcome.removed, "reach")) == 15 * 16
    assert values(outcome.explicit_added, "new") == {(1, 2)}
    before = example.counts("reach")
    example.materialisation.rematerialise()
    assert example.counts("reach") == before


def test_report_says_why(engine: Engine) -> None:
    example = Example(engine, REACHABILITY, edge=[(i, i + 1) for i in range(30)])
    outcome = example.update(delete={"edge": [(29, 30)]})
    assert outcome.report.reason
    outcome = example.update(delete={"edge": [(28, 29)]}, algorithm="dred")
    assert outcome.report.reason == "asked for"
