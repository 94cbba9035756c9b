"""Answers, explanations, and the monitor that is told about the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine_facts import interned, make_facts, rows_of, tables
from evermat.algebra import Column, Pattern, Query, QuerySet, Role, Views
from evermat.values import constant

if TYPE_CHECKING:
    from evermat.algebra import Engine

X, Y, Z = Column(0), Column(1), Column(2)
PATHS = Query(
    Pattern("path", (X, Z)),
    (Pattern("e", (X, Y)), Pattern("e", (Y, Z))),
    column_count=3,
    label="two edges",
)


def everything(engine: Engine) -> Views:
    engine.load(tables(make_facts(e=[(1, 2), (2, 3), (1, 5), (5, 3)])))
    return Views(engine.materialised, engine.materialised)


def test_answers_are_distinct_rows(engine: Engine) -> None:
    table = engine.answer(PATHS, everything(engine))
    assert rows_of(table) == [(constant(1), constant(3))]
    assert "path" not in engine.relations()


def test_an_answer_may_hold_constants_and_repeat_columns(engine: Engine) -> None:
    head = Pattern("answer", (constant("found"), Y, Y))
    query = Query(head, (Pattern("e", (constant(5), Y)),), column_count=2)
    table = engine.answer(query, everything(engine))
    assert rows_of(table) == [(constant("found"), constant(3), constant(3))]


def test_a_question_without_columns_has_one_answer_or_none(engine: Engine) -> None:
    views = everything(engine)
    no = Query(Pattern("answer", ()), (Pattern("e", (X, X)),), column_count=1)
    assert engine.answer(no, views).num_rows == 0
    yes = Query(Pattern("answer", ()), (Pattern("e", (X, Y)),), column_count=2)
    assert engine.answer(yes, views).num_rows == 1


def test_an_explanation_has_a_line_for_each_step(engine: Engine) -> None:
    lines = engine.explain(PATHS, everything(engine))
    assert len(lines) >= 2
    assert all(isinstance(line, str) for line in lines)


def test_law_only_queries_with_a_change_are_run(engine: Engine) -> None:
    engine.declare("a", 1)
    engine.declare("f", 2)
    changed = Query(
        Pattern("a", (X,)), (Pattern("f", (X, Y), Role.CHANGED),), column_count=2
    )
    views = everything(engine)
    delta = interned(engine, make_facts(e=[(1, 2)]))
    views = Views(views.positive, views.negative, delta)
    assert engine.derive(QuerySet((changed,)), views).is_empty()


class Listener:
    """A monitor that remembers, and stops the work after a number of matches."""

    def __init__(self, cost_limit: int) -> None:
        self.heard: list[tuple[str, int]] = []
        self.cost_limit = cost_limit

    def working(self, label: str, matches: int) -> None:
        self.heard.append((label, matches))
        if sum(number for _, number in self.heard) > self.cost_limit:
            raise InterruptedError(label)

    def writing(self, label: str, facts: int) -> None:
        self.heard.append((label, facts))


def test_the_monitor_hears_of_every_match(engine: Engine) -> None:
    views = everything(engine)
    listener = Listener(cost_limit=100)
    engine.monitor = listener
    before = engine.matches
    engine.derive(QuerySet((PATHS,)), views)
    assert sum(number for _, number in listener.heard) == 2
    assert {label for label, number in listener.heard if number} == {"two edges"}
    assert engine.matches - before == 2


def test_the_monitor_can_stop_the_work(engine: Engine) -> None:
    views = everything(engine)
    engine.monitor = Listener(cost_limit=1)
    with pytest.raises(InterruptedError, match="two edges"):
        engine.derive(QuerySet((PATHS,)), views)
    engine.monitor = None
    assert engine.derive(QuerySet((PATHS,)), views).size() == 1
