"""`evermat check` and `evermat fmt`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evermat.cli import OK, WRONG_INPUT, WRONG_USAGE, run

if TYPE_CHECKING:
    from pathlib import Path

Shown = pytest.CaptureFixture[str]

TIDY = "reach(?x, ?y) :- edge(?x, ?y) .\n"


def test_a_good_program_has_no_problems(tmp_path: Path, capsys: Shown) -> None:
    file = tmp_path / "good.dl"
    file.write_text(TIDY)
    assert run(["check", str(file)]) == OK
    assert capsys.readouterr().out == f"{file}: no problems\n"


def test_all_problems_are_shown(tmp_path: Path, capsys: Shown) -> None:
    file = tmp_path / "bad.dl"
    file.write_text("p(?x, ?y) :- q(?x) .\nr(?x) :- s(?x), not r(?x) .\n")
    assert run(["check", str(file)]) == WRONG_INPUT
    shown = capsys.readouterr()
    assert "EM201" in shown.err
    assert "EM301" in shown.err
    assert "2 errors" in shown.out


def test_not_hundreds_of_the_same_sort_are_shown(tmp_path: Path, capsys: Shown) -> None:
    file = tmp_path / "odd.dl"
    file.write_text("".join(f"p{n}(?x) :- q(?x, ?y) .\n" for n in range(300)))
    assert run(["check", str(file)]) == OK
    shown = capsys.readouterr()
    assert shown.err.count("EM903]") == 10
    assert "and 290 more of EM903" in shown.err
    assert "300 warnings" in shown.out
    file.write_text("p(?x :- q(?x) .\n" * 3)
    assert run(["check", str(file)]) == WRONG_INPUT
    assert capsys.readouterr().err.count("EM101]") == 3


def test_problems_as_json(tmp_path: Path, capsys: Shown) -> None:
    bad, unreadable = tmp_path / "bad.dl", tmp_path / "worse.dl"
    bad.write_text("p(?x, ?y) :- q(?x) .\n")
    unreadable.write_text("p(?x :- q(?x) .\n")
    assert run(["check", "--json", str(bad), str(unreadable)]) == WRONG_INPUT
    shown = capsys.readouterr()
    assert shown.err == ""
    first, second = json.loads(shown.out)["files"]
    assert first["errors"][0]["code"] == "EM201"
    assert first["errors"][0]["line"] == 1
    assert second["errors"][0]["code"] == "EM101"


def test_warnings_count_only_where_asked(tmp_path: Path, capsys: Shown) -> None:
    file = tmp_path / "odd.dl"
    file.write_text("reach(?x, ?y) :- edge(?x, ?y), edge(?y, ?once) .\n")
    assert run(["check", str(file)]) == OK
    assert "0 errors, 1 warning" in capsys.readouterr().out
    assert run(["check", "--strict", str(file)]) == WRONG_INPUT


def test_fmt_prints_checks_and_writes(tmp_path: Path, capsys: Shown) -> None:
    file = tmp_path / "untidy.dl"
    file.write_text("reach(?x,?y):-edge( ?x , ?y ).")
    assert run(["fmt", str(file)]) == OK
    assert capsys.readouterr().out == TIDY
    assert run(["fmt", "--check", str(file)]) == WRONG_INPUT
    assert capsys.readouterr().out == f"would format {file}\n"
    assert run(["fmt", "--write", str(file)]) == OK
    assert file.read_text() == TIDY
    assert run(["fmt", "--check", str(file)]) == OK
    assert run(["fmt", "--check", "--write", str(file)]) == WRONG_USAGE


def test_fmt_refuses_what_is_no_program(tmp_path: Path, capsys: Shown) -> None:
    file = tmp_path / "bad.dl"
    file.write_text("reach(?x")
    assert run(["fmt", "--write", str(file)]) == WRONG_INPUT
    assert "EM101" in capsys.readouterr().err
    assert file.read_text() == "reach(?x"
    assert run(["fmt", str(tmp_path / "none.dl")]) == WRONG_INPUT
