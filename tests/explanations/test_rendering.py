"""What people and programs get to see."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evermat import IRI, KnowledgeBase
from evermat.cli import DOES_NOT_HOLD, OK, WRONG_USAGE, run

if TYPE_CHECKING:
    from pathlib import Path

RULES = """\
@prefix : <http://e.org/> .
reach(?x, ?y) :- edge(?x, ?y) .
reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) .
ring(?x), [?x, a, :Ring] :- reach(?x, ?x) .
next(?x, ?n + 1) :- len(?x, ?m), ?n = ?m, ?n >= 2, not reach(?x, _), not blocked(?x) .
pair(?x) :- reach(?x, ?y), reach(?y, ?x), reach(?x, ?y) .
"""


@pytest.fixture
def kb() -> KnowledgeBase:
    kb = KnowledgeBase(RULES, engine="reference")
    kb.insert("edge", [("a", "b"), ("b", "c"), ("c", "d"), ("e", "e")])
    kb.insert("len", [("d", 3)])
    return kb


def test_text_of_a_proof(kb: KnowledgeBase) -> None:
    assert (
        str(kb.explain("reach(a, d)"))
        == """\
reach("a", "d")
  by reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) .   (line 3)
  with ?x = "a", ?y = "b", ?z = "d"
  - reach("a", "b")
      by reach(?x, ?y) :- edge(?x, ?y) .   (line 2)
      with ?x = "a", ?y = "b"
      - edge("a", "b")   explicit
  - reach("b", "d")
      by reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) .   (line 3)
      with ?x = "b", ?y = "c", ?z = "d"
      - reach("b", "c")
          by reach(?x, ?y) :- edge(?x, ?y) .   (line 2)
          with ?x = "b", ?y = "c"
          - edge("b", "c")   explicit
      - reach("c", "d")
          by reach(?x, ?y) :- edge(?x, ?y) .   (line 2)
          with ?x = "c", ?y = "d"
          - edge("c", "d")   explicit"""
    )


def test_computations_and_absent_facts_are_shown_as_written(kb: KnowledgeBase) -> None:
    assert (
        str(kb.explain("next(d, 4)"))
        == """\
next("d", 4)
  by next(?x, ?n + 1) :- len(?x, ?m), ?n = ?m, ?n >= 2, not reach(?x, _), \
not blocked(?x) .   (line 5)
  with ?x = "d", ?m = 3, ?n = 3
  where 3 = 3
  where 3 >= 2
  where 3 + 1 = 4
  there is no reach("d", _)
  there is no blocked("d")
  - len("d", 3)   explicit"""
    )


def test_what_is_needed_twice_is_shown_once(kb: KnowledgeBase) -> None:
    text = str(kb.explain("pair(e)"))
    assert text.count('reach("e", "e")') == 1
    kb.update(add_rules="both(?x) :- ring(?x), pair(?x) .")
    text = str(kb.explain("both(e)"))
    assert text.count('- reach("e", "e")\n') == 1
    assert text.count('- reach("e", "e")   see above') == 1
    assert text.count("edge") == 2  # the rule and the fact, once each


def test_one_head_of_several_is_shown(kb: KnowledgeBase) -> None:
    explanation = kb.explain("triple", ("e", IRI(RDF_TYPE), IRI("http://e.org/Ring")))
    first, second, *_ = str(explanation).splitlines()
    assert first == '["e", a, :Ring]'
    assert second == "  by [?x, a, :Ring] :- reach(?x, ?x) .   (line 4)"


RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def test_a_given_fact_needs_no_more_words(kb: KnowledgeBase) -> None:
    explanation = kb.explain("edge(a, b)")
    assert str(explanation) == 'edge("a", "b")   explicit'
    assert explanation.is_explicit
    assert explanation.height == 0
    assert explanation.derivation is None
    kb.insert("reach", [("a", "b")])
    assert kb.explain("reach(a, b)").is_explicit


def test_a_fact_that_does_not_hold(kb: KnowledgeBase) -> None:
    explanation = kb.explain("reach", ("d", "a"))
    assert not explanation
    assert str(explanation).startswith('reach("d", "a") does not hold\n')
    assert explanation.to_dict()["holds"] is False
    assert explanation.premises == ()
    assert "does not hold" in explanation.to_dot()


@pytest.mark.parametrize(
    ("fact", "remarks"),
    [
        ("edge(d, a)", []),
        ("ring(a)", ["with ?x = 'a'", "there is no reach('a', 'a')"]),
        ("pair(b)", ["with ?x = 'b', ?y = 'c', the first of 2 matches",
                     "there is no reach('c', 'b')"]),
        ("next(d, 5)", ["with ?x = 'd', ?m = 3, ?n = 3",
                        "it is not so that 5 = 3 + 1"]),
        (
            "next(k, 2)",
            [
                "with ?x = 'k', ?m = 1, ?n = 1",
                "it is not so that 1 >= 2: 1 too little",
            ],
        ),
        ("next(a, 8)", ["with ?x = 'a', ?m = 7, ?n = 7", "there is reach('a', _)"]),
        ("next(z, 3)", ["with ?x = 'z', ?m = 2, ?n = 2", "there is blocked('z')"]),
        ("next(y, 3)", ["with ?x = 'y'", "there is no len('y', ?m)"]),
    ],
)  # fmt: skip
def test_why_not(kb: KnowledgeBase, fact: str, remarks: list[str]) -> None:
    kb.load({"len": [("a", 7), ("z", 2), ("k", 1)], "blocked": [("z",)]})
    lines = [line.strip() for line in str(kb.explain(fact)).splitlines()]
    assert lines[0].endswith("does not hold")
    assert lines[2:] == [remark.replace("'", '"') for remark in remarks]


def test_why_not_says_how_far_each_rule_gets(kb: KnowledgeBase) -> None:
    assert (
        str(kb.explain("reach(b, a)"))
        == """\
