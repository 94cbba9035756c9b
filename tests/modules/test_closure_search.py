"""Bounded searches in the graphs of closures, also after updates that failed."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evermat
from engine_facts import facts_in, facts_of, interned, make_facts
from evermat.algebra import Closure, ClosureKind, Column, Pattern
from evermat.engines.embedded import closure_search, relation
from evermat.engines.embedded import engine as embedded_engine
from evermat.engines.embedded.closure_index import EntrySet
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.values import constant
from planting import fails

if TYPE_CHECKING:
    from collections.abc import Iterable

    Row = tuple[object, ...]

Walks = frozenset[tuple[int, int]]

NODES = st.integers(0, 5)
PAIRS = st.frozensets(st.tuples(NODES, NODES), max_size=9)
KINDS = st.sampled_from([kind for kind in ClosureKind if kind is not ClosureKind.PLAIN])
LOOPS = st.frozensets(st.sampled_from([0, 1]))

WAYS = {
    "walking": {},
    "gathering": {"WALKED": 0},
    "not trying": {"FEW_CHANGES": 0, "SHARE_OF_CHANGES": 1},
    "giving up": {"SHARE": 1, "LEAST": 3, "WALKED": 2, "TRIED": 1},
}


def closure_of(kind: ClosureKind, loops: frozenset[int]) -> Closure:
    linear = kind in {ClosureKind.LEFT_LINEAR, ClosureKind.RIGHT_LINEAR}
    edges = Pattern("e", (Column(0), Column(1))) if linear else None
    if kind is not ClosureKind.TRANSITIVE:
        loops = frozenset()
    return Closure(kind, Pattern("r", (Column(0), Column(1))), edges, loops)


def test_a_graph_is_kept_however_many_facts_follow_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What counts are the facts that a closure starts from, not those that it has."""
    monkeypatch.setattr(closure_search, "MOST_ENTRIES", 200)
    size, engine = 30, EmbeddedEngine()
    kb = evermat.KnowledgeBase(
        "same(?x, ?z) :- same(?x, ?y), same(?y, ?z) ."
        "same(?y, ?x) :- same(?x, ?y) ."
        "seen(?x) :- same(?x, ?y), mark(?y) .",
        engine=engine,
    )
    links = [(at, at + 1) for at in range(size - 1)]
    kb.load({"same": [*links, (0, size - 1)], "mark": [(0,)]})
    assert kb.count("same") == size**2 > 200
    kb.delete("same", [(4, 5)])
    assert engine.store.closure_indexes.has_any
    assert kb.count("same") == size**2
    kb.delete("same", [(0, size - 1)])
    assert kb.count("same") == 5**2 + (size - 5) ** 2


@pytest.mark.parametrize("way", WAYS)
@given(
    kind=KINDS,
    loops=LOOPS,
    seeds=PAIRS,
    fewer=PAIRS,
    edges=PAIRS,
    fewer_edges=PAIRS,
)
def test_searches_find_what_comparing_all_finds(  # noqa: PLR0913, PLR0917
    way: str,
    kind: ClosureKind,
    loops: frozenset[int],
    seeds: Walks,
    fewer: Walks,
    edges: Walks,
    fewer_edges: Walks,
) -> None:
    engine = EmbeddedEngine()
    engine.declare("r", 2)
    engine.declare("e", 2)
    engine.begin()
    closure = closure_of(kind, loops)
    facts = interned(engine, make_facts(r=seeds, e=edges))
    less = interned(engine, make_facts(r=seeds & fewer, e=edges & fewer_edges))
    changed = engine.settle(facts - less)
    expected = facts_of(engine, engine.close(closure, facts, without=less))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WAYS[way].items():
            patch.setattr(closure_search, name, value)
        found = engine.close(closure, facts, without=less, through=changed)
        assert facts_of(engine, found) == expected
        every = facts_of(engine, engine.close(closure, facts))
        among = engine.close_among(closure, facts, less)
        assert facts_of(engine, among) == facts_of(engine, less) & every
        old, new = engine.snapshot_closures(
            closure, facts, less, changed, engine.no_facts()
        )
        assert facts_in(old.minus(new)) == expected
        assert not facts_in(new.minus(old))
        other = interned(engine, make_facts(r=fewer, e=fewer_edges))
        before, after = engine.snapshot_closures(
            closure,
            facts,
            other,
            engine.settle(facts - other),
            engine.settle(other - facts),
        )
        others = facts_of(engine, engine.close(closure, other))
        assert facts_in(before.minus(after)) == every - others
        assert facts_in(after.minus(before)) == others - every


