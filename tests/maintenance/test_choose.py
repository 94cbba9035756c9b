"""`auto`: what it chooses, and that a wrong guess costs time but never correctness."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from math import log
from typing import TYPE_CHECKING

import pytest

from evermat.kb import materialisation
from evermat.maintenance import limits as watch_module
from evermat.maintenance.cost_model import (
    Choice,
    History,
    Situation,
    choose,
    deletion_prices,
    learnt,
    reason_to_give_up,
)
from evermat.maintenance.counting import Kept
from evermat.maintenance.limits import CostLimit, CostLimitReached, Forecast, Watch
from evermat.maintenance.update import Report, StratumReport
from paper_examples import REACHABILITY, Example, values

if TYPE_CHECKING:
    from evermat.algebra import Engine

PLAIN = Situation(
    deletions=0, insertions=0, changes_rules=False, is_recursive=True, kept=Kept.BOTH
)

# Some two instances per given fact, as ontologies have them.
SHALLOW = History(explicit=1_000_000, facts=1_500_000).loaded(2_000_000, deriving=0.7)

# Thousands of instances per given fact, as program analyses have them.
DEEP = History(explicit=10_000, facts=1_000_000).loaded(50_000_000, deriving=3.3)


def name(situation: Situation, history: History) -> str:
    return choose(situation, history).algorithm


def test_counting_without_recursion() -> None:
    situation = replace(PLAIN, deletions=10, is_recursive=False)
    assert name(situation, SHALLOW) == "counting"


def test_no_counters() -> None:
    assert name(replace(PLAIN, deletions=10, kept=Kept.NONE), SHALLOW) == "fp"
    one = replace(PLAIN, deletions=10, kept=Kept.NONRECURSIVE)
    assert name(one, SHALLOW) == "bf-c"
    assert name(replace(one, is_recursive=False), SHALLOW) == "counting"


@pytest.mark.parametrize("history", [SHALLOW, DEEP])
def test_small_updates_are_maintained(history: History) -> None:
    assert name(replace(PLAIN, deletions=1, insertions=1), history) == "dred-c"
    assert name(replace(PLAIN, changes_rules=True), history) == "dred-c"
    assert name(PLAIN, history) == "dred-c"


@pytest.mark.parametrize("history", [SHALLOW, DEEP])
def test_insertions_are_maintained_unless_most_is_new(history: History) -> None:
    few = replace(PLAIN, insertions=history.explicit // 2)
    assert name(few, history) == "dred-c"
    assert name(replace(PLAIN, insertions=3 * history.explicit), history) == "remat"


def test_large_deletions_depend_on_how_far_they_reach() -> None:
    quarter = replace(PLAIN, deletions=SHALLOW.explicit // 4)
    assert name(quarter, SHALLOW) == "dred-c"
    quarter = replace(PLAIN, deletions=DEEP.explicit // 4)
    choice = choose(quarter, DEEP)
    assert choice.algorithm == "remat"
    assert "expected" in choice.reason


def test_experience_beats_assumptions() -> None:
    large = replace(PLAIN, deletions=2_000)
    assert name(large, DEEP) == "remat"
    experienced = DEEP.maintained(deletions=2_000, instances=100_000, seconds=0.01)
    assert name(large, experienced) == "dred-c"
    small = replace(PLAIN, deletions=20)
    assert name(small, DEEP) == "dred-c"
    disappointed = DEEP.reached(deletions=20, instances=45_000_000)
    assert name(small, disappointed) == "remat"
    # What was learnt from twenty facts does not speak against a single one.
    assert name(replace(PLAIN, deletions=1), disappointed) == "dred-c"


def test_proofs_are_searched_for_before_few_facts_cause_a_rematerialisation() -> None:
    disappointed = DEEP.reached(deletions=10, instances=49_000_000)
    few = replace(PLAIN, deletions=10)
    choice = choose(few, disappointed)
    assert choice.algorithm == "bf-c"
    assert choice.is_search
    limit = choice.cost_limit
    assert limit is not None
    restarting = deletion_prices(10, disappointed).restarting
    assert limit.latest < restarting / 2
    assert limit.is_passed(0, restarting / 2)
    # DRed^c would be no cheaper without counters of recursive derivations.
    assert not choose(replace(few, kept=Kept.NONRECURSIVE), disappointed).is_search
    # Many facts are hardly all proved in a fraction of the time.
    assert name(replace(few, deletions=20), disappointed) == "remat"


def test_searches_that_fail_are_tried_more_and_more_rarely() -> None:
    history = DEEP.reached(deletions=10, instances=49_000_000)
    few = replace(PLAIN, deletions=10)
    rebuilt = Report(
        algorithm="remat",
        strata=(StratumReport(1, forward_instances=50_000_000),),
        deleted=10,
        inserted=10,
    )
    tried = []
    for number in range(40):
        if choose(few, history).is_search:
            tried.append(number)
            history = history.without_search()
        history = learnt(history, rebuilt, 3.3).reached(10, 49_000_000)
    assert tried == [0, 2, 6, 14, 30]
    found = replace(rebuilt, algorithm="bf-c", strata=())
    learned = learnt(history._replace(pause=0), found, 0.001, is_search=True)
    # A search that found proofs says nothing about how far DRed^c would delete.
    assert learned.reaching == history.reaching
    assert learned.failed_searches == 0


def test_what_might_be_cheaper_is_tried_once() -> None:
    doubtful = replace(PLAIN, deletions=200)
    choice = choose(doubtful, DEEP)
    assert choice.algorithm == "dred-c"
    assert choice.cost_limit is not None
    # Deleting may cost half of what starting again would: the rest costs no more.
    restart = deletion_prices(200, DEEP, doubt=1.0).restarting
    assert choice.cost_limit.seconds < restart / 2
    # A part of the facts may reach so far that all of them cost more.
    forecast = choice.cost_limit.forecast
    assert forecast is not None
    assert forecast.limit < DEEP.instances
    disappointed = DEEP.reached(deletions=200, instances=1.1 * forecast.limit)
    assert name(doubtful, disappointed) == "remat"


def test_small_deletions_are_not_divided() -> None:
    for withdrawn in (1, 20, 1_000):
        choice = choose(replace(PLAIN, deletions=withdrawn), SHALLOW)
        assert choice.cost_limit is not None
        assert choice.cost_limit.forecast is None


def test_experience_makes_forecasts_needless() -> None:
    doubtful = replace(PLAIN, deletions=200)
    choice = choose(doubtful, DEEP.reached(deletions=200, instances=5_000_000))
    assert choice.cost_limit is not None
    assert choice.cost_limit.forecast is None


SEARCHED = replace(PLAIN, kept=Kept.NONE, is_search=True)


def test_searches_are_given_the_time_that_starting_again_takes() -> None:
    """Nothing that a search deletes comes back, so none of its work is done twice."""
    known = DEEP.reached(deletions=200, instances=30_000_000)
    dred = deletion_prices(200, known)
    search = deletion_prices(200, known, is_search=True)
    assert search.maintaining < dred.maintaining
    assert search.restarting == dred.restarting
    choice = choose(replace(SEARCHED, deletions=200), known)
    assert choice.algorithm == "bf"
    limit = choice.cost_limit
    assert limit is not None
    assert not limit.is_passed(int(DEEP.instances) - 1, 0.9 * limit.latest)
    # More matches than there are instances, or more time: it is given up.
    assert limit.is_passed(int(DEEP.instances) + 1, 0.9 * limit.latest)
    assert limit.is_passed(1, 1.1 * limit.latest)


def test_a_search_that_was_given_up_may_be_tried_again() -> None:
    """What it is known to reach at most is less than starting again would match."""
    given_up = SHALLOW.reached(deletions=100, instances=2 * SHALLOW.instances)
    assert choose(replace(SEARCHED, deletions=100), given_up).algorithm == "bf"


def test_strata_cost_something_however_little_is_matched() -> None:
    """Deleting most of the facts does not make a program of many strata cheap."""
    few = History(explicit=10_000, facts=300_000).loaded(300_000, 0.1)
    many = History(explicit=10_000, facts=300_000).loaded(300_000, 0.1, 1_000)
    assert many.standing == pytest.approx(0.06)
    # So do relations, and once more for being copied and compared.
    wide = History(explicit=10_000, facts=300_000).loaded(300_000, 0.1, 1, 999)
    assert wide.standing == pytest.approx(0.06)
    prices = [deletion_prices(9_999, history).restarting for history in (many, wide)]
    assert prices[1] == pytest.approx(prices[0] + 999 * 6e-5)
    # Together it is what was observed.
    for history in (few, many):
        derived = history.standing + 300_000 * history.restart_speed
        assert derived == pytest.approx(0.1)
    large = [deletion_prices(5_000, history) for history in (few, many)]
    assert large[1].restarting > large[0].restarting + 0.01
    # A deletion is allowed what relations cost in any case.
    quarter = replace(PLAIN, deletions=2_500)
    allowed = [
        choice.cost_limit.seconds if choice.cost_limit else 0.0
        for choice in (choose(quarter, history) for history in (many, wide))
    ]
    assert allowed[1] == pytest.approx(allowed[0] + 1.45 * 999 * 6e-5)
    # No more than a part of the time is said to be for strata.
    tiny = History(explicit=10, facts=20).loaded(10, 0.001, 1_000)
    assert tiny.standing < 0.001


def test_a_part_tells_how_much_a_fact_matches() -> None:
    """Facts that match little are cheap to delete, however many there are."""
    forecast = Forecast(
        instances=10_000.0, facts=10_000, limit=5_000.0, until=1e9, seconds=1e9
    )
    plain = forecast.expected(2, 6_000)
    assert plain > forecast.limit
    assert forecast.expected(2, 6_000, per_fact=0.5) == pytest.approx(plain / 2)
    # A part does not make it dearer than it was thought to be.
    assert forecast.expected(2, 6_000, per_fact=3.0) == plain
    for matched, gives_up in ((500, False), (1_500, True)):
        watch = Watch(cost_limit=CostLimit(1e9, 1e9, forecast=forecast))
        watch.phase = "overdelete"
        raised = pytest.raises(CostLimitReached) if gives_up else nullcontext()
        with raised, watch.judging(parts=2):
            watch.round(1, 1_500)
            watch.working("rule", matched)
            watch.round(2, 3_000)


def test_forecast() -> None:
    forecast = Forecast(
        instances=1_000.0, facts=100, limit=500.0, until=1e9, seconds=1e9
    )
    assert forecast.parts(10) == 1
    assert forecast.parts(200) == 3
    assert forecast.parts(1_000_000) == 16
    # All parts reach at least what one does, and at most everything.
    assert 100 < forecast.expected(16, 10) < 1_000
    assert forecast.expected(16, 200) == 1_000


@pytest.mark.parametrize(
    ("rounds", "until", "gives_up"),
    [
        ((10, 20, 20), 1e9, False),
        ((10, 10, 40), 1e9, True),  # rounds grow, so there is more to come
        ((60, 10, 9), 1e9, True),
        ((60, 10, 9), 0.0, False),  # too much would be lost
    ],
)
def test_parts_that_reach_far_are_given_up(
    rounds: tuple[int, ...], until: float, *, gives_up: bool
) -> None:
    forecast = Forecast(
        instances=1_000.0, facts=1_000, limit=350.0, until=until, seconds=1e9
    )
    watch = Watch(cost_limit=CostLimit(1e9, 1e9, forecast=forecast))
    watch.phase = "overdelete"
    watch.working("rule", 5)
    raised = pytest.raises(CostLimitReached) if gives_up else nullcontext()
    with raised, watch.judging(parts=16):
        for number, facts in enumerate(rounds, start=1):
            watch.round(number, facts)
    # What is deleted afterwards is not judged.
    if not gives_up:
        watch.round(4, 900)


@pytest.mark.parametrize(
    ("limit", "is_patient"),
    [
        (350.0, True),  # as much as expected may be matched, and some more
        (100.0, False),  # it was not worth going on, but it was too late to say so
    ],
)
def test_a_part_tells_how_long_to_go_on(limit: float, *, is_patient: bool) -> None:
    forecast = Forecast(
        instances=1_000.0, facts=1_000, limit=limit, until=0.0, seconds=1e9
    )
    watch = Watch(cost_limit=CostLimit(50, 0.0, forecast=forecast))
    watch.phase = "overdelete"
    watch.working("rule", 5)
    with watch.judging(parts=16):
        watch.round(1, 60)
    expected = forecast.expected(16, 60)
    assert 50 < expected < 350
    with nullcontext() if is_patient else pytest.raises(CostLimitReached):
        watch.working("rule", int(expected))
    with pytest.raises(CostLimitReached):
        watch.working("rule", int(expected))


@pytest.mark.parametrize(("withdrawn", "given"), [(9, 0), (0, 9)])
def test_little_is_always_maintained(withdrawn: int, given: int) -> None:
    """To compare prices of next to nothing would only confuse."""
    little = History(explicit=10, facts=100).loaded(200, deriving=1e-6)
    choice = choose(replace(PLAIN, deletions=withdrawn, insertions=given), little)
    assert (choice.algorithm, choice.cost_limit) == ("dred-c", None)


def test_no_times_are_known() -> None:
    """Nothing is given up at once where facts were taken up from elsewhere."""
    taken_up = History(explicit=1_000, facts=100_000, instances=200_000.0)
    choice = choose(replace(PLAIN, deletions=1), taken_up)
    assert choice.algorithm == "dred-c"
    assert choice.cost_limit is not None
    assert choice.cost_limit.instances > 10_000


def update(history: History, before: int, after: int, instances: int) -> History:
    """A materialisation with another number of given facts."""
    derived = StratumReport(
        1, forward_instances=instances, seconds={"materialise": instances * 1e-8}
    )
    came, went = max(after - before, 0), max(before - after, 0)
    report = Report(
        "remat",
        strata=(derived,),
        deleted=went,
        inserted=came,
        removed=went,
        added=came,
    )
    return learnt(history, report, instances * 1e-8)


def test_insertions_that_multiply_the_facts() -> None:
    full = update(History(), 0, 10_000, 100_000_000)
    half = update(full, 10_000, 5_000, 400_000)
    # Twice the facts have 250 times the instances: nearly all of them would be new.
    assert 50_000_000 < half.with_more(5_000) < 200_000_000
    choice = choose(replace(PLAIN, insertions=5_000), half)
    assert choice.algorithm == "dred-c"
    assert choice.cost_limit is not None
    assert choice.cost_limit.is_for_adding
    # With few more facts there are few new instances.
    assert choose(replace(PLAIN, insertions=50), half).cost_limit is None
    # Where nothing is known about growth, insertions are maintained.
    assert choose(replace(PLAIN, insertions=5_000), DEEP).cost_limit is None


def test_little_work_tells_little_about_speed() -> None:
    history = DEEP.loaded(1_000, deriving=0.1)
    assert history.restart_speed < 1.2 * DEEP.restart_speed


def test_reach_is_learnt_from_all_there_was() -> None:
    report = Report(
        "dred-c",
        strata=(StratumReport(1, forward_instances=1_000_000, overdeleted=750_000),),
        deleted=500_000,
        removed=750_000,
    )
    history = learnt(SHALLOW, report, 0.1)
    # Nothing came back, so half of all instances were reached, each once.
    assert history.reaching.value(0.0) == pytest.approx(-log(0.5) / 500_000)


def test_insertions_tell_nothing_about_the_price_of_deletions() -> None:
    slow = DEEP.maintained(deletions=0, instances=1_000_000, seconds=100.0)
    assert slow.deletion_speed == DEEP.deletion_speed
    assert slow.insertion_speed > DEEP.insertion_speed


def test_attempts_are_given_up_only_while_deleting() -> None:
    watch = Watch(cost_limit=CostLimit(instances=10, seconds=0.0))
    watch.phase = "insert"
    watch.working("rule", 100)
    watch.phase = "overdelete"
    with pytest.raises(CostLimitReached):
        watch.working("rule", 100)


def test_insertions_that_were_expected_to_grow_are_given_up() -> None:
    watch = Watch(cost_limit=CostLimit(instances=10, seconds=0.0, is_for_adding=True))
    watch.phase = "insert"
    with pytest.raises(CostLimitReached):
        watch.working("rule", 100)


def test_nothing_was_derived_so_far() -> None:
    facts_only = History(explicit=100, facts=100)
    assert name(replace(PLAIN, changes_rules=True), facts_only) == "remat"
    assert name(replace(PLAIN, deletions=5), facts_only) == "dred-c"


def test_attempt_that_is_given_up(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def impatient(situation: Situation, history: History) -> Choice:
        del situation, history
        return Choice("dred-c", "", CostLimit(instances=0, seconds=0.0))

    chain = [(i, i + 1) for i in range(30)]
    example = Example(engine, REACHABILITY, edge=chain)
    monkeypatch.setattr(materialisation, "choose", impatient)
    outcome = example.update(
        delete={"edge": [(14, 15)]}, insert={"new": [(1, 2)]}, algorithm="auto"
    )
    assert outcome.report.algorithm == "remat"
    assert "`dred-c` was abandoned after" in outcome.report.reason
    assert len(values(outcome.removed, "reach")) == 15 * 16
    assert values(outcome.explicit_added, "new") == {(1, 2)}
    before = example.counts("reach")
    example.materialisation.rematerialise()
    assert example.counts("reach") == before


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_search_in_place_of_a_rematerialisation(
    engine: Engine, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def searching(situation: Situation, history: History) -> Choice:
        del situation, history
        limit = CostLimit(instances=0, seconds=seconds)
        return Choice("bf-c", "few facts are deleted", limit, is_search=True)

    edges = [(i, j) for i in range(30) for j in (i + 1, i + 3)]
    example = Example(engine, REACHABILITY, edge=edges)
    monkeypatch.setattr(materialisation, "choose", searching)
    outcome = example.update(delete={"edge": [(14, 15)]}, algorithm="auto")
    assert outcome.report.algorithm == ("bf-c" if seconds else "remat")
    assert outcome.report.reason.startswith(
        "few facts are deleted" if seconds else "`bf-c` was abandoned after"
    )
    before = example.counts("reach")
    example.materialisation.rematerialise()
    assert example.counts("reach") == before


@pytest.mark.parametrize("limit", [0.0, 1e9])
def test_deletion_that_begins_with_a_part(
    engine: Engine, limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on with the rest, or is given up; the result is the same."""

    def doubtful(situation: Situation, history: History) -> Choice:
        del situation, history
        forecast = Forecast(
            instances=1_000.0, facts=1_000, limit=limit, until=1e9, seconds=1e9
        )
        return Choice("dred-c", "", CostLimit(1e9, 1e9, forecast=forecast))

    monkeypatch.setattr(watch_module, "_TELLING", 2)
    edges = [(i, j) for i in range(30) for j in (i + 1, i + 3)]
    example = Example(engine, REACHABILITY, edge=edges)
    monkeypatch.setattr(materialisation, "choose", doubtful)
    gone = [(i, i + 1) for i in range(0, 30, 2)] + [(i, i + 3) for i in range(9, 13)]
    outcome = example.update(delete={"edge": gone}, algorithm="auto")
    divides = engine.part(engine.no_facts(), 2) is not None
    given_up = divides and not limit
    assert outcome.report.algorithm == ("remat" if given_up else "dred-c")
    before = example.counts("reach")
    example.materialisation.rematerialise()
    assert example.counts("reach") == before


def test_report_says_why(engine: Engine) -> None:
    example = Example(engine, REACHABILITY, edge=[(i, i + 1) for i in range(30)])
    outcome = example.update(delete={"edge": [(29, 30)]})
    assert outcome.report.reason
    outcome = example.update(delete={"edge": [(28, 29)]}, algorithm="dred")
    assert outcome.report.reason == "asked for"


def test_reasons_to_give_up() -> None:
    reason = reason_to_give_up(DEEP, 10, 0, expected=90_000_000)
    assert reason == "about 50,000,000 of 50,000,000 would be reached"
    reason = reason_to_give_up(DEEP, 0, 10, expected=0)
    assert reason == "there were 50,000,000, and will be about 50,000,000"


def test_more_facts_may_go_than_were_known() -> None:
    """Where closures are held, the number of stored facts is an estimate."""
    before = History(explicit=9, facts=3, instances=10.0)
    report = Report(algorithm="bf", reason="", removed=5, deleted=4)
    after = learnt(before, report, 0.1)
    assert (after.explicit, after.facts, after.instances) == (5, 0, 0.0)
