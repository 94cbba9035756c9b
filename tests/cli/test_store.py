"""Stores: what one command keeps, another maintains, asks and explains."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import evermat
from evermat import lake
from evermat.cli import (
    BUDGET_EXCEEDED,
    DOES_NOT_HOLD,
    OK,
    WRONG_INPUT,
    WRONG_USAGE,
    run,
)

if TYPE_CHECKING:
    from pathlib import Path

Shown = pytest.CaptureFixture[str]
RULES = """
reach(?x, ?y) :- edge(?x, ?y) .
reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""
STORE = ["--store", "kept"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> Path:
    """A folder with a store that holds the closure of a chain."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.dl").write_text(RULES)
    (tmp_path / "edge.csv").write_text("a,b\nb,c\nc,d\n")
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "edge.csv").write_text("b,c\n")
    assert run(["run", "rules.dl", "-f", "edge.csv", *STORE]) == OK
    assert "kept as version 2 of kept\n" in capsys.readouterr().out
    return tmp_path


def reached(capsys: Shown, *options: str) -> list[str]:
    assert run(["query", *STORE, "reach(a, ?x)", *options]) == OK
    return sorted(capsys.readouterr().out.split()[1:])


@pytest.mark.usefixtures("folder")
def test_what_is_kept_is_maintained_and_asked(capsys: Shown) -> None:
    assert reached(capsys) == ["b", "c", "d"]
    assert run(["update", *STORE, "--delete", "gone", "--show", "9"]) == OK
    shown = capsys.readouterr().out
    assert '  - reach("a", "d")\n' in shown
    assert "kept as version 3 of kept\n" in shown
    assert reached(capsys) == ["b"]
    assert reached(capsys, "--at", "2") == ["b", "c", "d"]
    assert evermat.KnowledgeBase.open("kept").count("reach") == 2


def test_rules_and_files_of_updates(folder: Path, capsys: Shown) -> None:
    (folder / "more.dl").write_text("two(?x, ?z) :- edge(?x, ?y), edge(?y, ?z) .")
    (folder / "late.toml").write_text('[insert]\nedge = [["d", "e"]]\n')
    arguments = ["--add-rules", "more.dl", "--insert", "edge=gone/edge.csv"]
    assert run(["update", *STORE, *arguments, "late.toml", "--json"]) == OK
    document = json.loads(capsys.readouterr().out)
    assert document["version"] == 4
    first, second = document["updates"]
    assert first["predicates"] == {"two": {"added": 2, "removed": 0}}
    assert first["report"]["ignored"]["insertions"] == 1
    assert second["predicates"]["two"] == {"added": 1, "removed": 0}
    assert run(["update", *STORE, "--remove-rules", "more.dl"]) == OK
    kb = evermat.KnowledgeBase.open("kept")
    assert (len(kb.rules), kb.count("two"), kb.count("edge")) == (2, 0, 4)


def test_facts_that_no_rule_uses_are_mentioned_once(
    folder: Path, capsys: Shown
) -> None:
    (folder / "new.csv").write_text("d,e\n")
    (folder / "more.dl").write_text("news(?x) :- new(?x, _) .")
    told = "no rule speaks of `new`"
    update = ["update", *STORE, "--insert", "new.csv"]
    assert run([*update, "--dry-run"]) == OK
    assert told in capsys.readouterr().err
    for rules in (["--dry-run"], []):
        assert run([*update, "--add-rules", "more.dl", *rules]) == OK
        assert told not in capsys.readouterr().err
    assert run(["update", *STORE, "--remove-rules", "more.dl"]) == OK
    assert run(update) == OK
    assert told not in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_versions_that_there_are_not(capsys: Shown) -> None:
    assert run(["store", "changes", "kept", "--since", "2"]) == OK
    capsys.readouterr()
    for option in ("--since", "--until"):
        assert run(["store", "changes", "kept", option, "9"]) == WRONG_INPUT
        shown = capsys.readouterr().err
        assert "has no version 9" in shown
        assert "versions go from 0 to 2" in shown


@pytest.mark.parametrize(
    "command", [["store", "history"], ["store", "vacuum"], ["store", "verify"]]
)
def test_a_file_is_no_store(folder: Path, capsys: Shown, command: list[str]) -> None:
    (folder / "file").touch()
    assert run([*command, "file"]) == WRONG_INPUT
    assert "it is a file, and a state is a folder" in capsys.readouterr().err
    assert run([*command, "none"]) == WRONG_INPUT
    assert "make a state" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_a_dry_run_changes_nothing(capsys: Shown) -> None:
    assert run(["update", *STORE, "--delete", "gone", "--dry-run"]) == OK
    shown = capsys.readouterr().out
    assert "updates that would be made" in shown
    assert "reach\t0\t4\n" in shown
    assert "kept as" not in shown
    assert reached(capsys) == ["b", "c", "d"]


def test_run_goes_on_with_a_store(folder: Path, capsys: Shown) -> None:
    (folder / "rules.dl").write_text("linked(?x) :- edge(?x, ?y) .")
    (folder / "edge.csv").write_text("d,e\n")
    assert run(["run", "rules.dl", "-f", "edge.csv", *STORE]) == OK
    capsys.readouterr()
    kb = evermat.KnowledgeBase.open("kept")
    assert kb.version == 3
    assert [str(rule) for rule in kb.rules] == ["linked(?x) :- edge(?x, ?y) ."]
    assert (kb.count("edge"), kb.count("linked"), kb.count("reach")) == (4, 4, 0)


@pytest.mark.usefixtures("folder")
def test_facts_of_a_store_are_explained(capsys: Shown) -> None:
    assert run(["explain", *STORE, "reach(a, c)"]) == OK
    assert 'edge("b", "c")   explicit' in capsys.readouterr().out
    assert run(["explain", *STORE, "reach(d, a)"]) == DOES_NOT_HOLD


@pytest.mark.usefixtures("folder")
def test_versions_are_listed_compared_and_removed(capsys: Shown) -> None:
    assert run(["update", *STORE, "--delete", "gone"]) == OK
    capsys.readouterr()
    assert run(["store", "history", "kept"]) == OK
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [(line[0], *line[2:]) for line in lines[-2:]] == [
        ("2", "9", "0"),
        ("3", "0", "5"),
    ]
    assert run(["store", "changes", "kept", "--since", "2", "--json"]) == OK
    changes = json.loads(capsys.readouterr().out)["changes"]
    assert len(changes) == 5
    edge = {"version": 3, "sign": "-", "predicate": "edge", "values": ['"b"', '"c"']}
    assert edge in changes
    assert run(["store", "vacuum", "kept", "--keep", "1"]) == OK
    assert capsys.readouterr().out.startswith("removed ")
    assert reached(capsys) == ["b"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["query", "rules.dl"], WRONG_USAGE, "needs RULES and QUERY, or --store"),
        (["query", *STORE, "rules.dl", "edge(?x, ?y)"], WRONG_USAGE, "QUERY alone"),
        (["query", "rules.dl", "edge(?x, ?y)", "--at", "1"], WRONG_USAGE, "version of"),
        (["update", *STORE], WRONG_USAGE, "nothing to do"),
        (["update", "--delete", "gone"], WRONG_USAGE, "--store"),
        (["update", "--store", "else", "--delete", "gone"], WRONG_INPUT, "no state"),
        (["update", *STORE, "--delete", "no.csv"], WRONG_INPUT, "no.csv"),
        (["update", *STORE, "--delete", "rules.dl"], WRONG_INPUT, "rules.dl"),
        (["store", "history", "else"], WRONG_INPUT, "no state"),
    ],
)
def test_mistakes_are_told_and_lose_nothing(
    arguments: list[str], code: int, message: str, capsys: Shown
) -> None:
    assert run(arguments) == code
    assert message in capsys.readouterr().err
    assert reached(capsys) == ["b", "c", "d"]


def test_a_budget_leaves_the_store_as_it_was(folder: Path, capsys: Shown) -> None:
    (folder / "many.csv").write_text("".join(f"{n},{n + 1}\n" for n in range(200)))
    options = ["--insert", "edge=many.csv", "--budget-facts", "300"]
    assert run(["update", *STORE, *options]) == BUDGET_EXCEEDED
    capsys.readouterr()
    assert reached(capsys) == ["b", "c", "d"]
    assert evermat.KnowledgeBase.open("kept").version == 2


def test_damage_is_found_and_a_version_restored(folder: Path, capsys: Shown) -> None:
    assert run(["store", "verify", "kept"]) == OK
    assert "versions that can be read\t3\n" in capsys.readouterr().out
    assert run(["update", *STORE, "--delete", "gone"]) == OK
    assert run(["store", "vacuum", "kept", "--keep", "2"]) == OK
    capsys.readouterr()
    (name,) = lake.history("kept")[3].changes
    (folder / "kept" / name).write_bytes(b"PAR1")
    assert run(["store", "verify", "kept"]) == WRONG_INPUT
    shown = capsys.readouterr().out
    assert f"{name}\t3-4\tit has 4 bytes and not " in shown
    assert "the newest version that can be read is 2\n" in shown
    assert run(["query", *STORE, "reach(a, ?x)"]) == WRONG_INPUT
    assert "`evermat store restore kept --to 2`" in capsys.readouterr().err
    assert run(["store", "restore", "kept", "--to", "2"]) == OK
    capsys.readouterr()
    assert reached(capsys) == ["b", "c", "d"]
    # The damaged file is one of versions that were given up.
    assert run(["store", "verify", "kept"]) == OK
    assert f"{name}\t3-4\t" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_an_older_version_becomes_the_newest(capsys: Shown) -> None:
    assert run(["update", *STORE, "--delete", "gone"]) == OK
    assert run(["store", "restore", "kept", "--to", "9"]) == WRONG_INPUT
    assert "versions go from 0 to 3" in capsys.readouterr().err
    assert run(["store", "restore", "kept", "--to", "2"]) == OK
    assert "version 2 is restored as version 4 of kept\n" in capsys.readouterr().out
    assert reached(capsys) == ["b", "c", "d"]
    assert run(["store", "verify", "kept", "--json"]) == OK
    document = json.loads(capsys.readouterr().out)
    assert (document["versions"], document["problems"]) == ([0, 1, 2, 3, 4], [])


def test_a_dump_replaces_what_was_given(folder: Path, capsys: Shown) -> None:
    (folder / "tonight.csv").write_text("a,b\nb,d\n")
    replace = ["update", *STORE, "--replace", "edge=tonight.csv"]
    assert run([*replace, "--dry-run"]) == OK
    capsys.readouterr()
    assert reached(capsys) == ["b", "c", "d"]
    assert run(replace) == OK
    assert "kept as version 3 of kept\n" in capsys.readouterr().out
    assert reached(capsys) == ["b", "d"]
    (folder / "empty.toml").write_text("[replace]\nedge = []\n")
    assert run(["update", *STORE, "empty.toml"]) == OK
    capsys.readouterr()
    assert reached(capsys) == []


def test_an_update_that_changes_nothing_makes_no_version(
    folder: Path, capsys: Shown
) -> None:
    assert run(["update", *STORE, "--insert", "edge.csv"]) == OK
    assert "kept as version 2 of kept\n" in capsys.readouterr().out
    assert run(["update", *STORE, "--insert", "edge=gone/edge.csv"]) == OK
    assert "kept as version 2 of kept\n" in capsys.readouterr().out
    assert evermat.KnowledgeBase.open(str(folder / "kept")).version == 2
