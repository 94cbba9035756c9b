"""The closure operators of every engine, against walks written down here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_facts import facts_in, facts_of, interned, make_facts
from evermat.algebra import Closure, ClosureKind, Column, Pattern
from evermat.engines import make_engine
from evermat.engines.embedded import closure_graphs
from evermat.engines.embedded.closure_graphs import (
    Comparison,
    Pairs,
    Paths,
    has_pairs,
    pairs_of,
)
from evermat.values import constant

if TYPE_CHECKING:
    from oracle import Fact

Walks = frozenset[tuple[int, int]]

NODES = st.integers(0, 5)
PAIRS = st.frozensets(st.tuples(NODES, NODES), max_size=10)
KINDS = st.sampled_from(list(ClosureKind))


def followed(seeds: Walks, edges: Walks) -> Walks:
    """Where seeds and then edges lead to, by Warshall's naive loop."""
    found = set(seeds)
    while True:
        more = {(a, d) for a, b in found for c, d in edges if b == c} - found
        if not more:
            return frozenset(found)
        found |= more


def expected(kind: ClosureKind, loops: frozenset[int], x: Walks, e: Walks) -> Walks:
    match kind:
        case ClosureKind.PLAIN:
            return x
        case ClosureKind.TRANSITIVE:
            return followed(x, x) | {(pair[at], pair[at]) for pair in x for at in loops}
        case ClosureKind.SYMMETRIC:
            both = x | {(b, a) for a, b in x}
            return followed(both, both)
        case ClosureKind.LEFT_LINEAR:
            return followed(x, e)
        case ClosureKind.RIGHT_LINEAR:
            turned = followed(
                frozenset((b, a) for a, b in x), frozenset((b, a) for a, b in e)
            )
            return frozenset((b, a) for a, b in turned)


def make_closure(kind: ClosureKind, loops: frozenset[int], *, is_wide: bool) -> Closure:
    operands = (Column(1), constant("k"), Column(0)) if is_wide else (0, 1)
    pattern = Pattern(
        "r", tuple(Column(o) if isinstance(o, int) else o for o in operands)
    )
    edges = Pattern("e", (Column(0), Column(1)))
    linear = kind in {ClosureKind.LEFT_LINEAR, ClosureKind.RIGHT_LINEAR}
    return Closure(kind, pattern, edges if linear else None, loops)


def as_facts(pairs: Walks, *, is_wide: bool) -> set[Fact]:
    if is_wide:
        return make_facts(r=[(b, "k", a) for a, b in pairs])
    return make_facts(r=pairs)


@given(
    kind=KINDS,
    loops=st.frozensets(st.sampled_from([0, 1])),
    is_wide=st.booleans(),
    external=PAIRS,
    fewer=PAIRS,
    edges=PAIRS,
    fewer_edges=PAIRS,
)
def test_agree_with_walks(  # noqa: PLR0913, PLR0917
    kind: ClosureKind,
    loops: frozenset[int],
    is_wide: bool,  # noqa: FBT001
    external: Walks,
    fewer: Walks,
    edges: Walks,
    fewer_edges: Walks,
    engine_name: str,
) -> None:
    engine = make_engine(engine_name)
    engine.declare("r", 3 if is_wide else 2)
    engine.declare("e", 2)
    engine.begin()
    closure = make_closure(kind, loops, is_wide=is_wide)
    noise = make_facts(r=[(1, "other", 2)]) if is_wide else set()
    facts = interned(
        engine, as_facts(external, is_wide=is_wide) | make_facts(e=edges) | noise
    )
    less = interned(
        engine, as_facts(fewer, is_wide=is_wide) | make_facts(e=fewer_edges)
    )
    all_pairs = expected(kind, loops, external, edges)
    less_pairs = expected(kind, loops, fewer, fewer_edges)

    closed = engine.close(closure, facts)
    assert facts_of(engine, closed) == as_facts(all_pairs, is_wide=is_wide)
    difference = engine.close(closure, facts, without=less)
    assert facts_of(engine, difference) == as_facts(
        all_pairs - less_pairs, is_wide=is_wide
    )
    candidates = engine.settle(less | interned(engine, noise))
    among = engine.close_among(closure, facts, candidates)
    assert facts_of(engine, among) == as_facts(fewer & all_pairs, is_wide=is_wide)
    snapshot = engine.snapshot_closure(closure, facts).minus(
        engine.snapshot_closure(closure, less)
    )
    assert facts_in(snapshot) == as_facts(all_pairs - less_pairs, is_wide=is_wide)


