"""Rules that come and go, with strata and counters that follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evermat.errors import EvermatError
from evermat.maintenance.rules import UnknownRuleError
from paper_examples import REACHABILITY, Example, values
from tracked import ALGORITHMS

if TYPE_CHECKING:
    from evermat.algebra import Engine

every = pytest.mark.parametrize("algorithm", ALGORITHMS)


@every
def test_nonrecursive_rule_becomes_recursive(engine: Engine, algorithm: str) -> None:
    """The new rule closes a cycle, so the counts of the old one change sides."""
    example = Example(engine, "q(?x) :- p(?x) .", p=[(1,), (2,)])
    assert example.counts("q") == {(1,): (1, 0), (2,): (1, 0)}
    example.update(add_rules="p(?x) :- q(?x) .", algorithm=algorithm)
    assert example.counts("q") == {(1,): (0, 1), (2,): (0, 1)}
    assert example.counts("p") == {(1,): (1, 1), (2,): (1, 1)}
    example.update(remove_rules="p(?z) :- q(?z) .", algorithm=algorithm)
    assert example.counts("q") == {(1,): (1, 0), (2,): (1, 0)}
    assert example.counts("p") == {(1,): (1, 0), (2,): (1, 0)}


@every
def test_cycle_loses_its_foundation_with_the_rules_that_form_it(
    engine: Engine, algorithm: str
) -> None:
    example = Example(engine, "q(?x) :- p(?x) .", p=[(1,), (2,)])
    example.update(
        delete={"p": [(1,)]}, add_rules="p(?x) :- q(?x) .", algorithm=algorithm
    )
    assert example.rows("q") == {(2,)}
    assert example.rows("p") == {(2,)}


@every
def test_last_rule_of_a_predicate_leaves_given_facts(
    engine: Engine, algorithm: str
) -> None:
    example = Example(engine, "q(?x) :- p(?x) . r(?x) :- q(?x) .", p=[(1,)], q=[(2,)])
    outcome = example.update(remove_rules="q(?x) :- p(?x) .", algorithm=algorithm)
    assert example.counts("q") == {(2,): (1, 0)}
    assert example.counts("r") == {(2,): (1, 0)}
    assert values(outcome.removed, "q") == {(1,)}


@every
def test_removed_rule_comes_back_in_the_same_update(
    engine: Engine, algorithm: str
) -> None:
    example = Example(engine, REACHABILITY, edge=[(1, 2), (2, 3)])
    before = example.counts("reach")
    outcome = example.update(
        remove_rules="reach(?s, ?d) :- edge(?s, ?d) .",
        add_rules="reach(?from, ?to) :- edge(?from, ?to) .",
        algorithm=algorithm,
    )
    assert example.counts("reach") == before
    assert (outcome.report.removed, outcome.report.added_rules) == (0, 0)


@every
def test_shared_auxiliary_rule_survives_the_removal_of_one_user(
    engine: Engine, algorithm: str
) -> None:
    """Both rules negate `e(?x, _)`, which stands for one auxiliary predicate."""
    rules = "sink(?x) :- n(?x), not e(?x, _) . end(?x) :- m(?x), not e(?x, _) ."
    example = Example(engine, rules, n=[(1,), (2,)], m=[(1,), (2,)], e=[(1, 2)])
    example.update(
        remove_rules="sink(?y) :- n(?y), not e(?y, _) .", algorithm=algorithm
    )
    example.update(insert={"e": [(2, 1)]}, algorithm=algorithm)
    assert example.rows("end") == set()
    assert example.rows("sink") == set()


def test_rules_with_several_heads_can_be_removed_by_head(engine: Engine) -> None:
    example = Example(engine, "a(?x), b(?x) :- c(?x) .", c=[(1,)])
    example.update(remove_rules="a(?x) :- c(?x) .")
    assert (example.rows("a"), example.rows("b")) == (set(), {(1,)})


def test_unknown_rule_shows_the_nearest(engine: Engine) -> None:
    example = Example(engine, REACHABILITY, edge=[(1, 2)])
    with pytest.raises(UnknownRuleError) as raised:
        example.update(remove_rules="reach(?x, ?z) :- reach(?x, ?y), edges(?y, ?z) .")
    assert any("reach(?s, ?i)" in text for text in raised.value.nearest)
    assert "did you mean" in str(raised.value)
    assert len(example.materialisation.rules) == 2


def test_a_rule_that_is_removed_twice_is_removed(engine: Engine) -> None:
    example = Example(engine, "q(?x) :- p(?x) .", p=[(1,)])
    example.update(remove_rules="q(?x) :- p(?x) . q(?y) :- p(?y) .")
    assert example.rows("q") == set()
    assert not example.materialisation.written_rules


def test_rule_that_is_there_already_is_ignored(engine: Engine) -> None:
    example = Example(engine, REACHABILITY, edge=[(1, 2)])
    outcome = example.update(add_rules="reach(?u, ?v) :- edge(?u, ?v) .")
    assert outcome.report.ignored.rules == 1
    assert outcome.report.added_rules == 0


@every
def test_of_two_spellings_each_comes_and_goes_by_itself(
    engine: Engine, algorithm: str
) -> None:
    """The normal form is one, and is needed as long as one of them is there."""
    one, other = "q(?x) :- p(?x) .", "q(?x) :- p(?y), ?x = ?y ."
    example = Example(engine, one, p=[(1,)])
    example.update(add_rules=other, algorithm=algorithm)
    assert example.counts("q") == {(1,): (1, 0)}
    assert len(example.materialisation.written_rules) == 2
    example.update(remove_rules=one, algorithm=algorithm)
    assert example.counts("q") == {(1,): (1, 0)}
    with pytest.raises(UnknownRuleError):
        example.update(remove_rules=one, algorithm=algorithm)
    example.update(remove_rules=other, algorithm=algorithm)
    assert example.rows("q") == set()


def test_unstratifiable_rule_changes_nothing(engine: Engine) -> None:
    example = Example(engine, "q(?x) :- p(?x) .", p=[(1,)])
    with pytest.raises(EvermatError, match="EM301"):
        example.update(insert={"p": [(2,)]}, add_rules="p(?x) :- n(?x), not q(?x) .")
    assert example.rows("p") == {(1,)}
    assert len(example.materialisation.rules) == 1
