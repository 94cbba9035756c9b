"""The driver: requests, reports, budgets, progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine_facts import make_facts, tables
from evermat.errors import EvermatError
from evermat.kb.materialisation import Materialisation
from evermat.lang.parser import parse_rules
from evermat.maintenance.algorithms import DESCRIPTIONS, NAMES, AlgorithmError
from evermat.maintenance.limits import Budget, BudgetExceededError
from evermat.maintenance.update import UnknownRelationError
from paper_examples import PATH_LENGTHS, REACHABILITY, Example, values
from tracked import ALGORITHMS

if TYPE_CHECKING:
    from evermat.algebra import Engine
    from evermat.maintenance.limits import Step

every = pytest.mark.parametrize("algorithm", ALGORITHMS)


@every
def test_no_ops_are_counted(engine: Engine, algorithm: str) -> None:
    example = Example(engine, REACHABILITY, edge=[(1, 2), (2, 3)], reach=[(7, 7)])
    outcome = example.update(
        # Not there; only derived; deleted and inserted at once.
        delete={"edge": [(9, 9), (1, 2)], "reach": [(1, 2)]},
        insert={"edge": [(1, 2), (2, 3)], "reach": [(7, 7)]},
        algorithm=algorithm,
    )
    report = outcome.report
    assert (report.deleted, report.inserted) == (0, 0)
    assert (report.ignored.deletions, report.ignored.insertions) == (3, 3)
    assert not outcome.removed.relations()
    assert not outcome.added.relations()


@every
def test_fact_that_is_given_and_derived(engine: Engine, algorithm: str) -> None:
    example = Example(engine, REACHABILITY, edge=[(1, 2)], reach=[(1, 2)])
    assert example.counts("reach") == {(1, 2): (2, 0)}
    outcome = example.update(delete={"reach": [(1, 2)]}, algorithm=algorithm)
    assert values(outcome.explicit_removed, "reach") == {(1, 2)}
    assert not outcome.removed.relations()
    assert example.counts("reach") == {(1, 2): (1, 0)}
    outcome = example.update(delete={"edge": [(1, 2)]}, algorithm=algorithm)
    assert values(outcome.removed, "reach") == {(1, 2)}


def test_strata_out_of_reach_are_not_visited(engine: Engine) -> None:
    rules = "\n".join(
        f"q{i}(?x) :- p{i}(?x) . r{i}(?x) :- q{i}(?x) ." for i in range(9)
    )
    rules += "s(?x) :- r1(?x), r2(?x) . t(?x) :- s(?x) ."
    example = Example(engine, rules, p1=[(1,)], p2=[(1,)])
    outcome = example.update(insert={"p5": [(3,)]}, algorithm="dred-c")
    assert [stratum.index for stratum in outcome.report.strata] == [0, 1, 2]
    assert outcome.report.forward_instances == 2
    outcome = example.update(insert={"alone": [(3,)]}, algorithm="dred-c")
    assert [stratum.index for stratum in outcome.report.strata] == [0]


def test_report_of_a_materialisation(engine: Engine) -> None:
    materialisation = Materialisation(engine)
    outcome = materialisation.update(
        insert=dict(tables(make_facts(edge=[(1, 2), (2, 3)]))),
        add_rules=parse_rules(REACHABILITY),
    )
    report = outcome.report
    assert (report.algorithm, report.inserted, report.added) == ("remat", 2, 5)
    (stratum,) = report.strata
    assert (stratum.index, stratum.inserted, stratum.forward_instances) == (1, 3, 3)
    assert report.added_rules == 2


def test_rules_can_come_before_facts_and_after(engine: Engine) -> None:
    first = Example(engine, REACHABILITY)
    first.update(insert={"edge": [(1, 2), (2, 3)]})
    second = Example(engine.fresh(), "", edge=[(1, 2), (2, 3)])
    second.update(add_rules=REACHABILITY)
    assert first.counts("reach") == second.counts("reach") != {}


def test_unknown_relation_on_delete(engine: Engine) -> None:
    example = Example(engine, REACHABILITY, edge=[(1, 2)])
    with pytest.raises(UnknownRelationError, match="`egde`"):
        example.update(delete={"egde": [(1, 2)]}, insert={"edge": [(5, 6)]})
    assert example.rows("edge") == {(1, 2)}


@pytest.mark.parametrize("kind", ["delete", "insert"])
def test_wrong_arity_changes_nothing(engine: Engine, kind: str) -> None:
    example = Example(engine, REACHABILITY, edge=[(1, 2)])
    wrong = dict(tables(make_facts(edge=[(1, 2, 3)])))
    fine = dict(tables(make_facts(other=[(1,)])))
    requests = {"insert": fine} | {kind: wrong}
    with pytest.raises(EvermatError):
        example.materialisation.update(**requests)  # type: ignore[arg-type]
    assert example.rows("edge") == {(1, 2)}
    example.update(insert={"other": [(1, 2)]})  # the arity was not fixed in passing


def test_unknown_algorithm(engine: Engine) -> None:
    materialisation = Materialisation(engine)
    with pytest.raises(AlgorithmError, match="choose from auto, remat"):
        materialisation.update(algorithm="magic")


@pytest.mark.parametrize("algorithm", ["counting", "dred-c", "bf-c"])
def test_counting_algorithms_need_counters(engine: Engine, algorithm: str) -> None:
    materialisation = Materialisation(engine, counters=False)
    with pytest.raises(AlgorithmError, match="reads counters"):
        materialisation.require_algorithm(algorithm)


def test_every_algorithm_is_described() -> None:
    assert set(NAMES) == {*ALGORITHMS, "counting"}
    for description in DESCRIPTIONS:
        assert description.title
        assert description.best
        assert description.memory


# ------------------------------------------------------------------------ budgets

ENDLESS = "n(?y) :- n(?x), ?y = ?x + 1 ."


@pytest.mark.parametrize(
    "budget",
    [
        Budget(rounds=50),
        Budget(facts=50),
        Budget(seconds=0.2),
        Budget(memory_bytes=1),
        Budget(instances=50),
    ],
)
@every
def test_endless_rule_is_named(engine: Engine, budget: Budget, algorithm: str) -> None:
    example = Example(engine, ENDLESS, budget=budget)
    with pytest.raises(BudgetExceededError, match="EM602") as raised:
        example.update(insert={"n": [(0,)]}, algorithm=algorithm)
    assert raised.value.rule is None or "?x + 1" in raised.value.rule
    assert example.rows("n") == set()
    assert engine.monitor is None
    example.materialisation.budget = None
    example.update(insert={"m": [(0,)]}, algorithm=algorithm)


def test_failing_computation_changes_nothing(engine: Engine) -> None:
    example = Example(engine, "h(?y) :- n(?x), ?y = 12 / ?x .", n=[(3,)])
    with pytest.raises(EvermatError, match="EM601"):
        example.update(insert={"n": [(2,), (0,)]})
    assert example.rows("h") == {(4,)}
    assert example.rows("n") == {(3,)}


def test_progress_tells_rounds(engine: Engine) -> None:
    steps: list[Step] = []
    chain = [(i, i + 1) for i in range(4)]
    example = Example(engine, REACHABILITY, edge=chain, progress=steps.append)
    example.materialisation.rematerialise()
    # An engine that runs a whole fixpoint in one call tells of it when it is done.
    expected = [4, 6] if engine.name == "spark" else [4, 3, 2, 1]
    assert [step.new_facts for step in steps] == expected
    assert [step.round for step in steps] == list(range(1, len(expected) + 1))
    assert {step.phase for step in steps} == {"materialise"}
    assert steps[-1].total_facts == 10
    steps.clear()
    example.update(delete={"edge": [(3, 4)]}, algorithm="dred-c")
    assert {step.phase for step in steps} == {"overdelete"}


def test_long_sums_end_by_themselves(engine: Engine) -> None:
    edges = [("a", "x0", 1), *((f"x{i}", f"x{i + 1}", 1) for i in range(30))]
    example = Example(engine, PATH_LENGTHS, b=edges)
    for algorithm in ALGORITHMS:
        outcome = example.update(delete={"b": [("x9", "x10", 1)]}, algorithm=algorithm)
        assert outcome.report.removed == 22
        example.update(insert={"b": [("x9", "x10", 1)]}, algorithm=algorithm)
        assert ("x30", 31) in example.rows("d")
