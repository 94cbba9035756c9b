"""Peers get the same problem and come to the same facts."""

from __future__ import annotations

import pytest

from evermat.bench.generators.graphs import (
    LINEAR_CLOSURE,
    NONLINEAR_CLOSURE,
    backward_work,
    linear_closure,
    nonlinear_closure,
    path_lengths,
    points_to,
)
from evermat.bench.generators.ontologies import ontology_rules
from evermat.bench.generators.problem import Problem
from evermat.bench.generators.universities import universities
from evermat.bench.peers import (
    UntranslatableError,
    asp_program,
    linear_predicate,
    run_clingo,
    run_duckdb,
)
from evermat.lang.parser import parse_program

pytest.importorskip("clingo", reason="the bench extra is not installed")
pytest.importorskip("duckdb", reason="the bench extra is not installed")

PROBLEMS = {
    "linear": linear_closure(60, 150),
    "nonlinear": nonlinear_closure(40, 100),
    "lengths": path_lengths(40, 100),
    "points-to": points_to(200, 128, 43),
    "universities": universities(1, departments=1),
    "ontology": ontology_rules(40, 400),
    "example 1": backward_work(5),
}


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_agree_clingo_and_duckdb(name: str) -> None:
    problem = PROBLEMS[name]
    by_clingo, by_duckdb = run_clingo(problem), run_duckdb(problem)
    assert by_clingo.facts == by_duckdb.facts
    assert by_clingo.facts > problem.size


def test_example_1_has_three_facts_for_each_number_and_one_more() -> None:
    assert run_duckdb(backward_work(5)).facts == 10 + 3 * 5 + 1


def test_a_linear_program_is_known_as_one() -> None:
    assert linear_predicate(parse_program(LINEAR_CLOSURE).rules) == "reach"
    assert linear_predicate(parse_program(NONLINEAR_CLOSURE).rules) is None


def test_rules_are_written_for_clingo() -> None:
    rules = "dist(?y, ?z) :- dist(?x, ?z1), edge(?x, ?y, ?z2), ?z = ?z1 + ?z2 ."
    expected = "dist(Y, Z) :- dist(X, Z1), edge(X, Y, Z2), Z = Z1 + Z2."
    assert asp_program(rules) == expected


@pytest.mark.parametrize(
    "rules",
    ["p(?x) :- q(?x), not r(?x) .", "p(?z) :- q(?x), ?z = ?x * 2 ."],
)
def test_what_cannot_be_translated_is_an_error(rules: str) -> None:
    with pytest.raises(UntranslatableError):
        asp_program(rules)
    with pytest.raises(UntranslatableError):
        run_duckdb(Problem(rules, {"q": backward_work(1).facts["r"].select([0])}))