@given(kind=KINDS, loops=LOOPS, seeds=PAIRS, edges=PAIRS, first=NODES, last=NODES)
def test_searches_from_constants_find_their_pairs(
    kind: ClosureKind,
    loops: frozenset[int],
    seeds: Walks,
    edges: Walks,
    first: int,
    last: int,
) -> None:
    engine = EmbeddedEngine()
    engine.declare("r", 2)
    engine.declare("e", 2)
    engine.begin()
    closure = closure_of(kind, loops)
    facts = interned(engine, make_facts(r=seeds, e=edges))
    every = facts_of(engine, engine.close(closure, facts))
    for operands in (
        (constant(first), Column(0)),
        (Column(0), constant(last)),
        (constant(first), constant(last)),
    ):
        only = Pattern("r", operands)
        found = facts_of(engine, engine.close(closure, facts, only=only))
        wanted = {
            fact
            for fact in every
            if all(
                isinstance(operand, Column) or operand == value
                for operand, value in zip(operands, fact[1], strict=True)
            )
        }
        assert found == wanted


RULES = {
    "transitive": "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) . ",
    "reflexive": "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) . r(?x, ?x) :- r(?x, _) . ",
    "symmetric": "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) . r(?y, ?x) :- r(?x, ?y) . ",
    "left-linear": "r(?x, ?z) :- r(?x, ?y), e(?y, ?z) . ",
    "right-linear": "r(?x, ?z) :- e(?x, ?y), r(?y, ?z) . ",
}
FED = " r(?x, ?z) :- r(?x, ?y), f(?y, ?z) ."
READER = "r(?x, ?y) :- e(?x, ?y) . seen(?y) :- r(1, ?y) ."


class Stopped(Exception):  # noqa: N818  not an error
    """Raised in the middle of an update."""


class Game:
    """Random updates with modules and without, some only planned, some broken off."""

    def __init__(self, name: str, seed: int, *, is_fed: bool) -> None:
        self.chance = random.Random(seed)  # noqa: S311  repeatable on purpose
        self.is_stopping = False
        rules = RULES[name] + READER + FED * is_fed
        self.kb = evermat.KnowledgeBase(rules, progress=self.progress)
        self.other = evermat.KnowledgeBase(rules, modules=False)
        self.edges = {self.edge() for _ in range(10)}
        for kb in (self.kb, self.other):
            kb.load({"e": sorted(self.edges), "f": [(2, 3), (5, 1)]})

    def edge(self) -> tuple[int, int]:
        return self.chance.randrange(9), self.chance.randrange(9)

    def progress(self, _: object) -> None:
        if self.is_stopping:
            raise Stopped

    def step(self, algorithm: str) -> None:
        present = sorted(self.edges)
        gone = self.chance.sample(present, min(len(present), self.chance.randrange(3)))
        come = [self.edge() for _ in range(self.chance.randrange(2))]
        request: dict[str, Any] = {"delete": {"e": gone}, "insert": {"e": come}}
        match self.chance.randrange(4):
            case 0:
                planned = self.kb.plan(**request), self.other.plan(**request)
                assert same(planned[0].removed("r"), planned[1].removed("r"))
            case 1:
                self.is_stopping = True
                with suppress(Stopped):
                    self.kb.update(**request)
                    self.other.update(**request)
                    self.edges = (self.edges - set(gone)) | set(come)
                self.is_stopping = False
            case _:
                changes = [
                    kb.update(**request, algorithm=algorithm)
                    for kb in (self.kb, self.other)
                ]
                self.edges = (self.edges - set(gone)) | set(come)
                assert same(changes[0].added("r"), changes[1].added("r"))
        assert same(self.kb.facts("r"), self.other.facts("r"))
        assert same(self.kb.facts("seen"), self.other.facts("seen"))


def same(one: Iterable[Row], other: Iterable[Row]) -> bool:
    return sorted(one) == sorted(other)


def play(
    seed: int, algorithm: str = "dred-c", names: Iterable[str] = tuple(RULES)
) -> None:
    for name in names:
        for is_fed in (False, True):
            game = Game(name, seed, is_fed=is_fed)
            for _ in range(8):
                game.step(algorithm)


@pytest.mark.parametrize("algorithm", ["dred-c", "bf-c", "auto"])
@pytest.mark.parametrize("seed", range(6))
def test_graphs_are_right_after_plans_and_broken_off_updates(
    seed: int, algorithm: str
) -> None:
    play(seed, algorithm)


def test_graphs_are_right_when_rows_have_other_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedded_engine, "MANY_DEAD", 1)
    for seed in range(3):
        play(seed)


def test_graphs_are_right_for_those_who_have_not_looked_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relation, "MOST_UNREAD", 0)
    play(1)


BUGS: dict[str, tuple[object, str, object]] = {
    "counts that a failed update restores are not heard of": (
        relation.Relation,
        "restore_counts",
        lambda self, which, rows, counts: self.counter(which).__setitem__(rows, counts),
    ),
    "rows with other numbers are taken for the old ones": (
        EntrySet,
        "is_current",
        property(lambda _: True),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_engine, "MANY_DEAD", 1)
    monkeypatch.setattr(*BUGS[bug])
    assert any(fails(play, seed) for seed in range(30))
