"""Computations and conditions in queries, and how they fail."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from engine_facts import facts_of, interned, make_facts, tables
from evermat.algebra import (
    Apply,
    Column,
    Compute,
    InlineRows,
    Pattern,
    Query,
    QuerySet,
    Require,
    Role,
    Views,
)
from evermat.algebra.queries import EvaluationError
from evermat.values import constant

if TYPE_CHECKING:
    from evermat.algebra import Engine
    from oracle import Fact

X, Y, Z = Column(0), Column(1), Column(2)
ZERO, TEN = constant(0), constant(10)
QUOTIENT = Compute(Y, Apply("/", (TEN, X)))


def run(engine: Engine, query: Query, facts: set[Fact]) -> set[Fact]:
    engine.declare(query.head.relation, len(query.head.operands))
    stored = interned(engine, facts)
    return facts_of(engine, engine.derive(QuerySet((query,)), Views(stored, stored)))


def test_a_computed_column_reaches_the_head(engine: Engine) -> None:
    nested = Apply("+", (Apply("*", (X, X)), constant(1)))
    query = Query(
        Pattern("e", (X, Y)),
        (Pattern("n", (X,)),),
        computations=(Compute(Y, nested), Require(Apply("<", (Y, TEN)))),
        column_count=2,
    )
    found = run(engine, query, make_facts(n=[(2,), (3,)]))
    assert found == make_facts(e=[(2, 5)])


def test_kinds_are_told_apart(engine: Engine) -> None:
    query = Query(
        Pattern("a", (X,)),
        (Pattern("n", (X,)),),
        computations=(Require(Apply("=", (X, constant(1)))),),
        column_count=1,
    )
    found = run(engine, query, make_facts(n=[(1,), ("1",), (1.0,), (True,)]))
    assert found == make_facts(a=[(1,)])


def test_large_integers_are_exact(engine: Engine) -> None:
    query = Query(
        Pattern("a", (Y,)),
        (Pattern("n", (X,)),),
        computations=(Compute(Y, Apply("*", (X, X))),),
        column_count=2,
    )
    found = run(engine, query, make_facts(n=[(2**40,), (-(2**31),)]))
    assert found == make_facts(a=[(2**80,), (2**62,)])


def test_a_failing_computation_names_the_rule_and_the_values(engine: Engine) -> None:
    query = Query(
        Pattern("e", (X, Y)),
        (Pattern("n", (X,)),),
        computations=(QUOTIENT,),
        column_count=2,
        label="e(?x, ?y) :- n(?x), ?y = 10 / ?x .",
    )
    with pytest.raises(EvaluationError) as caught:
        run(engine, query, make_facts(n=[(0,), (5,)]))
    assert "10 / 0" in str(caught.value)
    assert "e(?x, ?y) :- n(?x), ?y = 10 / ?x ." in str(caught.value)
    engine.load(tables(make_facts(n=[(5,)])))
    views = Views(engine.materialised, engine.materialised)
    found = engine.derive(QuerySet((query,)), views)
    assert facts_of(engine, found) == make_facts(e=[(5, 2)])


def test_a_failing_computation_names_the_facts_it_was_applied_to(
    engine: Engine,
) -> None:
    query = Query(
        Pattern("e", (Z, Y)),
        (Pattern("n", (X,)), Pattern("m", (Z, X))),
        computations=(Require(Apply("!=", (Z, TEN))), QUOTIENT),
        column_count=3,
        label="e(?z, ?y) :- n(?x), m(?z, ?x), ?z != 10, ?y = 10 / ?x .",
    )
    with pytest.raises(EvaluationError) as caught:
        run(engine, query, make_facts(n=[(0,), (5,)], m=[("zero", 0), ("five", 5)]))
    assert 'the rule was applied to n(0), m("zero", 0)' in caught.value.message


def test_computations_run_only_after_conditions_before_them(engine: Engine) -> None:
    query = Query(
        Pattern("e", (X, Y)),
        (Pattern("n", (X,)),),
        computations=(Require(Apply("!=", (X, ZERO))), QUOTIENT),
        column_count=2,
    )
    assert run(engine, query, make_facts(n=[(0,), (5,)])) == make_facts(e=[(5, 2)])


def test_computations_run_only_for_matches_of_all_patterns(engine: Engine) -> None:
    query = Query(
        Pattern("e", (X, Y)),
        (Pattern("n", (X,)), Pattern("a", (X,))),
        computations=(QUOTIENT,),
        column_count=2,
    )
    facts = make_facts(n=[(0,), (5,), ("x",)], a=[(5,), (7,)])
    assert run(engine, query, facts) == make_facts(e=[(5, 2)])


def test_computations_run_only_where_negative_patterns_fail(engine: Engine) -> None:
    query = Query(
        Pattern("e", (X, Y)),
        (Pattern("n", (X,)),),
        negative=(Pattern("b", (X,), Role.ABSENT), Pattern("a", (Y,), Role.ABSENT)),
        computations=(QUOTIENT,),
        column_count=2,
    )
    facts = make_facts(n=[(0,), (5,), (2,)], b=[(0,)], a=[(5,)])
    assert run(engine, query, facts) == make_facts(e=[(5, 2)])


def test_inline_rows_join_like_a_relation(engine: Engine) -> None:
    rows = [(constant(1), constant("one")), (constant(2), constant("two"))]
    query = Query(
        Pattern("e", (X, Z)),
        (Pattern("n", (X,)),),
        computations=(Require(Apply("!=", (Z, constant("two")))),),
        inline=InlineRows((X, Z), tuple(rows)),
        column_count=3,
    )
    found = run(engine, query, make_facts(n=[(1,), (2,), (3,)]))
    assert found == make_facts(e=[(1, "one")])


def test_a_query_without_patterns_has_one_match(engine: Engine) -> None:
    query = Query(Pattern("n", (X,)), computations=(Compute(X, TEN),), column_count=1)
    assert run(engine, query, set()) == make_facts(n=[(10,)])


def test_a_query_over_a_relation_nobody_declared_has_no_match(engine: Engine) -> None:
    query = Query(Pattern("a", (X,)), (Pattern("never seen", (X,)),), column_count=1)
    assert run(engine, query, make_facts(n=[(1,)])) == set()


def test_an_error_shows_in_which_order_things_were_computed(engine: Engine) -> None:
    difference = Apply("-", (X, X))
    quotient = Apply("+", (TEN, Apply("/", (TEN, difference))))
    query = Query(
        head=Pattern("h", (Y,)),
        positive=(Pattern("p", (X,)),),
        computations=(Compute(Y, quotient),),
        column_count=2,
        label="h",
    )
    with pytest.raises(EvaluationError) as caught:
        run(engine, query, make_facts(p=[(3,)]))
    assert "10 / (3 - 3)" in caught.value.message


@pytest.mark.parametrize("function", ["+", "-"])
@pytest.mark.parametrize("unknown", [0, 1])
def test_an_equation_is_solved_for_integers_and_checked_for_other_numbers(
    engine: Engine, function: str, unknown: int
) -> None:
    """Large and small integers, decimals and doubles, with sums that are rounded."""
    numbers: list[object] = [
        0,
        3,
        -4,
        2**30 - 2,
        2**30,
        -(2**31),
        2**40,
        0.1,
        0.2,
        1e17,
    ]
    numbers += [Decimal("0.1"), Decimal(3), Decimal("-4.0")]
    total = Apply(function, (X, Y))
    forwards = Query(
        Pattern("total", (X, Y, Z)),
        (Pattern("a", (X,)), Pattern("a", (Y,))),
        computations=(Compute(Z, total),),
        column_count=3,
    )
    sums = run(engine, forwards, make_facts(a=[(number,) for number in numbers]))
    one, other = (Y, X) if unknown else (X, Y)
    backwards = Query(
        Pattern("total", (X, Y, Z)),
        (
            Pattern("asked", (other, Z), Role.CHANGED),
            Pattern("known", (other, one)),
        ),
        computations=(Require(Apply("=", (Z, total))),),
        column_count=3,
    )
    asked = {("asked", (row[1 - unknown], row[2])) for _, row in sums}
    known = {("known", (row[1 - unknown], row[unknown])) for _, row in sums}
    stored = interned(engine, known)
    views = Views(stored, stored, interned(engine, asked))
    assert facts_of(engine, engine.derive(QuerySet((backwards,)), views)) == sums
