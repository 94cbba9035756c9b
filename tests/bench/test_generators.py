"""The generators keep their promises: same arguments, same facts; sizes as said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from evermat.bench.generators.graphs import (
    LONGEST,
    backward_work,
    distinct,
    linear_closure,
    nonlinear_closure,
    path_lengths,
    points_to,
    random_dag,
)
from evermat.bench.generators.ontologies import NAMES, ontology_rules
from evermat.bench.generators.problem import half, open_problem, sample
from evermat.bench.generators.universities import rules, universities
from evermat.bench.workloads import WORKLOADS
from evermat.lang.parser import parse_program

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from evermat.bench.generators.problem import Problem

TINY = 0.002


def _is_same(left: Problem, right: Problem) -> bool:
    return left.rules == right.rules and dict(left.facts) == dict(right.facts)


def _has_distinct_rows(table: pa.Table) -> bool:
    rows = list(zip(*[column.to_pylist() for column in table.columns], strict=True))
    return len({repr(row) for row in rows}) == len(rows)


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_a_workload_is_the_same_each_time_and_its_facts_are_distinct(name: str) -> None:
    problem = WORKLOADS[name].make(TINY)
    assert _is_same(problem, WORKLOADS[name].make(TINY))
    assert problem.size > 0
    for table in problem.facts.values():
        assert _has_distinct_rows(table)


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_the_rules_of_a_workload_are_read_by_our_parser(name: str) -> None:
    problem = WORKLOADS[name].make(TINY)
    assert parse_program(problem.rules).rules


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_a_problem_survives_being_saved(name: str, tmp_path: Path) -> None:
    problem = WORKLOADS[name].make(TINY)
    problem.save(tmp_path)
    assert _is_same(open_problem(tmp_path), problem)


def test_seeds_make_different_graphs() -> None:
    assert not _is_same(
        linear_closure(50, 100, seed=1), linear_closure(50, 100, seed=2)
    )


@pytest.mark.parametrize(("nodes", "edges"), [(2, 1), (10, 45), (100, 500)])
def test_a_dag_has_so_many_edges_that_go_upwards(nodes: int, edges: int) -> None:
    sources, targets = random_dag(nodes, edges, np.random.default_rng(3))
    assert len(sources) == len(targets) == edges
    assert (sources < targets).all()
    assert sources.min() >= 0
    assert targets.max() < nodes


def test_a_dag_that_cannot_have_so_many_edges_is_refused() -> None:
    with pytest.raises(ValueError, match="3 possible edges, not 4"):
        random_dag(3, 4, np.random.default_rng(0))


def test_distinct_of_nothing_is_nothing() -> None:
    assert len(distinct(np.empty(0, dtype=np.int64))) == 0


def test_both_closures_have_the_same_edges() -> None:
    assert dict(linear_closure(40, 90).facts) == dict(nonlinear_closure(40, 90).facts)


def test_lengths_lie_between_one_and_the_longest() -> None:
    lengths = path_lengths(500, 2_000).facts["edge"]["length"].to_numpy()
    assert len(lengths) == 2_000
    assert lengths.min() >= 1
    assert lengths.max() <= LONGEST


def test_statements_lie_near_each_other() -> None:
    problem = points_to(1_000, 640, 214, distance=40)
    assert problem.facts["assign"].num_rows == 640
    assert problem.facts["dereference"].num_rows == 214
    for table in problem.facts.values():
        apart = np.abs(table["left"].to_numpy() - table["right"].to_numpy())
        assert apart.min() >= 1
        assert apart.max() <= 40
    assert len(parse_program(problem.rules).rules) == 10


def test_a_university_has_the_size_of_a_lubm_university() -> None:
    assert 110_000 < universities(1).size < 150_000
    assert 90 <= len(parse_program(rules()).rules) <= 110


def test_universities_add_up() -> None:
    small = universities(2, departments=1)
    assert small.facts["university"].num_rows == 2
    assert small.facts["head_of"].num_rows == small.facts["department"].num_rows


def test_axioms_differ_and_triples_do_not() -> None:
    few, many = ontology_rules(20, 500), ontology_rules(2_000, 500)
    assert dict(few.facts) == dict(many.facts)
    assert many.size == 500
    assert many.rules.startswith(few.rules)
    assert len(parse_program(few.rules).rules) == 20
    assert len(set(many.rules.splitlines())) == 2_001


def test_there_are_only_so_many_axioms() -> None:
    with pytest.raises(ValueError, match="there are 20000 axioms"):
        ontology_rules(4 * NAMES + 1, 10)


def test_the_second_half_of_example_1_are_the_facts_with_c() -> None:
    problem = backward_work(3)
    rows = half(problem, "r")["r"].to_pylist()
    assert rows == [{"x": 1, "y": 4}, {"x": 2, "y": 5}, {"x": 3, "y": 6}]


def test_samples_are_explicit_facts_and_depend_on_the_seed() -> None:
    problem = universities(1, departments=1)
    update = sample(problem, 100, seed=5)
    assert sum(table.num_rows for table in update.values()) == 100
    for name, table in update.items():
        assert _has_distinct_rows(table)
        given = problem.facts[name].to_pylist()
        assert all(row in given for row in table.to_pylist())
    assert update == sample(problem, 100, seed=5)
    assert update != sample(problem, 100, seed=6)


def test_a_sample_can_be_of_one_predicate_and_is_never_larger_than_the_facts() -> None:
    problem = universities(1, departments=1)
    update = sample(problem, 10**9, seed=1, only="advisor")
    assert list(update) == ["advisor"]
    assert update["advisor"].num_rows == problem.facts["advisor"].num_rows
