"""Updates through the public interface: exact changes, rules that change, dry runs."""

from __future__ import annotations

import pytest

from evermat import EvermatError, KnowledgeBase, Rule, predicate, variables
from evermat.lang.catalogue import ArityClashError, UnknownPredicateError
from evermat.maintenance.algorithms import NAMES

REACH = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""


@pytest.fixture
def kb(engine_name: str) -> KnowledgeBase:
    kb = KnowledgeBase(REACH, engine=engine_name)
    kb.load({"edge": [("a", "b"), ("b", "c"), ("c", "d"), ("a", "c")]})
    return kb


@pytest.mark.parametrize("algorithm", [name for name in NAMES if name != "counting"])
def test_agree_every_algorithm_reports_the_same_change(
    kb: KnowledgeBase, algorithm: str
) -> None:
    change = kb.update(
        delete={"edge": [("b", "c")]},
        insert={"edge": [("d", "a")]},
        algorithm=algorithm,
    )
    assert set(change.removed("edge")) == {("b", "c")}
    assert set(change.removed("reach")) == {("b", "c"), ("b", "d")}
    came = ["aa", "ca", "cb", "cc", "da", "db", "dc", "dd"]
    assert set(change.added("reach")) == {tuple(pair) for pair in came}


def test_explicit_and_derived_changes_are_told_apart(kb: KnowledgeBase) -> None:
    change = kb.insert("reach", [("a", "b"), ("x", "a")])
    assert set(change.added("reach")) == {("x", y) for y in "abcd"}
    assert set(change.added("reach", "explicit")) == {("x", "a")}
    assert set(change.added("reach", "derived")) == {("x", y) for y in "bcd"}
    assert set(change.inserted("reach")) == {("a", "b"), ("x", "a")}
    change = kb.delete("reach", [("a", "b"), ("x", "a")])
    assert set(change.deleted("reach")) == {("a", "b"), ("x", "a")}
    assert set(change.removed("reach", "explicit")) == {("x", "a")}
    assert kb.contains("reach", ("a", "b"))


def test_a_row_deleted_and_inserted_at_once_stays(kb: KnowledgeBase) -> None:
    change = kb.update(delete={"edge": [("a", "b")]}, insert={"edge": [("a", "b")]})
    assert change.is_empty()
    assert repr(change) == "<Change nothing>"


def test_requests_without_effect_are_counted(kb: KnowledgeBase) -> None:
    change = kb.update(
        insert={"edge": [("a", "b")]}, delete={"edge": [("z", "z")]}, add_rules=REACH
    )
    assert change.is_empty()
    ignored = change.report.ignored
    assert (ignored.insertions, ignored.deletions, ignored.rules) == (1, 1, 2)


def test_rules_come_and_go(kb: KnowledgeBase) -> None:
    change = kb.update(add_rules="back(?y, ?x) :- reach(?x, ?y) .")
    assert set(change.added("back")) == {(y, x) for x, y in kb.facts("reach")}
    change = kb.update(remove_rules="reach(?p, ?r) :- reach(?p, ?q), edge(?q, ?r) .")
    assert set(change.removed("reach")) == {("a", "d"), ("b", "d")}
    assert set(change.removed("back")) == {("d", "a"), ("d", "b")}


def test_removing_the_last_rule_keeps_explicit_facts(engine_name: str) -> None:
    kb = KnowledgeBase("p(a) . q(b) . p(?x) :- q(?x) .", engine=engine_name)
    change = kb.update(remove_rules="p(?x) :- q(?x) .")
    assert set(kb.facts("p")) == {("a",)}
    assert set(change.removed("p")) == {("b",)}


def test_facts_among_rules_are_inserted_and_deleted(kb: KnowledgeBase) -> None:
    kb.update(add_rules="edge(d, e) . near(?x) :- edge(?x, e) .")
    assert set(kb.facts("near")) == {("d",)}
    kb.update(remove_rules="edge(d, e) .")
    assert kb.count("near") == 0


