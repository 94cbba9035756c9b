"""Queries that are asked again are answered from plans and programs that were kept."""

from __future__ import annotations

import random

import pytest

from evermat import KnowledgeBase
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.engines.embedded.planner import describe
from evermat.kb.queries import MOST_PREPARED, PreparedQueries, PreparedQuery
from evermat.lang.catalogue import UnknownPredicateError

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
    labelled(?x, ?p, ?y) :- reach(?x, ?y), colour(?y, ?p) .
"""
QUESTIONS = (
    "edge(1, ?y)",
    "edge(?x, ?y), edge(?y, 3)",
    "reach(2, ?y), colour(?y, ?p)",
    "reach(?x, ?y), not edge(?x, ?y), colour(?x, 'red')",
    "labelled(1, ?p, ?y), ?y != 2",
    "labelled(?x, 'red', ?x)",
    "colour(?x, _)",
    "edge(1, ?y), reach(?y, ?y)",
    "colour(4, 'blue')",
    "edge(1, _), colour(?x, 'red')",
    "edge(?x, ?y), ?z = ?x + ?y, edge(?z, _)",
)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("modules", [True, False])
def test_answers_are_those_of_a_new_knowledge_base(seed: int, *, modules: bool) -> None:
    rng = random.Random(seed)  # noqa: S311  scenarios, no secrets
    kb = KnowledgeBase(RULES, engine="embedded", modules=modules)
    edges: set[tuple[int, int]] = set()
    colours: set[tuple[int, str]] = set()
    for _ in range(12):
        edge = rng.randrange(6), rng.randrange(6)
        colour = rng.randrange(6), rng.choice(["red", "blue"])
        kb.update(
            insert={"edge": [edge], "colour": [colour]},
            delete={"edge": [old := rng.choice(sorted(edges))]} if edges else {},
            # This has other relations in the end, of which old programs know nothing.
            algorithm=rng.choice(["auto", "remat"]),
        )
        edges = (edges - {old} if edges else edges) | {edge}
        colours.add(colour)
        other = KnowledgeBase(RULES, engine="reference")
        other.load({"edge": sorted(edges), "colour": sorted(colours)})
        for text in QUESTIONS:
            wanted = sorted(other.query(text).to_list())
            assert sorted(kb.query(text).to_list()) == wanted, text


def test_from_the_second_time_on_few_answers_are_found_by_a_program() -> None:
    engine = EmbeddedEngine()
    kb = KnowledgeBase(RULES, engine=engine)
    kb.load({"edge": [(1, 2), (2, 3)], "colour": [(3, "red")]})
    text = "edge(1, ?y), colour(?z, 'red')"
    asked = []
    for _ in range(3):
        assert kb.query(text).to_list() == [(2, 3)]
        (known,) = engine.plans.answered.values()
        asked.append(known.program is not None)
    assert asked == [False, True, True]


def test_many_answers_are_found_in_batches() -> None:
    engine = EmbeddedEngine()
    kb = KnowledgeBase("pair(?x, ?y) :- left(?x), right(?y) .", engine=engine)
    kb.load({"left": [(n,) for n in range(300)], "right": [(n,) for n in range(300)]})
    for _ in range(3):
        assert len(kb.query("pair(?x, ?y), right(?x)")) == 90_000
    (known,) = engine.plans.answered.values()
    assert known.is_repeated
    assert known.program is None


def test_a_query_means_something_else_with_other_prefixes_and_parameters() -> None:
    kb = KnowledgeBase("@prefix : <http://a/> . p(:x, 1) . p(<http://b/x>, 2) .")
    text = "p(:x, ?y)"
    assert kb.query(text).to_list() == kb.query(text).to_list() == [(1,)]
    kb.update(add_rules="@prefix : <http://b/> . q(?y) :- p(:x, ?y) .")
    assert kb.query(text).to_list() == [(2,)]
    for value in (1, 2, 1):
        assert len(kb.query("p(?x, $y)", y=value)) == 1
    assert [len(kb.query("p(?x, $y)", y=value)) for value in (True, 1.0, 1)] == [
        0,
        0,
        1,
    ]


def test_a_predicate_that_comes_later_is_found() -> None:
    kb = KnowledgeBase("p(1) .")
    with pytest.raises(UnknownPredicateError):
        kb.query("q(?x)")
    kb.insert("q", [(2,)])
    assert kb.query("q(?x)").to_list() == [(2,)]


def test_what_was_not_asked_for_long_is_forgotten() -> None:
    kept = PreparedQueries()

    def ask(number: int) -> PreparedQuery:
        return kept.get(number, lambda: PreparedQuery((), (), ()))

    often, once, last = ask(0), ask(1), ask(2)
    for number in range(3, MOST_PREPARED + 1):
        last = ask(number)
        assert ask(0) is often
    assert ask(MOST_PREPARED) is last
    assert ask(1) is not once


def test_what_rules_have_derived_since_a_sample_is_not_taken_for_rare() -> None:
    engine = EmbeddedEngine()
    kb = KnowledgeBase("[?x, a, all] :- [?x, in, ?y] .", engine=engine)
    kb.insert("triple", [(f"x{n}", "in", f"y{n % 500}") for n in range(10_000)])
    assert len(kb.query("[?x, a, all], [?x, in, 'y1']")) == 20
    (known,) = engine.plans.answered.values()
    first, second = describe(known.prepared.plan)
    assert first.startswith('probe triple($0, "in", "y1")')
    assert second.startswith("require triple($0, ")


def test_answers_that_several_matches_have_are_given_once() -> None:
    engine = EmbeddedEngine()
    kb = KnowledgeBase(engine=engine)
    kb.load({"edge": [(1, 2), (1, 3), (2, 5), (3, 5), (3, 6)]})
    for _ in range(3):
        assert sorted(kb.query("edge(1, _), edge(?x, 5)").to_list()) == [(2,), (3,)]
    (known,) = engine.plans.answered.values()
    assert known.program is not None
