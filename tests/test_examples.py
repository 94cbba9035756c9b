"""The examples run, and give what they promise."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path

import pytest

from evermat import IRI, KnowledgeBase
from evermat.cli import run
from evermat.maintenance.modules import unregister_module

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
MUSEUM = "http://example.org/museum#"


def access(engine: str) -> KnowledgeBase:
    kb = KnowledgeBase(EXAMPLES / "access" / "rules.dl", engine=engine)
    files = (EXAMPLES / "access" / "facts").glob("*.csv")
    kb.load({file.stem: file for file in files})
    return kb


def test_access_rights_follow_a_reorganisation() -> None:
    kb = access("embedded")
    update = tomllib.loads((EXAMPLES / "access" / "monday.toml").read_text())
    change = kb.update(insert=update["insert"], delete=update["delete"])
    fresh = access("embedded")
    fresh.update(insert=update["insert"], delete=update["delete"], algorithm="remat")
    for predicate in kb.predicates:
        assert set(kb.facts(predicate)) == set(fresh.facts(predicate))
    assert set(change.removed("within")) == {("team-12", "dept-9")}
    assert len(change.removed("may_open")) > 100


def contents(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}


def test_access_facts_are_what_their_script_writes(tmp_path: Path) -> None:
    script = runpy.run_path(str(EXAMPLES / "access" / "make_facts.py"))
    script["main"].__globals__["FOLDER"] = tmp_path
    script["main"]()
    assert contents(tmp_path) == contents(EXAMPLES / "access" / "facts")


def test_the_module_of_the_example_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    script = runpy.run_path(str(EXAMPLES / "symmetric_module.py"))
    script["main"]()
    unregister_module(script["find_symmetric"])
    assert "<Change in_law -2, married -2>" in capsys.readouterr().out


def test_flights_are_advised(engine_name: str) -> None:
    kb = KnowledgeBase(EXAMPLES / "flights" / "rules.dl", engine=engine_name)
    kb.load({"flight": EXAMPLES / "flights" / "flight.csv"})
    assert kb.query("cheapest('Lisbon', 'Warsaw', ?p)").to_list() == [(190,)]
    update = tomllib.loads((EXAMPLES / "flights" / "strike.toml").read_text())
    change = kb.update(
        insert={
            name: list(map(tuple, rows)) for name, rows in update["insert"].items()
        },
        delete={
            name: list(map(tuple, rows)) for name, rows in update["delete"].items()
        },
    )
    assert ("Lisbon", "Oslo", 210) not in kb.facts("cheapest")
    assert ("Rome", "Berlin", "Rome to Berlin for 90") in change.added("advice")


def test_the_museum_knows_what_is_abroad(engine_name: str) -> None:
    kb = KnowledgeBase(EXAMPLES / "museum" / "rules.dl", engine=engine_name)
    kb.load(rdf=EXAMPLES / "museum" / "museum.ttl")
    abroad = {tuple(str(term) for term in row) for row in kb.facts("abroad")}
    assert abroad == {
        (MUSEUM + "three_bridges", MUSEUM + "Netherlands"),
        (MUSEUM + "sleeping_fox", MUSEUM + "Italy"),
    }
    assert kb.contains("influenced", (IRI(MUSEUM + "mina"), IRI(MUSEUM + "omar")))
    assert len(kb.query("[?work, rdf:type, :Work]")) == 3


def test_rights_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "why.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert 'there is no suspended("ann")' in shown
    assert shown.endswith('there is suspended("bob")\n')


def test_the_script_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "stock_levels.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert "bike needs" in shown
    assert "no longer short" in shown


@pytest.mark.parametrize("arguments", [
    ["access/rules.dl", "--facts", "access/facts", "--then", "access/monday.toml",
     "--then", "access/tuesday.toml"],
    ["flights/rules.dl", "--facts", "flights/flight.csv", "--then",
     "flights/strike.toml"],
    ["museum/rules.dl", "--facts", "museum/museum.ttl"],
], ids=["access", "flights", "museum"])  # fmt: skip
def test_examples_run_from_the_shell(
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(EXAMPLES)
    assert run(["run", *arguments]) == 0
    assert "materialised" in capsys.readouterr().out


@pytest.mark.parametrize("rules", sorted(EXAMPLES.glob("*/*.dl")), ids=str)
def test_examples_are_clean_and_formatted(rules: Path) -> None:
    assert run(["check", "--strict", str(rules)]) == 0
    assert run(["fmt", "--check", str(rules)]) == 0


def test_distances_and_control_follow_roads_and_shares() -> None:
    kb = runpy.run_path(str(EXAMPLES / "aggregates.py"))["kb"]
    assert set(kb.query("distance(north, ?y, ?c)")) == {
        ("north", 0),
        ("port", 1),
        ("mill", 5),
    }
    assert set(kb.query("controls(a, ?y)")) == set()
    assert set(kb.query("reached(north, ?n)")) == {(3,)}
