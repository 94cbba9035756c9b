"""Closures over representatives: the same facts, without matching the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import evermat

if TYPE_CHECKING:
    from evermat.results.change import Change

RULES = """
    @prefix : <http://e.org/> .
    reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) .
    near(?x, ?z) :- near(?x, ?y), near(?y, ?z) .
    near(?y, ?x) :- near(?x, ?y) .
    seen(?x, ?z) :- seen(?x, ?y), step(?y, ?z) .
    reach(?x, ?y) :- near(?x, ?y), near(?y, ?x) .
    far(?x, ?y) :- reach(?x, ?y), not near(?x, ?y) .
    [?x, :below, ?z] :- [?x, :below, ?y], [?y, :below, ?z] .
    [?x, :under, ?z] :- [?x, :under, ?y], [?y, :under, ?z] .
"""
CHAIN = [(f"n{number}", f"n{number + 1}") for number in range(12)]


def _base(engine: str, *, modules: bool) -> tuple[evermat.KnowledgeBase, Change]:
    base = evermat.KnowledgeBase(
        RULES, equality="rewrite", engine=engine, modules=modules
    )
    iris = [
        tuple(evermat.IRI(f"http://e.org/{name}") for name in (left, prop, right))
        for left, right in CHAIN
        for prop in ("below", "under")
    ]
    change = base.load(
        {
            "reach": CHAIN,
            "near": [("n1", "m1"), ("m2", "m1")],
            "seen": [("m3", "n2"), ("n7", "n3")],
            "step": CHAIN,
            "triple": [
                *iris,
                *(
                    tuple(evermat.IRI(each) for each in row)
                    for row in (
                        (
                            "http://e.org/below",
                            "http://www.w3.org/2002/07/owl#sameAs",
                            "http://e.org/under",
                        ),
                        (
                            "http://e.org/n3",
                            "http://www.w3.org/2002/07/owl#sameAs",
                            "http://e.org/n9",
                        ),
                    )
                ),
            ],
        }
    )
    return base, change


@pytest.mark.parametrize("algorithm", ["bf", "dred", "remat"])
def test_oracle_closures_lead_to_the_same_facts(
    engine_name: str, algorithm: str
) -> None:
    plain, _ = _base(engine_name, modules=False)
    closing, _ = _base(engine_name, modules=True)
    first = {"reach": CHAIN[3:5]}
    near, far = {"near": [("n1", "m1")]}, {"near": [("n4", "m2")]}
    for change in (({}, {}), (first, {}), (near, far)):
        for base in (plain, closing):
            base.update(delete=change[0], insert=change[1], algorithm=algorithm)
        assert _everything(closing) == _everything(plain)


def _everything(base: evermat.KnowledgeBase) -> set[tuple[object, ...]]:
    return {
        (name, *row)
        for name in ("reach", "near", "seen", "far", "triple")
        for row in base.facts(name)
    }


def test_law_closures_do_not_match_their_rules() -> None:
    _, plain = _base("embedded", modules=False)
    _, closing = _base("embedded", modules=True)
    assert closing.report.forward_instances < plain.report.forward_instances / 3
