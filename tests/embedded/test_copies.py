"""A relation that is copied, and compared with its copy."""

from __future__ import annotations

import random

import pytest

from engine_facts import facts_in, tables
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.values import constant


def facts(chance: random.Random, width: int, size: int) -> set[tuple[str, tuple]]:  # type: ignore[type-arg]  # rows of any width
    return {
        ("p", tuple(constant(chance.randint(0, 9)) for _ in range(width)))
        for _ in range(size)
    }


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_law_what_left_and_what_came_is_found(seed: int, width: int) -> None:
    chance = random.Random(seed)  # noqa: S311  repeatable, not secret
    engine = EmbeddedEngine()
    old = facts(chance, width, 60)
    engine.load(tables(old))
    for _ in range(3):
        without = set(
            chance.sample(
                sorted(old, key=repr), min(len(old), chance.choice([0, 1, 9]))
            )
        )
        also = facts(chance, width, chance.choice([0, 1, 5]))
        engine.begin()
        gone = engine.no_facts()
        for name, table in tables(without):
            gone = engine.settle(gone | engine.find(name, table))
        came = engine.no_facts()
        for name, table in tables(also):
            came = engine.settle(came | engine.intern(name, table))
        fresh = engine.fresh()
        engine.copy_explicit(fresh, without=gone, also=came)
        other = engine.fresh()
        engine.copy_explicit(other, without=gone, also=came)
        derived = facts(chance, width, chance.choice([0, 3]))
        extend(other, facts(chance, width, 3))  # nobody is to see these
        extend(fresh, derived)
        extend(other, facts(chance, width, 3))
        new = ((old - without) | also) | derived
        left, added = engine.adopt(fresh)
        assert facts_in(left) == old - new
        assert facts_in(added) == new - old
        assert facts_in(engine.snapshot(engine.materialised)) == new
        old = (old - without) | also  # what is explicit
        engine = rid_of_derived(engine, old)


def extend(engine: EmbeddedEngine, derived: set[tuple[str, tuple]]) -> None:  # type: ignore[type-arg]  # see above
    for name, table in tables(derived):
        engine.extend(engine.settle(engine.intern(name, table) - engine.materialised))


def rid_of_derived(engine: EmbeddedEngine, explicit: set) -> EmbeddedEngine:  # type: ignore[type-arg]  # see above
    """The same engine with nothing but its explicit facts."""
    nothing = engine.no_facts()
    engine.begin()
    fresh = engine.fresh()
    engine.copy_explicit(fresh, without=nothing, also=nothing)
    engine.adopt(fresh)
    assert facts_in(engine.snapshot(engine.materialised)) == explicit
    return engine
