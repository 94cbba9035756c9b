"""`evermat run` tells of rules that silently derive nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evermat.cli import OK, run

if TYPE_CHECKING:
    from pathlib import Path

ON_REFERENCE = ["--engine", "reference"]


def told(
    folder: Path, rules: str, facts: str, capsys: pytest.CaptureFixture[str]
) -> str:
    (folder / "rules.dl").write_text(rules)
    (folder / "part.csv").write_text(facts)
    command = ["run", str(folder / "rules.dl"), "-f", str(folder / "part.csv")]
    assert run([*command, *ON_REFERENCE]) == OK
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ("needs(a, c) :- part(a, c, _) .", "EM908"),
        ('two(?x) :- part(?x, _, "2") .', "EM910"),
        ("two(?x) :- part(?x, _, 2.0) .", "EM911"),
        ("two(?x) :- part(?x, _, ?n), wanted(?n) . wanted(2.0) .", "EM911"),
    ],
)
def test_what_is_hardly_meant_is_told(
    tmp_path: Path, rules: str, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = "bike,wheel,2\nwheel,spoke,36\n"
    shown = told(tmp_path, rules, facts, capsys)
    assert shown.count("Warning [EM") == 1
    assert f"[{code}]" in shown


@pytest.mark.parametrize(
    "rules",
    [
        "needs(a, b) :- part(a, b, _) .",  # there is such a part
        "two(?x) :- part(?x, _, 2) .",
        "two(?x) :- part(?x, _, ?n), wanted(?n) . wanted(2) .",
    ],
)
def test_what_the_facts_have_is_meant(
    tmp_path: Path, rules: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(tmp_path, rules, "a,b,2\nb,c,36\n", capsys) == ""


def test_facts_that_a_store_had_before_count_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("deltalake")
    rules, facts = tmp_path / "rules.dl", tmp_path / "part.csv"
    store = ["--store", str(tmp_path / "store"), *ON_REFERENCE]
    rules.write_text("is_part(?x) :- part(?x, _, _) .")
    facts.write_text("bike,wheel,2\n")
    assert run(["run", str(rules), "-f", str(facts), *store]) == OK
    capsys.readouterr()
    # Matches what is stored, though not what is new.
    rules.write_text("two(?x) :- part(?x, _, 2) .")
    facts.write_text("bike,bell,one\n")
    assert run(["run", str(rules), "-f", str(facts), *store]) == OK
    assert "Warning [EM" not in capsys.readouterr().err
    # Matches nothing, though nothing is new.
    rules.write_text("two(?x) :- part(?x, _, 2.0) .")
    assert run(["run", str(rules), *store]) == OK
    assert "[EM910]" in capsys.readouterr().err
