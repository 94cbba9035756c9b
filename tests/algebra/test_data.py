"""Data in and out: intern, find, snapshots, counts, statistics."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from engine_facts import facts_in, facts_of, interned, make_facts, rows_of, tables
from evermat.columns import TERM, ArityMismatchError, table_of_rows
from evermat.values import IRI, BlankNode, LangString, TypedLiteral, constant

if TYPE_CHECKING:
    from evermat.algebra import Engine

VALUES = [
    "text",
    "",
    "1",
    1,
    -7,
    2**70,
    1.0,
    float("inf"),
    Decimal("1.5"),
    True,
    IRI("http://e.org/a"),
    BlankNode("b"),
    LangString("chat", "fr"),
    TypedLiteral("2026-01-01", "http://www.w3.org/2001/XMLSchema#date"),
    "naïve 😀",
]


def test_every_kind_of_constant_comes_back_as_it_went_in(engine: Engine) -> None:
    facts = make_facts(p=[(value, number) for number, value in enumerate(VALUES)])
    engine.load(tables(facts))
    assert facts_of(engine, engine.materialised) == facts
    assert facts_of(engine, engine.explicit) == facts


def test_intern_takes_any_arrow_column_and_drops_duplicates(engine: Engine) -> None:
    table = pa.table(
        {
            "name": pa.array(["x", "y", "x"]).dictionary_encode(),
            "size": pa.array([1, 2, 1], pa.int16()),
            "done": pa.array([True, False, True]),
        }
    )
    facts = make_facts(t=[("x", 1, True), ("y", 2, False)])
    assert facts_of(engine, engine.intern("t", table)) == facts


def test_intern_does_not_make_facts_hold(engine: Engine) -> None:
    engine.intern("p", table_of_rows([(1,)], 1))
    assert engine.size(engine.materialised, "p") == 0
    assert engine.size(engine.explicit, "p") == 0


def test_relations_without_columns_hold_one_fact_or_none(engine: Engine) -> None:
    engine.declare("go", 0)
    assert engine.size(engine.materialised, "go") == 0
    engine.load([("go", table_of_rows([(), ()], 0))])
    assert engine.size(engine.materialised, "go") == 1
    assert facts_of(engine, engine.materialised) == {("go", ())}
    assert engine.read_counts("go").to_pylist() == [{"c_nr": 1, "c_r": 0}]


def test_find_keeps_rows_that_hold(engine: Engine) -> None:
    engine.load(tables(make_facts(e=[(1, 2), (2, 3)])))
    wanted = table_of_rows([(1, 2), (7, 7), (2, "3")], 2)
    found = engine.settle(engine.find("e", wanted) & engine.materialised)
    assert facts_of(engine, found) == make_facts(e=[(1, 2)])
    assert engine.find("never seen", wanted).is_empty()


def test_snapshots_outlive_transactions(engine: Engine) -> None:
    before = make_facts(e=[(1, 2), (2, 3)], a=[(1,)])
    engine.load(tables(before))
    engine.begin()
    grown = engine.growing()
    grown.add(interned(engine, make_facts(e=[(1, 2)], a=[(1,)])))
    everything = engine.snapshot(engine.materialised)
    gone = engine.snapshot(grown)
    nothing = engine.no_facts()
    engine.commit(
        deleted=grown, added=nothing, explicit_removed=grown, explicit_added=nothing
    )
    engine.begin()
    new = interned(engine, make_facts(e=[(8, 9)], b=[(8,)]))
    engine.commit(
        deleted=nothing, added=new, explicit_removed=nothing, explicit_added=new
    )
    assert facts_in(everything) == before
    assert everything.relations() == {"e": 2, "a": 1}
    assert facts_in(gone) == make_facts(e=[(1, 2)], a=[(1,)])
    assert gone.read("b").num_rows == 0


def test_tables_come_out_as_columns_of_terms(engine: Engine) -> None:
    engine.load(tables(make_facts(e=[(1, "x")])))
    table = engine.snapshot(engine.materialised).read("e")
    assert [column.type for column in table.columns] == [TERM, TERM]
    assert rows_of(table) == [(constant(1), constant("x"))]


def test_an_empty_relation_has_no_rows(engine: Engine) -> None:
    engine.declare("e", 2)
    assert engine.snapshot(engine.materialised).read("e").num_rows == 0
    assert engine.snapshot(engine.materialised).relations() == {}
    assert engine.read_counts("e").num_rows == 0
    assert engine.read_counts("e").column_names[-2:] == ["c_nr", "c_r"]


def test_the_number_of_columns_must_fit(engine: Engine) -> None:
    engine.declare("e", 2)
    engine.declare("e", 2)
    with pytest.raises(ArityMismatchError):
        engine.declare("e", 3)
    with pytest.raises(ArityMismatchError):
        engine.intern("e", table_of_rows([(1, 2, 3)], 3))
    with pytest.raises(ArityMismatchError):
        engine.load([("e", table_of_rows([(1,)], 1))])
    assert engine.relations() == {"e": 2}


def test_statistics_count_facts_and_given_facts(engine: Engine) -> None:
    engine.load(tables(make_facts(e=[(1, 2), (2, 3)])))
    engine.extend(interned(engine, make_facts(e=[(1, 3)], a=[(1,)])))
    statistics = engine.statistics()
    assert statistics["e"]["facts"] == 3
    assert statistics["e"]["explicit"] == 2
    assert statistics["a"]["facts"] == 1
    assert {"facts", "explicit", "bytes", "indexes"} <= statistics["a"].keys()