def test_rules_can_be_objects(kb: KnowledgeBase) -> None:
    x, y = variables("x y")
    start, edge = predicate("start"), predicate("edge")
    kb.update(add_rules=Rule(heads=(start(x),), body=(edge(x, y),)))
    assert set(kb.facts("start")) == {("a",), ("b",), ("c",)}
    kb.update(add_rules=[Rule(heads=(start("z"),), body=())])
    assert kb.contains("start", ("z",))


def test_a_plan_changes_nothing(kb: KnowledgeBase) -> None:
    before = set(kb.facts("reach"))
    planned = kb.plan(
        delete={"edge": [("a", "b")]}, add_rules="new(?x) :- edge(?x, _) ."
    )
    assert not planned.applied
    assert set(planned.removed("reach")) == {("a", "b")}
    assert set(planned.added("new")) == {("a",), ("b",), ("c",)}
    assert planned.report.forward_instances > 0
    assert set(kb.facts("reach")) == before
    assert "new" not in kb.predicates
    assert repr(planned).startswith("<Planned change")


def test_a_change_is_a_snapshot(kb: KnowledgeBase) -> None:
    change = kb.delete("edge", [("c", "d")])
    held = kb.facts("reach")
    before = set(held)
    kb.insert("edge", [("c", "d"), ("d", "e")])
    assert set(change.removed("reach")) == {("c", "d"), ("a", "d"), ("b", "d")}
    assert set(held) == before


def test_changes_know_their_predicates(kb: KnowledgeBase) -> None:
    change = kb.insert("edge", [("d", "e")])
    assert change.predicates == ("edge", "reach")
    assert change.sizes == {"edge": (1, 0), "reach": (4, 0)}
    with pytest.raises(UnknownPredicateError):
        change.added("raech")
    with pytest.raises(EvermatError, match="EM558"):
        change.added("reach", "some")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"delete": {"egde": [("a", "b")]}}, "EM251"),
        ({"remove_rules": "reach(?x, ?y) :- edge(?y, ?x) ."}, "has no rule"),
        ({"remove_rules": "egde(a, b) ."}, "EM251"),
        ({"add_rules": "p(?x, ?y) :- edge(?x, _) ."}, "EM201"),
        ({"add_rules": "edge(?x, ?x) :- node(?x), not reach(?x, ?x) ."}, "EM301"),
        ({"add_rules": "p(?x) :- edge(?x) ."}, "EM250"),
        ({"add_rules": "p(?x :- edge(?x, _) ."}, "EM101"),
        ({"insert": {"edge": [("a", None)]}}, "EM701"),
        ({"insert": {"edge": "a,b"}}, "EM719"),
        ({"insert": {"edge": [(object(), "b")]}}, "EM402"),
        ({"insert": [("a", "b")]}, "EM557"),
        ({"insert": {"~p": [("a", "b")]}}, "EM253"),
        ({"insert": {7: [("a", "b")]}}, "EM253"),
        ({"algorithm": "quick"}, "no algorithm"),
    ],
)  # fmt: skip
def test_wrong_requests_change_nothing(
    kb: KnowledgeBase, arguments: dict[str, object], code: str
) -> None:
    facts, rules = set(kb.facts("reach")), kb.rules
    with pytest.raises(EvermatError, match=code):
        kb.update(**({"insert": {"edge": [("y", "z")]}} | arguments))  # type: ignore[arg-type]
    assert set(kb.facts("reach")) == facts
    assert kb.rules == rules
    assert not kb.contains("edge", ("y", "z"))
    kb.insert("edge", [("y", "z")])
    assert kb.contains("reach", ("y", "z"))


def test_a_failed_update_leaves_predicates_unknown(kb: KnowledgeBase) -> None:
    with pytest.raises(ArityClashError):
        kb.update(insert={"fresh": [(1, 2)], "edge": [(1, 2, 3)]})
    assert "fresh" not in kb.predicates
    kb.insert("fresh", [(1, 2, 3)])
    assert kb.contains("fresh", (1, 2, 3))
