"""Every function at the ends of representations, forwards and backwards.

Engines compute whole columns where all numbers of a column have a form that allows it.
So numbers come in sets that an engine treats alike, and in one that mixes everything.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import pytest

import oracle_functions
from boundary_numbers import DECIMALS, DOUBLES, INTEGERS, NOT_FINITE, ROOTS
from engine_facts import facts_of, interned, make_facts
from evermat.algebra import (
    Apply,
    Column,
    Compute,
    Pattern,
    Query,
    QuerySet,
    Require,
    Role,
    Views,
)
from evermat.engines.spark import one_task, pieces
from evermat.functions import FUNCTIONS
from evermat.values import IRI, XSD, Constant, boolean_constant, constant

if TYPE_CHECKING:
    from evermat.algebra import Engine, Expression
    from oracle import Fact

    Pairs = tuple[tuple[Constant, Constant], ...]

X, Y, Z = Column(0), Column(1), Column(2)
TRUE = boolean_constant(value=True)
BINARY = ("+", "-", "*", "/", "%", "min", "max")
UNARY = (
    *("abs", "-", "min", "max", "int", "double", "str"),
    *("datatype", "language", "skolem"),
)
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")

SETS: dict[str, tuple[object, ...]] = {
    "ids by themselves": (
        *(-1, 0, 2, -(2**30), 2**30 - 2, 2**29 + 1),
        *(ROOTS[1], ROOTS[3], -ROOTS[4], ROOTS[6]),
    ),
    "within 62 bits": (
        *(-1, 0, 2, 2**30 - 1, -(2**30) - 1, 2**31, -(2**32) - 1, 2**53 + 1),
        *(-(2**62), 2**62 - 1),
    ),
    "doubles": (*DOUBLES[1::2], *NOT_FINITE),
    "everything": (*INTEGERS[4::12], *DECIMALS[3::3], *DOUBLES[3::5]),
}


@pytest.fixture(autouse=True)
def _on_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Spark compute by itself where EVERMAT_SPARK_SMALL=2; it takes minutes."""
    monkeypatch.setattr(one_task, "MOST_ROWS", 0)
    monkeypatch.setattr(pieces, "MOST_SENT", -1)


@pytest.fixture(params=SETS)
def pairs(request: pytest.FixtureRequest) -> Pairs:
    """All pairs of numbers of one set."""
    numbers = [constant(number) for number in SETS[request.param]]
    return tuple(product(numbers, numbers))


def expressions() -> dict[str, Apply]:
    """Expressions over two numbers, by a name."""
    product_, sum_ = Apply("*", (X, Y)), Apply("+", (X, Y))
    found = {name: Apply(name, (X, Y)) for name in (*BINARY, "concat")}
    found |= {f"{name} of one": Apply(name, (X,)) for name in UNARY}
    found["abs of a product"] = Apply("abs", (product_,))
    found["minus a product"] = Apply("-", (product_,))
    found["product of sums"] = Apply("*", (sum_, Apply("-", (X, Y))))
    found["square of a product"] = Apply("*", (product_, product_))
    found["quotient of a product"] = Apply("/", (product_, Y))
    found["rest of a product"] = Apply("%", (Apply("+", (product_, X)), Y))
    found["half of a product"] = Apply("/", (product_, constant(-1)))
    found["greatest of three"] = Apply("max", (product_, sum_, X))
    for name in ("bit_and", "bit_or", "bit_xor", "shift_right"):
        found[name] = Apply(name, (X, Y))
    found["bits of results"] = Apply("bit_xor", (product_, sum_))
    for name, limit in (("power", 7), ("shift_left", 70)):
        small = Apply("abs", (Apply("%", (Y, constant(limit))),))
        found[name] = Apply(name, (X, small))
    text = Apply("str", (X,))
    found["length of a text"] = Apply("length", (text,))
    found["part of a text"] = Apply("substr", (text, constant(2), constant(9)))
    found["upper case"] = Apply("upper", (text,))
    found["lower case"] = Apply("lower", (text,))
    found["number again"] = Apply("double", (text,))
    return found


def conditions() -> dict[str, Apply]:
    """Conditions on two numbers, by a name."""
    product_, sum_ = Apply("*", (X, Y)), Apply("+", (X, Y))
    found = {name: Apply(name, (X, Y)) for name in COMPARISONS}
    found |= {f"{name} of results": Apply(name, (product_, sum_)) for name in "<="}
    for name in ("contains", "starts_with", "ends_with", "regex"):
        found[name] = Apply(name, (Apply("str", (X,)), constant("4")))
    found["values differ"] = Apply("values_differ", (X, Y))
    found["results differ"] = Apply("values_differ", (product_, sum_))
    found["a literal"] = Apply("is_literal", (X,))
    found["a blank node"] = Apply("is_literal", (Apply("skolem", (X,)),))
    for name in ("byte", "long", "integer", "decimal", "string"):
        datatype = constant(IRI(XSD + name))
        found[f"no {name}"] = Apply("literal_outside", (X, datatype))
        found[f"sum is no {name}"] = Apply("literal_outside", (sum_, datatype))
    return found


