"""DRed^c: the examples of its paper, and what sets it apart from DRed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.maintenance import dred_counting
from paper_examples import (
    CHAIN,
    CHAIN_FACTS,
    PATH_LENGTHS,
    SYMMETRIC_PAIRS,
    Example,
    path_lengths,
    symmetric_pairs,
    values,
)

if TYPE_CHECKING:
    import pytest

    from evermat.algebra import Engine
    from evermat.maintenance.context import Changes, Run, Stratum


def test_paper_example_3_counter_table(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = Example(engine, CHAIN, **CHAIN_FACTS)
    assert example.counts("a") == {  # T1
        ("a",): (1, 0),
        ("b",): (1, 0),
        ("c",): (0, 2),
        ("d",): (1, 1),
        ("e",): (0, 1),
    }
    after_overdeletion = {}
    overdelete = dred_counting.overdelete

    def spy(run: Run, stratum: Stratum, changes: Changes) -> None:
        overdelete(run, stratum, changes)
        after_overdeletion.update(example.counts("a"))

    monkeypatch.setattr(dred_counting, "overdelete", spy)
    outcome = example.update(delete={"a": [("a",)]}, algorithm="dred-c")
    assert after_overdeletion == {  # T2
        ("a",): (0, 0),
        ("b",): (1, 0),
        ("c",): (0, 1),
        ("d",): (1, 0),
        ("e",): (0, 1),
    }
    assert example.counts("a") == {  # T3
        ("b",): (1, 0),
        ("c",): (0, 1),
        ("d",): (1, 1),
        ("e",): (0, 1),
    }
    assert values(outcome.removed, "a") == {("a",)}


def test_paper_example_3_overdeletes_two_facts_and_dred_four(engine: Engine) -> None:
    example = Example(engine, CHAIN, **CHAIN_FACTS)
    outcome = example.update(delete={"a": [("a",)]}, algorithm="dred-c")
    (stratum,) = outcome.report.strata
    assert (stratum.overdeleted, stratum.rederived, stratum.inserted) == (2, 1, 1)
    assert stratum.backward_instances == 0

    example.update(insert={"a": [("a",)]})
    outcome = example.update(delete={"a": [("a",)]}, algorithm="dred")
    (stratum,) = outcome.report.strata
    assert (stratum.overdeleted, stratum.rederived, stratum.inserted) == (4, 2, 3)


def test_paper_example_1_work_is_linear(engine: Engine) -> None:
    instances = {}
    for number in (10, 40):
        fresh = engine.fresh()
        example = Example(fresh, SYMMETRIC_PAIRS, r=symmetric_pairs(number))
        spokes = [(f"a{i}", f"c{i}") for i in range(number)]
        outcome = example.update(delete={"r": spokes}, algorithm="dred-c")
        assert example.rows("s") == {("b", "b")}
        assert outcome.report.backward_instances == 0
        instances[number] = outcome.report.forward_instances
    assert instances == {10: 30, 40: 120}


def test_paper_example_2_never_looks_backwards(engine: Engine) -> None:
    number = 8
    example = Example(engine, PATH_LENGTHS, b=path_lengths(number))
    outcome = example.update(delete={"b": [("a", "b1", 1)]}, algorithm="dred-c")
    gone = {("b1", 1), *((f"d{j}", 2) for j in range(1, number + 1))}
    assert values(outcome.removed, "d") == gone
    assert outcome.report.backward_instances == 0
    assert outcome.report.forward_instances == number + 1


def test_overdelete_keeps_facts_with_nonrecursive_support(engine: Engine) -> None:
    rules = """
        p(?x) :- q(?x) .
        p(?x) :- o(?x) .
        p(?y) :- p(?x), e(?x, ?y) .
    """
    chain = [(i, i + 1) for i in range(20)]
    example = Example(engine, rules, q=[(0,)], o=[(0,)], e=chain)
    outcome = example.update(delete={"q": [(0,)]}, algorithm="dred-c")
    assert outcome.removed.relations() == {"q": 1}
    assert sum(stratum.overdeleted for stratum in outcome.report.strata) == 1


def test_fact_given_by_the_update_is_not_overdeleted(engine: Engine) -> None:
    rules = "p(?x) :- q(?x) . p(?y) :- p(?x), e(?x, ?y) ."
    example = Example(engine, rules, q=[(0,)], e=[(0, 1), (1, 2), (2, 3)])
    outcome = example.update(
        delete={"q": [(0,)]}, insert={"p": [(1,)]}, algorithm="dred-c"
    )
    assert values(outcome.removed, "p") == {(0,)}
    assert example.counts("p") == {(1,): (1, 0), (2,): (0, 1), (3,): (0, 1)}
    (base, stratum) = outcome.report.strata
    assert (base.overdeleted, stratum.overdeleted) == (1, 1)
