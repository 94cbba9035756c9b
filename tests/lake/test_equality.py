"""A state where one constant stands for all that are equal to it."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import evermat
from evermat import lake
from evermat.algebra.equality import UnequalValuesError
from evermat.lake.errors import ReadOnlyStateError, StateConflictError
from evermat.lake.layout import CLIQUES, FACTS
from evermat.lake.table import StateTable

if TYPE_CHECKING:
    from pathlib import Path

    from evermat import KnowledgeBase
    from evermat.results.change import Change

RULES = """
    ?x ≈ ?y :- email(?x, ?a), email(?y, ?a) .
    ?x ≈ ?y :- code(?x, ?y), sure() .
    email(?x, ?a) :- profile(?p, ?x), email(?p, ?a) .
    meets(?x, ?z) :- knows(?x, ?y), knows(?y, ?z) .
    alone(?x) :- person(?x), not knows(?x, ?y) .
    any() :- meets(?x, ?y) .
"""
PEOPLE = ["ann", "bob", "cem", "dee", "eva"]
GIVEN = {
    "email": [("ann", "a@"), ("bob", "b@"), ("cem", "a@")],
    "knows": [("ann", "bob"), ("bob", "dee"), ("dee", "cem")],
    "person": [("ann",), ("eva",)],
}


def contents(kb: KnowledgeBase) -> dict[str, Any]:
    """Everything that a knowledge base holds, and what stands for what."""
    found: dict[str, Any] = {
        name: (set(kb.facts(name)), set(kb.facts(name, "explicit")))
        for name in kb.predicates
        if kb.count(name)
    }
    return found | {"rules": {str(rule) for rule in kb.rules}}


def kept(kb: KnowledgeBase) -> tuple[set[Any], dict[str, int]]:
    """What stands for what, and how much is kept."""
    sizes = kb.stats()["predicates"]
    facts = {name: size["facts"] for name, size in sizes.items() if size["facts"]}
    return set(kb.representatives()), facts


def made(path: Path, engine_name: str = "embedded", **more: Any) -> KnowledgeBase:
    kb = evermat.KnowledgeBase(RULES, engine=engine_name, state=path, **more)
    kb.load(GIVEN)
    return kb


def opened(path: Path, engine_name: str = "embedded", **more: Any) -> KnowledgeBase:
    return evermat.KnowledgeBase.open(path, engine=engine_name, **more)


def from_scratch(kb: KnowledgeBase) -> dict[str, Any]:
    """What the given facts of a knowledge base lead to, by the axioms of equality."""
    new = evermat.KnowledgeBase(kb.rules, engine="reference", equality="rewrite")
    new.load({name: list(kb.facts(name, "explicit")) for name in kb.predicates})
    return contents(new)


def signed(change: Change) -> set[tuple[str, str, tuple[Any, ...]]]:
    """All that came and left."""
    found = set()
    for sign, which in (("+", change.added), ("-", change.removed)):
        for name in change.predicates:
            found |= {(sign, name, row) for row in which(name)}
    return found


def feed(path: Path, since: int) -> set[tuple[str, str, tuple[Any, ...]]]:
    """The same from the state."""
    changes = list(lake.changes(path, since=since))
    found = {(each.sign, each.predicate, each.values) for each in changes}
    assert len(found) == len(changes)
    return found


@pytest.mark.parametrize("equality", ["rewrite", "auto"])
def test_opened_again_it_is_what_it_was(
    tmp_path: Path, engine_name: str, equality: str
) -> None:
    kb = made(tmp_path, engine_name, equality=equality)
    assert ("cem", "ann") in kept(kb)[0] or ("ann", "cem") in kept(kb)[0]
    again = opened(tmp_path, engine_name)
    assert kept(again) == kept(kb)
    assert contents(again) == contents(kb) == from_scratch(kb)
    change = again.delete("email", [("cem", "a@")])
    assert change.report.algorithm == "bf"
    assert not kept(again)[0]
    assert contents(again) == from_scratch(again)
    assert kept(opened(tmp_path, engine_name)) == kept(again)


def test_equality_may_come_later(tmp_path: Path, engine_name: str) -> None:
    kb = evermat.KnowledgeBase(
        "meets(?x, ?z) :- knows(?x, ?y), knows(?y, ?z) .",
        engine=engine_name,
        state=tmp_path,
    )
    kb.insert("knows", GIVEN["knows"])
    before = kb.version
    assert before is not None
    change = kb.insert("same_as", [("bob", "cem")])
    again = opened(tmp_path, engine_name)
    assert contents(again) == contents(kb)
    assert ("bob", "bob") in set(again.facts("meets"))
    assert feed(tmp_path, before) == signed(change)
    old = opened(tmp_path, engine_name, version=before)
    assert "same_as" not in old.predicates
    assert set(old.facts("meets")) == {("ann", "dee"), ("bob", "cem")}


@pytest.mark.parametrize("writer", ["reference", "embedded"])
def test_one_engine_opens_what_another_wrote(tmp_path: Path, writer: str) -> None:
    reader = {"reference": "embedded", "embedded": "reference"}[writer]
    kb = made(tmp_path, writer)
    other = opened(tmp_path, reader)
    assert kept(other) == kept(kb)
    other.update(insert={"email": [("eva", "b@")]}, delete={"email": [("ann", "a@")]})
    assert kept(opened(tmp_path, writer)) == kept(other)
    assert contents(opened(tmp_path, writer)) == from_scratch(other)


@pytest.mark.spark
@pytest.mark.parametrize("small", ["2", "50000"])
def test_spark_opens_what_others_wrote(
    tmp_path: Path, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERMAT_SPARK_SMALL", small)
    monkeypatch.setattr("evermat.lake.rows.SEVERAL", 3)
    kb = made(tmp_path, "embedded")
    on_spark = opened(tmp_path, "spark")
    assert kept(on_spark) == kept(kb)
    change = on_spark.update(
        insert={"email": [("eva", "b@")]}, delete={"email": [("ann", "a@")]}
    )
    assert feed(tmp_path, (on_spark.version or 0) - 1) == signed(change)
    kb = opened(tmp_path, "embedded")
    assert kept(kb) == kept(on_spark)
    assert contents(kb) == from_scratch(kb)


def test_values_stand_for_names(tmp_path: Path) -> None:
    kb = evermat.KnowledgeBase(RULES, state=tmp_path)
    kb.load({"code": [("bob", 7), ("ann", 7), ("dee", 2.5)], "knows": GIVEN["knows"]})
    kb.insert("sure", [()])
    assert ("ann", 7) in set(kb.representatives())
    again = opened(tmp_path)
    assert kept(again) == kept(kb)
    again.insert("code", [("cem", "ann")])
    assert contents(again) == from_scratch(again)
    assert kept(opened(tmp_path)) == kept(again)
    again.delete("code", [("ann", 7)])
    assert contents(opened(tmp_path)) == contents(again) == from_scratch(again)


def test_failed_updates_leave_no_trace(tmp_path: Path) -> None:
    kb = made(tmp_path)
    kb.insert("code", [("ann", 7), ("bob", 9)])
    before, version = kept(kb), kb.version
    with pytest.raises(UnequalValuesError):
        kb.update(insert={"sure": [()], "email": [("bob", "a@")]})
    assert (kept(kb), kb.version) == (before, version)
    assert kept(opened(tmp_path)) == before
    other = opened(tmp_path)
    other.insert("email", [("eva", "b@")])
    with pytest.raises(StateConflictError):
        kb.delete("email", [("cem", "a@")])
    assert kept(kb) == before
    assert contents(kb) == from_scratch(kb)


def test_old_versions_can_be_asked_and_not_changed(tmp_path: Path) -> None:
    kb = made(tmp_path)
    before, version = kept(kb), kb.version
    kb.update(delete={"email": [("cem", "a@")]}, insert={"email": [("bob", "a@")]})
    kb.update(algorithm="remat", insert={"email": [("dee", "a@")]})
    old = opened(tmp_path, version=version)
    assert kept(old) == before
    with pytest.raises(ReadOnlyStateError):
        old.delete("email", [("ann", "a@")])
    assert lake.read(tmp_path, "≈", version=version).num_rows == 1
    assert lake.read(tmp_path, "≈").num_rows == 2


def test_rules_about_equality_come_and_go(tmp_path: Path, engine_name: str) -> None:
    kb = made(tmp_path, engine_name)
    kb.update(
        remove_rules="?x ≈ ?y :- email(?x, ?a), email(?y, ?a) .",
        add_rules="?x ≈ ?y :- knows(?x, ?y), person(?x) .",
    )
    again = opened(tmp_path, engine_name)
    assert kept(again) == kept(kb)
    assert contents(again) == from_scratch(kb)


def test_a_change_is_written_and_not_all_cliques(tmp_path: Path) -> None:
    kb = evermat.KnowledgeBase(RULES, state=tmp_path)
    many = [(f"{who}{at}", f"{at}@") for at in range(1000) for who in "xyz"]
    kb.insert("email", many)
    known = {file.path for file in _files(tmp_path)}
    kb.delete("email", [("x5", "5@")])
    new = [file for file in _files(tmp_path) if file.path not in known]
    assert sum(file.rows for file in new if file.part == CLIQUES) <= 4
    assert sum(file.rows for file in new if file.part == FACTS) <= 8
    assert kept(opened(tmp_path)) == kept(kb)


def _files(path: Path) -> list[Any]:
    table = StateTable.open(path)
    assert table is not None
    return [file for part in (CLIQUES, FACTS) for file in table.files(part)]


@pytest.mark.parametrize("seed", range(12))
def test_any_course_of_updates_and_openings(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evermat.lake.rows.SEVERAL", 3)
    random = Random(seed)  # noqa: S311  tests are to be repeatable

    def rows(count: int) -> dict[str, list[tuple[Any, ...]]]:
        found: dict[str, list[tuple[Any, ...]]] = {}
        for _ in range(random.randint(0, count)):
            one, other = random.choices(PEOPLE, k=2)
            name, row = random.choice(
                [
                    ("email", (one, random.choice(["a@", "b@", other]))),
                    ("knows", (one, other)),
                    ("profile", (one, other)),
                    ("person", (one,)),
                    ("same_as", (one, other)),
                    ("code", (one, random.choice([other, 7]))),
                    ("sure", ()),
                ]
            )
            found.setdefault(name, []).append(row)
        return found

    kb = made(tmp_path, random.choice(["reference", "embedded"]))
    for _ in range(8):
        version = kb.version
        assert version is not None
        known = set(kb.predicates)
        delete = {name: some for name, some in rows(4).items() if name in known}
        algorithm = random.choice(["bf", "bf", "auto", "remat"])
        change = kb.update(delete=delete, insert=rows(4), algorithm=algorithm)
        assert feed(tmp_path, version) == signed(change)
        if random.random() < 0.5:
            again = opened(tmp_path, random.choice(["reference", "embedded"]))
            assert kept(again) == kept(kb)
            assert contents(again) == contents(kb)
            kb = again
    assert contents(opened(tmp_path)) == contents(kb) == from_scratch(kb)
