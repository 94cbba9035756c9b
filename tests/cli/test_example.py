"""Examples are copied and run as it is said."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from evermat.cli import run
from evermat.cli.copied_examples import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_copied_and_runs(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["example", name]) == 0
    _, command = EXAMPLES[name]
    assert command in capsys.readouterr().out
    program, *arguments = shlex.split(command)
    assert program == "evermat"
    assert run(arguments) == 0


def test_examples_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["example"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in EXAMPLES)


def test_nothing_is_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "access").mkdir()
    assert run(["example", "access", "--into", str(tmp_path)]) == 1
    assert "there already" in capsys.readouterr().err
    assert run(["example", "acess", "--into", str(tmp_path)]) == 1
    assert not list((tmp_path / "access").iterdir())
