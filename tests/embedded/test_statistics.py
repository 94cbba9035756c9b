"""What samples tell, and what plans make of it."""

from __future__ import annotations

import numpy as np
import pytest

from evermat import IRI, KnowledgeBase
from evermat.algebra.compile import compile_rules
from evermat.engines.embedded import batch
from evermat.engines.embedded.planner import SAMPLE, Statistics, describe, make_plan
from evermat.lang.normalise import normalise
from evermat.lang.parser import parse_rules

FREQUENT, RARE = 1, 2
MANY = 64 * SAMPLE


def _skewed() -> Statistics:
    """Many rows of which nearly all have the same value, and the others one each."""
    column = np.full(MANY, FREQUENT, np.uint32)
    column[::100] = 1_000 + np.arange(column[::100].size)
    return Statistics(np.stack([np.arange(MANY, dtype=np.uint32), column]))


def test_frequent_values_are_told_from_rare_ones() -> None:
    statistics = _skewed()
    assert statistics.frequency({1: FREQUENT}) == pytest.approx(0.99 * MANY, rel=0.05)
    assert statistics.frequency({1: RARE}) <= MANY / SAMPLE
    assert statistics.fan_out((1,)) < MANY / SAMPLE


def test_few_rows_are_counted_exactly() -> None:
    statistics = Statistics(np.array([[1, 1, 2], [5, 6, 5]], np.uint32))
    assert statistics.frequency({0: 1}) == 2
    assert statistics.frequency({0: 1, 1: 6}) == 1
    assert statistics.fan_out((0,)) == 1.5


def test_nothing_is_known_of_no_rows() -> None:
    statistics = Statistics(np.empty((2, 0), np.uint32))
    assert statistics.fan_out((0,)) == 0.0
    assert statistics.frequency({0: 1}) == 0.0


AXIOMS = "\n".join(
    f"[?x, rdf:type, :super{number}] :- [?x, rdf:type, :sub{number}]."
    for number in range(8)
)
PREFIXES = """
@prefix : <http://example.org/>.
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>.
"""


def _members(classes: int, size: int) -> list[tuple[IRI, IRI, IRI]]:
    kind = IRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    return [
        (_thing(f"x{number}"), kind, _thing(f"sub{number % classes}"))
        for number in range(size)
    ]


def _thing(name: str) -> IRI:
    return IRI(f"http://example.org/{name}")


def test_classes_are_read_before_the_many_facts_about_types() -> None:
    base = KnowledgeBase(PREFIXES + AXIOMS)
    rare = [(_thing("x"), _thing(f"p{at}"), _thing("y")) for at in range(20_000)]
    base.load({"triple": [*_members(classes=1_000, size=20_000), *rare]})
    plan = str(base.explain_plan())
    assert plan.index("8 inline rows by nothing") < plan.index("probe triple")


@pytest.mark.parametrize(("rules", "by"), [(8, "1, 2"), (9, "2")])
def test_few_inline_rows_need_no_index_of_their_own(rules: int, by: str) -> None:
    """A change that knows none of them is looked up as unfolded rules would do it."""
    text = PREFIXES + "\n".join(
        f"[?x, :likes, :art{at}] :- [?x, :made{at}, ?y], [?y, rdf:type, :picture]."
        for at in range(rules)
    )
    normal = normalise(parse_rules(text))
    queries = compile_rules(normal, lambda _rule, _atom: False).delta.queries
    query = next(each for each in queries if each.changed is each.positive[1])
    plan = make_plan(query, lambda *_: 1.5, lambda *_: 9.0, lambda _: 1000)
    assert f"by columns {by}" in " | ".join(describe(plan))


@pytest.mark.parametrize("length", [20, 100])
def test_an_atom_is_weighed_only_when_what_it_joins_with_is_bound(length: int) -> None:
    """A deletion plans one query for each atom; long rules took a minute."""
    body = ", ".join(f"edge(?x{at}, ?x{at + 1})" for at in range(length))
    normal = normalise(parse_rules(f"far(?x0, ?x{length}) :- {body} ."))
    weighed = []

    def fan_out(relation: str, columns: tuple[int, ...]) -> float:
        weighed.append((relation, columns))
        return 1.5

    queries = compile_rules(normal, lambda _rule, _atom: False).delta.queries
    plan = make_plan(queries[length // 2], fan_out, lambda *_: 9.0, lambda _: 1000)
    assert len(plan.steps) == length
    assert len(weighed) <= 2 * length


def test_what_few_classes_have_is_shared_by_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pieces of one class and of several make the same whole."""
    facts = {"triple": _members(classes=3, size=5_000)}
    alone = KnowledgeBase(PREFIXES + AXIOMS)
    alone.load(facts)
    monkeypatch.setattr(batch, "ALONE", 100)
    monkeypatch.setattr(batch, "SHARE", 300)
    shared = KnowledgeBase(PREFIXES + AXIOMS)
    shared.load(facts)
    assert set(shared.facts("triple")) == set(alone.facts("triple"))
    assert shared.count("triple") == 10_000
