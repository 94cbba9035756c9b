"""Counters and the multisets that change them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from engine_facts import facts_of, interned, make_facts, stored_counts, tables
from evermat.algebra import Column, EngineUseError, Pattern, Query, QuerySet, Views

if TYPE_CHECKING:
    from evermat.algebra import Counts, Engine

X, Y = Column(0), Column(1)
SOURCES = QuerySet(
    (Query(Pattern("a", (X,)), (Pattern("e", (X, Y)),), column_count=2),)
)
EDGES = make_facts(e=[(1, 1), (1, 2), (1, 3), (2, 1)])


def sources(engine: Engine) -> Counts:
    """`a(1)` three times and `a(2)` once."""
    engine.declare("a", 1)
    edges = interned(engine, EDGES)
    return engine.derive_counts(SOURCES, Views(edges, edges))


def test_counters_add_and_subtract(engine: Engine) -> None:
    known = interned(engine, make_facts(a=[(1,), (2,), (3,)]))
    engine.extend(known)
    counters = engine.recursive_counts
    counters.add(sources(engine))
    counters.add(engine.once(known))
    counters.subtract(sources(engine))
    assert Counter(stored_counts(engine).values()) == {(0, 1): 3}
    counters.subtract(engine.once(known))
    assert Counter(stored_counts(engine).values()) == {(0, 0): 3}


def test_the_two_counters_are_apart(engine: Engine) -> None:
    engine.extend(interned(engine, make_facts(a=[(1,), (2,)])))
    engine.nonrecursive_counts.add(sources(engine))
    engine.recursive_counts.add(engine.once(sources(engine).facts))
    assert sorted(stored_counts(engine).values()) == [(1, 1), (3, 1)]


def test_positive_and_zero_split_a_set(engine: Engine) -> None:
    engine.nonrecursive_counts.add(sources(engine))
    grown = engine.growing()
    grown.add(interned(engine, make_facts(a=[(2,), (3,)], e=[(1, 1)])))
    positive = engine.nonrecursive_counts.positive(grown)
    zero = engine.nonrecursive_counts.zero(grown)
    assert facts_of(engine, positive) == make_facts(a=[(2,)])
    assert facts_of(engine, zero) == make_facts(a=[(3,)], e=[(1, 1)])
    assert engine.recursive_counts.positive(grown).is_empty()


def test_a_number_that_fell_to_zero_is_zero(engine: Engine) -> None:
    engine.recursive_counts.add(sources(engine))
    engine.recursive_counts.subtract(sources(engine))
    found = engine.recursive_counts.zero(sources(engine).facts)
    assert facts_of(engine, found) == make_facts(a=[(1,), (2,)])


def test_counters_never_fall_below_zero(engine: Engine) -> None:
    engine.extend(interned(engine, make_facts(a=[(1,), (2,)])))
    engine.recursive_counts.add(engine.once(sources(engine).facts))
    with pytest.raises(EngineUseError):
        engine.recursive_counts.subtract(sources(engine))
    assert Counter(stored_counts(engine).values()) == {(0, 1): 2}


def test_a_multiset_knows_its_facts(engine: Engine) -> None:
    counts = sources(engine)
    assert facts_of(engine, counts.facts) == make_facts(a=[(1,), (2,)])
    assert engine.once(engine.no_facts()).facts.is_empty()


def test_loaded_facts_count_once(engine: Engine) -> None:
    engine.load(tables(EDGES))
    engine.load(tables(EDGES))
    assert stored_counts(engine) == dict.fromkeys(EDGES, (1, 0))
