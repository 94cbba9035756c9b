"""What an engine's own search finds is what its definition finds."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from engine_facts import facts_of, interned, make_facts, tables
from evermat.algebra import (
    Application,
    OwnSupport,
    ProofSearch,
    ProofWork,
    Region,
    Saturation,
    Views,
    prove,
    saturate,
)
from evermat.algebra.compile import compile_rules
from evermat.engines import make_engine
from evermat.lang.parser import parse_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.algebra import Engine, Facts, Rounds, SettledFacts
    from evermat.algebra.fixpoint import OnRounds
    from evermat.lang.syntax import Atom, Rule
    from oracle import Fact

    Prove = Callable[
        [Engine, ProofSearch, SettledFacts, ProofWork, OnRounds], SettledFacts
    ]

NODES = 7
LOCAL = Region(frozenset({"reach", "met"}))


def _is_local(_rule: Rule, atom: Atom) -> bool:
    return atom.predicate in {"reach", "met"}


NONRECURSIVE = compile_rules(
    parse_rules("""
        reach(?x, ?y) :- edge(?x, ?y) .
        reach(?x, ?y) :- link(?y, ?x), not blocked(?x) .
        met(?x, ?x, 1) :- link(?x, ?x) .
    """),
    _is_local,
)
RECURSIVE = compile_rules(
    parse_rules("""
        reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) .
        reach(?x, ?z) :- reach(?x, ?y), edge(?z, ?y), not blocked(?z), ?x != ?z .
        met(?x, ?y, 2) :- reach(?x, ?y), reach(?y, ?x), link(?x, ?y) .
        reach(?x, ?y) :- met(?x, ?y, 2), not blocked(?y) .
    """),
    _is_local,
)


def by_engine(
    engine: Engine,
    search: ProofSearch,
    facts: SettledFacts,
    work: ProofWork,
    on_rounds: OnRounds,
) -> SettledFacts:
    return engine.prove(search, facts, work, on_rounds)


def given_facts(random_: random.Random) -> set[Fact]:
    def pairs(size: int) -> list[tuple[int, int]]:
        return [
            (random_.randrange(NODES), random_.randrange(NODES)) for _ in range(size)
        ]

    return make_facts(
        edge=pairs(7),
        link=pairs(6),
        reach=pairs(1),
        blocked=[(random_.randrange(NODES),) for _ in range(2)],
    )


def materialised(engine: Engine, given: set[Fact]) -> None:
    """Have the facts and all that follows, with exact counts."""
    for name, arity in (("edge", 2), ("link", 2), ("blocked", 1)):
        engine.declare(name, arity)
    engine.declare("reach", 2)
    engine.declare("met", 3)
    engine.load(tables(given))
    engine.begin()
    added = engine.growing()
    known: Facts = engine.materialised | added
    once, again = engine.nonrecursive_counts, engine.recursive_counts
    views = Views(known, known)
    task = Saturation(
        engine.no_facts(),
        into=added,
        unless=known,
        first=(
            Application(NONRECURSIVE.full, views, once),
            Application(RECURSIVE.full, views, again),
        ),
        step=Application(RECURSIVE.delta, views, again),
    )
    saturate(engine, task, lambda _: None)
    nothing = engine.no_facts()
    engine.commit(
        deleted=nothing, added=added, explicit_removed=nothing, explicit_added=nothing
    )


def search_of(engine: Engine, gone: SettledFacts, *, is_counted: bool) -> ProofSearch:
    """A search where some explicit facts go."""
    deleted, added = engine.growing(), engine.growing()
    nothing = engine.no_facts()
    remaining: Facts = engine.materialised - (deleted - added)
    possible: Facts = engine.materialised | added
    explicit: Facts = (engine.explicit - gone) | nothing
    own = NONRECURSIVE.rederive

    def ask(facts: SettledFacts) -> Facts:
        derived = engine.derive(own, Views(remaining, possible, facts))
        return engine.settle((facts & explicit) | derived)

    counter = engine.nonrecursive_counts
    support = OwnSupport(ask, explicit=explicit, rules=own)
    if is_counted:
        support = OwnSupport(counter.positive, counter=counter)
    deleted.add(engine.settle(gone - gone.within(LOCAL)))
    return ProofSearch(
        remaining,
        possible,
        RECURSIVE,
        support,
        checked=engine.growing(),
        proved=engine.growing(),
        delayed=engine.growing(),
        is_watched=False,
    )


def play(engine: Engine, seed: int, way: Prove, *, is_counted: bool) -> list[set[Fact]]:
    """The facts that are not proved, of some batches."""
    random_ = random.Random(seed)  # noqa: S311  no secret
    given = given_facts(random_)
    materialised(engine, given)
    gone_facts = set(random_.sample(sorted(given, key=repr), 4))
    engine.begin()
    gone = interned(engine, gone_facts)
    if is_counted:
        # Counts are those of what remains.
        counts = engine.nonrecursive_counts
        counts.subtract(engine.once(gone))
        old = engine.materialised
        lost = interned(engine, {f for f in gone_facts if f[0] != "reach"})
        views = Views(old, old, lost)
        counts.subtract(engine.derive_counts(NONRECURSIVE.delta, views))
    search = search_of(engine, gone, is_counted=is_counted)
    known = sorted(
        (f for f in facts_of(engine, search.positive) if f[0] in {"reach", "met"}),
        key=repr,
    )
    found = []
    for _ in range(4):
        batch = interned(engine, random_.sample(known, min(6, len(known))))
        work = ProofWork()
        rounds: list[Rounds] = []
        unproved = way(engine, search, batch, work, rounds.append)
        found.append(facts_of(engine, unproved))
        proved = facts_of(engine, search.proved)
        checked = facts_of(engine, search.checked)
        assert proved <= checked
        assert facts_of(engine, batch) <= proved | found[-1]
        assert sum(each.facts for each in rounds) == work.proved
    return found


@pytest.mark.parametrize("is_counted", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_proofs_are_what_the_definition_finds(
    engine: Engine, seed: int, *, is_counted: bool
) -> None:
    mine = play(engine, seed, by_engine, is_counted=is_counted)
    assert mine == play(make_engine("reference"), seed, prove, is_counted=is_counted)
    if engine.name == "embedded":
        other = play(make_engine("embedded"), seed, prove, is_counted=is_counted)
        assert mine == other
