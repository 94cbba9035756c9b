"""Small changes, worked on in one call, end like large ones, worked on in turn."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import evermat
from engine_facts import facts_of, interned, make_facts, tables
from evermat.algebra import EngineUseError, Views
from evermat.algebra.compile import compile_rules
from evermat.columns import ArityMismatchError
from evermat.engines.embedded import engine as engine_module
from evermat.engines.embedded import small_batch
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.lang.normalise import normalise
from evermat.lang.parser import parse_rules

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
    path(?x, ?y, ?z) :- edge(?x, ?y), reach(?y, ?z) .
    turn(?x, ?z, ?y, ?x) :- path(?x, ?y, ?z), path(?z, ?y, ?x) .
    near(?x) :- reach(?x, 3), edge(?x, ?y), edge(?y, ?x) .
    loop(?x) :- edge(?x, ?x) .
    some() :- loop(?x), near(?x) .
    alone(?x) :- node(?x), not near(?x) .
    other(?x, ?y) :- edge(?x, ?y), not reach(?y, ?x) .
    other(?x, ?n) :- edge(?x, ?y), ?n = ?x + ?y, ?n > 15 .
    quiet(?x) :- node(?x), not some() .
    kind(?x, "a") :- loop(?x) .
    kind(?x, "b") :- near(?x) .
    named(?x, ?k) :- kind(?x, ?k), alone(?x) .
    via(?x, "c") :- path(?x, 3, ?y), alone(?y) .
    via(?x, "d") :- path(?x, 4, ?y), alone(?y) .
"""
PREDICATES = {
    *("reach", "path", "turn", "near", "loop", "some", "alone", "other", "quiet"),
    *("kind", "named", "via"),
}
ALGORITHMS = ("dred", "dred-c", "bf", "bf-c", "fp")


