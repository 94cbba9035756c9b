"""Aggregates of an engine are those of the definition, whatever changes."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from engine_facts import facts_in, tables
from evermat.algebra import Aggregate, AggregatesByGroup
from evermat.algebra.queries import EvaluationError
from evermat.algebra.totals import AGGREGATES
from evermat.engines import make_engine
from evermat.engines.embedded import aggregates as embedded
from evermat.values import constant

if TYPE_CHECKING:
    from evermat.algebra import Engine, Facts, SettledFacts
    from oracle import Fact

SORTS: dict[str, list[object]] = {
    "small integers": [1, 2, 3, -4, 0],
    "large integers": [1 << 29, (1 << 30) - 2, -(1 << 29), 1 << 40, 10**30],
    "all numbers": [1, Decimal("1.0"), 1.0, Decimal("0.1"), 0.1, 1e300, -1e300, 2],
    "strings": ["a", "b", "", "ab", "1"],
    "anything": ["a", 1, Decimal("1.0"), True, 0.5],
}


def definition(
    aggregate: Aggregate, members: set[Fact], engine_name: str = "reference"
) -> set[Fact]:
    engine = make_engine(engine_name)
    engine.load(tables(members))
    found = AggregatesByGroup.aggregate(engine, [aggregate], engine.materialised)
    return facts_in(engine.snapshot(found))


def facts(chance: random.Random, sort: str, width: int, size: int) -> set[Fact]:
    return {
        (
            "p",
            (
                *(constant(chance.randint(1, 3)) for _ in range(width)),
                constant(chance.choice(SORTS[sort])),
                constant(chance.randint(1, 9)),
            ),
        )
        for _ in range(size)
    }


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("function", AGGREGATES)
def test_law_aggregates_follow_changes(
    function: str, sort: str, engine_name: str
) -> None:
    follow(function, sort, engine_name)


@pytest.mark.parametrize("sort", ["small integers", "large integers", "all numbers"])
@pytest.mark.parametrize("function", ["min", "max"])
def test_law_large_groups_have_an_order(
    function: str, sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "LARGE", 0)
    follow(function, sort, "embedded", seeds=12)


def follow(function: str, sort: str, engine_name: str, seeds: int = 4) -> None:
    for seed in range(seeds):
        chance = random.Random(f"{function} {sort} {seed}")  # noqa: S311  repeatable
        width = seed % 4
        group = tuple(range(width))
        aggregate = Aggregate(function, "p", width + 2, group, width, "~v")
        engine = make_engine(engine_name)
        known = facts(chance, sort, width, chance.choice([3, 12, 40]))
        engine.load(tables(known))
        engine.declare("~v", aggregate.result_arity)
        try:
            results = engine.aggregate([aggregate], engine.materialised)
        except EvaluationError:
            with pytest.raises(EvaluationError):
                definition(aggregate, known)
            continue
        engine.extend(results)
        for _ in range(4):
            change(engine, aggregate, chance, known, facts(chance, sort, width, 3))


def change(
    engine: Engine,
    aggregate: Aggregate,
    chance: random.Random,
    known: set[Fact],
    new: set[Fact],
) -> None:
    """Take members away, and add some, and have them kept or not."""
    lost = set(chance.sample(sorted(known, key=repr), min(len(known), 2)))
    expected = (known - lost) | new
    engine.begin()
    deleted, added = engine.growing(), engine.growing()
    after = (engine.materialised - deleted) | added
    deleted.add(interned(engine, lost - new))
    added.add(interned(engine, new - known))
    changes = engine.settle(deleted), engine.settle(added)
    try:
        wanted = definition(aggregate, expected)
    except EvaluationError:
        with pytest.raises(EvaluationError):
            engine.aggregate_changes([aggregate], changes, engine.materialised, after)
        engine.rollback()
        return
    old = definition(aggregate, known)
    found = engine.aggregate_changes([aggregate], changes, engine.materialised, after)
    assert facts_in(engine.snapshot(found.removed)) == old - wanted
    assert facts_in(engine.snapshot(found.added)) == wanted - old
    if chance.random() < 0.3:
        engine.rollback()
        return
    deleted.add(found.removed)
    added.add(found.added)
    nothing = engine.no_facts()
    engine.commit(
        deleted=deleted, added=added, explicit_removed=nothing, explicit_added=nothing
    )
    known -= lost
    known |= new


def interned(engine: Engine, facts: set[Fact]) -> Facts:
    found: SettledFacts = engine.no_facts()
    for name, table in tables(facts):
        found = engine.settle(found | engine.intern(name, table))
    return found
