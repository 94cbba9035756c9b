"""Profiles count what rules do; audits find what is not as it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from evermat import KnowledgeBase
from evermat.cli import run
from evermat.kb.audit import audit

if TYPE_CHECKING:
    from pathlib import Path

RULES = """
open(?who, ?door) :- member(?who, ?group), key(?group, ?door), not lost(?who) .
twin(?x, ?y) :- member(?x, ?group), member(?y, ?group) .
reach(?x, ?y) :- key(?x, ?y) .
reach(?x, ?z) :- reach(?x, ?y), key(?y, ?z) .
"""


def doors(engine_name: str) -> KnowledgeBase:
    kb = KnowledgeBase(RULES, engine=engine_name)
    kb.load(
        {
            "member": [(who, who % 3) for who in range(9)]
            + [(0, 1), (1, 0)],
            "key": [(0, "a"), (1, "a"), (1, "b"), ("a", "c")],
            "lost": [(4,)],
        }
    )  # fmt: skip
    return kb


def test_instances_facts_and_duplicates_are_those_of_the_rules(
    engine_name: str,
) -> None:
    kb = doors(engine_name)
    members = kb["member"].to_list()
    pairs = [(x, door) for x, g in members for h, door in kb["key"].to_list() if g == h]
    alive = [pair for pair in pairs if pair[0] != 4]
    opened = next(each for each in kb.profile().rules if each.rule.startswith("open"))
    assert opened.facts == kb.count("open") == len(set(alive))
    assert opened.instances == len(alive)
    assert opened.duplicates == len(alive) - len(set(alive)) > 0
    assert {join.atom.partition("(")[0] for join in opened.joins} == {"member", "key"}
    assert opened.joins[-1].matches == len(pairs)
    assert "?who" in str(opened.joins)
    twins = next(each for each in kb.profile().rules if each.rule.startswith("twin"))
    assert twins.instances == sum(1 for _, g in members for _, h in members if g == h)
    assert twins.slowest_join in twins.joins


def test_a_profile_is_a_plot_with_a_bar_for_each_rule_that_is_applied(
    engine_name: str,
) -> None:
    found = doors(engine_name).profile()
    applied = [each for each in found.rules if each.module is None]
    plot = ET.fromstring(found.to_svg())  # noqa: S314  our own
    bars = plot.findall(".//{*}rect")
    assert len(bars) == len(applied) > 1
    lengths = [float(bar.get("width", "nan")) for bar in bars]
    assert lengths == sorted(lengths, reverse=True)
    titles = {each.text for each in plot.findall("{*}g/{*}title")}
    assert titles == {each.rule for each in applied}
    assert found._repr_html_().startswith("<svg")


def test_joins_are_shown_in_the_variables_of_the_rule(engine_name: str) -> None:
    kb = KnowledgeBase("used(?x) :- key(?x, _), member(_, ?x) .", engine=engine_name)
    kb.load({"key": [(1, "a")], "member": [("ann", 1)]})
    (rule,) = kb.profile().rules
    assert {join.atom for join in rule.joins} == {"key(?x, _)", "member(_, ?x)"}


def test_a_profile_is_a_table_and_changes_nothing(engine_name: str) -> None:
    kb = doors(engine_name)
    before = {name: set(kb[name]) for name in kb}
    text = str(kb.profile())
    assert text.splitlines()[0].split()[:3] == ["rule", "time", "instances"]
    assert "<table>" in kb.profile()._repr_html_()
    assert {name: set(kb[name]) for name in kb} == before
    kb.delete("key", [(1, "a")])
    assert kb.audit()


@pytest.mark.parametrize("equality", ["auto", "rewrite"])
def test_what_is_maintained_passes_the_audit(equality: str) -> None:
    kb = KnowledgeBase(
        "a(?x) :- b(?x), not c(?x) . ?x ≈ ?y :- same(?x, ?y) .",
        equality=equality,  # type: ignore[arg-type]
    )
    kb.load({"b": [("p",), ("q",)], "c": [("p",)], "same": [("q", "r")]})
    kb.delete("c", [("p",)])
    kb.delete("same", [("q", "r")])
    kb.insert("same", [("p", "r")])
    found = kb.audit()
    assert found, found
    assert "no difference" in str(found)


def test_what_differs_fails_the_audit() -> None:
    kb, other = doors("reference"), doors("reference")
    other.insert("lost", [(7,)])
    found = audit(kb, other)
    assert not found
    by_name = {(each.what, each.predicate): each for each in found.differences}
    opened = by_name["facts", "open"]
    assert (opened.excess, opened.missing) == (2, 0)
    assert set(opened.examples) == {'+ open(7, "a")', '+ open(7, "b")'}
    assert by_name["explicit facts", "lost"].missing == 1
    assert by_name["counters", "open"].excess == 2
    assert "too many" in str(found)


def test_profiles_and_audits_from_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules.dl"
    rules.write_text("q(?x) :- p(?x), not r(?x) . p(1) . p(2) . r(1) .")
    store = str(tmp_path / "kept")
    assert run(["run", str(rules), "--store", store, "--profile"]) == 0
    assert "q(?x) :- p(?x), not r(?x) ." in capsys.readouterr().out
    assert run(["store", "audit", store]) == 0
    assert "no difference" in capsys.readouterr().out
