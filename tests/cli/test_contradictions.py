"""The command line tells of contradictions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from evermat.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

RULES = 'false("b", ?x) :- a(?x), b(?x) .\n'


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    (tmp_path / "r.dl").write_text(RULES)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("7\n")
    (tmp_path / "data" / "b.csv").write_text("7\n8\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.csv").write_text("8\n")
    return tmp_path / "r.dl"


def run(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.output


def test_run_and_update_list_contradictions(rules: Path, tmp_path: Path) -> None:
    data, kept = tmp_path / "data", tmp_path / "kept"
    code, text = run("run", rules, "-f", data, "--store", kept)
    assert code == 0
    assert '1 contradiction\nfalse("b", 7)' in text
    code, text = run("update", "--store", kept, "--insert", tmp_path / "more", "--json")
    assert json.loads(text)["contradictions"]["count"] == 2
    code, text = run("run", rules, "-f", data, "--contradictions", "refuse")
    assert code == 1


def test_check_shows_proofs(rules: Path, tmp_path: Path) -> None:
    code, text = run("check", rules, "-f", tmp_path / "data")
    assert code == 1
    assert "by false" in text
    assert "- a(7)   explicit" in text
    (tmp_path / "data" / "a.csv").write_text("9\n")
    code, text = run("check", rules, "-f", tmp_path / "data")
    assert (code, text.splitlines()[-1]) == (0, "no contradictions")
