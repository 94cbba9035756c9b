"""Representatives of equal constants: the operators of engines that keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine_facts import facts_of, interned, rows_of
from evermat.algebra.equality import UnequalValuesError
from evermat.columns import table_of_rows
from evermat.values import Kind, constant

if TYPE_CHECKING:
    from evermat.algebra import Engine
    from evermat.algebra.equality import Representatives
    from oracle import Fact

VALUES = frozenset(Kind) - {Kind.STRING}


def fact(name: str, *values: object) -> Fact:
    return name, tuple(constant(value) for value in values)


def given(engine: Engine, *facts: Fact) -> Engine:
    rewriting = engine
    for name, row in facts:
        rewriting.load([(name, table_of_rows([row], len(row)))])
    rewriting.begin()
    return rewriting


def merged(engine: Engine, *pairs: tuple[object, object]) -> Representatives:
    representatives = engine.representatives()
    equalities = interned(engine, [fact("same", *pair) for pair in pairs])
    engine.merge(representatives, equalities, "lost", VALUES)
    return representatives


def test_law_merging_is_transitive_and_a_value_represents(engine: Engine) -> None:
    kept = given(engine)
    representatives = merged(kept, ("a", "b"), ("c", "d"), ("b", "d"), ("d", 7))
    names = [constant(name) for name in ("a", "b", "c", "d", "e")]
    assert representatives.replaced(names) == dict.fromkeys(names[:4], constant(7))
    assert len(rows_of(representatives.cliques())) == 5


def test_law_merge_tells_who_lost_its_status(engine: Engine) -> None:
    kept = given(engine)
    representatives = merged(kept, ("a", "b"))
    (one,) = set(representatives.replaced([constant("a"), constant("b")]).values())
    more = interned(kept, [fact("same", "b", 1), fact("same", "a", "a")])
    lost = kept.merge(representatives, more, "lost", VALUES)
    assert facts_of(kept, lost) == {("lost", (one,))}
    assert kept.merge(representatives, more, "lost", VALUES).is_empty()


def test_law_two_values_are_refused(engine: Engine) -> None:
    with pytest.raises(UnequalValuesError, match="1 and 2"):
        merged(given(engine), ("a", 1), ("a", 2))


def test_law_rewriting_and_what_is_behind_it(engine: Engine) -> None:
    facts = [fact("p", "a", "x"), fact("p", "b", "x"), fact("p", "c", "y")]
    kept = given(engine, *facts)
    representatives = merged(kept, ("a", "b"), ("b", 1), ("x", 2))
    normal = fact("p", 1, 2)
    everything = interned(kept, facts)
    rewritten = kept.rewrite(everything, representatives)
    assert facts_of(kept, rewritten) == {normal, facts[2]}
    alone = interned(kept, [normal])
    assert facts_of(kept, kept.preimages(alone, representatives)) == set(facts[:2])
    inside = kept.rewritten_into(everything, representatives, alone)
    assert facts_of(kept, inside) == set(facts[:2])


def test_law_given_facts_are_brought_into_normal_form(engine: Engine) -> None:
    facts = [fact("p", "a", "x"), fact("p", "b", "y"), fact("p", 1, "y")]
    kept = given(engine, *facts)
    representatives = merged(kept, ("a", 1), ("b", 1))
    kept.rollback()
    implied = kept.normalise(representatives)
    assert facts_of(kept, implied) == {fact("p", 1, "x")}
    assert facts_of(kept, kept.materialised) == {fact("p", 1, "x"), fact("p", 1, "y")}
    assert facts_of(kept, kept.explicit) == {*facts, fact("p", 1, "x")}
    assert kept.marked().is_empty()
    kept.recursive_counts.add(kept.once(implied))
    assert facts_of(kept, kept.marked()) == {fact("p", 1, "x")}


def test_law_facts_lead_to_the_cliques_they_mention(engine: Engine) -> None:
    kept = given(engine, fact("p", 1, "x"), fact("q", "z", 5))
    representatives = merged(kept, ("a", 1), ("z", "w"))
    (one,) = {
        *representatives.replaced([constant("z"), constant("w")]).values(),
    }
    facts = interned(kept, [fact("p", 1, "x"), ("q", (one, constant(5)))])
    nodes = kept.nodes_of(facts, representatives, "same")
    assert facts_of(kept, nodes) == {fact("same", 1, 1), ("same", (one, one))}
    marks = interned(kept, [fact("mark", 1)])
    assert facts_of(kept, kept.mentioning(marks, facts)) == {fact("p", 1, "x")}


def test_law_originals_of_large_cliques_are_looked_up(engine: Engine) -> None:
    names = [f"n{number}" for number in range(40)]
    facts = [fact("p", name, "n7") for name in names[:5]] + [fact("p", "n1", "z")]
    kept = given(engine, *facts)
    representatives = merged(kept, *((name, 0) for name in names))
    wanted = interned(kept, [fact("p", 0, 0)])
    assert facts_of(kept, kept.preimages(wanted, representatives)) == set(facts[:5])


def test_law_facts_are_found_by_constants_in_any_place(engine: Engine) -> None:
    facts = [fact("p", "a", "x"), fact("p", "y", "a"), fact("q", "b"), fact("q", "a")]
    kept = given(engine, *facts)
    added = kept.growing()
    added.add(interned(kept, [fact("r", "a"), fact("r", "b")]))
    marks = interned(kept, [fact("mark", "a", "other")])
    found = kept.mentioning(marks, kept.materialised | added)
    expected = {facts[0], facts[1], facts[3], fact("r", "a")}
    assert facts_of(kept, found) == expected


def test_law_facts_about_moved_constants_are_found(engine: Engine) -> None:
    facts = [
        *(fact("p", 1, "x"), fact("p", "y", "b"), fact("q", 1), fact("q", 2)),
        *(fact("p", "c", "c"), fact("q", "e")),
    ]
    kept = given(engine, *facts)
    before = merged(kept, ("a", 1), ("c", "d"))
    after = merged(kept, ("b", 1), ("c", "d"))
    nothing = kept.about_moved(before, before, kept.materialised)
    assert facts_of(kept, nothing) == set()
    found = kept.about_moved(before, after, kept.materialised)
    # Of `a`, which is no longer 1, of `b`, which is 1 now, and of 1 itself.
    assert facts_of(kept, found) == set(facts[:3])


def test_law_members_moved_and_restored(engine: Engine) -> None:
    kept = given(engine)
    before, after = kept.representatives(), merged(kept, ("a", 1), ("b", 1))
    moved = kept.moved(before, after, "moved")
    assert facts_of(kept, moved) == {fact("moved", "a"), fact("moved", "b")}
    members = kept.members(interned(kept, [fact("same", 1, 1)]), after)
    assert facts_of(kept, members) == {fact("same", 1, x) for x in (1, "a", "b")}
    copy = after.copy()
    kept.restore(copy, members, before)
    assert copy.is_identity()
    assert not after.is_identity()


def test_law_expansion_is_counted_without_being_made(engine: Engine) -> None:
    kept = given(engine, fact("p", 1, 1, "z"))
    representatives = merged(kept, ("a", 1), ("b", 1))
    table = table_of_rows([(1, 1, "z")], 3)
    assert representatives.expanded_size(table) == 9
    assert len(set(rows_of(representatives.expanded(table)))) == 9
    assert kept.expanded_count("p", representatives) == 9
    names = table_of_rows([("a", "z")], 2)
    assert rows_of(representatives.normalised(names)) == [(constant(1), constant("z"))]
