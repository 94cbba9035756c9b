"""DRed: overdeletion, one-step rederivation, insertion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_examples import SYMMETRIC_PAIRS, Example, symmetric_pairs, values

if TYPE_CHECKING:
    from evermat.algebra import Engine


def test_rederives_given_facts(engine: Engine) -> None:
    rules = "p(?y) :- p(?x), e(?x, ?y) ."
    example = Example(engine, rules, p=[(0,), (1,)], e=[(0, 1), (1, 2)])
    outcome = example.update(delete={"p": [(0,)]}, algorithm="dred")
    assert values(outcome.removed, "p") == {(0,)}
    (stratum,) = outcome.report.strata
    assert (stratum.overdeleted, stratum.rederived) == (3, 1)


def test_instance_with_two_facts_of_one_round_is_seen(engine: Engine) -> None:
    """Both body facts fall in the same round; neither may hide the other."""
    rules = """
        p(?x) :- q(?x) .
        p(?z) :- p(?x), p(?y), t(?x, ?y, ?z) .
    """
    example = Example(engine, rules, q=[(1,), (2,)], t=[(1, 2, 3)])
    assert example.rows("p") == {(1,), (2,), (3,)}
    example.update(delete={"q": [(1,), (2,)]}, algorithm="dred")
    assert example.rows("p") == set()


def test_cyclic_support_does_not_keep_facts_alive(engine: Engine) -> None:
    rules = "p(?y) :- s(?y) . p(?y) :- p(?x), e(?x, ?y) ."
    example = Example(engine, rules, s=[(0,)], e=[(0, 1), (1, 2), (2, 1)])
    example.update(delete={"s": [(0,)]}, algorithm="dred")
    assert example.rows("p") == set()


def test_deletion_below_adds_above_negation(engine: Engine) -> None:
    rules = """
        reach(?x) :- start(?x) .
        reach(?y) :- reach(?x), e(?x, ?y) .
        cut(?x) :- node(?x), not reach(?x) .
        alarm(?x) :- cut(?x), critical(?x) .
    """
    nodes = [(i,) for i in range(4)]
    example = Example(
        engine,
        rules,
        start=[(0,)],
        e=[(0, 1), (1, 2), (2, 3)],
        node=nodes,
        critical=[(3,)],
    )
    outcome = example.update(delete={"e": [(1, 2)]}, algorithm="dred")
    assert values(outcome.removed, "reach") == {(2,), (3,)}
    assert values(outcome.added, "cut") == {(2,), (3,)}
    assert values(outcome.added, "alarm") == {(3,)}


def test_paper_example_1_is_matched_backwards(engine: Engine) -> None:
    example = Example(engine, SYMMETRIC_PAIRS, r=symmetric_pairs(6))
    spokes = [(f"a{i}", f"c{i}") for i in range(6)]
    outcome = example.update(delete={"r": spokes}, algorithm="dred")
    assert example.rows("s") == {("b", "b")}
    _, stratum = outcome.report.strata
    assert (stratum.overdeleted, stratum.rederived) == (18, 0)
    assert "rederive" in stratum.seconds
