"""Aggregates of other languages mean what they mean there."""

from __future__ import annotations

from evermat import KnowledgeBase
from evermat.lang.dialects.dlog import read_dlog
from evermat.lang.dialects.nemo import read_nemo
from evermat.lang.dialects.souffle import read_souffle

SOUFFLE = """
    .decl needs(x:symbol, y:symbol, n:number)
    .decl part(x:symbol)
    .decl total(x:symbol, n:number)
    .decl size(n:number)
    .decl least(x:symbol, n:number)
    .decl mean(x:symbol, n:float)
    .decl few(x:symbol)
    .decl not_few(x:symbol)
    needs("car", "wheel", 4). needs("car", "door", 4). needs("wheel", "spoke", 32).
    part("car"). part("bolt").
    total(x, t) :- part(x), t = sum n : { needs(x, _, n) }.
    size(count : { needs(_, _, _) }).
    size(c) :- c = count : needs("car", _, _).
    least(x, m) :- part(x), m = min n : { needs(x, _, n), n > 2 }.
    mean(x, m) :- part(x), m = mean n : { needs(x, _, n) }.
    few(x) :- part(x), (count : { needs(x, _, _) }) < 2.
    not_few(x) :- part(x), !(count : { needs(x, _, _) } < 2).
"""


def test_all_solutions_count_in_souffle(engine_name: str) -> None:
    kb = KnowledgeBase(read_souffle(SOUFFLE), engine=engine_name)
    assert set(kb.query("total(?x, ?n)")) == {("car", 8), ("bolt", 0)}
    assert set(kb.query("size(?n)")) == {(3,), (2,)}
    assert set(kb.query("least(?x, ?n)")) == {("car", 4)}
    assert set(kb.query("mean(?x, ?n)")) == {("car", 4.0)}
    assert set(kb.query("few(?x)")) == {("bolt",)}
    assert set(kb.query("not_few(?x)")) == {("car",)}


def test_distinct_tuples_count_in_nemo(engine_name: str) -> None:
    text = """
        needs("car", "wheel", 4) . needs("car", "door", 4) . needs("bike", "bell", 1) .
        kinds(?x, #count(?n)) :- needs(?x, ?y, ?n) .
        total(?x, #sum(?n, ?y)) :- needs(?x, ?y, ?n) .
        range(#min(?n), #max(?n)) :- needs(?x, ?y, ?n), ?n > 1 .
    """
    kb = KnowledgeBase(read_nemo(text), engine=engine_name)
    assert set(kb.query("kinds(?x, ?n)")) == {("car", 1), ("bike", 1)}
    assert set(kb.query("total(?x, ?n)")) == {("car", 8), ("bike", 1)}
    assert set(kb.query("range(?x, ?n)")) == {(4, 4)}


def test_solutions_count_in_rdfox(engine_name: str) -> None:
    text = """
        PREFIX : <http://e.org/>
        [:car, :needs, :wheel] . [:car, :needs, :door] . [:bike, :needs, :bell] .
        [:wheel, :price, 4] . [:door, :price, 4] . [:bell, :price, 1] . [:car, a, :T] .
        [:bolt, a, :T] .
        [?x, :total, ?t], [?x, :kinds, ?k] :- [?x, a, :T],
            AGGREGATE([?x, :needs, ?y], [?y, :price, ?v] ON ?x
                BIND SUM(?v) AS ?t BIND COUNT(DISTINCT ?v) AS ?k) .
        [:all, :most, ?m] :- AGGREGATE([?y, :price, ?v] BIND MAX(?v) AS ?m) .
    """
    kb = KnowledgeBase(read_dlog(text), engine=engine_name)
    ask = "@prefix : <http://e.org/> . "
    assert [row[1] for row in kb.query(ask + "[?x, :total, ?n]")] == [8]
    assert [row[1] for row in kb.query(ask + "[?x, :kinds, ?n]")] == [1]
    assert set(kb.query(ask + "[:all, :most, ?n]")) == {(4,)}
