"""Questions that cannot be explained are refused, with advice."""

from __future__ import annotations

import pytest

from evermat import KnowledgeBase
from evermat.errors import EvermatError
from evermat.explain.proofs import SearchLimitError
from evermat.lang.catalogue import ArityClashError, UnknownPredicateError

RULES = (
    "reach(?x, ?y) :- edge(?x, ?y) . reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) ."
)


@pytest.fixture
def kb(engine_name: str) -> KnowledgeBase:
    kb = KnowledgeBase(RULES, engine=engine_name)
    kb.insert("edge", [(n, n + 1) for n in range(20)])
    return kb


@pytest.mark.parametrize(
    ("fact", "code", "words"),
    [
        ("rech(1, 2)", "EM251", "did you mean `reach`"),
        ("reach(1)", "EM250", "has 2 arguments"),
        ("reach(1, ?x)", "EM252", "constants only"),
        ("reach(1, _)", "EM252", "constants only"),
        ("reach(1, ?x + 1)", "EM252", "constants only"),
        ("reach(1, 2), reach(2, 3)", "EM252", "is not a fact"),
        ("not reach(1, 2)", "EM252", "is not a fact"),
        ("1 < 2", "EM252", "is not a fact"),
        ("reach(1, 2", "EM101", ""),
        ("", "EM101", ""),
    ],
)
def test_what_is_no_fact_is_refused(
    kb: KnowledgeBase, fact: str, code: str, words: str
) -> None:
    with pytest.raises(EvermatError) as caught:
        kb.explain(fact)
    assert caught.value.code == code
    assert words in str(caught.value)


def test_rows_are_checked(kb: KnowledgeBase) -> None:
    with pytest.raises(UnknownPredicateError):
        kb.explain("rech", (1, 2))
    with pytest.raises(ArityClashError):
        kb.explain("reach", (1, 2, 3))
    with pytest.raises(EvermatError, match="not a tuple"):
        kb.explain("reach", "ab")
    with pytest.raises(EvermatError, match="cannot be stored"):
        kb.explain("reach", (1, object()))


def test_values_are_computed_before(kb: KnowledgeBase) -> None:
    assert kb.explain("reach(1, 1 + 1)").row == (1, 2)


def test_the_search_stops_at_its_limit(kb: KnowledgeBase) -> None:
    with pytest.raises(SearchLimitError, match="raise the limit") as caught:
        kb.explain("reach(0, 20)", limit=3)
    assert caught.value.code == "EM609"
    assert kb.explain("reach(0, 20)").height == 6
    assert kb.insert("edge", [(20, 21)]).added("reach")


def test_explaining_changes_nothing(kb: KnowledgeBase) -> None:
    before = contents(kb)
    kb.explain("reach(0, 20)", derivations=3)
    kb.explain("reach(77, 78)")
    assert contents(kb) == before


def contents(kb: KnowledgeBase) -> list[object]:
    return [
        (name, sorted(kb.facts(name)), sorted(kb.counters(name)))
        for name in kb.predicates
    ]


def test_names_that_were_never_heard_of_do_no_harm(kb: KnowledgeBase) -> None:
    assert not kb.explain("reach(never, heard)")
    assert not kb.explain("edge", ("never", "heard"))


def test_progress_is_told() -> None:
    phases: set[str] = set()
    kb = KnowledgeBase(RULES, progress=lambda step: phases.add(step.phase))
    kb.insert("edge", [(1, 2), (2, 3)])
    phases.clear()
    kb.explain("reach(1, 3)")
    assert phases == {"explain"}
