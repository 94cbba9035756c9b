"""Contradictions are maintained, explained, hidden among predicates, and refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evermat import IRI, KnowledgeBase
from evermat.errors import ParseError
from evermat.kb.contradictions import (
    ContradictionError,
    ContradictionWarning,
    UnknownPolicyError,
)
from evermat.lang.parser import parse_program

if TYPE_CHECKING:
    from pathlib import Path

    from evermat.kb.contradictions import Policy
    from evermat.kb.equality import Equality

RULES = """
@prefix : <http://e/> .
b(?x) :- a(?x) .
false("b and c", ?x) :- b(?x), c(?x) .
false :- p(?x), not q(?x) .
"""
MODES = pytest.mark.parametrize("equality", ["off", "axioms", "rewrite"])


def texts(kb: KnowledgeBase) -> set[str]:
    return {str(each) for each in kb.contradictions()}


def made(engine: str, equality: Equality, policy: Policy = "ignore") -> KnowledgeBase:
    return KnowledgeBase(
        RULES,
        engine=engine,
        equality=equality,
        contradictions=policy,
    )


@MODES
def test_contradictions_come_and_leave_with_their_causes(
    engine_name: str, equality: Equality
) -> None:
    kb = made(engine_name, equality)
    change = kb.update(insert={"a": [("x",), ("y",)], "c": [("x",)], "p": [(1,)]})
    assert texts(kb) == {'false("b and c", "x")', "false"}
    assert change.contradictions == (2, 0)
    assert kb.stats()["contradictions"] == 2
    assert set(kb.predicates) == {"a", "b", "c", "p", "q"} | (
        {"same_as"} if equality == "axioms" else set()
    )
    assert not any("~" in name for name in change.sizes)
    change = kb.update(insert={"q": [(1,)], "c": [("y",)]}, delete={"a": [("x",)]})
    assert texts(kb) == {'false("b and c", "y")'}
    assert change.contradictions == (1, 2)
    kb.update(remove_rules='false("b and c", ?x) :- b(?x), c(?x) .')
    assert texts(kb) == set()


@MODES
def test_contradictions_have_proofs(engine_name: str, equality: Equality) -> None:
    kb = made(engine_name, equality)
    kb.update(insert={"a": [("x",)], "c": [("x",)]})
    (found,) = kb.contradictions()
    assert found.arguments == ("b and c", "x")
    proved = {each.relation for each in found.explain().facts}
    assert proved >= {"a", "b", "c"}


@MODES
def test_updates_that_bring_contradictions_are_refused(
    engine_name: str, equality: Equality
) -> None:
    kb = made(engine_name, equality, "refuse")
    kb.insert("a", [("x",)])
    before = {name: set(kb.facts(name)) for name in kb}
    with pytest.raises(ContradictionError) as told:
        kb.update(insert={"c": [("x",)], "p": [(1,)]})
    assert told.value.count == 2
    assert told.value.explanation is not None
    assert "there is no q(1)" in str(told.value)
    assert {name: set(kb.facts(name)) for name in kb} == before
    assert kb.update(insert={"p": [(1,)], "q": [(1,)]}).contradictions == (0, 0)
    with pytest.raises(ContradictionError):
        kb.delete("q", [(1,)])
    with pytest.raises(ContradictionError):
        kb.update(add_rules="false :- b(?x) .")
    assert texts(kb) == set()


def test_refused_updates_make_no_version_of_a_state(tmp_path: Path) -> None:
    kb = KnowledgeBase(RULES, state=tmp_path / "kept", contradictions="refuse")
    kb.insert("a", [("x",)])
    version = kb.version
    with pytest.raises(ContradictionError):
        kb.insert("c", [("x",)])
    assert kb.version == version
    opened = KnowledgeBase.open(tmp_path / "kept", contradictions="ignore")
    opened.insert("c", [("x",)])
    opened = KnowledgeBase.open(tmp_path / "kept", contradictions="refuse")
    assert texts(opened) == {'false("b and c", "x")'}
    # What is there already is no reason to refuse other updates.
    assert opened.insert("a", [("y",)]).contradictions == (0, 0)
    assert opened.delete("a", [("x",)]).contradictions == (0, 1)


def test_the_default_is_to_warn() -> None:
    kb = KnowledgeBase(RULES)
    with pytest.warns(ContradictionWarning, match=r"2 contradictions: false, "):
        kb.update(insert={"p": [(1,)], "a": [("x",)], "c": [("x",)]})


def test_equal_constants_contradict_once() -> None:
    kb = KnowledgeBase(RULES, contradictions="ignore")
    kb.update(insert={"a": [("x",)], "c": [("y",)], "same_as": [("x", "y")]})
    (found,) = kb.contradictions()
    assert {each.relation for each in found.explain().facts} >= {"same_as"}
    assert kb.delete("same_as", [("x", "y")]).contradictions == (0, 1)
    assert kb.contradictions() == []


def test_a_plan_counts_contradictions() -> None:
    kb = KnowledgeBase(RULES, contradictions="refuse")
    kb.insert("a", [("x",)])
    assert kb.plan(insert={"c": [("x",)]}).contradictions == (1, 0)
    assert kb.contradictions() == []


def test_rules_with_the_head_false_are_printed_as_they_are_read() -> None:
    program = parse_program(RULES)
    assert str(parse_program(str(program))) == str(program)
    assert "false :- p(?x), not q(?x) ." in str(program)


@pytest.mark.parametrize("text", ["false .", 'false("x", 1) .', "a(1), false ."])
def test_false_is_no_fact(text: str) -> None:
    with pytest.raises(ParseError, match="is no fact"):
        parse_program(text)


def test_a_policy_must_exist() -> None:
    with pytest.raises(UnknownPolicyError):
        KnowledgeBase(contradictions="never")  # type: ignore[arg-type]


def test_contradictions_of_triples_show_prefixes() -> None:
    kb = KnowledgeBase(
        "@prefix : <http://e/> . false(:p, ?x) :- [?x, :p, ?x] .",
        contradictions="ignore",
    )
    kb.insert("triple", [(IRI("http://e/x"), IRI("http://e/p"), IRI("http://e/x"))])
    assert texts(kb) == {"false(:p, :x)"}