@given(external=PAIRS, changed=PAIRS)
def test_law_through_keeps_all_facts_with_a_path_through(
    external: Walks, changed: Walks, engine_name: str
) -> None:
    engine = make_engine(engine_name)
    engine.declare("r", 2)
    engine.begin()
    closure = make_closure(ClosureKind.TRANSITIVE, frozenset(), is_wide=False)
    rest = external - changed
    every = external | changed
    found = engine.close(
        closure,
        interned(engine, make_facts(r=every)),
        without=interned(engine, make_facts(r=rest)),
        through=interned(engine, make_facts(r=changed)),
    )
    closed = followed(every, every)
    walks = closed | {(node, node) for node in range(6)}
    needed = {
        (first, last)
        for start, end in changed
        for first, last in closed
        if (first, start) in walks and (end, last) in walks
    } - followed(rest, rest)
    assert make_facts(r=needed) <= facts_of(engine, found) <= make_facts(r=closed)


@pytest.mark.parametrize("kind", [ClosureKind.TRANSITIVE, ClosureKind.LEFT_LINEAR])
def test_captures_of_different_kinds_are_compared(
    kind: ClosureKind, engine_name: str
) -> None:
    engine = make_engine(engine_name)
    engine.declare("r", 2)
    engine.declare("e", 2)
    engine.begin()
    facts = interned(engine, make_facts(r=[(1, 2), (2, 3)], e=[(2, 4)]))
    right = make_closure(ClosureKind.RIGHT_LINEAR, frozenset(), is_wide=False)
    other = make_closure(kind, frozenset(), is_wide=False)
    left = engine.snapshot_closure(other, facts)
    new = {(1, 3)} if kind is ClosureKind.TRANSITIVE else {(1, 4)}
    assert facts_in(left.minus(engine.snapshot_closure(right, facts))) == make_facts(
        r=new
    )
    assert facts_in(engine.snapshot_closure(right, facts).minus(left)) == set()


def test_counted_are_the_facts_with_a_count(engine_name: str) -> None:
    engine = make_engine(engine_name)
    engine.declare("r", 3)
    engine.begin()
    closure = make_closure(ClosureKind.TRANSITIVE, frozenset(), is_wide=True)
    first = interned(engine, make_facts(r=[(1, "k", 2), (1, "other", 2)]))
    second = interned(engine, make_facts(r=[(3, "k", 4)]))
    interned(engine, make_facts(r=[(5, "k", 6)]))
    engine.nonrecursive_counts.add(engine.once(first))
    engine.recursive_counts.add(engine.once(second))
    counted = engine.counted(closure.pattern)
    assert facts_of(engine, counted) == make_facts(r=[(1, "k", 2), (3, "k", 4)])


def walked(edges: Walks) -> set[tuple[int, int]]:
    """All pairs with a path between them, by walking from every node."""
    following: dict[int, set[int]] = {}
    for start, end in edges:
        following.setdefault(start, set()).add(end)
    found = set()
    for start in following:
        todo, seen = [start], set[int]()
        while todo:
            new = following.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        found |= {(start, end) for end in seen}
    return found


@pytest.mark.parametrize("edges", [150, 600, 2000])
def test_what_does_not_fit_at_once_is_found_in_turns(
    edges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(edges)
    table = random.integers(0, 300, (2, edges)).astype(np.uint32)
    fewer = table[:, random.random(edges) < 0.95]
    paths, less = (Paths(pairs, pairs) for pairs in (Pairs(*table), Pairs(*fewer)))
    known, kept = (
        walked(frozenset(zip(*some.tolist(), strict=True))) for some in (table, fewer)
    )
    at_once = Comparison(paths, less).keys()
    monkeypatch.setattr(closure_graphs, "MOST_WORDS", 1)
    in_turns = Comparison(paths, less)
    assert in_turns.size() == at_once.size
    assert (in_turns.keys() == at_once).all()
    pairs = [column.tolist() for column in pairs_of(at_once)]
    assert set(zip(*pairs, strict=True)) == known - kept
    nodes = np.arange(90_000, dtype=np.uint32)
    found = np.flatnonzero(has_pairs(paths, Pairs(nodes // 300, nodes % 300)))
    assert {divmod(pair, 300) for pair in found.tolist()} == known