reach("b", "a") does not hold
  - not by reach(?x, ?y) :- edge(?x, ?y) .   (line 2)
      with ?x = "b", ?y = "a"
      there is no edge("b", "a")
  - not by reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) .   (line 3)
      with ?x = "b", ?y = "c", ?z = "a", the first of 2 matches
      there is no reach("c", "a")"""
    )


def test_parts_of_an_explanation(kb: KnowledgeBase) -> None:
    explanation = kb.explain("reach(a, d)")
    assert explanation.predicate == "reach"
    assert explanation.row == ("a", "d")
    assert explanation.height == 3
    assert explanation.derivation is not None
    assert explanation.derivation.values == {"x": "a", "y": "b", "z": "d"}
    first, second = explanation.premises
    assert first.row == ("a", "b")
    assert [each.row for each in second.premises] == [("b", "c"), ("c", "d")]
    assert len(explanation.facts) == 8


def test_derivations_are_bounded(kb: KnowledgeBase) -> None:
    explanation = kb.explain("reach(a, d)", derivations=1)
    assert explanation.derivation_count == 2
    assert str(explanation).endswith("""
2 derivations in one step, 1 of them shown
  - by reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) .   (line 3)
      with ?x = "a", ?y = "b", ?z = "d"
      - reach("a", "b")
      - reach("b", "d")""")


def test_json_refers_to_premises_by_number(kb: KnowledgeBase) -> None:
    document = json.loads(kb.explain("reach(a, c)", derivations=5).to_json())
    assert document["holds"] is True
    assert document["height"] == 2
    steps = document["steps"]
    assert [step["fact"] for step in steps] == [
        'reach("a", "c")',
        'reach("a", "b")',
        'edge("a", "b")',
        'reach("b", "c")',
        'edge("b", "c")',
    ]
    assert steps[0]["premises"] == [1, 3]
    assert steps[0]["binding"] == {"x": '"a"', "y": '"b"', "z": '"c"'}
    assert steps[0]["place"] == "line 3"
    assert [step["explicit"] for step in steps] == [False, False, True, False, True]
    assert document["derivation_count"] == 1
    assert document["derivations"][0]["premises"] == [
        'reach("a", "b")',
        'reach("b", "c")',
    ]


def test_a_graph_has_every_fact_once(kb: KnowledgeBase) -> None:
    dot = kb.explain("reach(a, c)").to_dot()
    assert dot.startswith("digraph proof {")
    assert dot.count("shape=box") == 5
    assert dot.count("shape=point") == 3
    assert '[shape=box, label="reach(\\"a\\", \\"c\\")"];' in dot
    assert dot.count("fillcolor") == 2


# ------------------------------------------------------------------ command line


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    (tmp_path / "rules.dl").write_text(RULES)
    (tmp_path / "edge.csv").write_text("a,b\nb,c\n")
    monkeypatch.chdir(tmp_path)
    return ["explain", "rules.dl", "-f", "edge.csv", "--engine", "reference"]


def test_the_command_shows_files_and_lines(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, "reach(a, b)"]) == OK
    assert (
        capsys.readouterr().out
        == """\
reach("a", "b")
  by reach(?x, ?y) :- edge(?x, ?y) .   (rules.dl:2)
  with ?x = "a", ?y = "b"
  - edge("a", "b")   explicit
"""
    )


def test_the_command_writes_json_and_graphs(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, "reach(a, c)", "--json", "--derivations", "3"]) == OK
    assert json.loads(capsys.readouterr().out)["derivation_count"] == 1
    assert run([*arguments, "reach(a, c)", "--dot"]) == OK
    assert capsys.readouterr().out.startswith("digraph")
    assert run([*arguments, "reach(a, c)", "--dot", "--json"]) == WRONG_USAGE


def test_the_command_tells_what_does_not_hold(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, "reach(c, a)"]) == DOES_NOT_HOLD
    assert capsys.readouterr().out.startswith('reach("c", "a") does not hold\n')


def test_parts_of_explanations_can_be_read_in_a_console() -> None:
    kb = KnowledgeBase("p(?x) :- q(?x, ?y), not r(?x) . q(a, 1) . q(b, 1) . r(b) .")
    derivation = kb.explain("p(a)").derivation
    rule = "p(?x) :- q(?x, ?y), not r(?x) ."
    assert repr(derivation) == f'<Derivation by {rule} with ?x = "a", ?y = 1>'
    (failure,) = kb.explain("p(b)").failures
    assert repr(failure) == f'<Failure of {rule} at not r("b")>'