def test_every_function_is_among_these() -> None:
    used: set[str] = set()
    waiting: list[Expression] = [
        *expressions().values(),
        *conditions().values(),
    ]
    while waiting:
        expression = waiting.pop()
        if isinstance(expression, Apply):
            used.add(expression.function)
            waiting += expression.arguments
    assert used == set(FUNCTIONS)


@cache
def value(expression: Expression, x: Constant, y: Constant) -> Constant | None:
    """The value for two numbers by the oracle; None if there is none."""
    match expression:
        case Column(index=index):
            return (x, y)[index]
        case Apply(function=name, arguments=arguments):
            values = [value(each, x, y) for each in arguments]
            known = [each for each in values if each is not None]
            if len(known) < len(values):
                return None
            try:
                return oracle_functions.evaluate(name, *known)
            except oracle_functions.NoValueError:
                return None
        case _:
            return expression


def check(
    engine: Engine, queries: list[Query], views: Views, expected: set[Fact]
) -> None:
    """All queries at once: a job on Spark takes long, however little it does."""
    for query in queries:
        engine.declare(query.head.relation, len(query.head.operands))
    found = facts_of(engine, engine.derive(QuerySet(tuple(queries)), views))
    assert found - expected == set()
    assert expected - found == set()


def test_oracle_functions_of_numbers(engine: Engine, pairs: Pairs) -> None:
    """Pairs without a value are kept out one by one; all others are together."""
    facts: set[Fact] = set()
    queries: list[Query] = []
    expected: set[Fact] = set()
    for name, expression in expressions().items():
        label = constant(IRI(name))
        values = {pair: value(expression, *pair) for pair in pairs}
        source = name if None in values.values() else "pair"
        for pair, known in values.items():
            if known is not None:
                facts.add((source, pair))
                expected.add(("value", (label, *pair, known)))
        queries.append(
            Query(
                Pattern("value", (label, X, Y, Z)),
                (Pattern(source, (X, Y)),),
                computations=(Compute(Z, expression),),
                column_count=3,
            )
        )
    stored = interned(engine, facts)
    check(engine, queries, Views(stored, stored), expected)


def test_oracle_conditions_on_numbers(engine: Engine, pairs: Pairs) -> None:
    queries: list[Query] = []
    expected: set[Fact] = set()
    for name, condition in conditions().items():
        label = constant(IRI(name))
        queries.append(
            Query(
                Pattern("holds", (label, X, Y)),
                (Pattern("pair", (X, Y)),),
                computations=(Require(condition),),
                column_count=2,
            )
        )
        holding = [pair for pair in pairs if value(condition, *pair) == TRUE]
        expected |= {("holds", (label, *pair)) for pair in holding}
    stored = interned(engine, {("pair", pair) for pair in pairs})
    check(engine, queries, Views(stored, stored), expected)


def test_oracle_equations_from_head_to_body(engine: Engine, pairs: Pairs) -> None:
    """The result and one operand are known, and the other one is looked for."""
    asked: set[Fact] = set()
    known: set[Fact] = set()
    queries: list[Query] = []
    expected: set[Fact] = set()
    for function in ("+", "-", "*", "/", "%"):
        label, total = constant(function), Apply(function, (X, Y))
        values = {pair: value(total, *pair) for pair in pairs}
        rows = [(*pair, each) for pair, each in values.items() if each is not None]
        known |= {("known", (label, x, y)) for x, y, _ in rows}
        # With operands of other rows, too: most of these have no solution.
        asked |= {
            ("asked", (label, operand, row[2]))
            for at, row in enumerate(rows)
            for operand in (*row[:2], rows[at // 2][0])
        }
        for name, operand, place in (("left", X, 0), ("right", Y, 1)):
            queries.append(
                Query(
                    Pattern(name, (label, X, Y, Z)),
                    (
                        Pattern("asked", (label, operand, Z), Role.CHANGED),
                        Pattern("known", (label, X, Y)),
                    ),
                    computations=(Require(Apply("=", (Z, total))),),
                    column_count=3,
                )
            )
            expected |= {
                (name, (label, *row))
                for row in rows
                if ("asked", (label, row[place], row[2])) in asked
            }
    stored = interned(engine, known)
    changed = interned(engine, asked)
    check(engine, queries, Views(stored, stored, changed), expected)


def test_large_integers_go_in_and_out(engine: Engine) -> None:
    facts = make_facts(n=[(number,) for number in (*INTEGERS, *DOUBLES, *DECIMALS)])
    stored = interned(engine, facts)
    assert facts_of(engine, stored) == facts
    assert engine.size(stored, "n") == len(facts)