@contextmanager
def changes(*, at_most: int) -> Iterator[None]:
    """Have changes of that many facts worked on at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_batch, "MOST_CHANGED", at_most)
        patch.setattr(small_batch, "MOST_FROM_SCRATCH", at_most)
        yield


def in_turn() -> AbstractContextManager[None]:
    return changes(at_most=-1)


def story(seed: int, algorithm: str) -> list[object]:
    """What happens in a random story, work included."""
    numbers = random.Random(seed)  # noqa: S311  a seeded graph, no secret
    kb = evermat.KnowledgeBase(RULES, modules=False)
    nodes = range(12)
    edges = {(numbers.choice(nodes), numbers.choice(nodes)) for _ in range(16)}
    kb.load({"edge": sorted(edges), "node": [(node,) for node in nodes]})
    told: list[object] = []
    for _ in range(4):
        gone = set(numbers.sample(sorted(edges), 3))
        come = {(numbers.choice(nodes), numbers.choice(nodes)) for _ in range(3)}
        change = kb.update(
            delete={"edge": sorted(gone), "node": [(numbers.choice(nodes),)]},
            insert={"edge": sorted(come), "node": [(numbers.randrange(20),)]},
            algorithm=algorithm,
        )
        edges = (edges - gone) | come
        told.append((change.report.forward_instances, change.report.rounds))
        told += [sorted(kb.counters(name), key=repr) for name in PREDICATES]
        told += [sorted(kb.facts(name), key=repr) for name in PREDICATES]
        told += [sorted(change.added(name), key=repr) for name in PREDICATES]
        told += [sorted(change.removed(name), key=repr) for name in PREDICATES]
    return told


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("seed", range(3))
def test_agree_with_changes_worked_on_in_turn(seed: int, algorithm: str) -> None:
    with in_turn():
        expected = story(seed, algorithm)
    for most in (1 << 13, 4):
        with changes(at_most=most):
            assert story(seed, algorithm) == expected


@pytest.mark.parametrize("limit", ["COST_LIMIT", "MOST_FOUND"])
def test_a_call_that_finds_too_much_gives_up(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_turn():
        expected = story(0, "dred-c")
    for size in (1, 40, 70):
        monkeypatch.setattr(small_batch, limit, size)
        assert story(0, "dred-c") == expected


class Told:
    """A monitor that remembers."""

    def __init__(self) -> None:
        self.matches: Counter[str] = Counter()

    def working(self, label: str, matches: int) -> None:
        self.matches[label] += matches

    def writing(self, label: str, facts: int) -> None:
        raise AssertionError(label, facts)


def prepared(*facts: str) -> EmbeddedEngine:
    engine = EmbeddedEngine()
    for name, arity in (("p", 2), ("q", 2), ("r", 3), ("s", 1)):
        engine.declare(name, arity)
    engine.load(tables(make_facts(p=[(n, n + 1) for n in range(9)], s=[(4,)])))
    engine.load(tables({(name, ()) for name in facts}))
    return engine


def test_the_monitor_is_told_the_matches_of_each_rule() -> None:
    rules = normalise(
        parse_rules("q(?x, ?z) :- p(?x, ?y), p(?y, ?z) . s(?x) :- p(?x, ?x) .")
    )
    queries = compile_rules(rules, lambda _rule, _atom: False).delta
    told = []
    for mode in (changes(at_most=100), in_turn()):
        engine = prepared()
        engine.monitor = monitor = Told()
        with mode:
            delta = interned(engine, make_facts(p=[(2, 3), (3, 4)]))
            facts = engine.materialised
            engine.derive(queries, Views(facts, facts, delta))
        assert sum(monitor.matches.values()) == engine.matches
        told.append(monitor.matches)
    assert told[0] == told[1]
    assert len(told[0]) == 1


def test_a_monitor_can_stop_the_work() -> None:
    class Impatient(Told):
        def working(self, label: str, matches: int) -> None:
            super().working(label, matches)
            raise EngineUseError(label)

    queries = compile_rules(
        normalise(parse_rules("q(?y, ?x) :- p(?x, ?y) .")), lambda _r, _a: False
    ).delta
    engine = prepared()
    engine.monitor = Impatient()
    delta = interned(engine, make_facts(p=[(2, 3)]))
    views = Views(engine.materialised, engine.materialised, delta)
    with changes(at_most=100), pytest.raises(EngineUseError):
        engine.derive(queries, views)
    engine.monitor = None
    with changes(at_most=100):
        assert facts_of(engine, engine.derive(queries, views)) == make_facts(q=[(3, 2)])
    assert engine.matches > 0


def test_proofs_agree_and_stop_at_the_first_derivation() -> None:
    text = (
        "q(?x, ?y) :- p(?x, ?y) . q(?x, ?y) :- p(?x, ?y), s(?z) . s(?x) :- p(?x, ?y) ."
    )
    rules = compile_rules(normalise(parse_rules(text)), lambda _rule, _atom: False)
    facts = make_facts(q=[(2, 3), (5, 9)], s=[(4,), (40,)])
    for mode in (changes(at_most=100), in_turn()):
        engine = prepared()
        with mode:
            held = engine.materialised
            views = Views(held, held, interned(engine, facts))
            before = engine.matches
            found = facts_of(
                engine, engine.derivable([rules.rederive], views, engine.no_facts())
            )
        assert found == make_facts(q=[(2, 3)], s=[(4,)])
        assert engine.matches - before == 2


# ---------------------------------------------------- what programs were made for goes


def closure_of(kb: evermat.KnowledgeBase) -> set[tuple[object, ...]]:
    return set(kb.facts("reach"))


def test_relations_that_move_in_memory_are_found() -> None:
    kb = evermat.KnowledgeBase(RULES, modules=False)
    kb.load({"edge": [(0, 1)]})
    for n in range(1, 150):  # tables are moved again and again
        kb.insert("edge", [(n, n + 1)])
        kb.delete("edge", [(n - 1, n)])
    assert closure_of(kb) == {(149, 150)}


def test_relations_that_are_cleared_out_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_module, "MANY_DEAD", 4)
    kb = evermat.KnowledgeBase(RULES, modules=False)
    edges = [(n, n + 1) for n in range(12)]
    kb.load({"edge": edges})
    for n in range(4):
        kb.delete("edge", edges[n + 1 :])
        kb.insert("edge", edges[n + 1 :])
        kb.delete("edge", edges[:n])
        kb.insert("edge", edges[:n])
    fresh = evermat.KnowledgeBase(RULES, modules=False)
    fresh.load({"edge": edges})
    assert closure_of(kb) == closure_of(fresh)
    assert set(kb.counters("path")) == set(fresh.counters("path"))


def test_relations_that_a_failure_takes_away_are_made_anew() -> None:
    kb = evermat.KnowledgeBase("q(?x) :- p(?x) .")
    kb.load({"p": [(1,)]})
    kb.insert("p", [(2,)])
    rule = "late(?x, ?y) :- p(?x), p(?y), early(?x) ."
    kb.plan(insert={"early": [(1,)]}, add_rules=rule)
    kb.update(insert={"early": [(2,)]}, add_rules=rule)
    kb.insert("early", [(1,)])
    assert set(kb.facts("late")) == {(1, 1), (1, 2), (2, 1), (2, 2)}


def test_a_new_materialisation_is_read() -> None:
    kb = evermat.KnowledgeBase(RULES, modules=False)
    kb.load({"edge": [(1, 2), (2, 3)]})
    kb.delete("edge", [(2, 3)])
    kb.update(insert={"edge": [(5, 6)]}, algorithm="remat")
    kb.insert("edge", [(2, 5)])
    assert closure_of(kb) == {(1, 2), (1, 5), (1, 6), (2, 5), (2, 6), (5, 6)}


# ------------------------------------------------------------ reading many relations


def mixed() -> dict[str, pa.Table]:
    return {
        "p": pa.table([pa.array([1, 7, 1]), pa.array([2, 8, 2])], names=["a", "b"]),
        "s": pa.table([pa.array(["x", "y", "never"])], names=["a"]),
        "r": pa.table([pa.array(["x"]), pa.array([1]), pa.array([True])], names="abc"),
        "zero": pa.table({"": pa.nulls(2)}).select([]),
    }


def test_rows_of_many_relations_are_read_like_those_of_one() -> None:
    engine = prepared("zero")
    engine.load(tables(make_facts(s=[("x",), ("y",)])))
    known = facts_of(engine, engine.find_all(mixed()))
    assert known == make_facts(p=[(1, 2), (7, 8)], s=[("x",), ("y",)], zero=[()])
    every = facts_of(engine, engine.intern_all(mixed()))
    assert every == known | make_facts(s=[("never",)], r=[("x", 1, True)])
    expected = set()
    for name, table in mixed().items():
        expected |= facts_of(engine, engine.intern(name, table))
    assert every == expected
    assert facts_of(engine, engine.find_all(mixed())) == every


def test_reading_many_relations_refuses_what_reading_one_does() -> None:
    engine = prepared()
    with pytest.raises(ArityMismatchError):
        engine.find_all(mixed() | {"p": pa.table([[1]], names=["a"])})
    with pytest.raises(ArityMismatchError):
        engine.intern_all(mixed() | {"p": pa.table([[1]], names=["a"])})
    assert engine.find_all({}).is_empty()
    assert engine.find_all({"unknown": mixed()["s"]}).is_empty()
