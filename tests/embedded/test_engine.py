"""What only the embedded engine does: batches, shared scans, status bits, clearing."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import evermat
from evermat.algebra import EngineUseError
from evermat.engines.embedded import batch as batches
from evermat.engines.embedded import dedup
from evermat.engines.embedded import engine as engine_module
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.engines.embedded.relation import NONRECURSIVE, Relation
from evermat.engines.embedded.views import Sets

if TYPE_CHECKING:
    from evermat.values import Value

CLOSURE = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
    both(?x, ?y, ?z) :- reach(?x, ?y), reach(?y, ?z), ?x != ?z .
    lonely(?x) :- node(?x), not linked(?x) .
    linked(?x) :- edge(?x, ?y) .
    far(?x, ?n) :- reach(?x, ?y), ?n = ?x + ?y, ?n > 20 .
    pair(?x, ?y) :- node(?x), lonely(?y) .
"""


def facts_of(name: str, seed: int) -> dict[str, set[tuple[Value, ...]]]:
    numbers = random.Random(seed)  # noqa: S311  a seeded graph, no secret
    edges = {(numbers.randrange(30), numbers.randrange(30)) for _ in range(45)}
    kb = evermat.KnowledgeBase(CLOSURE, engine=name)
    kb.load({"edge": sorted(edges), "node": [(number,) for number in range(30)]})
    kb.delete("edge", sorted(edges)[::7])
    kb.insert("edge", [(1, 29), (29, 3)])
    facts = {
        predicate: set(kb.facts(predicate))
        for predicate in ("reach", "both", "lonely", "far", "pair")
    }
    counts = Counter(dict.fromkeys(map(tuple, kb.counters("reach")), 1))
    return facts | {"counters": set(counts)}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("batch", [1, 3, 64])
def test_agree_whatever_the_size_of_batches(
    seed: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = facts_of("reference", seed)
    monkeypatch.setattr(batches, "BATCH", batch)
    monkeypatch.setattr(batches, "SCAN", batch)
    monkeypatch.setattr(batches, "ALONE", batch)
    monkeypatch.setattr(dedup, "COMPACT_AT", 4 * batch)
    assert facts_of("embedded", seed) == expected


def test_facts_that_no_longer_hold_are_cleared_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_module, "MANY_DEAD", 10)
    kb = evermat.KnowledgeBase("q(?x) :- p(?x) .")
    kb.load({"p": [(number,) for number in range(100)]})
    kb.delete("p", [(number,) for number in range(90)])
    assert set(kb.facts("q")) == {(number,) for number in range(90, 100)}
    kb.insert("p", [(5,)])
    assert set(kb.counters("q")) == {(n, 1, 0) for n in (5, *range(90, 100))}


def test_growing_sets_give_their_bits_back() -> None:
    engine = EmbeddedEngine()
    facts = engine.intern("p", pa.table({"x": [1, 2, 3]}))
    engine.begin()
    for _ in range(100):
        engine.growing().add(facts)
    held = [engine.growing() for _ in range(14)]
    with pytest.raises(EngineUseError, match="too many growing sets"):
        engine.growing()
    del held[0]
    engine.growing()
    engine.rollback()


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_growing_sets_that_cannot_be_cleared_are_cleared_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody hears of a lack of memory when the last reference to a set goes."""
    engine = EmbeddedEngine()
    facts = engine.intern("p", pa.table({"x": [1, 2, 3]}))
    engine.begin()
    sets = engine.store.sets
    free = next(count for count in range(16, 0, -1) if sets.has_bits(count))
    growing = engine.growing()
    growing.add(facts)
    with monkeypatch.context() as patch:
        patch.setattr(Sets, "mark", _find_no_memory)
        del growing
    others = [engine.growing() for _ in range(free - 1)]
    assert all(other.is_empty() for other in others)
    assert not any(engine.settle(facts & other).size() for other in others)
    engine.rollback()
    assert sets.has_bits(free)
    assert not engine.store.relations["p"].status[:3].any()


def _find_no_memory(*_: object, **__: object) -> None:
    raise MemoryError


def test_counts_are_undone_if_memory_lacks_right_after_they_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = EmbeddedEngine()
    facts = engine.intern("p", pa.table({"x": [1, 2, 3]}))
    engine.begin()
    with monkeypatch.context() as patch:
        patch.setattr(Relation, "note_counted", _find_no_memory)
        with pytest.raises(MemoryError):
            engine.nonrecursive_counts.add(engine.once(facts))
    engine.rollback()
    relation = engine.store.relations["p"]
    assert not relation.counted(NONRECURSIVE, facts.every).any()


def test_rules_are_reached_again_after_they_were_broken_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A later update took them for laid out, and derived nothing."""
    kb = evermat.KnowledgeBase(CLOSURE, modules=False)
    kb.load({"edge": [(1, 2), (2, 3)], "node": [(1,), (2,), (3,)]})
    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(Relation, "unite_runs", _break_off)
            try:
                kb.delete("edge", [(2, 3)])
            except KeyboardInterrupt:
                continue
            kb.insert("edge", [(2, 3)])
    kb.delete("edge", [(2, 3)])
    assert set(kb.facts("reach")) == {(1, 2)}
    assert set(kb.facts("both")) == set()


def _break_off(*_: object, **__: object) -> None:
    raise KeyboardInterrupt
