"""B/F and B/F^c: exact deletion, and the search it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from paper_examples import (
    CHAIN,
    CHAIN_FACTS,
    PATH_LENGTHS,
    Example,
    path_lengths,
    values,
)

if TYPE_CHECKING:
    from evermat.algebra import Engine

both = pytest.mark.parametrize("algorithm", ["bf", "bf-c"])


@both
def test_paper_example_3_deletes_exactly_one_fact(
    engine: Engine, algorithm: str
) -> None:
    example = Example(engine, CHAIN, **CHAIN_FACTS)
    outcome = example.update(delete={"a": [("a",)]}, algorithm=algorithm)
    (stratum,) = outcome.report.strata
    assert values(outcome.removed, "a") == {("a",)}
    assert (stratum.overdeleted, stratum.inserted) == (1, 0)
    assert example.counts("a") == {
        ("b",): (1, 0),
        ("c",): (0, 1),
        ("d",): (1, 1),
        ("e",): (0, 1),
    }


@both
def test_nothing_is_deleted_that_still_holds(engine: Engine, algorithm: str) -> None:
    """In a clique every fact has many derivations; DRed would delete them all."""
    rules = """
        r(?x, ?y) :- e(?x, ?y) .
        r(?y, ?x) :- r(?x, ?y) .
        r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .
    """
    ring = [(i, (i + 1) % 6) for i in range(6)]
    example = Example(engine, rules, e=ring)
    outcome = example.update(delete={"e": [(0, 1)]}, algorithm=algorithm)
    assert outcome.removed.relations() == {"e": 1}
    assert sum(stratum.overdeleted for stratum in outcome.report.strata) == 1
    assert sum(stratum.proved for stratum in outcome.report.strata) > 0


@both
def test_proof_far_away_is_found(engine: Engine, algorithm: str) -> None:
    rules = "p(?x) :- s(?x) . p(?y) :- p(?x), e(?x, ?y) ."
    long_way = [(i, i + 1) for i in range(10, 30)]
    example = Example(
        engine, rules, s=[(0,), (10,)], e=[(0, 1), (30, 1), (1, 2), *long_way]
    )
    outcome = example.update(delete={"s": [(0,)]}, algorithm=algorithm)
    assert values(outcome.removed, "p") == {(0,)}
    assert example.rows("p") == {(1,), (2,), *((i,) for i in range(10, 31))}


@both
def test_fact_looked_into_for_another_is_looked_into_again(
    engine: Engine, algorithm: str
) -> None:
    """A search that ends early must not leave facts behind as if they had no proof.

    Deleting s(0) takes p(0) and p(1), which only have each other. Before p(1) goes,
    p(2) is proved by p(9), in a search that has met p(3) without looking into it. When
    p(1) is gone, p(3) is asked about, and must be proved by p(8).
    """
    rules = "p(?x) :- s(?x) . p(?y) :- p(?x), e(?x, ?y) ."
    edges = [(0, 1), (1, 0), (0, 2), (9, 2), (3, 2), (1, 3), (8, 3)]
    example = Example(engine, rules, s=[(0,), (9,), (8,)], e=edges)
    outcome = example.update(delete={"s": [(0,)]}, algorithm=algorithm)
    assert values(outcome.removed, "p") == {(0,), (1,)}


@both
def test_cycle_without_foundation_goes(engine: Engine, algorithm: str) -> None:
    rules = "p(?y) :- s(?y) . p(?y) :- p(?x), e(?x, ?y) ."
    example = Example(engine, rules, s=[(0,)], e=[(0, 1), (1, 2), (2, 1), (2, 3)])
    example.update(delete={"s": [(0,)]}, algorithm=algorithm)
    assert example.rows("p") == set()


def test_counting_variant_matches_nonrecursive_rules_forwards_only(
    engine: Engine,
) -> None:
    number = 6
    backward = {}
    for algorithm in ("bf", "bf-c"):
        example = Example(engine.fresh(), PATH_LENGTHS, b=path_lengths(number))
        outcome = example.update(delete={"b": [("a", "c1", 1)]}, algorithm=algorithm)
        assert values(outcome.removed, "d") == {("c1", 1)}
        backward[algorithm] = outcome.report.backward_instances
    assert backward["bf-c"] <= backward["bf"]


@both
def test_triples_with_variable_predicates(engine: Engine, algorithm: str) -> None:
    """A local atom that also matches facts no rule derives (subproperties)."""
    rules = """
        [?x, ?q, ?y] :- sub(?p, ?q), [?x, ?p, ?y] .
        [?y, "knows", ?x] :- [?x, "knows", ?y] .
    """
    example = Example(
        engine,
        rules,
        sub=[("likes", "knows"), ("knows", "sees")],
        triple=[("a", "likes", "b"), ("b", "likes", "a"), ("c", "knows", "a")],
    )
    outcome = example.update(
        delete={"triple": [("a", "likes", "b")]}, algorithm=algorithm
    )
    assert values(outcome.removed, "triple") == {("a", "likes", "b")}
    assert ("a", "sees", "b") in example.rows("triple")
